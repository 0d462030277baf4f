//! What a script's call is to do: the data a script puts down, turned into an [`Action`], and the
//! node that a script is.

use atomic_event::{BackendId, Choice, Question, StepError};
use atomic_graph::{Branch, Count, FunctionId, Graph, Kind, Node, Script};
use serde::Deserialize;
use serde_json::Value;

use crate::{Action, AgentAction, Asking, Entry, EntryKind, Text, backend_called};

/// The key of the state under which a step finds what it was called with.
pub const CALL: &str = "call";

/// The name of an agent that is given by nothing but its prompt.
const NAMELESS: &str = "agent";

/// What a request may be called.
pub const REQUESTS: [&str; 7] =
    ["shell", "readFile", "writeFile", "exists", "glob", "fetch", "env"];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AgentCall {
    prompt: String,
    agent: Option<String>,
    model: Option<String>,
    backend: Option<String>,
    schema: Option<Value>,
    system_prompt: Option<String>,
    #[serde(default)]
    questions: bool,
    conversation: Option<String>,
}

#[derive(Debug, Deserialize)]
struct EntryCall {
    name: String,
    #[serde(default)]
    args: String,
    backend: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AskCall {
    question: String,
    #[serde(default)]
    header: Option<String>,
    #[serde(default)]
    options: Vec<Offered>,
    #[serde(default)]
    multi_select: bool,
    #[serde(default)]
    free_text: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Offered {
    Label(String),
    Choice(Choice),
}

/// What a call is to do. The error names what is wrong with it.
pub fn called(call: &Value) -> Result<Action, StepError> {
    let kind = call.get("kind").and_then(Value::as_str).ok_or_else(|| {
        StepError::new("call", "the call has no `kind` that says what it is to do")
    })?;
    match kind {
        "agent" => agent(read(kind, call)?),
        "skill" => entry(EntryKind::Skill, read(kind, call)?),
        "command" => entry(EntryKind::Command, read(kind, call)?),
        "ask" => Ok(ask(read(kind, call)?)),
        "sleep" => sleep(call),
        name if REQUESTS.contains(&name) => {
            let mut args = call.clone();
            if let Some(fields) = args.as_object_mut() {
                fields.shift_remove("kind");
            }
            Ok(Action::Request { name: name.to_owned(), args })
        }
        other => {
            let known = REQUESTS.join(", ");
            let message = format!(
                "there is no call of the kind `{other}`; there are agent, skill, command, ask, \
                 sleep, {known}"
            );
            Err(StepError::new("call", message))
        }
    }
}

fn sleep(call: &Value) -> Result<Action, StepError> {
    let until = call.get("until").unwrap_or(&Value::Null);
    let moment = until.as_i64().ok_or_else(|| {
        let message = format!(
            "`until` of a call of the kind `sleep` must be a moment in whole milliseconds, not \
             {until}"
        );
        StepError::new("call", message)
    })?;
    Ok(Action::Sleep { until: moment })
}

fn read<'c, T: Deserialize<'c>>(kind: &str, call: &'c Value) -> Result<T, StepError> {
    T::deserialize(call).map_err(|problem| {
        StepError::new("call", format!("the call of the kind `{kind}` cannot be made: {problem}"))
    })
}

fn backend(name: Option<String>) -> Result<Option<BackendId>, StepError> {
    let Some(name) = name else { return Ok(None) };
    let known = backend_called(&name);
    known.map(Some).ok_or_else(|| StepError::new("call", format!("there is no backend `{name}`")))
}

fn agent(call: AgentCall) -> Result<Action, StepError> {
    let schema = call.schema;
    let is_object = |schema: &Value| schema.get("type").and_then(Value::as_str) == Some("object");
    if schema.as_ref().is_some_and(|schema| !is_object(schema)) {
        let message = "the `schema` of a call of the kind `agent` must be of the type `object`";
        return Err(StepError::new("call", message));
    }
    let instructions = match (&call.agent, call.system_prompt) {
        (_, Some(own)) => Some(own),
        (None, None) => Some(String::new()),
        (Some(_), None) => None,
    };
    let name = call.agent.as_deref().unwrap_or(NAMELESS);
    Ok(Action::Agent(AgentAction {
        backend: backend(call.backend)?,
        instructions,
        fresh: call.conversation.is_none(),
        lane: call.conversation,
        questions: call.questions,
        model: call.model,
        schema,
        ..AgentAction::new(name, Text::Verbatim(call.prompt))
    }))
}

fn entry(kind: EntryKind, call: EntryCall) -> Result<Action, StepError> {
    let (name, args) = (call.name, Text::Verbatim(call.args));
    Ok(Action::Entry(Entry { kind, name, backend: backend(call.backend)?, args, map: None }))
}

fn ask(call: AskCall) -> Action {
    let options = call.options.into_iter().map(|offered| match offered {
        Offered::Label(label) => Choice { label, ..Choice::default() },
        Offered::Choice(choice) => choice,
    });
    let question = Question {
        question: call.question,
        header: call.header.unwrap_or_default(),
        options: options.collect(),
        multi_select: call.multi_select,
        free_text: call.free_text,
    };
    Action::Ask(Asking { question })
}

/// A workflow that a script can call by its name.
#[derive(Clone, Debug)]
pub struct Callable {
    /// The name it is called by.
    pub name: String,
    /// What it does.
    pub graph: Graph,
    /// Makes what the call returns out of the state it ended with; otherwise everything it changed
    /// is returned.
    pub output: Option<FunctionId>,
    /// The longest time for it.
    pub timeout_ms: Option<u64>,
}

/// A node that is a script: `advance` says what to call next. It can call agents, skills, commands,
/// questions and requests, and these workflows.
pub fn script_node(
    id: &str,
    advance: FunctionId,
    workflows: Vec<Callable>,
    max_calls: Option<Count>,
) -> Node {
    let action = serde_json::to_value(Action::Called).unwrap_or_default();
    let body = |node: Node| {
        let id = node.id.clone();
        Branch { id: id.clone(), graph: Graph::starting_at(id).node(node) }
    };
    let mut bodies = vec![
        body(Node::launch("agent", action.clone())),
        body(Node::question("ask", action.clone())),
        body(Node::work("work", action)),
    ];
    for Callable { name, graph, output, timeout_ms } in workflows {
        let kind = Kind::Subgraph { graph, isolated: true, input: None, output };
        let node = Node { timeout_ms, ..Node::new(name.as_str(), kind) };
        bodies.push(body(node));
    }
    Node::new(id, Kind::Script(Script { advance, bodies, max_calls }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::called;

    #[test]
    fn a_call_says_what_to_do_or_what_is_wrong_with_it() {
        let table = [
            (
                json!({"kind": "agent", "prompt": "{x}"}),
                r#"{"do":"agent","agent":"agent","instructions":"","prompt":{"verbatim":"{x}"},"fresh":true,"questions":false,"iteration":false}"#,
            ),
            (
                json!({"kind": "agent", "agent": "worker", "prompt": "p", "model": "m",
                       "backend": "claude", "schema": {"type": "object"}, "conversation": "c"}),
                r#"{"do":"agent","agent":"worker","backend":"claude","prompt":{"verbatim":"p"},"fresh":false,"questions":false,"iteration":false,"model":"m","schema":{"type":"object"},"lane":"c"}"#,
            ),
            (
                json!({"kind": "skill", "name": "commit", "args": "now"}),
                r#"{"do":"entry","kind":"skill","name":"commit","args":{"verbatim":"now"}}"#,
            ),
            (
                json!({"kind": "ask", "question": "{q}?", "options": ["Yes", {"label": "No"}]}),
                r#"{"do":"ask","question":{"question":"{q}?","options":[{"label":"Yes"},{"label":"No"}]}}"#,
            ),
            (json!({"kind": "sleep", "until": 5}), r#"{"do":"sleep","until":5}"#),
            (
                json!({"kind": "shell", "command": "ls"}),
                r#"{"do":"request","name":"shell","args":{"command":"ls"}}"#,
            ),
            (
                json!({"kind": "sleep", "until": 1e20}),
                "! `until` of a call of the kind `sleep` must be a moment in whole milliseconds, \
                 not 1e+20",
            ),
            (json!({}), "! the call has no `kind` that says what it is to do"),
            (
                json!({"kind": "dance"}),
                "! there is no call of the kind `dance`; there are agent, skill, command, ask, \
                 sleep, shell, readFile, writeFile, exists, glob, fetch, env",
            ),
            (
                json!({"kind": "agent", "agent": "worker"}),
                "! the call of the kind `agent` cannot be made: missing field `prompt`",
            ),
            (
                json!({"kind": "agent", "prompt": "p", "backend": "nobody"}),
                "! there is no backend `nobody`",
            ),
            (
                json!({"kind": "agent", "prompt": "p", "schema": {"type": "array"}}),
                "! the `schema` of a call of the kind `agent` must be of the type `object`",
            ),
        ];
        for (call, expected) in table {
            let shown = match called(&call) {
                Ok(action) => {
                    serde_json::to_value(action).map(|a: Value| a.to_string()).unwrap_or_default()
                }
                Err(error) => format!("! {}", error.message),
            };
            assert_eq!(shown, expected, "{call}");
        }
    }
}
