//! Names. Each is its own type so that a node can never be passed for a step.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares a cheap-to-clone name around text.
#[macro_export]
macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
            ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(::std::sync::Arc<str>);

        impl $name {
            /// Wraps text that is already known to be such a name.
            pub fn new(text: impl ::std::convert::AsRef<str>) -> Self {
                Self(::std::sync::Arc::from(text.as_ref()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(&self.0)
            }
        }

        impl ::std::convert::From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl ::std::convert::From<::std::string::String> for $name {
            fn from(text: ::std::string::String) -> Self {
                Self::new(text)
            }
        }

        impl ::std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

name_type!(
    /// A place in a graph.
    NodeId
);
name_type!(
    /// The name of one value in the state.
    Key
);
name_type!(
    /// A function that only the caller can evaluate, such as a closure of a workflow file.
    FunctionId
);

/// One visit to one node, named by its place: `review#2`, or inside a fan
/// `select-ready-tasks#1[#3]/worker#2` (the second time item `#3` reached `worker`).
///
/// A name never depends on the position of anything in a log, so it means the same step in every
/// attempt to finish a run.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct StepId(Arc<str>);

impl StepId {
    /// Wraps text that is already known to name a step.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(Arc::from(text.as_ref()))
    }

    /// Visit number `visit` of `node`, inside `scope` (empty for the outermost graph).
    pub(crate) fn of(scope: &str, node: &NodeId, visit: u32) -> Self {
        if scope.is_empty() {
            return Self(Arc::from(format!("{node}#{visit}")));
        }
        Self(Arc::from(format!("{scope}/{node}#{visit}")))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The node this is a visit to.
    pub fn node(&self) -> &str {
        let last = self.0.rsplit('/').next().unwrap_or(&self.0);
        last.rsplit_once('#').map_or(last, |(node, _)| node)
    }

    /// The item of the innermost fan this step belongs to.
    pub fn item(&self) -> Option<String> {
        let scope = self.0.rsplit_once('/')?.0;
        let inner = scope.rsplit('/').next()?;
        let (_, item) = inner.split_once('[')?;
        Some(unescape(item.strip_suffix(']')?))
    }

    /// The nodes on the way to this step, from the outermost graph in; the last is its own.
    pub(crate) fn stops(&self) -> Vec<Stop<'_>> {
        self.0.split('/').map(Stop::read).collect()
    }
}

/// One node on the way to a step, as in `fan#1[#3]` or, where it is run for the second time
/// because it failed as a whole, `fan#1!2[#3]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stop<'a> {
    /// The node.
    pub(crate) node: &'a str,
    /// What was entered there: an item, a round or a branch.
    pub(crate) inside: Option<String>,
}

impl<'a> Stop<'a> {
    fn read(part: &'a str) -> Self {
        let (place, inside) = match part.strip_suffix(']').and_then(|open| open.rsplit_once('[')) {
            Some((place, inside)) => (place, Some(unescape(inside))),
            None => (part, None),
        };
        let visit = without_number(place, '!').unwrap_or(place);
        Self { node: without_number(visit, '#').unwrap_or(visit), inside }
    }
}

/// What is before a mark and a number at the end of `text`.
pub(crate) fn without_number(text: &str, mark: char) -> Option<&str> {
    let (before, number) = text.rsplit_once(mark)?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(before)
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&unescape(&self.0))
    }
}

/// Makes an item's name safe inside a step's name, where `/`, `[` and `]` have a meaning.
pub(crate) fn escape(item: &str) -> String {
    let mut safe = String::with_capacity(item.len());
    for c in item.chars() {
        match c {
            '%' => safe.push_str("%25"),
            '/' => safe.push_str("%2F"),
            '[' => safe.push_str("%5B"),
            ']' => safe.push_str("%5D"),
            other => safe.push(other),
        }
    }
    safe
}

fn unescape(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    text.replace("%2F", "/").replace("%5B", "[").replace("%5D", "]").replace("%25", "%")
}

#[cfg(test)]
mod tests {
    use super::{NodeId, StepId, escape};

    #[test]
    fn a_step_knows_its_node_and_item() {
        let outer = StepId::of("", &NodeId::from("plan"), 2);
        assert_eq!((outer.as_str(), outer.node(), outer.item()), ("plan#2", "plan", None));

        let scope = format!("fan#1[{}]", escape("a/b]%"));
        let inner = StepId::of(&scope, &NodeId::from("work"), 1);
        assert_eq!(inner.node(), "work");
        assert_eq!(inner.item().as_deref(), Some("a/b]%"));
    }

    #[test]
    fn a_step_knows_the_nodes_on_its_way() {
        let table = [
            ("plan#2", "plan"),
            ("fan#1[#3]/worker#2", "fan(#3) worker"),
            ("both#1[left]/a#1", "both(left) a"),
            ("loop#1[2]/x#1", "loop(2) x"),
            ("sub#1!2/x#1", "sub x"),
            ("fan#1!2[a%2Fb%5D!1]/in#3!2[2]/x#1", "fan(a/b]!1) in(2) x"),
            ("C#/wow!#7", "C# wow!"),
        ];
        for (step, expected) in table {
            let step = StepId::new(step);
            let shown: Vec<_> = step
                .stops()
                .into_iter()
                .map(|stop| match stop.inside {
                    Some(inside) => format!("{}({inside})", stop.node),
                    None => stop.node.to_owned(),
                })
                .collect();
            assert_eq!(shown.join(" "), expected, "{step}");
        }
    }
}
