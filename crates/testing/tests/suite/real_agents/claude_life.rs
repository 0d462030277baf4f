//! How long Claude Code's processes and conversations live.

use atomic_backend::claude::ClaudeConfig;
use atomic_backend::{Backend as _, Conversation, OpenRequest};
use atomic_event::Stop;
use atomic_testing::agents::CLAUDE;
use atomic_testing::conformance::backend::{exchange, in_time, send};
use atomic_testing::model::{Ending, Reply, Script, Turn};

use super::stand::{Stand, backend, config, in_both_versions, stand_in, text};

in_both_versions! {
    a_conversation_that_rests_keeps_its_process
    a_conversation_is_held_once
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
async fn root_has_to_be_allowed() {
    let stand = Stand::with(CLAUDE, saying("Yes."), |config| {
        config.allow_root = false;
        config.env.retain(|(name, _)| name != "IS_SANDBOX");
    });
    let opened = stand.try_open(stand.request()).await;
    if rustix::process::geteuid().is_root() {
        let error = opened.map(drop).unwrap_err();
        assert_eq!(error.code(), "misconfigured");
        assert!(error.to_string().contains("--allow-root"), "{error}");
        assert!(stand.processes().is_empty());
    } else {
        assert_eq!(text(exchange(opened.unwrap().as_ref(), "go").await.1), "Yes.");
    }
}
