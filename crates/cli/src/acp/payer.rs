//! Who pays for the conversation of an editor session.

use agent_client_protocol::Error;
use atomic_backend::{Backend, Conversation, Place};
use atomic_event::{BackendId, PayerFound};
use atomic_runner::{Settings, payer_of};

use super::play::Player;
use super::trouble;

/// Says who pays, before anything is sent. An editor is not a terminal, so one of several credentials
/// has to be chosen.
pub(super) fn say(
    backend: &dyn Backend,
    settings: &Settings,
    player: &Player<'_>,
    model: Option<&str>,
    said: &mut Option<PayerFound>,
) -> Result<(), Error> {
    let place = Place { workspace: player.seat.folder.clone(), inherit: settings.inherited() };
    let found = payer_of(backend, &place, model, settings.program.is_attended);
    let found = found.map_err(|problem| trouble::wrong(problem.to_string()))?;
    if let Some(mut found) = found {
        found.chosen_by.clone_from(&settings.program.backend_from);
        say_once(found, player, said);
    }
    Ok(())
}

/// Says who pays, unless that was said last: the conversation is opened again after every wait.
fn say_once(found: PayerFound, player: &Player<'_>, said: &mut Option<PayerFound>) {
    if said.as_ref() != Some(&found) {
        player.line.say(&format!("Note: {found}"));
        *said = Some(found);
    }
}

/// Says who pays, where the program has reported another payer than was expected.
pub(super) fn say_other(
    id: &BackendId,
    conversation: &dyn Conversation,
    player: &Player<'_>,
    said: &mut Option<PayerFound>,
) {
    if let Some(payer) = conversation.payer() {
        let backend = id.clone();
        let found = PayerFound { backend, payer, unused: vec![], chosen_by: None };
        say_once(found, player, said);
    }
}
