//! The entities that ship with the program.

use crate::entity::{Entity, Kind, Origin, Prompt, Provider, Scope};
use crate::frontmatter;
use crate::parse::{self, Found, Place};

macro_rules! agents {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../assets/agents/", $name, ".md")))),*]
    };
}

macro_rules! skills {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../assets/skills/", $name, "/SKILL.md")))),*]
    };
}

/// The agents, by name. Their files lie in `assets/agents`.
const AGENTS: &[(&str, &str)] = agents![
    "planner",
    "worker",
    "reviewer",
    "debugger",
    "codebase-analyzer",
    "codebase-locator",
    "codebase-pattern-finder",
    "codebase-online-researcher",
    "codebase-research-analyzer",
    "codebase-research-locator",
];

/// The skills, by name. Their files lie in `assets/skills`.
const SKILLS: &[(&str, &str)] = skills![
    "research-codebase",
    "create-spec",
    "implement-feature",
    "commit",
    "create-gh-pr",
    "explain-code",
    "prompt-engineer",
    "init",
    "testing-anti-patterns",
];

macro_rules! pages {
    ($skill:literal: $($page:literal),* $(,)?) => {
        &[$((
            concat!("references/", $page, ".md"),
            include_str!(concat!("../../../assets/skills/", $skill, "/references/", $page, ".md")),
        )),*]
    };
}

/// The reference pages of `prompt-engineer`.
const PROMPT_ENGINEER: &[(&str, &str)] = pages!["prompt-engineer":
    "structure",
    "examples",
    "reasoning-and-chains",
    "output-formats",
    "long-context",
    "agents-and-tools",
    "evaluation",
];

/// The pages that belong to a skill, by their paths beside it.
pub(crate) fn pages(skill: &str) -> &'static [(&'static str, &'static str)] {
    if skill == "prompt-engineer" { PROMPT_ENGINEER } else { &[] }
}

/// All of them.
pub(crate) fn all() -> Vec<Entity> {
    let agents = AGENTS.iter().map(|(name, text)| (Kind::Agent, *name, *text));
    let skills = SKILLS.iter().map(|(name, text)| (Kind::Skill, *name, *text));
    agents.chain(skills).filter_map(|(kind, name, text)| entity(kind, name, text)).collect()
}

fn entity(kind: Kind, name: &str, text: &'static str) -> Option<Entity> {
    let document = frontmatter::read(text).ok()?;
    // The files have the line ends of the program, so the body is the end of the text as it is.
    let body = text.get(text.len() - document.body.len()..)?;
    let found = Found {
        kind,
        origin: Origin { scope: Scope::BuiltIn, provider: Provider::Atomic, path: None },
        name: name.to_owned(),
        aliases: vec![],
        prompt: Prompt::Embedded(body.trim()),
    };
    parse::entity(found, document.head, Place::Head(&document.lines), body, &mut vec![])
}

#[cfg(test)]
mod tests {
    use super::{AGENTS, SKILLS, all, pages};
    use crate::entity::{Kind, Prompt};
    use crate::frontmatter;

    #[test]
    fn everything_that_ships_is_read_without_a_word() {
        for (name, text) in AGENTS.iter().chain(SKILLS) {
            let document = frontmatter::read(text).unwrap();
            assert_eq!(document.oddities, [], "{name}");
            assert_eq!(document.head["name"], *name);
        }
        let all = all();
        assert_eq!(all.len(), AGENTS.len() + SKILLS.len());
        for entity in &all {
            let Prompt::Embedded(prompt) = entity.prompt else { panic!("{}", entity.name) };
            assert!(prompt.len() > 1_000 && !prompt.starts_with("---"), "{}", entity.name);
            assert!(entity.description.len() > 40, "{}", entity.name);
            let takes_arguments = prompt.matches("$ARGUMENTS").count();
            assert_eq!(takes_arguments, usize::from(entity.kind == Kind::Skill), "{}", entity.name);
        }
        let aliases = |name: &str| all.iter().find(|e| e.name == name).unwrap().aliases.clone();
        let Some(engineer) = all.iter().find(|e| e.name == "prompt-engineer") else { panic!() };
        let Prompt::Embedded(prompt) = engineer.prompt else { panic!() };
        for (path, text) in pages("prompt-engineer") {
            assert!(prompt.contains(&format!("`{path}`")) && text.len() > 1_000, "{path}");
        }
        assert_eq!(prompt.matches("`references/").count(), pages("prompt-engineer").len());
        assert_eq!(aliases("commit"), ["ci"]);
        assert_eq!(aliases("research-codebase"), ["research"]);
    }
}
