import { toolNode } from "@atomic/graph";

interface State {
  rounds: number;
}

export const node = toolNode<State>("a", {
  execute: async (s) => ({ rounds: String(s.rounds) }), //! TS2322
});
