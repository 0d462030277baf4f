use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent_client_protocol::v1::schema::SessionUpdate;
use atomic_event::{
    Delta, Event, Helper, HelperState, Report, Started, StepError, StepId, Todo, ToolCall, ToolUse,
    TurnEvent, Usage, Wait,
};
use serde_json::{Value, json};

use super::{Narrator, Voice, plan_of_tasks};
use crate::tool::Seen;

/// Updates as lines: what they are, and what is in them.
fn lines(updates: &[SessionUpdate]) -> String {
    let mut text = String::new();
    for update in updates {
        let value = serde_json::to_value(update).unwrap();
        let kind = value["sessionUpdate"].as_str().unwrap();
        let whole = serde_json::to_string(update).unwrap();
        let rest = whole.replacen(&format!("\"sessionUpdate\":\"{kind}\","), "", 1);
        let shown = value["content"]["text"].as_str().map(|text| format!("{text:?}"));
        let _ = writeln!(text, "{kind}: {}", shown.unwrap_or(rest));
    }
    text
}

fn nothing(_: &Path) -> Seen {
    Seen::Unknown
}

fn narrator(voice: Voice) -> Narrator {
    Narrator::new(voice, Path::new("/w"), "t1-", nothing)
}

fn reported(step: &str, report: Report) -> Event {
    Event::StepReported { step: StepId::new(step), attempt: 1, report }
}

fn started(step: &str, description: Option<&str>) -> Event {
    let started = json!({"step": step, "attempt": 1, "description": description});
    let started: Started = serde_json::from_value(started).unwrap();
    Event::StepStarted(started)
}

fn told(narrator: &mut Narrator, events: &[Event]) -> String {
    let updates: Vec<SessionUpdate> =
        events.iter().flat_map(|event| narrator.fact(event)).collect();
    lines(&updates)
}

#[test]
fn a_workflow_says_how_far_it_has_come() {
    let said = |text: &str| Report::Said { text: text.to_owned() };
    let todos = vec![Todo { content: "Look".to_owned(), status: "pending".to_owned() }];
    let events = [
        started("planner#1", Some("Planning the tasks")),
        started("parse#1", None),
        reported("planner#1", said("[]")),
        reported("planner#1", Report::Todos { items: todos }),
        started("fan#1[#4]/worker#1", Some("Implementing a task")),
        reported(
            "fan#1[#4]/worker#1",
            Report::ToolUsed(ToolUse::new("check", "cargo test", false)),
        ),
        Event::StepFailed {
            step: StepId::new("fan#1[#4]/worker#1"),
            attempt: 1,
            error: StepError::new("x", "it broke"),
        },
        Event::Noted { text: "No checks were found.".to_owned() },
        reported("planner#1", Report::Remarked { text: "another model".to_owned() }),
    ];
    insta::assert_snapshot!(told(&mut narrator(Voice::Workflow), &events), @r#"
    agent_message_chunk: "**Workflow Progress:** Planning the tasks\n\n"
    agent_thought_chunk: "**planner:** []\n\n"
    agent_message_chunk: "**Workflow Progress:** Implementing a task\n\n"
    tool_call: {"toolCallId":"t1-1","title":"`cargo test`","name":"check","kind":"execute","status":"failed"}
    agent_message_chunk: "worker #4 failed: it broke\n\n"
    agent_message_chunk: "Note: No checks were found.\n\n"
    agent_message_chunk: "planner: another model\n\n"
    "#);
}

#[test]
fn an_agent_is_heard_as_it_writes() {
    let step = StepId::new("chat#1");
    let call = |tool: &str, summary: &str, by: Option<&str>| {
        let (tool, summary, by) = (tool.to_owned(), summary.to_owned(), by.map(str::to_owned));
        ToolCall { tool, summary, by }
    };
    let usage = |cost_usd| Usage {
        cost_usd,
        context_tokens: Some(500),
        context_window: Some(1_000),
        ..Usage::default()
    };
    let helper = Helper {
        id: "h".to_owned(),
        agent: "worker".to_owned(),
        task: "look".to_owned(),
        state: HelperState::Started,
        tools_used: 0,
        tokens: 0,
    };
    let wait = Wait { code: "rate_limited".to_owned(), attempt: 2, delay_ms: Some(1_500) };
    let todo = |content: &str, status: &str| Todo {
        content: content.to_owned(),
        status: status.to_owned(),
    };
    let used = |tool: &str, summary: &str, ok| {
        TurnEvent::Reported(Report::ToolUsed(ToolUse::new(tool, summary, ok)))
    };
    let said = |text: &str| TurnEvent::Reported(Report::Said { text: text.to_owned() });
    let events = [
        TurnEvent::Thought { text: "Hm.".to_owned() },
        TurnEvent::Typed { text: "Hel".to_owned() },
        TurnEvent::Typed { text: "lo".to_owned() },
        said("Hello"),
        TurnEvent::ToolBegan(call("read", "src/a.rs", None)),
        TurnEvent::ToolBegan(call("shell", "ls", Some("worker"))),
        used("read", "src/a.rs", true),
        used("shell", "ls", true),
        TurnEvent::Reported(Report::Helper(helper)),
        TurnEvent::Reported(Report::Waited(wait)),
        TurnEvent::Reported(Report::Todos {
            items: vec![todo("Look", "completed"), todo("Do", "in_progress"), todo("Rest", "?")],
        }),
        TurnEvent::Reported(Report::Spent(usage(Some(0.25)))),
        TurnEvent::Reported(Report::Spent(usage(Some(0.5)))),
        said("Done."),
        TurnEvent::Reported(Report::Spent(usage(None))),
        TurnEvent::Ended(atomic_event::Stop::Interrupted),
    ];
    let mut narrator = narrator(Voice::Agent);
    let updates: Vec<SessionUpdate> =
        events.iter().flat_map(|event| narrator.turn(&step, event)).collect();
    insta::assert_snapshot!(lines(&updates), @r#"
    agent_thought_chunk: "Hm."
    agent_message_chunk: "Hel"
    agent_message_chunk: "lo"
    tool_call: {"toolCallId":"t1-1","title":"read src/a.rs","name":"read","kind":"read","status":"in_progress","locations":[{"path":"/w/src/a.rs"}]}
    tool_call: {"toolCallId":"t1-2","title":"worker: `ls`","name":"shell","kind":"execute","status":"in_progress"}
    tool_call_update: {"toolCallId":"t1-1","status":"completed"}
    tool_call: {"toolCallId":"t1-3","title":"`ls`","name":"shell","kind":"execute","status":"completed"}
    agent_message_chunk: "worker begins: look\n\n"
    agent_message_chunk: "rate limited (try 2); the program tries again in 2 s\n\n"
    plan: {"entries":[{"content":"Look","priority":"medium","status":"completed"},{"content":"Do","priority":"medium","status":"in_progress"},{"content":"Rest","priority":"medium","status":"pending"}]}
    usage_update: {"used":500,"size":1000,"cost":{"amount":0.25,"currency":"USD"}}
    usage_update: {"used":500,"size":1000,"cost":{"amount":0.75,"currency":"USD"}}
    agent_message_chunk: "\n\nDone."
    usage_update: {"used":500,"size":1000}
    tool_call_update: {"toolCallId":"t1-2","status":"failed"}
    "#);
    assert_eq!(narrator.spent_so_far().usd(), None);
}

/// The total of a turn replaces the reports on its own calls only.
#[test]
fn what_a_turn_without_a_total_has_spent_is_kept() {
    let step = StepId::new("chat#1");
    let spent = |usd: f64, is_total: bool| {
        let usage = Usage { cost_usd: Some(usd), is_total, ..Usage::default() };
        TurnEvent::Reported(Report::Spent(usage))
    };
    let cut = atomic_event::Stop::Interrupted;
    let mut first = narrator(Voice::Agent);
    for event in [spent(1.0, false), TurnEvent::Ended(cut.clone())] {
        first.turn(&step, &event);
    }
    let mut second = narrator(Voice::Agent).after(first.spent_so_far());
    for event in [spent(0.5, false), spent(0.25, true), TurnEvent::Ended(cut)] {
        second.turn(&step, &event);
    }
    assert_eq!(second.spent_so_far().usd(), Some(1.25));
}

#[test]
fn what_a_tool_changes_in_a_file_is_a_diff() {
    /// Another text each time.
    fn looked(path: &Path) -> Seen {
        static LOOKS: AtomicUsize = AtomicUsize::new(0);
        match (path.ends_with("new.rs"), LOOKS.fetch_add(1, Ordering::Relaxed)) {
            (_, 0) => Seen::Nothing,
            (true, number) => Seen::Text(format!("{number}\n")),
            (false, _) => Seen::Unknown,
        }
    }
    let mut narrator = Narrator::new(Voice::Agent, Path::new("/w"), "t", looked);
    let step = StepId::new("a#1");
    let began = |summary: &str| {
        let (tool, summary) = ("write".to_owned(), summary.to_owned());
        let call = ToolCall { tool, summary, by: None };
        Delta::ToolBegan { step: step.clone(), call }
    };
    let ended = |tool: &str, summary: &str, ok| {
        reported("a#1", Report::ToolUsed(ToolUse::new(tool, summary, ok)))
    };
    let mut updates = narrator.delta(&began("new.rs"));
    updates.extend(narrator.fact(&ended("write", "new.rs", true)));
    updates.extend(narrator.fact(&ended("edit", "new.rs", true)));
    updates.extend(narrator.fact(&ended("edit", "new.rs", false)));
    updates.extend(narrator.fact(&ended("write", "unseen.rs", true)));
    let diffs = updates.iter().map(|update| {
        let content = &serde_json::to_value(update).unwrap()["content"];
        content.get(0).map_or(Value::Null, Clone::clone).to_string()
    });
    let diffs: Vec<String> = diffs.collect();
    assert_eq!(
        diffs,
        [
            "null",
            r#"{"type":"diff","path":"/w/new.rs","newText":"1\n"}"#,
            r#"{"type":"diff","path":"/w/new.rs","oldText":"1\n","newText":"2\n"}"#,
            "null",
            "null",
        ]
    );
}

#[test]
fn the_task_list_is_the_plan() {
    let rows = [
        json!({"id": "#1", "content": "Make part 1", "status": "completed"}),
        json!({"id": "#2", "content": "Make part 2", "status": "in_progress"}),
        json!({"id": "#3", "content": "Make part 3", "status": "failed", "error": "red\nmore"}),
        json!({"id": "#4", "content": "Make part 4", "status": "pending"}),
    ];
    insta::assert_snapshot!(lines(&[plan_of_tasks(&rows)]), @r##"plan: {"entries":[{"content":"#1 Make part 1","priority":"medium","status":"completed"},{"content":"#2 Make part 2","priority":"medium","status":"in_progress"},{"content":"#3 Make part 3 (failed: red)","priority":"medium","status":"completed"},{"content":"#4 Make part 4","priority":"medium","status":"pending"}]}"##);
}
