//! What `doctor` finds, and that finding it out does no harm.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::env::{Ran, TestEnv, ran};
use crate::process::{Nonce, Running};

/// Writes a program that runs these lines of shell.
fn program(folder: &Path, name: &str, lines: &str) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{lines}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// `atomic doctor` that finds programs in the test's own folder `bin` and nowhere else.
fn doctor(env: &TestEnv, more: &[&str]) -> Command {
    let mut command = env.atomic(["doctor"].iter().chain(more));
    // What is said to root is not said to everybody.
    command.env("PATH", env.outside("bin")).env("ATOMIC_ALLOW_ROOT", "true");
    command
}

/// A place with a git that works, and one agent program.
fn with(lines: &str) -> TestEnv {
    let env = TestEnv::new();
    program(&env.outside("bin"), "git", "echo git version 2.47.3");
    program(&env.outside("bin"), "claude", lines);
    env
}

fn write(env: &TestEnv, path: &str, text: &str) {
    let path = env.work().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// What was printed, with the test's own folder left out.
fn told(env: &TestEnv, ran: &Ran) -> String {
    assert_eq!(ran.stderr, "");
    ran.stdout.replace(&env.outside("").display().to_string(), "ROOT/")
}

/// The lines about a word.
fn lines_about<'t>(text: &'t str, word: &str) -> Vec<&'t str> {
    text.lines().map(str::trim).filter(|line| line.contains(word)).collect()
}

#[test]
fn a_machine_without_anything_wrong() {
    let env = with("echo '2.1.325 (Claude Code)'");
    program(&env.outside("bin"), "opencode", "echo a warning >&2; echo 1.18.33");
    program(&env.outside("bin"), "copilot", "echo v1.0.102; echo Commit: abc");
    write(&env, ".claude/agents/a.md", "---\ntools: Read, mcp__x__y\nmodel: opus\n---\nHello\n");
    write(&env, ".github/skills/b/SKILL.md", "---\nname: b\n---\nHello\n");
    let ran = ran(doctor(&env, &[]));
    assert_eq!(ran.code, Some(0));
    insta::assert_snapshot!(told(&env, &ran));
    assert!(!env.outside("home/.atomic").exists(), "looking changes nothing");
}

#[test]
fn everything_that_can_be_wrong_with_files() {
    let env = with("echo 2.1.325");
    write(&env, ".claude/agents/unreadable.md", "---\nname: &a [*a\n---\nHello\n");
    write(&env, ".claude/agents/README.md", "These are our agents.\n");
    write(
        &env,
        ".claude/agents/odd.md",
        "---\nname: odd\nmodel: sonet\ntools:\n  - Read\n  - Raed\n  - github/issues\ncolr: red\n---\nHello\n",
    );
    write(
        &env,
        ".opencode/agent/odd.md",
        "---\nname: odd\ntools:\n  frobnicate: false\n---\nHello\n",
    );
    write(&env, ".claude/skills/empty/notes.txt", "nothing");
    write(&env, ".atomic/workflows/broken.json", "{\"nodes\": [}");
    write(&env, ".atomic/workflows/later.ts", "export default 1;");
    fs::create_dir_all(env.outside("home/.atomic/workflows")).unwrap();
    fs::write(env.outside("home/.atomic/workflows/start.json"), "{\"start\": \"a\"}").unwrap();
    let ran = ran(doctor(&env, &[]));
    assert_eq!(ran.code, Some(1));
    insta::assert_snapshot!(told(&env, &ran));
}

/// As many as fit into a file: each of them is looked for in all of it.
#[test]
fn of_many_tools_that_nobody_has_the_first_are_told() {
    let env = with("echo 2.1.325");
    let tools: Vec<String> = (0..5_000).map(|n| format!("\"zq{n}x\": false")).collect();
    let tools = tools.join(",\n");
    let agent = format!("{{\"agent\": {{\"a\": {{\"prompt\": \"x\", \"tools\": {{{tools}}}}}}}}}");
    write(&env, "opencode.json", &agent);
    let ran = ran(doctor(&env, &[]));
    assert_eq!(ran.code, Some(0));
    let mut said = lines_about(&ran.stdout, "opencode.json");
    said.retain(|line| line.starts_with("warning: opencode.json"));
    assert_eq!(said.len(), 9, "{said:?}");
    let last = "warning: opencode.json: 4992 more tools and models that nobody has";
    assert_eq!(said[8], last);
}

/// What looks odd and is as it should be, and a settings file that is neither.
#[test]
fn what_is_meant_so_is_not_told_and_broken_settings_are_a_problem() {
    let env = with("echo 2.1.325");
    write(&env, ".atomic/workflows/.gitkeep", "");
    write(
        &env,
        ".claude/agents/worker.md",
        "---\ndescription: A raedy one\nname: worker\ntools: Raed\n---\nHello\n",
    );
    let fine = ran(doctor(&env, &[]));
    assert_eq!(fine.code, Some(0), "{fine:?}");
    assert!(!fine.stdout.contains(".gitkeep"), "{}", fine.stdout);
    // Ours are there to be replaced.
    assert!(fine.stdout.contains("ok: every name means what it says"), "{}", fine.stdout);
    // The line of the tool, not that of a word which begins like it.
    assert!(fine.stdout.contains("worker.md:4: worker: no backend has"), "{}", fine.stdout);
    write(&env, ".atomic/settings.json", "{\n  \"workers\": \"four\"\n}\n");
    let broken = ran(doctor(&env, &[]));
    assert_eq!(broken.code, Some(1), "{broken:?}");
    let said = lines_about(&broken.stdout, "settings.json:");
    assert!(
        said.len() == 1 && said[0].starts_with("problem: .atomic/settings.json:2: "),
        "{said:?}"
    );
}

/// What a program does when it is asked, and what is said about it.
#[test]
fn programs_that_do_not_answer_as_they_should() {
    let table = [
        ("exit 0", "prints nothing for --version"),
        ("echo", "prints nothing for --version"),
        ("printf 'h\\033[2Jello\\377\\n'", r#"prints no version: "h\u{1b}[2Jello�""#),
        ("echo first; echo 'no license' >&2; exit 3", r#"fails (exit status: 3: "no license")"#),
        ("exit 1", "fails (exit status: 1)"),
        ("kill -9 $$", "fails (signal: 9 (SIGKILL))"),
        ("yes", "prints more than 16 KiB for --version"),
        ("echo 1.2.3; head -c 1000000 /dev/zero; exit 0", "prints more than 16 KiB for --version"),
        ("exec sleep 1000", "does not answer within 5 s"),
        ("trap '' TERM; while true; do sleep 1000; done", "does not answer within 5 s"),
    ];
    for (lines, said) in table {
        let env = with(lines);
        let ran = ran(doctor(&env, &[]));
        assert_eq!(ran.code, Some(0), "a program that is broken is a warning: {lines}");
        let claude = env.outside("bin/claude");
        let expected = format!("warning: claude: {} {said}", claude.display());
        assert_eq!(lines_about(&ran.stdout, "claude: "), [expected], "{lines}");
        assert!(ran.stdout.contains("ok: git 2.47.3"), "{lines}: {}", ran.stdout);
    }
}

#[test]
fn a_program_that_cannot_be_run_is_told_as_such() {
    let env = with("");
    fs::write(env.outside("bin/claude"), "#!/no/such/interpreter\n").unwrap();
    let said = lines_about(&ran(doctor(&env, &[])).stdout, "claude: ").join("\n");
    assert!(said.contains("fails (exit status: 127"), "{said}");
    // What nobody may run is not there.
    fs::set_permissions(env.outside("bin/claude"), fs::Permissions::from_mode(0o644)).unwrap();
    let ran = ran(doctor(&env, &[]));
    assert!(ran.stdout.contains("note: claude is not installed"), "{}", ran.stdout);
}

#[test]
fn nothing_that_was_asked_is_left_behind() {
    // One that never answers, with processes that try to get away.
    let nonce = Nonce::new();
    let env = with(&nonce.scatter_and_hang());
    let ran_late = ran(doctor(&env, &[]));
    nonce.is_gone();
    assert!(ran_late.stdout.contains("does not answer within 5 s"), "{}", ran_late.stdout);

    // One that answers and leaves them.
    let nonce = Nonce::new();
    let env = with(&format!("echo 2.1.325; {}", nonce.scatter_and_leave()));
    let ran = ran(doctor(&env, &[]));
    nonce.is_gone();
    assert!(ran.stdout.contains("ok: claude 2.1.325"), "{}", ran.stdout);

    // And when `doctor` itself is killed.
    let nonce = Nonce::new();
    let env = with(&nonce.scatter_and_hang());
    let running = Running::start(doctor(&env, &[]));
    nonce.sleeps(4);
    running.kill();
    nonce.is_gone();
}

/// All are asked at the same time: each waits for the two others to have begun.
#[test]
fn programs_are_asked_side_by_side() {
    let env = with("");
    let names = ["claude", "opencode", "copilot"];
    for name in names {
        let begun: Vec<String> =
            names.iter().map(|name| format!("[ -e {} ]", env.outside(name).display())).collect();
        let wait = format!(
            "touch {}; until {}; do sleep 0.01; done; echo 1.2.3",
            env.outside(name).display(),
            begun.join(" && ")
        );
        program(&env.outside("bin"), name, &wait);
    }
    let ran = ran(doctor(&env, &[]));
    for name in names {
        assert!(ran.stdout.contains(&format!(": {name} 1.2.3, ")), "{}", ran.stdout);
    }
}

#[test]
fn without_any_agent_program_there_is_still_the_demo() {
    let env = TestEnv::new();
    let ran = ran(doctor(&env, &[]));
    assert_eq!(ran.code, Some(0));
    insta::assert_snapshot!(told(&env, &ran));
}

/// A cloned repository must not run code by being looked at.
#[test]
fn nothing_in_the_project_is_run() {
    let env = TestEnv::new();
    let (work, met) = (env.work(), env.outside("met"));
    let trap = format!("touch {}; echo 6.6.6", met.display());
    for folder in [work.clone(), work.join("bin"), work.join("node_modules/.bin")] {
        for name in ["claude", "opencode", "copilot", "git", "interpreter-of-opencode"] {
            program(&folder, name, &trap);
        }
    }
    // Outside: a link that leads into the project, a program that is run by another one, and one
    // that does what it finds where it is run.
    let opencode = program(&env.outside("bin"), "opencode", "");
    fs::write(&opencode, "#!/usr/bin/env interpreter-of-opencode\n").unwrap();
    symlink(work.join("claude"), env.outside("bin/claude")).unwrap();
    program(&env.outside("bin"), "copilot", "[ ! -x ./claude ] || ./claude; echo 1.0");
    let path = format!(
        ":.:bin:{}:{}:{}",
        work.display(),
        work.join("node_modules/.bin").display(),
        env.outside("bin").display()
    );
    for folder in [work.clone(), work.join("bin")] {
        fs::create_dir_all(work.join(".git")).unwrap();
        let mut command = doctor(&env, &[]);
        command.current_dir(&folder).env("PATH", &path);
        let ran = ran(command);
        assert!(!met.exists(), "run in {}: {}", folder.display(), ran.stdout);
        let said = told(&env, &ran);
        assert!(said.contains("PATH has the folder `.`, which is another one"), "{said}");
        assert!(said.contains("PATH has the folder `bin`, which is another one"), "{said}");
        assert!(said.contains("ROOT/work/claude: not run, because it is in the project"), "{said}");
        assert!(said.contains("ROOT/bin/claude: not run, because it is in the project"), "{said}");
        let note = "note: claude is there, but only in the project, so it was not looked at";
        assert!(said.contains(note), "{said}");
        assert!(!said.contains("6.6.6"), "{said}");
    }
    let mut command = doctor(&env, &[]);
    command.env("PATH", &work);
    let said = told(&env, &ran(command));
    assert!(said.contains("warning: there is no agent program outside the project"), "{said}");
    assert!(!said.contains("is not installed"), "{said}");
}

/// In the home folder everything is below the current folder; that is no reason to leave it out.
#[test]
fn programs_of_the_user_are_run_in_the_home_folder_too() {
    let env = TestEnv::new();
    let home = env.outside("home");
    program(&home.join("bin"), "claude", "pwd >&2; echo 2.1.325");
    let mut command = doctor(&env, &[]);
    command.current_dir(&home).env("PATH", home.join("bin"));
    let ran = ran(command);
    assert!(ran.stdout.contains("ok: claude 2.1.325"), "{}", ran.stdout);
}

#[test]
fn a_home_folder_that_cannot_be_used_is_a_problem() {
    let env = with("echo 2.1.325");
    let file = env.outside("file");
    fs::write(&file, "").unwrap();
    let table: [(Option<&Path>, &str); 3] = [
        (None, "problem: there is no home folder"),
        (Some(&file), "cannot be written to: Not a directory"),
        (Some(Path::new("/proc/atomic")), "/proc/atomic cannot be written to: "),
    ];
    for (home, said) in table {
        let mut command = doctor(&env, &[]);
        match home {
            Some(home) => command.env("ATOMIC_HOME", home),
            None => command.env_remove("HOME"),
        };
        let ran = ran(command);
        assert_eq!(ran.code, Some(1), "{said}");
        assert!(ran.stdout.contains(said), "{said}: {}", ran.stdout);
    }
}

#[test]
fn every_remark_is_a_line_of_json() {
    let env = with("echo 2.1.325");
    write(&env, ".claude/agents/a\u{1b}[2J.md", "---\nname: a\ntools: Raed\n---\nHello\n");
    write(&env, ".claude/skills/x.txt", "");
    let ran_json = ran(doctor(&env, &["--json"]));
    assert_eq!(ran_json.code, Some(1));
    let remarks: Vec<Value> =
        ran_json.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = |severity: &str, part: &str| {
        let fits = |remark: &&Value| {
            remark["severity"] == severity && remark["text"].as_str().unwrap().contains(part)
        };
        remarks.iter().find(fits).unwrap_or_else(|| panic!("{part}: {remarks:?}"))
    };
    assert_eq!(told("ok", "claude 2.1.325")["check"], "Agent programs");
    let install = "install it: npm install -g @github/copilot";
    assert_eq!(told("note", "copilot is not installed")["remedy"], install);
    assert_eq!(told("ok", "claude would be used")["check"], "Backend");
    assert_eq!(told("warning", "raed")["remedy"], "did you mean `read`?");
    assert_eq!(told("problem", "x.txt")["check"], "Commands, skills and agents");
    // For people, nothing in a name acts on the terminal.
    let plain = ran(doctor(&env, &[]));
    assert!(!plain.stdout.contains('\u{1b}') && plain.stdout.contains("a\u{fffd}[2J.md:3"));
}

#[test]
fn a_terminal_gets_marks() {
    let env = with("echo 2.1.325");
    let command = doctor(&env, &[]);
    let mut script = Command::new("script");
    let line = format!("{} doctor", command.get_program().display());
    script.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(env.work()).env_clear();
    for (name, value) in command.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        script.env(name, value);
    }
    script.env("SHELL", "/bin/sh").env("TERM", "xterm").stdin(Stdio::null());
    script.env("PATH", format!("{}:/usr/bin:/bin", env.outside("bin").display()));
    let ran = ran(script);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for said in ["✓", "\u{1b}[1mAgent programs\u{1b}[0m", "claude 2.1.325"] {
        assert!(ran.stdout.contains(said), "{said}: {}", ran.stdout);
    }
}

/// Which program does the work, and who says so.
#[test]
fn the_program_that_would_be_used_is_told_with_the_reason() {
    let env = with("echo 2.1.325");
    let backend = |env: &TestEnv| {
        let ran = ran(doctor(env, &[]));
        let (_, rest) = ran.stdout.split_once("\nBackend\n").unwrap();
        let (section, _) = rest.split_once("\n\n").unwrap();
        let root = env.outside("").display().to_string();
        (ran.code, section.replace(&root, "ROOT/"))
    };
    let first = "  ok: claude would be used: the first that is installed".to_owned();
    assert_eq!(backend(&env), (Some(0), first));
    write(&env, ".atomic/settings.json", "{ \"backend\": \"claude\" }");
    assert_eq!(backend(&env).1, "  ok: claude would be used: the first that is installed");
    trust_everything(&env);
    let chosen = "  ok: claude would be used: project ROOT/work/.atomic/settings.json:1".to_owned();
    assert_eq!(backend(&env), (Some(0), chosen));
    fs::remove_file(env.outside("bin/claude")).unwrap();
    let (code, said) = backend(&env);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.starts_with("  problem: claude is to be used (project "), "{said}");
    assert!(said.contains("and not installed\n    help: install it: npm install -g"), "{said}");
    // A project never says what is run, trusted or not.
    write(&env, ".atomic/settings.json", "{ \"script\": \"turns.toml\" }");
    assert!(!backend(&env).1.contains("script"), "{:?}", backend(&env));
}

/// The user trusts every repository.
fn trust_everything(env: &TestEnv) {
    fs::create_dir_all(env.outside("home/.atomic")).unwrap();
    fs::write(env.outside("home/.atomic/settings.json"), "{\"trust\": true}").unwrap();
}

#[test]
fn a_program_that_is_too_old_is_told_with_what_is_needed() {
    let update = "Run 'copilot update' to check for updates.";
    let of_copilot =
        |version: &str| format!("echo 'GitHub Copilot CLI {version}.'; echo \"{update}\"");
    for (name, lines, version, needed) in [
        ("claude", "echo '2.1.196 (Claude Code)'", "2.1.196", Some("2.1.197")),
        ("opencode", "echo 1.18.32", "1.18.32", Some("1.18.33")),
        ("copilot", &of_copilot("1.0.101"), "1.0.101", Some("1.0.102")),
        ("copilot", &of_copilot("1.0.102"), "1.0.102", None),
        ("copilot", &of_copilot("1.0.103-2"), "1.0.103-2", None),
    ] {
        let env = with("echo 2.1.325");
        program(&env.outside("bin"), name, lines);
        let ran = ran(doctor(&env, &[]));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let path = env.outside("bin").join(name);
        let found = format!("{name} {version}, {}", path.display());
        let said = lines_about(&ran.stdout, &found).join("\n");
        let expected = match needed {
            Some(needed) => format!("warning: {found} is too old; {needed} or later is needed"),
            None => format!("ok: {found}"),
        };
        assert_eq!(said, expected);
    }
}

#[test]
fn servers_of_a_project_are_told_until_it_is_trusted() {
    let env = with("echo 2.1.325");
    let note = "note: MCP servers: a: x  (.mcp.json), not used";
    let told = |settings: &str| {
        fs::create_dir_all(env.outside("home/.atomic")).unwrap();
        fs::write(env.outside("home/.atomic/settings.json"), settings).unwrap();
        let ran = ran(doctor(&env, &[]));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        lines_about(&ran.stdout, ".mcp.json").contains(&note)
    };
    assert!(!told("{}"), "there is none");
    write(&env, ".mcp.json", "{}");
    assert!(!told("{}"), "there is none in it");
    write(&env, ".mcp.json", "{ \"mcpServers\": { \"a\": { \"command\": \"x\" } } }");
    assert!(told("{}"));
    assert!(!told("{ \"trust\": true }"));
}

#[test]
fn root_is_told_that_it_has_to_say_more() {
    let env = with("echo 2.1.325");
    let mut command = doctor(&env, &[]);
    command.env_remove("ATOMIC_ALLOW_ROOT");
    let ran = ran(command);
    let user = Command::new("id").arg("-u").output().unwrap();
    let is_root = user.stdout == b"0\n";
    let is_told = ran.stdout.contains("warning: claude refuses to skip permission prompts as root");
    assert_eq!((ran.code, is_told), (Some(0), is_root), "{}", ran.stdout);
}
