//! Keys that stand twice in one object. JSON allows them, and whoever reads it keeps only the last.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::source::{Problem, Source, kind, parsed};

/// How deep objects and lists may lie in each other; what is deeper is not read anyway.
const DEEPEST: usize = 128;

/// The entries of an object, every one of them, as they stand.
struct Entries<'t>(Vec<(String, &'t RawValue)>);

impl<'t> Deserialize<'t> for Entries<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'t> Visitor<'t> for All {
            type Value = Entries<'t>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Entries<'t>, A::Error> {
                let mut entries = vec![];
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(All)
    }
}

/// Every key that stands twice, in the order of their lines.
pub(super) fn repeated(source: &Source, root: &RawValue) -> Vec<Problem> {
    let mut problems = vec![];
    let mut left = vec![(root, 1)];
    while let Some((part, depth)) = left.pop() {
        if depth > DEEPEST {
            continue;
        }
        match kind(part) {
            "an object" => {
                let Ok(Entries(entries)) = parsed(part) else { continue };
                repeated_in(source, &entries, &mut problems);
                left.extend(entries.into_iter().map(|(_, value)| (value, depth + 1)));
            }
            "a list" => {
                let items: Vec<&RawValue> = parsed(part).unwrap_or_default();
                left.extend(items.into_iter().map(|item| (item, depth + 1)));
            }
            _ => {}
        }
    }
    problems.sort_by_key(|problem| problem.line);
    problems
}

fn repeated_in(source: &Source, entries: &[(String, &RawValue)], problems: &mut Vec<Problem>) {
    let mut first = HashMap::new();
    for (key, value) in entries {
        let line = source.line(value);
        if let Some(before) = first.insert(key, line) {
            let message = format!("`{key}` stands twice in one object; first on line {before}");
            problems.push(Problem::new(line, message, "leave one of them out"));
        }
    }
}
