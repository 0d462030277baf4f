//! Workflows by name: the project's, the user's, the built-in ones.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_registry::{Class, Named};
use atomic_workflow::descriptor::{Document, Found, Library, called, is_callable};
use atomic_workflow::{Source, Workflow, builtin};
use serde_json::Value;

use crate::home;

/// Where the workflows of a project are.
const FOLDER: &str = ".atomic/workflows";

/// The workflows that can be named in a project: its own before the user's before the built-in.
#[derive(Default)]
pub(crate) struct Shelf {
    /// The nearest first; no two have the same name.
    cards: Vec<Card>,
    /// By name, and by other names where nothing has them as its name, in lower case: which one.
    meant: BTreeMap<String, usize>,
    /// Files that another one of the same name replaces, with that name.
    pub(crate) replaced: Vec<(PathBuf, String)>,
    /// Folders that cannot be read, and why.
    pub(crate) unreadable: Vec<(PathBuf, String)>,
}

/// What a workflow says about itself.
#[derive(Default)]
struct Card {
    /// What can be typed.
    name: String,
    aliases: Vec<String>,
    description: Arc<str>,
    hint: Option<String>,
    /// Its file; a built-in one has none.
    path: Option<PathBuf>,
}

impl Shelf {
    /// The workflows that can be named in the project in this folder.
    pub(crate) fn of(project: &Path) -> Self {
        let mut shelf = Self::default();
        for folder in folders(project) {
            for path in shelf.files_in(&folder) {
                shelf.add(card_in(path));
            }
        }
        for workflow in builtin::all() {
            let name = workflow.name.to_string();
            let (aliases, description) = (workflow.aliases, workflow.description.into());
            shelf.add(Some(Card { name, aliases, description, ..Card::default() }));
        }
        for (index, card) in shelf.cards.iter().enumerate() {
            for alias in &card.aliases {
                shelf.meant.entry(alias.to_lowercase()).or_insert(index);
            }
        }
        shelf
    }

    fn files_in(&mut self, folder: &Path) -> Vec<PathBuf> {
        let read = std::fs::read_dir(folder).and_then(|entries| {
            entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>()
        });
        match read {
            Ok(mut paths) => {
                paths.sort();
                paths
            }
            Err(error) => {
                let is_missing = error.kind() == ErrorKind::NotFound;
                let itself = || (!is_missing).then(|| (folder.to_owned(), error));
                let obstacle = atomic_registry::obstacle(folder).or_else(itself);
                self.unreadable.extend(obstacle.map(|(place, why)| (place, why.to_string())));
                vec![]
            }
        }
    }

    /// Adds a workflow, unless a nearer one has its name. That one then also has the other names
    /// of a built-in one: whoever replaces Ralph means theirs by `loop`, too.
    fn add(&mut self, card: Option<Card>) {
        let Some(card) = card else { return };
        let key = card.name.to_lowercase();
        match (self.meant.get(&key).and_then(|index| self.cards.get_mut(*index)), card.path) {
            (Some(nearer), Some(path)) => self.replaced.push((path, nearer.name.clone())),
            (Some(nearer), None) => nearer.aliases.extend(card.aliases),
            (None, path) => {
                self.meant.insert(key, self.cards.len());
                self.cards.push(Card { path, ..card });
            }
        }
    }

    fn card(&self, name: &str) -> Option<&Card> {
        self.cards.get(*self.meant.get(&name.to_lowercase())?)
    }

    /// The name that is meant by a name, or by another name, in any case.
    pub(crate) fn meant<'a>(&'a self, name: &'a str) -> &'a str {
        self.card(name).map_or(name, |card| card.name.as_str())
    }

    /// Whether a workflow has this name.
    pub(crate) fn is_name(&self, name: &str) -> bool {
        self.card(name).is_some()
    }

    /// The file of the workflow of this name; a built-in one has none.
    pub(crate) fn file(&self, name: &str) -> Option<&Path> {
        self.card(name)?.path.as_deref()
    }

    /// Every workflow, the nearest first.
    pub(crate) fn named(&self) -> impl Iterator<Item = Named> {
        self.cards.iter().map(|card| Named {
            class: Class::Workflow,
            name: card.name.clone(),
            aliases: card.aliases.clone(),
            description: Arc::clone(&card.description),
            hint: card.hint.clone(),
            hidden: false,
        })
    }
}

/// Where the workflows of a project and of a user are, the nearer first.
pub(crate) fn folders(project: &Path) -> Vec<PathBuf> {
    let (user, own) = (home::folder().map(|folder| folder.join("workflows")), project.join(FOLDER));
    let is_same = |user: &PathBuf| {
        let real = user.canonicalize().ok();
        real.is_some() && real == own.canonicalize().ok()
    };
    let user = user.filter(|user| !is_same(user));
    [own].into_iter().chain(user).collect()
}

/// The built-in workflow of this name. Its other names are in the shelf, where they can be lost.
pub(crate) fn built_in(name: &str) -> Option<Workflow> {
    builtin::all().into_iter().find(|workflow| workflow.name.as_str() == name)
}

/// The largest file of a workflow, in bytes.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// The text of a workflow. A pipe or a device might never end.
pub(crate) fn text_of(path: &Path) -> std::io::Result<String> {
    let found = std::fs::metadata(path)?;
    if !found.is_file() && !found.is_dir() {
        return Err(std::io::Error::other("it is no file"));
    }
    if found.len() > MOST_BYTES {
        let most = MOST_BYTES / 1024 / 1024;
        return Err(std::io::Error::other(format!("it is larger than {most} MiB")));
    }
    std::fs::read_to_string(path)
}

/// What a workflow says about itself. What is wrong with the file is told when it is read.
fn card_in(path: PathBuf) -> Option<Card> {
    path.extension().filter(|ending| *ending == "json")?;
    let text = text_of(&path).unwrap_or_default();
    let text = text.trim_start_matches('\u{feff}');
    let document: Value = serde_json::from_str(text).unwrap_or_default();
    let word = |value: &Value| value.as_str().filter(|word| !word.is_empty()).map(str::to_owned);
    let aliases = document.get("aliases").and_then(Value::as_array).into_iter().flatten();
    Some(Card {
        name: called(document.get("name").and_then(Value::as_str), &path),
        aliases: aliases.filter_map(word).filter(|alias| is_callable(alias)).collect(),
        description: document.get("description").and_then(word).unwrap_or_default().into(),
        hint: document.get("argumentHint").and_then(word),
        path: Some(path),
    })
}

impl Library for Shelf {
    fn find(&self, name: &str) -> Option<Found> {
        if let Some(path) = self.file(name) {
            let text = text_of(path).ok()?;
            return Some(Found::Document(Document::plain(Source::new(path, text))));
        }
        built_in(self.meant(name)).map(|workflow| Found::Ready(Box::new(workflow)))
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.cards.iter().map(|card| card.name.clone()).collect();
        names.sort();
        names
    }
}

/// The workflows inside the one of a session, as they were when it began. Built-in ones have no
/// file.
pub(crate) struct Kept<'s>(pub(crate) &'s BTreeMap<String, Source>);

impl Library for Kept<'_> {
    fn find(&self, name: &str) -> Option<Found> {
        if let Some(source) = self.0.get(name) {
            return Some(Found::Document(Document::plain(source.clone())));
        }
        builtin::find(name).ok().map(|workflow| Found::Ready(Box::new(workflow)))
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}
