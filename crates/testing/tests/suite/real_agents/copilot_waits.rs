//! GitHub Copilot, when its provider does not answer: what is told of it, and until when.

use std::num::NonZeroUsize;
use std::time::Duration;

use atomic_backend::PROVIDER_PATIENCE;
use atomic_testing::conformance::backend::{exchange, send};
use atomic_testing::model::{ApiError, Break, Ending, Reply, Script, Turn};

use super::copilot_stand::Stand;
use super::serving_stand::{refusing, retry_at, saying, when};
use super::stand::{error, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trouble_has_its_status_and_the_time_that_words_name() {
    let overflow = ApiError {
        status: 400,
        kind: Some("context_length_exceeded".to_owned()),
        message: Some("Too much.".to_owned()),
        retry_after: None,
    };
    let overflow = Reply { ending: Ending::Error(overflow), ..Reply::default() };
    let later = "Please try again in 10 minutes.";
    // The program does not say what is in `retry-after`.
    let table = [
        ("header", refusing(429, "Slow down.", Some(600)), "rate_limited", Some((429, false))),
        ("words", refusing(429, later, None), "rate_limited", Some((429, true))),
        ("both", refusing(529, later, Some(600)), "overloaded", Some((529, true))),
        ("outage", refusing(503, "Down.", Some(600)), "unavailable", Some((503, false))),
        ("quota", refusing(429, "You exceeded your quota.", Some(600)), "quota", None),
        ("large", overflow, "context_overflow", None),
        ("larger", refusing(413, "", None), "context_overflow", None),
    ];
    let script = table.iter().fold(Script::new(), |script, (prompt, reply, ..)| {
        script.with(when(&format!("go: {prompt}.")).reply(reply.clone()))
    });
    let stand = Stand::with(script, PROVIDER_PATIENCE);
    for (prompt, _, code, outage) in table {
        let conversation = stand.open(stand.request(prompt)).await;
        let prompt = format!("go: {prompt}.");
        let error = error(exchange(conversation.as_ref(), &prompt).await.1);
        assert_eq!(error.code, code, "{prompt} {error:?}");
        assert_eq!(error.outage.map(|it| it.status), outage.map(|(status, _)| Some(status)));
        if outage.is_some_and(|(_, has_time)| has_time) {
            retry_at(&error, Duration::from_secs(600));
        } else {
            assert_eq!(error.outage.and_then(|it| it.retry_at_ms), None, "{prompt}");
        }
        // A prompt that is too large the program tries to make smaller.
        if code != "context_overflow" {
            assert_eq!(stand.times_asked(&prompt), 1, "{prompt}");
        }
        conversation.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_cut_off_is_typed_once() {
    let whole = "One half of it, and the other.";
    let cut = Reply {
        ending: Ending::Broken(Break::Cut),
        chunk: NonZeroUsize::new(4),
        ..Reply::say(whole)
    };
    let stand = Stand::with(Script::new().with(Turn::default().reply(cut)), PROVIDER_PATIENCE);
    let conversation = stand.open(stand.request("cut")).await;
    let mut turn = send(conversation.as_ref(), "go").await;
    assert_eq!(turn.until_waited().await, "unavailable");
    stand.model.replace(saying(whole));
    let (heard, stop) = turn.until_end().await;
    assert_eq!((text(stop).as_str(), heard.typed.concat().as_str()), (whole, whole));
}
