//! A fan: which items of a list may start, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::limit::wrong_value;
use super::region::{Ending, Region};
use super::{Machine, Place};
use crate::state::Changes;
use crate::task::{OddRow, Task, odd_row, ready, stranded};
use crate::{Each, ItemOrder, Key, Kind, Ready, Reducer, State, StepError, code};

/// What a fan knows about its items.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Fan {
    /// How often each node was visited for each item, so that visits count on when it runs again.
    visits: BTreeMap<String, BTreeMap<u32, u32>>,
    /// Each item as it was when it last started: one that is still the same is not run again.
    started: BTreeMap<String, Value>,
    /// How far the list has been read, for fans that run every item once.
    read: usize,
    /// How many items were begun, by what tells them apart.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    begun: BTreeMap<String, usize>,
    /// The same of the part of the list that was read. It follows from the list, so it is not
    /// kept.
    #[serde(skip)]
    met: Option<BTreeMap<String, usize>>,
}

impl Machine {
    /// Starts as many items as may start; ends the fan when nothing runs and nothing can.
    pub(super) fn fill_fan(&mut self, place: Place) {
        let (program, plan, node) = self.node_at(place);
        let Kind::Each(each) = &program.plan(plan).node(node).kind else { return };
        self.wake(place);
        loop {
            let (name, item) = match self.next_item(place, each) {
                Ok(Some(next)) => next,
                Ok(None) => break,
                Err(error) => return self.stop_region(place, Ending::Fail(error)),
            };
            let Some(mut state) = self.seen_by(place, each, &item) else { return };
            state.keys.insert(each.item.clone(), Arc::new(item));
            self.open_child(place, name, Some(state));
        }
        if let Some(error) = self.stranded(place, each) {
            return self.stop_region(place, Ending::Fail(error));
        }
        // What another item has changed, and is not applied yet, may let more of them start.
        if self.region_mut(place).is_some_and(|region| region.absorbing.is_empty()) {
            self.end_if_idle(place);
        }
    }

    /// What an item sees: the state around the fan, the list as it is now, and the changes of the
    /// tasks it waited for and of its own earlier runs. Changes of other items would make the result depend on how many work at
    /// once: a vote that equals a sibling's is taken for one that was only handed back.
    fn seen_by(&self, place: Place, each: &Each, item: &Value) -> Option<State> {
        let frame = self.frame(place.0);
        let region = frame.active[place.1].state.region()?;
        if each.order == ItemOrder::Finished {
            return Some(State::over(&region.state));
        }
        let mut state = State::over(&frame.state);
        let list = region.state.get(each.over.as_str());
        state.keys.extend(list.map(|list| (each.over.clone(), Arc::clone(list))));
        let rows = list.and_then(|list| list.as_array()).map_or(&[][..], Vec::as_slice);
        let task = Task(item);
        let rests = |id: &&str| task.blockers().next().is_some() || region.items.contains_key(*id);
        let Some(name) = task.id().filter(rests).filter(|_| each.order == ItemOrder::Blockers)
        else {
            return Some(state);
        };
        let reducers = &self.program.plan(frame.plan).reducers;
        for earlier in blockers_first(rows, Some(name)) {
            let changes = region.items.get(earlier);
            for (key, changes) in changes.into_iter().flat_map(|changes| &changes.0) {
                let reducer = reducers.get(key);
                // The function has combined these changes in the state of the region already.
                let combined = match reducer {
                    Some(Reducer::Call(_)) => region.state.get(key.as_str()),
                    _ => None,
                };
                if let Some(combined) = combined {
                    state.keys.insert(key.clone(), Arc::clone(combined));
                    continue;
                }
                for change in changes {
                    // A change that does not fit has failed the fan before this task could begin.
                    let _ = state.change(key, reducer, change);
                }
            }
        }
        Some(state)
    }

    /// The first item that may start now, if there is a worker for it.
    fn next_item(
        &mut self,
        place: Place,
        each: &Each,
    ) -> Result<Option<(String, Value)>, StepError> {
        let limit = self.workers(place)?;
        let exhausted = self.is_exhausted();
        let (program, plan, node) = self.node_at(place);
        let Some(region) = self.region_mut(place) else { return Ok(None) };
        let state = Arc::clone(&region.state);
        let key = each.over.as_str();
        let list = state.get(key).map(AsRef::as_ref);
        let list = list
            .and_then(Value::as_array)
            .ok_or_else(|| wrong_value(&program.plan(plan).node(node).id, key, "a list", list))?;
        if each.ready == Ready::Tasks
            && let Some(OddRow { problem, hint }) = odd_row(list)
        {
            let node = &program.plan(plan).node(node).id;
            let message = format!("node `{node}`, key `{key}`: {problem}\n  hint: {hint}");
            return Err(StepError::new(code::WRONG_VALUE, message));
        }
        let Region { fan, running, failed, waking, ending, .. } = region;
        // At a limit of the run one item that fails is enough; the others are still in the list.
        let hopeless = exhausted && !failed.is_empty();
        Ok(match each.ready {
            _ if running.len() >= limit || ending.is_some() || hopeless => None,
            Ready::Once => fan.unread(list),
            Ready::Tasks => {
                let all = [running, failed, waking];
                fan.ready_task(list, |id| all.iter().any(|some| some.contains_key(id)))
            }
        })
    }

    /// The failure of a fan over tasks that has come to its end with tasks that were never started.
    fn stranded(&mut self, place: Place, each: &Each) -> Option<StepError> {
        let (program, plan, node) = self.node_at(place);
        let Region { state, fan, running, failed, waking, absorbing, wait, ending, .. } =
            self.region_mut(place)?;
        let is_idle = running.is_empty() && waking.is_empty() && absorbing.is_empty();
        let is_over = is_idle && failed.is_empty() && wait.is_none() && ending.is_none();
        if !is_over || each.ready != Ready::Tasks {
            return None;
        }
        let (node, key) = (&program.plan(plan).node(node).id, each.over.as_str());
        let left = stranded(state.get(key)?.as_array()?, |id| fan.started.contains_key(id));
        if left.is_empty() {
            return None;
        }
        let message = format!(
            "node `{node}`, key `{key}`: no task can be started; left are {}\n  hint: correct what \
             they wait for, or set their status to `pending`; tasks in the session's tasks.json can \
             be edited before `atomic resume`",
            left.join(", ")
        );
        Some(StepError::new(code::WRONG_VALUE, message))
    }

    /// How many frames a region runs at once.
    pub(super) fn workers(&self, place: Place) -> Result<usize, StepError> {
        let (program, plan, node) = self.node_at(place);
        let node = program.plan(plan).node(node);
        let region = self.frame(place.0).active[place.1].state.region();
        let (Kind::Each(each), Some(region)) = (&node.kind, region) else {
            return Ok(usize::MAX);
        };
        let limit = self.limit_of(&node.id, Some(&each.workers), &region.state)?;
        Ok(usize::try_from(limit.unwrap_or(u64::MAX).max(1)).unwrap_or(usize::MAX))
    }
}

/// What tells an item from others: its id, or else its place in the list.
fn mark(place: usize, item: &Value) -> String {
    let id = item.get("id").and_then(Value::as_str);
    id.map_or_else(|| place.to_string(), |id| format!("={id}"))
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

/// What is known by item, in the order of the list; what is known of items that left it comes
/// last.
pub(super) fn in_order<T>(mut left: BTreeMap<String, T>, list: &[Value]) -> Vec<(String, T)> {
    let mut names = BTreeSet::new();
    let mut ordered = vec![];
    for (place, item) in list.iter().enumerate() {
        let name = item_name(place, item, |name| names.contains(name));
        ordered.extend(left.remove_entry(&name));
        names.insert(name);
    }
    ordered.extend(left);
    ordered
}

/// The ids of the tasks of a list, each after those it waits for and otherwise in the order of the
/// list: of all tasks, or of one and those it waits for.
fn blockers_first<'l>(list: &'l [Value], only: Option<&str>) -> Vec<&'l str> {
    let rows = || list.iter().map(Task).filter_map(|task| Some((task.id()?, task)));
    let by_id: BTreeMap<&str, Task<'_>> = rows().collect();
    let mut met = BTreeSet::new();
    let mut ordered = vec![];
    for (id, _) in rows().filter(|(id, _)| only.is_none_or(|only| only == *id)) {
        // Whether those it waits for are in place already. A stack of our own: a chain may be long.
        let mut waiting = vec![(id, false)];
        while let Some((id, is_last)) = waiting.pop() {
            if is_last {
                ordered.push(id);
            } else if met.insert(id) {
                waiting.push((id, true));
                let blockers = by_id[id].blockers().filter_map(|id| by_id.get_key_value(id));
                let first = waiting.len();
                waiting.extend(blockers.map(|(id, _)| (*id, false)));
                waiting[first..].reverse();
            }
        }
    }
    ordered
}

/// The changes of the items in the order in which they reach the state around the fan.
pub(super) fn changes_in_order(
    each: &Each,
    mut items: BTreeMap<String, Changes>,
    list: &[Value],
) -> Vec<Changes> {
    let mut ordered = vec![];
    if each.order == ItemOrder::Blockers {
        ordered.extend(blockers_first(list, None).into_iter().filter_map(|id| items.remove(id)));
    }
    ordered.extend(in_order(items, list).into_iter().map(|(_, changes)| changes));
    ordered
}

/// Where a change of an item waits for the end of its region: with all others, in the order in
/// which they come, or with those of the same item.
pub(super) fn kept<'r>(
    kind: &Kind,
    key: &Key,
    item: &str,
    (all, items): (&'r mut Changes, &'r mut BTreeMap<String, Changes>),
) -> &'r mut Changes {
    if let Kind::Each(each) = kind
        && each.order != ItemOrder::Finished
        && each.over != *key
    {
        return items.entry(item.to_owned()).or_default();
    }
    all
}

impl Fan {
    pub(super) fn visits_of(&self, name: &str) -> BTreeMap<u32, u32> {
        self.visits.get(name).cloned().unwrap_or_default()
    }

    /// An item has run.
    pub(super) fn ran(&mut self, name: &str, visits: BTreeMap<u32, u32>) {
        self.visits.insert(name.to_owned(), visits);
    }

    /// Nodes have other numbers.
    pub(super) fn renumber(
        &mut self,
        renumbered: impl Fn(&str, &BTreeMap<u32, u32>) -> BTreeMap<u32, u32>,
    ) {
        for (name, visits) in &mut self.visits {
            *visits = renumbered(name, visits);
        }
    }

    /// The list may be another one than was read.
    pub(super) fn read_again(&mut self) {
        (self.read, self.met) = (0, None);
    }

    /// A change to the state around the items: the list may be another one, unless it only grew.
    pub(super) fn saw_change(&mut self, kind: &Kind, key: &Key, reducer: Option<&Reducer>) {
        let over = if let Kind::Each(each) = kind { Some(&each.over) } else { None };
        if over == Some(key) && reducer != Some(&Reducer::Concat) {
            self.read_again();
        }
    }

    /// The first item that was not begun. Of items with the same id as many are begun as there
    /// are.
    fn unread(&mut self, list: &[Value]) -> Option<(String, Value)> {
        let read = self.read;
        let met = self.met.get_or_insert_with(|| {
            let mut met = BTreeMap::new();
            for (place, item) in list.iter().enumerate().take(read) {
                *met.entry(mark(place, item)).or_default() += 1;
            }
            met
        });
        for (place, item) in list.iter().enumerate().skip(read) {
            self.read = place + 1;
            let mark = mark(place, item);
            let begun = self.begun.entry(mark.clone()).or_default();
            let met = met.entry(mark).or_default();
            *met += 1;
            if *met > *begun {
                *begun += 1;
                let name = item_name(place, item, |name| self.started.contains_key(name));
                self.started.insert(name.clone(), Value::Null);
                return Some((name, item.clone()));
            }
        }
        None
    }

    fn ready_task(
        &mut self,
        list: &[Value],
        is_busy: impl Fn(&str) -> bool,
    ) -> Option<(String, Value)> {
        let ready = ready(list).into_iter().filter_map(|task| Some((task.id()?, task.0)));
        let is_next =
            |(id, row): &(&str, &Value)| !is_busy(id) && self.started.get(*id) != Some(row);
        let (id, row) = ready.into_iter().find(is_next)?;
        self.started.insert(id.to_owned(), row.clone());
        Some((id.to_owned(), row.clone()))
    }

    /// The list was changed from outside: tasks whose rows differ may be started again.
    pub(super) fn forget_started<'v>(&mut self, before: Option<&'v Value>, now: Option<&'v Value>) {
        let rows = |list: Option<&'v Value>| list.and_then(Value::as_array).into_iter().flatten();
        let before: BTreeMap<Option<&str>, &Value> =
            rows(before).map(|row| (Task(row).id(), row)).collect();
        for row in rows(now) {
            if let Some(id) = Task(row).id()
                && before.get(&Some(id)) != Some(&row)
            {
                self.started.remove(id);
            }
        }
    }
}
