//! A guard that is killed alone leaves nothing behind: Atomic adopts and ends what it has guarded.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::acp::Raw;
use crate::engine::{Project, tool, with};
use crate::env::{TestEnv, eventually, program};
use crate::process::{Nonce, Running, SOON, signal_guard};
use crate::scene::{CUT_OFF, Scene, TRIED, agent, done, run, say, wait_for, worker};

/// Kills the guard as soon as its processes are there.
fn kill_guard(nonce: &Nonce) {
    nonce.sleeps(4);
    nonce.signal_guard("KILL");
}

/// A script of one turn for one agent, whose command hides its processes and hangs.
fn hiding(nonce: &Nonce) -> Scene {
    Scene::default().turn(agent("assistant").does([run(&nonce.hide_and_hang()), say("Done.")]))
}

/// `atomic -p` on a script.
fn turn(env: &TestEnv, scene: &Scene) -> Command {
    let script = env.script(&scene.toml());
    let mut command = env.atomic(["-p", "Do it", "--backend", "script", "--script"]);
    command.arg(script);
    command
}

/// The processes that a process has for children and that have ended.
fn zombies_of(parent: u32) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let is_zombie = |line: &String| {
        let fields = line.rsplit(')').next().unwrap_or_default();
        fields.split_whitespace().take(2).eq(["Z", parent.to_string().as_str()])
    };
    lines.filter(is_zombie).collect()
}

#[test]
fn a_worker_whose_guard_is_killed_leaves_nothing_in_the_middle_of_a_run() {
    let (env, nonce) = (TestEnv::new(), Nonce::new());
    let scene = Scene::of(&[("#1", &[])])
        .turn(worker("Task #1:").without(TRIED).does([run(&nonce.hide_and_hang())]))
        .turn(worker("Task #1:").does([wait_for("go"), done("the second time")]))
        .rest();
    let running = Running::start(env.ralph_command(&scene.toml(), &[]));
    kill_guard(&nonce);
    nonce.is_gone();
    // The run goes on: its next attempt waits for this file.
    fs::write(env.work().join("go"), "").unwrap();
    let ran = running.end();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(env.tasks(), ["#1 completed"]);
}

#[test]
fn a_check_whose_guard_is_killed_leaves_nothing() {
    let (env, nonce) = (TestEnv::new(), Nonce::new());
    let check = format!("test -e checked || {{ touch checked; {}; }}", nonce.hide_and_hang());
    let scene = Scene::of(&[("#1", &[])]).rest();
    let running = Running::start(env.ralph_command(&scene.toml(), &["--check", &check]));
    kill_guard(&nonce);
    nonce.is_gone();
    let _ = running.end();
    nonce.is_gone_now();
}

#[test]
fn a_command_of_a_workflow_whose_guard_is_killed_leaves_nothing() {
    let (project, nonce) = (Project::new(), Nonce::new());
    let hides = with(tool("hides", &nonce.hide_and_hang()), json!({"onError": "skip"}));
    let look = tool("look", &nonce.absent());
    project.write("flow.json", &json!({"nodes": [hides, look]}).to_string());
    let running = Running::start(project.command("flow.json", &[]));
    kill_guard(&nonce);
    let ran = running.end();
    nonce.is_gone_now();
    // The next node has looked, too.
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_turn_whose_guard_is_killed_leaves_nothing_when_atomic_has_ended() {
    let (env, nonce) = (TestEnv::new(), Nonce::new());
    let running = Running::start(turn(&env, &hiding(&nonce)));
    kill_guard(&nonce);
    let ran = running.end();
    nonce.is_gone_now();
    assert_eq!(ran.code, Some(1), "{ran:?}");
}

/// A command can stop its guard, which is its parent. Its time limit holds all the same.
#[test]
fn a_command_that_stops_its_guard_is_ended_at_its_time_limit() {
    let (project, nonce) = (Project::new(), Nonce::new());
    let command = format!("kill -STOP $PPID; {}", nonce.hide_and_hang());
    let stops = with(tool("stops", &command), json!({"onError": "skip", "timeoutMs": 5_000}));
    let look = tool("look", &nonce.absent());
    project.write("flow.json", &json!({"nodes": [stops, look]}).to_string());
    let ran = Running::start(project.command("flow.json", &[])).end();
    nonce.is_gone_now();
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// A guard that is only stopped is killed by Atomic.
#[test]
fn a_guard_that_is_stopped_or_killed_while_a_run_pauses_or_exits_leaves_nothing() {
    for (signals, code, is_killed) in [(1, 4, true), (2, 130, true), (1, 4, false), (2, 130, false)]
    {
        let (env, nonce) = (TestEnv::new(), Nonce::new());
        let hides = worker("Task #1:").without(CUT_OFF).does([run(&nonce.hide_and_hang())]);
        let scene = Scene::of(&[("#1", &[])]).turn(hides).rest();
        let mut running = Running::start(env.ralph_command(&scene.toml(), &[]));
        nonce.sleeps(4);
        // A stopped guard cannot end anything before it is killed.
        nonce.signal_guard("STOP");
        running.signal("INT");
        if is_killed {
            nonce.signal_guard("KILL");
        }
        for _ in 1..signals {
            eventually("the second Ctrl+C is seen", SOON, || {
                running.signal("INT");
                running.has_ended()
            });
        }
        let ran = running.end();
        nonce.is_gone_now();
        assert!(ran.code == Some(code) || ran.code == Some(4), "{ran:?}");
        let ran = env.run(["resume", "last"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
}

#[test]
fn a_resumed_run_whose_guard_is_killed_leaves_nothing() {
    let (env, nonce) = (TestEnv::new(), Nonce::new());
    let scene = Scene::of(&[("#1", &[])])
        .turn(worker("Task #1").and(CUT_OFF).does([run(&nonce.hide_and_hang())]))
        .turn(worker("Task #1:").without(TRIED).does([run("touch begun; sleep 1000")]))
        .rest();
    let mut running = Running::start(env.ralph_command(&scene.toml(), &[]));
    eventually("the worker is at work", SOON, || env.work().join("begun").exists());
    running.signal("INT");
    assert_eq!(running.end().code, Some(4));
    let running = Running::start(env.atomic(["resume", "last"]));
    kill_guard(&nonce);
    nonce.is_gone();
    let ran = running.end();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    nonce.is_gone_now();
}

#[test]
fn an_editor_session_whose_guard_is_killed_leaves_nothing() {
    let (env, nonce) = (TestEnv::new(), Nonce::new());
    let mut atomic = Raw::start(&env, &hiding(&nonce).toml());
    atomic.initialize();
    let session = atomic.open(&env);
    atomic.prompt(3, &session, "Do it");
    kill_guard(&nonce);
    nonce.is_gone();
    let answer = atomic.hear(|heard| heard["id"] == 3);
    assert!(answer["error"].is_object(), "{answer}");
}

/// Atomic below Atomic: the inner one adopts and ends what its own guards leave, and is itself ended
/// when the guard above it is killed.
#[test]
fn atomic_as_an_agent_of_atomic_leaves_nothing() {
    for is_outer in [false, true] {
        let (env, nonce) = (TestEnv::new(), Nonce::new());
        let script = env.script(&hiding(&nonce).toml());
        let inner = format!(
            "acp:'{}' acp --backend script --script '{}'",
            program().display(),
            script.display()
        );
        let running = Running::start(env.atomic(["-p", "Do it", "--backend", &inner]));
        nonce.sleeps(4);
        if is_outer {
            signal_guard(script.to_str().unwrap(), "KILL");
        } else {
            nonce.signal_guard("KILL");
        }
        nonce.is_gone();
        let ran = running.end();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        nonce.is_gone_now();
    }
}

/// While the orphans of killed guards are ended and reaped, commands end with codes of their own.
#[test]
fn a_thousand_orphans_leave_no_zombies_and_lose_no_exit_code() {
    const GUARDS: usize = 4;
    const EACH: usize = 250;
    const CODES: usize = 40;
    let project = Project::new();
    let nonces: Vec<Nonce> = (0..GUARDS).map(|_| Nonce::new()).collect();
    let orphans = |(index, nonce): (usize, &Nonce)| {
        let hides = tool(&format!("hides{index}"), &nonce.hide_many_and_hang(EACH));
        with(hides, json!({"onError": "skip"}))
    };
    let code = |index: usize| {
        let wait = "until [ -e killing ]; do sleep 0.05; done";
        let exits = tool(&format!("exits{index}"), &format!("{wait}; exit {}", index % 5));
        with(exits, json!({"onError": "skip"}))
    };
    let branches: Vec<Value> =
        nonces.iter().enumerate().map(orphans).chain((0..CODES).map(code)).collect();
    let all = json!({"type": "parallel", "id": "all", "branches": branches});
    let last = tool("last", "until [ -e go ]; do sleep 0.05; done; exit 7");
    let flow = json!({"nodes": [all, with(last, json!({"onError": "skip"}))]});
    project.write("flow.json", &flow.to_string());
    let mut running = Running::start(project.command("flow.json", &["--workers", "100"]));
    for nonce in &nonces {
        nonce.sleeps(EACH + 1);
    }
    project.write("killing", "");
    nonces.iter().for_each(|nonce| nonce.signal_guard("KILL"));
    eventually("all orphans are gone", SOON, || nonces.iter().all(Nonce::has_none));
    let atomic = running.id();
    eventually("no zombies", SOON, || zombies_of(atomic).is_empty());
    assert!(!running.has_ended(), "the last node waits");
    project.write("go", "");
    let ran = running.end();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    codes_are_right(&project, CODES);
}

/// Every command has failed or not as its exit code says, and the last one with 7.
fn codes_are_right(project: &Project, count: usize) {
    let failed = project.of_type("step_failed");
    let failure = |step: &str| {
        let fact = failed.iter().find(|fact| fact["step"] == step)?;
        Some(fact["error"]["message"].as_str().unwrap().to_owned())
    };
    for index in 0..count {
        let step = format!("all#1[exits{index}]/exits{index}#1");
        let (message, code) = (failure(&step), index % 5);
        let is_right = match &message {
            None => code == 0,
            Some(message) => message.ends_with(&format!("ended with exit status: {code}")),
        };
        assert!(is_right, "{step} ended with {code}: {message:?}");
    }
    assert!(failure("last#1").is_some_and(|it| it.ends_with("exit status: 7")), "{failed:?}");
}

/// A shell may start programs in the background and then replace itself by Atomic, whose children they
/// become. They are not Atomic's to end.
#[test]
fn processes_that_were_there_before_atomic_live_on() {
    let (env, nonce, before) = (TestEnv::new(), Nonce::new(), Nonce::new());
    let atomic = turn(&env, &hiding(&nonce));
    let mut shell = Command::new("sh");
    let started = format!("{}; exec \"$0\" \"$@\"", before.stay());
    shell.arg("-c").arg(started).arg(atomic.get_program()).args(atomic.get_args());
    shell.current_dir(atomic.get_current_dir().unwrap()).env_clear();
    for (name, value) in atomic.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        shell.env(name, value);
    }
    let running = Running::start(shell);
    kill_guard(&nonce);
    let ran = running.end();
    nonce.is_gone_now();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(before.end(), 2, "processes that were there before");
}
