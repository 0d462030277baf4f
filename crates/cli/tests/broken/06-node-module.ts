// ATM703 2:30
import { readFileSync } from "node:fs";
export const name = "x" + readFileSync("x");
