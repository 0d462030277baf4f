//! The same run in other words: its state, its changes, its facts, or all there is to know.
//!
//! What a fact has to say in each mode is worked out when the fact is taken in, and shown once it
//! is on disk, right before the fact itself and in the order the modes were asked for. Where no
//! mode was asked for, nothing is worked out.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use atomic_event::{Envelope, Event, Moment, StepError, StepId};
use atomic_graph::{Effect, Kind, Machine, OnError, State, code};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::begin::INSTRUCTIONS;
use crate::front::Shown;
use crate::run::Run;

/// What a stream shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamMode {
    /// The whole state each time it has changed: `{seq, values}`.
    Values,
    /// What each step changes and returns, as it is recorded: `{seq, step, node, patch, output}`.
    /// A change from outside has a `reason` in place of step, node and output.
    Updates,
    /// Every fact: `{fact}`.
    Events,
    /// Every fact with what the machine wants done because of it, and how long things took:
    /// `{fact, effects, applied_us, took_ms}`.
    Debug,
}

/// The modes that were asked for, and what is still to be shown.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    modes: Vec<StreamMode>,
    waiting: VecDeque<Seen>,
    /// The state that was sent last.
    state: Option<Arc<State>>,
    /// When the steps that are under way began.
    begun: BTreeMap<StepId, Moment>,
}

/// What was seen while something was taken in that is not on disk yet.
#[derive(Debug)]
enum Seen {
    /// Beside the next fact.
    Fact(Applied),
    /// Without a fact: what an earlier process left to do.
    Effects(Vec<Value>),
}

/// What a fact has led to.
#[derive(Debug)]
struct Applied {
    state: Option<Arc<State>>,
    update: Option<Map<String, Value>>,
    effects: Vec<Value>,
    micros: u64,
}

/// What is known before a fact is taken in.
pub(crate) struct Glance {
    since: Instant,
    update: Option<Map<String, Value>>,
    /// A failure, and what it changes when it is for good.
    skip: Option<(StepId, Map<String, Value>)>,
}

impl Streams {
    /// A mode that is named twice is shown once.
    pub(crate) fn new(modes: &[StreamMode]) -> Self {
        let mut wanted: Vec<StreamMode> = vec![];
        for mode in modes {
            if !wanted.contains(mode) {
                wanted.push(*mode);
            }
        }
        Self { modes: wanted, ..Self::default() }
    }

    fn wants(&self, mode: StreamMode) -> bool {
        self.modes.contains(&mode)
    }

    /// Looks at a fact before it is taken in.
    pub(crate) fn glance(&self, machine: &Machine, event: &Event) -> Option<Glance> {
        if self.modes.is_empty() {
            return None;
        }
        let wanted = self.wants(StreamMode::Updates);
        let update = if wanted { update(machine, event) } else { None };
        let skip = if wanted { skip(machine, event) } else { None };
        Some(Glance { since: Instant::now(), update, skip })
    }

    /// Keeps what the fact has led to until it is on disk.
    pub(crate) fn applied(
        &mut self,
        glance: Option<Glance>,
        machine: &Machine,
        effects: &[Effect],
    ) {
        let Some(Glance { since, update, skip }) = glance else { return };
        let micros = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
        // One that is tried again, or about which a function is asked, is still waited for.
        let skip = skip.filter(|(step, _)| !machine.awaits(step)).map(|(_, update)| update);
        let update = update.or(skip);
        let debug = self.wants(StreamMode::Debug);
        self.waiting.push_back(Seen::Fact(Applied {
            state: self.wants(StreamMode::Values).then(|| machine.newest()),
            update,
            effects: if debug { effects.iter().map(described).collect() } else { vec![] },
            micros,
        }));
    }

    /// What an earlier process left to do is done now.
    pub(crate) fn left_over(&mut self, effects: &[Effect]) {
        if self.wants(StreamMode::Debug) && !effects.is_empty() {
            self.waiting.push_back(Seen::Effects(effects.iter().map(described).collect()));
        }
    }

    /// How long a step took that ends here.
    fn took(&mut self, fact: &Envelope) -> Option<u64> {
        if let Event::StepStarted(started) = &fact.event {
            self.begun.insert(started.step.clone(), fact.at);
            return None;
        }
        if let Event::StepFinished { step, .. }
        | Event::StepFailed { step, .. }
        | Event::StepLost { step, .. }
        | Event::StepCancelled { step, .. } = &fact.event
        {
            return self.begun.remove(step).map(|begun| fact.at.millis_since(begun));
        }
        None
    }
}

impl Run {
    /// Shows a fact that is on disk, and before it what the streams have to say about it.
    pub(crate) fn show_fact(&mut self, fact: Envelope) {
        let fact = Arc::new(fact);
        if !self.streams.modes.is_empty() {
            self.stream(&fact);
        }
        self.front.show(Shown::Fact(fact));
    }

    fn stream(&mut self, fact: &Arc<Envelope>) {
        let mode = StreamMode::Debug;
        while let Some(Seen::Effects(_)) = self.streams.waiting.front() {
            if let Some(Seen::Effects(effects)) = self.streams.waiting.pop_front() {
                self.front.show(Shown::Streamed { mode, value: json!({ "effects": effects }) });
            }
        }
        let Some(Seen::Fact(mut applied)) = self.streams.waiting.pop_front() else { return };
        for mode in self.streams.modes.clone() {
            let value = match mode {
                StreamMode::Values => {
                    self.stream_state(fact.seq, applied.state.take());
                    continue;
                }
                StreamMode::Updates => applied.update.take().map(|update| {
                    let mut value = Map::from_iter([("seq".to_owned(), fact.seq.into())]);
                    value.extend(update);
                    Value::Object(value)
                }),
                StreamMode::Events => Some(json!({ "fact": &**fact })),
                StreamMode::Debug => {
                    let took = self.streams.took(fact);
                    let effects = std::mem::take(&mut applied.effects);
                    let micros = applied.micros;
                    let mut value =
                        json!({ "fact": &**fact, "effects": effects, "applied_us": micros });
                    if let Some(took) = took {
                        value["took_ms"] = took.into();
                    }
                    Some(value)
                }
            };
            if let Some(value) = value {
                self.front.show(Shown::Streamed { mode, value });
            }
        }
    }

    fn stream_state(&mut self, seq: u64, state: Option<Arc<State>>) {
        let Some(state) = state else { return };
        let same = self.streams.state.as_ref().is_some_and(|known| Arc::ptr_eq(known, &state));
        if !same {
            self.front.show_state(seq, Arc::clone(&state));
            self.streams.state = Some(state);
        }
    }
}

/// What a failure of a step changes in the state, if it is for good.
fn skip(machine: &Machine, event: &Event) -> Option<(StepId, Map<String, Value>)> {
    let fails =
        |error: &StepError| ![code::CEILING, code::CANCELLED].contains(&error.code.as_str());
    let step = if let Event::StepFailed { step, error, .. } = event
        && fails(error)
    {
        step
    } else if let Event::StepLost { step, .. } | Event::FunctionEvaluated { step, .. } = event {
        step
    } else {
        return None;
    };
    let node = machine.node(step)?;
    let called = if let Event::FunctionEvaluated { call, value, error: None, .. } = event {
        Some((call, value))
    } else {
        None
    };
    let patch = match (&node.on_error, called) {
        (OnError::SkipWith(patch), None) => json!(patch),
        // Its retry is not worth it.
        (OnError::SkipWith(patch), Some((call, Value::Bool(false) | Value::Null)))
            if node.retry.when.as_ref().is_some_and(|when| when.as_str() == call) =>
        {
            json!(patch)
        }
        (OnError::Call(remedy), Some((call, value))) if remedy.as_str() == call => {
            let names = ["stateUpdate", "fallbackState", "fallbackUpdate"];
            names.iter().find_map(|name| value.get(name)).cloned()?
        }
        (
            OnError::Abort
            | OnError::Skip
            | OnError::SkipWith(_)
            | OnError::Goto(_)
            | OnError::Call(_),
            _,
        ) => return None,
    };
    let update = json!({ "step": step, "node": step.node(), "patch": patch });
    if let Value::Object(update) = update { Some((step.clone(), update)) } else { None }
}

/// What a fact changes in the state, as far as the fact itself says so.
fn update(machine: &Machine, event: &Event) -> Option<Map<String, Value>> {
    let fields = |value: Value| if let Value::Object(fields) = value { Some(fields) } else { None };
    if let Event::StepFinished { step, result, .. } = event {
        let (node, patch, output) = (step.node(), &result.patch, &result.output);
        return fields(json!({ "step": step, "node": node, "patch": patch, "output": output }));
    }
    if let Event::FunctionEvaluated { step, call, value: Value::Object(patch), .. } = event {
        // What branches or an inner graph come to is a change, and what a script returns; what other
        // functions return is not.
        if let Kind::Script(_) = &machine.node(step)?.kind {
            let done = patch.get("done")?;
            let (patch, output) = (done.get("patch").cloned(), done.get("output"));
            let patch = patch.unwrap_or_else(|| json!({}));
            let (node, output) = (step.node(), output.unwrap_or(&Value::Null));
            return fields(json!({ "step": step, "node": node, "patch": patch, "output": output }));
        }
        let function = match &machine.node(step)?.kind {
            Kind::Parallel(parallel) => parallel.merge.as_ref(),
            Kind::Subgraph { output, .. } => output.as_ref(),
            Kind::Work { .. }
            | Kind::Decision
            | Kind::Loop { .. }
            | Kind::Each(_)
            | Kind::Script(_) => None,
        };
        let is_it = function.is_some_and(|function| function.as_str() == call);
        let update = is_it.then(|| json!({ "step": step, "node": step.node(), "patch": patch }));
        return update.and_then(fields);
    }
    if let Event::StatePatched { patch, reason } = event {
        return fields(json!({ "patch": patch, "reason": reason }));
    }
    if let Event::Instructed { text } = event {
        let patch = json!({ INSTRUCTIONS: [text] });
        return fields(json!({ "patch": patch, "reason": "the user gave an instruction" }));
    }
    None
}

/// Something the machine wants done, for people who look for a fault.
fn described(effect: &Effect) -> Value {
    match effect {
        Effect::Start(start) => json!({
            "effect": "start", "step": start.step, "attempt": start.attempt, "how": start.how,
            "delay_ms": start.delay_ms,
        }),
        Effect::Cancel { step, attempt } => {
            json!({ "effect": "cancel", "step": step, "attempt": attempt })
        }
        Effect::Choose { step, options, targets } => {
            json!({ "effect": "choose", "step": step, "options": options, "targets": targets })
        }
        Effect::Evaluate { step, call, args } => {
            let args: Vec<&Value> = args.iter().map(AsRef::as_ref).collect();
            json!({ "effect": "evaluate", "step": step, "call": call, "args": args })
        }
        Effect::Limit { step, timeout_ms } => {
            json!({ "effect": "limit", "step": step, "timeout_ms": timeout_ms })
        }
        Effect::Rest { step, delay_ms } => {
            json!({ "effect": "rest", "step": step, "delay_ms": delay_ms })
        }
        Effect::Ask { step, signal } => {
            json!({ "effect": "ask", "step": step, "signal": signal })
        }
        Effect::AskLost { step, attempt } => {
            json!({ "effect": "ask_lost", "step": step, "attempt": attempt })
        }
        Effect::Finish(outcome) => json!({ "effect": "finish", "error": outcome.as_ref().err() }),
    }
}
