//! Trust in a repository: asked once, remembered by definition, the same in every command.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::acp::Raw;
use crate::env::{TestEnv, ran};
use crate::scene::{Scene, agent, ask, done, review, reviewer, run, say, worker};
use crate::terminal::typing;

pub(crate) const HOOKS: &str =
    r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "./x"}]}]}}"#;

pub(crate) fn write(env: &TestEnv, path: &str, text: &str) {
    let path = env.outside(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A repository with a hook.
pub(crate) fn hooked() -> TestEnv {
    let env = TestEnv::new();
    git(&env.work(), &["init", "-q"]);
    write(&env, "work/.claude/settings.json", HOOKS);
    env
}

pub(crate) fn git(folder: &Path, args: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
    assert!(git.current_dir(folder).args(args).status().unwrap().success(), "{args:?}");
}

pub(crate) fn turn(env: &TestEnv, more: &[&str]) -> Command {
    let script = env.script(&Scene::default().turn(agent("assistant").does([say("Hi.")])).toml());
    let mut command = env.atomic(["-p", "Hello", "--script"]);
    command.arg(script).args(more);
    command
}

/// Whether a turn in this folder uses what the project defines.
pub(crate) fn is_trusted_in(env: &TestEnv, folder: &Path) -> bool {
    let mut command = turn(env, &[]);
    command.current_dir(folder);
    let ended = ran(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let sessions = folder.join(".atomic/sessions");
    let session = fs::read_dir(&sessions).unwrap().map(|entry| entry.unwrap().path());
    let session = session.into_iter().find(|path| path.is_dir()).unwrap();
    let journal = fs::read_to_string(session.join("journal.jsonl")).unwrap();
    fs::remove_dir_all(&sessions).unwrap();
    let first: Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    let is_trusted = first["settings"]["trusted"].as_bool().unwrap();
    assert_eq!(!is_trusted, ended.stderr.contains("not used, because"), "{ended:?}");
    is_trusted
}

pub(crate) fn is_trusted(env: &TestEnv) -> bool {
    is_trusted_in(env, &env.work())
}

#[test]
fn the_question_lists_what_trust_would_change() {
    let env = hooked();
    git(&env.work(), &["config", "core.fsmonitor", "./spy"]);
    write(&env, "work/.mcp.json", r#"{"mcpServers": {"db": {"command": "npx", "args": ["db"]}}}"#);
    write(&env, "work/.atomic/settings.json", r#"{"model": "opus"}"#);
    write(&env, "work/.atomic/agents/worker.md", "You work.");
    write(&env, "work/Makefile", "test:\n\ttrue\n");
    write(&env, "work/AGENTS.md", "Be kind.");
    let asked = typing(&turn(&env, &[]), &[("1, 2 or 3: ", "1\n", &|| ())]);
    assert_eq!(asked.code, Some(0), "{asked:?}");
    for listed in [
        "Stop: ./x  (.claude/settings.json)",
        "db: npx db  (.mcp.json)",
        "core.fsmonitor: ./spy  (.git/config)",
        "make test",
        "worker: replaces the built-in one  (.atomic/agents/worker.md)",
        "model: \"opus\"  (.atomic/settings.json)",
        "AGENTS.md",
    ] {
        assert!(asked.stdout.contains(listed), "{listed}: {}", asked.stdout);
    }
    let again = typing(&turn(&env, &[]), &[]);
    assert!(!again.stdout.contains("1, 2 or 3"), "{again:?}");
    // What a definition runs, and a text, may change.
    write(&env, "work/x", "#!/bin/sh\n");
    write(&env, "work/Makefile", "test:\n\tfalse\n");
    write(&env, "work/AGENTS.md", "Be quick.");
    assert!(is_trusted(&env));
}

#[test]
fn a_changed_definition_is_refused_where_nobody_can_be_asked() {
    let env = hooked();
    assert!(!is_trusted(&env));
    assert_eq!(env.run(["trust", "."]).code, Some(0));
    assert!(is_trusted(&env));
    let changes = [
        (".claude/settings.json", HOOKS.replace("./x", "./y"), "changed  Stop: ./y"),
        (".mcp.json", r#"{"mcpServers": {"a": {"command": "b"}}}"#.to_owned(), "added    a: b"),
        (".claude/settings.json", "{}".to_owned(), "removed  hook .claude/settings.json Stop"),
    ];
    for (file, text, difference) in changes {
        write(&env, &format!("work/{file}"), &text);
        let refused = ran(turn(&env, &[]));
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(difference), "{difference}: {}", refused.stderr);
        assert_eq!(ran(turn(&env, &["--no-trust"])).code, Some(0));
        assert_eq!(ran(turn(&env, &["--trust"])).code, Some(0));
        assert_eq!(ran(turn(&env, &[])).code, Some(2), "both were for that time only");
        fs::remove_dir_all(env.work().join(".atomic")).unwrap();
        assert_eq!(env.run(["trust", "."]).code, Some(0));
        assert!(is_trusted(&env), "{difference}");
    }
}

#[test]
fn subfolders_and_worktrees_follow_their_repository() {
    let env = hooked();
    git(&env.work(), &["add", "."]);
    git(&env.work(), &["commit", "-q", "-m", "one"]);
    git(&env.work(), &["worktree", "add", "-q", "../tree"]);
    let inner = env.work().join("a/b");
    fs::create_dir_all(&inner).unwrap();
    let all = [env.work(), inner.clone(), env.outside("tree")];
    assert!(all.iter().all(|folder| !is_trusted_in(&env, folder)));
    let mut trust = env.atomic(["trust", "."]);
    trust.current_dir(&inner);
    assert_eq!(ran(trust).code, Some(0));
    assert!(all.iter().all(|folder| is_trusted_in(&env, folder)));
    // What is new in a subfolder is new, and only there.
    write(&env, "work/a/.claude/settings.json", HOOKS);
    let mut below = turn(&env, &[]);
    below.current_dir(&inner);
    assert_eq!(ran(below).code, Some(2));
    assert!(is_trusted(&env));
}

/// A repository is trusted at its root. A folder that was never worked in follows as far as it
/// brings nothing that was not listed.
#[test]
fn folders_of_a_trusted_repository_follow_until_they_bring_something_new() {
    let env = TestEnv::new();
    git(&env.work(), &["init", "-q"]);
    let npm = r#"{"scripts": {"test": "true"}}"#;
    for folder in ["", "same/", "new/"] {
        write(&env, &format!("work/{folder}package.json"), npm);
        write(&env, &format!("work/{folder}CLAUDE.md"), "Be kind.");
    }
    write(&env, "work/.atomic/agents/worker.md", "You work.");
    write(&env, "work/new/Makefile", "test:\n\ttrue\n");
    write(&env, "work/new/.mcp.json", r#"{"mcpServers": {"db": {"command": "npx"}}}"#);
    assert_eq!(env.run(["trust", "."]).code, Some(0));
    let (same, new) = (env.work().join("same"), env.work().join("new"));
    assert!(is_trusted_in(&env, &same));
    // Nothing that was trusted is there to protect, so the run goes on without what is new.
    assert!(!is_trusted_in(&env, &new));
    let asked_in_new = |answer: &'static str| {
        let mut asked = turn(&env, &[]);
        asked.current_dir(&new);
        typing(&asked, &[("1, 2 or 3: ", answer, &|| ())])
    };
    let asked = asked_in_new("3\n");
    let (question, _) = asked.stdout.split_once("1, 2 or 3: ").unwrap();
    assert!(question.contains("make test") && question.contains("db: npx"), "{question}");
    assert!(!question.contains("npm test"), "was listed at the root: {question}");
    assert!(!is_trusted_in(&env, &new));
    assert!(is_trusted(&env) && is_trusted_in(&env, &same), "declined for the new folder only");
    // Another definition asks again.
    write(&env, "work/new/.mcp.json", r#"{"mcpServers": {"db": {"command": "npm"}}}"#);
    assert_eq!(asked_in_new("1\n").code, Some(0));
    assert!(is_trusted_in(&env, &new) && is_trusted(&env) && is_trusted_in(&env, &same));
    write(&env, "work/new/.mcp.json", r#"{"mcpServers": {"db": {"command": "bun"}}}"#);
    let refused = |folder: &Path| {
        let mut command = turn(&env, &[]);
        command.current_dir(folder);
        ran(command).code == Some(2)
    };
    assert!(refused(&new) && is_trusted(&env), "changed since it was trusted");
    // A hook that is trusted in the whole repository may be there to protect.
    write(&env, "work/.claude/settings.json", HOOKS);
    assert_eq!(env.run(["trust", "."]).code, Some(0));
    assert!(is_trusted_in(&env, &same));
    write(&env, "work/same/.mcp.json", r#"{"mcpServers": {"a": {"command": "b"}}}"#);
    assert!(refused(&same));
    // A folder of texts has more than texts.
    let texts = env.work().join("texts");
    write(&env, "work/texts/.claude/agents/a.md", "---\nhooks: {}\n---\n");
    assert!(refused(&texts));
}

#[test]
fn withdrawal_holds_at_once_and_over_folders_that_are_trusted() {
    let env = hooked();
    write(&env, "home/.atomic/settings.json", r#"{"trusted_folders": ["~/../work"]}"#);
    assert!(is_trusted(&env));
    assert_eq!(env.run(["trust", ".", "--withdraw"]).code, Some(0));
    assert!(!is_trusted(&env));
    assert_eq!(env.run(["trust", "."]).code, Some(0));
    assert!(is_trusted(&env));
    write(&env, "home/.atomic/settings.json", r#"{"trusted_folders": ["work", "~/elsewhere"]}"#);
    assert_eq!(env.run(["trust", ".", "--withdraw"]).code, Some(0));
    assert!(!is_trusted(&env), "a relative path is no folder");
}

#[test]
fn trust_in_a_deleted_folder_can_be_withdrawn() {
    let env = hooked();
    let work = env.work();
    assert_eq!(env.run(["trust", "."]).code, Some(0));
    let (aside, text) = (env.outside("aside"), work.to_str().unwrap());
    let elsewhere = |args: &[&str]| {
        let mut command = env.atomic(args);
        command.current_dir(env.outside("home"));
        ran(command)
    };
    fs::rename(&work, &aside).unwrap();
    let unknown = elsewhere(&["trust", "../never", "--withdraw"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("../never: no such file or folder"), "{unknown:?}");
    let withdrawn = elsewhere(&["trust", "../work", "--withdraw"]);
    assert_eq!(withdrawn.code, Some(0), "{withdrawn:?}");
    assert!(withdrawn.stdout.contains(text), "{withdrawn:?}");
    fs::rename(&aside, &work).unwrap();
    assert!(!is_trusted(&env), "a folder in the same place is not trusted");
}

/// The question of trust shows every character of a definition, or that there is one.
#[test]
fn definitions_hide_no_character() {
    let env = TestEnv::new();
    let hidden = r"a\u200bb\u2800c\u202ed\u2028e\ufefff\u3164g";
    let servers = format!(r#"{{"mcpServers": {{"{hidden}": {{"command": "{hidden}"}}}}}}"#);
    write(&env, "work/.mcp.json", &servers);
    let listed = env.run(["trust", "."]).stdout;
    assert!(listed.contains("a�b�c�d�e�f�g: "), "{listed}");
    let invisible =
        |c: char| ('\u{200b}'..='\u{206f}').contains(&c) || "\u{2800}\u{feff}\u{3164}".contains(c);
    assert!(!listed.contains(invisible), "{listed}");
}

/// A run that was trusted once goes on as it began, until trust is taken back or something changes.
#[test]
fn a_run_that_was_trusted_once_is_resumed_so() {
    let env = hooked();
    let scene = Scene::of(&[("#1", &[])])
        .turn(worker("Task #1").without("The user's answer").does([ask("Which?", &["A", "B"])]))
        .turn(worker("Task #1").does([done("as asked")]))
        .turn(reviewer().does([review(&[])]))
        .toml();
    let resumed = |args: &[&str]| {
        let ended = env.run([&["resume", "last"], args].concat());
        let facts = env.facts();
        let newest = facts.iter().rev().find(|fact| fact["type"] == "session_resumed");
        (ended.code, newest.map(|fact| fact["settings"]["trusted"].clone()))
    };
    let began = env.ralph(&scene, &["--trust", "--check", "true"]);
    assert_eq!(began.code, Some(3), "{began:?}");
    assert_eq!(resumed(&[]), (Some(3), Some(true.into())));
    write(&env, "work/.mcp.json", r#"{"mcpServers": {"a": {"command": "b"}}}"#);
    assert_eq!(resumed(&[]), (Some(3), Some(false.into())), "a server was added");
    fs::remove_file(env.work().join(".mcp.json")).unwrap();
    assert_eq!(resumed(&["--trust"]), (Some(3), Some(true.into())));
    assert_eq!(env.run(["trust", ".", "--withdraw"]).code, Some(0));
    assert_eq!(resumed(&[]), (Some(3), Some(false.into())), "withdrawn");
}

/// A run in an empty folder makes its own checks, and may run them after a pause, too.
#[test]
fn a_run_may_use_the_checks_it_has_made_itself() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[]), ("#2", &["#1"])])
        .turn(worker("Task #1").does([
            run("printf 'test:\\n\\techo checked >> \"$$LEDGER\"\\n' > Makefile"),
            done("made a Makefile"),
        ]))
        .turn(worker("Task #2").without("The user's answer").does([ask("Which?", &["A", "B"])]))
        .turn(worker("Task #2").does([done("as asked")]))
        .turn(reviewer().does([review(&[])]))
        .toml();
    assert_eq!(env.ralph(&scene, &[]).code, Some(3));
    assert_eq!(env.ledger(), ["checked"]);
    let ended = env.run(["answer", "last", "A", "--resume"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(env.ledger(), ["checked", "checked"]);
}

#[test]
fn what_atomic_wrote_for_the_user_is_trusted_as_written() {
    let env = TestEnv::new();
    assert_eq!(env.run(["new", "workflow", "mine"]).code, Some(0));
    let drawn = env.run(["graph", "mine"]);
    assert_eq!(drawn.code, Some(0), "{drawn:?}");
    assert_eq!(env.run(["config", "set", "check", "true"]).code, Some(0));
    assert!(is_trusted(&env));
    assert_eq!(env.run(["config", "get", "check"]).stdout, "true\n");
    let path = env.work().join(".atomic/workflows/mine.ts");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}\n// changed\n")).unwrap();
    assert_eq!(env.run(["graph", "mine"]).code, Some(1), "somebody has changed it");
    let refused = env.run(["new", "workflow", "ralph"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--force"), "{refused:?}");
    assert_eq!(env.run(["new", "workflow", "ralph", "--force"]).code, Some(0));
}

#[test]
fn the_flag_that_was_renamed_says_so() {
    let env = TestEnv::new();
    let refused = ran(turn(&env, &["--sandbox"]));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--allow-root"), "{refused:?}");
    let mut by_variable = turn(&env, &[]);
    by_variable.env(format!("ATOMIC_{}", "SANDBOX"), "true");
    let refused = ran(by_variable);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("ATOMIC_ALLOW_ROOT"), "{refused:?}");
}

/// Sends a prompt from an editor and answers the question about trust with one of these, in turn.
/// Returns how many were asked, and the answer to the prompt.
fn prompted(raw: &mut Raw, id: u32, session: &str, answer: Option<&str>) -> (usize, Value) {
    raw.prompt(id, session, "/worker Build it");
    let mut asked = 0;
    loop {
        let heard = raw.hear(|heard| heard.get("id").is_some());
        if heard["id"] == id && heard.get("method").is_none() {
            return (asked, heard);
        }
        asked += 1;
        let options = heard["params"]["options"].as_array().unwrap();
        let ids: Vec<&str> = options.iter().map(|one| one["optionId"].as_str().unwrap()).collect();
        assert_eq!(ids, ["trust", "once", "without"]);
        let outcome = match answer {
            Some(option) => json!({"outcome": "selected", "optionId": option}),
            None => json!({"outcome": "cancelled"}),
        };
        let told = json!({"jsonrpc": "2.0", "id": heard["id"], "result": {"outcome": outcome}});
        raw.write(&told.to_string());
    }
}

/// Whether the newest session in the project uses what the project defines.
fn was_trusted(env: &TestEnv) -> bool {
    let facts = env.facts();
    fs::remove_dir_all(env.session()).unwrap();
    facts[0]["settings"]["trusted"].as_bool().unwrap()
}

#[test]
fn an_editor_is_asked_once_until_a_definition_changes() {
    // The answer, whether it counts, and whether the next editor is asked again.
    let table = [
        (Some("trust"), true, false),
        (Some("once"), true, true),
        (Some("without"), false, false),
        (None, false, true),
    ];
    for (answer, is_used, is_asked_again) in table {
        let env = hooked();
        let script = Scene::default().turn(worker("Build").does([done("as asked")])).toml();
        let mut raw = Raw::start(&env, &script);
        raw.initialize();
        let session = raw.open(&env);
        let (asked, ended) = prompted(&mut raw, 3, &session, answer);
        assert_eq!((asked, was_trusted(&env)), (1, is_used), "{answer:?}: {ended}");
        let (asked, _) = prompted(&mut raw, 4, &session, answer);
        assert_eq!((asked, was_trusted(&env)), (0, is_used), "{answer:?}");
        // What was answered does not hold for what was not there yet.
        write(&env, "work/.mcp.json", r#"{"mcpServers": {"a": {"command": "b"}}}"#);
        let (asked, ended) = prompted(&mut raw, 5, &session, None);
        assert_eq!(asked, 1, "{answer:?}");
        if answer == Some("trust") {
            let refused = ended["error"]["message"].as_str().unwrap();
            assert!(refused.contains("added    a: b"), "{refused}");
        } else {
            assert!(!was_trusted(&env), "{answer:?}");
        }
        fs::remove_file(env.work().join(".mcp.json")).unwrap();
        raw.close_input();
        raw.process.end();
        let mut next = Raw::start(&env, &script);
        next.initialize();
        let session = next.open(&env);
        let (asked, _) = prompted(&mut next, 3, &session, None);
        assert_eq!(asked == 1, is_asked_again, "{answer:?}");
        next.close_input();
        next.process.end();
    }
}

/// Definitions that have changed may have been there to protect, so the end of the input is not a
/// wish to go on without them.
#[test]
fn without_an_answer_changed_definitions_are_refused() {
    let env = hooked();
    assert_eq!(env.run(["trust", "."]).code, Some(0));
    write(&env, "work/.claude/settings.json", &HOOKS.replace("./x", "./y"));
    let ended = typing(&turn(&env, &[]), &[("1, 2 or 3: ", "\u{4}", &|| ())]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stdout.contains("changed  Stop: ./y"), "{ended:?}");
}

/// A program that the chat has open was started with trust, and does not keep it.
#[test]
fn withdrawal_holds_in_an_open_chat() {
    let env = TestEnv::new();
    git(&env.work(), &["init", "-q"]);
    let sign = env.outside("sign");
    let alias = format!("!echo ran >> {}", sign.display());
    git(&env.work(), &["config", "alias.st", &alias]);
    assert_eq!(env.run(["trust", "."]).code, Some(0));
    let script = Scene::default().turn(agent("assistant").does([run("git st"), say("Hi.")]));
    let mut raw = Raw::start(&env, &script.toml());
    raw.initialize();
    let session = raw.open(&env);
    let mut prompt = |id: u32| {
        raw.prompt(id, &session, "Hello");
        loop {
            let heard = raw.hear(|heard| heard.get("id").is_some());
            if heard["id"] == id && heard.get("method").is_none() {
                break;
            }
            let outcome = json!({"outcome": "cancelled"});
            let told = json!({"jsonrpc": "2.0", "id": heard["id"], "result": {"outcome": outcome}});
            raw.write(&told.to_string());
        }
        fs::read_to_string(&sign).unwrap_or_default().lines().count()
    };
    assert_eq!(prompt(3), 1, "the control does nothing");
    assert_eq!(env.run(["trust", ".", "--withdraw"]).code, Some(0));
    assert_eq!(prompt(4), 1, "the program was kept");
    raw.close_input();
    raw.process.end();
}
