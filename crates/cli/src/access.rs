//! What an agent may really do on each backend, in the names of its program.

use atomic_backend::ToolRules;
use atomic_event::BackendId;
use atomic_registry::tools::{self, TOOLS};
use atomic_registry::{AGENT_PROGRAMS, Entity};
use atomic_runner::tools_of;

/// What an entity may do on one backend.
pub(crate) struct Access {
    /// The backend's name.
    pub(crate) backend: &'static str,
    rules: ToolRules,
    /// What the entity names and the program does not have.
    missing: Vec<String>,
}

/// Our names of the tools by which something can be done.
const READS: &[&str] = &["read"];
const EDITS: &[&str] = &["edit", "write", "multiedit", "patch", "notebookedit"];
const RUNS: &[&str] = &["bash"];
const WEB: &[&str] = &["webfetch", "websearch"];

/// What is shown of tools that are not part of an agent's work.
const LEFT_OUT: [&str; 3] = ["reportintent", "structuredoutput", "question"];

impl Access {
    /// What an entity may do on every agent program.
    pub(crate) fn everywhere(entity: &Entity) -> Vec<Self> {
        AGENT_PROGRAMS.iter().map(|program| Self::on(program.name, entity)).collect()
    }

    fn on(backend: &'static str, entity: &Entity) -> Self {
        let rules = tools_of(entity, &BackendId::from(backend));
        let named = entity.tools.only.iter().flatten();
        let missing = named.filter(|name| tools::on(backend, name).is_empty()).cloned().collect();
        Self { backend, rules, missing }
    }

    /// Whether one of these tools can be used.
    fn may(&self, ours: &[&str]) -> bool {
        let named = ours.iter().filter_map(|name| tools::find(name)?.on(self.backend));
        named.into_iter().any(|name| self.rules.may_use(name))
    }

    /// Whether files can be read.
    pub(crate) fn reads(&self) -> bool {
        self.may(READS)
    }

    /// Whether files can be changed.
    pub(crate) fn edits(&self) -> bool {
        self.may(EDITS)
    }

    /// Whether commands can be run.
    pub(crate) fn runs(&self) -> bool {
        self.may(RUNS)
    }

    /// The program's tools that can be used, in its names.
    fn tools(&self) -> Vec<&'static str> {
        let is_shown = |tool: &&tools::Tool| !LEFT_OUT.contains(&tool.name);
        let named = TOOLS.iter().filter(is_shown).filter_map(|tool| tool.on(self.backend));
        named.filter(|name| self.rules.may_use(name)).collect()
    }

    /// In a few lines: what can be done, with which tools, as what, and what is missing.
    pub(crate) fn lines(&self) -> Vec<String> {
        let abilities = [
            (self.reads(), "read files"),
            (self.edits(), "edit files"),
            (self.runs(), "run commands"),
            (self.may(WEB), "use the web"),
        ];
        let of = |is: bool| {
            let some = abilities.iter().filter(|(may, _)| *may == is).map(|(_, words)| *words);
            some.collect::<Vec<_>>().join(", ")
        };
        let summary = match (of(true), of(false)) {
            (can, cannot) if cannot.is_empty() => format!("can {can}"),
            (can, cannot) if can.is_empty() => format!("cannot {cannot}"),
            (can, cannot) => format!("can {can}; cannot {cannot}"),
        };
        let mut lines = vec![summary];
        if self.rules.allow_everything() {
            return lines;
        }
        let own = self.tools();
        let servers = match self.rules.offered() {
            // Where tools that are not named are allowed, so are those of servers.
            None => vec!["tools of MCP servers"],
            Some(names) => names.into_iter().filter(|name| name.contains("__")).collect(),
        };
        let all: Vec<&str> = own.iter().copied().chain(servers).collect();
        lines.push(if all.is_empty() { "no tools".to_owned() } else { all.join(", ") });
        let mut told: Vec<Vec<String>> = vec![];
        for name in own.iter().copied().chain(["external_directory"]) {
            let limits = self.rules.limits(name);
            if !limits.is_empty() && !told.contains(&limits) {
                lines.push(format!("{name}: {}", limits.join(", ")));
                told.push(limits);
            }
        }
        if !self.missing.is_empty() {
            lines.push(format!("not there: {}", self.missing.join(", ")));
        }
        lines
    }
}
