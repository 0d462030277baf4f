//! Checks of conversations that go on after something has happened to them.
#![expect(clippy::expect_used, clippy::panic, reason = "a check that fails panics")]

use atomic_backend::OpenRequest;
use atomic_event::Stop;

use super::hearing::{Open, in_time, open, request};
use super::talking::done;
use super::{Failure, Scenario, Stage};

/// Neither a failure of the provider nor the end of the program is the end of the conversation.
pub async fn a_failed_turn_is_followed_by_another(stage: Stage<'_>) {
    for failure in [Failure::Exit, Failure::Garbage, Failure::Rejected] {
        let open = open(stage(&Scenario::FailureThenText(failure)).as_ref()).await;
        let id = open.conversation.id();
        let (_, stop) = open.exchange(Scenario::ALPHA).await;
        let Stop::Failed(error) = stop else { panic!("{failure:?}: {stop:?}") };
        assert_eq!(error.code, failure.code());
        let (_, stop) = open.exchange(Scenario::BETA).await;
        assert_eq!(stop, done(Scenario::TEXT), "after {failure:?}");
        assert_eq!(open.conversation.id(), id);
    }
}

/// Who leaves a conversation for now can continue it, also when it is to be somebody else.
pub async fn a_conversation_that_rested_goes_on(stage: Stage<'_>) {
    let backend = stage(&Scenario::Text);
    let Open { conversation, workspace } = open(backend.as_ref()).await;
    let id = conversation.id();
    let mut rested = Open { conversation, workspace };
    assert_eq!(rested.exchange("go").await.1, done(Scenario::TEXT));
    for system_prompt in ["You are part of a test.", "You are somebody else."] {
        let Open { conversation, workspace } = rested;
        in_time("resting", conversation.rest()).await;
        let request = OpenRequest {
            system_prompt: system_prompt.to_owned(),
            ..request(workspace.path(), Some(id.clone()))
        };
        let conversation = in_time("opening", backend.open(request)).await;
        rested = Open { conversation: conversation.expect("it is continued"), workspace };
        assert_eq!(rested.conversation.id(), id);
        assert_eq!(rested.exchange("go on").await.1, done(Scenario::TEXT));
    }
    in_time("resting", rested.conversation.rest()).await;
    in_time("ending what rests", backend.end_resting()).await;
}

/// A conversation that has made room goes on.
pub async fn a_summarised_conversation_goes_on(stage: Stage<'_>) {
    let open = open(stage(&Scenario::Text).as_ref()).await;
    assert_eq!(open.exchange("go").await.1, done(Scenario::TEXT));
    let id = open.conversation.id();
    in_time("summarising", open.conversation.compact()).await.expect("it is summarised");
    assert_eq!(open.exchange("go on").await.1, done(Scenario::TEXT));
    assert_eq!(open.conversation.id(), id);
}

/// The model is the one that was asked for, and another one from the next turn on.
pub async fn the_model_is_chosen_and_changed(stage: Stage<'_>) {
    let backend = stage(&Scenario::Models);
    let workspace = tempfile::tempdir().expect("a temporary folder");
    let model = Some(Scenario::MODEL.to_owned());
    let request = OpenRequest { model, ..request(workspace.path(), None) };
    let conversation = in_time("opening", backend.open(request)).await;
    let open = Open { conversation: conversation.expect("it opens"), workspace };
    assert_eq!(open.exchange("go").await.1, done(Scenario::TEXT));
    let other = Scenario::OTHER_MODEL.to_owned();
    in_time("changing", open.conversation.set_model(other)).await.expect("the model is changed");
    assert_eq!(open.exchange("go").await.1, done(Scenario::OTHER_TEXT));
}
