//! What a run says about "done": verified by which check, or not.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::env::{Ran, TestEnv, eventually};
use crate::process::{Running, SOON};
use crate::scene::{CUT_OFF, Scene, done, fail, gave_up, note, review, reviewer, run, worker};

pub(crate) const TWO: &[(&str, &[&str])] = &[("#1", &[]), ("#2", &["#1"])];

pub(crate) fn write(env: &TestEnv, name: &str, text: &str) {
    let path = env.work().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A scene in which each task does one command.
pub(crate) fn scene(tasks: &[(&str, &[&str])], commands: &[(&str, &str)]) -> Scene {
    let scene = commands.iter().fold(Scene::of(tasks), |scene, (task, command)| {
        scene.turn(worker(&format!("Task {task}:")).does([run(command), done("did it")]))
    });
    scene.rest()
}

pub(crate) fn git(env: &TestEnv, args: &str) -> String {
    let fixed = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    let mut command = Command::new("git");
    command.current_dir(env.work()).args(fixed).args(args.split(' '));
    let output = command.env("HOME", env.outside("home")).output().unwrap();
    assert!(output.status.success(), "git {args}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn last_line(ran: &Ran) -> &str {
    ran.stdout.lines().next_back().unwrap_or_default()
}

/// The last line of a completed run, after everything that tells of it was found to say the same.
pub(crate) fn told(env: &TestEnv, ran: &Ran) -> String {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let line = last_line(ran).to_owned();
    let progress = fs::read_to_string(env.session().join("progress.txt")).unwrap();
    assert!(progress.lines().any(|it| it == format!("## {line}")), "{line}\n{progress}");
    let facts = env.facts();
    let fact = &facts.last().unwrap()["verified"];
    let summary = &env.summary()["verified"];
    for key in ["checked", "own", "total"] {
        assert_eq!(fact[key], summary[key], "{key}");
    }
    assert!(ran.stdout.contains(&format!("s] {line}\n")), "{}", ran.stdout);
    line
}

fn counts(env: &TestEnv) -> Value {
    env.summary()["verified"].clone()
}

pub(crate) fn verdicts(env: &TestEnv) -> Vec<String> {
    let checks = env.summary()["taskChecks"].clone();
    let checks = checks.as_object().unwrap();
    checks.iter().map(|(id, it)| format!("{id} {}", it["verified"].as_str().unwrap())).collect()
}

#[test]
fn a_run_in_which_nothing_was_checked_is_not_verified() {
    let env = TestEnv::new();
    let ran = env.ralph(&Scene::of(TWO).rest().toml(), &[]);
    assert_eq!(told(&env, &ran), "Completed, not verified");
    assert_eq!(counts(&env), json!({"checked": 0, "own": 0, "total": 2}));
    assert_eq!(verdicts(&env), ["#1 none", "#2 none"]);
    let tasks = fs::read_to_string(env.session().join("tasks.json")).unwrap();
    assert!(!tasks.contains("verified"), "tasks.json keeps its shape: {tasks}");
}

#[test]
fn every_task_that_a_green_check_followed_is_verified() {
    let env = TestEnv::new();
    let ran = env.ralph(&Scene::of(TWO).rest().toml(), &["--check", "true"]);
    assert_eq!(told(&env, &ran), "Completed: 2 of 2 tasks verified by \"true\"");
    assert_eq!(counts(&env), json!({"checked": 2, "own": 0, "total": 2}));
    let progress = fs::read_to_string(env.session().join("progress.txt")).unwrap();
    assert!(progress.contains("\nVerified: by \"true\"\n"), "{progress}");
}

/// A task that went wrong at first, and its bug-fix, are verified like others.
#[test]
fn a_task_that_was_mended_is_verified() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[])])
        .turn(
            worker("Task #1:")
                .without("An earlier attempt")
                .does([run("touch broken"), done("looks fine")]),
        )
        .turn(worker("Task #1-bug-1:").does([run("rm -f broken"), done("mended")]))
        .rest();
    let ran = env.ralph(&scene.toml(), &["--check", "test ! -e broken"]);
    let expected = "Completed: 2 of 2 tasks verified by \"test ! -e broken\"";
    assert_eq!(told(&env, &ran), expected);
}

#[test]
fn a_check_that_is_red_from_the_start_verifies_nothing() {
    let env = TestEnv::new();
    let ran = env.ralph(&Scene::of(TWO).rest().toml(), &["--check", "false"]);
    assert_eq!(told(&env, &ran), "Completed, not verified");
    assert_eq!(env.summary()["redFromStart"], json!(["false"]));
    assert!(ran.stdout.contains("note: `false` fails before any work is done"), "{}", ran.stdout);
    assert!(ran.stdout.contains("\nRed from the start: \"false\"\n"), "{}", ran.stdout);
}

/// A red check that a task turns green counts from the next task on.
#[test]
fn a_check_that_a_task_turns_green_counts_from_the_next_task_on() {
    let env = TestEnv::new();
    let scene = scene(TWO, &[("#1", "mkdir ready")]);
    let ran = env.ralph(&scene.toml(), &["--check", "test -d ready"]);
    let expected = "Completed: 1 of 2 tasks verified by \"test -d ready\", 1 not verified";
    assert_eq!(told(&env, &ran), expected);
    assert_eq!(verdicts(&env), ["#1 none", "#2 checked"]);
}

#[test]
fn a_worker_that_empties_the_test_script_is_named_and_counted_apart() {
    let env = TestEnv::new();
    write(&env, "Makefile", "test:\n\ttest ! -e broken\n");
    let scene = scene(TWO, &[("#2", "printf 'test:\\n\\ttrue\\n' > Makefile")]);
    let ran = env.ralph(&scene.toml(), &["--trust"]);
    let expected = "Completed: 1 of 2 tasks verified by \"make test\", 1 by its own check";
    assert_eq!(told(&env, &ran), expected);
    assert_eq!(counts(&env), json!({"checked": 1, "own": 1, "total": 2}));
    assert_eq!(env.summary()["changedChecks"], json!([{"file": "Makefile", "task": "#2"}]));
    let note = "note: Task #2 changed what defines the checks: Makefile.";
    assert!(ran.stdout.contains(note), "{}", ran.stdout);
    assert!(ran.stdout.contains("\nChanged checks: Makefile (#2)\n"), "{}", ran.stdout);
}

/// The files that a given command names define it as well.
#[test]
fn a_file_that_the_check_names_is_a_definition() {
    let env = TestEnv::new();
    write(&env, "ci/check.sh", "test ! -e broken\n");
    write(&env, "package.json", r#"{"scripts": {"test": "jest"}}"#);
    let scene = scene(
        &[("#1", &[]), ("#2", &["#1"]), ("#3", &["#2"])],
        &[
            ("#1", ": > ci/check.sh"),
            ("#2", "echo '{\"scripts\": {\"test\": \"jest\", \"build\": \"x\"}}' > package.json"),
            ("#3", "echo '{\"scripts\": {\"test\": \"true\"}}' > package.json"),
        ],
    );
    let ran = env.ralph(&scene.toml(), &["--check", "sh ./ci/check.sh"]);
    told(&env, &ran);
    assert_eq!(verdicts(&env), ["#1 own", "#2 checked", "#3 own"]);
    let files =
        json!([{"file": "ci/check.sh", "task": "#1"}, {"file": "package.json", "task": "#3"}]);
    assert_eq!(env.summary()["changedChecks"], files);
}

/// A failed attempt that changed a check counts against its task and the bug-fix task.
#[test]
fn a_failed_attempt_that_changed_a_check_counts_against_its_task() {
    let env = TestEnv::new();
    write(&env, "Makefile", "test:\n\ttest ! -e broken\n");
    let scene = Scene::of(&[("#1", &[])])
        .turn(
            worker("Task #1:")
                .without("An earlier attempt")
                .does([run("printf 'test:\\n\\ttrue\\n' > Makefile"), gave_up("too hard")]),
        )
        .rest();
    let ran = env.ralph(&scene.toml(), &["--trust"]);
    told(&env, &ran);
    assert_eq!(verdicts(&env), ["#1 own", "#1-bug-1 own"]);
}

#[test]
fn removed_shortened_and_skipped_tests_are_named_and_added_ones_are_not() {
    let env = TestEnv::new();
    let tests = "#[test]\nfn a() {}\n\n#[test]\nfn b() {}\n";
    for name in ["tests/gone.rs", "tests/short.rs", "src/lib.rs", "tests/more.rs", "tests/old.rs"] {
        write(&env, name, &format!("// {name}\n{tests}"));
    }
    let scene = scene(
        TWO,
        &[
            ("#1", "rm tests/gone.rs && echo '#[test]\nfn a() {}' > tests/short.rs"),
            (
                "#2",
                "sed -i 's/^fn b/#[ignore]\\nfn b/' src/lib.rs && mv tests/old.rs tests/new.rs \
                 && echo '#[test]\nfn c() {}' >> tests/more.rs",
            ),
        ],
    );
    let ran = env.ralph(&scene.toml(), &["--check", "true"]);
    assert_eq!(told(&env, &ran), "Completed: 2 of 2 tasks verified by \"true\"");
    let expected = json!([
        {"file": "src/lib.rs", "what": "skipped", "task": "#2"},
        {"file": "tests/gone.rs", "what": "removed", "task": "#1"},
        {"file": "tests/short.rs", "what": "shortened", "task": "#1"},
    ]);
    assert_eq!(env.summary()["removedTests"], expected);
    let line = "\nRemoved tests: src/lib.rs skipped (#2), tests/gone.rs removed (#1), \
                tests/short.rs shortened (#1)\n";
    assert!(ran.stdout.contains(line), "{}", ran.stdout);
    assert_eq!(env.summary()["changedChecks"], json!([]));
}

#[test]
fn the_task_that_brings_the_first_check_is_counted_apart() {
    let env = TestEnv::new();
    let scene = scene(TWO, &[("#1", "printf 'test:\\n\\ttrue\\n' > Makefile")]);
    let ran = env.ralph(&scene.toml(), &["--trust"]);
    let expected = "Completed: 1 of 2 tasks verified by \"make test\", 1 by its own check";
    assert_eq!(told(&env, &ran), expected);
    assert_eq!(verdicts(&env), ["#1 own", "#2 checked"]);
}

/// A new check that is red has to become green, and the task that mends it is not verified by it.
#[test]
fn a_new_check_that_is_red_is_nobodys_proof() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[]), ("#2", &["#1"])])
        .turn(worker("Task #1:").without("An earlier attempt").does([
            run("printf 'test:\\n\\ttest -d ready\\n' > Makefile"),
            done("brought a check"),
        ]))
        .turn(worker("Task #1-bug-1:").does([run("mkdir ready"), done("mended")]))
        .rest();
    let ran = env.ralph(&scene.toml(), &["--trust"]);
    told(&env, &ran);
    assert_eq!(verdicts(&env), ["#1 own", "#1-bug-1 own", "#2 checked"]);
}

#[test]
fn a_worker_that_switches_the_branch_is_named_and_not_verified() {
    let env = TestEnv::new();
    git(&env, "init -q -b main");
    git(&env, "commit -q --allow-empty -m one");
    let scene = scene(TWO, &[("#2", "git checkout -q -b side")]);
    let ran = env.ralph(&scene.toml(), &["--check", "true"]);
    let expected = "Completed: 1 of 2 tasks verified by \"true\", 1 not verified";
    assert_eq!(told(&env, &ran), expected);
    let branch = json!({"from": "main", "to": "side", "task": "#2"});
    assert_eq!(env.summary()["changedBranch"], branch);
    let note = "note: Task #2 left the branch main: now branch side is checked out.";
    assert!(ran.stdout.contains(note), "{}", ran.stdout);
    assert!(ran.stdout.contains("\nChanged branch: branch side instead of main (#2)\n"));
}

/// What a worker did before a crash is compared with what was read before it.
#[test]
fn a_definition_that_was_changed_before_a_kill_is_noticed_after_it() {
    let env = TestEnv::new();
    write(&env, "Makefile", "test:\n\ttest ! -e broken\n");
    let empties = run("printf 'test:\\n\\ttrue\\n' > Makefile");
    let scene = Scene::of(&[("#1", &[])])
        .turn(worker("Task #1:").without(CUT_OFF).does([empties, note(), fail("hang")]))
        .turn(worker("").and(CUT_OFF).does([done("went on")]))
        .rest();
    let running = Running::start(env.ralph_command(&scene.toml(), &["--trust"]));
    eventually("the worker has begun", SOON, || env.ledger().len() == 1);
    running.kill();
    let ran = env.run(["resume", "last", "--trust"]);
    let expected = "Completed: 1 of 1 task verified by its own check";
    assert_eq!(told(&env, &ran), expected);
    assert_eq!(env.summary()["changedChecks"], json!([{"file": "Makefile", "task": "#1"}]));
}

/// The tree of a task is the one that git would commit, and asking for it changes nothing.
#[test]
fn the_tree_and_the_commit_of_a_task_are_gits_own_in_a_trusted_folder() {
    let env = TestEnv::new();
    write(&env, "Makefile", "test:\n\ttrue\n");
    write(&env, ".gitignore", "/ignored\n");
    git(&env, "init -q -b main");
    git(&env, "add -A");
    git(&env, "commit -q -m one");
    let hook = env.outside("hook.sh");
    fs::write(&hook, "#!/bin/sh\ntouch \"$0.ran\"\n").unwrap();
    Command::new("chmod").arg("+x").arg(&hook).status().unwrap();
    git(&env, &format!("config core.fsmonitor {}", hook.display()));
    let commit = "git -c core.fsmonitor=false -c user.name=t -c user.email=t@example.org";
    let commits = format!(
        "touch ignored a && {commit} add -A && {commit} commit -q -m two && {commit} rev-parse \
         HEAD 'HEAD^{{tree}}' > \"$LEDGER\""
    );
    let scene = scene(TWO, &[("#1", &commits), ("#2", "echo new > b")]);
    let ran = env.ralph(&scene.toml(), &["--trust"]);
    told(&env, &ran);
    let checks = env.summary()["taskChecks"].clone();
    let ledger = env.ledger();
    assert_eq!(checks["#1"]["commit"], json!(ledger[0]));
    assert_eq!(checks["#1"]["tree"], json!(ledger[1]));
    assert!(!Path::new(&format!("{}.ran", hook.display())).exists(), "git ran a program");
    assert_eq!(git(&env, "-c core.fsmonitor=false status --short"), "?? b", "nothing was staged");
    git(&env, "-c core.fsmonitor=false add -A");
    let tree = git(&env, "-c core.fsmonitor=false write-tree");
    assert_eq!(checks["#2"], json!({"verified": "checked", "tree": tree, "commit": null}));

    let other = TestEnv::new();
    git(&other, "init -q -b main");
    git(&other, "commit -q --allow-empty -m one");
    let ran = other.ralph(&Scene::of(TWO).rest().toml(), &["--check", "true", "--no-trust"]);
    told(&other, &ran);
    let null = json!({"verified": "checked", "tree": null, "commit": null});
    assert_eq!(other.summary()["taskChecks"]["#1"], null, "git is not asked");
}

#[test]
fn a_workflow_without_a_check_says_nothing_of_it() {
    let env = TestEnv::new();
    let flow = json!({"name": "plain", "nodes": [
        {"type": "agent", "id": "work", "agent": "worker", "prompt": "Task one"}]});
    write(&env, "plain.json", &flow.to_string());
    let script = env.script(&Scene::default().rest().toml());
    let mut command = env.atomic(["run", "./plain.json", "Build it", "--trust", "--script"]);
    command.arg(script);
    let ran = crate::env::ran(command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stdout.contains("erified"), "{}", ran.stdout);
    assert_eq!(env.summary().get("verified"), None);
}

#[test]
fn required_checks_are_looked_for_before_anything_is_paid_for() {
    let refused = |prepare: fn(&TestEnv), flags: &[&str], why: &str| {
        let env = TestEnv::new();
        prepare(&env);
        let flags: Vec<&str> = ["--require-checks"].iter().chain(flags).copied().collect();
        let ran = env.ralph(&Scene::of(TWO).rest().toml(), &flags);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let first = ran.stderr.lines().find(|line| line.starts_with("error")).unwrap().to_owned();
        assert_eq!(first, format!("error: --require-checks: {why}"));
        assert!(ran.stderr.contains("\n  hint: "), "{}", ran.stderr);
        assert!(!env.work().join(".ralph").exists(), "no session was begun");
    };
    refused(|_| (), &[], "no check was found in the project");
    refused(
        |env| write(env, "Makefile", "test:\n\ttrue\n"),
        &["--no-trust"],
        "the checks of the project are not run, because it is not trusted",
    );
    let check = ["--check", "A=1 ./nosuch.sh --all"];
    refused(|_| (), &check, "the program of `A=1 ./nosuch.sh --all` was not found");
    refused(
        |_| (),
        &["--check", "true", "--workers", "2"],
        "with several workers in one folder no task can be verified",
    );
}

#[test]
fn with_required_checks_an_unverified_task_fails_the_run() {
    let env = TestEnv::new();
    let good = env.ralph(&Scene::of(TWO).rest().toml(), &["--require-checks", "--check", "true"]);
    assert_eq!(told(&env, &good), "Completed: 2 of 2 tasks verified by \"true\"");

    let env = TestEnv::new();
    let flags = ["--require-checks", "--check", "test -e ready"];
    let scene = Scene::of(TWO).workers().turn(reviewer().does([note(), review(&[])]));
    let bad = env.ralph(&scene.toml(), &flags);
    assert_eq!(bad.code, Some(1), "{bad:?}");
    assert_eq!(env.summary()["status"], "failed");
    let why = "2 of 2 tasks are not verified by a check, and --require-checks is set: #1, #2";
    assert!(bad.stderr.contains(why), "{}", bad.stderr);
    assert_eq!(env.ledger().len(), 2, "no review was paid for");

    // Resume runs the baseline, then does the unverified tasks again.
    fs::write(env.work().join("ready"), "").unwrap();
    let again = env.run(["resume", "last"]);
    assert_eq!(told(&env, &again), "Completed: 2 of 2 tasks verified by \"test -e ready\"");

    let env = TestEnv::new();
    env.ralph(&scene.toml(), &flags);
    let without = env.run(["resume", "last", "--require-checks=false"]);
    assert_eq!(told(&env, &without), "Completed, not verified");
}
