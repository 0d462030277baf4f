//! What is wrong with settings, and where.

use std::fmt;
use std::path::{Path, PathBuf};

use super::file::line_and_column;
use crate::finding::Finding;

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file.
    File {
        /// Which.
        path: PathBuf,
        /// The line and the column, counted from 1, where one is meant.
        at: Option<(usize, usize)>,
    },
    /// In an environment variable.
    Variable(String),
}

impl Place {
    pub(super) fn file(path: &Path) -> Self {
        Self::File { path: path.to_owned(), at: None }
    }

    /// The place of a byte of a file's text.
    pub(super) fn in_file(path: &Path, text: &str, offset: usize) -> Self {
        Self::File { path: path.to_owned(), at: Some(line_and_column(text, offset)) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, at: None } => write!(f, "{}", path.display()),
            Self::File { path, at: Some((line, column)) } => {
                write!(f, "{}:{line}:{column}", path.display())
            }
            Self::Variable(name) => f.write_str(name),
        }
    }
}

/// Something that is wrong, or odd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// What.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl Problem {
    pub(super) fn new(place: Place, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { place, message: message.into(), remedy: remedy.into() }
    }

    /// Whether it stands in an environment variable.
    pub fn is_in_variable(&self) -> bool {
        matches!(self.place, Place::Variable(_))
    }

    /// The same for a list of findings.
    pub(super) fn into_finding(self, is_wrong: bool) -> Finding {
        let (path, line) = match self.place {
            Place::File { path, at } => (path, at.map(|(line, _)| line)),
            Place::Variable(name) => (PathBuf::from(name), None),
        };
        let finding = if is_wrong {
            Finding::skipped(&path, self.message, &self.remedy)
        } else {
            Finding::odd(&path, self.message, &self.remedy)
        };
        Finding { line, ..finding }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.message, self.remedy)
    }
}
