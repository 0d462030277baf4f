import { agentNode, agnetNode } from "atomic/workflows"; //! TS2724
import { Nothing } from "atomic/types"; //! TS2305

export const nodes = [agentNode("a"), agnetNode("b")];
export type Unknown = Nothing;
