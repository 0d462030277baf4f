//! The kinds of nodes that are not in `engine_crash`, and those with rules about failures and time,
//! killed and taken up again at fewer places: before somebody goes on from a `wait`, and after.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use atomic_testing::sample::Sample;
use serde_json::{Value, json};

use crate::crash::enough_were_killed;
use crate::crash_case::{Case, side_by_side};
use crate::crash_scene::Scene;
use crate::engine::Project;
use crate::engine_crash::{self, End, FILE, agent, begun, check_kills, end, tool};

/// Only every so many places of each phase.
const STRIDE: usize = 5;

const SCRIPT: &str = r#"
[[turn]]
do = [
  { run = 'echo "$ATOMIC_STEP" >> "$LEDGER"' },
  { usage = { input_tokens = 1, context_tokens = 850, context_window = 1000 } },
  { say = "SAID" },
]
"#;

/// Agents, and what is done about their conversations.
fn talk() -> Vec<Value> {
    vec![
        agent("first"),
        json!({"type": "contextMonitor", "id": "monitor", "action": "compact"}),
        agent("second"),
        json!({"type": "clearContext", "id": "clear"}),
        json!({"type": "subagent", "id": "apart", "agent": "worker", "task": "Do apart"}),
        json!({"type": "parallelSubagent", "id": "pair", "agents": [
            {"agent": "worker", "task": "Do one half"},
            {"agent": "reviewer", "task": "Do the other half"},
        ]}),
    ]
}

/// Everything that is run more than once, or not to its end.
fn work() -> Vec<Value> {
    // Rounds and attempts are known by the step's name, however often they are begun.
    let enough = "case \"$ATOMIC_STEP\" in *'[2]'*) echo ENOUGH;; *) echo more;; esac";
    let second = "case \"$ATOMIC_STEP\" in *'!2'*) echo well;; *) exit 3;; esac";
    let after_bad = "until grep '\"type\":\"step_failed\"' .atomic/sessions/*/journal.jsonl \
                     | grep -q 'bad#1'; do sleep 0.02; done; echo good";
    let retry = json!({"maxAttempts": 2, "backoffMs": 150});
    vec![
        json!({"type": "parallel", "id": "any", "strategy": "any", "branches": [
            tool("bad", "exit 3"), tool("good", after_bad), tool("hangs", "exec sleep 1000"),
        ]}),
        json!({"type": "taskLoop", "id": "tasks", "tasksPath": "todo.json",
            "taskNodes": [tool("do", "echo {currentTask.content} > task-{currentTask.id}")]}),
        json!({"type": "criteriaLoop", "id": "polish", "completionSignal": "ENOUGH",
            "maxIterations": 5, "taskNodes": [tool("rub", enough)]}),
        json!({"type": "subgraph", "id": "flaky", "retry": retry, "timeoutMs": 60_000,
            "graph": {"nodes": [tool("prepare", "true"), tool("try", second)]}}),
        json!({"type": "subgraph", "id": "limited", "timeoutMs": 400, "onError": "skip",
            "graph": {"nodes": [tool("sleeps", "exec sleep 1000")]}}),
    ]
}

fn nodes() -> Vec<Value> {
    let todo = json!([
        {"id": "1", "content": "roof", "status": "pending", "blockedBy": ["2"]},
        {"id": "2", "content": "walls", "status": "pending"},
    ]);
    let report = "printf '%s\\n' {outputs.monitor} {outputs.second} {outputs.apart} {outputs.pair} \
                  {outputs.any} {outputs.look} {outputs.polish} {outputs.flaky} {outputs.limited} \
                  > report";
    let mut nodes = vec![tool("begin", &format!("echo '{todo}' > todo.json"))];
    nodes.extend(talk());
    nodes.push(json!({"type": "wait", "id": "look", "prompt": "Have a look"}));
    nodes.extend(work());
    nodes.push(tool("report", report));
    nodes
}

fn scene() -> Scene {
    Scene::of_file(FILE, json!({"nodes": nodes()}).to_string(), SCRIPT.to_owned())
}

/// Goes on from the `wait`, unless that was done before.
fn go_on(case: &Case<'_>) {
    if !case.has_answer() {
        case.ends(case.env.atomic(["answer", "last", "go on"]), 0);
    }
}

/// Runs a command, and whatever has to follow until the session has ended.
fn see_through(case: &Case<'_>, command: Command) {
    let (status, said) = case.ended(command);
    match status.code() {
        Some(0) => {}
        Some(3) => {
            go_on(case);
            case.ends(case.resume(), 0);
        }
        Some(_) | None => panic!("{status}\n{said}"),
    }
}

/// The run is killed at one place, before or after somebody goes on, and comes to the same end.
fn killed(scene: &Scene, expected: &End, (later, point, n): (bool, &str, usize)) -> bool {
    let mut case = Case::new(scene, format!("killed at {point}:{n}, later: {later}"));
    if later {
        case.ends(case.run(), 3);
        go_on(&case);
    }
    let command = if later { case.resume() } else { case.run() };
    let dies = case.dies_at(command, point, n);
    if dies {
        if !case.note_kill(n % 2 == 1) {
            return true;
        }
        let over = case.facts().last().is_some_and(|fact| fact["type"] == "run_finished");
        if over {
            // A completed session shows its result.
            case.ends(case.resume(), 0);
        } else {
            see_through(&case, case.resume());
        }
    } else if !later {
        see_through(&case, case.resume());
    }
    assert_eq!(end(&case), *expected, "killed at {point}:{n}, later: {later}");
    check_kills(&case);
    case.nothing_survives();
    dies
}

#[test]
fn nodes_of_the_other_kinds_survive_being_killed() {
    let scene = scene();
    let model = Case::new(&scene, "undisturbed");
    model.ends(model.run(), 3);
    let before = model.hits();
    go_on(&model);
    model.forget_hits();
    model.ends(model.resume(), 0);
    let after = model.hits();
    let expected = end(&model);
    let all_once = begun(&model.env.ledger()).values().all(|times| *times == 1);
    assert!(all_once, "{:?}", model.env.ledger());
    insta::assert_snapshot!(expected.files["report"], @r#"
    {"compacted":true}
    SAID
    SAID
    {"worker":"SAID","reviewer":"SAID"}
    {"good":"good"}
    go on
    ENOUGH
    {"outputs":{"prepare":"","try":"well"}}
    {"error":{"code":"timeout","message":"it took longer than 400 ms"}}
    "#);
    let todo: Value = serde_json::from_str(&expected.files["todo.json"]).unwrap();
    let done = [&todo[0], &todo[1]].map(|task| task["status"].as_str().unwrap());
    assert_eq!(done, ["completed", "completed"]);

    let mut places = vec![];
    for (later, hits) in [(false, &before), (true, &after)] {
        for point in ["append.fact", "effect.done"] {
            places.extend((1..=hits[point]).step_by(STRIDE).map(|n| (later, point, n)));
        }
    }
    assert!(places.len() > 24, "only {} places", places.len());
    let places = Sample::from_env().of(places);
    let (armed, died) = (places.len(), AtomicUsize::new(0));
    side_by_side(places, |place| {
        died.fetch_add(usize::from(killed(&scene, &expected, place)), Ordering::Relaxed);
    });
    enough_were_killed(died.into_inner(), armed, 80);
}

/// The types of all nodes in a part of a workflow.
fn types(part: &Value, found: &mut BTreeSet<String>) {
    match part {
        Value::Object(fields) => {
            found.extend(fields.get("type").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| types(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| types(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A type of node that is new has to be killed, too.
#[test]
fn no_type_of_node_is_left_out() {
    let project = Project::new();
    project.write("flow.json", &json!({"nodes": [{"type": "unheard-of"}]}).to_string());
    let checked = project.env.run(["check", "flow.json"]);
    let (_, words) =
        checked.stdout.split_once("write one of ").unwrap_or_else(|| panic!("{checked:?}"));
    let words = words.lines().next().unwrap().split(", ");
    let mut known: BTreeSet<String> = words.map(|word| word.trim_matches('"').to_owned()).collect();
    // A file cannot bring functions, skills and commands with it. The latter two are agents' turns.
    for name in ["custom", "skill", "command"] {
        assert!(known.remove(name), "{name} is no type of node");
    }
    let mut killed = BTreeSet::new();
    types(&engine_crash::nodes(), &mut killed);
    types(&json!(nodes()), &mut killed);
    assert_eq!(killed, known);
}
