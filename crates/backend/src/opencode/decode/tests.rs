//! The decoder on recorded events (`cargo xtask record opencode`), and on damaged ones.

use std::sync::LazyLock;

use atomic_event::{Report, Stop, TurnEvent};
use proptest::prelude::*;
use serde_json::json;

use super::{Decoder, Heard, Verdict};
use crate::opencode::wire::{Envelope, Event};
use crate::recordings::{self, Recording};

static RECORDINGS: LazyLock<Vec<Recording>> = LazyLock::new(|| recordings::of("opencode"));

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
    assert_eq!(RECORDINGS.len(), 15);
    for Recording { scenario, lines, .. } in &*RECORDINGS {
        insta::assert_snapshot!(scenario.clone(), played(lines).0.join("\n"));
    }
}

#[test]
fn every_recorded_turn_ends_once() {
    let done = |text: &str| Stop::Done { text: text.to_owned() };
    for Recording { scenario, lines, .. } in &*RECORDINGS {
        let (_, stops) = played(lines);
        match scenario.as_str() {
            "error" | "retry" | "overflow-code" => {
                assert!(matches!(stops[..], [Stop::Failed(_)]), "{stops:?}");
            }
            // Stopped while the program waited: it says no more than that it is idle.
            "far" | "failing" | "overloaded" | "quota-reset" | "cut" => {
                assert_eq!(stops, [], "{scenario}");
            }
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

proptest! {
    /// Whatever is damaged, missing, doubled or in another order: nothing panics, and what is idle has
    /// one verdict at most.
    #[test]
    fn damage_is_no_trouble((recording, lines) in recordings::disturbed(&RECORDINGS)) {
        let session = session(&RECORDINGS[recording].lines);
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
