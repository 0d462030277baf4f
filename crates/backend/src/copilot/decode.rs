//! From the program's events to our words, without IO.
//!
//! Start reading at [`Decoder::event`].

use std::collections::BTreeMap;

use atomic_event::{
    Helper, HelperState, Question, Report, Stop, ToolCall, ToolUse, TurnEvent, Usage, Wait,
};
use serde_json::Value;

use super::ID;
use super::talker::{QUESTION, QUESTIONS};
use super::typing::Typing;
use super::wire::{
    CallFailed, Compacted, Event, Failed, HelperBegan, HelperEnded, Idle, Piece, Retried, Said,
    Spent, ToolBegan, ToolEnded, What,
};
use crate::prices::{CallTokens, estimate};
use crate::trouble::{self, Kind, Trouble};
use crate::words::{questions, shorten, summary, tool_name};

/// What an event comes to.
#[derive(Debug, PartialEq)]
pub(super) enum Heard {
    /// Part of the turn.
    Event(TurnEvent),
    /// The agent's own list has changed; what is in it has to be asked for.
    ListChanged,
    /// A call of the model has failed, whether the program tries again or not.
    CallFailed(Trouble),
    /// The provider is in trouble, and the program tries again.
    Trouble(Trouble),
    /// A part of an answer is whole: whatever trouble there was is over.
    Answering,
    /// Somebody is to be asked whether a tool may be used.
    LeaveWanted { request: String },
    /// Questions by our own tool; they are answered under the request.
    Asked { request: String, questions: Vec<Question> },
    /// The prompt is taken.
    Taken,
    /// The model is being asked.
    Began,
    /// The turn is over.
    Ended(Stop),
}

/// In the schema of 1.0.102: "Divide totalNanoAiu by 1,000,000,000 for AI credits".
const NANO_AIU: f64 = 1e9;

/// The price of one AI credit.
const CREDIT_USD: f64 = 0.01;

/// Tools that are told of in words of their own, or that do nothing anybody wants to know.
const OWN_WORDS: [&str; 4] = ["task", QUESTION, QUESTIONS, "report_intent"];

/// Reads the events of one session.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    calls: BTreeMap<String, ToolCall>,
    /// What helpers are to do, by the call that starts them.
    tasks: BTreeMap<String, String>,
    helpers: BTreeMap<String, Helper>,
    /// Whether pieces of the message have come.
    came_in_pieces: bool,
    typing: Typing,
    /// The last text of the agent itself.
    text: String,
    error: Option<Trouble>,
    /// Why a call of the model failed last: the program itself does not say so when it tries again.
    failed: Option<Trouble>,
    /// Why the model was not asked.
    blocked: Option<Trouble>,
    /// Whether the provider has refused to answer, whatever the program has made of that.
    is_refused: bool,
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
        match &event.what {
            What::Said(said) => self.message(said, by),
            What::Spent(spent) => self.spent(spent, by).into_iter().collect(),
            What::OurToolUsed(used) if used.tool_name == QUESTIONS => vec![Heard::Asked {
                request: used.request_id.clone(),
                questions: questions(&used.arguments),
            }],
            What::ToolBegan(tool) => self.tool_began(tool, by).into_iter().collect(),
            What::ToolEnded(tool) => self.tool_ended(tool).into_iter().collect(),
            What::HelperBegan(helper) => self.helper_began(helper, by).into_iter().collect(),
            What::HelperFinished(end) => self.helper_ended(*end, by, HelperState::Finished),
            What::HelperFailed(end) => self.helper_ended(*end, by, HelperState::Failed),
            What::Retried(retried) => self.retried(retried),
            What::ListChanged => vec![Heard::ListChanged],
            What::LeaveWanted(wanted) if !wanted.resolved_by_hook => {
                vec![Heard::LeaveWanted { request: wanted.request_id.clone() }]
            }
            What::Compacted(compacted) => summarised(compacted),
            What::Idle(idle) => vec![Heard::Ended(self.stop(*idle))],
            // The rest matters only of the agent itself.
            What::Taken if by.is_none() => vec![Heard::Taken],
            What::Began if by.is_none() => vec![Heard::Began],
            What::Typed(text) if by.is_none() => {
                self.came_in_pieces = true;
                self.typing.add(&text.delta_content).map(typed).into_iter().collect()
            }
            What::Thought(text) if by.is_none() => piece(text, |text| TurnEvent::Thought { text }),
            What::Room(room) if by.is_none() => {
                self.window = room.token_limit.or(self.window);
                vec![]
            }
            What::CallFailed(CallFailed { model_call }) if by.is_none() => {
                let words = said(&model_call.error);
                let code = model_call.code.as_deref().unwrap_or_default();
                let mut kind = trouble::kind(model_call.status, &words, code);
                // Nobody has said no.
                if kind == Kind::Rejected && model_call.status.is_none() {
                    kind = Kind::Unavailable;
                }
                let trouble = Trouble::new(kind, words).with_status(model_call.status);
                self.failed = Some(trouble.clone());
                vec![Heard::CallFailed(trouble)]
            }
            // The model was not asked at all; the error that follows does not say so.
            What::Warned(warned)
                if by.is_none() && warned.warning_type.ends_with("context_blocked") =>
            {
                let words = trouble::words_of(&warned.message);
                self.blocked = Some(Trouble::new(Kind::ContextOverflow, words));
                vec![]
            }
            What::Failed(failed) if by.is_none() => {
                let before = self.failed.take();
                self.error =
                    Some(self.blocked.take().unwrap_or_else(|| trouble_of(failed, before)));
                vec![]
            }
            What::Taken
            | What::Began
            | What::Typed(_)
            | What::Thought(_)
            | What::Room(_)
            | What::CallFailed(_)
            | What::Failed(_)
            | What::Warned(_)
            | What::LeaveWanted(_)
            | What::OurToolUsed(_) => vec![],
        }
    }

    fn message(&mut self, about: &Said, by: Option<&str>) -> Vec<Heard> {
        let mut heard = vec![Heard::Answering];
        if by.is_some() {
            return heard;
        }
        // What failed before, while helpers were still at work, has been got over.
        self.error = None;
        let text = about.content.as_str().unwrap_or_default();
        let came = self.came_in_pieces;
        // An answer with thoughts in between is told in parts, of which the pieces came before.
        let is_last = about.chunk_index + 1 >= about.chunk_count;
        self.came_in_pieces &= !is_last;
        if about.chunk_index == 0 {
            self.text.clear();
        }
        if about.tool_requests.is_empty() {
            self.text.push_str(text);
        }
        if !came && !text.is_empty() {
            heard.extend(self.typing.add(text).map(typed));
        }
        if is_last {
            heard.extend(self.typing.end().map(typed));
        }
        if !text.is_empty() {
            heard.push(reported(Report::Said { text: text.to_owned() }));
        }
        heard
    }

    fn spent(&mut self, spent: &Spent, by: Option<&str>) -> Option<Heard> {
        self.is_refused |= spent.content_filter_triggered && by.is_none();
        let usage = usage(spent)?;
        let filled = usage.input_tokens.saturating_add(usage.output_tokens);
        Some(reported(Report::Spent(Usage {
            context_tokens: by.is_none().then_some(filled),
            context_window: self.window.filter(|_| by.is_none()),
            ..usage
        })))
    }

    fn tool_began(&mut self, about: &ToolBegan, by: Option<&str>) -> Option<Heard> {
        if about.tool_name == "task" {
            let task = about.arguments.get("description").and_then(Value::as_str);
            self.tasks.insert(about.tool_call_id.clone(), shorten(task.unwrap_or_default()));
        }
        if OWN_WORDS.contains(&about.tool_name.as_str()) {
            return None;
        }
        let call = ToolCall {
            tool: tool_name(&about.tool_name),
            summary: summary(&about.arguments),
            by: by.map(str::to_owned),
        };
        self.calls.insert(about.tool_call_id.clone(), call.clone());
        Some(Heard::Event(TurnEvent::ToolBegan(call)))
    }

    fn tool_ended(&mut self, about: &ToolEnded) -> Option<Heard> {
        let ok = about.success
            && about.shell_execution.and_then(|shell| shell.exit_code).is_none_or(|code| code == 0);
        let call = self.calls.remove(&about.tool_call_id);
        // A helper that was never started has no other end.
        let refused = self.tasks.remove(&about.tool_call_id).filter(|_| !ok);
        let refused =
            refused.map(|task| ToolCall { tool: "task".to_owned(), summary: task, by: None });
        let ToolCall { tool, summary, by } = call.or(refused)?;
        Some(reported(Report::ToolUsed(ToolUse { tool, summary, ok, by })))
    }

    fn helper_began(&mut self, about: &HelperBegan, by: Option<&str>) -> Option<Heard> {
        let helper = Helper {
            id: by?.to_owned(),
            agent: about.agent_name.clone(),
            task: self.tasks.remove(&about.tool_call_id).unwrap_or_default(),
            state: HelperState::Started,
            tools_used: 0,
            tokens: 0,
        };
        self.helpers.insert(helper.id.clone(), helper.clone());
        Some(reported(Report::Helper(helper)))
    }

    fn helper_ended(
        &mut self,
        about: HelperEnded,
        by: Option<&str>,
        state: HelperState,
    ) -> Vec<Heard> {
        let helper = by.and_then(|id| self.helpers.remove(id));
        let ended = helper.map(|helper| Helper {
            state,
            tools_used: about.total_tool_calls,
            tokens: about.total_tokens,
            ..helper
        });
        ended.map(|helper| reported(Report::Helper(helper))).into_iter().collect()
    }

    /// The program tries again. Why is said in words, if at all.
    fn retried(&mut self, about: &Retried) -> Vec<Heard> {
        self.tries += 1;
        self.came_in_pieces = false;
        self.typing.retry();
        let unknown = || Trouble::new(Kind::Rejected, about.reason.clone());
        let mut trouble = self.failed.take().unwrap_or_else(unknown);
        if trouble.kind == Kind::Rejected {
            trouble.kind = Kind::Unavailable;
        }
        let wait =
            Wait { code: trouble.kind.code().to_owned(), attempt: self.tries, delay_ms: None };
        vec![Heard::Trouble(trouble), reported(Report::Waited(wait))]
    }

    fn stop(&mut self, about: Idle) -> Stop {
        if about.aborted {
            return Stop::Interrupted;
        }
        match self.error.take() {
            // An agent that says nothing has not failed.
            Some(trouble) if trouble.words.starts_with("No response was returned") => {
                Stop::Done { text: String::new() }
            }
            Some(trouble) => Stop::Failed(trouble.into_error(ID)),
            None if self.is_refused => {
                let words = std::mem::take(&mut self.text);
                Stop::Failed(Trouble::new(Kind::Refused, words).into_error(ID))
            }
            None => Stop::Done { text: std::mem::take(&mut self.text) },
        }
    }
}

fn usage(spent: &Spent) -> Option<Usage> {
    // What is read from the cache is part of what is read; what is written there is not.
    let read = spent.input_tokens.saturating_add(spent.cache_write_tokens);
    let written = spent.output_tokens;
    let cost_usd = spent
        .copilot_usage
        .and_then(|charge| charge.total_nano_aiu)
        .map(|nano| nano / NANO_AIU * CREDIT_USD);
    let tokens = CallTokens {
        input: spent.input_tokens.saturating_sub(spent.cache_read_tokens),
        output: written,
        cache_read: spent.cache_read_tokens,
        cache_write: spent.cache_write_tokens,
    };
    let estimated_usd = if cost_usd.is_none() { estimate(&spent.model, tokens) } else { None };
    let usage = Usage {
        input_tokens: read,
        output_tokens: written,
        cost_usd,
        estimated_usd,
        ..Usage::default()
    };
    let is_charged = usage.cost_usd.is_some_and(|cost| cost > 0.0);
    (read > 0 || written > 0 || is_charged).then_some(usage)
}

/// The conversation was summarised, or was not. What that cost is said here and nowhere else.
fn summarised(told: &Compacted) -> Vec<Heard> {
    let spent = usage(&told.compaction_tokens_used).map(|usage| reported(Report::Spent(usage)));
    let (before, after) = (told.pre_compaction_tokens, told.post_compaction_tokens);
    let made = told.success.then(|| reported(Report::Compacted { before, after }));
    spent.into_iter().chain(made).collect()
}

/// What an error of the program means; the call of the model before it says more.
fn trouble_of(about: &Failed, before: Option<Trouble>) -> Trouble {
    let words = trouble::words_of(&about.message);
    let outage = before.as_ref().map(|before| before.outage).unwrap_or_default();
    let kind = match (about.error_type.as_str(), trouble::kind(about.status_code, &words, "")) {
        (_, Kind::Rejected | Kind::RateLimited | Kind::Unavailable) if before.is_some() => {
            before.map_or(Kind::Unavailable, |before| before.kind)
        }
        ("authentication", _) => Kind::Login,
        _ if words.contains("No GitHub OAuth token") => Kind::Login,
        (_, Kind::Rejected) if about.status_code.is_none() => Kind::Unavailable,
        (_, kind) => kind,
    };
    let told = Trouble::new(kind, words).with_status(about.status_code.or(outage.status));
    let retry_at_ms = told.outage.retry_at_ms.or(outage.retry_at_ms);
    told.with_retry_at(retry_at_ms)
}

/// The words of an error, which may be written as JSON.
fn said(error: &Value) -> String {
    let text = trouble::words_of(error);
    let inner: Option<Value> = serde_json::from_str(&text).ok();
    inner.map(|inner| trouble::words_of(&inner)).filter(|inner| !inner.is_empty()).unwrap_or(text)
}

fn typed(text: String) -> Heard {
    Heard::Event(TurnEvent::Typed { text })
}

fn piece(about: &Piece, event: impl FnOnce(String) -> TurnEvent) -> Vec<Heard> {
    let text = &about.delta_content;
    if text.is_empty() { vec![] } else { vec![Heard::Event(event(text.clone()))] }
}

fn reported(report: Report) -> Heard {
    Heard::Event(TurnEvent::Reported(report))
}

#[cfg(test)]
mod tests;
