//! What can be typed after a slash: built-in commands, workflows, commands, skills and agents share
//! one space of names.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use atomic_graph::check::nearest;

use crate::entity::Kind;
use crate::registry::Registry;

/// What a name stands for. The order is that of names: the first of two hides the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Part of the chat.
    BuiltIn,
    /// A graph that is run.
    Workflow,
    /// A command, a skill or an agent.
    Entity(Kind),
}

impl Class {
    /// Every class whose entries can be named with it, as in `agent:worker`.
    const QUALIFIED: [Self; 4] = [
        Self::Workflow,
        Self::Entity(Kind::Command),
        Self::Entity(Kind::Skill),
        Self::Entity(Kind::Agent),
    ];

    /// Its word, in lower case, as in `agent:worker`.
    pub fn word(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in command",
            Self::Workflow => "workflow",
            Self::Entity(kind) => kind.word(),
        }
    }
}

/// Something that can be called by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// What it is.
    pub class: Class,
    /// What it is called.
    pub name: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// What it is for.
    pub description: Arc<str>,
    /// What to type after its name.
    pub hint: Option<String>,
    /// Whether it is left out of lists and suggestions.
    pub hidden: bool,
    /// Whether it belongs to a project that is not trusted, and so hides nothing of anybody else.
    pub untrusted: bool,
}

impl Named {
    /// The name by which it can be called whatever else is called like it.
    pub fn qualified(&self) -> String {
        match self.class {
            Class::BuiltIn => self.name.clone(),
            Class::Workflow | Class::Entity(_) => format!("{}:{}", self.class.word(), self.name),
        }
    }
}

/// A name, or another name, that means something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shadowed<'n> {
    /// The name that means something else.
    pub name: &'n str,
    /// What it would mean.
    pub loser: &'n Named,
    /// What it means.
    pub winner: &'n Named,
    /// What to type instead.
    pub reach: String,
}

impl fmt::Display for Shadowed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (winner, loser) = (self.winner, self.loser);
        write!(f, "/{} is the {} `{}`, ", self.name, winner.class.word(), winner.name)?;
        write!(f, "not the {} `{}`; type {} for that", loser.class.word(), loser.name, self.reach)
    }
}

/// Every name there is, and what it means.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// By class, the nearer first.
    all: Vec<Named>,
    /// By name or other name in lower case: the one that is meant.
    meant: BTreeMap<String, usize>,
    /// The same inside each class.
    inside: BTreeMap<(Class, String), usize>,
}

impl Names {
    /// The names of the built-in commands, of these workflows and of a registry's entities.
    pub fn new(workflows: impl IntoIterator<Item = Named>, registry: &Registry) -> Self {
        let entities = registry.all().map(|entity| Named {
            class: Class::Entity(entity.kind),
            name: entity.name.clone(),
            aliases: entity.aliases.clone(),
            description: Arc::clone(&entity.description),
            hint: entity.arguments.hint.clone(),
            hidden: entity.hidden,
            untrusted: registry.is_untrusted(entity),
        });
        let mut all: Vec<Named> =
            built_in_commands().chain(workflows).chain(entities).map(with_usual_hint).collect();
        // Inside a class they come as they were given: the nearer first.
        all.sort_by_key(|named| (named.untrusted, named.class));
        let (mut meant, mut inside) = (BTreeMap::new(), BTreeMap::new());
        for untrusted in [false, true] {
            let group = || all.iter().enumerate().filter(|(_, named)| named.untrusted == untrusted);
            for (index, named) in group() {
                let name = named.name.to_lowercase();
                inside.entry((named.class, name.clone())).or_insert(index);
                meant.entry(name).or_insert(index);
            }
            // A name beats the other name of something else: a file called `ci` is meant by `/ci`.
            for (index, named) in group() {
                for alias in named.aliases.iter().map(|alias| alias.to_lowercase()) {
                    inside.entry((named.class, alias.clone())).or_insert(index);
                    meant.entry(alias).or_insert(index);
                }
            }
        }
        Self { all, meant, inside }
    }

    /// All of them, by class and name; hidden ones too.
    pub fn all(&self) -> Vec<&Named> {
        let mut all: Vec<&Named> = self.all.iter().collect();
        all.sort_by(|a, b| (a.class, &a.name).cmp(&(b.class, &b.name)));
        all
    }

    /// What is meant by a name, another name, or one with its class as in `agent:worker`, in any
    /// case, with or without its slash.
    pub fn find(&self, text: &str) -> Option<&Named> {
        let text = bare(text);
        // Only this reaches what another one hides, so it comes first.
        let qualified = in_class(&text).and_then(|(class, name)| {
            self.inside.get(&(class, name.to_owned())).and_then(|index| self.all.get(*index))
        });
        qualified.or_else(|| self.all.get(*self.meant.get(&text)?))
    }

    /// The same; the error says what was probably meant, or what to use instead.
    pub fn get(&self, text: &str) -> Result<&Named, Unknown> {
        self.find(text).ok_or_else(|| {
            let whole = bare(text);
            let instead = instead_of(&whole);
            let (class, name) = match in_class(&whole) {
                Some((class, name)) => (Some(class), name),
                None => (None, whole.as_str()),
            };
            let known = self.suggested(class);
            let begins = || self.search(&whole).first().map(|named| named.name.as_str());
            let near = nearest(name, known).or_else(begins).filter(|_| !name.is_empty());
            Unknown { class, name: name.to_owned(), near: near.map(str::to_owned), instead }
        })
    }

    /// The names and other names of those of a class, or of all, that are not hidden.
    fn suggested(&self, wanted: Option<Class>) -> impl Iterator<Item = &str> {
        let is_shown = |index: &usize| self.all.get(*index).is_some_and(|named| !named.hidden);
        let fits = move |((class, _), index): &(&(Class, String), &usize)| {
            wanted.is_none_or(|wanted| wanted == *class) && is_shown(index)
        };
        self.inside.iter().filter(fits).map(|((_, name), _)| name.as_str())
    }

    /// Those whose name or other name begins like this: the one that is called so first, then by
    /// class and name. Hidden ones are not suggested, except to who knows their name.
    pub fn search(&self, beginning: &str) -> Vec<&Named> {
        let text = bare(beginning);
        let exact = self.find(&text).map(|named| (named.class, &named.name));
        let (class, text) = match in_class(&text) {
            Some((class, name)) => (Some(class), name),
            None => (None, text.as_str()),
        };
        let begins = |name: &String| name.to_lowercase().starts_with(text);
        let fits = |named: &&Named| {
            let is_exact = exact == Some((named.class, &named.name));
            let is_like = class.is_none_or(|class| class == named.class)
                && !named.hidden
                && (begins(&named.name) || named.aliases.iter().any(begins));
            is_exact || is_like
        };
        let mut found: Vec<&Named> = self.all.iter().filter(fits).collect();
        found.sort_by_cached_key(|named| {
            let is_exact = exact == Some((named.class, &named.name));
            (!is_exact, named.class, !begins(&named.name), &named.name)
        });
        found
    }

    /// The names that mean something else than one would think.
    pub fn shadowed(&self) -> impl Iterator<Item = Shadowed<'_>> {
        self.all.iter().flat_map(move |loser| {
            std::iter::once(&loser.name).chain(&loser.aliases).filter_map(move |name| {
                let winner = self.find(name).filter(|winner| !std::ptr::eq(*winner, loser))?;
                // With its class in front, a name means the first of that class.
                let short = format!("{}:{name}", loser.class.word());
                let is_enough = self.find(&short).is_some_and(|found| std::ptr::eq(found, loser));
                let reach = format!("/{}", if is_enough { short } else { loser.qualified() });
                Some(Shadowed { name, loser, winner, reach })
            })
        })
    }
}

/// A name without its slash, in lower case.
fn bare(text: &str) -> String {
    let text = text.trim();
    text.strip_prefix('/').unwrap_or(text).to_lowercase()
}

/// The class and the name in `agent:worker`.
fn in_class(text: &str) -> Option<(Class, &str)> {
    let (word, name) = text.split_once(':')?;
    let class = Class::QUALIFIED.into_iter().find(|class| class.word() == word)?;
    Some((class, name))
}

/// A name that nothing has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// What it was said to be.
    pub class: Option<Class>,
    /// What was asked for.
    pub name: String,
    /// What was probably meant.
    pub near: Option<String>,
    /// What to use instead of something that was there once.
    pub instead: Option<&'static str>,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(instead) = self.instead {
            return write!(f, "/{} is gone: {instead}", self.name);
        }
        let what = match self.class {
            Some(Class::Workflow) => "Workflow",
            Some(Class::Entity(Kind::Skill)) => "Skill",
            Some(Class::Entity(Kind::Agent)) => "Agent",
            Some(Class::Entity(Kind::Command) | Class::BuiltIn) | None => "Command",
        };
        write!(f, "{what} not found: \"{}\"", self.name)?;
        match &self.near {
            Some(near) => write!(f, " (did you mean \"{near}\"?)"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Unknown {}

/// What to use instead of a name that was there in earlier versions.
pub fn instead_of(name: &str) -> Option<&'static str> {
    match bare(name).as_str() {
        "create-feature-list" => Some(
            "Ralph makes its own task list: /ralph \"<prompt-or-spec-path>\"; for an old list, \
             atomic migrate <feature-list.json> --ralph",
        ),
        "atomic" => Some("use /ralph \"<prompt-or-spec-path>\""),
        "status" => Some("the task list is on the screen; atomic sessions show last prints it"),
        "approve" | "reject" => Some(
            "a question is answered where it is asked, or with atomic answer <session> <answer>",
        ),
        name if name.starts_with("ralph:") => {
            Some("use /ralph \"<prompt-or-spec-path>\"; /ralph --resume <uuid> continues a session")
        }
        _ => None,
    }
}

/// The commands that are part of the chat, with their hints and what they are for.
const BUILT_IN: &[(&str, &str, &str)] = &[
    ("help", "[command]", "Show what can be typed, or what one command does"),
    ("theme", "[dark|light]", "Change the colours"),
    ("clear", "", "Start a new conversation"),
    ("compact", "[focus]", "Summarise the conversation so that it takes less room"),
    ("exit", "", "Leave"),
    ("model", "select | refresh | list [provider] | <name>", "Show or change the model"),
    ("mcp", "[enable|disable name]", "Show the MCP servers, or turn one on or off"),
    ("resume", "[session]", "Continue a session"),
];

fn built_in_commands() -> impl Iterator<Item = Named> {
    BUILT_IN.iter().map(|(name, hint, description)| Named {
        class: Class::BuiltIn,
        name: (*name).to_owned(),
        aliases: vec![],
        description: (*description).into(),
        hint: Some((*hint).to_owned()).filter(|hint| !hint.is_empty()),
        hidden: false,
        untrusted: false,
    })
}

/// The same for workflows.
const WORKFLOW_HINTS: &[(&str, &str)] = &[("ralph", "\"<prompt-or-spec-path>\" | --resume <uuid>")];

/// What is usually typed after these names, for those of them that do not say so themselves.
const HINTS: &[(&str, &str)] = &[
    ("commit", "[message] | --amend"),
    ("research-codebase", "<question or topic>"),
    ("create-spec", "<research-doc-path>"),
    ("implement-feature", "[feature-id]"),
    ("create-gh-pr", "[title]"),
    ("explain-code", "<file-path> [function-name]"),
];

fn with_usual_hint(mut named: Named) -> Named {
    let table = match named.class {
        Class::Workflow => WORKFLOW_HINTS,
        Class::Entity(Kind::Command | Kind::Skill) => HINTS,
        Class::BuiltIn | Class::Entity(Kind::Agent) => &[],
    };
    let usual = table.iter().find(|(name, _)| named.name.eq_ignore_ascii_case(name));
    named.hint = named.hint.or_else(|| usual.map(|(_, hint)| (*hint).to_owned()));
    named
}
