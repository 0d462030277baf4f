// Nodes and edges. Try it: atomic check NAME && atomic graph NAME && atomic run NAME "what to do"
import { subagentNode, toolNode } from "atomic/workflows/graph";
import type { WorkflowGraphConfig, WorkflowStateParams } from "atomic/types";

export const name = "NAME";
export const description = "One agent works, another one looks at the result";
export const argumentHint = "<what to do>";

interface State {
  executionId: string;
  prompt: string;
  outputs: Record<string, unknown>;
  summary?: string;
}

export const graphConfig: WorkflowGraphConfig<State> = {
  startNode: "work",
  nodes: [
    subagentNode({ id: "work", agent: "worker", task: (s) => s.prompt }),
    subagentNode({ id: "review", agent: "reviewer", task: (s) => `Review what was done for: ${s.prompt}` }),
    toolNode({ id: "sum-up", execute: (s) => ({ summary: String(s.outputs["review"] ?? "") }) }),
  ],
  edges: [
    { from: "work", to: "review" },
    { from: "review", to: "sum-up" },
  ],
};

export function createState(params: WorkflowStateParams): State {
  return { executionId: params.sessionId, prompt: params.prompt, outputs: {} };
}

export const nodeDescriptions = { work: "Working…", review: "Reviewing…" };
