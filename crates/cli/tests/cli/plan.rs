//! Plans that cannot be used.

use std::fs;

use serde_json::Value;

use crate::env::TestEnv;
use crate::scene::{REFUSED, Scene, plan, planner, say};

/// What a planner answers, and what is wrong with it.
const BAD: [(&str, &str); 5] = [
    ("I would rather write a poem.", "no JSON array of tasks was found in the answer"),
    ("Nothing to do: []", "the task list is empty"),
    (
        r#"[{"id":"1","content":"a","blockedBy":["2"]},{"id":"2","content":"b","blockedBy":["1"]}]"#,
        "tasks wait for each other: #1 -> #2 -> #1",
    ),
    (r#"[{"id":"1","content":"a"},{"id":"1","content":"b"}]"#, "the id #1 is used twice"),
    (
        r#"[{"id":"1","content":"a","blockedBy":["9"]}]"#,
        "task #1 is blocked by #9, which does not exist",
    ),
];

fn scene(first: &str, second: &str) -> Scene {
    Scene::default()
        .turn(planner().and(REFUSED).does([say(second)]))
        .turn(planner().does([say(first)]))
        .rest()
}

/// The prompts the planner was given, and the conversation each continued.
fn asked_of_the_planner(env: &TestEnv) -> Vec<(String, Option<String>)> {
    let log = fs::read_to_string(env.session().join("logs/agent-calls.jsonl")).unwrap();
    let calls = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().map(str::to_owned);
    calls
        .filter(|call| call["agent"] == "planner")
        .map(|call| (text(&call["prompt"]).unwrap(), text(&call["resume"])))
        .collect()
}

#[test]
fn a_plan_that_cannot_be_used_goes_back_once_with_the_error() {
    for (bad, problem) in BAD {
        let env = TestEnv::new();
        let ran = env.ralph(&scene(bad, &plan(&[("#1", &[])])).toml(), &[]);
        assert_eq!(ran.code, Some(0), "{bad}: {ran:?}");
        assert!(ran.stdout.contains(problem), "{bad}: {}", ran.stdout);
        assert_eq!(env.tasks(), ["#1 completed"], "{bad}");

        let asked = asked_of_the_planner(&env);
        assert_eq!(asked.len(), 2, "{bad}");
        assert!(asked[1].0.contains(&format!("{REFUSED}: {problem}")), "{bad}: {}", asked[1].0);
        assert!(asked[0].1.is_none() && asked[1].1.is_some(), "{bad}: in the same conversation");
    }
}

#[test]
fn a_second_bad_plan_fails_the_run_and_is_quoted() {
    for (bad, problem) in BAD {
        let env = TestEnv::new();
        let ran = env.ralph(&scene("no plan yet", bad).toml(), &[]);
        assert_eq!(ran.code, Some(1), "{bad}: {ran:?}");
        let said = [problem.to_owned(), format!("It begins: {bad:?}")];
        for said in said {
            assert!(ran.stderr.contains(&said), "{bad}: {}", ran.stderr);
        }
        assert_eq!(env.summary()["status"], "failed", "{bad}");
        assert!(!ran.stdout.to_lowercase().contains("completed"), "{bad}: {}", ran.stdout);
        assert!(!env.session().join("tasks.json").exists(), "{bad}: there are no tasks");
        assert_eq!(asked_of_the_planner(&env).len(), 2, "{bad}: back once, not twice");
    }
}

/// A run that failed for its plan is not lost: resumed, the planner is asked again.
#[test]
fn a_run_that_failed_for_its_plan_can_be_resumed() {
    let env = TestEnv::new();
    assert_eq!(env.ralph(&scene("no plan", "again no plan").toml(), &[]).code, Some(1));
    env.script(&scene("no plan", &plan(&[("#1", &[])])).toml());
    let ran = env.run(["resume", "last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(env.tasks(), ["#1 completed"]);
}
