//! Where the parts of a document are, for people: in the document, or in the file it was made of.

use std::path::{Path, PathBuf};

use atomic_graph::NodeId;
use atomic_graph::check::{Place, Problem, Span};

use super::json::Ruler;

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, in characters.
    pub column: u32,
    /// The lines around it, to be shown.
    pub frame: Option<String>,
}

/// Says where in its source the part of a document is that begins at a byte. Without an answer it
/// is the place in the document.
pub type Locate = dyn Fn(usize) -> Option<Location> + Send + Sync;

/// The places of one document.
pub(super) struct Places<'d> {
    file: &'d Path,
    ruler: Ruler<'d>,
    locate: Option<&'d Locate>,
}

impl<'d> Places<'d> {
    pub(super) fn new(file: &'d Path, text: &'d str, locate: Option<&'d Locate>) -> Self {
        Self { file, ruler: Ruler::new(text), locate }
    }

    /// Where a part is, for later: to look it up elsewhere costs time, and most places are never
    /// shown.
    pub(super) fn note(&self, at: usize) -> Span {
        if self.locate.is_some() {
            let line = u32::try_from(at).unwrap_or(u32::MAX);
            return Span { file: String::new(), line, column: 0 };
        }
        let Location { file, line, column, .. } = self.of(at);
        Span { file: file.display().to_string(), line, column }
    }

    pub(super) fn of(&self, at: usize) -> Location {
        self.locate.and_then(|locate| locate(at)).unwrap_or_else(|| {
            let (line, column) = self.ruler.position(at);
            Location { file: self.file.to_owned(), line, column, frame: None }
        })
    }
}

/// The one node of a workflow that is a function.
pub(super) fn run() -> Place {
    Place::new(vec![NodeId::from(super::script::RUN)])
}

/// Puts the place that was noted for a problem in the author's words.
pub(super) fn look_up(problem: &mut Problem, locate: &Locate) {
    let Some(span) = problem.place.span.as_mut().filter(|span| span.file.is_empty()) else {
        return;
    };
    let Some(found) = locate(span.line as usize) else {
        problem.place.span = None;
        return;
    };
    let Location { file, line, column, frame } = found;
    *span = Span { file: file.display().to_string(), line, column };
    problem.frame = frame;
}
