// From what a file exports to the document that the engine reads (`docs/descriptor.md`), with
// functions where a file of JSON has none.
//
// A function stands in the document as the engine calls it, so whatever authors are promised
// beyond that (a `Map` of results, a context, an `Error`) is put around their functions here:
//
//   text, condition, inputMapper   (state)
//   outputMapper, inputMapper of a question   (output, state)
//   outputMapper of a sub-graph    (its state, state)
//   merge                          (outputs by branch, state)
//   reducer                        (value, change)
//   retryOn, onError               ({ code, message }, state)
//   taskSelector                   (tasks, state)
//   execute of a tool              (state, base) -> changes
//   execute of a custom node       (state, base) -> { stateUpdate?, goto?, signals? }
//
// `base` is what Rust knows of the step: { nodeId, signal, … }.
import * as natives from "./natives.ts";
import { COMPILED, GraphBuilder, MADE, NATIVE, REFERENCE, UNNAMED, around, getDefaultValue, misuse, nameNodes } from "./graph.ts";
import type { Node } from "./graph.ts";
import { requests, send, sleep } from "./host.ts";
import { SCRIPT } from "./script.ts";

type Fn = (...args: any[]) => any;
type Thing = Record<string, any>;

const isObject = (value: unknown): value is Thing => typeof value === "object" && value !== null && !Array.isArray(value);
const isPromise = (value: any): value is Promise<any> => isObject(value) && typeof value.then === "function" && !(value instanceof GraphBuilder);

/** What a file may export for people and for the loader. */
const METADATA = ["name", "description", "aliases", "version", "minSDKVersion", "stateVersion", "argumentHint", "sessionsDir"];

const NO_GRAPH = "return graph().start(…)….compile() from the default function";

/** The document of a file; a promise of it when the default function is async. */
export function describe(exports: Thing, config?: unknown): Thing | Promise<Thing> {
  const made = exports.default;
  if (exports.graphConfig !== undefined && made !== undefined) {
    throw misuse("the file has both a graphConfig and a default export; keep one of the two", "ATM718");
  }
  if (made === undefined) {
    const name = ["graphConfig", "default"].find((key) => key in exports) ?? "";
    return document(exports, exports.graphConfig, name);
  }
  if (typeof made !== "function") return finished(exports, made);
  const result = made(config ?? exports.defaultConfig ?? {});
  return isPromise(result) ? result.then((value) => finished(exports, value)) : finished(exports, result);
}

/** The document, once it is known what the default export comes to. */
function finished(exports: Thing, made: unknown): Thing {
  const wrong = (what: string, help: string) => misuse(`${what}; ${help}`, "ATM715");
  if (made instanceof GraphBuilder) throw wrong("the default export gives a graph that is not compiled", "call .compile() at its end");
  if (made === undefined || made === null) throw wrong("the default function returns nothing", NO_GRAPH);
  if (!isObject(made)) throw wrong(`the default export gives ${Array.isArray(made) ? "a list" : `a ${typeof made}`}, not a compiled graph`, NO_GRAPH);
  if (SCRIPT in made) return script(exports, made);
  if (made.$unfinished === true) throw wrong("defineWorkflow(…) has nothing to run", "add .run(async (ctx) => …)");
  if (COMPILED in made || Array.isArray(made.nodes)) return document(exports, made, "default");
  if (isObject(made.graphConfig)) return document({ ...exports, ...made }, made.graphConfig, "default");
  throw wrong("the default export gives an object that is not a compiled graph", NO_GRAPH);
}

function metadata(exports: Thing): Thing {
  const doc: Thing = {};
  for (const key of METADATA) if (exports[key] !== undefined) doc[key] = exports[key];
  for (const key of ["createState", "migrateState"]) {
    if (exports[key] === undefined) continue;
    if (typeof exports[key] !== "function") throw misuse(`the export "${key}" must be a function`);
    doc[`$${key}`] = exports[key];
  }
  return doc;
}

function script(exports: Thing, made: Thing): Thing {
  const { workflows, maxCalls, ...meta } = made.meta;
  const doc: Thing = { ...metadata(exports), ...meta, $at: made.$at, $script: made.start, $workflows: workflows ?? [] };
  if (maxCalls !== undefined) doc.$maxCalls = maxCalls;
  return doc;
}

/** Keys of which a graph has at least one. Without them the document is a chat. */
const GRAPH = ["nodes", "edges", "startNode", "catch"];

/**
 * The document of a graph. A document that is a chat says in `$chat` by which export ("" for none): the
 * loader refuses a chat that exports a workflow, except in a session that began as one.
 */
function document(exports: Thing, given: unknown, name: string): Thing {
  const doc = metadata(exports);
  if (given === undefined || given === null) return { ...doc, $chat: name };
  if (given instanceof GraphBuilder) throw misuse("graphConfig is a graph that is not compiled; call .compile() at its end, and export it from the default function", "ATM715");
  if (isPromise(given)) throw misuse("graphConfig is a promise; write await before it, or export an async function as the default export", "ATM715");
  if (!isObject(given)) throw misuse("graphConfig must be an object: { startNode, nodes, edges }", "ATM715");
  const { nodeDescriptions, ...rest } = given;
  const annotations = given.stateAnnotations ?? exports.stateAnnotations;
  Object.assign(doc, graph({ ...rest, ...(annotations === undefined ? {} : { stateAnnotations: annotations }) }));
  if (nodeDescriptions !== undefined || exports.nodeDescriptions !== undefined) {
    doc.nodeDescriptions = { ...exports.nodeDescriptions, ...nodeDescriptions };
  }
  if (GRAPH.every((key) => doc[key] == null)) doc.$chat = name;
  return doc;
}

// ── Graphs ───────────────────────────────────────────────────────────────────────────────────

/** The values of an object that are there, without the marks of the SDK. */
function plain(given: Thing): Thing {
  return Object.fromEntries(Object.entries(given).filter(([key, value]) => value !== undefined && !(key === "$at" && value === null)));
}

/** A key that is written down and has no value is a name that does not exist; without the key it would mean something else. */
function refuseUndefined(given: Thing, key: string, whose: string) {
  if (key in given && given[key] === undefined) throw misuse(`"${key}" of ${whose} is undefined; name something that exists, or leave the key out`);
}

/** A function whose value counts as in JavaScript, where NaN is false and Infinity is true. */
function truth(given: unknown): unknown {
  if (typeof given !== "function") return given;
  return judged(given as Fn, Boolean);
}

/** An edge or a route: it is taken when its condition holds. */
function choice(given: Thing, whose: string): Thing {
  refuseUndefined(given, "condition", whose);
  const doc = plain(given);
  if (doc.condition !== undefined) doc.condition = truth(doc.condition);
  return doc;
}

function graph(given: Thing): Thing {
  const doc = plain(given);
  if (Array.isArray(doc.nodes)) {
    doc.nodes = row(withBranches(doc.nodes, doc.edges));
  }
  if (Array.isArray(doc.edges)) doc.edges = doc.edges.map((edge: unknown) => (isObject(edge) ? choice(edge, `the edge from "${edge.from}" to "${edge.to}"`) : edge));
  if (isObject(doc.stateAnnotations)) doc.stateAnnotations = annotations(doc.stateAnnotations);
  return doc;
}

/** A list of nodes, each with an id that no other one has made up too. */
function row(nodes: unknown[]): unknown[] {
  const made = nodes.filter((node): node is Node => isObject(node) && MADE in node);
  const given = nodes.filter((node): node is Node => isObject(node) && !(MADE in node) && typeof node.id === "string");
  const names = nameNodes([...given, ...made]);
  return nodes.map((one) => node(one, isObject(one) ? names.get(one as Node) : undefined));
}

/** One node or several: always a list. */
function several(given: unknown): unknown[] {
  const list = Array.isArray(given) ? given.flat(9) : [given];
  return row(list);
}

/** Branches may be named by the ids of other nodes: these are put in, and are no nodes of the graph. */
function withBranches(nodes: unknown[], edges: unknown): unknown[] {
  const lent = new Set<unknown>();
  const all = nodes.map((parallel) => {
    if (!isObject(parallel) || parallel.type !== "parallel" || !Array.isArray(parallel.branches)) return parallel;
    if (!parallel.branches.some((branch: unknown) => typeof branch === "string")) return parallel;
    const branches = parallel.branches.map((branch: unknown) => {
      if (typeof branch !== "string") return branch;
      const found = nodes.find((node) => isObject(node) && node.id === branch);
      if (found === undefined) throw misuse(`the branch "${branch}" of "${parallel.id}" is not a node of the same graph; put the node itself there`);
      const touches = (edge: unknown) => isObject(edge) && [edge.from, edge.to].flat().includes(branch);
      if (Array.isArray(edges) && edges.some(touches)) throw misuse(`"${branch}" is a branch of "${parallel.id}", and has edges of its own; remove them, "${parallel.id}" leads on for it`);
      lent.add(found);
      return found;
    });
    return { ...parallel, branches };
  });
  return all.filter((_, place) => !lent.has(nodes[place]));
}

function annotations(given: Thing): Thing {
  const entry = ([key, one]: [string, unknown]) => {
    if (!isObject(one)) return [key, one];
    refuseUndefined(one, "reducer", `"stateAnnotations.${key}"`);
    const doc = plain(one);
    const value = getDefaultValue(one);
    if (value === undefined) delete doc.default;
    else doc.default = value;
    if (typeof doc.reducer === "function") doc.reducer = (doc.reducer as any)[NATIVE] ?? returning(doc.reducer, `the reducer of "${key}"`, "the new value");
    return [key, doc];
  };
  return Object.fromEntries(Object.entries(given).map(entry as any));
}

/** A graph inside a node. */
function inner(given: unknown): unknown {
  if (given instanceof GraphBuilder) return graph(given.compile());
  if (!isObject(given)) return given;
  const { $at, nodeDescriptions, ...rest } = graph(given);
  if (nodeDescriptions === undefined) return rest;
  const describe = (node: any) => (isObject(node) && nodeDescriptions[node.id] !== undefined ? { description: nodeDescriptions[node.id], ...node } : node);
  return { ...rest, nodes: Array.isArray(rest.nodes) ? rest.nodes.map(describe) : rest.nodes };
}

// ── Nodes ────────────────────────────────────────────────────────────────────────────────────

const word = (type: unknown) => (typeof type === "string" ? type.replace(/[-_]/g, "").toLowerCase() : "");

function node(given: unknown, id?: string): unknown {
  if (given instanceof GraphBuilder) throw misuse("a graph that is not compiled stands where a node should be; call .compile() and put it into subgraphNode");
  if (!isObject(given)) return given;
  if (COMPILED in given) throw misuse("a compiled graph stands where a node should be; put it into subgraphNode({ id: \"…\", graph })");
  refuseUndefined(given, "until", `the node "${given.id}"`);
  const doc = plain(given);
  if (id !== undefined) doc.id = id;
  // A name for people, and a conversation that this program finds by itself.
  delete doc.name;
  delete doc.sessionId;
  // A plain node is its function, whatever it calls itself.
  const isPlain = !(MADE in given) && typeof given.execute === "function";
  if (isPlain) doc.type = "custom";
  common(doc);
  KINDS[word(doc.type)]?.(doc);
  return doc;
}

/** What every node may have. */
function common(doc: Thing) {
  if (isObject(doc.retry)) {
    doc.retry = plain(doc.retry);
    const { retryOn } = doc.retry;
    if (typeof retryOn === "function") doc.retry.retryOn = around(retryOn, (error: unknown, state: Thing) => Boolean(retryOn(failure(error), state)));
  }
  if (typeof doc.onError === "function") {
    const { onError, id } = doc;
    doc.onError = around(onError, (error: unknown, state: Thing) => onError(failure(error), { nodeId: id, state }));
  }
  for (const key of ["prompt", "task", "question"]) texts(doc, key);
  for (const key of ["inputSchema", "outputSchema", "schema"]) {
    if (isObject(doc[key]) && (typeof doc[key].parse === "function" || typeof doc[key].safeParse === "function")) {
      throw misuse(`"${key}" of the node "${doc.id}" must be a JSON Schema such as { type: "object" }; other kinds of schemas are not known`);
    }
  }
}

/** Refuses what a function gives for a text when that is no text, or one with nothing in it. */
function texts(doc: Thing, key: string, mayBeEmpty = false) {
  const author = doc[key];
  if (typeof author !== "function") return;
  const name = key === "task" ? "prompt" : key === "args" ? "argument" : key;
  const judge = (given: unknown) => {
    const wrong = (what: string) => misuse(`the ${name} of node "${doc.id}" ${what}`);
    if (given === undefined || given === null || (!mayBeEmpty && typeof given === "string" && given.trim() === "")) {
      throw wrong(`is empty: its function returned ${given === undefined ? "nothing" : JSON.stringify(given)}`);
    }
    if (typeof given === "object" || typeof given === "function") {
      throw wrong(`must be a text, but its function returned ${Array.isArray(given) ? "a list" : typeof given === "object" ? "an object" : "a function"}; JSON.stringify makes a text of it`);
    }
    return given;
  };
  doc[key] = judged(author, judge);
}

/** A function whose value is looked at. A promise cannot be waited for, which is said elsewhere. */
function judged(author: Fn, judge: (given: any) => unknown): Fn {
  return around((author as any).__of ?? author, (...args: unknown[]) => {
    const given = author(...args);
    return isPromise(given) ? given : judge(given);
  });
}

/** A function whose value is used whatever it is, so that a forgotten `return` would become null. */
function returning(author: Fn, whose: string, what: string): Fn {
  return judged(author, (given) => {
    if (given === undefined) throw misuse(`${whose} returned nothing; return ${what}`);
    return given;
  });
}

/** An error as authors know them. */
function failure(given: any): Error {
  if (!isObject(given)) return new Error(String(given));
  const { thrown, ...rest } = given;
  return Object.assign(new Error(), rest, { message: String(thrown ?? given.message ?? "") });
}

/** The results of branches, in the order in which the branches are written. */
function results(outputs: unknown, order: string[]): Map<string, unknown> {
  const all = Object.entries((outputs ?? {}) as Thing);
  const place = (name: string) => (order.indexOf(name) + order.length + 1) % (order.length + 1);
  return new Map(all.sort(([a], [b]) => place(a) - place(b)));
}

function merged(doc: Thing, order: string[]) {
  for (const key of ["merge", "outputMapper"]) {
    const author = doc[key];
    if (typeof author === "function") doc[key] = around(author, (outputs: unknown, state: Thing) => author(results(outputs, order), state));
  }
}

function branch(given: unknown, id?: string): unknown {
  if (Array.isArray(given)) return several(given);
  if (given instanceof GraphBuilder || (isObject(given) && COMPILED in given)) return inner(given);
  if (isObject(given) && !(MADE in given) && Array.isArray(given.nodes) && given.type === undefined) return inner(given);
  return node(given, id);
}

function freeNames(wanted: { id: string; fixed: boolean }[]): string[] {
  const taken = new Set(wanted.filter((one) => one.fixed).map((one) => one.id));
  return wanted.map(({ id, fixed }) => {
    if (fixed) return id;
    let name = id;
    for (let number = 2; taken.has(name); number++) name = `${id}-${number}`;
    taken.add(name);
    return name;
  });
}

function body(doc: Thing) {
  if (doc.graph !== undefined) doc.graph = inner(doc.graph);
  if (doc.node !== undefined) {
    if (Array.isArray(doc.node)) doc.node = several(doc.node);
    else if (doc.node instanceof GraphBuilder || (isObject(doc.node) && COMPILED in doc.node)) {
      doc.graph = inner(doc.node);
      delete doc.node;
    } else doc.node = node(doc.node);
  }
  if (doc.nodes !== undefined) doc.nodes = several(doc.nodes);
}

const KINDS: Record<string, (doc: Thing) => void> = {
  tool(doc) {
    for (const key of ["command", "shell"]) texts(doc, key);
    if (typeof doc.execute === "function") doc.execute = tool(doc.id, doc.execute);
  },
  skill: (doc) => texts(doc, "args", true),
  command: (doc) => texts(doc, "args", true),
  custom(doc) {
    if (typeof doc.execute === "function") doc.execute = custom(doc.id, doc.execute);
  },
  decision(doc) {
    if (Array.isArray(doc.routes)) doc.routes = doc.routes.map((route: unknown) => (isObject(route) ? choice(route, `a route of "${doc.id}"`) : route));
  },
  parallel(doc) {
    const given = doc.branches;
    if (isObject(given)) {
      const entries = Object.entries(given);
      doc.branches = entries.map(([id, one]) => {
        const inside: any = branch(one);
        return Array.isArray(inside) ? { id, nodes: inside } : isObject(inside) && Array.isArray(inside.nodes) && inside.type === undefined ? { ...inside, id } : { id, nodes: [inside] };
      });
      return merged(doc, entries.map(([id]) => id));
    }
    if (!Array.isArray(given)) return;
    const isOne = (one: unknown) => isObject(one) && !(COMPILED in one) && typeof one.id === "string";
    const names = freeNames(given.map((one) => ({ id: isOne(one) ? one.id : "", fixed: !isOne(one) || !(UNNAMED in one) })));
    doc.branches = given.map((one, place) => branch(one, isOne(one) ? names[place] : undefined));
    merged(doc, names);
  },
  parallelsubagent(doc) {
    if (!Array.isArray(doc.agents)) return;
    const wanted = doc.agents.map((agent: any) => ({ id: String(agent?.id ?? agent?.agent ?? agent?.agentName ?? "agent"), fixed: agent?.id !== undefined }));
    const names = freeNames(wanted);
    doc.agents = doc.agents.map((agent: any, place: number) => {
      if (!isObject(agent)) return agent;
      const one = plain({ ...agent, id: names[place] });
      delete one.name;
      common(one);
      return one;
    });
    merged(doc, names);
  },
  each: body,
  loop(doc) {
    if (doc.until !== undefined) doc.until = truth(doc.until);
    body(doc);
  },
  subgraph(doc) {
    if (typeof doc.inputMapper === "function") {
      doc.inputMapper = returning(doc.inputMapper, `the inputMapper of node "${doc.id}"`, "the state that the graph begins with");
    }
    for (const key of ["subgraph", "graph", "workflow"]) {
      const given = doc[key];
      if (isObject(given) && REFERENCE in given) doc[key] = given.workflow;
      else if (given instanceof GraphBuilder) throw misuse(`"${key}" of the node "${doc.id}" is a graph that is not compiled; call .compile() at its end`, "ATM715");
      else if (isObject(given)) {
        // How long it may take is said at the node.
        const { timeoutMs, timeout, ...rest } = inner(given) as Thing;
        if (doc.timeoutMs === undefined && doc.timeout === undefined && (timeoutMs ?? timeout) !== undefined) doc.timeoutMs = timeoutMs ?? timeout;
        doc[key] = rest;
      }
    }
  },
  taskloop(doc) {
    texts(doc, "tasksPath");
    if (doc.taskNodes !== undefined) {
      const before = doc.preIterationNode === undefined ? [] : [doc.preIterationNode];
      const all = several([...before, ...(Array.isArray(doc.taskNodes) ? doc.taskNodes : [doc.taskNodes])]);
      if (before.length) doc.preIterationNode = all.shift();
      doc.taskNodes = all;
    }
    const { until, taskSelector } = doc;
    const tasks = (state: Thing) => (Array.isArray(state?.tasks) ? state.tasks : []);
    if (typeof until === "function") doc.until = truth(around(until, (state: Thing) => until(state, tasks(state))));
    if (typeof taskSelector === "function") doc.taskSelector = around(taskSelector, (tasks: unknown, state: Thing) => taskSelector(tasks, state) ?? null);
  },
  criterialoop(doc) {
    if (doc.taskNodes !== undefined) doc.taskNodes = several(doc.taskNodes);
  },
};

// ── What a node's function is given ──────────────────────────────────────────────────────────

type Signal = { type: string; data?: unknown };

function context(state: Thing, base: Thing | undefined, signals: Signal[]): Thing {
  const { signal, nodeId = "" } = base ?? {};
  return {
    ...base,
    ...requests((name, args, own) => send(name, args, own ?? signal)),
    state,
    nodeId,
    signal,
    executionId: base?.executionId ?? state?.executionId,
    getNodeOutput: (id: string) => state?.outputs?.[id],
    emit: (type: string, data?: unknown) => void signals.push(data === undefined ? { type } : { type, data }),
    log: (...values: unknown[]) => natives.log("info", values.map((value) => natives.show(value)).join(" ")),
    sleep: (ms: number) => sleep(ms, signal),
    runAgent() {
      throw misuse("ctx.runAgent: a node's function cannot start an agent; put an agentNode into the graph, or write the workflow with defineWorkflow(…).run(…)");
    },
  };
}

const then = (value: any, next: Fn) => (isPromise(value) ? value.then(next) : next(value));

/** A function with `*` runs only while somebody takes what it yields, and nobody does. */
function refuseGenerator(id: string, given: any) {
  if (isObject(given) && typeof given.next === "function" && (Symbol.asyncIterator in given || Symbol.iterator in given)) {
    throw misuse(`"execute" of the node "${id}" is a generator (function*), which nobody runs; write an async function that returns its changes`);
  }
}

function tool(id: string, execute: Fn): Fn {
  return around(execute, (state: Thing, base?: Thing) => {
    const signals: Signal[] = [];
    return then(execute(state, context(state, base, signals)), (changes: unknown) => {
      for (const { type, data } of signals) natives.log("info", data === undefined ? type : `${type}: ${JSON.stringify(data)}`);
      refuseGenerator(id, changes);
      if (changes === undefined || changes === null) return {};
      if (isObject(changes)) return changes;
      throw misuse(`the tool "${id}" returned ${Array.isArray(changes) ? "a list" : `a ${typeof changes}`}; return an object of changes to the state, such as { summary: … }`);
    });
  });
}

const RESULT = ["stateUpdate", "goto", "signals"];

function custom(id: string, execute: Fn): Fn {
  return around(execute, (state: Thing, base?: Thing) => {
    const emitted: Signal[] = [];
    const ctx = context(state, base, emitted);
    return then(execute(ctx, ctx), (given: unknown) => {
      refuseGenerator(id, given);
      if (given !== undefined && given !== null && !isObject(given)) {
        throw misuse(`the node "${id}" returned ${Array.isArray(given) ? "a list" : `a ${typeof given}`}; return { stateUpdate?, goto?, signals? }`);
      }
      const result = plain((given ?? {}) as Thing);
      const unknown = Object.keys(result).find((key) => !RESULT.includes(key));
      if (unknown !== undefined) {
        throw misuse(`the node "${id}" returned "${unknown}"; changes to the state belong into "stateUpdate": return { stateUpdate: { ${unknown}: … } }`);
      }
      if (emitted.length) result.signals = [...(Array.isArray(result.signals) ? result.signals : []), ...emitted];
      return result;
    });
  });
}
