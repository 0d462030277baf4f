//! GitHub Copilot, when it is ended while a command runs: the model is not asked about that.

use std::process::{Command, Stdio};

use atomic_backend::Backend as _;
use atomic_testing::agents::{COPILOT, CopilotHome, program};
use atomic_testing::conformance::backend::in_time;
use atomic_testing::model::{ModelServer, Reply, Script, Turn};
use serde_json::json;

use super::copilot_stand::Stand;
use super::serving_stand::{processes, when};
use super::stand::until;

fn lasting() -> Reply {
    let command = "touch started; sleep 1000";
    Reply::call("bash", json!({ "command": command, "description": "as asked" }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_paid_after_atomic_was_killed() {
    let script = Script::new().with(Turn::default().reply(lasting()).reply(Reply::say("Done.")));
    let model = ModelServer::start(script).unwrap();
    let (home, workspace) = (CopilotHome::default(), tempfile::tempdir().unwrap());
    let run = uuid::Uuid::new_v4().to_string();
    let mut host = Command::new(env!("CARGO_BIN_EXE_guard-host"))
        .args(["copilot", &format!("{run}/step/1")])
        .args([program("copilot", COPILOT), workspace.path().to_owned()])
        .arg("run it")
        .envs(home.env(&model.url()))
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    until("a command runs", || workspace.path().join("started").exists()).await;
    let asked = model.requests().len();
    host.kill().unwrap();
    host.wait().unwrap();
    let markers = [format!("{run}/step/1"), format!("{run}/copilot/server")];
    until("all processes are gone", || markers.iter().all(|it| processes(it).is_empty())).await;
    assert_eq!(model.requests().len(), asked);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_paid_after_a_conversation_was_closed_or_interrupted() {
    let stand = Stand::new(Script::new().with(when("run it").reply(lasting())));
    for interrupts in [false, true] {
        let name = if interrupts { "interrupted" } else { "closed" };
        let conversation = stand.open(stand.request(name)).await;
        let prompt = format!("run it: {name}");
        let _turn = in_time("sending", conversation.send(prompt.clone())).await.unwrap();
        stand.is_made("started").await;
        std::fs::remove_file(stand.workspace.path().join("started")).unwrap();
        if interrupts {
            conversation.interrupt().await;
            let is_ended = || processes(&stand.marker(name)).is_empty();
            until("the command is ended", is_ended).await;
        }
        in_time("closing", conversation.close()).await;
        assert_eq!(processes(&stand.marker(name)), [] as [i32; 0]);
    }
    in_time("ending", stand.backend.end_resting()).await;
    until("the program is gone", || stand.servers().is_empty()).await;
    assert_eq!(stand.model.requests().len(), 2);
}
