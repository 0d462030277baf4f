//! The personas that ship with Atomic.

/// A persona: who an agent is told to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Persona {
    /// Its name.
    pub name: &'static str,
    /// Its file: frontmatter and prompt.
    source: &'static str,
}

impl Persona {
    /// The prompt, without the frontmatter.
    pub fn prompt(&self) -> &'static str {
        let body = self.source.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
        body.map_or(self.source, |(_, prompt)| prompt).trim()
    }
}

/// All of them. The files lie in `assets/agents`.
pub const BUILT_IN: &[Persona] = &[
    Persona { name: "planner", source: include_str!("../../../assets/agents/planner.md") },
    Persona { name: "worker", source: include_str!("../../../assets/agents/worker.md") },
    Persona { name: "reviewer", source: include_str!("../../../assets/agents/reviewer.md") },
];

/// Finds a persona, in whatever case its name is written.
pub fn find(name: &str) -> Option<&'static Persona> {
    let name = name.to_lowercase();
    BUILT_IN.iter().find(|persona| persona.name == name)
}
