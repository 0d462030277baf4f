//! Checks of conversations that go on after something has happened to them.
#![expect(clippy::expect_used, clippy::panic, reason = "a check that fails panics")]

use atomic_backend::{BackendError, OpenRequest};
use atomic_event::Stop;

use super::hearing::{Open, in_time, open, open_as, open_in, request};
use super::talking::done;
use super::{Failure, Scenario, Stage};

/// Neither a failure of the provider nor the end of the program is the end of the conversation.
pub async fn a_failed_turn_is_followed_by_another(stage: &dyn Stage) {
    for failure in [Failure::Exit, Failure::Garbage, Failure::Rejected] {
        let open = open(stage.backend(&Scenario::FailureThenText(failure)).as_ref()).await;
        let id = open.conversation.id();
        let (_, stop) = open.exchange(Scenario::ALPHA).await;
        let Stop::Failed(error) = stop else { panic!("{failure:?}: {stop:?}") };
        assert_eq!(error.code, failure.code());
        let (_, stop) = open.exchange(Scenario::BETA).await;
        // Copilot 1.0.102 says over ACP first that a tool was cut off.
        let is_answered =
            matches!(&stop, Stop::Done { text, .. } if text.ends_with(Scenario::TEXT));
        assert!(is_answered, "after {failure:?}: {stop:?}");
        // A program that was ended may have kept nothing; then the conversation begins anew.
        let may_begin_anew = matches!(failure, Failure::Exit | Failure::Garbage);
        assert!(may_begin_anew || open.conversation.id() == id);
    }
}

/// Who leaves a conversation for now can continue it, also when it is to be somebody else.
pub async fn a_conversation_that_rested_goes_on(stage: &dyn Stage) {
    let backend = stage.backend(&Scenario::Text);
    let mut rested = open(backend.as_ref()).await;
    let id = rested.conversation.id();
    assert_eq!(rested.exchange("go").await.1, done(Scenario::TEXT));
    for system_prompt in ["You are part of a test.", "You are somebody else."] {
        let Open { conversation, workspace, .. } = rested;
        in_time("resting", conversation.rest()).await;
        let request = OpenRequest {
            system_prompt: system_prompt.to_owned(),
            ..request(workspace.path(), Some(id.clone()))
        };
        rested = open_in(backend.as_ref(), workspace, request).await;
        assert_eq!(rested.conversation.id(), id);
        assert_eq!(rested.exchange("go on").await.1, done(Scenario::TEXT));
    }
    in_time("resting", rested.conversation.rest()).await;
    in_time("ending what rests", backend.end_resting()).await;
}

/// A conversation that has made room goes on.
pub async fn a_summarised_conversation_goes_on(stage: &dyn Stage) {
    let open = open(stage.backend(&Scenario::Text).as_ref()).await;
    assert_eq!(open.exchange("go").await.1, done(Scenario::TEXT));
    let id = open.conversation.id();
    in_time("summarising", open.conversation.compact()).await.expect("it is summarised");
    // The summary is over for the model as well.
    let [model, _] = stage.words().models;
    let set = in_time("changing", open.conversation.set_model(model.to_owned())).await;
    assert!(!matches!(set, Err(BackendError::Misused { .. })), "{set:?}");
    assert_eq!(open.exchange("go on").await.1, done(Scenario::TEXT));
    assert_eq!(open.conversation.id(), id);
}

/// The model is the one that was asked for, and another one from the next turn on.
pub async fn the_model_is_chosen_and_changed(stage: &dyn Stage) {
    let backend = stage.backend(&Scenario::Models);
    let [model, other] = stage.words().models.map(str::to_owned);
    let chosen = |request| OpenRequest { model: Some(model), ..request };
    let open = open_as(backend.as_ref(), chosen).await;
    assert_eq!(open.exchange("go").await.1, done(Scenario::TEXT));
    in_time("changing", open.conversation.set_model(other)).await.expect("the model is changed");
    assert_eq!(open.exchange("go").await.1, done(Scenario::OTHER_TEXT));
}
