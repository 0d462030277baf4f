//! Taking a session up again: read, apply, carry on with what is left.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use atomic_backend::guard;
use atomic_event::{Created, Envelope, Event, Resumed, SessionId, StepId, Upgraded};
use atomic_graph::certificate::certify;
use atomic_graph::{Effect, Machine, Program};
use atomic_session::{Disk, Index, Recovery, Session, SessionStatus, Torn};
use atomic_workflow::Workflow;
use serde_json::Value;

use crate::backends::refuse_unusable;
use crate::book::{Book, OpenStep};
use crate::certificate::Basis;
use crate::front::Show;
use crate::payer::payers;
use crate::project::{Entry, progress_entry, tasks_done};
use crate::record::{input_of, is_timed};
use crate::relocate::Relocation;
use crate::run::{Matter, Run, RunError};
use crate::settings::Settings;
use crate::stage::Stage;
use crate::stream::{StreamMode, Streams};
use crate::upgrade::{UnderWay, Upgrade};
use crate::verify::EndedChecks;

/// How to take a session up again.
#[derive(Clone, Debug, Default)]
pub struct ResumeOptions {
    /// Something to tell every agent started from now on.
    pub instruction: Option<String>,
    /// The modes in which what happens is also shown, in this order.
    pub streams: Vec<StreamMode>,
    /// Whether the session goes on with the workflow as it is now, and not as it has kept it.
    pub upgrade: Option<Upgrade>,
    /// The folder it works in, where the project was moved since it began.
    pub workspace: Option<PathBuf>,
    /// Whether providers are tried at once, whatever times are recorded.
    pub now: bool,
}

/// What the journal says.
pub(crate) struct Past {
    pub(crate) created: Created,
    pub(crate) machine: Machine,
    pub(crate) book: Book,
    /// What the machine wants done and nobody has begun.
    pending: VecDeque<Effect>,
    settings: Settings,
    /// What the facts have to say in `progress.txt`; a power cut may have taken it from there.
    pub(crate) progress: Vec<Entry>,
}

/// What a snapshot says.
struct Restored {
    machine: Machine,
    book: Book,
    settings: Settings,
    pending: VecDeque<Effect>,
}

impl Run {
    /// Takes a session up again. `find` looks a workflow up by name; `adjust` changes the
    /// settings the session had.
    pub fn resume(
        mut stage: Stage,
        dir: PathBuf,
        options: ResumeOptions,
        find: impl FnOnce(&str) -> Result<Workflow, String>,
        adjust: impl FnOnce(&mut Settings),
    ) -> Result<(Self, Show), RunError> {
        let folders = crate::keep::folders(stage.index.as_deref(), dir);
        let (session, opened) = Session::open(Arc::clone(&stage.disk), folders, &stage.holder)?;
        let Event::SessionCreated(created) = &opened.first.event else {
            return Err(RunError::Refused("the journal does not begin with a session".to_owned()));
        };
        end_survivors(&created.session)?;
        let mut workflow = find(created.workflow.as_str()).map_err(RunError::Refused)?;
        let program = crate::upgrade::compiled(&created.graph).map_err(RunError::Refused)?;
        let past = Past::read(&session, program, created, opened.snapshot, &opened.facts)?;
        let resumable = Self::resumable(past.book.status);
        let is_upgraded = options.upgrade.is_some() && resumable.is_ok();
        if is_upgraded {
            crate::run::compile(&workflow)?;
        } else {
            workflow.graph = past.machine.program().graph().clone();
        }
        let mut settings = past.settings;
        let before = settings.clone();
        adjust(&mut settings);
        refuse_unusable(&stage, &workflow.graph, past.created.model.as_deref(), &settings)?;
        crate::place::refuse_unchecked(&workflow, &settings, &past.created)?;
        refuse_other_backend(&stage, &past.created)?;
        let mut created = past.created;
        created.workspace = options.workspace.unwrap_or(created.workspace);
        let payers = payers(&mut stage, past.machine.program().graph(), &settings, &created)?;
        let matter = Matter { created, settings, workflow, machine: past.machine };
        let (mut run, show) = Self::new(stage, session, matter);
        run.streams = Streams::new(&options.streams);
        run.ceilings.iterations = past.book.scopes.newest;
        run.book = past.book;
        run.rest_on_certificate();
        run.project_progress(&past.progress)?;
        let revived = match resumable {
            Ok(revived) => revived,
            Err(why) => {
                // The files may be behind the last fact.
                run.let_go()?;
                return Err(RunError::Refused(format!("session {} {why}", run.created.session)));
            }
        };
        let mut events = run.edits_while_paused()?;
        events.extend(run.moved_paths(&events)?);
        let read = run.read_after_stop();
        events.extend(read.as_deref().and_then(|read| run.book.verification.changed_by_user(read)));
        events.extend(run.changed_settings(&before));
        events.extend(run.told_of(opened.repaired, opened.restored));
        events.extend(options.instruction.map(|text| Event::Instructed { text }));
        let upgraded = is_upgraded.then(|| run.upgrade(&events, revived)).transpose()?;
        events.push(Event::SessionResumed(Resumed {
            version: run.stage.version.clone(),
            settings: serde_json::to_value(&run.settings).unwrap_or_default(),
            revived,
            upgraded,
            read,
            now: options.now,
        }));
        events.extend(payers);
        events.extend(run.notes_about_place(Some(&before)));
        events.extend(run.lost_steps());
        events.extend(run.notes_about_waits(options.now));
        run.set_timers_again();
        // What was spent before counts: at a ceiling nobody is prompted again.
        run.check_budget();
        run.record(events, past.pending.into())?;
        run.look_into_inbox()?;
        let answers = run.bring_up_questions();
        if !answers.is_empty() {
            run.record(answers, vec![])?;
        }
        Ok((run, show))
    }

    /// Notes what the certificate of launches rests on.
    fn rest_on_certificate(&mut self) {
        let known = self.machine.newest();
        let certificate = certify(self.machine.program().graph(), &known);
        self.ceilings.basis = Basis::of(&certificate, &known);
    }

    /// What becomes of the session with its workflow as it is now. The migration gets the state with
    /// the changes that are recorded before it: an edited task list would be lost otherwise.
    fn upgrade(&self, changes: &[Event], revived: bool) -> Result<Box<Upgraded>, RunError> {
        let machine = self.machine_after(changes)?;
        let first = self.created.origin.state_version;
        let from = self.book.upgraded.as_ref().map_or(first, |before| before.to);
        let (created, paths) = (&*self.created, self.paths.clone());
        let under_way = UnderWay { machine: &machine, created, paths, revived };
        crate::upgrade::planned(&under_way, from, &self.workflow).map(Box::new)
    }

    /// Paths into the session's folder in its state, where the project was moved since.
    fn moved_paths(&self, changes: &[Event]) -> Result<Option<Event>, RunError> {
        let dir = self.session.dir();
        Ok(Relocation::new(dir, dir).event(&self.machine_after(changes)?))
    }

    /// The machine after changes that are still to be recorded.
    fn machine_after(&self, changes: &[Event]) -> Result<Machine, RunError> {
        let mut machine = self.machine.clone();
        for input in changes.iter().filter_map(|event| input_of(event, None)) {
            machine.apply(input).map_err(|misfit| RunError::Refused(misfit.to_string()))?;
        }
        Ok(machine)
    }

    /// Ceilings that were raised reach the state, where the workflow counts.
    fn changed_settings(&self, before: &Settings) -> Vec<Event> {
        let mut patch = atomic_event::Patch::new();
        if self.settings.limits != before.limits {
            let limits = serde_json::to_value(&self.settings.limits).unwrap_or_default();
            patch.insert("limits".into(), limits);
            patch.insert("maxReviews".into(), self.settings.limits.review_rounds.into());
            if let Some(iterations) = self.settings.limits.iterations {
                patch.insert("maxIterations".into(), iterations.into());
            }
        }
        if self.settings.workers != before.workers {
            let workers = self.settings.workers.map(|workers| workers.max(1));
            patch.extend(workers.map(|workers| ("workers".into(), workers.into())));
        }
        if self.settings.max_launches != before.max_launches {
            let limit = self.settings.max_launches;
            patch.insert(Machine::MAX_LAUNCHES.into(), serde_json::json!(limit));
        }
        if patch.is_empty() {
            return vec![];
        }
        vec![Event::StatePatched { patch, reason: "settings given on resume".to_owned() }]
    }

    /// Steps that were started and are not finished, except those that wait for the user, and
    /// those that were found lost before and are about to be started again.
    fn lost_steps(&mut self) -> Vec<Event> {
        self.park_again();
        let running: BTreeMap<StepId, u32> = self.machine.running().into_iter().collect();
        let mut events = self.undelivered();
        for (step, open) in self.book.open.iter().filter(|(step, _)| !self.book.waits(step)) {
            // One that only waits for its time, or for its provider, goes on waiting.
            let waits = self.asleep(step).is_some() || self.crew.parking.is_parked(step);
            if running.get(step) != Some(&open.attempt) || waits {
                continue;
            }
            let (step, attempt) = (step.clone(), open.attempt);
            let answer = self.book.answers(&step, true).into_iter().next_back();
            events.push(match answer.filter(|_| self.is_ask_node(&step)) {
                Some((question, answer)) => {
                    let result = crate::question::result_of(&question, &answer);
                    Event::StepFinished { step, attempt, result, commit: None }
                }
                None => Event::StepLost {
                    step,
                    attempt,
                    progressed: open.progressed
                        || self.was_stopped_by_us()
                        || self.tries_provider(open),
                    reason: self.what_cut_it_short().to_owned(),
                },
            });
        }
        events
    }

    /// Answers that were recorded, but not how they were given: the crash came between the two.
    fn undelivered(&self) -> Vec<Event> {
        let answered =
            self.book.questions.iter().filter(|(_, a)| a.answer.is_some() && !a.delivered);
        let answered = answered.filter(|(_, asked)| !self.book.waits(&asked.step));
        answered
            .map(|(id, asked)| Event::AnswerDelivered {
                id: id.clone(),
                live: asked.about_lost || self.is_ask_node(&asked.step),
            })
            .collect()
    }

    /// Whether a step worked for a backend that waits: it was the one that tried.
    fn tries_provider(&self, open: &OpenStep) -> bool {
        let backend = open.backend.as_ref();
        open.agent && backend.is_some_and(|id| self.book.providers.get(id).is_some())
    }

    fn was_stopped_by_us(&self) -> bool {
        self.book.status != SessionStatus::Running
    }

    fn what_cut_it_short(&self) -> &'static str {
        if self.book.forked {
            return "the session was forked while it was under way";
        }
        match self.book.status {
            SessionStatus::Paused => "the run was paused",
            SessionStatus::Waiting => "the run was waiting for an answer",
            SessionStatus::Running | SessionStatus::Completed | SessionStatus::Failed => {
                "the program ended in the middle of it"
            }
        }
    }
}

impl Run {
    /// Logs what was found when the session was opened, and returns what everybody must know.
    fn told_of(&mut self, torn: Option<Torn>, restored: Option<Recovery>) -> Option<Event> {
        if let Some(torn) = torn {
            self.complain(&format!("{} bytes of an unfinished line were cut off", torn.bytes));
        }
        self.tell_unkept();
        let text = crate::keep::told(&restored?);
        Some(Event::Noted { text })
    }
}

fn refuse_other_backend(stage: &Stage, created: &Created) -> Result<(), RunError> {
    let backend = stage.backend.id();
    if backend == created.backend {
        return Ok(());
    }
    let own = &created.backend;
    Err(RunError::Refused(format!("the session works with the backend {own}, not {backend}")))
}

/// Brings the files of a completed session up to date, in case the program ended before it did, and
/// removes its second links. Returns what its checks said, where the workflow runs some.
pub fn finished(
    disk: &Arc<dyn Disk>,
    index: Option<&Index>,
    dir: PathBuf,
    holder: &str,
) -> Result<Option<EndedChecks>, RunError> {
    let folders = crate::keep::folders(index, dir);
    let (mut session, opened) = Session::open(Arc::clone(disk), folders, holder)?;
    let Event::SessionCreated(created) = &opened.first.event else {
        return Err(RunError::Refused("the journal does not begin with a session".to_owned()));
    };
    let program = crate::upgrade::compiled(&created.graph).map_err(RunError::Refused)?;
    let past = Past::read(&session, program, created, opened.snapshot, &opened.facts)?;
    if past.book.status == SessionStatus::Completed {
        past.write_files(&mut session)?;
        crate::keep::seal(index, &session, &past.created.session);
        session.release()?;
    }
    let tasks = tasks_done(&past.created.state, &past.machine.newest());
    Ok(past.book.verification.ended(&tasks))
}

impl Past {
    /// A session of which nothing is known but its first fact, which is still to be replayed.
    pub(crate) fn begun(program: Arc<Program>, created: &Created) -> Self {
        let (machine, effects) = Machine::start(program, created.state.clone());
        Self {
            created: created.clone(),
            machine,
            book: Book::default(),
            pending: untimed(effects).collect(),
            settings: serde_json::from_value(created.settings.clone()).unwrap_or_default(),
            progress: vec![],
        }
    }

    fn read(
        session: &Session,
        program: Arc<Program>,
        created: &Created,
        snapshot: Option<Value>,
        facts: &[Envelope],
    ) -> Result<Self, RunError> {
        let has_snapshot = snapshot.is_some();
        let restored = snapshot.and_then(|known| restore(Arc::clone(&program), known));
        // Another version may have written it; then everything is read from the beginning.
        let from_the_beginning = has_snapshot && restored.is_none();
        let mut past = match restored {
            None => Self::begun(program, created),
            Some(Restored { machine, book, settings, pending }) => {
                let (created, progress) = (created.clone(), vec![]);
                Self { created, machine, book, pending, settings, progress }
            }
        };
        let mut replay = |fact: &Envelope| {
            past.replay(fact).map_err(|problem| RunError::Misfit {
                dir: session.dir().to_owned(),
                problem: atomic_graph::Misfit(format!("fact {}: {problem}", fact.seq)),
            })
        };
        if from_the_beginning {
            for fact in session.facts()? {
                replay(&fact?)?;
            }
        } else {
            facts.iter().try_for_each(replay)?;
        }
        Ok(past)
    }

    pub(crate) fn replay(&mut self, fact: &Envelope) -> Result<(), String> {
        self.settle(&fact.event)?;
        if let Event::SessionResumed(resumed) = &fact.event
            && let Ok(settings) = serde_json::from_value(resumed.settings.clone())
        {
            self.settings = settings;
        }
        let to_machine = crate::question::answer_to_machine(&self.book, &fact.event);
        self.book.learn(&fact.event, fact.at);
        if let Event::SessionResumed(resumed) = &fact.event
            && let Some(upgraded) = &resumed.upgraded
        {
            crate::upgrade::apply(&mut self.machine, upgraded)?;
            let pending = std::mem::take(&mut self.pending).into_iter();
            self.pending = pending.map(|effect| self.machine.renewed(effect)).collect();
        }
        self.progress.extend(progress_entry(&self.book, &fact.event, fact.at));
        if let Some(input) = input_of(&fact.event, to_machine) {
            let effects = self.machine.apply(input).map_err(|e| e.to_string())?;
            self.pending.extend(untimed(effects));
        }
        Ok(())
    }

    /// A fact that carries out an effect settles it; one that carries out none does not belong.
    fn settle(&mut self, event: &Event) -> Result<(), String> {
        let settles = |effect: &Effect| match (event, effect) {
            (Event::StepStarted(s), Effect::Start(e)) => s.step == e.step && s.attempt == e.attempt,
            (
                Event::BranchChosen { step, .. } | Event::FunctionEvaluated { step, .. },
                Effect::Choose { step: e, .. },
            )
            | (Event::FunctionEvaluated { step, .. }, Effect::Evaluate { step: e, .. })
            | (
                Event::StepCancelled { step, .. }
                | Event::StepFinished { step, .. }
                | Event::StepFailed { step, .. }
                | Event::StepLost { step, .. },
                Effect::Cancel { step: e, .. },
            )
            | (
                Event::QuestionAsked { step, about_lost: true, .. },
                Effect::AskLost { step: e, .. },
            )
            | (Event::QuestionAsked { step, by_signal: true, .. }, Effect::Ask { step: e, .. }) => {
                step == e
            }
            (Event::RunFinished { .. }, Effect::Finish(_)) => true,
            _ => false,
        };
        let known = self.pending.iter().position(settles);
        match (known, event) {
            (Some(place), _) => {
                self.pending.remove(place);
                Ok(())
            }
            (None, Event::StepStarted(started)) => {
                Err(format!("{} was started, but is not next in its workflow", started.step))
            }
            (None, _) => Ok(()),
        }
    }
}

/// What is to be done, without the times: those are set anew when everything has been read.
fn untimed(effects: Vec<Effect>) -> impl Iterator<Item = Effect> {
    effects.into_iter().filter(|effect| !is_timed(effect))
}

fn restore(program: Arc<Program>, mut snapshot: Value) -> Option<Restored> {
    let mut part = |name: &str| Some(snapshot.get_mut(name)?.take());
    let book: Book = serde_json::from_value(part("book")?).ok()?;
    // It may have been written after an upgrade.
    let program = match &book.upgraded {
        Some(upgraded) => crate::upgrade::compiled(&upgraded.graph).ok()?,
        None => program,
    };
    Some(Restored {
        machine: Machine::restore(program, part("machine")?).ok()?,
        book,
        settings: serde_json::from_value(part("settings")?).ok()?,
        // Earlier snapshots were only taken where nothing was pending.
        pending: match part("pending") {
            Some(pending) => serde_json::from_value(pending).ok()?,
            None => VecDeque::new(),
        },
    })
}

/// Ends whatever is left of the attempts that were cut off, before anything else is done.
fn end_survivors(session: &SessionId) -> Result<(), RunError> {
    guard::end_survivors(session.as_str()).map(drop).map_err(|error| {
        RunError::Refused(format!(
            "what an earlier attempt left running could not be ended ({error}); \
             end it by hand and resume again"
        ))
    })
}
