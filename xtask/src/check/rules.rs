//! The table of `docs/architecture.md`, in a form that can be enforced.

/// What one crate may know and use.
pub(super) struct Rule {
    /// The crate, without the `atomic-` in front.
    pub(super) name: &'static str,
    /// The crates of the workspace it may know.
    pub(super) knows: &'static [&'static str],
    /// What it must not be able to do; said with every violation.
    pub(super) must_not: &'static str,
    /// The packages from outside it may use.
    pub(super) packages: Packages,
    /// Parts of the standard library it must not use.
    pub(super) not_std: &'static [&'static str],
}

/// Packages from outside the workspace.
pub(super) enum Packages {
    /// These and no others: for crates whose whole point is what they cannot do.
    Only(&'static [&'static str]),
    /// All but these.
    AllBut(&'static [&'static str]),
}

/// Parsing arguments and drawing progress belongs to one crate.
pub(super) const ONLY_CLI: &[&str] = &["clap", "console", "indicatif"];

/// Only tests may use this crate.
pub(super) const TEST_ONLY: &str = "testing";

/// Names that say nothing, and so end up holding everything.
pub(super) const EMPTY_NAMES: &[&str] =
    &["core", "common", "types", "utils", "helpers", "manager", "misc"];

const ALL: &[&str] = &[
    "files",
    "graph",
    "event",
    "registry",
    "typescript",
    "workflow",
    "backend",
    "session",
    "runner",
    "tui",
    "acp",
    "cli",
];
const ACTING: &[&str] = &["std::fs", "std::net", "std::process", "std::env", "std::thread"];
// A process may know its own number without starting another.
const STARTING_AND_NETWORK: &[&str] = &["std::process::Command", "std::net"];

/// One rule per crate. A crate without a rule fails the check: a crate exists because of
/// something it must not be able to do, and here is where that is written down.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "files",
        knows: &[],
        must_not: "know projects, sessions or workflows, nor follow a link out of a root",
        packages: Packages::Only(&["rustix", "thiserror", "uuid"]),
        not_std: &["std::env", "std::net", "std::process", "std::thread"],
    },
    Rule {
        name: "graph",
        knows: &[],
        must_not: "do IO, async, clocks or randomness, nor know agents",
        packages: Packages::Only(&["jsonschema", "schemars", "serde", "serde_json", "thiserror"]),
        not_std: &[
            "std::fs",
            "std::io",
            "std::net",
            "std::process",
            "std::env",
            "std::thread",
            "std::time::Instant",
            "std::time::SystemTime",
            // Its order changes from run to run.
            "std::collections::HashMap",
            "std::collections::HashSet",
        ],
    },
    Rule {
        name: "event",
        knows: &["graph"],
        must_not: "have behaviour",
        packages: Packages::Only(&["jiff", "schemars", "serde", "serde_json", "thiserror"]),
        not_std: ACTING,
    },
    Rule {
        name: "registry",
        knows: &["files", "graph", "event"],
        must_not: "run anything, use the network, nor know QuickJS",
        packages: Packages::AllBut(&["tokio", "rquickjs", "hyper", "reqwest", "ureq", "anyhow"]),
        not_std: STARTING_AND_NETWORK,
    },
    Rule {
        name: "derive",
        knows: &[],
        must_not: "do anything but write code while others are compiled",
        packages: Packages::Only(&["proc-macro2", "quote", "syn"]),
        not_std: ACTING,
    },
    Rule {
        name: "typescript",
        knows: &["files"],
        must_not: "know workflows, sessions or agents, start processes, use the network, nor \
                   write files",
        packages: Packages::AllBut(&["tokio", "rustix", "crossterm", "ratatui", "anyhow"]),
        not_std: STARTING_AND_NETWORK,
    },
    Rule {
        name: "workflow",
        knows: &["derive", "graph", "event", "typescript"],
        must_not: "start processes, know backends, nor touch the terminal",
        packages: Packages::AllBut(&["tokio", "rustix", "crossterm", "ratatui", "anyhow"]),
        not_std: STARTING_AND_NETWORK,
    },
    Rule {
        name: "backend",
        knows: &["files", "event"],
        must_not: "know workflows, sessions, nor the user interface",
        packages: Packages::AllBut(&["crossterm", "ratatui", "anyhow"]),
        not_std: &[],
    },
    Rule {
        name: "session",
        knows: &["files", "event"],
        must_not: "interpret a workflow, nor be asynchronous",
        packages: Packages::AllBut(&["tokio", "crossterm", "ratatui", "anyhow"]),
        not_std: STARTING_AND_NETWORK,
    },
    Rule {
        name: "runner",
        knows: &[
            "files",
            "graph",
            "event",
            "registry",
            "typescript",
            "workflow",
            "backend",
            "session",
        ],
        must_not: "draw, nor parse arguments",
        packages: Packages::AllBut(&["crossterm", "ratatui", "anyhow"]),
        not_std: &[],
    },
    Rule {
        name: "tui",
        knows: &["event"],
        must_not: "know the runner, backends, nor files",
        packages: Packages::AllBut(&["anyhow"]),
        not_std: &["std::fs", "std::net", "std::process"],
    },
    Rule {
        name: "acp",
        knows: &["event"],
        must_not: "connect, touch files, nor know the runner and backends",
        packages: Packages::Only(&["agent-client-protocol", "serde_json"]),
        not_std: ACTING,
    },
    Rule {
        name: "cli",
        knows: &[
            "files",
            "graph",
            "event",
            "registry",
            "typescript",
            "workflow",
            "backend",
            "session",
            "runner",
            "tui",
            "acp",
        ],
        must_not: "decide anything beyond parsing, wiring up and printing",
        packages: Packages::AllBut(&[]),
        not_std: &[],
    },
    Rule {
        name: TEST_ONLY,
        knows: ALL,
        must_not: "be a normal dependency",
        packages: Packages::AllBut(&[]),
        not_std: &[],
    },
    Rule {
        name: "xtask",
        knows: &["event", "registry"],
        must_not: "know the program beyond the format of its journal and the table of its settings",
        packages: Packages::AllBut(&["tokio"]),
        not_std: &[],
    },
];
