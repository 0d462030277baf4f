//! The conversation of a session: every prompt that is nothing else is a turn of it.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::StopReason;
use atomic_acp::{Narrator, Voice};
use atomic_backend::{Backend, BackendError, Conversation, OpenRequest, Place, guard};
use atomic_event::{BackendId, ConversationId, PayerFound, Question, Spending, StepError};
use atomic_registry::Registry;
use atomic_runner::{Inherit, Settings, SpentLimit};

use super::exchange::{Exchange, Unended};
use super::play::{Player, apart, look};
use super::record::Note;
use super::seat::Seat;
use super::wait::ProviderWait;
use super::{payer, start, trouble};
use crate::args::AcpArgs;
use crate::{settings, stage};

/// Follows a prompt that is sent again because the provider refused it.
const CONTINUED: &str = "\n\nYour turn on this was cut off by your provider. Part of the work may be \
                         done already. See how things stand, and go on.";

/// Who talks, for the names of tool calls.
pub(super) const STEP: &str = "chat#1";

/// A conversation, or what is known of one.
#[derive(Default)]
pub(super) struct Chat {
    program: Option<Program>,
    conversation: Option<Box<dyn Conversation>>,
    /// By which it can be continued.
    known: Option<(BackendId, ConversationId)>,
    /// The model that was chosen in the session.
    pub(super) model: Option<String>,
    /// Questions that nobody has answered; the next message does.
    left: Vec<Question>,
    /// What the agent has to be told before the next prompt.
    heard: Vec<String>,
    /// The payers that were said: the expected one, and the one that the program has reported.
    paid_by: [Option<PayerFound>; 2],
}

/// The agent program, and what it is used with.
pub(super) struct Program {
    backend: Arc<dyn Backend>,
    registry: Arc<Registry>,
    pub(super) settings: Settings,
    model: Option<String>,
}

impl Program {
    /// Why nothing more may be spent, if so.
    pub(super) fn ceiling(&self, spent: Spending) -> Option<StepError> {
        let budget = &self.settings.budget;
        let is_priced = self.backend.knows_price(self.model.as_deref());
        let message = if budget.max_cost_usd.is_some() && (!is_priced || spent.cost_unknown) {
            let id = self.backend.id();
            format!("no price is known for the model of {id}, so --max-cost cannot be kept")
        } else {
            let reached = SpentLimit::reached(budget, &spent)?;
            let (told, flag) = (reached.told(&spent), reached.flag());
            format!("this session has {told}; start `atomic acp` with a higher {flag}")
        };
        Some(StepError::new("ceiling", message))
    }
}

/// How a turn came to its end.
pub(super) enum End {
    Done,
    Stopped,
    /// A question was left open.
    Left,
    Failed(StepError),
}

impl Chat {
    /// Takes up what is known of a session.
    pub(super) fn continue_from(&mut self, notes: &[Note]) {
        for note in notes {
            match note {
                Note::Conversed { backend, conversation } => {
                    self.known = Some((backend.clone(), conversation.clone()));
                }
                Note::Cleared => self.known = None,
                Note::Opened { .. }
                | Note::Prompted { .. }
                | Note::Said { .. }
                | Note::Ran { .. }
                | Note::Unknown => {}
            }
        }
    }

    /// What happened beside the conversation.
    pub(super) fn hear(&mut self, who: &str, asked: &str, said: &str) {
        self.heard.push(format!(
            "Meanwhile the user has asked {who}: {asked}\n{who} has answered:\n{said}"
        ));
    }

    /// One prompt, and everything that comes of it.
    pub(super) async fn turn(
        &mut self,
        args: &AcpArgs,
        player: &Player<'_>,
        text: String,
        spent: &mut Spending,
    ) -> Result<StopReason, Error> {
        let mut orders = player.orders.clone();
        let opened = tokio::select! {
            opened = self.open(args, player) => opened,
            () = orders.stop() => return Ok(StopReason::Cancelled),
        };
        opened?;
        if let Some(error) = self.program.as_ref().and_then(|program| program.ceiling(*spent)) {
            return Err(trouble::of_step(&error));
        }
        let prompt = self.composed(text);
        let (heard, left) = (std::mem::take(&mut self.heard), std::mem::take(&mut self.left));
        let folder = &player.seat.folder;
        let mut narrator = Narrator::new(Voice::Agent, folder, &player.prefix, look).after(*spent);
        let end = self.until_answered(args, player, &mut narrator, prompt).await?;
        *spent = narrator.spent_so_far();
        if matches!(end, End::Stopped | End::Failed(_)) {
            // Nobody knows whether it was read, so it is told again.
            (self.heard, self.left) = (heard, left);
        }
        match end {
            End::Done | End::Left => Ok(StopReason::EndTurn),
            End::Stopped => Ok(StopReason::Cancelled),
            End::Failed(error) => {
                // It may not be usable any more; the next prompt continues it.
                self.let_go().await;
                if error.code != "refused" {
                    return Err(trouble::of_step(&error));
                }
                player.line.say(&error.message);
                Ok(StopReason::Refusal)
            }
        }
    }

    /// Sends a prompt, again and again while the provider refuses it for a short time.
    async fn until_answered(
        &mut self,
        args: &AcpArgs,
        player: &Player<'_>,
        narrator: &mut Narrator,
        mut prompt: String,
    ) -> Result<End, Error> {
        let window =
            self.program.as_ref().map(|program| program.settings.program.retry_window_secs);
        let mut wait = ProviderWait::within(Duration::from_secs(window.unwrap_or_default()));
        let mut orders = player.orders.clone();
        loop {
            let end = self.send(player, (narrator, &mut wait), prompt.clone()).await;
            let End::Failed(error) = &end else { return Ok(end) };
            let Some((pause, until)) = wait.after(error) else { return Ok(end) };
            // The program is not kept waiting; the next try continues its conversation.
            self.let_go().await;
            player.line.say(&format!("Note: {}; waiting until {until}.", error.message));
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = orders.stop() => return Ok(End::Stopped),
            }
            tokio::select! {
                opened = self.open(args, player) => opened?,
                () = orders.stop() => return Ok(End::Stopped),
            }
            if !prompt.ends_with(CONTINUED) {
                prompt.push_str(CONTINUED);
            }
        }
    }

    /// A prompt with what comes before it.
    fn composed(&self, text: String) -> String {
        let asked = self.left.iter().map(|question| format!("You asked: {}", question.question));
        let mut parts = self.heard.clone();
        parts.extend(asked);
        parts.push(if self.left.is_empty() { text } else { format!("The user's answer: {text}") });
        parts.join("\n\n")
    }

    async fn program(&mut self, args: &AcpArgs, seat: &Seat) -> Result<&Program, Error> {
        if self.program.is_none() {
            let (args, folder, answer) = (args.clone(), seat.folder.clone(), seat.answer());
            let made = apart(move || {
                let catalog = start::open(&folder, &args, answer.as_ref());
                // What the user types is not part of a workflow, and gets what the user has.
                let wanted = Settings { inherit: Inherit::All, ..start::attended() };
                let (wanted, given) = start::settings_of(&catalog, wanted)?;
                let (name, guard) = (settings::backend(&given), stage::guard(&wanted, &folder));
                let backend = stage::backend(name, &wanted, &folder, &guard)?;
                let (registry, model) = (catalog.registry, settings::model(&given));
                Ok(Program { backend, registry, settings: wanted, model })
            });
            let made = made.await?;
            self.program = Some(made.map_err(|failure| trouble::of_failure(&failure))?);
        }
        self.program.as_ref().ok_or_else(|| trouble::failed("there is no agent program"))
    }

    /// Opens the conversation, unless it is open: the one that is known, or a new one.
    async fn open(&mut self, args: &AcpArgs, player: &Player<'_>) -> Result<(), Error> {
        if self.conversation.is_some() {
            return Ok(());
        }
        let (seat, chosen, known) = (player.seat, self.model.clone(), self.known.clone());
        let [mut expected, mut reported] = std::mem::take(&mut self.paid_by);
        let program = self.program(args, seat).await?;
        let id = program.backend.id();
        let resume = known.clone().filter(|(backend, _)| *backend == id);
        if let Some((other, _)) = known.filter(|(backend, _)| *backend != id) {
            player.line.say(&format!(
                "Note: so far this conversation was held with {other}; {id} knows nothing of it."
            ));
        }
        let model = chosen.as_deref().or(program.model.as_deref());
        payer::say(program.backend.as_ref(), &program.settings, player, model, &mut expected)?;
        let marker = format!("{}/{STEP}/1", seat.id);
        let request = OpenRequest {
            model: chosen.or_else(|| program.model.clone()),
            resume: resume.map(|(_, conversation)| conversation),
            questions: true,
            tools: atomic_runner::tools_of_turn(&program.registry, &id),
            helpers: atomic_runner::helpers(&program.registry, &id),
            inherit: program.settings.inherited(),
            ..OpenRequest::new("assistant", seat.folder.clone(), marker)
        };
        let opened = match program.backend.open(request.clone()).await {
            Err(gone @ BackendError::ConversationGone { .. }) => {
                player.line.say(&format!("Note: {gone}; a new one begins."));
                program.backend.open(OpenRequest { resume: None, ..request }).await
            }
            opened => opened,
        };
        let conversation = opened.map_err(trouble::of_backend)?;
        payer::say_other(&id, conversation.as_ref(), player, &mut reported);
        self.paid_by = [expected, reported];
        let known = (id, conversation.id());
        if self.known.as_ref() != Some(&known) {
            let (backend, conversation) = known.clone();
            seat.note(Note::Conversed { backend, conversation });
            self.known = Some(known);
        }
        self.conversation = Some(conversation);
        Ok(())
    }

    /// Sends a prompt and tells what comes of it.
    async fn send(
        &mut self,
        player: &Player<'_>,
        (narrator, wait): (&mut Narrator, &mut ProviderWait),
        prompt: String,
    ) -> End {
        let Some(conversation) = self.conversation.take() else {
            return End::Failed(StepError::new("exited", "the conversation is closed"));
        };
        let Some(program) = &self.program else {
            return End::Failed(StepError::new("exited", "the agent program is gone"));
        };
        let (given, left) = (vec![], vec![]);
        let mut exchange = Exchange { player, narrator, wait, program, given, left };
        let end = exchange.hold(conversation.as_ref(), prompt).await;
        let Exchange { given, left, .. } = exchange;
        if !left.is_empty() {
            // What was answered before may have been on its way together with it.
            self.heard.extend(given);
        }
        self.left = left;
        self.conversation = Some(conversation);
        match end {
            Ok(end) => end,
            Err(Unended) => {
                self.let_go().await;
                End::Stopped
            }
        }
    }

    /// Ends the program of the conversation; it can be continued.
    pub(super) async fn let_go(&mut self) {
        if let Some(conversation) = self.conversation.take() {
            conversation.close().await;
        }
    }

    /// The next prompt begins a new one.
    pub(super) async fn clear(&mut self) {
        self.let_go().await;
        self.known = None;
        self.left.clear();
        self.heard.clear();
    }

    /// Lets the program summarise the conversation.
    pub(super) async fn compact(
        &mut self,
        args: &AcpArgs,
        player: &Player<'_>,
    ) -> Result<&'static str, Error> {
        if self.known.is_none() {
            return Ok("There is no conversation yet.");
        }
        self.open(args, player).await?;
        if let Some(conversation) = &self.conversation {
            conversation.compact().await.map_err(|error| trouble::of_step(&error))?;
        }
        Ok("The conversation was summarised.")
    }

    /// `/model <name>`, `/model list`, or what is chosen.
    pub(super) async fn choose_model(
        &mut self,
        args: &AcpArgs,
        player: &Player<'_>,
        rest: &str,
    ) -> Result<String, Error> {
        let program = self.program(args, player.seat).await?;
        let (preset, backend) = (program.model.clone(), Arc::clone(&program.backend));
        let inherit = program.settings.inherited();
        match rest.split_whitespace().next() {
            None => {
                let model = self.model.clone().or(preset);
                let model = model.unwrap_or_else(|| "the one the program chooses".to_owned());
                Ok(format!("The model is {model}. Choose with: /model <name>"))
            }
            Some("list" | "select" | "refresh") => {
                let place = Place { workspace: player.seat.folder.clone(), inherit };
                let offers = backend.models(place).await.map_err(trouble::of_backend)?;
                let lines =
                    offers.iter().map(|offer| format!("- `{}` {}\n", offer.name, offer.about));
                let lines: String = lines.collect();
                Ok(if lines.is_empty() { "Any name will do.".to_owned() } else { lines })
            }
            Some(name) => {
                if let Some(conversation) = &self.conversation {
                    let set = conversation.set_model(name.to_owned()).await;
                    set.map_err(trouble::of_backend)?;
                }
                self.model = Some(name.to_owned());
                Ok(format!("The model is {name} from now on."))
            }
        }
    }

    /// Ends the program unless it was started with this decision about the project.
    pub(super) async fn follow_trust(&mut self, is_trusted: bool) {
        let is_other = |program: &Program| program.settings.program.trusted != is_trusted;
        if self.program.as_ref().is_some_and(is_other) {
            self.close().await;
        }
    }

    /// Ends everything. When it returns, every process is gone.
    pub(super) async fn close(&mut self) {
        self.let_go().await;
        if let Some(program) = self.program.take() {
            program.backend.end_resting().await;
        }
        // The program names what cannot be ended when it ends.
        let _ = tokio::task::spawn_blocking(guard::end_orphans).await;
    }
}
