// ATM613 5:63
import { toolNode } from "atomic/workflows";
export const graphConfig = {
  startNode: "a",
  nodes: [toolNode({ id: "a", execute: () => ({}), timeoutMs: "soon" as any })],
  edges: [],
};
