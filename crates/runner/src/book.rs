//! What the facts say, beside what they say to the machine.

use std::collections::BTreeMap;

use atomic_event::{
    Answer, ConversationId, Ending, Event, How, Moment, Question, QuestionId, Report, Started,
    StepId,
};
use atomic_graph::Graph;
use atomic_session::SessionStatus;
use serde::{Deserialize, Serialize};

use crate::lane::{Loops, scope};

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
    /// The conversation each lane shares.
    pub(crate) lanes: BTreeMap<String, ConversationId>,
    /// The step that speaks in it now. Not to be kept: whoever begins again speaks again.
    #[serde(skip)]
    speaking: BTreeMap<String, StepId>,
    /// How full that is, and how large its window.
    #[serde(default)]
    pub(crate) contexts: BTreeMap<String, (u64, u64)>,
    pub(crate) questions: BTreeMap<QuestionId, Asked>,
    pub(crate) asked_so_far: u64,
    pub(crate) iteration: u64,
    /// The iteration each scope is in.
    pub(crate) iterations: BTreeMap<String, u64>,
    pub(crate) spent: Spent,
}

/// When a session began, and when something was last heard of it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Times {
    pub(crate) created: Option<Moment>,
    pub(crate) last: Option<Moment>,
}

/// A step that was started and has not come back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct OpenStep {
    pub(crate) attempt: u32,
    pub(crate) agent: bool,
    pub(crate) conversation: Option<ConversationId>,
    /// Whether this attempt has got anywhere.
    pub(crate) progressed: bool,
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

/// What the run has used.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Spent {
    pub(crate) tokens: u64,
    /// Known cost, when any is known.
    pub(crate) cost_usd: Option<f64>,
    /// Whether some turn did not say what it cost.
    pub(crate) cost_unknown: bool,
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
            lanes: BTreeMap::new(),
            speaking: BTreeMap::new(),
            contexts: BTreeMap::new(),
            questions: BTreeMap::new(),
            asked_so_far: 0,
            iteration: 0,
            iterations: BTreeMap::new(),
            spent: Spent::default(),
        }
    }
}

impl Book {
    /// Takes in one fact.
    pub(crate) fn learn(&mut self, event: &Event, at: Moment) {
        self.times.last = Some(at);
        match event {
            Event::SessionCreated(created) => {
                self.times.created = Some(at);
                if let Ok(graph) = Graph::deserialize(&created.graph) {
                    self.loops = Loops::of(&graph);
                }
            }
            Event::SessionResumed(_) => {
                self.status = SessionStatus::Running;
                self.forked = false;
            }
            Event::RunPaused { .. } => self.status = SessionStatus::Paused,
            Event::RunWaiting { .. } => self.status = SessionStatus::Waiting,
            Event::RunFinished { ending } => {
                self.status = match ending {
                    Ending::Completed => SessionStatus::Completed,
                    Ending::Failed { .. } => SessionStatus::Failed,
                };
            }
            Event::StepStarted(started) => self.learn_start(started),
            Event::StepFinished { step, .. }
            | Event::StepFailed { step, .. }
            | Event::StepCancelled { step, .. } => self.learn_end(step),
            Event::ConversationOpened { step, conversation, shared, .. } => {
                if *shared {
                    self.lanes.insert(self.loops.lane(step).to_owned(), conversation.clone());
                }
                if let Some(open) = self.open.get_mut(step) {
                    open.conversation = Some(conversation.clone());
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
                self.lanes.clear();
                self.contexts.clear();
                self.open.values_mut().for_each(|open| open.conversation = None);
            }
            Event::StepLost { .. }
            | Event::TimerFired { .. }
            | Event::FunctionEvaluated { .. }
            | Event::LaunchesCertified(_)
            | Event::BranchChosen { .. }
            | Event::StatePatched { .. }
            | Event::Noted { .. }
            | Event::Unknown(_) => {}
        }
    }

    fn learn_start(&mut self, started: &Started) {
        if started.clears_context {
            let lane = self.loops.lane(&started.step);
            self.lanes.remove(lane);
            self.contexts.remove(lane);
        }
        // A step that is continued keeps its conversation until it is open again.
        let before = self.open.remove(&started.step).filter(|_| started.how == How::Continued);
        let open = OpenStep {
            attempt: started.attempt,
            agent: started.agent.is_some(),
            conversation: before.and_then(|before| before.conversation),
            progressed: false,
        };
        self.open.insert(started.step.clone(), open);
        if let Some(iteration) = started.iteration {
            self.iteration = iteration;
            self.iterations.insert(scope(&started.step).to_owned(), iteration);
        }
    }

    fn learn_end(&mut self, step: &StepId) {
        self.open.remove(step);
        let lane = self.loops.lane(step);
        if self.speaking.get(lane) == Some(step) {
            self.speaking.remove(lane);
        }
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
            if let Some(context) = known.filter(|_| self.is_shared(step)) {
                self.contexts.insert(self.loops.lane(step).to_owned(), context);
            }
            self.spent.tokens += usage.input_tokens + usage.output_tokens;
            match usage.cost_usd {
                Some(cost) => *self.spent.cost_usd.get_or_insert(0.0) += cost,
                None => self.spent.cost_unknown = true,
            }
        }
    }

    /// The conversation a step's lane shares.
    pub(crate) fn conversation(&self, step: &StepId) -> Option<&ConversationId> {
        self.lanes.get(self.loops.lane(step))
    }

    /// Lets a step speak in the conversation its lane shares, unless another one does.
    pub(crate) fn may_speak(&mut self, step: &StepId) -> bool {
        let lane = self.loops.lane(step).to_owned();
        self.speaking.entry(lane).or_insert_with(|| step.clone()) == step
    }

    /// Whether a step works in the conversation its lane shares.
    fn is_shared(&self, step: &StepId) -> bool {
        let own = self.open.get(step).and_then(|open| open.conversation.as_ref());
        own.is_some() && own == self.conversation(step)
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

/// Questions are numbered in the order they are asked: `q1`, `q2`, …
fn number(id: &QuestionId) -> u64 {
    id.as_str().trim_start_matches('q').parse().unwrap_or(u64::MAX)
}
