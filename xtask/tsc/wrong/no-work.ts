import { toolNode } from "@atomic/workflows";

export const node = toolNode({ id: "a", description: "does nothing" }); //! TS2345
