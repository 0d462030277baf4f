//! What the facts say, beside what they say to the machine.

use std::collections::BTreeMap;

use atomic_event::{
    Answer, BackendId, ConversationId, Ending, Event, How, Moment, Question, QuestionId, Report,
    Resumed, RunStopped, Started, StepId, Upgraded,
};
use atomic_graph::Graph;
use atomic_session::SessionStatus;
use serde::{Deserialize, Serialize};

use crate::lane::{Loops, Shared, scope};
use crate::provider::Providers;
use crate::spent::{Spent, task_of};
use crate::task_file;
use crate::verify::Verification;

/// Everything a run has to remember, folded from facts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Book {
    pub(crate) status: SessionStatus,
    /// Whether it was made from another session and nobody has worked on it yet.
    #[serde(default)]
    pub(crate) forked: bool,
    pub(crate) times: Times,
    /// What the user has told every agent that is started from then on, oldest first.
    pub(crate) instructions: Vec<String>,
    pub(crate) open: BTreeMap<StepId, OpenStep>,
    #[serde(default)]
    pub(crate) loops: Loops,
    #[serde(flatten)]
    shared: SharedConversations,
    pub(crate) questions: BTreeMap<QuestionId, Asked>,
    pub(crate) asked_so_far: u64,
    #[serde(flatten)]
    pub(crate) scopes: Scopes,
    pub(crate) spent: Spent,
    /// The providers behind the backends.
    #[serde(default)]
    pub(crate) providers: Providers,
    /// What the session was upgraded to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) upgraded: Option<Box<Upgraded>>,
    /// What the engine knows about the checks.
    pub(crate) verification: Verification,
}

/// What is known of single graphs of a run, by their scopes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Scopes {
    /// The newest iteration of the run.
    #[serde(rename = "iteration")]
    pub(crate) newest: u64,
    /// The iteration each scope is in.
    pub(crate) iterations: BTreeMap<String, u64>,
    /// The task that each round of a task loop is about, until it is completed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) loop_tasks: BTreeMap<String, LoopTask>,
}

/// The task that a round of a task loop is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoopTask {
    /// The path of the task file, from the project's folder.
    pub(crate) file: String,
    pub(crate) id: String,
    /// Whether one of its nodes was started.
    pub(crate) begun: bool,
    /// The last failure of one of its nodes.
    pub(crate) error: Option<String>,
}

/// The conversations that steps share.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct SharedConversations {
    /// Those of each lane: one with each backend.
    lanes: BTreeMap<String, BTreeMap<BackendId, Shared>>,
    /// The step that uses one now. It is not kept: a step that is started again claims it again.
    #[serde(skip)]
    speaking: BTreeMap<(String, BackendId), StepId>,
}

/// When a session began, and when something was last heard of it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Times {
    pub(crate) created: Option<Moment>,
    /// When the run began, or was resumed last.
    pub(crate) begun: Option<Moment>,
    pub(crate) last: Option<Moment>,
}

/// A step that was started and has not come back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct OpenStep {
    pub(crate) attempt: u32,
    pub(crate) agent: bool,
    pub(crate) conversation: Option<ConversationId>,
    /// The backend that has it.
    #[serde(default)]
    pub(crate) backend: Option<BackendId>,
    /// Whether this attempt has got anywhere.
    pub(crate) progressed: bool,
    /// The lane whose conversation it shares, where that is not the one of its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lane: Option<String>,
}

/// A question that was asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) step: StepId,
    pub(crate) question: Question,
    pub(crate) about_lost: bool,
    #[serde(default)]
    pub(crate) by_signal: bool,
    pub(crate) answer: Option<Answer>,
    pub(crate) delivered: bool,
    /// Whether the one who asked has done something since, and so has heard the answer.
    #[serde(default)]
    pub(crate) heard: bool,
}

impl Default for Book {
    fn default() -> Self {
        Self {
            status: SessionStatus::Running,
            forked: false,
            times: Times::default(),
            instructions: vec![],
            open: BTreeMap::new(),
            loops: Loops::default(),
            shared: SharedConversations::default(),
            questions: BTreeMap::new(),
            asked_so_far: 0,
            scopes: Scopes::default(),
            spent: Spent::default(),
            providers: Providers::default(),
            upgraded: None,
            verification: Verification::default(),
        }
    }
}

impl Book {
    /// Takes in one fact.
    pub(crate) fn learn(&mut self, event: &Event, at: Moment) {
        self.times.last = Some(at);
        self.learn_in_parts(event, at);
        match event {
            Event::SessionCreated(created) => {
                (self.times.created, self.times.begun) = (Some(at), Some(at));
                if let Ok(graph) = Graph::deserialize(&created.graph) {
                    self.loops = Loops::of(&graph);
                }
            }
            Event::SessionResumed(resumed) => {
                self.times.begun = Some(at);
                self.learn_resume(resumed, at);
            }
            Event::RunStopped(stopped) => self.status = status_after(stopped),
            Event::RunFinished { ending, .. } => self.status = status_at(ending),
            Event::StepStarted(started) => self.learn_start(started),
            Event::StepFinished { step, .. }
            | Event::StepFailed { step, .. }
            | Event::StepCancelled { step, .. } => self.learn_end(step),
            Event::ConversationOpened { step, backend, conversation, shared, .. } => {
                self.spent.begin_turn(step);
                if *shared {
                    let lane = self.shared.lanes.entry(self.lane(step)).or_default();
                    Shared::open(lane, backend, conversation);
                }
                if let Some(open) = self.open.get_mut(step) {
                    open.conversation = Some(conversation.clone());
                    open.backend = Some(backend.clone());
                }
            }
            Event::StepReported { step, report, .. } => self.learn_report(step, report),
            Event::QuestionAsked { id, step, question, about_lost, by_signal } => {
                self.asked_so_far += 1;
                let (step, question) = (step.clone(), question.clone());
                let asked = Asked {
                    step,
                    question,
                    about_lost: *about_lost,
                    by_signal: *by_signal,
                    answer: None,
                    delivered: false,
                    heard: false,
                };
                self.questions.insert(id.clone(), asked);
            }
            Event::QuestionAnswered(answered) => {
                if let Some(asked) = self.questions.get_mut(&answered.id) {
                    asked.answer = Some(answered.answer.clone());
                }
            }
            Event::AnswerDelivered { id, .. } => {
                if let Some(asked) = self.questions.get_mut(id) {
                    asked.delivered = true;
                }
            }
            Event::Instructed { text } => self.instructions.push(text.clone()),
            // The conversations belong to the other session: nothing is continued in them.
            Event::SessionForked(_) => {
                self.forked = true;
                self.shared.lanes.clear();
                self.open.values_mut().for_each(|open| open.conversation = None);
            }
            Event::StepLost { .. }
            | Event::TimerFired { .. }
            | Event::FunctionEvaluated { .. }
            | Event::LaunchesCertified(_)
            | Event::Provider(_)
            | Event::BranchChosen { .. }
            | Event::StatePatched { .. }
            | Event::Noted { .. }
            | Event::Unknown(_) => {}
        }
    }

    /// Lets those parts learn that look for their events themselves.
    fn learn_in_parts(&mut self, event: &Event, at: Moment) {
        self.scopes.learn_loop(event);
        self.verification.learn(event);
        self.providers.learn(event, at);
    }

    fn learn_resume(&mut self, resumed: &Resumed, at: Moment) {
        if self.status == SessionStatus::Paused {
            self.providers.restart_windows(at);
        }
        self.status = SessionStatus::Running;
        self.forked = false;
        if let Some(upgraded) = &resumed.upgraded {
            self.upgraded = Some(upgraded.clone());
            if let Ok(graph) = Graph::deserialize(&upgraded.graph) {
                self.loops = Loops::of(&graph);
            }
        }
    }

    fn learn_start(&mut self, started: &Started) {
        self.spent.settle(&started.step);
        if started.clears_context {
            self.shared.lanes.remove(self.loops.lane(&started.step));
        }
        // A step that is continued keeps its conversation until it is open again.
        let before = self.open.remove(&started.step).filter(|_| started.how == How::Continued);
        let open = OpenStep {
            attempt: started.attempt,
            agent: started.agent.is_some(),
            backend: before.as_ref().and_then(|before| before.backend.clone()),
            conversation: before.and_then(|before| before.conversation),
            progressed: false,
            lane: started.lane.clone(),
        };
        self.open.insert(started.step.clone(), open);
        if let Some(iteration) = started.iteration {
            self.scopes.newest = iteration;
            self.scopes.iterations.insert(scope(&started.step).to_owned(), iteration);
        }
    }

    fn learn_end(&mut self, step: &StepId) {
        self.open.remove(step);
        self.shared.speaking.retain(|_, speaker| speaker != step);
        self.spent.settle(step);
        self.questions.retain(|_, asked| asked.step != *step);
    }

    fn learn_report(&mut self, step: &StepId, report: &Report) {
        if let Some(open) = self.open.get_mut(step) {
            open.progressed = true;
        }
        // What is spent may be told by one who was stopped before it heard anything.
        if !matches!(report, Report::Spent(_) | Report::Waited(_)) {
            for asked in self.questions.values_mut().filter(|asked| asked.step == *step) {
                asked.heard |= asked.delivered;
            }
        }
        if let Report::Spent(usage) = report {
            let known = usage.context_tokens.zip(usage.context_window);
            if let (Some(context), Some(shared)) = (known, self.shared_by(step)) {
                shared.context = Some(context);
            }
            let task = task_of(step, &self.loops, &self.scopes.loop_tasks);
            self.spent.add(step, task, usage);
        }
    }

    /// The lane of a step that was started.
    fn lane(&self, step: &StepId) -> String {
        let named = self.open.get(step).and_then(|open| open.lane.clone());
        named.unwrap_or_else(|| self.loops.lane(step).to_owned())
    }

    /// The conversation a lane shares with a backend.
    pub(crate) fn conversation(&self, lane: &str, backend: &BackendId) -> Option<&ConversationId> {
        let shared = self.shared.lanes.get(lane)?.get(backend)?;
        Some(&shared.conversation)
    }

    /// Of the conversations a step's lane shares, the one that fills most of its window, as far as
    /// that is known: its backend, itself, and that part.
    pub(crate) fn fullest(&self, step: &StepId) -> Option<(&BackendId, &ConversationId, f64)> {
        let lane = self.shared.lanes.get(self.loops.lane(step))?.iter();
        let known =
            lane.filter_map(|(id, shared)| Some((id, &shared.conversation, shared.full()?)));
        known.max_by(|(_, _, one), (_, _, other)| one.total_cmp(other))
    }

    /// Lets a step speak in the conversation its lane shares with a backend, unless another one
    /// does.
    pub(crate) fn may_speak(&mut self, lane: &str, step: &StepId, backend: &BackendId) -> bool {
        let place = (lane.to_owned(), backend.clone());
        self.shared.speaking.entry(place).or_insert_with(|| step.clone()) == step
    }

    /// The conversation its lane shares, if a step works in one.
    fn shared_by(&mut self, step: &StepId) -> Option<&mut Shared> {
        let lane = self.lane(step);
        let open = self.open.get(step)?;
        let shared = self.shared.lanes.get_mut(&lane)?.get_mut(open.backend.as_ref()?)?;
        Some(shared).filter(|shared| Some(&shared.conversation) == open.conversation.as_ref())
    }

    /// The questions nobody has answered, oldest first.
    pub(crate) fn unanswered(&self) -> Vec<(&QuestionId, &Asked)> {
        let mut open: Vec<_> = self.questions.iter().filter(|(_, a)| a.answer.is_none()).collect();
        open.sort_by_key(|(id, _)| number(id));
        open
    }

    /// What the user answered to a step's questions so far, in the order they were asked; also what
    /// it has heard already, for one who does not remember.
    pub(crate) fn answers(&self, step: &StepId, also_heard: bool) -> Vec<(Question, Answer)> {
        let of_step = self.questions.iter().filter(|(_, asked)| asked.step == *step);
        let mut open: Vec<_> = of_step.filter(|(_, asked)| also_heard || !asked.heard).collect();
        open.sort_by_key(|(id, _)| number(id));
        let answered = |(_, asked): (&QuestionId, &Asked)| {
            Some((asked.question.clone(), asked.answer.clone()?))
        };
        open.into_iter().filter_map(answered).collect()
    }

    /// Whether a step waits for an answer.
    pub(crate) fn waits(&self, step: &StepId) -> bool {
        self.questions.values().any(|asked| asked.step == *step && asked.answer.is_none())
    }
}

impl Scopes {
    /// Takes in what a fact says about the task of a loop's round.
    fn learn_loop(&mut self, event: &Event) {
        if let Event::StepFinished { step, result, .. } = event {
            let round = scope(step);
            if let Some(task) = task_file::taken(step, &result.output) {
                // One round follows another.
                self.loop_tasks.retain(|other, _| loop_of(other) != loop_of(round));
                self.loop_tasks.insert(round.to_owned(), task);
            } else if task_file::is_completion(step, &result.output) {
                self.loop_tasks.remove(round);
            }
        } else if let Event::StepStarted(started) = event {
            let is_end = started.step.node().starts_with(atomic_workflow::ENOUGH_TASKS);
            self.around(&started.step).for_each(|task| task.begun |= !is_end);
        } else if let Event::StepFailed { step, error, .. } = event {
            self.around(step).for_each(|task| task.error = Some(error.message.clone()));
        }
    }

    /// The tasks of the rounds a step is in.
    fn around(&mut self, step: &StepId) -> impl Iterator<Item = &mut LoopTask> {
        let is_inside = move |round: &str| {
            step.as_str().strip_prefix(round).is_some_and(|rest| rest.starts_with('/'))
        };
        let rounds = self.loop_tasks.iter_mut();
        rounds.filter(move |(round, _)| is_inside(round)).map(|(_, task)| task)
    }
}

fn status_at(ending: &Ending) -> SessionStatus {
    match ending {
        Ending::Completed => SessionStatus::Completed,
        Ending::Failed { .. } => SessionStatus::Failed,
    }
}

fn status_after(stopped: &RunStopped) -> SessionStatus {
    match stopped {
        RunStopped::RunPaused { .. } => SessionStatus::Paused,
        RunStopped::RunWaiting { .. } => SessionStatus::Waiting,
    }
}

/// The visit to a loop that a round belongs to.
fn loop_of(round: &str) -> &str {
    round.rsplit_once('[').map_or(round, |(visit, _)| visit)
}

/// Questions are numbered in the order they are asked: `q1`, `q2`, …
fn number(id: &QuestionId) -> u64 {
    id.as_str().trim_start_matches('q').parse().unwrap_or(u64::MAX)
}
