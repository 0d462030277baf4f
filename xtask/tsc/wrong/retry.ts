import { agentNode } from "@atomic/workflows";

export const node = agentNode("a", { prompt: "x", retry: { attempts: 3 } }); //! TS2353
