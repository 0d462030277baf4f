//! GitHub Copilot with many conversations: one program carries them all.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_backend::Backend as _;
use atomic_event::Answer;
use atomic_testing::agents::{COPILOT, CopilotHome, program};
use atomic_testing::conformance::backend::{in_time, request, send};
use atomic_testing::model::{ModelServer, Reply, Script, Turn};
use serde_json::json;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::copilot::{WINDOW, backend};
use super::stand::text;

const MANY: usize = 32;

/// Every agent asks something, and nobody answers before all have asked: so all turns are under way
/// at once, whatever the machine does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_turns_at_once_on_one_program() {
    let ask = |number| Reply::call("ask_user", json!({ "question": question(number) }));
    let turn = |number| Turn::default().user(&prompt(number)).reply(ask(number));
    let script = (0..MANY).fold(Script::new(), |script, number| {
        script.with(turn(number).reply(Reply::say(&answer(number))))
    });
    let model = ModelServer::start(script).unwrap();
    let (home, folder) = (CopilotHome::default(), tempfile::tempdir().unwrap());
    let (counted, starts) = counted(folder.path(), &program("copilot", COPILOT));
    let backend = Arc::new(backend(counted, WINDOW, home.env(&model.url())));
    let all_have_asked = Arc::new(Barrier::new(MANY));
    let mut turns = JoinSet::new();
    for number in 0..MANY {
        let (backend, all_have_asked) = (Arc::clone(&backend), Arc::clone(&all_have_asked));
        let request = request(folder.path(), None);
        turns.spawn(async move {
            let conversation = in_time("opening", backend.open(request)).await.unwrap();
            let mut turn = send(conversation.as_ref(), &prompt(number)).await;
            let (id, asked) = turn.until_asked().await;
            assert_eq!(asked.question, question(number), "somebody else's question");
            in_time("all asking", all_have_asked.wait()).await;
            conversation.answer(id, Answer { chosen: vec!["Go on".to_owned()] }).await.unwrap();
            let (_, stop) = turn.until_end().await;
            assert_eq!(text(stop), answer(number));
            in_time("closing", conversation.close()).await;
        });
    }
    turns.join_all().await;
    assert_eq!(fs::read_to_string(starts).unwrap().lines().count(), 1, "one program");
    assert!(model.unmatched().is_empty());
    in_time("ending", backend.end_resting()).await;
}

/// No number is part of another.
fn prompt(number: usize) -> String {
    format!("This is for number {number:02}.")
}

fn question(number: usize) -> String {
    format!("Is this number {number:02}?")
}

fn answer(number: usize) -> String {
    format!("I am number {number:02}.")
}

/// The program, and a file with a line for each of its starts.
fn counted(folder: &Path, program: &Path) -> (PathBuf, PathBuf) {
    let (counted, starts) = (folder.join("copilot"), folder.join("starts"));
    let script = format!(
        "#!/bin/sh\necho started >> '{}'\nexec '{}' \"$@\"\n",
        starts.display(),
        program.display()
    );
    fs::write(&counted, script).unwrap();
    fs::set_permissions(&counted, fs::Permissions::from_mode(0o755)).unwrap();
    (counted, starts)
}
