import { subagentNode } from "@atomic/workflows";

interface State {
  prompt: string;
  rounds: number;
}

export const node = subagentNode<State>({
  id: "a",
  agent: "worker",
  outputMapper: () => ({ rounds: "one" }), //! TS2322
});
