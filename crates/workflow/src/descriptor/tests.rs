//! Documents from the outside: what they become, and what is said about those that are wrong.

mod bad;
mod documented;
mod elsewhere;
mod inner;
mod questions;
mod random;
mod retries;
mod samples;
mod show;

use std::sync::Arc;

use atomic_event::StepResult;
use serde_json::Value;

use super::{Document, Draft, Found, Library, NoLibrary, Role, Wanted, read};
use crate::{Function, Source};

/// A document whose functions are all there.
fn document(file: &str, text: &str) -> Document {
    let source = Source::new(file, text);
    Document::with_functions(source, Arc::new(any_function))
}

/// A function of the right kind for every id but `missing` and `text`.
fn any_function(wanted: &Wanted<'_>) -> Option<Function> {
    if wanted.id == "missing" {
        return None;
    }
    let role = if wanted.id == "text" { Role::Text } else { wanted.role };
    Some(match role {
        Role::Execute | Role::Custom => Function::step(|_| Ok(StepResult::default())),
        Role::Text => Function::text(|_| String::new()),
        Role::Condition => Function::holds(|_| false),
        Role::Map
        | Role::Input
        | Role::Output
        | Role::Merge
        | Role::Reducer
        | Role::RetryOn
        | Role::OnError
        | Role::Select => Function::value(|_, _| Ok(Value::Null)),
    })
}

/// Reads a document that uses no other workflow.
fn read_alone(text: &str) -> Draft {
    read(&document("x.json", text), &NoLibrary)
}

/// Everything said about a document and its graph.
fn said(draft: &Draft) -> String {
    let faults = draft.faults.iter().map(ToString::to_string);
    let problems = draft.check(&Default::default()).into_iter().map(|problem| problem.to_string());
    let all: Vec<String> = faults.chain(problems).collect();
    all.join("\n")
}

/// Documents that find each other by name or alias.
struct Shelf(Vec<(&'static str, String)>);

impl Library for Shelf {
    fn find(&self, name: &str) -> Option<Found> {
        let found = self.0.iter().find(|(known, text)| {
            let value: Value = serde_json::from_str(text).unwrap();
            let aliases = value["aliases"].as_array();
            *known == name || aliases.is_some_and(|aliases| aliases.contains(&Value::from(name)))
        });
        found.map(|(name, text)| Found::Document(Box::new(document(&format!("{name}.json"), text))))
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| (*name).to_owned()).collect()
    }
}
