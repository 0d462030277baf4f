// An async function. Try it: atomic check NAME && atomic run NAME "what to do"
// Every ctx call is recorded: after a crash the function runs again and is given what it was given
// before, so finished work is never repeated. Keep it deterministic: effects only through ctx.
import { defineWorkflow } from "atomic/workflows";

export default defineWorkflow({
  name: "NAME",
  description: "Work, check it with a command, fix until it passes",
  argumentHint: "<what to do>",
}).run(async (ctx) => {
  await ctx.agent("worker", ctx.prompt);
  for (let round = 1; round <= 3; round++) {
    const check = await ctx.shell("git diff --check");
    if (check.code === 0) return { rounds: round };
    await ctx.agent("worker", `This does not pass:\n${check.stdout}`);
  }
  throw new Error("It still does not pass after three rounds");
});
