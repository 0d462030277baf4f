//! A run goes on with another version of its graph.
//!
//! Graphs and nodes are known by number inside a machine. Here every number is replaced by that of
//! the graph or node with the same way to it. Steps keep their names, which are made of ids.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::frame::{Frame, Judging, VisitState};
use super::region::{Region, Wait};
use super::{Effect, FrameId, Machine, Place};
use crate::program::Plan;
use crate::{FunctionId, Kind, OnError, Parallel, Patch, Program, Reducer, State};

/// The numbers of another program for those of this one.
struct Numbers<'p> {
    old: &'p Program,
    new: &'p Program,
    plans: BTreeMap<u32, u32>,
    /// The ways to what is needed and is not there any more.
    missing: Vec<String>,
}

/// The way to every graph of a program, by number.
fn ways(program: &Program) -> BTreeMap<u32, String> {
    let mut ways = BTreeMap::from([(0, String::new())]);
    let mut waiting = vec![0];
    while let Some(number) = waiting.pop() {
        let (plan, way) = (program.plan(number), ways[&number].clone());
        for (node, name, body) in plan.inner() {
            let id = &plan.node(node).id;
            let inside = if name.is_empty() { String::new() } else { format!("[{name}]") };
            ways.insert(body, format!("{way}{id}{inside}/"));
            waiting.push(body);
        }
    }
    ways
}

impl<'p> Numbers<'p> {
    fn of(old: &'p Program, new: &'p Program) -> Self {
        let by_way: BTreeMap<String, u32> =
            ways(new).into_iter().map(|(number, way)| (way, number)).collect();
        let plans = ways(old).into_iter();
        let plans = plans.filter_map(|(number, way)| Some((number, *by_way.get(&way)?)));
        Self { old, new, plans: plans.collect(), missing: vec![] }
    }

    /// The node of the same id in the same graph.
    fn node(&self, plan: u32, node: u32) -> Option<u32> {
        let new = self.new.plan(*self.plans.get(&plan)?);
        new.find(&self.old.plan(plan).node(node).id)
    }

    /// The same, of the same kind; one that is not there is noted.
    fn needed(&mut self, plan: u32, node: u32) -> u32 {
        let old = &self.old.plan(plan).node(node).kind;
        let same = |new: &u32| {
            let plan = self.plans.get(&plan).copied().unwrap_or(0);
            let new = &self.new.plan(plan).node(*new).kind;
            std::mem::discriminant(old) == std::mem::discriminant(new)
        };
        if let Some(new) = self.node(plan, node).filter(same) {
            return new;
        }
        let way = ways(self.old).remove(&plan).unwrap_or_default();
        let place = format!("{way}{}", self.old.plan(plan).node(node).id);
        if !self.missing.contains(&place) {
            self.missing.push(place);
        }
        0
    }

    fn visits(&self, plan: u32, visits: &BTreeMap<u32, u32>) -> BTreeMap<u32, u32> {
        let known = visits.iter().filter_map(|(node, n)| Some((self.node(plan, *node)?, *n)));
        known.collect()
    }

    fn frame(&mut self, frame: &mut Frame) {
        let plan = frame.plan;
        frame.visits = self.visits(plan, &frame.visits);
        for visit in &mut frame.active {
            let old = visit.node;
            visit.node = self.needed(plan, old);
            if let VisitState::Routed(nodes) = &mut visit.state {
                nodes.iter_mut().for_each(|node| *node = self.needed(plan, *node));
            }
            if let Some(region) = visit.state.region_mut() {
                self.region(region, plan, old);
            }
        }
        let arrived = std::mem::take(&mut frame.arrived);
        let arrived = arrived.into_iter().filter_map(|(edge, nodes)| {
            let nodes = nodes.into_iter().filter_map(|node| self.node(plan, node));
            Some((self.edge(plan, edge)?, nodes.collect()))
        });
        frame.arrived = arrived.collect();
        frame.plan = self.plans.get(&plan).copied().unwrap_or(0);
    }

    fn region(&self, region: &mut Region, plan: u32, node: u32) {
        let (old, script) = (self.old.plan(plan), &region.script);
        let body = |name: &str| old.body(node, script.body_of(name).unwrap_or(name));
        region.fan.renumber(|name, visits| self.visits(body(name), visits));
        for child in &mut region.absorbing {
            child.visits = self.visits(body(&child.name), &child.visits);
        }
    }

    /// The edge between the same nodes.
    fn edge(&self, plan: u32, edge: u32) -> Option<u32> {
        let (old, new) = (self.old.plan(plan), self.new.plan(*self.plans.get(&plan)?));
        let ends = |plan: &Plan, edge: usize| {
            let edge = &plan.edges[edge];
            let mut from: Vec<_> = edge.from.iter().map(|n| plan.node(*n).id.clone()).collect();
            from.sort();
            (from, plan.node(edge.to).id.clone())
        };
        let wanted = ends(old, edge as usize);
        (0u32..).zip(0..new.edges.len()).find(|(_, n)| ends(new, *n) == wanted).map(|(n, _)| n)
    }
}

impl Machine {
    /// Goes on with another version of the graph, and with these values in the state, null for
    /// those that go. Where something that is under way is not in it any more, nothing changes,
    /// and the error is the list of these nodes.
    pub fn upgrade(&mut self, program: Arc<Program>, state: &Patch) -> Result<(), Vec<String>> {
        let old = Arc::clone(&self.program);
        let mut numbers = Numbers::of(&old, &program);
        let mut frames = self.frames.clone();
        frames.values_mut().for_each(|frame| numbers.frame(frame));
        if !numbers.missing.is_empty() {
            numbers.missing.sort();
            return Err(numbers.missing);
        }
        let visits = self.used.visits.iter().filter_map(|((plan, node), count)| {
            Some(((*numbers.plans.get(plan)?, numbers.node(*plan, *node)?), *count))
        });
        self.used.visits = visits.collect();
        for (id, frame) in &mut frames {
            if !self.sees_outermost(*id) {
                continue;
            }
            set(&mut frame.state, state);
            for visit in &mut frame.active {
                if let Some(region) = visit.state.region_mut() {
                    set(&mut region.state, state);
                    region.fan.read_again();
                }
            }
        }
        (self.frames, self.program) = (frames, program);
        Ok(())
    }

    /// Whether the state of a frame is laid over that of the whole run. A sub-graph that was given
    /// a state of its own and a call of a script are not: their keys only look the same.
    fn sees_outermost(&self, id: FrameId) -> bool {
        let Some(parent) = &self.frame(id).parent else { return true };
        let around = self.frame(parent.frame);
        let node = around.active[parent.visit].node;
        let is_apart = match &self.program.plan(around.plan).node(node).kind {
            Kind::Subgraph { isolated, input, .. } => *isolated || input.is_some(),
            Kind::Script(_) => true,
            Kind::Work { .. }
            | Kind::Decision
            | Kind::Loop { .. }
            | Kind::Each(_)
            | Kind::Parallel(_) => false,
        };
        !is_apart && self.sees_outermost(parent.frame)
    }

    /// The state of the whole run, outside of whatever is under way.
    pub fn outermost(&self) -> Arc<State> {
        Arc::clone(&self.frame(0).state)
    }

    /// The same effect by the rules of the graph as it is now: an upgrade may have come between.
    pub fn renewed(&self, effect: Effect) -> Effect {
        match effect {
            Effect::Choose { step, options, targets } => {
                let renewed = self.open.get(&step).and_then(|place| self.choice_at(*place));
                let (options, targets) = renewed.unwrap_or((options, targets));
                Effect::Choose { step, options, targets }
            }
            Effect::Evaluate { step, call, args } => {
                let renewed = self.open.get(&step).and_then(|place| self.function_at(*place));
                Effect::Evaluate { step, call: renewed.unwrap_or(call), args }
            }
            other @ (Effect::Start(_)
            | Effect::Cancel { .. }
            | Effect::Limit { .. }
            | Effect::Rest { .. }
            | Effect::Ask { .. }
            | Effect::AskLost { .. }
            | Effect::Finish(_)) => other,
        }
    }

    fn choice_at(&self, place: Place) -> Option<(Vec<crate::Condition>, Vec<crate::NodeId>)> {
        let frame = self.frame(place.0);
        let (plan, visit) = (self.program.plan(frame.plan), frame.active.get(place.1)?);
        if visit.state.region().is_some() {
            let Kind::Loop { until: Some(until), .. } = &plan.node(visit.node).kind else {
                return None;
            };
            return Some((vec![until.clone()], vec![]));
        }
        let leaving = plan.leaving(visit.node);
        let leaving = leaving
            .filter_map(|(_, edge)| Some((edge.when.clone()?, plan.node(edge.to).id.clone())));
        Some(leaving.unzip())
    }

    /// The function that is waited for at a place.
    fn function_at(&self, place: Place) -> Option<FunctionId> {
        let frame = self.frame(place.0);
        let (plan, visit) = (self.program.plan(frame.plan), frame.active.get(place.1)?);
        let node = plan.node(visit.node);
        let reducer = |key: &crate::Key| {
            let reducer = plan.reducers.get(key)?;
            if let Reducer::Call(call) = reducer { Some(call.clone()) } else { None }
        };
        match &visit.state {
            VisitState::Judging(_, Judging::Retry) => node.retry.when.clone(),
            VisitState::Judging(_, Judging::OnError) => {
                if let OnError::Call(call) = &node.on_error { Some(call.clone()) } else { None }
            }
            VisitState::Done(_) => reducer(&frame.merging.as_ref()?.waiting.as_ref()?.0),
            VisitState::Region(region) => match (region.wait.as_ref()?, &node.kind) {
                (Wait::Input, Kind::Subgraph { input, .. }) => input.clone(),
                (Wait::Output(_), Kind::Subgraph { output, .. }) => output.clone(),
                (Wait::Output(_), Kind::Parallel(Parallel { merge, .. })) => merge.clone(),
                (Wait::Advance(_), Kind::Script(script)) => Some(script.advance.clone()),
                (Wait::Reduce { key, .. }, _) => reducer(key),
                _ => None,
            },
            VisitState::Leaf(_)
            | VisitState::Asking(_)
            | VisitState::Resting
            | VisitState::Failed(_)
            | VisitState::Choosing
            | VisitState::Routed(_) => None,
        }
    }
}

/// Puts values into a state as they are.
fn set(state: &mut Arc<State>, values: &Patch) {
    if values.is_empty() {
        return;
    }
    let state = Arc::make_mut(state);
    for (key, value) in values {
        if *value == Value::Null && state.base.is_none() {
            state.keys.remove(key);
        } else {
            state.keys.insert(key.clone(), Arc::new(value.clone()));
        }
    }
}
