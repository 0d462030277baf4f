// A migration, file by file. The user chooses how careful to be; what cannot be migrated is put
// aside and told of at the end.
//
//   atomic run migrate "from var to const"
import { annotation, askUserNode, eachNode, graph, Reducers, subagentNode, toolNode } from "@atomic/graph";
import type { WorkflowState } from "atomic/types";

export const name = "migrate";
export const description = "Migrates file after file and checks each one";
export const argumentHint = "<from what to what>";
export const stateVersion = 2;

interface File {
  id: string;
}

interface State extends WorkflowState {
  mode: "carefully" | "quickly";
  files: File[];
  file?: File;
  failed: string[];
}

/** Sessions of the first version had a list of texts. */
export function migrateState(old: any, from: number) {
  return from < 2 ? { ...old, files: old.files.map((id: string) => ({ id })) } : old;
}

export const stateAnnotations = {
  mode: annotation<State["mode"]>("carefully"),
  files: annotation<File[]>([]),
  failed: annotation<string[]>([], Reducers.concat),
};

const migrateOne = subagentNode<State>("migrate-one", {
  agent: "worker",
  description: "Migrating…",
  task: (s) => `Migrate ${s.file?.id} ${s.prompt}, ${s.mode}.`,
  retry: { maxAttempts: 2, backoffMs: 100 },
});

const checkOne = toolNode<State>("check-one", {
  execute: async (s, ctx) => {
    const path = s.file?.id ?? "";
    const isLeft = (await ctx.readFile(path)).includes("var ");
    return isLeft ? { failed: [path] } : {};
  },
});

export default () =>
  graph<State>()
    .start(
      askUserNode("how", {
        question: (s) => `How shall I migrate ${s.prompt}?`,
        header: "Mode",
        options: [{ label: "carefully (Recommended)", description: "Keep what looks odd" }, { label: "quickly" }],
        outputMapper: (answer: string) => ({ mode: answer.startsWith("quick") ? "quickly" : "carefully" }),
      }),
    )
    .tool("find", async (_, ctx) => ({ files: (await ctx.glob("src/*.js")).sort().map((id) => ({ id })) }))
    .then(eachNode({ id: "files", over: "files", item: "file", workers: 2, nodes: [migrateOne, checkOne] }))
    .if((s) => s.failed.length > 0)
    .then(toolNode("tell", { execute: (s, ctx) => ctx.writeFile("MIGRATION.md", `Left to do:\n${s.failed.join("\n")}\n`) }))
    .endif()
    .end()
    .compile({ stateAnnotations });
