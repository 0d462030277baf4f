//! Tools and models that entities name and nobody has.

use std::collections::BTreeMap;
use std::path::Path;

use atomic_files::PROJECT_LIMIT;
use atomic_registry::{Entity, Finding, Severity, tools};

/// How many of a file are told one by one: each is looked for in all of it.
const TOLD: usize = 8;

/// What entities name and nobody has, at the lines of their files.
pub(crate) fn findings<'e>(entities: impl Iterator<Item = &'e Entity>) -> Vec<Finding> {
    let mut findings = vec![];
    let mut told: BTreeMap<&Path, usize> = BTreeMap::new();
    for entity in entities {
        let Some(path) = &entity.origin.path else { continue };
        let told = told.entry(path).or_default();
        for (word, text, remedy) in unknown(entity) {
            *told += 1;
            if *told > TOLD {
                continue;
            }
            let message = format!("{}: {text}", entity.name);
            findings.push(Finding { line: line_of(path, &word), ..odd(path, message, remedy) });
        }
    }
    for (path, count) in told {
        if let Some(more) = count.checked_sub(TOLD).filter(|more| *more > 0) {
            let message = format!("{more} more tools and models that nobody has");
            findings.push(odd(path, message, "mend the first of them".to_owned()));
        }
    }
    findings
}

fn odd(path: &Path, message: String, remedy: String) -> Finding {
    Finding { path: path.to_owned(), line: None, severity: Severity::Odd, message, remedy }
}

/// What an entity names and nobody has: the word, what is said about it, and the remedy.
fn unknown(entity: &Entity) -> Vec<(String, String, String)> {
    let mut found: Vec<_> = entity
        .tools
        .unknown
        .iter()
        .map(|name| {
            let text = format!("no backend has a tool `{name}`, so it allows nothing");
            let near = tools::unknown(name).and_then(|unknown| unknown.near);
            let remedy = near.map_or_else(
                || "remove it, or name the MCP server it belongs to".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            (name.clone(), text, remedy)
        })
        .collect();
    if let Some(model) = entity.model.as_ref().filter(|model| !model.looks_known()) {
        let text = format!("`{}` looks like no model of any backend", model.raw);
        let remedy = model.near().map_or_else(
            || "write opus, sonnet, haiku, inherit, or a model's whole name".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        found.push((model.raw.clone(), text, remedy));
    }
    found
}

/// The first line with this word in it.
fn line_of(path: &Path, word: &str) -> Option<usize> {
    let bytes = atomic_files::read(path, PROJECT_LIMIT).ok()?;
    let word = word.to_lowercase();
    let is_there = |line: &str| {
        let line = line.to_lowercase();
        let parts = line.split(|c: char| !c.is_alphanumeric());
        line.contains(&word)
            && (word.contains(|c: char| !c.is_alphanumeric())
                || parts.into_iter().any(|part| part == word))
    };
    let text = String::from_utf8_lossy(&bytes);
    text.lines().position(is_there).map(|index| index + 1)
}
