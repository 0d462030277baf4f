//! Nothing outlives us: not a turn, not a check, however we end.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::env::{TestEnv, eventually};
use crate::process::{Nonce, Running, SOON};
use crate::scene::{CUT_OFF, Scene, done, run, worker};

/// A worker that scatters processes and hangs; once it was cut off it does its task.
fn hanging(nonce: &Nonce) -> Scene {
    Scene::of(&[("#1", &[]), ("#2", &["#1"])])
        .turn(worker("Task #1:").without(CUT_OFF).does([run(&nonce.scatter_and_hang())]))
        .rest()
}

/// Starts `atomic` and waits until the processes of its worker are there.
fn at_work(env: &TestEnv, nonce: &Nonce, more: &[&str]) -> Running {
    let running = Running::start(env.ralph_command(&hanging(nonce).toml(), more));
    nonce.sleeps(4);
    running
}

fn resume_completes(env: &TestEnv) {
    let ran = env.run(["resume", "last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(env.tasks(), ["#1 completed", "#2 completed"]);
}

#[test]
fn killed_outright() {
    let (env, nonce) = (TestEnv::new(), Nonce::new());
    at_work(&env, &nonce, &[]).kill();
    nonce.is_gone();
    resume_completes(&env);
}

#[test]
fn asked_to_stop() {
    for signal in ["INT", "TERM", "HUP"] {
        let (env, nonce) = (TestEnv::new(), Nonce::new());
        let mut running = at_work(&env, &nonce, &[]);
        running.signal(signal);
        nonce.is_gone();
        let ran = running.end();
        assert_eq!(ran.code, Some(4), "{signal}: {ran:?}");
        let id = env.session().file_name().unwrap().to_string_lossy().into_owned();
        let said = [format!("Paused Ralph session: {id}"), format!("atomic resume {id}")];
        assert!(said.iter().all(|said| ran.stdout.contains(said)), "{signal}: {}", ran.stdout);
        assert_eq!(env.summary()["status"], "paused", "{signal}");
        resume_completes(&env);
    }
}

/// What ignores a polite request takes a moment to end; a second Ctrl+C does not wait for it.
#[test]
fn asked_to_stop_twice() {
    let (env, nonce) = (TestEnv::new(), Nonce::new());
    let stubborn = format!("trap '' TERM; {}", nonce.scatter_and_hang());
    let scene = Scene::of(&[("#1", &[]), ("#2", &["#1"])])
        .turn(worker("Task #1:").without(CUT_OFF).does([run(&stubborn)]))
        .rest();
    let mut running = Running::start(env.ralph_command(&scene.toml(), &[]));
    nonce.sleeps(4);
    // Two signals that come at once count as one, so more follow.
    let deadline = Instant::now() + SOON;
    while !running.has_ended() && Instant::now() < deadline {
        running.signal("INT");
        std::thread::sleep(Duration::from_millis(30));
    }
    assert_eq!(running.end().code, Some(130));
    nonce.is_gone();
    resume_completes(&env);
}

/// `atomic` in a terminal of its own, which is then closed.
#[test]
fn the_terminal_is_closed() {
    let (env, nonce) = (TestEnv::new(), Nonce::new());
    let atomic = env.ralph_command(&hanging(&nonce).toml(), &[]);
    let code = env.outside("code");
    let mut terminal = in_a_terminal(&atomic, &code);
    nonce.sleeps(4);
    terminal.child().kill().unwrap();
    nonce.is_gone();
    let ended = || fs::read_to_string(&code).unwrap_or_default().ends_with('\n');
    eventually("atomic ends", SOON, ended);
    assert_eq!(fs::read_to_string(&code).unwrap(), "4\n");
    assert_eq!(env.summary()["status"], "paused");
    resume_completes(&env);
}

/// Runs a command under `script`, which gives it a terminal, and has its exit code written down.
pub(crate) fn in_a_terminal(command: &Command, code: &Path) -> Running {
    let quoted = |text: &std::ffi::OsStr| format!("'{}'", text.to_str().unwrap());
    let words: Vec<String> =
        std::iter::once(command.get_program()).chain(command.get_args()).map(quoted).collect();
    // The first shell ends with its terminal, as a user's does; the second one tells the tale.
    let told = format!("echo $? > '{}'", code.display());
    let line = format!("(trap : HUP; {}; {told}); true", words.join(" "));
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-c", &line, "/dev/null"]).env_clear().env("SHELL", "/bin/sh");
    for (name, value) in command.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        script.env(name, value);
    }
    script.current_dir(command.get_current_dir().unwrap());
    script.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    Running::start_as_it_is(script)
}

#[test]
fn a_turn_takes_too_long() {
    let (env, nonce) = (TestEnv::new(), Nonce::new());
    let running = at_work(&env, &nonce, &["--turn-timeout", "5s", "--max-attempts", "1"]);
    let ran = running.end();
    nonce.is_gone();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("took longer than 5 s"), "{}", ran.stderr);
}

/// What a command leaves behind is gone when the turn goes on: the next step finds nothing.
#[test]
fn a_turn_ends_by_itself() {
    let (env, nonce) = (TestEnv::new(), Nonce::new());
    let scene = Scene::of(&[("#1", &[])])
        .turn(worker("Task #1:").does([run(&nonce.scatter_and_leave()), done("left some")]))
        .rest();
    let ran = env.ralph(&scene.toml(), &["--check", &nonce.absent()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    nonce.is_gone();
}

#[test]
fn a_check_leaves_processes_behind() {
    let (env, nonce) = (TestEnv::new(), Nonce::new());
    let scene = Scene::of(&[("#1", &[])]).rest();
    let ran = env.ralph(&scene.toml(), &["--check", &nonce.scatter_and_leave()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    nonce.is_gone();

    // A check that hangs is ended with everything it started.
    let (env, nonce) = (TestEnv::new(), Nonce::new());
    let hang = nonce.scatter_and_hang();
    let running = Running::start(env.ralph_command(&scene.toml(), &["--check", &hang]));
    nonce.sleeps(4);
    running.kill();
    nonce.is_gone();
}
