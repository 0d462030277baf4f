import { agentNode, parallelNode } from "@atomic/workflows";

export const node = parallelNode({ id: "p", branches: [agentNode("a")], strategy: "first" }); //! TS2322
