//! What is wrong with a file, and where.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use oxc_diagnostics::OxcDiagnostic;
use oxc_span::Span;

use crate::text;

/// A place in a file: lines and columns from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// Something that is wrong with a file, found before any of it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Which kind it is: `ATM701` and so on, see `docs/workflows.md`.
    pub code: Cow<'static, str>,
    /// Where.
    pub at: Place,
    /// What is wrong, in a sentence without the place.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The lines around the place, with a mark under it; empty if there is nothing to show.
    pub frame: String,
    /// It does not keep the file from running.
    pub is_warning: bool,
}

impl Fault {
    /// A fault at a part of a file, for those who know more about the file than this crate.
    #[must_use]
    pub fn at(
        code: impl Into<Cow<'static, str>>,
        file: &Path,
        text: &str,
        (start, end): (u32, u32),
        message: impl Into<String>,
    ) -> Self {
        let mut fault = Page { file, text }.fault("", Span::new(start, end), message);
        fault.code = code.into();
        fault
    }

    /// A fault about a file that has no text to point at.
    pub(crate) fn about(code: &'static str, file: &Path, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            at: Place { file: file.to_owned(), line: 1, column: 1 },
            message: message.into(),
            help: None,
            frame: String::new(),
            is_warning: false,
        }
    }

    /// Adds what to do.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Says that the file can run all the same.
    pub(crate) fn into_warning(mut self) -> Self {
        self.is_warning = true;
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} [{}]", self.at, self.message, self.code)?;
        if !self.frame.is_empty() {
            write!(f, "\n{}", self.frame)?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}

/// A file that faults are found in.
#[derive(Clone, Copy)]
pub(crate) struct Page<'a> {
    pub(crate) file: &'a Path,
    pub(crate) text: &'a str,
}

impl Page<'_> {
    /// Where a span begins.
    pub(crate) fn place(self, span: Span) -> Place {
        let (line, column) = text::place_of(self.text, span.start as usize);
        Place { file: self.file.to_owned(), line, column }
    }

    /// A fault at a span.
    pub(crate) fn fault(self, code: &'static str, span: Span, message: impl Into<String>) -> Fault {
        let at = self.place(span);
        let marked = self.text.get(span.start as usize..span.end as usize).unwrap_or_default();
        let length = text::clamp(marked.lines().next().unwrap_or_default().chars().count());
        let frame = text::frame(self.text, at.line, at.column, length);
        Fault { at, frame, ..Fault::about(code, self.file, message) }
    }

    /// What oxc has to say.
    pub(crate) fn said(self, code: &'static str, said: &OxcDiagnostic) -> Fault {
        let label = if said.message.contains("already been declared") {
            // The first label is the innocent one.
            said.labels.last()
        } else {
            said.labels.first()
        };
        let span = label.map_or(Span::new(0, 0), |label| {
            let start = label.offset();
            Span::new(start, start + label.len())
        });
        let fault = self.fault(code, span, said.message.to_string());
        let Some(help) = &said.help else { return fault };
        fault.with_help(help.to_string())
    }
}
