//! Carrying out one step, in a task of its own. It reports what happens and decides nothing.

mod agent;
mod check;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atomic_backend::Backend;
use atomic_backend::guard::Guard;
use atomic_event::{
    AgentName, Answer, ConversationId, Delta, Event, How, Question, QuestionId, StepError, StepId,
    StepResult,
};
use serde_json::Value;
use tokio::sync::{OwnedRwLockReadGuard, RwLock, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::run::Run;

/// A step to carry out.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) step: StepId,
    pub(crate) attempt: u32,
    pub(crate) delay_ms: u64,
    pub(crate) job: Job,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Job {
    /// Prompt an agent.
    Agent(Box<AgentJob>),
    /// Run the checks.
    Gates { baseline: bool, red: Option<Arc<Value>> },
}

/// Everything a turn needs, put together before it starts.
#[derive(Debug)]
pub(crate) struct AgentJob {
    pub(crate) agent: AgentName,
    pub(crate) system_prompt: String,
    pub(crate) prompt: String,
    pub(crate) how: How,
    /// The conversation to continue.
    pub(crate) resume: Option<ConversationId>,
    pub(crate) shared: bool,
    pub(crate) questions: bool,
    /// What the user answered in an attempt that was cut off.
    pub(crate) answers: Vec<(Question, Answer)>,
    pub(crate) parse: Option<Parse>,
}

/// Reads an agent's final text; the error is told to the agent.
pub(crate) type Parse = fn(&str) -> Result<Value, String>;

/// What a performer is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Go on.
    Work,
    /// Stop; nothing of it counts.
    Pause,
    /// Stop; a ceiling of the whole run was met.
    Ceiling(String),
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
    /// To be asked; the answer is given here.
    Asked { step: StepId, question: Question, reply: oneshot::Sender<Answer> },
    /// It is over.
    Ended { step: StepId, attempt: u32, outcome: Outcome },
}

/// How a performance ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Finished(StepResult),
    Failed(StepError),
    Stopped,
}

/// Everybody who is at work.
#[derive(Debug)]
pub(crate) struct Crew {
    pub(crate) tasks: JoinSet<()>,
    pub(crate) live: BTreeMap<StepId, Live>,
    pub(crate) messages: (mpsc::Sender<Message>, mpsc::Receiver<Message>),
    /// Agents share the project's files; a check has them alone.
    tree: Arc<RwLock<()>>,
}

impl Default for Crew {
    fn default() -> Self {
        Self {
            tasks: JoinSet::new(),
            live: BTreeMap::new(),
            messages: mpsc::channel(256),
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
    guard: Guard,
    workspace: PathBuf,
    model: Option<String>,
    checks: Option<Vec<String>>,
    timeout: Duration,
    marker: String,
}

impl Run {
    /// Starts a step. Its start is on disk.
    pub(crate) fn perform(&mut self, task: Task) {
        let Task { step, attempt, delay_ms, job } = task;
        let (stop, orders) = watch::channel(Order::Work);
        self.log_call(&step, attempt, &job);
        let performer = Performer {
            step: step.clone(),
            attempt,
            messages: self.crew.messages.0.clone(),
            orders,
            tree: Arc::clone(&self.crew.tree),
            share: None,
            backend: Arc::clone(&self.stage.backend),
            guard: self.stage.guard.clone(),
            workspace: self.created.workspace.clone(),
            model: self.created.model.clone(),
            checks: self.settings.checks.clone(),
            timeout: Duration::from_secs(self.settings.turn_timeout_secs),
            marker: format!("{}/{}/{attempt}", self.created.session, step.as_str()),
        };
        self.crew.live.insert(step, Live { stop, asks: BTreeMap::new() });
        self.crew.tasks.spawn(performer.perform(delay_ms, job));
    }

    fn log_call(&self, step: &StepId, attempt: u32, job: &Job) {
        let Job::Agent(job) = job else { return };
        let line = serde_json::json!({
            "at": self.book.last,
            "step": step,
            "attempt": attempt,
            "how": job.how,
            "backend": self.stage.backend.id(),
            "agent": job.agent,
            "resume": job.resume,
            "prompt": agent::first_prompt(job, job.how),
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
        // The run may be over; then nobody needs to know.
        let _ = self.messages.send(Message::Ended { step, attempt, outcome }).await;
    }

    async fn stopped_early(&self, orders: &mut watch::Receiver<Order>) -> Outcome {
        self.outcome_of(&told_to_stop(orders).await)
    }

    async fn work(&mut self, job: Job) -> Outcome {
        match job {
            Job::Agent(job) => self.turn(*job).await,
            Job::Gates { baseline, red } => self.check(baseline, red.as_deref()).await,
        }
    }

    /// What a step that was told to stop comes to.
    fn outcome_of(&self, order: &Order) -> Outcome {
        match order {
            Order::Ceiling(reason) => {
                Outcome::Failed(StepError::new(atomic_graph::code::CEILING, reason.clone()))
            }
            Order::Work | Order::Pause => Outcome::Stopped,
        }
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
