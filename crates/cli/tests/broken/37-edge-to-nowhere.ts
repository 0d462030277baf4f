// ATM105 6:11
import { toolNode } from "atomic/workflows";
export const graphConfig = {
  startNode: "a",
  nodes: [toolNode({ id: "a", execute: () => ({}) })],
  edges: [{ from: "a", to: "b" }],
};
