// The plain async form: `defineWorkflow({ … }).run(async (ctx) => …)`.
//
// The function is run from its start whenever the session is, and what its calls came to is given
// to it again, so every call needs a name that is the same each time: its key.
import * as natives from "./natives.ts";
import { around, misuse } from "./graph.ts";
import { duration, requests } from "./host.ts";

type Options = Record<string, any>;
type Run = (ctx: Context) => unknown;

/** Marks what `run` has made. */
export const SCRIPT = Symbol.for("atomic.script");

const META = ["name", "description", "aliases", "version", "minSDKVersion", "argumentHint", "sessionsDir", "workflows", "maxCalls", "timeoutMs", "maxConcurrency", "model", "inputSchema"];

/** Begins a workflow in the plain async form. */
export function defineWorkflow(meta: unknown = {}) {
  const given = typeof meta === "string" ? { name: meta } : meta;
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw misuse("defineWorkflow: write defineWorkflow({ name: \"…\", description: \"…\" }).run(async (ctx) => …)");
  }
  const unknown = Object.keys(given).find((key) => !META.includes(key));
  if (unknown !== undefined) throw misuse(`defineWorkflow({ … }): there is no "${unknown}"; there are ${META.join(", ")}`);
  const at = natives.position();
  return {
    run(body: unknown) {
      if (typeof body !== "function") throw misuse("defineWorkflow(…).run(…): it needs a function, async (ctx) => …");
      const script = { [SCRIPT]: true, meta: { ...given }, $at: at, start: around(body as Run, (base: Base) => begin(body as Run, base)) };
      return Object.assign(script, { compile: () => script });
    },
    // An `export default defineWorkflow({ … })` without `run` is told from other things by this.
    $unfinished: true,
  };
}

/** What Rust gives to a script that begins. */
export interface Base {
  prompt?: string;
  input?: unknown;
  state?: Options;
  sessionId?: string;
  sessionDir?: string;
  signal?: unknown;
}

/** A part of a script that can be ended by itself. */
class Scope {
  readonly open = new Map<string, Promise<unknown>>();
  readonly inner = new Set<Scope>();
  ended = false;
  readonly #counts = new Map<string, number>();

  constructor(
    readonly path: string,
    readonly keys: Set<string>,
  ) {}

  count(kind: string): number {
    const next = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, next);
    return next;
  }

  /** A name for a call: the given one, or where it is, what it does, and a number. */
  key(kind: string, given: unknown): string {
    if (given !== undefined) {
      if (typeof given !== "string" || given.trim() === "") throw misuse(`ctx.${kind}: "key" must be a text that is not empty`);
      if (this.keys.has(given)) throw misuse(`ctx.${kind}: there is a call with the key "${given}" already; every key is used once`);
      this.keys.add(given);
      return given;
    }
    const own = `${this.path}${this.path ? "/" : ""}${kind}:${this.count(kind)}`;
    if (this.keys.has(own)) throw misuse(`ctx.${kind}: the key "${own}" was given to another call; choose another one for that`);
    this.keys.add(own);
    return own;
  }

  /** Every call that has not come back, here and inside. */
  *running(): Iterable<[string, Promise<unknown>]> {
    yield* this.open;
    for (const scope of this.inner) yield* scope.running();
  }

  end() {
    this.ended = true;
    for (const scope of this.inner) scope.end();
  }
}

/** The time of what has happened last, which is the same when the script is run again. */
const now = (): number => natives.now();

const stopped = (what: string) => Object.assign(new Error(`${what} is not started: this branch was stopped`), { name: "AbortError", code: "cancelled" });

/** Makes a call: it is a step of the run, and what comes of it is recorded. */
async function call(scope: Scope, kind: string, args: Options): Promise<any> {
  const { key: given, ...rest } = args;
  if (scope.ended) throw stopped(`ctx.${kind}`);
  const key = scope.key(kind, given);
  const made = natives.call(key, kind, Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined)));
  scope.open.set(key, made);
  try {
    return await made;
  } finally {
    scope.open.delete(key);
  }
}

/**
 * Ends what still runs in these scopes and waits until it is gone. What a branch does after its
 * calls were stopped does not matter: it may as well wait for ever.
 */
async function stop(scopes: Scope[]): Promise<void> {
  for (const scope of scopes) scope.end();
  const running = scopes.flatMap((scope) => [...scope.running()]);
  if (running.length === 0) return;
  natives.cancel(running.map(([key]) => key));
  await Promise.allSettled(running.map(([, made]) => made));
}

const AGENT = ["agent", "prompt", "task", "model", "backend", "schema", "systemPrompt", "questions", "conversation", "key"];
const ENTRY = ["args", "backend", "key"];
const ASK = ["question", "header", "options", "multiSelect", "freeText", "key"];

function known(what: string, given: unknown, keys: string[]): Options {
  if (given === undefined || given === null) return {};
  if (typeof given !== "object" || Array.isArray(given)) throw misuse(`ctx.${what}(…): the options must be an object`);
  const unknown = Object.keys(given).find((key) => !keys.includes(key));
  if (unknown !== undefined) throw misuse(`ctx.${what}(…): there is no option "${unknown}"; there are ${keys.join(", ")}`);
  return { ...(given as Options) };
}

function context(scope: Scope, base: Base) {
  const made = requests((name, args) => call(scope, name, args), ["key"]);
  const entry = (kind: "skill" | "command") => async (name: unknown, args?: unknown, more?: unknown) => {
    if (typeof name !== "string" || name === "") throw misuse(`ctx.${kind}(…): it needs the name of a ${kind}`);
    const given = typeof args === "string" ? { args, ...known(kind, more, ENTRY) } : known(kind, args, ENTRY);
    return call(scope, kind, { name, ...given });
  };
  /** Runs branches in scopes of their own. */
  const fan = async (names: string[], branches: ((ctx: Context) => unknown)[], strategy: string, limit: number): Promise<unknown> => {
    if (scope.ended) throw stopped("a branch");
    const scopes = names.map((name) => new Scope(name, scope.keys));
    for (const inner of scopes) scope.inner.add(inner);
    let waiting: (() => void)[] = [];
    let busy = 0;
    const run = async (place: number) => {
      if (busy >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
      if (scopes[place]!.ended) throw stopped("a branch");
      busy++;
      try {
        return await branches[place]!(context(scopes[place]!, base));
      } finally {
        busy--;
        waiting.shift()?.();
      }
    };
    const running = branches.map((_, place) => run(place));
    for (const one of running) one.catch(() => {});
    const give = () => {
      const left = waiting;
      waiting = [];
      for (const one of left) one();
    };
    try {
      const first = strategy === "all" ? Promise.all(running) : strategy === "race" ? Promise.race(running) : Promise.any(running);
      return await first;
    } catch (error: any) {
      if (strategy !== "any" || !Array.isArray(error?.errors)) throw error;
      const said = error.errors.map((one: any) => String(one?.message ?? one)).join("; ");
      throw Object.assign(new Error(`every branch failed: ${said}`), { name: "AggregateError", code: error.errors[0]?.code, errors: error.errors });
    } finally {
      for (const inner of scopes) inner.end();
      give();
      await stop(scopes);
      for (const inner of scopes) scope.inner.delete(inner);
    }
  };
  const limited = (what: string, limit: unknown): number => {
    if (limit === undefined) return Infinity;
    if (limit !== Infinity && !(Number.isSafeInteger(limit) && (limit as number) >= 1)) {
      throw misuse(`ctx.${what}(…): "limit" must be a whole number from 1 on, but it is ${natives.show(limit)}`);
    }
    return limit as number;
  };

  return Object.freeze({
    ...made,
    prompt: base.prompt ?? "",
    input: base.input,
    state: base.state ?? {},
    sessionId: base.sessionId ?? "",
    sessionDir: base.sessionDir ?? "",
    signal: base.signal,

    async agent(first: unknown, second?: unknown, third?: unknown) {
      let given: Options;
      if (typeof first === "string" && typeof second === "string") given = { agent: first, prompt: second, ...known("agent", third, AGENT) };
      else if (typeof first === "string") given = { agent: first, ...known("agent", second, AGENT) };
      else given = known("agent", first, AGENT);
      const { task, ...rest } = given;
      const call_ = task === undefined ? rest : { prompt: task, ...rest };
      if (typeof call_.prompt !== "string") throw misuse('ctx.agent(…): the prompt is missing; write ctx.agent("worker", "…") or ctx.agent("worker", { prompt: "…" })');
      if (call_.schema !== undefined && call_.schema?.type !== "object") throw misuse('ctx.agent(…): "schema" must be a JSON Schema of the type "object": { type: "object", properties: { … } }');
      return call(scope, "agent", call_);
    },
    skill: entry("skill"),
    command: entry("command"),
    async ask(first: unknown, more?: unknown) {
      const given = typeof first === "string" ? { question: first, ...known("ask", more, ASK) } : known("ask", first, ASK);
      if (typeof given.question !== "string") throw misuse('ctx.ask(…): the question is missing; write ctx.ask("Which?", { options: ["a", "b"] })');
      return call(scope, "ask", given);
    },
    /** Until a moment, not for a time: after a restart only what is left is waited for. */
    async sleep(ms: unknown, more?: unknown) {
      await call(scope, "sleep", { until: Math.ceil(now() + duration("ctx.sleep", ms)), ...known("sleep", more, ["key"]) });
    },
    async workflow(name: unknown, input?: unknown, more?: unknown) {
      const reference = typeof name === "object" && name !== null ? (name as any).workflow : name;
      if (typeof reference !== "string" || reference === "") throw misuse('ctx.workflow(…): it needs the name of a workflow, as in ctx.workflow("ralph", "Build it")');
      const given = typeof input === "string" ? { prompt: input } : (input ?? {});
      if (typeof given !== "object" || Array.isArray(given)) throw misuse("ctx.workflow(…): what it begins with must be a prompt or an object of values for its state");
      return call(scope, "workflow", { workflow: reference, input: given, ...known("workflow", more, ["key"]) });
    },

    async parallel(branches: unknown, more?: unknown): Promise<unknown> {
      const { strategy = "all", limit } = known("parallel", more, ["strategy", "limit"]);
      const most = limited("parallel", limit);
      if (!["all", "race", "any"].includes(strategy)) throw misuse(`ctx.parallel(…): "strategy" is "all", "race" or "any", not ${JSON.stringify(strategy)}`);
      const isList = Array.isArray(branches);
      if (!isList && (typeof branches !== "object" || branches === null)) throw misuse("ctx.parallel(…): it needs a list, or an object, of functions (ctx) => …");
      const entries = isList ? (branches as unknown[]).map((one, place) => [String(place), one] as const) : Object.entries(branches as object);
      const wrong = entries.find(([, one]) => typeof one !== "function");
      if (wrong) throw misuse(`ctx.parallel(…): branch ${wrong[0]} is not a function; write (ctx) => ctx.agent(…), so that it can be started, counted and stopped`);
      const at = `${scope.path ? `${scope.path}/` : ""}p${scope.count("parallel")}`;
      if (entries.length === 0) return isList ? [] : {};
      const done = await fan(entries.map(([name]) => `${at}.${name}`), entries.map(([, one]) => one as any), strategy, most);
      return strategy === "all" && !isList ? Object.fromEntries(entries.map(([name], place) => [name, (done as any[])[place]])) : done;
    },
    async map(items: unknown, each: unknown, more?: unknown): Promise<unknown> {
      const most = limited("map", known("map", more, ["limit"]).limit);
      if (typeof each !== "function") throw misuse("ctx.map(…): it needs a function (item, ctx, index) => …");
      if (items === null || items === undefined || typeof (items as any)[Symbol.iterator] !== "function") throw misuse("ctx.map(…): it needs a list");
      const all = [...(items as Iterable<unknown>)];
      const at = `${scope.path ? `${scope.path}/` : ""}m${scope.count("map")}`;
      if (all.length === 0) return [];
      const branches = all.map((item, place) => (ctx: Context): unknown => (each as any)(item, ctx, place));
      return fan(all.map((_, place) => `${at}.${place}`), branches, "all", most);
    },

    log(...values: unknown[]) {
      natives.log("info", values.map((value) => natives.show(value)).join(" "));
    },
    now,
  });
}

export type Context = ReturnType<typeof context>;

async function begin(body: Run, base: Base): Promise<unknown> {
  return body(context(new Scope("", new Set()), base ?? {}));
}
