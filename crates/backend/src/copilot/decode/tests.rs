//! The decoder on recorded messages (`cargo xtask record copilot`), on odd ones, and on damaged ones.

use std::sync::LazyLock;

use atomic_event::{Report, Stop, TurnEvent};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Decoder, Heard};
use crate::copilot::wire::{Event, Message, Notice, What};
use crate::recordings::{self, Recording};

static RECORDINGS: LazyLock<Vec<Recording>> = LazyLock::new(|| recordings::of("copilot"));

fn notice(line: &str) -> Option<Notice<'_>> {
    let message: Message<'_> = serde_json::from_str(line).ok()?;
    serde_json::from_str(message.params?.get()).ok()
}

fn event(line: &str) -> Option<Event> {
    notice(line)?.event.event()
}

/// An event of the agent itself.
fn made(kind: &str, data: &Value) -> Event {
    let about = json!({ "type": kind, "data": data });
    let notice = json!({ "params": { "sessionId": "s", "event": about } });
    event(&notice.to_string()).unwrap()
}

/// What is heard, as the conversation would hear it.
fn played(lines: &[String]) -> Vec<Heard> {
    let mut decoder = Decoder::default();
    let mut heard = vec![];
    for notice in lines.iter().filter_map(|line| notice(line)) {
        if notice.event.r#type == "user.message" && notice.event.agent_id.is_none() {
            decoder.begin_turn();
        }
        heard.extend(notice.event.event().into_iter().flat_map(|event| decoder.event(&event)));
    }
    heard
}

fn stops(heard: &[Heard]) -> Vec<&Stop> {
    let mut stops = vec![];
    for heard in heard {
        if let Heard::Ended(stop) = heard {
            stops.push(stop);
        }
    }
    stops
}

fn codes<'a>(stops: &[&'a Stop]) -> Vec<&'a str> {
    let mut codes = vec![];
    for stop in stops {
        codes.push(if let Stop::Failed(error) = stop { error.code.as_str() } else { "" });
    }
    codes
}

#[test]
fn recordings_are_understood() {
    assert_eq!(RECORDINGS.len(), 18);
    for Recording { scenario, lines, .. } in &*RECORDINGS {
        let heard: Vec<_> = played(lines).iter().map(|heard| format!("{heard:?}")).collect();
        insta::assert_snapshot!(scenario.clone(), heard.join("\n"));
    }
}

#[test]
fn every_recorded_turn_ends_once() {
    let done = |text: &str| Stop::Done { text: text.to_owned() };
    for Recording { scenario, lines, .. } in &*RECORDINGS {
        let heard = played(lines);
        let stops = stops(&heard);
        match scenario.as_str() {
            "error" => assert_eq!(codes(&stops), ["rejected"]),
            "retry" => assert_eq!(codes(&stops), ["rate_limited"]),
            "far" => assert_eq!(codes(&stops), ["rate_limited"]),
            "failing" | "cut" => assert_eq!(codes(&stops), ["unavailable"]),
            "overloaded" => assert_eq!(codes(&stops), ["overloaded"]),
            "quota-reset" => assert_eq!(codes(&stops), ["quota"]),
            "overflow" | "overflow-code" => assert_eq!(codes(&stops), ["context_overflow"]),
            "interrupt" => assert_eq!(stops, [&Stop::Interrupted]),
            "structured" => assert_eq!(stops, [&done(r#"{"colour":"blue"}"#)]),
            "thinking" => assert_eq!(stops, [&done("Yes.")]),
            // Three prompts, a summary, which has no end of its own, and one more prompt.
            "compaction" => assert_eq!(stops, [&done("Done."); 4]),
            _ => assert_eq!(stops, [&done("Done.")], "{scenario}"),
        }
    }
}

/// New versions say more, and more often.
#[test]
fn what_is_not_known_changes_nothing() {
    let news = json!({ "method": "session.event", "params": {
        "sessionId": "s", "event": { "type": "quite.new", "data": [7], "agentId": "a" },
    } });
    for Recording { scenario, lines, .. } in &*RECORDINGS {
        let more = lines.iter().flat_map(|line| {
            let mut message: Value = serde_json::from_str(line).unwrap();
            for place in ["", "/params", "/params/event", "/params/event/data"] {
                if let Some(object) = message.pointer_mut(place).and_then(Value::as_object_mut) {
                    object.insert("quiteNew".to_owned(), json!({ "type": ["session.idle"] }));
                }
            }
            [news.to_string(), message.to_string()]
        });
        assert_eq!(played(&more.collect::<Vec<_>>()), played(lines), "{scenario}");
    }
}

#[test]
fn events_that_nobody_reads_are_not_looked_into() {
    let history = r#"[{"role":"user","content":"\u005cud800 is no text"#;
    for kind in ["system.message", "model.messages_snapshot", "assistant.tool_call_delta", ""] {
        let line = format!(
            r#"{{"method":"session.event","params":{{"sessionId":"s","event":{{"type":"{kind}","data":{history}","n":1e999}}]}}}}}}"#
        );
        assert!(notice(&line).is_some_and(|notice| notice.event.event().is_none()), "{line}");
    }
}

#[test]
fn a_text_that_came_whole_is_typed_once() {
    let mut decoder = Decoder::default();
    let message = made("assistant.message", &json!({ "content": "Hello.", "toolRequests": [] }));
    let typed = |heard: &[Heard]| {
        heard.iter().filter(|it| matches!(it, Heard::Event(TurnEvent::Typed { .. }))).count()
    };
    assert_eq!(typed(&decoder.event(&message)), 1);
    let piece = made("assistant.message_delta", &json!({ "deltaContent": "Hello." }));
    assert_eq!((typed(&decoder.event(&piece)), typed(&decoder.event(&message))), (1, 0));
    // The half of an answer that was cut off is not typed twice, also where the whole comes at once.
    let half = made("assistant.message_delta", &json!({ "deltaContent": "Hel" }));
    let retry = made("assistant.turn_retry", &json!({ "reason": "streaming_error" }));
    decoder.event(&half);
    decoder.event(&retry);
    let rest = TurnEvent::Typed { text: "lo.".to_owned() };
    let said = TurnEvent::Reported(Report::Said { text: "Hello.".to_owned() });
    let heard = [Heard::Answering, Heard::Event(rest), Heard::Event(said)];
    assert_eq!(decoder.event(&message), heard);
    // Another answer begins after a note.
    decoder.event(&piece);
    decoder.event(&retry);
    let other = made("assistant.message_delta", &json!({ "deltaContent": "Good day." }));
    let heard = decoder.event(&other);
    assert!(
        matches!(&heard[..], [Heard::Event(TurnEvent::Typed { text })]
            if text.ends_with("(The answer was cut off and starts again.)\n\nGood day.")),
        "{heard:?}"
    );
}

/// An answer with thoughts in between comes in parts, whose pieces all came before.
#[test]
fn an_answer_in_parts_is_one_text() {
    let mut decoder = Decoder::default();
    let piece = made("assistant.message_delta", &json!({ "deltaContent": "One. Two." }));
    let part = |text: &str, place: u64| {
        let about =
            json!({ "content": text, "toolRequests": [], "chunkIndex": place, "chunkCount": 2 });
        made("assistant.message", &about)
    };
    let idle = made("session.idle", &json!({}));
    let heard: Vec<Heard> = [piece, part("One. ", 0), part("Two.", 1), idle.clone()]
        .iter()
        .flat_map(|event| decoder.event(event))
        .collect();
    let typed = heard.iter().filter(|it| matches!(it, Heard::Event(TurnEvent::Typed { .. })));
    assert_eq!(typed.count(), 1, "{heard:?}");
    assert_eq!(stops(&heard), [&Stop::Done { text: "One. Two.".to_owned() }]);
    // The next answer of the same turn takes its place.
    let mut decoder = Decoder::default();
    let whole = made("assistant.message", &json!({ "content": "Three.", "toolRequests": [] }));
    let heard: Vec<Heard> = [part("One. ", 0), part("Two.", 1), whole, idle]
        .iter()
        .flat_map(|event| decoder.event(event))
        .collect();
    assert_eq!(stops(&heard), [&Stop::Done { text: "Three.".to_owned() }]);
}

/// A refusal is one by the provider's word, not by the agent's words.
#[test]
fn what_is_said_about_refusals_is_none() {
    for (is_refused, code) in [(false, ""), (true, "refused")] {
        let mut decoder = Decoder::default();
        let about = json!({ "inputTokens": 1, "contentFilterTriggered": is_refused });
        let words =
            json!({ "content": "No longer blocked by content filtering.", "toolRequests": [] });
        let events =
            [("assistant.usage", about), ("assistant.message", words), ("session.idle", json!({}))];
        let events = events.map(|(kind, about)| made(kind, &about));
        let heard: Vec<Heard> = events.iter().flat_map(|event| decoder.event(event)).collect();
        assert_eq!(codes(&stops(&heard)), [code]);
    }
}

/// A call that failed while a helper was at work is got over by the answer after it.
#[test]
fn an_answer_after_an_error_counts() {
    let mut decoder = Decoder::default();
    let events = [
        ("session.error", json!({ "errorType": "query", "message": "no", "statusCode": 500 })),
        ("assistant.message", json!({ "content": "Yes.", "toolRequests": [] })),
        ("session.idle", json!({})),
    ];
    let events = events.map(|(kind, about)| made(kind, &about));
    let heard: Vec<Heard> = events.iter().flat_map(|event| decoder.event(event)).collect();
    assert_eq!(stops(&heard), [&Stop::Done { text: "Yes.".to_owned() }]);
}

/// The one who pays is told, whether the summary is of use or not.
#[test]
fn a_summary_costs_something() {
    let used = json!({ "inputTokens": 100, "cacheReadTokens": 90, "outputTokens": 10 });
    for (success, reports) in [(true, 2), (false, 1)] {
        let about = json!({ "success": success, "compactionTokensUsed": used });
        let heard = Decoder::default().event(&made("session.compaction_complete", &about));
        let Some(Heard::Event(TurnEvent::Reported(Report::Spent(usage)))) = heard.first() else {
            panic!("{heard:?}");
        };
        assert_eq!((usage.input_tokens, usage.output_tokens), (100, 10));
        assert_eq!((usage.context_tokens, heard.len()), (None, reports));
    }
}

#[test]
fn figures_too_large_to_add_are_no_trouble() {
    let most = u64::MAX;
    let usage = json!({ "inputTokens": most, "outputTokens": most, "cacheWriteTokens": most });
    let heard = Decoder::default().event(&made("assistant.usage", &usage));
    let [Heard::Event(TurnEvent::Reported(Report::Spent(usage)))] = &heard[..] else {
        panic!("{heard:?}");
    };
    assert_eq!((usage.input_tokens, usage.output_tokens), (most, most));
    assert_eq!(usage.context_tokens, Some(most));
}

proptest! {
    /// Whatever is damaged, missing, doubled or in another order: nothing panics, and a turn ends
    /// when the session is idle, and at no other time.
    #[test]
    fn damage_is_no_trouble((_, lines) in recordings::disturbed(&RECORDINGS)) {
        let mut decoder = Decoder::default();
        for event in lines.iter().filter_map(|line| event(line)) {
            let heard = decoder.event(&event);
            let is_end = matches!(event.what, What::Idle(_));
            prop_assert_eq!(stops(&heard).len(), usize::from(is_end));
        }
    }
}
