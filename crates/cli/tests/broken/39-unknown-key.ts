// ATM611 8:7
import { subagentNode } from "atomic/workflows";
export const graphConfig = {
  startNode: "a",
  nodes: [
    subagentNode({
      id: "a", agent: "worker", task: "x",
      modle: "opus",
    } as any),
  ],
  edges: [],
};
