import { toolNode } from "@atomic/graph";
const name = (x: string) => x, execute = () => ({});
const own = { toolNode };
export const plain = toolNode({ id: "a", execute });
export const withCalls = toolNode({
  id: name("b"),
  execute: () => ({ x: name("c") }),
  label: `${name("d")}`,
});
export const ofObject = own
  .toolNode({ id: "a" + name("e"),
    execute, size: name("f").length });
export const made = ((id) => toolNode({ id, execute }))(name("g"));
