import { subagentNode } from "@atomic/workflows";

export const node = subagentNode({ id: "a", task: "x" }); //! TS2345
