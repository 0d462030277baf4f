// Release notes from the commits since the last tag: a declarative graph with a command, a tool
// and an agent, and edges that choose.
//
//   atomic run release-notes "for people who use it"
import { agentNode, toolNode } from "atomic/workflows/graph";
import type { WorkflowGraphConfig, WorkflowStateParams } from "atomic/types";

export const name = "release-notes";
export const description = "Writes release notes from the commits since the last tag";
export const argumentHint = "<for whom>";
export const version = "1.0.0";

interface State {
  executionId: string;
  prompt: string;
  outputs: Record<string, unknown>;
  commits: string[];
}

export const graphConfig: WorkflowGraphConfig<State> = {
  startNode: "log",
  nodes: [
    toolNode({
      id: "log",
      command: 'git log --no-merges --format=%s "$(git describe --tags --abbrev=0 2>/dev/null || git rev-list --max-parents=0 HEAD | tail -1)..HEAD"',
      outputMapper: (output) => ({ commits: output.split("\n").filter((line) => line !== "" && !/^(chore|test)\b/.test(line)) }),
    }),
    agentNode({ id: "write", prompt: (s) => `Write release notes ${s.prompt}, into NOTES.md, from these commits:\n${s.commits.map((c) => `- ${c}`).join("\n")}` }),
    toolNode({ id: "nothing", execute: () => ({ commits: [] }) }),
  ],
  edges: [
    { from: "log", to: "write", condition: (s) => s.commits.length > 0, label: "something to tell" },
    { from: "log", to: "nothing", condition: "otherwise" },
  ],
};

export function createState(params: WorkflowStateParams): State {
  return { executionId: params.sessionId, prompt: params.prompt, outputs: {}, commits: [] };
}

export const nodeDescriptions = { log: "Reading the commits…", write: "Writing…", nothing: "Nothing has changed" };
