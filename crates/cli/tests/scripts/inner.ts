import { graph, toolNode } from "atomic/workflows";
export const name = "inner";
export default () =>
  graph<any>()
    .start(toolNode({ id: "note", execute: async (s, ctx) => {
      await ctx.writeFile("inner.txt", s.prompt);
      return { noted: s.prompt };
    } }))
    .end()
    .compile();
