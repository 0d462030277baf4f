// ATM713 4:13
import { toolNode } from "atomic/workflows";
function make(text?: string) {
  throw new TypeError("no text was given");
}
export const graphConfig = make();
