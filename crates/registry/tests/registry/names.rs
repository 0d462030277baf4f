//! One space of names for everything that can be typed after a slash.

use atomic_registry::{Class, Folders, Kind, Named, Names, Registry};

use crate::tree::Tree;

fn workflow(name: &str, aliases: &[&str]) -> Named {
    Named {
        class: Class::Workflow,
        name: name.to_owned(),
        aliases: aliases.iter().map(|&alias| alias.to_owned()).collect(),
        description: "".into(),
        hint: None,
        hidden: false,
        untrusted: false,
    }
}

fn names(files: &[(&str, &str)]) -> Names {
    let workflows = [workflow("ralph", &["loop"]), workflow("ship", &["s"])];
    Names::new(workflows, &Tree::of(files).registry())
}

fn meant(names: &Names, text: &str) -> String {
    names.find(text).map_or("nothing".to_owned(), Named::qualified)
}

/// Every kind of thing has a name in common with every kind after it.
const CONFLICTS: &[(&str, &str)] = &[
    ("project/.claude/commands/help.md", "Help.\n"),
    ("project/.claude/commands/ship.md", "Ship.\n"),
    ("project/.claude/commands/deploy.md", "---\naliases: [loop, go]\n---\nDeploy.\n"),
    ("project/.claude/commands/ci.md", "Integrate.\n"),
    ("project/.claude/commands/agent/worker.md", "Work.\n"),
    ("project/.atomic/skills/ralph/SKILL.md", "---\ndescription: Mine\n---\nMine.\n"),
    ("project/.atomic/skills/deploy/SKILL.md", "---\ndescription: How\n---\nHow.\n"),
    ("project/.opencode/agents/deploy.md", "---\ndescription: Who\naliases: go\n---\nWho.\n"),
    ("project/.opencode/agents/commit.md", "---\ndescription: Who\n---\nWho.\n"),
    ("home/.atomic/agents/aaa.md", "---\naliases: [who, zzz]\n---\nWho.\n"),
    ("project/.claude/agents/zzz.md", "---\naliases: [who, aaa]\n---\nWho.\n"),
    ("project/.claude/commands/x/twice.md", "One.\n"),
    ("project/.claude/commands/y/twice.md", "Two.\n"),
    ("project/.claude/agents/twice.md", "Three.\n"),
    ("home/.copilot/agents/theme.md", "---\ndescription: Who\n---\nWho.\n"),
];

#[test]
fn the_first_kind_hides_the_others_and_each_can_be_reached() {
    let names = names(CONFLICTS);
    for (typed, expected) in [
        ("/help", "help"),
        ("/command:help", "command:help"),
        ("theme", "theme"),
        ("/agent:theme", "agent:theme"),
        ("/ship", "workflow:ship"),
        ("/command:SHIP", "command:ship"),
        ("/Ralph", "workflow:ralph"),
        ("/skill:ralph", "skill:ralph"),
        ("/loop", "workflow:ralph"),
        ("/command:loop", "command:deploy"),
        ("/deploy", "command:deploy"),
        ("/skill:deploy", "skill:deploy"),
        ("/agent:deploy", "agent:deploy"),
        ("/go", "command:deploy"),
        ("/agent:go", "agent:deploy"),
        ("/commit", "skill:commit"),
        ("/agent:commit", "agent:commit"),
        ("/ci", "command:ci"),
        ("/skill:ci", "skill:commit"),
        ("/agent:worker", "agent:worker"),
        ("/command:agent:worker", "command:agent:worker"),
        ("/who", "agent:zzz"),
        ("/agent:who", "agent:zzz"),
        ("/aaa", "agent:aaa"),
        ("/skill:nothing", "nothing"),
        ("", "nothing"),
    ] {
        assert_eq!(meant(&names, typed), expected, "{typed}");
    }
    let told: Vec<String> = names.shadowed().map(|shadowed| shadowed.to_string()).collect();
    insta::assert_snapshot!(told.join("\n"));
    for shadowed in names.shadowed() {
        assert_eq!(names.find(&shadowed.reach), Some(shadowed.loser), "{shadowed}");
    }
}

#[test]
fn a_beginning_finds_the_exact_one_first_then_by_kind() {
    let names = names(&[
        ("project/.claude/commands/re.md", "Re.\n"),
        ("project/.claude/commands/rebase.md", "Rebase.\n"),
        ("project/.claude/commands/ship-it.md", "Ship.\n"),
        ("project/.atomic/agents/rex.md", "Rex.\n"),
        ("project/.atomic/agents/secret.md", "---\nhidden: true\n---\nSh.\n"),
        ("project/.atomic/skills/zoom/SKILL.md", "---\naliases: rez\n---\nZoom.\n"),
    ]);
    let found = |text: &str| -> Vec<String> {
        names.search(text).into_iter().map(Named::qualified).collect()
    };
    assert_eq!(
        found("/re"),
        [
            "command:re",
            "resume",
            "command:rebase",
            "skill:research-codebase",
            "skill:zoom",
            "agent:reviewer",
            "agent:rex",
        ]
    );
    assert_eq!(found("SHIP"), ["workflow:ship", "command:ship-it"]);
    assert_eq!(found("lo"), ["workflow:ralph"]);
    assert_eq!(found("research"), ["skill:research-codebase"]);
    assert_eq!(found("agent:re"), ["agent:reviewer", "agent:rex"]);
    assert_eq!(found("sec"), [""; 0]);
    assert_eq!(found("secret"), ["agent:secret"]);
    assert_eq!(found("").len(), names.all().iter().filter(|named| !named.hidden).count());
    assert_eq!(found("zzz"), [""; 0]);
}

#[test]
fn hints_are_the_entitys_own_or_the_usual_ones() {
    let names = names(&[
        ("project/.claude/commands/commit.md", "---\nargument-hint: \"[what]\"\n---\nx\n"),
        ("project/.claude/commands/fix.md", "x\n"),
        ("project/.claude/skills/create-spec/SKILL.md", "---\ndescription: Mine\n---\nx\n"),
    ]);
    let hint = |text: &str| names.find(text).unwrap().hint.clone().unwrap_or_default();
    assert_eq!(hint("commit"), "[what]");
    assert_eq!(hint("skill:commit"), "[message] | --amend");
    assert_eq!(hint("create-spec"), "<research-doc-path>");
    assert_eq!(hint("ralph"), "\"<prompt-or-spec-path>\" | --resume <uuid>");
    assert_eq!(hint("model"), "select | refresh | list [provider] | <name>");
    assert_eq!(hint("clear"), "");
    assert_eq!(hint("fix"), "");
}

#[test]
fn unknown_names_are_answered() {
    let names = names(&[("project/.claude/commands/status.md", "Status.\n")]);
    let told: Vec<String> = [
        "/comit",
        "/expl",
        "/agent:code",
        "/xyzzy",
        "/create-feature-list",
        "/atomic",
        "/ralph:ralph-loop",
        "/approve",
        "/reject",
        "/Hlep",
        "/skill:comit",
        "agent:wroker",
        "workflow:ralf",
        "/command:",
        "",
    ]
    .into_iter()
    .map(|text| names.get(text).unwrap_err().to_string())
    .collect();
    insta::assert_snapshot!(told.join("\n"));
    // Somebody's own is not gone.
    assert_eq!(names.get("/status").unwrap().class, Class::Entity(Kind::Command));
    // Who knows a hidden name may use it; nobody is told it.
    let tree = Tree::of(&[("project/.atomic/agents/secret.md", "---\nhidden: true\n---\nSh.\n")]);
    let (registry, hidden) = (tree.registry(), Names::new([], &tree.registry()));
    for text in ["secrt", "secre"] {
        let told = hidden.get(text).unwrap_err().to_string();
        assert_eq!(told, format!("Command not found: \"{text}\""));
        let told = registry.get(Kind::Agent, text).unwrap_err().to_string();
        assert_eq!(told, format!("Agent not found: \"{text}\""));
    }
    assert!(registry.get(Kind::Agent, "secret").is_ok() && hidden.get("secret").is_ok());
    assert!(self::names(&[]).get("/status").unwrap_err().to_string().contains("/status is gone"));
}

/// Without trust a project's entities take only names that are free, whatever their kind, and those
/// that would take another one are definitions that need trust.
#[test]
fn a_project_without_trust_takes_no_name_from_anybody() {
    let tree = Tree::of(&[
        ("project/.claude/commands/worker.md", "Work for me.\n"),
        ("project/.claude/commands/ci.md", "Integrate.\n"),
        ("project/.atomic/agents/planner.md", "Plan for me.\n"),
        ("project/.atomic/agents/commit.md", "An agent comes after a skill.\n"),
        ("project/.github/skills/mine/SKILL.md", "---\naliases: [theirs, other]\n---\nMine.\n"),
        ("home/.claude/agents/theirs.md", "Theirs.\n"),
    ]);
    let folders = Folders { trusted: false, ..tree.folders() };
    let registry = Registry::read(&folders);
    let names = Names::new([workflow("ralph", &["loop"])], &registry);
    for (text, expected) in [
        ("worker", "agent:worker"),
        ("ci", "skill:commit"),
        ("theirs", "agent:theirs"),
        ("commit", "skill:commit"),
        ("command:worker", "command:worker"),
        ("mine", "skill:mine"),
        ("other", "skill:mine"),
    ] {
        assert_eq!(meant(&names, text), expected, "{text}");
    }
    let planner = registry.find(Kind::Agent, "planner").unwrap();
    assert_eq!(planner.origin.scope.name(), "built-in");
    let definitions = registry.definitions(&tree.path("project"));
    let listed: Vec<String> = definitions.iter().map(|one| one.name.clone()).collect();
    assert_eq!(listed, ["ci", "worker", "planner"]);
    let trusted = Names::new([workflow("ralph", &["loop"])], &tree.registry());
    assert_eq!(meant(&trusted, "worker"), "command:worker");
    assert_eq!(meant(&trusted, "ci"), "command:ci");
}
