//! What each provider's folders come to.

use atomic_registry::{Entity, Kind, Prompt, Provider, Severity, arguments};

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
    assert_eq!(registry.find(Kind::Agent, "worker").unwrap().description.as_ref(), "Ours");
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

/// A model in a file of a provider, and what backends are told.
#[test]
fn a_model_is_what_it_is_only_on_its_own_backend() {
    let (claude, opencode) = ("project/.claude/agents/a.md", "project/.opencode/agent/a.md");
    let (copilot, atomic) = ("project/.github/agents/a.agent.md", "project/.atomic/agents/a.md");
    let sonnet = "anthropic/claude-sonnet-4";
    let files = [
        (claude, "claude-opus-4-5", [Some("claude-opus-4-5"), None, None]),
        (claude, "gpt-5", [Some("gpt-5"), None, None]),
        (claude, "Inherit", [None, None, None]),
        (opencode, sonnet, [Some("sonnet"), Some(sonnet), None]),
        (opencode, "openai/gpt-5", [None, Some("openai/gpt-5"), None]),
        (copilot, "claude-sonnet-4.5", [Some("sonnet"), None, Some("claude-sonnet-4.5")]),
        (copilot, "gpt-5", [None, None, Some("gpt-5")]),
        (copilot, "sonnet", [Some("sonnet"), None, Some("sonnet")]),
        (copilot, "Claude Sonnet 4.5 (copilot)", [Some("sonnet"), None, None]),
        (copilot, "GPT-5 (copilot)", [None, None, None]),
        (copilot, "inherit", [None, None, None]),
        (atomic, "claude-haiku-4-5", [Some("haiku"), None, Some("claude-haiku-4-5")]),
        (atomic, "Haiku", [Some("haiku"), None, None]),
        (atomic, "gpt-5", [Some("gpt-5"), None, Some("gpt-5")]),
        (atomic, "GPT-5 (copilot)", [Some("GPT-5 (copilot)"), None, None]),
        (atomic, "x/haiku-4", [Some("haiku"), Some("x/haiku-4"), Some("x/haiku-4")]),
    ];
    for (path, model, told) in files {
        let registry = Tree::of(&[(path, &format!("---\nmodel: {model}\n---\nx\n"))]).registry();
        let agent = registry.find(Kind::Agent, "a").unwrap();
        let on = |backend| agent.model.as_ref().unwrap().on(backend, agent.origin.provider);
        assert_eq!(["claude", "opencode", "copilot"].map(on), told, "{model} in {path}");
    }
}

#[test]
fn what_is_missing_is_told_with_the_hint() {
    let head = "---\nargument-hint: <where> [when]\nrequired-arguments: where\n---\nGo.\n";
    let registry = Tree::of(&[("project/.atomic/commands/go.md", head)]).registry();
    let go = registry.find(Kind::Command, "go").unwrap();
    let told = arguments::require(go, " ").unwrap_err().to_string();
    assert_eq!(told, "go needs <where>; type: /go <where> [when]");
    assert_eq!(arguments::require(go, "home"), Ok(()));
}

#[test]
fn settings_of_opencode_name_their_agents_by_their_keys() {
    let agents = r#"{"agent": {"key": {"prompt": "x", "name": "other"}}}"#;
    let registry = Tree::of(&[("project/opencode.json", agents)]).registry();
    assert!(registry.find(Kind::Agent, "key").is_some());
    assert!(registry.find(Kind::Agent, "other").is_none());
    for nothing in ["", "// nothing yet\n", "null"] {
        let registry = Tree::of(&[("project/opencode.json", nothing)]).registry();
        assert_eq!(registry.findings, [], "{nothing:?}");
    }
}

/// Each of the files is as long as a file may be; together they are too long.
#[test]
fn a_prompt_of_several_files_has_an_end() {
    let tree = Tree::of(&[
        ("project/part.md", &"x".repeat(1024 * 1024)),
        (
            "project/opencode.json",
            r#"{"agent": {
                "one": {"prompt": "{file:part.md}"},
                "two": {"prompt": "{file:part.md}{file:part.md}"}
            }}"#,
        ),
    ]);
    let registry = tree.registry();
    assert!(registry.find(Kind::Agent, "one").is_some());
    assert!(registry.find(Kind::Agent, "two").is_none());
    let told: Vec<_> = registry.findings.iter().map(|f| (f.severity, f.message.as_str())).collect();
    assert_eq!(told, [(Severity::Odd, "`two` is larger than 1024 KiB")]);
}

/// A small file of settings that takes its texts from a large one, again and again.
#[test]
fn texts_from_files_are_read_when_they_are_needed() {
    let agents: Vec<String> =
        (0..2_000).map(|n| format!("\"a{n}\": {{\"prompt\": \"{{file:b}}\"}}")).collect();
    let tree = Tree::of(&[
        ("project/b", &"x".repeat(1_000_000)),
        ("project/opencode.json", &format!("{{\"agent\": {{{}}}}}", agents.join(","))),
    ]);
    let registry = tree.registry();
    let agent = registry.find(Kind::Agent, "a1999").unwrap();
    let kept = |entity: &Entity| match &entity.prompt {
        Prompt::Text(text) | Prompt::WithFiles { text, .. } => text.len(),
        Prompt::InFile | Prompt::Embedded(_) => 0,
    };
    let kept: usize = registry.every().map(kept).sum();
    assert!(kept < 100_000, "{kept} bytes are kept");
    assert_eq!(registry.prompt(agent).unwrap().len(), 1_000_000);
    tree.write("project/b", "Mended.\n");
    assert_eq!(registry.prompt(agent).unwrap(), "Mended.");
    std::fs::remove_file(tree.path("project/b")).unwrap();
    let told = registry.prompt(agent).unwrap_err();
    assert!(told.message.starts_with("`a1999` takes its text from "), "{told}");
}

/// OpenCode takes the last of two; nobody may lose an agent that way without a word.
#[test]
fn keys_that_are_there_twice_are_told() {
    let settings = "{\n\"agent\": {\"lost\": {\"prompt\": \"x\"}},\n\"agent\": {\n\
        \"a\": {\"prompt\": \"one\"},\n\"a\": {\"prompt\": \"two\",\n\"prompt\": \"three\"}\n},\n\
        \"mcp\": {\"x\": 1, \"x\": 2}\n}";
    let tree = Tree::of(&[("project/opencode.json", settings)]);
    insta::assert_snapshot!(tree.listing());
    let registry = tree.registry();
    let agent = registry.find(Kind::Agent, "a").unwrap();
    assert_eq!(registry.prompt(agent).unwrap(), "three");
}

/// OpenCode has agents of its own, which settings change; one of another name is a new one.
#[test]
fn an_agent_in_settings_needs_no_prompt() {
    let settings = r#"{"agent": {
        "build": {"model": "gpt-5"},
        "docs": {"description": "Writes docs", "tools": {"bash": false}}
    }}"#;
    let tree = Tree::of(&[("project/opencode.json", settings)]);
    insta::assert_snapshot!(tree.listing());
    let registry = tree.registry();
    assert_eq!(registry.prompt(registry.find(Kind::Agent, "docs").unwrap()).unwrap(), "");
}

/// Whoever describes nothing is described by the first words, not by all of them.
#[test]
fn the_first_words_of_a_long_line_are_few() {
    let body = "Look at it. ".repeat(50_000);
    let tree = Tree::of(&[("project/.claude/commands/long.md", &body)]);
    let registry = tree.registry();
    let description = registry.find(Kind::Command, "long").unwrap().description.clone();
    assert!(description.chars().count() <= 201, "{} characters", description.chars().count());
    assert!(description.ends_with("Look at…"), "{description}");
    let tree = Tree::of(&[("project/.claude/commands/long.md", &"y".repeat(5_000))]);
    let registry = tree.registry();
    let description = &registry.find(Kind::Command, "long").unwrap().description;
    assert_eq!(description.chars().count(), 201, "{description}");
}

#[test]
fn what_is_required_is_written_as_one_likes() {
    for (written, required) in [
        ("where", vec!["where"]),
        ("[where, when]", vec!["where", "when"]),
        ("\"<where> <when>\"", vec!["where", "when"]),
        ("\"<where> [when]\"", vec!["where"]),
        ("\"<where to>, when\"", vec!["where to", "when"]),
        ("where when", vec!["where", "when"]),
        ("[\"<where>\", when]", vec!["where", "when"]),
        ("\"[where, when]\"", vec!["where", "when"]),
    ] {
        let head = format!("---\nrequired-arguments: {written}\n---\nGo.\n");
        let registry = Tree::of(&[("project/.atomic/commands/go.md", &head)]).registry();
        let go = registry.find(Kind::Command, "go").unwrap();
        assert_eq!(go.arguments.required, required, "{written}");
    }
}

#[test]
fn an_alias_that_cannot_be_typed_is_told_with_what_to_type() {
    let head = "---\ndescription: Goes\naliases: [\"My Alias\", g]\n---\nGo.\n";
    let tree = Tree::of(&[("project/.atomic/commands/go.md", head)]);
    assert_eq!(
        tree.listing(),
        "command go [my-alias,g] Goes tools=all model=- (project atomic, \
         project/.atomic/commands/go.md)\n\
         project/.atomic/commands/go.md:3: `My Alias` cannot be typed as a name: it is called \
         `my-alias`\n  help: use letters, digits, `-` and `_` in `aliases`"
    );
}

/// What is forbidden stays forbidden, and is shown.
#[test]
fn a_prohibition_is_kept_and_shown() {
    for (tools, without, shown) in [
        ("Bash(git:*)", "Bash", "none"),
        ("Bash(git:*), Read", "Bash", "read"),
        ("Shell(git:*), Read", "Bash", "read"),
        ("Bash", "Bash(rm:*)", "bash but bash(rm:*)"),
        ("Bash(git:*), Read", "Bash(git push:*)", "bash(git:*), read but bash(git push:*)"),
        ("Bash, Read", "Write", "bash, read"),
        ("Bash(git:*)", "Bash(git:*)", "none"),
    ] {
        let head = format!("---\ntools: {tools}\ndisallowedTools: {without}\n---\nGo.\n");
        let registry = Tree::of(&[("project/.claude/agents/a.md", &head)]).registry();
        let agent = registry.find(Kind::Agent, "a").unwrap();
        assert_eq!(agent.tools.to_string(), shown, "{tools} without {without}");
    }
}

/// Prompts have dollars in them that are nobody's arguments.
#[test]
fn dollars_that_mean_something_else_stay() {
    let head = "---\nargument-hint: <where> [when]\nrequired-arguments: where\n---\n";
    for (head, prompt, typed, expected) in [
        ("", "Run `awk '{print $5}'`.", "the host db1", "Run `awk '{print $5}'`.\n\nthe host db1"),
        ("", "It costs $5.", "", "It costs $5."),
        ("", "Go to $1, not $2", "a", "Go to a, not $2"),
        (head, "Go to $1 at $2 for $9", "a", "Go to a at  for $9"),
        ("", "Give $2", "a b", "Give b"),
    ] {
        let text = format!("{head}{prompt}\n");
        let tree = Tree::of(&[("project/.atomic/commands/go.md", &text)]);
        let registry = tree.registry();
        let go = registry.find(Kind::Command, "go").unwrap();
        let filled = arguments::filled(go, &registry.prompt(go).unwrap(), typed);
        assert_eq!(filled, expected, "{prompt} with {typed}");
    }
}
