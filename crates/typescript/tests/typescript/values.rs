//! Functions, and what goes in and out of them.

use std::sync::{Arc, Mutex};

use atomic_typescript::{Arg, Limits, Options, TroubleKind, Worker};
use serde_json::{Value, json};

use crate::stage::{SOON, bundle, function, load, tight, value, worker, worker_with};

#[test]
fn every_construct_of_the_language_runs() {
    let files = [
        ("ok.ts", include_str!("files/ok.ts")),
        ("lib/types.ts", include_str!("files/types.ts")),
        ("lib/defaults.json", "{\"limit\": 3, \"__proto__\": 1}"),
    ];
    let bundle = bundle(&files).unwrap();
    let worker = Worker::start(&bundle, &Options::default());
    let loaded = worker.load_exports().unwrap_or_else(|trouble| panic!("{trouble}"));
    let result = worker.call(function(&loaded.descriptor, "check"), Vec::new()).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&sorted(result)).unwrap());
}

/// Whether objects keep their order is decided by whatever is built together with this crate.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| (key, sorted(value)));
            fields.collect::<std::collections::BTreeMap<_, _>>().into_iter().collect()
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

#[test]
fn values_go_in_and_come_out() {
    let worker = worker("export const same = (x: unknown) => x;");
    let same = load(&worker, "same");
    let given = json!({
        "null": null, "yes": true, "whole": 3, "large": 4_294_967_296_u64, "part": 0.5,
        "larger": 9_007_199_254_740_992_u64, "largest": 18_446_744_073_709_549_568_u64,
        "least": i64::MIN, "huge": 18_446_744_073_709_551_616.0,
        "text": "ä→😀", "list": [1, [2, []], {}], "nested": {"a": {"b": {}}}, "__proto__": {"x": 1},
    });
    assert_eq!(worker.call(same, vec![value(given.clone())]).unwrap(), given);
    let fields = vec![("a".to_owned(), value(json!([1]))), ("b".to_owned(), value(json!(2)))];
    assert_eq!(worker.call(same, vec![Arg::Object(fields)]).unwrap(), json!({"a": [1], "b": 2}));
}

#[test]
fn what_is_made_late_is_like_any_other() {
    let worker = worker(
        "export const read = (s: any) => s.outputs.a.x;
         export const keys = (s: any) => [Object.keys(s), Object.keys(s.outputs), s.outputs === s.outputs];
         export const spread = (s: any) => ({ ...s });
         export const text = (s: any) => JSON.stringify(s);
         export const set = (s: any) => { s.outputs = 5; s.outputs += 1; return s.outputs; };
         export const change = (s: any) => { s.outputs.b = 2; return s; };
         export const leave = (s: any) => s.n;",
    );
    let loaded = worker.load_exports().unwrap();
    let call = |name: &str| {
        let late = vec![("a".to_owned(), Arc::new(json!({"x": 1})))];
        let outputs = ("outputs".to_owned(), Arg::Late(Arc::new(late)));
        let state = Arg::Object(vec![("n".to_owned(), value(json!(7))), outputs]);
        worker.call(function(&loaded.descriptor, name), vec![state]).unwrap()
    };
    let whole = json!({"n": 7, "outputs": {"a": {"x": 1}}});
    assert_eq!(call("read"), json!(1));
    assert_eq!(call("keys"), json!([["n", "outputs"], ["a"], true]));
    assert_eq!(call("spread"), whole);
    assert_eq!(call("text"), json!(whole.to_string()));
    assert_eq!(call("set"), json!(6));
    assert_eq!(call("change"), json!({"n": 7, "outputs": {"a": {"x": 1}, "b": 2}}));
    assert_eq!(call("leave"), json!(7));
}

#[test]
fn undefined_clears_a_field_and_is_dropped_below() {
    let worker = worker("export const f = () => ({ a: undefined, b: { c: undefined, d: 1 } });");
    let f = load(&worker, "f");
    assert_eq!(worker.call(f, Vec::new()).unwrap(), json!({"a": null, "b": {"d": 1}}));
}

#[test]
fn odd_values_become_what_they_mean() {
    let worker = worker(
        r#"export const f = () => ({
             cut: "😀".slice(0, 1), minus: -0,
             error: Object.assign(new TypeError("no"), { code: "E" }),
             own: new (class { x = 1; get y() { return 2; } })(),
             json: { toJSON: () => ({ is: "this" }) },
           });"#,
    );
    let f = load(&worker, "f");
    let expected = json!({
        "cut": "\u{fffd}", "minus": 0,
        "error": {"name": "TypeError", "message": "no", "code": "E"}, "own": {"x": 1},
        "json": {"is": "this"},
    });
    assert_eq!(worker.call(f, Vec::new()).unwrap(), expected);
}

#[test]
fn values_that_are_no_values_are_refused_with_their_path() {
    let cases = [
        (
            "({ a: [new Map()] })",
            "a Map cannot be kept; use an object or a list (at the returned value.a[0])",
        ),
        ("new Set([1])", "a Set cannot be kept; use an object or a list (at the returned value)"),
        (
            "({ n: 10n })",
            "a BigInt cannot be kept; use a number or a string (at the returned value.n)",
        ),
        (
            "({ x: { p: Promise.resolve(1) } })",
            "a Promise is not a value; is an `await` missing? (at the returned value.x.p)",
        ),
        ("({ f: () => 1 })", "a function cannot be kept (at the returned value.f)"),
        (
            "({ x: { y: [1, 0 / 0] } })",
            "NaN cannot be kept; use a number or null (at the returned value.x.y[1])",
        ),
        (
            "({ low: -1 / 0 })",
            "Infinity cannot be kept; use a number or null (at the returned value.low)",
        ),
        (
            "({ list: [1, undefined] })",
            "`undefined` in a list cannot be kept; use null, or leave it out (at the returned value.list[1])",
        ),
        (
            "[1, , 2]",
            "`undefined` in a list cannot be kept; use null, or leave it out (at the returned value[1])",
        ),
        (
            "({ at: new Date(0) })",
            "a Date cannot be kept; use toISOString() or getTime() (at the returned value.at)",
        ),
        ("({ s: Symbol('s') })", "a Symbol cannot be kept; use a string (at the returned value.s)"),
        (
            "({ b: new Uint8Array([1, 2]) })",
            "a Uint8Array cannot be kept; use an object or a list (at the returned value.b)",
        ),
    ];
    for (expression, expected) in cases {
        let worker = worker(&format!(
            "type Unused = string;\nexport const f: () => unknown = () => {expression};"
        ));
        let f = load(&worker, "f");
        let trouble = worker.call(f, Vec::new()).unwrap_err();
        assert_eq!(trouble.message, expected);
        assert_eq!(trouble.kind, TroubleKind::Thrown);
        // No line of the file was being run when it was found: the function itself is shown.
        let at = trouble.at().map(|at| (at.line, at.column));
        assert_eq!(at, Some((2, 14)), "{trouble}");
    }
    let worker = worker("export const f = () => { const a: any = {}; a.a = a; return a; };");
    let f = load(&worker, "f");
    let trouble = worker.call(f, Vec::new()).unwrap_err();
    assert!(
        trouble.message.starts_with("a value is nested more than 128 deep, or contains itself")
    );
}

#[test]
fn values_larger_than_any_memory_are_refused() {
    let cases = [
        "({ v: new Array(500_000_000) })",
        "(() => { let x: unknown = [1]; for (let n = 0; n < 60; n++) x = [x, x]; return { x }; })()",
        "(() => { const t = \"x\".repeat(1 << 20); return { t: new Array(1000).fill(t) }; })()",
    ];
    for expression in cases {
        let text = format!("export const f = (): unknown => {expression};");
        // However slow the machine is.
        let limits = Limits { stretch: SOON, ..Limits::default() };
        let worker = worker_with(&text, &Options { limits, ..Options::default() });
        let f = load(&worker, "f");
        let trouble = worker.call(f, Vec::new()).unwrap_err();
        assert!(trouble.message.starts_with("a value is too large to be kept (at "), "{trouble}");
    }
}

#[test]
fn what_cannot_be_interrupted_does_not_hold_up_whoever_waits() {
    // Four thousand million holes: minutes in one call of the language.
    let text = "export const f = () => new Array(4294967295).join(\"\");";
    let worker = worker_with(text, &tight());
    let f = load(&worker, "f");
    let trouble = worker.call(f, Vec::new()).unwrap_err();
    assert_eq!(trouble.kind, TroubleKind::Interrupted);
    assert!(trouble.message.contains("cannot be interrupted"), "{trouble}");
    drop(worker);
}

#[test]
fn places_are_found_in_folders_with_brackets() {
    let text = "type Unused = string;\nexport const f = (x: any) => {\n  return x.y.z;\n};";
    let bundle = bundle(&[("copy (3)/main (1).ts", text)]).unwrap();
    let worker = Worker::start(&bundle, &Options::default());
    let f = load(&worker, "f");
    let trouble = worker.call(f, vec![value(json!({}))]).unwrap_err();
    let at = trouble.at().map(ToString::to_string);
    assert_eq!(at.as_deref(), Some("/flows/copy (3)/main (1).ts:3:10"));
}

#[test]
fn functions_are_numbered_in_the_order_they_are_met() {
    let text = r#"
        const native: any = () => 1; native.__native = "concat"; native.__args = ["id"];
        export const nodes = [{ id: "a", execute: () => 1 }, { id: "b", execute: () => 2, merge: native }];
        export const random = Math.random(), id = crypto.randomUUID(), now = Date.now();
    "#;
    let options = Options { seed: 7, now: Some(1_000), ..Options::default() };
    let described = || worker_with(text, &options).load_exports().unwrap().descriptor;
    let first = described();
    assert_eq!(first, described());
    assert_eq!(first["nodes"][0]["execute"], json!({"$fn": 0}));
    assert_eq!(first["nodes"][1]["merge"], json!({"$fn": 2, "native": "concat", "args": ["id"]}));
    assert_eq!(first["now"], json!(1_000));
    let other = Options { seed: 8, ..options.clone() };
    let other = worker_with(text, &other).load_exports().unwrap().descriptor;
    assert_ne!(first["random"], other["random"]);
    assert_ne!(first["id"], other["id"]);
}

#[test]
fn the_configuration_reaches_the_default_export() {
    let worker = worker(
        r#"import { graph, toolNode } from "@atomic/graph";
           export default (config: { n: number }) =>
             graph().start(toolNode({ id: "a", execute: () => ({ n: config.n * 2 }) })).end().compile();"#,
    );
    let loaded = worker.load(&json!({"n": 21})).unwrap_or_else(|trouble| panic!("{trouble}"));
    let execute = function(&loaded.descriptor["nodes"][0], "execute");
    assert_eq!(worker.call(execute, vec![value(json!({}))]).unwrap(), json!({"n": 42}));
}

#[test]
fn nodes_know_where_they_were_made() {
    let worker = worker(include_str!("files/places.ts"));
    let loaded = worker.load_exports().unwrap();
    let at = |key: &str| {
        let at = &loaded.descriptor[key]["$at"];
        assert_eq!(at[0], json!("/flows/main.ts"));
        (at[1].as_u64(), at[2].as_u64())
    };
    assert_eq!(at("plain"), (Some(4), Some(22)));
    // The engine itself would say where the last argument is.
    assert_eq!(at("withCalls"), (Some(5), Some(26)));
    assert_eq!(at("ofObject"), (Some(11), Some(4)));
    assert_eq!(at("made"), (Some(13), Some(30)));
}

#[test]
fn what_settles_without_waiting_may_be_a_promise() {
    let worker = worker(
        "export const f = async () => { await null; return 1; };\nexport const g = () => new Promise(() => {});",
    );
    let f = load(&worker, "f");
    assert_eq!(worker.call(f, Vec::new()).unwrap(), json!(1));
    let trouble = worker.call(f + 1, Vec::new()).unwrap_err();
    assert_eq!(trouble.kind, TroubleKind::Pending);
}

#[test]
fn errors_have_the_places_of_the_file() {
    let text = include_str!("files/throws.ts");
    let worker = worker(text);
    let f = load(&worker, "outer");
    let trouble = worker.call(f, Vec::new()).unwrap_err();
    insta::assert_snapshot!(trouble);
    let later = load(&worker, "later");
    insta::assert_snapshot!(worker.call(later, Vec::new()).unwrap_err());
    let plain = load(&worker, "plain");
    insta::assert_snapshot!(worker.call(plain, Vec::new()).unwrap_err());
}

#[test]
fn an_error_may_say_where_it_is_itself() {
    let worker = worker(
        "const fail = (at: unknown) => { throw Object.assign(new Error(\"no\"), { $at: at }); };\nexport const f = () => fail([\"/flows/main.ts\", 2, 7]);\nexport const g = () => fail([\"/flows/main.ts\", 0, 0]);\nexport const h = () => fail([\"/elsewhere.ts\", 4294967295, 4294967295]);\nexport const i = () => fail({ x: 1 });",
    );
    let f = load(&worker, "f");
    let trouble = worker.call(f, Vec::new()).unwrap_err();
    assert_eq!(trouble.at().map(ToString::to_string).as_deref(), Some("/flows/main.ts:2:7"));
    for (n, line) in [(1, 0), (2, u32::MAX), (3, 1)] {
        let trouble = worker.call(f + n, Vec::new()).unwrap_err();
        assert_eq!((&*trouble.message, trouble.at().map(|at| at.line)), ("no", Some(line)));
    }
}

#[test]
fn an_unhandled_rejection_fails_the_call() {
    let worker = worker(
        "export const f = () => { Promise.reject(new Error(\"lost\")); return 1; };\nexport const g = () => { Promise.reject(new Error(\"kept\")).catch(() => {}); return 2; };\nexport const h = () => { queueMicrotask(() => { throw new Error(\"job\"); }); return 3; };",
    );
    let f = load(&worker, "f");
    assert_eq!(worker.call(f, Vec::new()).unwrap_err().message, "lost");
    assert_eq!(worker.call(f + 1, Vec::new()).unwrap(), json!(2));
    assert_eq!(worker.call(f + 2, Vec::new()).unwrap_err().message, "job");
}

#[test]
fn loading_is_only_for_describing() {
    let cases = [
        (
            "import { shell } from \"atomic/host\"; await shell(\"ls\");",
            "`shell` is not possible here",
        ),
        ("setTimeout(() => {}, 1);", "there are no timers here"),
        ("await new Promise(() => {});", "the file waits at its top"),
        ("throw new RangeError(\"boom\");", "boom"),
        ("Promise.reject(new Error(\"nobody\"));", "nobody"),
    ];
    for (text, expected) in cases {
        let trouble = worker(text).load_exports().unwrap_err();
        assert!(trouble.message.starts_with(expected), "{trouble}");
        assert_eq!(trouble.into_fault(std::path::Path::new("/flows/main.ts")).code, "ATM713");
    }
    let trouble = worker("export const x = { m: new Map() };").load_exports().unwrap_err();
    assert_eq!(trouble.code.as_deref(), Some("ATM716"));
}

#[test]
fn what_is_said_outside_of_steps_is_heard() {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let hears = Arc::clone(&heard);
    let log: atomic_typescript::Log =
        Arc::new(move |level, text| hears.lock().unwrap().push(format!("{level} {text}")));
    let options = Options { log: Some(log), ..Options::default() };
    let text = "console.log(\"loading\", { a: [1, \"x\"], m: new Map([[\"k\", 1]]) });\nexport const f = () => console.warn(\"called\");";
    let worker = worker_with(text, &options);
    let f = load(&worker, "f");
    worker.call(f, Vec::new()).unwrap();
    let expected = ["info loading { a: [1, \"x\"], m: Map(1) { k: 1 } }", "warn called"];
    assert_eq!(*heard.lock().unwrap(), expected);
}

#[test]
fn the_usual_globals_are_there() {
    let worker = worker(include_str!("files/globals.ts"));
    let f = load(&worker, "check");
    let result = worker.call(f, Vec::new()).unwrap_or_else(|trouble| panic!("{trouble}"));
    insta::assert_snapshot!(serde_json::to_string_pretty(&sorted(result)).unwrap());
}

#[test]
fn five_thousand_calls() {
    let worker = worker("let n = 0; export const f = (s: { x: number }) => (n += s.x);");
    let f = load(&worker, "f");
    let arg = value(json!({"x": 2}));
    for n in 1..=5_000 {
        assert_eq!(worker.call(f, vec![arg.clone()]).unwrap(), json!(2 * n));
    }
}
