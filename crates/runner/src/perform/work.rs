//! Work of a function that takes time, and single requests.

use std::sync::{Arc, Mutex, PoisonError};

use atomic_event::{Delta, Event, Report, StepError, StepId, StepResult, ToolUse};
use atomic_graph::code;
use atomic_workflow::{Host, HostFuture, LogLevel, WorkCall, WorkFn};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::request::{Answered, Reach, Refusal};
use super::{Order, Outcome, Performer, told_to_stop};
use crate::timer::told;

/// A function that takes time, and what it is given.
pub(crate) struct WorkJob {
    pub(crate) work: Arc<WorkFn>,
    pub(crate) call: WorkCall,
}

impl std::fmt::Debug for WorkJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkJob").field("call", &self.call).finish_non_exhaustive()
    }
}

/// Something that work has done or said.
enum Said {
    Used(ToolUse),
    Log(LogLevel, String),
}

/// The world outside, as a function sees it. Requests are tasks of their own, so that one whose
/// answer nobody waits for is still waited for until nothing of it is left.
struct Hands {
    reach: Reach,
    says: mpsc::UnboundedSender<Said>,
    over: watch::Sender<bool>,
    tasks: Mutex<JoinSet<()>>,
    runtime: Handle,
}

impl Host for Hands {
    fn request(&self, name: &str, args: Value) -> HostFuture {
        let (mut reply, answer) = oneshot::channel();
        let (reach, says, name) = (self.reach.clone(), self.says.clone(), name.to_owned());
        let mut over = self.over.subscribe();
        let work = async move {
            let cancel = async {
                tokio::select! {
                    _ = over.wait_for(|over| *over) => {}
                    () = reply.closed() => {}
                }
            };
            let Answered { result, tool } = reach.carry_out(&name, args, cancel).await;
            let _ = says.send(Said::Used(tool));
            // Whoever asked may be gone.
            let _ = reply.send(result.map_err(|refused| refused.message));
        };
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        if !*self.over.borrow() {
            tasks.spawn_on(work, &self.runtime);
        }
        Box::pin(async { answer.await.unwrap_or_else(|_| Err("the step is over".to_owned())) })
    }

    fn log(&self, level: LogLevel, text: &str) {
        let _ = self.says.send(Said::Log(level, text.to_owned()));
    }
}

impl Hands {
    /// Ends what is still under way, and waits until it is gone.
    async fn end(&self) {
        self.over.send_replace(true);
        let mut tasks = {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *tasks)
        };
        while tasks.join_next().await.is_some() {}
    }
}

impl Performer {
    /// Lets a function work to its end, until its time is up, or until the step is told to stop.
    pub(super) async fn function(&mut self, job: WorkJob) -> Outcome {
        if let Err(outcome) = self.share_the_tree().await {
            return outcome;
        }
        let (says, mut heard) = mpsc::unbounded_channel();
        let hands = Arc::new(Hands {
            reach: self.reach.clone(),
            says,
            over: watch::Sender::new(false),
            tasks: Mutex::default(),
            runtime: Handle::current(),
        });
        let host: Arc<dyn Host> = Arc::<Hands>::clone(&hands);
        let mut work = (job.work)(job.call, host);
        let mut orders = self.orders.clone();
        let limit = self.times.own;
        let late = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(late);
        let outcome = loop {
            tokio::select! {
                biased;
                order = told_to_stop(&mut orders) => break self.outcome_of(&order),
                Some(said) = heard.recv() => self.tell(said).await,
                done = &mut work => break match done {
                    Ok(result) => Outcome::Finished(result),
                    Err(error) => Outcome::Failed(error),
                },
                () = &mut late => {
                    let limit = told(limit.unwrap_or_default());
                    let message = format!("it took longer than {limit} and was stopped");
                    break Outcome::Failed(StepError::new(code::TIMEOUT, message));
                }
            }
        };
        drop(work);
        hands.end().await;
        while let Ok(said) = heard.try_recv() {
            self.tell(said).await;
        }
        self.share = None;
        outcome
    }

    async fn tell(&self, said: Said) {
        match said {
            Said::Used(tool) => self.pass_on(Report::ToolUsed(tool)).await,
            Said::Log(level, text) => self.log(level, text).await,
        }
    }

    /// What is odd or wrong is recorded; the rest is shown, and kept in a log.
    async fn log(&self, level: LogLevel, text: String) {
        let step = self.step.clone();
        match noted(&step, level, &text) {
            Some(event) => self.say(event).await,
            None => self.show(Delta::Typed { step, text: format!("{text}\n") }).await,
        }
    }

    /// Carries out a single request; what it returns is the step's output.
    pub(super) async fn request(&mut self, name: &str, args: Value) -> Outcome {
        if name == "shell"
            && let Err(outcome) = self.share_the_tree().await
        {
            return outcome;
        }
        let mut orders = self.orders.clone();
        let limit = self.times.own;
        let stopped = async {
            tokio::select! {
                _ = told_to_stop(&mut orders) => {}
                () = async {
                    match limit {
                        Some(limit) => tokio::time::sleep(limit).await,
                        None => std::future::pending().await,
                    }
                } => {}
            }
        };
        let Answered { result, tool } = self.reach.carry_out(name, args, stopped).await;
        self.share = None;
        let Refusal { code, message } = match result {
            Ok(output) => {
                self.pass_on(Report::ToolUsed(tool)).await;
                return Outcome::Finished(StepResult { output, ..StepResult::default() });
            }
            Err(refused) => refused,
        };
        let order = self.orders.borrow().clone();
        if order != Order::Work {
            return self.outcome_of(&order);
        }
        self.pass_on(Report::ToolUsed(tool)).await;
        Outcome::Failed(StepError::new(code, message))
    }
}

/// The fact that somebody said something odd or wrong.
fn noted(step: &StepId, level: LogLevel, text: &str) -> Option<Event> {
    let text = format!("{step}: {text}");
    (level >= LogLevel::Warn).then_some(Event::Noted { text })
}
