import { agentNode, graph } from "@atomic/workflows";
import type { CompiledGraph } from "@atomic/workflows";

export default function createWorkflow(): CompiledGraph {
  return graph().start(agentNode("a")); //! TS2739
}
