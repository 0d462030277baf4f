// `atomic/host`: what a node's function can ask of the program that runs it. Every request is made
// by Rust, inside the project and under the time limits of the node, and is told of in the session.
import * as natives from "./natives.ts";
import { misuse } from "./graph.ts";

type Options = Record<string, any>;
/** Makes a request: the same functions serve a node's function and a script, which differ in this. */
export type Send = (name: string, args: Options, signal?: unknown) => Promise<any>;

function text(name: string, what: string, value: unknown): string {
  if (typeof value !== "string") throw misuse(`${name}(…): ${what} must be a text, but it is ${value === null ? "null" : typeof value}`);
  return value;
}

function within(name: string, given: unknown, known: string[]): Options {
  if (given === undefined || given === null) return {};
  if (typeof given !== "object" || Array.isArray(given)) throw misuse(`${name}(…): the options must be an object`);
  const unknown = Object.keys(given).find((key) => !known.includes(key));
  if (unknown !== undefined) throw misuse(`${name}(…): there is no option "${unknown}"; there are ${known.join(", ")}`);
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

/** `timeout` and `timeoutMs` are the same. */
function limits(name: string, given: Options): Options {
  for (const key of ["timeout", "timeoutMs"]) {
    const limit = given[key];
    if (limit !== undefined && !(Number.isSafeInteger(limit) && limit >= 0)) {
      throw misuse(`${name}(…): "${key}" must be a whole number of milliseconds from 0 on, but it is ${natives.show(limit)}`);
    }
  }
  const { timeout, ...rest } = given;
  return timeout === undefined ? rest : { timeoutMs: timeout, ...rest };
}

/** The longest that can be slept: some thirty years. */
const LONGEST = 1e12;

/** How long to sleep. */
export function duration(name: string, ms: unknown): number {
  if (typeof ms === "number" && ms >= 0 && ms <= LONGEST) return ms;
  throw misuse(`${name}(…): the time must be a number of milliseconds from 0 to ${LONGEST}, but it is ${natives.show(ms)}`);
}

/** The requests, made in this way; `more` are options that every one of them takes. */
export function requests(send: Send, more: string[] = []) {
  return {
    async shell(command: unknown, given?: unknown) {
      const { signal, ...rest } = within("shell", given, ["cwd", "env", "values", "timeout", "timeoutMs", "stdin", "check", "signal", ...more]);
      if (rest.values !== undefined && (typeof rest.values !== "object" || rest.values === null || Array.isArray(rest.values))) throw misuse(`shell(…): "values" must be an object, but it is ${natives.show(rest.values)}`);
      if (rest.check !== undefined && typeof rest.check !== "boolean") throw misuse(`shell(…): "check" must be true or false, but it is ${natives.show(rest.check)}`);
      try {
        return await send("shell", { command: text("shell", "the command", command), ...limits("shell", rest) }, signal);
      } catch (error: any) {
        // That the command failed is told apart from that it could not be run.
        if (rest.check && / ended with status \d+/.test(error?.message)) Object.assign(error, { name: "ShellError", code: "shell" });
        throw error;
      }
    },
    async readFile(path: unknown, given?: unknown) {
      return send("readFile", { path: text("readFile", "the path", path), ...within("readFile", given, more) });
    },
    async writeFile(path: unknown, content: unknown, given?: unknown) {
      await send("writeFile", { path: text("writeFile", "the path", path), text: text("writeFile", "the content", content), ...within("writeFile", given, more) });
    },
    async exists(path: unknown, given?: unknown) {
      return send("exists", { path: text("exists", "the path", path), ...within("exists", given, more) });
    },
    async glob(pattern: unknown, given?: unknown) {
      return send("glob", { pattern: text("glob", "the pattern", pattern), ...within("glob", given, more) });
    },
    async fetch(url: unknown, given?: unknown) {
      const { signal, ...rest } = within("fetch", given, ["method", "headers", "body", "timeout", "timeoutMs", "signal", ...more]);
      const got = await send("fetch", { url: text("fetch", "the address", url), ...limits("fetch", rest) }, signal);
      // Not among its keys, so that the answer can be returned and kept: a function is no JSON.
      return Object.defineProperty({ ...got, ok: got.status >= 200 && got.status < 300 }, "json", { value: () => JSON.parse(got.text) });
    },
    async env(name: unknown, given?: unknown) {
      return send("env", { name: text("env", "the name", name), ...within("env", given, more) });
    },
  };
}

/** Makes the request now, in the name of the step that runs. */
export const send: Send = (name, args, signal) => natives.request(name, args, signal as any);

/** Writes a line into the session's log. */
export function log(...values: unknown[]): void {
  natives.log("info", values.map((value) => natives.show(value)).join(" "));
}

/** Waits; a time limit of the node ends it. */
export function sleep(given: number, signal?: any): Promise<void> {
  return new Promise((resolve, reject) => {
    const ms = duration("sleep", given);
    if (signal?.aborted) return reject(signal.reason);
    const timer = (globalThis as any).setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      (globalThis as any).clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

export const { shell, readFile, writeFile, exists, glob, fetch, env } = requests(send);
