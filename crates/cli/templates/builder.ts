// A chain of calls. Try it: atomic check NAME && atomic graph NAME && atomic run NAME "what to do"
import { graph, subagentNode } from "atomic/workflows";
import type { BaseState } from "atomic/types";

export const name = "NAME";
export const description = "Work, and again until the reviewer is content";
export const argumentHint = "<what to do>";

interface State extends BaseState {
  prompt: string;
}

export default function createWorkflow() {
  return graph<State>()
    .start(subagentNode<State>({ id: "work", agent: "worker", task: (s) => s.prompt }))
    .loop(
      [
        subagentNode<State>({ id: "review", agent: "reviewer", task: (s) => `Review: ${s.prompt}. Say CONTENT when nothing is left.` }),
        subagentNode<State>({ id: "fix", agent: "worker", task: (s) => `Fix what was found: ${String(s.outputs["review"])}` }),
      ],
      { until: (s) => String(s.outputs["review"]).includes("CONTENT"), maxIterations: 3 },
    )
    .end()
    .compile();
}
