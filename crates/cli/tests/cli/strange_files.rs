//! Files of a project that are not what they seem: links, FIFOs, devices, files without end. Nothing
//! outside of the project is read or written, and nothing blocks.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::engine::Project;
use crate::env::Ran;
use crate::process::Running;

/// What must not be printed.
const SECRET: &str = "TOPSECRET";

pub(crate) fn fifo(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn link(target: &Path, path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(target, path).unwrap();
}

/// Runs a command that must end by itself.
fn ends(project: &Project, args: &[&str]) -> Ran {
    Running::start(project.env.atomic(args)).end()
}

/// A workflow that works through `research/tasks.json`.
fn task_loop() -> Value {
    json!({"nodes": [{"type": "taskLoop", "id": "loop", "taskNodes": [
        {"type": "tool", "id": "do", "command": "true"}]}]})
}

/// A workflow that does nothing.
fn nothing() -> Value {
    json!({"nodes": [{"type": "tool", "id": "a", "command": "true"}]})
}

const TASKS: &str = r#"[{"id": "a", "content": "TOPSECRET", "status": "pending"}]"#;

#[test]
fn a_list_of_tasks_is_never_written_through_a_link() {
    let project = Project::new();
    let (precious, tasks) = (project.env.outside("precious"), "research/tasks.json");
    fs::write(&precious, "mine").unwrap();
    project.write(tasks, TASKS);
    symlink(&precious, project.env.work().join("research/tasks.json.tmp")).unwrap();
    project.ends(&task_loop(), 0);
    assert!(project.read(tasks).contains("completed"));
    assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
    // A link that stays inside is followed, and stays.
    project.write("real/tasks.json", TASKS);
    fs::remove_file(project.env.work().join(tasks)).unwrap();
    symlink("../real/tasks.json", project.env.work().join(tasks)).unwrap();
    project.ends(&task_loop(), 0);
    assert!(project.read("real/tasks.json").contains("completed"));
    assert!(project.env.work().join(tasks).is_symlink());
}

#[test]
fn a_list_of_tasks_that_is_no_file_of_the_project_ends_the_run() {
    let project = Project::new();
    let list = project.env.work().join("research/tasks.json");
    let outside = project.env.outside("outside.json");
    fs::write(&outside, TASKS).unwrap();
    let large = |path: &Path| fs::File::create(path).unwrap().set_len(100 << 20).unwrap();
    let table: [(&dyn Fn(), &str); 4] = [
        (&|| link(&outside, &list), "is a link that leads out of the repository"),
        (&|| link(Path::new("/dev/zero"), &list), "is a link that leads out of the repository"),
        (&|| fifo(&list), "is a FIFO, not a regular file"),
        (&|| large(&list), "is larger than 1 MB"),
    ];
    project.write("flow.json", &task_loop().to_string());
    for (make, says) in table {
        make();
        let ran = Running::start(project.command("flow.json", &[])).end();
        assert_eq!(ran.code, Some(1), "{says}: {ran:?}");
        assert!(ran.stderr.contains(&format!("research/tasks.json: {says}")), "{ran:?}");
        assert!(!ran.stderr.contains(SECRET) && !ran.stdout.contains(SECRET), "{ran:?}");
        fs::remove_file(&list).unwrap();
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), TASKS);
}

#[test]
fn a_fifo_in_place_of_the_tasks_does_not_block_a_resume() {
    let project = Project::new();
    let mut flow = task_loop();
    let ask = json!({"type": "askUser", "id": "ask", "question": "Go on?"});
    flow["nodes"].as_array_mut().unwrap().insert(0, ask);
    project.ends(&flow, 3);
    fifo(&project.env.work().join("research/tasks.json"));
    assert_eq!(ends(&project, &["answer", "last", "yes"]).code, Some(0));
    let resumed = ends(&project, &["resume", "last"]);
    assert_eq!(resumed.code, Some(1), "{resumed:?}");
    assert!(resumed.stderr.contains("tasks.json: is a FIFO"), "{resumed:?}");
    // The run is not lost.
    fs::remove_file(project.env.work().join("research/tasks.json")).unwrap();
    project.write("research/tasks.json", TASKS);
    let resumed = ends(&project, &["resume", "last"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
}

#[test]
fn sessions_are_never_created_outside() {
    let nothing = nothing();
    let mut custom = nothing.clone();
    custom["sessionsDir"] = "out/deep/sessions".into();
    for (path, ralph, flow, has_git) in [
        (".ralph", true, &nothing, true),
        (".ralph/sessions", true, &nothing, false),
        (".atomic", false, &nothing, true),
        (".atomic/sessions", false, &nothing, false),
        ("out", false, &custom, false),
        ("out/deep", false, &custom, true),
        ("out/deep/sessions", false, &custom, false),
    ] {
        let project = Project::new();
        if has_git {
            project.write(".git/config", "");
        }
        let elsewhere = project.env.outside("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        link(&elsewhere, &project.env.work().join(path));
        project.write("flow.json", &flow.to_string());
        let ran = if ralph {
            project.env.ralph("turn = []\n", &[])
        } else {
            Running::start(project.command("flow.json", &[])).end()
        };
        assert_eq!(ran.code, Some(1), "{path}: {ran:?}");
        assert!(ran.stderr.contains("is a link that leads out of the repository"), "{ran:?}");
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "{path}");
    }
    // A link that stays inside.
    let project = Project::new();
    project.write("kept/.keep", "");
    symlink("kept", project.env.work().join(".atomic")).unwrap();
    project.ends(&json!({"nodes": [{"type": "askUser", "id": "ask", "question": "Go on?"}]}), 3);
    assert_eq!(fs::read_dir(project.env.work().join("kept/sessions")).unwrap().count(), 2);
    assert_eq!(ends(&project, &["answer", "last", "yes"]).code, Some(0));
    assert_eq!(ends(&project, &["resume", "last"]).code, Some(0));
    // A session that is not in the user's list is found there, too.
    fs::remove_dir_all(project.env.outside("home/.atomic")).unwrap();
    assert!(ends(&project, &["sessions"]).stdout.contains("completed"));
}

/// Everything of a project that commands read by themselves, and how a secret would get out of it.
const READ: &[(&str, &str)] = &[
    (
        ".atomic/workflows/w.json",
        r#"{"name": "w", "description": "TOPSECRET", "nodes": [{"type": "TOPSECRET"}]}"#,
    ),
    (".atomic/workflows/t.ts", "export const description = \"TOPSECRET\"; TOPSECRET TOPSECRET"),
    (
        ".atomic/agents/worker.md",
        "---\nname: TOPSECRET\ndescription: TOPSECRET\ntools: TOPSECRET\n---\nTOPSECRET\n",
    ),
    (
        ".claude/agents/a.md",
        "---\nname: a\ndescription: TOPSECRET\nmodel: TOPSECRET\n---\nTOPSECRET\n",
    ),
    (".claude/skills/s/SKILL.md", "---\nname: s\ndescription: TOPSECRET\n---\nTOPSECRET\n"),
    (".claude/commands/c.md", "---\ndescription: TOPSECRET\n---\nTOPSECRET\n"),
    (".claude/settings.json", r#"{"hooks": {"TOPSECRET": [{"command": "TOPSECRET"}]}}"#),
    (".mcp.json", r#"{"mcpServers": {"TOPSECRET": {"command": "TOPSECRET"}}}"#),
    (".github/mcp.json", r#"{"mcpServers": {"TOPSECRET": {"command": "TOPSECRET"}}}"#),
    (".github/agents/g.md", "---\nname: g\ndescription: TOPSECRET\n---\nTOPSECRET\n"),
    (".opencode/plugin/p.js", r#"{"command": "TOPSECRET"}"#),
    (
        "opencode.json",
        r#"{"agent": {"o": {"description": "TOPSECRET", "prompt": "TOPSECRET"}}, "mcp": {"TOPSECRET": {"command": "TOPSECRET"}}}"#,
    ),
    ("CLAUDE.md", "TOPSECRET"),
    ("AGENTS.md", "TOPSECRET"),
    ("package.json", r#"{"scripts": {"test": "TOPSECRET"}}"#),
    ("Makefile", "test:\n\tTOPSECRET\n"),
    ("pyproject.toml", "[tool.pytest.TOPSECRET]"),
    (".git/config", "[core]\n\tfsmonitor = TOPSECRET\n[TOPSECRET]\n\tx = TOPSECRET\n"),
    (".git/HEAD", "ref: TOPSECRET\n"),
];

const COMMANDS: &[&[&str]] = &[
    &["list"],
    &["doctor"],
    &["check", "w"],
    &["show", "a"],
    &["run", "t", "Do it", "--backend", "script"],
    &["config", "list"],
];

#[test]
fn no_file_of_a_project_blocks_or_shows_what_is_outside() {
    let large = |path: &Path| fs::File::create(path).unwrap().set_len(100 << 20).unwrap();
    for kind in ["fifo", "device", "large", "link", "folders"] {
        let project = Project::new();
        let work = project.env.work();
        let outside = project.env.outside("outside");
        for (name, text) in READ {
            let (path, target) = (work.join(name), outside.join(name));
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            fs::write(&target, text).unwrap();
            if kind == "folders" {
                continue;
            }
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match kind {
                "fifo" => fifo(&path),
                "device" => link(Path::new("/dev/zero"), &path),
                "large" => large(&path),
                _ => link(&target, &path),
            }
        }
        if kind == "folders" {
            for name in [".atomic", ".claude", ".github", ".opencode"] {
                symlink(outside.join(name), work.join(name)).unwrap();
            }
        }
        let mut told = String::new();
        for args in COMMANDS {
            let ran = ends(&project, args);
            let all = format!("{}{}", ran.stdout, ran.stderr);
            told.push_str(&all);
            assert!(!all.contains(SECRET), "{kind}: {args:?}: {all}");
            assert!(!all.contains("panicked"), "{kind}: {args:?}: {all}");
        }
        let says = match kind {
            "fifo" => "agents/a.md: left out: is a FIFO, not a regular file",
            "large" => "agents/a.md: left out: is larger than 1 MB",
            "folders" => ".claude: left out: is a link that leads out of the repository",
            _ => "agents/a.md: left out: is a link that leads out of the repository",
        };
        assert!(told.contains(says), "{kind}: {told}");
    }
}

/// The control of the test above: where nothing is strange the same files show what is in them.
#[test]
fn files_of_a_project_show_what_is_in_them() {
    let project = Project::new();
    for (name, text) in READ {
        project.write(name, text);
    }
    for args in [&["list"][..], &["doctor"], &["check", "w"], &["show", "a"]] {
        let ran = ends(&project, args);
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains(SECRET), "{args:?}: {ran:?}");
    }
}

#[test]
fn links_count_once_the_user_trusts_them() {
    let project = Project::new();
    let skill = "---\nname: far\ndescription: A far skill\n---\nDo far things\n";
    fs::create_dir_all(project.env.outside("far")).unwrap();
    fs::write(project.env.outside("far/SKILL.md"), skill).unwrap();
    project.write("shared/near/SKILL.md", &skill.replace("far", "near"));
    link(&project.env.outside("far"), &project.env.work().join(".claude/skills/far"));
    link(Path::new("../../shared/near"), &project.env.work().join(".claude/skills/near"));
    let listed = ends(&project, &["list", "skills"]).stdout;
    assert!(listed.contains("A near skill") && !listed.contains("far skill"), "{listed}");
    let trusted = ends(&project, &["trust", "."]);
    assert!(trusted.stdout.contains("link out of the repository, to "), "{trusted:?}");
    let listed = ends(&project, &["list", "skills"]).stdout;
    assert!(listed.contains("A far skill"), "{listed}");
    // Another target is another definition.
    let path = project.env.work().join(".claude/skills/far");
    fs::remove_file(&path).unwrap();
    fs::rename(project.env.outside("far"), project.env.outside("farther")).unwrap();
    symlink(project.env.outside("farther"), &path).unwrap();
    let listed = ends(&project, &["list", "skills"]).stdout;
    assert!(!listed.contains("A far skill"), "{listed}");
}

#[test]
fn settings_are_read_from_regular_files_of_the_project() {
    let project = Project::new();
    let path = project.env.work().join(".atomic/settings.json");
    let outside = project.env.outside("outside.json");
    fs::write(&outside, r#"{"workers": "TOPSECRET"}"#).unwrap();
    let table: [(&dyn Fn(), &str); 3] = [
        (&|| link(&outside, &path), "is a link that leads out of the repository"),
        (&|| link(Path::new("/dev/zero"), &path), "is a link that leads out of the repository"),
        (&|| fifo(&path), "is a FIFO, not a regular file"),
    ];
    for (make, says) in table {
        make();
        for args in [&["config", "list"][..], &["config", "set", "workers", "3"], &["list"]] {
            let ran = ends(&project, args);
            let all = format!("{}{}", ran.stdout, ran.stderr);
            assert!(!all.contains(SECRET), "{says}: {args:?}: {all}");
            assert!(all.contains(says) || args == ["list"], "{says}: {args:?}: {all}");
        }
        fs::remove_file(&path).unwrap();
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), r#"{"workers": "TOPSECRET"}"#);
    // A link that stays inside.
    project.write("shared.json", "{}");
    link(Path::new("../shared.json"), &path);
    assert_eq!(ends(&project, &["config", "set", "workers", "3"]).code, Some(0));
    assert!(project.read("shared.json").contains("\"workers\": 3"));
    assert!(path.is_symlink());
}

#[test]
fn what_atomic_writes_for_the_user_stays_in_the_project() {
    let new = ["new", "workflow", "mine"];
    for (path, is_file, args) in [
        (".atomic", false, &["init"][..]),
        (".atomic", false, &new),
        (".atomic", false, &["config", "set", "workers", "3"]),
        (".atomic/workflows", false, &new),
        (".atomic/workflows/mine.ts", true, &new),
        (".atomic/types", false, &new),
        (".atomic/types", false, &["init"]),
        (".atomic/types/atomic.d.ts", true, &["init"]),
        (".atomic/tsconfig.json", true, &["init"]),
        (".atomic/agents", false, &["init"]),
        (".atomic/settings.json", true, &["init"]),
        (".atomic/settings.json", true, &["config", "set", "workers", "3"]),
    ] {
        let project = Project::new();
        let target = project.env.outside("target");
        if is_file {
            fs::write(&target, "{}").unwrap();
        } else {
            fs::create_dir(&target).unwrap();
        }
        link(&target, &project.env.work().join(path));
        let ran = ends(&project, args);
        let kept = path == ".atomic/tsconfig.json";
        assert_eq!(ran.code, Some(i32::from(!kept)), "{path}: {args:?}: {ran:?}");
        if is_file {
            assert_eq!(fs::read_to_string(&target).unwrap(), "{}", "{path}: {args:?}");
        } else {
            assert_eq!(fs::read_dir(&target).unwrap().count(), 0, "{path}: {args:?}");
        }
    }
}

/// The root is that of the repository, also in a subfolder and in a linked worktree.
#[test]
fn links_in_a_subfolder_and_in_a_worktree_stay_in_their_repository() {
    let project = Project::new();
    let script = "set -e; git init -q; git -c user.name=t -c user.email=t@e commit -q --allow-empty \
                  -m one; git worktree add -q ../tree -b side; mkdir -p shared sub/.claude/skills";
    let git = Command::new("sh").args(["-c", script]).current_dir(project.env.work()).status();
    assert!(git.unwrap().success());
    let skill = "---\nname: near\ndescription: A near skill\n---\nDo it\n";
    project.write("shared/near/SKILL.md", skill);
    let tree = project.env.outside("tree");
    let listed = |folder: &Path, args: &[&str]| {
        let mut command = project.env.atomic(args);
        command.current_dir(folder);
        Running::start(command).end()
    };
    let sub = project.env.work().join("sub");
    link(Path::new("../../../shared/near"), &sub.join(".claude/skills/near"));
    assert!(listed(&sub, &["list", "skills"]).stdout.contains("A near skill"));
    // The main working tree is outside of a linked one.
    link(&project.env.work().join("shared/near"), &tree.join(".claude/skills/near"));
    assert!(!listed(&tree, &["list", "skills"]).stdout.contains("A near skill"));
    for folder in [&sub, &tree] {
        fs::write(folder.join("flow.json"), nothing().to_string()).unwrap();
        let ran = listed(
            folder,
            &[
                "run",
                "flow.json",
                "Do it",
                "--backend",
                "script",
                "--script",
                project.env.outside("script.toml").to_str().unwrap(),
            ],
        );
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(folder.join(".atomic/sessions").is_dir());
    }
}

/// A `.git` file can name any folder; one that is not git's is not shown.
#[test]
fn a_git_file_that_names_another_folder_shows_nothing_of_it() {
    let project = Project::new();
    let elsewhere = project.env.outside("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("config"), "[core]\n\tfsmonitor = TOPSECRET\n").unwrap();
    project.write(".git", &format!("gitdir: {}\n", elsewhere.display()));
    let trusted = ends(&project, &["trust", "."]);
    assert!(!trusted.stdout.contains(SECRET), "{trusted:?}");
    assert!(trusted.stdout.contains("lies outside of the repository"), "{trusted:?}");
    // Control: a folder that names the project as its working tree, as that of a submodule does.
    let own =
        format!("[core]\n\tfsmonitor = TOPSECRET\n\tworktree = {}\n", project.env.work().display());
    fs::write(elsewhere.join("config"), own).unwrap();
    let trusted = ends(&project, &["trust", "."]);
    assert!(trusted.stdout.contains(SECRET), "{trusted:?}");
}

#[test]
fn a_prompt_comes_through_a_pipe_that_the_user_names() {
    let project = Project::new();
    project.write("flow.json", &nothing().to_string());
    let prompt = |project: &Project| {
        let created = project.of_type("session_created");
        created[0]["prompt"].as_str().unwrap().to_owned()
    };
    let mut command = project.env.atomic(["run", "flow.json", "/dev/stdin", "--backend", "script"]);
    command.arg("--script").arg(project.env.outside("script.toml")).stdin(Stdio::piped());
    let mut running = Running::start(command);
    let mut input = running.child().stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"Build what the pipe says").unwrap();
    drop(input);
    let ran = running.end();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(prompt(&project), "Build what the pipe says");
    // A FIFO that lies in the project is not opened, even when a prompt is called like it.
    let project = Project::new();
    project.write("flow.json", &nothing().to_string());
    fifo(&project.env.work().join("test"));
    let mut command = project.env.atomic(["run", "flow.json", "test", "--backend", "script"]);
    command.arg("--script").arg(project.env.outside("script.toml"));
    let ran = Running::start(command).end();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(prompt(&project), "test");
    // A prompt has an end.
    fs::File::create(project.env.work().join("spec.md")).unwrap().set_len(11 << 20).unwrap();
    let ran = ends(&project, &["run", "flow.json", "spec.md", "--backend", "script"]);
    assert!(ran.stderr.contains("spec.md: is larger than 10 MB"), "{ran:?}");
}
