//! Restrictions of agents: shown for each backend, reported where they are not clear, and refused
//! where they do not fit a role.

use std::fs;
use std::process::Command;

use crate::env::{TestEnv, ran};
use crate::scene::{Scene, done, gave_up, review, reviewer, worker};

fn write(env: &TestEnv, path: &str, text: &str) {
    let path = env.outside(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn an_agent_is_shown_with_what_it_may_do_on_each_backend() {
    let env = TestEnv::new();
    for (path, head) in [
        (".claude/agents/free.md", "description: Does everything"),
        (".claude/agents/planning.md", "tools: Read, Edit, Bash\npermissionMode: plan"),
        (
            ".opencode/agent/careful.md",
            "permission:\n  edit: {'*': deny, 'docs/*': allow}\n  bash: {'*': deny, 'git *': allow, \
             'git push*': deny}\n  external_directory: deny",
        ),
        (".opencode/agent/plan.md", "description: Plans"),
        (".github/agents/editor.agent.md", "tools: [codebase, edit/editFiles, problems, github/*]"),
        (".atomic/agents/odd.md", "tools: [read, frobnicate, sql]"),
        (".atomic/agents/lost.md", "permission: {bash: sometimes}"),
        (".atomic/agents/nothing.md", "tools:"),
    ] {
        write(&env, &format!("work/{path}"), &format!("---\n{head}\n---\nGo.\n"));
    }
    let mut told = String::new();
    for name in ["free", "planning", "careful", "agent:plan", "editor", "odd", "lost", "nothing"] {
        let ran = env.run(["show", name]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        told.push_str(&format!("$ atomic show {name}\n{}\n", ran.stdout));
    }
    insta::assert_snapshot!(told);
}

/// `permission` at the top of `opencode.json` holds for OpenCode's agents and commands beside it,
/// and with trust for the user's, which it never loosens.
#[test]
fn settings_of_opencode_restrict_agents() {
    let env = TestEnv::new();
    let settings = r#"{"permission": {"edit": "deny", "webfetch": "allow", "websearch": "allow"}}"#;
    write(&env, "work/opencode.json", settings);
    let users = r#"{"permission": {"webfetch": "deny", "websearch": "deny"}}"#;
    write(&env, "home/.config/opencode/opencode.json", users);
    write(&env, "work/.opencode/agent/theirs.md", "Go.\n");
    write(&env, "work/.opencode/command/theirs-too.md", "Go.\n");
    write(&env, "home/.config/opencode/agent/mine.md", "Go.\n");
    write(&env, "work/.claude/agents/other.md", "Go.\n");
    let strange = [
        ("theirs", "can read files, run commands; cannot edit files, use the web"),
        ("theirs-too", "can read files, run commands; cannot edit files, use the web"),
        ("mine", "can read files, edit files, run commands; cannot use the web"),
        ("other", "can read files, edit files, run commands, use the web"),
    ];
    let mut trusted = strange;
    trusted[2].1 = strange[0].1;
    for (trust, expected) in [(false, strange), (true, trusted)] {
        if trust {
            let ran = env.run(["trust", "."]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
        }
        for (name, access) in expected {
            let ran = env.run(["show", name]);
            for backend in ["claude", "opencode", "copilot"] {
                let line = format!("{backend:<10} {access}\n");
                assert!(ran.stdout.contains(&line), "{trust}: {name}: {line}: {ran:?}");
            }
        }
    }
}

/// OpenCode reads an older `config.json` of the user's, and settings of every folder up to the root
/// of the repository.
#[test]
fn settings_of_opencode_are_read_wherever_opencode_reads_them() {
    let env = TestEnv::new();
    write(
        &env,
        "home/.config/opencode/config.json",
        r#"{"permission": {"webfetch": "deny", "websearch": "deny"}}"#,
    );
    let settings = r#"{"permission": {"bash": "deny"}, "agent": {"gone": {"disable": true}}}"#;
    write(&env, "work/opencode.json", settings);
    write(&env, "work/.opencode/opencode.jsonc", r#"{"permission": {"edit": "sometimes"}}"#);
    write(&env, "work/sub/.opencode/agent/theirs.md", "Go.\n");
    write(&env, "work/sub/.opencode/agent/gone.md", "Go.\n");
    fs::create_dir_all(env.outside("work/.git/refs")).unwrap();
    let run = |args: &[&str]| {
        let mut command = env.atomic(args);
        command.current_dir(env.outside("work/sub"));
        ran(command)
    };
    let shown = run(&["show", "theirs"]);
    let line = "can read files; cannot edit files, run commands, use the web\n";
    assert!(shown.stdout.contains(line), "{shown:?}");
    let shown = run(&["show", "gone"]);
    assert_ne!(shown.code, Some(0), "{shown:?}");
    let doctor = run(&["doctor"]).stdout;
    assert!(doctor.contains("`edit: \"sometimes\"` is not allow, ask or deny"), "{doctor}");
    let checked = run(&["check", "../.opencode/opencode.jsonc"]);
    assert!(checked.stdout.contains("is not allow, ask or deny"), "{checked:?}");
    write(&env, "home/.config/opencode/config.json", "{");
    let shown = run(&["show", "theirs"]);
    assert!(shown.stdout.contains("cannot read files, edit files, run commands"), "{shown:?}");
    let checked =
        run(&["check", env.outside("home/.config/opencode/config.json").to_str().unwrap()]);
    assert!(checked.stdout.contains("it is not valid JSON"), "{checked:?}");
}

/// An `opencode.json` that is there and cannot be opened may deny any tool.
#[test]
fn settings_that_cannot_be_opened_deny_and_are_reported() {
    let env = TestEnv::new();
    write(&env, "work/.opencode/agent/theirs.md", "Go.\n");
    write(&env, "work/.opencode/command/theirs-too.md", "Go.\n");
    let made = Command::new("mkfifo").arg(env.outside("work/opencode.json")).status().unwrap();
    assert!(made.success());
    for name in ["theirs", "theirs-too"] {
        let ran = env.run(["show", name]);
        assert!(ran.stdout.contains("none (by opencode.json)"), "{ran:?}");
        assert!(ran.stdout.contains("cannot read files, edit files, run commands"), "{ran:?}");
    }
    let list = env.run(["list"]);
    assert!(list.stderr.contains("theirs-too"), "{list:?}");
    let doctor = env.run(["doctor"]);
    let text = "opencode.json: left out: is a FIFO, not a regular file; OpenCode's agents and \
                commands have no tools until it can be read";
    assert!(doctor.stdout.contains(text), "{doctor:?}");
}

/// Every start says in one line that something is denied because it is not understood.
#[test]
fn tools_that_are_not_known_are_reported_at_the_start() {
    let env = TestEnv::new();
    write(&env, "work/.claude/agents/one.md", "---\ntools: Read, Frobnicate\n---\nGo.\n");
    let line = |ran: &str| {
        ran.lines().filter(|line| line.contains("are denied: a tool is unknown")).count()
    };
    let alone = env.run(["list"]);
    assert!(alone.stderr.contains("some tools of one are denied"), "{alone:?}");
    write(&env, "work/.opencode/agent/two.md", "---\npermission: {edit: never}\n---\nGo.\n");
    write(&env, "work/.opencode/agent/three.md", "---\npermission:\n---\nGo.\n");
    let several = env.run(["list"]);
    assert_eq!(line(&several.stderr), 1, "{several:?}");
    assert!(several.stderr.contains("and 2 others"), "{several:?}");
    let doctor = env.run(["doctor"]).stdout;
    for text in [
        "one: no backend has a tool `frobnicate`, so it allows nothing",
        "`permission` cannot be read, so that is denied: `edit: \"never\"` is not allow, ask or deny",
        "`permission` cannot be read, so it may use none: nothing stands behind it",
    ] {
        assert!(doctor.contains(text), "{text}: {doctor}");
    }
}

/// An agent that cannot do the work of a role is refused before anything is paid for.
#[test]
fn a_replacement_that_cannot_do_the_roles_work_is_refused() {
    for (role, place, head, missing) in [
        ("worker", "work/.atomic/agents/worker.md", "tools: Read, Grep", "edit and bash"),
        ("worker", "work/.atomic/agents/worker.md", "permission: {edit: deny}", "edit"),
        ("worker", "work/.atomic/agents/worker.md", "tools: {bash: false}", "bash"),
        ("worker", "work/.atomic/agents/worker.md", "permissionMode: plan", "edit and bash"),
        ("worker", "home/.atomic/agents/worker.md", "tools:", "edit and bash"),
        ("planner", "work/.atomic/agents/planner.md", "tools: WebFetch", "read"),
        ("reviewer", "home/.atomic/agents/reviewer.md", "tools: []", "read"),
        ("worker", "home/.copilot/agents/mine.agent.md", "tools: [read, search]", "edit and bash"),
        ("worker", "home/.config/opencode/agent/mine.md", "permission: deny", "edit and bash"),
    ] {
        let env = TestEnv::new();
        write(&env, place, &format!("---\n{head}\n---\nGo.\n"));
        if place.contains("mine") {
            write(&env, "home/.atomic/settings.json", "{\"ralph.worker\": \"mine\"}");
        }
        let ran = env.ralph(&Scene::of(&[("#1", &[])]).toml(), &["--check", "true", "--trust"]);
        assert_eq!(ran.code, Some(2), "{place} {head}: {ran:?}");
        let shown = place.replace("work/", "").replace("home/", "~/");
        let text = format!(
            "error: {role}: {shown} cannot do this role's work: its tools do not include {missing}"
        );
        assert!(ran.stderr.contains(&text), "{text}: {}", ran.stderr);
        assert!(!env.work().join(".ralph/sessions").exists(), "nothing is begun: {place} {head}");
    }
}

/// A replacement with the tools of its role works; on resume it has to have them, too.
#[test]
fn a_replacement_needs_its_tools_on_resume_as_well() {
    let env = TestEnv::new();
    let file = "home/.atomic/agents/worker.md";
    write(&env, file, "---\ntools: Read, Write, Bash(git:*)\n---\nYou are hasty.\n");
    let scene = Scene::of(&[("#1", &[])])
        .turn(worker("Task #1").system("You are hasty.").does([gave_up("too hasty")]))
        .turn(worker("Task #1").system("You are careful.").does([done("with care")]))
        .turn(reviewer().does([review(&[])]));
    let failed = env.ralph(&scene.toml(), &["--check", "true", "--max-attempts", "1"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    write(&env, file, "---\ntools: Read\n---\nYou are careful.\n");
    let refused = env.run(["resume", "last"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("do not include edit and bash"), "{refused:?}");
    write(&env, file, "You are careful.\n");
    let ended = env.run(["resume", "last"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
