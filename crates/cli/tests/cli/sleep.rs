//! The machine does not sleep while a run works.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::json;

use crate::engine::{Project, tool};
use crate::env::{eventually, ran};
use crate::process::{Nonce, Running, SOON};
use crate::terminal::typing;

/// A program in the place of `systemd-inhibit`. It sleeps under a name that nothing else has.
fn inhibitor(project: &Project, nonce: &str) -> String {
    let path = project.env.outside("systemd-inhibit");
    let asked = project.env.outside("inhibited");
    let text = format!("#!/bin/sh\necho \"$@\" >> {}\nexec {nonce}\n", asked.display());
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// Works until there is a file `go`.
fn works(project: &Project) {
    let work = tool("work", "touch begun; while [ ! -e go ]; do sleep 0.02; done");
    project.write("flow.json", &json!({ "nodes": [work] }).to_string());
}

fn command(project: &Project, nonce: &Nonce, more: &[&str]) -> Command {
    let mut command = project.command("flow.json", more);
    command.env("ATOMIC_TEST_SYSTEMD_INHIBIT", inhibitor(project, &nonce.sleep()));
    command
}

fn asked(project: &Project) -> String {
    fs::read_to_string(project.env.outside("inhibited")).unwrap_or_default()
}

#[test]
fn the_machine_is_kept_awake_while_a_run_works_and_not_afterwards() {
    let (project, nonce) = (Project::new(), Nonce::new());
    works(&project);
    let running = Running::start(command(&project, &nonce, &[]));
    nonce.sleeps(1);
    project.write("go", "");
    assert_eq!(running.end().code, Some(0));
    nonce.is_gone_now();
    let asked = asked(&project);
    assert!(asked.starts_with("--what=sleep:idle --who=atomic --why="), "{asked}");
    assert!(asked.ends_with(" --mode=block /bin/sleep infinity\n"), "{asked}");
}

#[test]
fn a_run_that_is_killed_or_paused_lets_the_machine_sleep() {
    let (project, nonce) = (Project::new(), Nonce::new());
    works(&project);
    let mut running = Running::start(command(&project, &nonce, &[]));
    nonce.sleeps(1);
    running.signal("INT");
    assert_eq!(running.end().code, Some(4));
    nonce.is_gone_now();
    let mut resume = project.env.atomic(["resume", "last"]);
    resume.env("ATOMIC_TEST_SYSTEMD_INHIBIT", project.env.outside("systemd-inhibit"));
    let running = Running::start(resume);
    nonce.sleeps(1);
    running.kill();
    nonce.is_gone();
}

/// Once the machine was kept awake there is a question.
fn asks(project: &Project) {
    let asked = project.env.outside("inhibited").display().to_string();
    let awake = format!("until [ -s {asked} ]; do sleep 0.02; done");
    let twice = format!("until [ $(wc -l < {asked}) -eq 2 ]; do sleep 0.02; done");
    let ask =
        json!({ "type": "askUser", "id": "ask", "question": "On?", "options": ["Yes", "No"] });
    let nodes = json!([tool("first", &awake), ask, tool("last", &twice)]);
    project.write("flow.json", &json!({ "nodes": nodes }).to_string());
}

#[test]
fn a_run_that_waits_for_an_answer_lets_the_machine_sleep() {
    let (project, nonce) = (Project::new(), Nonce::new());
    asks(&project);
    let ended = Running::start(command(&project, &nonce, &[])).end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    nonce.is_gone_now();
    // The same while somebody at a terminal is asked: after the answer the run works again.
    let (project, nonce) = (Project::new(), Nonce::new());
    asks(&project);
    let typed: [(&str, &str, &dyn Fn()); 2] =
        [("1. Yes", "", &|| nonce.is_gone()), ("1. Yes", "1\n", &|| {})];
    let ended = typing(&command(&project, &nonce, &[]), &typed);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(asked(&project).lines().count(), 2, "it is inhibited anew");
    nonce.is_gone_now();
}

#[test]
fn a_run_works_where_sleep_cannot_or_may_not_be_inhibited() {
    let (project, nonce) = (Project::new(), Nonce::new());
    works(&project);
    let running = Running::start(command(&project, &nonce, &["--inhibit-sleep=false"]));
    let begun = project.env.work().join("begun");
    eventually("the run works", SOON, || begun.exists());
    project.write("go", "");
    assert_eq!(running.end().code, Some(0));
    assert_eq!(asked(&project), "", "it was not to be inhibited");
    for program in ["/no/such/program", "/bin/false"] {
        let mut command = project.command("flow.json", &[]);
        command.env("ATOMIC_TEST_SYSTEMD_INHIBIT", program);
        let ended = ran(command);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{program}: {ended:?}");
    }
}
