import { agentNode, eachNode } from "@atomic/workflows";

interface State {
  files: string[];
}

export const node = eachNode<State>({ id: "all", over: "flies", nodes: [agentNode("a")] }); //! TS2322
