//! What is meant by what was typed after a slash.

use std::path::Path;

use atomic_acp::{Prompt, Slash};
use atomic_registry::{Class, Entity, Kind, Registry, arguments};
use atomic_workflow::builtin::prompt;
use atomic_workflow::{EntryKind, Workflow};

use super::commands;
use crate::catalog::Catalog;
use crate::removed::{self, RemovedFlag, bare_words};

/// What is meant.
pub(super) enum Meant {
    /// A command of the chat, and what stands behind it.
    Chat { name: String, rest: String },
    /// A workflow, and what it is to do.
    Workflow { name: String, rest: String },
    /// A session goes on, perhaps with something to tell its agents.
    Resume { session: Option<String>, more: Option<String> },
    /// A turn of the session's own conversation.
    Turn { text: String },
    /// A conversation of its own, because it has an agent, tools or a model of its own.
    Apart { title: String, workflow: Box<Workflow>, text: String },
    /// Nothing; this is why.
    Nothing(String),
}

/// What is meant by a prompt that begins with a slash.
pub(super) fn meant(catalog: &Catalog, prompt: &Prompt, slash: Slash<'_>) -> Meant {
    let names = catalog.names();
    let named = match names.get(slash.name) {
        Ok(named) => named,
        Err(unknown) => return Meant::Nothing(unknown.to_string()),
    };
    let (name, rest) = (named.name.clone(), slash.rest);
    match named.class {
        Class::BuiltIn if name == "resume" => {
            resumed(rest).unwrap_or(Meant::Resume { session: None, more: None })
        }
        Class::BuiltIn if commands::is_of_the_chat(&name) => {
            Meant::Chat { name, rest: rest.to_owned() }
        }
        Class::BuiltIn => {
            Meant::Nothing(format!("/{name} belongs to the terminal; here the editor does that."))
        }
        Class::Workflow => workflow(name, &prompt.with_attached(rest), rest),
        Class::Entity(Kind::Agent) if rest.is_empty() && prompt.attached.is_empty() => {
            Meant::Nothing(format!("Say what {name} is to do: /{name} <task>"))
        }
        Class::Entity(Kind::Agent) => Meant::Apart {
            workflow: Box::new(prompt::prompt(Some(&name))),
            title: name,
            text: prompt.with_attached(unquoted(rest)),
        },
        Class::Entity(kind) => match catalog.registry.get(kind, &name) {
            Ok(entity) => entry(&catalog.registry, entity, &prompt.with_attached(rest)),
            Err(missing) => Meant::Nothing(missing.to_string()),
        },
    }
}

fn workflow(name: String, text: &str, rest: &str) -> Meant {
    let (first, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if first == "--resume" {
        return resumed(behind).unwrap_or_else(|| {
            Meant::Nothing(format!("Say which session: /{name} --resume <uuid>"))
        });
    }
    match wrong_argument(&name, rest) {
        Some(why) => Meant::Nothing(why),
        None => Meant::Workflow { name, rest: text.to_owned() },
    }
}

/// Why the arguments of a workflow are not a prompt. Those of `/ralph` are known, and it had others
/// once; other workflows read theirs as they like.
fn wrong_argument(name: &str, rest: &str) -> Option<String> {
    let words = bare_words(rest);
    let is_ralphs = name == "ralph";
    let looked_at = if is_ralphs { words.len() } else { 1 };
    let gone = words.iter().take(looked_at).find_map(|word| removed::flag(word));
    let quoted = format!("To mention it in a prompt, quote the prompt: /{name} \"<prompt>\"");
    if let Some(RemovedFlag { flag, instead }) = gone {
        return Some(format!("{flag} is gone: {instead}. {quoted}"));
    }
    if !is_ralphs {
        return None;
    }
    let resumes = words.windows(2).any(|pair| pair[0] == "--resume" && is_session(pair[1]));
    if resumes {
        return Some(format!(
            "--resume comes first: /{name} --resume <uuid> [\"<more>\"]. {quoted}"
        ));
    }
    let first = words.first().filter(|word| word.starts_with("--") && rest.starts_with(**word))?;
    let flag = first.split('=').next().unwrap_or(first);
    Some(format!(
        "/{name} has no argument {flag}. Flags belong to: atomic run {name} \"<prompt>\". {quoted}"
    ))
}

/// Whether a word names a session: `last`, or the beginning of an id.
fn is_session(word: &str) -> bool {
    let is_id = |c: char| c.is_ascii_hexdigit() || c == '-';
    word == "last" || word.len() >= 6 && word.chars().all(is_id)
}

/// `<session> ["<more>"]`.
fn resumed(text: &str) -> Option<Meant> {
    let text = text.trim();
    let (session, more) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let more = unquoted(more.trim());
    let more = (!more.is_empty()).then(|| more.to_owned());
    (!session.is_empty()).then(|| Meant::Resume { session: Some(session.to_owned()), more })
}

/// A skill or command: a turn like any other, unless it may not have what the conversation has.
fn entry(registry: &Registry, entity: &Entity, typed: &str) -> Meant {
    if let Err(missing) = arguments::require(entity, typed) {
        return Meant::Nothing(missing.to_string());
    }
    let is_restricted = !entity.tools.is_everything();
    if is_restricted || entity.model.is_some() || !registry.pages(entity).is_empty() {
        let kind = if entity.kind == Kind::Skill { EntryKind::Skill } else { EntryKind::Command };
        return Meant::Apart {
            title: entity.name.clone(),
            workflow: Box::new(prompt::entry(kind, &entity.name)),
            text: typed.to_owned(),
        };
    }
    let prompt = match registry.prompt(entity) {
        Ok(prompt) => arguments::filled(entity, &prompt, typed),
        Err(finding) => return Meant::Nothing(finding.to_string()),
    };
    let beside = entity.origin.path.as_deref().and_then(Path::parent);
    let beside = beside.filter(|folder| entity.kind == Kind::Skill && holds_more(folder));
    let text = match beside {
        Some(folder) => {
            format!("The files this skill names are in {}\n\n{prompt}", folder.display())
        }
        None => prompt,
    };
    Meant::Turn { text }
}

/// Whether there is something beside a skill's own file.
fn holds_more(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|entries| entries.take(2).count() > 1)
}

fn unquoted(text: &str) -> &str {
    let strip = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    strip('"').or_else(|| strip('\'')).unwrap_or(text).trim()
}

#[cfg(test)]
mod tests {
    use super::{Meant, resumed, workflow};

    fn told(meant: Option<Meant>) -> String {
        match meant {
            Some(Meant::Resume { session, more }) => {
                format!("{}|{}", session.unwrap(), more.unwrap_or_default())
            }
            Some(Meant::Workflow { name, rest }) => format!("{name}: {rest}"),
            Some(Meant::Nothing(why)) => why,
            _ => "-".to_owned(),
        }
    }

    #[test]
    fn sessions_are_resumed_by_either_name() {
        assert_eq!(told(resumed(" abc \"and hurry\" ")), "abc|and hurry");
        assert_eq!(told(resumed("last")), "last|");
        assert_eq!(told(resumed("  ")), "-");
        let ralph = |rest: &str| told(Some(workflow("ralph".to_owned(), rest, rest)));
        assert_eq!(ralph("--resume abc go on"), "abc|go on");
        assert_eq!(ralph("--resume"), "Say which session: /ralph --resume <uuid>");
        assert_eq!(ralph("\"Build it\""), "ralph: \"Build it\"");
        assert!(ralph("--yolo x").starts_with("--yolo is gone: "), "{}", ralph("--yolo x"));
        assert!(ralph("--max-iterations=3 x").contains("atomic config set"));
        assert!(ralph("Build it --yolo").starts_with("--yolo is gone: "));
        assert!(ralph("Build it --max-iterations 3").starts_with("--max-iterations is gone: "));
        assert!(ralph("--max-cost 3 Build it").starts_with("/ralph has no argument --max-cost."));
        assert!(ralph("go on --resume 0a1b2c3d").starts_with("--resume comes first: "));
        for text in ["\"Drop --yolo from the docs\"", "Drop `--yolo`", "add --resume", "a -- b"] {
            assert_eq!(ralph(text), format!("ralph: {text}"));
        }
        let other = |rest: &str| told(Some(workflow("review".to_owned(), rest, rest)));
        assert_eq!(other("look for --yolo"), "review: look for --yolo");
        assert_eq!(other("--strict src"), "review: --strict src");
    }
}
