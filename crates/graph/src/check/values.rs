//! Values of the state that are known before a run: numbers and lists that are looked up there,
//! and what reducers are to combine.
//!
//! A value counts as known only where nothing can have changed it before it is needed.

use std::collections::BTreeSet;
use std::iter::once;

use serde_json::Value;

use super::limits::OUTPUTS;
use super::scope::{Owner, Scopes, Site};
use super::used::Used;
use super::{Code, Known, Place, Problem, Report, Severity, UseKind};
use crate::reduce::kind;
use crate::{Condition, Count, Key, Kind, Node, OnError, Patch, Reducer, Script};

pub(super) fn check(scopes: &Scopes<'_>, used: &[Used], known: &Known, report: &mut Report) {
    let (state, keys) = (known.state.as_ref(), known.keys.as_ref());
    let changed = Changed::of(scopes, used);
    for site in scopes.sites() {
        let mut values = Values { site, state, keys, changed: &changed, report };
        values.beginnings();
        values.counts();
        values.conditions();
        for (_, node) in site.nodes() {
            values.of_node(node);
        }
        values.templates(&used[site.number]);
    }
}

/// The keys that somebody may change on the way.
#[derive(Default)]
struct Changed<'a> {
    keys: BTreeSet<&'a str>,
    /// Whether there is a function, which can change anything.
    anything: bool,
}

impl<'a> Changed<'a> {
    fn of(scopes: &'a Scopes<'_>, used: &'a [Used]) -> Self {
        let mut changed = Self::default();
        for site in scopes.sites() {
            for used in used[site.number].values().flatten() {
                match used.kind {
                    UseKind::Writes | UseKind::MayWrite | UseKind::Provides => {
                        changed.keys.insert(&used.name);
                    }
                    UseKind::Function => changed.anything = true,
                    UseKind::Agent
                    | UseKind::Skill
                    | UseKind::Command
                    | UseKind::Workflow
                    | UseKind::Model
                    | UseKind::TextFunction
                    | UseKind::Output { .. }
                    | UseKind::Template { .. }
                    | UseKind::UnsafeTemplate { .. } => {}
                }
            }
            for (_, node) in site.nodes() {
                match &node.on_error {
                    OnError::SkipWith(patch) => changed.keys.extend(patch.keys().map(Key::as_str)),
                    OnError::Call(_) => changed.anything = true,
                    OnError::Abort | OnError::Skip | OnError::Goto(_) => {}
                }
                changed.anything |= match &node.kind {
                    Kind::Subgraph { output, .. } => output.is_some(),
                    Kind::Parallel(parallel) => parallel.merge.is_some(),
                    Kind::Script(_) => true,
                    Kind::Work { .. } | Kind::Decision | Kind::Loop { .. } | Kind::Each(_) => false,
                };
            }
        }
        changed
    }

    fn may_change(&self, key: &Key) -> bool {
        self.anything || self.keys.contains(key.as_str())
    }
}

/// What a graph finds under a key when it begins.
#[derive(Clone, Copy)]
enum Begins<'v> {
    With(&'v Value),
    WithNothing,
    Unknown,
}

struct Values<'a, 'g> {
    site: Site<'a, 'g>,
    state: Option<&'a Patch>,
    keys: Option<&'a BTreeSet<Key>>,
    changed: &'a Changed<'a>,
    report: &'a mut Report,
}

impl<'a> Values<'a, '_> {
    /// Values that a graph begins with itself.
    fn beginnings(&mut self) {
        let graph = self.site.graph();
        let own = match self.site.scope().owner {
            None => self.state,
            Some(_) => Some(&graph.defaults),
        };
        for (key, value) in own.into_iter().flatten() {
            let problem = self.reducer(key).and_then(|reducer| reducer.begins_with(value).err());
            if let Some(problem) = problem {
                let place = self.site.place().part(format!("state.{key}"));
                self.misfit(place, key, &problem);
            }
        }
    }

    /// The limit that is the graph's own, and not that of the graph around it.
    fn counts(&mut self) {
        let around =
            self.site.outwards().nth(1).and_then(|site| site.graph().max_iterations.as_ref());
        if let Some(count) =
            self.site.graph().max_iterations.as_ref().filter(|c| Some(*c) != around)
        {
            self.count("max_iterations", count, self.site.own_part("max_iterations"));
        }
    }

    fn conditions(&mut self) {
        for (number, edge) in self.site.graph().edges.iter().enumerate() {
            if let Some(key) = edge.when.as_ref().and_then(looked_at) {
                self.condition(key, self.site.place().part(format!("edges[{number}]")));
            }
        }
        for (_, node) in self.site.nodes() {
            if let Kind::Loop { until: Some(until), .. } = &node.kind
                && let Some(key) = looked_at(until)
            {
                self.condition(key, self.site.at(&node.id).part("until"));
            }
        }
    }

    fn condition(&mut self, key: &Key, place: Place) {
        if matches!(self.begins(key), Begins::WithNothing) {
            let message = format!("the condition looks at `{key}`, which nothing ever sets");
            let remedy = self.instead(key);
            let problem = Problem::new(Code::CONDITION_KEY_MISSING, place, message, remedy);
            self.report.add(self.site, problem);
        }
    }

    /// Keys that texts are filled with.
    fn templates(&mut self, used: &Used) {
        for (number, uses) in used {
            for found in uses {
                let UseKind::Template { in_command } = found.kind else { continue };
                let path = found.name.as_str();
                let first = Key::from(path.split('.').next().unwrap_or(path));
                let mut is_certain = true;
                let remedy = if path.starts_with("file:") {
                    "only commands read values from files; write the key without `file:`".to_owned()
                } else if first.as_str() == OUTPUTS {
                    "name a node: {outputs.<node>}".to_owned()
                } else if matches!(self.begins(&first), Begins::WithNothing) {
                    is_certain = false;
                    self.instead_of_template(path, &first, in_command)
                } else {
                    continue;
                };
                let message =
                    format!("the text is filled with {{{path}}}, which nothing ever sets");
                let place = self.site.at(&self.site.node(*number).id).part("action");
                let problem = Problem::new(Code::TEXT_KEY_MISSING, place, message, remedy);
                let problem = if is_certain { problem } else { self.unless_created(problem) };
                self.report.add(self.site, problem);
            }
        }
    }

    /// What to write instead of a template whose key nothing sets.
    fn instead_of_template(&mut self, path: &str, first: &Key, in_command: bool) -> String {
        let items = self.site.outwards().filter_map(|site| {
            let owner = site.scope().owner?;
            let kind = &self.site.other(owner.scope).node(owner.node).kind;
            if let Kind::Each(each) = kind { Some(each.item.as_str()) } else { None }
        });
        let state = self.state.into_iter().flatten().map(|(key, _)| key.as_str());
        let keys = self.keys.into_iter().flatten().map(Key::as_str);
        let changed = self.changed.keys.iter().copied();
        let known: Vec<&str> =
            state.chain(keys).chain(changed).chain(items).chain(once("outputs")).collect();
        let meant = match self.report.guess(first.as_str(), known.into_iter()) {
            Some(meant) => format!("did you mean {{{}}}?", path.replacen(first.as_str(), meant, 1)),
            None => format!("let the state begin with a value for `{first}`, or name another key."),
        };
        let text = match in_command {
            true => format!("\\{{{path}}} outside of quotes, or {{''{path}}} inside single quotes"),
            false => format!("\\{{{path}}}"),
        };
        format!("{meant} For braces that are text, write {text}")
    }

    fn of_node(&mut self, node: &Node) {
        let place = |part: &str| self.site.at(&node.id).part(part);
        let (visits, workers, over) = (place("max_visits"), place("workers"), place("over"));
        let calls = place("max_calls");
        if let Some(count) = &node.max_visits {
            self.count("max_visits", count, visits);
        }
        if let Kind::Each(each) = &node.kind {
            self.list(&each.over, over);
            self.count("workers", &each.workers, workers);
        }
        if let Kind::Script(Script { max_calls: Some(count), .. }) = &node.kind {
            self.count("max_calls", count, calls);
        }
        if let OnError::SkipWith(patch) = &node.on_error {
            for (key, change) in patch {
                self.change(node, key, change);
            }
        }
    }

    fn count(&mut self, what: &str, count: &Count, place: Place) {
        let Count::Key(key) = count else { return };
        match self.begins(key) {
            Begins::With(value) if value.as_u64().is_none() => {
                let found = shown(value);
                let message =
                    format!("`{what}` is looked up under `{key}`, which begins with {found}");
                let remedy =
                    format!("let `{key}` begin with a whole number, or write the number here");
                self.report.add(self.site, Problem::new(Code::BAD_COUNT, place, message, remedy));
            }
            Begins::WithNothing => self.missing(what, key, place),
            Begins::With(_) | Begins::Unknown => {}
        }
    }

    fn list(&mut self, key: &Key, place: Place) {
        match self.begins(key) {
            Begins::With(value) if !value.is_array() => {
                let found = shown(value);
                let message =
                    format!("the list is looked up under `{key}`, which begins with {found}");
                let remedy = format!("let `{key}` begin with a list, or name the key of one");
                self.report.add(self.site, Problem::new(Code::BAD_LIST, place, message, remedy));
            }
            Begins::WithNothing => self.missing("over", key, place),
            Begins::With(_) | Begins::Unknown => {}
        }
    }

    fn missing(&mut self, what: &str, key: &Key, place: Place) {
        let message = format!("`{what}` is looked up under `{key}`, which nothing ever sets");
        let remedy = self.instead(key);
        let problem = Problem::new(Code::KEY_MISSING, place, message, remedy);
        self.report.add(self.site, self.unless_created(problem));
    }

    /// A function that makes the state may set the key for another prompt, so that a missing key is
    /// not certain to be missing.
    fn unless_created(&self, mut problem: Problem) -> Problem {
        if self.state.is_none() {
            problem.severity = Severity::Warning;
            problem.remedy += " (the function that makes the state may set it for another prompt)";
        }
        problem
    }

    /// What to write instead of a key that nothing sets.
    fn instead(&mut self, key: &Key) -> String {
        if key.as_str().split('.').next() == Some(OUTPUTS) {
            return "only keys of the state are looked up here; a condition on what a node \
                    returned is `says`"
                .to_owned();
        }
        let known = self.state.into_iter().flatten().map(|(key, _)| key.as_str());
        let known: Vec<&str> = known.collect();
        match self.report.guess(key.as_str(), known.into_iter()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("let the state begin with a value for `{key}`, or name another key"),
        }
    }

    /// A change that is written down.
    fn change(&mut self, node: &Node, key: &Key, change: &Value) {
        let Some(reducer) = self.reducer(key) else { return };
        let old = match self.at_first(key) {
            // That is told where it is.
            Begins::With(value) if reducer.begins_with(value).is_err() => return,
            Begins::With(value) => value,
            Begins::WithNothing | Begins::Unknown => &Value::Null,
        };
        if let Err(problem) = reducer.accepts(old, change) {
            self.misfit(self.site.at(&node.id).part("on_error"), key, &problem);
        }
    }

    fn misfit(&mut self, place: Place, key: &Key, problem: &str) {
        let message = format!("the value of `{key}` does not fit its reducer: {problem}");
        let remedy = format!("write another value, or give `{key}` another reducer");
        self.report.add(self.site, Problem::new(Code::BAD_VALUE, place, message, remedy));
    }

    fn reducer(&self, key: &Key) -> Option<&'a Reducer>
    where
        Self: 'a,
    {
        self.site.outwards().find_map(|site| site.graph().reducers.get(key))
    }

    /// What is under a key whenever the graph looks.
    fn begins(&self, key: &Key) -> Begins<'a> {
        // A key without a name is told of elsewhere.
        if key.as_str().is_empty() || self.changed.may_change(key) {
            return Begins::Unknown;
        }
        self.at_first(key)
    }

    /// What is under a key before anybody changes it.
    fn at_first(&self, key: &Key) -> Begins<'a> {
        let begins = |value: Option<&'a Value>| value.map_or(Begins::WithNothing, Begins::With);
        let mut found = match (self.state, self.keys) {
            (Some(state), _) => begins(state.get(key)),
            (None, Some(keys)) if !keys.contains(key) => Begins::WithNothing,
            (None, _) => Begins::Unknown,
        };
        let mut inwards: Vec<Site<'a, '_>> = self.site.outwards().collect();
        inwards.reverse();
        for pair in inwards.windows(2) {
            let Some(Owner { node, .. }) = pair[1].scope().owner else { continue };
            match &pair[0].node(node).kind {
                // What a call is given is not known before it is made.
                Kind::Subgraph { input: Some(_), .. } | Kind::Script(_) => return Begins::Unknown,
                Kind::Subgraph { graph, .. } => {
                    if matches!(found, Begins::WithNothing) {
                        found = begins(graph.defaults.get(key));
                    }
                }
                Kind::Each(each) if each.item == *key => return Begins::Unknown,
                Kind::Each(_)
                | Kind::Loop { .. }
                | Kind::Parallel(_)
                | Kind::Work { .. }
                | Kind::Decision => {}
            }
        }
        found
    }
}

/// The key whose value a condition looks at.
fn looked_at(condition: &Condition) -> Option<&Key> {
    let mut condition = condition;
    loop {
        match condition {
            Condition::Equals { key, .. } => return Some(key),
            Condition::Not(other) => condition = other,
            Condition::Says { .. } | Condition::Call(_) | Condition::Otherwise => return None,
        }
    }
}

/// A value, for a sentence: what it is, and a small one itself.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => format!("{value}"),
        Value::String(_) | Value::Array(_) | Value::Object(_) => kind(value).to_owned(),
    }
}
