//! The decoder on recorded events (`cargo xtask record opencode`), and on damaged ones.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use atomic_event::{Report, Stop, TurnEvent};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Decoder, Heard, Verdict};
use crate::opencode::wire::{Envelope, Event};

/// A recording: its scenario, and its events.
struct Recording {
    scenario: String,
    lines: Vec<String>,
}

static RECORDINGS: LazyLock<Vec<Recording>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/opencode/fixtures/1.18.33");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let lines = text.lines().skip(1).map(str::to_owned).collect();
        Recording { scenario: path.file_stem().unwrap().to_str().unwrap().to_owned(), lines }
    };
    files.iter().map(read).collect()
});

fn event(line: &str) -> Option<Event> {
    serde_json::from_str::<Envelope<'_>>(line).ok()?.payload.event()
}

/// The session of the agent itself: the first that was made.
fn session(lines: &[String]) -> String {
    let made = lines.iter().filter_map(|line| event(line)).find(|it| it.kind == "session.created");
    made.unwrap().about.info.id
}

/// What is heard, and how every turn ends, as the conversation would see it.
fn played(lines: &[String]) -> (Vec<String>, Vec<Stop>) {
    let session = session(lines);
    let mut decoder = Decoder::new(&session);
    let (mut told, mut stops) = (vec![], vec![]);
    let (mut prompt, mut is_over) = (String::new(), true);
    for event in lines.iter().filter_map(|line| event(line)) {
        let info = &event.about.info;
        if event.kind == "message.updated"
            && info.role == "user"
            && event.about.session == session
            && info.id > prompt
        {
            prompt.clone_from(&info.id);
            decoder.begin_turn(prompt.clone());
            is_over = false;
        }
        for heard in decoder.event(&event) {
            if heard == Heard::Idle && !is_over {
                if let Verdict::Over(stop) = decoder.verdict(false) {
                    told.push(format!("{stop:?}"));
                    stops.push(stop);
                    is_over = true;
                }
            } else if !matches!(heard, Heard::Idle | Heard::Busy | Heard::Trouble { .. }) {
                told.push(settled(&heard));
            }
        }
    }
    (told, stops)
}

/// Without what depends on the time at which it is read.
fn settled(heard: &Heard) -> String {
    if let Heard::Event(TurnEvent::Reported(Report::Waited(wait))) = heard {
        return format!("Waited: {} {}", wait.code, wait.attempt);
    }
    format!("{heard:?}")
}

#[test]
fn recordings_are_understood() {
    assert_eq!(RECORDINGS.len(), 9);
    for Recording { scenario, lines } in &*RECORDINGS {
        insta::assert_snapshot!(scenario.clone(), played(lines).0.join("\n"));
    }
}

#[test]
fn every_recorded_turn_ends_once() {
    let done = |text: &str| Stop::Done { text: text.to_owned() };
    for Recording { scenario, lines } in &*RECORDINGS {
        let (_, stops) = played(lines);
        match scenario.as_str() {
            "error" | "retry" => assert!(matches!(stops[..], [Stop::Failed(_)]), "{stops:?}"),
            "interrupt" => assert_eq!(stops, [Stop::Interrupted]),
            "structured" => assert_eq!(stops, [done(r#"{"colour":"blue"}"#)]),
            // Three prompts, a summary, which has no end of its own, and one more prompt.
            "compaction" => assert_eq!(stops, vec![done("Done."); 4]),
            _ => assert_eq!(stops, [done("Done.")], "{scenario}"),
        }
    }
}

#[test]
fn what_is_idle_before_it_began_is_something_else() {
    let idle = |session: &str| {
        let about = json!({ "payload": {
            "type": "session.idle", "properties": { "sessionID": session },
        } });
        event(&about.to_string()).unwrap()
    };
    let mut decoder = Decoder::new("ses_1");
    decoder.begin_turn("msg_2".to_owned());
    assert_eq!(decoder.event(&idle("ses_1")), []);
    let message = |id: &str| {
        let info = json!({ "id": id, "role": "user" });
        let about = json!({ "payload": {
            "type": "message.updated", "properties": { "sessionID": "ses_1", "info": info },
        } });
        event(&about.to_string()).unwrap()
    };
    decoder.event(&message("msg_1"));
    assert_eq!(decoder.event(&idle("ses_1")), [], "an older message");
    decoder.event(&message("msg_2"));
    assert_eq!(decoder.event(&idle("ses_2")), [], "somebody else");
    assert_eq!(decoder.event(&idle("ses_1")), [Heard::Idle]);
}

/// A recorded line with one value somewhere in it replaced by another.
fn damaged(line: &str, place: usize, other: Value) -> String {
    let mut value: Value = serde_json::from_str(line).unwrap();
    let mut pointers = vec![];
    collect(&value, "", &mut pointers);
    let pointer = &pointers[place % pointers.len()];
    *value.pointer_mut(pointer).unwrap() = other;
    value.to_string()
}

fn collect(value: &Value, at: &str, pointers: &mut Vec<String>) {
    pointers.push(at.to_owned());
    let name = |key: &str| key.replace('~', "~0").replace('/', "~1");
    for (key, inner) in value.as_object().into_iter().flatten() {
        collect(inner, &format!("{at}/{}", name(key)), pointers);
    }
    for (place, inner) in value.as_array().into_iter().flatten().enumerate() {
        collect(inner, &format!("{at}/{place}"), pointers);
    }
}

fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({ "id": "msg_0", "role": "assistant" })),
    ]
}

proptest! {
    /// Whatever is damaged, missing, doubled or in another order: nothing panics, and what is idle has
    /// one verdict at most.
    #[test]
    fn damage_is_no_trouble(
        recording in 0_usize..9,
        damages in prop::collection::vec((any::<usize>(), any::<usize>(), anything()), 0..4),
        moves in prop::collection::vec((any::<usize>(), any::<usize>()), 0..6),
        missing in prop::collection::vec(any::<usize>(), 0..4),
    ) {
        let original = &RECORDINGS[recording].lines;
        let session = session(original);
        let mut lines = original.clone();
        for (line, place, other) in damages {
            let line = line % lines.len();
            lines[line] = damaged(&lines[line], place, other);
        }
        for (from, to) in moves {
            let (from, to) = (from % lines.len(), to % lines.len());
            let copy = lines[from].clone();
            lines.insert(to, copy);
            lines.swap(from, to);
        }
        for line in missing {
            lines.remove(line % lines.len());
        }
        let mut decoder = Decoder::new(&session);
        for event in lines.iter().filter_map(|line| event(line)) {
            let heard = decoder.event(&event);
            let idle = heard.iter().filter(|heard| **heard == Heard::Idle).count();
            prop_assert!(idle <= 1);
            let first = decoder.verdict(false);
            if let Verdict::Over(_) = first {
                prop_assert_eq!(&first, &decoder.verdict(true));
            }
            prop_assert!(matches!(decoder.verdict(true), Verdict::Over(_)));
        }
    }
}
