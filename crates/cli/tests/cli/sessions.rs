//! Finding sessions: by id, by folder, and without a home folder.

use std::fs;
use std::process::Command;

use crate::env::{Ran, TestEnv, ran};
use crate::scene::{Scene, gave_up, worker};

/// A home in which nothing can be written, whoever we are.
const NO_HOME: &str = "/dev/null/home";

/// The first attempt fails.
fn failing() -> Scene {
    Scene::of(&[("#1", &[])])
        .turn(worker("Task #1:").without("The user adds").does([gave_up("no idea")]))
        .rest()
}

/// Without a home folder, or with one that is of no use.
fn homeless(mut command: Command, home: Option<&str>) -> Ran {
    match home {
        Some(home) => command.env("ATOMIC_HOME", home),
        None => command.env_remove("HOME"),
    };
    ran(command)
}

fn id_of(env: &TestEnv) -> String {
    env.session().file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn without_a_list_of_sessions_one_is_found_in_its_project() {
    for home in [None, Some(NO_HOME)] {
        let env = TestEnv::new();
        let started =
            env.ralph_command(&failing().toml(), &["--check", "true", "--max-attempts", "1"]);
        let started = homeless(started, home);
        assert_eq!(started.code, Some(1), "{started:?}");
        let id = id_of(&env);
        assert!(started.stdout.contains(&format!("Resume with: atomic resume {id}")));
        let told = "warning: this session is not in the list of sessions: ";
        assert_eq!(started.stderr.matches(told).count(), 1, "{}", started.stderr);
        let remedy = format!("resume it with `atomic resume --trust {}`", env.session().display());
        assert!(started.stderr.contains(&remedy), "{}", started.stderr);

        let listed = homeless(env.atomic(["sessions"]), home);
        assert_eq!(listed.code, Some(0), "{listed:?}");
        assert!(listed.stdout.starts_with(&format!("{id}  failed ")), "{listed:?}");
        for text in [&id, &id[..6], "last"] {
            let shown = homeless(env.atomic(["sessions", "show", text]), home);
            assert_eq!(shown.code, Some(0), "{text}: {shown:?}");
            assert!(shown.stdout.contains("Status: failed"), "{text}: {shown:?}");
        }
        // It could have come with the project.
        let refused = homeless(env.atomic(["resume", &id, "think"]), home);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("not in your list of sessions"), "{refused:?}");
        let resumed = homeless(env.atomic(["resume", &id, "think", "--trust"]), home);
        assert_eq!(resumed.code, Some(0), "{resumed:?}");

        let unknown = homeless(env.atomic(["resume", "zzz"]), home);
        assert_eq!(unknown.code, Some(1), "{unknown:?}");
        assert!(unknown.stderr.contains("there is no session `zzz`"), "{unknown:?}");
    }
}

#[test]
fn a_session_is_found_by_its_folder_from_anywhere() {
    let env = TestEnv::new();
    let started = homeless(env.ralph_command(&failing().toml(), &["--max-attempts", "1"]), None);
    assert_eq!(started.code, Some(1), "{started:?}");
    let folder = env.session();
    let mut resume = env.atomic(["resume"]);
    resume.arg(&folder).args(["think", "--trust"]).current_dir(env.outside("home"));
    let resumed = homeless(resume, None);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let mut show = env.atomic(["sessions", "show", "."]);
    show.current_dir(&folder);
    let shown = homeless(show, None);
    assert!(shown.stdout.contains("Status: completed"), "{shown:?}");

    let wrong = env.run(["resume", "./nothing/here"]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(wrong.stderr.contains("there is no session in ./nothing/here"), "{wrong:?}");
}

/// A session the list does not know stands beside those it knows.
#[test]
fn the_last_is_the_newest_in_the_list() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[])]).rest().toml();
    assert_eq!(env.ralph(&scene, &[]).code, Some(0));
    let listed = id_of(&env);
    let mut unlisted = env.ralph_command(&scene, &[]);
    unlisted.env("ATOMIC_TEST_CLOCK_AHEAD", "3600");
    assert_eq!(homeless(unlisted, Some(NO_HOME)).code, Some(0));
    let both = fs::read_dir(env.work().join(".ralph/sessions")).unwrap();
    let mut names = both.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let unlisted = names.find(|name| *name != listed && name != ".gitignore").unwrap();

    let list = env.run(["sessions"]).stdout;
    let order: Vec<&str> = list.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(order, [&unlisted, &listed]);
    let folder = |text: &str| {
        let shown = env.run(["sessions", "show", text]).stdout;
        shown.lines().last().unwrap().rsplit('/').next().unwrap().to_owned()
    };
    // The other one can claim any time, so it is found by its id only.
    assert_eq!(folder("last"), listed);
    assert_eq!(folder(&unlisted), unlisted);
    // Elsewhere only those in the list are known.
    let mut elsewhere = env.atomic(["sessions"]);
    elsewhere.current_dir(env.outside("home"));
    assert!(!ran(elsewhere).stdout.contains(&unlisted));
}
