//! How long Claude Code's processes and conversations live, and what they cost.

use atomic_backend::claude::ClaudeConfig;
use atomic_backend::{Backend as _, Conversation, OpenRequest};
use atomic_event::{Stop, Usage};
use atomic_testing::agents::CLAUDE;
use atomic_testing::conformance::backend::{Heard, exchange, in_time, send};
use atomic_testing::model::{self, Ending, Reply, Script, Turn};

use super::stand::{Stand, backend, config, in_both_versions, stand_in, text};

in_both_versions! {
    a_conversation_that_rests_keeps_its_process
    a_conversation_is_held_once
    what_was_spent_is_counted_once
    an_interrupted_program_stays
}

fn saying(text: &str) -> Script {
    Script::new().with(Turn::default().reply(Reply::say(text)))
}

async fn rest(conversation: Box<dyn Conversation>) {
    in_time("resting", conversation.rest()).await;
}

async fn a_conversation_that_rests_keeps_its_process(version: &str) {
    let stand = Stand::new(version, saying("Yes."));
    let conversation = stand.open(stand.request()).await;
    exchange(conversation.as_ref(), "one").await;
    let (id, process) = (conversation.id(), stand.process());
    rest(conversation).await;
    assert_eq!(stand.process(), process);

    let conversation = stand.open(stand.resume(id.clone())).await;
    assert_eq!(text(exchange(conversation.as_ref(), "two").await.1), "Yes.");
    assert_eq!(stand.process(), process, "the same process goes on");
    rest(conversation).await;

    let system_prompt = "You are somebody else.".to_owned();
    let request = OpenRequest { system_prompt, ..stand.resume(id.clone()) };
    let conversation = stand.open(request).await;
    assert_eq!(conversation.id(), id);
    assert_eq!(text(exchange(conversation.as_ref(), "three").await.1), "Yes.");
    assert_ne!(stand.process(), process, "somebody else is another process");
    let body = stand.asked("three").body.to_string();
    assert!(body.contains("You are somebody else.") && body.contains("two"), "{body}");
    assert!(!body.contains("You are part of a test."), "{body}");
    rest(conversation).await;
    assert_eq!(stand.processes().len(), 1);

    in_time("ending what rests", stand.backend.end_resting()).await;
    assert!(stand.processes().is_empty());
}

async fn a_conversation_is_held_once(version: &str) {
    let stand = Stand::new(version, saying("Yes."));
    let conversation = stand.open(stand.request()).await;
    exchange(conversation.as_ref(), "one").await;
    let id = conversation.id();
    let second = stand.try_open(stand.resume(id.clone())).await;
    let error = second.map(drop).unwrap_err();
    assert_eq!(error.code(), "misused");
    assert!(error.to_string().contains("is open already"), "{error}");
    assert_eq!(text(exchange(conversation.as_ref(), "two").await.1), "Yes.");
    assert_eq!(stand.processes().len(), 1);
    in_time("closing", conversation.close()).await;
    assert!(stand.processes().is_empty());
    let conversation = stand.open(stand.resume(id)).await;
    assert_eq!(text(exchange(conversation.as_ref(), "three").await.1), "Yes.");
}

async fn an_interrupted_program_stays(version: &str) {
    let hang = Reply { ending: Ending::Hang, ..Reply::say("Well") };
    let hang = Turn { absent: vec!["on".to_owned()], ..Turn::default().reply(hang) };
    let script = Script::new().with(hang).with(Turn::default().reply(Reply::say("Yes.")));
    let stand = Stand::new(version, script);
    let conversation = stand.open(stand.request()).await;
    let process = stand.process();
    for at_once in [true, true, false] {
        let mut listener = send(conversation.as_ref(), "hang").await;
        if !at_once {
            listener.until_typed().await;
        }
        in_time("interrupting", conversation.interrupt()).await;
        assert_eq!(listener.until_end().await.1, Stop::Interrupted);
        assert_eq!(text(exchange(conversation.as_ref(), "go on").await.1), "Yes.");
        assert_eq!(stand.process(), process, "at once: {at_once}");
    }
}

/// What one turn cost: what was read, what was written, and the money.
fn spent(heard: &Heard) -> (u64, u64, f64) {
    let sum = |part: fn(&Usage) -> u64| heard.spent.iter().map(part).sum();
    let money = heard.spent.iter().filter_map(|usage| usage.cost_usd).sum();
    (sum(|usage| usage.input_tokens), sum(|usage| usage.output_tokens), money)
}

async fn what_was_spent_is_counted_once(version: &str) {
    let usage = model::Usage {
        input: Some(1_000),
        output: Some(100),
        cache_read: Some(500),
        cache_write: Some(200),
    };
    let reply = Reply { usage, ..Reply::say("Yes.") };
    let stand = Stand::new(version, Script::new().with(Turn::default().reply(reply)));
    let mut conversation = stand.open(stand.request()).await;
    let id = conversation.id();
    let mut first = None;
    for turn in 0..5 {
        if turn == 3 {
            // Another process takes the conversation up, and goes on counting where it was.
            in_time("closing", conversation.close()).await;
            conversation = stand.open(stand.resume(id.clone())).await;
        }
        let (heard, _) = exchange(conversation.as_ref(), &format!("turn {turn}")).await;
        let (input, output, money) = spent(&heard);
        assert_eq!((input, output), (1_700, 100), "turn {turn}");
        let first = *first.get_or_insert(money);
        assert!(money > 0.0 && (money - first).abs() < 1e-9, "turn {turn}: {money} and {first}");
        let last = heard.spent.last().unwrap();
        assert!(last.context_tokens.is_some_and(|filled| (1_700..=1_800).contains(&filled)));
        assert!(last.context_window.is_some_and(|window| window >= 100_000), "{last:?}");
    }
}

#[tokio::test]
async fn a_program_that_says_no_version_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let program = stand_in(folder.path(), "surprise");
    let backend = backend(ClaudeConfig { program, ..config(CLAUDE, vec![]) });
    let request = OpenRequest::new("worker", folder.path().to_owned(), "real/x/1".to_owned());
    let error = in_time("opening", backend.open(request)).await.map(drop).unwrap_err();
    assert_eq!(error.code(), "garbled");
    assert!(error.to_string().contains("surprise"), "{error}");
}

#[tokio::test]
async fn root_needs_a_sandbox() {
    let stand = Stand::with(CLAUDE, saying("Yes."), |config| {
        config.sandbox = false;
        config.env.retain(|(name, _)| name != "IS_SANDBOX");
    });
    let opened = stand.try_open(stand.request()).await;
    if rustix::process::geteuid().is_root() {
        let error = opened.map(drop).unwrap_err();
        assert_eq!(error.code(), "misconfigured");
        assert!(error.to_string().contains("--sandbox"), "{error}");
        assert!(error.to_string().contains("config set --user sandbox true"), "{error}");
        assert!(stand.processes().is_empty());
    } else {
        assert_eq!(text(exchange(opened.unwrap().as_ref(), "go").await.1), "Yes.");
    }
}
