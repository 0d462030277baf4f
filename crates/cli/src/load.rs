//! Workflows by name or file: the project's, the user's, the built-in ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use atomic_event::Created;
use atomic_graph::Graph;
use atomic_graph::check::{Known, Problem};
use atomic_workflow::descriptor::{self, Document, Draft, Found, Library};
use atomic_workflow::{Source, Workflow, agents, builtin};
use serde_json::Value;

use crate::failure::Failure;
use crate::home;

/// Where the workflows of a project, or of a user, are.
const FOLDER: &str = ".atomic/workflows";

/// A workflow with everything that is wrong with it.
pub(crate) struct Loaded {
    /// Absent when it cannot be run.
    pub(crate) workflow: Option<Workflow>,
    /// Its graph, as far as it could be read.
    pub(crate) graph: Option<Graph>,
    /// What is wrong, each as it is shown.
    pub(crate) errors: Vec<String>,
    /// What is odd.
    pub(crate) warnings: Vec<String>,
}

/// Loads what is meant: a file, or the name of a workflow.
pub(crate) fn load(text: &str) -> Result<Loaded, Failure> {
    let shelf = Shelf::of(Path::new(""));
    let path = Path::new(text);
    if text.contains('/') || path.extension().is_some_and(|ending| ending == "json") {
        return Ok(read(&source(path)?, &shelf));
    }
    // A name first: a file that happens to be called `ralph` is not in its way.
    if let Some(path) = shelf.files.get(shelf.meant(text)) {
        return Ok(read(&source(path)?, &shelf));
    }
    match built_in(shelf.meant(text)) {
        Some(workflow) => Ok(judge_ready(workflow)),
        None if path.is_file() => Ok(read(&source(path)?, &shelf)),
        None => {
            let names = shelf.names();
            let near = atomic_graph::check::nearest(text, names.iter().map(String::as_str));
            let near = near.map_or_else(String::new, |n| format!(" (did you mean \"{n}\"?)"));
            let known = names.join(", ");
            Err(Failure::Usage(format!("Workflow not found: {text}{near}\nThere are: {known}")))
        }
    }
}

/// The workflow that is meant, when it is sound.
pub(crate) fn workflow(text: &str) -> Result<Workflow, Failure> {
    let loaded = load(text)?;
    loaded.workflow.ok_or_else(|| Failure::Failed(loaded.errors.join("\n")))
}

/// The workflow of a session: read again from what the session keeps of it.
pub(crate) fn workflow_of(created: &Created) -> Result<Workflow, String> {
    let Some(kept) = &created.origin.source else {
        return builtin::find(created.workflow.as_str()).map_err(|error| error.to_string());
    };
    // Its graph is the one the session keeps, and was found sound when it began.
    let draft = descriptor::read(&Document::plain(kept.clone()), &Kept(&kept.uses));
    draft
        .into_workflow()
        .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

/// Every workflow there is, by name, for `check` without arguments.
pub(crate) fn names() -> Vec<String> {
    Shelf::of(Path::new("")).names()
}

fn source(path: &Path) -> Result<Source, Failure> {
    let text = text_of(path).map_err(|error| {
        Failure::Failed(format!("{}: the workflow cannot be read: {error}", path.display()))
    })?;
    Ok(Source::new(path, text))
}

/// The text of a workflow. A pipe or a device might never end.
fn text_of(path: &Path) -> std::io::Result<String> {
    let found = std::fs::metadata(path)?;
    if !found.is_file() && !found.is_dir() {
        return Err(std::io::Error::other("it is no file"));
    }
    std::fs::read_to_string(path)
}

fn read(source: &Source, library: &dyn Library) -> Loaded {
    judge(descriptor::read(&Document::plain(source.clone()), library))
}

/// What names a workflow may use.
fn known() -> Known {
    let agents = agents::BUILT_IN.iter().map(|agent| agent.name.to_owned()).collect();
    Known {
        agents: Some(agents),
        skills: Some([].into()),
        commands: Some([].into()),
        ..Known::default()
    }
}

fn judge(draft: Draft) -> Loaded {
    let problems = draft.check(&known());
    let (wrong, odd): (Vec<_>, Vec<_>) = draft.faults.iter().partition(|fault| fault.is_error);
    let text = |faults: Vec<&descriptor::Fault>| -> Vec<String> {
        faults.into_iter().map(ToString::to_string).collect()
    };
    let (mut errors, mut warnings) = (text(wrong), text(odd));
    sort(problems, &mut errors, &mut warnings);
    let graph = draft.graph().cloned();
    let workflow = draft.into_workflow().ok().filter(|_| errors.is_empty());
    Loaded { workflow, graph, errors, warnings }
}

fn judge_ready(workflow: Workflow) -> Loaded {
    let functions = workflow.functions.ids().cloned().collect();
    let known = Known { functions: Some(functions), ..known() };
    let uses = &atomic_workflow::names_used;
    let spans = atomic_graph::check::Spans::default();
    let problems = atomic_graph::check::check(&workflow.graph, uses, &known, &spans);
    let (mut errors, mut warnings) = (vec![], vec![]);
    sort(problems, &mut errors, &mut warnings);
    let graph = Some(workflow.graph.clone());
    Loaded { workflow: Some(workflow).filter(|_| errors.is_empty()), graph, errors, warnings }
}

fn sort(problems: Vec<Problem>, errors: &mut Vec<String>, warnings: &mut Vec<String>) {
    for problem in problems {
        if problem.is_error() { &mut *errors } else { &mut *warnings }.push(problem.to_string());
    }
}

/// The workflows that can be named in a project: its own before the user's before the built-in.
#[derive(Default)]
struct Shelf {
    files: BTreeMap<String, PathBuf>,
    /// Other names, with the name that is meant.
    aliases: BTreeMap<String, String>,
}

impl Shelf {
    /// The workflows that can be named in the project in this folder.
    fn of(project: &Path) -> Self {
        let mut shelf = Self::default();
        for workflow in builtin::all() {
            shelf.call(workflow.name.as_str(), workflow.aliases);
        }
        let user = home::folder().map(|folder| folder.join("workflows"));
        for folder in user.into_iter().chain([project.join(FOLDER)]) {
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
        let (name, aliases) = names_in(&path);
        let name = name.unwrap_or(stem);
        self.call(&name, aliases);
        self.files.insert(name, path);
    }

    /// Gives a workflow its other names. What was called like it before has none any more.
    fn call(&mut self, name: &str, aliases: Vec<String>) {
        self.aliases.retain(|_, meant| meant != name);
        self.aliases.extend(aliases.into_iter().map(|alias| (alias, name.to_owned())));
    }

    /// The name that is meant by a name, or by another name.
    fn meant<'a>(&'a self, name: &'a str) -> &'a str {
        let is_name = self.files.contains_key(name) || built_in(name).is_some();
        self.aliases.get(name).filter(|_| !is_name).map_or(name, String::as_str)
    }
}

/// The built-in workflow of this name. Its other names are in the shelf, where they can be lost.
fn built_in(name: &str) -> Option<Workflow> {
    builtin::all().into_iter().find(|workflow| workflow.name.as_str() == name)
}

/// What a workflow calls itself. What is wrong with the file is told when it is read.
fn names_in(path: &Path) -> (Option<String>, Vec<String>) {
    let text = text_of(path).unwrap_or_default();
    let text = text.trim_start_matches('\u{feff}');
    let document: Value = serde_json::from_str(text).unwrap_or_default();
    let word = |value: &Value| value.as_str().filter(|word| !word.is_empty()).map(str::to_owned);
    let aliases = document.get("aliases").and_then(Value::as_array).into_iter().flatten();
    (document.get("name").and_then(word), aliases.filter_map(word).collect())
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
        let built_in = builtin::all().into_iter().map(|workflow| workflow.name.to_string());
        let mut names: Vec<String> = self.files.keys().cloned().chain(built_in).collect();
        names.sort();
        names.dedup();
        names
    }
}

/// The workflows inside the one of a session, as they were when it began. Built-in ones have no
/// file.
struct Kept<'s>(&'s BTreeMap<String, Source>);

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
