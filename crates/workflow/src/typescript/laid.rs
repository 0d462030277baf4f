//! A document as text, with where each part of it was written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_typescript::{Anchor, Bundle, Form, Metadata, Step, locate};
use serde_json::Value;

use super::authored::shown;
use crate::descriptor::{Locate, Location};

/// The key under which the SDK says where something was written.
const AT: &str = "$at";

/// A document as text.
pub(super) struct Laid {
    pub(super) text: String,
    marks: Vec<Mark>,
}

/// A part of the document.
struct Mark {
    /// Where it begins in the text.
    at: usize,
    /// The part it is in, and how it is called there.
    around: Option<(usize, Step)>,
    /// Where it was written, where the file itself says so.
    origin: Option<Origin>,
    /// Whether it is the name of the part, and not what it is.
    is_key: bool,
}

#[derive(Clone)]
struct Origin {
    file: PathBuf,
    anchor: Anchor,
    /// Where that is: line and column.
    place: Option<(u32, u32)>,
}

impl Laid {
    /// Writes a document down. What is not said elsewhere is said in the file `entry`.
    pub(super) fn out(document: &Value, entry: &Path, form: Form) -> Self {
        let mut laid = Self { text: String::new(), marks: vec![] };
        let root = laid.mark(None);
        laid.marks[root].origin = origin_in(document);
        let no_fields = serde_json::Map::new();
        let fields = document.as_object().unwrap_or(&no_fields);
        laid.text.push('{');
        for (number, (key, value)) in fields.iter().filter(|(key, _)| *key != AT).enumerate() {
            if number > 0 {
                laid.text.push_str(",\n");
            }
            let is_told = Metadata::KEYS.contains(&key.as_str()) || key == "nodeDescriptions";
            let is_export = is_told && form != Form::Script;
            let export = match form {
                _ if is_export => Some((key.clone(), None)),
                Form::Graph => Some(("graphConfig".to_owned(), Some(Step::Key(key.clone())))),
                Form::Builder | Form::Script | Form::Chat => None,
            };
            match export {
                None => laid.field(root, key, value),
                Some((name, step)) => {
                    let origin = Origin {
                        file: entry.to_owned(),
                        anchor: Anchor::Export(name),
                        place: None,
                    };
                    let around = laid.mark(None);
                    laid.marks[around].origin = Some(origin);
                    laid.entry(key, value, |laid| match &step {
                        Some(step) => laid.mark(Some((around, step.clone()))),
                        None => around_again(laid, around),
                    });
                }
            }
        }
        laid.text.push('}');
        laid
    }

    /// A part that begins here.
    fn mark(&mut self, around: Option<(usize, Step)>) -> usize {
        self.marks.push(Mark { at: self.text.len(), around, origin: None, is_key: false });
        self.marks.len() - 1
    }

    fn field(&mut self, around: usize, key: &str, value: &Value) {
        self.entry(key, value, |laid| laid.mark(Some((around, Step::Key(key.to_owned())))));
    }

    fn entry(&mut self, key: &str, value: &Value, mark: impl Fn(&mut Self) -> usize) {
        let name = mark(self);
        self.marks[name].is_key = true;
        self.text.push_str(&Value::from(key).to_string());
        self.text.push(':');
        let own = mark(self);
        self.value(own, value);
    }

    fn value(&mut self, own: usize, value: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(origin) = origin_in(value) {
                    self.marks[own].origin = Some(origin);
                }
                self.text.push('{');
                for (number, (key, value)) in
                    fields.iter().filter(|(key, _)| *key != AT).enumerate()
                {
                    if number > 0 {
                        self.text.push(',');
                    }
                    self.field(own, key, value);
                }
                self.text.push('}');
            }
            Value::Array(items) => {
                self.text.push('[');
                for (number, value) in items.iter().enumerate() {
                    if number > 0 {
                        self.text.push(',');
                    }
                    let item = self.mark(Some((own, Step::Index(number))));
                    self.value(item, value);
                }
                self.text.push(']');
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                self.text.push_str(&value.to_string());
            }
        }
    }

    /// Says where in the files the part is that begins at a byte of the text.
    pub(super) fn locator(self, bundle: Bundle) -> (String, Arc<Locate>) {
        let Self { text, marks } = self;
        let locator = move |at: usize| {
            let mark = marks.partition_point(|mark| mark.at <= at).checked_sub(1)?;
            let (origin, path) = way(&marks, mark)?;
            place(&bundle, &origin, &path)
        };
        (text, Arc::new(locator))
    }
}

/// Another mark for what is already marked, from here on.
fn around_again(laid: &mut Laid, around: usize) -> usize {
    let again = laid.mark(None);
    laid.marks[again].origin = laid.marks[around].origin.clone();
    again
}

/// A step that leads nowhere: the name of the part before it is the last that is found.
const NOWHERE: Step = Step::Index(usize::MAX);

/// From the nearest thing whose place is known to a part.
fn way(marks: &[Mark], mut mark: usize) -> Option<(Origin, Vec<Step>)> {
    let mut path = vec![];
    if marks[mark].is_key {
        path.push(NOWHERE);
    }
    loop {
        if let Some(origin) = &marks[mark].origin {
            path.reverse();
            return Some((origin.clone(), path));
        }
        let (around, step) = marks[mark].around.as_ref()?;
        path.push(step.clone());
        mark = *around;
    }
}

/// Where the SDK says that an object was written.
fn origin_in(value: &Value) -> Option<Origin> {
    let at = value.get(AT)?.as_array()?;
    let [file, line, column] = at.as_slice() else { return None };
    let number = |value: &Value| u32::try_from(value.as_u64()?).ok();
    let (line, column) = (number(line)?, number(column)?);
    let anchor = Anchor::Call { line, column };
    Some(Origin { file: PathBuf::from(file.as_str()?), anchor, place: Some((line, column)) })
}

fn place(bundle: &Bundle, origin: &Origin, path: &[Step]) -> Option<Location> {
    let text = bundle.text(&origin.file)?;
    let found = locate(&origin.file, text, &origin.anchor, path);
    let (line, column, length) = match (found, origin.place) {
        (Some(found), place) if found.followed > 0 || place.is_none() => {
            (found.line, found.column, found.end.saturating_sub(found.start))
        }
        (_, place) => {
            let (line, column) = place?;
            (line, column, 1)
        }
    };
    let frame = bundle.frame(&origin.file, line, column, length);
    Some(Location { file: shown(&origin.file), line, column, frame: Some(frame) })
}
