//! A fan: which items of a list may start, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::region::Region;
use super::{Machine, Place};
use crate::{Each, Kind, Ready, State};

/// What a fan knows about its items.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Fan {
    /// How often each node was visited for each item, so that visits count on when it runs again.
    visits: BTreeMap<String, BTreeMap<u32, u32>>,
    /// Each item as it was when it last started: one that is still the same is not run again.
    started: BTreeMap<String, Value>,
    /// How far the list has been read, for fans that run every item once.
    read: usize,
}

impl Machine {
    /// Starts as many items as may start; ends the fan when nothing runs and nothing can.
    pub(super) fn fill_fan(&mut self, place: Place) {
        let (program, plan, node) = self.node_at(place);
        let Kind::Each(each) = &program.plan(plan).node(node).kind else { return };
        self.wake(place);
        while let Some((name, item)) = self.next_item(place, each) {
            let Some(region) = self.region_mut(place) else { return };
            let mut state = State::over(&region.state);
            state.keys.insert(each.item.clone(), Arc::new(item));
            self.open_child(place, name, Some(state));
        }
        // What another item has changed, and is not applied yet, may let more of them start.
        if self.region_mut(place).is_some_and(|region| region.absorbing.is_empty()) {
            self.end_if_idle(place);
        }
    }

    /// The first item that may start now, if there is a worker for it.
    fn next_item(&mut self, place: Place, each: &Each) -> Option<(String, Value)> {
        let limit = self.workers(place);
        let state = Arc::clone(&self.region_mut(place)?.state);
        let list = state.get(each.over.as_str())?.as_array()?;
        let Region { fan, running, failed, waking, ending, .. } = self.region_mut(place)?;
        match each.ready {
            _ if running.len() >= limit || ending.is_some() => None,
            Ready::Once => fan.unread(list),
            Ready::Tasks => {
                let all = [running, failed, waking];
                fan.ready_task(list, |id| all.iter().any(|some| some.contains_key(id)))
            }
        }
    }

    /// How many frames a region runs at once.
    pub(super) fn workers(&self, place: Place) -> usize {
        let (program, plan, node) = self.node_at(place);
        let region = self.frame(place.0).active[place.1].state.region();
        let (Kind::Each(each), Some(region)) = (&program.plan(plan).node(node).kind, region) else {
            return usize::MAX;
        };
        let limit = self.count(&each.workers, &region.state).unwrap_or(u64::MAX).max(1);
        usize::try_from(limit).unwrap_or(usize::MAX)
    }
}

/// What an item is called: its id, or else its place in the list, which also tells items apart
/// that have the same id.
fn item_name(place: usize, item: &Value, is_taken: impl Fn(&str) -> bool) -> String {
    let id = item.get("id").and_then(Value::as_str);
    let mut name = id.map_or_else(|| place.to_string(), str::to_owned);
    while is_taken(&name) {
        name = format!("{name}~{place}");
    }
    name
}

/// The outputs by item, in the order of the list; those of items that left it come last.
pub(super) fn in_order(mut left: BTreeMap<String, Value>, list: &[Value]) -> Value {
    let mut names = BTreeSet::new();
    let mut ordered = Map::new();
    for (place, item) in list.iter().enumerate() {
        let name = item_name(place, item, |name| names.contains(name));
        ordered.extend(left.remove_entry(&name));
        names.insert(name);
    }
    ordered.extend(left);
    Value::Object(ordered)
}

impl Fan {
    pub(super) fn visits_of(&self, name: &str) -> BTreeMap<u32, u32> {
        self.visits.get(name).cloned().unwrap_or_default()
    }

    /// An item has run.
    pub(super) fn ran(&mut self, name: &str, visits: BTreeMap<u32, u32>) {
        self.visits.insert(name.to_owned(), visits);
    }

    fn unread(&mut self, list: &[Value]) -> Option<(String, Value)> {
        let item = list.get(self.read)?;
        let name = item_name(self.read, item, |name| self.started.contains_key(name));
        self.read += 1;
        self.started.insert(name.clone(), Value::Null);
        Some((name, item.clone()))
    }

    fn ready_task(
        &mut self,
        list: &[Value],
        is_busy: impl Fn(&str) -> bool,
    ) -> Option<(String, Value)> {
        let status = |row: &Value, wanted: &[&str]| {
            row.get("status").and_then(Value::as_str).is_some_and(|s| wanted.contains(&s))
        };
        let done: BTreeSet<&str> = list
            .iter()
            .filter(|row| status(row, &["completed", "skipped"]))
            .filter_map(|row| row.get("id")?.as_str())
            .collect();
        let unblocked = |row: &Value| {
            let blockers = row.get("blockedBy").and_then(Value::as_array);
            let is_done = |id: &Value| id.as_str().is_some_and(|id| done.contains(id));
            blockers.is_none_or(|blockers| blockers.iter().all(is_done))
        };
        let (id, row) = list
            .iter()
            .filter(|row| status(row, &["pending"]) && unblocked(row))
            .filter_map(|row| Some((row.get("id")?.as_str()?, row)))
            .find(|(id, row)| !is_busy(id) && self.started.get(*id) != Some(row))?;
        self.started.insert(id.to_owned(), row.clone());
        Some((id.to_owned(), row.clone()))
    }
}
