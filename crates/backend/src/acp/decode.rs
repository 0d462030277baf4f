//! From the agent's updates to our words, without IO.
//!
//! Start reading at [`Decoder::update`] and at [`Decoder::end`].

use std::collections::{BTreeMap, BTreeSet};

use atomic_event::{Report, StepError, Stop, Todo, ToolCall, ToolUse, TurnEvent, Usage, Wait};
use serde_json::Value;

use super::call::Call;
use super::spending::Spending;
use super::trouble;
use crate::words::todos;

/// Which program it is, as far as that makes a difference. What is not known here does as the
/// protocol says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Who {
    OpenCode,
    Copilot,
    #[default]
    Other,
}

impl Who {
    /// By the name it gives itself.
    pub(super) fn called(name: &str) -> Self {
        match name {
            "OpenCode" => Self::OpenCode,
            "Copilot" => Self::Copilot,
            _ => Self::Other,
        }
    }
}

/// What a failed call of the model begins with where an agent tells it as if it were an answer.
const ERROR: &str = "Error: ";

/// Reads the updates of one session.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    backend: String,
    who: Who,
    calls: BTreeMap<String, Call>,
    /// Uses of tools that are over.
    ended: BTreeSet<String>,
    /// The text since the last use of a tool.
    text: String,
    /// The text before it, when since then a tool has only ended: it may have been the last.
    answer: String,
    /// Which message it belongs to, where that is said.
    message: Option<String>,
    /// Where in it the last call of the model begins, as far as that is known, and in how many
    /// pieces it came since.
    call_begins: usize,
    pieces: usize,
    has_used_tools: bool,
    /// Whether anything was heard of a model.
    has_heard: bool,
    has_list: bool,
    /// How often the program has tried again.
    tries: u64,
    pub(super) spending: Spending,
}

impl Decoder {
    pub(super) fn new(backend: &str) -> Self {
        Self { backend: backend.to_owned(), ..Self::default() }
    }

    /// Another program, which knows nothing of what the one before has counted.
    pub(super) fn begin_program(&mut self, who: Who) {
        self.who = who;
        self.spending.begin_program(who);
    }

    /// Forgets the turn before.
    pub(super) fn begin_turn(&mut self) {
        *self = Self {
            backend: std::mem::take(&mut self.backend),
            who: self.who,
            has_list: self.has_list,
            spending: std::mem::take(&mut self.spending),
            ..Self::default()
        };
    }

    /// The use of a tool of this id.
    pub(super) fn call(&self, id: &str) -> Option<&Call> {
        self.calls.get(id)
    }

    /// Whether a tool is being used, as far as is known.
    pub(super) fn is_using_tools(&self) -> bool {
        self.calls.values().any(|call| call.list().is_none())
    }

    /// Takes in one update.
    pub(super) fn update(&mut self, update: &Value) -> Vec<TurnEvent> {
        match update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default() {
            "agent_message_chunk" => self.piece(update),
            "agent_thought_chunk" => {
                let text = piece_of(update);
                if text.is_empty() {
                    return vec![];
                }
                self.has_heard = true;
                self.model_is_called();
                vec![TurnEvent::Thought { text }]
            }
            "tool_call" | "tool_call_update" => self.tool(update),
            "plan" => self.list(update.get("entries").unwrap_or(&Value::Null)),
            "usage_update" => {
                self.spending.update(update);
                // Others tell it when they like.
                if self.who == Who::Copilot {
                    self.model_is_called();
                }
                let new = self.spending.new_cost();
                new.map(|usage| TurnEvent::Reported(Report::Spent(usage))).into_iter().collect()
            }
            // What is new in the protocol is none of our business until it is.
            _ => vec![],
        }
    }

    /// What is said from now on is another call's, or may be.
    fn model_is_called(&mut self) {
        (self.call_begins, self.pieces) = (self.text.len(), 0);
    }

    fn piece(&mut self, update: &Value) -> Vec<TurnEvent> {
        let text = piece_of(update);
        if text.is_empty() {
            return vec![];
        }
        if self.who == Who::Copilot
            && let Some(events) = self.remark(&text)
        {
            return events;
        }
        self.has_heard = true;
        let message = update.get("messageId").and_then(Value::as_str).map(str::to_owned);
        let is_another = message.is_some() && self.message.is_some() && message != self.message;
        let mut events = if is_another { self.said() } else { vec![] };
        self.message = message;
        self.pieces += 1;
        self.text.push_str(&text);
        events.push(TurnEvent::Typed { text });
        events
    }

    /// What Copilot itself says between what its model says, each in one piece; nothing when it is
    /// the model's.
    fn remark(&mut self, text: &str) -> Option<Vec<TurnEvent>> {
        if text.starts_with("Error: No response was returned") {
            // A model that says nothing has not failed.
            self.has_heard = true;
            return Some(vec![]);
        }
        let words = text.strip_prefix("Info: ")?;
        if words.ends_with("Retrying...") {
            self.tries += 1;
            let wait = Wait { code: "unavailable".to_owned(), attempt: self.tries, delay_ms: None };
            let mut events = self.said();
            events.push(TurnEvent::Reported(Report::Waited(wait)));
            return Some(events);
        }
        let is_tool_made = self.calls.values().any(|call| words == call.summary());
        if words == "Operation cancelled by user" || is_tool_made {
            return Some(vec![]);
        }
        let is_remark = words.starts_with("Disabled tools: ");
        let remark = || TurnEvent::Reported(Report::Remarked { text: words.to_owned() });
        is_remark.then(|| vec![remark()])
    }

    /// The text so far is whole.
    fn said(&mut self) -> Vec<TurnEvent> {
        let text = std::mem::take(&mut self.text);
        (self.call_begins, self.pieces, self.message) = (0, 0, None);
        if text.is_empty() {
            return vec![];
        }
        vec![TurnEvent::Reported(Report::Said { text })]
    }

    fn tool(&mut self, update: &Value) -> Vec<TurnEvent> {
        let id = update.get("toolCallId").and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_update = update.get("sessionUpdate").is_some_and(|it| it == "tool_call_update");
        if is_update && self.ended.contains(&id) {
            return vec![];
        }
        let status = update.get("status").and_then(Value::as_str).unwrap_or_default();
        let ended = ["completed", "failed"].contains(&status);
        let is_known = self.calls.contains_key(&id);
        // What is told of one that is under way may come in the middle of the answer, and its end
        // after the answer.
        let mut events = match (is_known, ended) {
            (true, false) => vec![],
            (true, true) => {
                if !self.text.is_empty() {
                    self.answer.clone_from(&self.text);
                }
                self.said()
            }
            (false, _) => {
                self.answer.clear();
                self.said()
            }
        };
        (self.has_used_tools, self.has_heard) = (true, true);
        let mut call = self.calls.remove(&id).unwrap_or_default();
        call.learn(update);
        if let Some(list) = call.list() {
            events.extend(self.list(list));
            self.calls.insert(id, call);
            return events;
        }
        if !call.has_begun && (call.is_clear() || ended || status == "in_progress") {
            call.has_begun = true;
            let (tool, summary, by) = (call.tool(), call.summary(), call.by.clone());
            events.push(TurnEvent::ToolBegan(ToolCall { tool, summary, by }));
        }
        if ended {
            let ok = status == "completed" && exit_code(update).is_none_or(|code| code == 0);
            let (tool, summary, by) = (call.tool(), call.summary(), call.by);
            let used = ToolUse { tool, summary, ok, by };
            events.push(TurnEvent::Reported(Report::ToolUsed(used)));
            self.ended.insert(id);
        } else {
            self.calls.insert(id, call);
        }
        events
    }

    fn list(&mut self, entries: &Value) -> Vec<TurnEvent> {
        let items: Vec<Todo> = todos(entries);
        // A list that was never there has not been emptied.
        if items.is_empty() && !self.has_list {
            return vec![];
        }
        self.has_list = true;
        vec![TurnEvent::Reported(Report::Todos { items })]
    }

    /// The turn is over, in the agent's words.
    pub(super) fn end(&mut self, answer: &Value) -> (Vec<TurnEvent>, Stop) {
        let spent = self.spending.turn(self.who, answer.get("usage").unwrap_or(&Value::Null));
        let stop = self.stop(answer, spent.as_ref());
        if matches!(stop, Stop::Failed(_)) && self.tells_an_error() {
            // Nobody has said that.
            self.text.truncate(self.call_begins);
        }
        let mut events = self.said();
        events.extend(spent.map(|usage| TurnEvent::Reported(Report::Spent(usage))));
        (events, stop)
    }

    fn stop(&self, answer: &Value, spent: Option<&Usage>) -> Stop {
        let reason = answer.get("stopReason").and_then(Value::as_str).unwrap_or_default();
        match reason {
            "cancelled" => Stop::Interrupted,
            "refusal" => Stop::Failed(trouble::refused(&self.text).into_error(&self.backend)),
            "end_turn" => self.done(spent.is_some_and(has_tokens)),
            "max_tokens" => self.failed("its answer was longer than its model may answer"),
            "max_turn_requests" => {
                self.failed("it asked its model more often than it may in one turn")
            }
            "" => self.failed("it did not say how its turn ended"),
            other => self.failed(&format!("its turn ended for a reason unknown here: {other}")),
        }
    }

    /// The agent says that all is well. Some tell a failure of the model as if it were the answer.
    fn done(&self, has_spent: bool) -> Stop {
        // After tools, what was spent may have been spent before the failure; then only what came
        // in one piece is not the model's.
        if self.tells_an_error() && (!has_spent || self.has_used_tools && self.pieces == 1) {
            let words = self.last_words().trim_start_matches(ERROR);
            return Stop::Failed(trouble::of_words(words).into_error(&self.backend));
        }
        if !self.has_heard && !has_spent {
            return self.failed("it ended its turn without a word, and no model was asked");
        }
        let text = if self.text.is_empty() { &self.answer } else { &self.text };
        Stop::Done { text: text.clone() }
    }

    /// Whether the last thing that was said has the shape of a failure. OpenCode has other words
    /// for it, and Copilot tells it in one piece.
    fn tells_an_error(&self) -> bool {
        let may_be = match self.who {
            Who::OpenCode => false,
            Who::Copilot => self.pieces == 1,
            Who::Other => true,
        };
        may_be && self.last_words().starts_with(ERROR)
    }

    /// What was said since the last call of the model.
    fn last_words(&self) -> &str {
        self.text.get(self.call_begins..).unwrap_or_default()
    }

    fn failed(&self, why: &str) -> Stop {
        Stop::Failed(StepError::new("rejected", format!("{}: {why}", self.backend)))
    }
}

fn has_tokens(usage: &Usage) -> bool {
    usage.input_tokens > 0 || usage.output_tokens > 0
}

fn piece_of(update: &Value) -> String {
    update.pointer("/content/text").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// How a command ended. Agents call it a success when it could be started.
fn exit_code(update: &Value) -> Option<i64> {
    let output = update.get("rawOutput")?;
    let contents = output.get("contents").and_then(Value::as_array).into_iter().flatten();
    let told = contents.filter_map(|content| content.get("exitCode")?.as_i64()).next_back();
    told.or_else(|| output.pointer("/metadata/exit")?.as_i64())
}

#[cfg(test)]
mod tests;
