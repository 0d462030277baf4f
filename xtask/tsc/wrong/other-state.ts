import { graph, toolNode } from "@atomic/graph";

interface One {
  one: number;
}
interface Other {
  other: string;
}

const step = toolNode<Other>("step", { execute: () => ({ other: "x" }) });

export default () => graph<One>().start(step).compile(); //! TS2345
