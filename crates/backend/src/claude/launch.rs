//! How the program is started: its arguments, its environment, and the first thing it is told.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_event::ConversationId;
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;

use super::login::SettingsFile;
use crate::guard::Job;
use crate::login::Pay;
use crate::version::Version;
use crate::{Inherit, OpenRequest, Persona, ToolRules};

/// The oldest version that was tried.
pub(super) const OLDEST: Version = Version(2, 1, 197);

/// From here on, a prompt can be marked as a machine's, and a continued conversation can be told
/// to be somebody else.
const NEWER: Version = Version(2, 1, 325);

/// The question tool.
pub(super) const QUESTION: &str = "AskUserQuestion";

/// The tool by which structured output is given.
pub(super) const STRUCTURED: &str = "StructuredOutput";

/// The tool that runs commands.
const SHELL: &str = "Bash";

/// What the names of all tools of MCP servers begin with.
const SERVERS: &str = "mcp__";

/// What reaches beyond the turn: other conversations of the user, and times after its end.
const BEYOND_THE_TURN: [&str; 6] =
    ["ListAgents", "SendMessage", "ScheduleWakeup", "CronCreate", "CronDelete", "CronList"];

/// One start of the program.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    pub(super) program: PathBuf,
    /// Known at the latest when the first prompt is sent.
    pub(super) version: Arc<OnceCell<Version>>,
    /// Whether this machine may be harmed: only then does the program work unasked for root.
    pub(super) allow_root: bool,
    /// Added to our own environment.
    pub(super) env: Vec<(String, String)>,
    pub(super) request: OpenRequest,
    /// The credential that pays, where one was chosen.
    pub(super) pay: Option<Pay>,
    /// Settings about the provider, made anew for every start.
    pub(super) settings: Option<Arc<SettingsFile>>,
}

impl Launch {
    /// The process to start.
    pub(super) fn job(&self, id: &ConversationId, resume: bool) -> Job {
        let program = self.program.display().to_string();
        let argv = std::iter::once(program).chain(self.arguments(id, resume)).collect();
        let mut env = vec![
            // Helpers work inside the turn, and so a turn has one end.
            ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS".to_owned(), "1".to_owned()),
            ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS".to_owned(), "1".to_owned()),
            ("CLAUDE_CODE_ENTRYPOINT".to_owned(), "atomic".to_owned()),
            ("DISABLE_AUTOUPDATER".to_owned(), "1".to_owned()),
            // Newer programs otherwise let an agent keep a list of its own only at the terminal.
            ("CLAUDE_CODE_ENABLE_TODO_TOOLS".to_owned(), "1".to_owned()),
        ];
        env.extend(self.env.iter().cloned());
        if self.allow_root {
            env.push(("IS_SANDBOX".to_owned(), "1".to_owned()));
        }
        let cwd = self.request.workspace.clone();
        Job { argv, cwd, env, marker: self.request.marker.clone(), stdin: true }
    }

    fn arguments(&self, id: &ConversationId, resume: bool) -> Vec<String> {
        let mut arguments: Vec<String> = [
            "--output-format=stream-json",
            "--input-format=stream-json",
            "--verbose",
            "--include-partial-messages",
            "--permission-prompt-tool=stdio",
            "--permission-mode=bypassPermissions",
        ]
        .map(str::to_owned)
        .into();
        arguments.push(format!("--{}={id}", if resume { "resume" } else { "session-id" }));
        if resume && self.is_newer() {
            arguments.push("--system-prompt-snapshot=off".to_owned());
        }
        arguments.extend(self.request.model.iter().map(|model| format!("--model={model}")));
        let settings = self.settings.iter();
        arguments.extend(settings.map(|file| format!("--settings={}", file.path().display())));
        arguments.extend(self.inherited());
        arguments.extend(self.offered());
        let off = self.withheld();
        if !off.is_empty() {
            arguments.push(format!("--disallowedTools={}", off.join(",")));
        }
        arguments
    }

    fn is_newer(&self) -> bool {
        self.version.get().is_some_and(|version| *version >= NEWER)
    }

    fn inherited(&self) -> Vec<String> {
        let servers = self.request.workspace.join(".mcp.json");
        let may_use_servers = self.may_use_servers();
        let mut arguments = vec![];
        match self.request.inherit {
            Inherit::All if may_use_servers => return arguments,
            Inherit::All => {}
            Inherit::Project => {
                arguments.push("--setting-sources=project".to_owned());
                if may_use_servers && is_file(&servers) {
                    arguments.push(format!("--mcp-config={}", servers.display()));
                }
            }
            Inherit::None => arguments.push("--setting-sources=".to_owned()),
        }
        arguments.push("--strict-mcp-config".to_owned());
        arguments
    }

    /// Whether some tool of some MCP server may be used. If not, none is started, and the model is
    /// not told of tools that are then refused.
    fn may_use_servers(&self) -> bool {
        let names = self.request.tools.offered();
        names.is_none_or(|names| names.into_iter().any(|name| !is_own(name)))
    }

    /// The tools of its own that the program offers to the model.
    fn offered(&self) -> Option<String> {
        let request = &self.request;
        let mut names = request.tools.offered()?;
        if names.contains(&"*") {
            return None;
        }
        names.retain(|name| is_own(name));
        let question = request.questions.then_some(QUESTION);
        let structured = request.schema.is_some().then_some(STRUCTURED);
        names.extend(question.into_iter().chain(structured));
        Some(format!("--tools={}", names.join(",")))
    }

    fn withheld(&self) -> Vec<&str> {
        let mut names = withheld(&self.request.tools);
        if !self.request.questions {
            names.push(QUESTION);
        }
        if self.request.inherit != Inherit::All {
            names.extend(BEYOND_THE_TURN);
        }
        names
    }

    /// The first request, by which the program is also asked whether it is ready.
    pub(super) fn initialize(&self) -> Value {
        let request = &self.request;
        let mut wish = Map::new();
        wish.insert("subtype".to_owned(), json!("initialize"));
        if !request.system_prompt.is_empty() {
            wish.insert("systemPrompt".to_owned(), json!([request.system_prompt]));
        }
        if let Some(schema) = &request.schema {
            wish.insert("jsonSchema".to_owned(), schema.clone());
        }
        if !request.helpers.is_empty() {
            let helpers = request.helpers.iter().map(|one| (one.name.clone(), helper(one)));
            wish.insert("agents".to_owned(), Value::Object(helpers.collect()));
        }
        let helpers = request.helpers.iter().map(|helper| &helper.tools);
        if !helpers.chain([&request.tools]).all(ToolRules::allow_everything) {
            // Asked before every use of every tool, helpers' too.
            let hook = json!({ "matcher": null, "hookCallbackIds": ["tools"], "timeout": 60 });
            wish.insert("hooks".to_owned(), json!({ "PreToolUse": [hook] }));
        }
        Value::Object(wish)
    }

    /// Why a tool must not be used, if it must not. A helper may use what both it and the agent
    /// itself may.
    pub(super) fn refusal(
        &self,
        tool: &str,
        input: &Value,
        helper: Option<&str>,
    ) -> Option<String> {
        let request = &self.request;
        let ours = (tool == QUESTION && request.questions)
            || (tool == STRUCTURED && request.schema.is_some());
        if ours {
            return None;
        }
        let helper = request.helpers.iter().find(|one| Some(one.name.as_str()) == helper);
        let workspace = &request.workspace;
        let rules = helper.map(|helper| &helper.tools).into_iter().chain([&request.tools]);
        let mut needed = needed(tool).into_iter();
        needed
            .find_map(|tool| rules.clone().find_map(|rules| rules.refusal(tool, input, workspace)))
    }

    /// Whether a prompt can be marked as one that is to be taken literally.
    pub(super) fn knows_literal_prompts(&self) -> bool {
        self.is_newer()
    }
}

/// The tools that have to be allowed for a use of a tool. Helpers are started by a tool with two
/// names, and what runs a command goes by the rules for commands.
fn needed(tool: &str) -> Vec<&str> {
    match tool {
        "Agent" => vec!["Task"],
        "Monitor" | "PowerShell" => vec![tool, SHELL],
        _ => vec![tool],
    }
}

/// Whether a name can be one of a tool of the program itself: those of MCP servers have a `_` in
/// them, and patterns a `*`.
fn is_own(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric())
}

/// The tools that the program is told to withhold.
fn withheld(tools: &ToolRules) -> Vec<&str> {
    let mut names = tools.withheld();
    names.retain(|name| is_own(name) || name.starts_with(SERVERS));
    names
}

fn helper(persona: &Persona) -> Value {
    let Persona { description, prompt, tools, model, .. } = persona;
    let mut about = json!({ "description": description, "prompt": prompt });
    if let Some(mut names) = tools.offered().filter(|names| !names.contains(&"*")) {
        names.retain(|name| is_own(name) || name.starts_with(SERVERS));
        about["tools"] = json!(names);
    }
    let off = withheld(tools);
    if !off.is_empty() {
        about["disallowedTools"] = json!(off);
    }
    if let Some(model) = model {
        about["model"] = json!(model);
    }
    about
}

fn is_file(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|about| about.is_file())
}
