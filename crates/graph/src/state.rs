//! The state of a run: keys to shared values.
//!
//! A state is a thin layer over the one it was made from. Handing it to a running step, or giving
//! every item of a fan its own, copies a pointer; a change copies only the layer it is made in.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Number, Value};

use crate::reduce::Reducer;
use crate::{Key, NodeId, Patch};

/// Values by key, and the output of every node by its id.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(crate) base: Option<Arc<Self>>,
    pub(crate) keys: BTreeMap<Key, Arc<Value>>,
    pub(crate) outputs: BTreeMap<NodeId, Arc<Value>>,
}

impl State {
    /// A state with these values and nothing below.
    pub fn new(values: Patch) -> Self {
        let keys = values.into_iter().map(|(key, value)| (key, Arc::new(value))).collect();
        Self { base: None, keys, outputs: BTreeMap::new() }
    }

    /// The same with these outputs of nodes.
    #[must_use]
    pub fn with_outputs(mut self, outputs: BTreeMap<NodeId, Value>) -> Self {
        self.outputs = outputs.into_iter().map(|(node, value)| (node, Arc::new(value))).collect();
        self
    }

    /// An empty layer over `base`.
    pub(crate) fn over(base: &Arc<Self>) -> Self {
        Self { base: Some(Arc::clone(base)), ..Self::default() }
    }

    /// Adds values under keys that have none yet.
    pub(crate) fn fill(&mut self, defaults: &Patch) {
        for (key, value) in defaults {
            if self.get(key.as_str()).is_none() {
                self.keys.insert(key.clone(), Arc::new(value.clone()));
            }
        }
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Arc<Value>> {
        self.layers().find_map(|layer| layer.keys.get(key))
    }

    /// Whether the value of `key` is this one; numbers are compared by their value.
    pub fn equals(&self, key: &str, value: &Value) -> bool {
        // As they are written first: large whole numbers are not exact with a point.
        let same_number = |x: &Number, y: &Number| {
            x == y || (x.is_f64() != y.is_f64() && x.as_f64() == y.as_f64())
        };
        self.get(key).is_some_and(|there| same(there, value, same_number))
    }

    /// What `node` returned last.
    pub fn output(&self, node: &str) -> Option<&Arc<Value>> {
        self.layers().find_map(|layer| layer.outputs.get(node))
    }

    /// Everything visible, as values that are shared, and the outputs by node.
    #[expect(clippy::type_complexity, reason = "two maps")]
    pub fn shared(&self) -> (BTreeMap<&Key, Arc<Value>>, BTreeMap<&NodeId, Arc<Value>>) {
        let (mut keys, mut outputs) = (BTreeMap::new(), BTreeMap::new());
        for layer in self.layers() {
            for (key, value) in &layer.keys {
                keys.entry(key).or_insert_with(|| Arc::clone(value));
            }
            for (node, value) in &layer.outputs {
                outputs.entry(node).or_insert_with(|| Arc::clone(value));
            }
        }
        (keys, outputs)
    }

    /// Everything visible, as one JSON object with the outputs under `outputs`.
    pub fn to_value(&self) -> Value {
        let mut keys = BTreeMap::new();
        let mut outputs = serde_json::Map::new();
        for layer in self.layers() {
            for (key, value) in &layer.keys {
                keys.entry(key.as_str()).or_insert(value);
            }
            for (node, value) in &layer.outputs {
                outputs.entry(node.as_str()).or_insert_with(|| Value::clone(value));
            }
        }
        let mut all: serde_json::Map<String, Value> =
            keys.into_iter().map(|(key, value)| (key.to_owned(), Value::clone(value))).collect();
        all.insert("outputs".to_owned(), Value::Object(outputs));
        Value::Object(all)
    }

    /// The keys changed in this layer, as one JSON object, with what its nodes returned under
    /// `outputs`.
    pub(crate) fn own_values(&self) -> Value {
        let own = self.keys.iter().map(|(key, value)| (key.to_string(), Value::clone(value)));
        let mut own: serde_json::Map<String, Value> = own.collect();
        let outputs = self.outputs.iter().map(|(id, value)| (id.to_string(), Value::clone(value)));
        own.insert("outputs".to_owned(), Value::Object(outputs.collect()));
        Value::Object(own)
    }

    /// Applies changes through the reducers; the error names the key.
    pub(crate) fn apply(
        &mut self,
        changes: &Changes,
        reducers: &BTreeMap<Key, Reducer>,
    ) -> Result<(), String> {
        for (key, changes) in &changes.0 {
            let reducer = reducers.get(key);
            for change in changes {
                self.change(key, reducer, change)?;
            }
        }
        Ok(())
    }

    /// Applies one change.
    pub(crate) fn change(
        &mut self,
        key: &Key,
        reducer: Option<&Reducer>,
        change: &Arc<Value>,
    ) -> Result<(), String> {
        let Some(reducer) = reducer.filter(|reducer| **reducer != Reducer::Replace) else {
            self.keys.insert(key.clone(), Arc::clone(change));
            return Ok(());
        };
        // Taken out, it is usually held by nobody else, and then it is changed in place.
        let mut value = match self.keys.remove(key) {
            Some(value) => value,
            None => self.get(key.as_str()).cloned().unwrap_or_default(),
        };
        let changed = reducer.reduce(Arc::make_mut(&mut value), change);
        self.keys.insert(key.clone(), value);
        changed.map_err(|problem| format!("key `{key}`: {problem}"))
    }

    /// Whether a patch would fit; the error names the key.
    pub(crate) fn accepts(
        &self,
        patch: &Patch,
        reducers: &BTreeMap<Key, Reducer>,
    ) -> Result<(), String> {
        for (key, change) in patch {
            if let Some(reducer) = reducers.get(key) {
                let old = self.get(key.as_str()).map(AsRef::as_ref);
                let fits = reducer.accepts(old.unwrap_or(&Value::Null), change);
                fits.map_err(|problem| format!("key `{key}`: {problem}"))?;
            }
        }
        Ok(())
    }

    /// Drops from a patch what was only handed back, so that `{...state, x}` changes only `x`.
    ///
    /// A value may equal what is there by chance (a counter that goes up by one each time, a
    /// second vote for the same answer), so only a patch that has every key of the state hands
    /// anything back.
    pub fn trim(&self, patch: &mut Patch) {
        if patch.len() > 1 && self.is_covered(|key| patch.contains_key(key)) {
            patch.retain(|key, value| !self.is_handed_back(key.as_str(), value));
        }
    }

    /// Whether a function that was given `key` would return this value if it did nothing to it.
    /// Numbers are compared as JavaScript reads them: 1.0 comes back as 1, and 2^53 + 1 as 2^53.
    pub fn is_handed_back(&self, key: &str, value: &Value) -> bool {
        let same_number = |x: &Number, y: &Number| x == y || x.as_f64() == y.as_f64();
        self.get(key).is_some_and(|there| same(there, value, same_number))
    }

    /// Whether all of its keys are among others.
    pub fn is_covered(&self, mut has: impl FnMut(&str) -> bool) -> bool {
        self.layers().flat_map(|layer| layer.keys.keys()).all(|key| has(key.as_str()))
    }

    fn layers(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |layer| layer.base.as_deref())
    }
}

/// Whether two values are the same but for how numbers are written.
fn same(a: &Value, b: &Value, same_number: fn(&Number, &Number) -> bool) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => same_number(x, y),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, same_number))
        }
        (Value::Object(a), Value::Object(b)) => {
            let has = |(key, value): (&String, &Value)| {
                b.get(key).is_some_and(|b| same(value, b, same_number))
            };
            a.len() == b.len() && a.iter().all(has)
        }
        (a, b) => a == b,
    }
}

/// Changes to a state, by key, in order. What a later change replaces is not kept, so that a loop
/// does not remember every round it ran.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes(pub(crate) BTreeMap<Key, VecDeque<Arc<Value>>>);

impl From<Patch> for Changes {
    fn from(patch: Patch) -> Self {
        Self(
            patch
                .into_iter()
                .map(|(key, value)| (key, VecDeque::from([Arc::new(value)])))
                .collect(),
        )
    }
}

impl Changes {
    /// Adds later changes. `reducers` are those of the state they will be applied to.
    pub(crate) fn add(&mut self, later: Self, reducers: &BTreeMap<Key, Reducer>) {
        for (key, mut later) in later.0 {
            let replaces = reducers.get(&key).is_none_or(|reducer| *reducer == Reducer::Replace);
            let known = self.0.entry(key).or_default();
            if replaces {
                known.clear();
                known.extend(later.pop_back());
            } else {
                known.append(&mut later);
            }
        }
    }

    /// Adds one later change.
    pub(crate) fn push(&mut self, key: Key, change: Arc<Value>, reducers: &BTreeMap<Key, Reducer>) {
        let replaces = reducers.get(&key).is_none_or(|reducer| *reducer == Reducer::Replace);
        let known = self.0.entry(key).or_default();
        if replaces {
            known.clear();
        }
        known.push_back(change);
    }

    /// Takes in a change from outside that the state around has already: where earlier changes of the
    /// same key are still to be applied to that state, they would undo it.
    pub(crate) fn supersede(&mut self, outside: &Self, reducers: &BTreeMap<Key, Reducer>) {
        for (key, later) in &outside.0 {
            let settles = match reducers.get(key) {
                None | Some(Reducer::Replace | Reducer::MergeById | Reducer::MergeBy(_)) => true,
                Some(_) => false,
            };
            if settles && self.0.contains_key(key) {
                for change in later {
                    self.push(key.clone(), Arc::clone(change), reducers);
                }
            }
        }
    }

    /// Puts a change back that was taken out.
    pub(crate) fn put_back(&mut self, key: Key, change: Arc<Value>) {
        self.0.entry(key).or_default().push_front(change);
    }

    /// Takes the next change out.
    pub(crate) fn pop(&mut self) -> Option<(Key, Arc<Value>)> {
        let mut first = self.0.first_entry()?;
        let key = first.key().clone();
        let change = first.get_mut().pop_front();
        if first.get().is_empty() {
            first.remove();
        }
        change.map(|change| (key, change))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::{Changes, State};
    use crate::{Patch, Reducer};

    fn patch(value: serde_json::Value) -> Patch {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_layer_hides_what_is_below_and_leaves_it_alone() {
        let below = Arc::new(State::new(patch(json!({"a": 1, "b": 2}))));
        let mut above = State::over(&below);
        above.apply(&patch(json!({"b": 3})).into(), &[].into()).unwrap();
        assert_eq!(above.to_value(), json!({"a": 1, "b": 3, "outputs": {}}));
        assert_eq!(below.to_value(), json!({"a": 1, "b": 2, "outputs": {}}));
    }

    #[test]
    fn what_is_handed_back_is_not_a_change() {
        let input = State::new(patch(json!({"list": [1], "n": 1})));
        let table = [
            // The whole state with something new in it.
            (json!({"list": [1], "n": 1, "x": 2}), json!({"x": 2})),
            (json!({"list": [1], "n": 2, "new": null}), json!({"n": 2, "new": null})),
            // A number is written in another way by the language of the function.
            (json!({"list": [1.0], "n": 1.0, "x": 2}), json!({"x": 2})),
            // What is the same by chance.
            (json!({"list": [1]}), json!({"list": [1]})),
            (json!({"list": [1], "x": 2}), json!({"list": [1], "x": 2})),
            (json!({"n": 1}), json!({"n": 1})),
        ];
        for (returned, expected) in table {
            let mut changes = patch(returned.clone());
            input.trim(&mut changes);
            assert_eq!(changes, patch(expected), "{returned}");
        }
    }

    #[test]
    fn only_changes_that_still_matter_are_kept() {
        let mut changes = Changes::default();
        let reducers = [("sum".into(), Reducer::Sum)].into();
        for n in 1..=3 {
            changes.add(patch(json!({"last": n, "sum": n})).into(), &reducers);
        }
        assert_eq!((changes.0["last"].len(), changes.0["sum"].len()), (1, 3));
        let mut state = State::default();
        state.apply(&changes, &reducers).unwrap();
        assert_eq!(state.to_value(), json!({"last": 3, "sum": 6, "outputs": {}}));
    }
}
