//! One turn of a chat, from its prompt to its end.

use std::time::Duration;

use atomic_acp::Narrator;
use atomic_backend::{Conversation, Turn};
use atomic_event::{Answer, Question, QuestionId, StepError, StepId, Stop, TurnEvent};
use atomic_runner::OnQuestion;
use tokio::time::Instant;

use super::ask::Put;
use super::chat::{End, Program, STEP};
use super::play::Player;
use super::seat::Orders;
use super::wait::ProviderWait;
use crate::show::question_text;

/// How long an interrupted turn may take to end; what does not is ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A turn that does not end although it was interrupted.
pub(super) struct Unended;

/// One turn under way.
pub(super) struct Exchange<'e> {
    pub(super) player: &'e Player<'e>,
    pub(super) narrator: &'e mut Narrator,
    pub(super) wait: &'e mut ProviderWait,
    pub(super) program: &'e Program,
    /// The questions of this turn that were answered, with their answers.
    pub(super) given: Vec<String>,
    pub(super) left: Vec<Question>,
}

impl Exchange<'_> {
    pub(super) async fn hold(
        &mut self,
        conversation: &dyn Conversation,
        prompt: String,
    ) -> Result<End, Unended> {
        let limit = Duration::from_secs(self.program.settings.turn_timeout_secs);
        let mut deadline = Instant::now() + limit;
        let mut orders = self.player.orders.clone();
        let sent = tokio::select! {
            sent = conversation.send(prompt) => sent,
            () = orders.stop() => return Err(Unended),
            () = tokio::time::sleep_until(deadline) => return Ok(too_long(limit)),
        };
        let mut turn = match sent {
            Ok(turn) => turn,
            Err(error) => return Ok(End::Failed(error.into())),
        };
        loop {
            let event = tokio::select! {
                event = turn.recv() => event,
                () = orders.stop() => {
                    self.interrupt(conversation, &mut turn).await?;
                    return Ok(End::Stopped);
                }
                () = tokio::time::sleep_until(deadline) => {
                    let _ = self.interrupt(conversation, &mut turn).await;
                    return Ok(too_long(limit));
                }
            };
            let Some(event) = event else {
                let message = "the agent's turn broke off without an end";
                return Ok(End::Failed(StepError::new("exited", message)));
            };
            self.player.line.show_all(self.narrator.turn(&StepId::new(STEP), &event));
            if let TurnEvent::Reported(report) = &event {
                self.wait.learn(report);
            }
            let is_over = matches!(event, TurnEvent::Ended(_));
            if let Some(error) = self.program.ceiling(self.narrator.spent_so_far())
                && !is_over
            {
                let _ = self.interrupt(conversation, &mut turn).await;
                return Ok(End::Failed(error));
            }
            match event {
                TurnEvent::Asked { id, question, .. } => {
                    let asked = Instant::now();
                    let Some(answer) = self.ask(&id, &question, &mut orders).await else {
                        let end = self.interrupt(conversation, &mut turn).await;
                        return end.map(|()| self.leave(question));
                    };
                    self.given.push(format!(
                        "You asked: {}\nThe user has answered: {}",
                        question.question,
                        answer.chosen.join(", ")
                    ));
                    if let Err(error) = conversation.answer(id, answer).await {
                        return Ok(End::Failed(error.into()));
                    }
                    // The time a person takes is not the agent's.
                    deadline += asked.elapsed();
                }
                TurnEvent::Ended(Stop::Done { .. }) => return Ok(self.done()),
                TurnEvent::Ended(Stop::Interrupted) => {
                    let message = "the agent's turn was interrupted from outside";
                    return Ok(End::Failed(StepError::new("interrupted", message)));
                }
                TurnEvent::Ended(Stop::Failed(error)) => return Ok(End::Failed(error)),
                TurnEvent::Typed { .. }
                | TurnEvent::Thought { .. }
                | TurnEvent::ToolBegan(_)
                | TurnEvent::Reported(_) => {}
            }
        }
    }

    fn done(&self) -> End {
        if self.player.line.said().is_empty() {
            self.player.line.say("The agent ended its turn without saying anything.");
        }
        End::Done
    }

    /// Asks the user, or the policy that was set.
    async fn ask(
        &self,
        id: &QuestionId,
        question: &Question,
        orders: &mut Orders,
    ) -> Option<Answer> {
        match self.program.settings.on_question {
            OnQuestion::Recommended => {
                let label = question.recommended()?.label.clone();
                let line = self.player.line;
                line.say(&format!("Answered by policy, nobody was asked: {label}"));
                return Some(Answer { chosen: vec![label] });
            }
            OnQuestion::Fail => return None,
            OnQuestion::Ask | OnQuestion::Pause => {}
        }
        let id = format!("{}{id}", self.player.prefix);
        tokio::select! {
            put = self.player.line.ask(&id, question) => match put {
                Put::Answered(answer) => Some(answer),
                Put::Impossible | Put::Left => None,
            },
            () = orders.stop() => None,
        }
    }

    /// A question that nobody has answered stays open.
    fn leave(&mut self, question: Question) -> End {
        if self.player.orders.is_stopped() {
            return End::Stopped;
        }
        let text = question_text(&QuestionId::from("open"), &question);
        let text = text.trim_start_matches("? open").trim();
        self.player
            .line
            .say(&format!("The agent asks: {text}\n\nYour next message is the answer."));
        self.left.push(question);
        End::Left
    }

    /// Interrupts the turn and waits for its end. What was spent on it counts.
    async fn interrupt(
        &mut self,
        conversation: &dyn Conversation,
        turn: &mut Turn,
    ) -> Result<(), Unended> {
        let ended = async {
            conversation.interrupt().await;
            while let Some(event) = turn.recv().await {
                self.player.line.show_all(self.narrator.turn(&StepId::new(STEP), &event));
                if matches!(event, TurnEvent::Ended(_)) {
                    return Ok(());
                }
            }
            Err(Unended)
        };
        tokio::time::timeout(LAST_WORDS, ended).await.unwrap_or(Err(Unended))
    }
}

fn too_long(limit: Duration) -> End {
    let message =
        format!("the agent's turn took longer than {} s and was stopped", limit.as_secs());
    End::Failed(StepError::new("timeout", message))
}
