//! The agent programs there are, declared once: what can be chosen as a backend, what is looked
//! for and what is said about them is made from this.

/// A program that works for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentProgram {
    /// What it is called, as a program and in settings.
    pub name: &'static str,
    /// What its makers call it.
    pub title: &'static str,
    /// The command that installs it.
    pub install: &'static str,
    /// Whether this version can drive it. The front end makes the backend of this name.
    pub is_backend: bool,
    /// Where it finds the MCP servers of a project, where that is known.
    pub servers: Option<ServersFile>,
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
        is_backend: true,
        servers: Some(ServersFile { file: ".mcp.json", key: "mcpServers" }),
    },
    AgentProgram {
        name: "opencode",
        title: "OpenCode",
        install: "npm install -g opencode-ai",
        is_backend: true,
        servers: Some(ServersFile { file: "opencode.json", key: "mcp" }),
    },
    AgentProgram {
        name: "copilot",
        title: "GitHub Copilot",
        install: "npm install -g @github/copilot",
        is_backend: false,
        servers: None,
    },
];

/// The backend that is no program: it plays canned turns.
const SCRIPT: (&str, &str) = ("script", "Plays canned turns from a file: no model, no account");

/// What can be chosen as a backend, each with what it is.
pub(crate) const BACKENDS: [(&str, &str); usable() + 1] = backends();

/// The agent programs that this version can drive, in the order in which they are looked for.
pub fn usable_programs() -> impl Iterator<Item = &'static AgentProgram> + Clone {
    AGENT_PROGRAMS.iter().filter(|program| program.is_backend)
}

/// The agent program of this name.
pub fn agent_program(name: &str) -> Option<&'static AgentProgram> {
    AGENT_PROGRAMS.iter().find(|program| program.name == name)
}

const fn usable() -> usize {
    let (mut index, mut count) = (0, 0);
    while index < AGENT_PROGRAMS.len() {
        count += AGENT_PROGRAMS[index].is_backend as usize;
        index += 1;
    }
    count
}

const fn backends() -> [(&'static str, &'static str); usable() + 1] {
    let mut backends = [SCRIPT; usable() + 1];
    let (mut index, mut count) = (0, 0);
    while index < AGENT_PROGRAMS.len() {
        let AgentProgram { name, title, is_backend, .. } = AGENT_PROGRAMS[index];
        if is_backend {
            backends[count] = (name, title);
            count += 1;
        }
        index += 1;
    }
    backends
}
