// `atomic/workflows/graph` and its other names: factories, the builder, templates, reducers.
//
// Nothing here runs a graph. A factory writes down what its author said, and where; `describe.ts`
// turns that into the document which the engine reads.
import * as natives from "./natives.ts";

export { defineWorkflow } from "./script.ts";

type Fn = (...args: any[]) => any;
/** What a factory makes: the author's own keys, with a type, an id, and where it was written. */
export type Node = { type: string; id: string; [key: string]: any };
type Step = Node | GraphBuilder | Step[];
type Edge = { from: string | string[]; to: string; condition?: unknown };

/** Marks what a factory made; a spread (`{...node, retry}`) keeps it. */
export const MADE = Symbol("atomic.node");
/** Marks a node whose id nobody has written, so that a second one may be called otherwise. */
export const UNNAMED = Symbol("atomic.unnamed");
/** Marks a graph that `compile` has made. */
export const COMPILED = Symbol("atomic.graph");
/** Marks the name of another workflow. */
export const REFERENCE = Symbol("atomic.reference");
/** Marks a reducer that the engine knows itself, with the word it knows it by. */
export const NATIVE = Symbol("atomic.reducer");

/** A function of ours in place of an author's, whose place in the file is told when something is wrong with what it returns. */
export const around = (author: Fn, ours: Fn): Fn => Object.assign(ours, { __of: author });

/** An error of the author, in the words of the SDK. */
export function misuse(message: string, code = "ATM717"): Error {
  return Object.assign(new Error(message), { name: "WorkflowError", code });
}

const isObject = (value: unknown): value is Record<string, any> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const show = (value: unknown): string => {
  if (value === undefined) return "nothing";
  if (typeof value === "function") return "a function";
  if (value instanceof GraphBuilder) return "a graph that is not compiled";
  if (Array.isArray(value)) return "a list";
  if (value !== null && typeof value === "object") return isNode(value) ? `the node "${value.id}"` : "an object";
  return JSON.stringify(value) ?? String(value);
};

/** Whether a value is a node, made by a factory or written as an object. */
export function isNode(value: unknown): value is Node {
  if (!isObject(value) || COMPILED in value || REFERENCE in value) return false;
  return MADE in value || (typeof value.id === "string" && (typeof value.type === "string" || typeof value.execute === "function"));
}

/** Whether a value is a graph that `compile` has made. */
export const isCompiledGraph = (value: unknown): boolean => isObject(value) && COMPILED in value;

/** The two ways to call a factory: `xNode(id, options)` and `xNode({id, …})`. */
function options(factory: string, first: unknown, second: unknown): Record<string, any> {
  if (typeof first === "string") {
    if (second !== undefined && !isObject(second)) {
      throw misuse(`${factory}("${first}", …): the options must be an object, but they are ${show(second)}`);
    }
    if (isObject(second) && second.id !== undefined && second.id !== first) {
      throw misuse(`${factory}("${first}", …): the id is given twice, the options say ${show(second.id)}; remove one of the two`);
    }
    return { ...second, id: first };
  }
  if (!isObject(first)) {
    throw misuse(`${factory}: write ${factory}({ id: "…", … }) or ${factory}("…", { … }); it was given ${show(first)}`);
  }
  return { ...first };
}

/** What needs an id, and has none, is called after what it is about. */
function make(factory: string, type: string, given: Record<string, any>, usual?: string): Node {
  const made: Record<string | symbol, any> = { ...given, type, [MADE]: factory, $at: natives.position() };
  if (given.id === undefined) {
    if (usual === undefined) throw misuse(`${factory}: "id" is missing; write ${factory}({ id: "…", … }) or ${factory}("…", { … })`);
    made.id = usual.replace(/[/[\]]/g, "-");
    made[UNNAMED] = true;
  } else if (typeof given.id !== "string" || given.id.trim() === "") {
    throw misuse(`${factory}: "id" must be a text that is not empty, but it is ${show(given.id)}`);
  }
  return made as Node;
}

const label = (factory: string, given: Record<string, any>) => (given.id === undefined ? factory : `${factory} "${given.id}"`);

/** Fails unless one of these keys is there. */
function need(factory: string, given: Record<string, any>, keys: string[], what: string) {
  if (keys.every((key) => given[key] === undefined || given[key] === null)) {
    throw misuse(`${label(factory, given)}: "${keys[0]}" is missing: ${what}`);
  }
}

function needFunction(factory: string, given: Record<string, any>, key: string) {
  if (given[key] !== undefined && typeof given[key] !== "function") {
    throw misuse(`${label(factory, given)}: "${key}" must be a function, but it is ${show(given[key])}`);
  }
}

const named = (word: string, name: unknown) => (typeof name === "string" && name !== "" ? `${word}-${name}` : word);

// ── Nodes at which something is done ─────────────────────────────────────────────────────────

/** Prompts an agent, in the conversation of its lane. */
export function agentNode(first: unknown, second?: unknown): Node {
  const given = options("agentNode", first, second);
  return make("agentNode", "agent", given, named("agent", given.agent ?? given.agentName));
}

/** Prompts an agent in a conversation of its own. */
export function subagentNode(first: unknown, second?: unknown): Node {
  const given = options("subagentNode", first, second);
  need("subagentNode", given, ["agent", "agentName"], "the name of the agent");
  return make("subagentNode", "subagent", given, named("subagent", given.agent ?? given.agentName));
}

/** Several sub-agents at once. */
export function parallelSubagentNode(first: unknown, second?: unknown): Node {
  const given = options("parallelSubagentNode", first, second);
  need("parallelSubagentNode", given, ["agents"], "a list of { agent, task }");
  if (!Array.isArray(given.agents) || given.agents.length === 0) {
    throw misuse(`${label("parallelSubagentNode", given)}: "agents" must be a list with at least one { agent, task }`);
  }
  return make("parallelSubagentNode", "parallel_subagent", given, "parallel-subagent");
}

/** Runs the prompt of a skill. */
export function skillNode(first: unknown, second?: unknown): Node {
  const given = options("skillNode", first, second);
  need("skillNode", given, ["skill"], "the name of the skill");
  return make("skillNode", "skill", given, named("skill", given.skill));
}

/** Runs the prompt of a command. */
export function commandNode(first: unknown, second?: unknown): Node {
  const given = options("commandNode", first, second);
  need("commandNode", given, ["command"], "the name of the command");
  return make("commandNode", "command", given, named("command", given.command));
}

/** Calls a function, or runs a command in a shell. */
export function toolNode(first: unknown, second?: unknown): Node {
  const given = options("toolNode", first, second);
  need("toolNode", given, ["execute", "command", "shell"], "a function `execute: (state, ctx) => …`, or a shell `command`");
  needFunction("toolNode", given, "execute");
  return make("toolNode", "tool", given, "tool");
}

/** Calls `execute(ctx)`, which returns `{ stateUpdate?, goto?, signals? }`. */
export function customNode(first: unknown, second?: unknown, third?: unknown): Node {
  const given = typeof second === "function" ? options("customNode", first, { ...(third as object), execute: second }) : options("customNode", first, second);
  need("customNode", given, ["execute"], "a function `execute: (ctx) => …`");
  needFunction("customNode", given, "execute");
  return make("customNode", "custom", given);
}

/** The same as `customNode`. */
export const createNode = customNode;

/** Shows a text until the user goes on. */
export function waitNode(first: unknown, second?: unknown): Node {
  const text = typeof first === "string" && typeof second === "string" ? { prompt: second } : second;
  const given = options("waitNode", first, text);
  need("waitNode", given, ["prompt"], "what the user is told");
  return make("waitNode", "wait", given, "wait");
}

/** Asks the user. */
export function askUserNode(first: unknown, second?: unknown): Node {
  const given = options("askUserNode", first, second);
  need("askUserNode", given, ["question"], "what to ask");
  return make("askUserNode", "ask_user", given, "ask-user");
}

/** The next agent of the lane starts a new conversation. */
export function clearContextNode(first: unknown = {}, second?: unknown): Node {
  return make("clearContextNode", "clear_context", options("clearContextNode", first, second), "clear-context");
}

/** Looks at how full the conversation is, and compacts it, replaces it, or says so. */
export function contextMonitorNode(first: unknown = {}, second?: unknown): Node {
  return make("contextMonitorNode", "context_monitor", options("contextMonitorNode", first, second), "context-monitor");
}

// ── Nodes that lead somewhere, and nodes with graphs inside ──────────────────────────────────

/** Goes to the first route whose condition holds, else to the fallback. */
export function decisionNode(first: unknown, second?: unknown): Node {
  const given = options("decisionNode", first, second);
  need("decisionNode", given, ["routes"], "a list of { condition, target }");
  if (!Array.isArray(given.routes)) throw misuse(`${label("decisionNode", given)}: "routes" must be a list of { condition, target }`);
  return make("decisionNode", "decision", given, "decision");
}

/** Several branches at once. */
export function parallelNode(first: unknown, second?: unknown): Node {
  const given = options("parallelNode", first, second);
  need("parallelNode", given, ["branches"], "a list of nodes, lists of nodes or graphs");
  const size = Array.isArray(given.branches) ? given.branches.length : isObject(given.branches) ? Object.keys(given.branches).length : 0;
  if (size === 0) throw misuse(`${label("parallelNode", given)}: "branches" must have at least one branch`);
  return make("parallelNode", "parallel", given, "parallel");
}

/** Something for every item of a list in the state. */
export function eachNode(first: unknown, second?: unknown): Node {
  const given = options("eachNode", first, second);
  need("eachNode", given, ["over"], "the key of a list in the state");
  need("eachNode", given, ["nodes", "node", "graph"], "what to do with every item");
  return make("eachNode", "each", given, "each");
}

/** Repeats its nodes. */
export function loopNode(first: unknown, second?: unknown): Node {
  const given = options("loopNode", first, second);
  need("loopNode", given, ["nodes", "node", "graph"], "what to do in every round");
  return make("loopNode", "loop", given, "loop");
}

/** A graph with a state of its own: a compiled one, or another workflow by its name. */
export function subgraphNode(first: unknown, second?: unknown, third?: unknown): Node {
  let given: Record<string, any>;
  const isInner = typeof second === "string" || isCompiledGraph(second) || (isObject(second) && REFERENCE in second) || second instanceof GraphBuilder;
  if (typeof first === "string" && (isInner || second === null || second === undefined)) {
    if (second === null || second === undefined) {
      throw misuse(`subgraphNode("${first}", …): the graph is missing; give it a compiled graph, or the name of a workflow`);
    }
    given = options("subgraphNode", first, { ...(third as object), subgraph: second });
  } else {
    given = options("subgraphNode", first, second);
  }
  need("subgraphNode", given, ["subgraph", "graph", "workflow"], "a compiled graph, or the name of a workflow");
  return make("subgraphNode", "subgraph", given, "subgraph");
}

/** Works through a file of tasks. */
export function taskLoopNode(first: unknown, second?: unknown): Node {
  const given = options("taskLoopNode", first, second);
  need("taskLoopNode", given, ["taskNodes"], "what to do with every task");
  needFunction("taskLoopNode", given, "taskSelector");
  return make("taskLoopNode", "task_loop", given, "task-loop");
}

/** Repeats its nodes until the last one says a word. */
export function criteriaLoopNode(first: unknown, second?: unknown): Node {
  const given = options("criteriaLoopNode", first, second);
  need("criteriaLoopNode", given, ["taskNodes"], "what to do in every round");
  return make("criteriaLoopNode", "criteria_loop", given, "criteria-loop");
}

/** Another workflow by its name. Nothing is looked up here: the engine puts it in its place. */
export function resolveWorkflowRef(name: unknown): { workflow: string } {
  if (typeof name !== "string" || name.trim() === "") {
    throw misuse(`resolveWorkflowRef: it needs the name of a workflow, but it was given ${show(name)}`);
  }
  return Object.freeze({ workflow: name, [REFERENCE]: true });
}

// ── State ────────────────────────────────────────────────────────────────────────────────────

const native = <F extends Fn>(word: unknown, reducer: F): F => Object.assign(reducer, { [NATIVE]: word });
const list = (value: unknown): any[] => (Array.isArray(value) ? value : value === undefined || value === null ? [] : [value]);

function mergeBy(field: string) {
  return (current: any[], update: any[]) => {
    const rows = new Map<unknown, any>();
    for (const row of [...list(current), ...list(update)]) rows.set(row?.[field], { ...rows.get(row?.[field]), ...row });
    return [...rows.values()];
  };
}

/** Names that other libraries have for the same. */
const OTHER_NAMES: Record<string, string> = {
  append: "concat", push: "concat", extend: "concat", assign: "merge", upsert: "mergeById", add: "sum", any: "or", all: "and", last: "replace", overwrite: "replace",
};

/** The number of letters to change, add or leave out to get from one name to another. */
function edits(a: string, b: string): number {
  let row = [...b, ""].map((_, place) => place);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + Number(a[i - 1] !== b[j - 1]));
    row = next;
  }
  return row[b.length]!;
}

/** Reducers of which one that does not exist is an error: `undefined` in its place would mean `replace`. */
function existing<O extends Record<string, unknown>>(reducers: O): Readonly<O> {
  const names = Object.keys(reducers);
  const get = (target: O, key: string | symbol) => {
    if (typeof key === "symbol" || key in target || key === "then" || key === "toJSON") return (target as any)[key];
    const wanted = key.toLowerCase();
    const near = names.filter((name) => edits(wanted, name.toLowerCase()) <= Math.min(2, wanted.length / 3));
    const meant = Object.hasOwn(OTHER_NAMES, wanted) ? OTHER_NAMES[wanted] : near[0];
    throw misuse(`Reducers has no "${key}"; ${meant ? `did you mean Reducers.${meant}?` : `there are ${names.join(", ")}`}`);
  };
  return new Proxy(Object.freeze(reducers), { get }) as Readonly<O>;
}

/** How a change to a key and what was there become one. The engine does these itself. */
export const Reducers = existing({
  replace: native("replace", (_: unknown, update: unknown) => update),
  concat: native("concat", (current: unknown, update: unknown) => [...list(current), ...list(update)]),
  merge: native("merge", (current: object, update: object) => ({ ...current, ...update })),
  mergeById: native("mergeById", (first: unknown = "id", second?: unknown) =>
    typeof first === "string" ? native(first === "id" ? "mergeById" : { mergeBy: first }, mergeBy(first)) : mergeBy("id")(first as any[], second as any[])),
  max: native("max", (current: number, update: number) => Math.max(current, update)),
  min: native("min", (current: number, update: number) => Math.min(current, update)),
  sum: native("sum", (current: number, update: number) => current + update),
  or: native("or", (current: boolean, update: boolean) => current || update),
  and: native("and", (current: boolean, update: boolean) => current && update),
  ifDefined: native("ifDefined", (current: unknown, update: unknown) => (update === undefined || update === null ? current : update)),
});

/** What a key of the state begins with, and how changes to it are combined. */
export function annotation(...given: [first?: unknown, reducer?: unknown]): { default: unknown; reducer?: Fn } {
  const [first, reducer] = given;
  if (given.length > 1 && reducer === undefined) {
    throw misuse("annotation: the reducer is undefined; name one that exists, such as Reducers.concat, or leave it out");
  }
  if (reducer !== undefined && typeof reducer !== "function" && typeof reducer !== "string" && !isObject(reducer)) {
    throw misuse(`annotation: the reducer must be a function, such as Reducers.concat, but it is ${show(reducer)}`);
  }
  return { default: first, ...(reducer === undefined ? {} : { reducer: reducer as Fn }) };
}

/** The value that a key with this annotation begins with. */
export function getDefaultValue(one: { default?: unknown }): unknown {
  return typeof one?.default === "function" ? (one.default as Fn)() : one?.default;
}

/** What a key with this annotation becomes through a change. */
export function applyReducer(one: { reducer?: Fn }, current: unknown, update: unknown): unknown {
  return one?.reducer ? one.reducer(current, update) : update;
}

/** The state that these annotations begin with. */
export function initializeState(annotations: Record<string, { default?: unknown }>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(annotations).map(([key, one]) => [key, getDefaultValue(one)]));
}

// ── The builder ──────────────────────────────────────────────────────────────────────────────

type Op =
  | { op: "node"; node: Node }
  | { op: "if"; condition: unknown; at: unknown; then: Op[]; otherwise?: Op[]; inElse: boolean; open: boolean }
  | { op: "end" };

/** What `compile` takes, and what it does not need. */
const CONFIG = ["stateAnnotations", "maxIterations", "maxSteps", "maxConcurrency", "timeoutMs", "timeout", "model", "failFast", "nodeDescriptions"];
const IGNORED = ["checkpointing", "checkpointDir", "autoCheckpoint", "checkpointer", "metadata"];

/** The nodes of one graph by their final ids: those that nobody has named keep clear of the others. */
export function nameNodes(nodes: Node[]): Map<Node, string> {
  const taken = new Set(nodes.filter((node) => !(UNNAMED in node)).map((node) => node.id));
  const names = new Map<Node, string>();
  for (const node of nodes) names.set(node, UNNAMED in node ? free(node.id, taken) : node.id);
  return names;
}

function free(wanted: string, taken: Set<string>): string {
  let id = wanted;
  for (let number = 2; taken.has(id); number++) id = `${wanted}-${number}`;
  taken.add(id);
  return id;
}

/** A graph that is being built. It only writes down what it is told; `compile` makes the graph. */
export class GraphBuilder {
  #ops: Op[] = [];
  #ifs: (Op & { op: "if" })[] = [];
  #catch: Node | string | undefined;
  #config: Record<string, any>;
  #started = false;

  constructor(config: unknown = {}) {
    this.#config = checkedConfig("graph", config);
  }

  /** The list to which the next thing is added. */
  #here(): Op[] {
    const last = this.#ifs.at(-1);
    if (!last) return this.#ops;
    return last.inElse ? (last.otherwise ??= []) : last.then;
  }

  #add(verb: string, step: unknown) {
    if (step instanceof GraphBuilder) {
      if (step.#ifs.length) throw misuse(`.${verb}(…): the graph that is put in has an if() without its endif()`);
      this.#here().push(...step.#ops);
      this.#catch ??= step.#catch;
    } else if (Array.isArray(step)) {
      if (step.length === 0) throw misuse(`.${verb}([]): there is no node in the list`);
      for (const one of step) this.#add(verb, one);
    } else if (isNode(step)) {
      this.#here().push({ op: "node", node: step });
    } else if (isCompiledGraph(step)) {
      throw misuse(`.${verb}(…): a compiled graph cannot be a node; put it into subgraphNode({ id: "…", graph })`);
    } else {
      throw misuse(`.${verb}(…): it needs a node, such as agentNode({ … }), but it was given ${show(step)}`);
    }
    this.#started = true;
  }

  start(step: Step): this {
    if (this.#started) throw misuse(".start(…): the graph has begun already; use .then(…) for what comes next");
    this.#add("start", step);
    return this;
  }

  // A builder has a `then`, and so whoever awaits it, or returns it from an async function, calls
  // `then(resolve, reject)`.
  then(step: Step, second?: unknown): this {
    if (typeof step === "function") {
      const message = "a graph that is not compiled was awaited; call .compile() before it is awaited or returned from an async function";
      const error = misuse(message, "ATM715");
      if (typeof second === "function") {
        (second as Fn)(error);
        return this;
      }
      throw error;
    }
    this.#add("then", step);
    return this;
  }

  if(condition: unknown): this {
    if (isObject(condition) && !("key" in condition || "says" in condition || "not" in condition)) return this.#ifObject(condition);
    if (typeof condition !== "function" && !isObject(condition)) {
      throw misuse(`.if(…): it needs a condition such as (state) => state.done, but it was given ${show(condition)}`);
    }
    const op: Op & { op: "if" } = { op: "if", condition, at: natives.position(), then: [], inElse: false, open: true };
    this.#here().push(op);
    this.#ifs.push(op);
    return this;
  }

  #ifObject(given: Record<string, any>): this {
    const { condition, then, else_if, elseIf, else: otherwise, ...rest } = given;
    const unknown = Object.keys(rest)[0];
    if (unknown !== undefined) throw misuse(`.if({ … }): there is no "${unknown}"; it has condition, then, else_if and else`);
    if (typeof condition !== "function" && !isObject(condition)) throw misuse(`.if({ … }): "condition" is missing, or is not a function`);
    if (then === undefined) throw misuse(`.if({ … }): "then" is missing: the node, or nodes, to run when the condition holds`);
    this.if(typeof condition === "function" ? around(condition as Fn, (state: unknown) => condition(state)) as any : condition);
    this.#add("if", then);
    const more = list(else_if ?? elseIf);
    if (more.length) {
      this.else();
      this.#ifObject({ ...more[0], else_if: more.slice(1), ...(otherwise === undefined ? {} : { else: otherwise }) });
    } else if (otherwise !== undefined && !(Array.isArray(otherwise) && otherwise.length === 0)) {
      this.else();
      this.#add("if", otherwise);
    }
    return this.endif();
  }

  else(): this {
    const last = this.#ifs.at(-1);
    if (!last) throw misuse(".else(): there is no if() before it");
    if (last.inElse) throw misuse(".else(): this if() has an else() already");
    last.inElse = true;
    last.otherwise = [];
    return this;
  }

  elseif(condition: unknown): this {
    this.else().if(condition);
    (this.#ifs.at(-1) as any).chained = true;
    return this;
  }

  endif(): this {
    let last = this.#ifs.pop();
    if (!last) throw misuse(".endif(): there is no if() before it");
    while ((last as any)?.chained) last = this.#ifs.pop();
    return this;
  }

  /** `.loop(a, b, config)`, `.loop([a, b], config)` and `.loop({ nodes, until, maxIterations })`. */
  loop(...given: unknown[]): this {
    const last = given.at(-1);
    let steps = given;
    let config: Record<string, any> = {};
    if (isObject(last) && !isNode(last) && !isCompiledGraph(last) && !(last instanceof GraphBuilder)) {
      config = { ...last };
      steps = given.slice(0, -1);
    }
    if (steps.length === 0 && config.nodes !== undefined) {
      steps = list(config.nodes);
      delete config.nodes;
    }
    const nodes = steps.flat(9) as Step[];
    if (nodes.length === 0) throw misuse(".loop(…): there is no node in it; write .loop([node, …], { until, maxIterations })");
    const unknown = Object.keys(config).find((key) => !LOOP.includes(key));
    if (unknown !== undefined) throw misuse(`.loop(…): there is no "${unknown}"; it has ${LOOP.join(", ")}`);
    return this.#numbered("loop", make("loop", "loop", { ...config, ...inside(nodes) }, "loop"));
  }

  parallel(given: unknown): this {
    const config = Array.isArray(given) ? { branches: given } : given;
    if (!isObject(config)) throw misuse(`.parallel(…): write .parallel({ branches: [ … ], strategy, merge }); it was given ${show(given)}`);
    return this.#numbered("parallel", isNode(config) && MADE in config ? config : parallelNode(config));
  }

  wait(given: unknown = {}): this {
    if (isNode(given) && MADE in given) return this.then(given);
    const node = typeof given === "string" ? waitNode({ prompt: given }) : waitNode(given);
    return this.#numbered("wait", node);
  }

  askUser(first: unknown, second?: unknown): this {
    return this.then(isNode(first) && MADE in first ? first : askUserNode(typeof first === "string" && second === undefined ? { question: first } : first, second));
  }

  agent(first: unknown, second?: unknown): this {
    return this.then(agentNode(first, second));
  }

  subagent(first: unknown, second?: unknown): this {
    return this.then(subagentNode(first, second));
  }

  tool(first: unknown, second?: unknown): this {
    return this.then(typeof second === "function" ? toolNode(first, { execute: second }) : toolNode(first, second));
  }

  each(first: unknown, second?: unknown): this {
    return this.then(eachNode(first, second));
  }

  subgraph(first: unknown, second?: unknown, third?: unknown): this {
    return this.then(subgraphNode(first, second, third));
  }

  decision(first: unknown, second?: unknown): this {
    return this.then(decisionNode(first, second));
  }

  /** Where the graph goes on when a node fails that has no rule of its own. */
  catch(node: unknown): this {
    if (typeof node === "function") throw misuse("a graph that is not compiled was awaited; call .compile() first", "ATM715");
    if (!isNode(node) && typeof node !== "string") throw misuse(`.catch(…): it needs a node, or the id of one, but it was given ${show(node)}`);
    if (this.#catch !== undefined) throw misuse(".catch(…): there is a node that catches failures already");
    this.#catch = node;
    return this;
  }

  end(): this {
    this.#here().push({ op: "end" });
    return this;
  }

  /** A node that is called by its kind and a number when nobody has named it: `loop-1`. */
  #numbered(word: string, node: Node): this {
    if (UNNAMED in node) node = { ...node, [NUMBERED]: word };
    return this.then(node);
  }

  compile(config: unknown = {}): Record<string, any> {
    if (this.#ifs.length) throw misuse(".compile(): an if() has no endif()");
    if (!this.#ops.some((op) => op.op !== "end")) throw misuse(".compile(): the graph has no node; begin with .start(node)");
    const all = { ...this.#config, ...checkedConfig("compile", config) };
    return { ...all, ...new Lowering().graph(this.#ops, this.#catch), $at: natives.position(), [COMPILED]: true };
  }
}

const NUMBERED = Symbol("atomic.numbered");
const LOOP = ["id", "until", "maxIterations", "description", "onError", "retry", "timeout", "timeoutMs", "model"];

/** The nodes of a loop: in a row, or as the graph they were built as. */
function inside(steps: Step[]): Record<string, any> {
  return steps.some((step) => step instanceof GraphBuilder) ? { graph: new GraphBuilder().then(steps).compile() } : { nodes: steps };
}

function checkedConfig(where: string, config: unknown): Record<string, any> {
  if (config === undefined || config === null) return {};
  if (!isObject(config)) throw misuse(`${where}(…): the configuration must be an object, but it is ${show(config)}`);
  const entries = Object.entries(config).filter(([key, value]) => !IGNORED.includes(key) && value !== undefined);
  const unknown = entries.find(([key]) => !CONFIG.includes(key));
  if (unknown) throw misuse(`${where}({ … }): there is no "${unknown[0]}"; it has ${CONFIG.join(", ")}`);
  return Object.fromEntries(entries);
}

/** A way out of what was added so far: from this node, when this holds. */
type Tail = { node: Node; condition?: unknown; decides: boolean };

const mayEnd = (tail: Tail) => !tail.decides && (tail.condition === undefined || tail.condition === "otherwise");

/** From nested sequences to nodes and edges. */
class Lowering {
  #nodes: Node[] = [];
  #edges: { from: Node; to: Node; condition?: unknown }[] = [];
  #taken = new Set<string>();
  #start: Node | undefined;

  graph(ops: Op[], caught: Node | string | undefined): Record<string, any> {
    this.#take(ops);
    if (isNode(caught) && !(UNNAMED in caught)) this.#taken.add(caught.id);
    this.#sequence(ops, [], false);
    if (isNode(caught)) this.#nodes.push(caught);
    const names = nameNodes(this.#nodes);
    const name = (node: Node) => names.get(node) ?? node.id;
    this.#refuseTwins(names);
    return {
      startNode: name(this.#start!),
      nodes: this.#nodes.map((node) => ({ ...node, id: name(node) })),
      edges: this.#edges.map(({ from, to, condition }): Edge => ({ from: name(from), to: name(to), ...(condition === undefined ? {} : { condition }) })),
      ...(caught === undefined ? {} : { catch: isNode(caught) ? name(caught) : caught }),
    };
  }

  #refuseTwins(names: Map<Node, string>) {
    const seen = new Set<string>();
    for (const [, id] of names) {
      if (seen.has(id)) throw misuse(`there are two nodes called "${id}"; give one of them another id`);
      seen.add(id);
    }
    if (names.size !== this.#nodes.length) {
      const twice = this.#nodes.find((node, place) => this.#nodes.indexOf(node) !== place)!;
      throw misuse(`the node "${twice.id}" is in the graph twice; make a second one with another id`);
    }
  }

  /** Ids that authors have given, so that none is made up twice. */
  #take(ops: Op[]) {
    for (const op of ops) {
      if (op.op === "node" && !(UNNAMED in op.node)) this.#taken.add(op.node.id);
      if (op.op === "if") {
        this.#take(op.then);
        this.#take(op.otherwise ?? []);
      }
    }
  }

  #free(word: string): string {
    let number = 1;
    while (this.#taken.has(`${word}-${number}`)) number++;
    this.#taken.add(`${word}-${number}`);
    return `${word}-${number}`;
  }

  #sequence(ops: Op[], tails: Tail[], more: boolean): Tail[] {
    ops.forEach((op, place) => {
      const next = ops[place + 1];
      const follows = next === undefined ? more : next.op !== "end";
      if (op.op === "node") {
        const node = this.#place(op.node);
        this.#connect(tails, node);
        tails = node.type === "decision" ? [] : [{ node, decides: false }];
      } else if (op.op === "if") {
        tails = this.#branches(op, tails, follows);
      } else {
        if (place === 0 && !tails.every(mayEnd)) this.#nothing(tails);
        tails = [];
      }
    });
    return tails;
  }

  #place(given: Node): Node {
    let node: any = given;
    if (NUMBERED in given) {
      node = { ...given, id: this.#free((given as any)[NUMBERED]) };
      delete node[UNNAMED];
    }
    this.#nodes.push(node);
    return node;
  }

  #connect(tails: Tail[], to: Node) {
    this.#start ??= to;
    for (const { node, condition } of tails) this.#edges.push({ from: node, to, condition });
  }

  #branches(op: Op & { op: "if" }, tails: Tail[], follows: boolean): Tail[] {
    const id = this.#free("if");
    const leadsSomewhere = op.otherwise !== undefined || follows;
    const only = tails.length === 1 ? tails[0] : undefined;
    const isSimple = tails.length > 0 && (only !== undefined && only.condition === undefined ? true : !leadsSomewhere && tails.every(mayEnd));
    let heads = tails.map((tail) => tail.node);
    if (!isSimple) {
      const decision = { type: "decision", id, routes: [], [MADE]: "if", $at: op.at } as unknown as Node;
      this.#nodes.push(decision);
      this.#connect(tails, decision);
      heads = [decision];
    }
    const from = (condition: unknown): Tail[] => heads.map((node) => ({ node, condition, decides: !isSimple }));
    const ends = this.#sequence(op.then, from(op.condition), follows);
    const rest = from("otherwise");
    if (op.otherwise !== undefined) return [...ends, ...this.#sequence(op.otherwise, rest, follows)];
    return [...ends, ...(isSimple || follows ? rest : this.#nothing(rest))];
  }

  /** A branch that does nothing needs a node where a decision would have no way out without it. */
  #nothing(tails: Tail[]): Tail[] {
    const node = { type: "tool", id: this.#free("end"), execute: () => ({}), [MADE]: "end" } as unknown as Node;
    this.#nodes.push(node);
    this.#connect(tails, node);
    return [{ node, decides: false }];
  }
}

/** Begins a graph. */
export function graph(config?: unknown): GraphBuilder {
  return new GraphBuilder(config);
}

// ── Templates ────────────────────────────────────────────────────────────────────────────────

function template(name: string, given: unknown, keys: string[]): Record<string, any> {
  if (!isObject(given)) throw misuse(`${name}: write ${name}({ ${keys.join(", ")} }); it was given ${show(given)}`);
  for (const key of keys) if (given[key] === undefined) throw misuse(`${name}: "${key}" is missing`);
  return given;
}

/** One node after the other. */
export function sequential(...steps: unknown[]): GraphBuilder {
  const nodes = steps.flat(9);
  if (nodes.length === 0) throw misuse("sequential: there is no node; write sequential([node, …])");
  return new GraphBuilder().then(nodes as Step[]);
}

/** The same for every item of a list, then something with all the results. */
export function mapReduce(given: unknown): GraphBuilder {
  const { id = "map", over, item, map, reduce, workers, failFast, ...rest } = template("mapReduce", given, ["over", "map", "reduce"]);
  const unknown = Object.keys(rest)[0];
  if (unknown !== undefined) throw misuse(`mapReduce: there is no "${unknown}"; it has id, over, item, map, reduce, workers and failFast`);
  const fan: Record<string, any> = { id, over, ...inside(list(map)) };
  for (const [key, value] of Object.entries({ item, workers, failFast })) if (value !== undefined) fan[key] = value;
  return new GraphBuilder().start(eachNode(fan)).then(reduce);
}

/** Works, has it reviewed, and works again until the review is content. */
export function reviewCycle(given: unknown): GraphBuilder {
  const { id = "review-cycle", work, review, until, maxIterations, ...rest } = template("reviewCycle", given, ["work", "review"]);
  const unknown = Object.keys(rest)[0];
  if (unknown !== undefined) throw misuse(`reviewCycle: there is no "${unknown}"; it has id, work, review, until and maxIterations`);
  const round: Record<string, any> = { id, ...inside([...list(work), ...list(review)]) };
  for (const [key, value] of Object.entries({ until, maxIterations })) if (value !== undefined) round[key] = value;
  return new GraphBuilder().start(loopNode(round));
}

/** A graph that works through a file of tasks. */
export function taskLoop(first: unknown, second?: unknown): GraphBuilder {
  return new GraphBuilder().start(taskLoopNode(first, second));
}
