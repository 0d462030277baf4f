//! Limits: what is counted, and what is refused because of it.
//!
//! A limit of the whole run (steps, launches, and those that the caller holds itself) cannot be
//! caught. Once one is met nothing is started any more and no rule about failures applies: what
//! runs may finish, everything else fails where it is, and so the run ends there and can go on
//! from there when it is revived.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::{Machine, Place};
use crate::{Count, Kind, Node, NodeId, State, StepError, code};

/// What a run has used of its limits.
#[derive(Clone, Debug, Default)]
pub(super) struct Used {
    pub(super) steps: u64,
    pub(super) launches: u64,
    /// Visits so far to nodes that have a limit, by graph and node.
    pub(super) visits: BTreeMap<(u32, u32), u64>,
    /// The limit of the whole run that was met.
    pub(super) exhausted: Option<StepError>,
}

/// Why a visit may not begin.
pub(super) enum Refusal {
    /// No rule of the node can turn it into something else, so a run always ends.
    Hard(StepError),
    /// The node's rule says what it means.
    Soft(StepError),
}

impl Machine {
    /// Whether a limit of the whole run was met.
    pub(super) fn is_exhausted(&self) -> bool {
        self.used.exhausted.is_some()
    }

    /// A limit of the whole run was met; the first one is what the run fails of.
    pub(super) fn exhaust(&mut self, error: &StepError) {
        self.used.exhausted.get_or_insert_with(|| error.clone());
    }

    /// Counts a visit, unless a limit refuses it.
    pub(super) fn count_visit(&mut self, place: Place, node: &Node) -> Result<(), Refusal> {
        let refused = |message: String| StepError::new(code::CEILING, message);
        let max_steps = self.program.graph().max_steps.unwrap_or(u64::MAX);
        if self.used.steps >= max_steps {
            let error = refused(format!("the run has used all of its {max_steps} steps"));
            self.exhaust(&error);
            return Err(Refusal::Hard(error));
        }
        let frame = self.frame(place.0);
        let number = frame.active[place.1].node;
        let here = frame.visits.get(&number).copied().unwrap_or(0);
        let max_iterations = self.program.plan(frame.plan).max_iterations.as_ref();
        let limit = self.limit_of(&node.id, max_iterations, &frame.state);
        let limit = limit.map_err(Refusal::Soft)?;
        let id = &node.id;
        if let Some(limit) = limit.filter(|max| u64::from(here) > *max) {
            let message = format!("node `{id}` has used all of its {limit} iterations");
            return Err(Refusal::Hard(refused(message)));
        }
        let key = (frame.plan, number);
        let limit = self.limit_of(&node.id, node.max_visits.as_ref(), &frame.state);
        let limit = limit.map_err(Refusal::Soft)?;
        if node.max_visits.is_some() {
            let so_far = self.used.visits.entry(key).or_insert(0);
            if let Some(limit) = limit.filter(|limit| *so_far >= *limit) {
                let message = format!("node `{id}` has used all of its {limit} visits");
                return Err(Refusal::Soft(refused(message)));
            }
            *so_far += 1;
        }
        self.used.steps += 1;
        Ok(())
    }

    /// Counts the launch of a step, if it is one; the error says why it may not be started.
    pub(super) fn count_start(&mut self, place: Place) -> Result<(), StepError> {
        if let Some(error) = &self.used.exhausted {
            return Err(error.clone());
        }
        let (program, plan, node) = self.node_at(place);
        let node = program.plan(plan).node(node);
        if !matches!(node.kind, Kind::Work { launch: true, .. }) {
            return Ok(());
        }
        let limit = Count::Key(Self::MAX_LAUNCHES.into());
        let limit = self.limit_of(&node.id, Some(&limit), &self.frame(0).state)?;
        if let Some(limit) = limit.filter(|limit| self.used.launches >= *limit) {
            let message = format!(
                "the run has used all of its {limit} launches of an agent; resume with a higher \
                 --max-launches"
            );
            let error = StepError::new(code::CEILING, message);
            self.exhaust(&error);
            return Err(error);
        }
        self.used.launches += 1;
        Ok(())
    }

    /// A limit of a node, in `state` or else in that of the whole run, which an isolated graph
    /// does not see. One that is not there is none.
    pub(super) fn limit_of(
        &self,
        node: &NodeId,
        count: Option<&Count>,
        state: &State,
    ) -> Result<Option<u64>, StepError> {
        let key = match count {
            None => return Ok(None),
            Some(Count::Fixed(number)) => return Ok(Some(*number)),
            Some(Count::Key(key)) => key.as_str(),
        };
        let whole_run = || self.frames.get(&0)?.state.get(key);
        match state.get(key).or_else(whole_run).map(AsRef::as_ref) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let found = Some(value);
                let wrong = || wrong_value(node, key, "a whole number", found);
                whole(value).map(Some).ok_or_else(wrong)
            }
        }
    }

    /// The counts that limit one chance begin anew with the next.
    pub(super) fn forget_used(&mut self) {
        // A number that is written down limits one chance; one in the state, the run.
        let program = Arc::clone(&self.program);
        self.used.visits.retain(|(plan, node), _| {
            let limit = &program.plan(*plan).node(*node).max_visits;
            matches!(limit, Some(Count::Key(_)))
        });
        self.used.steps = 0;
        self.used.exhausted = None;
    }
}

/// A whole number, also one that is written with a point.
fn whole(value: &Value) -> Option<u64> {
    let exact = |number: f64| number.fract() == 0.0 && (0.0..=9e15).contains(&number);
    value.as_u64().or_else(|| value.as_f64().filter(|n| exact(*n)).map(|n| n as u64))
}

/// A key of the state does not hold what a node reads there.
pub(super) fn wrong_value(
    node: &NodeId,
    key: &str,
    needed: &str,
    found: Option<&Value>,
) -> StepError {
    let found = match found {
        None => ", and nothing is there".to_owned(),
        Some(value) => {
            let text = value.to_string();
            let more = if text.chars().count() > SHOWN { "…" } else { "" };
            format!(", not {}{more}", text.chars().take(SHOWN).collect::<String>())
        }
    };
    let message = format!("node `{node}`, key `{key}`: {needed} is needed{found}");
    StepError::new(code::WRONG_VALUE, message)
}

/// How much of a wrong value is shown.
const SHOWN: usize = 80;
