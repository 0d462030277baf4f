//! A workflow as one JSON document, in the words that authors use.
//!
//! A person can write such a document by hand, and the loader of TypeScript files writes one for
//! every file it has evaluated: then closures are `{"$fn": <id>}`, and whoever evaluated the file
//! is asked for them. `docs/descriptor.md` says what can be written.
//!
//! Start reading at [`read`].

mod created;
mod fault;
mod fields;
mod graph;
mod json;
mod node;
mod place;
mod question;
mod reader;
mod region;
mod rules;
mod script;
mod shelf;
mod tasks;
#[cfg(test)]
mod tests;
mod work;
mod workflow;

use std::collections::BTreeSet;
use std::sync::Arc;

use atomic_event::{Patch, StepError};
use atomic_graph::check::{Known, Place, Problem, Span, Spans, Use, check, unknown};

pub use fault::Fault;
pub use place::{Locate, Location};
pub use workflow::{called, is_callable};

use atomic_graph::{Count, Graph, NodeId};
use serde_json::Value;

use crate::{
    Advance, DEFAULT_ITERATIONS, Function, Initial, Launch, Source, StateShape, Workflow,
    names_used,
};
use fault::Faults;
use reader::Reader;
use shelf::Shelf;
use workflow::Whole;

/// Reads a workflow. Every problem of the document, and of the workflows it uses, is found at
/// once; what is wrong with the graph itself is found by [`Draft::check`], in either case.
pub fn read(document: &Document, library: &dyn Library) -> Draft {
    // Nothing is being read yet, so nothing can lead back to it.
    let mut shelf = Shelf::new(library);
    let mut draft = workflow::read(document, &mut shelf).unwrap_or_default();
    if let Some(source) = draft.workflow.as_mut().and_then(|workflow| workflow.source.as_mut()) {
        source.uses = shelf.sources();
    }
    draft
}

/// A document to read.
#[derive(Clone)]
pub struct Document {
    /// The file.
    pub source: Source,
    /// Its functions.
    pub functions: Arc<FunctionTable>,
    /// What is read, where that is not the text of the file itself.
    pub json: Option<Arc<str>>,
    /// Where its parts are in what it was made of, if it was.
    pub locate: Option<Arc<Locate>>,
    /// What only code can say.
    pub extras: Extras,
    /// What was found odd about the file before.
    pub warnings: Vec<Fault>,
}

/// What only code can say about a workflow.
#[derive(Clone, Default)]
pub struct Extras {
    /// Makes the state a run begins with, over the defaults of its keys.
    pub create: Option<Arc<CreateFn>>,
    /// The version of its state, and how older ones are brought up to it.
    pub state_shape: StateShape,
    /// The function that is the whole workflow.
    pub script: Option<ScriptPart>,
}

/// Makes the state a run begins with, over the defaults of its keys.
pub type CreateFn = dyn Fn(&Launch, &Patch) -> Result<Patch, StepError> + Send + Sync;

/// A workflow that is a function.
#[derive(Clone)]
pub struct ScriptPart {
    /// Says what it calls next.
    pub advance: Arc<dyn Advance>,
    /// The workflows it calls.
    pub workflows: Vec<String>,
    /// How many calls it may make.
    pub max_calls: Option<Count>,
    /// The agents, skills and commands it calls, and where, as far as that is written down.
    pub names: Vec<(Use, Location)>,
}

/// Finds the functions of a document.
pub type FunctionTable = dyn Fn(&Wanted<'_>) -> Option<Function> + Send + Sync;

impl Document {
    /// A document without functions.
    pub fn plain(source: Source) -> Self {
        Self::with_functions(source, Arc::new(|_| None))
    }

    /// A document with these functions.
    pub fn with_functions(source: Source, functions: Arc<FunctionTable>) -> Self {
        let (json, locate, extras, warnings) = (None, None, Extras::default(), vec![]);
        Self { source, functions, json, locate, extras, warnings }
    }
}

impl std::fmt::Debug for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Document").field("source", &self.source).finish_non_exhaustive()
    }
}

/// A function that a document refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// What stands behind `$fn`; a number as text.
    pub id: &'a str,
    /// What it is used for.
    pub role: Role,
}

/// What a function is used for, and so what it is given and must return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// `execute` of a tool, from the state to changes: a [`Function::Step`].
    Execute,
    /// `execute` of a plain node, from its context to `{stateUpdate?, goto?, signals?}`: a
    /// [`Function::Step`].
    Custom,
    /// A prompt, a task, arguments: a [`Function::Text`].
    Text,
    /// A condition: a [`Function::Holds`].
    Condition,
    /// From a node's output to changes: a [`Function::Value`], like all below.
    Map,
    /// To the state a sub-graph begins with.
    Input,
    /// From the state a sub-graph ended with to changes.
    Output,
    /// From the outputs of branches to changes.
    Merge,
    /// From a value and a change to the new value.
    Reducer,
    /// From an error to whether to try again.
    RetryOn,
    /// From an error to what to do about it.
    OnError,
    /// From a list of tasks to the next one.
    Select,
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Self::Execute => "execute",
            Self::Custom => "custom",
            Self::Text => "text",
            Self::Condition => "condition",
            Self::Map => "map",
            Self::Input => "input",
            Self::Output => "output",
            Self::Merge => "merge",
            Self::Reducer => "reducer",
            Self::RetryOn => "retry",
            Self::OnError => "error",
            Self::Select => "select",
        }
    }

    /// Whether a function can be used for this.
    fn fits(self, function: &Function) -> bool {
        match self {
            Self::Execute | Self::Custom => {
                matches!(function, Function::Step(_) | Function::Work(_))
            }
            Self::Text => matches!(function, Function::Text(_)),
            Self::Condition => matches!(function, Function::Holds(_)),
            Self::Map
            | Self::Input
            | Self::Output
            | Self::Merge
            | Self::Reducer
            | Self::RetryOn
            | Self::OnError
            | Self::Select => matches!(function, Function::Value(_)),
        }
    }
}

/// Where other workflows are found.
pub trait Library {
    /// The workflow of this name, or with this other name.
    fn find(&self, name: &str) -> Option<Found>;

    /// Every name, to say what was probably meant.
    fn names(&self) -> Vec<String>;
}

/// Another workflow.
#[derive(Debug)]
pub enum Found {
    /// One that needs no reading, such as a built-in one.
    Ready(Box<Workflow>),
    /// One that is read now, so that circles are found.
    Document(Box<Document>),
    /// One that is there, and cannot be read.
    Broken(Vec<Fault>),
}

/// A library without workflows.
#[derive(Clone, Copy, Debug)]
pub struct NoLibrary;

impl Library for NoLibrary {
    fn find(&self, _: &str) -> Option<Found> {
        None
    }

    fn names(&self) -> Vec<String> {
        vec![]
    }
}

/// What was read, right or wrong.
#[derive(Debug, Default)]
pub struct Draft {
    workflow: Option<Workflow>,
    /// The version its author gave it.
    pub version: Option<String>,
    /// What to type after its name.
    pub argument_hint: Option<String>,
    /// The version of this program it asks for.
    pub min_sdk_version: Option<String>,
    /// The version of its state.
    pub state_version: Option<u64>,
    /// What is wrong with it, in the order of the file.
    pub faults: Vec<Fault>,
    /// Where the parts of its graph are in the file.
    pub spans: Spans,
    /// Where those of a document are that was made of another file.
    pub(crate) locate: Option<Located>,
    /// What it calls by names that no graph has.
    names: Vec<(Use, Location)>,
    /// The graphs whose limit was not written by their author.
    default_limits: BTreeSet<Vec<NodeId>>,
}

/// Says where parts of a document are.
#[derive(Clone)]
pub(crate) struct Located(Arc<Locate>);

impl std::fmt::Debug for Located {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Located")
    }
}

impl Draft {
    fn broken(faults: Faults<'_>) -> Self {
        Self { faults: faults.finish(), ..Self::default() }
    }

    fn new(whole: Whole, reader: Reader<'_, '_, '_>) -> Self {
        let mut faults = reader.faults.finish();
        faults.extend(reader.inner_faults);
        Self {
            workflow: Some(whole.workflow),
            version: whole.version,
            argument_hint: whole.argument_hint,
            min_sdk_version: whole.min_sdk_version,
            state_version: whole.state_version,
            faults,
            spans: reader.spans,
            locate: None,
            names: vec![],
            default_limits: reader.default_limits,
        }
    }

    /// The graph as far as it could be read, to look for further problems; nothing of a document
    /// that is not even JSON. It is not to be run unless [`Draft::into_workflow`] gives it out.
    pub fn graph(&self) -> Option<&Graph> {
        self.workflow.as_ref().map(|workflow| &workflow.graph)
    }

    /// What is wrong with the graph. The functions are known to be there, or that is among the
    /// faults, so `known` need not have them.
    pub fn check(&self, known: &Known) -> Vec<Problem> {
        let Some(workflow) = &self.workflow else { return vec![] };
        let launch = Launch { prompt: "check".to_owned(), ..Launch::default() };
        let begins = match &workflow.initial_state {
            begins @ (Initial::Given(_) | Initial::Created(_)) => begins.state(&launch).ok(),
            Initial::Made(_) => None,
        };
        let default = Value::from(DEFAULT_ITERATIONS);
        let is_default = begins.as_ref().is_some_and(|b| b.get("maxIterations") == Some(&default));
        let mut default_limits = self.default_limits.clone();
        if !is_default {
            default_limits.remove(&vec![]);
        }
        // What a function makes of another prompt may be another value.
        let is_given = matches!(&workflow.initial_state, Initial::Given(_));
        let known = Known {
            functions: None,
            keys: begins.as_ref().map(|begins| begins.keys().cloned().collect()),
            state: begins.filter(|_| is_given),
            default_limits,
            ..known.clone()
        };
        let problems = check(&workflow.graph, &names_used, &known, &self.spans);
        let mut problems: Vec<Problem> = problems.into_iter().map(in_author_words).collect();
        if let Some(Located(locate)) = &self.locate {
            problems.iter_mut().for_each(|problem| place::look_up(problem, locate.as_ref()));
        }
        problems.extend(self.names.iter().filter_map(|(used, at)| {
            let file = at.file.display().to_string();
            let span = Some(Span { file, line: at.line, column: at.column });
            let found = unknown(used, &known, Place { span, ..place::run() });
            found.map(|problem| Problem { frame: at.frame.clone(), ..problem })
        }));
        problems
    }

    /// The workflow, unless there is an error.
    pub fn into_workflow(self) -> Result<Workflow, Vec<Fault>> {
        match self.workflow {
            Some(workflow) if !self.faults.iter().any(|fault| fault.is_error) => Ok(workflow),
            Some(_) | None => Err(self.faults),
        }
    }
}

/// What the engine's words for parts of a graph are called in a document.
const AUTHOR_WORDS: [(&str, &str); 12] = [
    ("max_rounds", "maxIterations"),
    ("max_iterations", "maxIterations"),
    ("max_visits", "maxVisits"),
    ("max_steps", "maxSteps"),
    ("max_concurrency", "maxConcurrency"),
    ("timeout_ms", "timeoutMs"),
    ("fail_fast", "failFast"),
    ("input_schema", "inputSchema"),
    ("output_schema", "outputSchema"),
    ("on_error", "onError"),
    ("on_revive", "onRevive"),
    ("start", "startNode"),
];

/// The same text, with the words that can be written in a document in place of the engine's.
pub fn author_words(text: &str) -> String {
    AUTHOR_WORDS.iter().fold(text.to_owned(), |text, (engine, author)| {
        text.replace(&format!("`{engine}`"), &format!("`{author}`"))
    })
}

fn in_author_words(mut problem: Problem) -> Problem {
    problem.message = author_words(&problem.message);
    problem.remedy = author_words(&problem.remedy);
    if let Some(part) = &mut problem.place.part
        && let Some((_, author)) = AUTHOR_WORDS.iter().find(|(engine, _)| engine == part)
    {
        (*author).clone_into(part);
    }
    problem
}
