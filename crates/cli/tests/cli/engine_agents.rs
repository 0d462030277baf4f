//! Questions of a workflow, its conversations, its models, and its lists of tasks.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::engine::{Project, tool, with};

/// Every agent says `done`.
const DONE: &str = "[[turn]]\ndo = [{ say = \"done\" }]\n";

fn agent(id: &str) -> Value {
    json!({"type": "agent", "id": id, "prompt": format!("Do {id}")})
}

/// The conversation of each step, as a number in the order they were opened.
fn conversations(project: &Project) -> Vec<(String, usize)> {
    let mut numbers = BTreeMap::new();
    let opened = project.of_type("conversation_opened");
    let number = |fact: &Value| {
        let next = numbers.len() + 1;
        let number = *numbers.entry(fact["conversation"].to_string()).or_insert(next);
        (fact["step"].as_str().unwrap().to_owned(), number)
    };
    opened.iter().map(number).collect()
}

fn named(conversations: &[(&str, usize)]) -> Vec<(String, usize)> {
    conversations.iter().map(|(step, number)| ((*step).to_owned(), *number)).collect()
}

/// What was asked of agents.
fn calls(project: &Project) -> Vec<Value> {
    let log = fs::read_to_string(project.session().join("logs/agent-calls.jsonl")).unwrap();
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_workflow_waits_and_asks_until_it_is_answered() {
    let project = Project::new();
    let workflow = json!({"nodes": [
        {"type": "wait", "id": "look", "prompt": "Look at: {prompt}"},
        {"type": "askUser", "id": "which", "header": "Branch", "question": "Which branch?",
            "options": ["main", {"label": "next", "description": "What comes after"}]},
        tool("after", "echo {outputs.look} {outputs.which} > out"),
    ]});
    let waits = project.ends(&workflow, 3);
    assert!(waits.stdout.contains("? q1 Look at: Do it\n"), "{}", waits.stdout);
    let asks = project.env.run(["answer", "last", "--resume", "I have"]);
    assert_eq!(asks.code, Some(3), "{asks:?}");
    let question = "? q2 [Branch] Which branch?\n  1. main\n  2. next — What comes after\n";
    assert!(asks.stdout.contains(question), "{}", asks.stdout);
    let wrong = project.env.run(["answer", "last", "--resume", "dev"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    let ended = project.env.run(["answer", "last", "--resume", "2"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(project.read("out"), "I have next\n");
    let kinds = ["question_asked", "question_answered", "answer_delivered"];
    assert_eq!(kinds.map(|kind| project.of_type(kind).len()), [2, 2, 2]);
}

/// While one branch waits for an answer the other goes on.
#[test]
fn a_question_holds_up_only_what_comes_after_it() {
    let project = Project::new();
    let fan = json!({"type": "parallel", "id": "fan", "branches": [
        [{"type": "askUser", "id": "ask", "question": "Well?"}, tool("then", "echo {outputs.ask} > said")],
        [tool("a", "true"), tool("b", "touch went-on")],
    ]});
    project.ends(&json!({"nodes": [fan]}), 3);
    assert!(project.env.work().join("went-on").exists());
    let ended = project.env.run(["answer", "last", "--resume", "well enough"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(project.read("said"), "well enough\n");
}

#[test]
fn a_question_that_nobody_answers_in_time_has_failed() {
    let project = Project::new();
    let ask = json!({"type": "askUser", "id": "ask", "question": "Well?", "timeoutMs": 300,
        "onError": {"action": "goto", "node": "late"}});
    let workflow = json!({"nodes": [ask, tool("after", "touch answered"), tool("late", "touch late")],
        "edges": [{"from": "ask", "to": "after"}]});
    project.ends(&workflow, 0);
    assert!(project.env.work().join("late").exists());
    assert!(!project.env.work().join("answered").exists());
    assert_eq!(project.of_type("step_failed")[0]["error"]["code"], "timeout");
    let refused = project.env.run(["answer", "last", "too late"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("no open question"), "{}", refused.stderr);
}

#[test]
fn agents_of_a_lane_share_a_conversation_and_others_have_their_own() {
    let project = Project::scripted(DONE);
    let fan = json!({"type": "parallel", "id": "fan", "branches": [
        [agent("a1"), agent("a2")],
        [agent("b1")],
    ]});
    let sub = json!({"type": "subagent", "id": "sub", "agent": "worker", "task": "Do sub"});
    let apart = json!({"type": "subgraph", "id": "apart", "graph": {"nodes": [agent("in1"), agent("in2")]}});
    let workflow = json!({"maxConcurrency": 1, "nodes": [
        agent("one"), agent("two"), sub, agent("three"), fan, apart, agent("four"),
        {"type": "clearContext"}, agent("five"), agent("six"),
    ]});
    project.ends(&workflow, 0);
    assert_eq!(
        conversations(&project),
        named(&[
            ("one#1", 1),
            ("two#1", 1),
            ("sub#1", 2),
            ("three#1", 1),
            ("fan#1[branch]/a1#1", 3),
            ("fan#1[branch-2]/b1#1", 4),
            ("fan#1[branch]/a2#1", 3),
            ("apart#1/in1#1", 5),
            ("apart#1/in2#1", 5),
            ("four#1", 1),
            ("five#1", 6),
            ("six#1", 6),
        ])
    );
}

/// Nobody speaks in a conversation in which somebody else is being answered.
#[test]
fn agents_of_a_lane_that_run_at_once_do_not_share_a_conversation() {
    let nodes = ["one", "left", "right", "two"].map(agent);
    let edges = json!([
        {"from": "one", "to": "left"}, {"from": "one", "to": "right"},
        {"from": ["left", "right"], "to": "two"},
    ]);
    for (at_once, of_right) in [(2, 2), (1, 1)] {
        let project = Project::scripted(DONE);
        let workflow = json!({"maxConcurrency": at_once, "nodes": nodes, "edges": edges});
        project.ends(&workflow, 0);
        let mut spoken = conversations(&project);
        spoken.sort();
        let all = [("left#1", 1), ("one#1", 1), ("right#1", of_right), ("two#1", 1)];
        assert_eq!(spoken, named(&all), "{at_once} at once");
    }
}

/// A loop is no lane of its own: it goes on talking, unless the context is cleared in it.
#[test]
fn the_rounds_of_a_loop_share_the_conversation_around_it() {
    let of_a_loop =
        |inner: Value| json!({"type": "loop", "id": "again", "maxIterations": 2, "nodes": inner});
    let workflow = |inner| json!({"nodes": [agent("one"), of_a_loop(inner), agent("two")]});
    let project = Project::scripted(DONE);
    project.ends(&workflow(json!([agent("in")])), 0);
    let rounds = [("one#1", 1), ("again#1[1]/in#1", 1), ("again#1[2]/in#1", 1), ("two#1", 1)];
    assert_eq!(conversations(&project), named(&rounds));

    let project = Project::scripted(DONE);
    project.ends(&workflow(json!([{"type": "clearContext"}, agent("in")])), 0);
    let rounds = [("one#1", 1), ("again#1[1]/in#1", 2), ("again#1[2]/in#1", 3), ("two#1", 3)];
    assert_eq!(conversations(&project), named(&rounds));
}

/// An agent whose conversation is nearly full, a monitor, and another agent.
fn monitored(monitor: Value) -> Project {
    let project = Project::scripted(
        "[[turn]]\nprompt = [\"Do first\"]\ndo = [\n  \
         { usage = { input_tokens = 1, context_tokens = 850, context_window = 1000 } },\n  \
         { say = \"done\" }\n]\n[[turn]]\ndo = [{ say = \"done\" }]\n",
    );
    let monitor = with(json!({"type": "contextMonitor", "id": "monitor"}), monitor);
    project.ends(&json!({"nodes": [agent("first"), monitor, agent("second")]}), 0);
    project
}

#[test]
fn a_conversation_that_is_nearly_full_is_compacted_replaced_or_told_of() {
    let table = [
        (json!({}), 1, json!({"compacted": true})),
        (json!({"action": "compact"}), 1, json!({"compacted": true})),
        (json!({"action": "compact", "threshold": 0.9}), 1, json!({"full": 0.85, "due": false})),
        (json!({"action": "fresh"}), 2, json!({"full": 0.85, "due": true})),
        (json!({"action": "fresh", "threshold": 0.9}), 1, json!({"full": 0.85, "due": false})),
        (json!({"action": "warn"}), 1, json!({"full": 0.85, "due": true})),
    ];
    for (monitor, second, output) in table {
        let project = monitored(monitor.clone());
        let expected = named(&[("first#1", 1), ("second#1", second)]);
        assert_eq!(conversations(&project), expected, "{monitor}");
        let finished = project.of_type("step_finished");
        let finished = finished.iter().find(|fact| fact["step"] == "monitor#1").unwrap();
        assert_eq!(finished["result"]["output"], output, "{monitor}");
        let notes = project.of_type("noted");
        let warns =
            notes.iter().any(|fact| fact["text"].as_str().unwrap().contains("is 85 % full"));
        assert_eq!(warns, monitor["action"] == "warn", "{monitor}: {notes:?}");
    }
}

#[test]
fn the_nearest_model_is_taken() {
    let project = Project::scripted(DONE);
    let own = |id: &str, model: &str| with(agent(id), json!({"model": model}));
    let around = json!({"type": "loop", "id": "around", "maxIterations": 1, "model": "haiku",
        "nodes": [agent("inner"), own("own", "opus")]});
    let nodes = json!([agent("plain"), own("named", "opus"), around]);
    let models = |project: &Project| -> Vec<(String, Value)> {
        let call = |call: Value| (call["step"].as_str().unwrap().to_owned(), call["model"].clone());
        calls(project).into_iter().map(call).collect()
    };
    let expected = |plain: Value| {
        let models = [plain, json!("opus"), json!("haiku"), json!("opus")];
        let steps = ["plain#1", "named#1", "around#1[1]/inner#1", "around#1[1]/own#1"];
        steps.map(str::to_owned).into_iter().zip(models).collect::<Vec<_>>()
    };
    project.ends(&json!({"nodes": nodes, "model": "sonnet"}), 0);
    assert_eq!(models(&project), expected(json!("sonnet")));

    let project = Project::scripted(DONE);
    let ran = project.run(&json!({"nodes": nodes}), &["--model", "fable"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(models(&project), expected(json!("fable")));

    let project = Project::scripted(DONE);
    project.ends(&json!({"nodes": nodes}), 0);
    assert_eq!(models(&project), expected(Value::Null));
}

fn task_loop() -> Value {
    json!({"nodes": [{"type": "taskLoop", "id": "tasks", "tasksPath": "todo.json", "taskNodes": [
        {"type": "agent", "id": "do", "agent": "worker", "prompt": "Do: {currentTask.content}"},
    ]}]})
}

/// What the worker was asked, in order.
fn prompts(project: &Project) -> Vec<String> {
    calls(project).iter().map(|call| call["prompt"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_file_of_tasks_is_worked_through_and_keeps_its_shape() {
    let list = json!([
        {"id": "#1", "content": "roof", "status": "pending", "activeForm": "roofing", "blockedBy": ["#2"]},
        {"id": "#2", "content": "walls", "status": "pending", "activeForm": "walling", "note": [1]},
        {"id": "#3", "content": "ground", "status": "completed", "activeForm": "digging"},
    ]);
    let object = json!({"version": "1.0", "source": "spec.md", "tasks": [
        {"id": "1", "name": "later", "description": "", "status": "pending", "priority": 2,
            "dependencies": [], "metadata": {"x": 1}},
        {"id": "2", "name": "sooner", "description": "", "status": "pending", "priority": 1,
            "dependencies": [], "metadata": {}},
        {"id": "3", "name": "never", "description": "", "status": "skipped", "priority": 0,
            "dependencies": ["9"], "metadata": {}},
        {"id": "4", "name": "last", "description": "", "status": "pending", "priority": 3,
            "dependencies": ["3"], "metadata": {}},
    ]});
    let table: [(Value, &[&str], &[&str], &str); 2] = [
        (list, &["Do: walls", "Do: roof"], &["/0/status", "/1/status"], "completed"),
        (
            object,
            &["Do: sooner", "Do: later", "Do: last"],
            &["/tasks/0/status", "/tasks/1/status", "/tasks/3/status"],
            "passing",
        ),
    ];
    for (tasks, asked, changed, word) in table {
        let project = Project::scripted(DONE);
        project.write("todo.json", &tasks.to_string());
        project.ends(&task_loop(), 0);
        assert_eq!(prompts(&project), asked);
        let mut expected = tasks.clone();
        for status in changed {
            *expected.pointer_mut(status).unwrap() = json!(word);
        }
        let after: Value = serde_json::from_str(&project.read("todo.json")).unwrap();
        assert_eq!(after, expected);
    }
}

/// A task that fails fails the run; what was done before it stays done, in the file too.
#[test]
fn a_list_of_tasks_goes_on_where_it_failed() {
    let fails = "[[turn]]\nprompt = [\"Do: two\"]\ndo = [{ fail = \"login\" }]\n";
    let project = Project::scripted(&format!("{fails}{DONE}"));
    let tasks = json!([
        {"id": "#1", "content": "one", "status": "pending"},
        {"id": "#2", "content": "two", "status": "pending"},
        {"id": "#3", "content": "three", "status": "pending"},
    ]);
    project.write("todo.json", &tasks.to_string());
    project.ends(&task_loop(), 1);
    let status = |project: &Project| -> Vec<String> {
        let tasks: Vec<Value> = serde_json::from_str(&project.read("todo.json")).unwrap();
        tasks.iter().map(|task| task["status"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(status(&project), ["completed", "failed", "pending"]);
    project.env.script(DONE);
    let resumed = project.resume(&[]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(status(&project), ["completed", "completed", "completed"]);
    assert_eq!(prompts(&project), ["Do: one", "Do: two", "Do: two", "Do: three"]);
}

#[test]
fn a_loop_ends_when_the_agent_says_so() {
    let script = "[[turn]]\nprompt = [\"so far: rough\"]\ndo = [{ say = \"It is ALL GOOD now.\" }]\n\
                  [[turn]]\ndo = [{ say = \"rough\" }]\n";
    let polish =
        json!({"type": "agent", "id": "polish", "prompt": "Polish it, so far: {outputs.polish?}"});
    let criteria = |signal: &str| {
        json!({"nodes": [
            {"type": "criteriaLoop", "id": "until", "completionSignal": signal, "maxIterations": 4,
                "taskNodes": [polish.clone()]},
            tool("after", "touch after"),
        ]})
    };
    let project = Project::scripted(script);
    project.ends(&criteria("ALL GOOD"), 0);
    assert_eq!(calls(&project).len(), 2);
    assert!(project.env.work().join("after").exists());

    let project = Project::scripted(script);
    project.ends(&criteria("never said"), 0);
    assert_eq!(calls(&project).len(), 4, "at most so often");
}
