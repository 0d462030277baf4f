//! The decoder on what real agents have said, and on what none has said yet.

use std::fmt::Write as _;
use std::sync::LazyLock;

use atomic_event::{Report, Stop, TurnEvent};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Decoder, Who};
use crate::acp::spending::Spending;
use crate::recordings::{Recording, disturbed};

/// A recording by its name: what was prompted, told and answered, one a line.
macro_rules! recording {
    ($name:literal) => {
        include_str!(concat!("../fixtures/", $name, ".jsonl"))
    };
}

fn lines(text: &str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap())
}

/// Everything that is heard of a recording.
fn heard(who: Who, lines: impl IntoIterator<Item = Value>) -> (Vec<TurnEvent>, Vec<Stop>) {
    let mut decoder = Decoder::new("acp:x");
    decoder.spending = Spending::of_a_new_session();
    decoder.begin_program(who);
    let (mut events, mut stops) = (vec![], vec![]);
    for line in lines {
        if line.get("prompt").is_some() {
            decoder.begin_turn();
        } else if let Some(update) = line.get("update") {
            events.extend(decoder.update(update));
        } else {
            let (last, stop) = decoder.end(line.get("answer").unwrap_or(&Value::Null));
            events.extend(last);
            // Of what is refused, the error is told.
            stops.extend(line.get("refused").is_none().then_some(stop));
        }
    }
    (events, stops)
}

/// As it is read by people.
fn told(who: Who, text: &str) -> String {
    let mut told = String::new();
    let mut turn = vec![];
    let mut before = 0;
    let mut end = |turn: &mut Vec<Value>, so_far: &[Value]| {
        let (events, stops) = heard(who, so_far.iter().cloned());
        for event in &events[before..] {
            match event {
                TurnEvent::Typed { text } => _ = writeln!(told, "typed {text:?}"),
                TurnEvent::Thought { text } => _ = writeln!(told, "thought {text:?}"),
                TurnEvent::ToolBegan(call) => _ = writeln!(told, "began {call:?}"),
                TurnEvent::Reported(Report::ToolUsed(used)) => _ = writeln!(told, "used {used:?}"),
                TurnEvent::Reported(report) => _ = writeln!(told, "{report:?}"),
                other @ (TurnEvent::Asked { .. } | TurnEvent::Ended(_)) => {
                    _ = writeln!(told, "{other:?}");
                }
            }
        }
        before = events.len();
        if turn.last().is_some_and(|line| line.get("refused").is_some()) {
            told.push_str("refused\n\n");
        } else {
            _ = match stops.last().unwrap() {
                Stop::Failed(error) => writeln!(told, "Failed {}: {}\n", error.code, error.message),
                stop @ (Stop::Done { .. } | Stop::Interrupted) => writeln!(told, "{stop:?}\n"),
            };
        }
        turn.clear();
    };
    let mut so_far = vec![];
    for line in lines(text) {
        let is_end = line.get("answer").or(line.get("refused")).is_some();
        so_far.push(line.clone());
        turn.push(line);
        if is_end {
            end(&mut turn, &so_far);
        }
    }
    told
}

macro_rules! is_decoded {
    ($($test:ident $who:ident $name:literal)*) => {
        $(
            #[test]
            fn $test() {
                insta::assert_snapshot!($name, told(Who::$who, recording!($name)));
            }
        )*
    };
}

is_decoded! {
    opencode_texts OpenCode "opencode-basic"
    opencode_tools OpenCode "opencode-tools"
    opencode_lists OpenCode "opencode-todo"
    opencode_helpers OpenCode "opencode-subagent"
    opencode_refused_tools OpenCode "opencode-reject"
    opencode_errors OpenCode "opencode-errors"
    copilot_texts Copilot "copilot-basic"
    copilot_tools Copilot "copilot-tools"
    copilot_lists Copilot "copilot-todo"
    copilot_helpers Copilot "copilot-subagent"
    copilot_refused_tools Copilot "copilot-reject"
    copilot_errors Copilot "copilot-errors"
    copilot_errors_after_tools Copilot "copilot-error-after-tool"
    copilot_tries_again Copilot "copilot-retry"
}

fn chunk(text: &str) -> Value {
    json!({ "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } } })
}

fn answer(reason: &str) -> Value {
    json!({ "answer": { "stopReason": reason } })
}

fn stop(who: Who, lines: Vec<Value>) -> Stop {
    heard(who, lines).1.pop().unwrap()
}

fn failure(stop: &Stop) -> (&str, &str) {
    match stop {
        Stop::Failed(error) => (&error.code, &error.message),
        other @ (Stop::Done { .. } | Stop::Interrupted) => panic!("{other:?}"),
    }
}

/// What no agent of today says.
#[test]
fn what_is_new_is_passed_over_and_every_end_is_told() {
    let unknown = json!({ "update": { "sessionUpdate": "subspace_update", "x": [1] } });
    let nothing = json!({ "update": 7 });
    let text = vec![unknown, nothing, chunk("a"), chunk("b"), answer("end_turn")];
    assert_eq!(stop(Who::Other, text), Stop::Done { text: "ab".to_owned() });
    assert_eq!(stop(Who::Other, vec![answer("cancelled")]), Stop::Interrupted);
    for (reason, code, words) in [
        ("refusal", "refused", "no"),
        ("max_tokens", "rejected", "longer"),
        ("max_turn_requests", "rejected", "more often"),
        ("overheated", "rejected", "overheated"),
        ("", "rejected", "did not say"),
    ] {
        let stop = stop(Who::Other, vec![chunk("no"), answer(reason)]);
        let (found, message) = failure(&stop);
        assert!(found == code && message.contains(words), "{reason}: {stop:?}");
        assert!(message.contains("acp:x"), "{message}");
    }
}

/// An agent that says its model's failure as if it were the answer has failed.
#[test]
fn an_error_that_is_told_as_a_text_is_no_answer() {
    let error = || chunk("Error: 401 no such key");
    let failed = stop(Who::Other, vec![error(), answer("end_turn")]);
    assert_eq!(failure(&failed).0, "login_needed");
    // The same words of a model, for which something was spent.
    let spent = json!({ "answer": { "stopReason": "end_turn",
        "usage": { "inputTokens": 1, "outputTokens": 1, "totalTokens": 2 } } });
    let said = stop(Who::Other, vec![error(), spent]);
    assert_eq!(said, Stop::Done { text: "Error: 401 no such key".to_owned() });
    let counted = || json!({ "update": { "sessionUpdate": "usage_update", "used": 1, "size": 9 } });
    let thought = json!({ "update": { "sessionUpdate": "agent_thought_chunk",
        "content": { "type": "text", "text": "hm" } } });
    for lines in [
        vec![error(), counted()],
        vec![chunk("Err"), chunk("or: "), chunk("401 no such key")],
        vec![chunk("I look."), thought, error()],
    ] {
        let lines = lines.into_iter().chain([answer("end_turn")]).collect();
        let failed = stop(Who::Other, lines);
        assert_eq!(failure(&failed).0, "login_needed", "{failed:?}");
    }
    // Copilot counts after each call of its model, and tells its own errors in one piece.
    let copilots = vec![error(), counted(), answer("end_turn")];
    assert!(matches!(stop(Who::Copilot, copilots), Stop::Done { .. }));
    let silent = stop(Who::Other, vec![answer("end_turn")]);
    assert!(failure(&silent).1.contains("without a word"), "{silent:?}");
}

/// What is told late of the use of a tool does not take the answer away.
#[test]
fn an_answer_is_whole_when_a_tool_ends_after_it() {
    let call = |what: &str, status: &str| {
        json!({ "update": { "sessionUpdate": what, "toolCallId": "c", "kind": "read",
                            "status": status, "rawInput": { "path": "x" } } })
    };
    let used = || call("tool_call_update", "completed");
    let lines = vec![
        chunk("I look."),
        call("tool_call", "in_progress"),
        chunk("It is "),
        call("tool_call_update", "in_progress"),
        chunk("good."),
        used(),
        used(),
        answer("end_turn"),
    ];
    let (events, mut stops) = heard(Who::Other, lines);
    assert_eq!(stops.pop(), Some(Stop::Done { text: "It is good.".to_owned() }));
    let is_use = |event: &&TurnEvent| matches!(event, TurnEvent::Reported(Report::ToolUsed(_)));
    assert_eq!(events.iter().filter(is_use).count(), 1, "{events:?}");
}

#[test]
fn a_plan_is_the_agents_list() {
    let plan =
        |entries: Value| json!({ "update": { "sessionUpdate": "plan", "entries": entries } });
    let entry = json!({ "content": "Look", "priority": "high", "status": "in_progress" });
    let empty = plan(json!([]));
    let lists = vec![empty.clone(), plan(json!([entry])), empty];
    let (events, _) = heard(Who::Other, lists);
    let length = |event: &TurnEvent| {
        if let TurnEvent::Reported(Report::Todos { items }) = event {
            items.len()
        } else {
            panic!("{event:?}")
        }
    };
    let lists: Vec<usize> = events.iter().map(length).collect();
    assert_eq!(lists, [1, 0], "one that was never there is not emptied");
}

static RECORDINGS: LazyLock<Vec<Recording>> = LazyLock::new(|| {
    let all =
        [recording!("opencode-tools"), recording!("copilot-errors"), recording!("copilot-todo")];
    let read = |text: &str| Recording {
        version: String::new(),
        scenario: String::new(),
        lines: text.lines().map(str::to_owned).collect(),
    };
    all.into_iter().map(read).collect()
});

proptest! {
    /// Whatever is said, in whatever order, is taken in, and nothing is said twice.
    #[test]
    fn damaged_recordings_are_survived((_, damaged) in disturbed(&RECORDINGS)) {
        for who in [Who::OpenCode, Who::Copilot, Who::Other] {
            let (events, _) = heard(who, damaged.iter().map(|line| serde_json::from_str(line).unwrap()));
            let typed = |event: &TurnEvent| {
                if let TurnEvent::Typed { text } = event { text.len() } else { 0 }
            };
            let said = |event: &TurnEvent| {
                if let TurnEvent::Reported(Report::Said { text }) = event { text.len() } else { 0 }
            };
            let (typed, said) =
                (events.iter().map(typed).sum::<usize>(), events.iter().map(said).sum::<usize>());
            prop_assert!(said <= typed);
        }
    }
}
