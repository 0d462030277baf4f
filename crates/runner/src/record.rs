//! Decide, record, do: the one way in which anything happens.

use std::collections::VecDeque;

use atomic_event::{Event, Moment, ProviderEvent, Report, StepError, StepId, Timer};
use atomic_graph::{Effect, Input};
use atomic_session::failpoint;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::begin::INSTRUCTIONS;
use crate::front::Shown;
use crate::perform::{Message, Order, Outcome as Done, Task};
use crate::project::{Entry, progress_entry};
use crate::provider::is_answer;
use crate::question::{Asker, Reply};
use crate::run::{Run, RunError, failed_ending};
use crate::timer::TimerKind;

/// A batch is put on disk at the latest when it has this many facts, whatever is still to come.
/// So many are recorded before the run looks up again: for wishes, its time, and its performers.
const BATCH: usize = 512;

/// What is recorded with one write, and what is to be done once it is on disk.
#[derive(Default)]
struct Transition {
    /// Facts that are still to be taken in.
    queue: VecDeque<Event>,
    /// Facts that were taken in and are not on disk.
    batch: Vec<Event>,
    /// How many were taken in.
    facts: usize,
    jobs: Vec<Task>,
    replies: Vec<Reply>,
    progress: Vec<Entry>,
}

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
            Some(Input::Patched { patch: [(INSTRUCTIONS.into(), vec![text].into())].into() })
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
        | Event::RunStopped(_)
        | Event::Provider(_)
        | Event::RunFinished { .. }
        | Event::Unknown(_) => None,
    }
}

impl Run {
    /// Records `events` and what follows from them, with one write and one sync, and only then
    /// starts what is to be started. What follows from that without anybody's doing is recorded
    /// with it, up to a limit: the rest is the backlog, for another call. It is made of facts that
    /// are on disk, so a crash loses nothing of it.
    pub(crate) fn record(
        &mut self,
        events: Vec<Event>,
        effects: Vec<Effect>,
    ) -> Result<(), RunError> {
        let at = self.stage.clock.now();
        let mut now = Transition { queue: events.into(), ..Transition::default() };
        self.take_in(&mut now, at)?;
        // What an earlier process left to do sees everything that was told since.
        self.streams.left_over(&effects);
        let effects = effects.into_iter().map(|effect| self.machine.renewed(effect));
        self.crew.backlog.extend(effects);
        while now.facts < BATCH
            && let Some(effect) = self.crew.backlog.pop_front()
        {
            self.decide(effect, &mut now, at);
            self.take_in(&mut now, at)?;
        }
        if !now.batch.is_empty() {
            self.put_on_disk(now.batch, at)?;
        }
        self.project_progress(&now.progress)?;
        self.project_tasks()?;
        for (reply, answer) in now.replies {
            // The one who asked may be gone; the answer is in the journal.
            let _ = reply.send(answer);
        }
        for job in now.jobs {
            self.perform(job);
        }
        self.snapshot_if_due(at);
        Ok(())
    }

    /// Takes in every fact in the queue.
    fn take_in(&mut self, now: &mut Transition, at: Moment) -> Result<(), RunError> {
        loop {
            while let Some(event) = now.queue.pop_front() {
                // What was decided about a step that has been stopped since is no fact.
                if self.is_stale(&event) {
                    continue;
                }
                let event = self.judged(event);
                let effects = self.learn(&event, at)?;
                self.crew.backlog.extend(effects);
                now.progress.extend(progress_entry(&self.book, &event, at));
                if let Event::QuestionAnswered(answered) = &event {
                    self.deliver(&answered.id, &mut now.queue, &mut now.replies);
                }
                now.facts += 1;
                now.batch.push(event);
                if now.batch.len() >= BATCH {
                    self.put_on_disk(std::mem::take(&mut now.batch), at)?;
                }
            }
            let certified = if self.ceilings.basis.counts() {
                self.recertified(&self.machine.newest())
            } else {
                None
            };
            match certified {
                Some(certified) => now.queue.push_back(certified),
                None => return Ok(()),
            }
        }
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
        self.tell_unkept();
        self.tend_session()
    }

    fn snapshot_if_due(&mut self, at: Moment) {
        // One costs more than a batch does: between two of them it is only written now and then.
        let behind = !self.crew.backlog.is_empty();
        let too_soon = behind && self.session.seq() as usize % (4 * BATCH) >= BATCH;
        if too_soon || !self.session.snapshot_due() {
            return;
        }
        let written =
            self.machine.snapshot().map_err(|error| error.to_string()).and_then(|machine| {
                // Times are set anew when a run is taken up again.
                let pending = self.crew.parking.held().chain(&self.crew.backlog);
                let pending = pending.filter(|effect| !is_timed(effect));
                let known = serde_json::json!({
                    "machine": machine,
                    "book": self.book,
                    "settings": self.settings,
                    "pending": pending.collect::<Vec<_>>(),
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
        if let Event::SessionResumed(resumed) = event
            && let Some(upgraded) = &resumed.upgraded
        {
            crate::upgrade::apply(&mut self.machine, upgraded).map_err(RunError::Refused)?;
        }
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
            return !self.machine.is_limited(step);
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
        if let Event::StepFailed { step, attempt, error } = event {
            let error = self.with_sum(Some(&step), error);
            return Event::StepFailed { step, attempt, error };
        }
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
    fn decide(&mut self, effect: Effect, now: &mut Transition, at: Moment) {
        let queue = &mut now.queue;
        match effect {
            Effect::Start(start) => match self.must_wait(&start) {
                Some(backend) => self.hold(backend, start),
                None => self.begin(start, queue, &mut now.jobs),
            },
            Effect::Cancel { step, attempt } => self.cancel(step, attempt, now),
            Effect::Choose { step, options, targets } => {
                let event = self.unless_refused(step, String::new(), |run, step| {
                    run.choose(step, &options, &targets)
                });
                queue.extend(event);
            }
            Effect::Evaluate { step, call, args } => {
                let mut said = vec![];
                let event = self.unless_refused(step, call.to_string(), |run, step| {
                    let value = match run.advance(&step, &call, &args, at) {
                        Some(advanced) => advanced.map(|(value, notes)| {
                            said = notes;
                            value
                        }),
                        None => run.value(&step, &call, &args),
                    };
                    evaluated(step, call.to_string(), value)
                });
                queue.extend(said);
                queue.extend(event);
            }
            Effect::Limit { step, timeout_ms } => {
                self.timers.set(step, TimerKind::Limit, timeout_ms);
                let machine = &self.machine;
                self.timers.weed(|step, kind| match kind {
                    TimerKind::Limit => machine.is_limited(step),
                    TimerKind::Rest | TimerKind::Answer | TimerKind::Sleep => machine.awaits(step),
                });
            }
            Effect::Rest { step, delay_ms } => {
                // Nobody rests any longer when a ceiling was met.
                let delay_ms = if self.ceilings.exhausted.is_some() { 0 } else { delay_ms };
                self.timers.set(step, TimerKind::Rest, delay_ms);
            }
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
                let ending = match outcome {
                    Ok(()) => atomic_event::Ending::Completed,
                    Err(error) => failed_ending(self.with_sum(None, error)),
                };
                let result = self.machine.result().cloned();
                let verified = self.verified();
                queue.push_back(Event::RunFinished { ending, result, verified });
            }
        }
    }

    /// What an evaluation comes to; nothing where nobody waits for it any more.
    fn unless_refused(
        &mut self,
        step: StepId,
        call: String,
        evaluate: impl FnOnce(&Self, StepId) -> Event,
    ) -> Option<Event> {
        if !self.machine.awaits(&step) {
            return None;
        }
        Some(match self.ceilings.refusal(true) {
            Some(error) => evaluated(step, call, Err(error)),
            None => evaluate(self, step),
        })
    }

    /// Stops a step. One that was never begun, or that nobody is at work on, is gone at once.
    fn cancel(&mut self, step: StepId, attempt: u32, now: &mut Transition) {
        self.timers.clear(&step);
        self.crew.parking.forget(&step);
        self.hold_limits();
        let before = now.jobs.len();
        now.jobs.retain(|job| job.step != step);
        match self.crew.live.get(&step).filter(|_| now.jobs.len() == before) {
            // Whoever is at work says so when nothing of it is left.
            Some(live) => drop(live.stop.send(Order::Cancel)),
            None => now.queue.push_back(Event::StepCancelled { step, attempt }),
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
                events.extend(self.answered_probe(delta.step()));
                // A log is not worth failing for.
                let _ = self.session.log_transcript(&serde_json::json!(delta));
                self.front.show(Shown::Delta(delta));
            }
            Message::Happened(Event::Provider(ProviderEvent::PayerFound(found))) => {
                if !crate::payer::is_known(&self.book.providers.payers, &found) {
                    events.push(Event::Provider(ProviderEvent::PayerFound(found)));
                }
            }
            Message::Happened(event) => {
                if let Event::StepReported { step, report, .. } = &event
                    && is_answer(report)
                {
                    events.extend(self.answered_probe(step));
                }
                events.push(self.witnessed(event));
            }
            Message::Confirm(event, confirm) => {
                events.push(self.witnessed(event));
                after.push(confirm);
            }
            Message::Asked { step, questions } => {
                events.extend(self.answered_probe(&step));
                for (question, reply) in questions {
                    self.asked_by_agent(&step, question, reply, events);
                }
            }
            Message::Read { step, attempt, reading } => {
                let known = &self.book.verification;
                if let Some(read) = reading.since(known.reading.as_ref()) {
                    let notes = known.notes(&step, &read);
                    let report = Report::ProjectRead(Box::new(read));
                    events.push(Event::StepReported { step, attempt, report });
                    events.extend(notes);
                }
            }
            Message::ReadFirst { step, attempt, reading, confirm } => {
                let known = &self.book.verification;
                if let Some(read) = reading.since(None).filter(|_| known.reading.is_none()) {
                    let notes = known.notes(&step, &read);
                    let report = Report::ProjectRead(Box::new(read));
                    events.push(Event::StepReported { step, attempt, report });
                    events.extend(notes);
                }
                after.push(confirm);
            }
            Message::Refused { step, backend, error, recorded } => {
                // Without an event nothing is recorded, and the step fails.
                if let Some(event) = self.refused_turn(&backend, &step, &error, events) {
                    events.push(event);
                    after.push(recorded);
                }
            }
            Message::Ended { step, attempt, outcome, commit } => {
                self.take_end((step, attempt), outcome, commit, events);
            }
        }
    }

    /// Turns the end of a performance into facts.
    fn take_end(
        &mut self,
        (step, attempt): (StepId, u32),
        outcome: Done,
        commit: Option<String>,
        events: &mut Vec<Event>,
    ) {
        self.crew.live.remove(&step);
        events.extend(self.ended_probe(&step, &outcome));
        // The work is done, and nothing on disk says so yet.
        failpoint::hit("effect.done");
        match outcome {
            Done::Finished(mut result) => {
                // The workflow decides with it what becomes of the task.
                if let Some(verdict) = self.book.verification.verdict_of(&step)
                    && let Some(output) = result.output.as_object_mut()
                {
                    output.insert("verified".to_owned(), serde_json::json!(verdict));
                }
                events.push(self.mapped(step, attempt, result, commit));
            }
            Done::Failed(error) => events.push(Event::StepFailed { step, attempt, error }),
            Done::Cancelled => events.push(Event::StepCancelled { step, attempt }),
            // A pause, which is recorded when everything has stopped.
            Done::Stopped => {}
            Done::Refused { backend } => self.park(step, attempt, backend),
        }
    }
}

/// What a function has returned, as a fact.
fn evaluated(step: StepId, call: String, value: Result<Value, StepError>) -> Event {
    let (value, error) = match value {
        Ok(value) => (value, None),
        Err(error) => (Value::Null, Some(error)),
    };
    Event::FunctionEvaluated { step, call, value, error }
}

/// Whether an effect only sets a time.
pub(crate) fn is_timed(effect: &Effect) -> bool {
    matches!(effect, Effect::Limit { .. } | Effect::Rest { .. })
}
