//! Files of a project that are links, pipes or devices.

use std::fs;
use std::process::Command;

use super::{Attack, Ground, SECRET};

const RALPH: &[&str] = &["run", "ralph", "Build it"];

/// A place in the project that leads to the precious folder.
fn leads_out(path: &'static str) -> Attack {
    Attack::new(move |ground| ground.link(path, ground.env.outside("precious")))
}

/// The control: the same folder, reached by a link that is the user's own because it lies outside of
/// the project. What the command writes there then shows.
fn link_of_the_user(ground: &mut Ground) {
    let project = ground.env.outside("precious/project");
    fs::create_dir_all(&project).unwrap();
    let work = ground.env.work();
    fs::remove_dir_all(&work).unwrap();
    std::os::unix::fs::symlink(&project, &work).unwrap();
}

#[test]
fn a_folder_of_ralph_that_leads_out() {
    leads_out(".ralph").works_only_for_the_user(link_of_the_user, RALPH);
}

#[test]
fn a_folder_of_sessions_that_leads_out() {
    leads_out(".ralph/sessions").works_only_for_the_user(link_of_the_user, RALPH);
}

#[test]
fn a_folder_of_other_sessions_that_leads_out() {
    leads_out(".atomic/sessions").works_only_for_the_user(link_of_the_user, RALPH);
}

#[test]
fn a_folder_of_atomic_that_leads_out() {
    leads_out(".atomic").works_only_for_the_user(link_of_the_user, RALPH);
}

#[test]
fn settings_that_lead_out() {
    let attack = Attack::new(|ground| {
        ground.outside("precious/data.json", "{\"workers\": 3}\n");
        ground.link(".atomic/settings.json", ground.env.outside("precious/data.json"));
    });
    attack.works_only_for_the_user(link_of_the_user, &["config", "set", "workers", "2"]);
}

#[test]
fn workflows_that_lead_out() {
    leads_out(".atomic/workflows").works_only_for_the_user(link_of_the_user, RALPH);
}

#[test]
fn a_skill_that_leads_out() {
    let attack = Attack::new(|ground| {
        ground.link(".claude/skills/spell/SKILL.md", ground.env.outside("precious/secret.txt"));
        ground.link(".claude/agents/deploy.md", ground.env.outside("precious/secret.txt"));
    });
    attack.works_only_when_trusted(&["show", "spell"]);
}

#[test]
fn a_folder_of_skills_that_leads_out() {
    let attack = Attack::new(|ground| {
        let secret = fs::read_to_string(ground.env.outside("precious/secret.txt")).unwrap();
        ground.outside("elsewhere/spell/SKILL.md", &secret);
        ground.link(".claude/skills", ground.env.outside("elsewhere"));
    });
    attack.works_only_when_trusted(&["show", "spell"]);
}

/// The file of tasks that a workflow of the user goes through.
fn task_loop(ground: &Ground) {
    ground.users(
        ".atomic/workflows/deploy.json",
        r#"{"nodes": [{"type": "taskLoop", "id": "l", "taskNodes": [{"type": "tool", "id": "t", "command": "true"}]}]}"#,
    );
    let tasks = r#"[{"id": "1", "content": "A", "status": "pending"}]"#;
    ground.project("research/tasks.json", tasks);
}

#[test]
fn a_temporary_file_of_tasks_that_leads_out() {
    let attack = Attack::new(|ground| {
        task_loop(ground);
        for name in ["tasks.json.tmp", ".tasks.json.tmp", "tasks.json~"] {
            ground.link(&format!("research/{name}"), ground.env.outside("precious/secret.txt"));
        }
    });
    attack.works_only_for_the_user(link_of_the_user, RALPH);
}

#[test]
fn a_file_of_tasks_that_leads_out() {
    let attack = Attack::new(|ground| {
        task_loop(ground);
        let tasks = ground.env.work().join("research/tasks.json");
        fs::rename(&tasks, ground.env.outside("precious/tasks.json")).unwrap();
        ground.link("research/tasks.json", ground.env.outside("precious/tasks.json"));
    });
    attack.works_only_for_the_user(link_of_the_user, RALPH);
}

#[test]
fn a_picture_that_leads_out() {
    let attack = Attack::new(|ground| {
        ground.link("picture.mmd", ground.env.outside("precious/secret.txt"));
    });
    let typed = &["graph", "ralph", "--output", "../precious/secret.txt"];
    attack.works_only_for_the_user(|_| (), typed);
}

/// Places of which a program reads what is there, without being told.
const READ: &[&str] = &[
    "Makefile",
    "package.json",
    "pyproject.toml",
    "tox.ini",
    "opencode.json",
    "CLAUDE.md",
    "AGENTS.md",
    ".mcp.json",
    ".gitignore",
    ".atomic/settings.json",
    ".atomic/agents/worker.md",
    ".atomic/commands/deploy.md",
    ".atomic/workflows/deploy.json",
    ".atomic/workflows/other.ts",
    ".claude/settings.json",
    ".claude/skills/spell/SKILL.md",
    ".github/agents/a.agent.md",
    ".git/config",
    ".git/HEAD",
    "research/tasks.json",
];

/// The control for places that no command may wait for: with a regular file behind the same link,
/// a command reads the place.
fn is_read_as_a_regular_file() {
    let regular = Attack::new(|ground| {
        ground.project("inner.md", SECRET);
        for path in READ.iter().filter(|path| path.starts_with(".claude/skills")) {
            ground.link(path, ground.env.work().join("inner.md"));
        }
    });
    regular.works(|_| (), &["show", "spell"]);
}

/// Nothing waits for a pipe. A test that hangs is ended as a failure.
#[test]
fn pipes_everywhere() {
    let attack = Attack::new(|ground| {
        for path in READ {
            let path = ground.env.work().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        }
    });
    attack.fails_everywhere();
    is_read_as_a_regular_file();
}

/// Nothing reads a device without an end.
#[test]
fn devices_everywhere() {
    let attack = Attack::new(|ground| {
        for path in READ {
            ground.link(path, "/dev/zero");
        }
    });
    attack.fails_everywhere();
    is_read_as_a_regular_file();
}

/// Folders that are looked through end, also where links in them lead back.
#[test]
fn links_that_lead_round_in_circles() {
    let attack = Attack::new(|ground| {
        for folder in [".github/hooks", ".opencode/plugin", ".claude/skills", ".atomic/workflows"] {
            for link in ["a", "b", "c", "d", "e", "f", "g", "h"] {
                ground.link(&format!("{folder}/{link}"), ".");
            }
        }
    });
    attack.fails_everywhere();
    let followed = Attack::new(|ground| {
        ground.project("inner/spell/SKILL.md", SECRET);
        ground.link(".claude/skills", ground.env.work().join("inner"));
    });
    followed.works(|_| (), &["show", "spell"]);
}

#[test]
fn a_prompt_that_leads_out() {
    let attack = Attack::new(|ground| {
        ground.link("Build it", ground.env.outside("precious/secret.txt"));
        ground.link("Hello", ground.env.outside("precious/secret.txt"));
    });
    let typed = &["run", "ralph", "../precious/secret.txt"];
    attack.works_only_for_the_user(|_| (), typed);
}
