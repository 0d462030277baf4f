// ATM701 3:40
import { toolNode } from "atomic/workflows";
export const graphConfig = { startNode "a", nodes: [] };
