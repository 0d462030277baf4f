// ATM707 2:10
import { tolNode } from "atomic/workflows";
export const n = tolNode;
