//! A certificate for people.

use std::fmt;

use super::estimate::{Reason, Why};
use super::shape::{Place, Shape, Unknown};
use super::{Bound, Certificate, Reasons, Unbounded};
use crate::{FunctionId, Key, Machine};

/// Nodes listed one by one; of more than these only the number is told.
const LISTED: usize = 20;

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "agent launches: {}", self.launches)?;
        writeln!(f, "agents at once: {}", self.at_once)?;
        for node in self.nodes.iter().take(LISTED) {
            writeln!(f, "  {}: {}", node.path, node.launches)?;
        }
        if let Some(more) = self.nodes.len().checked_sub(LISTED).filter(|more| *more > 0) {
            writeln!(f, "  and {more} nodes more")?;
        }
        for Unbounded { path, why, remedy } in &self.unbounded {
            writeln!(f, "no limit at `{path}`: {why}; {remedy}")?;
        }
        writeln!(f, "holds until one of these changes: {}", names(self.rests_on.iter()))?;
        write!(
            f,
            "not counted: a step that is cut off and started again, and a failed run that is \
             resumed"
        )
    }
}

/// Says of everything without a limit why that is, and what to do.
pub(super) fn unbounded(shape: &Shape, reasons: Reasons) -> Vec<Unbounded> {
    let mut all: Vec<Unbounded> = vec![];
    for Reason { place, why } in reasons.endless.into_iter().chain(reasons.crowds) {
        let path = shape.places[place].path.clone();
        let (why, remedy) = match why {
            Why::Cycle { nodes, unknown } => cycle(shape, &nodes, &unknown),
            Why::Unknown(unknown) => missing(shape, place, &unknown),
        };
        let remedy = format!("{remedy}, or set `{}`", Machine::MAX_LAUNCHES);
        let entry = Unbounded { path, why, remedy };
        if !all.contains(&entry) {
            all.push(entry);
        }
    }
    all
}

fn cycle(shape: &Shape, nodes: &[usize], unknown: &[Unknown]) -> (String, String) {
    let why = match nodes {
        [_] => "a cycle without a limit leads to it again and again".to_owned(),
        _ => {
            let paths = nodes.iter().map(|node| &shape.places[*node].path);
            format!("a cycle without a limit leads again and again to {}", names(paths))
        }
    };
    let own = nodes.iter().flat_map(|node| &shape.places[*node].unknown);
    let own = own.filter(|unknown| matches!(unknown, Unknown::Visits { .. }));
    let remedy = once_known(unknown.iter().chain(own));
    let remedy = remedy.unwrap_or_else(|| {
        "set `max_iterations` of its graph or `max_visits` of a node".to_owned()
    });
    (why, remedy)
}

fn missing(shape: &Shape, place: usize, unknown: &Unknown) -> (String, String) {
    let made = |what: &str, key: &Key, made_by: &Option<FunctionId>| match made_by {
        Some(function) => format!("{what}, `{key}`, is made by the function `{function}`"),
        None => format!("{what}, `{key}`, is not known yet"),
    };
    let why = match unknown {
        Unknown::Rounds => "nothing limits how often the loop goes round".to_owned(),
        Unknown::Script => "what the script calls is decided while it runs".to_owned(),
        Unknown::Tasks => "its tasks may run again and new ones may come".to_owned(),
        Unknown::List { key, made_by } => made("its list", key, made_by),
        Unknown::Workers { key, made_by } => made("the number of its workers", key, made_by),
        Unknown::Visits { key, made_by } => made("the limit of its visits", key, made_by),
        Unknown::Calls { key, made_by } => made("the limit of its calls", key, made_by),
    };
    let own = once_known(std::iter::once(unknown));
    let remedy = own.or_else(|| once_known(inside(shape, place))).unwrap_or_else(|| {
        let nodes = shape.places[place + 1..shape.places[place].end].iter();
        let nodes = nodes.filter(|node| node.launches && node.limit == Bound::Unbounded);
        let rounds = match unknown {
            Unknown::Rounds => "`max_rounds`, or ",
            Unknown::Script => "`max_calls`, or ",
            Unknown::Tasks
            | Unknown::List { .. }
            | Unknown::Workers { .. }
            | Unknown::Visits { .. }
            | Unknown::Calls { .. } => "",
        };
        let nodes = names(nodes.map(|node| &node.path));
        format!("set {rounds}`max_visits` of {nodes}")
    });
    (why, remedy)
}

fn inside(shape: &Shape, place: usize) -> impl Iterator<Item = &Unknown> {
    let places: &[Place] = &shape.places[place + 1..shape.places[place].end];
    places.iter().flat_map(|place| &place.unknown)
}

/// The keys to wait for, when it is only a matter of waiting.
fn once_known<'u>(unknown: impl Iterator<Item = &'u Unknown>) -> Option<String> {
    let mut keys: Vec<&Key> = unknown
        .filter_map(|unknown| match unknown {
            Unknown::List { key, made_by: None }
            | Unknown::Workers { key, made_by: None }
            | Unknown::Visits { key, made_by: None }
            | Unknown::Calls { key, made_by: None } => Some(key),
            Unknown::Rounds
            | Unknown::Script
            | Unknown::Tasks
            | Unknown::List { made_by: Some(_), .. }
            | Unknown::Workers { made_by: Some(_), .. }
            | Unknown::Visits { made_by: Some(_), .. }
            | Unknown::Calls { made_by: Some(_), .. } => None,
        })
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let verb = if keys.len() == 1 { "is" } else { "are" };
    (!keys.is_empty()).then(|| format!("this is known when {} {verb}", names(keys.into_iter())))
}

/// A few names, and how many there are besides.
fn names<T: fmt::Display>(all: impl Iterator<Item = T>) -> String {
    let all: Vec<String> = all.map(|name| format!("`{name}`")).collect();
    match all.split_at_checked(5) {
        Some((few, [_, _, ..])) => format!("{} and {} more", few.join(", "), all.len() - few.len()),
        Some(_) | None => all.join(", "),
    }
}
