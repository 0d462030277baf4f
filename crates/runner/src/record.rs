//! Decide, record, do: the one way in which anything happens.

use std::collections::VecDeque;

use atomic_event::{Event, Moment, StepId, Timer};
use atomic_graph::{Effect, Input};
use atomic_session::failpoint;
use tokio::sync::oneshot;

use crate::front::Shown;
use crate::perform::{Message, Order, Outcome as Done, Task};
use crate::project::progress_entry;
use crate::question::Asker;
use crate::run::{Run, RunError, failed_ending};
use crate::timer::TimerKind;

/// A batch is put on disk at the latest when it has this many facts, whatever is still to come.
const BATCH: usize = 512;

/// What to tell the machine about a fact; most facts tell it nothing.
/// `to_machine` is what an answer means to it.
pub(crate) fn input_of(event: &Event, to_machine: Option<Input>) -> Option<Input> {
    match event.clone() {
        Event::StepFinished { step, attempt, result, .. } => {
            Some(Input::Finished { step, attempt, result })
        }
        Event::StepFailed { step, attempt, error } => Some(Input::Failed { step, attempt, error }),
        Event::StepLost { step, attempt, progressed, .. } => {
            Some(Input::Lost { step, attempt, progressed })
        }
        Event::StepCancelled { step, attempt } => Some(Input::Cancelled { step, attempt }),
        Event::TimerFired { step, timer: Timer::Limit } => Some(Input::TimedOut { step }),
        Event::TimerFired { step, timer: Timer::Rest } => Some(Input::Rested { step }),
        Event::FunctionEvaluated { step, value, error, .. } => {
            Some(Input::Evaluated { step, result: error.map_or(Ok(value), Err) })
        }
        Event::BranchChosen { step, chosen, .. } => Some(Input::Chosen { step, chosen }),
        Event::QuestionAnswered(_) => to_machine,
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
        | Event::LaunchesCertified(_)
        | Event::SessionForked(_)
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
                let effects = left_over.take().unwrap_or_default();
                self.streams.left_over(&effects);
                for effect in effects {
                    self.decide(effect, &mut queue, &mut jobs);
                }
                continue;
            };
            // What was decided about a step that has been stopped since is no fact.
            if self.is_stale(&event) {
                continue;
            }
            let event = self.judged(event);
            let effects = self.learn(&event, at)?;
            queue.extend(self.recertified(&event));
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
            self.show_fact(envelope);
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
        let to_machine = crate::question::answer_to_machine(&self.book, event);
        let glance = self.streams.glance(&self.machine, event);
        self.book.learn(event, at);
        let effects = match input_of(event, to_machine) {
            None => vec![],
            Some(input) => self.machine.apply(input).map_err(|problem| RunError::Misfit {
                dir: self.session.dir().to_owned(),
                problem,
            })?,
        };
        self.streams.applied(glance, &self.machine, &effects);
        Ok(effects)
    }

    /// Whether nobody waits for what an event says any more.
    fn is_stale(&self, event: &Event) -> bool {
        if let Event::TimerFired { step, timer: Timer::Limit } = event {
            return self.machine.limited().iter().all(|(limited, _)| limited != step);
        }
        if let Event::BranchChosen { step, .. }
        | Event::FunctionEvaluated { step, .. }
        | Event::StepCancelled { step, .. }
        | Event::TimerFired { step, .. } = event
        {
            return !self.machine.awaits(step);
        }
        false
    }

    /// A result that does not fit is a failure of the step; what did not change is left out.
    fn judged(&self, event: Event) -> Event {
        let Event::StepFinished { step, attempt, mut result, commit } = event else {
            return event;
        };
        if let Some(view) = self.machine.view(&step) {
            view.trim(&mut result.patch);
        }
        match self.machine.judge(&step, &result) {
            Ok(()) => Event::StepFinished { step, attempt, result, commit },
            Err(error) => Event::StepFailed { step, attempt, error },
        }
    }

    /// Turns an effect into facts, and into jobs that are started once the facts are on disk.
    fn decide(&mut self, effect: Effect, queue: &mut VecDeque<Event>, jobs: &mut Vec<Task>) {
        match effect {
            Effect::Start(start) => self.begin(start, queue, jobs),
            Effect::Cancel { step, attempt } => self.cancel(step, attempt, queue, jobs),
            Effect::Choose { step, options, targets } => {
                queue.push_back(self.choose(step, &options, &targets));
            }
            Effect::Evaluate { step, call, args } => {
                let (value, error) = match self.value(&step, &call, &args) {
                    Ok(value) => (value, None),
                    Err(error) => (serde_json::Value::Null, Some(error)),
                };
                let call = call.to_string();
                queue.push_back(Event::FunctionEvaluated { step, call, value, error });
            }
            Effect::Limit { step, timeout_ms } => {
                self.timers.set(step, TimerKind::Limit, timeout_ms);
            }
            Effect::Rest { step, delay_ms } => self.timers.set(step, TimerKind::Rest, delay_ms),
            Effect::Ask { step, signal } => {
                let question = crate::question::of_signal(&signal);
                let id = self.next_question(&*queue);
                queue.extend(self.asked(&id, &step, question, Asker::Signal));
            }
            Effect::AskLost { step, .. } => {
                let question = crate::question::about_lost(&step);
                let id = self.next_question(&*queue);
                queue.push_back(Event::QuestionAsked {
                    id,
                    step,
                    question,
                    about_lost: true,
                    by_signal: false,
                });
            }
            Effect::Finish(outcome) => {
                let ending =
                    outcome.map_or_else(failed_ending, |()| atomic_event::Ending::Completed);
                queue.push_back(Event::RunFinished { ending });
            }
        }
    }

    /// Stops a step. One that was never begun, or that nobody is at work on, is gone at once.
    fn cancel(
        &mut self,
        step: StepId,
        attempt: u32,
        queue: &mut VecDeque<Event>,
        jobs: &mut Vec<Task>,
    ) {
        self.timers.clear(&step);
        let before = jobs.len();
        jobs.retain(|job| job.step != step);
        match self.crew.live.get(&step).filter(|_| jobs.len() == before) {
            // Whoever is at work says so when nothing of it is left.
            Some(live) => drop(live.stop.send(Order::Cancel)),
            None => queue.push_back(Event::StepCancelled { step, attempt }),
        }
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
            Message::Ended { step, attempt, outcome, commit } => {
                self.crew.live.remove(&step);
                // The work is done, and nothing on disk says so yet.
                failpoint::hit("effect.done");
                match outcome {
                    Done::Finished(result) => {
                        events.push(self.mapped(step, attempt, result, commit));
                    }
                    Done::Failed(error) => events.push(Event::StepFailed { step, attempt, error }),
                    Done::Cancelled => events.push(Event::StepCancelled { step, attempt }),
                    // A pause, which is recorded when everything has stopped.
                    Done::Stopped => {}
                }
            }
        }
    }
}
