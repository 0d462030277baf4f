//! A graph with the numbers of the state filled in: what holds what, and how often.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Bound;
use super::flow::Flow;
use crate::{Branch, Count, Each, FunctionId, Graph, Key, Kind, Node, OnError, Ready, State};

/// A graph and all graphs inside it. The same graph appears several times where the items of a
/// fan decide how large it is.
pub(super) struct Shape {
    /// Each after the graphs inside it; the outermost is the last.
    pub(super) levels: Vec<Level>,
    /// Every node once, each before the nodes inside it.
    pub(super) places: Vec<Place>,
    /// The keys that were looked at.
    pub(super) rests_on: BTreeSet<Key>,
}

/// One graph.
pub(super) struct Level {
    pub(super) flow: Flow,
    pub(super) spots: Vec<Spot>,
    /// Visits allowed to each node while the graph is run once.
    pub(super) per_run: Bound,
    /// Why that cannot be known.
    pub(super) unknown: Vec<Unknown>,
}

/// A node in a [`Level`].
pub(super) struct Spot {
    /// Its number among the [`Place`]s.
    pub(super) place: usize,
    pub(super) attempts: Bound,
    /// Visits allowed in the whole run.
    pub(super) limit: Bound,
    pub(super) inside: Inside,
}

/// What one attempt at a node is made of.
pub(super) enum Inside {
    Nothing,
    Launch,
    /// A graph, so many times one after the other.
    Rounds {
        level: usize,
        times: Bound,
    },
    /// A graph for each item, so many items at once; graphs that differ are listed apart.
    Items {
        levels: Vec<usize>,
        times: Bound,
        workers: Bound,
    },
    /// Several graphs at once.
    Branches(Vec<usize>),
    /// So many graphs in all, each of them one of these, as many at once as there are.
    Calls {
        levels: Vec<usize>,
        times: Bound,
    },
}

/// A node, for the reader.
pub(super) struct Place {
    /// `fan/worker`, or inside a branch `both[left]/worker`.
    pub(super) path: String,
    /// How many nodes it is inside of.
    pub(super) depth: u64,
    /// The number after those of the nodes inside it.
    pub(super) end: usize,
    pub(super) launches: bool,
    pub(super) attempts: Bound,
    /// The most that its limit of visits ever is.
    pub(super) limit: Bound,
    /// Why something about it cannot be counted.
    pub(super) unknown: Vec<Unknown>,
}

/// A number that would have been needed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Unknown {
    /// How often the loop goes round.
    Rounds,
    /// What a script calls.
    Script,
    /// Tasks run again, and new ones come.
    Tasks,
    /// The list of a fan.
    List { key: Key, made_by: Option<FunctionId> },
    /// The number of workers of a fan.
    Workers { key: Key, made_by: Option<FunctionId> },
    /// The limit of visits.
    Visits { key: Key, made_by: Option<FunctionId> },
    /// The number of calls of a script.
    Calls { key: Key, made_by: Option<FunctionId> },
}

/// What a graph inside others sees of the state.
#[derive(Clone)]
struct Scope<'s> {
    state: &'s State,
    /// Keys under which items are found, the innermost last; the value where it is known.
    items: Vec<(&'s Key, Option<&'s Value>)>,
    /// The function that makes the state here, which can hold anything.
    made_by: Option<&'s FunctionId>,
}

impl Shape {
    pub(super) fn of(graph: &Graph, state: &State) -> Self {
        let mut shape = Self { levels: vec![], places: vec![], rests_on: BTreeSet::new() };
        let scope = Scope { state, items: vec![], made_by: None };
        shape.level(graph, &scope, &At { path: String::new(), depth: 0, first: 0 });
        shape
    }

    /// Adds a graph; gives its number and the place after its last.
    fn level<'s>(&mut self, graph: &'s Graph, scope: &Scope<'s>, at: &At) -> (usize, usize) {
        let mut spots = vec![];
        let mut next = at.first;
        for node in &graph.nodes {
            let spot = self.spot(node, scope, &At { first: next, ..at.clone() });
            next = self.places[next].end;
            spots.push(spot);
        }
        let mut unknown = vec![];
        let per_run = graph.max_iterations.as_ref().map_or(Bound::Unbounded, |count| {
            self.count(count, scope, &mut unknown, |key, made_by| Unknown::Visits { key, made_by })
        });
        self.levels.push(Level { flow: Flow::of(graph), spots, per_run, unknown });
        (self.levels.len() - 1, next)
    }

    fn spot<'s>(&mut self, node: &'s Node, scope: &Scope<'s>, at: &At) -> Spot {
        let attempts = Bound::AtMost(u64::from(attempts(node)));
        let launches = matches!(node.kind, Kind::Work { launch: true, .. });
        let path = format!("{}{}", at.path, node.id);
        let mut unknown = vec![];
        let limit = node.max_visits.as_ref().map_or(Bound::Unbounded, |count| {
            self.count(count, scope, &mut unknown, |key, made_by| Unknown::Visits { key, made_by })
        });
        if at.first == self.places.len() {
            let (depth, end) = (at.depth, at.first + 1);
            let place = Place {
                path: path.clone(),
                depth,
                end,
                launches,
                attempts,
                limit,
                unknown: vec![],
            };
            self.places.push(place);
        }
        let inside_at = At { path: format!("{path}/"), depth: at.depth + 1, first: at.first + 1 };
        let (inside, end) = match &node.kind {
            Kind::Work { launch: true, .. } => (Inside::Launch, at.first + 1),
            Kind::Work { launch: false, .. } | Kind::Decision => (Inside::Nothing, at.first + 1),
            Kind::Subgraph { graph, input, .. } => {
                let scope = match input {
                    Some(made_by) => Scope { items: vec![], made_by: Some(made_by), ..*scope },
                    None => scope.clone(),
                };
                let (level, end) = self.level(graph, &scope, &inside_at);
                (Inside::Rounds { level, times: Bound::ONE }, end)
            }
            Kind::Loop { graph, max_rounds, .. } => {
                let (level, end) = self.level(graph, scope, &inside_at);
                let times = Some(u64::from(*max_rounds)).filter(|rounds| *rounds > 0).into();
                if times == Bound::Unbounded {
                    unknown.push(Unknown::Rounds);
                }
                (Inside::Rounds { level, times }, end)
            }
            Kind::Each(each) => self.fan(each, scope, &inside_at, &mut unknown),
            Kind::Parallel(parallel) => {
                let (levels, end) = self.branches(&parallel.branches, scope, &path, &inside_at);
                (Inside::Branches(levels), end)
            }
            Kind::Script(script) => {
                let times = match &script.max_calls {
                    Some(count) => self.count(count, scope, &mut unknown, |key, made_by| {
                        Unknown::Calls { key, made_by }
                    }),
                    None => {
                        unknown.push(Unknown::Script);
                        Bound::Unbounded
                    }
                };
                let scope = Scope { made_by: Some(&script.advance), ..scope.clone() };
                let (levels, end) = self.branches(&script.bodies, &scope, &path, &inside_at);
                (Inside::Calls { levels, times }, end)
            }
        };
        self.note(at.first, end, limit, unknown);
        Spot { place: at.first, attempts, limit, inside }
    }

    /// Looks at graphs that have names; gives their numbers and the place after the last.
    fn branches<'s>(
        &mut self,
        branches: &'s [Branch],
        scope: &Scope<'s>,
        path: &str,
        inside_at: &At,
    ) -> (Vec<usize>, usize) {
        let (mut levels, mut end) = (vec![], inside_at.first);
        for branch in branches {
            let path = format!("{path}[{}]/", branch.id);
            let at = At { path, first: end, ..*inside_at };
            let (level, next) = self.level(&branch.graph, scope, &at);
            levels.push(level);
            end = next;
        }
        (levels, end)
    }

    /// Keeps what was found about a node, also when it is looked at for another item.
    fn note(&mut self, place: usize, end: usize, limit: Bound, unknown: Vec<Unknown>) {
        let place = &mut self.places[place];
        place.end = end;
        place.limit = place.limit.max(limit);
        for unknown in unknown {
            if !place.unknown.contains(&unknown) {
                place.unknown.push(unknown);
            }
        }
    }

    fn fan<'s>(
        &mut self,
        each: &'s Each,
        scope: &Scope<'s>,
        at: &At,
        unknown: &mut Vec<Unknown>,
    ) -> (Inside, usize) {
        let workers = self
            .count(&each.workers, scope, unknown, |key, made_by| Unknown::Workers { key, made_by });
        let workers = workers.max(Bound::ONE);
        let list = self.value(&each.over, scope).and_then(Value::as_array);
        let mut scope = scope.clone();
        scope.items.push((&each.item, None));
        match (each.ready, list) {
            (Ready::Tasks, _) => unknown.push(Unknown::Tasks),
            (Ready::Once, None) => {
                let made_by = scope.made_by.cloned();
                unknown.push(Unknown::List { key: each.over.clone(), made_by });
            }
            (Ready::Once, Some(list)) => {
                let (levels, times, end) = self.items(each, list, &mut scope, at);
                return (Inside::Items { levels, times, workers }, end);
            }
        }
        let (level, end) = self.level(&each.graph, &scope, at);
        (Inside::Items { levels: vec![level], times: Bound::Unbounded, workers }, end)
    }

    /// Looks at the graph of a fan once, or once for every item where the item makes a difference.
    fn items<'s>(
        &mut self,
        each: &'s Each,
        list: &'s [Value],
        scope: &mut Scope<'s>,
        at: &At,
    ) -> (Vec<usize>, Bound, usize) {
        let (times, listed) = match list {
            [_, ..] if counts_by(&each.graph, &each.item) => (1, list),
            _ => (list.len(), &[Value::Null][..]),
        };
        let times = Bound::AtMost(u64::try_from(times).unwrap_or(u64::MAX));
        let (mut levels, mut end) = (vec![], at.first);
        for item in listed {
            scope.items.pop();
            scope.items.push((&each.item, Some(item)));
            let (level, next) = self.level(&each.graph, scope, at);
            levels.push(level);
            end = next;
        }
        (levels, times, end)
    }

    fn count(
        &mut self,
        count: &Count,
        scope: &Scope<'_>,
        unknown: &mut Vec<Unknown>,
        why: impl FnOnce(Key, Option<FunctionId>) -> Unknown,
    ) -> Bound {
        let key = match count {
            Count::Fixed(number) => return Bound::AtMost(*number),
            Count::Key(key) => key,
        };
        let Some(number) = self.value(key, scope).and_then(Value::as_u64) else {
            unknown.push(why(key.clone(), scope.made_by.cloned()));
            return Bound::Unbounded;
        };
        Bound::AtMost(number)
    }

    fn value<'s>(&mut self, key: &Key, scope: &Scope<'s>) -> Option<&'s Value> {
        if let Some((_, item)) = scope.items.iter().rev().find(|(name, _)| *name == key) {
            return *item;
        }
        if scope.made_by.is_some() {
            return None;
        }
        self.rests_on.insert(key.clone());
        scope.state.get(key.as_str()).map(AsRef::as_ref)
    }
}

/// Where a graph is being looked at.
#[derive(Clone)]
struct At {
    /// What the paths of its nodes begin with.
    path: String,
    depth: u64,
    /// The place of its first node.
    first: usize,
}

/// How often one visit to a node can be tried.
fn attempts(node: &Node) -> u32 {
    let own = node.retry.attempts.max(1);
    match node.on_error {
        OnError::Call(_) => own.max(OnError::ATTEMPTS),
        OnError::Abort | OnError::Skip | OnError::SkipWith(_) | OnError::Goto(_) => own,
    }
}

/// Whether a number or a list is looked up under `key` somewhere in the graph.
fn counts_by(graph: &Graph, key: &Key) -> bool {
    let by = |count: &Count| matches!(count, Count::Key(other) if other == key);
    if graph.max_iterations.as_ref().is_some_and(by) {
        return true;
    }
    graph.nodes.iter().any(|node| {
        let fan = match &node.kind {
            Kind::Each(each) => each.over == *key || by(&each.workers),
            Kind::Script(script) => script.max_calls.as_ref().is_some_and(by),
            Kind::Work { .. }
            | Kind::Decision
            | Kind::Subgraph { .. }
            | Kind::Loop { .. }
            | Kind::Parallel(_) => false,
        };
        fan || node.max_visits.as_ref().is_some_and(by)
            || node.inner().iter().any(|(_, graph)| counts_by(graph, key))
    })
}
