// Ralph as a part of something larger: wait for a quiet hour, let Ralph build what a spec says,
// and write down what came of it.
//
//   atomic run nightly specs/next.md
import { defineWorkflow } from "@atomic/workflows";

export default defineWorkflow({
  name: "nightly",
  description: "Runs Ralph on a spec and writes a summary",
  argumentHint: "<path of a spec>",
  workflows: ["ralph"],
}).run(async (ctx) => {
  const spec = (await ctx.exists(ctx.prompt)) ? await ctx.readFile(ctx.prompt) : ctx.prompt;
  await ctx.sleep(10, { key: "quiet-hour" });
  const before = await ctx.shell("git rev-parse HEAD", { check: true });
  await ctx.workflow("ralph", spec, { key: "build" });
  const log = await ctx.shell("git log --oneline {before}..HEAD", { values: { before: before.stdout.trim() } });
  const summary = await ctx.agent("worker", `Sum up last night for the team, in three lines:\n${log.stdout}`);
  await ctx.writeFile("NIGHTLY.md", `${summary}\n`);
  return summary;
});
