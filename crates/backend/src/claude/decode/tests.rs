//! The decoder on recorded lines (`cargo xtask record claude`), on odd ones, and on damaged ones.

use std::sync::LazyLock;

use atomic_event::{Report, Stop, TurnEvent};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Decoder, Heard};
use crate::recordings::{self, Recording};

static RECORDINGS: LazyLock<Vec<Recording>> = LazyLock::new(|| recordings::of("claude"));

fn hear(decoder: &mut Decoder, line: &Value) -> Vec<Heard> {
    decoder.line(&line.to_string())
}

#[test]
fn recordings_are_understood() {
    assert_eq!(RECORDINGS.len(), 30, "two versions of 15 scenarios");
    for Recording { version, scenario, lines } in &*RECORDINGS {
        let mut decoder = Decoder::default();
        let heard: Vec<String> = lines
            .iter()
            .flat_map(|line| decoder.line(line))
            // What the program says of itself is long, and no business of the decoder.
            .filter(
                |heard| !matches!(heard, Heard::Replied { response: Ok(v), .. } if v.is_object()),
            )
            .map(|heard| format!("{heard:?}"))
            .collect();
        insta::assert_snapshot!(format!("{scenario}_{version}"), heard.join("\n"));
    }
}

#[test]
fn every_recorded_turn_ends_once_at_its_result() {
    for Recording { version, scenario, lines } in &*RECORDINGS {
        let mut decoder = Decoder::default();
        let results = lines.iter().filter(|line| line.contains(r#""type":"result""#)).count();
        let heard: Vec<_> = lines.iter().flat_map(|line| decoder.line(line)).collect();
        let ends = heard.iter().filter(|heard| matches!(heard, Heard::Ended(_))).count();
        assert_eq!(ends, results, "{version} {scenario}");
        assert!(ends > 0 && !heard.contains(&Heard::Garbled), "{version} {scenario}");
    }
}

/// Lines as 2.1.325 has said them, with another time.
#[test]
fn a_limit_of_the_account_is_a_quota_with_its_end() {
    let info = |status: &str, resets_at: &Value| {
        let info = json!({ "status": status, "resetsAt": resets_at, "rateLimitType": "five_hour" });
        json!({ "type": "rate_limit_event", "rate_limit_info": info })
    };
    let (far, past) = (json!(4_000_000_000_u64), json!(1_000_000_000));
    let table = [
        (info("rejected", &far), "quota", Some(4_000_000_000_000)),
        (info("rejected", &past), "rate_limited", None),
        (info("rejected", &Value::Null), "rate_limited", None),
        (info("allowed_warning", &far), "rate_limited", None),
        (info("quite_new", &far), "rate_limited", None),
    ];
    for (line, code, retry_at_ms) in table {
        let mut decoder = Decoder::default();
        assert_eq!(hear(&mut decoder, &line), []);
        // It is told once, and holds for later turns.
        decoder.begin_turn();
        let retry = json!({ "type": "system", "subtype": "api_retry", "attempt": 1,
            "retry_delay_ms": 7_199_239, "error_status": 429, "error": "rate_limit" });
        let heard = hear(&mut decoder, &retry);
        let Heard::Trouble { trouble, delay_ms } = &heard[0] else { panic!("{heard:?}") };
        assert_eq!((trouble.kind.code(), *delay_ms), (code, 7_199_239), "{line}");
        assert_eq!(trouble.outage.retry_at_ms, retry_at_ms, "{line}");
        assert_eq!(trouble.outage.status, Some(429));
        let result = json!({ "type": "result", "subtype": "success", "is_error": true,
            "api_error_status": 429, "result": "You've hit your session limit · resets 1:24am (UTC)" });
        let heard = hear(&mut decoder, &result);
        let Some(Heard::Ended(Stop::Failed(error))) = heard.last() else { panic!("{heard:?}") };
        assert_eq!(error.code, code, "{line}");
        assert_eq!(error.outage.and_then(|outage| outage.retry_at_ms), retry_at_ms, "{line}");
    }
}

#[test]
fn a_remark_without_words_is_none() {
    let mut decoder = Decoder::default();
    let mut said = |text: &str| {
        let line = json!({"type": "system", "subtype": "informational", "content": text});
        hear(&mut decoder, &line).len()
    };
    assert_eq!((said(""), said(" \n"), said("a word")), (0, 0, 1));
}

#[test]
fn what_is_not_known_is_passed_over() {
    let mut decoder = Decoder::default();
    for line in [
        json!({}),
        json!({ "type": "quite_new", "message": 7 }),
        json!({ "type": 7 }),
        json!({ "type": "system" }),
        json!({ "type": "system", "subtype": "quite_new", "message": { "a": 1 } }),
        json!({ "type": "system", "subtype": "permission_denied", "message": "No." }),
        json!({ "type": "system", "subtype": "compact_boundary", "compact_metadata": 7 }),
        json!({ "type": "system", "subtype": "task_started" }),
        json!({ "type": "system", "subtype": "task_notification", "tool_use_id": "unknown" }),
        json!({ "type": "user" }),
        json!({ "type": "user", "message": { "content": "a text" } }),
        json!({ "type": "user", "message": { "content": [{ "tool_use_id": "unknown" }, 7] } }),
        json!({ "type": "stream_event", "event": { "type": "ping" } }),
        json!({ "type": "stream_event", "event": "odd" }),
        json!({ "type": "assistant", "message": "a text" }),
        json!({ "type": "keep_alive" }),
    ] {
        assert_eq!(hear(&mut decoder, &line), [], "{line}");
    }
    assert_eq!(decoder.line(""), []);
    assert_eq!(decoder.line("  \n"), []);
    let speaks = json!({ "type": "assistant", "message": { "content": [
        { "type": "quite_new" },
        { "type": "tool_use", "name": "Bash" },
        { "type": "text" },
        7,
    ] } });
    assert_eq!(hear(&mut decoder, &speaks), [Heard::Answering]);
}

#[test]
fn what_is_no_object_is_no_line_of_the_protocol() {
    for line in ["no JSON", "{", "[]", "7", "null", "\"text\"", "{\"type\":\"result\"", "\u{fffd}"]
    {
        assert_eq!(Decoder::default().line(line), [Heard::Garbled], "{line}");
    }
}

#[test]
fn a_result_of_any_shape_ends_the_turn() {
    for line in [
        json!({ "type": "result" }),
        json!({ "type": "result", "subtype": 7, "is_error": "yes" }),
        json!({ "type": "result", "subtype": "success", "errors": "text", "is_error": false }),
        json!({ "type": "result", "subtype": "success", "modelUsage": [1, "a"] }),
        json!({ "type": "result", "subtype": "success", "modelUsage": { "m": 7 } }),
        json!({ "type": "result", "subtype": "quite_new", "errors": [{ "a": 1 }, null] }),
        json!({ "type": "result", "api_error_status": "odd", "total_cost_usd": "free" }),
        json!({ "type": "result", "api_error_status": 70_000 }),
    ] {
        let heard = hear(&mut Decoder::default(), &line);
        assert!(matches!(heard.last(), Some(Heard::Ended(_))), "{line}: {heard:?}");
    }
    let line = json!({
        "type": "result", "subtype": "success", "is_error": false, "result": "Done.", "errors": 7,
    });
    let done = Heard::Ended(Stop::Done { text: "Done.".to_owned() });
    assert_eq!(hear(&mut Decoder::default(), &line), [done]);
}

#[test]
fn the_end_waits_for_the_word_that_nothing_more_comes() {
    let state = |state: &str| json!({ "type": "system", "subtype": "session_state_changed", "state": state });
    let result = json!({ "type": "result", "subtype": "success", "result": "Done." });
    let mut decoder = Decoder::default();
    assert_eq!(hear(&mut decoder, &state("running")), []);
    assert_eq!(hear(&mut decoder, &result), []);
    assert_eq!(hear(&mut decoder, &state("running")), []);
    let done = Heard::Ended(Stop::Done { text: "Done.".to_owned() });
    assert_eq!(hear(&mut decoder, &state("idle")), [done]);
    assert_eq!(hear(&mut decoder, &state("idle")), []);
}

#[test]
fn a_turn_that_was_cancelled_before_it_began_has_ended() {
    let reply = |response: Value| {
        let response = json!({ "subtype": "success", "request_id": "r", "response": response });
        json!({ "type": "control_response", "response": response })
    };
    let ends = |response: Value| {
        let heard = hear(&mut Decoder::default(), &reply(response));
        heard.into_iter().filter(|heard| matches!(heard, Heard::Ended(_))).collect::<Vec<_>>()
    };
    let cancelled = json!({ "still_queued": [], "cancelled": ["u"] });
    assert_eq!(ends(cancelled), [Heard::Ended(Stop::Interrupted)]);
    assert_eq!(ends(json!({ "still_queued": [], "cancelled": [] })), []);
    assert_eq!(ends(json!({ "cancelled": "odd" })), []);
    assert_eq!(ends(Value::Null), []);
}

#[test]
fn a_line_may_be_long() {
    let text = "a word ".repeat(450_000);
    let line = json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": text }] } });
    let said = Heard::Event(TurnEvent::Reported(Report::Said { text }));
    assert_eq!(hear(&mut Decoder::default(), &line), [Heard::Answering, said]);
    let input = json!({ "command": "x".repeat(3_000_000) });
    let call = json!({ "type": "tool_use", "id": "t", "name": "Bash", "input": input });
    let line = json!({ "type": "assistant", "message": { "content": [call] } });
    let heard = hear(&mut Decoder::default(), &line);
    assert!(format!("{heard:?}").len() < 500, "only a summary is told");
}

#[test]
fn requests_that_lack_something_are_still_answered() {
    let request = |request: Value| json!({ "type": "control_request", "request_id": "r", "request": request });
    let id = || "r".to_owned();
    let table = [
        (json!({}), Heard::Unsupported { request: id(), what: String::new() }),
        (
            json!({ "subtype": "elicitation" }),
            Heard::Unsupported { request: id(), what: "elicitation".to_owned() },
        ),
        (
            json!({ "subtype": "can_use_tool", "tool_name": "AskUserQuestion" }),
            Heard::Asked { request: id(), questions: vec![], input: Value::Null },
        ),
        (
            json!({ "subtype": "can_use_tool" }),
            Heard::LeaveWanted { request: id(), input: Value::Null },
        ),
        (
            json!({ "subtype": "hook_callback" }),
            Heard::ToolWanted {
                request: id(),
                tool: String::new(),
                input: Value::Null,
                helper: None,
            },
        ),
        (
            json!({ "subtype": "hook_callback", "input": {
                "tool_name": "Bash", "tool_input": 7, "agent_type": "scout",
            } }),
            Heard::ToolWanted {
                request: id(),
                tool: "Bash".to_owned(),
                input: json!(7),
                helper: Some("scout".to_owned()),
            },
        ),
    ];
    for (wish, expected) in table {
        assert_eq!(hear(&mut Decoder::default(), &request(wish)), [expected]);
    }
}

#[test]
fn figures_too_large_to_add_are_no_trouble() {
    let most = u64::MAX;
    let usage = json!({ "input_tokens": most, "output_tokens": most });
    let speaks = json!({ "type": "assistant", "message": { "content": [], "usage": usage } });
    let mut decoder = Decoder::default();
    assert_eq!(hear(&mut decoder, &speaks), [Heard::Answering]);
    let model = json!({ "inputTokens": most, "cacheReadInputTokens": most, "outputTokens": most });
    let line = json!({ "type": "result", "modelUsage": { "a": model, "b": model } });
    let heard = hear(&mut decoder, &line);
    let Some(Heard::Event(TurnEvent::Reported(Report::Spent(usage)))) = heard.first() else {
        panic!("{heard:?}");
    };
    assert_eq!((usage.input_tokens, usage.output_tokens), (most, most));
    assert_eq!(usage.context_tokens, Some(most));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        Decoder::default().line(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_damaged_recording_makes_it_panic(
        (_, lines) in recordings::disturbed(&RECORDINGS),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut decoder = Decoder::default();
        for line in &lines {
            decoder.line(line);
        }
        let line = &lines[cut.index(lines.len())];
        let end = line.floor_char_boundary(cut.index(line.len().max(1)));
        decoder.line(&line[..end]);
    }
}
