// ATM717 9:6
import { graph, toolNode } from "atomic/workflows";
export default function createWorkflow() {
  const node = (id: string) => id;
  return graph()
    .start(toolNode({ id: node("a"), execute: () => ({}) }))
    .then(toolNode({ id: node("a"), execute: () => ({}) }))
    .end()
    .compile();
}
