//! Who talks in a session: what the agent may use there, and where its events go.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::wire::Event;
use crate::serving::{Presence, Talks};
use crate::{BackendError, OpenRequest, ToolRule, ToolRules};

/// The question tool.
const QUESTION: &str = "question";

/// The tool by which structured output is given.
const STRUCTURED: &str = "StructuredOutput";

/// What can be offered to a model or not, and the tools that go by it.
const PERMISSIONS: [(&str, &[&str]); 13] = [
    ("bash", &["bash"]),
    ("read", &["read"]),
    ("edit", &["edit", "write", "apply_patch"]),
    ("glob", &["glob"]),
    ("grep", &["grep"]),
    ("list", &["list"]),
    ("webfetch", &["webfetch"]),
    ("websearch", &["websearch"]),
    ("codesearch", &["codesearch"]),
    ("task", &["task"]),
    ("skill", &["skill"]),
    ("todowrite", &["todowrite", "todoread"]),
    ("lsp", &["lsp"]),
];

/// What a session's conversation is told.
#[derive(Debug)]
pub(super) enum News {
    Event(Box<Event>),
    /// Events may have been missed.
    Resync,
    /// The server sent something that is not its protocol.
    Garbled(String),
    /// The server is gone.
    Gone(BackendError),
    /// Whether the session has nothing to do, as it was asked during the turn of this prompt.
    Looked {
        prompt: String,
        is_idle: bool,
    },
    /// This prompt was not taken.
    NotSent {
        prompt: String,
        error: BackendError,
    },
    /// The summary is made, or is not.
    Summarised {
        since: String,
        result: Result<(), BackendError>,
    },
}

/// One that talks in a session.
#[derive(Debug)]
pub(super) struct Talker {
    pub(super) request: OpenRequest,
    /// The MCP servers whose tools can be withheld.
    mcp: Vec<String>,
    pub(super) news: mpsc::UnboundedSender<News>,
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
        mcp: Vec<String>,
        presence: Arc<Presence>,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<News>) {
        let (news, receiver) = mpsc::unbounded_channel();
        (Arc::new(Self { request, mcp, news, presence }), receiver)
    }

    /// Returns the same talker with a channel of its own, for another server. A server that ends may
    /// still hold the old talker: its late `News::Gone` would make the conversation leave the new
    /// server and abort the prompt it has just sent there.
    pub(super) fn renewed(&self) -> (Arc<Self>, mpsc::UnboundedReceiver<News>) {
        Self::new(self.request.clone(), self.mcp.clone(), Arc::clone(&self.presence))
    }

    /// Why a tool must not be used, if it must not. A helper may use what both it and the agent
    /// itself may.
    pub(super) fn refusal(
        &self,
        tool: &str,
        input: &Value,
        helper: Option<&str>,
    ) -> Option<String> {
        if self.presence.is_stopped() {
            return Some("the turn was interrupted".to_owned());
        }
        let request = &self.request;
        let ours = (tool == QUESTION && request.questions)
            || (tool == STRUCTURED && request.schema.is_some())
            || tool == "invalid";
        if ours {
            return None;
        }
        let helper = request.helpers.iter().find(|one| Some(one.name.as_str()) == helper);
        let workspace = &request.workspace;
        let judge = |rules: &ToolRules| {
            let by_pattern = is_of_server(tool).then(|| rules.refusal_of_server(tool)).flatten();
            by_pattern.or_else(|| as_known_here(rules).refusal(tool, input, workspace))
        };
        helper.and_then(|helper| judge(&helper.tools)).or_else(|| judge(&request.tools))
    }

    /// What is offered to the model, all of it.
    pub(super) fn offered(&self) -> Value {
        let request = &self.request;
        let mut offered = permissions(&request.tools, &self.mcp);
        offered.insert(QUESTION.to_owned(), json!(request.questions));
        Value::Object(offered)
    }
}

/// What rules come to: which permissions are given, and which tools of MCP servers are withheld.
pub(super) fn permissions(rules: &ToolRules, servers: &[String]) -> Map<String, Value> {
    let written = rules;
    let rules = as_known_here(written);
    let mut given = Map::new();
    for (permission, tools) in PERMISSIONS {
        given.insert(permission.to_owned(), json!(tools.iter().any(|tool| rules.may_use(tool))));
    }
    for server in servers {
        let prefix = format!("{server}_");
        let is_theirs = |rule: &&ToolRule| match rule.tool.strip_suffix('*') {
            Some(start) => prefix.starts_with(start) || start.starts_with(&prefix),
            None => rule.tool.starts_with(&prefix),
        };
        let some = rules.only.as_ref().is_none_or(|only| only.iter().any(|rule| is_theirs(&rule)));
        // Stands for a tool that no decision names.
        let layers = ToolRules { layers: rules.layers.clone(), ..ToolRules::default() };
        let is_named = layers.offered().is_some_and(|names| {
            names.iter().any(|name| name.starts_with(&prefix) || name.contains('*'))
        });
        let any = format!("{prefix}tool");
        let some = some && (is_named || layers.may_use(&any));
        let some = some && written.refusal_of_server(&any).is_none();
        given.insert(format!("{prefix}*"), json!(some));
        let off = rules.without.iter().filter(|rule| rule.uses.is_none()).filter(is_theirs);
        given.extend(off.map(|rule| (rule.tool.clone(), json!(false))));
    }
    given
}

/// Whether a tool is one of an MCP server: those have a `_` in their names, and few others do.
fn is_of_server(tool: &str) -> bool {
    tool.contains('_') && !["apply_patch", "plan_enter", "plan_exit"].contains(&tool)
}

/// Rules in the program's names for what has other names elsewhere. A patch is an edit, and the tools
/// of MCP servers are called `server_tool`.
fn as_known_here(rules: &ToolRules) -> ToolRules {
    let all = |rules: &[ToolRule]| {
        let patches = rules.iter().filter(|rule| rule.tool.eq_ignore_ascii_case("edit"));
        let patches =
            patches.map(|rule| ToolRule { tool: "apply_patch".to_owned(), ..rule.clone() });
        rules.iter().map(renamed).chain(patches).collect()
    };
    let (only, without) = (rules.only.as_deref().map(all), all(&rules.without));
    ToolRules { only, without, layers: rules.layers.clone() }
}

fn renamed(rule: &ToolRule) -> ToolRule {
    let tool = match rule.tool.strip_prefix("mcp__") {
        Some(rest) if rest.contains("__") => rest.replacen("__", "_", 1),
        Some(server) => format!("{}_*", server.trim_end_matches('*')),
        None => rule.tool.clone(),
    };
    ToolRule { tool, uses: rule.uses.clone() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{News, Talker, is_of_server, permissions};
    use crate::serving::Presence;
    use crate::{OpenRequest, ToolRule, ToolRules};

    #[test]
    fn late_news_of_a_server_that_was_left_is_not_heard() {
        let request = OpenRequest::new("worker", "/".into(), String::new());
        let (former, _) = Talker::new(request, vec![], Presence::new("").into());
        let (current, mut heard) = former.renewed();
        let _ = former.news.send(News::Resync);
        assert!(heard.try_recv().is_err());
        let _ = current.news.send(News::Resync);
        assert!(heard.try_recv().is_ok());
    }

    #[test]
    fn patterns_for_servers_withhold_their_tools_and_no_others() {
        let servers = ["git".to_owned(), "gitlab".to_owned(), "mail".to_owned()];
        for (rule, expected) in [
            ("mcp__*", [false, false, false]),
            ("mcp__git*", [false, false, true]),
            ("mcp__git__*", [false, true, true]),
            ("mcp__git", [false, true, true]),
            ("mcp__g*", [false, false, true]),
        ] {
            let rules =
                ToolRules { without: vec![ToolRule::new(rule, None)], ..ToolRules::default() };
            let given = permissions(&rules, &servers);
            for (server, expected) in servers.iter().zip(expected) {
                assert_eq!(given[&format!("{server}_*")], json!(expected), "{rule} {server}");
            }
            for own in ["bash", "read", "edit", "glob", "grep"] {
                assert_eq!(given[own], json!(true), "{rule} {own}");
            }
        }
        assert!(is_of_server("git_push"));
        assert!(!is_of_server("apply_patch") && !is_of_server("read"));
    }
}
