//! Which tools Claude Code's agents have, and which they do not.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use atomic_backend::{Inherit, OpenRequest, Persona, ToolRule, ToolRules};
use atomic_event::{HelperState, Report, ToolUse};
use atomic_testing::conformance::backend::exchange;
use atomic_testing::model::{Reply, Script, Turn};
use serde_json::{Value, json};

use super::stand::{Stand, in_both_versions, offered, text};

in_both_versions! {
    a_list_of_tools_allows_nothing_else
    what_is_taken_away_cannot_be_used
    a_helper_of_a_restricted_agent_is_restricted
    a_helper_has_rules_of_its_own
    without_questions_there_is_no_tool_for_them
}

/// A server of MCP with one tool, which makes a file in the workspace.
const MCP: &str = r#"#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
    *'"method":"initialize"'*) say '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"host","version":"1"}}' ;;
    *'"method":"tools/list"'*) say '{"tools":[{"name":"touch","description":"Makes a file","inputSchema":{"type":"object","properties":{}}}]}' ;;
    *'"method":"tools/call"'*) touch "$1/by-mcp"; say '{"content":[{"type":"text","text":"made"}]}' ;;
    *'"id":'*) say '{}' ;;
  esac
done
"#;

fn rules(only: Option<&[&str]>, without: &[&str]) -> ToolRules {
    let read = |texts: &[&str]| texts.iter().map(|text| ToolRule::read(text)).collect();
    ToolRules { only: only.map(read), without: read(without) }
}

fn shell(command: &str) -> Reply {
    Reply::call("Bash", json!({ "command": command }))
}

fn write(name: &str) -> Reply {
    Reply::call("Write", json!({ "file_path": name, "content": "x" }))
}

fn script(replies: impl IntoIterator<Item = Reply>) -> Script {
    let turn = replies.into_iter().fold(Turn::default(), Turn::reply);
    Script::new().with(turn.reply(Reply::say("Done.")))
}

/// A stand whose program offers every tool it has at once.
fn stand(version: &str, script: Script) -> Stand {
    let direct = ("ENABLE_TOOL_SEARCH".to_owned(), "false".to_owned());
    Stand::with(version, script, |config| config.env.push(direct))
}

/// A stand whose project has a server of MCP.
fn stand_with_server(version: &str, script: Script) -> Stand {
    let stand = stand(version, script);
    let folder = stand.workspace.path();
    let server = folder.join("server.sh");
    fs::write(&server, MCP).unwrap();
    fs::set_permissions(&server, fs::Permissions::from_mode(0o755)).unwrap();
    let about = json!({ "command": server, "args": [folder] });
    fs::write(folder.join(".mcp.json"), json!({ "mcpServers": { "host": about } }).to_string())
        .unwrap();
    stand
}

fn request(stand: &Stand, tools: ToolRules) -> OpenRequest {
    OpenRequest { tools, questions: false, inherit: Inherit::Project, ..stand.request() }
}

fn went(tools: &[ToolUse]) -> Vec<(&str, bool)> {
    tools.iter().map(|tool| (tool.tool.as_str(), tool.ok)).collect()
}

fn mcp() -> Reply {
    Reply::call("mcp__host__touch", json!({}))
}

async fn a_list_of_tools_allows_nothing_else(version: &str) {
    let replies = [
        write("written"),
        shell("git --version; touch behind"),
        shell("touch made"),
        mcp(),
        shell("git init -q inner"),
    ];
    let stand = stand_with_server(version, script(replies));
    let tools = rules(Some(&["Read", "Bash(git:*)"]), &[]);
    let conversation = stand.open(request(&stand, tools)).await;
    let (heard, stop) = exchange(conversation.as_ref(), "go").await;
    assert_eq!(text(stop), "Done.");
    let expected = [
        ("write", false),
        ("shell", false),
        ("shell", false),
        ("mcp__host__touch", false),
        ("shell", true),
    ];
    assert_eq!(went(&heard.tools), expected);
    for name in ["written", "behind", "made", "by-mcp"] {
        assert!(!stand.made(name), "{name} was made");
    }
    assert!(stand.made("inner/.git"));
    assert_eq!(offered(&stand.asked("go").body), ["Bash", "Read"]);
}

async fn what_is_taken_away_cannot_be_used(version: &str) {
    let replies =
        || [write("written"), shell("touch behind && git push"), mcp(), shell("touch ok")];
    let stand = stand_with_server(version, script(replies()));
    let tools = rules(None, &["Write", "Bash(git push:*)", "mcp__host__touch"]);
    let conversation = stand.open(request(&stand, tools)).await;
    let (heard, _) = exchange(conversation.as_ref(), "go").await;
    let expected =
        [("write", false), ("shell", false), ("mcp__host__touch", false), ("shell", true)];
    assert_eq!(went(&heard.tools), expected);
    for name in ["written", "behind", "by-mcp"] {
        assert!(!stand.made(name), "{name} was made");
    }
    assert!(stand.made("ok"));
    let body = stand.asked("go").body;
    let names = offered(&body);
    assert!(names.contains(&"Bash") && names.contains(&"Edit"), "{names:?}");
    assert!(!names.contains(&"Write") && !names.contains(&"mcp__host__touch"), "{names:?}");

    // With other rules: it is the rules that make the difference.
    let tools = rules(Some(&["Bash", "Write", "mcp__host__*"]), &[]);
    let conversation = stand.open(request(&stand, tools)).await;
    let (heard, _) = exchange(conversation.as_ref(), "all of it").await;
    assert_eq!(went(&heard.tools).iter().filter(|(_, ok)| *ok).count(), 3, "{:?}", heard.tools);
    assert!(stand.made("written") && stand.made("behind") && stand.made("by-mcp"));
    assert_eq!(offered(&stand.asked("all of it").body), ["Bash", "Write", "mcp__host__touch"]);
}

/// A helper that tries a shell, a file and git.
fn helping() -> Turn {
    Turn::default()
        .user("helper: look around")
        .reply(shell("touch made"))
        .reply(write("written"))
        .reply(shell("git init -q inner"))
        .reply(Reply::say("Looked."))
}

/// An agent that starts a helper.
fn helped() -> Turn {
    let task = json!({
        "description": "look around",
        "prompt": "helper: look around",
        "subagent_type": "scout",
        "run_in_background": false,
    });
    Turn::default().reply(Reply::call("Agent", task)).reply(Reply::say("Done."))
}

fn scout(tools: ToolRules) -> Persona {
    Persona {
        name: "scout".to_owned(),
        description: "Looks around".to_owned(),
        prompt: "You look around.".to_owned(),
        tools,
        model: None,
    }
}

async fn a_helper_has_rules_of_its_own(version: &str) {
    let only = rules(Some(&["Bash(git:*)"]), &[]);
    let without = rules(None, &["Write", "Bash(touch:*)"]);
    for (helper, names) in [(only, "Bash"), (without, "Read")] {
        // The agent itself may do everything, and does before it starts the helper.
        let task = helped();
        let main = [write("own"), task.replies[0].clone(), Reply::say("Done.")];
        let main = main.into_iter().fold(Turn::default(), Turn::reply);
        let stand = stand(version, Script::new().with(helping()).with(main));
        let helpers = vec![scout(helper)];
        let request = OpenRequest { helpers, ..request(&stand, ToolRules::default()) };
        let conversation = stand.open(request).await;
        let (heard, stop) = exchange(conversation.as_ref(), "go").await;
        assert_eq!(text(stop), "Done.", "{heard:?}");
        let expected = [("write", true), ("shell", false), ("write", false), ("shell", true)];
        assert_eq!(went(&heard.tools), expected);
        assert!(stand.made("own") && !stand.made("made") && !stand.made("written"));
        assert!(stand.made("inner/.git"));
        let body = stand.asked("helper: look around").body;
        let offered = offered(&body);
        assert!(offered.contains(&names) && !offered.contains(&"Write"), "{offered:?}");
    }
}

async fn a_helper_of_a_restricted_agent_is_restricted(version: &str) {
    let stand = stand(version, Script::new().with(helping()).with(helped()));
    let tools = rules(Some(&["Task", "Read", "Bash(git:*)"]), &[]);
    let helpers = vec![scout(ToolRules::default())];
    let request = OpenRequest { helpers, ..request(&stand, tools) };
    let conversation = stand.open(request).await;
    let (heard, stop) = exchange(conversation.as_ref(), "go").await;
    assert_eq!(text(stop), "Done.", "{heard:?}");
    assert!(!stand.made("made") && !stand.made("written"), "{heard:?}");
    assert!(stand.made("inner/.git"), "{heard:?}");

    let reports = heard.others.iter();
    let helpers: Vec<_> = reports
        .filter_map(|report| if let Report::Helper(h) = report { Some(h) } else { None })
        .collect();
    let [started, finished] = helpers.as_slice() else { panic!("{helpers:?}") };
    assert_eq!(started.state, HelperState::Started);
    assert_eq!((started.agent.as_str(), started.task.as_str()), ("scout", "look around"));
    assert_eq!(finished.state, HelperState::Finished);
    assert_eq!(finished.tools_used, 3);
    assert!(finished.tokens > 0);
    assert_eq!(went(&heard.tools), [("shell", false), ("write", false), ("shell", true)]);
    for by in heard.tools.iter().map(|t| &t.by).chain(heard.began.iter().map(|t| &t.by)) {
        assert_eq!(by.as_deref(), Some(started.id.as_str()));
    }
    assert_eq!(offered(&stand.asked("go").body), ["Agent", "Bash", "Read"]);
    assert_eq!(offered(&stand.asked("helper: look around").body), ["Agent", "Bash", "Read"]);
}

async fn without_questions_there_is_no_tool_for_them(version: &str) {
    let input = json!({ "questions": [{
        "question": "Which?",
        "header": "Which",
        "multiSelect": false,
        "options": [{ "label": "A", "description": "A" }, { "label": "B", "description": "B" }],
    }] });
    let stand = stand(version, script([Reply::call("AskUserQuestion", input)]));
    for (questions, tools) in [(false, ToolRules::default()), (false, rules(Some(&["Read"]), &[]))]
    {
        let request = OpenRequest { questions, tools, ..stand.request() };
        let conversation = stand.open(request).await;
        // A question would be an error of the listener.
        let (_, stop) = exchange(conversation.as_ref(), "go").await;
        assert_eq!(text(stop), "Done.");
        let asked = stand.server.take_requests();
        let body: &Value = &asked.last().unwrap().body;
        assert!(offered(body).contains(&"Read"), "{:?}", offered(body));
        assert!(!offered(body).contains(&"AskUserQuestion"), "{:?}", offered(body));
    }
    let tools = rules(Some(&["Read"]), &[]);
    let conversation = stand.open(OpenRequest { tools, ..stand.request() }).await;
    let mut listener =
        atomic_testing::conformance::backend::send(conversation.as_ref(), "go").await;
    assert_eq!(listener.until_asked().await.1.question, "Which?");
    assert_eq!(offered(&stand.asked("go").body), ["AskUserQuestion", "Read"]);
}
