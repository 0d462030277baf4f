//! Commands, skills and agents of a project and of a user, as the program uses and shows them.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::engine::Project;
use crate::env::{TestEnv, ran};
use crate::scene::{Scene, done, plan, planner, review, reviewer, say};

fn write(env: &TestEnv, path: &str, text: &str) {
    let path = env.outside(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// What is printed, without the places of this test.
fn plain(env: &TestEnv, text: &str) -> String {
    let root = env.work();
    text.replace(&format!("{}/", root.parent().unwrap().display()), "")
}

/// The planner of the user, the worker of the project and our own reviewer.
#[test]
fn ralph_works_with_the_agents_of_the_project_and_of_the_user() {
    let env = TestEnv::new();
    write(
        &env,
        "work/.atomic/agents/worker.md",
        "---\nname: worker\nmodel: opus\n---\nYou are my worker.\n",
    );
    write(&env, "home/.atomic/agents/planner.md", "You are my planner.\n");
    // Agents of other programs do not take a role by having its name.
    write(&env, "work/.claude/agents/reviewer.md", "You are content with everything.\n");
    write(&env, "home/.copilot/agents/worker.agent.md", "You are another worker.\n");
    let scene = Scene::default()
        .turn(planner().system("You are my planner.").does([say(&plan(&[("#1", &[])]))]))
        .turn(
            crate::scene::worker("Task #1")
                .system("You are my worker.")
                .model("opus")
                .does([done("as asked")]),
        )
        .turn(
            reviewer().system("You review work that is said to be finished.").does([review(&[])]),
        );
    let args = ["--check", "true", "--model", "sonnet", "--trust"];
    let ran = env.ralph(&scene.toml(), &args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(env.tasks(), ["#1 completed"]);
    for told in [
        "worker: .atomic/agents/worker.md has this role",
        "planner: ~/.atomic/agents/planner.md has this role",
        "reviewer: .claude/agents/reviewer.md is not used for this role",
        "worker: ~/.copilot/agents/worker.agent.md is not used for this role",
    ] {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
    }
}

/// Without trust a project's worker works for nobody; the user can choose any agent for a role.
#[test]
fn a_role_is_replaced_by_a_trusted_project_or_by_the_user() {
    let env = TestEnv::new();
    write(&env, "work/.atomic/agents/worker.md", "You are my worker.\n");
    write(&env, "work/.claude/agents/mine.md", "You are a stranger.\n");
    write(&env, "home/.claude/agents/mine.md", "You are at home.\n");
    let scene = |name: &str, system: &str| {
        Scene::of(&[("#1", &[])])
            .turn(crate::scene::agent(name).system(system).does([done("as asked")]))
            .turn(reviewer().does([review(&[])]))
            .toml()
    };
    let untrusted = env.ralph(&scene("worker", "What to read first"), &["--check", "true"]);
    assert_eq!(untrusted.code, Some(0), "{untrusted:?}");
    assert!(untrusted.stderr.contains("agents (.atomic/agents/worker.md"), "{untrusted:?}");
    write(&env, "home/.atomic/settings.json", "{\"ralph.worker\": \"mine\"}");
    let chosen = env.ralph(&scene("mine", "You are at home."), &["--check", "true"]);
    assert_eq!(chosen.code, Some(0), "{chosen:?}");
    // An agent that only an untrusted project has is none.
    fs::remove_file(env.outside("home/.claude/agents/mine.md")).unwrap();
    let refused = env.ralph(&scene("mine", "You are"), &["--check", "true"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("ralph.worker: Agent not found: \"mine\""), "{refused:?}");
}

/// What an agent is told to be is read when it is needed: whoever mends a file and resumes gets
/// the mended one, from wherever they resume.
#[test]
fn an_agent_that_was_mended_is_used_on_resume() {
    let env = TestEnv::new();
    write(&env, "home/.atomic/agents/worker.md", "You are hasty.\n");
    let scene = Scene::of(&[("#1", &[])])
        .turn(
            crate::scene::worker("Task #1")
                .system("You are hasty.")
                .does([crate::scene::gave_up("too hasty")]),
        )
        .turn(crate::scene::worker("Task #1").system("You are careful.").does([done("with care")]))
        .rest();
    let failed = env.ralph(&scene.toml(), &["--check", "true", "--max-attempts", "1"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    write(&env, "home/.atomic/agents/worker.md", "You are careful.\n");
    let mut command = env.atomic(["resume", "last", "--all"]);
    command.current_dir(env.outside("home"));
    let ended = ran(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(env.tasks(), ["#1 completed"]);
}

#[test]
fn a_workflow_runs_skills_and_commands_by_name() {
    let project = Project::scripted(
        "[[turn]]\nprompt = [\"Deploy a b to a, again a b\"]\nmodel = \"haiku\"\ndo = [{ say = \"1\" }]\n\
         [[turn]]\nprompt = [\"The files this skill names are in\", \"skills/pdf\\n\\nRead [no arguments]\"]\n\
         do = [{ say = \"2\" }]\n\
         [[turn]]\nprompt = [\"Puts it all into one {prompt}.\\n\\nnow\"]\n\
         absent = [\"The files this skill names\"]\ndo = [{ say = \"3\" }]\n",
    );
    project.write(
        ".opencode/command/deploy.md",
        "---\nmodel: anthropic/claude-haiku-4-5\n---\nDeploy $ARGUMENTS to $1, again $ARGUMENTS",
    );
    project.write(
        ".claude/skills/pdf/SKILL.md",
        "---\ndescription: PDFs\naliases: acrobat\n---\nRead $ARGUMENTS",
    );
    project.write(".claude/skills/pdf/forms.md", "Forms");
    project.write(".github/skills/merge/SKILL.md", "Puts it all into one {prompt}.");
    let workflow = json!({"nodes": [
        {"type": "command", "id": "a", "command": "Deploy", "args": "a b"},
        {"type": "skill", "id": "b", "skill": "acrobat"},
        {"type": "skill", "id": "c", "skill": "merge", "args": "now"},
    ]});
    project.ends(&workflow, 0);
    let wrong = json!({"nodes": [{"type": "skill", "id": "b", "skill": "acrobt"}]});
    let ran = project.run(&wrong, &[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("did you mean \"acrobat\"?"), "{ran:?}");
}

/// The pages of a skill that ships with the program are where the agent is told they are.
#[test]
fn the_pages_of_a_skill_of_ours_can_be_read() {
    let project = Project::scripted(
        "[[turn]]\nprompt = [\"The files this skill names are in\", \"Build it\"]\n\
         do = [{ run = \"cat .atomic/sessions/*/skills/prompt-engineer/references/*.md > pages\" }, { say = \"ok\" }]\n",
    );
    let workflow = json!({"nodes": [
        {"type": "skill", "id": "a", "skill": "prompt-engineer", "args": "Build it"},
        {"type": "skill", "id": "b", "skill": "prompt-engineer", "args": "Build it again"},
    ]});
    project.ends(&workflow, 0);
    let assets =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/skills/prompt-engineer/references");
    let mut pages: Vec<_> =
        fs::read_dir(assets).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    let expected: String = pages.iter().map(|page| fs::read_to_string(page).unwrap()).collect();
    assert_eq!(project.read("pages"), expected);
}

#[test]
fn an_argument_that_a_command_needs_is_asked_for_by_name() {
    let project = Project::new();
    project.write(
        ".atomic/commands/deploy.md",
        "---\nrequired-arguments: [where, when]\n---\nGo to $1 at $2",
    );
    let workflow =
        json!({"nodes": [{"type": "command", "id": "a", "command": "deploy", "args": "home"}]});
    let ran = project.run(&workflow, &[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let told = "deploy needs <when>; type: /deploy <where> <when>";
    assert!(ran.stdout.contains(told), "{ran:?}");
}

/// A tree with something of every provider, something hidden and something broken.
fn tree() -> TestEnv {
    let env = TestEnv::new();
    for (path, text) in [
        (
            "work/.claude/agents/worker.md",
            "---\ndescription: Mine\ntools: Read, Bash(git:*)\n---\nYou are my worker.\n",
        ),
        ("work/.claude/commands/help.md", "Help me.\n"),
        (
            "work/.claude/commands/git/sync.md",
            "---\ndescription: Syncs\nargument-hint: \"[branch]\"\n---\nSync $1.\n",
        ),
        ("home/.claude/agents/worker.md", "---\ndescription: At home\n---\nYou are at home.\n"),
        ("work/.opencode/agents/secret.md", "---\nhidden: true\n---\nPsst.\n"),
        (
            "home/.config/opencode/opencode.json",
            "{\"command\": {\"ship\": {\"template\": \"Ship it\"}}}",
        ),
        (
            "work/.github/skills/lint/SKILL.md",
            "---\ndescription: Lints\naliases: [ci]\n---\nLint.\n",
        ),
        ("work/.github/agents/broken.agent.md", "---\nname: ../../x\n---\nx\n"),
        (
            "work/.atomic/workflows/lint.json",
            "{\"description\": \"Lints all\", \"argumentHint\": \"<what>\", \"nodes\": []}",
        ),
        ("work/.atomic/workflows/ralph.json", "{\"description\": \"My own\", \"nodes\": []}"),
    ] {
        write(&env, path, text);
    }
    trust_everything(&env);
    env
}

/// The user trusts every repository.
fn trust_everything(env: &TestEnv) {
    write(env, "home/.atomic/settings.json", "{\"trust\": true}");
}

#[test]
fn everything_that_can_be_named_is_listed_with_where_it_comes_from() {
    let env = tree();
    let ours = |line: &&str| !line.contains("(built-in)");
    let listed = |args: &[&str]| {
        let ran = env.run([&["list"], args].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let lines: Vec<&str> = ran.stdout.lines().filter(ours).collect();
        format!("{}\n--\n{}", lines.join("\n"), ran.stderr)
    };
    insta::assert_snapshot!("list", listed(&[]));
    insta::assert_snapshot!("list_agents", listed(&["agents", "--all", "-v"]));
    let json = env.run(["list", "skills", "--json"]);
    let found = json.stdout.lines().find(|line| line.contains("\"lint\"")).unwrap();
    insta::assert_snapshot!("list_json", plain(&env, found));
}

#[test]
fn a_name_is_shown_with_its_origin_what_it_overrides_and_its_prompt() {
    let env = tree();
    let mut told = String::new();
    for name in [
        "worker",
        "/git:sync",
        "sync",
        "help",
        "command:help",
        "lint",
        "skill:lint",
        "ralph",
        "ship",
        "ci",
        "skill:commit",
    ] {
        let ran = env.run(["show", name]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        // What ours say is not what is tested here.
        let is_ours = ran.stdout.contains("from       built-in");
        let shown = if is_ours { ran.stdout.split("\n\n").next().unwrap() } else { &ran.stdout };
        told.push_str(&format!("$ atomic show {name}\n{}\n\n", plain(&env, shown).trim_end()));
    }
    for name in ["wrker", "/status", "ralph:ralph-loop", "nothing-like-it"] {
        let ran = env.run(["show", name]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        told.push_str(&format!("$ atomic show {name}\n{}\n", ran.stderr));
    }
    insta::assert_snapshot!(told);
}

#[test]
fn entities_are_checked_by_name_by_file_and_all_together() {
    let env = tree();
    let mut told = String::new();
    for args in [
        &["worker", "agent:worker", "secret"] as &[&str],
        &[".github/agents/broken.agent.md", ".claude/agents/worker.md"],
        &["missing.md"],
        &["elsewhere.md"],
        &[],
    ] {
        write(&env, "work/elsewhere.md", "x");
        let ran = env.run([&["check"], args].concat());
        let text = format!("{}{}", ran.stdout, ran.stderr);
        let text = plain(&env, &text);
        told.push_str(&format!("$ atomic check {}\n{text}= {:?}\n\n", args.join(" "), ran.code));
    }
    insta::assert_snapshot!(told);
}

#[test]
fn a_run_says_what_was_read_and_what_was_not() {
    let env = tree();
    fs::remove_file(env.outside("work/.atomic/workflows/ralph.json")).unwrap();
    let scene = Scene::of(&[("#1", &[])]).rest();
    let ran = env.ralph(&scene.toml(), &["--check", "true", "-v"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    insta::assert_snapshot!(ran.stderr);
    let quiet = env.ralph(&scene.toml(), &["--check", "true"]);
    assert!(quiet.stderr.starts_with("1 file is left out; atomic doctor says why\n"), "{quiet:?}");
}

#[test]
fn a_name_that_is_no_workflow_is_answered_with_what_it_is() {
    let env = tree();
    let mut told = String::new();
    for name in ["commit", "atomic", "create-feature-list", "ralf"] {
        let ran = env.run(["run", name, "x", "--script", "x.toml"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        told.push_str(&ran.stderr);
    }
    insta::assert_snapshot!(told);
}

/// What stands in a stranger's file does nothing to the terminal.
#[test]
fn nothing_in_a_file_acts_on_the_terminal() {
    let env = TestEnv::new();
    let evil = "---\nname: evil\ndescription: \"a\\e]0;x\\a\\e[2J b\"\n\u{1b}colr: x\n---\nx \u{1b}[31m\ty\n";
    write(&env, "work/.claude/agents/evil.md", evil);
    write(&env, "work/.claude/agents/e\u{1b}[2Jx.md", "---\ncolr: x\n---\nx\n");
    write(&env, "work/.claude/agents/turned.md", "---\ndescription: a\u{202e}b\u{2066}c\n---\nx\n");
    let workflow = r#"{"name": "\u001b[2Jevil", "description": "\u001b[2J", "argumentHint": "\u001b[2J",
        "aliases": ["\u001b[2J", "x\ny: ok"], "nodes": []}"#;
    write(&env, "work/opencode.json", r#"{"agent": {"x\ny: ok": 3, "x\n  ok: y": 3}}"#);
    write(&env, "work/.atomic/workflows/a.json", workflow);
    write(&env, "work/.atomic/workflows/b.json", r#"{"name": "b\nralph: forged", "nodes": []}"#);
    write(&env, "work/.atomic/workflows/c\u{1b}[2J\nralph: forged.json", r#"{"nodes": []}"#);
    let all: [&[&str]; 10] = [
        &["list"],
        &["list", "workflows"],
        &["show", "evil"],
        &["show", "a"],
        &["check", "a", "b"],
        &["graph", "a"],
        &["check"],
        &["doctor"],
        &["show", "\u{1b}[2J"],
        &["run", "\u{1b}[2J"],
    ];
    for args in all {
        let ran = env.run(args);
        let text = format!("{}{}", ran.stdout, ran.stderr);
        let turns =
            |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}');
        let acts = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || turns(c);
        assert!(!text.contains(acts), "{args:?}: {text:?}");
        let is_forged = |line: &str| {
            ["ralph: forged", "y: ok", "  ok: y"].iter().any(|begin| line.starts_with(begin))
        };
        assert!(!text.lines().any(is_forged), "{args:?}: {text}");
    }
    assert!(env.run(["show", "evil"]).stdout.contains("x \u{fffd}[31m\ty"));
}

/// `run`, `show` and `doctor` mean the same workflow by a name.
#[test]
fn a_workflow_is_the_same_one_for_everybody() {
    let project = Project::new();
    let says = |text: &str| json!([{"type": "tool", "id": "a", "command": format!("echo {text} >> said")}]);
    let write = |path: &str, name: &str, aliases: &[&str]| {
        let workflow =
            json!({"name": name, "aliases": aliases, "description": path, "nodes": says(path)});
        project.write(&format!(".atomic/workflows/{path}.json"), &workflow.to_string());
    };
    write("one", "Ralph", &[]);
    write("two", "zed", &["loop", "Both"]);
    write("three", "abc", &["both"]);
    write("four", "Caps", &[]);
    write("five", "caps", &[]);
    trust_everything(&project.env);
    for name in ["ralph", "RALPH", "loop", "both", "zed", "caps", "workflow:caps"] {
        let ran = project.run_file(name, &["--trust"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let said = project.read("said");
        fs::remove_file(project.env.work().join("said")).unwrap();
        let shown = project.env.run(["show", name]).stdout;
        assert!(shown.contains(&format!("about      {}", said.trim())), "{name}: {said}{shown}");
    }
    let doctor = project.env.run(["doctor"]).stdout;
    let told = "four.json: the workflow `caps` is replaced by .atomic/workflows/five.json";
    assert!(doctor.contains(told), "{doctor}");
    let both = project.env.run(["show", "both"]).stdout;
    assert!(both.contains("about      three"), "the first file: {both}");
}

#[test]
fn what_cannot_be_a_workflow_is_told_and_holds_nobody_up() {
    let env = TestEnv::new();
    write(&env, "work/.atomic/workflows/small.json", "{}");
    let large = fs::File::create(env.work().join(".atomic/workflows/large.json")).unwrap();
    large.set_len(20 << 30).unwrap();
    let listed = env.run(["list", "workflows"]);
    assert!(listed.stdout.contains("/large"), "{listed:?}");
    let told = env.run(["doctor"]);
    assert_eq!(told.code, Some(1), "{told:?}");
    assert!(
        told.stdout.contains("large.json: the workflow cannot be read: is larger than 1 MB"),
        "{told:?}"
    );
    fs::remove_dir_all(env.work().join(".atomic/workflows")).unwrap();
    write(&env, "work/.atomic/workflows", "no folder");
    let told = env.run(["doctor"]);
    assert_eq!(told.code, Some(1), "{told:?}");
    assert!(told.stdout.contains(".atomic/workflows: the folder cannot be read"), "{told:?}");
    let listed = env.run(["list"]);
    assert_eq!(listed.stderr, "1 file is left out; atomic doctor says why\n");
}

/// An agent is called as it is called, whatever it was called by.
#[test]
fn a_backend_is_told_the_name_an_agent_has() {
    let project = Project::scripted(
        "[[turn]]\nagent = \"worker\"\nsystem = [\"Mine\"]\ndo = [{ say = \"1\" }]\n\
         [[turn]]\nagent = \"commit\"\ndo = [{ say = \"2\" }]\n",
    );
    project.write(".claude/agents/Worker.md", "---\naliases: hand\n---\nMine\n");
    trust_everything(&project.env);
    let workflow = json!({"nodes": [
        {"type": "agent", "id": "a", "agent": "WORKER", "prompt": "Go"},
        {"type": "agent", "id": "b", "agent": "Hand", "prompt": "Go"},
        {"type": "skill", "id": "c", "skill": "CI"},
    ]});
    project.ends(&workflow, 0);
}

#[test]
fn files_of_settings_are_checked_as_what_they_are() {
    let env = TestEnv::new();
    write(&env, "work/opencode.json", "{\n  \"agent\": {\"x\": 3}\n}");
    write(&env, "work/.atomic/settings.json", "{\n  \"workers\": 0\n}");
    let told = env.run(["check", "opencode.json"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.stdout.contains("opencode.json:2: `x` is no object and is left out"), "{told:?}");
    let told = env.run(["check", ".atomic/settings.json"]);
    assert_eq!(told.code, Some(1), "{told:?}");
    assert!(told.stdout.contains("settings.json:2: "), "{told:?}");
    assert!(env.run(["check", "nosuch"]).stderr.contains("Command not found: \"nosuch\""));
}

/// Whoever keeps a folder in git, or explains it, did nothing wrong.
#[test]
fn what_is_left_out_on_purpose_is_not_counted() {
    let env = TestEnv::new();
    write(&env, "work/.atomic/agents/.gitkeep", "");
    write(&env, "work/.claude/agents/README.md", "These are our agents.\n");
    write(&env, "work/.claude/agents/off.md", "---\ndisable: true\n---\nOff.\n");
    let listed = env.run(["list"]);
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""));
}

#[test]
fn what_is_only_odd_passes_the_check() {
    let env = TestEnv::new();
    write(&env, "work/.claude/agents/odd.md", "---\ncolr: red\n---\nOdd.\n");
    for (what, told) in [
        ("odd", "odd: ok, 1 warning\n"),
        (".claude/agents/odd.md", ".claude/agents/odd.md: ok, 1 warning\n"),
    ] {
        let checked = env.run(["check", what]);
        assert_eq!(checked.code, Some(0), "{checked:?}");
        assert!(checked.stdout.ends_with(told), "{checked:?}");
    }
    assert_eq!(env.run(["check"]).code, Some(0));
}

#[test]
fn workflows_of_a_home_folder_that_is_the_project_are_read_once() {
    let env = TestEnv::new();
    let workflow = "{\"nodes\": [{\"id\": \"a\", \"type\": \"agent\", \"agent\": \"worker\"}]}";
    write(&env, "work/.atomic/workflows/mine.json", workflow);
    let mut show = env.atomic(["show", "mine"]);
    show.env("HOME", env.work());
    let shown = ran(show);
    assert!(shown.stdout.contains("from       .atomic/workflows/mine.json\n"), "{shown:?}");
    assert!(!shown.stdout.contains("overrides"), "{shown:?}");
}

/// The user's workflow that the project's replaces, and the one that nothing replaces.
#[test]
fn a_workflow_is_shown_with_whose_it_is_and_what_it_overrides() {
    let env = TestEnv::new();
    for path in ["work/.atomic/workflows/a.json", "home/.atomic/workflows/a.json"] {
        write(&env, path, "{\"nodes\": []}");
    }
    write(&env, "home/.atomic/workflows/b.json", "{\"nodes\": []}");
    let shown = env.run(["show", "a"]).stdout;
    assert!(shown.contains("from       ~/.atomic/workflows/a.json\n"), "before trust: {shown}");
    trust_everything(&env);
    let shown = env.run(["show", "a"]).stdout;
    assert!(shown.contains("from       .atomic/workflows/a.json\n"), "{shown}");
    assert!(shown.contains("overrides  ~/.atomic/workflows/a.json\n"), "{shown}");
    let listed = env.run(["list", "workflows", "--json"]).stdout;
    let scope = |name: &str| {
        let rows = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.into_iter().find(|row| row["name"] == name).unwrap()["scope"].clone()
    };
    assert_eq!(["a", "b", "ralph"].map(scope), ["project", "user", "built-in"]);
}

#[test]
fn names_of_skills_and_commands_in_a_workflow_are_checked() {
    let env = TestEnv::new();
    write(&env, "work/.claude/commands/deploy.md", "Deploy.\n");
    for (kind, right, wrong) in [("skill", "commit", "comit"), ("command", "deploy", "deplyo")] {
        for (name, code) in [(right, 0), (wrong, 1)] {
            let workflow = json!({"nodes": [{"type": kind, "id": "a", kind: name}]});
            write(&env, "work/.atomic/workflows/w.json", &workflow.to_string());
            let checked = env.run(["check", "w"]);
            assert_eq!(checked.code, Some(code), "{checked:?}");
            let near = format!("did you mean \"{right}\"?");
            assert_eq!(checked.stdout.contains(&near), code == 1, "{checked:?}");
        }
    }
}

#[test]
fn a_pipe_among_the_workflows_is_not_opened() {
    let env = TestEnv::new();
    write(&env, "work/.atomic/workflows/mine.json", "{}");
    let pipe = env.outside("work/.atomic/workflows/pipe.json");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Whoever opens it all the same reads nothing, instead of waiting for ever.
    let writer = Command::new("sh").args(["-c", "while :; do : > \"$0\"; done"]).arg(&pipe).spawn();
    let mut writer = writer.unwrap();
    let checked = env.run(["check", "pipe"]);
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert_eq!(checked.code, Some(1), "{checked:?}");
    let told = "pipe.json: the workflow cannot be read: is a FIFO, not a regular file";
    assert!(checked.stderr.contains(told), "{checked:?}");
}

/// A folder that cannot be entered is not the same as none.
#[test]
fn a_folder_that_cannot_be_entered_is_told_before_anything_starts() {
    for link in [".atomic", "nowhere"] {
        let env = TestEnv::new();
        std::os::unix::fs::symlink(link, env.outside("work/.atomic")).unwrap();
        let told = env.run(["doctor"]);
        assert_eq!(told.code, Some(1), "{told:?}");
        assert!(told.stdout.contains("problem: .atomic: left out: the folder cannot be read: "));
        assert_eq!(env.run(["list"]).stderr, "1 file is left out; atomic doctor says why\n");
    }
    let env = TestEnv::new();
    write(&env, "work/.atomic/x", "x");
    std::os::unix::fs::symlink("workflows", env.outside("work/.atomic/workflows")).unwrap();
    let told = env.run(["doctor"]);
    assert_eq!(told.code, Some(1), "{told:?}");
    assert!(told.stdout.contains(".atomic/workflows: the folder cannot be read: "), "{told:?}");
}

/// Names that would be taken for a path, or cannot be typed: the workflow is called as its file.
#[test]
fn a_workflow_with_a_name_that_is_none_is_called_as_its_file() {
    let env = TestEnv::new();
    for (file, name) in [("one", "x.json"), ("two", "../../x"), ("three", "has space")] {
        let workflow =
            json!({"name": name, "aliases": [format!("{file} more"), file], "nodes": []});
        write(&env, &format!("work/.atomic/workflows/{file}.json"), &workflow.to_string());
    }
    write(&env, "work/.atomic/workflows/My Flow.json", "{\"nodes\": []}");
    let listed = env.run(["list", "workflows"]).stdout;
    let names: Vec<&str> =
        listed.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["/my-flow", "/one", "/ralph", "/second-opinion", "/three", "/two"]);
    let checked = env.run(["check"]);
    assert!(!checked.stderr.contains("cannot be read"), "{checked:?}");
    assert_eq!(checked.stdout.matches("cannot be typed as the name of a workflow").count(), 6);
    for name in ["one", "two", "three", "my-flow"] {
        assert!(checked.stdout.contains(&format!("\n{name}: ")), "{checked:?}");
        let shown = env.run(["show", name]);
        assert_eq!(shown.code, Some(0), "{shown:?}");
    }
}

/// What `doctor` says about the tools and models of entities, `check` says as well.
#[test]
fn tools_and_models_are_checked() {
    let env = TestEnv::new();
    write(&env, "work/.claude/agents/x.md", "---\ntools: Raed\nmodel: sonet\n---\nx\n");
    for args in [&["check", "x"] as &[&str], &["check", ".claude/agents/x.md"], &["check"]] {
        let told = env.run(args);
        assert_eq!(told.code, Some(0), "{told:?}");
        for text in [
            "x.md:2: x: no backend has a tool `raed`, so it allows nothing\n  help: did you mean `read`?",
            "x.md:3: x: `sonet` looks like no model of any backend\n  help: did you mean `sonnet`?",
            "ok, 2 warnings",
        ] {
            assert!(told.stdout.contains(text), "{args:?}: {told:?}");
        }
    }
    let workflow = json!({"model": "gpt-5", "nodes": [
        {"type": "agent", "id": "a", "agent": "worker", "model": "opsu"},
        {"type": "agent", "id": "b", "agent": "worker", "model": "claude-opus-4-5"},
    ]});
    write(&env, "work/.atomic/workflows/w.json", &workflow.to_string());
    let told = env.run(["check", "w"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.stdout.contains("Model not found: \"opsu\" (did you mean \"opus\"?)"), "{told:?}");
    assert!(told.stdout.ends_with("w: ok, 1 warning\n"), "{told:?}");
    let doctor = env.run(["doctor"]).stdout;
    assert!(doctor.contains("Model not found: \"opsu\""), "{doctor}");
}

/// Each file is looked up, not looked for: what is checked grows as the number of files does.
#[test]
fn many_files_are_checked_in_one_go() {
    let env = TestEnv::new();
    let names: Vec<String> = (0..2_000).map(|n| format!(".claude/agents/a{n}.md")).collect();
    for name in &names {
        write(&env, &format!("work/{name}"), "---\ncolr: x\n---\nx\n");
    }
    let checked = env.run(std::iter::once("check").chain(names.iter().map(String::as_str)));
    assert_eq!(checked.stdout.matches(": ok, 1 warning\n").count(), names.len());
}
