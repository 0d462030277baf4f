//! A step that an agent carries out: one turn, and one more when its end is not what was asked for.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use atomic_backend::{BackendError, Conversation, OpenRequest, Place, Turn};
use atomic_event::{
    Answer, Delta, Event, How, PayerFound, ProviderEvent, Question, Report, StepError, StepResult,
    Stop, TurnEvent,
};
use atomic_graph::Schema;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{AgentJob, BackendQuestion, Message, Order, Outcome, Performer, told_to_stop};
use crate::payer::payer_of;
use crate::timer::told;

/// How long an interrupted turn may take to say what it has cost.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How a turn ended for us.
enum Told {
    Text(String),
    Outcome(Outcome),
}

impl Performer {
    pub(super) async fn turn(&mut self, job: AgentJob) -> Outcome {
        if let Err(outcome) = self.share_the_tree().await {
            return outcome;
        }
        // The backends and models of a script are known only here.
        let payer = match self.payer(&job) {
            Ok(payer) => payer,
            Err(error) => {
                self.share = None;
                return Outcome::Failed(error.into());
            }
        };
        let (conversation, prompt) = match self.in_time(self.open(&job)).await {
            Ok(opened) => opened,
            Err(outcome) => {
                self.share = None;
                return self.or_refused(outcome).await;
            }
        };
        self.say_payer(conversation.as_ref(), payer).await;
        let opened = Event::ConversationOpened {
            step: self.step.clone(),
            attempt: self.attempt,
            backend: self.backend.id(),
            conversation: conversation.id(),
            shared: job.shared,
        };
        let outcome = if self.confirm(opened).await {
            self.converse(conversation.as_ref(), &job, prompt).await
        } else {
            Outcome::Stopped
        };
        // Recorded before the program is ended: the step stays open and is continued later.
        let outcome = self.or_refused(outcome).await;
        // The next agent of the lane continues it at once, with the same program.
        if job.shared && matches!(outcome, Outcome::Finished(_)) {
            conversation.rest().await;
        } else {
            conversation.close().await;
        }
        self.share = None;
        // A stop may have come while the program ended.
        let order = self.orders.borrow().clone();
        if matches!(outcome, Outcome::Refused { .. }) && order != Order::Work {
            self.outcome_of(&order)
        } else {
            outcome
        }
    }

    /// The payer that is expected, before the program is opened.
    fn payer(&self, job: &AgentJob) -> Result<Option<PayerFound>, BackendError> {
        let place = Place { workspace: self.reach.workspace.clone(), inherit: job.inherit };
        let (backend, model) = (self.backend.as_ref(), self.model.as_deref());
        let found = payer_of(backend, &place, model, self.is_attended);
        found.map_err(|problem| BackendError::Misconfigured(problem.to_string()))
    }

    /// Says who pays: the payer that the program has reported, else the expected one. A payer that was
    /// said before is not recorded again.
    async fn say_payer(&self, conversation: &dyn Conversation, expected: Option<PayerFound>) {
        let backend = self.backend.id();
        let of_program = |payer| PayerFound { backend, payer, unused: vec![], chosen_by: None };
        let Some(found) = conversation.payer().map(of_program).or(expected) else { return };
        self.say(Event::Provider(ProviderEvent::PayerFound(found))).await;
    }

    /// Waits until the project's files may be used together with others.
    pub(super) async fn share_the_tree(&mut self) -> Result<(), Outcome> {
        let mut orders = self.orders.clone();
        let tree = Arc::clone(&self.tree);
        tokio::select! {
            share = tree.read_owned() => self.share = Some(share),
            order = told_to_stop(&mut orders) => return Err(self.outcome_of(&order)),
        }
        Ok(())
    }

    /// Opens the conversation, and says what to send first. A conversation that is gone is
    /// replaced by a new one, once, and that is said.
    async fn open(&self, job: &AgentJob) -> Result<(Box<dyn Conversation>, String), BackendError> {
        let request = OpenRequest {
            agent: job.agent.clone(),
            system_prompt: job.system_prompt.clone(),
            model: self.model.clone(),
            workspace: self.reach.workspace.clone(),
            resume: job.resume.clone(),
            questions: job.questions,
            tools: job.tools.clone(),
            schema: job.schema.clone(),
            helpers: job.helpers.clone(),
            inherit: job.inherit,
            marker: self.reach.marker.clone(),
        };
        match self.backend.open(request.clone()).await {
            Ok(conversation) => {
                let remembers = self.backend.remembers();
                Ok((conversation, first_prompt(job, job.how, remembers)))
            }
            Err(gone @ BackendError::ConversationGone { .. }) => {
                let text = format!("{gone}; {} starts again in a new one", self.step);
                self.say(Event::Noted { text }).await;
                let conversation =
                    self.backend.open(OpenRequest { resume: None, ..request }).await?;
                Ok((conversation, first_prompt(job, How::RunAgain, false)))
            }
            Err(error) => Err(error),
        }
    }

    async fn converse(
        &mut self,
        conversation: &dyn Conversation,
        job: &AgentJob,
        prompt: String,
    ) -> Outcome {
        let first = match self.send(conversation, prompt).await {
            Told::Text(text) => text,
            Told::Outcome(outcome) => return outcome,
        };
        let problem = match read(job, &first) {
            Ok(output) => return Outcome::Finished(StepResult { output, ..StepResult::default() }),
            Err(problem) => problem,
        };
        let second = match self.send(conversation, problem.clone()).await {
            Told::Text(text) => text,
            Told::Outcome(outcome) => return outcome,
        };
        match read(job, &second) {
            Ok(output) => Outcome::Finished(StepResult { output, ..StepResult::default() }),
            Err(_) if first.trim().is_empty() && second.trim().is_empty() => {
                let message = format!("{} ended its turn twice without saying anything", job.agent);
                Outcome::Failed(StepError::new("silent", message))
            }
            Err(problem) => {
                let message =
                    format!("{} did not answer as it was asked to, twice: {problem}", job.agent);
                Outcome::Failed(StepError::new("no_report", message).with_detail(second))
            }
        }
    }

    /// Sends one prompt and reports the turn to its end.
    async fn send(&mut self, conversation: &dyn Conversation, prompt: String) -> Told {
        let mut turn = match self.in_time(conversation.send(prompt)).await {
            Ok(turn) => turn,
            Err(outcome) => return Told::Outcome(outcome),
        };
        let mut orders = self.orders.clone();
        let mut deadline = Instant::now() + self.times.turn;
        loop {
            let event = tokio::select! {
                event = turn.recv() => event,
                order = told_to_stop(&mut orders) => {
                    let end = self.interrupt(conversation, &mut turn).await;
                    return self.stopped(&order, end);
                }
                () = tokio::time::sleep_until(deadline) => {
                    return match self.interrupt(conversation, &mut turn).await {
                        Some(Stop::Done { text }) => Told::Text(text),
                        _ => Told::Outcome(self.too_long()),
                    };
                }
            };
            match event {
                Some(TurnEvent::Typed { text }) => {
                    self.show(Delta::Typed { step: self.step.clone(), text }).await;
                }
                Some(TurnEvent::Thought { text }) => {
                    self.show(Delta::Thought { step: self.step.clone(), text }).await;
                }
                Some(TurnEvent::ToolBegan(call)) => {
                    self.show(Delta::ToolBegan { step: self.step.clone(), call }).await;
                }
                Some(TurnEvent::Reported(report)) => self.pass_on(report).await,
                Some(TurnEvent::Asked { id, question, more }) => {
                    let asked = Instant::now();
                    let questions = together((id, question), more, &mut turn).await;
                    if let Err(outcome) = self.ask(conversation, &mut turn, questions).await {
                        return Told::Outcome(outcome);
                    }
                    // The time a person takes is not the agent's.
                    deadline += asked.elapsed();
                }
                Some(TurnEvent::Ended(Stop::Done { text })) => return Told::Text(text),
                Some(TurnEvent::Ended(Stop::Interrupted)) => {
                    let message = "the agent's turn was interrupted from outside";
                    return Told::Outcome(Outcome::Failed(StepError::new("interrupted", message)));
                }
                Some(TurnEvent::Ended(Stop::Failed(error))) => {
                    return Told::Outcome(Outcome::Failed(error));
                }
                None => {
                    let message = "the agent's turn broke off without an end";
                    return Told::Outcome(Outcome::Failed(StepError::new("exited", message)));
                }
            }
        }
    }

    /// Puts questions of the agent to the user. Until they are answered, the files are left to
    /// others: a question blocks only the step that asks it.
    async fn ask(
        &mut self,
        conversation: &dyn Conversation,
        turn: &mut Turn,
        questions: Vec<(BackendQuestion, Question)>,
    ) -> Result<(), Outcome> {
        self.share = None;
        let mut orders = self.orders.clone();
        let (mut answers, mut asked) = (vec![], vec![]);
        for (id, question) in questions {
            let (reply, answer) = oneshot::channel::<Answer>();
            asked.push((question, reply));
            answers.push((id, answer));
        }
        let asked = Message::Asked { step: self.step.clone(), questions: asked };
        if self.messages.send(asked).await.is_err() {
            return Err(Outcome::Stopped);
        }
        let all = async {
            let mut given = vec![];
            for (id, answer) in answers {
                given.push((id, answer.await.ok()?));
            }
            Some(given)
        };
        let given = tokio::select! {
            given = all => given,
            order = told_to_stop(&mut orders) => {
                self.interrupt(conversation, turn).await;
                return Err(self.outcome_of(&order));
            }
        };
        let Some(given) = given else {
            self.interrupt(conversation, turn).await;
            let message = "it asked a question, and questions are not allowed here";
            return Err(Outcome::Failed(StepError::new("question", message)));
        };
        if let Err(outcome) = self.share_the_tree().await {
            self.interrupt(conversation, turn).await;
            return Err(outcome);
        }
        for (id, answer) in given {
            let answered = conversation.answer(id, answer).await;
            answered.map_err(|error| Outcome::Failed(error.into()))?;
        }
        Ok(())
    }

    /// Interrupts the turn and waits for its end, which may be a better one than we meant;
    /// [`Conversation::close`] ends what does not. What was spent on it counts.
    async fn interrupt(&self, conversation: &dyn Conversation, turn: &mut Turn) -> Option<Stop> {
        let ended = async {
            conversation.interrupt().await;
            while let Some(event) = turn.recv().await {
                match event {
                    TurnEvent::Reported(report) => self.pass_on(report).await,
                    TurnEvent::Ended(stop) => return Some(stop),
                    TurnEvent::Typed { .. }
                    | TurnEvent::Thought { .. }
                    | TurnEvent::ToolBegan(_)
                    | TurnEvent::Asked { .. } => {}
                }
            }
            None
        };
        tokio::time::timeout(LAST_WORDS, ended).await.unwrap_or(None)
    }

    /// What a turn that was to stop comes to. One that was done all the same is kept: it was paid
    /// for, and a limit is for what comes next.
    fn stopped(&self, order: &Order, end: Option<Stop>) -> Told {
        match end {
            Some(Stop::Done { text }) if *order != Order::Cancel => Told::Text(text),
            _ => Told::Outcome(self.outcome_of(order)),
        }
    }

    fn too_long(&self) -> Outcome {
        let limit = told(self.times.turn);
        let message = format!("the agent's turn took longer than {limit} and was stopped");
        Outcome::Failed(StepError::new("timeout", message))
    }

    /// Waits for the program, but not longer than a turn may take, and not when told to stop.
    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, Outcome> {
        let mut orders = self.orders.clone();
        tokio::select! {
            done = work => done.map_err(|error| Outcome::Failed(error.into())),
            order = told_to_stop(&mut orders) => Err(self.outcome_of(&order)),
            () = tokio::time::sleep(self.times.turn) => Err(self.too_long()),
        }
    }

    pub(super) async fn pass_on(&self, report: Report) {
        let (step, attempt) = (self.step.clone(), self.attempt);
        self.say(Event::StepReported { step, attempt, report }).await;
    }
}

/// A question and those that are asked together with it.
async fn together(
    first: (BackendQuestion, Question),
    more: usize,
    turn: &mut Turn,
) -> Vec<(BackendQuestion, Question)> {
    let mut questions = vec![first];
    while questions.len() <= more {
        match turn.recv().await {
            Some(TurnEvent::Asked { id, question, .. }) => questions.push((id, question)),
            // Nothing comes between them; a turn that ends here is heard of when it is answered.
            _ => break,
        }
    }
    questions
}

/// What to send first.
pub(super) fn first_prompt(job: &AgentJob, how: How, remembers: bool) -> String {
    let mut prompt = match how {
        // Who has asked has the prompt, and who gets it twice asks twice.
        How::Continued if remembers && !job.answers.is_empty() => {
            "Your turn was cut off after you had asked the user. The answer is below. See how \
             things stand, go on with it, and end the way you were asked to."
                .to_owned()
        }
        How::First | How::Retried | How::Revived => job.prompt.clone(),
        How::RunAgain => format!(
            "{}\n\nAn attempt at this was cut off before it ended. Part of the work may be in the \
             files already; look before you begin.",
            job.prompt
        ),
        // The whole prompt again: the one before may never have been sent.
        How::Continued => format!(
            "{}\n\nYour turn was cut off while you were working on this. Part of it may be in the \
             files already. See how things stand, finish it, and end the way you were asked to.",
            job.prompt
        ),
    };
    for (question, answer) in &job.answers {
        let _ = write!(
            prompt,
            "\n\nYou asked: {}\nThe user's answer: {}",
            question.question,
            answer.text()
        );
    }
    prompt
}

/// Turns the final text into the output; the error is what to tell the agent.
fn read(job: &AgentJob, text: &str) -> Result<Value, String> {
    match &job.parse {
        Some(parse) => (parse.0)(text),
        None if job.schema.is_some() => structured(job, text),
        None if text.trim().is_empty() => {
            Err("You ended without an answer. Please answer.".to_owned())
        }
        None => Ok(Value::String(text.to_owned())),
    }
}

/// The final text as a value of the shape that was asked for.
fn structured(job: &AgentJob, text: &str) -> Result<Value, String> {
    let value: Value = serde_json::from_str(text.trim()).map_err(|error| {
        format!("Your answer is not the JSON that was asked for ({error}). Answer with it alone.")
    })?;
    let schema = job.schema.as_ref().and_then(|schema| Schema::read(schema).ok());
    match schema.map(|schema| schema.check(&value)) {
        Some(Err(problem)) => {
            Err(format!("Your answer has not the shape that was asked for: {problem}"))
        }
        Some(Ok(())) | None => Ok(value),
    }
}
