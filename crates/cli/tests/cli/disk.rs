//! Disks that refuse: read-only, and full. Each is mounted where nobody else sees it.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::env::{Ran, TestEnv};
use crate::scene::{CUT_OFF, Scene, done, note, run, worker};

/// A shell whose mounts end with it, where the machine allows that; its first words are these.
fn private_mounts() -> Option<Vec<&'static str>> {
    let ways: [&[&str]; 2] = [&["unshare", "-m"], &["unshare", "-rm"]];
    let works = |way: &&[&str]| {
        let probe = "mount -t tmpfs none /mnt && mount -o remount,ro /mnt";
        let mut command = Command::new(way[0]);
        command.args(&way[1..]).args(["sh", "-c", probe]);
        command.output().is_ok_and(|output| output.status.success())
    };
    let found = ways.iter().find(|way| works(way)).map(|way| way.to_vec());
    if found.is_none() {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "CI must be able to mount");
        eprintln!("not run: this machine does not let us mount anything");
    }
    found
}

/// Runs a shell script in the project, with `$ATOMIC` to be run, `$OUT` to leave files in.
fn shell(env: &TestEnv, way: &[&str], script: &str) -> Ran {
    let out = env.outside("out");
    fs::create_dir(&out).unwrap();
    let template = env.atomic::<&str>([]);
    let mut command = Command::new(way[0]);
    command.args(&way[1..]).args(["sh", "-e", "-c", script]).current_dir(env.work()).env_clear();
    for (name, value) in template.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        command.env(name, value);
    }
    command.env("ATOMIC", template.get_program()).env("OUT", &out);
    command.env("WORK", env.work()).env("SCRIPT", env.outside("script.toml"));
    crate::env::ran(command)
}

fn left(env: &TestEnv, name: impl AsRef<OsStr>) -> String {
    let path = env.outside("out").join(Path::new(&name));
    fs::read_to_string(&path).unwrap_or_else(|error| format!("{}: {error}", path.display()))
}

#[test]
fn a_read_only_folder_is_said_and_nothing_is_started() {
    let Some(way) = private_mounts() else { return };
    let env = TestEnv::new();
    env.script(&Scene::of(&[("#1", &[])]).rest().toml());
    let script = "
        mount --bind \"$WORK\" \"$WORK\"; mount -o remount,bind,ro \"$WORK\"; cd \"$WORK\"
        \"$ATOMIC\" run ralph 'Build it' --script \"$SCRIPT\" >\"$OUT/stdout\" 2>\"$OUT/stderr\" ||
            echo $? >\"$OUT/code\"";
    let ran = shell(&env, &way, script);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(left(&env, "code"), "1\n");
    let said = left(&env, "stderr");
    let folder = env.work().join(".ralph");
    let expected = format!("could not create {}", folder.display());
    assert!(said.contains("Read-only file system"), "{said}");
    assert!(said.contains(&expected), "{expected}: {said}");
    assert_eq!(fs::read_dir(env.work()).unwrap().count(), 0);
    assert_eq!(env.ledger(), [""; 0]);
}

/// The worker of the second task fills the disk; there is room again when the run is resumed.
#[test]
fn a_full_disk_loses_nothing_and_the_run_goes_on_once_there_is_room() {
    let Some(way) = private_mounts() else { return };
    let env = TestEnv::new();
    let fill = "cat /dev/zero > filler 2>/dev/null; true";
    let scene = Scene::of(&[("#1", &[]), ("#2", &["#1"]), ("#3", &["#2"])])
        .turn(worker("Task #2:").without(CUT_OFF).does([note(), run(fill), done("full")]))
        .rest();
    env.script(&scene.toml());
    let script = "
        mount -t tmpfs -o size=1m none \"$WORK\"; cd \"$WORK\"
        \"$ATOMIC\" run ralph 'Build it' --script \"$SCRIPT\" >\"$OUT/stdout\" 2>\"$OUT/stderr\" ||
            echo $? >\"$OUT/code\"
        cp .ralph/sessions/*/journal.jsonl \"$OUT/before\"; cp .ralph/sessions/*/tasks.json \"$OUT\"
        \"$ATOMIC\" resume last >\"$OUT/still\" 2>&1 || echo $? >>\"$OUT/still\"
        cp .ralph/sessions/*/journal.jsonl \"$OUT/still-full\"
        rm filler
        \"$ATOMIC\" resume last >\"$OUT/resumed\" 2>&1
        cp .ralph/sessions/*/journal.jsonl \"$OUT/after\"
        cp .ralph/sessions/*/tasks.json .ralph/sessions/*/session.json \"$OUT\"";
    let ran = shell(&env, &way, script);
    assert_eq!(ran.code, Some(0), "{ran:?}\n{}", left(&env, "resumed"));

    assert_eq!(left(&env, "code"), "1\n", "{}", left(&env, "stdout"));
    let said = left(&env, "stderr");
    assert!(said.contains("there is no room left on the disk for"), "{said}");
    assert!(said.contains("make room and resume the session"), "{said}");
    let still = left(&env, "still");
    assert!(still.contains("there is no room left on the disk for"), "{still}");
    assert!(still.ends_with("1\n"), "{still}");

    // Nothing that was recorded is lost, and every line is whole.
    let (before, after) = (left(&env, "before"), left(&env, "after"));
    assert!(before.ends_with("}\n") && before.contains("step_finished"), "{before}");
    assert!(left(&env, "still-full").starts_with(&before) && after.starts_with(&before));
    assert!(left(&env, "session.json").contains("\"status\": \"completed\""));
    let tasks = left(&env, "tasks.json");
    assert_eq!(tasks.matches("\"status\": \"completed\"").count(), 3, "{tasks}");
    let starts = env.ledger().iter().filter(|step| step.contains("[#1]")).count();
    assert_eq!(starts, 1, "what was done is not done again");
}
