//! What a run, and each of its tasks, has spent.

use std::collections::BTreeMap;

use atomic_event::{Spending, StepId, TurnSpending, Usage};
use serde::{Deserialize, Serialize};

use crate::book::LoopTask;
use crate::lane::Loops;

/// Everything that was reported, by step while a step is open, and by task.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Spent {
    /// Of steps that are over, and of attempts before the last.
    #[serde(flatten)]
    over: Spending,
    /// Of the steps that are open.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    steps: BTreeMap<StepId, StepSpending>,
    /// Of steps that are over, by task.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tasks: BTreeMap<Task, Spending>,
}

/// A task: the node of the fan or loop, without its visits, and the item, as in `work[#4]`.
pub(crate) type Task = String;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct StepSpending {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<Task>,
    #[serde(flatten)]
    spent: TurnSpending,
}

impl Spent {
    /// A step has reported.
    pub(crate) fn add(&mut self, step: &StepId, task: Option<Task>, usage: &Usage) {
        let open = self.steps.entry(step.clone()).or_default();
        open.task = open.task.take().or(task);
        open.spent.add(usage);
    }

    /// A step begins again or is over: nothing corrects what it has reported any more.
    pub(crate) fn settle(&mut self, step: &StepId) {
        let Some(StepSpending { task, spent }) = self.steps.remove(step) else { return };
        self.over += spent.total();
        if let Some(task) = task {
            *self.tasks.entry(task).or_default() += spent.total();
        }
    }

    /// What the run has spent.
    pub(crate) fn total(&self) -> Spending {
        let mut total = self.over;
        self.steps.values().for_each(|step| total += step.spent.total());
        total
    }

    /// A program begins to work for a step, or another program goes on with it: its totals do not
    /// contain what was reported before.
    pub(crate) fn begin_turn(&mut self, step: &StepId) {
        if let Some(open) = self.steps.get_mut(step) {
            open.spent.begin_turn();
        }
    }

    /// What one task has spent, over all its attempts.
    pub(crate) fn of_task(&self, task: &Task) -> Spending {
        let mut spent = self.tasks.get(task).copied().unwrap_or_default();
        for open in self.steps.values().filter(|open| open.task.as_ref() == Some(task)) {
            spent += open.spent.total();
        }
        spent
    }

    /// What each task has spent, over all its attempts.
    pub(crate) fn by_task(&self) -> BTreeMap<&str, Spending> {
        let mut tasks: BTreeMap<&str, Spending> =
            self.tasks.iter().map(|(task, spent)| (task.as_str(), *spent)).collect();
        for StepSpending { task, spent } in self.steps.values() {
            if let Some(task) = task {
                *tasks.entry(task).or_default() += spent.total();
            }
        }
        tasks
    }
}

/// The task a step works on: the outermost item of a fan or of a script's `map`, or the task of a round of a
/// task loop. Rounds of other loops and other calls of a script are no tasks.
pub(crate) fn task_of(
    step: &StepId,
    loops: &Loops,
    loop_tasks: &BTreeMap<String, LoopTask>,
) -> Option<Task> {
    let places = step.as_str().match_indices('/').map(|(end, _)| &step.as_str()[..end]);
    let mut places = places.filter(|place| place.ends_with(']'));
    places.find_map(|place| {
        if let Some(item) = called_for(step, place) {
            return item.map(without_visits);
        }
        if let Some(task) = loop_tasks.get(place) {
            let (round, _) = place.rsplit_once('[')?;
            return Some(format!("{}[{}]", without_visits(round), task.id));
        }
        (!loops.is_round(place)).then(|| without_visits(place))
    })
}

/// For a call of a script, such as `run#1[m1.0/agent:1]/agent#1`: the item of a `map` that it is made for,
/// as in `run#1[m1.0]`, if there is one. Nothing for other steps.
fn called_for(step: &StepId, place: &str) -> Option<Option<String>> {
    let (script, key) = place.strip_suffix(']')?.split_once('[')?;
    let (kind, number) = key.rsplit('/').next()?.split_once(':')?;
    let node = step.as_str()[place.len()..].strip_prefix('/')?.strip_prefix(kind)?;
    if !node.starts_with('#') || number.parse::<u64>().is_err() {
        return None;
    }
    let outermost = key.split_once('/').map(|(outermost, _)| outermost);
    let item = outermost.filter(|outermost| outermost.starts_with('m'));
    Some(item.map(|item| format!("{script}[{item}]")))
}

/// A place such as `work#1!2[#4]` without how often its nodes were visited.
fn without_visits(place: impl AsRef<str>) -> String {
    let part = |part: &str| {
        let (node, item) =
            part.split_once('[').map_or((part, ""), |(node, _)| (node, &part[node.len()..]));
        let node = node.split_once('#').map_or(node, |(node, _)| node);
        format!("{node}{item}")
    };
    place.as_ref().split('/').map(part).collect::<Vec<_>>().join("/")
}

/// The item of a task, as the task list names it.
pub(crate) fn item_of(task: &str) -> Option<String> {
    StepId::new(format!("{task}/step#1")).item()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use atomic_event::{StepId, Usage};

    use super::{Spent, item_of, task_of};
    use crate::book::LoopTask;
    use crate::lane::Loops;

    #[test]
    fn a_step_belongs_to_the_task_of_its_fan_or_round() {
        let loop_task =
            LoopTask { file: String::new(), id: "T-7".to_owned(), begun: true, error: None };
        let loop_tasks = BTreeMap::from([("again#1[2]".to_owned(), loop_task)]);
        let table = [
            ("plan#1", None),
            ("work#1[#4]/worker#2", Some("work[#4]")),
            ("work#2!3[#4]/again#1[2]/worker#1", Some("work[#4]")),
            ("again#1[2]/worker#1", Some("again[T-7]")),
            ("run#1[agent:1]/agent#1", None),
            ("run#1[p1.0/agent:1]/agent#1", None),
            ("run#1[m1.0/agent:2]/agent#1", Some("run[m1.0]")),
            ("run#1[m1.0/m2.1/agent:2]/agent#1", Some("run[m1.0]")),
            ("work#1[agent:1]/worker#1", Some("work[agent:1]")),
        ];
        for (step, task) in table {
            let found = task_of(&StepId::new(step), &Loops::default(), &loop_tasks);
            assert_eq!(found.as_deref(), task, "{step}");
        }
        assert_eq!(item_of("work[#4]").as_deref(), Some("#4"));
    }

    #[test]
    fn a_task_is_charged_for_all_its_attempts() {
        let mut spent = Spent::default();
        let step = StepId::new("work#1[#4]/worker#1");
        let call = Usage { input_tokens: 10, estimated_usd: Some(0.5), ..Usage::default() };
        let task = || Some("work[#4]".to_owned());
        spent.add(&step, task(), &call);
        spent.settle(&step);
        spent.add(&step, task(), &call);
        let total = Usage { cost_usd: Some(0.25), estimated_usd: None, is_total: true, ..call };
        spent.add(&step, task(), &total);
        let of_task = spent.by_task()["work[#4]"];
        assert_eq!((of_task.tokens, of_task.usd()), (20, Some(0.75)));
        assert_eq!(spent.total(), of_task);
        let stored = serde_json::to_value(&spent).unwrap();
        let read: Spent = serde_json::from_value(stored).unwrap();
        assert_eq!(read.total(), of_task);
    }
}
