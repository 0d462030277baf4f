//! A small Ralph with everything in it: workers side by side, one of which asks, a task that goes
//! wrong and gets a bug-fix, and a review that finds something.
//!
//! The plan is `#1` and `#2` (which asks) side by side, then `#3`, which fails the first time and
//! gets `#3-bug-1`; the first review finds something that becomes `#4`.

use atomic_workflow::Workflow;
use atomic_workflow::builtin::ralph::ralph;
use serde_json::{Value, json};

/// What the worker of task `#2` asks.
pub const QUESTION: &str = "Which colour?";

/// The answer the script goes on with.
pub const ANSWER: &str = "Blue";

/// The task list at the end, in order.
pub const TASKS: [&str; 5] = ["#1", "#2", "#3", "#3-bug-1", "#4"];

/// The file that makes [`GATE`] red.
const BROKEN: &str = "broken.txt";

/// Green until task `#3` breaks something.
pub const GATE: &str = "test ! -e broken.txt";

/// Who finds out that task `#3` went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The worker itself reports it.
    Reported,
    /// The worker claims success, and only [`GATE`] is red.
    FoundByGate,
}

/// Ralph, with workers that may ask the user. (The one that ships does not let them.)
pub fn asking_ralph(name: &str) -> Workflow {
    let mut workflow = ralph(name);
    if let Ok(mut graph) = serde_json::to_value(&workflow.graph) {
        allow_questions(&mut graph);
        if let Ok(graph) = serde_json::from_value(graph) {
            workflow.graph = graph;
        }
    }
    workflow
}

/// Lets every worker in a graph ask.
fn allow_questions(graph: &mut Value) {
    match graph {
        Value::Object(fields) => {
            if fields.get("agent").is_some_and(|agent| agent == "worker") {
                fields.insert("questions".to_owned(), true.into());
            }
            fields.values_mut().for_each(allow_questions);
        }
        Value::Array(items) => items.iter_mut().for_each(allow_questions),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The script that belongs to it. Every worker says another `padding` times 10,000 characters, for
/// those who need a long journal.
///
/// Turns are chosen by conversation where the prompt of a continued turn would not do: a real
/// program remembers what it was told, a script has only the name.
pub fn script(flaw: Flaw, padding: usize) -> Value {
    let visit = |item: &str, visit: u32, round: u32| {
        format!("script-select-ready-tasks#{round}[{item}]/worker#{visit}")
    };
    let broken = match flaw {
        Flaw::Reported => [json!({"say": report("failed", "it does not hold")})],
        Flaw::FoundByGate => [json!({"say": report("completed", "it holds")})],
    };
    let breaks = json!({"write": {"path": BROKEN, "text": "broken\n"}});
    let answered = format!("The user's answer: {ANSWER}");
    let ask = json!({"ask": {"question": QUESTION, "header": "Colour",
        "options": [{"label": "Red"}, {"label": ANSWER}]}});
    let writes = |path: &str| json!({"write": {"path": path, "text": format!("{path}\n")}});
    let turns = [
        json!({"agent": "planner", "do": [{"say": plan()}]}),
        json!({"agent": "reviewer", "prompt": ["Review round 1"], "do": [{"say": first_review()}]}),
        json!({"agent": "reviewer", "do": [{"say": r#"{"findings": [], "verdict": "correct"}"#}]}),
        worker("#1", json!({}), padding, vec![writes("one.txt")], &done()),
        worker(
            "#2",
            json!({"prompt": ["Task #2:", answered]}),
            padding,
            vec![writes("two.txt")],
            &done(),
        ),
        worker("#2", json!({}), padding, vec![ask, writes("two.txt")], &done()),
        worker(
            "#3",
            json!({"conversation": visit("#3", 1, 1)}),
            padding,
            vec![writes("three.txt"), breaks],
            &broken,
        ),
        worker("#3", json!({}), padding, vec![writes("three.txt")], &done()),
        worker("#3-bug-1", json!({}), padding, vec![json!({"delete": BROKEN})], &done()),
        worker("#4", json!({}), padding, vec![writes("four.txt")], &done()),
    ];
    json!({"reports_cost": true, "turn": turns})
}

/// A worker's turn: it says something, does something, says what it cost, and reports.
fn worker(
    task: &str,
    matching: Value,
    padding: usize,
    work: Vec<Value>,
    report: &[Value],
) -> Value {
    let mut turn = json!({"agent": "worker", "prompt": [format!("Task {task}:")]});
    if let (Value::Object(turn), Value::Object(more)) = (&mut turn, matching) {
        turn.extend(more);
    }
    let mut actions = vec![json!({"say": format!("Looking at {task}.")})];
    actions.extend((0..padding).map(|_| json!({"say": "x".repeat(10_000)})));
    actions.extend(work);
    actions.push(json!({"usage": {"input_tokens": 100, "output_tokens": 10, "cost_usd": 0.25}}));
    actions.extend_from_slice(report);
    turn["do"] = actions.into();
    turn
}

fn done() -> [Value; 1] {
    [json!({"say": report("completed", "done")})]
}

fn report(status: &str, summary: &str) -> String {
    json!({"status": status, "summary": summary}).to_string()
}

fn plan() -> String {
    let task = |id: &str, content: &str, blocked_by: &[&str]| {
        json!({"id": id, "content": content, "activeForm": format!("Doing {id}"),
            "blockedBy": blocked_by, "description": format!("All of {id}."),
            "acceptanceCriteria": [format!("{id} works")]})
    };
    json!([
        task("#1", "Write the first file", &[]),
        task("#2", "Write the second file in the right colour", &[]),
        task("#3", "Write the third file", &["#1", "#2"]),
    ])
    .to_string()
}

fn first_review() -> String {
    let finding = json!({"title": "The fourth file is missing", "body": "Write it.",
        "path": "four.txt", "line": 1, "priority": 1});
    json!({"findings": [finding], "verdict": "incorrect"}).to_string()
}
