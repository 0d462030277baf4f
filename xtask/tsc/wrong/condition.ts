import { graph, agentNode } from "@atomic/workflows";

export default () =>
  graph<{ prompt: string }>()
    .start(agentNode("a", { prompt: "x" }))
    .if((s) => s.prompt.length) //! TS2769
    .then(agentNode("b", { prompt: "x" }))
    .endif()
    .compile();
