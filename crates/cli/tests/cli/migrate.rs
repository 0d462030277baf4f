//! From old lists of features to tasks: to a file, and to a session of Ralph.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::{Value, json};

use crate::env::{Ran, TestEnv, eventually, ran};
use crate::process::{Running, SOON};
use crate::scene::{CUT_OFF, Scene, done, note, planner, review, reviewer, run, say, worker};

/// Writes a list and migrates it.
pub(crate) fn migrated(text: &str, more: &[&str]) -> (TestEnv, Ran) {
    let env = TestEnv::new();
    fs::write(env.work().join("feature-list.json"), text).unwrap();
    let ran = env.run(["migrate", "feature-list.json"].iter().chain(more));
    (env, ran)
}

/// The tasks that come out, without what the time says.
pub(crate) fn tasks_of(text: &str) -> Value {
    let (_, ran) = migrated(text, &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{text}");
    let mut file: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&file["version"], &file["metadata"]["source"]),
        (&json!("1.0"), &json!("migrated"))
    );
    file["tasks"].take()
}

#[test]
fn the_example_of_the_seed_comes_out_as_it_says() {
    let feature = r#"{"category": "functional", "description": "Add feature X", "steps": ["…"], "passes": true}"#;
    let expected = json!([{
        "id": "1",
        "name": "Add feature X",
        "description": "Category: functional",
        "status": "passing",
        "metadata": {"steps": ["…"], "category": "functional"},
    }]);
    let shapes = [
        format!("[{feature}]"),
        format!("{{\"features\": [{feature}]}}"),
        format!("{{\"tasks\": [{feature}]}}"),
        feature.to_owned(),
        format!("\u{feff}\r\n[\r\n{feature}\r\n]\r\n"),
    ];
    for shape in shapes {
        assert_eq!(tasks_of(&shape), expected, "{shape}");
    }
}

#[test]
fn the_whole_file_has_the_shape_of_version_1() {
    let text = r##"{
  "title": "A snake game",
  "metadata": {"createdAt": "2026-02-05T00:00:00Z", "owner": "me"},
  "features": [
    {"id": "b", "name": "Board", "description": "A field", "acceptanceCriteria": ["10 x 10"], "status": "passing", "implementedAt": "2026-02-06"},
    {"description": "Snake", "dependencies": ["#b"], "priority": 1, "passes": false},
    {"id": 7, "title": "Sound", "blockedBy": [2], "priority": "low", "status": "skipped"}
  ]
}"##;
    let (_, ran) = migrated(text, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut file: Value = serde_json::from_str(&ran.stdout).unwrap();
    file["metadata"]["updatedAt"] = "NOW".into();
    insta::assert_snapshot!(serde_json::to_string_pretty(&file).unwrap());
}

#[test]
fn statuses_come_out_as_they_went_in() {
    let table = [
        (r#""status": "pending""#, "pending"),
        (r#""status": "in_progress""#, "in_progress"),
        (r#""status": "passing""#, "passing"),
        (r#""status": "failing""#, "failing"),
        (r#""status": "skipped""#, "skipped"),
        (r#""status": "completed""#, "passing"),
        (r#""status": "failed""#, "failing"),
        (r#""status": "blocked""#, "pending"),
        (r#""status": "In Progress""#, "in_progress"),
        (r#""status": null"#, "pending"),
        (r#""passes": true"#, "passing"),
        (r#""passes": false"#, "pending"),
        (r#""passes": true, "status": "passing""#, "passing"),
    ];
    for (said, status) in table {
        let tasks = tasks_of(&format!(r#"[{{"description": "a", {said}}}]"#));
        assert_eq!(tasks[0]["status"], status, "{said}");
        // What was written once is read again, and stays the same.
        assert_eq!(tasks_of(&json!({"version": "1.0", "tasks": tasks}).to_string()), tasks);
    }
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let table = [
        ("not json", "[\n  {\"description\": \"a\",}\n]"),
        ("cut off", "[{\"description\": \"a\""),
        ("empty file", " \n"),
        ("empty list", "[]"),
        ("empty features", "{\"features\": []}"),
        ("no list", "{\"version\": \"1.0\"}"),
        ("a number", "7"),
        ("no list behind the key", "{\n\"tasks\": \"none\"}"),
        ("two lists", "{\"tasks\": [], \"features\": []}"),
        ("a text in the list", "[\n\"Add feature X\"]"),
        (
            "no description",
            "[{\"description\": \"a\"},\n{\"steps\": []},\n{\"description\": \" \"}]",
        ),
        ("unknown status", "[{\"description\": \"a\",\n\"status\": \"pasing\"}]"),
        ("strange status", "[{\"description\": \"a\", \"status\": 4}]"),
        ("strange passes", "[{\"description\": \"a\", \"passes\": \"yes\"}]"),
        ("contradiction", "[{\"description\": \"a\", \"passes\": true, \"status\": \"failing\"}]"),
        (
            "hostile id",
            "[{\"description\": \"a\", \"id\": \"\\u001b[2J\", \"dependencies\": [\"x\"]}]",
        ),
        ("strange id", "[{\"description\": \"a\", \"id\": {}}]"),
        (
            "twice",
            "[{\"id\": 1, \"description\": \"a\"},\n{\"id\": \"#1\", \"description\": \"b\"}]",
        ),
        (
            "missing",
            "[{\"id\": \"board\", \"description\": \"a\"},\n{\"description\": \"b\",\n\"dependencies\": [\"bord\", 9]}]",
        ),
        ("no dependencies", "[{\"description\": \"a\", \"dependencies\": \"2\"}]"),
        ("itself", "[{\"description\": \"a\", \"dependencies\": [1]}]"),
        (
            "circle",
            "[{\"description\": \"a\"},\n{\"description\": \"b\", \"dependencies\": [\"3\"]},\n{\"description\": \"c\", \"dependencies\": [\"2\"]}]",
        ),
        (
            "too deep",
            &format!(
                "[{{\"description\": \"a\",\n\"x\": {}{}}}]",
                "[".repeat(500),
                "]".repeat(500)
            ),
        ),
    ];
    let mut told = String::new();
    for (what, text) in table {
        let (env, ran) = migrated(text, &["--output", "tasks.json"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{what}");
        assert!(!env.work().join("tasks.json").exists(), "{what}: nothing is written");
        assert_eq!(fs::read_to_string(env.work().join("feature-list.json")).unwrap(), text);
        told += &format!("{what}\n{}\n", ran.stderr);
    }
    insta::assert_snapshot!(told);
}

#[test]
fn many_problems_are_not_all_told() {
    let rows = vec!["{}"; 30].join(",\n");
    let (_, ran) = migrated(&format!("[{rows}]"), &[]);
    assert_eq!(ran.stderr.matches("has no description").count(), 20);
    assert!(ran.stderr.ends_with("… and 10 more\n"), "{}", ran.stderr);
}

/// As many tasks in a row are more than a stack would hold.
#[test]
fn a_long_chain_is_followed_to_its_end() {
    let last = 40_000;
    let row = |n: u32| json!({"id": n, "description": "x", "dependencies": [(n + 1).min(last)]});
    let mut rows: Vec<Value> = (1..=last).map(row).collect();
    let circle = rows.iter().map(Value::to_string).collect::<Vec<_>>().join(",\n");
    let (_, ran) = migrated(&format!("[{circle}]"), &[]);
    let told = "feature-list.json:40000: tasks wait for each other: 40000 -> 40000";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    rows[last as usize - 1] = json!({"id": last, "description": "x"});
    let tasks = tasks_of(&json!(rows).to_string());
    assert_eq!(tasks.as_array().unwrap().len(), last as usize);
}

/// Every number that a task without an id could have is taken by one that follows.
#[test]
fn numbers_are_found_in_one_pass() {
    let half = 40_000;
    let taken = (1..=half).map(|n| json!({"id": n, "description": "x"}));
    let rows: Vec<Value> = (0..half).map(|_| json!({"description": "x"})).chain(taken).collect();
    let tasks = tasks_of(&json!(rows).to_string());
    for (place, id) in [(0, half + 1), (half - 1, 2 * half), (half, 1)] {
        assert_eq!(tasks[place as usize]["id"], id.to_string(), "entry {place}");
    }
}

#[test]
fn metadata_that_is_no_object_is_kept() {
    let tasks = tasks_of(r#"[{"description": "a", "metadata": "old", "owner": "me"}]"#);
    assert_eq!(tasks[0]["metadata"], json!({"metadata": "old", "owner": "me"}));
}

#[test]
fn the_first_of_several_with_one_id_is_told() {
    let rows = ["{\"id\": 1, \"description\": \"a\"}"; 3].join(",\n");
    let (_, ran) = migrated(&format!("[{rows}]"), &[]);
    assert_eq!(ran.stderr.matches("used twice; first on line 1\n").count(), 2, "{}", ran.stderr);
}

#[test]
fn what_is_no_file_of_tasks_is_not_read() {
    let env = TestEnv::new();
    let work = env.work();
    fs::create_dir(work.join("folder")).unwrap();
    fs::write(work.join("latin1.json"), b"[{\n\"description\": \"\xe9\"}]").unwrap();
    fs::File::create(work.join("huge.json")).unwrap().set_len(100 * 1024 * 1024).unwrap();
    assert!(Command::new("mkfifo").arg(work.join("pipe.json")).status().unwrap().success());
    symlink("loop.json", work.join("loop.json")).unwrap();
    let table = [
        ("nothing.json", "there is no such file"),
        ("folder", "this is a folder; name the file in it"),
        ("pipe.json", "is a FIFO, not a regular file"),
        ("/dev/zero", "is a device, not a regular file"),
        ("huge.json", "is larger than 8 MB; is it the right file?"),
        ("loop.json", "it cannot be read: Too many levels of symbolic links (os error 40)"),
    ];
    for (name, problem) in table {
        let ran = env.run(["migrate", name]);
        assert_eq!(ran.stderr, format!("error: {name}: {problem}\n"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{name}");
    }
    let ran = env.run(["migrate", "latin1.json"]);
    assert_eq!(ran.stderr, "error: latin1.json:2: it is not UTF-8; save it as UTF-8\n");
}

const TWO: &str =
    r#"[{"description": "one", "status": "skipped"}, {"description": "two", "dependencies": [1]}]"#;

#[test]
fn a_file_is_never_overwritten_unless_that_is_asked_for() {
    let (env, ran) = migrated(TWO, &["-o", "tasks.json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(ran.stderr, "2 tasks (1 skipped, 1 pending) written to tasks.json\n");
    let path = env.work().join("tasks.json");
    let tasks = |text: &str| serde_json::from_str::<Value>(text).unwrap()["tasks"].take();
    let written = fs::read_to_string(&path).unwrap();
    assert_eq!(tasks(&written), tasks_of(TWO));

    fs::write(&path, "precious").unwrap();
    let again = ["migrate", "feature-list.json", "--output", "tasks.json"];
    let ran = env.run(again);
    assert_eq!(ran.code, Some(1));
    let refusal = "tasks.json: it exists; name another file, or overwrite it with --force";
    assert_eq!(ran.stderr, format!("error: {refusal}\n"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    assert_eq!(env.run(again.iter().chain(&["--force"])).code, Some(0));
    assert_eq!(tasks(&fs::read_to_string(&path).unwrap()), tasks_of(TWO));

    // The old list stays, whatever it is called.
    symlink("feature-list.json", env.work().join("link.json")).unwrap();
    fs::hard_link(env.work().join("feature-list.json"), env.work().join("hard.json")).unwrap();
    for name in ["feature-list.json", "link.json", "hard.json"] {
        let ran = env.run(["migrate", "feature-list.json", "--force", "--output", name]);
        let refusal =
            format!("error: {name}: this is the file that is migrated; name another one\n");
        assert_eq!((ran.code, ran.stderr), (Some(1), refusal));
        assert_eq!(fs::read_to_string(env.work().join(name)).unwrap(), TWO);
    }
    assert_eq!(env.run(["migrate", "feature-list.json", "--force"]).code, Some(2));
    assert_eq!(env.run(["migrate"]).code, Some(2));
    let left: Vec<_> =
        fs::read_dir(env.work()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 4, "no temporary file is left: {left:?}");
}

/// Four tasks: one done, one skipped, one that failed before, and one that waits for all of them.
const HOUSE: &str = r#"{"title": "A house", "features": [
  {"id": "roof", "name": "Put the roof on", "status": "pending", "dependencies": ["ground", "left", "right"]},
  {"id": "ground", "name": "Lay the ground", "status": "passing"},
  {"id": "left", "name": "Build the left wall", "status": "skipped"},
  {"id": "right", "name": "Build the right wall, as high as the left one, with a window that can be opened from inside", "description": "Of stone", "status": "failing",
   "acceptanceCriteria": ["it stands"], "dependencies": ["ground"]}
]}"#;

/// `atomic migrate --ralph` on a script whose planner must not be called.
pub(crate) fn ralph(env: &TestEnv, list: &str, scene: Scene, more: &[&str]) -> Command {
    fs::write(env.work().join("feature-list.json"), list).unwrap();
    let forbidden = planner().does([run("echo planned >> \"$LEDGER\""), say("[]")]);
    let script = env.script(&scene.turn(forbidden).toml());
    let mut command = env.atomic(["migrate", "feature-list.json", "--ralph", "--script"]);
    command.arg(script).args(more);
    command
}

/// The prompts the workers were given.
pub(crate) fn prompts(env: &TestEnv) -> Vec<String> {
    let log = fs::read_to_string(env.session().join("logs/agent-calls.jsonl")).unwrap();
    let calls = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let workers = calls.filter(|call| call["agent"] == "worker");
    workers.map(|call| call["prompt"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn ralph_does_what_is_left_without_planning() {
    let env = TestEnv::new();
    let ran = ran(ralph(&env, HOUSE, Scene::default().rest(), &["--output", "tasks.json"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        env.tasks(),
        ["#roof completed", "#ground completed", "#left completed", "#right completed"]
    );
    let steps: Vec<String> =
        env.ledger().iter().map(|line| line.split_once('/').unwrap().1.to_owned()).collect();
    assert_eq!(
        steps,
        ["select-ready-tasks#1[#right]/worker#1/1", "select-ready-tasks#1[#roof]/worker#1/1"],
        "what is done is not done again, and the planner is not asked"
    );
    let prompts = prompts(&env);
    for said in [
        "Task #right: Build the right wall, as high as the left one, with a window that can be opened…",
        "from inside\n\nOf stone",
        "Implement the tasks of feature-list.json: A house",
        "It is done when:\n- it stands",
        "Done already:\n- #ground Lay the ground\n- #left Build the left wall",
    ] {
        assert!(prompts[0].contains(said), "{said}: {}", prompts[0]);
    }
    let progress = fs::read_to_string(env.session().join("progress.txt")).unwrap();
    assert!(progress.contains("# Tasks\n\n- #roof Put the roof on (after #ground, #left, #right)"));
    assert_eq!(env.summary()["prompt"], "Implement the tasks of feature-list.json: A house");
    assert!(env.work().join("tasks.json").exists(), "the file was asked for, too");
}

/// The steps of a feature say when it is done, and the ceilings are those of any run.
#[test]
fn steps_are_criteria_and_reviews_have_their_ceiling() {
    let env = TestEnv::new();
    let list = r#"[{"description": "a door", "steps": ["open it", "close it"]}]"#;
    let scene = Scene::default()
        .turn(reviewer().and("Review round 1.").does([review(&["it squeaks"])]))
        .turn(reviewer().does([review(&["it is too wide"])]))
        .workers();
    let ran = ran(ralph(&env, list, scene, &["--max-review-rounds", "1"]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let said = "It is done when:\n- open it\n- close it\n";
    assert!(prompts(&env)[0].contains(said), "{}", prompts(&env)[0]);
    let log = fs::read_to_string(env.session().join("logs/agent-calls.jsonl")).unwrap();
    assert_eq!(log.matches("\"agent\":\"reviewer\"").count(), 1, "{ran:?}");
}

#[test]
fn lower_priorities_are_done_first() {
    let env = TestEnv::new();
    let list = r#"[{"description": "last", "priority": 9}, {"description": "first", "priority": -1},
        {"description": "second"}]"#;
    let ran = ran(ralph(&env, list, Scene::default().rest(), &["--workers", "1"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let asked: Vec<String> =
        prompts(&env).iter().map(|prompt| prompt.lines().next().unwrap().to_owned()).collect();
    assert_eq!(asked, ["Task #2: first", "Task #3: second", "Task #1: last"]);
}

/// Killed while a worker is at work: the session goes on with its tasks, and still nobody plans.
#[test]
fn a_session_that_was_migrated_survives_a_kill() {
    let env = TestEnv::new();
    let scene = Scene::default()
        .turn(worker("Task #roof").without(CUT_OFF).does([
            note(),
            run("sleep 1000"),
            done("never"),
        ]))
        .rest();
    let running = Running::start(ralph(&env, HOUSE, scene, &[]));
    eventually("the roof is being put on", SOON, || env.ledger().len() == 2);
    running.kill();
    assert_eq!(env.tasks()[0], "#roof in_progress");
    fs::remove_file(env.work().join("feature-list.json")).unwrap();
    let ran = env.run(["resume", "last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let finished = |step: &str| {
        let facts = env.facts();
        let is_it = |fact: &&Value| fact["type"] == "step_finished" && fact["step"] == step;
        facts.iter().filter(is_it).count()
    };
    assert_eq!(finished("select-ready-tasks#1[#right]/worker#1"), 1, "not done twice");
    assert_eq!(finished("select-ready-tasks#1[#roof]/worker#1"), 1);
    assert!(env.ledger().iter().all(|line| line != "planned"), "{:?}", env.ledger());
    assert!(env.tasks().iter().all(|task| task.ends_with(" completed")), "{:?}", env.tasks());
}

/// Killed after each of the first writes to its journal: from the first on that makes it known, it
/// can be resumed.
#[test]
fn a_session_can_be_resumed_from_its_first_facts_on() {
    for number in 2..=9 {
        let env = TestEnv::new();
        let mut command = ralph(&env, HOUSE, Scene::default().rest(), &["--workers", "1"]);
        command.env("ATOMIC_FAILPOINT", format!("append.synced:{number}"));
        assert_eq!(ran(command).code, None, "it was to be killed at {number}");
        let ran = env.run(["resume", "last"]);
        assert_eq!(ran.code, Some(0), "killed at {number}: {ran:?}");
        assert_eq!(env.tasks().len(), 4, "killed at {number}");
        assert!(env.ledger().iter().all(|line| line != "planned"), "killed at {number}");
    }
}

#[test]
fn what_ralph_cannot_take_starts_nothing() {
    let many: Vec<Value> = (0..201).map(|n| json!({"description": format!("task {n}")})).collect();
    let many = json!(many).to_string();
    let table = [
        (
            r#"[{"description": "a", "passes": true}, {"description": "b", "status": "skipped"}]"#,
            "every task is done already; there is nothing to start",
        ),
        (
            many.as_str(),
            "Ralph cannot take this list: the list has 201 tasks; at most 200 are allowed",
        ),
    ];
    for (list, problem) in table {
        let env = TestEnv::new();
        let ran = ran(ralph(&env, list, Scene::default().rest(), &["--output", "tasks.json"]));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{problem}");
        assert_eq!(ran.stderr, format!("error: feature-list.json: {problem}\n"));
        assert!(!env.work().join(".ralph").exists() && !env.work().join("tasks.json").exists());
    }
    let (env, ran) = migrated(TWO, &["--ralph", "--backend", "script"]);
    assert_eq!(ran.code, Some(2), "there is no script: {ran:?}");
    assert!(!env.work().join(".ralph").exists());
}
