//! Steps: functions that wait for what a host does for them.

use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex};

use atomic_typescript::{Arg, HostError, Options, TroubleKind};
use serde_json::{Value, json};

use crate::stage::{Desk, SOON, load, perform, tight, value, worker, worker_with};

const TEXT: &str = r#"import { shell, readFile, log } from "atomic/host";

export const run = async (state: { n: number }, ctx: any) => {
  const first = await shell(`echo ${state.n}`);
  const second = await readFile(first.stdout);
  return { node: ctx.nodeId, second, aborted: ctx.signal.aborted };
};
export const fails = async () => {
  await null;
  return await shell("false");
};
export const catches = async () => {
  try { await shell("x"); } catch (e: any) { return [e.name, e.code, e.message, e instanceof Error]; }
};
export const all = async () => (await Promise.all([shell("a"), shell("b"), shell("c")])).map((r) => r.n);
export const timers = async () => {
  const seen: string[] = [];
  const done = new Promise<void>((resolve) => {
    let n = 0;
    const every = setInterval((x: string) => { seen.push(x); if (++n === 2) { clearInterval(every); resolve(); } }, 1, "tick");
  });
  const never = setTimeout(() => seen.push("never"), 2);
  clearTimeout(never);
  await new Promise((resolve) => setTimeout(resolve, 1));
  await done;
  return seen;
};
export const stops = async (_: unknown, ctx: any) => {
  ctx.signal.addEventListener("abort", () => log("heard " + ctx.signal.reason.name));
  console.log("waiting");
  try { await shell("sleep", { signal: ctx.signal }); } finally { shell("after").catch((e) => console.error(e.message)); }
};
export const lost = async () => {
  (async () => { await shell("a"); throw new Error("nobody hears this"); })();
  await shell("b");
};
export const inTimer = async () => {
  setTimeout(() => { throw new Error("in a timer"); }, 0);
  await shell("never answered");
};
export const never = () => new Promise(() => {});
export const sync = () => 5;
"#;

fn number(key: &str) -> u32 {
    load(&worker(TEXT), key)
}

#[test]
fn a_step_asks_and_is_answered() {
    let worker = worker(TEXT);
    load(&worker, "run");
    let (host, ends) = Desk::new();
    let context = Arg::Context(Arc::new(json!({"nodeId": "build"})));
    let running = perform(&worker, number("run"), vec![value(json!({"n": 3})), context], &host);
    let asked = ends.asked.recv_timeout(SOON).unwrap();
    assert_eq!((asked.name.as_str(), &asked.args), ("shell", &json!({"command": "echo 3"})));
    asked.answer.give(Ok(json!({"stdout": "file"})));
    let asked = ends.asked.recv_timeout(SOON).unwrap();
    assert_eq!((asked.name.as_str(), &asked.args), ("readFile", &json!({"path": "file"})));
    // Functions without waiting run meanwhile.
    assert_eq!(worker.call(number("sync"), Vec::new()).unwrap(), json!(5));
    asked.answer.give(Ok(json!("text")));
    let expected = json!({"node": "build", "second": "text", "aborted": false});
    assert_eq!(running.result().unwrap(), expected);
}

#[test]
fn a_failed_request_is_an_error_at_its_call() {
    let worker = worker(TEXT);
    let fails = load(&worker, "fails");
    let (host, ends) = Desk::new();
    let running = perform(&worker, fails, Vec::new(), &host);
    let error = HostError { code: "exit".to_owned(), message: "no luck".to_owned() };
    ends.asked.recv_timeout(SOON).unwrap().answer.give(Err(error.clone()));
    let trouble = running.result().unwrap_err();
    assert_eq!(trouble.code.as_deref(), Some("exit"));
    insta::assert_snapshot!(trouble);
    let running = perform(&worker, number("catches"), Vec::new(), &host);
    ends.asked.recv_timeout(SOON).unwrap().answer.give(Err(error));
    assert_eq!(running.result().unwrap(), json!(["HostError", "exit", "no luck", true]));
    // An answer that nobody gives is one too.
    let running = perform(&worker, fails, Vec::new(), &host);
    drop(ends.asked.recv_timeout(SOON).unwrap());
    assert_eq!(running.result().unwrap_err().message, "the request was given up");
}

#[test]
fn many_steps_wait_at_once() {
    let worker = worker(TEXT);
    let all = load(&worker, "all");
    let (host, ends) = Desk::new();
    let running: Vec<_> = (0..200).map(|_| perform(&worker, all, Vec::new(), &host)).collect();
    let mut asked: Vec<_> = (0..600).map(|_| ends.asked.recv_timeout(SOON).unwrap()).collect();
    // In any order.
    asked.reverse();
    for (n, asked) in asked.into_iter().enumerate() {
        asked.answer.give(Ok(json!({"n": n})));
    }
    let results: Vec<Value> = running.iter().map(|one| one.result().unwrap()).collect();
    assert_eq!(results[0], json!([599, 598, 597]));
    assert_eq!(results[199], json!([2, 1, 0]));
}

#[test]
fn timers_tick() {
    let worker = worker(TEXT);
    let (host, _ends) = Desk::new();
    let running = perform(&worker, load(&worker, "timers"), Vec::new(), &host);
    assert_eq!(running.result().unwrap(), json!(["tick", "tick"]));
}

#[test]
fn a_dropped_step_hears_of_it_and_can_do_nothing_more() {
    let worker = worker(TEXT);
    let stops = load(&worker, "stops");
    let (host, ends) = Desk::new();
    let context = Arg::Context(Arc::new(json!({})));
    let running = perform(&worker, stops, vec![value(Value::Null), context], &host);
    let asked = ends.asked.recv_timeout(SOON).unwrap();
    assert_eq!(host.logs(), [("info".to_owned(), "waiting".to_owned())]);
    drop(running.handle);
    assert_eq!(ends.ended.recv_timeout(SOON).unwrap(), "shell");
    // The callback is gone without having been called.
    assert_eq!(running.done.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected));
    // A late answer is nobody's business, and what the step wanted at last was refused.
    asked.answer.give(Ok(Value::Null));
    assert_eq!(worker.call(number("sync"), Vec::new()).unwrap(), json!(5));
    assert_eq!(ends.asked.try_recv().err(), Some(TryRecvError::Empty));
}

#[test]
fn what_was_asked_for_ends_with_the_step() {
    let worker = worker(TEXT);
    let all = load(&worker, "all");
    let (host, ends) = Desk::new();
    // Stopped, without ever having looked at its signal.
    let running = perform(&worker, all, Vec::new(), &host);
    let asked: Vec<_> = (0..3).map(|_| ends.asked.recv_timeout(SOON).unwrap()).collect();
    drop(running.handle);
    for _ in 0..3 {
        assert_eq!(ends.ended.recv_timeout(SOON).unwrap(), "shell");
    }
    drop(asked);
    // Failed, while others are under way.
    let running = perform(&worker, all, Vec::new(), &host);
    let mut asked: Vec<_> = (0..3).map(|_| ends.asked.recv_timeout(SOON).unwrap()).collect();
    asked.remove(1).answer.give(Err(HostError::new("no")));
    assert_eq!(running.result().unwrap_err().message, "no");
    for _ in 0..3 {
        assert_eq!(ends.ended.recv_timeout(SOON).unwrap(), "shell");
    }
}

#[test]
fn timers_end_with_the_step() {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let hears = Arc::clone(&heard);
    let log: atomic_typescript::Log =
        Arc::new(move |_, text| hears.lock().unwrap().push(text.to_owned()));
    let text = r#"export const leaves = async () => { setInterval(() => console.log("tick"), 1); };
        export const waits = () => new Promise((resolve) => setTimeout(resolve, 20));"#;
    let worker = worker_with(text, &Options { log: Some(log), ..Options::default() });
    let (host, _ends) = Desk::new();
    perform(&worker, load(&worker, "leaves"), Vec::new(), &host).result().unwrap();
    perform(&worker, load(&worker, "waits"), Vec::new(), &host).result().unwrap();
    assert_eq!(*heard.lock().unwrap(), Vec::<String>::new());
    assert_eq!(host.logs(), []);
}

#[test]
fn what_nobody_handles_fails_the_step_that_caused_it() {
    let worker = worker(TEXT);
    let lost = load(&worker, "lost");
    let (host, ends) = Desk::new();
    let other = perform(&worker, number("all"), Vec::new(), &host);
    for _ in 0..3 {
        ends.asked.recv_timeout(SOON).unwrap().answer.give(Ok(json!({"n": 1})));
    }
    let running = perform(&worker, lost, Vec::new(), &host);
    let waiting = perform(&worker, number("never"), Vec::new(), &host);
    let first = ends.asked.recv_timeout(SOON).unwrap();
    let _second = ends.asked.recv_timeout(SOON).unwrap();
    first.answer.give(Ok(Value::Null));
    let trouble = running.result().unwrap_err();
    assert_eq!(trouble.message, "nobody hears this");
    assert_eq!(trouble.at().unwrap().line, 34);
    assert!(other.result().is_ok());
    assert_eq!(waiting.done.try_recv(), Err(TryRecvError::Empty));
    let running = perform(&worker, number("inTimer"), Vec::new(), &host);
    assert_eq!(running.result().unwrap_err().message, "in a timer");
}

#[test]
fn steps_can_be_stopped_at_any_point() {
    let worker = worker(TEXT);
    let (run, sync) = (load(&worker, "run"), number("sync"));
    let (host, ends) = Desk::new();
    // Any sequence will do, as long as it is always the same.
    let mut random = 12_345_u32;
    for _ in 0..300 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let context = Arg::Context(Arc::new(json!({"nodeId": "x"})));
        let running = perform(&worker, run, vec![value(json!({"n": 1})), context], &host);
        match (random >> 24) % 4 {
            0 => {}
            1 => drop(ends.asked.recv_timeout(SOON).unwrap()),
            2 => {
                let asked = ends.asked.recv_timeout(SOON).unwrap();
                asked.answer.give(Ok(json!({"stdout": "f"})));
            }
            _ => {
                let asked = ends.asked.recv_timeout(SOON).unwrap();
                asked.answer.give(Ok(json!({"stdout": "f"})));
                ends.asked.recv_timeout(SOON).unwrap().answer.give(Ok(json!(1)));
                assert_eq!(running.result().unwrap()["second"], json!(1));
            }
        }
        drop(running);
        // Everything up to here has been taken care of when this returns.
        assert_eq!(worker.call(sync, Vec::new()).unwrap(), json!(5));
        while ends.asked.try_recv().is_ok() {}
    }
}

#[test]
fn a_host_may_use_the_worker_for_its_answer() {
    let worker = worker(
        r#"import { shell } from "atomic/host";
           export const deeper = async (n: number): Promise<number> => n === 0 ? 0 : 1 + (await shell(String(n)) as any);"#,
    );
    let deeper = load(&worker, "deeper");
    let (host, ends) = Desk::new();
    let running = perform(&worker, deeper, vec![value(json!(12))], &host);
    // Each request is answered with what the same function gives for one less.
    let mut open = vec![running];
    let mut asked = Vec::new();
    loop {
        let next = ends.asked.recv_timeout(SOON).unwrap();
        let n: i64 = next.args["command"].as_str().unwrap().parse().unwrap();
        asked.push(next);
        open.push(perform(&worker, deeper, vec![value(json!(n - 1))], &host));
        if n == 1 {
            break;
        }
    }
    while let Some(asked) = asked.pop() {
        let inner = open.pop().unwrap().result().unwrap();
        asked.answer.give(Ok(inner));
    }
    assert_eq!(open.pop().unwrap().result().unwrap(), json!(12));
}

#[test]
fn the_thread_of_the_engine_does_not_wait_for_itself() {
    let worker = worker(TEXT);
    let sync = load(&worker, "sync");
    let (host, _ends) = Desk::new();
    let (sender, receiver) = mpsc::channel();
    let same = worker.clone();
    let _step = worker.perform(sync, Vec::new(), host, move |_| {
        let _ = sender.send(same.call(sync, Vec::new()));
    });
    let trouble = receiver.recv_timeout(SOON).unwrap().unwrap_err();
    assert_eq!(trouble.kind, TroubleKind::Refused);
}

#[test]
fn dropping_the_worker_ends_steps_requests_and_the_thread() {
    let (host, ends) = Desk::new();
    let worker = worker(TEXT);
    let lost = load(&worker, "lost");
    let running = perform(&worker, lost, Vec::new(), &host);
    let _first = ends.asked.recv_timeout(SOON).unwrap();
    let _second = ends.asked.recv_timeout(SOON).unwrap();
    let clone = worker.clone();
    drop(worker);
    assert_eq!(running.done.try_recv(), Err(TryRecvError::Empty));
    drop(clone);
    assert_eq!(running.result().unwrap_err().kind, TroubleKind::Gone);
    assert_eq!(ends.ended.try_iter().count(), 2);
}

#[test]
fn a_worker_that_is_busy_can_be_dropped() {
    let text = "import { log } from \"atomic/host\";\nexport const f = () => { log(\"in\"); for (;;) {} };";
    let worker = worker_with(text, &Options::default());
    let f = load(&worker, "f");
    let (host, _ends) = Desk::new();
    let running = perform(&worker, f, Vec::new(), &host);
    drop(worker);
    assert_eq!(running.result().unwrap_err().kind, TroubleKind::Gone);
}

#[test]
fn an_endless_loop_in_one_step_is_not_blamed_on_the_others() {
    let text = "import { shell } from \"atomic/host\";\nexport const waits = () => shell(\"x\");\nexport const loops = async () => {\n  await shell(\"y\");\n  for (;;) {}\n};";
    let worker = worker_with(text, &tight());
    let waits = load(&worker, "waits");
    let loops = load(&worker, "loops");
    let (host, ends) = Desk::new();
    let one = perform(&worker, waits, Vec::new(), &host);
    let late = ends.asked.recv_timeout(SOON).unwrap();
    let two = perform(&worker, loops, Vec::new(), &host);
    ends.asked.recv_timeout(SOON).unwrap().answer.give(Ok(Value::Null));
    let trouble = two.result().unwrap_err();
    assert_eq!(trouble.kind, TroubleKind::Interrupted);
    assert_eq!(trouble.at().map(|at| at.line), Some(4));
    let trouble = one.result().unwrap_err();
    assert_eq!(trouble.kind, TroubleKind::Gone);
    assert!(trouble.message.starts_with("another step of the workflow"), "{trouble}");
    assert_eq!(ends.ended.recv_timeout(SOON).unwrap(), "shell");
    assert_eq!(ends.ended.recv_timeout(SOON).unwrap(), "shell");
    // The worker goes on, with the same numbers; late answers are nobody's.
    let again = perform(&worker, waits, Vec::new(), &host);
    let asked = ends.asked.recv_timeout(SOON).unwrap();
    late.answer.give(Ok(json!("late")));
    asked.answer.give(Ok(json!("in time")));
    assert_eq!(again.result().unwrap(), json!("in time"));
}
