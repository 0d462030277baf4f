//! What a script has done so far, and how much of it is kept when it gets another chance.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::region::Wait;
use crate::{StepError, code};

/// One evaluation of a script's function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// What it was told: `{key, value}`, `{key, error}` or `{key, cancelled: true}`; nothing when
    /// it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Arc<Value>>,
    /// What time it was told it was, in milliseconds.
    #[serde(default)]
    pub at: i64,
    /// What it called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Issued>,
    /// The keys of the calls it stopped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cancel: Vec<String>,
    /// Whether it was the last: it returned, or failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
}

/// A call, as far as it has to be told from another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issued {
    /// Its name, unique in the script.
    pub key: String,
    /// What is called.
    #[serde(default)]
    pub kind: String,
    /// A hash of what it is called with.
    #[serde(default)]
    pub hash: String,
    /// Where it is written, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// What a script has done so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Scripting {
    pub(super) history: Vec<Evaluation>,
    /// What is still to be delivered, oldest first.
    pub(super) waiting: VecDeque<Arc<Value>>,
    /// Calls it has stopped that are not gone yet.
    pub(super) cancelled: BTreeSet<String>,
    /// The body of every call that was made, by its key.
    pub(super) bodies: BTreeMap<String, String>,
    /// Whether the script itself has failed, and not something around it.
    pub(super) broken: bool,
    /// The calls whose failures ended it.
    #[serde(default)]
    pub(super) cause: Vec<String>,
    /// What was returned to calls that it has not made any more since it got another chance, but
    /// may make again.
    #[serde(default)]
    known: BTreeMap<String, Known>,
}

/// A call that has returned, and what.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Known {
    #[serde(flatten)]
    issued: Issued,
    delivery: Arc<Value>,
}

impl Scripting {
    /// Whether there is nothing to remember.
    pub(super) fn is_idle(&self) -> bool {
        self.history.is_empty() && self.waiting.is_empty() && !self.broken
    }

    /// The body that a call was made of.
    pub(super) fn body_of(&self, key: &str) -> Option<&str> {
        self.bodies.get(key).map(String::as_str)
    }

    /// The function that is waited for could not be evaluated. One that does not do what it did
    /// before may do so again: then nothing of what was done is dropped.
    pub(super) fn broke(&mut self, wait: &Wait, error: &StepError) {
        let from_outside = [code::DIVERGED, code::CEILING].contains(&error.code.as_str());
        self.broken |= matches!(wait, Wait::Advance(_)) && !from_outside;
    }

    pub(super) fn calls_so_far(&self) -> usize {
        self.history.iter().map(|evaluation| evaluation.calls.len()).sum()
    }

    pub(super) fn was_called(&self, key: &str) -> bool {
        self.bodies.contains_key(key)
    }

    /// Where the history is cut when a script gets another chance. `told` is what it was being
    /// told when it failed.
    ///
    /// One that failed of the failure of a call goes back to where it was told of that. Otherwise
    /// it is only asked again what it said last: failures that it has dealt with stay dealt with,
    /// and what it did afterwards stays done.
    pub(super) fn cut(&self, told: Option<&Option<Arc<Value>>>) -> usize {
        let all = self.history.len();
        let last_said = if told.is_some() { all } else { all.saturating_sub(1) };
        if !self.broken {
            let ended = self.history.last().is_some_and(|last| last.ended);
            return if ended { last_said } else { all };
        }
        let is_cause = |evaluation: &Evaluation| {
            let delivery = evaluation.delivery.as_deref();
            told_failure(delivery) && delivery.is_some_and(|told| self.is_cause(key_of(told)))
        };
        let failure = self.history.iter().rposition(is_cause);
        failure.unwrap_or_else(|| self.before_it_stopped_calls(last_said))
    }

    /// Remembers what was returned to calls that are dropped, unless they were made because of the
    /// failure that is tried again: then they may have to be made again.
    pub(super) fn remember(&mut self, dropped: &[Evaluation], later: &[Arc<Value>]) {
        let mut because: BTreeSet<&str> = BTreeSet::new();
        let mut made: BTreeMap<&str, &Issued> = BTreeMap::new();
        for (number, evaluation) in dropped.iter().enumerate() {
            let told = evaluation.delivery.as_deref().map_or("", key_of);
            let keys = evaluation.calls.iter().map(|call| call.key.as_str());
            if number == 0 || because.contains(told) {
                because.extend(keys);
            } else {
                made.extend(keys.zip(&evaluation.calls));
            }
        }
        for delivery in later.iter().filter(|told| told.get("value").is_some()) {
            if let Some(issued) = made.get(key_of(delivery)).copied().cloned() {
                let delivery = Arc::clone(delivery);
                self.known.insert(issued.key.clone(), Known { issued, delivery });
            }
        }
    }

    /// What was returned to the same call before.
    pub(super) fn recall(&mut self, call: &Issued) -> Option<Arc<Value>> {
        let Known { issued, delivery } = self.known.remove(&call.key)?;
        (issued.kind == call.kind && issued.hash == call.hash).then_some(delivery)
    }

    fn is_cause(&self, key: &str) -> bool {
        self.cause.iter().any(|cause| cause == key)
    }

    /// The end of a script that first stopped its calls began where it stopped them; unless it has
    /// called something since, which would be lost.
    fn before_it_stopped_calls(&self, mut place: usize) -> usize {
        while let Some(told) = self.history.get(place).and_then(|said| said.delivery.as_deref())
            && told.get("cancelled").is_some()
        {
            let stops = |said: &Evaluation| said.cancel.iter().any(|key| key == key_of(told));
            let Some(stopped) = self.history[..place].iter().rposition(stops) else { break };
            if self.history[stopped..place].iter().any(|said| !said.calls.is_empty()) {
                break;
            }
            place = stopped;
        }
        place
    }
}

/// Whether a delivery says that a call failed.
pub(super) fn told_failure(delivery: Option<&Value>) -> bool {
    delivery.is_some_and(|told| told.get("error").is_some())
}

/// The call that a delivery is about.
pub(super) fn key_of(delivery: &Value) -> &str {
    delivery.get("key").and_then(Value::as_str).unwrap_or_default()
}
