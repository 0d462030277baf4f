import { agentNode, graph } from "@atomic/workflows";

export default async function createWorkflow() { //! TS1058
  return graph().start(agentNode("a"));
}
