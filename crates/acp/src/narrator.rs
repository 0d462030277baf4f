//! From facts and typing to updates of a session.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, Cost, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus,
    SessionUpdate, TextContent, UsageUpdate,
};
use atomic_event::{
    AnsweredBy, Delta, Event, Helper, HelperState, Report, Spending, Started, StepId, Stop, Todo,
    TurnEvent, TurnSpending, Usage, Wait,
};
use serde_json::Value;

use crate::ProviderWaits;
use crate::tool::{Look, Tools};
use crate::typed::Typed;

/// Whose words are the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// One agent's: what it writes is shown as it writes it.
    Agent,
    /// A workflow's: how far it has come is said, and what its agents say are thoughts, each told
    /// when it is whole, because several may talk at once.
    Workflow,
}

/// Tells what happens in one turn of a session.
#[derive(Debug)]
pub struct Narrator {
    voice: Voice,
    folder: PathBuf,
    /// Where steps work that do not work in that folder.
    folders: BTreeMap<StepId, PathBuf>,
    tools: Tools,
    said: Typed,
    thought: Typed,
    /// What was spent before.
    spent_before: Spending,
    /// What each step has spent: the total of one replaces no calls of another.
    spent: BTreeMap<StepId, TurnSpending>,
    waits: ProviderWaits,
}

/// A message of ours as a paragraph.
pub fn message(text: &str) -> SessionUpdate {
    said(&format!("{}\n\n", text.trim_end()))
}

/// Something the user wrote.
pub fn user_message(text: &str) -> SessionUpdate {
    SessionUpdate::UserMessageChunk(chunk(text))
}

fn said(text: &str) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(chunk(text))
}

fn thought(text: &str) -> SessionUpdate {
    SessionUpdate::AgentThoughtChunk(chunk(text))
}

fn chunk(text: &str) -> ContentChunk {
    ContentChunk::new(ContentBlock::Text(TextContent::new(text)))
}

/// The task list of a run, as its file has it.
pub fn plan_of_tasks(rows: &[Value]) -> SessionUpdate {
    let text = |row: &Value, key: &str| {
        row.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let entry = |row: &Value| {
        let (id, content, status) = (text(row, "id"), text(row, "content"), text(row, "status"));
        let mut content = format!("{id} {content}").trim().to_owned();
        if status == "failed" {
            let error = text(row, "error");
            let line = error.lines().next().unwrap_or_default();
            content = format!("{content} (failed: {line})").replace("(failed: )", "(failed)");
        }
        planned(content, &status)
    };
    SessionUpdate::Plan(Plan::new(rows.iter().map(entry).collect()))
}

/// A word of ours or of a program's; what failed is over, and says so itself.
fn planned(content: String, status: &str) -> PlanEntry {
    let status = match status {
        "completed" | "failed" | "cancelled" => PlanEntryStatus::Completed,
        "in_progress" => PlanEntryStatus::InProgress,
        _ => PlanEntryStatus::Pending,
    };
    PlanEntry::new(content, PlanEntryPriority::Medium, status)
}

fn plan_of_todos(items: &[Todo]) -> SessionUpdate {
    let entries = items.iter().map(|item| planned(item.content.clone(), &item.status));
    SessionUpdate::Plan(Plan::new(entries.collect()))
}

impl Narrator {
    /// Tells what happens in this folder. `prefix` begins the names of its tool calls, which must
    /// not be those of another turn; `look` looks into files that tools change.
    pub fn new(voice: Voice, folder: &Path, prefix: &str, look: Look) -> Self {
        Self {
            voice,
            folder: folder.to_owned(),
            folders: BTreeMap::new(),
            tools: Tools::new(prefix, look),
            said: Typed::default(),
            thought: Typed::default(),
            spent_before: Spending::default(),
            spent: BTreeMap::new(),
            waits: ProviderWaits::default(),
        }
    }

    /// A fact of a run.
    pub fn fact(&mut self, event: &Event) -> Vec<SessionUpdate> {
        let is_workflow = self.voice == Voice::Workflow;
        match event {
            Event::StepStarted(started) => self.started(started),
            Event::StepReported { step, report, .. } => self.report(step, report),
            Event::StepFailed { step, error, .. } => {
                let mut updates = self.tools.close(Some(step), false);
                if is_workflow {
                    updates.push(message(&format!("{} failed: {}", name(step), error.message)));
                }
                updates
            }
            Event::StepLost { step, reason, .. } => {
                let mut updates = self.tools.close(Some(step), false);
                updates.push(message(&format!("{} was cut off: {reason}", name(step))));
                updates
            }
            Event::StepFinished { step, .. } => self.tools.close(Some(step), true),
            Event::StepCancelled { step, .. } => self.tools.close(Some(step), false),
            Event::QuestionAnswered(answered) if answered.by == AnsweredBy::Policy => {
                let text = answered.answer.text();
                vec![message(&format!("Answered by policy, nobody was asked: {text}"))]
            }
            Event::Provider(provider) => {
                self.waits.line(provider).map(|line| message(&line)).into_iter().collect()
            }
            Event::Noted { text } => vec![message(&format!("Note: {text}"))],
            Event::SessionResumed(resumed) if resumed.revived => {
                vec![message("What had failed gets another chance.")]
            }
            Event::RunStopped(_) | Event::RunFinished { .. } => self.tools.close(None, false),
            Event::ConversationOpened { step, .. } => {
                self.settle(step);
                vec![]
            }
            Event::SessionCreated(_)
            | Event::SessionResumed(_)
            | Event::TimerFired { .. }
            | Event::FunctionEvaluated { .. }
            | Event::BranchChosen { .. }
            | Event::QuestionAsked { .. }
            | Event::QuestionAnswered(_)
            | Event::AnswerDelivered { .. }
            | Event::Instructed { .. }
            | Event::StatePatched { .. }
            | Event::LaunchesCertified(_)
            | Event::SessionForked(_)
            | Event::Unknown(_) => vec![],
        }
    }

    /// Something to show and forget.
    pub fn delta(&mut self, delta: &Delta) -> Vec<SessionUpdate> {
        match delta {
            Delta::Typed { text, .. } if self.voice == Voice::Agent => {
                vec![said(&self.said.piece(text))]
            }
            Delta::Thought { text, .. } if self.voice == Voice::Agent => {
                vec![thought(&self.thought.piece(text))]
            }
            Delta::Typed { .. } | Delta::Thought { .. } => vec![],
            Delta::ToolBegan { step, call } => {
                let folder = self.folders.get(step).unwrap_or(&self.folder);
                vec![self.tools.began(step, call, folder)]
            }
        }
    }

    /// Something that happens in a turn of a conversation without a run.
    pub fn turn(&mut self, step: &StepId, event: &TurnEvent) -> Vec<SessionUpdate> {
        let step = step.clone();
        match event.clone() {
            TurnEvent::Typed { text } => self.delta(&Delta::Typed { step, text }),
            TurnEvent::Thought { text } => self.delta(&Delta::Thought { step, text }),
            TurnEvent::ToolBegan(call) => self.delta(&Delta::ToolBegan { step, call }),
            TurnEvent::Reported(report) => self.report(&step, &report),
            TurnEvent::Asked { .. } => vec![],
            TurnEvent::Ended(stop) => {
                self.settle(&step);
                self.tools.close(None, matches!(stop, Stop::Done { .. }))
            }
        }
    }

    fn started(&mut self, started: &Started) -> Vec<SessionUpdate> {
        if let Some(folder) = started.workspace.as_ref().filter(|folder| **folder != self.folder) {
            self.folders.insert(started.step.clone(), folder.clone());
        }
        let description = started.description.as_ref().filter(|_| self.voice == Voice::Workflow);
        let progress = description.map(|text| message(&format!("**Workflow Progress:** {text}")));
        progress.into_iter().collect()
    }

    fn report(&mut self, step: &StepId, report: &Report) -> Vec<SessionUpdate> {
        let is_workflow = self.voice == Voice::Workflow;
        let aside = |text: String| {
            let who = if is_workflow { format!("{}: ", name(step)) } else { String::new() };
            vec![message(&format!("{who}{text}"))]
        };
        match report {
            Report::Said { text } if is_workflow => {
                vec![thought(&format!("**{}:** {}\n\n", name(step), text.trim()))]
            }
            Report::Said { text } => {
                let rest = self.said.whole(text);
                if rest.is_empty() { vec![] } else { vec![said(&rest)] }
            }
            Report::ToolUsed(used) => {
                let folder = self.folders.get(step).unwrap_or(&self.folder);
                vec![self.tools.ended(step, used, folder)]
            }
            Report::Spent(usage) => self.spent(step, usage),
            Report::Helper(helper) => aside(helper_line(helper)),
            // A workflow's plan is its own task list.
            Report::Todos { .. } if is_workflow => vec![],
            Report::Todos { items } => vec![plan_of_todos(items)],
            Report::Compacted { .. } => aside("The conversation was summarised.".to_owned()),
            Report::Waited(wait) => aside(wait_line(wait)),
            Report::Remarked { text } => aside(text.clone()),
            // The verification summary is sent at the end of the run.
            Report::Checked(_) | Report::ProjectRead(_) => vec![],
        }
    }

    /// What was spent counts for the session; how full a conversation is says something only
    /// where there is one.
    fn spent(&mut self, step: &StepId, usage: &Usage) -> Vec<SessionUpdate> {
        self.spent.entry(step.clone()).or_default().add(usage);
        let (Some(used), Some(size)) = (usage.context_tokens, usage.context_window) else {
            return vec![];
        };
        if self.voice == Voice::Workflow {
            return vec![];
        }
        let cost = self.spent_so_far().usd().map(|usd| Cost::new(usd, "USD"));
        vec![SessionUpdate::UsageUpdate(UsageUpdate::new(used, size).cost(cost))]
    }

    /// Everything that was spent so far.
    pub fn spent_so_far(&self) -> Spending {
        let mut sum = self.spent_before;
        self.spent.values().for_each(|spent| sum += spent.total());
        sum
    }

    /// A turn of a step begins or is over: a later total does not contain what it has reported.
    fn settle(&mut self, step: &StepId) {
        if let Some(spent) = self.spent.get_mut(step) {
            spent.begin_turn();
        }
    }

    /// Goes on counting from what was spent before.
    #[must_use]
    pub fn after(mut self, spent: Spending) -> Self {
        self.spent_before = spent;
        self
    }
}

/// A step as a person would call it.
fn name(step: &StepId) -> String {
    match step.item() {
        Some(item) => format!("{} {item}", step.node()),
        None => step.node().to_owned(),
    }
}

fn helper_line(helper: &Helper) -> String {
    let who = if helper.agent.is_empty() { "a helper" } else { &helper.agent };
    match helper.state {
        HelperState::Started => format!("{who} begins: {}", helper.task),
        HelperState::Finished => format!("{who} is done: {}", helper.task),
        HelperState::Failed => format!("{who} failed: {}", helper.task),
    }
}

fn wait_line(wait: &Wait) -> String {
    let trouble = wait.code.replace('_', " ");
    let delay = wait.delay_ms.map(|ms| format!(" in {} s", ms.div_ceil(1_000)));
    let delay = delay.unwrap_or_default();
    format!("{trouble} (try {}); the program tries again{delay}", wait.attempt)
}

#[cfg(test)]
#[path = "narrator_tests.rs"]
mod tests;
