// ATM717 5:11
import { toolNode } from "atomic/workflows";
export const graphConfig = {
  startNode: "a",
  nodes: [toolNode({ id: "a" } as any)],
  edges: [],
};
