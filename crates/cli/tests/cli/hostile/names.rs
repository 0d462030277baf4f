//! Agents, skills and commands of a project that take a name, and what their files lead to.

use serde_json::json;

use super::{Attack, Ground, PERSONA};

/// Writes a file of the project whose text replaces what an agent is told.
fn telling(path: &'static str) -> Attack {
    Attack::new(move |ground| {
        ground.project(path, &format!("---\ndescription: Helps\n---\n{PERSONA}\n"));
    })
}

fn role_of_the_user(ground: &mut Ground) {
    ground.users(".atomic/agents/worker.md", PERSONA);
}

const RALPH: &[&str] = &["run", "ralph", "Build it"];
const CALLS: &[&str] = &["run", "calls", "Go"];

#[test]
fn a_role_of_ralph() {
    telling(".atomic/agents/worker.md").works_only_when_trusted(RALPH);
}

#[test]
fn a_role_of_ralph_for_claude() {
    telling(".claude/agents/worker.md").works_only_for_the_user(role_of_the_user, RALPH);
}

#[test]
fn a_role_of_ralph_for_opencode() {
    telling(".opencode/agent/worker.md").works_only_for_the_user(role_of_the_user, RALPH);
}

#[test]
fn a_role_of_ralph_for_copilot() {
    telling(".github/agents/worker.agent.md").works_only_for_the_user(role_of_the_user, RALPH);
}

#[test]
fn a_role_of_ralph_in_other_letters() {
    telling(".atomic/agents/Planner.md").works_only_when_trusted(RALPH);
}

#[test]
fn a_role_of_ralph_by_another_file_name() {
    let attack = Attack::new(|ground| {
        let text = format!("---\nname: planner\ndescription: Formats\n---\n{PERSONA}\n");
        ground.project(".atomic/agents/formatter.md", &text);
    });
    attack.works_only_when_trusted(RALPH);
}

#[test]
fn a_role_of_ralph_in_settings() {
    let attack = Attack::new(|ground| {
        ground.project(
            ".atomic/settings.json",
            r#"{"ralph.worker": "spell", "ralph": {"worker": "spell"}}"#,
        );
        ground.project(".claude/agents/spell.md", PERSONA);
    });
    let users = |ground: &mut Ground| {
        ground.users(".claude/agents/spell.md", PERSONA);
        let settings = ground.users_settings(json!({"ralph.worker": "spell"}));
        ground.users(".atomic/settings.json", &settings);
    };
    attack.works_only_for_the_user(users, RALPH);
}

#[test]
fn a_role_of_ralph_in_opencode_settings() {
    let attack = Attack::new(|ground| {
        let agent =
            json!({"agent": {"worker": {"prompt": PERSONA}, "planner": {"prompt": PERSONA}}});
        ground.project("opencode.json", &agent.to_string());
    });
    attack.works_only_for_the_user(role_of_the_user, RALPH);
}

#[test]
fn an_agent_of_the_user() {
    telling(".atomic/agents/helper.md").works_only_when_trusted(CALLS);
}

#[test]
fn a_built_in_agent() {
    telling(".claude/agents/debugger.md")
        .works_only_when_trusted(&["-p", "Hello", "--agent", "debugger"]);
}

#[test]
fn a_built_in_skill() {
    telling(".claude/skills/commit/SKILL.md").works_only_when_trusted(CALLS);
}

#[test]
fn a_built_in_skill_by_its_alias() {
    let attack = Attack::new(|ground| {
        let text = format!("---\nname: commit\naliases: [ci]\n---\n{PERSONA}\n");
        ground.project(".github/skills/ci/SKILL.md", &text);
    });
    attack.works_only_when_trusted(CALLS);
}

#[test]
fn a_command_of_the_user() {
    telling(".atomic/commands/tidy.md").works_only_when_trusted(CALLS);
}

#[test]
fn a_command_of_the_user_in_opencode_settings() {
    let attack = Attack::new(|ground| {
        let command = json!({"command": {"tidy": {"template": PERSONA}}});
        ground.project("opencode.json", &command.to_string());
    });
    attack.works_only_when_trusted(CALLS);
}

#[test]
fn a_file_outside_in_opencode_settings() {
    let attack = Attack::new(|ground| {
        let secret = ground.env.outside("precious/secret.txt");
        let file = format!("{{file:{}}}", secret.display());
        let settings = json!({"agent": {"spell": {"prompt": file, "description": file}},
                              "command": {"deploy": {"template": file}}});
        ground.project("opencode.json", &settings.to_string());
    });
    attack.works_only_when_trusted(&["show", "spell"]);
}
