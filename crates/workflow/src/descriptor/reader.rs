//! Reading one document: where in it we are, what was found wrong, and the plain values.

use std::collections::{BTreeMap, BTreeSet};

use atomic_graph::check::{Spans, nearest};
use atomic_graph::{FunctionId, NodeId};
use serde_json::Value;

use super::fault::{Fault, Faults, code};
use super::fields::Fields;
use super::json::{Body, Item};
use super::place::Places;
use super::shelf::Shelf;
use super::{FunctionTable, Role, Wanted};
use crate::{Functions, Text};

/// Values are kept with the session inside graphs, and JSON deeper than 128 cannot be read back.
const DEEPEST_VALUE: usize = 32;

/// One document being read.
pub(super) struct Reader<'d, 's, 'l> {
    /// The workflow's name, which its functions' ids begin with.
    pub(super) name: String,
    pub(super) table: &'d FunctionTable,
    pub(super) functions: Functions,
    pub(super) faults: Faults<'d>,
    /// What is wrong with the workflows it uses.
    pub(super) inner_faults: Vec<Fault>,
    pub(super) shelf: &'s mut Shelf<'l>,
    pub(super) spans: Spans,
    pub(super) places: &'d Places<'d>,
    /// The nodes and branches around what is being read.
    pub(super) path: Vec<NodeId>,
    /// How many graphs are around it.
    pub(super) depth: usize,
    /// What `nodeDescriptions` says, where it says it, and whether there is such a node.
    pub(super) descriptions: BTreeMap<&'d str, (&'d str, usize, bool)>,
    /// The graphs whose limit was not written by their author.
    pub(super) default_limits: BTreeSet<Vec<NodeId>>,
}

impl<'d> Reader<'d, '_, '_> {
    /// Notes where a part of the current node or graph is.
    pub(super) fn mark(&mut self, part: Option<&str>, at: usize) {
        self.spans.insert(self.path.clone(), part, self.places.note(at));
    }

    /// Reports a value of the wrong type.
    pub(super) fn wrong(&mut self, item: &Item, expected: &str, remedy: &str) {
        let message = format!("it must be {expected}, but it is {}", item.kind());
        self.faults.add(code::WRONG_TYPE, item.at, message, remedy);
    }

    pub(super) fn object(&mut self, item: &'d Item, what: &str) -> Option<Fields<'d>> {
        if let Some(entries) = item.as_object() {
            return Some(Fields::new(item, entries, what));
        }
        self.wrong(item, what, "write an object: {…}");
        None
    }

    pub(super) fn list(&mut self, item: &'d Item, what: &str) -> &'d [Item] {
        let list = item.as_list();
        if list.is_none() {
            self.wrong(item, what, "write a list: […]");
        }
        list.unwrap_or_default()
    }

    /// A text that is used as it is written.
    pub(super) fn words(&mut self, item: &'d Item) -> Option<&'d str> {
        let text = item.as_text();
        if text.is_none() {
            self.wrong(item, "a text", "write it in quotes");
        }
        text
    }

    /// A name: a text that is not empty.
    pub(super) fn name(&mut self, item: &'d Item) -> Option<&'d str> {
        let name = self.words(item)?;
        if name.trim().is_empty() {
            let message = "it is empty";
            self.faults.add(code::OUT_OF_RANGE, item.at, message, "write a name");
            return None;
        }
        Some(name)
    }

    pub(super) fn names(&mut self, item: &'d Item) -> Vec<&'d str> {
        let items = self.list(item, "a list of names");
        items.iter().filter_map(|item| self.name(item)).collect()
    }

    pub(super) fn flag(&mut self, item: &'d Item) -> bool {
        if let Body::Bool(flag) = item.body {
            return flag;
        }
        self.wrong(item, "true or false", "write true or false, without quotes");
        false
    }

    /// A whole number, at least `least`.
    pub(super) fn number<N: TryFrom<u64>>(&mut self, item: &'d Item, least: u64) -> Option<N> {
        let Body::Number(number) = &item.body else {
            self.wrong(item, "a whole number", "write a number, without quotes");
            return None;
        };
        let whole = number.as_u64().filter(|number| *number >= least);
        let fits = whole.and_then(|number| N::try_from(number).ok());
        if fits.is_none() {
            let message = format!("it must be a whole number from {least} on, but it is {number}");
            self.faults.add(code::OUT_OF_RANGE, item.at, message, "write another number");
        }
        fits
    }

    /// A number that may have a fraction.
    pub(super) fn fraction(&mut self, item: &'d Item, most: f64) -> Option<f64> {
        let Body::Number(number) = &item.body else {
            self.wrong(item, "a number", "write a number, without quotes");
            return None;
        };
        let fits = number.as_f64().filter(|number| (0.0..=most).contains(number));
        if fits.is_none() {
            let message = format!("it must be a number from 0 to {most}, but it is {number}");
            self.faults.add(code::OUT_OF_RANGE, item.at, message, "write another number");
        }
        fits
    }

    /// One of a few words; `askUser`, `ask_user` and `ask-user` are the same word.
    pub(super) fn word<W: Clone>(&mut self, item: &'d Item, words: &[(&str, W)]) -> Option<W> {
        let text = self.words(item)?;
        let wanted = plain(text);
        if let Some((_, meaning)) = words.iter().find(|(word, _)| plain(word) == wanted) {
            return Some(meaning.clone());
        }
        let known = words.iter().map(|(word, _)| *word);
        let message = match nearest(text, known.clone()) {
            Some(meant) => format!("\"{text}\" is not known here (did you mean \"{meant}\"?)"),
            None => format!("\"{text}\" is not known here"),
        };
        let known: Vec<_> = known.map(|word| format!("\"{word}\"")).collect();
        let remedy = format!("write one of {}", known.join(", "));
        self.faults.add(code::UNKNOWN_WORD, item.at, message, remedy);
        None
    }

    /// Any value.
    pub(super) fn value(&mut self, item: &'d Item) -> Value {
        if item.depth() > DEEPEST_VALUE {
            let message = format!("more than {DEEPEST_VALUE} lists and objects are in each other");
            self.faults.add(code::TOO_DEEP, item.at, message, "make it flatter");
            return Value::Null;
        }
        item.to_value()
    }

    /// A text that may be filled from the state, or written by a function.
    pub(super) fn text(&mut self, item: &'d Item) -> Text {
        match &item.body {
            Body::Text(text) => return Text::Template(text.clone()),
            Body::Object(_) if is_function(item) => {
                if let Some(function) = self.function(item, Role::Text) {
                    return Text::Call(function);
                }
            }
            Body::Null | Body::Bool(_) | Body::Number(_) | Body::List(_) | Body::Object(_) => {
                let remedy = "write it in quotes; {prompt} and {outputs.<node>} are filled in";
                self.wrong(item, "a text", remedy);
            }
        }
        Text::Template(String::new())
    }

    /// A function, by its id, put to a use.
    pub(super) fn function(&mut self, item: &'d Item, role: Role) -> Option<FunctionId> {
        if !is_function(item) {
            self.wrong(item, "a function", "write {\"$fn\": <id>}");
            return None;
        }
        let mut fields = self.object(item, "a function")?;
        let id = match fields.take("$fn").map(|id| &id.body) {
            Some(Body::Text(id)) => id.clone(),
            Some(Body::Number(id)) => id.to_string(),
            Some(Body::Null | Body::Bool(_) | Body::List(_) | Body::Object(_)) | None => {
                let message = "the id of a function must be a number or a text";
                self.faults.add(code::WRONG_TYPE, item.at, message, "write {\"$fn\": <id>}");
                return None;
            }
        };
        fields.take("native");
        fields.take("args");
        fields.finish(&mut self.faults);
        let name = FunctionId::from(format!("{}/{id}:{}", self.name, role.word()));
        match (self.table)(&Wanted { id: &id, role }) {
            Some(function) if role.fits(&function) => {
                let functions = std::mem::take(&mut self.functions);
                self.functions = functions.with(name.as_str(), function);
            }
            Some(function) => {
                let message = format!("function {id} is a {function:?}, which cannot be used here");
                let remedy = "use a function of the right kind";
                self.faults.add(code::FUNCTION_MISFIT, item.at, message, remedy);
            }
            None => {
                let message = format!("nobody can evaluate function {id}");
                let remedy = "a file of JSON has no functions: use a template, a shell command or \
                              a condition such as {\"key\": \"done\", \"equals\": true}, or write \
                              the workflow in TypeScript";
                self.faults.add(code::UNKNOWN_FUNCTION, item.at, message, remedy);
            }
        }
        Some(name)
    }
}

/// Whether a value stands for a function.
pub(super) fn is_function(item: &Item) -> bool {
    item.find("$fn").is_some()
}

/// A word without what tells `askUser`, `ask_user` and `ask-user` apart.
pub(super) fn plain(word: &str) -> String {
    let letters = word.chars().filter(|c| !matches!(c, '-' | '_'));
    letters.flat_map(char::to_lowercase).collect()
}
