//! A whole document: what the workflow is called, its graph, and the state it begins with.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use atomic_event::{Patch, WorkflowName};
use atomic_graph::check::{Spans, typed};
use atomic_graph::{Graph, Key, NodeId};

use super::fault::{Faults, code};
use super::fields::Fields;
use super::graph::{Defaults, MAX_ITERATIONS};
use super::json::{self, Body, Item};
use super::place::Places;
use super::reader::Reader;
use super::shelf::Shelf;
use super::{Document, Draft, Located, ScriptPart};
use crate::version::unmet;
use crate::{Action, Functions, Initial, Text, Workflow};

/// Where sessions live when a workflow does not say.
const SESSIONS_DIR: &str = ".atomic/sessions";

/// The one node of a workflow without a graph.
const CHAT: &str = "chat";

/// Reads a document; the error is the circle that it closes.
pub(super) fn read(document: &Document, shelf: &mut Shelf<'_>) -> Result<Draft, Vec<String>> {
    let text = document.json.as_deref().unwrap_or(&document.source.text);
    let text = text.trim_start_matches('\u{feff}');
    let file = document.source.path.as_path();
    let places = Places::new(file, text, document.locate.as_deref());
    let mut faults = Faults::new(&places, None);
    let root = match json::parse(text) {
        Ok(root) => root,
        Err(_) if text.trim().is_empty() => {
            let remedy = "write a workflow: {\"name\": …, \"nodes\": […]}";
            faults.add(code::NOT_JSON, 0, "the file is empty", remedy);
            return Ok(Draft::broken(faults));
        }
        Err(error) if error.is_too_deep => {
            let message = "too many lists and objects are inside each other";
            faults.add(code::TOO_DEEP, error.at, message, "make it flatter");
            return Ok(Draft::broken(faults));
        }
        Err(error) => {
            let message = format!("this is not JSON: {}", error.message);
            let remedy = "mend it; a comma too many or too few and missing quotes are common";
            faults.add(code::NOT_JSON, error.at, message, remedy);
            return Ok(Draft::broken(faults));
        }
    };
    let mut faults = Faults::new(&places, Some(&root));
    let Some(entries) = root.as_object() else {
        let message = format!("a workflow is an object, but this is {}", root.kind());
        let remedy = "write {\"name\": …, \"nodes\": […]}";
        faults.add(code::NOT_AN_OBJECT, root.at, message, remedy);
        return Ok(Draft::broken(faults));
    };
    duplicate_keys(&root, &mut faults);
    let name = name_of(document, &root, &mut faults);
    if let Some(first) = shelf.chain.iter().position(|known| *known == name) {
        let mut circle = shelf.chain[first..].to_vec();
        circle.push(name);
        return Err(circle);
    }
    shelf.chain.push(name.clone());
    let mut reader = Reader {
        name,
        table: document.functions.as_ref(),
        functions: Functions::default(),
        faults,
        inner_faults: vec![],
        shelf,
        spans: Spans::default(),
        places: &places,
        path: vec![],
        depth: 0,
        descriptions: BTreeMap::new(),
        default_limits: BTreeSet::new(),
    };
    let mut fields = Fields::new(&root, entries, "a workflow");
    let draft = reader.workflow(&mut fields, document);
    fields.finish(&mut reader.faults);
    reader.shelf.chain.pop();
    let mut draft = Draft::new(draft, reader);
    draft.faults.extend(document.warnings.iter().cloned());
    draft.locate = document.locate.clone().map(Located);
    draft.names = document.extras.script.iter().flat_map(|part| part.names.clone()).collect();
    Ok(draft)
}

/// The name, or else that of the file.
fn name_of(document: &Document, root: &Item, faults: &mut Faults<'_>) -> String {
    let path = document.source.found();
    let Some(item) = root.find("name") else { return called(None, path) };
    let given = item.as_text();
    match given {
        Some(name) if is_callable(name) => {}
        Some(name) => {
            let message = format!("{name:?} cannot be typed as the name of a workflow");
            // Others were names once, and sessions of theirs go on.
            let was_none = name.is_empty() || name.contains(['/', ' ', '\t', '\n', '\r']);
            let code = if was_none { code::OUT_OF_RANGE } else { code::NOT_TYPED };
            faults.add(code, item.at, message, "use letters, digits, `-` and `_`");
        }
        None => {
            let message = format!("it must be a text, but it is {}", item.kind());
            faults.add(code::WRONG_TYPE, item.at, message, "write it in quotes");
        }
    }
    called(given, path)
}

/// What the workflow in a file is called: as it says itself, if that can be typed, or else as its
/// file.
pub fn called(given: Option<&str>, path: &Path) -> String {
    let stem = || path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into());
    let as_file = || {
        let stem: String = stem();
        let is_plain = is_callable(&stem);
        if is_plain { stem } else { typed(&stem).unwrap_or_else(|| "workflow".to_owned()) }
    };
    given.filter(|name| is_callable(name)).map_or_else(as_file, str::to_owned)
}

/// Whether a name can be typed as it is. What ends like a file is taken for one.
pub fn is_callable(name: &str) -> bool {
    typed(name).is_some_and(|typed| typed == name.to_lowercase() && !typed.ends_with(".json"))
}

fn duplicate_keys(item: &Item, faults: &mut Faults<'_>) {
    match &item.body {
        Body::List(items) => items.iter().for_each(|item| duplicate_keys(item, faults)),
        Body::Object(entries) => {
            let mut seen = BTreeSet::new();
            for entry in entries {
                if !seen.insert(&entry.key) {
                    let message = format!("\"{}\" is already said above", entry.key);
                    faults.add(code::DUPLICATE_KEY, entry.at, message, "remove one of the two");
                }
                duplicate_keys(&entry.item, faults);
            }
        }
        Body::Null | Body::Bool(_) | Body::Number(_) | Body::Text(_) => {}
    }
}

/// A workflow, and what only people read.
pub(super) struct Whole {
    pub(super) workflow: Workflow,
    pub(super) version: Option<String>,
    pub(super) argument_hint: Option<String>,
    pub(super) min_sdk_version: Option<String>,
    pub(super) state_version: Option<u64>,
}

impl<'d> Reader<'d, '_, '_> {
    /// Other names, without those that cannot be typed.
    fn aliases(&mut self, item: &'d Item) -> Vec<&'d str> {
        let items = self.list(item, "a list of names").iter();
        let named: Vec<_> = items.filter_map(|item| Some((item, self.name(item)?))).collect();
        let mut aliases = vec![];
        for (item, alias) in named {
            if is_callable(alias) {
                aliases.push(alias);
                continue;
            }
            let message = format!("{alias:?} cannot be typed as the name of a workflow");
            let remedy = "use letters, digits, `-` and `_`";
            self.faults.add(code::NOT_TYPED, item.at, message, remedy);
        }
        aliases
    }

    /// The oldest version of this program that will do.
    fn needed(&mut self, item: &'d Item) -> Option<&'d str> {
        let wanted = self.words(item)?;
        if let Some(unmet) = unmet(wanted) {
            self.faults.add(code::TOO_NEW, item.at, unmet.message, unmet.help);
        }
        Some(wanted)
    }

    fn workflow(&mut self, fields: &mut Fields<'d>, document: &Document) -> Whole {
        for ignored in ["$schema", "name"] {
            fields.take(ignored);
        }
        let description = fields.take("description").and_then(|item| self.words(item));
        let aliases = fields.take("aliases").map(|item| self.aliases(item)).unwrap_or_default();
        let version = fields.take("version").and_then(|item| self.words(item));
        let argument_hint = fields.take("argumentHint").and_then(|item| self.words(item));
        let min_sdk_version = fields.take("minSDKVersion").and_then(|item| self.needed(item));
        let state_version = fields.take("stateVersion").and_then(|item| self.number(item, 0));
        let sessions_dir = fields.take("sessionsDir").and_then(|item| self.path_inside(item));
        self.read_descriptions(fields);
        let mut graph = self.root_graph(fields, document.extras.script.as_ref());
        let initial = self.initial(fields, &mut graph);
        self.check_descriptions();
        if !initial.contains_key(MAX_ITERATIONS) {
            // The outermost graph looks its limit up in the state.
            self.default_limits.insert(vec![]);
        }
        let initial_state = match document.extras.create.clone() {
            None => Initial::Given(initial),
            Some(create) => Initial::Created(Arc::new(move |launch| create(launch, &initial))),
        };
        Whole {
            workflow: Workflow {
                name: WorkflowName::from(self.name.as_str()),
                aliases: aliases.into_iter().map(str::to_owned).collect(),
                description: description.unwrap_or_default().to_owned(),
                sessions_dir: sessions_dir.unwrap_or(SESSIONS_DIR).to_owned(),
                graph,
                functions: std::mem::take(&mut self.functions),
                initial_state,
                source: Some(document.source.clone()),
                state_shape: document.extras.state_shape.clone(),
            },
            version: version.map(str::to_owned),
            argument_hint: argument_hint.map(str::to_owned),
            min_sdk_version: min_sdk_version.map(str::to_owned),
            state_version,
        }
    }

    fn root_graph(&mut self, fields: &mut Fields<'d>, script: Option<&ScriptPart>) -> Graph {
        self.mark(None, fields.at);
        let mut graph = match script {
            Some(part) => self.script_graph(part, fields),
            None => self.drawn_graph(fields),
        };
        self.limits(fields, &mut graph);
        graph
    }

    /// A graph of nodes; without any, a chat.
    fn drawn_graph(&mut self, fields: &mut Fields<'d>) -> Graph {
        let has_nodes = fields.peek("nodes").is_some();
        let sketch = self.sketch(fields);
        let is_chat = [sketch.edges, sketch.start, sketch.catch].iter().all(Option::is_none);
        let mut graph = self.assemble(&sketch);
        if !has_nodes && is_chat {
            let action = super::work::plain_agent(
                &NodeId::from(CHAT),
                Text::Template("{prompt}".to_owned()),
            );
            graph = graph.node(Action::Agent(action).node(CHAT));
            graph.start = NodeId::from(CHAT);
        } else if !has_nodes {
            fields.lacks("nodes", "the nodes of the graph", &mut self.faults);
        }
        graph
    }

    /// The limits of the whole run.
    fn limits(&mut self, fields: &mut Fields<'d>, graph: &mut Graph) {
        if let Some(item) = fields.take("maxSteps") {
            self.mark(Some("max_steps"), item.at);
            graph.max_steps = self.number(item, 1);
        }
        if let Some(item) = fields.take("maxConcurrency") {
            self.mark(Some("max_concurrency"), item.at);
            graph.max_concurrency = self.number(item, 1);
        }
        if let Some(item) = fields.take_one_of(&["timeoutMs", "timeout"], &mut self.faults) {
            self.mark(Some("timeout_ms"), item.at);
            graph.timeout_ms = self.number(item, 1);
        }
        if let Some(item) = fields.take("model") {
            self.mark(Some("model"), item.at);
            graph.model = self.name(item).map(str::to_owned);
        }
        if let Some(item) = fields.take("failFast") {
            graph.fail_fast = self.flag(item);
        }
    }

    /// The values a run begins with.
    fn initial(&mut self, fields: &mut Fields<'d>, graph: &mut Graph) -> Patch {
        let annotations = fields.take("stateAnnotations");
        let annotated: Defaults<'d> =
            annotations.map(|item| self.annotations(item, graph)).unwrap_or_default();
        let mut initial = Patch::new();
        for (key, item) in annotated {
            self.mark(Some(&format!("state.{key}")), item.at);
            let value = self.value(item);
            initial.insert(Key::from(key), value);
        }
        if let Some(item) = fields.take("state") {
            let entries = item.as_object();
            if entries.is_none() {
                self.wrong(item, "an object", "write the keys of the state and their values");
            }
            for entry in entries.unwrap_or_default() {
                self.value_of(&entry.key, &entry.item, &mut initial);
            }
        }
        if let Some(item) = fields.take(MAX_ITERATIONS)
            && let Some(limit) = self.number::<u32>(item, 1)
        {
            if initial.contains_key(MAX_ITERATIONS) {
                let message = "the state begins with a `maxIterations` of its own";
                self.faults.add(code::SAID_TWICE, item.at, message, "remove one of the two");
            }
            initial.insert(Key::from(MAX_ITERATIONS), limit.into());
        }
        initial
    }

    fn value_of(&mut self, key: &'d str, item: &'d Item, initial: &mut Patch) {
        let is_empty = item.as_object().is_some_and(<[_]>::is_empty);
        if key == "outputs" && is_empty {
            return;
        }
        if key == "outputs" {
            let message = "the outputs of nodes are the engine's";
            let remedy = "use another key";
            self.faults.add(code::OUT_OF_RANGE, item.at, message, remedy);
        } else if initial.contains_key(key) {
            let message = format!("\"{key}\" has a default in `stateAnnotations` already");
            self.faults.add(code::SAID_TWICE, item.at, message, "remove one of the two");
        }
        self.mark(Some(&format!("state.{key}")), item.at);
        let value = self.value(item);
        initial.insert(Key::from(key), value);
    }

    fn read_descriptions(&mut self, fields: &mut Fields<'d>) {
        let Some(item) = fields.take("nodeDescriptions") else { return };
        let Some(entries) = item.as_object() else {
            return self.wrong(item, "an object", "write the ids of nodes and their descriptions");
        };
        for entry in entries {
            if let Some(text) = self.words(&entry.item) {
                self.descriptions.insert(&entry.key, (text, entry.at, false));
            }
        }
    }

    fn check_descriptions(&mut self) {
        for (id, (_, at, is_used)) in std::mem::take(&mut self.descriptions) {
            if !is_used {
                let message = format!("there is no node \"{id}\" to describe");
                let remedy = "write the id of a node, or remove it";
                self.faults.add(code::DESCRIBES_NOTHING, at, message, remedy);
            }
        }
    }
}
