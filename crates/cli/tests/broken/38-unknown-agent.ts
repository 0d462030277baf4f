// ATM401 5:42
import { subagentNode } from "atomic/workflows";
export const graphConfig = {
  startNode: "a",
  nodes: [subagentNode({ id: "a", agent: "wroker", task: "x" })],
  edges: [],
};
