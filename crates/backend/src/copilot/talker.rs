//! Who talks in a session: what the agent may use there, and where its events go.

use std::path::Path;
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
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<News>) {
        let (news, receiver) = mpsc::unbounded_channel();
        (Arc::new(Self { request, news, presence }), receiver)
    }

    /// Returns the same talker with a channel of its own, for another program. A program that ends
    /// may still hold the old talker: its late `News::Gone` would make the conversation leave the new
    /// program.
    pub(super) fn renewed(&self) -> (Arc<Self>, mpsc::UnboundedReceiver<News>) {
        Self::new(self.request.clone(), Arc::clone(&self.presence))
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
        marked["command"] = json!(format!("{}\n{command}", marking(&marker)));
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
        let judge = |rules: &ToolRules| judged(rules, tool, input, workspace);
        helper.and_then(|helper| judge(&helper.tools)).or_else(|| judge(&request.tools))
    }
}

/// A line by which a shell is marked, and what it starts. What a process was started with does not
/// change, so it begins anew, in the way the program starts it; any other is at least told.
fn marking(marker: &str) -> String {
    let mark = format!("ATOMIC_STEP='{marker}'");
    format!(
        "[ \"$ATOMIC_STEP\" = '{marker}' ] || [ -z \"$BASH_EXECUTION_STRING\" ] || {mark} exec \
         \"$BASH\" --norc --noprofile -c \"$BASH_EXECUTION_STRING\"; export {mark}"
    )
}

/// The program hands over what the model has written, which may be a text.
fn arguments(told: Option<&Value>) -> Value {
    match told {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        Some(other) => other.clone(),
        None => Value::Null,
    }
}

/// Why rules do not allow a use of a tool, if they do not. Only the names of tools of MCP servers have
/// a `-` in them.
fn judged(rules: &ToolRules, tool: &str, input: &Value, workspace: &Path) -> Option<String> {
    let by_pattern = tool.contains('-').then(|| rules.refusal_of_server(tool)).flatten();
    by_pattern.or_else(|| as_known_here(rules).refusal(tool, input, workspace))
}

/// Rules in the program's names for what has other names elsewhere: the tools of MCP servers are
/// called `server-tool`, a patch is an edit, and whoever may run a command may look after it.
pub(super) fn as_known_here(rules: &ToolRules) -> ToolRules {
    let all = |rules: &[ToolRule]| {
        let mut known: Vec<ToolRule> = rules.iter().flat_map(renamed).collect();
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
    let (only, without) = (rules.only.as_deref().map(all), all(&rules.without));
    ToolRules { only, without, layers: rules.layers.clone() }
}

/// A tool of an MCP server is called `server-tool`, and whatever is no letter, digit, `_` or `-` in
/// either is a `-`. Where the server's name ends cannot always be told: then it may be any of them.
fn renamed(rule: &ToolRule) -> Vec<ToolRule> {
    let Some(rest) = rule.tool.strip_prefix("mcp__") else { return vec![rule.clone()] };
    let known = |c: char| if c.is_ascii_alphanumeric() || "_-*".contains(c) { c } else { '-' };
    let rest: String = rest.chars().map(known).collect();
    let ends = rest.match_indices("__").map(|(place, _)| rest.split_at(place));
    let mut tools: Vec<String> =
        ends.map(|(server, tool)| format!("{server}-{}", &tool[2..])).collect();
    if tools.is_empty() {
        tools.push(format!("{}-*", rest.trim_end_matches('*')));
    }
    let named = |tool: String| ToolRule { tool, uses: rule.uses.clone() };
    tools.into_iter().map(named).collect()
}

/// How the program is told of a tool, or of all tools of a server.
pub(super) fn told(rule: &str) -> String {
    rule.strip_suffix("-*").unwrap_or(rule).to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use serde_json::json;

    use super::{as_known_here, judged, marking};
    use crate::{ToolRule, ToolRules};

    fn rules(names: &[&str]) -> Vec<ToolRule> {
        names.iter().map(|name| ToolRule::new(name, None)).collect()
    }

    #[test]
    fn tools_of_servers_go_by_the_names_the_program_gives_them() {
        for (rule, tool) in [
            ("mcp__host__touch", "host-touch"),
            ("mcp__my.server__shout.it", "my-server-shout-it"),
            ("mcp__with space__x", "with-space-x"),
            ("mcp__a__b__c", "a__b-c"),
            ("mcp__a__b__c", "a-b__c"),
            ("mcp__host", "host-touch"),
            ("mcp__host__*", "host-touch"),
        ] {
            let allowed = ToolRules { only: Some(rules(&[rule])), ..ToolRules::default() };
            let taken = ToolRules { without: rules(&[rule]), ..ToolRules::default() };
            let refusal = |rules: &ToolRules, tool: &str| {
                as_known_here(rules).refusal(tool, &json!({}), Path::new("/"))
            };
            assert_eq!(refusal(&allowed, tool), None, "{rule} {tool}");
            assert!(refusal(&taken, tool).is_some(), "{rule} {tool}");
            assert!(refusal(&allowed, "other-touch").is_some(), "{rule}");
            assert_eq!(refusal(&taken, "other-touch"), None, "{rule}");
        }
    }

    #[test]
    fn patterns_for_servers_withhold_their_tools_and_no_others() {
        for (rule, tool, expected) in [
            ("mcp__*", "git-push", false),
            ("mcp__git*", "git-push", false),
            ("mcp__git*", "gitlab-push", false),
            ("mcp__git*", "mail-send", true),
            ("mcp__my.s*", "my-server-send", false),
            ("mcp__*__push", "git-push", false),
            ("mcp__*__push", "git-pull", true),
            ("mcp__*", "view", true),
            ("mcp__g*", "grep", true),
        ] {
            let taken = ToolRules { without: rules(&[rule]), ..ToolRules::default() };
            let refusal = judged(&taken, tool, &json!({}), Path::new("/"));
            assert_eq!(refusal.is_none(), expected, "{rule} {tool}");
        }
    }

    /// The shell itself is marked, and does what it would have done.
    #[test]
    fn a_marked_shell_is_found_by_its_mark() {
        let seen = "tr '\\0' '\\n' < /proc/$$/environ | grep ATOMIC_STEP; echo \"$ATOMIC_STEP $1\"";
        for (command, said, code) in [
            (seen, "ATOMIC_STEP=run/step/1\nrun/step/1 \n", 0),
            ("cat <<'E'\n$HOME 'x'\nE", "$HOME 'x'\n", 0),
            ("# nothing\nexit 3", "", 3),
            ("false || echo \"a  b\" 'c\"'", "a  b c\"\n", 0),
        ] {
            let whole = format!("{}\n{command}", marking("run/step/1"));
            let shell = ["--norc", "--noprofile", "-c", &whole];
            let ran =
                Command::new("bash").args(shell).env("ATOMIC_STEP", "other").output().unwrap();
            let output = String::from_utf8(ran.stdout).unwrap();
            assert_eq!((output.as_str(), ran.status.code()), (said, Some(code)), "{command}");
        }
    }
}
