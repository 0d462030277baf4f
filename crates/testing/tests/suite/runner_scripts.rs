//! Scripts: functions that call agents, files and commands, and go on with what they return. The
//! power goes everywhere, and nothing that was done is done again.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::fs;

use atomic_event::Intent;
use atomic_graph::Graph;
use atomic_runner::Outcome;
use atomic_session::MemoryDisk;
use atomic_workflow::{
    Function, Functions, Initial, ScriptCall, StateShape, Workflow, script_node,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::runner_stand::{Finale, Stand, on_one_thread};

/// What a script has heard so far, in order.
struct Told<'a>(Vec<&'a Value>, &'a ScriptCall<'a>);

impl<'a> Told<'a> {
    fn of(call: &'a ScriptCall<'a>) -> Self {
        let before = call.history.iter().filter_map(|known| known.delivery.as_ref());
        Self(before.chain(call.delivery).map(AsRef::as_ref).collect(), call)
    }

    fn about(&self, key: &str) -> Option<&'a Value> {
        self.0.iter().find(|told| told["key"] == key).copied()
    }

    fn has(&self, keys: &[&str]) -> bool {
        keys.iter().all(|key| self.about(key).is_some())
    }

    /// Calls these, except those that were called before.
    fn call(&self, calls: &[(&str, &str, Value)]) -> Value {
        let before = |key: &str| {
            let mut calls = self.1.history.iter().flat_map(|known| &known.calls);
            calls.any(|call| call.key == key)
        };
        let new = calls.iter().filter(|(key, ..)| !before(key));
        let new = new.map(|(key, body, call)| {
            json!({"key": key, "body": body, "kind": call["kind"], "hash": key, "call": call})
        });
        json!({"calls": new.collect::<Vec<Value>>()})
    }
}

fn agent(prompt: &str) -> Value {
    json!({"kind": "agent", "prompt": prompt})
}

/// Two at once, one that fails and is caught, a race whose loser is stopped, a file, and a wait.
fn varied(call: &ScriptCall<'_>) -> Value {
    let told = Told::of(call);
    if !told.has(&["a", "b"]) {
        return told.call(&[("a", "agent", agent("do a")), ("b", "agent", agent("do b"))]);
    }
    if !told.has(&["c"]) {
        return told.call(&[("c", "agent", agent("do c"))]);
    }
    if !told.has(&["fast"]) {
        let racers = [("fast", "agent", agent("do fast")), ("slow", "agent", agent("do slow"))];
        return told.call(&racers);
    }
    if !told.has(&["slow"]) {
        return json!({"cancel": ["slow"], "logs": [{"level": "info", "text": "fast has won"}]});
    }
    if !told.has(&["note"]) {
        let note = json!({"kind": "writeFile", "path": "note.txt", "text": "noted\n"});
        return told.call(&[("note", "work", note)]);
    }
    if !told.has(&["nap"]) {
        return told.call(&[("nap", "ask", json!({"kind": "sleep", "until": call.now}))]);
    }
    let outcome = |key: &str| {
        let told = told.about(key).unwrap_or(&Value::Null);
        told.get("value").or(told["error"].get("code")).or(told.get("cancelled")).cloned()
    };
    let all: Vec<Option<Value>> = ["a", "b", "c", "fast", "slow"].map(outcome).into();
    json!({"done": {"output": all, "patch": {"all": all}}})
}

fn scripted(advance: fn(&ScriptCall<'_>) -> Value) -> Stand {
    let turn = |prompt: &str, does: Value| json!({"prompt": [prompt], "do": does});
    let turns = json!({"turn": [
        turn("do a", json!([{"write": {"path": "a.txt", "text": "a\n"}}, {"say": "A"}])),
        turn("do b", json!([{"say": "B"}])),
        turn("do c", json!([{"fail": "refused"}])),
        turn("do fast", json!([{"say": "F"}])),
        turn("do slow", json!([{"pause_ms": 3_600_000}, {"say": "S"}])),
        turn("again", json!([{"say": "again"}])),
    ]});
    let mut stand = Stand::playing(turns);
    let function = Function::advance(move |call: &ScriptCall<'_>| Ok(advance(call)));
    let node = script_node("script", "go".into(), vec![], None);
    stand.workflow = Workflow {
        name: "script".into(),
        aliases: vec![],
        description: String::new(),
        sessions_dir: ".ralph/sessions".to_owned(),
        graph: Graph::starting_at("script").node(node),
        functions: Functions::default().with("go", function),
        initial_state: Initial::made(|_| [].into()),
        source: None,
        state_shape: StateShape::default(),
    };
    stand
}

fn of_type(stand: &Stand, kind: &str) -> Vec<Value> {
    stand.facts().into_iter().filter(|fact| fact["type"] == kind).collect()
}

/// What the script returned.
fn returned(stand: &Stand) -> Value {
    let evaluated = of_type(stand, "function_evaluated");
    evaluated.last().map(|fact| fact["value"]["done"]["output"].clone()).unwrap_or_default()
}

fn undisturbed() -> (Finale, Value) {
    let stand = scripted(varied);
    let finale = on_one_thread(stand.see_through()).unwrap();
    assert_eq!(stand.misdeeds(), [""; 0]);
    (finale, returned(&stand))
}

#[test]
fn a_script_calls_agents_and_goes_on_with_what_they_return() {
    let (finale, output) = undisturbed();
    assert_eq!(finale.failed.iter().collect::<Vec<_>>(), ["script#1[c]/agent#1"]);
    assert_eq!(output, json!(["A", "B", "refused", "F", true]));
    assert_eq!(finale.ending, r#"{"kind":"completed"}"#);
    let steps: Vec<&str> = finale.finished.iter().map(String::as_str).collect();
    let expected = ["a", "b", "fast"].map(|key| format!("script#1[{key}]/agent#1"));
    assert_eq!(
        steps,
        [&expected[0], &expected[1], &expected[2], "script#1[nap]/ask#1", "script#1[note]/work#1"]
    );
    assert_eq!(finale.files.keys().collect::<Vec<_>>(), ["a.txt", "note.txt"]);

    let stand = scripted(varied);
    on_one_thread(stand.see_through()).unwrap();
    let said = of_type(&stand, "noted");
    assert_eq!(said[0]["text"], "script#1: fast has won");
    let tools = of_type(&stand, "step_reported");
    let tools: Vec<&Value> =
        tools.iter().filter(|fact| fact["report"]["kind"] == "tool_used").collect();
    let note = tools.iter().find(|fact| fact["step"] == "script#1[note]/work#1").unwrap();
    assert!(note["report"].to_string().contains("note.txt (6 bytes)"), "{note}");
    // The time that the script was told is in what is recorded.
    let at =
        stand.facts().iter().find(|fact| fact["type"] == "function_evaluated").unwrap().clone();
    assert_eq!(at["value"]["at"], json!(1_794_736_800_000_i64), "{at}");
}

/// The power goes after every operation of the disk.
#[test]
fn crash_of_a_script_at_every_operation() {
    let (expected, output) = undisturbed();
    let mut problems = vec![];
    let mut cuts = 0;
    for operations in 0.. {
        let stand = scripted(varied);
        stand.disk.cut_power_after(operations);
        let Err(error) = on_one_thread(stand.see_through()) else { break };
        assert!(error.to_string().contains("the power is off"), "{error}");
        MemoryDisk::crash_keeping_some(&stand.disk, operations);
        problems.extend(resumed(&stand, &expected, &output, &format!("cut after {operations}")));
        cuts += 1;
    }
    assert_eq!(problems, [""; 0]);
    assert!(cuts > 60, "only {cuts} cuts");
}

/// Every beginning of a journal is what some crash leaves.
#[test]
fn crash_of_a_script_after_every_fact() {
    let whole = scripted(varied);
    let expected = on_one_thread(whole.see_through()).unwrap();
    let output = returned(&whole);
    let journal = whole.journal();
    let ends = (1..=journal.len()).filter(|end| journal[end - 1] == b'\n');
    let mut problems = vec![];
    for (facts, end) in (1..).zip(ends) {
        let stand = whole.with_journal(&journal[..end]);
        problems.extend(resumed(&stand, &expected, &output, &format!("after fact {facts}")));
    }
    assert_eq!(problems, [""; 0]);
}

fn resumed(stand: &Stand, expected: &Finale, output: &Value, context: &str) -> Vec<String> {
    let mut problems = stand.misdeeds();
    match on_one_thread(stand.see_through()) {
        Ok(finale) => problems.extend(finale.differences(expected)),
        Err(error) => problems.push(error.to_string()),
    }
    problems.extend(stand.misdeeds());
    if problems.is_empty() && returned(stand) != *output {
        problems.push(format!("it returned {}", returned(stand)));
    }
    problems.iter().map(|problem| format!("{context}: {problem}")).collect()
}

/// Reads a file, and fails when it is not there; then calls an agent.
fn reads(call: &ScriptCall<'_>) -> Value {
    let told = Told::of(call);
    if !told.has(&["b"]) {
        return told.call(&[("b", "agent", agent("do b"))]);
    }
    match told.about("read") {
        None => told.call(&[("read", "work", json!({"kind": "readFile", "path": "in.txt"}))]),
        Some(told) if told.get("error").is_some() => json!({"failed": told["error"]}),
        Some(read) => json!({"done": {"output": read["value"]}}),
    }
}

#[test]
fn a_resume_tries_the_failed_call_again_and_nothing_else() {
    let stand = scripted(reads);
    let Outcome::Failed { error, .. } = on_one_thread(stand.live()).unwrap() else { panic!() };
    assert_eq!(error.code, "request");
    assert!(error.message.starts_with("`in.txt` cannot be read"), "{}", error.message);
    fs::write(stand.work().join("in.txt"), "there").unwrap();
    assert_eq!(on_one_thread(stand.live()).unwrap(), Outcome::Completed);
    assert_eq!(returned(&stand), "there");
    assert_eq!(stand.ledger.opened(), [("script#1[b]/agent#1".to_owned(), 1)]);
}

/// Waits until a time that is far away.
fn sleeps(call: &ScriptCall<'_>) -> Value {
    let told = Told::of(call);
    let hour = 3_600_000;
    match told.about("nap") {
        None => told.call(&[("nap", "ask", json!({"kind": "sleep", "until": call.now + hour}))]),
        Some(_) => json!({"done": {"output": "awake"}}),
    }
}

#[test]
fn a_wait_is_until_a_point_in_time_however_often_the_run_is_stopped() {
    let stand = scripted(sleeps);
    for hours in [0, 0, 2] {
        stand.clock.advance(hours * 3_600);
        let outcome = on_one_thread(async {
            let (run, _show) = match stand.session() {
                Some(dir) => stand.resume(&dir).unwrap(),
                None => stand.start().unwrap(),
            };
            let (wishes, intents) = mpsc::channel(1);
            if hours == 0 {
                wishes.send(Intent::Pause { reason: "a test".to_owned() }).await.unwrap();
            }
            run.drive(intents).await.unwrap().outcome
        });
        assert_eq!(outcome, if hours == 0 { Outcome::Paused } else { Outcome::Completed });
    }
    assert_eq!(of_type(&stand, "step_started").len(), 1);
    assert_eq!(of_type(&stand, "step_lost").len(), 0);
    assert_eq!(returned(&stand), "awake");
}

/// Asks the user, then lets two agents share a conversation.
fn talks(call: &ScriptCall<'_>) -> Value {
    let told = Told::of(call);
    let shared = |prompt: &str| json!({"kind": "agent", "prompt": prompt, "conversation": "both"});
    if !told.has(&["q"]) {
        let question = json!({"kind": "ask", "question": "{prompt}?", "options": ["Blue", "Red"]});
        return told.call(&[("q", "ask", question)]);
    }
    if !told.has(&["first"]) {
        return told.call(&[("first", "agent", shared("do a"))]);
    }
    match told.about("second") {
        None => told.call(&[("second", "agent", shared("again"))]),
        Some(_) => json!({"done": {"output": told.about("q").unwrap()["value"]}}),
    }
}

#[test]
fn a_script_asks_the_user_and_its_agents_may_share_a_conversation() {
    let stand = scripted(talks);
    on_one_thread(stand.see_through()).unwrap();
    assert_eq!(returned(&stand), "Blue");
    let asked = of_type(&stand, "question_asked");
    assert_eq!(asked[0]["question"]["question"], "{prompt}?");
    let opened: Vec<Value> =
        of_type(&stand, "conversation_opened").iter().map(|f| f["conversation"].clone()).collect();
    assert_eq!(opened, ["script-script#1[first]/agent#1"; 2]);
}

fn confused(_: &ScriptCall<'_>) -> Value {
    json!({"calls": [{"key": "x", "body": "work", "kind": "dance", "hash": "", "call": {"kind": "dance"}}]})
}

#[test]
fn a_call_that_cannot_be_made_fails_with_a_sentence_that_names_it() {
    let stand = scripted(confused);
    let Outcome::Failed { .. } = on_one_thread(stand.live()).unwrap() else { panic!() };
    let failed = of_type(&stand, "step_failed");
    let message = failed[0]["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("there is no call of the kind `dance`"), "{message}");
}
