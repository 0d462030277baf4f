// ATM717 6:6
import { graph, toolNode } from "atomic/workflows";
export default function createWorkflow() {
  return graph()
    .start(toolNode({ id: "a", execute: () => ({}) }))
    .endif()
    .end()
    .compile();
}
