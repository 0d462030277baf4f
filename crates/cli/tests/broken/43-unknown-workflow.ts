// ATM404 3:75
import { graph, subgraphNode } from "atomic/workflows";
export default () => graph<any>().start(subgraphNode({ id: "x", subgraph: "rolf" })).end().compile();
