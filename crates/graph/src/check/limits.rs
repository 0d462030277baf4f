//! Numbers that make no sense, keys that cannot be used, and shapes that cannot run.

use serde_json::Value;

use super::scope::Site;
use super::{Code, Problem, Report};
use crate::schema::Schema;
use crate::{Count, Each, Kind, Node, OnError, Parallel, Strategy};

/// Where the outputs of nodes are found in the state.
pub(super) const OUTPUTS: &str = "outputs";

pub(super) fn check(site: Site<'_, '_>, report: &mut Report) {
    of_graph(site, report);
    for (_, node) in site.nodes() {
        of_node(site, report, node);
        of_kind(site, report, node);
    }
}

fn of_graph(site: Site<'_, '_>, report: &mut Report) {
    let graph = site.graph();
    let mut zero = |is_zero: bool, code: Code, part: &str, message: &str| {
        if is_zero {
            let place = site.own_part(part);
            let remedy = format!("set `{part}` to 1 or more, or leave it out for no limit");
            report.add(site, Problem::new(code, place, message, remedy));
        }
    };
    let timeout = graph.timeout_ms == Some(0);
    zero(timeout, Code::ZERO_TIMEOUT, "timeout_ms", "it has no time at all");
    let steps = graph.max_steps == Some(0);
    zero(steps, Code::ZERO_STEPS, "max_steps", "the run may not take a single step");
    let at_once = graph.max_concurrency == Some(0);
    zero(at_once, Code::ZERO_CONCURRENCY, "max_concurrency", "no step may ever run");
    let visits = graph.max_iterations == Some(Count::Fixed(0));
    zero(visits, Code::ZERO_ITERATIONS, "max_iterations", "no node may ever be visited");
    if graph.reducers.contains_key(OUTPUTS) {
        let place = site.place().part(format!("reducers.{OUTPUTS}"));
        report.add(site, reserved(place, "it sets how changes to `outputs` are combined"));
    }
}

fn of_node(site: Site<'_, '_>, report: &mut Report, node: &Node) {
    let at = |part: &str| site.at(&node.id).part(part);
    if node.retry.attempts == 0 {
        let remedy = "`attempts` counts the first attempt too: set it to 1 or more";
        report.add(site, Problem::new(Code::NO_ATTEMPTS, at("retry"), "it is never tried", remedy));
    }
    let factor = node.retry.factor;
    if !factor.is_finite() || factor < 0.0 {
        let message = format!("the wait between attempts cannot grow by {factor}");
        let remedy = "set `factor` to 1 for equal waits, or to 2 to double them";
        report.add(site, Problem::new(Code::BAD_FACTOR, at("retry"), message, remedy));
    }
    if node.timeout_ms == Some(0) {
        let remedy = "set `timeout_ms` to 1 or more, or leave it out for no limit";
        let message = "it has no time at all";
        report.add(site, Problem::new(Code::ZERO_TIMEOUT, at("timeout_ms"), message, remedy));
    }
    if node.max_visits == Some(Count::Fixed(0)) {
        let remedy = "set `max_visits` to 1 or more, or leave it out for no limit";
        let message = "it may never be visited";
        report.add(site, Problem::new(Code::ZERO_VISITS, at("max_visits"), message, remedy));
    }
    let schemas = [("input_schema", &node.input_schema), ("output_schema", &node.output_schema)];
    for (part, schema) in schemas {
        if let Some(problem) = schema.as_ref().and_then(wrong_with) {
            let message = format!("the schema is {problem}");
            let remedy =
                "write a JSON Schema: an object such as {\"type\": \"object\"}, or a boolean";
            report.add(site, Problem::new(Code::BAD_SCHEMA, at(part), message, remedy));
        }
    }
    if let OnError::SkipWith(patch) = &node.on_error
        && patch.contains_key(OUTPUTS)
    {
        report.add(site, reserved(at("on_error"), "after a failure it changes `outputs`"));
    }
}

fn of_kind(site: Site<'_, '_>, report: &mut Report, node: &Node) {
    match &node.kind {
        Kind::Loop { until: None, max_rounds: 0, .. } => {
            let place = site.at(&node.id).part("max_rounds");
            let message = "it goes round for ever: it has no limit and no `until`";
            let remedy = "set `until`, or `max_rounds` to 1 or more";
            report.add(site, Problem::new(Code::LOOP_WITHOUT_END, place, message, remedy));
        }
        Kind::Each(each) => of_each(site, report, node, each),
        Kind::Parallel(parallel) => of_parallel(site, report, node, parallel),
        Kind::Work { .. }
        | Kind::Decision
        | Kind::Subgraph { .. }
        | Kind::Loop { .. }
        | Kind::Script(_) => {}
    }
}

fn of_each(site: Site<'_, '_>, report: &mut Report, node: &Node, each: &Each) {
    let at = |part: &str| site.at(&node.id).part(part);
    if each.workers == Count::Fixed(0) {
        let remedy = "set `workers` to 1 or more";
        let message = "no item would ever be worked on";
        report.add(site, Problem::new(Code::ZERO_WORKERS, at("workers"), message, remedy));
    }
    if each.item == each.over {
        let message = format!("each item is kept under `{}`, and so is the list", each.over);
        let remedy = "set `item` to another key";
        report.add(site, Problem::new(Code::ITEM_HIDES_LIST, at("item"), message, remedy));
    }
    if each.item.as_str() == OUTPUTS {
        report.add(site, reserved(at("item"), "each item is kept under `outputs`"));
    }
}

fn of_parallel(site: Site<'_, '_>, report: &mut Report, node: &Node, parallel: &Parallel) {
    let at = |part: &str| site.at(&node.id).part(part);
    if parallel.branches.is_empty() {
        let remedy = "add a branch, or remove the node";
        let message = "it has nothing to run";
        report.add(site, Problem::new(Code::NO_BRANCHES, at("branches"), message, remedy));
    }
    let strategy = match parallel.strategy {
        Strategy::All => return,
        Strategy::Race => "race",
        Strategy::Any => "any",
    };
    if parallel.fail_fast {
        let message = format!("with the strategy `{strategy}` one branch is waited for anyway");
        let remedy = "remove `fail_fast`, or use the strategy `all`";
        report.add(site, Problem::new(Code::FAIL_FAST_UNUSED, at("fail_fast"), message, remedy));
    }
}

/// Somebody wants the key under which the engine keeps the outputs of nodes.
pub(super) fn reserved(place: super::Place, message: &str) -> Problem {
    let remedy = "use another key; the outputs of nodes are kept under `outputs`";
    Problem::new(Code::RESERVED_KEY, place, message, remedy)
}

/// What is wrong with a schema.
fn wrong_with(schema: &Value) -> Option<String> {
    let kind = match schema {
        Value::Null => "null",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Bool(_) | Value::Object(_) => {
            return Schema::read(schema).err().map(|problem| format!("no JSON Schema: {problem}"));
        }
    };
    Some(kind.to_owned())
}
