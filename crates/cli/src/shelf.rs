//! Workflows by name: the project's, the user's, the built-in ones.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_files::{FileKind, PROJECT_LIMIT, Refusal};
use atomic_registry::project::ProjectFiles;
use atomic_registry::{Class, Named};
use atomic_workflow::descriptor::{Document, Fault, Found, Library, called, is_callable};
use atomic_workflow::typescript::{Authored, hash_of};
use atomic_workflow::{Source, Workflow, builtin};
use serde_json::Value;

use crate::gate::{CodeUnit, Gate};
use crate::home;

/// Where the workflows of a project are.
pub(crate) const FOLDER: &str = ".atomic/workflows";

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
    /// Decides whether the code of a file may be run.
    pub(crate) gate: Gate,
    /// The files of a project that is not trusted, and its folder of workflows.
    untrusted: Option<(ProjectFiles, PathBuf)>,
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
    /// Whether it belongs to a project that is not trusted.
    untrusted: bool,
}

impl Shelf {
    /// The workflows that can be named in the project in this folder. Without trust the project's
    /// replace no other.
    pub(crate) fn of(project: &Path, is_trusted: bool) -> Self {
        let files = || ProjectFiles::of(project, home::user().as_deref()).ok();
        let untrusted = (!is_trusted).then(files).flatten();
        let untrusted = untrusted.map(|files| (files, project.join(FOLDER)));
        let mut shelf = Self { untrusted, ..Self::default() };
        let mut cards = vec![];
        for folder in folders(project) {
            let is_projects = folder.starts_with(project);
            let found = shelf.files_in(&folder).into_iter();
            let found = found.filter_map(|path| {
                // Nothing of a file outside of the project is shown.
                let is_out = shelf.leads_out(&path);
                card_in(path, is_out)
            });
            let untrusted = is_projects && !is_trusted;
            cards.extend(found.map(|card| Card { untrusted, ..card }).collect::<Vec<_>>());
        }
        for workflow in builtin::all() {
            let name = workflow.name.to_string();
            let (aliases, description) = (workflow.aliases, workflow.description.into());
            cards.push(Card { name, aliases, description, ..Card::default() });
        }
        // The project's come first where they are trusted, and take only free names otherwise.
        let (last, first): (Vec<Card>, Vec<Card>) =
            cards.into_iter().partition(|card| card.untrusted);
        for cards in [first, last] {
            shelf.add_all(cards);
        }
        shelf
    }

    /// Adds workflows, and then their other names where they are free.
    fn add_all(&mut self, cards: Vec<Card>) {
        let known = self.cards.len();
        cards.into_iter().for_each(|card| self.add(card));
        for (index, card) in self.cards.iter().enumerate().skip(known) {
            for alias in &card.aliases {
                self.meant.entry(alias.to_lowercase()).or_insert(index);
            }
        }
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
    fn add(&mut self, card: Card) {
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
            untrusted: card.untrusted,
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

/// The text of a workflow.
pub(crate) fn text_of(path: &Path) -> std::io::Result<String> {
    atomic_files::read_text(path, PROJECT_LIMIT)
}

/// What is said of a file that cannot be read.
pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Fault {
    let is_folder = atomic_files::refusal(error) == Some(Refusal::NotRegular(FileKind::Folder));
    let remedies = [
        (ErrorKind::InvalidData, "save it as UTF-8"),
        (ErrorKind::FileTooLarge, "shorten it, or split it into several files"),
        (ErrorKind::NotFound, "it is a link that leads nowhere; mend it, or remove it"),
        (ErrorKind::PermissionDenied, "let yourself read it"),
    ];
    let remedy = remedies.iter().find(|(kind, _)| *kind == error.kind());
    let remedy = match remedy {
        Some((_, help)) => help,
        None if is_folder => "a workflow is one file; name that",
        None => "put a file with the text of a workflow there",
    };
    Fault::of_file(path, "ATM709", format!("it cannot be read: {error}"), remedy)
}

/// How the files of workflows end that are code.
const CODE: [&str; 4] = ["ts", "mts", "js", "mjs"];

/// Whether a file holds code, by its name.
pub(crate) fn is_code(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    // `atomic.d.ts` and the like say what there is, and are nothing themselves.
    let is_types = path.file_stem().is_some_and(|stem| stem.as_encoded_bytes().ends_with(b".d"));
    ending.is_some_and(|ending| CODE.contains(&ending)) && !is_types
}

/// Whether a file may hold a workflow, by its name.
pub(crate) fn is_workflow(path: &Path) -> bool {
    is_code(path) || path.extension().is_some_and(|ending| ending == "json") && !is_script(path)
}

/// Whether a file is the script of a test, which lies beside the workflow it is for.
fn is_script(path: &Path) -> bool {
    path.file_stem().is_some_and(|stem| stem.as_encoded_bytes().ends_with(b".script"))
}

/// The files of a project's workflows that are code.
pub(crate) fn code_in(project: &Path) -> Vec<PathBuf> {
    let paths = Shelf::default().files_in(&project.join(FOLDER));
    paths.into_iter().filter(|path| is_code(path)).collect()
}

/// The files beside them that have commands in them: workflows in JSON, and scripts for tests.
pub(crate) fn documents_in(project: &Path) -> Vec<PathBuf> {
    let paths = Shelf::default().files_in(&project.join(FOLDER)).into_iter();
    let is_json = |path: &Path| path.extension().is_some_and(|ending| ending == "json");
    paths.filter(|path| is_json(path) || is_script(path)).collect()
}

/// The folder that the imports of a file must not leave: the `.atomic` it is in, else its
/// repository, else its own.
pub(crate) fn root_of(path: &Path) -> PathBuf {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let own = path.parent().unwrap_or(&path);
    let around = own.ancestors().find(|folder| folder.ends_with(".atomic"));
    let around = around.or_else(|| own.ancestors().find(|folder| folder.join(".git").exists()));
    around.unwrap_or(own).to_owned()
}

/// What a workflow says about itself. What is wrong with the file is told when it is read; nothing
/// of it is run.
fn card_in(path: PathBuf, is_out: bool) -> Option<Card> {
    let text = |path: &Path| if is_out { String::new() } else { text_of(path).unwrap_or_default() };
    if is_code(&path) {
        let text = text(&path);
        let about = atomic_workflow::typescript::about(&path, &text);
        return Some(Card {
            name: called(about.name.as_deref(), &path),
            aliases: about.aliases.into_iter().filter(|alias| is_callable(alias)).collect(),
            description: about.description.unwrap_or_default().into(),
            hint: about.argument_hint,
            path: Some(path),
            untrusted: false,
        });
    }
    if !is_workflow(&path) {
        return None;
    }
    let text = text(&path);
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
        untrusted: false,
    })
}

impl Shelf {
    /// Whether a workflow of a project that is not trusted is a link out of its repository.
    fn leads_out(&self, path: &Path) -> bool {
        let Some((files, folder)) = &self.untrusted else { return false };
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let is_outside =
            |error: &std::io::Error| atomic_files::refusal(error) == Some(Refusal::Outside);
        path.starts_with(folder)
            && files.require_inside(&path).is_err_and(|error| is_outside(&error))
    }

    /// The document in a file; of a file that is code, what the code says when it is run, if it
    /// may be.
    pub(crate) fn open(&self, path: &Path) -> Result<Document, Vec<Fault>> {
        let is_out = self.leads_out(path);
        if is_code(path) {
            let authored = Authored::read(path, &root_of(path));
            // A parse error would quote the file outside.
            let authored = authored.map_err(|faults| match is_out {
                true => vec![unreadable(path, &Refusal::Outside.into())],
                false => faults,
            })?;
            self.gate.admit(CodeUnit::of(&authored))?;
            return authored.run();
        }
        let text = text_of(path).map_err(|error| vec![unreadable(path, &error)])?;
        if is_out {
            self.gate.admit(CodeUnit::plain(path, &hash_of(&text)))?;
        }
        Ok(Document::plain(Source::new(path, text)))
    }
}

impl Library for Shelf {
    fn find(&self, name: &str) -> Option<Found> {
        if let Some(path) = self.file(name) {
            return Some(match self.open(path) {
                Ok(document) => Found::Document(Box::new(document)),
                Err(faults) => Found::Broken(faults),
            });
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
pub(crate) struct Kept<'s>(pub(crate) &'s BTreeMap<String, Source>, pub(crate) &'s Gate);

impl Library for Kept<'_> {
    fn find(&self, name: &str) -> Option<Found> {
        if let Some(source) = self.0.get(name) {
            return Some(match crate::load::kept(source, self.1) {
                Ok(document) => Found::Document(Box::new(document)),
                Err(faults) => Found::Broken(faults),
            });
        }
        builtin::find(name).ok().map(|workflow| Found::Ready(Box::new(workflow)))
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}
