//! Decide, record, do: the one way in which anything happens.

use std::collections::VecDeque;
use std::sync::Arc;

use atomic_event::{Event, How, Moment, Question, Started, StepError, StepId};
use atomic_graph::{Condition, Effect, FunctionId, Input, Start, State};
use atomic_session::failpoint;
use atomic_workflow::{Action, AgentAction, Call, Function, Text, render};
use tokio::sync::oneshot;

use crate::book::lane;
use crate::perform::{AgentJob, Job, Message, Outcome as Done, Task};
use crate::project::progress_entry;
use crate::run::{Run, RunError, Shown, failed_ending};
use crate::settings::OnQuestion;

/// A batch is put on disk at the latest when it has this many facts, whatever is still to come.
const BATCH: usize = 512;

/// What to tell the machine about a fact; most facts tell it nothing.
pub(crate) fn input_of(event: &Event, about_lost: Option<(StepId, bool)>) -> Option<Input> {
    match event.clone() {
        Event::StepFinished { step, attempt, result } => {
            Some(Input::Finished { step, attempt, result })
        }
        Event::StepFailed { step, attempt, error } => Some(Input::Failed { step, attempt, error }),
        Event::StepLost { step, attempt, progressed, .. } => {
            Some(Input::Lost { step, attempt, progressed })
        }
        Event::BranchChosen { step, chosen, .. } => Some(Input::Chosen { step, chosen }),
        Event::QuestionAnswered(_) => {
            about_lost.map(|(step, again)| Input::Settled { step, again })
        }
        Event::Instructed { text } => {
            Some(Input::Patched { patch: [("instructions".into(), vec![text].into())].into() })
        }
        Event::StatePatched { patch, .. } => Some(Input::Patched { patch }),
        Event::SessionResumed(resumed) if resumed.revived => Some(Input::Revived),
        Event::SessionCreated(_)
        | Event::SessionResumed(_)
        | Event::StepStarted(_)
        | Event::ConversationOpened { .. }
        | Event::StepReported { .. }
        | Event::QuestionAsked { .. }
        | Event::AnswerDelivered { .. }
        | Event::Noted { .. }
        | Event::RunPaused { .. }
        | Event::RunWaiting { .. }
        | Event::RunFinished { .. }
        | Event::Unknown(_) => None,
    }
}

impl Run {
    /// Records `events` and everything that follows from them at once, with one write and one
    /// sync, and only then starts what is to be started.
    pub(crate) fn record(
        &mut self,
        events: Vec<Event>,
        effects: Vec<Effect>,
    ) -> Result<(), RunError> {
        let at = self.stage.clock.now();
        let mut queue = VecDeque::from(events);
        let mut batch = vec![];
        let mut jobs = vec![];
        let mut replies = vec![];
        let mut progress = vec![];
        let mut left_over = Some(effects);
        while !queue.is_empty() || left_over.is_some() {
            let Some(event) = queue.pop_front() else {
                // What an earlier process left to do sees everything that was told since.
                for effect in left_over.take().unwrap_or_default() {
                    self.decide(effect, &mut queue, &mut jobs);
                }
                continue;
            };
            let event = self.judged(event);
            let effects = self.learn(&event, at)?;
            progress.extend(progress_entry(&self.book, &event, at));
            if let Event::QuestionAnswered(answered) = &event {
                self.deliver(&answered.id, &mut queue, &mut replies);
            }
            batch.push(event);
            for effect in effects {
                self.decide(effect, &mut queue, &mut jobs);
            }
            if batch.len() >= BATCH {
                self.put_on_disk(std::mem::take(&mut batch), at)?;
            }
        }
        if !batch.is_empty() {
            self.put_on_disk(batch, at)?;
        }
        self.project_progress(&progress)?;
        self.project_tasks()?;
        for (reply, answer) in replies {
            // The one who asked may be gone; the answer is in the journal.
            let _ = reply.send(answer);
        }
        for job in jobs {
            self.perform(job);
        }
        self.snapshot_if_due(at);
        Ok(())
    }

    /// Records `events` alone. What follows from them is found again when the run is resumed;
    /// until then a snapshot would lose it, so none is written.
    pub(crate) fn record_without_consequences(
        &mut self,
        events: Vec<Event>,
    ) -> Result<(), RunError> {
        let at = self.stage.clock.now();
        let mut batch = vec![];
        let mut progress = vec![];
        for event in events {
            let event = self.judged(event);
            let _later = self.learn(&event, at)?;
            progress.extend(progress_entry(&self.book, &event, at));
            batch.push(event);
        }
        if batch.is_empty() {
            return Ok(());
        }
        self.put_on_disk(batch, at)?;
        self.project_progress(&progress)
    }

    fn put_on_disk(&mut self, batch: Vec<Event>, at: Moment) -> Result<(), RunError> {
        let envelopes = self.session.append(batch, at)?;
        for envelope in envelopes {
            self.front.show(Shown::Fact(Arc::new(envelope)));
        }
        self.projection.touch();
        Ok(())
    }

    fn snapshot_if_due(&mut self, at: Moment) {
        if !self.session.snapshot_due() {
            return;
        }
        let written =
            self.machine.snapshot().map_err(|error| error.to_string()).and_then(|machine| {
                let known = serde_json::json!({
                    "machine": machine,
                    "book": self.book,
                    "settings": self.settings,
                });
                self.session.write_snapshot(&known).map_err(|error| error.to_string())
            });
        // A snapshot only shortens reading; without it everything still works.
        if let Err(problem) = written {
            let _ = self.session.log_error(&problem, at);
        }
    }

    /// Takes in a fact: the book first, then the machine.
    pub(crate) fn learn(&mut self, event: &Event, at: Moment) -> Result<Vec<Effect>, RunError> {
        let about_lost = crate::question::answer_about_lost(&self.book, event);
        self.book.learn(event, at);
        let Some(input) = input_of(event, about_lost) else { return Ok(vec![]) };
        self.machine
            .apply(input)
            .map_err(|problem| RunError::Misfit { dir: self.session.dir().to_owned(), problem })
    }

    /// A result that does not fit is a failure of the step; what did not change is left out.
    fn judged(&self, event: Event) -> Event {
        let Event::StepFinished { step, attempt, mut result } = event else { return event };
        if let Some(view) = self.machine.view(&step) {
            result
                .patch
                .retain(|key, value| view.get(key.as_str()).map(AsRef::as_ref) != Some(value));
        }
        match self.machine.judge(&step, &result) {
            Ok(()) => Event::StepFinished { step, attempt, result },
            Err(error) => Event::StepFailed { step, attempt, error },
        }
    }

    /// Turns an effect into facts, and into jobs that are started once the facts are on disk.
    fn decide(&mut self, effect: Effect, queue: &mut VecDeque<Event>, jobs: &mut Vec<Task>) {
        match effect {
            Effect::Start(start) => self.begin(start, queue, jobs),
            Effect::Choose { step, options, targets } => {
                let held = |condition: &Condition| self.holds(&step, condition);
                let chosen = options.iter().position(held).and_then(|n| u32::try_from(n).ok());
                let to = chosen.and_then(|n| targets.get(n as usize).cloned());
                queue.push_back(Event::BranchChosen { step, chosen, to });
            }
            Effect::AskLost { step, .. } => {
                let question = crate::question::about_lost(&step);
                let id = self.next_question(&*queue);
                queue.push_back(Event::QuestionAsked { id, step, question, about_lost: true });
            }
            Effect::Finish(outcome) => {
                let ending =
                    outcome.map_or_else(failed_ending, |()| atomic_event::Ending::Completed);
                queue.push_back(Event::RunFinished { ending });
            }
        }
    }

    fn begin(&mut self, start: Start, queue: &mut VecDeque<Event>, jobs: &mut Vec<Task>) {
        let start = Start { how: self.possible(&start.step, start.how), ..start };
        let action = self.action(&start.step);
        queue.push_back(Event::StepStarted(self.started(&start, action.as_ref().ok())));
        let Start { step, attempt, how, delay_ms } = start;
        let fail = |error: StepError| Event::StepFailed { step: step.clone(), attempt, error };
        let job = match action {
            Err(error) => return queue.push_back(fail(error)),
            Ok(Action::Function { call }) => {
                queue.push_back(match self.evaluate(&step, &call) {
                    Ok(result) => Event::StepFinished { step: step.clone(), attempt, result },
                    Err(error) => fail(error),
                });
                return;
            }
            Ok(Action::Ask(asking)) => {
                let view = self.machine.view(&step).unwrap_or_default();
                let question = render(&asking.question.question, &view);
                let question = Question { question, ..asking.question };
                let id = self.next_question(&*queue);
                queue.extend(self.asked(&id, &step, question));
                if self.settings.on_question == OnQuestion::Fail {
                    queue.push_back(fail(crate::question::nobody_there()));
                }
                return;
            }
            Ok(Action::Agent(_)) if self.exhausted.is_some() => {
                let reason = self.exhausted.clone().unwrap_or_default();
                return queue.push_back(fail(StepError::new(atomic_graph::code::CEILING, reason)));
            }
            Ok(Action::Agent(action)) => match self.agent_job(&step, how, action) {
                Ok(job) => Job::Agent(Box::new(job)),
                Err(error) => return queue.push_back(fail(error)),
            },
            Ok(Action::Gates(gates)) => {
                // As it is now: since this item began, another one may have turned a check green.
                let red = self.machine.newest().get("redGates").cloned();
                Job::Gates { baseline: gates.baseline, red }
            }
        };
        jobs.push(Task { step, attempt, delay_ms, job });
    }

    /// A step can be continued only in a conversation that was opened.
    fn possible(&self, step: &StepId, how: How) -> How {
        let open = self.book.open.get(step);
        if how == How::Continued && open.is_none_or(|open| open.conversation.is_none()) {
            return How::RunAgain;
        }
        how
    }

    fn started(&mut self, start: &Start, action: Option<&Action>) -> Started {
        let agent = match action {
            Some(Action::Agent(agent)) => Some(agent),
            Some(Action::Function { .. } | Action::Gates(_) | Action::Ask(_)) | None => None,
        };
        let uses_files = action.is_some_and(|a| a.tree() != atomic_workflow::Tree::Unused);
        let begins_one = agent.is_some_and(|agent| agent.iteration)
            && matches!(start.how, How::First | How::Revived)
            && self.exhausted.is_none();
        self.iterations += u64::from(begins_one);
        Started {
            step: start.step.clone(),
            attempt: start.attempt,
            how: start.how,
            description: self.machine.node(&start.step).and_then(|node| node.description.clone()),
            agent: agent.map(|agent| agent.agent.clone()),
            workspace: uses_files.then(|| self.created.workspace.clone()),
            iteration: begins_one.then_some(self.iterations),
        }
    }

    fn action(&self, step: &StepId) -> Result<Action, StepError> {
        let unknown = |problem: &dyn std::fmt::Display| {
            StepError::new(
                "action",
                format!("the node of `{step}` cannot be carried out: {problem}"),
            )
        };
        let node = self.machine.node(step).ok_or_else(|| unknown(&"it is not there"))?;
        let atomic_graph::Kind::Work { action } = &node.kind else {
            return Err(unknown(&"it is no work"));
        };
        serde_json::from_value(action.clone()).map_err(|error| unknown(&error))
    }

    fn evaluate(
        &self,
        step: &StepId,
        call: &FunctionId,
    ) -> Result<atomic_event::StepResult, StepError> {
        match self.workflow.functions.find(call) {
            Some(Function::Step(function)) => {
                let state = self.machine.view(step).unwrap_or_default();
                function(&Call { state: &state, step, paths: &self.paths })
            }
            Some(Function::Text(_) | Function::Parse(_) | Function::Holds(_)) | None => {
                Err(StepError::new("function", format!("there is no step function `{call}`")))
            }
        }
    }

    fn holds(&self, step: &StepId, condition: &Condition) -> bool {
        let state = self.machine.view(step).unwrap_or_default();
        match condition {
            Condition::Otherwise => true,
            Condition::Equals { key, value } => {
                state.get(key.as_str()).map(AsRef::as_ref) == Some(value)
            }
            Condition::Call(call) => match self.workflow.functions.find(call) {
                Some(Function::Holds(function)) => {
                    function(&Call { state: &state, step, paths: &self.paths })
                }
                Some(Function::Step(_) | Function::Text(_) | Function::Parse(_)) | None => false,
            },
        }
    }

    fn text(&self, step: &StepId, state: &State, text: &Text) -> Result<String, StepError> {
        match text {
            Text::Template(template) => Ok(render(template, state)),
            Text::Call(call) => match self.workflow.functions.find(call) {
                Some(Function::Text(function)) => {
                    Ok(function(&Call { state, step, paths: &self.paths }))
                }
                Some(Function::Step(_) | Function::Parse(_) | Function::Holds(_)) | None => {
                    Err(StepError::new("function", format!("there is no text function `{call}`")))
                }
            },
        }
    }

    fn agent_job(
        &self,
        step: &StepId,
        how: How,
        action: AgentAction,
    ) -> Result<AgentJob, StepError> {
        let state = self.machine.view(step).unwrap_or_default();
        let system_prompt = match &action.instructions {
            Some(own) => own.clone(),
            None => atomic_workflow::agents::find(action.agent.as_str())
                .ok_or_else(|| {
                    let message = format!("Agent not found: {}", action.agent);
                    StepError::new("misconfigured", message)
                })?
                .prompt()
                .to_owned(),
        };
        let parse = match action.parse.as_ref().map(|id| (id, self.workflow.functions.find(id))) {
            None => None,
            Some((_, Some(Function::Parse(parse)))) => Some(parse),
            Some((id, _)) => {
                return Err(StepError::new("function", format!("there is no parser `{id}`")));
            }
        };
        let open = self.book.open.get(step).and_then(|open| open.conversation.clone());
        let shared = self.book.lanes.get(lane(step)).cloned().filter(|_| !action.fresh);
        Ok(AgentJob {
            prompt: self.text(step, &state, &action.prompt)?,
            system_prompt,
            agent: action.agent,
            shared: !action.fresh,
            questions: action.questions,
            resume: if how == How::Continued { open } else { shared },
            how,
            answers: self.book.answers(step),
            parse,
        })
    }

    /// Turns what a performer says into facts.
    pub(crate) fn take(
        &mut self,
        message: Message,
        events: &mut Vec<Event>,
        after: &mut Vec<oneshot::Sender<()>>,
    ) {
        match message {
            Message::Typed(delta) => {
                // A log is not worth failing for.
                let _ = self.session.log_transcript(&serde_json::json!(delta));
                self.front.show(Shown::Delta(delta));
            }
            Message::Happened(event) => events.push(event),
            Message::Confirm(event, confirm) => {
                events.push(event);
                after.push(confirm);
            }
            Message::Asked { step, question, reply } => {
                self.asked_by_agent(&step, question, reply, events);
            }
            Message::Ended { step, attempt, outcome } => {
                self.crew.live.remove(&step);
                // The work is done, and nothing on disk says so yet.
                failpoint::hit("effect.done");
                match outcome {
                    Done::Finished(result) => {
                        events.push(Event::StepFinished { step, attempt, result });
                    }
                    Done::Failed(error) => events.push(Event::StepFailed { step, attempt, error }),
                    // A pause, which is recorded when everything has stopped.
                    Done::Stopped => {}
                }
            }
        }
    }
}
