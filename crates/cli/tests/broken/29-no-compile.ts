// ATM715 3:25
import { graph, toolNode } from "atomic/workflows";
export default function createWorkflow() {
  return graph().start(toolNode({ id: "a", execute: () => ({}) })).end();
}
