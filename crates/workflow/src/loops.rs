//! What the loops through tasks and until a signal leave in the state.

use atomic_event::StepResult;
use atomic_graph::task::Task;
use atomic_graph::{FunctionId, Key, NodeId};
use serde_json::Value;

use crate::function::{Call, Function};

/// Set when no task is left that can be done, or no further one is wanted.
pub(crate) const TASKS_DONE: &str = "tasksDone";

/// The node that ends a task loop because its `until` holds.
pub const ENOUGH_TASKS: &str = "enough-tasks";

/// The node that looks for the signal of a criteria loop.
pub(crate) const JUDGE_CRITERIA: &str = "judge-criteria";

/// Ends a task loop before the task that was picked is begun.
pub(crate) fn enough_tasks() -> Function {
    Function::step(|call| {
        let tasks: Vec<Value> = call.get("tasks");
        let picked = u64::from(!call.get::<Value>("currentTask").is_null());
        Ok(StepResult::default()
            .set(TASKS_DONE, true)
            .set("shouldContinue", false)
            .set("allTasksComplete", tasks.iter().all(|task| Task(task).is_done()))
            .set("currentTask", Value::Null)
            .set("iteration", call.get::<u64>("iteration").saturating_sub(picked)))
    })
}

/// Says after each round of a criteria loop whether it goes on. The output is that of the last node,
/// which is what the loop returns.
pub(crate) fn judge_criteria(last: NodeId, signal: Option<String>, max_rounds: u32) -> Function {
    Function::step(move |call| {
        let output = call.output(last.as_str());
        let is_complete = signal.as_ref().is_some_and(|signal| says(&output, signal));
        let is_over = max_rounds > 0 && round(call) == Some(max_rounds);
        Ok(StepResult::output(output)
            .set("iteration", round(call).unwrap_or_default())
            .set("shouldContinue", !is_complete && !is_over)
            .set("criteriaComplete", is_complete)
            .set("maxIterationsReached", is_over && !is_complete))
    })
}

/// Whether this is the function of a node that looks for the signal of a criteria loop: one of a
/// described workflow, or one of a builder.
pub(crate) fn is_judge(call: &FunctionId) -> bool {
    let id = call.as_str();
    id.contains(&format!("/:{JUDGE_CRITERIA}:"))
        || id.contains(&format!("/{JUDGE_CRITERIA}/execute"))
}

/// The round of the loop a step is in.
fn round(call: &Call<'_>) -> Option<u32> {
    call.step.item()?.parse().ok()
}

fn says(output: &Value, signal: &str) -> bool {
    match output.as_str() {
        Some(text) => text.contains(signal),
        None => output.to_string().contains(signal),
    }
}

/// The key under which a task loop says that it is over.
pub(crate) fn tasks_done() -> Key {
    Key::from(TASKS_DONE)
}
