//! What each provider's folders come to.

use atomic_registry::{Kind, Provider};

use crate::tree::Tree;

const AGENT: &str = "---\ndescription: Looks\ntools: Read, Grep\nmodel: sonnet\n---\nLook.\n";

#[test]
fn claude() {
    let tree = Tree::of(&[
        ("project/.claude/agents/looker.md", AGENT),
        ("project/.claude/agents/deep/down.md", "---\nname: Deep Down\n---\nDig.\n"),
        ("project/.claude/commands/fix.md", "Fix $ARGUMENTS\n"),
        (
            "project/.claude/commands/git/sync.md",
            "---\ndescription: Syncs\nargument-hint: [branch]\nallowed-tools: Bash(git:*), Edit\n---\nSync.\n",
        ),
        (
            "project/.claude/skills/pdf/SKILL.md",
            "---\nname: pdf\ndescription: Reads PDFs\n---\nRead.\n",
        ),
        ("project/.claude/skills/pdf/scripts/read.py", "print()\n"),
        ("home/.claude/agents/looker.md", "---\ndescription: Farther\n---\nLook.\n"),
    ]);
    insta::assert_snapshot!(tree.listing());
}

#[test]
fn opencode() {
    let tree = Tree::of(&[
        (
            "project/.opencode/agent/plan.md",
            "---\ndescription: Plans\nmode: subagent\ntools:\n  bash: true\n  write: false\n---\nPlan.\n",
        ),
        (
            "project/.opencode/commands/test.md",
            "---\nagent: build\nmodel: anthropic/claude-opus-4\n---\nTest it.\n",
        ),
        ("project/.opencode/skills/fast/SKILL.md", "---\ndescription: Is fast\n---\nRun.\n"),
        (
            "project/opencode.jsonc",
            "{\n  // a comment\n  \"command\": {\"ship\": {\"template\": \"Ship $1\", \"description\": \"Ships\"}},\n  \"agent\": {\n    \"docs\": {\"prompt\": \"{file:./docs.md}\", \"description\": \"Writes docs\"},\n    \"build\": {\"model\": \"gpt-5\"},\n  },\n}\n",
        ),
        ("project/docs.md", "Write docs.\n"),
        (
            "home/.config/opencode/agents/far.md",
            "---\ndescription: Far\ndisable: true\n---\nFar.\n",
        ),
    ]);
    insta::assert_snapshot!(tree.listing());
    let registry = tree.registry();
    let prompt = |kind, name| registry.prompt(registry.find(kind, name).unwrap()).unwrap();
    assert_eq!(prompt(Kind::Agent, "docs").trim(), "Write docs.");
    assert_eq!(prompt(Kind::Command, "SHIP"), "Ship $1");
    assert_eq!(prompt(Kind::Agent, "plan"), "Plan.");
}

#[test]
fn copilot_and_atomic() {
    let tree = Tree::of(&[
        (
            "project/.github/agents/reader.agent.md",
            "---\nname: Reader\ndescription: Reads\ntools: ['read', 'search']\n---\nRead.\n",
        ),
        (
            "project/.github/skills/lint/SKILL.md",
            "---\nname: lint\ndescription: Lints\nlicense: MIT\n---\nLint.\n",
        ),
        ("home/.copilot/agents/home.md", "---\ndescription: At home\n---\nHome.\n"),
        ("home/.atomic/.copilot/agents/kept.md", "---\ndescription: Kept\n---\nKeep.\n"),
        (
            "project/.atomic/commands/go.md",
            "---\ndescription: Goes\naliases: [g, run-it]\nrequired-arguments: [where]\n---\nGo to $1.\n",
        ),
        ("project/.atomic/agents/worker.md", "---\ndescription: Ours\n---\nWork.\n"),
    ]);
    insta::assert_snapshot!(tree.listing());
    let registry = tree.registry();
    assert_eq!(registry.find(Kind::Command, "RUN-IT").unwrap().name, "go");
    assert_eq!(registry.find(Kind::Agent, "worker").unwrap().description, "Ours");
    assert_eq!(registry.count(Some(Provider::Copilot), Kind::Agent), 3);
    let unknown = registry.get(Kind::Skill, "comit").unwrap_err();
    assert_eq!(unknown.to_string(), "Skill not found: \"comit\" (did you mean \"commit\"?)");
}

/// Project before user before managed before built-in; inside a scope Atomic, Claude, OpenCode,
/// Copilot; a name beats another one's other name.
#[test]
fn the_nearest_is_meant() {
    let says = |text: &str| format!("---\ndescription: {text}\n---\nx\n");
    let all = [
        "project/.atomic/agents",
        "project/.claude/agents",
        "project/.opencode/agents",
        "project/.github/agents",
        "home/.atomic/agents",
        "home/.claude/agents",
        "home/.opencode/agents",
        "home/.copilot/agents",
        "home/.atomic/.claude/agents",
        "home/.atomic/.opencode/agents",
        "home/.atomic/.copilot/agents",
    ];
    let tree = Tree::of(&[]);
    for folder in all.iter().rev() {
        tree.write(&format!("{folder}/worker.md"), &says(folder));
        let registry = tree.registry();
        assert_eq!(registry.find(Kind::Agent, "worker").unwrap().description, *folder);
    }
    tree.write("project/.atomic/agents/other.md", "---\naliases: planner\n---\nx\n");
    let registry = tree.registry();
    assert_eq!(registry.find(Kind::Agent, "planner").unwrap().name, "planner");
    assert_eq!(
        registry.overridden(registry.find(Kind::Agent, "worker").unwrap()).count(),
        all.len()
    );
}

#[test]
fn a_home_folder_that_is_the_project_is_read_once() {
    let tree = Tree::of(&[("home/.claude/agents/looker.md", AGENT)]);
    let mut folders = tree.folders();
    folders.project = tree.path("home/../home");
    let registry = atomic_registry::Registry::read(&folders);
    let looker = registry.find(Kind::Agent, "looker").unwrap();
    assert_eq!(looker.origin.scope.name(), "project");
    assert_eq!(registry.overridden(looker).count(), 0);
    assert_eq!(registry.count(Some(Provider::Claude), Kind::Agent), 1);
}
