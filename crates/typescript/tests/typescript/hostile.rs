//! Files that mean no good, or that somebody has got wrong.

use std::collections::BTreeSet;
use std::time::Instant;

use atomic_typescript::{TroubleKind, Worker};
use serde_json::json;

use crate::stage::{SOON, load, tight, worker, worker_with};

/// The whole program would be gone, not only the worker, if one of these got through.
#[test]
fn nothing_goes_on_for_ever() {
    // With the line, where the engine is sure to know it, and memory is not filled.
    let cases = [
        ("() => { while (true) {} }", Some(1)),
        ("() => { for (;;) { try { for (;;) {} } catch {} finally { continue; } } }", Some(1)),
        ("async () => { await null; while (true) {} }", None),
        ("() => /^(a+)+$/.test(\"a\".repeat(40) + \"b\")", Some(1)),
        ("() => { const next = (): any => Promise.resolve().then(next); return next(); }", None),
        ("() => { const f = () => queueMicrotask(f); f(); }", None),
        ("() => [...(function* () { for (;;) yield; })()].length && 1", None),
        (
            "() => { const o: any = {}; Object.defineProperty(o, \"x\", { enumerable: true, get() { for (;;) {} } }); return o; }",
            Some(1),
        ),
        ("() => ({ toJSON() { for (;;) {} } })", Some(1)),
    ];
    for (function, line) in cases {
        let text = format!("export const f = {function};\nexport const other = () => 1;");
        let worker = worker_with(&text, &tight());
        let f = load(&worker, "f");
        let begun = Instant::now();
        let trouble = worker.call(f, Vec::new()).unwrap_err();
        assert!(begun.elapsed() < SOON, "{function}");
        let ran_out = [TroubleKind::Memory, TroubleKind::Pending].contains(&trouble.kind);
        if line.is_none() && ran_out {
            // The memory may be full before the time is up, and in a job nobody hears of that.
            continue;
        }
        assert_eq!(trouble.kind, TroubleKind::Interrupted, "{function}: {trouble}");
        if line.is_some() {
            assert_eq!(trouble.at().map(|at| at.line), line, "{function}: {trouble}");
        }
        assert_eq!(worker.call(f + 1, Vec::new()).unwrap(), json!(1), "{function}");
    }
}

#[test]
fn loading_does_not_go_on_for_ever() {
    let cases = [
        // The engine does not tell where in the top of a file it was.
        ("const a = 1;\nfor (;;) { Math.abs(a); }", 1),
        ("export default () => {\n  for (;;) Math.abs(1);\n};", 2),
    ];
    for (text, line) in cases {
        let trouble = worker_with(text, &tight()).load(&json!({})).unwrap_err();
        assert_eq!(trouble.kind, TroubleKind::Interrupted);
        let fault = trouble.into_fault("/flows/main.ts".as_ref());
        assert_eq!((fault.code.as_ref(), fault.at.line), ("ATM714", line));
    }
}

/// Tries a function, and that the worker still does other things afterwards.
fn survives(function: &str) -> TroubleKind {
    let text = format!("export const f = {function};\nexport const other = () => 1;");
    // Only the memory is short: on a busy machine filling it takes a while.
    let mut options = tight();
    options.limits.stretch = SOON;
    let worker = worker_with(&text, &options);
    let f = load(&worker, "f");
    let trouble = worker.call(f, Vec::new()).unwrap_err();
    assert_eq!(worker.call(f + 1, Vec::new()).unwrap(), json!(1), "{function}");
    trouble.kind
}

#[test]
fn memory_and_stack_are_limited() {
    // Larger than any memory: it is not even tried.
    assert_eq!(survives("() => new ArrayBuffer(10 * 2 ** 30)"), TroubleKind::Thrown);
    assert_eq!(survives("() => new ArrayBuffer(2 ** 30)"), TroubleKind::Memory);
    assert_eq!(survives("() => \"ab\".repeat(2 ** 28)"), TroubleKind::Memory);
    assert_eq!(
        survives(
            "() => { const all = []; for (;;) all.push(new Array(1000).fill(\"x\".repeat(100))); }"
        ),
        TroubleKind::Memory
    );
    assert_eq!(
        survives("() => { const f = (n: number): number => 1 + f(n + 1); return f(0); }"),
        TroubleKind::Stack
    );
}

#[test]
fn deep_values_are_refused_both_ways() {
    let nest = "let a: any = []; for (let i = 0; i < 200_000; i++) a = [a]; return a;";
    let deep = worker(&format!("export const f = () => {{ {nest} }};"));
    let f = load(&deep, "f");
    let trouble = deep.call(f, Vec::new()).unwrap_err();
    assert!(trouble.message.contains("nested more than 128 deep"), "{trouble}");
    assert_eq!(survives(&format!("() => {{ {nest} }}")), TroubleKind::Memory);
    let worker = worker("export const f = (x: unknown) => 1;");
    let f = load(&worker, "f");
    let mut deep = json!(1);
    for _ in 0..600 {
        deep = json!([deep]);
    }
    let trouble = worker.call(f, vec![crate::stage::value(deep)]).unwrap_err();
    assert_eq!(trouble.message, "a value is nested too deeply");
}

#[test]
fn changed_prototypes_stay_where_they_are() {
    let text = r#"
        (Object.prototype as any).polluted = 1;
        (Array.prototype as any).push = () => { throw new Error("push"); };
        (Promise.prototype as any).then = () => { throw new Error("then"); };
        (globalThis as any).JSON = null;
        (Map.prototype as any).get = () => { throw new Error("get"); };
        export const f = async () => { await null; return { x: ({} as any).polluted }; };
    "#;
    let bad = worker(text);
    let f = load(&bad, "f");
    assert_eq!(bad.call(f, Vec::new()).unwrap()["x"], json!(1));
    let good = worker("export const f = () => typeof ({} as any).polluted;");
    let f = load(&good, "f");
    assert_eq!(good.call(f, Vec::new()).unwrap(), json!("undefined"));
}

#[test]
fn eval_grants_nothing() {
    let text = r#"
        const tries = [
          () => eval("typeof __raw"), () => new Function("return typeof __raw")(),
          () => (0, eval)("typeof process + typeof require + typeof std + typeof os"),
          () => Object.getOwnPropertyNames(globalThis).filter((n) => n.startsWith("__")).join(),
        ];
        const imports = [
          () => eval("import('atomic:natives')"), () => (0, eval)("import('atomic:boot')"),
          () => new Function("return import('atomic:natives')")(), () => eval("import('./boot.ts')"),
          () => eval("import('/etc/passwd')"), () => eval("import('./x.json')"),
          () => (async () => {}).constructor("return import('atomic:boot')")(),
        ];
        export const atTheTop: unknown[] = [];
        for (const one of imports) atTheTop.push(await one().then(() => "LOADED", () => "refused"));
        export const f = async () => {
          const all: unknown[] = tries.map((one) => one());
          for (const one of imports) all.push(await one().then(() => "LOADED", () => "refused"));
          return all;
        };
    "#;
    let worker = worker(text);
    let loaded = worker.load_exports().unwrap_or_else(|trouble| panic!("{trouble}"));
    let refused = vec!["refused"; 7];
    assert_eq!(loaded.descriptor["atTheTop"], json!(refused));
    let f = crate::stage::function(&loaded.descriptor, "f");
    let mut expected = vec!["undefined", "undefined", "undefinedundefinedundefinedundefined", ""];
    expected.extend(refused);
    assert_eq!(worker.call(f, Vec::new()).unwrap(), json!(expected));
}

/// Other tests start and end threads at the same time, so the threads themselves are compared.
#[test]
fn a_dropped_worker_leaves_no_thread() {
    let workers: Vec<Worker> = (0..20).map(|_| worker("export const f = () => 1;")).collect();
    for worker in &workers {
        worker.load_exports().unwrap();
    }
    let before = threads();
    drop(workers);
    let gone = before.difference(&threads()).count();
    assert!(gone >= 20, "{gone} of 20 threads are gone");
}

fn threads() -> BTreeSet<String> {
    let entries = std::fs::read_dir("/proc/self/task").unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn what_is_said_is_cut() {
    let text = "export const f = () => { throw new Error(\"x\".repeat(1e6)); };\n\
                export const g = () => { throw \"x\".repeat(1e6); };\n\
                export const h = () => { throw null; };";
    let worker = worker(text);
    let f = load(&worker, "f");
    for function in [f, f + 1] {
        let trouble = worker.call(function, Vec::new()).unwrap_err();
        assert!(trouble.message.len() < 10_000);
        assert!(trouble.message.ends_with("… (1000000 characters)"));
    }
    let trouble = worker.call(f + 2, Vec::new()).unwrap_err();
    assert!(trouble.message.starts_with("null was thrown: by the file itself, or"), "{trouble}");
}
