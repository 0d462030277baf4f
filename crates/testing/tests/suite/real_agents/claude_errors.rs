//! How Claude Code's turns fail, and how fast.

use std::time::{Duration, Instant};

use atomic_event::{Report, StepError};
use atomic_testing::conformance::backend::{Heard, exchange, send};
use atomic_testing::model::{ApiError, Break, Ending, Reply, Script, Turn};
use tokio::task::JoinSet;

use super::stand::{Stand, WINDOW, error, in_both_versions, text};

in_both_versions! {
    what_does_not_help_to_try_again_fails_at_once
    what_may_pass_is_tried_again_for_a_while
    a_wait_that_helps_is_told
    missing_credentials_are_told
    a_rate_is_told_by_its_status
}

/// Besides the window: starting the program and its own time between two tries, on a busy machine.
/// By itself the program tries again for minutes.
const SLACK: Duration = Duration::from_secs(60);

/// How many programs fail at once; most of the time they wait.
const AT_ONCE: usize = 8;

fn refusing(status: u16, message: &str) -> Reply {
    let message = (!message.is_empty()).then(|| message.to_owned());
    let error = ApiError { status, kind: None, message, retry_after: None };
    Reply { ending: Ending::Error(error), ..Reply::default() }
}

struct Failed {
    error: StepError,
    heard: Heard,
    after: Duration,
    requests: usize,
}

async fn fail(version: &'static str, reply: Reply) -> Failed {
    let stand = Stand::new(version, Script::new().with(Turn::default().reply(reply)));
    let conversation = stand.open(stand.request()).await;
    let start = Instant::now();
    let (heard, stop) = exchange(conversation.as_ref(), "go").await;
    let after = start.elapsed();
    Failed { error: error(stop), heard, after, requests: stand.server.requests().len() }
}

/// Fails in every way of a table of names, replies, codes and parts of messages, some at once.
async fn fail_all(
    version: &'static str,
    table: Vec<(&'static str, Reply, &'static str, &'static str)>,
) -> Vec<(&'static str, Failed)> {
    let mut left = table.into_iter();
    let mut under_way = JoinSet::new();
    let (mut failures, mut surprises) = (vec![], vec![]);
    loop {
        while under_way.len() < AT_ONCE
            && let Some((name, reply, code, part)) = left.next()
        {
            under_way.spawn(async move { (name, code, part, fail(version, reply).await) });
        }
        let Some(done) = under_way.join_next().await else { break };
        let (name, code, part, failed) = done.unwrap();
        let StepError { code: found, message, .. } = &failed.error;
        if found != code || !message.contains(part) || !message.contains("claude") {
            surprises.push(format!("{name}: {found}: {message}"));
        }
        failures.push((name, failed));
    }
    assert!(surprises.is_empty(), "{surprises:#?}");
    failures
}

async fn what_does_not_help_to_try_again_fails_at_once(version: &'static str) {
    let refusal = Reply { stop: Some("refusal".to_owned()), ..Reply::default() };
    let credit = "Your credit balance is too low to access the Anthropic API.";
    let long = "prompt is too long: 250000 tokens > 200000 maximum";
    let table = vec![
        ("400", refusing(400, "messages.7: is odd"), "rejected", "messages.7: is odd"),
        ("credit", refusing(400, credit), "quota", "redit balance is too low"),
        ("too long", refusing(400, long), "context_overflow", "outgrown"),
        ("403", refusing(403, ""), "login_needed", "log in"),
        ("404", refusing(404, "model: claude-nope"), "model_unknown", "choose another one"),
        ("refusal", refusal, "refused", "refuses"),
    ];
    for (name, failed) in fail_all(version, table).await {
        assert!(failed.after < SLACK, "{name}: {:?}", failed.after);
        let waits = failed.heard.others.iter().filter(|report| matches!(report, Report::Waited(_)));
        assert_eq!(waits.count(), 0, "{name}: {:?}", failed.heard.others);
    }
}

async fn what_may_pass_is_tried_again_for_a_while(version: &'static str) {
    let table = vec![
        ("429", refusing(429, ""), "rate_limited", "limits the rate"),
        ("529", refusing(529, ""), "overloaded", "overloaded"),
        ("500", refusing(500, ""), "unavailable", "cannot be reached or is out of order"),
        ("bad JSON", Reply::broken(Break::BadJson), "unavailable", "cannot be reached"),
        ("empty", Reply::broken(Break::Empty), "unavailable", "cannot be reached"),
        ("page", Reply::broken(Break::Html), "unavailable", "cannot be reached"),
        ("event", Reply::broken(Break::ErrorEvent), "overloaded", "overloaded"),
        ("401", refusing(401, ""), "login_needed", "log in"),
    ];
    for (name, failed) in fail_all(version, table).await {
        assert!(failed.after < WINDOW + SLACK, "{name}: {:?}", failed.after);
        if ["429", "529", "500"].contains(&name) {
            assert!(failed.requests > 1, "{name}: {}", failed.requests);
            let code = &failed.error.code;
            let waited = failed.heard.others.iter().any(
                |report| matches!(report, Report::Waited(w) if w.code == *code && w.attempt == 1),
            );
            assert!(waited, "{name}: {:?}", failed.heard.others);
        }
    }
}

async fn a_wait_that_helps_is_told(version: &'static str) {
    let stand = Stand::new(version, Script::new().with(Turn::default().reply(Reply::error(429))));
    let conversation = stand.open(stand.request()).await;
    for prompt in ["one", "two"] {
        stand.server.replace(Script::new().with(Turn::default().reply(Reply::error(429))));
        let mut listener = send(conversation.as_ref(), prompt).await;
        assert_eq!(listener.until_waited().await, "rate_limited");
        stand.server.replace(Script::new().with(Turn::default().reply(Reply::say("Yes."))));
        let (_, stop) = listener.until_end().await;
        assert_eq!(text(stop), "Yes.");
    }
}

async fn missing_credentials_are_told(version: &'static str) {
    let stand = Stand::with(version, Script::new(), |config| {
        config.env.retain(|(name, _)| name != "ANTHROPIC_API_KEY");
    });
    let conversation = stand.open(stand.request()).await;
    let error = error(exchange(conversation.as_ref(), "go").await.1);
    assert_eq!(error.code, "login_needed", "{}", error.message);
    assert!(stand.server.requests().iter().all(|received| received.method != "POST"));
}

async fn a_rate_is_told_by_its_status(version: &'static str) {
    // While it tries again, the program tells the status and not the words: those of a 429 are never
    // told, because it does not give up by itself.
    let table = [
        ("You have hit your usage limit.", "ANTHROPIC_API_KEY", "rate_limited"),
        ("Slow down.", "CLAUDE_CODE_OAUTH_TOKEN", "rate_limited"),
        ("Slow down.", "ANTHROPIC_API_KEY", "rate_limited"),
    ];
    for (message, credentials, code) in table {
        let script = Script::new().with(Turn::default().reply(refusing(429, message)));
        let stand = Stand::with(version, script, |config| {
            config.env.retain(|(name, _)| name != "ANTHROPIC_API_KEY");
            config.env.push((credentials.to_owned(), "of-no-use-anywhere".to_owned()));
        });
        let conversation = stand.open(stand.request()).await;
        let error = error(exchange(conversation.as_ref(), "go").await.1);
        assert_eq!(error.code, code, "{message} {credentials}: {}", error.message);
    }
}
