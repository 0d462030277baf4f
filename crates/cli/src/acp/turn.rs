//! The answer to a prompt.

use std::path::PathBuf;

use PermissionOptionKind::{AllowAlways, AllowOnce, RejectOnce};
use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    ContentBlock, PermissionOption, PermissionOptionKind, RequestPermissionRequest,
    SessionInfoUpdate, SessionUpdate, StopReason, TextContent, ToolCallContent, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use atomic_acp::Prompt;

use super::ask::Line;
use super::chat::Chat;
use super::desk::Desk;
use super::play::{Player, apart};
use super::record::{self, Note};
use super::seat::{Mind, Orders, Seat};
use super::slash::{Meant, meant};
use super::start::{self, Begun, Hindrance, Resumed, Wish};
use super::{commands, trouble};
use crate::commands::find_session_in;
use crate::failure::Failure;
use crate::gate::{self, Refused};
use crate::trust::{Answer, question_text};

/// Answers a prompt.
pub(super) async fn answer(
    desk: &Desk,
    seat: &Seat,
    line: &Line,
    (prompt, orders): (Prompt, Orders),
) -> Result<StopReason, Error> {
    let mut mind = seat.mind.lock().await;
    mind.turns += 1;
    seat.note(Note::Prompted { text: prompt.text.clone() });
    if let Some(title) = record::title(&prompt.text).filter(|_| !mind.is_titled) {
        mind.is_titled = true;
        line.show(SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().title(title)));
    }
    for notice in std::mem::take(&mut mind.notices) {
        line.say(&notice);
    }
    if !prompt.left_out.is_empty() {
        line.say(&format!("Note: this is not passed on: {}", prompt.left_out.join(", ")));
    }
    let prefix = format!("t{}-", mind.turns);
    let turn = Turn { desk, player: Player { seat, line, orders, prefix } };
    let mut answered = turn.answer(&prompt, &mut mind).await;
    if turn.player.orders.is_stopped() {
        answered = Ok(StopReason::Cancelled);
    }
    let said = line.said();
    if !said.is_empty() {
        seat.note(Note::Said { text: said });
    }
    answered
}

struct Turn<'t> {
    desk: &'t Desk,
    player: Player<'t>,
}

impl Turn<'_> {
    async fn answer(&self, prompt: &Prompt, mind: &mut Mind) -> Result<StopReason, Error> {
        let folder = &self.player.seat.folder;
        self.settle_trust(mind).await?;
        let Some(slash) = prompt.slash() else {
            let text = prompt.with_attached(&prompt.text);
            if text.trim().is_empty() {
                return Err(trouble::wrong("the prompt is empty; say what to do"));
            }
            // It stays meant until it has begun, unless somebody else has brought it to its end.
            mind.unfinished.take_if(|dir| !start::is_unfinished(dir));
            if let Some(dir) = mind.unfinished.clone() {
                return self.resume(dir, Some(text), mind).await;
            }
            return self.chat(text, mind).await;
        };
        let catalog = start::open(folder, &self.desk.args, self.player.seat.answer().as_ref());
        match meant(&catalog, prompt, slash) {
            Meant::Chat { name, rest } => self.command(&name, &rest, mind).await,
            Meant::Workflow { name, rest } => self.workflow(&name, rest, mind).await,
            Meant::Resume { session, more } => match self.found(session, mind) {
                Ok(dir) => self.resume(dir, more, mind).await,
                Err(failure) => Ok(self.refuse(&failure.to_string())),
            },
            Meant::Turn { text } => self.chat(text, mind).await,
            Meant::Apart { title, workflow, text } => {
                let (wish, asked) = (self.wish(mind), text.clone());
                let begun = apart(move || wish.apart(*workflow, text)).await?;
                let begun = begun.map_err(|failure| trouble::of_failure(&failure))?;
                let (reason, said) = self.player.see_through(begun, mind).await?;
                if let Some(said) = said {
                    mind.chat.hear(&title, &asked, &said);
                }
                Ok(reason)
            }
            Meant::Nothing(why) => Ok(self.refuse(&why)),
        }
    }

    /// Says why nothing is done.
    fn refuse(&self, why: &str) -> StopReason {
        self.player.line.say(why);
        StopReason::EndTurn
    }

    fn wish(&self, mind: &Mind) -> Wish {
        let folder = self.player.seat.folder.clone();
        let (args, answer) = (self.desk.args.clone(), self.player.seat.answer());
        Wish { args, folder, model: mind.chat.model.clone(), answer }
    }

    async fn chat(&self, text: String, mind: &mut Mind) -> Result<StopReason, Error> {
        let Mind { chat, spent, .. } = mind;
        chat.turn(&self.desk.args, &self.player, text, spent).await
    }

    async fn command(&self, name: &str, rest: &str, mind: &mut Mind) -> Result<StopReason, Error> {
        let Player { seat, line, .. } = &self.player;
        match name {
            "clear" => {
                mind.chat.clear().await;
                mind.unfinished = None;
                seat.note(Note::Cleared);
                line.say("A new conversation begins with the next message.");
            }
            "compact" | "model" => {
                let mut orders = self.player.orders.clone();
                let said = tokio::select! {
                    said = self.ask_program(name, rest, &mut mind.chat) => said,
                    () = orders.stop() => {
                        // It is in the middle of something; the next prompt continues it.
                        mind.chat.let_go().await;
                        return Ok(StopReason::Cancelled);
                    }
                };
                line.say(&said?);
            }
            _ => line.say(&commands::help(&seat.folder, rest)),
        }
        Ok(StopReason::EndTurn)
    }

    /// A command that the agent program answers.
    async fn ask_program(&self, name: &str, rest: &str, chat: &mut Chat) -> Result<String, Error> {
        let (args, player) = (&self.desk.args, &self.player);
        match name {
            "compact" => chat.compact(args, player).await.map(str::to_owned),
            _ => chat.choose_model(args, player, rest).await,
        }
    }

    async fn resume(
        &self,
        dir: PathBuf,
        more: Option<String>,
        mind: &mut Mind,
    ) -> Result<StopReason, Error> {
        let wish = self.wish(mind);
        match apart(move || wish.resume(dir, more)).await? {
            Ok(Resumed::Running(begun)) => Ok(self.player.see_through(*begun, mind).await?.0),
            Ok(Resumed::Finished(finished)) => {
                self.player.tell_result(&finished);
                Ok(StopReason::EndTurn)
            }
            Err(Failure::Usage(why)) => Ok(self.refuse(&why)),
            Err(failure) => Err(trouble::of_failure(&failure)),
        }
    }

    async fn workflow(
        &self,
        name: &str,
        text: String,
        mind: &mut Mind,
    ) -> Result<StopReason, Error> {
        match self.begin(name, &text, mind).await? {
            Ok(begun) => {
                self.player.line.say(&format!("Starting **{name}** workflow..."));
                Ok(self.player.see_through(begun, mind).await?.0)
            }
            Err(Failure::Usage(why)) => Ok(self.refuse(&why)),
            Err(failure) => Err(trouble::of_failure(&failure)),
        }
    }

    /// Begins a workflow. Whether code that nobody has trusted may be run is asked first.
    async fn begin(
        &self,
        name: &str,
        text: &str,
        mind: &Mind,
    ) -> Result<Result<Begun, Failure>, Error> {
        let mut allowed: Vec<String> = vec![];
        loop {
            let (wish, known) = (self.wish(mind), allowed.clone());
            let (name, text) = (name.to_owned(), text.to_owned());
            let (refused, failure) = match apart(move || wish.workflow(&name, &text, known)).await?
            {
                Ok(begun) => return Ok(Ok(begun)),
                Err(Hindrance::Failed(failure)) => return Ok(Err(failure)),
                Err(Hindrance::Untrusted(refused, failure)) => (refused, failure),
            };
            let is_declined = refused.iter().any(|refused| refused.is_declined);
            if is_declined || !self.is_trusted(&refused).await {
                return Ok(Err(Failure::Usage(failure.to_string())));
            }
            allowed.extend(refused.into_iter().map(|refused| refused.hash));
        }
    }

    /// Asks whether the project is trusted, before the first prompt that acts in it.
    async fn settle_trust(&self, mind: &mut Mind) -> Result<(), Error> {
        let Player { seat, line, .. } = &self.player;
        let (folder, args, known) = (seat.folder.clone(), self.desk.args.clone(), seat.answer());
        let is_first = known.is_none();
        let catalog = apart(move || start::open(&folder, &args, known.as_ref())).await?;
        let Some(mut trust) = catalog.shelf.gate.trust else { return Ok(()) };
        if trust.is_open() {
            let title = "Use what this project defines";
            let text = question_text(&trust);
            let options = [
                ("trust", "Trust it, and ask again when a definition changes", AllowAlways),
                ("once", "Use it this once", AllowOnce),
                ("without", "Go on without it", RejectOnce),
            ];
            let answer = match self.permission(title, text, &options).await.as_deref() {
                Some("trust") => Answer::Trust,
                Some("once") => Answer::Once,
                Some("without") => Answer::GoOnWithout,
                _ => Answer::None,
            };
            let answered = trust.answer(answer).map_err(|failure| trouble::of_failure(&failure))?;
            seat.set_answer(answered);
        }
        // A program that was started with another decision goes on with what it was given then.
        mind.chat.follow_trust(trust.is_trusted()).await;
        if seat.answer().is_none() && !trust.is_trusted() {
            seat.set_answer(trust.answered(Answer::None));
        } else if !is_first {
            return Ok(());
        }
        if let Some(unused) = trust.unused() {
            line.say(&format!("Note: {unused}"));
        }
        Ok(())
    }

    /// Asks whether code may be run.
    async fn is_trusted(&self, refused: &[Refused]) -> bool {
        let about: Vec<&str> = refused.iter().map(|refused| refused.about.as_str()).collect();
        let options = [
            ("once", "Run it this once", AllowOnce),
            ("always", "Run it, and remember this code", AllowAlways),
            ("never", "Do not run it", RejectOnce),
        ];
        let title = "Run the code of a workflow";
        let chosen = self.permission(title, about.join("\n\n"), &options).await;
        if chosen.as_deref() == Some("always") {
            for refused in refused {
                // It was decided for this time, even if it cannot be remembered.
                if let Err(failure) = gate::remember(refused) {
                    self.player.line.say(&format!("Note: {failure}"));
                }
            }
        }
        matches!(chosen.as_deref(), Some("once" | "always"))
    }

    /// Puts a question to the person at the editor; returns the id of the option that was chosen.
    async fn permission(
        &self,
        title: &str,
        text: String,
        options: &[(&'static str, &str, PermissionOptionKind)],
    ) -> Option<String> {
        let text = ContentBlock::Text(TextContent::new(text));
        let fields = ToolCallUpdateFields::new()
            .title(title.to_owned())
            .kind(ToolKind::Execute)
            .content(vec![ToolCallContent::from(text)]);
        let option = |(id, name, kind): &(&'static str, &str, PermissionOptionKind)| {
            PermissionOption::new(*id, *name, *kind)
        };
        let options: Vec<PermissionOption> = options.iter().map(option).collect();
        let call = ToolCallUpdate::new(format!("{}trust", self.player.prefix), fields);
        let asked = self
            .player
            .line
            .permit(|session| RequestPermissionRequest::new(session, call, options));
        let mut orders = self.player.orders.clone();
        tokio::select! {
            chosen = asked => chosen,
            () = orders.stop() => None,
        }
    }

    /// The folder of the session that is meant: the last one of this chat, unless another is named.
    fn found(&self, session: Option<String>, mind: &Mind) -> Result<PathBuf, Failure> {
        match (session, &mind.last) {
            (Some(session), _) => {
                find_session_in(&self.wish(mind).folder, &session).map(|found| found.dir)
            }
            (None, Some(last)) => Ok(last.clone()),
            (None, None) => Err(Failure::Usage(
                "Nothing was run here yet. Say which session: /resume <session>; `last` is the \
                 newest."
                    .to_owned(),
            )),
        }
    }
}
