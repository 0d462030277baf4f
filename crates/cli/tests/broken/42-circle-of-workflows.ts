// ATM407 4:79
import { graph, subgraphNode } from "atomic/workflows";
export const name = "circle";
export default () => graph<any>().start(subgraphNode({ id: "again", subgraph: "circle" })).end().compile();
