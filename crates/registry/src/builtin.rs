//! The entities that ship with the program.

use crate::entity::{Entity, Kind, Origin, Prompt, Provider, Scope};
use crate::frontmatter;
use crate::parse::{self, Found};

/// The files, by kind and name. They lie in `assets`.
const FILES: &[(Kind, &str, &str)] = &[
    (Kind::Agent, "planner", include_str!("../../../assets/agents/planner.md")),
    (Kind::Agent, "worker", include_str!("../../../assets/agents/worker.md")),
    (Kind::Agent, "reviewer", include_str!("../../../assets/agents/reviewer.md")),
];

/// All of them.
pub(crate) fn all() -> Vec<Entity> {
    FILES.iter().filter_map(|(kind, name, text)| entity(*kind, name, text)).collect()
}

fn entity(kind: Kind, name: &str, text: &'static str) -> Option<Entity> {
    let document = frontmatter::read(text).ok()?;
    let body = &text[text.len() - document.body.len()..];
    let found = Found {
        kind,
        origin: Origin { scope: Scope::BuiltIn, provider: Provider::Atomic, path: None },
        name: name.to_owned(),
        aliases: vec![],
        prompt: Prompt::Embedded(body.trim()),
    };
    parse::entity(found, document.head, body, &mut vec![])
}
