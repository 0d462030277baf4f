//! From the program's lines to our words, without IO.
//!
//! Start reading at [`Decoder::line`].

use std::collections::{BTreeMap, BTreeSet};

use atomic_event::{
    Helper, HelperState, Question, Report, Stop, ToolCall, ToolUse, TurnEvent, Wait,
};
use serde_json::Value;

use super::account::Account;
use super::list::OwnList;
use super::trouble::of_result;
use super::wire::{
    LimitStatus, Line, RateLimitInfo, Request, Response, Spoken, Streamed, System, TaskNews,
    TurnResult,
};
use crate::trouble::{self, Kind, Trouble};
use crate::words::{questions, summary, todos, tool_name};

/// What a line comes to.
#[derive(Debug, PartialEq)]
pub(super) enum Heard {
    /// Part of the turn.
    Event(TurnEvent),
    /// The agent asks the user; the input goes back with the answers in it.
    Asked { request: String, questions: Vec<Question>, input: Value },
    /// A tool is about to be used, by the agent itself or by a helper of this kind.
    ToolWanted { request: String, tool: String, input: Value, helper: Option<String> },
    /// The program wants our leave for a tool.
    LeaveWanted { request: String, input: Value },
    /// The program wants something we do not know.
    Unsupported { request: String, what: String },
    /// The program does not want an answer any more.
    Withdrawn { request: String },
    /// The program answers one of our own requests.
    Replied { request: String, response: Result<Value, String> },
    /// The conversation goes on under another id.
    Renamed(String),
    /// The provider is in trouble and the program tries again after this time, in milliseconds.
    Trouble { trouble: Trouble, delay_ms: u64 },
    /// A piece of an answer comes.
    Streaming,
    /// A part of an answer is whole: whatever trouble there was is over.
    Answering,
    /// The turn is over.
    Ended(Stop),
    /// Not a line of the protocol.
    Garbled,
}

/// Reads the lines of one program.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// Tools in use, by the model's id of the call.
    calls: BTreeMap<String, ToolCall>,
    /// Those by which the agent keeps its own list.
    list_calls: BTreeSet<String>,
    list: OwnList,
    /// Helpers, by the id of the call that started them.
    helpers: BTreeMap<String, Helper>,
    account: Account,
    /// The last trouble of this turn.
    trouble: Option<Trouble>,
    /// When the limit of the account that is used up is renewed, in milliseconds since 1970. Told once
    /// for all turns.
    limit_resets_at: Option<i64>,
    /// How the turn has ended, when only the word that nothing more comes is missing.
    ending: Option<Stop>,
    /// Whether this program says when it has nothing more to do.
    tells_idle: bool,
    session: Option<String>,
}

impl Decoder {
    /// Takes in one line.
    pub(super) fn line(&mut self, line: &str) -> Vec<Heard> {
        if line.trim().is_empty() {
            return vec![];
        }
        match read(line) {
            None => vec![Heard::Garbled],
            Some(Line::System(system)) => self.system(&system),
            Some(Line::Assistant(spoken)) => self.assistant(&spoken),
            Some(Line::User(spoken)) => self.user(&spoken),
            Some(Line::StreamEvent(streamed)) => {
                let spent = self.counted(&streamed);
                streamed_event(streamed).into_iter().chain(spent).collect()
            }
            Some(Line::Result(result)) => self.result(&result),
            Some(Line::RateLimitEvent { rate_limit_info: RateLimitInfo { status, resets_at } }) => {
                let is_used_up = status == LimitStatus::Rejected;
                let resets_at = resets_at.filter(|_| is_used_up);
                self.limit_resets_at = resets_at.map(|seconds| seconds.saturating_mul(1_000));
                vec![]
            }
            Some(Line::ControlRequest { request_id, request }) => vec![wanted(request_id, request)],
            Some(Line::ControlCancelRequest { request_id: request }) => {
                vec![Heard::Withdrawn { request }]
            }
            Some(Line::ControlResponse { response }) => {
                // Interrupted before it began, the turn has no other end.
                let cancelled = response.response.get("cancelled").and_then(Value::as_array);
                let end = cancelled.is_some_and(|list| !list.is_empty());
                let end = end.then_some(Heard::Ended(Stop::Interrupted));
                std::iter::once(replied(response)).chain(end).collect()
            }
            Some(Line::Other) => vec![],
        }
    }

    /// Forgets what belongs to a turn.
    pub(super) fn begin_turn(&mut self) {
        self.calls.clear();
        self.list_calls.clear();
        self.helpers.clear();
        self.account.begin_turn();
        self.trouble = None;
        self.ending = None;
    }

    /// What a call of the agent's own has cost, once it is over.
    fn counted(&mut self, streamed: &Streamed) -> Option<Heard> {
        let event = &streamed.event;
        let is_own = streamed.parent_tool_use_id.is_none();
        match event.r#type.as_str() {
            "message_start" if is_own => self.account.call_began(&event.message),
            "message_delta" if is_own => {
                let is_complete = event.delta.stop_reason.is_some();
                let usage = self.account.call_counted(event.usage?, is_complete)?;
                return Some(reported(Report::Spent(usage)));
            }
            _ => {}
        }
        None
    }

    fn system(&mut self, system: &System) -> Vec<Heard> {
        match system.subtype.as_str() {
            "init" => self.renamed(system.session_id.as_ref()),
            "session_state_changed" => {
                self.tells_idle = true;
                let idle = system.state.as_deref() == Some("idle");
                self.ending.take_if(|_| idle).map(Heard::Ended).into_iter().collect()
            }
            "api_retry" => {
                let words = trouble::words_of(&system.error);
                let kind = trouble::kind(system.error_status, &words, &words);
                let trouble = Trouble::new(kind, words).with_status(system.error_status);
                let trouble = self.with_limit(trouble);
                let delay_ms = system.retry_delay_ms.max(0.0) as u64;
                let wait = Wait {
                    code: trouble.kind.code().to_owned(),
                    attempt: system.attempt,
                    delay_ms: Some(delay_ms),
                };
                self.trouble = Some(trouble.clone());
                vec![Heard::Trouble { trouble, delay_ms }, reported(Report::Waited(wait))]
            }
            "compact_boundary" => {
                let about = &system.compact_metadata;
                vec![reported(Report::Compacted {
                    before: about.pre_tokens,
                    after: about.post_tokens,
                })]
            }
            "task_started" | "task_notification" => self.helper(&system.subtype, &system.task),
            "model_fallback" | "model_refusal_no_fallback" | "informational" => {
                let said = [&system.content, &system.message].into_iter().find_map(Value::as_str);
                let said = said.filter(|text| !text.trim().is_empty());
                said.map(|text| reported(Report::Remarked { text: text.to_owned() }))
                    .into_iter()
                    .collect()
            }
            _ => vec![],
        }
    }

    /// A limit of the rate is one of the account, where the program has said that one is used up.
    fn with_limit(&self, trouble: Trouble) -> Trouble {
        match self.limit_resets_at.filter(|at| *at > trouble::now_ms()) {
            Some(at) if trouble.kind == Kind::RateLimited => {
                Trouble { kind: Kind::Quota, ..trouble }.with_retry_at(Some(at))
            }
            _ => trouble,
        }
    }

    fn renamed(&mut self, session: Option<&String>) -> Vec<Heard> {
        let Some(id) = session.filter(|id| self.session.as_ref() != Some(*id)) else {
            return vec![];
        };
        self.session = Some(id.clone());
        vec![Heard::Renamed(id.clone())]
    }

    fn helper(&mut self, subtype: &str, news: &TaskNews) -> Vec<Heard> {
        // Shells in the background have tasks, too.
        if news.task_type.as_deref().is_some_and(|kind| !kind.contains("agent")) {
            return vec![];
        }
        let Some(call) = &news.tool_use_id else { return vec![] };
        if subtype == "task_started" {
            let helper = Helper {
                id: news.task_id.clone(),
                agent: news.subagent_type.clone().unwrap_or_default(),
                task: news.description.clone().unwrap_or_default(),
                state: HelperState::Started,
                tools_used: 0,
                tokens: 0,
            };
            self.helpers.insert(call.clone(), helper.clone());
            return vec![reported(Report::Helper(helper))];
        }
        let Some(mut helper) = self.helpers.remove(call) else { return vec![] };
        let done = news.status.as_ref().and_then(Value::as_str) == Some("completed");
        helper.state = if done { HelperState::Finished } else { HelperState::Failed };
        (helper.tools_used, helper.tokens) = (news.usage.tool_uses, news.usage.total_tokens);
        vec![reported(Report::Helper(helper))]
    }

    fn assistant(&mut self, spoken: &Spoken) -> Vec<Heard> {
        // What the program itself says about an error comes again with the result.
        if !spoken.error.is_null() {
            return vec![];
        }
        self.trouble = None;
        if let (None, Some(usage)) = (&spoken.parent_tool_use_id, spoken.message.usage) {
            self.account.context(usage.all());
        }
        let by = spoken.parent_tool_use_id.as_deref();
        let mut heard = vec![Heard::Answering];
        let spent = by.and_then(|_| self.account.helper_spoke(&spoken.message));
        heard.extend(spent.map(|usage| reported(Report::Spent(usage))));
        heard.extend(blocks(&spoken.message.content).filter_map(|block| self.block(block, by)));
        heard
    }

    fn block(&mut self, block: &Value, by: Option<&str>) -> Option<Heard> {
        let text = |key: &str| block.get(key).and_then(Value::as_str);
        match text("type")? {
            "text" => {
                let said = text("text").filter(|text| !text.is_empty() && by.is_none())?;
                Some(reported(Report::Said { text: said.to_owned() }))
            }
            "tool_use" => self.call(text("id")?, text("name")?, block.get("input")?, by),
            _ => None,
        }
    }

    /// A tool is called. The program's own ways to ask, to report and to start helpers are told in
    /// words of their own.
    fn call(&mut self, id: &str, name: &str, input: &Value, by: Option<&str>) -> Option<Heard> {
        match name {
            "AskUserQuestion" | "StructuredOutput" | "Agent" | "Task" => return None,
            "TodoWrite" if by.is_none() => {
                let items = input.get("todos").map(todos)?;
                return Some(reported(Report::Todos { items }));
            }
            about if OwnList::is_about(about) && by.is_none() => {
                self.list_calls.insert(id.to_owned());
                return None;
            }
            _ => {}
        }
        let by = by.map(|call| self.helpers.get(call).map_or(call, |helper| &helper.id).to_owned());
        let call = ToolCall { tool: tool_name(name), summary: summary(input), by };
        self.calls.insert(id.to_owned(), call.clone());
        Some(Heard::Event(TurnEvent::ToolBegan(call)))
    }

    fn user(&mut self, spoken: &Spoken) -> Vec<Heard> {
        let results = blocks(&spoken.message.content).filter_map(|block| {
            let id = block.get("tool_use_id")?.as_str()?;
            if self.list_calls.remove(id) {
                let items = self.list.learn(&spoken.tool_use_result)?;
                return Some(reported(Report::Todos { items }));
            }
            let call = self.calls.remove(id)?;
            let failed = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
            let ToolCall { tool, summary, by } = call;
            Some(reported(Report::ToolUsed(ToolUse { tool, summary, ok: !failed, by })))
        });
        let mut heard: Vec<Heard> = results.collect();
        let spent = self.account.helper_ended(&spoken.tool_use_result);
        heard.extend(spent.map(|usage| reported(Report::Spent(usage))));
        heard
    }

    fn result(&mut self, result: &TurnResult) -> Vec<Heard> {
        let mut heard = self.renamed(result.session_id.as_ref());
        let stop = self.stop(result);
        let spent = self.account.settle(result, stop == Stop::Interrupted);
        heard.extend(spent.into_iter().map(|usage| reported(Report::Spent(usage))));
        if self.tells_idle {
            self.ending = Some(stop);
        } else {
            heard.push(Heard::Ended(stop));
        }
        heard
    }

    fn stop(&mut self, result: &TurnResult) -> Stop {
        let reason = result.terminal_reason.as_deref().unwrap_or_default();
        let aborted = reason.starts_with("aborted");
        if result.subtype == "success" && !result.is_error && !aborted {
            let structured = result.structured_output.as_ref().map(Value::to_string);
            let said = result.result.as_ref().and_then(Value::as_str).unwrap_or_default();
            return Stop::Done { text: structured.unwrap_or_else(|| said.to_owned()) };
        }
        if aborted || (result.subtype == "error_during_execution" && result.words().is_empty()) {
            return Stop::Interrupted;
        }
        let trouble = of_result(result, self.trouble.take());
        Stop::Failed(self.with_limit(trouble).into_error(super::ID))
    }
}

/// A line as a message; nothing when it is no JSON object.
fn read(line: &str) -> Option<Line> {
    if let Ok(line) = serde_json::from_str(line) {
        return Some(line);
    }
    let value: Value = serde_json::from_str(line).ok()?;
    let fields = value.as_object()?;
    // A turn has to end, whatever shape the rest of its result has.
    if fields.get("type").and_then(Value::as_str) == Some("result") {
        let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
        return Some(Line::Result(Box::new(TurnResult {
            subtype: text("subtype").unwrap_or_default(),
            is_error: fields.get("is_error").and_then(Value::as_bool).unwrap_or(true),
            result: fields.get("result").cloned(),
            session_id: text("session_id"),
            ..TurnResult::default()
        })));
    }
    Some(Line::Other)
}

fn streamed_event(streamed: Streamed) -> Vec<Heard> {
    if streamed.parent_tool_use_id.is_some() {
        return vec![];
    }
    let event = streamed.event;
    let typed = event.delta.text.map(|text| TurnEvent::Typed { text });
    let thought = event.delta.thinking.map(|text| TurnEvent::Thought { text });
    let not_empty = |event: &TurnEvent| !matches!(event, TurnEvent::Typed { text } | TurnEvent::Thought { text } if text.is_empty());
    let is_piece = event.r#type == "content_block_delta";
    let streaming = is_piece.then_some(Heard::Streaming);
    streaming.into_iter().chain(typed.or(thought).filter(not_empty).map(Heard::Event)).collect()
}

fn wanted(id: String, request: Request) -> Heard {
    match request.subtype.as_str() {
        "can_use_tool" if request.tool_name == "AskUserQuestion" => {
            let questions = questions(&request.input);
            Heard::Asked { request: id, questions, input: request.input }
        }
        "can_use_tool" => Heard::LeaveWanted { request: id, input: request.input },
        "hook_callback" => {
            let tool = request.input.get("tool_name").and_then(Value::as_str).unwrap_or_default();
            let input = request.input.get("tool_input").cloned().unwrap_or_default();
            let helper = request.input.get("agent_type").and_then(Value::as_str);
            let helper = helper.map(str::to_owned);
            Heard::ToolWanted { request: id, tool: tool.to_owned(), input, helper }
        }
        _ => Heard::Unsupported { request: id, what: request.subtype },
    }
}

fn replied(response: Response) -> Heard {
    let Response { subtype, request_id: request, response, error } = response;
    let response = match error {
        Some(error) => Err(trouble::words_of(&error)),
        None if subtype == "error" => Err("it was refused".to_owned()),
        None => Ok(response),
    };
    Heard::Replied { request, response }
}

fn reported(report: Report) -> Heard {
    Heard::Event(TurnEvent::Reported(report))
}

fn blocks(content: &Value) -> impl Iterator<Item = &Value> {
    content.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests;
