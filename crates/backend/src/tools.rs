//! What an agent may use.

mod addresses;
mod commands;
mod decisions;
mod patches;
mod paths;
mod wildcard;

use std::path::Path;

use serde_json::Value;

use decisions::OUTSIDE;
pub use decisions::ToolDecision;

/// What an agent may use, in the names of the backend's own program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolRules {
    /// Only these, when there is such a list.
    pub only: Option<Vec<ToolRule>>,
    /// None of these.
    pub without: Vec<ToolRule>,
    /// Ordered decisions. In each layer the last one that fits a use holds, and a use that none
    /// fits is allowed. Every layer has to allow it.
    pub layers: Vec<Vec<ToolDecision>>,
}

/// A tool, or some of its uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRule {
    /// The tool's name; `*` at its end stands for anything.
    pub tool: String,
    /// Which uses of it, such as `git:*` for a shell or `src/**` for a file; without it, all.
    pub uses: Option<String>,
}

impl ToolRule {
    /// Reads `Bash(git:*)` or `Bash`.
    pub fn read(text: &str) -> Self {
        match text.strip_suffix(')').and_then(|open| open.split_once('(')) {
            Some((tool, uses)) => Self::new(tool, Some(uses)),
            None => Self::new(text, None),
        }
    }

    /// A tool, or some of its uses.
    pub fn new(tool: &str, uses: Option<&str>) -> Self {
        let everything = |uses: &&str| matches!(*uses, "" | "*" | ":*");
        let uses = uses.map(str::trim).filter(|uses| !everything(uses)).map(str::to_owned);
        Self { tool: tool.trim().to_owned(), uses }
    }

    fn is_about(&self, tool: &str) -> bool {
        let begins = |start: &str| {
            tool.get(..start.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(start))
        };
        match self.tool.strip_suffix('*') {
            Some(start) => begins(start),
            // All tools of a server.
            None if is_server(&self.tool) => begins(&format!("{}__", self.tool)),
            None => self.tool.eq_ignore_ascii_case(tool),
        }
    }

    /// Whether this use of the tool is surely one the rule is about.
    fn covers(&self, this: &Use<'_>) -> bool {
        let Some(uses) = &self.uses else { return true };
        let mut fits = this.subjects().map(|subject| match subject {
            Subject::Command(command) => commands::is_allowed(uses, command),
            Subject::Address(url) => domain(uses)
                .is_some_and(|domain| addresses::is_inside(domain, url).unwrap_or(false)),
            Subject::Path(path) => paths::is_allowed(uses, path, this.workspace),
            Subject::Name(name) => names(uses).any(|known| known == name),
            Subject::Unclear => false,
        });
        // An input that names several things has to fit with each.
        fits.next().unwrap_or(false) && fits.all(|fits| fits)
    }

    /// Whether this use of the tool may be one the rule is about.
    fn may_cover(&self, this: &Use<'_>) -> bool {
        let Some(uses) = &self.uses else { return true };
        let mut fits = this.subjects().map(|subject| match subject {
            Subject::Command(command) => commands::may_be_prohibited(uses, command),
            Subject::Address(url) => {
                domain(uses).is_none_or(|domain| addresses::is_inside(domain, url).unwrap_or(true))
            }
            Subject::Path(path) => paths::may_be_prohibited(uses, path, this.workspace),
            Subject::Name(name) => names(uses).any(|known| known == name),
            Subject::Unclear => true,
        });
        fits.next().unwrap_or(true) || fits.any(|fits| fits)
    }
}

/// The beginning of the names of tools of MCP servers.
const SERVERS: &str = "mcp__";

/// The name of a server's tool, or a pattern for it, in one spelling for all programs: they differ in
/// what they write between the server and the tool, and for letters that they do not allow.
fn plain(name: &str) -> String {
    let mut plain = String::new();
    for c in name.chars() {
        match c {
            '*' => plain.push('*'),
            c if c.is_ascii_alphanumeric() => plain.push(c.to_ascii_lowercase()),
            _ if plain.ends_with('_') => {}
            _ => plain.push('_'),
        }
    }
    plain
}

/// Whether a rule names an MCP server and none of its tools, as `mcp__github` does.
fn is_server(tool: &str) -> bool {
    tool.strip_prefix("mcp__").is_some_and(|name| !name.is_empty() && !name.contains("__"))
}

/// The names in a rule such as `Agent(scout, worker)`.
fn names(uses: &str) -> impl Iterator<Item = &str> {
    uses.split(',').map(str::trim)
}

/// A use of a tool.
struct Use<'a> {
    tool: &'a str,
    input: &'a Value,
    workspace: &'a Path,
}

/// What a tool is used on.
enum Subject<'a> {
    Command(&'a str),
    Address(&'a str),
    Path(&'a str),
    Name(&'a str),
    /// Something that cannot be judged.
    Unclear,
}

/// What the programs call a path in the input of a tool.
const PATHS: [&str; 4] = ["file_path", "filePath", "notebook_path", "path"];

/// The tool whose input has the name of a skill as its `name`, which elsewhere means anything.
const SKILL: &str = "skill";

impl<'a> Use<'a> {
    fn subjects(&self) -> impl Iterator<Item = Subject<'a>> {
        let input = self.input;
        let of = |key: &str, kind: fn(&'a str) -> Subject<'a>| match input.get(key) {
            None | Some(Value::Null) => None,
            Some(value) => Some(value.as_str().map_or(Subject::Unclear, kind)),
        };
        let paths = PATHS.map(|key| of(key, Subject::Path));
        let names = ["skill", "subagent_type", "agent_type"].map(|key| of(key, Subject::Name));
        let is_skill = self.tool.eq_ignore_ascii_case(SKILL);
        let others = [
            of("command", Subject::Command),
            of("url", Subject::Address),
            is_skill.then(|| of("name", Subject::Name)).flatten(),
        ];
        let patch = input.get("patchText").into_iter().flat_map(patches::subjects);
        let several = input.get("paths").into_iter().flat_map(several_paths);
        others.into_iter().chain(paths).chain(names).flatten().chain(patch).chain(several)
    }
}

/// One path, or a list of them.
fn several_paths(value: &Value) -> Vec<Subject<'_>> {
    match value {
        Value::Null => vec![],
        Value::String(path) => vec![Subject::Path(path)],
        Value::Array(list) if !list.is_empty() => list
            .iter()
            .map(|value| value.as_str().map_or(Subject::Unclear, Subject::Path))
            .collect(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            vec![Subject::Unclear]
        }
    }
}

fn domain(uses: &str) -> Option<&str> {
    uses.strip_prefix("domain:")
}

impl ToolRules {
    /// Whether nothing is ruled out.
    pub fn allow_everything(&self) -> bool {
        self.only.is_none() && self.without.is_empty() && self.layers.iter().all(Vec::is_empty)
    }

    /// Why a use of a tool in this workspace is not allowed, when it is not. What cannot be judged
    /// is not allowed.
    pub fn refusal(&self, tool: &str, input: &Value, workspace: &Path) -> Option<String> {
        let wanted = Use { tool, input, workspace };
        let by_layers = self.layers.iter().find_map(|layer| decisions::refusal(layer, &wanted));
        by_layers.or_else(|| self.refusal_by_rules(&wanted))
    }

    /// Why a tool of an MCP server must not be used, where a pattern such as `mcp__git*` withholds
    /// it. The name is the program's, without `mcp__`; how it separates the server and the tool does
    /// not matter.
    pub(crate) fn refusal_of_server(&self, tool: &str) -> Option<String> {
        let plain = plain(tool);
        let is_off = |rule: &ToolRule| {
            let pattern = rule.tool.strip_prefix(SERVERS).filter(|rest| rest.contains('*'));
            pattern.is_some_and(|pattern| wildcard::fits(&self::plain(pattern), &plain))
        };
        let off = self.without.iter().any(is_off);
        off.then(|| format!("{tool} is not among the tools of this agent"))
    }

    fn refusal_by_rules(&self, wanted: &Use<'_>) -> Option<String> {
        let tool = wanted.tool;
        if let Some(name) = tool.strip_prefix(SERVERS)
            && let Some(refusal) = self.refusal_of_server(name)
        {
            return Some(refusal);
        }
        let off = |rule: &&ToolRule| rule.is_about(tool) && rule.may_cover(wanted);
        if let Some(rule) = self.without.iter().find(off) {
            return Some(match &rule.uses {
                None => format!("{tool} is not among the tools of this agent"),
                Some(uses) => format!("this agent may not use {tool} as {uses}"),
            });
        }
        let only = self.only.as_ref()?;
        let about: Vec<_> = only.iter().filter(|rule| rule.is_about(tool)).collect();
        if about.iter().any(|rule| rule.covers(wanted)) {
            return None;
        }
        let uses: Vec<&str> = about.iter().filter_map(|rule| rule.uses.as_deref()).collect();
        Some(match uses.as_slice() {
            [] => format!("{tool} is not among the tools of this agent"),
            uses => format!("this agent may use {tool} only as {}", uses.join(", ")),
        })
    }

    /// Whether some use of a tool is allowed.
    pub fn may_use(&self, tool: &str) -> bool {
        let off = self.without.iter().any(|rule| rule.uses.is_none() && rule.is_about(tool));
        let is_in = |only: &Vec<ToolRule>| only.iter().any(|rule| rule.is_about(tool));
        let by_layers = self.layers.iter().all(|layer| decisions::may_use(layer, tool));
        !off && self.only.as_ref().is_none_or(is_in) && by_layers
    }

    /// The names of the tools, without those of which no use is allowed; nothing when tools that
    /// are not named are allowed, too.
    pub fn offered(&self) -> Option<Vec<&str>> {
        let closed = self.layers.iter().find(|layer| decisions::is_closed(layer));
        let named: Vec<&str> = match (&self.only, closed) {
            (None, None) => return None,
            (Some(only), _) => only.iter().map(|rule| rule.tool.as_str()).collect(),
            (None, Some(layer)) => {
                let allowed = layer.iter().filter(|decision| decision.allowed);
                allowed.map(|decision| decision.tool.as_str()).collect()
            }
        };
        let mut names: Vec<&str> = vec![];
        for name in named {
            if self.may_use(name) && !names.contains(&name) {
                names.push(name);
            }
        }
        Some(names)
    }

    /// The names of tools of which no use is allowed.
    pub fn withheld(&self) -> Vec<&str> {
        let rules = self.without.iter().filter(|rule| rule.uses.is_none());
        let decisions = self.layers.iter().flatten();
        let denied = decisions.filter(|it| !it.allowed && it.uses.is_none() && it.tool != "*");
        let denied = denied.map(|it| it.tool.as_str()).filter(|tool| *tool != OUTSIDE);
        let mut names: Vec<&str> = vec![];
        for name in rules.map(|rule| rule.tool.as_str()).chain(denied) {
            if !self.may_use(name) && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The uses of a tool that are ruled in or out by patterns, in words.
    pub fn limits(&self, tool: &str) -> Vec<String> {
        let about = |rule: &&ToolRule| rule.is_about(tool);
        let whole = |rule: &ToolRule| rule.uses.is_none();
        let only: Vec<&ToolRule> = self.only.iter().flatten().filter(about).collect();
        let without = self.without.iter().filter(about);
        let mut limits: Vec<String> = match only.iter().any(|rule| whole(rule)) {
            true => vec![],
            false => only
                .iter()
                .filter_map(|rule| rule.uses.as_ref())
                .map(|uses| format!("only {uses}"))
                .collect(),
        };
        limits.extend(without.filter_map(|rule| rule.uses.as_ref()).map(|it| format!("not {it}")));
        for layer in &self.layers {
            let about = layer.iter().filter(|it| it.is_about(tool));
            // A decision about all uses makes the ones before it meaningless.
            let mut rest: Vec<&ToolDecision> = vec![];
            for decision in about {
                if decision.uses.is_none() {
                    rest.clear();
                }
                rest.push(decision);
            }
            let is_open = rest.first().is_none_or(|it| it.uses.is_some() || it.allowed);
            limits.extend(rest.iter().filter_map(|it| {
                let uses = it.uses.as_ref()?;
                match (it.allowed, is_open) {
                    (false, _) => Some(format!("not {uses}")),
                    (true, false) => Some(format!("only {uses}")),
                    (true, true) if rest.iter().any(|it| !it.allowed) => {
                        Some(format!("except {uses}"))
                    }
                    (true, true) => None,
                }
            }));
        }
        limits
    }
}

#[cfg(test)]
mod tests;
