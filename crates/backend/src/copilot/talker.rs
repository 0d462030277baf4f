//! Who talks in a session: what the agent may use there, and where its events go.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::wire::Event;
use crate::serving::{Presence, Talks};
use crate::{BackendError, Inherit, OpenRequest, ToolRule, ToolRules};

/// The program's own tool for a question. Helpers do not get it.
pub(super) const QUESTION: &str = "ask_user";

/// Our tool for several questions at once, for several answers to one, and for helpers.
pub(super) const QUESTIONS: &str = "ask_questions";

/// The tool that starts language servers.
pub(super) const LANGUAGE_SERVERS: &str = "lsp";

/// The tools that run commands.
const SHELL: &str = "bash";

/// What a session's conversation is told.
#[derive(Debug)]
pub(super) enum News {
    Event(Box<Event>),
    /// The agent asks the user; the answer goes back under this id.
    Asked {
        id: Value,
        params: Value,
    },
    /// The prompt was not taken.
    NotSent(BackendError),
    /// The agent's own list.
    Listed(Value),
    /// The summary is made, or is not.
    Summarised {
        number: u64,
        made: Result<(), BackendError>,
    },
    /// The program is gone, or of no use any more.
    Gone(BackendError),
}

/// One that talks in a session.
#[derive(Debug)]
pub(super) struct Talker {
    pub(super) request: OpenRequest,
    news: mpsc::UnboundedSender<News>,
    pub(super) presence: Arc<Presence>,
}

impl Talks for Talker {
    fn presence(&self) -> &Presence {
        &self.presence
    }
}

impl Talker {
    pub(super) fn new(
        request: OpenRequest,
        presence: Arc<Presence>,
        news: mpsc::UnboundedSender<News>,
    ) -> Self {
        Self { request, news, presence }
    }

    /// One that has left need not know.
    pub(super) fn tell(&self, news: News) {
        let _ = self.news.send(news);
    }

    /// What the program is told before it does something.
    pub(super) fn hook(&self, params: &Value) -> Value {
        let input = params.get("input").cloned().unwrap_or_default();
        if params.get("hookType").and_then(Value::as_str) != Some("preToolUse") {
            return json!({ "output": {} });
        }
        let text = |key: &str| input.get(key).and_then(Value::as_str);
        let tool = text("toolName").unwrap_or_default();
        let arguments = arguments(input.get("toolArgs"));
        json!({ "output": match self.refusal(tool, &arguments, text("agentType")) {
            Some(why) => json!({ "permissionDecision": "deny", "permissionDecisionReason": why }),
            None if tool == SHELL => self.marked(&arguments),
            None => json!({}),
        } })
    }

    /// Everything a command starts is to be found again, though the program has one environment for
    /// all.
    fn marked(&self, arguments: &Value) -> Value {
        let Some(command) = arguments.get("command").and_then(Value::as_str) else {
            return json!({});
        };
        let marker = self.presence.starts_a_shell().replace('\'', "");
        let mut marked = arguments.clone();
        marked["command"] = json!(format!("export ATOMIC_STEP='{marker}'\n{command}"));
        json!({ "modifiedArgs": marked })
    }

    /// Why a tool must not be used, if it must not. A helper may use what both it and the agent
    /// itself may.
    fn refusal(&self, tool: &str, input: &Value, helper: Option<&str>) -> Option<String> {
        if self.presence.is_stopped() {
            return Some("the turn was interrupted".to_owned());
        }
        let request = &self.request;
        if ([QUESTION, QUESTIONS].contains(&tool) && request.questions) || tool == "report_intent" {
            return None;
        }
        if tool == LANGUAGE_SERVERS && request.inherit == Inherit::None {
            return Some("the project is not trusted to start its language servers".to_owned());
        }
        let helper = request.helpers.iter().find(|one| Some(one.name.as_str()) == helper);
        let workspace = &request.workspace;
        let judge = |rules: &ToolRules| as_known_here(rules).refusal(tool, input, workspace);
        helper.and_then(|helper| judge(&helper.tools)).or_else(|| judge(&request.tools))
    }
}

/// The program hands over what the model has written, which may be a text.
fn arguments(told: Option<&Value>) -> Value {
    match told {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        Some(other) => other.clone(),
        None => Value::Null,
    }
}

/// Rules in the program's names for what has other names elsewhere: the tools of MCP servers are
/// called `server-tool`, a patch is an edit, and whoever may run a command may look after it.
pub(super) fn as_known_here(rules: &ToolRules) -> ToolRules {
    let all = |rules: &[ToolRule]| {
        let mut known: Vec<ToolRule> = rules.iter().map(renamed).collect();
        for rule in rules {
            if rule.tool.eq_ignore_ascii_case("edit") {
                known.push(ToolRule { tool: "apply_patch".to_owned(), ..rule.clone() });
            }
            if rule.tool.eq_ignore_ascii_case(SHELL) && rule.uses.is_none() {
                let others = ["read_bash", "write_bash", "stop_bash", "list_bash"];
                known.extend(others.map(|tool| ToolRule::new(tool, None)));
            }
        }
        known
    };
    ToolRules { only: rules.only.as_deref().map(all), without: all(&rules.without) }
}

fn renamed(rule: &ToolRule) -> ToolRule {
    let tool = match rule.tool.strip_prefix("mcp__") {
        Some(rest) => rest.replacen("__", "-", 1),
        None => rule.tool.clone(),
    };
    ToolRule { tool, uses: rule.uses.clone() }
}
