//! Names from outside the graph: agents, skills, commands, workflows, models, functions.

use std::collections::{BTreeMap, BTreeSet};

use super::known::nearest;
use super::limits::{OUTPUTS, reserved};
use super::scope::Site;
use super::{Code, JudgeModel, Known, Place, Problem, Report, Use, UseKind, Uses};
use crate::graph::INHERIT;
use crate::{Condition, FunctionId, Kind, Node, OnError, Patch, Reducer};

/// What the actions of a graph refer to, by node.
pub(super) type Used = BTreeMap<u32, Vec<Use>>;

/// Asks the caller what the actions of a graph refer to.
pub(super) fn collect(site: Site<'_, '_>, uses: &Uses<'_>) -> Used {
    let mut used = Used::new();
    for (number, node) in site.nodes() {
        if let Kind::Work { action, .. } = &node.kind {
            let uses = uses(action);
            if !uses.is_empty() {
                used.insert(number, uses);
            }
        }
    }
    used
}

/// The tables to look names up in.
pub(super) struct Tables<'k> {
    agents: Option<Table<'k>>,
    skills: Option<Table<'k>>,
    commands: Option<Table<'k>>,
    workflows: Option<Table<'k>>,
    models: Option<JudgeModel>,
    functions: Option<&'k BTreeSet<FunctionId>>,
    state: Option<&'k Patch>,
}

/// Names that are looked up in any case.
struct Table<'k> {
    names: &'k BTreeSet<String>,
    lower: BTreeSet<String>,
}

impl<'k> Tables<'k> {
    pub(super) fn of(known: &'k Known) -> Self {
        let table = |names: &'k Option<BTreeSet<String>>| {
            let names = names.as_ref()?;
            Some(Table { names, lower: names.iter().map(|name| name.to_lowercase()).collect() })
        };
        Self {
            agents: table(&known.agents),
            skills: table(&known.skills),
            commands: table(&known.commands),
            workflows: table(&known.workflows),
            models: known.models,
            functions: known.functions.as_ref(),
            state: known.state.as_ref(),
        }
    }
}

/// Looks up every name a graph uses.
pub(super) fn check(site: Site<'_, '_>, used: &Used, tables: &Tables<'_>, report: &mut Report) {
    let mut look = Look { site, tables, report };
    let graph = site.graph();
    if let Some(model) = &graph.model {
        look.up(UseKind::Model, model, &|| site.own_part("model"));
    }
    for (key, reducer) in &graph.reducers {
        if let Reducer::Call(function) = reducer {
            let place = || site.place().part(format!("reducers.{key}"));
            look.up(UseKind::Function, function.as_str(), &place);
        }
    }
    for (number, edge) in graph.edges.iter().enumerate() {
        if let Some(function) = edge.when.as_ref().and_then(called) {
            let place = || site.place().part(format!("edges[{number}]"));
            look.up(UseKind::Function, function.as_str(), &place);
        }
    }
    for (number, node) in site.nodes() {
        for (part, function) in functions(node) {
            look.up(UseKind::Function, function.as_str(), &|| site.at(&node.id).part(part));
        }
        if let Some(model) = &node.model {
            look.up(UseKind::Model, model, &|| site.at(&node.id).part("model"));
        }
        for Use { kind, name } in used.get(&number).into_iter().flatten() {
            look.up(*kind, name, &|| site.at(&node.id).part("action"));
        }
    }
}

/// The functions a node refers to, besides those of its action.
fn functions(node: &Node) -> Vec<(&'static str, &FunctionId)> {
    let mut functions = vec![];
    functions.extend(node.retry.when.as_ref().map(|f| ("retry", f)));
    if let OnError::Call(function) = &node.on_error {
        functions.push(("on_error", function));
    }
    match &node.kind {
        Kind::Subgraph { input, output, .. } => {
            functions.extend(input.as_ref().map(|f| ("input", f)));
            functions.extend(output.as_ref().map(|f| ("output", f)));
        }
        Kind::Loop { until: Some(until), .. } => {
            functions.extend(called(until).map(|f| ("until", f)));
        }
        Kind::Parallel(parallel) => {
            functions.extend(parallel.merge.as_ref().map(|f| ("merge", f)));
        }
        Kind::Script(script) => functions.push(("advance", &script.advance)),
        Kind::Work { .. } | Kind::Decision | Kind::Loop { until: None, .. } | Kind::Each(_) => {}
    }
    functions
}

/// The function a condition asks.
fn called(condition: &Condition) -> Option<&FunctionId> {
    let mut condition = condition;
    loop {
        match condition {
            Condition::Call(function) => return Some(function),
            Condition::Not(other) => condition = other,
            Condition::Equals { .. } | Condition::Says { .. } | Condition::Otherwise => {
                return None;
            }
        }
    }
}

/// A name that is in none of the tables; nothing where it is known, or not looked for.
pub fn unknown(used: &Use, known: &Known, place: Place) -> Option<Problem> {
    let (code, table) = match used.kind {
        UseKind::Agent => (Code::UNKNOWN_AGENT, &known.agents),
        UseKind::Skill => (Code::UNKNOWN_SKILL, &known.skills),
        UseKind::Command => (Code::UNKNOWN_COMMAND, &known.commands),
        UseKind::Workflow
        | UseKind::Model
        | UseKind::Function
        | UseKind::TextFunction
        | UseKind::Writes
        | UseKind::MayWrite
        | UseKind::Provides
        | UseKind::Output { .. }
        | UseKind::Template { .. }
        | UseKind::UnsafeTemplate { .. } => return None,
    };
    let table = table.as_ref()?;
    let is_there = table.iter().any(|known| known.eq_ignore_ascii_case(&used.name));
    let names = table.iter().map(String::as_str);
    let meant = nearest(&used.name, names.clone());
    (!is_there).then(|| Problem::not_found_but(code, &used.name, meant, names, place))
}

fn unsafe_template(key: &str, (stands, hint): (&str, &str), place: Place) -> Problem {
    let message = format!("the template {{{key}}} stands {stands}");
    let hint = hint.replace("{key}", &format!("{{{key}}}"));
    let hint = hint.replace("{file:key}", &format!("{{file:{key}}}"));
    Problem::new(Code::UNSAFE_TEMPLATE, place, message, hint)
}

/// Other programs have braces of their own: `curl -w '%{http_code}'`, `git log @{u}`.
fn not_a_template(key: &str) -> String {
    format!(
        ". Nothing is known to set `{key}`: for braces that are not a template, write \\{{{key}}} outside of \
         quotes, or {{''{key}}} inside single quotes"
    )
}

struct Look<'a, 'g, 'k> {
    site: Site<'a, 'g>,
    tables: &'a Tables<'k>,
    report: &'a mut Report,
}

impl Look<'_, '_, '_> {
    fn up(&mut self, kind: UseKind, name: &str, place: &dyn Fn() -> Place) {
        let tables = self.tables;
        let (code, table) = match kind {
            UseKind::Agent => (Code::UNKNOWN_AGENT, &tables.agents),
            UseKind::Skill => (Code::UNKNOWN_SKILL, &tables.skills),
            UseKind::Command => (Code::UNKNOWN_COMMAND, &tables.commands),
            UseKind::Workflow => (Code::UNKNOWN_WORKFLOW, &tables.workflows),
            UseKind::Model if name.eq_ignore_ascii_case(INHERIT) => return,
            UseKind::Model => return self.model(name, place),
            UseKind::Function | UseKind::TextFunction => return self.function(name, place),
            UseKind::Writes | UseKind::MayWrite if name == OUTPUTS => {
                return self.report.add(self.site, reserved(place(), "it changes `outputs`"));
            }
            UseKind::UnsafeTemplate { place: stands, hint, always } => {
                let is_set = self.is_set(name);
                if always || is_set {
                    let mut problem = unsafe_template(name, (stands, hint), place());
                    if !is_set {
                        problem.remedy.push_str(&not_a_template(name));
                    }
                    self.report.add(self.site, problem);
                }
                return;
            }
            UseKind::Writes
            | UseKind::MayWrite
            | UseKind::Provides
            | UseKind::Output { .. }
            | UseKind::Template { .. } => {
                return;
            }
        };
        if let Some(table) = table.as_ref().filter(|t| !t.lower.contains(&name.to_lowercase())) {
            self.missing(code, name, table.names.iter().map(String::as_str), place());
        }
    }

    /// Whether a template has a value for certain: an output, the prompt, the item of a list, or a
    /// key that the state begins with.
    fn is_set(&self, key: &str) -> bool {
        let first = key.split('.').next().unwrap_or(key);
        first == OUTPUTS
            || matches!(first, "prompt" | "item")
            || self.tables.state.is_some_and(|state| state.contains_key(first))
    }

    fn model(&mut self, name: &str, place: &dyn Fn() -> Place) {
        if let Some(Err(meant)) = self.tables.models.map(|judge| judge(name)) {
            let none = std::iter::empty();
            let (code, meant) = (Code::UNKNOWN_MODEL, meant.as_deref());
            let problem = Problem::not_found_but(code, name, meant, none, place());
            self.report.add(self.site, problem);
        }
    }

    fn function(&mut self, name: &str, place: &dyn Fn() -> Place) {
        if let Some(known) = self.tables.functions.filter(|known| !known.contains(name)) {
            let known = known.iter().map(FunctionId::as_str);
            self.missing(Code::UNKNOWN_FUNCTION, name, known, place());
        }
    }

    fn missing<'n>(
        &mut self,
        code: Code,
        name: &str,
        known: impl ExactSizeIterator<Item = &'n str> + Clone,
        place: Place,
    ) {
        let meant = self.report.guess(name, known.clone());
        self.report.add(self.site, Problem::not_found_but(code, name, meant, known, place));
    }
}
