// ATM718 4:1
import { graph, toolNode } from "atomic/workflows";
export const graphConfig = { startNode: "a", nodes: [toolNode({ id: "a", execute: () => ({}) })], edges: [] };
export default () => graph().start(toolNode({ id: "a", execute: () => ({}) })).end().compile();
