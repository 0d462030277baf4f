/// <reference types="node" />
import data from "./lib/defaults.json" with { type: "json" };
import * as types from "./lib/types";
import type { ReviewState } from "./lib/types.ts";
export type * from "./lib/types";
export type { ReviewState as RS };
declare global { interface Array<T> { lastOf?: T } }
declare const injected: number | undefined;
declare module "nowhere" { export const z: 1 }
abstract class Base<T> { abstract run(x: T): T; protected readonly tag: string = "base"; declare ghost: number; field!: string; static count = 0; static { Base.count = 5; } }
class Impl extends Base<number> implements Iterable<number> { override run(x: number): number { return x + 1; } *[Symbol.iterator](): Iterator<number> { yield 1; yield 2; } get t(): string { return this.tag; } }
function over(x: string): string; function over(x: number): number; function over(x: unknown): unknown { return x; }
function isStr(x: unknown): x is string { return typeof x === "string"; }
function assertNum(x: unknown): asserts x is number { if (typeof x !== "number") throw new TypeError("no"); }
const sat = { a: 1, b: [1, 2] as const } satisfies Record<string, unknown>;
const gen = <T,>(x: T): T[] => [x];
type Deep<T> = T extends object ? { readonly [K in keyof T]?: Deep<T[K]> } : T;
type Tpl = `on${Capitalize<"x" | "y">}`;
const d: Deep<{ a: { b: 1 } }> = { a: { b: 1 } };
const t: Tpl = "onX";
enum Flags { A = 1 << 0, B = 1 << 1, AB = A | B, C = "abc".length }
enum Mixed { X, Y = "y" }
namespace N { export namespace M { export const v = 42; } export function f() { return M.v; } }
let nn: string | undefined = "x";
const len = nn!.length, cast = <number>(1 as unknown), opt = (null as { a?: { b: number } } | null)?.a?.b ?? "none";
let assign: number | null = null; assign ??= 7;
const tag = (s: TemplateStringsArray, ...v: unknown[]): string => s.raw.join("|") + v.join(",");
const lbl = (() => { outer: for (const i of [1, 2, 3]) { for (const j of [1, 2]) { if (j === 2) continue outer; if (i === 3) break outer; } } return "lbl"; })();
async function* agen(): AsyncGenerator<number> { yield 1; yield 2; }
const collected: number[] = []; for await (const x of agen()) collected.push(x);
const tla = await Promise.resolve("tla");
class Priv { #x = 1; static #s = 2; has(o: object): boolean { return #x in o; } static get s() { return Priv.#s; } }
const { a: { b: renamed = 5 } = {}, ...rest } = { a: { b: undefined }, c: 1 } as { a?: { b?: number }; c: number };
let disposed = ""; { using r = { [Symbol.dispose]() { disposed = "yes"; } }; void r; }
export const result = {
  data, phase: types.Phase.Work, limit: types.Limit.Soft, run: new Impl().run(1), it: [...new Impl()], tag: new Impl().t, count: Base.count, field: "field" in new Impl(),
  ghost: "ghost" in new Impl(), over: over(3), str: isStr("x"), sat, gen: gen(1), d, t, flags: [Flags.AB, Flags.C, Flags[1]], mixed: [Mixed.X, Mixed.Y, Mixed[0]], ns: N.f(), len, cast, opt, assign,
  tagged: tag`a${1}b`, lbl, collected, tla, priv: [new Priv().has(new Priv()), Priv.s], renamed, rest, disposed, injected: typeof injected, meta: typeof import.meta.url, re: "2024-05".match(/(?<y>\d+)-(?<m>\d+)/)!.groups!.y,
  grouped: Object.groupBy([1, 2, 3], (x) => (x % 2 ? "odd" : "even")), sorted: [3, 1].toSorted(), at: [1, 2].at(-1), assertNum: (assertNum(1), "ok"),
};
export const check = () => result;
