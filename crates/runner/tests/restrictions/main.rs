//! Restrictions of agents, as their files say them and as each backend enforces them.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use atomic_backend::ToolRules;
use atomic_event::BackendId;
use atomic_registry::{Entity, Folders, Kind, OpenCodeEnvironment, Registry};
use atomic_runner::{tools_of, tools_of_turn};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// An agent, and what it may do: on its own program, and so on every other.
struct Agent {
    line: usize,
    provider: String,
    read: char,
    edit: char,
    run: char,
    head: String,
}

fn agents() -> Vec<Agent> {
    let mut agents = vec![];
    for (index, text) in include_str!("agents.txt").lines().enumerate() {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let (provider, rest) = text.split_once(" | ").unwrap();
        let (may, head) = rest.split_once(" | ").unwrap();
        let may: Vec<char> = may.split(' ').map(|word| word.chars().next().unwrap()).collect();
        agents.push(Agent {
            line: index + 1,
            provider: provider.to_owned(),
            read: may[0],
            edit: may[1],
            run: may[2],
            head: head.replace("\\n", "\n"),
        });
    }
    agents
}

impl Agent {
    fn name(&self) -> String {
        if self.provider == "settings" { "x".to_owned() } else { format!("a{}", self.line) }
    }

    /// The file that it is in, unless it is one of many in settings.
    fn file(&self) -> Option<PathBuf> {
        let folder = match self.provider.as_str() {
            "claude" => ".claude/agents",
            "opencode" => ".opencode/agent",
            "copilot" => ".github/agents",
            "atomic" => ".atomic/agents",
            _ => return None,
        };
        Some(Path::new(folder).join(format!("{}.md", self.name())))
    }
}

/// A project with all agents in it, or with one file of settings.
fn project(agents: &[&Agent]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = Map::new();
    for agent in agents {
        match agent.file() {
            Some(file) => {
                let path = folder.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, format!("---\n{}\n---\nGo.\n", agent.head)).unwrap();
            }
            None if agent.provider == "settings" => {
                fs::write(folder.path().join("opencode.json"), &agent.head).unwrap();
            }
            None => {
                let mut fields: Value = serde_json::from_str(&agent.head).unwrap();
                fields["prompt"] = json!("Go.");
                settings.insert(agent.name(), fields);
            }
        }
    }
    if !settings.is_empty() {
        let text = json!({ "agent": settings }).to_string();
        fs::write(folder.path().join("opencode.json"), text).unwrap();
    }
    folder
}

/// The programs' names for their tools, and for paths in their input.
struct Words {
    backend: &'static str,
    path: &'static str,
    read: &'static str,
    edit: &'static [&'static str],
    shell: &'static str,
}

const PROGRAMS: [Words; 4] = [
    Words {
        backend: "claude",
        path: "file_path",
        read: "Read",
        edit: &["Edit", "Write", "MultiEdit"],
        shell: "Bash",
    },
    Words {
        backend: "opencode",
        path: "filePath",
        read: "read",
        edit: &["edit", "write"],
        shell: "bash",
    },
    Words {
        backend: "copilot",
        path: "path",
        read: "view",
        edit: &["edit", "create"],
        shell: "bash",
    },
    Words { backend: "acp", path: "path", read: "read", edit: &["edit", "write"], shell: "bash" },
];

impl Words {
    fn may_edit(&self, rules: &ToolRules, path: &str, workspace: &Path) -> bool {
        let input = json!({ self.path: path });
        let patch = json!({ "patchText": format!("*** Begin Patch\n*** Add File: {path}\n+x\n") });
        let edits = self.edit.iter().any(|tool| rules.refusal(tool, &input, workspace).is_none());
        edits || rules.refusal("apply_patch", &patch, workspace).is_none() && self.has_patch()
    }

    fn has_patch(&self) -> bool {
        matches!(self.backend, "opencode" | "copilot")
    }

    fn may_run(&self, rules: &ToolRules, command: &str, workspace: &Path) -> bool {
        rules.refusal(self.shell, &json!({ "command": command }), workspace).is_none()
    }

    /// The abilities of an entity here, in the letters of the table.
    fn found(&self, entity: &Entity, workspace: &Path) -> [char; 3] {
        let rules = tools_of(entity, &BackendId::from(self.backend));
        let input = json!({ self.path: "src/a.rs" });
        let read = rules.refusal(self.read, &input, workspace).is_none();
        let edit = ["src/a.rs", "docs/a.md"].map(|path| self.may_edit(&rules, path, workspace));
        let run = ["touch x", "git status"].map(|command| self.may_run(&rules, command, workspace));
        let letter = |may: [bool; 2], some: char| match may {
            [true, true] => 'y',
            [false, false] => 'n',
            [false, true] => some,
            [true, false] => '?',
        };
        [if read { 'y' } else { 'n' }, letter(edit, 'd'), letter(run, 'g')]
    }
}

#[test]
fn agents_may_do_on_every_backend_what_they_may_on_their_own_program() {
    let all = agents();
    assert!(all.len() >= 120, "only {} agents", all.len());
    let (whole, single): (Vec<&Agent>, Vec<&Agent>) =
        all.iter().partition(|agent| agent.provider != "settings");
    let projects = std::iter::once(whole).chain(single.into_iter().map(|agent| vec![agent]));
    let mut wrong = vec![];
    for agents in projects {
        let folder = project(&agents);
        let registry = Registry::read(&Folders::trusted(folder.path().to_owned(), None));
        for agent in agents {
            let entity = registry.get(Kind::Agent, &agent.name()).unwrap();
            let expected = [agent.read, agent.edit, agent.run];
            for words in PROGRAMS {
                let found = words.found(entity, folder.path());
                if found != expected {
                    wrong.push(format!(
                        "line {} on {}: expected {expected:?}, found {found:?}: {} {}",
                        agent.line, words.backend, agent.provider, agent.head
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A restriction that cannot be understood is reported, and so is a name that is not known.
#[test]
fn what_is_denied_because_it_is_not_understood_is_reported() {
    for (head, unclear, unknown) in [
        ("permission: {edit: never}", true, &[] as &[&str]),
        ("permission: 7", true, &[] as &[&str]),
        ("permission:", true, &[] as &[&str]),
        ("permission: {}", true, &[] as &[&str]),
        ("tools: {}", true, &[] as &[&str]),
        ("tools:", true, &[] as &[&str]),
        ("permissionMode: readonly", true, &[] as &[&str]),
        ("disallowedTools: 7", true, &[] as &[&str]),
        ("permissions: {deny: [Bash, 7]}", true, &[] as &[&str]),
        ("tools: Read, Frobnicate", false, &["frobnicate"]),
        ("tools: {frobnicate: false}", false, &["frobnicate"]),
        ("permission: {edit: deny}", false, &[] as &[&str]),
        ("tools: Read", false, &[] as &[&str]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".opencode/agent/x.md");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, format!("---\n{head}\n---\nGo.\n")).unwrap();
        let registry = Registry::read(&Folders::trusted(folder.path().to_owned(), None));
        let tools = &registry.get(Kind::Agent, "x").unwrap().tools;
        assert_eq!(tools.unclear, unclear, "{head}");
        assert_eq!(tools.unknown, unknown, "{head}");
        let told = registry.findings.iter().filter(|finding| finding.message.contains("cannot be"));
        assert_eq!(told.count() > 0, unclear, "{head}: {:?}", registry.findings);
    }
}

/// The same for a mapping where a list is due, and for an exception beside all tools.
#[test]
fn a_list_that_is_not_understood_is_reported() {
    for (folder, head, unclear) in [
        (".claude/agents", "tools: {Read: true, Bash: false}", true),
        (".claude/agents", "tools: all, but no Bash", true),
        (".claude/agents", "tools: [\"*\", \"!Bash\"]", true),
        (".github/agents", "tools: [read, all]", true),
        (".github/agents", "tools: {read: sometimes}", true),
        (".github/agents", "tools: {read: true}", false),
        (".claude/agents", "tools: Bash (git:*)", false),
    ] {
        let project = tempfile::tempdir().unwrap();
        let file = project.path().join(folder).join("x.md");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, format!("---\n{head}\n---\nGo.\n")).unwrap();
        let registry = Registry::read(&Folders::trusted(project.path().to_owned(), None));
        assert_eq!(registry.get(Kind::Agent, "x").unwrap().tools.unclear, unclear, "{head}");
        let is_told = registry.findings.iter().any(|it| it.message.contains("cannot be read"));
        assert_eq!(is_told, unclear, "{head}: {:?}", registry.findings);
    }
}

/// VS Code lists the agents that an agent may start.
#[test]
fn an_agent_starts_only_the_helpers_that_it_lists() {
    for (head, allowed) in [
        ("agents: [Code Explorer]", &["code-explorer"] as &[&str]),
        ("agents: ['*']", &["code-explorer", "general"]),
        ("agents: []", &[]),
        ("agents: 7", &[]),
        ("tools: [read, agent]\nagents: [code-explorer]", &["code-explorer"]),
        ("tools: [read]\nagents: [code-explorer]", &[]),
        ("model: x", &["code-explorer", "general"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".github/agents/x.agent.md");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, format!("---\n{head}\n---\nGo.\n")).unwrap();
        let registry = Registry::read(&Folders::trusted(folder.path().to_owned(), None));
        let entity = registry.get(Kind::Agent, "x").unwrap();
        for (backend, tool, key) in
            [("claude", "Task", "subagent_type"), ("copilot", "task", "agent_type")]
        {
            let rules = tools_of(entity, &BackendId::from(backend));
            let started =
                |name: &&str| rules.refusal(tool, &json!({ key: name }), folder.path()).is_none();
            let found: Vec<&str> =
                ["code-explorer", "general"].into_iter().filter(|name| started(name)).collect();
            assert_eq!(found, allowed, "{head} on {backend}");
        }
    }
}

/// Settings of the user hold for the project's agents, and a project cannot loosen them.
#[test]
fn settings_of_another_scope_only_restrict() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("home/.config/opencode/opencode.json", r#"{"permission": {"bash": "deny"}}"#);
    write("project/opencode.json", r#"{"permission": {"bash": "allow", "edit": "deny"}}"#);
    write("project/.opencode/agent/theirs.md", "---\npermission: {bash: allow}\n---\nGo.\n");
    write("home/.config/opencode/agent/mine.md", "---\nmode: all\n---\nGo.\n");
    write("home/.claude/agents/other.md", "Go.\n");
    let may = |trusted: bool, name: &str| {
        let (project, home) = (folder.path().join("project"), folder.path().join("home"));
        let folders = Folders { trusted, ..Folders::trusted(project, Some(home)) };
        let registry = Registry::read(&folders);
        let tools = &registry.get(Kind::Agent, name).unwrap().tools;
        (tools.may_edit(), tools.may_run())
    };
    assert_eq!(may(true, "theirs"), (false, false));
    assert_eq!(may(true, "mine"), (false, false));
    // Without trust a project has no say about the user's agents.
    assert_eq!(may(false, "mine"), (true, false));
    assert_eq!(may(true, "other"), (true, true), "only OpenCode's agents go by its settings");
}

/// Settings that cannot be read may have denied anything.
#[test]
fn settings_that_cannot_be_read_deny_everything_and_are_reported() {
    for settings in [
        r#"{"permission": {"bash": "deny"}"#,
        r#"["permission"]"#,
        r#"{"tools": ["read"]}"#,
        r#"{"tools": "read"}"#,
    ] {
        for file in ["project/opencode.json", USERS, "home/.config/opencode/config.json"] {
            let folder = tempfile::tempdir().unwrap();
            let write = |path: &str, text: &str| {
                let path = folder.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            };
            write(file, settings);
            let agent = "---\npermission: {bash: allow}\n---\nGo.\n";
            match file.starts_with("home") {
                true => write("home/.config/opencode/agent/x.md", agent),
                false => write("project/.opencode/agent/x.md", agent),
            }
            write("project/.claude/agents/y.md", "Go.\n");
            let (project, home) = (folder.path().join("project"), folder.path().join("home"));
            let registry = Registry::read(&Folders::trusted(project, Some(home)));
            let tools = |name: &str| &registry.get(Kind::Agent, name).unwrap().tools;
            assert!(tools("y").is_everything(), "only OpenCode's agents go by its settings");
            let tools = tools("x");
            let may = [tools.may_read(), tools.may_edit(), tools.may_run()];
            assert_eq!(may, [false; 3], "{file}: {settings}");
            assert!(tools.unclear, "{file}: {settings}");
            let path = folder.path().join(file);
            let is_told = registry.findings.iter().any(|finding| finding.path == path);
            assert!(is_told, "{:?}", registry.findings);
        }
    }
}

/// Settings that are there and cannot be opened may have denied anything, as well.
#[test]
fn settings_that_cannot_be_opened_deny_everything_and_are_reported() {
    type Make = fn(&Path, &Path);
    let makes: [(&str, bool, Make); 6] = [
        ("a FIFO", true, |path, _| {
            let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
            assert!(made.success());
        }),
        ("a folder", true, |path, _| fs::create_dir(path).unwrap()),
        ("a link to nothing", true, |path, _| symlink("nowhere", path).unwrap()),
        ("a link to itself", true, |path, _| symlink(path, path).unwrap()),
        ("too large", true, |path, _| fs::write(path, " ".repeat(2_000_000)).unwrap()),
        // Followed in a project that is trusted.
        ("a link out", false, |path, outside| {
            fs::write(outside, r#"{"permission": {"bash": "allow"}}"#).unwrap();
            symlink(outside, path).unwrap();
        }),
    ];
    for (what, trusted, make) in makes {
        for place in ["project/opencode.json", "project/.opencode/opencode.jsonc", USERS] {
            if place == USERS && !trusted {
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            let path = |name: &str| {
                let path = folder.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                path
            };
            fs::write(path("project/.opencode/agent/x.md"), "Go.\n").unwrap();
            fs::write(path("project/.opencode/command/y.md"), "Go.\n").unwrap();
            fs::write(path("project/.claude/agents/z.md"), "Go.\n").unwrap();
            fs::create_dir_all(path("project/.git/refs")).unwrap();
            make(&path(place), &path("outside.json"));
            let (project, home) = (folder.path().join("project"), folder.path().join("home"));
            let folders = Folders { trusted, ..Folders::trusted(project, Some(home)) };
            let registry = Registry::read(&folders);
            for (kind, name) in [(Kind::Agent, "x"), (Kind::Command, "y")] {
                let tools = &registry.get(kind, name).unwrap().tools;
                let may = [tools.may_read(), tools.may_edit(), tools.may_run()];
                assert_eq!(may, [false; 3], "{name}: {place}: {what}");
                assert!(tools.unclear, "{name}: {place}: {what}");
            }
            assert!(registry.get(Kind::Agent, "z").unwrap().tools.is_everything());
            let is_told = registry.findings.iter().any(|it| it.path == folder.path().join(place));
            assert!(is_told, "{place}: {what}: {:?}", registry.findings);
            // Without trust a project has no say about turns.
            let turns = registry.tools_of_turns("opencode").unwrap();
            assert_eq!(turns.is_everything(), !trusted, "{place}: {what}");
        }
    }
}

/// The user's settings of OpenCode.
const USERS: &str = "home/.config/opencode/opencode.json";

/// A folder with files in it.
fn tree(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// OpenCode 1.18.33 reads three files in `~/.config/opencode`, of which a later one wins.
#[test]
fn every_file_of_the_users_settings_restricts() {
    let deny = r#"{"permission": {"bash": "deny"}}"#;
    let allow = r#"{"permission": {"bash": "allow"}}"#;
    for (files, may_run) in [
        (&[("home/.config/opencode/config.json", deny)] as &[(&str, &str)], false),
        (&[("home/.config/opencode/opencode.json", deny)], false),
        (&[("home/.config/opencode/opencode.jsonc", deny)], false),
        (&[("home/.opencode/opencode.json", deny)], false),
        (
            &[
                ("home/.config/opencode/config.json", deny),
                ("home/.config/opencode/opencode.json", allow),
            ],
            true,
        ),
        // Only the user's folder has a file of this name.
        (&[("project/config.json", deny)], true),
        (&[("project/.opencode/config.json", deny)], true),
    ] {
        let folder = tree(&[files, &[("project/.opencode/agent/x.md", "Go.\n")]].concat());
        let (project, home) = (folder.path().join("project"), folder.path().join("home"));
        let registry = Registry::read(&Folders::trusted(project, Some(home)));
        let tools = &registry.get(Kind::Agent, "x").unwrap().tools;
        assert_eq!(tools.may_run(), may_run, "{files:?}");
        let turns = registry.tools_of_turns("opencode").unwrap();
        assert_eq!(turns.may_run(), may_run, "{files:?}");
    }
}

/// Variables of the environment name further settings of the user's.
#[test]
fn settings_that_the_environment_names_restrict() {
    let deny = r#"{"permission": {"bash": "deny"}, "agent": {"y": {"prompt": "Go."}}}"#;
    for (variable, value, file) in [
        ("XDG_CONFIG_HOME", "elsewhere", "elsewhere/opencode/config.json"),
        ("XDG_CONFIG_HOME", "elsewhere", "elsewhere/opencode/opencode.jsonc"),
        ("OPENCODE_CONFIG", "mine.json", "mine.json"),
        ("OPENCODE_CONFIG_DIR", "settings", "settings/opencode.json"),
        ("OPENCODE_CONFIG_CONTENT", deny, "unused.json"),
        ("OPENCODE_CONFIG_CONTENT", "{", "unused.json"),
    ] {
        let folder = tree(&[(file, deny), ("project/.opencode/agent/x.md", "Go.\n")]);
        let value = match variable {
            "OPENCODE_CONFIG_CONTENT" => value.into(),
            _ => folder.path().join(value).into_os_string(),
        };
        let named = OpenCodeEnvironment::read(|name| (name == variable).then(|| value.clone()));
        for (opencode, may_run) in [(named, false), (OpenCodeEnvironment::default(), true)] {
            let trusted = Folders::trusted(folder.path().join("project"), None);
            let registry = Registry::read(&Folders { opencode, ..trusted });
            let tools = &registry.get(Kind::Agent, "x").unwrap().tools;
            assert_eq!(tools.may_run(), may_run, "{variable}: {file}");
            let turns = registry.tools_of_turns("opencode").unwrap();
            assert_eq!(turns.may_run(), may_run, "{variable}: {file}");
            assert!(registry.get(Kind::Agent, "y").is_err(), "only restrictions are read");
        }
    }
}

/// OpenCode reads the settings of every folder up to the root of the repository.
#[test]
fn settings_above_the_project_restrict() {
    let deny = r#"{"permission": {"bash": "deny"}}"#;
    let allow = r#"{"permission": {"bash": "allow"}}"#;
    let build = r#"{"agent": {"build": {"permission": {"bash": "deny"}}}}"#;
    let x = r#"{"agent": {"x": {"prompt": "Go.", "permission": {"bash": "deny"}}}}"#;
    // The files; whether agent `x` and a turn without an agent may run commands.
    for (files, agent, turn) in [
        (&[("opencode.json", deny)] as &[(&str, &str)], false, false),
        (&[("opencode.jsonc", r#"{"tools": {"bash": false}}"#)], false, false),
        (&[("repo/opencode.json", deny)], false, false),
        (&[(".opencode/opencode.json", deny)], false, false),
        (&[("opencode.json", "{")], false, false),
        (&[("opencode.json", build)], true, false),
        (&[("opencode.json", x)], false, true),
        (&[(".opencode/agent/build.md", "---\npermission: {bash: deny}\n---\nGo.\n")], true, false),
        (&[(".opencode/agents/x.md", "---\npermission: {bash: deny}\n---\nGo.\n")], false, true),
        (&[("opencode.json", r#"{"default_agent": "explore"}"#)], true, true),
        (&[("opencode.json", r#"{"default_agent": "title"}"#)], true, false),
        (
            &[
                ("opencode.json", r#"{"default_agent": "quiet"}"#),
                (".opencode/agent/quiet.md", "---\npermission: {bash: deny}\n---\nGo.\n"),
            ],
            true,
            false,
        ),
        // As in OpenCode: of plain files the innermost wins, of those in `.opencode` the outermost.
        (&[("opencode.json", deny), ("repo/sub/opencode.json", allow)], true, true),
        (&[("opencode.json", allow), ("repo/sub/opencode.json", deny)], false, false),
        (
            &[(".opencode/opencode.json", deny), ("repo/sub/.opencode/opencode.json", allow)],
            false,
            false,
        ),
        // Above the repository nothing is read.
        (&[("../opencode.json", deny)], true, true),
    ] {
        let folder = tree(&[("root/repo/sub/.opencode/agent/x.md", "Go.\n")]);
        let root = folder.path().join("root");
        fs::create_dir_all(root.join(".git/refs")).unwrap();
        for (path, text) in files {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        for trusted in [true, false] {
            let project = root.join("repo/sub");
            let folders = Folders { trusted, ..Folders::trusted(project, None) };
            let registry = Registry::read(&folders);
            let tools = &registry.get(Kind::Agent, "x").unwrap().tools;
            assert_eq!(tools.may_run(), agent, "{files:?}, trusted: {trusted}");
            // Without trust a project has no say about turns.
            let turns = registry.tools_of_turns("opencode").unwrap();
            assert_eq!(turns.may_run(), turn || !trusted, "{files:?}, trusted: {trusted}");
            assert!(registry.get(Kind::Agent, "quiet").is_err(), "only restrictions are read");
        }
    }
}

/// `agent.x.disable` in OpenCode's settings holds for an agent in a file, too.
#[test]
fn agents_that_settings_disable_are_left_out() {
    let (theirs, mine) = ("repo/sub/.opencode/agent/x.md", "home/.config/opencode/agent/x.md");
    let claudes = "repo/sub/.claude/agents/x.md";
    let off = r#"{"agent": {"x": {"disable": true}}}"#;
    // The files, whether the project is trusted, and the file of the agent that is left.
    for (files, trusted, left) in [
        (&[("repo/sub/opencode.json", off)] as &[(&str, &str)], true, None),
        (&[("repo/opencode.json", off)], true, None),
        (&[("repo/sub/opencode.json", r#"{"mode": {"X": {"disable": "yes"}}}"#)], true, None),
        (&[("home/.config/opencode/config.json", off)], true, None),
        (&[("home/.config/opencode/config.json", off)], false, None),
        // Without trust a project has no say about the user's agents.
        (&[("repo/sub/opencode.json", off)], false, Some(mine)),
        (&[("repo/sub/opencode.json", off), (claudes, "Go.\n")], true, Some(claudes)),
        (
            &[
                ("repo/opencode.json", off),
                ("repo/sub/opencode.json", r#"{"agent": {"x": {"disable": false}}}"#),
            ],
            true,
            Some(theirs),
        ),
        (&[("repo/sub/opencode.json", "{}")], true, Some(theirs)),
    ] {
        let folder = tree(&[files, &[(theirs, "Go.\n"), (mine, "Go.\n")]].concat());
        fs::create_dir_all(folder.path().join("repo/.git/refs")).unwrap();
        let (project, home) = (folder.path().join("repo/sub"), folder.path().join("home"));
        let folders = Folders { trusted, ..Folders::trusted(project, Some(home)) };
        let registry = Registry::read(&folders);
        let found = registry.find(Kind::Agent, "x").and_then(|it| it.origin.path.clone());
        let left = left.map(|path| folder.path().join(path));
        assert_eq!(found, left, "{files:?}, trusted: {trusted}");
    }
}

/// Commands and turns without an agent run as the agent that OpenCode takes for them.
#[test]
fn the_default_agent_restricts_commands_and_turns_without_an_agent() {
    let reviewer = r#""reviewer": {"prompt": "Go.", "permission": {"edit": "deny"}}"#;
    for (settings, users, edit, run) in [
        (r#"{}"#, "", true, true),
        (r#"{"agent": {"build": {"permission": {"bash": "deny"}}}}"#, "", true, false),
        (r#"{"agent": {"build": {"tools": {"write": false}}}}"#, "", false, true),
        (r#"{"agent": {"build": {"permission": "maybe"}}}"#, "", false, false),
        (r#"{"agent": {"build": "x"}}"#, "", false, false),
        (
            r#"{"agent": {"build": {"prompt": "Go.", "permission": {"bash": "deny"}}}}"#,
            "",
            true,
            false,
        ),
        (r#"{"agent": {"build": {"prompt": 7, "permission": {"bash": "deny"}}}}"#, "", true, false),
        (r#"{"mode": {"build": {"permission": {"bash": "deny"}}}}"#, "", true, false),
        // The agent's permissions come after those for all agents.
        (r#"{"permission": {"bash": "deny"}}"#, "", true, false),
        (
            r#"{"permission": {"bash": "deny", "edit": "deny"}, "agent": {"build": {"permission": {"bash": "allow"}}}}"#,
            "",
            false,
            true,
        ),
        (
            r#"{"permission": {"bash": "allow"}, "agent": {"build": {"permission": {"bash": "deny"}}}}"#,
            "",
            true,
            false,
        ),
        // Other agents do not count, nor does `plan` unless it is chosen.
        (r#"{"agent": {"plan": {"permission": {"bash": "deny"}}}}"#, "", true, true),
        (r#"{"default_agent": "plan"}"#, "", false, true),
        (
            r#"{"default_agent": "plan", "agent": {"plan": {"permission": {"bash": "deny"}}}}"#,
            "",
            false,
            false,
        ),
        (r#"{"agent": {"build": {"disable": true}}}"#, "", false, true),
        (&format!(r#"{{"default_agent": "reviewer", "agent": {{{reviewer}}}}}"#), "", false, true),
        (r#"{"default_agent": "nobody"}"#, "", false, false),
        (r#"{"default_agent": 7}"#, "", false, false),
        // The user's settings hold in every project.
        ("{}", r#"{"agent": {"build": {"permission": {"bash": "deny"}}}}"#, true, false),
        (
            r#"{"agent": {"build": {"permission": {"bash": "allow"}}}}"#,
            r#"{"permission": {"bash": "deny"}}"#,
            true,
            false,
        ),
        (r#"{"default_agent": "build"}"#, r#"{"default_agent": "plan"}"#, false, true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("project/opencode.json", settings);
        write(USERS, if users.is_empty() { "{}" } else { users });
        write("project/.opencode/command/plain.md", "Go.\n");
        write("project/.opencode/skill/known/SKILL.md", "Go.\n");
        write("project/.claude/commands/other.md", "Go.\n");
        let (project, home) = (folder.path().join("project"), folder.path().join("home"));
        let registry = Registry::read(&Folders::trusted(project, Some(home)));
        let on = BackendId::from("opencode");
        let may = |rules: &ToolRules| {
            let input = [json!({ "filePath": "src/a.rs" }), json!({ "command": "touch x" })];
            let is_free = |tool, input| rules.refusal(tool, input, folder.path()).is_none();
            (is_free("edit", &input[0]), is_free("bash", &input[1]))
        };
        let of = |kind, name| may(&tools_of(registry.get(kind, name).unwrap(), &on));
        assert_eq!(of(Kind::Command, "plain"), (edit, run), "{settings} {users}");
        assert_eq!(of(Kind::Skill, "known"), (edit, run), "{settings} {users}");
        assert_eq!(may(&tools_of_turn(&registry, &on)), (edit, run), "{settings} {users}");
        let on_claude = tools_of_turn(&registry, &BackendId::from("claude"));
        assert!(on_claude.allow_everything());
        assert_eq!(of(Kind::Command, "other"), (true, true), "{settings} {users}");
    }
}

/// The restrictions of an agent that is not known are not known either.
#[test]
fn commands_of_an_unknown_agent_may_use_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for (path, head) in [
        (".opencode/command/lost.md", "agent: nobody"),
        (".opencode/command/claudes.md", "agent: quiet"),
        (".opencode/command/own.md", "agent: general"),
        (".claude/skills/lost/SKILL.md", "context: fork\nagent: nobody"),
        (".claude/skills/own/SKILL.md", "context: fork\nagent: general-purpose"),
        (".claude/agents/quiet.md", "description: Works"),
    ] {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("---\n{head}\n---\nGo.\n")).unwrap();
    }
    let registry = Registry::read(&Folders::trusted(folder.path().to_owned(), None));
    for (kind, name, is_known) in [
        (Kind::Command, "lost", false),
        (Kind::Command, "claudes", false),
        (Kind::Command, "own", true),
        (Kind::Skill, "lost", false),
        (Kind::Skill, "own", true),
    ] {
        let entity = registry.get(kind, name).unwrap();
        assert_eq!(
            (entity.tools.may_read(), entity.tools.unclear),
            (is_known, !is_known),
            "{name}"
        );
        let is_told =
            registry.findings.iter().any(|it| Some(&it.path) == entity.origin.path.as_ref());
        assert_eq!(is_told, !is_known, "{name}");
    }
}

/// What runs as an agent has its restrictions, and a file does not loosen those in the settings.
#[test]
fn restrictions_of_an_agent_hold_wherever_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let settings =
        json!({ "agent": { "both": { "prompt": "Go.", "permission": { "bash": "deny" } } } });
    write("opencode.json", &settings.to_string());
    write(".opencode/agent/both.md", "---\nmode: all\n---\nGo.\n");
    write(".opencode/agent/careful.md", "---\npermission: {bash: deny}\n---\nGo.\n");
    write(".opencode/command/ship.md", "---\nagent: careful\n---\nGo.\n");
    write(".opencode/command/free.md", "Go.\n");
    write(".claude/agents/quiet.md", "---\ndisallowedTools: Bash\n---\nGo.\n");
    let skill = |name: &str, head: &str| {
        write(&format!(".claude/skills/{name}/SKILL.md"), &format!("---\n{head}\n---\nGo.\n"));
    };
    skill("forked", "context: fork\nagent: quiet");
    skill("explores", "context: fork\nagent: Explore");
    skill("inline", "agent: quiet");
    let registry = Registry::read(&Folders::trusted(folder.path().to_owned(), None));
    for (kind, name, expected) in [
        (Kind::Agent, "both", (true, false)),
        (Kind::Command, "ship", (true, false)),
        (Kind::Command, "free", (true, true)),
        (Kind::Skill, "forked", (true, false)),
        (Kind::Skill, "explores", (false, false)),
        (Kind::Skill, "inline", (true, true)),
    ] {
        let tools = &registry.get(kind, name).unwrap().tools;
        assert_eq!((tools.may_edit(), tools.may_run()), expected, "{name}");
    }
}

/// In commands and skills of agent programs `allowed-tools` approves tools in advance.
#[test]
fn allowed_tools_of_commands_and_skills_do_not_restrict() {
    let folder = tempfile::tempdir().unwrap();
    let text = |head: &str| format!("---\n{head}\n---\nGo.\n");
    let (everything, nothing) = ((true, true, true), (false, false, false));
    let git = "allowed-tools: Bash(git *)";
    let table = [
        (".claude/commands/a.md", git, everything),
        (".claude/commands/b.md", "allowed-tools: Bash(git", everything),
        (".claude/commands/c.md", "allowed-tools:", everything),
        (
            ".claude/commands/d.md",
            "allowed-tools: Read\ndisallowed-tools: Bash",
            (true, true, false),
        ),
        (".claude/commands/e.md", "allowed-tools: Edit\ntools: Read", (true, false, false)),
        (".claude/skills/f/SKILL.md", git, everything),
        (".opencode/skill/g/SKILL.md", git, everything),
        (".opencode/command/h.md", git, everything),
        (".github/skills/i/SKILL.md", git, everything),
        (".claude/agents/j.md", "allowed-tools: Read", (true, false, false)),
        (".atomic/commands/k.md", "allowed-tools: Read", (true, false, false)),
        (".atomic/skills/l/SKILL.md", "allowed-tools:", nothing),
    ];
    for (path, head, _) in table {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text(head)).unwrap();
    }
    // A head that nothing opens.
    let headless = folder.path().join(".claude/commands/m.md");
    fs::write(&headless, format!("Some words.\n{git}\n")).unwrap();
    let registry = Registry::read(&Folders::trusted(folder.path().to_owned(), None));
    let of = |path: &Path| {
        let is_it = |entity: &&Entity| entity.origin.path.as_deref() == Some(path);
        let tools = &registry.all().find(is_it).unwrap().tools;
        (tools.may_use("read"), tools.may_edit(), tools.may_run())
    };
    for (path, head, expected) in table {
        assert_eq!(of(&folder.path().join(path)), expected, "{path}: {head}");
    }
    assert_eq!(of(&headless), everything);
}
