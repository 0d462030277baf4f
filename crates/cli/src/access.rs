//! The access that an agent really has on each backend, in the names of its program.

use atomic_backend::ToolRules;
use atomic_event::BackendId;
use atomic_registry::tools::{self, TOOLS};
use atomic_registry::{AGENT_PROGRAMS, Entity};
use atomic_runner::tools_of;

/// The access of an entity on one backend.
pub(crate) struct Access {
    /// The backend's name.
    pub(crate) backend: &'static str,
    rules: ToolRules,
    /// Tools that the entity names and the program does not have.
    missing: Vec<String>,
}

/// OpenCode's permission for paths outside of the workspace, by which the backends know it.
const OUTSIDE: &str = "external_directory";

/// Our names of the tools by which something can be done.
const READS: &[&str] = &["read"];
const EDITS: &[&str] = &["edit", "write", "multiedit", "patch", "notebookedit"];
const RUNS: &[&str] = &["bash"];
const WEB: &[&str] = &["webfetch", "websearch"];

/// Tools that are not shown: they are not part of an agent's work.
const LEFT_OUT: [&str; 3] = ["reportintent", "structuredoutput", "question"];

/// Tools that come with others of a set. One that a program does not have is not reported.
const COMPANIONS: [&str; 14] = [
    "bashinput",
    "bashoutput",
    "killshell",
    "listagents",
    "listshells",
    "multiedit",
    "notebookedit",
    "notebookread",
    "patch",
    "taskcreate",
    "taskget",
    "tasklist",
    "taskoutput",
    "taskupdate",
];

impl Access {
    /// The access of an entity on every agent program.
    pub(crate) fn everywhere(entity: &Entity) -> Vec<Self> {
        AGENT_PROGRAMS.iter().map(|program| Self::on(program.name, entity)).collect()
    }

    fn on(backend: &'static str, entity: &Entity) -> Self {
        let rules = tools_of(entity, &BackendId::from(backend));
        let named = entity.tools.only.iter().flatten();
        let is_missing = |name: &&String| {
            tools::on(backend, name).is_empty() && !COMPANIONS.contains(&name.as_str())
        };
        let missing = named.filter(is_missing).cloned().collect();
        Self { backend, rules, missing }
    }

    /// How much can be done with these tools: everything, some of it, or nothing.
    fn much(&self, ours: &[&str], words: [&'static str; 2]) -> Result<&'static str, &'static str> {
        let named = ours.iter().filter_map(|name| tools::find(name)?.on(self.backend));
        let usable: Vec<&str> = named.filter(|name| self.rules.may_use(name)).collect();
        let [all, some] = words;
        match usable.iter().any(|name| self.rules.limits(name).is_empty()) {
            _ if usable.is_empty() => Err(all),
            true => Ok(all),
            false => Ok(some),
        }
    }

    /// The program's own tools, in its names, by whether they can be used.
    fn tools(&self) -> (Vec<&'static str>, Vec<&'static str>) {
        let is_shown = |tool: &&tools::Tool| !LEFT_OUT.contains(&tool.name);
        let named = TOOLS.iter().filter(is_shown).filter_map(|tool| tool.on(self.backend));
        named.partition(|name| self.rules.may_use(name))
    }

    /// In a few lines: what can be done, with which tools, as what, and what is missing.
    pub(crate) fn lines(&self) -> Vec<String> {
        let abilities = [
            self.much(READS, ["read files", "read some files"]),
            self.much(EDITS, ["edit files", "edit some files"]),
            self.much(RUNS, ["run commands", "run some commands"]),
            self.much(WEB, ["use the web", "use some of the web"]),
        ];
        let can: Vec<&str> = abilities.iter().filter_map(|ability| ability.ok()).collect();
        let cannot: Vec<&str> = abilities.iter().filter_map(|ability| ability.err()).collect();
        let summary = match (can.join(", "), cannot.join(", ")) {
            (can, cannot) if cannot.is_empty() => format!("can {can}"),
            (can, cannot) if can.is_empty() => format!("cannot {cannot}"),
            (can, cannot) => format!("can {can}; cannot {cannot}"),
        };
        let mut lines = vec![summary];
        if self.rules.allow_everything() {
            return lines;
        }
        let (own, off) = self.tools();
        lines.push(match self.rules.offered() {
            None => {
                let others = self.rules.withheld().into_iter().filter(|name| is_server(name));
                let off: Vec<String> = off
                    .iter()
                    .map(|name| (*name).to_owned())
                    .chain(others.map(|name| self.servers(name)))
                    .collect();
                match off.is_empty() {
                    true => "all tools".to_owned(),
                    false => format!("all tools but {}", off.join(", ")),
                }
            }
            Some(names) => {
                let servers = names.into_iter().filter(|name| is_server(name));
                let servers = servers.map(|name| self.servers(name));
                let all: Vec<String> =
                    own.iter().map(|name| (*name).to_owned()).chain(servers).collect();
                if all.is_empty() { "no tools".to_owned() } else { all.join(", ") }
            }
        });
        lines.extend(self.limits(&own));
        if !self.missing.is_empty() {
            lines.push(format!("not available: {}", self.missing.join(", ")));
        }
        lines
    }

    /// Which uses of tools are ruled in or out. Tools with the same rules are told once.
    fn limits(&self, own: &[&'static str]) -> Vec<String> {
        let mut told: Vec<(Vec<&str>, Vec<String>)> = vec![];
        for name in own.iter().copied().chain([OUTSIDE]) {
            let limits = self.rules.limits(name);
            match told.iter_mut().find(|(_, known)| *known == limits) {
                _ if limits.is_empty() => {}
                Some((names, _)) => names.push(name),
                None => told.push((vec![name], limits)),
            }
        }
        let mut lines: Vec<String> = told
            .iter()
            .map(|(names, limits)| format!("{}: {}", names.join(", "), limits.join(", ")))
            .collect();
        if !self.rules.may_use(OUTSIDE) && self.rules.offered().is_none() {
            lines.push("nothing outside of the workspace".to_owned());
        }
        lines
    }

    /// The tools of an MCP server, as the program calls them.
    fn servers(&self, name: &str) -> String {
        let between = match self.backend {
            "opencode" => "_",
            "copilot" => "-",
            _ => return name.to_owned(),
        };
        if name == "mcp__*" {
            return "those of all MCP servers".to_owned();
        }
        let bare = name.strip_prefix("mcp__");
        bare.map_or_else(|| name.to_owned(), |bare| bare.replacen("__", between, 1))
    }
}

/// Whether a name is one of a server's tools, or a pattern for them.
fn is_server(name: &str) -> bool {
    name.contains("__") || name.contains('*')
}
