// ATM102 4:14
import { toolNode } from "atomic/workflows";
export const graphConfig = {
  startNode: "bein",
  nodes: [toolNode({ id: "begin", execute: () => ({}) })],
  edges: [],
};
