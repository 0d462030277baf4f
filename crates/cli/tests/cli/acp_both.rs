//! Atomic as the agent of Atomic: `acp:atomic acp`.

use std::fs;

use serde_json::{Value, json};

use crate::env::{TestEnv, ran};
use crate::scene::{Scene, agent, ask, done, plan, review, run, say};

/// The name of a backend that is another Atomic, whose own agent plays this script.
fn backend(env: &TestEnv, script: &Scene) -> String {
    let program = env.atomic([""; 0]).get_program().to_str().unwrap().to_owned();
    let script = env.script(&script.toml());
    format!("acp:'{program}' acp --backend script --script '{}'", script.display())
}

fn of_type(env: &TestEnv, kind: &str) -> Vec<Value> {
    env.facts().into_iter().filter(|fact| fact["type"] == kind).collect()
}

#[test]
fn one_turn_goes_through_both() {
    let env = TestEnv::new();
    let inner = Scene::default().turn(
        agent("assistant").and("What is it?").does([run("echo used > tool.txt"), say("It.")]),
    );
    let ran = ran(env.atomic(["-p", "What is it?", "--backend", &backend(&env, &inner)]));
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "It."), "{ran:?}");
    assert_eq!(fs::read_to_string(env.work().join("tool.txt")).unwrap(), "used\n");
    // What an agent says to be wrong is a failure here too.
    let broken = backend(&env, &Scene::default());
    let failed = crate::env::ran(env.atomic(["-p", "What is it?", "--backend", &broken]));
    assert_eq!(failed.code, Some(1), "{failed:?}");
}

#[test]
fn ralph_has_another_atomic_plan_work_and_review() {
    let env = TestEnv::new();
    let inner = Scene::default()
        .turn(agent("assistant").and("Review round").does([review(&[])]))
        .turn(agent("assistant").and("Task #2:").does([run("cp one.txt two.txt"), done("copied")]))
        .turn(agent("assistant").and("Task #1:").does([run("echo 1 > one.txt"), done("made")]))
        .turn(agent("assistant").does([say(&plan(&[("#1", &[]), ("#2", &["#1"])]))]));
    let backend = backend(&env, &inner);
    let ran = ran(env.atomic(["run", "ralph", "Build it", "--backend", &backend]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(fs::read_to_string(env.work().join("two.txt")).unwrap(), "1\n");
    assert_eq!(env.tasks(), ["#1 completed", "#2 completed"]);
    let created = &of_type(&env, "session_created")[0];
    assert_eq!(created["backend"], backend.as_str());
}

#[test]
fn a_question_goes_through_both_and_so_does_the_answer() {
    let env = TestEnv::new();
    let inner = Scene::default().turn(
        agent("assistant")
            .does([ask("Which colour?", &["Red (Recommended)", "Blue"]), say("It is {answer}.")]),
    );
    let flow = json!({"nodes": [
        {"type": "agent", "id": "paint", "prompt": "Paint it", "questions": true},
    ]});
    fs::write(env.work().join("flow.json"), flow.to_string()).unwrap();
    let backend = backend(&env, &inner);
    let args = ["run", "flow.json", "Paint", "--on-question", "recommended", "--backend", &backend];
    let ran = ran(env.atomic(args));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let answered = of_type(&env, "question_answered");
    assert_eq!(answered.len(), 1, "{answered:?}");
    assert_eq!(answered[0]["by"], "policy");
    let finished = of_type(&env, "step_finished");
    assert_eq!(finished[0]["result"]["output"], "It is Red (Recommended).");
}
