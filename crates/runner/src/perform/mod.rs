//! Carrying out one step, in a task of its own. It reports what happens and decides nothing.

mod agent;
mod check;
mod fetch;
mod git;
mod request;
mod tls;
mod tool;
mod work;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use atomic_backend::{Backend, Inherit, Persona, ToolRules};
use atomic_event::{
    AgentName, Answer, BackendId, ConversationId, Delta, Event, How, Question, QuestionId,
    StepError, StepId, StepResult,
};
use atomic_graph::Effect;
use atomic_workflow::{Action, AgentAction, ParseFn, ShellCommand, TaskFileOp};
use serde_json::Value;
use tokio::sync::{OwnedRwLockReadGuard, RwLock, mpsc, oneshot, watch};
use tokio::task::JoinSet;

pub use check::CHECK_TOOL;
pub(crate) use check::CheckJob;
pub(crate) use check::Checks;

use crate::awake::SleepInhibitor;
use crate::provider::Parking;
use crate::run::Run;
use crate::task_file::TaskRequest;
use crate::verify::{Reading, Verification};
use request::Reach;
pub(crate) use work::WorkJob;

/// A step to carry out.
pub(crate) struct Task {
    pub(crate) step: StepId,
    pub(crate) attempt: u32,
    pub(crate) delay_ms: u64,
    pub(crate) job: Job,
    /// Who is prompted, where somebody is.
    pub(crate) backend: Arc<dyn Backend>,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Job {
    /// Prompt an agent.
    Agent(Box<AgentJob>),
    /// Run the checks.
    Gates(CheckJob),
    /// Run a command.
    Shell(ShellCommand),
    /// Let the backend summarise a conversation.
    Compact { conversation: ConversationId },
    /// Read or write a file of tasks.
    TaskFile(TaskFileOp, Box<TaskRequest>),
    /// Let a function do its work.
    Work(WorkJob),
    /// Ask something of the world outside.
    Request { name: String, args: Value },
}

/// Everything a turn needs, put together before it starts.
#[derive(Debug)]
pub(crate) struct AgentJob {
    pub(crate) agent: AgentName,
    pub(crate) system_prompt: String,
    /// The model the agent, the skill or the command wants, when the workflow names none.
    pub(crate) model: Option<String>,
    pub(crate) prompt: String,
    pub(crate) how: How,
    /// The conversation to continue.
    pub(crate) resume: Option<ConversationId>,
    pub(crate) shared: bool,
    pub(crate) questions: bool,
    /// What it may use, in the backend's own names.
    pub(crate) tools: ToolRules,
    /// What its final text has to be, when nothing else reads it.
    pub(crate) schema: Option<Value>,
    /// The agents it may start.
    pub(crate) helpers: Vec<Persona>,
    /// What it takes over from its program's settings.
    pub(crate) inherit: Inherit,
    /// What the user answered in an attempt that was cut off.
    pub(crate) answers: Vec<(Question, Answer)>,
    pub(crate) parse: Option<Parse>,
}

/// Reads an agent's final text; the error is told to the agent.
#[derive(Clone)]
pub(crate) struct Parse(pub(crate) Arc<ParseFn>);

impl std::fmt::Debug for Parse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Parse")
    }
}

/// What a performer is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Go on.
    Work,
    /// Stop; nothing of it counts.
    Pause,
    /// Stop; what it was for is settled.
    Cancel,
    /// Stop; a ceiling of the whole run was met.
    Ceiling(String),
    /// Stop; the task has spent its own budget.
    TaskBudget(String),
}

/// What a performer says.
#[derive(Debug)]
pub(crate) enum Message {
    /// To be shown.
    Typed(Delta),
    /// To be recorded.
    Happened(Event),
    /// To be recorded before the performer goes on.
    Confirm(Event, oneshot::Sender<()>),
    /// To be asked together; each with where its answer is given.
    Asked { step: StepId, questions: Vec<(Question, oneshot::Sender<Answer>)> },
    /// The files that decide what the checks mean, as they are now.
    Read { step: StepId, attempt: u32, reading: Box<Reading> },
    /// The same before the first agent works; to be recorded before the performer goes on.
    ReadFirst { step: StepId, attempt: u32, reading: Box<Reading>, confirm: oneshot::Sender<()> },
    /// The provider has refused a turn. Confirmed once that is recorded; dropped where nothing is
    /// waited for.
    Refused { step: StepId, backend: BackendId, error: StepError, recorded: oneshot::Sender<()> },
    /// It is over.
    Ended { step: StepId, attempt: u32, outcome: Outcome, commit: Option<String> },
}

/// How a performance ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Finished(StepResult),
    Failed(StepError),
    Cancelled,
    Stopped,
    /// The provider has refused the turn: the step stays open, and is continued later.
    Refused {
        backend: BackendId,
    },
}

/// Everybody who is at work, and what is still to be handed out.
#[derive(Debug)]
pub(crate) struct Crew {
    /// What the machine wants done and nobody has begun, oldest first.
    pub(crate) backlog: VecDeque<Effect>,
    pub(crate) tasks: JoinSet<()>,
    pub(crate) live: BTreeMap<StepId, Live>,
    /// Steps that are put off while their backend waits for its provider.
    pub(crate) parking: Parking,
    pub(crate) messages: (mpsc::Sender<Message>, mpsc::Receiver<Message>),
    /// Keeps the machine from sleeping.
    pub(crate) awake: SleepInhibitor,
    /// Agents share the project's files; a check has them alone.
    tree: Arc<RwLock<()>>,
}

impl Default for Crew {
    fn default() -> Self {
        Self {
            backlog: VecDeque::new(),
            tasks: JoinSet::new(),
            live: BTreeMap::new(),
            parking: Parking::default(),
            messages: mpsc::channel(256),
            awake: SleepInhibitor::default(),
            tree: Arc::new(RwLock::new(())),
        }
    }
}

/// A step that is being carried out, as the run sees it.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) stop: watch::Sender<Order>,
    /// Questions it waits for, with where to put the answer.
    pub(crate) asks: BTreeMap<QuestionId, oneshot::Sender<Answer>>,
}

impl Live {
    /// Whether it can do nothing before it is answered. One that was told to stop waits for
    /// nothing any more.
    pub(crate) fn only_waits(&self) -> bool {
        !self.asks.is_empty() && *self.stop.borrow() == Order::Work
    }
}

/// When the files that decide what the checks mean are read, to know who changes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    /// The workflow runs no checks.
    Never,
    /// After every agent.
    After,
    /// Before the agent as well, because nothing has been read so far.
    BeforeAndAfter,
}

impl Reads {
    fn of(known: &Verification) -> Self {
        match (known.is_on, &known.reading) {
            (false, _) => Self::Never,
            (true, Some(_)) => Self::After,
            (true, None) => Self::BeforeAndAfter,
        }
    }
}

/// One step being carried out, with everything it may use.
pub(crate) struct Performer {
    step: StepId,
    attempt: u32,
    messages: mpsc::Sender<Message>,
    orders: watch::Receiver<Order>,
    tree: Arc<RwLock<()>>,
    /// The leave to use the project's files together with others, while it is needed.
    share: Option<OwnedRwLockReadGuard<()>>,
    backend: Arc<dyn Backend>,
    /// What it can reach outside.
    reach: Reach,
    model: Option<String>,
    checks: Arc<Checks>,
    reads: Reads,
    is_trusted: bool,
    /// Whether a person sees who pays before a call.
    is_attended: bool,
    times: WorkTimes,
}

/// How long a step may work. A turn that is tried again after a wait for its provider has all of its time.
struct WorkTimes {
    /// The longest time for a turn or a check.
    turn: Duration,
    /// The longest time its node sets.
    own: Option<Duration>,
}

impl Run {
    /// Starts a step. Its start is on disk.
    pub(crate) fn perform(&mut self, task: Task) {
        self.log_call(&task);
        let model = self.model(&task);
        let Task { step, attempt, delay_ms, job, backend } = task;
        let is_agent = matches!(job, Job::Agent(_));
        let backend = if is_agent { self.paid_backend(backend, model.as_deref()) } else { backend };
        let (stop, orders) = watch::channel(Order::Work);
        let own_timeout = self.machine.node(&step).and_then(|node| node.timeout_ms);
        let own_timeout = own_timeout.map(Duration::from_millis);
        let usual = Duration::from_secs(self.settings.turn_timeout_secs);
        let performer = Performer {
            step: step.clone(),
            attempt,
            messages: self.crew.messages.0.clone(),
            orders,
            tree: Arc::clone(&self.crew.tree),
            share: None,
            backend,
            reach: Reach {
                guard: self.stage.guard.clone(),
                workspace: self.created.workspace.clone(),
                marker: format!("{}/{}/{attempt}", self.created.session, step.as_str()),
                env_allow: self.settings.env_allow.clone(),
                values: self.session.value_files(),
            },
            model,
            checks: Arc::new(Checks::of(&self.settings, &self.book.verification)),
            reads: Reads::of(&self.book.verification),
            is_trusted: self.settings.program.trusted,
            is_attended: self.settings.program.is_attended,
            times: WorkTimes { turn: own_timeout.unwrap_or(usual), own: own_timeout },
        };
        self.crew.live.insert(step, Live { stop, asks: BTreeMap::new() });
        self.crew.tasks.spawn(performer.perform(delay_ms, job));
    }

    /// The workflow's choice for this step, else the agent's own, else the one of the whole run.
    /// What is said for many steps is a model of the run's backend, and means nothing to another.
    fn model(&self, Task { step, job, backend, .. }: &Task) -> Option<String> {
        // One that a single call names beats what is said for many.
        if let Ok(Action::Agent(AgentAction { model: named @ Some(_), .. })) = self.action(step) {
            return named;
        }
        let own = if let Job::Agent(job) = job { job.model.clone() } else { None };
        if backend.id() != self.created.backend {
            return self.machine.own_model(step).map(str::to_owned).or(own);
        }
        let chosen = self.machine.model(step).map(str::to_owned);
        chosen.or(own).or_else(|| self.created.model.clone())
    }

    fn log_call(&self, task: &Task) {
        let Task { step, attempt, backend, .. } = task;
        let Job::Agent(job) = &task.job else { return };
        let line = serde_json::json!({
            "at": self.book.times.last,
            "step": step,
            "attempt": attempt,
            "how": job.how,
            "backend": backend.id(),
            "agent": job.agent,
            "model": self.model(task),
            "resume": job.resume,
            "prompt": agent::first_prompt(job, job.how, backend.remembers()),
        });
        // A log is not worth failing for.
        let _ = self.session.log_agent_call(&line);
    }
}

impl Performer {
    async fn perform(mut self, delay_ms: u64, job: Job) {
        let mut orders = self.orders.clone();
        let delay = tokio::time::sleep(Duration::from_millis(delay_ms));
        let outcome = tokio::select! {
            outcome = self.stopped_early(&mut orders), if delay_ms > 0 => outcome,
            () = delay, if delay_ms > 0 => self.work(job).await,
            else => self.work(job).await,
        };
        let (step, attempt) = (self.step.clone(), self.attempt);
        let finished = matches!(outcome, Outcome::Finished(_));
        let commit =
            if finished { crate::commit::checked_out(&self.reach.workspace) } else { None };
        // The run may be over; then nobody needs to know.
        let _ = self.messages.send(Message::Ended { step, attempt, outcome, commit }).await;
    }

    async fn stopped_early(&self, orders: &mut watch::Receiver<Order>) -> Outcome {
        self.outcome_of(&told_to_stop(orders).await)
    }

    async fn work(&mut self, job: Job) -> Outcome {
        match job {
            Job::Agent(job) => {
                if self.reads == Reads::BeforeAndAfter && !self.read_first().await {
                    return Outcome::Stopped;
                }
                let outcome = self.turn(*job).await;
                // An agent that failed or was stopped may have changed the tests as well. What is
                // different when a paused run is resumed is then the user's.
                if self.reads != Reads::Never {
                    self.read_project().await;
                }
                outcome
            }
            Job::Gates(job) => self.check(job).await,
            Job::Shell(command) => self.shell(command).await,
            Job::Compact { conversation } => self.compact(conversation).await,
            Job::TaskFile(op, request) => self.task_file(op, &request),
            Job::Work(job) => self.function(job).await,
            Job::Request { name, args } => self.request(&name, args).await,
        }
    }

    /// Reads the files before any agent has worked; `false` when the run is over. The planner can
    /// change what defines the checks, too.
    async fn read_first(&self) -> bool {
        let Some(reading) = self.reading(None).await else { return true };
        let (step, attempt) = (self.step.clone(), self.attempt);
        let (confirm, confirmed) = oneshot::channel();
        let message = Message::ReadFirst { step, attempt, reading, confirm };
        self.messages.send(message).await.is_ok() && confirmed.await.is_ok()
    }

    /// What a step that was told to stop comes to.
    fn outcome_of(&self, order: &Order) -> Outcome {
        match order {
            Order::Ceiling(reason) => {
                Outcome::Failed(StepError::new(atomic_graph::code::CEILING, reason.clone()))
            }
            Order::TaskBudget(reason) => {
                Outcome::Failed(StepError::new(atomic_graph::code::BUDGET, reason.clone()))
            }
            Order::Cancel => Outcome::Cancelled,
            Order::Work | Order::Pause => Outcome::Stopped,
        }
    }

    /// What a turn comes to that its provider has refused: the step waits, unless the user wants no
    /// wait. The refusal is on disk before the program is ended.
    pub(super) async fn or_refused(&self, outcome: Outcome) -> Outcome {
        let Outcome::Failed(error) = outcome else { return outcome };
        if error.outage.is_none() {
            return Outcome::Failed(error);
        }
        let (recorded, confirmed) = oneshot::channel();
        let (step, backend) = (self.step.clone(), self.backend.id());
        let refused =
            Message::Refused { step, backend: backend.clone(), error: error.clone(), recorded };
        let is_recorded = self.messages.send(refused).await.is_ok() && confirmed.await.is_ok();
        let order = self.orders.borrow().clone();
        if order != Order::Work {
            return self.outcome_of(&order);
        }
        if is_recorded {
            return Outcome::Refused { backend };
        }
        Outcome::Failed(error)
    }

    async fn show(&self, delta: Delta) {
        let _ = self.messages.send(Message::Typed(delta)).await;
    }

    async fn say(&self, event: Event) {
        let _ = self.messages.send(Message::Happened(event)).await;
    }

    /// Records something and waits until it is on disk; `false` when the run is over.
    async fn confirm(&self, event: Event) -> bool {
        let (confirm, confirmed) = oneshot::channel();
        self.messages.send(Message::Confirm(event, confirm)).await.is_ok()
            && confirmed.await.is_ok()
    }
}

/// Waits until the step is told to stop.
async fn told_to_stop(orders: &mut watch::Receiver<Order>) -> Order {
    match orders.wait_for(|order| *order != Order::Work).await {
        Ok(order) => order.clone(),
        // Whoever gives the orders is gone, and so is the run.
        Err(_) => Order::Pause,
    }
}

/// The backend's name of a question and the one in the session never mix.
pub(crate) type BackendQuestion = QuestionId;
