//! A use of a tool, as far as the agent tells of it. No IO.

use std::path::Path;

use serde_json::{Value, json};

use crate::words::{shorten, summary, tool_name};
use crate::{ToolRule, ToolRules};

/// The shell, in the names of rules.
const SHELL: &str = "bash";

/// A use of a tool.
#[derive(Clone, Debug, Default)]
pub(super) struct Call {
    kind: String,
    /// The first thing it was called: often the tool's own name, later what it is used on.
    title: String,
    name: Option<String>,
    input: Value,
    path: Option<String>,
    /// Whether it was shown that it began.
    pub(super) has_begun: bool,
    /// The helper that uses it.
    pub(super) by: Option<String>,
}

impl Call {
    /// Takes in what is told of it now.
    pub(super) fn learn(&mut self, told: &Value) {
        let text = |key: &str| told.get(key).and_then(Value::as_str);
        if let Some(kind) = text("kind") {
            kind.clone_into(&mut self.kind);
        }
        if let Some(title) = text("title").filter(|_| self.title.is_empty()) {
            title.clone_into(&mut self.title);
        }
        self.name = text("name").map(str::to_owned).or(self.name.take());
        let input = told.get("rawInput").filter(|input| says_something(input));
        if let Some(input) = input {
            self.input = input.clone();
        }
        let path = told.pointer("/locations/0/path").and_then(Value::as_str);
        self.path = path.map(str::to_owned).or(self.path.take());
        let helper = told.pointer("/_meta/github.com~1copilot/agentId").and_then(Value::as_str);
        self.by = helper.map(str::to_owned).or(self.by.take());
    }

    /// Whether enough is known of it to be shown.
    pub(super) fn is_clear(&self) -> bool {
        says_something(&self.input)
    }

    /// The agent's own list, when this is a change of it.
    pub(super) fn list(&self) -> Option<&Value> {
        let is_list = self.own_name() == "todowrite";
        is_list.then(|| self.input.get("todos").unwrap_or(&Value::Null))
    }

    /// Our name for the tool.
    pub(super) fn tool(&self) -> String {
        let own = self.own_name();
        match self.kind.as_str() {
            "execute" => "shell".to_owned(),
            _ if self.has("subagent_type") || self.has("agent_type") => "task".to_owned(),
            "read" if self.has("pattern") => "grep".to_owned(),
            "read" => "read".to_owned(),
            "edit" if ["write", "edit", "apply_patch"].contains(&own) => own.to_owned(),
            "edit" if self.makes_a_file() => "write".to_owned(),
            "fetch" => "webfetch".to_owned(),
            "think" if self.has("prompt") => "task".to_owned(),
            kind @ ("edit" | "search" | "delete" | "move" | "think" | "switch_mode") => {
                if own.is_empty() { kind.to_owned() } else { tool_name(own) }
            }
            _ if own.is_empty() => "tool".to_owned(),
            _ => tool_name(own),
        }
    }

    /// What it is used on.
    pub(super) fn summary(&self) -> String {
        let known = summary(&self.input);
        match (&self.path, known.is_empty()) {
            (_, false) => known,
            (Some(path), true) => shorten(path),
            (None, true) => shorten(&self.title),
        }
    }

    /// Why it must not be used in this workspace, if it must not. `asked` is what the agent says of
    /// it when it asks. Where it may be one of several tools, each of them has to be allowed.
    pub(super) fn refusal(
        &self,
        rules: &ToolRules,
        asked: &Value,
        workspace: &Path,
    ) -> Option<String> {
        let rules = as_known_here(rules);
        let mut input = match says_something(&self.input) {
            true => self.input.clone(),
            false => asked.get("rawInput").cloned().unwrap_or_default(),
        };
        let names_a_path = ["file_path", "filePath", "path", "command", "url"]
            .iter()
            .any(|key| input.get(key).is_some());
        if let (false, Some(path)) = (names_a_path, &self.path) {
            if !input.is_object() {
                input = json!({});
            }
            input["path"] = json!(path);
        }
        self.possible_tools().iter().find_map(|tool| rules.refusal(tool, &input, workspace))
    }

    /// What it may be, in the names of rules. What has a command may run it, whatever it is called.
    fn possible_tools(&self) -> Vec<String> {
        let mut tools = self.tools_by_kind();
        if self.has("command") && !tools.iter().any(|tool| tool == SHELL) {
            tools.push(SHELL.to_owned());
        }
        tools
    }

    fn tools_by_kind(&self) -> Vec<String> {
        let tools: &[&str] = match (self.kind.as_str(), self.tool().as_str()) {
            ("execute", _) => &[SHELL],
            ("edit", "write") => &["write"],
            ("edit", "edit") if self.own_name() == "edit" => &["edit"],
            ("edit", "apply_patch") => &["patch", "edit", "write"],
            ("edit" | "delete" | "move", _) => &["edit", "write"],
            ("search", "grep") => &["grep"],
            ("search", "glob") => &["glob"],
            ("search", "search") => &["grep", "glob"],
            (_, "task") => &["task"],
            (_, other) => return vec![other.to_owned()],
        };
        tools.iter().map(|tool| (*tool).to_owned()).collect()
    }

    /// The tool's own name; empty when what it is called is a sentence.
    fn own_name(&self) -> &str {
        let is_name = |text: &&str| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        };
        self.name.as_deref().or(Some(&self.title)).filter(is_name).unwrap_or_default()
    }

    fn has(&self, key: &str) -> bool {
        self.input.get(key).is_some()
    }

    fn makes_a_file(&self) -> bool {
        ["content", "file_text"].iter().any(|key| self.has(key))
    }
}

/// The folder a tool is used in says nothing about its use.
fn says_something(input: &Value) -> bool {
    input.as_object().is_some_and(|fields| fields.keys().any(|key| key != "cwd"))
}

/// Rules for tools of MCP servers as well, which agents call `server_tool` or `server-tool`.
fn as_known_here(rules: &ToolRules) -> ToolRules {
    let all = |rules: &[ToolRule]| {
        let others = rules.iter().flat_map(|rule| {
            let name = rule.tool.strip_prefix("mcp__").map(|name| match name.contains("__") {
                true => name.to_owned(),
                false => format!("{}__*", name.trim_end_matches('*')),
            });
            let named = |between: &str| {
                let tool = name.as_ref()?.replacen("__", between, 1);
                Some(ToolRule { tool, uses: rule.uses.clone() })
            };
            ["_", "-"].map(named).into_iter().flatten().collect::<Vec<_>>()
        });
        rules.iter().cloned().chain(others).collect()
    };
    let (only, without) = (rules.only.as_deref().map(all), all(&rules.without));
    ToolRules { only, without, layers: rules.layers.clone() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::Call;
    use crate::{ToolRule, ToolRules};

    #[test]
    fn what_has_a_command_is_a_use_of_the_shell_too() {
        let rules = ToolRules { only: Some(vec![ToolRule::read("read")]), ..ToolRules::default() };
        for (input, is_refused) in
            [(json!({ "path": "x" }), false), (json!({ "command": "x" }), true)]
        {
            let mut call = Call::default();
            call.learn(&json!({ "kind": "read", "rawInput": input }));
            let refusal = call.refusal(&rules, &Value::Null, Path::new("/w"));
            assert_eq!(refusal.is_some(), is_refused, "{input}: {refusal:?}");
        }
    }
}
