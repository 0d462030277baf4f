//! Everything that can be called by name, and how it is found.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_graph::check::nearest;

use crate::allowed::Tools;
use crate::discover::discover;
use crate::entity::{Entity, Kind, Origin, Prompt, Provider, Scope};
use crate::finding::Finding;
use crate::places::Folders;
use crate::project::{Definition, DefinitionKind, ProjectFiles, commands};
use crate::{builtin, files, frontmatter, opencode};

/// How many files and folders are looked at in one folder of a provider, those inside it included.
const MOST_ENTRIES: usize = 20_000;

/// Commands, skills and agents from everywhere.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// The nearest first; those that another one hides come after it.
    entities: Vec<Entity>,
    /// By kind and name or other name in lower case: the one that is meant.
    names: BTreeMap<(Kind, String), usize>,
    /// What was found out on the way.
    pub findings: Vec<Finding>,
    /// Whether the project's entities may replace others.
    is_trusted: bool,
    /// The files of a project that is not trusted: links out of it are not followed.
    project: Option<Arc<ProjectFiles>>,
    /// Links out of it.
    links_out: Vec<(Kind, PathBuf)>,
    /// The restrictions that OpenCode has for turns without an agent.
    turns: Tools,
}

impl Registry {
    /// Reads everything there is.
    pub fn read(folders: &Folders) -> Self {
        Self::read_at_most(folders, MOST_ENTRIES)
    }

    /// The same with another limit of files and folders that are looked at in each place.
    pub fn read_at_most(folders: &Folders, entries: usize) -> Self {
        // The home folder is the user's own, and so are the links in it.
        let is_guarded = !folders.trusted && !folders.home_is_project();
        let files = || ProjectFiles::of(&folders.project, folders.home.as_deref()).ok();
        let project = is_guarded.then(files).flatten().map(Arc::new);
        let mut found = discover(folders, project.as_deref(), entries);
        found.entities.extend(builtin::all());
        let registry = Self::of(found.entities, found.findings, folders.trusted);
        Self { project, links_out: found.links_out, turns: found.turns, ..registry }
    }

    /// The tools of a turn without an agent on a backend. OpenCode's settings restrict such a turn
    /// on OpenCode, and only there.
    pub fn tools_of_turns(&self, backend: &str) -> Option<&Tools> {
        (backend == Provider::OpenCode.name()).then_some(&self.turns)
    }

    /// What ships with the program, and nothing else.
    pub fn embedded() -> Self {
        Self::of(builtin::all(), vec![], true)
    }

    fn of(mut entities: Vec<Entity>, findings: Vec<Finding>, is_trusted: bool) -> Self {
        // Files of one folder stay in their order: the first of two with one name is meant.
        entities.sort_by_key(|entity| {
            let Origin { scope, provider, .. } = entity.origin;
            let is_last = scope == Scope::Project && !is_trusted;
            (entity.kind, is_last, scope, provider)
        });
        let mut registry = Self { entities, findings, is_trusted, ..Self::default() };
        for untrusted in [false, true] {
            registry.add_names(untrusted);
        }
        let doubles: Vec<Finding> = registry.replaced().filter_map(double).collect();
        registry.findings.extend(doubles);
        registry
    }

    /// Adds the names of the entities that are trusted, or of the others, where they are free.
    fn add_names(&mut self, untrusted: bool) {
        let group: Vec<usize> = (0..self.entities.len())
            .filter(|index| self.is_untrusted(&self.entities[*index]) == untrusted)
            .collect();
        for index in group.iter().copied() {
            let entity = &self.entities[index];
            let key = (entity.kind, entity.name.to_lowercase());
            let meant = *self.names.entry(key).or_insert(index);
            // Whoever replaces `commit` means theirs by `ci`, too.
            if entity.origin.scope == Scope::BuiltIn && meant != index {
                let usual = entity.aliases.clone();
                let own = &mut self.entities[meant].aliases;
                own.extend(
                    usual.into_iter().filter(|alias| !own.contains(alias)).collect::<Vec<_>>(),
                );
            }
        }
        // A name beats another entity's other name, however near that is.
        for index in group {
            let entity = &self.entities[index];
            if self.names.get(&(entity.kind, entity.name.to_lowercase())) != Some(&index) {
                continue;
            }
            for alias in &entity.aliases {
                self.names.entry((entity.kind, alias.to_lowercase())).or_insert(index);
            }
        }
    }

    /// Whether an entity belongs to a project that is not trusted.
    pub(crate) fn is_untrusted(&self, entity: &Entity) -> bool {
        entity.origin.scope == Scope::Project && !self.is_trusted
    }

    /// Whether the project's entities may replace others.
    pub fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// Finds one by its name, or another name, in any case.
    pub fn find(&self, kind: Kind, name: &str) -> Option<&Entity> {
        let index = self.names.get(&(kind, name.to_lowercase()))?;
        self.entities.get(*index)
    }

    /// Finds the agent for a role of a built-in workflow: one of `.atomic/agents`, the project's
    /// only when it is trusted, else the built-in one. Other folders have agents for other
    /// programs, whose names say nothing about this role.
    pub fn role(&self, name: &str) -> Result<&Entity, NotFound> {
        let is_for_roles = |entity: &&Entity| match entity.origin.scope {
            Scope::BuiltIn => true,
            Scope::Project => self.is_trusted && entity.origin.provider == Provider::Atomic,
            Scope::User => entity.origin.provider == Provider::Atomic,
            Scope::Managed => false,
        };
        let found = self.agents_called(name).find(is_for_roles);
        found.map_or_else(|| self.own_agent(name), Ok)
    }

    /// The agents that have the name of a role and are not used for it.
    pub fn unused_for_role(&self, name: &str) -> Vec<&Entity> {
        let used = self.role(name).ok();
        let is_used = |entity: &Entity| used.is_some_and(|used| std::ptr::eq(used, entity));
        self.agents_called(name)
            .filter(|entity| !is_used(entity) && entity.origin.scope != Scope::BuiltIn)
            .collect()
    }

    /// An agent by name. Without trust the project's do not count.
    fn own_agent(&self, name: &str) -> Result<&Entity, NotFound> {
        let entity = self.get(Kind::Agent, name)?;
        if entity.origin.scope == Scope::Project && !self.is_trusted {
            return Err(NotFound { kind: Kind::Agent, name: name.to_owned(), near: None });
        }
        Ok(entity)
    }

    fn agents_called(&self, name: &str) -> impl Iterator<Item = &Entity> {
        let is_called = move |entity: &&Entity| {
            entity.kind == Kind::Agent && entity.name.eq_ignore_ascii_case(name)
        };
        self.entities.iter().filter(is_called)
    }

    /// The definitions among the project's entities: those that would replace another one, and
    /// those that bring hooks or MCP servers along. Paths are from the repository's root.
    pub fn definitions(&self, root: &Path) -> Vec<Definition> {
        let (own, others): (Vec<&Entity>, Vec<&Entity>) =
            self.entities.iter().partition(|entity| entity.origin.scope == Scope::Project);
        // By name, the kind that comes last in the order of names; another name is hidden by any.
        let mut taken: BTreeMap<String, (Kind, Scope)> = BTreeMap::new();
        for entity in others {
            let scope = entity.origin.scope;
            let aliases = entity.aliases.iter().map(|alias| (alias, Kind::Agent));
            for (name, kind) in [(&entity.name, entity.kind)].into_iter().chain(aliases) {
                let known = taken.entry(name.to_lowercase()).or_insert((kind, scope));
                *known = (*known).max((kind, scope));
            }
        }
        let mut found = vec![];
        for entity in own {
            let path = entity.origin.path.clone().unwrap_or_default();
            let path = path.strip_prefix(root).unwrap_or(&path).to_owned();
            let replaced = taken.get(&entity.name.to_lowercase());
            if let Some((_, scope)) = replaced.filter(|(kind, _)| entity.kind <= *kind) {
                let detail = format!("replaces {}", scope.theirs());
                let kind = entity.kind.definition();
                let text = self.text_of(entity);
                let definition = Definition::new(kind, &path, &entity.name, &text);
                found.push(definition.detailed(detail));
            }
            for (key, kind) in BROUGHT_ALONG {
                let value = entity.more.get(*key);
                found.extend(value.map(|value| {
                    let name = format!("{} of {}", key, entity.name);
                    let definition = Definition::new(*kind, &path, name, &value.to_string());
                    definition.listing(commands(value))
                }));
            }
        }
        found.extend(self.links_out.iter().map(|(kind, link)| {
            // Nothing behind the link is read before trust, so where it leads is what counts.
            let target = std::fs::read_link(link).unwrap_or_default().display().to_string();
            let inside = link.strip_prefix(root).unwrap_or(link);
            let name = inside.display().to_string();
            let definition = Definition::new(kind.definition(), inside, name, &target);
            definition.detailed(format!("link out of the repository, to {target}"))
        }));
        found
    }

    /// The files that an entity is read through.
    fn files_of(&self, entity: &Entity) -> Option<&ProjectFiles> {
        self.project.as_deref().filter(|_| entity.origin.scope == Scope::Project)
    }

    /// The whole text of an entity, for its hash.
    fn text_of(&self, entity: &Entity) -> String {
        match (&entity.prompt, &entity.origin.path) {
            (Prompt::InFile, Some(path)) => files::read_in(path, self.files_of(entity))
                .map_or_else(|finding| finding.message, |text| text.text),
            (Prompt::Text(text) | Prompt::WithFiles { text, .. }, _) => {
                format!("{text}\n{:?}", entity.tools)
            }
            (Prompt::Embedded(text), _) => (*text).to_owned(),
            (Prompt::InFile, None) => String::new(),
        }
    }

    /// Finds one; the error says what was probably meant.
    pub fn get(&self, kind: Kind, name: &str) -> Result<&Entity, NotFound> {
        self.find(kind, name).ok_or_else(|| {
            let is_shown = |known: &&str| self.find(kind, known).is_some_and(|e| !e.hidden);
            let near = nearest(name, self.names(kind).filter(is_shown)).map(str::to_owned);
            NotFound { kind, name: name.to_owned(), near }
        })
    }

    /// Every name and other name of a kind, in lower case.
    pub fn names(&self, kind: Kind) -> impl Iterator<Item = &str> {
        self.names.keys().filter(move |(of, _)| *of == kind).map(|(_, name)| name.as_str())
    }

    /// Those that are meant by their names, by kind and name; hidden ones too.
    pub fn all(&self) -> impl Iterator<Item = &Entity> {
        let is_meant = |(index, entity): &(usize, &Entity)| {
            self.names.get(&(entity.kind, entity.name.to_lowercase())) == Some(index)
        };
        self.entities.iter().enumerate().filter(is_meant).map(|(_, entity)| entity)
    }

    /// All of them, whether their names mean them or others.
    pub fn every(&self) -> impl Iterator<Item = &Entity> {
        self.entities.iter()
    }

    /// Every file something was read from, whether its name means it or not.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.entities.iter().filter_map(|entity| entity.origin.path.as_ref())
    }

    /// Those that are not meant by their names, each with the one that is.
    pub fn replaced(&self) -> impl Iterator<Item = (&Entity, &Entity)> {
        self.entities.iter().enumerate().filter_map(|(index, entity)| {
            let meant = *self.names.get(&(entity.kind, entity.name.to_lowercase()))?;
            Some((entity, self.entities.get(meant).filter(|_| meant != index)?))
        })
    }

    /// Those that one hides: of the same kind and name, farther away.
    pub fn overridden<'s>(&'s self, entity: &'s Entity) -> impl Iterator<Item = &'s Entity> {
        let of_it = move |(_, meant): &(&Entity, &Entity)| std::ptr::eq(*meant, entity);
        self.replaced().filter(of_it).map(|(replaced, _)| replaced)
    }

    /// The files that belong to an entity of ours, by their paths beside it; somebody else's are
    /// where its own file is.
    pub fn pages(&self, entity: &Entity) -> &'static [(&'static str, &'static str)] {
        if entity.origin.scope == Scope::BuiltIn { builtin::pages(&entity.name) } else { &[] }
    }

    /// How many there are of a kind in the folders of a provider, or among the built-in ones,
    /// hidden by others or not.
    pub fn count(&self, provider: Option<Provider>, kind: Kind) -> usize {
        let is_one = |entity: &&Entity| {
            let from = entity.origin.path.as_ref().map(|_| entity.origin.provider);
            entity.kind == kind && from == provider
        };
        self.entities.iter().filter(is_one).count()
    }

    /// The prompt of an entity, read now if it is in a file.
    pub fn prompt(&self, entity: &Entity) -> Result<String, Finding> {
        match &entity.prompt {
            Prompt::Text(text) => Ok(text.clone()),
            Prompt::Embedded(text) => Ok((*text).to_owned()),
            Prompt::WithFiles { text, home } => opencode::filled(entity, text, home.as_deref()),
            Prompt::InFile => {
                let path = entity.origin.path.clone().unwrap_or_default();
                let text = files::read_in(&path, self.files_of(entity))?.text;
                let document = frontmatter::read(&text).map_err(|problem| {
                    Finding::skipped(&path, problem.message, "mend it").at(problem.line)
                })?;
                Ok(document.body.trim().to_owned())
            }
        }
    }
}

/// What the head of an entity can bring along, by its key in lower case.
const BROUGHT_ALONG: &[(&str, DefinitionKind)] = &[
    ("hooks", DefinitionKind::Hook),
    ("mcpservers", DefinitionKind::McpServer),
    ("mcpServers", DefinitionKind::McpServer),
    ("mcp-servers", DefinitionKind::McpServer),
    ("mcp_servers", DefinitionKind::McpServer),
];

/// Two of one folder with one name: nobody could say which is meant.
fn double((entity, meant): (&Entity, &Entity)) -> Option<Finding> {
    let place = |entity: &Entity| (entity.origin.scope, entity.origin.provider);
    let path = entity.origin.path.as_ref().filter(|_| place(entity) == place(meant))?;
    let other = meant.origin.path.clone().unwrap_or_default();
    let message = format!(
        "the {} `{}` is also in {}, which is used",
        entity.kind.word(),
        entity.name,
        other.display()
    );
    Some(Finding::skipped(path, message, "give one of them another name"))
}

/// A name that nothing has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFound {
    /// What kind of thing was wanted.
    pub kind: Kind,
    /// What was asked for.
    pub name: String,
    /// What was probably meant.
    pub near: Option<String>,
}

impl std::fmt::Display for NotFound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = match self.kind {
            Kind::Command => "Command",
            Kind::Skill => "Skill",
            Kind::Agent => "Agent",
        };
        write!(f, "{word} not found: \"{}\"", self.name)?;
        match &self.near {
            Some(near) => write!(f, " (did you mean \"{near}\"?)"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for NotFound {}
