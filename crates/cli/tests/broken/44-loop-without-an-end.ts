// ATM301 6:74
import { graph, toolNode } from "atomic/workflows";
export default function createWorkflow() {
  return graph<any>()
    .start(toolNode({ id: "a", execute: () => ({}) }))
    .loop([toolNode({ id: "b", execute: () => ({}) })], { maxIterations: 0 })
    .end()
    .compile();
}
