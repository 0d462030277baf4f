//! Names that several things have: which one is meant, and which ones it hides.

use std::os::unix::fs::symlink;

use atomic_registry::{Folders, Kind, Provider, Registry, Scope};

use crate::tree::Tree;

/// Every place, the nearest first, with one agent of the same name in each.
const AGENTS: &[&str] = &[
    "project/.atomic/agents/worker.md",
    "project/.claude/agents/worker.md",
    "project/.opencode/agent/worker.md",
    "project/.opencode/agents/worker.md",
    "project/.github/agents/worker.agent.md",
    "project/.copilot/agents/worker.md",
    "home/.atomic/agents/worker.md",
    "home/.claude/agents/worker.md",
    "home/.opencode/agents/worker.md",
    "home/.config/opencode/agent/worker.md",
    "home/.copilot/agents/worker.md",
    "home/.atomic/.claude/agents/worker.md",
    "home/.atomic/.opencode/agents/worker.md",
    "home/.atomic/.copilot/agents/worker.md",
];

fn says(text: &str) -> String {
    format!("---\ndescription: {text}\n---\nx\n")
}

/// What is meant by a name of each kind.
fn meant(tree: &Tree, names: &[&str]) -> String {
    let registry = tree.registry();
    let mut lines = vec![];
    for name in names {
        for kind in Kind::ALL {
            if let Some(entity) = registry.find(kind, name) {
                let (kind, origin) = (kind.word(), tree.plain(&entity.origin.to_string()));
                lines.push(format!("{kind} {name} is {} ({origin})", entity.name));
            }
        }
    }
    lines.join("\n")
}

#[test]
fn who_hides_whom() {
    let tree = Tree::of(&[]);
    for path in AGENTS {
        tree.write(path, &says("Works"));
    }
    let settings = r#"{"agent": {"worker": {"prompt": "x"}, "Planner": {"prompt": "x"}}}"#;
    tree.write("project/opencode.json", settings);
    tree.write("home/.config/opencode/opencode.json", settings);
    // One name in all kinds of one provider, in two scopes.
    for root in ["project", "home"] {
        tree.write(&format!("{root}/.claude/commands/commit.md"), &says("Commits"));
        tree.write(&format!("{root}/.claude/skills/commit/SKILL.md"), &says("Commits"));
        tree.write(&format!("{root}/.claude/agents/commit.md"), &says("Commits"));
    }
    // One name twice in a folder, in two cases, and as the last part of another.
    tree.write("project/.claude/commands/a.md", "---\nname: Twice\n---\nx\n");
    tree.write("project/.claude/commands/b.md", "---\nname: twice\n---\nx\n");
    tree.write("project/.claude/commands/git/sync.md", &says("Syncs"));
    tree.write("project/.claude/commands/web/sync.md", &says("Syncs"));
    tree.write("home/.claude/commands/sync.md", &says("Syncs"));
    // Other names: two have the same, one is a name farther away, one is a built-in's other name.
    tree.write("project/.atomic/commands/go.md", "---\naliases: g, run\n---\nx\n");
    tree.write("project/.claude/commands/gather.md", "---\naliases: [G, init]\n---\nx\n");
    tree.write("home/.atomic/.claude/commands/run.md", &says("Runs"));
    tree.write("project/.atomic/skills/research/SKILL.md", &says("Researches"));
    tree.write("project/.atomic/skills/explain/SKILL.md", "---\naliases: init\n---\nx\n");
    let names =
        ["worker", "planner", "commit", "ci", "twice", "sync", "g", "run", "research", "init"];
    let shown = format!("{}\n\n{}", tree.listing(), meant(&tree, &names));
    insta::assert_snapshot!(shown);
}

/// Taking the nearest away again and again, the next one is meant, to the last.
#[test]
fn what_is_hidden_comes_to_light() {
    let tree = Tree::of(&[]);
    for path in AGENTS {
        tree.write(path, &says(path));
    }
    for path in AGENTS {
        let registry = tree.registry();
        assert_eq!(registry.find(Kind::Agent, "worker").unwrap().description.as_ref(), *path);
        std::fs::remove_file(tree.path(path)).unwrap();
    }
    let registry = tree.registry();
    let last = registry.find(Kind::Agent, "worker").unwrap();
    assert_eq!(last.origin.scope, Scope::BuiltIn);
}

#[test]
fn a_home_folder_that_is_the_project_is_read_once() {
    let tree = Tree::of(&[
        ("home/.claude/agents/looker.md", &says("Looks")),
        ("home/.copilot/agents/reader.md", &says("Reads")),
        ("home/.atomic/agents/own.md", &says("Is ours")),
        ("home/.config/opencode/agents/far.md", &says("Is the user's")),
        ("home/.config/opencode/opencode.json", r#"{"agent": {"set": {"prompt": "x"}}}"#),
        ("home/.opencode/opencode.json", r#"{"agent": {"once": {"prompt": "x"}}}"#),
        ("home/.atomic/.claude/agents/kept.md", &says("Is kept")),
    ]);
    symlink(tree.path("home"), tree.path("link")).unwrap();
    for (project, home) in
        [("home/../home", "home"), ("home", "link"), ("link", "home"), ("link", "link")]
    {
        let folders = Folders::trusted(tree.path(project), Some(tree.path(home)));
        let registry = Registry::read(&folders);
        let mut found: Vec<String> = vec![];
        for entity in registry.all().filter(|entity| entity.origin.path.is_some()) {
            assert_eq!(registry.overridden(entity).count(), 0, "{} in {project}", entity.name);
            found.push(format!("{} {}", entity.origin.scope.name(), entity.name));
        }
        found.sort();
        let expected = [
            "managed kept",
            "project looker",
            "project once",
            "project own",
            "project reader",
            "user far",
            "user set",
        ];
        assert_eq!(found, expected, "{project} with {home} as home");
        assert_eq!(registry.count(Some(Provider::Claude), Kind::Agent), 2);
        assert_eq!(registry.findings, []);
    }
}
