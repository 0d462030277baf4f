//! The tools agents may be given, and what each backend calls them.

mod vscode;

use atomic_graph::check::nearest;

use crate::entity::Provider;

/// A tool. A backend that has no such tool has no name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// What we call it: in lower case, as it stands in [`Tools`](crate::Tools).
    pub name: &'static str,
    /// What Claude Code calls it.
    pub claude: Option<&'static str>,
    /// What OpenCode calls it.
    pub opencode: Option<&'static str>,
    /// What Copilot calls it.
    pub copilot: Option<&'static str>,
    /// What people write for it as well, in lower case.
    pub others: &'static [&'static str],
}

/// Every tool that is part of one of the programs. Tools of MCP servers are not among them: their
/// names are known only where the servers run.
pub const TOOLS: &[Tool] = &[
    // ours, claude, opencode, copilot; nothing stands for no such tool
    row("bash", "Bash", "bash", "bash", &["shell", "execute", "powershell"]),
    row("bashoutput", "BashOutput", "", "read_bash", &[]),
    row("bashinput", "", "", "write_bash", &[]),
    row("killshell", "KillShell", "", "stop_bash", &["killbash"]),
    row("listshells", "", "", "list_bash", &[]),
    row("read", "Read", "read", "view", &[]),
    row("write", "Write", "write", "create", &[]),
    row("edit", "Edit", "edit", "edit", &["str_replace", "str_replace_editor"]),
    row("multiedit", "MultiEdit", "", "", &[]),
    row("patch", "", "apply_patch", "apply_patch", &[]),
    row("notebookread", "NotebookRead", "", "", &[]),
    row("notebookedit", "NotebookEdit", "", "", &[]),
    row("glob", "Glob", "glob", "glob", &[]),
    row("grep", "Grep", "grep", "grep", &["search", "rg"]),
    row("ls", "LS", "list", "", &[]),
    row("lsp", "LSP", "lsp", "", &[]),
    row("webfetch", "WebFetch", "webfetch", "web_fetch", &["fetch", "web"]),
    row("websearch", "WebSearch", "websearch", "web_search", &[]),
    row("codesearch", "", "codesearch", "", &[]),
    row("todowrite", "TodoWrite", "todowrite", "", &["todo"]),
    row("todoread", "TodoRead", "todoread", "", &[]),
    // Claude Code also calls it `Agent`, in the turns themselves.
    row("task", "Task", "task", "task", &["agent", "subagent", "custom-agent"]),
    row("taskcreate", "TaskCreate", "", "", &[]),
    row("taskget", "TaskGet", "", "", &[]),
    row("tasklist", "TaskList", "", "", &[]),
    row("taskupdate", "TaskUpdate", "", "", &[]),
    row("taskoutput", "TaskOutput", "", "read_agent", &["agentoutputtool"]),
    row("taskstop", "TaskStop", "", "", &[]),
    row("listagents", "ListAgents", "", "list_agents", &[]),
    row("sendmessage", "SendMessage", "", "", &[]),
    row("skill", "Skill", "skill", "skill", &[]),
    row("slashcommand", "SlashCommand", "", "", &[]),
    row("question", "AskUserQuestion", "question", "ask_user", &[]),
    row("enterplanmode", "EnterPlanMode", "plan_enter", "", &[]),
    row("exitplanmode", "ExitPlanMode", "plan_exit", "exit_plan_mode", &[]),
    row("enterworktree", "EnterWorktree", "", "", &[]),
    row("exitworktree", "ExitWorktree", "", "", &[]),
    row("croncreate", "CronCreate", "", "", &[]),
    row("cronlist", "CronList", "", "", &[]),
    row("crondelete", "CronDelete", "", "", &[]),
    row("monitor", "Monitor", "", "", &[]),
    row("toolsearch", "ToolSearch", "", "", &[]),
    row("structuredoutput", "StructuredOutput", "StructuredOutput", "", &[]),
    row("listmcpresources", "ListMcpResourcesTool", "", "", &[]),
    row("readmcpresource", "ReadMcpResourceTool", "", "", &[]),
    row("batch", "", "batch", "", &[]),
    row("reportintent", "", "", "report_intent", &[]),
    row("storememory", "", "", "store_memory", &[]),
    row("sql", "", "", "sql", &[]),
];

const fn row(
    name: &'static str,
    claude: &'static str,
    opencode: &'static str,
    copilot: &'static str,
    others: &'static [&'static str],
) -> Tool {
    Tool { name, claude: some(claude), opencode: some(opencode), copilot: some(copilot), others }
}

const fn some(name: &'static str) -> Option<&'static str> {
    if name.is_empty() { None } else { Some(name) }
}

impl Tool {
    /// Every name it has, ours first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let own = [self.claude, self.opencode, self.copilot].into_iter().flatten();
        std::iter::once(self.name).chain(own).chain(self.others.iter().copied())
    }

    /// The backend's name for the tool. Backends without names of their own use ours.
    pub fn on(&self, backend: &str) -> Option<&'static str> {
        match backend {
            "claude" => self.claude,
            "opencode" => self.opencode,
            "copilot" => self.copilot,
            _ => Some(self.name),
        }
    }
}

/// The tool that is meant by one of its names, in any case. A rule in parentheses, as in
/// `bash(git:*)`, is no part of the name.
pub fn find(name: &str) -> Option<&'static Tool> {
    let name = without_rule(name);
    let is_ours = |tool: &&Tool| tool.name.eq_ignore_ascii_case(name);
    let is_any = |tool: &&Tool| tool.names().any(|known| known.eq_ignore_ascii_case(name));
    TOOLS.iter().find(is_ours).or_else(|| TOOLS.iter().find(is_any))
}

/// The backend's names for the tools that a name means, and the rule behind the name; nothing when
/// the backend has no such tool. A patch is an edit, so whoever may edit may patch.
pub fn on<'n>(backend: &str, name: &'n str) -> Vec<(String, Option<&'n str>)> {
    let rule = name.strip_suffix(')').and_then(|open| open.split_once('(')).map(|(_, rule)| rule);
    let Some(tool) = find(name) else {
        return vec![(server_tool(backend, without_rule(name)), rule)];
    };
    let patch = (tool.name == "edit").then(|| find("patch")).flatten();
    let tools = [Some(tool), patch].into_iter().flatten();
    tools.filter_map(|tool| tool.on(backend)).map(|own| (own.to_owned(), rule)).collect()
}

/// The name of a server's tool, with what a program writes for letters that it does not allow.
fn server_tool(backend: &str, name: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || "_-*".contains(c);
    match (backend, name.starts_with(MCP)) {
        ("claude" | "opencode", true) => {
            name.chars().map(|c| if is_kept(c) { c } else { '_' }).collect()
        }
        _ => name.to_owned(),
    }
}

/// The beginning of the names of tools of MCP servers.
const MCP: &str = "mcp__";

/// The meaning of a name in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// These tools, by names that [`on`] knows.
    Tools(Vec<String>),
    /// Something that only the file's own program can do.
    Elsewhere,
    /// Nothing that is known.
    Unknown,
}

/// The meaning of a name in a file of a provider, without its rule. The same name may stand for
/// one tool in Claude Code and for a set of them in VS Code and Copilot.
pub(crate) fn meaning(provider: Provider, name: &str) -> Meaning {
    let name = without_rule(name);
    let by_editor = || {
        vscode::meaning(name).map(|tools| match tools {
            [] => Meaning::Elsewhere,
            tools => Meaning::Tools(tools.iter().map(|tool| (*tool).to_owned()).collect()),
        })
    };
    let by_name = || find(name).map(|_| Meaning::Tools(vec![name.to_lowercase()]));
    let known = match provider {
        Provider::Copilot => by_editor().or_else(by_name),
        Provider::Atomic => by_name().or_else(by_editor),
        Provider::Claude | Provider::OpenCode => by_name(),
    };
    known.unwrap_or_else(|| {
        let is_editors = matches!(provider, Provider::Copilot | Provider::Atomic);
        if unknown(name).is_some() || (is_editors && vscode::is_in_set(name)) {
            return Meaning::Unknown;
        }
        let lower = name.to_lowercase();
        match lower.rsplit_once('/') {
            Some((server, tool)) if is_editors => {
                Meaning::Tools(vec![format!("{MCP}{server}__{tool}")])
            }
            // The name of a server stands for its tools.
            None if provider == Provider::Copilot && !lower.starts_with(MCP) => {
                Meaning::Tools(vec![format!("{MCP}{lower}__*"), lower])
            }
            _ => Meaning::Tools(vec![lower]),
        }
    })
}

/// A tool that no backend has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTool {
    /// Its name, without a rule.
    pub name: String,
    /// What was probably meant.
    pub near: Option<String>,
}

/// Says when no backend has a tool of this name. Whatever may be the name of a tool of an MCP
/// server (`mcp__server__tool`, `server/tool`, `server_tool`, `server-tool`) is given the benefit
/// of the doubt, and so is a pattern.
pub fn unknown(name: &str) -> Option<UnknownTool> {
    let name = without_rule(name);
    let is_one_word = !name.is_empty() && name.chars().all(char::is_alphanumeric);
    if !is_one_word || find(name).is_some() {
        return None;
    }
    let near = nearest(name, TOOLS.iter().flat_map(Tool::names)).map(str::to_lowercase);
    Some(UnknownTool { name: name.to_owned(), near })
}

fn without_rule(name: &str) -> &str {
    name.split_once('(').map_or(name, |(name, _)| name).trim()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Meaning, TOOLS, Tool, find, meaning, unknown};
    use crate::entity::Provider;

    #[test]
    fn a_tool_is_found_by_every_name_it_has() {
        for (name, ours) in [
            ("Bash", "bash"),
            ("bash(git:*)", "bash"),
            ("shell", "bash"),
            ("view", "read"),
            ("AskUserQuestion", "question"),
            ("ask_user", "question"),
            ("Agent", "task"),
            ("list", "ls"),
        ] {
            assert_eq!(find(name).map(|tool| tool.name), Some(ours), "{name}");
        }
    }

    #[test]
    fn each_backend_has_its_own_names() {
        let on = |backend, name| {
            let named = super::on(backend, name).into_iter().map(|(own, rule)| match rule {
                Some(rule) => format!("{own} {rule}"),
                None => own,
            });
            named.collect::<Vec<String>>().join(", ")
        };
        assert_eq!(on("claude", "shell(git:*)"), "Bash git:*");
        assert_eq!(on("copilot", "Read"), "view");
        assert_eq!(on("claude", "sql"), "");
        assert_eq!(on("claude", "mcp__a__b"), "mcp__a__b");
        assert_eq!(on("claude", "mcp__a/b.c__*"), "mcp__a_b_c__*");
        assert_eq!(on("script", "Bash"), "bash");
        assert_eq!(on("claude", "Edit"), "Edit");
        assert_eq!(on("opencode", "Edit(src/**)"), "edit src/**, apply_patch src/**");
    }

    #[test]
    fn a_name_means_what_its_own_program_means_by_it() {
        let of = |provider, name| match meaning(provider, name) {
            Meaning::Tools(tools) => tools.join(" "),
            Meaning::Elsewhere => "elsewhere".to_owned(),
            Meaning::Unknown => "unknown".to_owned(),
        };
        for (provider, name, meant) in [
            (Provider::Claude, "Edit", "edit"),
            (Provider::Copilot, "edit", "edit write multiedit patch notebookedit"),
            (Provider::Copilot, "Write", "edit write multiedit patch notebookedit"),
            (Provider::Claude, "search", "search"),
            (Provider::Copilot, "search", "grep glob ls"),
            (Provider::Copilot, "problems", "elsewhere"),
            (Provider::Copilot, "github/create_issue", "mcp__github__create_issue"),
            (Provider::Copilot, "a/b/*", "mcp__a/b__*"),
            (
                Provider::Copilot,
                "microsoft.docs.mcp",
                "mcp__microsoft.docs.mcp__* microsoft.docs.mcp",
            ),
            (Provider::Copilot, "edit/frobnicate", "unknown"),
            (Provider::Copilot, "frobnicate", "unknown"),
            (Provider::Claude, "frobnicate", "unknown"),
            (Provider::Claude, "mcp__a__b", "mcp__a__b"),
            (Provider::Atomic, "edit", "edit"),
            (Provider::Atomic, "edit/editFiles", "edit write multiedit patch notebookedit"),
        ] {
            assert_eq!(of(provider, name), meant, "{provider:?} {name}");
        }
    }

    /// What is to be mapped from one backend to another must not be open to doubt.
    #[test]
    fn no_name_stands_for_two_tools() {
        let mut meant: BTreeMap<String, &str> = BTreeMap::new();
        for tool in TOOLS {
            assert_eq!(tool.name, tool.name.to_lowercase());
            for name in tool.names() {
                let other = meant.insert(name.to_lowercase(), tool.name);
                assert!(other.is_none_or(|other| other == tool.name), "{name} is two tools");
            }
        }
        let nowhere =
            |tool: &&Tool| (tool.claude, tool.opencode, tool.copilot) == (None, None, None);
        assert_eq!(TOOLS.iter().find(nowhere), None, "somebody has it");
    }

    #[test]
    fn only_what_cannot_be_the_tool_of_a_server_is_complained_about() {
        for (name, near) in [
            ("raed", Some("read")),
            ("websarch", Some("websearch")),
            ("bsah(git:*)", Some("bash")),
            ("frobnicate", None),
        ] {
            let found = unknown(name).unwrap();
            assert_eq!(found.near.as_deref(), near, "{name}");
        }
        for name in [
            "mcp__github__issue",
            "github/issue",
            "github_issue",
            "echo-shout",
            "mymcp_*",
            "read",
            "",
        ] {
            assert_eq!(unknown(name), None, "{name}");
        }
    }
}
