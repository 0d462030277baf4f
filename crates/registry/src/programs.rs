//! The agent programs there are, declared once: what can be chosen as a backend, what is looked
//! for and what is said about them is made from this.

/// A program that works for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentProgram {
    /// What it is called, as a program and in settings. The front end makes the backend of this name.
    pub name: &'static str,
    /// What its makers call it.
    pub title: &'static str,
    /// The command that installs it.
    pub install: &'static str,
    /// Where the MCP servers of a project are declared for it.
    pub servers: ServersFile,
}

/// The file in a project in which its MCP servers are declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServersFile {
    /// The file, in the project's folder.
    pub file: &'static str,
    /// The key in it.
    pub key: &'static str,
}

/// The agent programs, in the order in which they are looked for.
pub const AGENT_PROGRAMS: [AgentProgram; 3] = [
    AgentProgram {
        name: "claude",
        title: "Claude Code",
        install: "npm install -g @anthropic-ai/claude-code",
        servers: ServersFile { file: ".mcp.json", key: "mcpServers" },
    },
    AgentProgram {
        name: "opencode",
        title: "OpenCode",
        install: "npm install -g opencode-ai",
        servers: ServersFile { file: "opencode.json", key: "mcp" },
    },
    AgentProgram {
        name: "copilot",
        title: "GitHub Copilot",
        install: "npm install -g @github/copilot",
        servers: ServersFile { file: ".mcp.json", key: "mcpServers" },
    },
];

/// The backend that is no program: it plays canned turns.
const SCRIPT: (&str, &str) = ("script", "Plays canned turns from a file: no model, no account");

/// What stands in front of the command of any other agent program.
pub const ACP: &str = "acp:";

/// Any other program: the command that starts it is part of the name.
const ANY: (&str, &str) = (
    "acp:<command>",
    "Any agent that speaks the Agent Client Protocol, by the command that starts it",
);

/// What can be chosen as a backend, each with what it is.
pub(crate) const BACKENDS: [(&str, &str); AGENT_PROGRAMS.len() + 2] = backends();

/// The agent program of this name.
pub fn agent_program(name: &str) -> Option<&'static AgentProgram> {
    AGENT_PROGRAMS.iter().find(|program| program.name == name)
}

const fn backends() -> [(&'static str, &'static str); AGENT_PROGRAMS.len() + 2] {
    let mut backends = [SCRIPT; AGENT_PROGRAMS.len() + 2];
    backends[AGENT_PROGRAMS.len() + 1] = ANY;
    let mut index = 0;
    while index < AGENT_PROGRAMS.len() {
        backends[index] = (AGENT_PROGRAMS[index].name, AGENT_PROGRAMS[index].title);
        index += 1;
    }
    backends
}
