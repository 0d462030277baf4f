// ATM716 5:44
import { toolNode } from "atomic/workflows";
export const graphConfig = {
  startNode: "a",
  nodes: [toolNode({ id: "a", stateUpdate: new Map([["x", 1]]), execute: () => ({}) })],
  edges: [],
} as any;
