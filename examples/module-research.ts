// One researcher for every module of the project, four at a time, and one report of it all.
//
//   atomic run module-research "How are errors handled?"
import { annotation, mapReduce, sequential, subagentNode, toolNode } from "atomic/workflows/graph";
import type { WorkflowState } from "atomic/types";

export const name = "module-research";
export const description = "Asks the same question of every module, then writes one report";
export const argumentHint = "<question>";

interface Module {
  id: string;
  path: string;
}

interface State extends WorkflowState {
  modules: Module[];
  /** What `map` finds its module under. */
  module?: Module;
}

export const stateAnnotations = { modules: annotation<Module[]>([]) };

const find = toolNode<State>({
  id: "find-modules",
  description: "Looking for modules…",
  execute: async (_, ctx) => {
    const files = await ctx.glob("modules/*/README.md");
    return { modules: files.sort().map((file) => ({ id: file.split("/")[1] ?? file, path: file })) };
  },
});

const research = mapReduce<State>({
  over: "modules",
  item: "module",
  workers: 4,
  map: subagentNode({ id: "research", agent: "codebase-analyzer", description: "Reading…", task: (s) => `${s.prompt}\n\nLook at ${s.module?.path} only.` }),
  reduce: subagentNode({ id: "report", agent: "worker", description: "Writing the report…", task: (s) => `Write research/report.md about: ${s.prompt}\n\n${JSON.stringify(s.outputs["map"])}` }),
});

export default () => sequential<State>(find).then(research).end().compile({ stateAnnotations, maxConcurrency: 4 });
