//! GitHub Copilot when things break under it: the same conversations go on afterwards.

use atomic_backend::Backend as _;
use atomic_testing::conformance::backend::{exchange, in_time};
use atomic_testing::model::{Received, Reply, Script};
use rustix::process::Signal;

use super::copilot::Copilot;
use super::copilot_stand::Stand;
use super::scripts::Tongue as _;
use super::serving_chaos::{
    LASTING, killed_between_turns, killed_in_three_turns_at_once, standing_still,
};
use super::serving_stand::{hang, when};
use super::stand::{PATIENCE, text, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_is_killed_and_stands_still() {
    let script = Script::new()
        .with(when(Copilot::SUMMARY).reply(hang()))
        .with(when("stream it").reply(hang()))
        .with(when("use it").reply(Copilot::run(LASTING)))
        .with(when("ask it").reply(Copilot::ask(&[("Which?", false)])));
    let stand = Stand::new(script);
    killed_in_three_turns_at_once(&stand).await;
    killed_between_turns(&stand).await;
    killed_in_a_summary(&stand).await;
    standing_still(&stand).await;
    // One that nobody could close a conversation of is not used any more.
    let conversation = stand.open(stand.request("new")).await;
    stand.goes_on(conversation.as_ref(), "").await;
    in_time("closing", conversation.close()).await;
    stand.end().await;
}

async fn killed_in_a_summary(stand: &Stand) {
    let conversation = stand.open(stand.request("summary")).await;
    assert_eq!(text(exchange(conversation.as_ref(), "much").await.1), "Yes.");
    let asked = stand.model.requests().len();
    let (made, ()) = tokio::join!(in_time("a summary", conversation.compact()), async {
        let came = |it: &Received| it.number >= asked;
        tokio::task::block_in_place(|| stand.model.wait_for(came, PATIENCE)).unwrap();
        stand.signal(Signal::KILL);
    });
    let error = made.unwrap_err();
    assert_eq!(error.code, "exited", "{}", error.message);
    stand.goes_on(conversation.as_ref(), "much").await;
    in_time("closing", conversation.close()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_is_killed_while_conversations_are_opened() {
    let ran = when("run it").reply(Copilot::run("touch ran")).reply(Reply::say("Ran."));
    let script = Script::new().with(ran);
    let stand = Stand::new(script);
    let conversation = stand.open(stand.request("first")).await;
    assert_eq!(text(exchange(conversation.as_ref(), "hello").await.1), "Yes.");
    let id = conversation.id();
    in_time("closing", conversation.close()).await;
    // Whatever it is asked stays unanswered until it is gone.
    stand.signal(Signal::STOP);
    let before = stand.server();
    let opening = [stand.request("made"), stand.resume("continued", id.clone())];
    let [made, continued] = opening.map(|request| in_time("opening", stand.backend.open(request)));
    let (made, continued, ()) = tokio::join!(made, continued, async {
        until("it stands still", || is_stopped(before)).await;
        stand.signal(Signal::KILL);
    });
    for opened in [made, continued] {
        assert_eq!(opened.err().unwrap().code(), "exited");
    }
    // Nothing is asked of the user, though the program is another one.
    let conversation = stand.open(stand.resume("first", id)).await;
    assert_eq!(text(exchange(conversation.as_ref(), "run it").await.1), "Ran.");
    assert!(stand.made("ran"));
    assert!(stand.asked("run it").said().contains("hello"));
    in_time("closing", conversation.close()).await;
    stand.end().await;
}

fn is_stopped(process: i32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    state.contains(") T ")
}
