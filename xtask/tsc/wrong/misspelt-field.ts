import { toolNode } from "atomic/workflows/graph";
import type { WorkflowGraphConfig, WorkflowState } from "atomic/types";

export const graphConfig: WorkflowGraphConfig<WorkflowState> = {
  nodes: [toolNode({ id: "a", execute: (s) => ({ prompt: s.promt }) })], //! TS2551
};
