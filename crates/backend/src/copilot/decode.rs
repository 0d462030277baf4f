//! From the program's events to our words, without IO.
//!
//! Start reading at [`Decoder::event`].

use std::collections::BTreeMap;

use atomic_event::{Helper, HelperState, Report, Stop, ToolCall, ToolUse, TurnEvent, Usage, Wait};
use serde_json::Value;

use super::ID;
use super::wire::{
    About, Event, Failed, HelperBegan, HelperEnded, Idle, Itself, NotAnswered, Piece, Retried,
    Said, Summarised, Tokens, ToolBegan, ToolEnded,
};
use crate::trouble::{self, Kind, Trouble};
use crate::words::{shorten, summary, tool_name};

/// What an event comes to.
#[derive(Debug, PartialEq)]
pub(super) enum Heard {
    /// Part of the turn.
    Event(TurnEvent),
    /// The agent's own list has changed; what is in it has to be asked for.
    ListChanged,
    /// The provider is in trouble, and the program tries again.
    Trouble(Trouble),
    /// A part of an answer is whole: whatever trouble there was is over.
    Answering,
    /// The model is being asked.
    Began,
    /// The turn is over.
    Ended(Stop),
}

/// Tools that are told of in words of their own, or that do nothing anybody wants to know.
const OWN_WORDS: [&str; 3] = ["task", "ask_user", "report_intent"];

/// Reads the events of one session.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    calls: BTreeMap<String, ToolCall>,
    /// What helpers are to do, by the call that starts them.
    tasks: BTreeMap<String, String>,
    helpers: BTreeMap<String, Helper>,
    /// Whether pieces of the message have come.
    came_in_pieces: bool,
    /// The last text of the agent itself.
    text: String,
    error: Option<Trouble>,
    /// Why a call of the model failed last: the program itself does not say so when it tries again.
    failed: Option<Trouble>,
    /// Why the model was not asked.
    blocked: Option<Trouble>,
    /// How often the program has tried again.
    tries: u64,
    /// How large the model's window is.
    window: Option<u64>,
}

impl Decoder {
    /// Forgets the turn before.
    pub(super) fn begin_turn(&mut self) {
        *self = Self { window: self.window, ..Self::default() };
    }

    /// Takes in one event.
    pub(super) fn event(&mut self, event: &Event) -> Vec<Heard> {
        let by = event.agent.as_deref();
        match &event.about {
            About::Said(said) => self.message(said, by),
            About::Spent(used) => self.spent(*used, by).into_iter().collect(),
            About::ToolBegan(tool) => self.tool_began(tool, by).into_iter().collect(),
            About::ToolEnded(tool) => self.tool_ended(tool).into_iter().collect(),
            About::HelperBegan(helper) => self.helper_began(helper, by).into_iter().collect(),
            About::HelperFinished(end) => self.helper_ended(*end, by, HelperState::Finished),
            About::HelperFailed(end) => self.helper_ended(*end, by, HelperState::Failed),
            About::Retried(retry) => self.retried(retry),
            About::ListChanged => vec![Heard::ListChanged],
            About::Summarised(summary) => summarised(*summary),
            About::Idle(idle) => vec![Heard::Ended(self.stop(*idle))],
            About::Itself(about) => self.itself(about).into_iter().collect(),
        }
    }

    fn itself(&mut self, about: &Itself) -> Option<Heard> {
        match about {
            Itself::Began => return Some(Heard::Began),
            Itself::Typed(Piece { delta_content: text }) => {
                self.came_in_pieces = true;
                return piece(text, |text| TurnEvent::Typed { text });
            }
            Itself::Thought(Piece { delta_content: text }) => {
                return piece(text, |text| TurnEvent::Thought { text });
            }
            Itself::Room(room) => self.window = room.token_limit.or(self.window),
            Itself::NotAnswered(NotAnswered { model_call }) => {
                let words = said(&model_call.error);
                let kind = trouble::kind(model_call.status, &words, "");
                self.failed = Some(Trouble { kind, words });
            }
            // The model was not asked at all; the error that follows does not say so.
            Itself::Warned(warning) if warning.warning_type.ends_with("context_blocked") => {
                let words = trouble::words_of(&warning.message);
                self.blocked = Some(Trouble { kind: Kind::ContextOverflow, words });
            }
            Itself::Failed(error) => {
                let failed = self.failed.take();
                self.error = self.blocked.take().or_else(|| Some(trouble_of(error, failed)));
            }
            Itself::Warned(_) => {}
        }
        None
    }

    fn message(&mut self, said: &Said, by: Option<&str>) -> Vec<Heard> {
        let mut heard = vec![Heard::Answering];
        if by.is_some() {
            return heard;
        }
        let text = said.content.as_str().unwrap_or_default();
        let came = std::mem::take(&mut self.came_in_pieces);
        if said.tool_requests.is_empty() {
            text.clone_into(&mut self.text);
        }
        if !text.is_empty() {
            if !came {
                heard.push(Heard::Event(TurnEvent::Typed { text: text.to_owned() }));
            }
            heard.push(reported(Report::Said { text: text.to_owned() }));
        }
        heard
    }

    fn spent(&mut self, used: Tokens, by: Option<&str>) -> Option<Heard> {
        let usage = usage(used)?;
        let filled = usage.input_tokens.saturating_add(usage.output_tokens);
        Some(reported(Report::Spent(Usage {
            context_tokens: by.is_none().then_some(filled),
            context_window: self.window.filter(|_| by.is_none()),
            ..usage
        })))
    }

    fn tool_began(&mut self, tool: &ToolBegan, by: Option<&str>) -> Option<Heard> {
        if tool.tool_name == "task" {
            let task = tool.arguments.get("description").and_then(Value::as_str);
            self.tasks.insert(tool.tool_call_id.clone(), shorten(task.unwrap_or_default()));
        }
        if OWN_WORDS.contains(&tool.tool_name.as_str()) {
            return None;
        }
        let call = ToolCall {
            tool: tool_name(&tool.tool_name),
            summary: summary(&tool.arguments),
            by: by.map(str::to_owned),
        };
        self.calls.insert(tool.tool_call_id.clone(), call.clone());
        Some(Heard::Event(TurnEvent::ToolBegan(call)))
    }

    fn tool_ended(&mut self, ended: &ToolEnded) -> Option<Heard> {
        let code = ended.shell_execution.and_then(|shell| shell.exit_code);
        let ok = ended.success && code.is_none_or(|code| code == 0);
        let call = self.calls.remove(&ended.tool_call_id);
        // A helper that was never started has no other end.
        let refused = self.tasks.remove(&ended.tool_call_id).filter(|_| !ok);
        let refused =
            refused.map(|task| ToolCall { tool: "task".to_owned(), summary: task, by: None });
        let ToolCall { tool, summary, by } = call.or(refused)?;
        Some(reported(Report::ToolUsed(ToolUse { tool, summary, ok, by })))
    }

    fn helper_began(&mut self, began: &HelperBegan, by: Option<&str>) -> Option<Heard> {
        let helper = Helper {
            id: by?.to_owned(),
            agent: began.agent_name.clone(),
            task: self.tasks.remove(&began.tool_call_id).unwrap_or_default(),
            state: HelperState::Started,
            tools_used: 0,
            tokens: 0,
        };
        self.helpers.insert(helper.id.clone(), helper.clone());
        Some(reported(Report::Helper(helper)))
    }

    fn helper_ended(
        &mut self,
        end: HelperEnded,
        by: Option<&str>,
        state: HelperState,
    ) -> Vec<Heard> {
        let helper = by.and_then(|id| self.helpers.remove(id));
        let ended = helper.map(|helper| Helper {
            state,
            tools_used: end.total_tool_calls,
            tokens: end.total_tokens,
            ..helper
        });
        ended.map(|helper| reported(Report::Helper(helper))).into_iter().collect()
    }

    /// The program tries again. Why is said in words, if at all.
    fn retried(&mut self, retry: &Retried) -> Vec<Heard> {
        self.tries += 1;
        self.came_in_pieces = false;
        let unknown = || Trouble { kind: Kind::Rejected, words: retry.reason.clone() };
        let mut trouble = self.failed.take().unwrap_or_else(unknown);
        if trouble.kind == Kind::Rejected {
            trouble.kind = Kind::Unavailable;
        }
        let wait = Wait { code: trouble.kind.code().to_owned(), attempt: self.tries, delay_ms: 0 };
        vec![Heard::Trouble(trouble), reported(Report::Waited(wait))]
    }

    fn stop(&mut self, idle: Idle) -> Stop {
        if idle.aborted {
            return Stop::Interrupted;
        }
        match self.error.take() {
            // An agent that says nothing has not failed.
            Some(trouble) if trouble.words.starts_with("No response was returned") => {
                Stop::Done { text: String::new() }
            }
            Some(trouble) => Stop::Failed(trouble.into_error(ID)),
            None if self.text.contains("blocked by content filtering") => {
                let words = std::mem::take(&mut self.text);
                Stop::Failed(Trouble { kind: Kind::Refused, words }.into_error(ID))
            }
            None => Stop::Done { text: std::mem::take(&mut self.text) },
        }
    }
}

fn usage(used: Tokens) -> Option<Usage> {
    // What is read from the cache is part of what is read; what is written there is not.
    let read = used.input_tokens.saturating_add(used.cache_write_tokens);
    let written = used.output_tokens;
    // The program counts requests, not money.
    let usage = Usage { input_tokens: read, output_tokens: written, ..Usage::default() };
    (read > 0 || written > 0).then_some(usage)
}

/// The conversation was summarised, or was not. What that cost is said here and nowhere else.
fn summarised(summary: Summarised) -> Vec<Heard> {
    let spent = usage(summary.compaction_tokens_used).map(|usage| reported(Report::Spent(usage)));
    let (before, after) = (summary.pre_compaction_tokens, summary.post_compaction_tokens);
    let made = summary.success.then(|| reported(Report::Compacted { before, after }));
    spent.into_iter().chain(made).collect()
}

/// What an error of the program means; the call of the model before it says more.
fn trouble_of(error: &Failed, before: Option<Trouble>) -> Trouble {
    let words = trouble::words_of(&error.message);
    let kind = match (error.error_type.as_str(), trouble::kind(error.status_code, &words, "")) {
        (_, Kind::Rejected | Kind::RateLimited | Kind::Unavailable) if before.is_some() => {
            before.map_or(Kind::Unavailable, |before| before.kind)
        }
        ("authentication", _) => Kind::Login,
        (_, Kind::Rejected) if error.status_code.is_none() => Kind::Unavailable,
        (_, kind) => kind,
    };
    Trouble { kind, words }
}

/// The words of an error, which may be written as JSON.
fn said(error: &Value) -> String {
    let text = trouble::words_of(error);
    let inner: Option<Value> = serde_json::from_str(&text).ok();
    inner.map(|inner| trouble::words_of(&inner)).filter(|inner| !inner.is_empty()).unwrap_or(text)
}

fn piece(text: &str, event: impl FnOnce(String) -> TurnEvent) -> Option<Heard> {
    (!text.is_empty()).then(|| Heard::Event(event(text.to_owned())))
}

fn reported(report: Report) -> Heard {
    Heard::Event(TurnEvent::Reported(report))
}

#[cfg(test)]
mod tests;
