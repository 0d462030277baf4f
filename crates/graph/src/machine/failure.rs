//! An attempt has failed: another one, or what the node's rule says.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::frame::{Failed, Judging, VisitState, Was};
use super::{Effect, Machine, Place};
use crate::state::Changes;
use crate::{FunctionId, Goto, How, NodeId, OnError, Patch, Retry, StepError, StepResult, code};

/// What a function wants done about a failure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum Remedy {
    /// Try again, after this long.
    Retry {
        #[serde(default, alias = "delay")]
        delay_ms: Option<u64>,
    },
    /// Go on as if the node had returned these changes.
    Skip {
        #[serde(default, alias = "fallbackState", alias = "fallbackUpdate")]
        state_update: Patch,
    },
    /// The graph fails.
    Abort,
    /// Go on at another node.
    Goto {
        #[serde(alias = "nodeId", alias = "target")]
        node: NodeId,
    },
}

/// Whether trying again cannot change anything: a limit forbids what the step needs.
fn is_final(code: &str) -> bool {
    [code::CEILING, code::BUDGET].contains(&code)
}

impl Machine {
    /// An attempt at what a visit is for has failed.
    pub(super) fn attempt_over(&mut self, place: Place, failed: Failed) {
        let code = failed.error.code.clone();
        if self.frame(place.0).stopping || self.is_exhausted() || code == code::CANCELLED {
            return self.give_up(place, failed);
        }
        let (program, plan, node) = self.node_at(place);
        let retry = &program.plan(plan).node(node).retry;
        let failures = self.frame(place.0).active[place.1].failures + 1;
        let worth_it = retry.codes.is_empty() || retry.codes.contains(&code);
        if failures >= retry.attempts || !worth_it || is_final(&code) {
            return self.failed_for_good(place, failed);
        }
        match &retry.when {
            Some(call) => self.judge_failure(place, failed, Judging::Retry, call),
            None => self.once_more(place, failed, backoff(retry, failures)),
        }
    }

    /// Lets a function say what a failure means.
    fn judge_failure(&mut self, place: Place, failed: Failed, what: Judging, call: &FunctionId) {
        let args = vec![Arc::new(json!(failed.error))];
        let state = VisitState::Judging(Box::new(failed), what);
        self.frame_mut(place.0).active[place.1].state = state;
        let step = self.await_step(place);
        self.effects.push(Effect::Evaluate { step, call: call.clone(), args });
    }

    /// A function has said what a failure means.
    pub(super) fn judged_failure(&mut self, place: Place, result: Result<Value, StepError>) {
        let state = &mut self.frame_mut(place.0).active[place.1].state;
        let VisitState::Judging(failed, what) = std::mem::replace(state, VisitState::Resting)
        else {
            return;
        };
        if self.is_exhausted() {
            return self.give_up(place, *failed);
        }
        let (program, plan, node) = self.node_at(place);
        let retry = &program.plan(plan).node(node).retry;
        let failures = self.frame(place.0).active[place.1].failures + 1;
        match (what, result) {
            (_, Err(mut error)) => {
                let first = &failed.error.message;
                error.message = format!("{} (about the failure: {first})", error.message);
                self.give_up(place, Failed { error, was: failed.was });
            }
            (Judging::Retry, Ok(Value::Bool(true))) => {
                self.once_more(place, *failed, backoff(retry, failures));
            }
            (Judging::Retry, Ok(Value::Bool(false) | Value::Null)) => {
                self.failed_for_good(place, *failed);
            }
            (Judging::Retry, Ok(other)) => {
                let message = format!("the predicate of its retry returned {other}, not a boolean");
                let error = StepError::new(code::FUNCTION, message);
                self.give_up(place, Failed { error, was: failed.was });
            }
            (Judging::OnError, Ok(value)) => self.remedy(place, *failed, value),
        }
    }

    fn remedy(&mut self, place: Place, failed: Failed, value: Value) {
        let (program, plan, node) = self.node_at(place);
        let plan = program.plan(plan);
        let retry = &plan.node(node).retry;
        let failures = self.frame(place.0).active[place.1].failures + 1;
        let returned = value.to_string();
        let value = if value.is_string() { json!({ "action": value }) } else { value };
        match serde_json::from_value(value) {
            // What a ceiling forbids stays forbidden.
            Ok(Remedy::Retry { delay_ms })
                if failures < retry.attempts.max(OnError::ATTEMPTS)
                    && !is_final(&failed.error.code) =>
            {
                self.once_more(place, failed, delay_ms.unwrap_or(backoff(retry, failures)));
            }
            Ok(Remedy::Retry { .. } | Remedy::Abort) => self.abort(place, failed),
            Ok(Remedy::Skip { mut state_update }) => {
                self.frame(place.0).state.trim(&mut state_update);
                self.go_on(place, &failed, state_update, None);
            }
            Ok(Remedy::Goto { node: target }) => {
                if plan.node(node).targets.contains(&target) {
                    return self.go_on(place, &failed, Patch::new(), Some(target));
                }
                let message = format!("`onError` goes to `{target}`, which is not declared");
                let error = StepError::new(code::NO_SUCH_NODE, message);
                self.give_up(place, Failed { error, was: failed.was });
            }
            Err(_) => {
                let node = &plan.node(node).id;
                let message = format!(
                    "node `{node}`: `onError` returned {returned}\n  hint: return \"retry\", \"skip\" or \
                     \"abort\", or an object such as {{ action: \"goto\", nodeId: \"fix\" }}"
                );
                let error = StepError::new(code::FUNCTION, message);
                self.give_up(place, Failed { error, was: failed.was });
            }
        }
    }

    /// Another attempt. Nothing of the one before is left.
    fn once_more(&mut self, place: Place, failed: Failed, delay_ms: u64) {
        self.frame_mut(place.0).active[place.1].failures += 1;
        match failed.was {
            Was::Leaf(leaf) if !leaf.phase.is_decision() => {
                self.frame_mut(place.0).active[place.1].state = VisitState::Leaf(leaf);
                self.start_again(place, How::Retried, delay_ms);
            }
            Was::Leaf(_)
            | Was::Region(_)
            | Was::Outside
            | Was::Nothing
            | Was::Asking(_)
            | Was::Choosing => {
                if let Was::Region(region) = &failed.was {
                    self.drop_children(region);
                }
                let visit = &mut self.frame_mut(place.0).active[place.1];
                visit.attempt += 1;
                visit.state = VisitState::Resting;
                if delay_ms == 0 {
                    return self.begin_attempt(place);
                }
                let step = self.await_step(place);
                self.effects.push(Effect::Rest { step, delay_ms });
            }
        }
    }

    /// A visit has failed for good; the node's rule says what that means.
    pub(super) fn failed_for_good(&mut self, place: Place, failed: Failed) {
        if self.is_exhausted() {
            return self.give_up(place, failed);
        }
        let (program, plan, node) = self.node_at(place);
        match &program.plan(plan).node(node).on_error {
            OnError::Abort => self.abort(place, failed),
            OnError::Skip => self.go_on(place, &failed, Patch::new(), None),
            OnError::SkipWith(patch) => self.go_on(place, &failed, patch.clone(), None),
            OnError::Goto(target) => self.go_on(place, &failed, Patch::new(), Some(target.clone())),
            OnError::Call(call) => self.judge_failure(place, failed, Judging::OnError, call),
        }
    }

    /// The graph fails, unless it catches its failures somewhere.
    fn abort(&mut self, place: Place, failed: Failed) {
        let (program, plan, node) = self.node_at(place);
        let plan = program.plan(plan);
        match &plan.catch {
            Some(catch) if plan.node(node).id != *catch => {
                self.go_on(place, &failed, Patch::new(), Some(catch.clone()));
            }
            Some(_) | None => self.give_up(place, failed),
        }
    }

    /// The graph fails.
    pub(super) fn give_up(&mut self, place: Place, failed: Failed) {
        self.settle(place, VisitState::Failed(Box::new(failed)));
    }

    /// The graph goes on in spite of a failure, which is the node's output.
    fn go_on(&mut self, place: Place, failed: &Failed, patch: Patch, goto: Option<NodeId>) {
        if let Was::Region(region) = &failed.was {
            self.drop_children(region);
        }
        let output = json!({ "error": &failed.error });
        let goto = goto.map(Goto::One);
        let result = StepResult { output, goto, patch, ..StepResult::default() };
        self.frame_mut(place.0).active[place.1].merged = Changes::default();
        self.settle(place, VisitState::Done(result));
    }
}

/// How long to wait after so many failures.
fn backoff(retry: &Retry, failures: u32) -> u64 {
    let exponent = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
    let delay = retry.delay_ms as f64 * retry.factor.powi(exponent);
    if delay.is_finite() && delay >= 0.0 { delay as u64 } else { u64::MAX }
}
