//! Paths into the session's folder that a state contains. They follow the session into another folder:
//! a fork that wrote to the folder of the session it was taken from would change that one.

use std::path::Path;

use atomic_event::{Event, Patch};
use atomic_graph::{Machine, Reducer};
use serde_json::Value;

/// Where the outputs of the steps are; they are facts and stay as they are.
const OUTPUTS: &str = "outputs";

/// A session's folder: an earlier path and the one it has now.
pub(crate) struct Relocation {
    /// The end of the earlier path. The project may have been at any place.
    tail: String,
    now: String,
}

impl Relocation {
    pub(crate) fn new(earlier: &Path, now: &Path) -> Self {
        let name = |path: Option<&Path>| {
            path.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
        };
        let (parent, session) = (name(earlier.parent()), name(Some(earlier)));
        Self { tail: format!("/{parent}/{session}"), now: now.display().to_string() }
    }

    /// Replaces the earlier path wherever a text in the value is it or begins with it. Returns whether
    /// there was one.
    pub(crate) fn apply(&self, value: &mut Value) -> bool {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
            Value::String(text) => {
                let moved = self.moved(text);
                let is_moved = moved.is_some();
                *text = moved.unwrap_or_else(|| std::mem::take(text));
                is_moved
            }
            // `any` would stop at the first part that has the path.
            Value::Array(items) => items.iter_mut().fold(false, |any, item| self.apply(item) | any),
            Value::Object(fields) => {
                fields.values_mut().fold(false, |any, field| self.apply(field) | any)
            }
        }
    }

    fn moved(&self, text: &str) -> Option<String> {
        let (before, inside) = text.split_once(&self.tail)?;
        let is_whole = inside.is_empty() || inside.starts_with('/');
        // A sentence that begins with a slash, such as `/review the file /a/b`, is not a path.
        let is_path = before.is_empty() || before.starts_with('/');
        let is_one = !before.contains(" /") && !before.contains('\n');
        let moved = (is_whole && is_path && is_one).then(|| format!("{}{inside}", self.now))?;
        (moved != text).then_some(moved)
    }

    /// The event that changes a state in the middle of a session; none where nothing changes.
    pub(crate) fn event(&self, machine: &Machine) -> Option<Event> {
        let reducers = &machine.program().graph().reducers;
        let mut patch = Patch::new();
        for state in [machine.outermost(), machine.newest()] {
            let Value::Object(values) = state.to_value() else { continue };
            for (key, before) in values {
                let mut after = before.clone();
                if key == OUTPUTS || !self.apply(&mut after) {
                    continue;
                }
                let reducer = reducers.get(key.as_str());
                if let Some(change) = change(reducer, &before, after) {
                    patch.insert(key.into(), change);
                }
            }
        }
        let reason = "the session's folder is another one".to_owned();
        (!patch.is_empty()).then_some(Event::StatePatched { patch, reason })
    }
}

/// The change that makes `after` of `before`. A list that is only appended to keeps its entries.
fn change(reducer: Option<&Reducer>, before: &Value, after: Value) -> Option<Value> {
    match (reducer, before, after) {
        (Some(Reducer::Concat), ..) => None,
        // Rows that stay as they are may be under way, and a change begins them again.
        (Some(Reducer::MergeById | Reducer::MergeBy(_)), Value::Array(old), Value::Array(new)) => {
            let rows = new.into_iter().zip(old);
            let changed = rows.filter(|(new, old)| new != *old).map(|(new, _)| new);
            Some(Value::Array(changed.collect()))
        }
        (_, _, after) => Some(after),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::Relocation;

    #[test]
    fn only_paths_into_the_folder_are_replaced() {
        let relocation = Relocation::new(
            Path::new("/copy/.ralph/sessions/one"),
            Path::new("/copy/.ralph/sessions/two"),
        );
        let mut value = json!({
            "dir": "/old place/.ralph/sessions/one",
            "deep": [["/copy/.ralph/sessions/one/a b.md"]],
            "other": "/copy/.ralph/sessions/one-more",
            "elsewhere": "/tmp/one/a",
            "told": "see /copy/.ralph/sessions/one",
            "command": "/review the file /copy/.ralph/sessions/one/a",
            "relative": ".ralph/sessions/one",
        });
        assert!(relocation.apply(&mut value));
        let is = json!({
            "dir": "/copy/.ralph/sessions/two",
            "deep": [["/copy/.ralph/sessions/two/a b.md"]],
            "other": "/copy/.ralph/sessions/one-more",
            "elsewhere": "/tmp/one/a",
            "told": "see /copy/.ralph/sessions/one",
            "command": "/review the file /copy/.ralph/sessions/one/a",
            "relative": ".ralph/sessions/one",
        });
        assert_eq!(value, is);
        assert!(!relocation.apply(&mut value));
    }
}
