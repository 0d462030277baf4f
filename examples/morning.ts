// A plain async workflow: it reads like a program, and yet every call is a step that is recorded.
// Stop it at any time; what is done stays done when it goes on.
//
//   atomic run morning "the parser"
import { defineWorkflow } from "atomic/workflows";

interface Finding {
  file: string;
  problem: string;
}

const schema = {
  type: "object",
  properties: {
    findings: { type: "array", items: { type: "object", properties: { file: { type: "string" }, problem: { type: "string" } }, required: ["file", "problem"] } },
  },
  required: ["findings"],
} as const;

export default defineWorkflow({
  name: "morning",
  description: "Looks for problems, has each looked at by two people, and mends what you choose",
  argumentHint: "<which part>",
}).run(async (ctx) => {
  const { findings } = await ctx.agent<{ findings: Finding[] }>("reviewer", `Look for problems in ${ctx.prompt}.`, { schema });
  if (findings.length === 0) return "Nothing to do.";

  const opinions = await ctx.map(
    findings,
    (finding, c) =>
      c.parallel(
        [
          (one) => one.agent("debugger", `Is this real? ${finding.file}: ${finding.problem}`),
          (other) => other.agent("codebase-analyzer", `How hard is it to mend? ${finding.file}: ${finding.problem}`),
        ],
        { strategy: "all" },
      ),
    { limit: 2 },
  );
  const lines = findings.map((finding, place) => `${finding.file}: ${finding.problem} (${opinions[place]?.join("; ")})`);
  const chosen = await ctx.ask("What shall I mend?", { header: "Morning", options: [...findings.map((f) => f.file), "Nothing (Recommended)"] });
  if (chosen.startsWith("Nothing")) return lines.join("\n");

  for (let attempt = 1; attempt <= 3; attempt++) {
    await ctx.agent("worker", `Mend ${lines.find((line) => line.startsWith(chosen))}`, { conversation: "mending" });
    const tests = await ctx.shell("sh test.sh", { timeoutMs: 600_000 });
    if (tests.code === 0) return `${chosen} is mended.`;
    ctx.log(`attempt ${attempt} failed`);
  }
  throw new Error(`${chosen} could not be mended in three attempts`);
});
