// Run once per worker, before anything else: the globals that a file sees, and what the other
// modules of the SDK use (through natives.ts) to reach Rust. No file can import this one.
//
// `__raw` is what Rust has put there; it is gone when the first file runs. It holds no values of
// the engine: promises and callbacks stay here, and Rust knows them by number.

export type At = [file: string, line: number, column: number];
export type Scope = { kind: "idle" | "load" | "call" | "perform" | "script"; id: number };

declare const __raw: {
  request(name: string, args: unknown, stack: string): number;
  endRequest(id: number): void;
  call(key: string, kind: string, args: unknown, stack: string): number;
  cancel(keys: string[]): void;
  log(level: string, text: string): void;
  place(stack: string): At | null;
  scope(): Scope;
  startTimer(ms: number, repeats: boolean): number;
  endTimer(id: number): void;
  finished(id: number): void;
  now(): number;
  origin(): number;
  random(): number;
};

const raw = __raw;
const g = globalThis as any;
// A file may change what everybody shares; what is needed here is taken before it can.
const RealPromise = Promise;
const then = Promise.prototype.then;
const RealError = Error;
const { apply, construct } = Reflect;
// A step through the SDK costs frames of ours, and those of the file are wanted.
(Error as any).stackTraceLimit = 30;

// ---- what Rust calls ------------------------------------------------------------------------

type Waiting = { resolve(value: unknown): void; reject(error: unknown): void; error: any };
const waiting = new Map<number, Waiting>();
const timers = new Map<number, () => void>();
const signals = new Map<number, AbortSignal>();

export const settle = (id: number, value: unknown): void => {
  const one = waiting.get(id);
  waiting.delete(id);
  one?.resolve(value);
};

export const fail = (id: number, name: string, code: string, message: string, call?: string): void => {
  const one = waiting.get(id);
  waiting.delete(id);
  if (!one) return;
  // Made where the call was, so that it says where that is.
  one.error.message = message;
  Object.defineProperty(one.error, "name", { value: name, configurable: true, writable: true });
  if (code) one.error.code = code;
  // Whatever becomes of the error, it says which call it is of.
  if (call !== undefined) Object.defineProperty(one.error, "$call", { value: call });
  one.reject(one.error);
};

export const tick = (id: number): void => timers.get(id)?.();

/** The last argument of an `execute`: what Rust says about the call, and its signal. */
export const context = (id: number, fields: object, extend?: (fields: object, signal: AbortSignal) => unknown): unknown => {
  const signal = new AbortSignal(key);
  signals.set(id, signal);
  return extend ? extend(fields, signal) : { ...fields, signal };
};

export const abort = (id: number): void => {
  const signal = signals.get(id);
  signals.delete(id);
  if (signal) fire(signal, abortError("this step was stopped"));
};

export const forget = (id: number, requests: number[], ended: number[]): void => {
  signals.delete(id);
  for (const one of requests) waiting.delete(one);
  for (const one of ended) timers.delete(one);
};

/** Tells Rust when a promise has settled, and thereby handles it. */
export const watch = (promise: Promise<unknown>, id: number): void => {
  const done = () => raw.finished(id);
  apply(then, promise, [done, done]);
};

// ---- what the other modules of the SDK call -------------------------------------------------

/** Asks the host for something, in the name of the step that runs. */
export const request = (name: string, args: unknown, signal?: AbortSignal | null): Promise<any> => {
  if (signal?.aborted) return RealPromise.reject(signal.reason);
  return new RealPromise((resolve, reject) => {
    const error = new RealError("");
    const id = raw.request(name, args, error.stack!);
    const stop = () => {
      raw.endRequest(id);
      waiting.delete(id);
      reject(signal!.reason);
    };
    const quiet = () => signal?.removeEventListener("abort", stop);
    signal?.addEventListener("abort", stop);
    waiting.set(id, {
      error,
      resolve: (value) => { quiet(); resolve(value); },
      reject: (why) => { quiet(); reject(why); },
    });
  });
};

/** A call of a script: settled by what is delivered under its key. */
export const call = (key: string, kind: string, args: unknown): Promise<any> =>
  new RealPromise((resolve, reject) => {
    const error: any = new RealError("");
    const id = raw.call(key, kind, args, error.stack);
    waiting.set(id, { error, resolve, reject });
  });

/** Asks for calls of this script to be stopped; their promises settle when they have been. */
export const cancel = (keys: string[]): void => raw.cancel(keys);

export const log = (level: string, text: string): void => raw.log(level, (text as any).toWellFormed());

/** Where in the files of the user we are: the nearest frame that is not of the SDK. */
export const position = (): At | null => raw.place(new RealError("").stack!);

/** What runs: loading, a function, a step or a script. */
export const scope = (): Scope => raw.scope();

/** The time as the running script sees it, in milliseconds. */
export const now = (): number => raw.now();

// ---- globals --------------------------------------------------------------------------------

export const show = (value: unknown, depth = 0, above: unknown[] = []): string => {
  if (typeof value === "string") return depth ? JSON.stringify(value) : value;
  if (typeof value === "function") return `[Function ${value.name || "anonymous"}]`;
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "symbol" || value === null || typeof value !== "object") return String(value);
  if (value instanceof RealError) {
    const at = raw.place(value.stack ?? "");
    return at ? `${value} (${at.join(":")})` : String(value);
  }
  if (above.includes(value)) return "[Circular]";
  if (depth > 4) return Array.isArray(value) ? "[Array]" : "[Object]";
  const next = [...above, value];
  const inner = (one: unknown) => show(one, depth + 1, next);
  if (Array.isArray(value)) return `[${value.map(inner).join(", ")}]`;
  if (value instanceof Map) return `Map(${value.size}) ${inner(Object.fromEntries(value))}`;
  if (value instanceof Set) return `Set(${value.size}) ${inner([...value])}`;
  if (value instanceof Date) return Number.isNaN(+value) ? "Invalid Date" : value.toISOString();
  return `{ ${Object.entries(value).map(([k, v]) => `${k}: ${inner(v)}`).join(", ")} }`;
};

const say = (level: string) => (...args: unknown[]) => log(level, args.map((one) => show(one)).join(" "));
g.console = Object.freeze({
  log: say("info"), info: say("info"), debug: say("debug"), trace: say("debug"), warn: say("warn"), error: say("error"),
});

const named = (name: string, message: string) => Object.assign(new RealError(message), { name });
const abortError = (message = "this operation was aborted") => named("AbortError", message);

type Listener = ((event: unknown) => void) | { handleEvent(event: unknown): void };
type Entry = { listener: Listener; once: boolean };
const key = Symbol("signal");
const parts = new WeakMap<AbortSignal, { aborted: boolean; reason: unknown; listeners: Entry[] }>();

class AbortSignal {
  onabort: ((event: unknown) => void) | null = null;
  constructor(secret: unknown) {
    if (secret !== key) throw new TypeError("a signal is made by `new AbortController()`");
    parts.set(this, { aborted: false, reason: undefined, listeners: [] });
  }
  get aborted(): boolean { return parts.get(this)!.aborted; }
  get reason(): unknown { return parts.get(this)!.reason; }
  addEventListener(kind: string, listener: Listener | null, options?: { once?: boolean } | boolean): void {
    if (kind !== "abort" || !listener) return;
    const once = typeof options === "object" && !!options.once;
    parts.get(this)!.listeners.push({ listener, once });
  }
  removeEventListener(kind: string, listener: Listener | null): void {
    const own = parts.get(this)!;
    if (kind === "abort") own.listeners = own.listeners.filter((one) => one.listener !== listener);
  }
  throwIfAborted(): void { if (this.aborted) throw this.reason; }
  static abort(reason: unknown = abortError()): AbortSignal {
    const signal = new AbortSignal(key);
    fire(signal, reason);
    return signal;
  }
  static timeout(ms: number): AbortSignal {
    const signal = new AbortSignal(key);
    setTimer(() => fire(signal, named("TimeoutError", `timed out after ${ms} ms`)), ms, false);
    return signal;
  }
  static any(signals: Iterable<AbortSignal>): AbortSignal {
    const signal = new AbortSignal(key);
    for (const one of signals) {
      if (one.aborted) fire(signal, one.reason);
      else one.addEventListener("abort", () => fire(signal, one.reason), { once: true });
    }
    return signal;
  }
}

const fire = (signal: AbortSignal, reason: unknown): void => {
  const own = parts.get(signal)!;
  if (own.aborted) return;
  own.aborted = true;
  own.reason = reason;
  const event = { type: "abort", target: signal };
  const heard = own.listeners;
  own.listeners = [];
  const run = (listener: Listener) => {
    // One that throws must not keep the others from hearing; a rejection is reported.
    try {
      if (typeof listener === "function") listener(event);
      else listener.handleEvent(event);
    } catch (error) {
      RealPromise.reject(error);
    }
  };
  if (signal.onabort) run(signal.onabort);
  for (const one of heard) run(one.listener);
};

class AbortController {
  readonly signal = new AbortSignal(key);
  abort(reason: unknown = abortError()): void { fire(this.signal, reason); }
}
g.AbortSignal = AbortSignal;
g.AbortController = AbortController;

const setTimer = (work: () => void, ms: unknown, repeats: boolean): number => {
  if (typeof work !== "function") throw new TypeError("a timer needs a function");
  const id = raw.startTimer(Number(ms) || 0, repeats);
  timers.set(id, () => {
    if (!repeats) timers.delete(id);
    // In a promise, so that what it throws is reported as unhandled instead of being lost.
    new RealPromise((resolve) => resolve(work()));
  });
  return id;
};
const clearTimer = (id: unknown): void => {
  if (typeof id === "number" && timers.delete(id)) raw.endTimer(id);
};
g.setTimeout = (work: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) =>
  setTimer(typeof work === "function" ? () => work(...args) : work, ms, false);
g.setInterval = (work: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) =>
  setTimer(typeof work === "function" ? () => work(...args) : work, ms, true);
g.clearTimeout = clearTimer;
g.clearInterval = clearTimer;
// A bare job that throws is lost; in a promise it is an unhandled rejection.
g.queueMicrotask = (work: () => void) => { apply(then, RealPromise.resolve(), [work]); };

// The clock and the dice belong to whatever runs: a script sees the same ones when it runs again.
const RealDate = Date;
const SeenDate: any = new Proxy(RealDate, {
  construct: (target, args, made) => construct(target, args.length ? args : [raw.now()], made),
  apply: () => new RealDate(raw.now()).toString(),
});
RealDate.now = () => raw.now();
RealDate.prototype.constructor = SeenDate;
g.Date = SeenDate;
g.performance = Object.freeze({
  get timeOrigin() { return raw.origin(); },
  now: () => raw.now() - raw.origin(),
});
Math.random = () => raw.random();

const bytes = (count: number) => Array.from({ length: count }, () => Math.floor(raw.random() * 256));
g.crypto = Object.freeze({
  randomUUID(): string {
    const all = bytes(16);
    all[6] = (all[6]! & 0x0f) | 0x40;
    all[8] = (all[8]! & 0x3f) | 0x80;
    const hex = all.map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
  },
  getRandomValues<T extends { length: number; [index: number]: number }>(array: T): T {
    for (let i = 0; i < array.length; i++) array[i] = Math.floor(raw.random() * 2 ** 32);
    return array;
  },
});

const clone = (value: any, seen: Map<unknown, unknown>): any => {
  if (typeof value === "function" || typeof value === "symbol") {
    throw named("DataCloneError", `${show(value)} cannot be cloned`);
  }
  if (typeof value !== "object" || value === null) return value;
  if (seen.has(value)) return seen.get(value);
  const keep = <T>(made: T): T => (seen.set(value, made), made);
  if (value instanceof RealDate) return keep(new RealDate(+value));
  if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
  if (value instanceof Map) {
    const made = keep(new Map());
    for (const [k, v] of value) made.set(clone(k, seen), clone(v, seen));
    return made;
  }
  if (value instanceof Set) {
    const made = keep(new Set());
    for (const v of value) made.add(clone(v, seen));
    return made;
  }
  if (value instanceof ArrayBuffer) return keep(value.slice(0));
  if (ArrayBuffer.isView(value)) return keep(new (value as any).constructor(value));
  if (value instanceof RealError) {
    return keep(Object.assign(new RealError(value.message), { name: value.name, stack: value.stack }));
  }
  const made: any = keep(Array.isArray(value) ? [] : {});
  for (const k of Object.keys(value)) made[k] = clone(value[k], seen);
  return made;
};
g.structuredClone = (value: unknown) => clone(value, new Map());

g.TextEncoder = class TextEncoder {
  readonly encoding = "utf-8";
  encode(text = ""): Uint8Array {
    const escaped = encodeURIComponent((String(text) as any).toWellFormed());
    const out: number[] = [];
    for (let i = 0; i < escaped.length; i++) {
      if (escaped[i] !== "%") out.push(escaped.charCodeAt(i));
      else out.push(parseInt(escaped.slice(i + 1, (i += 2) + 1), 16));
    }
    return new Uint8Array(out);
  }
};
g.TextDecoder = class TextDecoder {
  readonly encoding = "utf-8";
  constructor(label = "utf-8") {
    if (!/^utf-?8$/i.test(label)) throw new RangeError(`the encoding "${label}" is not supported, only utf-8 is`);
  }
  decode(input?: ArrayBuffer | ArrayBufferView): string {
    if (!input) return "";
    const view = ArrayBuffer.isView(input) ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength) : new Uint8Array(input);
    let out = "";
    for (let i = 0; i < view.length; ) {
      const first = view[i++]!;
      const more = first < 0x80 ? 0 : first >= 0xc2 && first < 0xe0 ? 1 : first >= 0xe0 && first < 0xf0 ? 2 : first >= 0xf0 && first < 0xf5 ? 3 : -1;
      let code = more < 0 ? 0xfffd : more ? first & (0x3f >> more) : first;
      for (let n = 0; n < more; n++) {
        const next = view[i];
        if (next === undefined || (next & 0xc0) !== 0x80) { code = 0xfffd; break; }
        code = (code << 6) | (next & 0x3f);
        i++;
      }
      const wrong = code > 0x10ffff || (code >= 0xd800 && code < 0xe000) || (more > 1 && code < (more > 2 ? 0x10000 : 0x800));
      out += String.fromCodePoint(wrong ? 0xfffd : code);
    }
    return out.startsWith("\ufeff") ? out.slice(1) : out;
  }
};
