//! What is wrong with a descriptor, where, and what to do.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::json::Item;
use super::place::{Location, Places};

/// Something wrong with a descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Which kind, as in `docs/descriptor.md`: `ATM611`. A number never changes its meaning.
    pub code: &'static str,
    /// Whether it keeps the workflow from being run.
    pub is_error: bool,
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, in characters.
    pub column: u32,
    /// The way to it inside the document: `nodes[2].retry.maxAttempts`.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: String,
    /// The lines of the source around it, where whoever wrote the document has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<String>,
}

impl Fault {
    /// Something wrong with a file as a whole.
    pub fn of_file(
        file: &Path,
        code: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            code,
            is_error: true,
            file: file.to_owned(),
            line: 1,
            column: 1,
            path: String::new(),
            message: message.into(),
            remedy: remedy.into(),
            frame: None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, file, line, column, message, remedy, .. } = self;
        let severity = if self.is_error { "error" } else { "warning" };
        let path = if self.path.is_empty() { "the file" } else { &self.path };
        let place = format!("{}:{line}:{column}", file.display());
        let said = format!("{place}: {code} {severity} at {path}: {message}");
        // Names in a file come from strangers: none of them begins a line of its own.
        let [said, remedy] = [&said, remedy].map(|text| text.replace('\n', "\\n"));
        let frame = self.frame.as_deref().unwrap_or_default().trim_end();
        let frame = if frame.is_empty() { String::new() } else { format!("{frame}\n") };
        if remedy.is_empty() {
            return write!(f, "{said}\n{frame}").map(|()| ());
        }
        write!(f, "{said}\n{frame}  help: {remedy}")
    }
}

/// The kinds of faults.
pub(super) mod code {
    pub(in super::super) const NOT_JSON: &str = "ATM601";
    pub(in super::super) const NOT_AN_OBJECT: &str = "ATM602";
    pub(in super::super) const DUPLICATE_KEY: &str = "ATM603";
    pub(in super::super) const TOO_DEEP: &str = "ATM604";
    pub(in super::super) const TOO_LARGE: &str = "ATM605";
    pub(in super::super) const MORE: &str = "ATM609";
    pub(in super::super) const UNKNOWN_KEY: &str = "ATM611";
    pub(in super::super) const MISSING_KEY: &str = "ATM612";
    pub(in super::super) const WRONG_TYPE: &str = "ATM613";
    pub(in super::super) const UNKNOWN_WORD: &str = "ATM614";
    pub(in super::super) const OUT_OF_RANGE: &str = "ATM615";
    pub(in super::super) const SAID_TWICE: &str = "ATM616";
    pub(in super::super) const DESCRIBES_NOTHING: &str = "ATM617";
    pub(in super::super) const NOT_TYPED: &str = "ATM618";
    pub(in super::super) const UNKNOWN_FUNCTION: &str = "ATM621";
    pub(in super::super) const FUNCTION_MISFIT: &str = "ATM622";
    // As of a file of code that asks for one.
    pub(in super::super) const TOO_NEW: &str = "ATM712";
    // These two are also found in graphs and have their numbers from there.
    pub(in super::super) const UNKNOWN_WORKFLOW: &str = "ATM404";
    pub(in super::super) const CIRCULAR_WORKFLOWS: &str = "ATM407";
}

/// More are not told apart: then something else is wrong with the file.
const MOST: usize = 1_000;

/// The faults found so far in one file.
pub(super) struct Faults<'d> {
    places: &'d Places<'d>,
    root: Option<&'d Item>,
    found: Vec<(usize, Fault)>,
    more: usize,
}

impl<'d> Faults<'d> {
    pub(super) fn new(places: &'d Places<'d>, root: Option<&'d Item>) -> Self {
        Self { places, root, found: vec![], more: 0 }
    }

    /// Reports what is wrong at the byte `at`.
    pub(super) fn add(
        &mut self,
        code: &'static str,
        at: usize,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        if self.found.len() >= MOST {
            self.more += 1;
            return;
        }
        let Location { file, line, column, frame } = self.places.of(at);
        let fault = Fault {
            code,
            is_error: !matches!(code, code::DESCRIBES_NOTHING | code::NOT_TYPED),
            file,
            line,
            column,
            path: self.root.map(|root| root.way_to(at)).unwrap_or_default(),
            message: message.into(),
            remedy: remedy.into(),
            frame,
        };
        self.found.push((at, fault));
    }

    /// All of them, in the order of the file.
    pub(super) fn finish(mut self) -> Vec<Fault> {
        let more = self.more;
        self.found.sort_by_key(|(at, _)| *at);
        if let Some((at, _)) = self.found.last().filter(|_| more > 0) {
            let at = *at;
            self.found.pop();
            self.more = 0;
            let message = format!("there are {} further problems", more + 1);
            self.add(code::MORE, at, message, "mend the others first");
        }
        self.found.into_iter().map(|(_, fault)| fault).collect()
    }
}
