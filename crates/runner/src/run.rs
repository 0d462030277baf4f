//! One run: its state, and the loop that owns it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use atomic_backend::BackendError;
use atomic_event::{
    Created, Ending, Event, FORMAT, Intent, Origin, Question, QuestionId, SessionId, StepError, Why,
};
use atomic_graph::{Machine, Misfit, Program, State};
use atomic_session::{Session, SessionError};
use atomic_workflow::{Launch, Paths, Workflow};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

use crate::backends::refuse_unusable;
use crate::book::Book;
use crate::ceiling::Ceilings;
use crate::certificate::{Basis, certificate, refuse_too_many};
use crate::front::{Front, Show, front};
use crate::keep::remember;
use crate::payer::payers;
use crate::perform::{Crew, Message};
use crate::project::Projection;
use crate::settings::Settings;
use crate::stage::Stage;
use crate::stream::{StreamMode, Streams};
use crate::timer::{Timers, told};
use crate::verify::EndedChecks;

/// Why a run could not be carried on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The session could not be read or written.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The backend could not be used at all.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The journal does not fit the workflow.
    #[error("the journal in {dir} does not fit its workflow: {problem}")]
    Misfit {
        /// The session's folder.
        dir: PathBuf,
        /// What does not fit.
        problem: Misfit,
    },
    /// The workflow is not sound.
    #[error("the workflow cannot be run:\n{}", .0.join("\n"))]
    Unsound(Vec<String>),
    /// Something was asked for that cannot be.
    #[error("{0}")]
    Refused(String),
    /// Nobody has chosen among the credentials that could pay.
    #[error("{0}")]
    Unpaid(String),
    /// Checks are required, and none can be run.
    #[error("{0}")]
    Unchecked(String),
}

/// What to run.
#[derive(Clone, Debug)]
pub struct StartRequest {
    /// The workflow.
    pub workflow: Workflow,
    /// What it is asked to do.
    pub prompt: String,
    /// The folder it works in.
    pub workspace: PathBuf,
    /// The model, when one was chosen.
    pub model: Option<String>,
    /// How to behave.
    pub settings: Settings,
}

/// How a run came to a stop.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// Which session.
    pub session: SessionId,
    /// Its folder.
    pub dir: PathBuf,
    /// How.
    pub outcome: Outcome,
    /// What its checks have verified, where the workflow runs some.
    pub checks: Option<EndedChecks>,
}

/// How a run came to a stop.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Everything is done. How much of it is verified is said apart.
    Completed,
    /// It failed; it can be resumed.
    Failed {
        /// Why.
        error: StepError,
        /// Whether it was a ceiling of the whole run.
        ceiling: bool,
    },
    /// It waits for answers.
    Waiting(Vec<(QuestionId, Question)>),
    /// It was paused.
    Paused,
}

/// How often the inbox is looked into while a question is open.
const INBOX_TICK: Duration = Duration::from_millis(100);

/// What a run is about, when it is new and when it is taken up again.
pub(crate) struct Matter {
    pub(crate) created: Created,
    pub(crate) settings: Settings,
    pub(crate) workflow: Workflow,
    pub(crate) machine: Machine,
}

/// A run under way.
#[derive(Debug)]
pub struct Run {
    pub(crate) stage: Stage,
    pub(crate) session: Session,
    pub(crate) created: Arc<Created>,
    pub(crate) settings: Settings,
    pub(crate) workflow: Workflow,
    pub(crate) machine: Machine,
    pub(crate) book: Book,
    pub(crate) projection: Projection,
    pub(crate) paths: Paths,
    pub(crate) front: Front,
    pub(crate) crew: Crew,
    pub(crate) ceilings: Ceilings,
    pub(crate) timers: Timers,
    pub(crate) streams: Streams,
}

impl Run {
    /// Creates a session and takes its first steps. Everything it does from then on is shown.
    pub fn start(stage: Stage, request: StartRequest) -> Result<(Self, Show), RunError> {
        Self::start_streaming(stage, request, &[])
    }

    /// The same; what happens is also shown in these modes, in this order.
    pub fn start_streaming(
        mut stage: Stage,
        request: StartRequest,
        modes: &[StreamMode],
    ) -> Result<(Self, Show), RunError> {
        let StartRequest { workflow, prompt, workspace, model, settings } = request;
        let program = compile(&workflow)?;
        refuse_unusable(&stage, &workflow.graph, model.as_deref(), &settings)?;
        let session = SessionId::from(uuid::Uuid::new_v4().to_string());
        let dir = crate::place::sessions_folder(&workspace, &workflow.sessions_dir)?
            .join(session.as_str());
        let launch = launch(&prompt, (session.as_str(), &dir), &settings);
        let state = first_state(&workflow, &launch, &settings)?;
        let graph = serde_json::to_value(&workflow.graph).unwrap_or_default();
        let created = Created {
            format: FORMAT,
            session,
            version: stage.version.clone(),
            workflow: workflow.name.clone(),
            graph_hash: hashed(&graph),
            graph,
            original_prompt: prompt.clone(),
            prompt,
            workspace,
            backend: stage.backend.id(),
            model,
            settings: serde_json::to_value(&settings).unwrap_or_default(),
            state,
            origin: Origin {
                forked_from: None,
                root: None,
                source: workflow.source.clone(),
                state_version: workflow.state_shape.version,
            },
        };
        crate::place::refuse_unchecked(&workflow, &settings, &created)?;
        let mut facts = payers(&mut stage, &workflow.graph, &settings, &created)?;
        let certificate = certificate(&workflow.graph, &created.state);
        refuse_too_many(&certificate, settings.max_launches)?;
        let first = Event::SessionCreated(Box::new(created.clone()));
        let at = stage.clock.now();
        // Before the first fact: a session that is not in the list counts as a stranger's.
        let listed = remember(&stage, &created, &dir, at);
        let folders = crate::keep::folders(stage.index.as_deref(), dir);
        let (held, envelope) =
            Session::create(Arc::clone(&stage.disk), folders, &stage.holder, first, at)?;
        let (machine, effects) = Machine::start(program, created.state.clone());
        let matter = Matter { created, settings, workflow, machine };
        let (mut run, mut show) = Self::new(stage, held, matter);
        let state = State::new(run.created.state.clone());
        run.ceilings.basis = Basis::of(&certificate, &state);
        run.streams = Streams::new(modes);
        run.learn(&envelope.event, at)?;
        run.tell_unkept();
        if let Err(why) = listed {
            run.complain(&why);
            show.unlisted = Some(why);
        }
        run.show_fact(envelope);
        facts.push(crate::certificate::fact(&certificate));
        facts.extend(run.notes_about_place(None));
        run.record(facts, effects)?;
        Ok((run, show))
    }

    pub(crate) fn new(stage: Stage, mut session: Session, matter: Matter) -> (Self, Show) {
        let Matter { created, settings, workflow, machine } = matter;
        session.belong_to(&created.workspace);
        let (front, show) = front();
        let paths = paths_of(&session);
        let run = Self {
            stage,
            session,
            created: Arc::new(created),
            settings,
            workflow,
            machine,
            book: Book::default(),
            projection: Projection::default(),
            paths,
            front,
            crew: Crew::default(),
            ceilings: Ceilings::default(),
            timers: Timers::default(),
            streams: Streams::default(),
        };
        (run, show)
    }

    /// Which session this is.
    pub fn session(&self) -> &SessionId {
        &self.created.session
    }

    /// Its folder.
    pub fn dir(&self) -> &Path {
        self.session.dir()
    }

    /// Carries the run on until it ends, waits, or is told to pause. Nothing it started is left
    /// when this returns.
    pub async fn drive(mut self, mut intents: mpsc::Receiver<Intent>) -> Result<Ended, RunError> {
        let outcome = self.carry_on(&mut intents).await;
        // After an error there may still be somebody at work.
        self.stop_all().await;
        self.crew.awake.release().await;
        self.stage.end_resting().await;
        let outcome = outcome?;
        self.project_tasks_again()?;
        self.let_go()?;
        let (session, dir) = (self.created.session.clone(), self.session.dir().to_owned());
        let checks = self.ended_checks();
        Ok(Ended { session, dir, outcome, checks })
    }

    async fn carry_on(
        &mut self,
        intents: &mut mpsc::Receiver<Intent>,
    ) -> Result<Outcome, RunError> {
        let mut inbox = tokio::time::interval(INBOX_TICK);
        inbox.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let limit = self.time_limit();
        let deadline = limit.map(|limit| Instant::now() + limit);
        let mut intents_open = true;
        loop {
            let behind = !self.crew.backlog.is_empty();
            if let Some(outcome) = self.outcome().filter(|_| !behind) {
                return Ok(outcome);
            }
            if !behind && self.can_only_wait() {
                return self.wait_for_answers().await;
            }
            let asking = !self.book.unanswered().is_empty();
            let providers_due = self.providers_due();
            self.keep_awake();
            tokio::select! {
                biased;
                intent = intents.recv(), if intents_open => match intent {
                    Some(Intent::Pause { reason }) => return self.pause(reason).await,
                    Some(Intent::Answer { question, answer }) => self.answered_by_person(&question, answer)?,
                    Some(Intent::Leave) => self.leave_questions(),
                    None => intents_open = false,
                },
                () = at(deadline), if self.ceilings.exhausted.is_none() => {
                    let limit = told(limit.unwrap_or_default());
                    self.exhaust(format!("the run has used all of its {limit}"));
                }
                message = self.crew.messages.1.recv() => self.take_messages(message)?,
                Some(joined) = self.crew.tasks.join_next() => if joined.is_err() {
                    let why = "a step broke down inside atomic itself; resume to run it again";
                    return Err(RunError::Refused(why.to_owned()));
                },
                _ = inbox.tick(), if asking => self.look_into_inbox()?,
                () = at(self.timers.next()) => self.fire_timers()?,
                () = at(providers_due) => if let Some(reason) = self.tend_providers()? {
                    return self.pause(reason).await;
                },
                () = self.projection.due(), if self.projection.is_dirty() => self.project_all()?,
                // Last, and never at once: everything above has its turn between two batches.
                () = tokio::task::yield_now(), if behind => self.record(vec![], vec![])?,
            }
        }
    }

    /// The longest time for the run from now on: the settings', or else the workflow's own.
    fn time_limit(&self) -> Option<Duration> {
        let own = self.machine.program().graph().timeout_ms.map(Duration::from_millis);
        self.settings.timeout_secs.map(Duration::from_secs).or(own)
    }

    /// How the run ended, when it has.
    fn outcome(&self) -> Option<Outcome> {
        Some(match self.machine.outcome()? {
            Ok(()) => Outcome::Completed,
            Err(error) => {
                let ceiling = is_ceiling(error);
                Outcome::Failed { error: self.with_sum(None, error.clone()), ceiling }
            }
        })
    }

    /// Takes in a message and everything else that has already arrived, so that what finishes
    /// together is recorded together.
    fn take_messages(&mut self, first: Option<Message>) -> Result<(), RunError> {
        let mut batch: Vec<Message> = first.into_iter().collect();
        while batch.len() < 1_024 {
            let Ok(message) = self.crew.messages.1.try_recv() else { break };
            batch.push(message);
        }
        let mut events = vec![];
        let mut after = vec![];
        for message in batch {
            self.take(message, &mut events, &mut after);
        }
        if !events.is_empty() {
            self.record(events, vec![])?;
        }
        for confirm in after {
            // Whoever waited for it may be gone.
            let _ = confirm.send(());
        }
        self.check_budget();
        Ok(())
    }
}

/// Waits until `deadline`; for ever without one.
async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Where the files of a session are.
pub(crate) fn paths_of(session: &Session) -> Paths {
    Paths { tasks: session.dir().join("tasks.json"), progress: session.dir().join("progress.txt") }
}

pub(crate) fn is_ceiling(error: &StepError) -> bool {
    error.code == atomic_graph::code::CEILING
}

/// How a failed run is recorded.
pub(crate) fn failed_ending(error: StepError) -> Ending {
    let why = if is_ceiling(&error) { Why::Ceiling } else { Why::Step };
    Ending::Failed { error, why }
}

pub(crate) fn compile(workflow: &Workflow) -> Result<Arc<Program>, RunError> {
    Program::compile(workflow.graph.clone())
        .map_err(|problems| RunError::Unsound(problems.iter().map(ToString::to_string).collect()))
}

/// What a run is started with.
pub(crate) fn launch(prompt: &str, session: (&str, &Path), settings: &Settings) -> Launch {
    Launch {
        prompt: prompt.to_owned(),
        session: session.0.to_owned(),
        session_dir: session.1.to_owned(),
        workers: settings.workers.map(|workers| workers.max(1)),
        limits: settings.limits.clone(),
    }
}

/// The state a run begins with.
fn first_state(
    workflow: &Workflow,
    launch: &Launch,
    settings: &Settings,
) -> Result<atomic_event::Patch, RunError> {
    let mut state = workflow.initial_state.state(launch).map_err(|error| no_state(&error))?;
    if let Some(limit) = settings.max_launches {
        state.insert(Machine::MAX_LAUNCHES.into(), limit.into());
    }
    Ok(state)
}

/// A workflow cannot say what state it begins with.
pub(crate) fn no_state(error: &StepError) -> RunError {
    let message = &error.message;
    let detail = error.detail.as_ref().map(|detail| format!("\n{detail}")).unwrap_or_default();
    RunError::Refused(format!("the state of the run could not be made: {message}{detail}"))
}

/// The hash of a graph, to tell whether it has changed.
pub(crate) fn hashed(graph: &serde_json::Value) -> String {
    hex(&Sha256::digest(graph.to_string().as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
