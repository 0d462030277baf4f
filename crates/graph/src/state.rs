//! The state of a run: keys to shared values.
//!
//! A state is a thin layer over the one it was made from. Handing it to a running step, or giving
//! every item of a fan its own, copies a pointer; a change copies only the layer it is made in.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

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

    /// An empty layer over `base`.
    pub(crate) fn over(base: &Arc<Self>) -> Self {
        Self { base: Some(Arc::clone(base)), ..Self::default() }
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Arc<Value>> {
        self.layers().find_map(|layer| layer.keys.get(key))
    }

    /// What `node` returned last.
    pub fn output(&self, node: &str) -> Option<&Arc<Value>> {
        self.layers().find_map(|layer| layer.outputs.get(node))
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

    /// The keys changed in this layer, as one JSON object.
    pub(crate) fn own_values(&self) -> Value {
        let own = self.keys.iter().map(|(key, value)| (key.to_string(), Value::clone(value)));
        Value::Object(own.collect())
    }

    /// Applies a patch through the reducers; the error names the key.
    pub(crate) fn apply(
        &mut self,
        patch: &Patch,
        reducers: &BTreeMap<Key, Reducer>,
    ) -> Result<(), String> {
        for (key, change) in patch {
            let reducer = reducers.get(key).copied().unwrap_or_default();
            let old = self.get(key.as_str());
            let new = reducer
                .reduce(old.map(AsRef::as_ref), change)
                .map_err(|problem| format!("key `{key}`: {problem}"))?;
            self.keys.insert(key.clone(), Arc::new(new));
        }
        Ok(())
    }

    fn layers(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |layer| layer.base.as_deref())
    }
}

/// Drops what a step returned unchanged, so that `{...state, x}` changes only `x`.
pub(crate) fn trim(patch: &mut Patch, input: &State) {
    patch.retain(|key, value| input.get(key.as_str()).map(AsRef::as_ref) != Some(&*value));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::{State, trim};
    use crate::Patch;

    fn patch(value: serde_json::Value) -> Patch {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_layer_hides_what_is_below_and_leaves_it_alone() {
        let below = Arc::new(State::new(patch(json!({"a": 1, "b": 2}))));
        let mut above = State::over(&below);
        above.apply(&patch(json!({"b": 3})), &[].into()).unwrap();
        assert_eq!(above.to_value(), json!({"a": 1, "b": 3, "outputs": {}}));
        assert_eq!(below.to_value(), json!({"a": 1, "b": 2, "outputs": {}}));
    }

    #[test]
    fn what_is_returned_unchanged_is_not_a_change() {
        let input = State::new(patch(json!({"list": [1], "n": 1})));
        let mut returned = patch(json!({"list": [1], "n": 2, "new": null}));
        trim(&mut returned, &input);
        assert_eq!(returned, patch(json!({"n": 2, "new": null})));
    }
}
