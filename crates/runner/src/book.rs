//! What the facts say, beside what they say to the machine.

use std::collections::BTreeMap;

use atomic_event::{
    Answer, ConversationId, Ending, Event, How, Moment, Question, QuestionId, Report, StepId,
};
use atomic_session::SessionStatus;
use serde::{Deserialize, Serialize};

/// Everything a run has to remember, folded from facts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Book {
    pub(crate) status: SessionStatus,
    pub(crate) created_at: Option<Moment>,
    pub(crate) last: Option<Moment>,
    pub(crate) open: BTreeMap<StepId, OpenStep>,
    /// The conversation each lane shares, by its scope.
    pub(crate) lanes: BTreeMap<String, ConversationId>,
    pub(crate) questions: BTreeMap<QuestionId, Asked>,
    pub(crate) asked_so_far: u64,
    pub(crate) iteration: u64,
    /// The iteration each scope is in.
    pub(crate) iterations: BTreeMap<String, u64>,
    pub(crate) spent: Spent,
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
    pub(crate) answer: Option<Answer>,
    pub(crate) delivered: bool,
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
            created_at: None,
            last: None,
            open: BTreeMap::new(),
            lanes: BTreeMap::new(),
            questions: BTreeMap::new(),
            asked_so_far: 0,
            iteration: 0,
            iterations: BTreeMap::new(),
            spent: Spent::default(),
        }
    }
}

/// The lane a step is in: the graph it belongs to.
pub(crate) fn lane(step: &StepId) -> &str {
    step.as_str().rsplit_once('/').map_or("", |(scope, _)| scope)
}

impl Book {
    /// Takes in one fact.
    pub(crate) fn learn(&mut self, event: &Event, at: Moment) {
        self.last = Some(at);
        match event {
            Event::SessionCreated(_) => self.created_at = Some(at),
            Event::SessionResumed(_) => self.status = SessionStatus::Running,
            Event::RunPaused { .. } => self.status = SessionStatus::Paused,
            Event::RunWaiting { .. } => self.status = SessionStatus::Waiting,
            Event::RunFinished { ending } => {
                self.status = match ending {
                    Ending::Completed => SessionStatus::Completed,
                    Ending::Failed { .. } => SessionStatus::Failed,
                };
            }
            Event::StepStarted(started) => {
                // A step that is continued keeps its conversation until it is open again.
                let before =
                    self.open.remove(&started.step).filter(|_| started.how == How::Continued);
                let open = OpenStep {
                    attempt: started.attempt,
                    agent: started.agent.is_some(),
                    conversation: before.and_then(|before| before.conversation),
                    progressed: false,
                };
                self.open.insert(started.step.clone(), open);
                if let Some(iteration) = started.iteration {
                    self.iteration = iteration;
                    self.iterations.insert(lane(&started.step).to_owned(), iteration);
                }
            }
            Event::StepFinished { step, .. } | Event::StepFailed { step, .. } => {
                self.open.remove(step);
                self.questions.retain(|_, asked| asked.step != *step);
            }
            Event::ConversationOpened { step, conversation, shared, .. } => {
                if *shared {
                    self.lanes.insert(lane(step).to_owned(), conversation.clone());
                }
                if let Some(open) = self.open.get_mut(step) {
                    open.conversation = Some(conversation.clone());
                }
            }
            Event::StepReported { step, report, .. } => self.learn_report(step, report),
            Event::QuestionAsked { id, step, question, about_lost } => {
                self.asked_so_far += 1;
                let (step, question) = (step.clone(), question.clone());
                let asked = Asked {
                    step,
                    question,
                    about_lost: *about_lost,
                    answer: None,
                    delivered: false,
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
            Event::StepLost { .. }
            | Event::BranchChosen { .. }
            | Event::Instructed { .. }
            | Event::StatePatched { .. }
            | Event::Noted { .. }
            | Event::Unknown(_) => {}
        }
    }

    fn learn_report(&mut self, step: &StepId, report: &Report) {
        if let Some(open) = self.open.get_mut(step) {
            open.progressed = true;
        }
        if let Report::Spent(usage) = report {
            self.spent.tokens += usage.input_tokens + usage.output_tokens;
            match usage.cost_usd {
                Some(cost) => *self.spent.cost_usd.get_or_insert(0.0) += cost,
                None => self.spent.cost_unknown = true,
            }
        }
    }

    /// The questions nobody has answered, oldest first.
    pub(crate) fn unanswered(&self) -> Vec<(&QuestionId, &Asked)> {
        let mut open: Vec<_> = self.questions.iter().filter(|(_, a)| a.answer.is_none()).collect();
        open.sort_by_key(|(id, _)| number(id));
        open
    }

    /// What the user answered to a step's questions so far.
    pub(crate) fn answers(&self, step: &StepId) -> Vec<(Question, Answer)> {
        let of_step = self.questions.values().filter(|asked| asked.step == *step);
        of_step.filter_map(|asked| Some((asked.question.clone(), asked.answer.clone()?))).collect()
    }
}

/// Questions are numbered in the order they are asked: `q1`, `q2`, …
fn number(id: &QuestionId) -> u64 {
    id.as_str().trim_start_matches('q').parse().unwrap_or(u64::MAX)
}
