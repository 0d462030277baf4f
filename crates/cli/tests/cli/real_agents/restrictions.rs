//! Agents that may only read, in every way of writing it, on the real programs: none of them edits,
//! writes, patches or runs something, nor does a helper for them.

use std::fs;
use std::path::Path;

use atomic_testing::model::{Action, Reply, Script, Turn};
use serde_json::{Value, json};

use super::program::Program::{self, Claude, Copilot, OpenCode};
use super::{Stand, in_both_versions};

/// An agent: its name, its folder or `opencode.json`, its head, and what it may do.
struct Agent(&'static str, &'static str, &'static str, May);

#[derive(Clone, Copy, PartialEq)]
enum May {
    Nothing,
    Read,
    /// Read, and change files.
    Edit,
    /// Everything, also by a helper: without this nobody knows whether the tries would work.
    Everything,
}

const CLAUDES: &str = ".claude/agents";
const OPENCODES: &str = ".opencode/agent";
const COPILOTS: &str = ".github/agents";
const OURS: &str = ".atomic/agents";
const SETTINGS: &str = "opencode.json";

/// Every way of writing it.
const AGENTS: [Agent; 21] = [
    Agent("listed", CLAUDES, "tools: Read, Grep, Task", May::Read),
    Agent(
        "taken",
        CLAUDES,
        "disallowedTools: Write, Edit, MultiEdit, NotebookEdit, Bash",
        May::Read,
    ),
    Agent("planning", CLAUDES, "permissionMode: plan", May::Read),
    Agent(
        "planner2",
        CLAUDES,
        "tools: Read, Edit, Write, Bash, Task\npermissionMode: plan",
        May::Read,
    ),
    Agent("mapped", OPENCODES, "permission: {edit: deny, bash: deny}", May::Read),
    Agent("starred", OPENCODES, "permission: {'*': deny, read: allow, task: allow}", May::Read),
    Agent("worded", OPENCODES, "permission: deny", May::Nothing),
    Agent(
        "patterned",
        OPENCODES,
        "permission: {edit: {'*': deny, 'docs/*': allow}, bash: {'*': deny, 'git *': allow}}",
        May::Read,
    ),
    Agent("switched", OPENCODES, "tools: {write: false, edit: false, bash: false}", May::Read),
    Agent("all-off", OPENCODES, "tools: {'*': false, read: true}", May::Read),
    Agent("unclear", OPENCODES, "permission: {edit: never, bash: maybe}", May::Read),
    Agent("in-map", SETTINGS, r#"{"permission": {"edit": "deny", "bash": "deny"}}"#, May::Read),
    Agent("in-tools", SETTINGS, r#"{"tools": {"write": false, "bash": false}}"#, May::Read),
    Agent("aliased", COPILOTS, "tools: [read, search, agent]", May::Read),
    Agent(
        "editors",
        COPILOTS,
        "tools: [search/codebase, usages, read/readFile, runSubagent]",
        May::Read,
    ),
    Agent("plain", OURS, "tools: read, grep, task", May::Read),
    Agent("empty", OURS, "tools:", May::Nothing),
    Agent("writer", CLAUDES, "tools: Read, Write, Edit", May::Edit),
    Agent("permitted", OPENCODES, "permission: {'*': deny, read: allow, edit: allow}", May::Edit),
    Agent("composer", COPILOTS, "tools: [codebase, edit/editFiles]", May::Edit),
    Agent("free", OPENCODES, "permission: {edit: allow, bash: ask}", May::Everything),
];

/// Writes the agents, and what there is to read and to edit.
fn set_up(work: &Path, agents: &[&Agent]) {
    let write = |path: String, text: String| {
        let path = work.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("notes.txt".to_owned(), "It is noted.\n".to_owned());
    let mut settings = json!({});
    for Agent(name, place, head, _) in agents {
        write(format!("{name}-edited"), "before".to_owned());
        if *place == SETTINGS {
            let mut fields: Value = serde_json::from_str(head).unwrap();
            fields["prompt"] = json!("You try.");
            settings["agent"][*name] = fields;
        } else {
            let text = format!("---\nname: {name}\ndescription: Tries\n{head}\n---\nYou try.\n");
            write(format!("{place}/{name}.md"), text);
        }
    }
    write(SETTINGS.to_owned(), settings.to_string());
}

impl Program {
    /// Everything that could change something, at once.
    fn tries(self, work: &Path, name: &str) -> Reply {
        let path = |made: &str| work.join(format!("{name}-{made}")).display().to_string();
        let patch =
            format!("*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch", path("patched"));
        let call = |tool: &str, input: Value| Action::Call { tool: tool.to_owned(), input };
        let touch = format!("touch {}", path("run"));
        let reply = self.writes(&path("written"), "x").and(self.shell(&touch));
        let reply = reply.and(call("apply_patch", json!({ "patchText": patch, "input": patch })));
        match self {
            Claude(_) => reply
                .and(call("Monitor", json!({ "command": touch, "description": "Looks" })))
                .and(call("NotebookEdit", json!({
                    "notebook_path": path("noted.ipynb"), "new_source": "x", "edit_mode": "insert",
                }))),
            OpenCode => reply,
            Copilot => reply.and(call("write_bash", json!({ "shellId": "1", "input": touch }))),
        }
    }

    /// Starts a helper of the program's own that may do everything.
    fn helps(self, prompt: &str) -> Reply {
        let (tool, kind, helper) = match self {
            Claude(_) => ("Task", "subagent_type", "general-purpose"),
            OpenCode => ("task", "subagent_type", "general"),
            Copilot => ("task", "agent_type", "general-purpose"),
        };
        let task =
            json!({ "description": "a task", "prompt": prompt, kind: helper, "name": "aide" });
        Reply::call(tool, task)
    }
}

/// Several replies as one, so that a turn takes less time.
fn at_once(replies: &[Reply]) -> Reply {
    let actions = replies.iter().flat_map(|reply| reply.actions.clone()).collect();
    Reply { actions, ..Reply::default() }
}

/// Every agent tries everything, and then its helper does.
fn script(program: Program, work: &Path, agents: &[&Agent]) -> Script {
    let file = |name: &str| work.join(name).display().to_string();
    let mut script = Script::new();
    for Agent(name, ..) in agents {
        let edited = file(&format!("{name}-edited"));
        let tries =
            [program.tries(work, name), program.reads(&edited), program.reads(&file("notes.txt"))];
        let more = [
            program.edits(&edited, "before", "after"),
            program.helps(&format!("Help for {name}.")),
        ];
        let turn = Turn::default()
            .user(&format!("Try as {name}."))
            .reply(at_once(&tries))
            .reply(at_once(&more))
            .reply(Reply::say("Tried."));
        let help = Turn::default()
            .user(&format!("Help for {name}."))
            .reply(program.tries(work, &format!("{name}-helped")))
            .reply(Reply::say("Helped."));
        script = script.with(turn).with(help);
    }
    script
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

fn only_do_what_they_may(program: Program, names: Option<&[&str]>) {
    let is_meant = |agent: &&Agent| names.is_none_or(|names| names.contains(&agent.0));
    let agents: Vec<&Agent> = AGENTS.iter().filter(is_meant).collect();
    let stand = Stand::of(&[program], Script::new());
    let work = stand.env.work();
    set_up(&work, &agents);
    stand.server.replace(script(program, &work, &agents));
    let tasks: Vec<Value> = agents
        .iter()
        .map(|Agent(name, ..)| json!({ "agent": name, "task": format!("Try as {name}.") }))
        .collect();
    let workflow = json!({ "name": "tries", "maxConcurrency": 4, "nodes": [
        { "type": "parallelSubagent", "id": "all", "agents": tasks },
    ] });
    let file = stand.env.outside("tries.json");
    fs::write(&file, workflow.to_string()).unwrap();
    let file = file.display().to_string();
    let ended = stand.run(&["run", &file, "Go", "--backend", program.name(), "--no-trust"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let made = names_in(&work);
    let requests = stand.server.requests();
    for Agent(name, _, head, may) in agents {
        let begins = format!("{name}-");
        let mut found: Vec<&str> = made.iter().filter_map(|it| it.strip_prefix(&begins)).collect();
        found.sort_unstable();
        let edited = fs::read_to_string(work.join(format!("{name}-edited"))).unwrap();
        let (files, text): (&[&str], &str) = match may {
            May::Everything => {
                (&["edited", "helped-run", "helped-written", "run", "written"], "after")
            }
            May::Edit => (&["edited", "written"], "after"),
            May::Read | May::Nothing => (&["edited"], "before"),
        };
        // A patch is an edit, where there is such a tool.
        let may_edit = matches!(may, May::Edit | May::Everything);
        found.retain(|it| !(may_edit && it.ends_with("patched")));
        assert_eq!((found.as_slice(), edited.as_str()), (files, text), "{name}: {head}: {ended:?}");
        let task = format!("Try as {name}.");
        let has_read = requests.iter().any(|it| {
            let body = it.body.to_string();
            body.contains(&task) && body.contains("It is noted.")
        });
        assert_eq!(has_read, *may != May::Nothing, "{name}: {head}");
    }
}

in_both_versions! { readers_only_read_on_claude }

#[test]
fn readers_only_read_on_opencode() {
    only_do_what_they_may(OpenCode, None);
}

#[test]
fn readers_only_read_on_copilot() {
    only_do_what_they_may(Copilot, None);
}

/// Each conversation is a process here, so there is one of each kind of rules; that all ways of
/// writing lead to the same rules is checked without programs.
fn readers_only_read_on_claude(version: &'static str) {
    let names = ["taken", "planner2", "starred", "patterned", "editors", "permitted", "free"];
    only_do_what_they_may(Claude(version), Some(&names));
}

/// OpenCode runs a turn without an agent as `build`.
#[test]
fn settings_of_opencode_restrict_turns_without_an_agent() {
    let stand = Stand::of(&[OpenCode], Script::new());
    let work = stand.env.work();
    let settings = json!({
        "permission": { "edit": "deny" },
        "agent": { "build": { "permission": { "bash": "deny" } } },
    });
    fs::write(work.join(SETTINGS), settings.to_string()).unwrap();
    fs::write(work.join("notes.txt"), "It is noted.\n").unwrap();
    let notes = work.join("notes.txt").display().to_string();
    let turn = Turn::default()
        .user("Try it.")
        .reply(at_once(&[OpenCode.tries(&work, "try"), OpenCode.reads(&notes)]))
        .reply(Reply::say("Tried."));
    stand.server.replace(Script::new().with(turn));
    let ended = stand.run(&["-p", "Try it.", "--backend", "opencode", "--trust"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let made: Vec<String> =
        names_in(&work).into_iter().filter(|it| it.starts_with("try-")).collect();
    assert_eq!(made, [""; 0], "{ended:?}");
    let requests = stand.server.requests();
    let has_read = requests.iter().any(|it| it.body.to_string().contains("It is noted."));
    assert!(has_read, "{ended:?}");
}
