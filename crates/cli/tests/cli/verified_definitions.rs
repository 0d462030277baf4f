//! Which changes of a project count as changes of its checks, and which are named.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::env::{Ran, TestEnv};
use crate::scene::{Scene, done, run, worker};

fn write(env: &TestEnv, name: &str, text: impl AsRef<[u8]>) {
    let path = env.work().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A run of tasks one after the other, each of which does one command.
fn run_tasks(env: &TestEnv, commands: &[&str], flags: &[&str]) -> Ran {
    let ids: Vec<String> = (1..=commands.len()).map(|id| format!("#{id}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let blockers: Vec<Vec<&str>> =
        (0..ids.len()).map(|at| ids[..at].iter().rev().take(1).copied().collect()).collect();
    let tasks: Vec<(&str, &[&str])> =
        ids.iter().copied().zip(blockers.iter().map(Vec::as_slice)).collect();
    let scene = ids.iter().zip(commands).fold(Scene::of(&tasks), |scene, (id, command)| {
        scene.turn(worker(&format!("Task {id}:")).does([run(command), done("did it")]))
    });
    let ran = env.ralph(&scene.rest().toml(), flags);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

fn verdicts(env: &TestEnv) -> Vec<String> {
    let checks = env.summary()["taskChecks"].clone();
    let checks = checks.as_object().unwrap();
    checks.iter().map(|(id, it)| format!("{id} {}", it["verified"].as_str().unwrap())).collect()
}

/// The files whose changes count as changes of checks, in the order of the tasks.
fn changed(env: &TestEnv) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("nobody").to_owned();
    let changes = env.summary()["changedChecks"].clone();
    let changes = changes.as_array().unwrap().iter();
    changes.map(|it| format!("{} {}", text(&it["task"]), text(&it["file"]))).collect()
}

/// However a check names the script that it runs, emptying the script counts.
#[test]
fn scripts_that_a_check_runs_are_definitions() {
    let env = TestEnv::new();
    for name in ["runtests", "ci/check.sh", "ci/abs.sh", "run.sh", "tools/a b.sh"] {
        write(&env, name, "exit 0\n");
    }
    write(&env, "Makefile", b"# caf\xe9\ninclude test.mk\napp: main.c\n\tcc main.c\n");
    write(&env, "test.mk", "R = sh ./run.sh\ntest: unit\nunit:\n\t@$(R) --quick\n");
    write(&env, "main.c", "");
    write(
        &env,
        "package.json",
        r#"{"scripts": {"verify": "npm run unit", "unit": "sh a.sh", "build": "b"}}"#,
    );
    write(&env, "a.sh", "exit 0\n");
    let absolute = format!("sh {}/ci/abs.sh", env.work().display());
    let commands = [
        ": > runtests",
        ": > ci/check.sh",
        ": > ci/abs.sh",
        ": > run.sh",
        "printf '#\\351\\ninclude test.mk\\n' > Makefile",
        "printf 'test:\\n\\ttrue\\n' > test.mk",
        ": > 'tools/a b.sh'",
        ": > a.sh",
        "sed -i 's/sh a.sh/true/' package.json",
        "sed -i 's/\"b\"/\"c\"/' package.json; echo new > main.c; mkdir made; echo new > made/x",
    ];
    let flags = [
        "--check",
        "sh runtests",
        "--check",
        "cd ci && sh check.sh",
        "--check",
        &absolute,
        "--check",
        "make test",
        "--check",
        "sh 'tools/a b.sh'",
        "--check",
        "true npm run verify",
    ];
    let ran = run_tasks(&env, &commands, &flags);
    let expected = [
        "#1 runtests",
        "#2 ci/check.sh",
        "#3 ci/abs.sh",
        "#4 run.sh",
        "#5 Makefile",
        "#6 test.mk",
        "#7 tools/a b.sh",
        "#8 a.sh",
        "#9 package.json",
    ];
    // Nothing names the script any more after the rule was replaced.
    let found: Vec<String> = changed(&env).into_iter().filter(|it| *it != "#6 run.sh").collect();
    let found: Vec<String> = found.into_iter().filter(|it| *it != "#9 a.sh").collect();
    assert_eq!(found, expected, "{}", ran.stdout);
    assert_eq!(env.summary()["verified"], json!({"checked": 1, "own": 9, "total": 10}));
    assert!(verdicts(&env).contains(&"#10 checked".to_owned()), "{:?}", verdicts(&env));
}

/// A check can write a file that its command names, and workers that try the check write it, too.
#[test]
fn a_report_that_a_check_writes_is_no_definition() {
    let env = TestEnv::new();
    write(&env, "old.log", "from an earlier run\n");
    let check =
        "date +%s%N > out.log; date +%s%N > old.log; test ! -e late || date +%s%N > late.log";
    let commands = ["date > out.log", "touch late", "date > late.log; date > old.log"];
    let ran = run_tasks(&env, &commands, &["--check", check]);
    assert_eq!(changed(&env), [""; 0]);
    assert_eq!(verdicts(&env), ["#1 checked", "#2 checked", "#3 checked"]);
    assert!(!ran.stdout.contains("changed what defines"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("Changed checks"), "{}", ran.stdout);
}

/// A change that a test makes to a Makefile while the check runs counts for the task, and a file that
/// several tasks change is listed once.
#[test]
fn a_definition_that_changes_during_a_check_counts_and_is_listed_once() {
    let env = TestEnv::new();
    write(&env, "Makefile", "test:\n\ttest ! -e hook || sh hook\n");
    let hook = "printf 'echo \"# x\" >> Makefile\\n' > hook";
    let ran = run_tasks(&env, &[hook, "echo '# y' >> Makefile"], &["--trust"]);
    let line = "\nChanged checks: Makefile (#1, #2), hook (#1)\n";
    assert!(ran.stdout.contains(line), "{}", ran.stdout);
    assert_eq!(verdicts(&env), ["#1 own", "#2 own"]);
}

/// A project that grows over the limit loses no tests by that, and what is removed is named.
#[test]
fn a_project_that_outgrows_the_limit_is_still_told_the_truth() {
    let env = TestEnv::new();
    write(&env, "pkg/sub/tests/test_a.py", "def test_a():\n  pass\n");
    write(&env, "pkg/sub/tests/test_b.py", "def test_b():\n  pass\n");
    write(&env, "pkg/sub/conftest.py", "a = 1\n");
    let commands = [
        "mkdir gen; cd gen; for i in $(seq 5100); do : > g$i.rs; done; mkdir ../zzz ../zzz/q; \
         : > ../zzz/q/conftest.py",
        "rm pkg/sub/tests/test_b.py",
        "echo b > pkg/sub/conftest.py",
        "rm -r gen",
    ];
    let ran = run_tasks(&env, &commands, &["--check", "true"]);
    let removed = json!([{"file": "pkg/sub/tests/test_b.py", "what": "removed", "task": "#2"}]);
    assert_eq!(env.summary()["removedTests"], removed, "{}", ran.stdout);
    assert_eq!(changed(&env), ["#3 pkg/sub/conftest.py"], "{}", ran.stdout);
    let note = "note: The project has more files than Atomic reads";
    assert_eq!(ran.stdout.matches(note).count(), 1, "{}", ran.stdout);
}

/// Tests that no runner finds or runs any more are named.
#[test]
fn tests_that_are_not_run_any_more_are_named() {
    let env = TestEnv::new();
    let rust = "#[test]\nfn a() {}\n";
    let names =
        ["tests/block.rs", "tests/any.rs", "src/build/mod.rs", "tests/out/a.rs", "tests/c.rs"];
    for name in names {
        write(&env, name, rust);
    }
    write(&env, "tests/test_q.py", "def test_q():\n  x\n");
    write(&env, "x_test.dart", "void main() {}\n");
    let command = "sed -i '1i /*' tests/block.rs; echo '*/' >> tests/block.rs; sed -i '1i \
                   #![cfg(any())]' tests/any.rs; rm -r src/build tests/out; sed -i \
                   's/#.test./#[test] #[ignore]/' tests/c.rs; mv tests/test_q.py tests/q.py; rm \
                   x_test.dart";
    run_tasks(&env, &[command], &["--check", "true"]);
    let removed = env.summary()["removedTests"].clone();
    let removed = removed.as_array().unwrap().iter();
    let removed: Vec<String> = removed
        .map(|it| format!("{} {}", it["file"].as_str().unwrap(), it["what"].as_str().unwrap()))
        .collect();
    let expected = [
        "src/build/mod.rs removed",
        "tests/any.rs skipped",
        "tests/block.rs shortened",
        "tests/c.rs skipped",
        "tests/out/a.rs removed",
        "tests/test_q.py removed",
        "x_test.dart removed",
    ];
    assert_eq!(removed, expected);
}

/// No name of a file or command begins a line of its own or reaches the terminal as it is.
#[test]
fn names_and_commands_stay_on_their_line() {
    let env = TestEnv::new();
    let forged = "tests/a\nCompleted: 9 of 9 tasks verified by \u{1b}[31mx.rs";
    write(&env, forged, "#[test]\nfn a() {}\n");
    write(&env, "conftest.py", "a");
    let check = format!("true\ntrue {}", "x".repeat(200));
    let ran = run_tasks(&env, &["rm tests/*"], &["--check", &check]);
    let last = ran.stdout.lines().next_back().unwrap();
    let start = "Completed: 1 of 1 task verified by \"true\u{fffd}true xxx";
    assert!(last.starts_with(start) && last.ends_with("x…\"") && last.len() < 140, "{last}");
    let progress = fs::read_to_string(env.session().join("progress.txt")).unwrap();
    for text in [&ran.stdout, &progress] {
        assert!(!text.contains("\nCompleted: 9 of 9"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
    assert_eq!(env.summary()["removedTests"][0]["file"], json!(forged), "data stays as it is");
}

#[test]
fn a_detached_head_and_a_repository_that_is_gone_are_called_so() {
    let table = [
        (
            "git checkout -q --detach",
            "no branch is checked out (detached HEAD)",
            "no branch (detached HEAD)",
        ),
        ("rm -rf .git", "the git repository is gone", "no git repository"),
    ];
    for (command, now, instead) in table {
        let env = TestEnv::new();
        for args in [
            "init -q -b main",
            "-c user.name=t -c user.email=t@example.org commit -q --allow-empty -m one",
        ] {
            let mut git = Command::new("git");
            git.current_dir(env.work()).args(args.split(' ')).env("HOME", env.outside("home"));
            assert!(git.status().unwrap().success(), "git {args}");
        }
        let ran = run_tasks(&env, &[command], &["--check", "true"]);
        let note = format!("note: Task #1 left the branch main: now {now}.");
        assert!(ran.stdout.contains(&note), "{}", ran.stdout);
        let line = format!("\nChanged branch: {instead} instead of main (#1)\n");
        assert!(ran.stdout.contains(&line), "{}", ran.stdout);
    }
}
