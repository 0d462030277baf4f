// ATM722 4:1
import type { GraphConfig } from "atomic/types";
import { type NodeDefinition } from "atomic/workflows";
import { toolNode } from "atomic/workflows";

export const name = "no-workflow";
export const graphconfig: GraphConfig = { nodes: [toolNode({ id: "a", command: "true" })] as NodeDefinition[] };
