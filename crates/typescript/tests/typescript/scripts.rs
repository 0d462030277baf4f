//! Scripts: run again from what they were told.

use std::sync::Arc;

use atomic_typescript::{Delivery, Options, Outcome, Progress, Script, TroubleKind, Turn, Worker};
use serde_json::{Value, json};

use crate::stage::{function, tight, value, worker, worker_with};

const HEAD: &str = "import { defineWorkflow } from \"@atomic/workflows\";\nexport default defineWorkflow({ name: \"s\" }).run(async (ctx: any) => {\n";

fn begin(body: &str) -> (Worker, Script, Turn) {
    begin_with(body, &Options::default())
}

fn begin_with(body: &str, options: &Options) -> (Worker, Script, Turn) {
    let worker = worker_with(&format!("{HEAD}{body}\n}});"), options);
    let loaded = worker.load(&json!({})).unwrap_or_else(|trouble| panic!("{trouble}"));
    let run = function(&loaded.descriptor, "$script");
    let (script, turn) = worker.start_script(run, vec![value(json!({}))], 42, 1_000).unwrap();
    (worker, script, turn)
}

fn gives(key: &str, value: Value) -> Delivery {
    Delivery { key: key.to_owned(), outcome: Outcome::Value(Arc::new(value)) }
}

fn keys(turn: &Turn) -> Vec<&str> {
    turn.calls.iter().map(|call| call.key.as_str()).collect()
}

#[test]
fn calls_are_recorded_and_delivered_to() {
    let (_worker, script, turn) = begin(
        r#"  const plan = await ctx.agent("planner", "plan it");
  const [a, b] = await Promise.all([ctx.shell(plan), ctx.shell("b")]);
  ctx.log("nearly");
  return { a, b };"#,
    );
    assert_eq!(turn.progress, Progress::Waiting);
    let [call] = turn.calls.as_slice() else { panic!("{turn:?}") };
    assert_eq!((call.key.as_str(), call.kind.as_str()), ("agent:1", "agent"));
    assert_eq!(call.args, json!({"agent": "planner", "prompt": "plan it"}));
    assert_eq!(call.at.as_ref().map(ToString::to_string), Some("/flows/main.ts:3:26".to_owned()));

    let turn = script.deliver(gives("agent:1", json!("ls")), 2_000).unwrap();
    assert_eq!(keys(&turn), ["shell:1", "shell:2"]);
    assert_eq!(turn.calls[0].args, json!({"command": "ls"}));
    let turn = script.deliver(gives("shell:2", json!("B")), 3_000).unwrap();
    assert_eq!((turn.calls.len(), &turn.progress), (0, &Progress::Waiting));
    let turn = script.deliver(gives("shell:1", json!("A")), 4_000).unwrap();
    assert_eq!(turn.progress, Progress::Returned(json!({"a": "A", "b": "B"})));
    assert_eq!(turn.logs, [("info".to_owned(), "nearly".to_owned())]);
    let again = script.deliver(gives("shell:2", json!("A")), 4_000).unwrap_err();
    assert_eq!(again.kind, TroubleKind::Refused);
}

#[test]
fn failures_are_errors_in_the_script() {
    let (_worker, script, _) = begin(
        r#"  const seen = await ctx.shell("a").catch((e: any) => [e.code, e.message, e instanceof Error]);
  await ctx.shell(JSON.stringify(seen));"#,
    );
    let failed = |key: &str| Delivery {
        key: key.to_owned(),
        outcome: Outcome::Failed { code: "exit".to_owned(), message: "no".to_owned() },
    };
    let turn = script.deliver(failed("shell:1"), 1).unwrap();
    assert_eq!(turn.calls[0].args, json!({ "command": r#"["exit","no",true]"# }));
    // Uncaught, it is the end of the script, at the place of the call.
    let turn = script.deliver(failed("shell:2"), 3).unwrap();
    let Progress::Threw(trouble) = turn.progress else { panic!("{turn:?}") };
    assert_eq!((&*trouble.message, trouble.code.as_deref()), ("no", Some("exit")));
    assert_eq!(trouble.at().map(|at| (at.line, at.column)), Some((4, 13)));
}

#[test]
fn what_is_cancelled_ends_as_cancelled() {
    let (_worker, script, turn) = begin(
        r#"  const seen: string[] = [];
  const won = await ctx.parallel(
    [(c: any) => c.shell("a"), (c: any) => c.shell("b").catch((e: any) => { seen.push(e.code); throw e; })],
    { strategy: "race" },
  );
  await ctx.shell("c");
  return seen;"#,
    );
    assert_eq!(keys(&turn), ["p1.0/shell:1", "p1.1/shell:1"]);
    let turn = script.deliver(gives("p1.0/shell:1", json!("A")), 1).unwrap();
    assert_eq!(turn.cancelled, ["p1.1/shell:1"]);
    let cancelled = Delivery { key: "p1.1/shell:1".to_owned(), outcome: Outcome::Cancelled };
    script.deliver(cancelled, 2).unwrap();
    let turn = script.deliver(gives("shell:1", json!(0)), 3).unwrap();
    assert_eq!(turn.progress, Progress::Returned(json!(["cancelled"])));
}

#[test]
fn time_and_chance_are_those_it_was_given() {
    let body = r#"  const seen = [Date.now(), new Date().toISOString(), Math.random(), crypto.randomUUID(), performance.timeOrigin];
  await ctx.shell("a");
  return [...seen, Date.now(), Math.random(), performance.now(), performance.timeOrigin];"#;
    let run = || {
        let (worker, script, _) = begin(body);
        // Another script, and functions, in between change nothing.
        let loaded_run = 0;
        let (_other, _) = worker.start_script(loaded_run, vec![value(json!({}))], 7, 5).unwrap();
        let turn = script.deliver(gives("shell:1", Value::Null), 9_999).unwrap();
        let Progress::Returned(value) = turn.progress else { panic!("{turn:?}") };
        value
    };
    let first = run();
    assert_eq!(first, run());
    assert_eq!(first[0], json!(1_000));
    assert_eq!(first[1], json!("1970-01-01T00:00:01.000Z"));
    assert_eq!((&first[4], &first[8]), (&json!(1_000), &json!(1_000)));
    assert_eq!((&first[5], &first[7]), (&json!(9_999), &json!(8_999)));
    assert_ne!(first[2], first[6]);
}

#[test]
fn what_waits_for_nothing_is_stuck() {
    let (_worker, script, turn) =
        begin("  await ctx.shell(\"a\");\n  await new Promise(() => {});");
    assert_eq!(turn.progress, Progress::Waiting);
    let turn = script.deliver(gives("shell:1", Value::Null), 1).unwrap();
    assert_eq!(turn.progress, Progress::Stuck);
}

#[test]
fn a_script_may_end_before_its_calls() {
    let (_worker, _script, turn) = begin("  ctx.shell(\"a\");\n  return 1;");
    assert_eq!(keys(&turn), ["shell:1"]);
    assert_eq!(turn.progress, Progress::Returned(json!(1)));
}

#[test]
fn what_is_not_for_scripts_is_refused() {
    let cases = [
        (
            "setTimeout(() => {}, 1);",
            "there are no timers here: a script waits with `await ctx.sleep(ms)`, which outlives a restart",
        ),
        ("(async () => { throw new Error(\"lost\"); })(); await ctx.shell(\"x\");", "lost"),
        (
            "await ctx.workflow(\"x\", { f: () => 1 });",
            "a function cannot be kept (at what is given to `workflow`.input.f)",
        ),
        (
            "return new Map();",
            "a Map cannot be kept; use an object or a list (at the returned value)",
        ),
    ];
    for (body, expected) in cases {
        let (_worker, _script, turn) = begin(body);
        let Progress::Threw(trouble) = turn.progress else { panic!("{body}: {turn:?}") };
        assert_eq!(trouble.message, expected);
        assert!(trouble.at().is_some(), "{trouble}");
    }
    let text = "import { shell } from \"atomic/host\";\nexport const f = () => shell(\"x\");";
    let worker = worker(text);
    worker.load_exports().unwrap();
    let (_script, turn) = worker.start_script(0, Vec::new(), 1, 1).unwrap();
    let Progress::Threw(trouble) = turn.progress else { panic!("{turn:?}") };
    assert_eq!(
        trouble.message,
        "`shell` is not possible here: a script has it as a function of its `ctx`"
    );
}

#[test]
fn an_endless_script_is_ended() {
    let body = "  await ctx.shell(\"a\");\n  while (true) {}";
    let (worker, script, _) = begin_with(body, &tight());
    let trouble = script.deliver(gives("shell:1", Value::Null), 1).unwrap_err();
    assert_eq!(trouble.kind, TroubleKind::Interrupted);
    // Of the call that it went on from: where it loops is not known after an `await`.
    assert_eq!(trouble.at().map(|at| at.line), Some(3));
    // It is gone, and can be started again.
    let trouble = script.deliver(gives("shell:1", Value::Null), 1).unwrap_err();
    assert_eq!(trouble.kind, TroubleKind::Gone);
    let (_script, turn) = worker.start_script(0, vec![value(json!({}))], 42, 1_000).unwrap();
    assert_eq!(keys(&turn), ["shell:1"]);
}

#[test]
fn a_forgotten_script_is_gone() {
    let (worker, script, _) = begin("  await ctx.shell(\"a\");");
    drop(script);
    let (other, turn) = worker.start_script(0, vec![value(json!({}))], 1, 1).unwrap();
    assert_eq!(keys(&turn), ["shell:1"]);
    assert!(other.deliver(gives("shell:1", Value::Null), 1).is_ok());
}

#[test]
fn what_a_script_says_is_cut() {
    let (_worker, _script, turn) =
        begin("  ctx.log(\"x\".repeat(1e6));\n  for (let i = 0; i < 2000; i++) ctx.log(\"y\");");
    assert_eq!(turn.logs.len(), 1001);
    assert!(turn.logs[0].1.len() < 70_000);
    assert_eq!(turn.logs[1000].1, "1001 more lines were dropped");
}
