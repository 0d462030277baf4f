//! From the program's events to our words, without IO.
//!
//! Start reading at [`Decoder::event`] and [`Decoder::verdict`].

use std::collections::{BTreeMap, BTreeSet};

use atomic_event::{
    BackendId, Helper, HelperState, Question, Report, StepError, Stop, ToolCall, ToolUse,
    TurnEvent, Usage,
};
use serde_json::Value;

use super::ID;
use super::failures::{Retried, broken_off, nothing_done, retry_of, trouble_of};
use super::wire::{About, Event, Failure, Info, Part};
use crate::BackendError;
use crate::prices::{CallTokens, estimate};
use crate::trouble::{Kind, Trouble};
use crate::words::{questions, shorten, summary, todos, tool_name};

/// How often in a row an answer may end without a reason. The program itself would ask for ever.
const BROKEN_OFF: usize = 3;

/// The error of what was stopped.
const ABORTED: &str = "MessageAbortedError";

/// What an event comes to.
#[derive(Debug, PartialEq)]
pub(super) enum Heard {
    /// Part of the turn.
    Event(TurnEvent),
    /// The agent, or a helper of its, asks the user.
    Asked { request: String, questions: Vec<Question> },
    /// The program wants our leave for something.
    LeaveWanted { request: String },
    /// The provider is in trouble, and the program tries again.
    Trouble(Trouble),
    /// A part of an answer came: whatever trouble there was is over.
    Answering,
    /// The answers break off again and again.
    BrokenOff,
    /// The model is being asked.
    Began,
    /// The program has something to do.
    Busy,
    /// The program has nothing more to do for the turn.
    Idle,
}

/// How a turn stands when the program says that it has nothing more to do.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Over(Stop),
    /// It may say more: it says so twice when something went wrong, the first time too early.
    Unsettled,
}

/// Reads the events of one conversation and of its helpers.
#[derive(Debug)]
pub(super) struct Decoder {
    session: String,
    /// How large the model's window is.
    pub(super) window: Option<u64>,
    /// Whether it is known what the model costs.
    pub(super) is_priced: bool,
    /// The model's name.
    pub(super) model: String,
    /// The prompt of the turn; what is older does not belong to it.
    prompt: String,
    /// Whether any message of the turn was heard of.
    is_heard: bool,
    /// Messages of models in this turn.
    messages: BTreeMap<String, Message>,
    /// The last one of the agent itself that is no summary.
    last: Option<String>,
    /// What is being written: parts of messages, by whether they are thoughts.
    writing: BTreeMap<String, Writing>,
    calls: BTreeMap<String, ToolCall>,
    /// Parts that were counted.
    counted: BTreeSet<String>,
    helpers: BTreeMap<String, Helper>,
    error: Option<Failure>,
    /// How many answers in a row have ended without a reason.
    broken_off: usize,
}

/// A message of a model.
#[derive(Debug, Default)]
struct Message {
    is_summary: bool,
    /// By whom, when the agent itself did not write it.
    helper: Option<String>,
    texts: Vec<String>,
    finish: Option<String>,
    error: Option<Failure>,
    structured: Option<Value>,
    used_tools: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Writing {
    is_thought: bool,
    /// Whether pieces of it have come.
    came_in_pieces: bool,
}

impl Decoder {
    pub(super) fn new(session: &str) -> Self {
        Self {
            session: session.to_owned(),
            window: None,
            is_priced: true,
            model: String::new(),
            prompt: String::new(),
            is_heard: false,
            messages: BTreeMap::new(),
            last: None,
            writing: BTreeMap::new(),
            calls: BTreeMap::new(),
            counted: BTreeSet::new(),
            helpers: BTreeMap::new(),
            error: None,
            broken_off: 0,
        }
    }

    /// Forgets the turn before. The ids of messages grow with time.
    pub(super) fn begin_turn(&mut self, prompt: String) {
        let Self { session, window, is_priced, model, .. } = self;
        let (window, is_priced, model) = (*window, *is_priced, std::mem::take(model));
        *self = Self { window, is_priced, model, prompt, ..Self::new(session) };
    }

    /// The prompt of the turn.
    pub(super) fn prompt(&self) -> &str {
        &self.prompt
    }

    /// What went wrong with a summary, where something did.
    pub(super) fn failure(&self) -> Option<StepError> {
        let is_cut = |it: &Message| it.is_summary && it.finish.as_deref() == Some("unknown");
        if self.messages.values().any(is_cut) {
            return Some(broken_off().into());
        }
        self.error.as_ref().map(|error| trouble_of(error).into_error(ID))
    }

    /// Takes in one event.
    pub(super) fn event(&mut self, event: &Event) -> Vec<Heard> {
        let about = &event.about;
        let is_own = about.session == self.session;
        match event.kind {
            "session.created" => self.helper_began(about),
            "session.status" if is_own && about.status.r#type == "retry" => retried(about),
            "session.status" if is_own && about.status.r#type == "busy" => vec![Heard::Busy],
            "session.idle" if is_own && self.has_begun() => vec![Heard::Idle],
            "session.error" if is_own => {
                self.error = about.error.clone();
                vec![]
            }
            "session.compacted" if is_own => {
                vec![reported(Report::Compacted { before: None, after: None })]
            }
            "message.updated" => self.message(&about.info, &about.session),
            "message.part.updated" => self.part(&about.part, &about.session),
            "message.part.delta" => self.delta(about),
            "todo.updated" if is_own => {
                vec![reported(Report::Todos { items: todos(&about.todos) })]
            }
            "question.asked" => {
                let input = serde_json::json!({ "questions": about.questions });
                let (request, questions) = (about.id.clone(), questions(&input));
                vec![Heard::Asked { request, questions }]
            }
            "permission.asked" => vec![Heard::LeaveWanted { request: about.id.clone() }],
            _ => vec![],
        }
    }

    /// Whether the turn can be over. Whenever something is stopped, even if nothing is under way, the
    /// program says that it is idle, which may be heard when the next turn is waited for.
    fn has_begun(&self) -> bool {
        let is_refused = |error: &Failure| error.name != ABORTED;
        self.is_heard || self.error.as_ref().is_some_and(is_refused)
    }

    /// The name of a helper by its session; nothing for the agent itself.
    fn by(&self, session: &str) -> Option<String> {
        (session != self.session).then(|| session.to_owned())
    }

    fn helper_began(&mut self, about: &About) -> Vec<Heard> {
        let Info { id, title, agent, .. } = &about.info;
        if *id == self.session || self.helpers.contains_key(id) {
            return vec![];
        }
        // The program appends whom it has started.
        let task = title.rsplit_once(" (@").map_or(title.as_str(), |(task, _)| task);
        let helper = Helper {
            id: id.clone(),
            agent: agent.clone(),
            task: shorten(task),
            state: HelperState::Started,
            tools_used: 0,
            tokens: 0,
        };
        self.helpers.insert(id.clone(), helper.clone());
        vec![reported(Report::Helper(helper))]
    }

    fn message(&mut self, info: &Info, session: &str) -> Vec<Heard> {
        if info.id < self.prompt {
            return vec![];
        }
        self.is_heard |= session == self.session;
        if info.role != "assistant" {
            return vec![];
        }
        let helper = self.by(session);
        let is_new = !self.messages.contains_key(&info.id);
        let message = self.messages.entry(info.id.clone()).or_default();
        message.helper.clone_from(&helper);
        message.is_summary = info.summary.as_bool().unwrap_or(false);
        message.error.clone_from(&info.error);
        let has_ended = message.finish.is_none() && info.finish.is_some();
        message.finish.clone_from(&info.finish);
        message.structured.clone_from(&info.structured);
        if helper.is_none() && !message.is_summary {
            self.last = Some(info.id.clone());
        }
        if has_ended && self.breaks_off(&info.id) {
            return vec![Heard::BrokenOff];
        }
        if is_new { vec![Heard::Began] } else { vec![] }
    }

    /// Whether this was one answer too many that ended without a reason.
    fn breaks_off(&mut self, id: &str) -> bool {
        let Some(message) = self.messages.get(id) else { return false };
        let is_whole = message.finish.as_deref() != Some("unknown") || message.used_tools;
        self.broken_off = if is_whole { 0 } else { self.broken_off + 1 };
        self.broken_off >= BROKEN_OFF
    }

    fn part(&mut self, part: &Part, session: &str) -> Vec<Heard> {
        let by = self.by(session);
        let Some(message) = self.messages.get_mut(&part.message) else { return vec![] };
        match part.r#type.as_str() {
            "text" | "reasoning" => {
                let is_shown = by.is_none() && !message.is_summary;
                if is_shown { self.written(part) } else { vec![] }
            }
            "tool" => {
                message.used_tools = true;
                let told = self.tool(part, by);
                std::iter::once(Heard::Answering).chain(told).collect()
            }
            "step-finish" => self.spent(part, session).into_iter().collect(),
            _ => vec![],
        }
    }

    /// A text or a thought begins, or is whole.
    fn written(&mut self, part: &Part) -> Vec<Heard> {
        let is_thought = part.r#type == "reasoning";
        let writing = self.writing.entry(part.id.clone()).or_default();
        writing.is_thought = is_thought;
        if part.time.end.is_none() || !self.counted.insert(part.id.clone()) {
            return vec![];
        }
        let mut heard = vec![Heard::Answering];
        if !writing.came_in_pieces && !part.text.is_empty() {
            heard.push(piece(is_thought, part.text.clone()));
        }
        if !is_thought && !part.text.is_empty() {
            if let Some(message) = self.messages.get_mut(&part.message) {
                message.texts.push(part.text.clone());
            }
            heard.push(reported(Report::Said { text: part.text.clone() }));
        }
        heard
    }

    fn delta(&mut self, about: &About) -> Vec<Heard> {
        let Some(writing) = self.writing.get_mut(&about.part_id) else { return vec![] };
        if about.delta.is_empty() || about.session != self.session {
            return vec![];
        }
        writing.came_in_pieces = true;
        vec![piece(writing.is_thought, about.delta.clone())]
    }

    /// The program's own ways to ask, to list and to start helpers are told in words of their own.
    fn tool(&mut self, part: &Part, by: Option<String>) -> Option<Heard> {
        match part.tool.as_str() {
            "question" | "StructuredOutput" | "todowrite" | "todoread" => return None,
            "task" => return self.helper_ended(part),
            _ => {}
        }
        match part.state.status.as_str() {
            "running" if !self.calls.contains_key(&part.call) => {
                let (tool, summary) = named(part);
                let call = ToolCall { tool, summary, by };
                self.calls.insert(part.call.clone(), call.clone());
                Some(Heard::Event(TurnEvent::ToolBegan(call)))
            }
            "completed" | "error" => self.tool_ended(part, by),
            _ => None,
        }
    }

    fn tool_ended(&mut self, part: &Part, by: Option<String>) -> Option<Heard> {
        if !self.counted.insert(part.call.clone()) {
            return None;
        }
        let (tool, summary) = named(part);
        // A call that makes no sense to the program is told to the model, and counts as done.
        let failed = part.state.status == "error"
            || part.tool == "invalid"
            // A command that was stopped has no code.
            || (part.tool == "bash" && part.state.metadata.exit != Some(0));
        if let Some(helper) = by.as_ref().and_then(|id| self.helpers.get_mut(id)) {
            helper.tools_used += 1;
        }
        let used = ToolUse { tool, summary, ok: !failed, by };
        Some(reported(Report::ToolUsed(used)))
    }

    fn helper_ended(&mut self, part: &Part) -> Option<Heard> {
        let state = match part.state.status.as_str() {
            "completed" => HelperState::Finished,
            "error" => HelperState::Failed,
            _ => return None,
        };
        if !self.counted.insert(part.call.clone()) {
            return None;
        }
        let Some(id) = &part.state.metadata.session_id else {
            // It was refused, or there is no such helper.
            let (tool, summary) = named(part);
            return Some(reported(Report::ToolUsed(ToolUse {
                tool,
                summary,
                ok: false,
                by: None,
            })));
        };
        // One that was started in an earlier turn can be told to go on.
        let helper = self.helpers.entry(id.clone()).or_insert_with(|| known(id, &part.state.input));
        helper.state = state;
        Some(reported(Report::Helper(helper.clone())))
    }

    /// A model was paid.
    fn spent(&mut self, part: &Part, session: &str) -> Option<Heard> {
        if !self.counted.insert(part.id.clone()) {
            return None;
        }
        let (read, written) = (part.tokens.read(), part.tokens.written());
        let is_own = session == self.session;
        if let Some(helper) = self.helpers.get_mut(session) {
            helper.tokens = helper.tokens.saturating_add(read).saturating_add(written);
        }
        if read == 0 && written == 0 {
            return None;
        }
        // A helper may use a model that is priced where the agent's own is not.
        let is_priced = self.is_priced || part.cost > 0.0;
        let tokens = CallTokens {
            input: part.tokens.input,
            output: written,
            cache_read: part.tokens.cache.read,
            cache_write: part.tokens.cache.write,
        };
        let estimated_usd = if is_priced { None } else { estimate(&self.model, tokens) };
        Some(reported(Report::Spent(Usage {
            input_tokens: read,
            output_tokens: written,
            cost_usd: is_priced.then_some(part.cost),
            estimated_usd,
            is_total: false,
            context_tokens: is_own.then(|| read.saturating_add(written)),
            context_window: self.window.filter(|_| is_own),
        })))
    }

    /// How the turn stands now that the program has nothing more to do for it. What is `final` will
    /// not be told more.
    pub(super) fn verdict(&self, is_final: bool) -> Verdict {
        let message = self.last.as_ref().and_then(|id| self.messages.get(id));
        let told = message.and_then(|message| message.error.as_ref());
        let finish = message.and_then(|message| message.finish.as_deref());
        if let Some(error) = told {
            return Verdict::Over(self.failed(error, message));
        }
        match (message, finish) {
            (Some(message), Some(finish)) => Verdict::Over(finished(message, finish)),
            _ if !is_final => Verdict::Unsettled,
            _ => Verdict::Over(match &self.error {
                Some(error) => self.failed(error, message),
                None => Stop::Failed(nothing_done().into()),
            }),
        }
    }

    fn failed(&self, error: &Failure, message: Option<&Message>) -> Stop {
        if error.name == ABORTED {
            return Stop::Interrupted;
        }
        if error.name == "StructuredOutputError" {
            // Whether it is what was asked for is for the caller to see.
            return Stop::Done { text: message.map(text_of).unwrap_or_default() };
        }
        Stop::Failed(trouble_of(error).into_error(ID))
    }
}

/// A helper, by the call that has it work.
fn known(id: &str, input: &Value) -> Helper {
    let text = |key: &str| input.get(key).and_then(Value::as_str).unwrap_or_default();
    Helper {
        id: id.to_owned(),
        agent: text("subagent_type").to_owned(),
        task: shorten(text("description")),
        state: HelperState::Started,
        tools_used: 0,
        tokens: 0,
    }
}

fn text_of(message: &Message) -> String {
    message.texts.concat()
}

fn finished(message: &Message, finish: &str) -> Stop {
    if let Some(structured) = &message.structured {
        return Stop::Done { text: structured.to_string() };
    }
    let backend = BackendId::from(ID);
    match finish {
        // A turn that ends after a tool was stopped by a refusal that the model was not told of.
        "tool-calls" => Stop::Failed(
            BackendError::Refused {
                backend,
                message: "the program ended the turn because something it asked for was refused"
                    .to_owned(),
            }
            .into(),
        ),
        "content-filter" => {
            let words = "the provider's filter has stopped the answer".to_owned();
            Stop::Failed(Trouble::new(Kind::Refused, words).into_error(ID))
        }
        "unknown" => Stop::Failed(broken_off().into()),
        _ => Stop::Done { text: text_of(message) },
    }
}

fn retried(about: &About) -> Vec<Heard> {
    let Retried { trouble, wait } = retry_of(about);
    vec![Heard::Trouble(trouble), reported(Report::Waited(wait))]
}

fn named(part: &Part) -> (String, String) {
    let input = &part.state.input;
    let name = match part.tool.as_str() {
        "invalid" => input.get("tool").and_then(Value::as_str).unwrap_or("invalid"),
        name => name,
    };
    (tool_name(name), summary(input))
}

fn piece(is_thought: bool, text: String) -> Heard {
    Heard::Event(if is_thought { TurnEvent::Thought { text } } else { TurnEvent::Typed { text } })
}

fn reported(report: Report) -> Heard {
    Heard::Event(TurnEvent::Reported(report))
}

#[cfg(test)]
mod tests;
