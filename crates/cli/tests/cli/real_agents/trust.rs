//! What is in the project runs only when the user trusts it.

use std::fs;
use std::path::Path;

use atomic_testing::agents::CLAUDE;
use atomic_testing::model::{Reply, Script, Turn};
use serde_json::{Value, json};

use super::Stand;
use super::program::Program::{self, Claude, Copilot};

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn hooks_and_servers_for_claude() {
    let hooks = |command: &str| {
        let hook = json!({ "type": "command", "command": command });
        json!({ "hooks": { "UserPromptSubmit": [{ "hooks": [hook] }] } })
    };
    run_only_when_trusted(Claude(CLAUDE), ".claude/settings.json", hooks);
}

#[test]
fn hooks_and_servers_for_copilot() {
    let hooks = |command: &str| {
        let hook = json!({ "type": "command", "bash": command });
        json!({ "version": 1, "hooks": { "userPromptSubmitted": [hook] } })
    };
    run_only_when_trusted(Copilot, ".github/hooks/own.json", hooks);
}

fn run_only_when_trusted(program: Program, file: &str, hooks: impl Fn(&str) -> Value) {
    let stand = Stand::of(&[program], Script::new());
    let (hooked, served) = (stand.env.outside("hooked"), stand.env.outside("served"));
    // A server may come up beside the turn.
    let wait = format!(
        "n=0; until [ -e {} ] || [ $((n += 1)) -gt 2400 ]; do sleep 0.05; done",
        served.display()
    );
    let waits = Turn::default().user("Wait").reply(program.runs(&wait)).reply(Reply::say("So."));
    let hello = Turn::default().reply(Reply::say("Hello."));
    stand.server.replace(Script::new().with(waits).with(hello));
    let mark = |place: &Path| format!("echo ran >> {}", place.display());
    write(&stand.env.work().join(file), &hooks(&mark(&hooked)).to_string());
    let serve = json!({ "command": "sh", "args": ["-c", mark(&served)] });
    let servers = json!({ "mcpServers": { "own": serve } });
    write(&stand.env.work().join(".mcp.json"), &servers.to_string());

    let ran = |prompt: &str, args: &[&str]| {
        let ended = stand.run(&[&["-p", prompt, "--backend", program.name()], args].concat());
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
        let there = (hooked.exists(), served.exists());
        let _ = (fs::remove_file(&hooked), fs::remove_file(&served));
        there
    };
    let (nothing, all) = ((false, false), (true, true));
    assert_eq!(ran("Hello", &[]), nothing, "nobody trusts it");
    assert_eq!(ran("Hello", &["--inherit", "all"]), nothing, "to want it is not to trust it");
    assert_eq!(ran("Hello", &["--trust", "--inherit", "none"]), nothing, "trusted, but not wanted");
    assert_eq!(ran("Wait", &["--trust", "--inherit", "project"]), all);
    assert_eq!(ran("Wait", &["--trust"]), all, "a turn of the user takes over everything");
}

/// The program looks for the project's skills itself, once it may.
#[test]
fn skills_for_copilot() {
    let turn = Turn::default()
        .user("Check")
        .reply(Reply::call("skill", json!({ "skill": "spell" })))
        .reply(Reply::say("{result}"));
    let stand = Stand::of(&[Copilot], Script::new().with(turn));
    let skill = "---\nname: spell\ndescription: Checks spelling\n---\nLook at every word.\n";
    write(&stand.env.work().join(".github/skills/spell/SKILL.md"), skill);
    for (args, is_known) in [(&[][..], false), (&["--trust"], true)] {
        let ended = stand.run(&[&["-p", "Check"], args].concat());
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
        let asked = stand.server.requests().pop().unwrap().body.to_string();
        let known = ["Checks spelling", "Look at every word."].map(|text| asked.contains(text));
        assert_eq!(known, [is_known; 2], "{args:?}: {ended:?}");
    }
}
