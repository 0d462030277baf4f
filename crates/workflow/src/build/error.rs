//! What can be wrong with what an author built, all of it at once.

use std::fmt;

use atomic_graph::Problem;
use atomic_graph::check::Place;

/// Something wrong with what an author built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    /// Which kind, as in [`codes`] or, of the graph, [`atomic_graph::check::Code`]: `ATM701`.
    pub code: &'static str,
    /// Where: the nodes, and the names of branches, from the outermost graph inwards.
    pub place: Place,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, place, message, remedy } = self;
        write!(f, "{code} error at {place}: {message}\n  help: {remedy}")
    }
}

impl From<Problem> for BuildError {
    fn from(Problem { code, place, message, remedy, .. }: Problem) -> Self {
        Self { code: code.as_str(), place, message, remedy }
    }
}

/// Everything wrong with what an author built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildErrors(pub Vec<BuildError>);

impl fmt::Display for BuildErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if place == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for BuildErrors {}

/// The mistakes that only a builder sees, under numbers that never change their meaning. What is
/// wrong with the graph that was built has the numbers of [`atomic_graph::check::Code`].
pub mod codes {
    /// `start` was called when the graph had already begun.
    pub const STARTED_TWICE: &str = "ATM701";
    /// Something was added before `start`.
    pub const NOT_STARTED: &str = "ATM702";
    /// A graph, a piece of one, a loop, a fan, a branch or a sub-graph has no nodes.
    pub const EMPTY: &str = "ATM703";
    /// Something was added after `end`.
    pub const AFTER_END: &str = "ATM704";
    /// `else_` was called where no `if_` is open.
    pub const ELSE_WITHOUT_IF: &str = "ATM711";
    /// An `if_` has two `else_`.
    pub const TWO_ELSES: &str = "ATM712";
    /// An `if_` has no `endif`.
    pub const IF_NOT_CLOSED: &str = "ATM713";
    /// `endif` was called where no `if_` is open.
    pub const ENDIF_WITHOUT_IF: &str = "ATM714";
    /// A branch of an `if_` has no nodes.
    pub const EMPTY_BRANCH: &str = "ATM715";
    /// A decision has no routes.
    pub const NO_ROUTES: &str = "ATM716";
    /// `catch` was called twice.
    pub const CAUGHT_TWICE: &str = "ATM721";
    /// A node has a `map` that is never called.
    pub const NO_MAP: &str = "ATM731";
    /// Two different functions have the same id.
    pub const FUNCTION_TWICE: &str = "ATM732";
    /// A node that launches no agent has a backend.
    pub const NO_BACKEND: &str = "ATM733";
    /// There is no backend of this name.
    pub const UNKNOWN_BACKEND: &str = "ATM734";
    /// The value a key begins with is not JSON.
    pub const NOT_JSON: &str = "ATM741";
}
