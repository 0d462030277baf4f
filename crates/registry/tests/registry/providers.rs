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

/// What is easily overlooked: it is read, or it is told.
#[test]
fn nothing_is_overlooked() {
    let tree = Tree::of(&[
        ("project/.claude/agents/???.md", "---\nname: \"###\"\n---\nx\n"),
        ("project/.claude/skills/outer/SKILL.md", "Outer.\n"),
        ("project/.claude/skills/outer/inner/Skill.md", "Inner.\n"),
        ("home/.github/agents/far.md", "Far.\n"),
        ("home/text.md", "From home."),
        (
            "project/opencode.json",
            "{\"command\": {\n\"a\": {\"template\": \"{file:~/text.md}\"},\n\"b\": {\"template\": \"x\", \"disable\": true}}}",
        ),
    ]);
    insta::assert_snapshot!(tree.listing());
    let registry = tree.registry();
    let prompt = registry.prompt(registry.find(Kind::Command, "a").unwrap()).unwrap();
    assert_eq!(prompt, "From home.");
}
