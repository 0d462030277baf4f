//! What is wrong or odd about a file, told to whoever wrote it.

use std::fmt;
use std::path::{Path, PathBuf};

/// Something to know about a file or a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Which.
    pub path: PathBuf,
    /// The line in it, counted from 1, where one is meant.
    pub line: Option<usize>,
    /// Whether it is read all the same.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It is left out.
    Skipped,
    /// It is read all the same.
    Odd,
    /// It is left out, and that is as it should be.
    Aside,
}

impl Finding {
    /// A file that is left out.
    pub(crate) fn skipped(path: &Path, message: impl Into<String>, remedy: &str) -> Self {
        Self::new(Severity::Skipped, path, message, remedy)
    }

    /// A file that is left out as its author wants.
    pub(crate) fn aside(path: &Path, message: impl Into<String>) -> Self {
        Self::new(Severity::Aside, path, message, "")
    }

    /// A file that is read all the same.
    pub(crate) fn odd(path: &Path, message: impl Into<String>, remedy: &str) -> Self {
        Self::new(Severity::Odd, path, message, remedy)
    }

    fn new(severity: Severity, path: &Path, message: impl Into<String>, remedy: &str) -> Self {
        let (path, message) = (path.to_owned(), message.into());
        Self { path, line: None, severity, message, remedy: remedy.to_owned() }
    }

    /// The same, at a line.
    #[must_use]
    pub(crate) fn at(self, line: usize) -> Self {
        Self { line: Some(line), ..self }
    }
}

/// A text in which names are that come from strangers: none of them begins a line of its own.
fn on_one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&on_one_line(&self.path.display().to_string()))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        let what = match self.severity {
            Severity::Skipped | Severity::Aside => "left out: ",
            Severity::Odd => "",
        };
        write!(f, ": {what}{}", on_one_line(&self.message))?;
        if !self.remedy.is_empty() {
            write!(f, "\n  help: {}", self.remedy)?;
        }
        Ok(())
    }
}
