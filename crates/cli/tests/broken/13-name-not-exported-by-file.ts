// ATM707 2:17
import { shout, wisper } from "./lib/voice";
export const v = [shout, wisper];
