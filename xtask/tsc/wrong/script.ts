import { defineWorkflow } from "atomic/workflows";

export default defineWorkflow({ name: "x" }).run(async (ctx) => {
  const text: number = await ctx.agent("worker", "Do it"); //! TS2322
  await ctx.agent("worker", { prompt: "Do it", modl: "opus" }); //! TS2769
  await ctx.parallel([ctx.agent("worker", "x")]); //! TS2769
  await ctx.sleep("a while"); //! TS2345
  return text;
});
