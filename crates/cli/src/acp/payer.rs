//! Who pays for the conversation of an editor session.

use agent_client_protocol::Error;
use atomic_backend::{Backend, Conversation, Place};
use atomic_event::{BackendId, PayerFound};
use atomic_runner::{Choice, Settings, payer_of};

use super::play::Player;
use super::trouble;

/// Says who pays, before anything is sent. An editor is not a terminal, so one of several credentials
/// has to be chosen.
pub(super) fn say(
    backend: &dyn Backend,
    settings: &Settings,
    player: &Player<'_>,
    model: Option<&str>,
) -> Result<(), Error> {
    let place = Place { workspace: player.seat.folder.clone(), inherit: settings.inherited() };
    let found = payer_of(backend, &place, model, Choice::of(settings)).map_err(trouble::wrong)?;
    if let Some(mut found) = found {
        found.chosen_by.clone_from(&settings.program.backend_from);
        player.line.say(&format!("Note: {found}"));
    }
    Ok(())
}

/// Says who pays, where the program has reported another payer than was expected.
pub(super) fn say_other(id: &BackendId, conversation: &dyn Conversation, player: &Player<'_>) {
    if let Some(payer) = conversation.payer() {
        let backend = id.clone();
        let found = PayerFound { backend, payer, unused: vec![], chosen_by: None };
        player.line.say(&format!("Note: {found}"));
    }
}
