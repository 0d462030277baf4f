//! Implements `AgentProgram` for Claude Code: a process that reads and writes JSON lines.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};

use atomic_event::{Answer, ConversationId, Question, Stop, TurnEvent};
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, oneshot};

use super::decode::{Decoder, Heard};
use super::desk::Held;
use super::launch::Launch;
use super::start::{Known, exited, garbled};
use super::{misused, wire};
use crate::BackendError;
use crate::guard::Guard;
use crate::process::Process;
use crate::trouble::now_ms;
use crate::turn::{AgentProgram, Input};

/// Reply to a question that no user can answer.
const DECLINED: &str = "Nobody can be asked here. Decide yourself and say what you decided.";

/// Id of the conversation, which the program may change.
pub(super) type SharedId = Arc<Mutex<ConversationId>>;

/// A request of the control protocol, such as `set_model`.
pub(super) struct ControlRequest {
    pub(super) body: Value,
    pub(super) reply: oneshot::Sender<Result<Value, String>>,
}

/// Data that all conversations share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) guard: Guard,
    /// Limits the number of programs that start at once: a start is bound by the CPU.
    pub(super) starts: Arc<Semaphore>,
}

/// A process of Claude Code and its conversation.
pub(super) struct ClaudeProgram {
    pub(super) shared: Shared,
    pub(super) launch: Launch,
    pub(super) id: SharedId,
    pub(super) process: Option<Process>,
    pub(super) decoder: Decoder,
    pub(super) known: Known,
    /// The last prompt, for a program that ended before it read the prompt.
    prompt: String,
    /// Inputs of open question calls, which are sent back with the answers.
    questions: BTreeMap<String, Value>,
    /// Control requests without a response.
    requests: Vec<(String, oneshot::Sender<Result<Value, String>>)>,
    request_count: u64,
    /// Inputs that were decoded while the program was starting.
    pub(super) early: Vec<Input>,
    /// Released when the process has ended.
    _held: Held,
}

impl ClaudeProgram {
    pub(super) fn new(
        shared: Shared,
        launch: Launch,
        id: SharedId,
        held: Held,
        resume: bool,
    ) -> Self {
        Self {
            shared,
            launch,
            id,
            process: None,
            decoder: Decoder::default(),
            known: if resume { Known::Yes } else { Known::No },
            prompt: String::new(),
            questions: BTreeMap::new(),
            requests: vec![],
            request_count: 0,
            early: vec![],
            _held: held,
        }
    }

    pub(super) fn current_id(&self) -> ConversationId {
        self.id.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn rename(&self, id: ConversationId) {
        *self.id.lock().unwrap_or_else(PoisonError::into_inner) = id;
    }

    fn write(&self, line: String) {
        if let Some(process) = &self.process {
            process.write(line);
        }
    }

    /// Sends a control request and returns its id.
    pub(super) fn send_request(&mut self, body: &Value) -> String {
        self.request_count += 1;
        let id = format!("atomic-{}", self.request_count);
        self.write(wire::request(&id, body));
        id
    }

    fn send_prompt(&mut self, line: String) {
        self.decoder.begin_turn();
        self.questions.clear();
        self.prompt.clone_from(&line);
        self.write(line);
        if self.known == Known::No {
            self.known = Known::Perhaps;
        }
    }

    pub(super) async fn line(&mut self) -> Option<String> {
        match &mut self.process {
            Some(process) => process.line().await,
            None => pending().await,
        }
    }

    async fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill().await;
        }
    }

    /// Answers what the program requests, and returns what the turn has to know.
    pub(super) fn on_heard(&mut self, heard: Heard) -> Option<Input> {
        match heard {
            Heard::Event(event) => return Some(Input::Event(event)),
            Heard::Asked { request, questions, input } => {
                self.questions.insert(request.clone(), input);
                return Some(Input::Asked { request, questions });
            }
            Heard::ToolWanted { request, tool, input, helper } => {
                let verdict = match self.launch.refusal(&tool, &input, helper.as_deref()) {
                    None => json!({}),
                    Some(why) => json!({ "hookSpecificOutput": {
                        "hookEventName": "PreToolUse",
                        "permissionDecision": "deny",
                        "permissionDecisionReason": why,
                    } }),
                };
                self.write(wire::reply(&request, &verdict));
            }
            Heard::LeaveWanted { request, input } => {
                let verdict = json!({ "behavior": "allow", "updatedInput": input });
                self.write(wire::reply(&request, &verdict));
            }
            Heard::Unsupported { request, what } => {
                self.write(wire::refuse(&request, &format!("{what} is not supported")));
            }
            Heard::Withdrawn { request } => return Some(Input::Withdrawn { request }),
            Heard::Replied { request, response } => {
                let place = self.requests.iter().position(|(id, _)| *id == request);
                if let Some((_, reply)) = place.map(|place| self.requests.swap_remove(place)) {
                    // The caller may have stopped waiting.
                    let _ = reply.send(response);
                }
            }
            Heard::Renamed(id) => self.rename(id.into()),
            Heard::Trouble { trouble, delay_ms } => {
                let delay_ms = i64::try_from(delay_ms).unwrap_or(i64::MAX);
                let next = now_ms().saturating_add(delay_ms);
                let retry_at = trouble.outage.retry_at_ms.unwrap_or(next);
                return Some(Input::Trouble(trouble.with_retry_at(Some(retry_at))));
            }
            Heard::Streaming => return Some(Input::Streaming),
            Heard::Answering => return Some(Input::Recovered),
            Heard::Ended(stop) => {
                // Of an interrupted turn, not even the prompt may have been saved.
                if stop != Stop::Interrupted {
                    self.known = Known::Yes;
                }
                return Some(Input::Ended(stop));
            }
            // The caller ends the process.
            Heard::Garbled => {}
        }
        None
    }

    async fn on_line(&mut self, line: &str) -> Vec<Input> {
        let mut inputs = std::mem::take(&mut self.early);
        inputs.push(Input::Heard);
        for heard in self.decoder.line(line) {
            if heard == Heard::Garbled {
                self.kill().await;
                inputs.push(Input::Ended(Stop::Failed(garbled(line).into())));
            } else {
                inputs.extend(self.on_heard(heard));
            }
        }
        inputs
    }

    async fn on_exit(&mut self) -> Vec<Input> {
        let Some(process) = self.process.take() else { return vec![] };
        let exit = process.exit().await;
        for (_, reply) in self.requests.drain(..) {
            let _ = reply.send(Err("the program has ended".to_owned()));
        }
        // A prompt without any message since was sent to a program that had ended already.
        vec![Input::Lost { error: exited(&exit), may_resend: true }]
    }
}

impl AgentProgram for ClaudeProgram {
    /// A line, or the end of the output.
    type Message = Option<String>;
    type Request = ControlRequest;

    fn misused(&self, problem: &str) -> BackendError {
        misused(problem)
    }

    async fn connect(&mut self) -> Result<(), BackendError> {
        if self.process.is_none() {
            self.launch().await?;
        }
        Ok(())
    }

    async fn prompt(&mut self, prompt: String) -> Vec<TurnEvent> {
        let is_markable = self.launch.knows_literal_prompts();
        self.send_prompt(wire::prompt(&prompt, is_markable));
        vec![]
    }

    fn resend(&mut self) {
        self.write(self.prompt.clone());
    }

    fn summarise(&mut self) -> Result<(), BackendError> {
        self.send_prompt(wire::user("/compact"));
        Ok(())
    }

    async fn receive(&mut self, has_room: bool) -> Option<String> {
        if has_room { self.line().await } else { pending().await }
    }

    async fn on_message(&mut self, message: Option<String>) -> Vec<Input> {
        match message {
            Some(line) => self.on_line(&line).await,
            None => self.on_exit().await,
        }
    }

    fn interrupt(&mut self) {
        self.send_request(&json!({ "subtype": "interrupt", "cancel_queued": true }));
    }

    async fn abandon(&mut self) {
        self.kill().await;
    }

    fn reply(&mut self, request: &str, answers: &[(Question, Answer)]) {
        let Some(mut input) = self.questions.remove(request) else { return };
        let answers = answers.iter();
        let answers = answers.map(|(asked, answer)| (asked.question.clone(), json!(answer.text())));
        input["answers"] = Value::Object(answers.collect::<Map<_, _>>());
        let verdict = json!({ "behavior": "allow", "updatedInput": input });
        self.write(wire::reply(request, &verdict));
    }

    fn decline(&mut self, request: &str, _questions: usize) {
        self.questions.remove(request);
        let verdict = json!({ "behavior": "deny", "message": DECLINED });
        self.write(wire::reply(request, &verdict));
    }

    async fn request(&mut self, request: ControlRequest) {
        let ControlRequest { body, reply } = request;
        if let Err(error) = self.connect().await {
            let _ = reply.send(Err(error.to_string()));
            return;
        }
        let id = self.send_request(&body);
        self.requests.push((id, reply));
    }

    async fn close(mut self, was_busy: bool, _rests: bool) {
        if let Some(process) = self.process.take() {
            if was_busy { process.kill().await } else { process.end().await }
        }
    }
}
