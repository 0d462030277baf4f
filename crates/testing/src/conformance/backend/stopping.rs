//! Checks of interrupting and closing.

use atomic_event::Stop;

use super::hearing::{Listener, Open, in_time, open};
use super::nonce::Nonce;
use super::{Act, Scenario, Stage};

async fn interrupt(open: &Open) {
    in_time("interrupting", open.conversation.interrupt()).await;
}

async fn assert_interrupted(listener: Listener) {
    let (_, stop) = listener.until_end().await;
    assert_eq!(stop, Stop::Interrupted);
}

/// A conversation whose agent is running a command that never ends by itself.
async fn running(stage: &dyn Stage) -> (Open, Listener, Nonce) {
    let nonce = Nonce::new();
    let open = open(stage.backend(&Scenario::Acts(vec![Act::run(nonce.command())])).as_ref()).await;
    let listener = open.send("go").await;
    nonce.sleeps().await;
    nonce.assert_marked(&open.marker);
    (open, listener, nonce)
}

/// An interruption without a turn is not kept for the next one.
pub async fn interrupting_nothing_does_nothing(stage: &dyn Stage) {
    let open = open(stage.backend(&Scenario::Text).as_ref()).await;
    for _ in 0..2 {
        interrupt(&open).await;
        let (_, stop) = open.exchange("go").await;
        assert_eq!(stop, Stop::Done { text: Scenario::TEXT.to_owned() });
    }
}

/// A turn that has said something can be interrupted, and the conversation goes on.
pub async fn a_text_is_interrupted(stage: &dyn Stage) {
    let open = open(stage.backend(&Scenario::EndlessText).as_ref()).await;
    for _ in 0..2 {
        let mut listener = open.send("go").await;
        listener.until_typed().await;
        interrupt(&open).await;
        assert_interrupted(listener).await;
    }
}

/// A turn of which nothing is heard can be interrupted.
pub async fn a_hanging_turn_is_interrupted(stage: &dyn Stage) {
    let open = open(stage.backend(&Scenario::Hang).as_ref()).await;
    let listener = open.send("go").await;
    interrupt(&open).await;
    assert_interrupted(listener).await;
}

/// A turn that waits for an answer can be interrupted; the question is then no longer open.
pub async fn a_question_is_interrupted(stage: &dyn Stage) {
    let open = open(stage.backend(&Scenario::Question).as_ref()).await;
    let mut listener = open.send("go").await;
    listener.until_asked().await;
    interrupt(&open).await;
    assert_interrupted(listener).await;
}

/// A tool is interrupted together with everything it started.
pub async fn a_tool_is_interrupted_with_all_its_processes(stage: &dyn Stage) {
    let (open, listener, nonce) = running(stage).await;
    interrupt(&open).await;
    assert_interrupted(listener).await;
    nonce.is_gone().await;
}

/// When closing returns, nothing is left, and the turn has ended.
pub async fn closing_leaves_no_process(stage: &dyn Stage) {
    let (open, listener, nonce) = running(stage).await;
    open.close().await;
    nonce.assert_gone();
    assert_interrupted(listener).await;
}

/// Dropping the conversation ends everything as well.
pub async fn dropping_the_conversation_leaves_no_process(stage: &dyn Stage) {
    let (open, listener, nonce) = running(stage).await;
    drop(open);
    nonce.is_gone().await;
    assert_interrupted(listener).await;
}

/// A turn that nobody listens to is interrupted.
pub async fn dropping_the_turn_interrupts_it(stage: &dyn Stage) {
    let (open, listener, nonce) = running(stage).await;
    drop(listener);
    nonce.is_gone().await;
    drop(open);
}
