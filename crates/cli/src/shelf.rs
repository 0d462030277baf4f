//! Workflows by name: the project's, the user's, the built-in ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use atomic_registry::{Class, Named};
use atomic_workflow::descriptor::{Document, Found, Library};
use atomic_workflow::{Source, Workflow, builtin};
use serde_json::Value;

use crate::home;

/// Where the workflows of a project are.
const FOLDER: &str = ".atomic/workflows";

/// The workflows that can be named in a project: its own before the user's before the built-in.
#[derive(Default)]
pub(crate) struct Shelf {
    files: BTreeMap<String, PathBuf>,
    cards: BTreeMap<String, Card>,
    /// Other names, with the name that is meant.
    aliases: BTreeMap<String, String>,
    /// Files that another one of the same name replaces, with that name.
    pub(crate) replaced: Vec<(PathBuf, String)>,
}

/// What a workflow says about itself.
#[derive(Default)]
struct Card {
    name: Option<String>,
    aliases: Vec<String>,
    description: String,
    hint: Option<String>,
}

impl Shelf {
    /// The workflows that can be named in the project in this folder.
    pub(crate) fn of(project: &Path) -> Self {
        let mut shelf = Self::default();
        for workflow in builtin::all() {
            let name = workflow.name.to_string();
            let (aliases, description) = (workflow.aliases, workflow.description);
            shelf.call(&name, Card { aliases, description, ..Card::default() });
        }
        for folder in folders(project) {
            let Ok(entries) = std::fs::read_dir(folder) else { continue };
            let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            paths.sort();
            // The project's come last, and so replace the user's.
            paths.into_iter().for_each(|path| shelf.add(path));
        }
        shelf
    }

    fn add(&mut self, path: PathBuf) {
        let is_workflow = path.extension().is_some_and(|ending| ending == "json");
        let stem = path.file_stem().and_then(|name| name.to_str()).filter(|_| is_workflow);
        let Some(stem) = stem.map(str::to_owned) else { return };
        let mut card = card_in(&path);
        let name = card.name.take().unwrap_or(stem);
        self.call(&name, card);
        if let Some(replaced) = self.files.insert(name.clone(), path) {
            self.replaced.push((replaced, name));
        }
    }

    /// Gives a workflow its other names. What was called like it before has none any more.
    fn call(&mut self, name: &str, card: Card) {
        let aliases: Vec<String> = card.aliases.clone();
        if self.cards.insert(name.to_owned(), card).is_some() {
            self.aliases.retain(|_, meant| meant != name);
        }
        self.aliases.extend(aliases.into_iter().map(|alias| (alias, name.to_owned())));
    }

    /// The name that is meant by a name, or by another name, in any case.
    pub(crate) fn meant<'a>(&'a self, name: &'a str) -> &'a str {
        if self.cards.contains_key(name) {
            return name;
        }
        let is_it = |known: &&String| known.to_lowercase() == name.to_lowercase();
        let named = self.aliases.get(name).or_else(|| self.cards.keys().find(is_it));
        let other = || self.aliases.iter().find(|(alias, _)| is_it(alias)).map(|(_, name)| name);
        named.or_else(other).map_or(name, String::as_str)
    }

    /// The file of the workflow of this name; a built-in one has none.
    pub(crate) fn file(&self, name: &str) -> Option<&Path> {
        self.files.get(name).map(PathBuf::as_path)
    }

    /// Every workflow, by name.
    pub(crate) fn named(&self) -> impl Iterator<Item = Named> {
        self.cards.iter().map(|(name, card)| Named {
            class: Class::Workflow,
            name: name.clone(),
            aliases: card.aliases.clone(),
            description: card.description.clone(),
            hint: card.hint.clone(),
            hidden: false,
        })
    }
}

/// Where the workflows of a user and of a project are, the farther first.
pub(crate) fn folders(project: &Path) -> Vec<PathBuf> {
    let (user, own) = (home::folder().map(|folder| folder.join("workflows")), project.join(FOLDER));
    let is_same = |user: &PathBuf| user.canonicalize().ok() == own.canonicalize().ok();
    user.filter(|user| !is_same(user)).into_iter().chain([own.clone()]).collect()
}

/// The built-in workflow of this name. Its other names are in the shelf, where they can be lost.
pub(crate) fn built_in(name: &str) -> Option<Workflow> {
    builtin::all().into_iter().find(|workflow| workflow.name.as_str() == name)
}

/// The text of a workflow. A pipe or a device might never end.
pub(crate) fn text_of(path: &Path) -> std::io::Result<String> {
    let found = std::fs::metadata(path)?;
    if !found.is_file() && !found.is_dir() {
        return Err(std::io::Error::other("it is no file"));
    }
    std::fs::read_to_string(path)
}

/// What a workflow says about itself. What is wrong with the file is told when it is read.
fn card_in(path: &Path) -> Card {
    let text = text_of(path).unwrap_or_default();
    let text = text.trim_start_matches('\u{feff}');
    let document: Value = serde_json::from_str(text).unwrap_or_default();
    let word = |value: &Value| value.as_str().filter(|word| !word.is_empty()).map(str::to_owned);
    let aliases = document.get("aliases").and_then(Value::as_array).into_iter().flatten();
    Card {
        name: document.get("name").and_then(word),
        aliases: aliases.filter_map(word).collect(),
        description: document.get("description").and_then(word).unwrap_or_default(),
        hint: document.get("argumentHint").and_then(word),
    }
}

impl Library for Shelf {
    fn find(&self, name: &str) -> Option<Found> {
        let name = self.meant(name);
        if let Some(path) = self.files.get(name) {
            let text = text_of(path).ok()?;
            return Some(Found::Document(Document::plain(Source::new(path, text))));
        }
        built_in(name).map(|workflow| Found::Ready(Box::new(workflow)))
    }

    fn names(&self) -> Vec<String> {
        self.cards.keys().cloned().collect()
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
