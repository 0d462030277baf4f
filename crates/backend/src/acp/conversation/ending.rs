//! How a turn ends: by itself, because it is interrupted, or because the program is gone.

use std::time::Duration;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::CancelNotification;
use atomic_event::{Report, Stop, TurnEvent, Usage};
use serde_json::Value;
use tokio::time::Instant;

use super::{CurrentTurn, Talk, blocks};
use crate::acp::prompt::{Around, without_fence};
use crate::acp::trouble::{garbled, of_error};
use crate::outlet::told_end;
use crate::trouble::Kind;

/// How long an interrupted turn may take to end by itself.
const INTERRUPTED: Duration = Duration::from_secs(2);

/// How often an agent is told to go on that has stopped because of a tool it may not use.
const GOINGS_ON: usize = 20;

impl Talk {
    /// Interrupts the turn; it has a moment to end by itself.
    pub(super) fn interrupt(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        if turn.interrupted.is_some() {
            return;
        }
        turn.interrupted = Some(Instant::now() + INTERRUPTED);
        turn.was_using_tools = self.decoder.is_using_tools();
        // First, so that the agent knows why its forms are not answered.
        if let Some(line) = &self.line {
            line.note("session/cancel", CancelNotification::new(self.session.clone()));
        }
        for open in turn.questions.drain(..) {
            open.withdraw();
        }
    }

    /// It does not listen. The session can be taken up by another start.
    pub(super) async fn give_up(&mut self) {
        if let Some(line) = self.line.take() {
            line.end(true).await;
        }
        self.finish(Stop::Interrupted, None);
    }

    /// What became of a prompt.
    pub(super) async fn answered(&mut self, number: u64, answer: Result<Value, Error>) {
        if self.turn.as_ref().is_none_or(|turn| turn.number != number) {
            return;
        }
        if self.turn.as_ref().is_some_and(|turn| turn.was_using_tools)
            && let Some(line) = self.line.take()
        {
            // What a tool has started is not all the agent's to end.
            line.end(true).await;
        }
        match answer {
            Ok(answer) => self.turn_ended(&answer),
            // Its end says more.
            Err(error) if agent_client_protocol::is_incoming_transport_closed(&error) => {
                self.program_ended().await;
            }
            Err(error) => {
                let mut trouble = of_error(&error);
                if trouble.kind == Kind::Rejected && self.about.lacks_models() {
                    // OpenCode just says that something has failed.
                    trouble.kind = Kind::Login;
                }
                let stop = Stop::Failed(trouble.into_error(self.shared.id.as_str()));
                // What was spent before is told, and what was said is kept.
                let (events, _) = self.decoder.end(&Value::Null);
                events.into_iter().for_each(|event| self.tell(event));
                self.finish(stop, None);
            }
        }
    }

    fn turn_ended(&mut self, answer: &Value) {
        if self.goes_on(answer) {
            return;
        }
        let (events, mut stop) = self.decoder.end(answer);
        let mut spent = None;
        for event in events {
            if let TurnEvent::Reported(Report::Spent(usage)) = &event {
                spent = Some(*usage);
            }
            self.tell(event);
        }
        if let (Stop::Done { text }, Some(_)) = (&mut stop, &self.request.schema) {
            *text = without_fence(text).to_owned();
        }
        self.finish(stop, spent);
    }

    /// Agents end their turn when a tool is refused, whatever the model would have done then. It is
    /// told why, and goes on.
    fn goes_on(&mut self, answer: &Value) -> bool {
        let is_end = answer.get("stopReason").and_then(Value::as_str) == Some("end_turn");
        let Some(turn) = self.turn.as_mut().filter(|turn| is_end && turn.interrupted.is_none())
        else {
            return false;
        };
        let Some(why) = turn.refusal.take().filter(|_| turn.goings_on < GOINGS_ON) else {
            return false;
        };
        turn.goings_on += 1;
        // What was spent up to here is told with the rest.
        let (events, _) = self.decoder.end(answer);
        events.into_iter().for_each(|event| self.tell(event));
        self.decoder.begin_turn();
        let prompt = format!("The tool was not used: {why}. Go on without it.");
        self.prompt(blocks(&prompt, Around::default()));
        true
    }

    pub(super) async fn is_garbled(&mut self, text: &str) {
        if let Some(line) = self.line.take() {
            line.end(true).await;
        }
        let error = garbled(self.shared.id.as_str(), text);
        self.finish(Stop::Failed(error.into()), None);
    }

    /// The program is gone. A prompt that it has surely not read is sent again, once, to another.
    pub(super) async fn program_ended(&mut self) {
        let Some(line) = self.line.take() else { return };
        let exit = line.exit().await;
        let may_repeat = |turn: &&mut CurrentTurn| {
            exit.is_deaf && turn.interrupted.is_none() && !turn.is_repeated
        };
        let unheard = self.turn.as_mut().filter(may_repeat).and_then(|turn| {
            turn.is_repeated = true;
            turn.unheard.take()
        });
        let error = match unheard {
            Some(blocks) => match self.launch().await {
                Ok(()) => return self.prompt(blocks),
                Err(error) => error,
            },
            None => self.why_it_ended(&exit),
        };
        self.finish(Stop::Failed(error.into()), None);
    }

    /// The turn is over. Its end is the last event.
    pub(super) fn finish(&mut self, stop: Stop, spent: Option<Usage>) {
        let Some(turn) = self.turn.take() else { return };
        let stop = told_end(stop, None, turn.interrupted.is_some());
        // Of an interrupted turn, not even the prompt may have been kept.
        self.is_kept |= stop != Stop::Interrupted;
        if let (Stop::Done { .. }, None) = (&stop, &turn.summary) {
            self.instructions = Some(self.request.system_prompt.clone());
        }
        self.remember();
        if let Some(reply) = turn.summary {
            let _ = reply.send(match stop {
                Stop::Done { .. } => Ok(spent),
                Stop::Failed(error) => Err(error),
                Stop::Interrupted => Err(self.misused("the summary was interrupted").into()),
            });
        } else if let Some(outlet) = &mut self.outlet {
            outlet.end(stop);
        }
    }

    /// Ends the program. When it returns, nothing is left.
    pub(super) async fn end(&mut self) {
        self.presence.leaves();
        let was_busy = self.turn.take().is_some();
        if let Some(line) = self.line.take() {
            line.end(was_busy).await;
        }
        self.shared.roster.leave(&self.held_as);
        if let Some(outlet) = self.outlet.take() {
            outlet.close(Stop::Interrupted);
        }
    }
}
