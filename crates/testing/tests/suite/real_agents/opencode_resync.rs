//! OpenCode's events are missed for a while: nothing is lost, and nothing is told twice.

use std::fs;

use atomic_backend::{Conversation, Inherit, OpenRequest};
use atomic_event::{Answer, HelperState, Report};
use atomic_testing::agents::{OPENCODE, program};
use atomic_testing::conformance::backend::{exchange, in_time, send};
use atomic_testing::model::{Action, Reply, Script, Turn};
use serde_json::json;

use super::opencode_stand::{Stand, help, helper, question, run};
use super::serving_stand::when;
use super::stand::text;

fn saying_and(text: &str, reply: Reply) -> Reply {
    let mut actions = vec![Action::Say(text.to_owned())];
    actions.extend(reply.actions.iter().cloned());
    Reply { actions, ..reply }
}

fn script() -> Script {
    let uses = when("use tools")
        .reply(saying_and("One. ", run("echo swallow, please")))
        .reply(saying_and("Two. ", run("echo two")))
        .reply(saying_and("Three. ", run("echo enough, please; exit 3")))
        .reply(Reply::say("Done."));
    let starts = when("start a helper")
        .reply(run("echo swallow, please"))
        .reply(help("scout", "look around"))
        .reply(Reply::say("Helped."));
    let helps = when("look around")
        .reply(run("echo helping"))
        .reply(Reply::call("question", question("Is it enough, please?")))
        .reply(Reply::say("Looked."));
    let permission = when("want leave")
        .reply(run("echo swallow, please"))
        .reply(run("printf 'enough, please'"))
        .reply(Reply::say("Left."));
    let ends = when("end unheard")
        .reply(run("echo swallow, please"))
        .reply(Reply::say("It is enough, please."));
    let scripted = [uses, starts, helps, permission, ends];
    let script = scripted.into_iter().fold(Script::new(), Script::with);
    script.with(Turn::default().reply(Reply::say("Yes.")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_missed_is_told_once() {
    let stand = Stand::with(script(), |config| {
        let real = program("opencode", OPENCODE).display().to_string();
        config.env.push(("ATOMIC_TEST_OPENCODE".to_owned(), real));
        config.program = env!("CARGO_BIN_EXE_opencode-between").into();
    });
    let asks = json!({ "permission": { "bash": { "*": "allow", "printf *": "ask" } } });
    fs::write(stand.workspace.path().join("opencode.json"), asks.to_string()).unwrap();
    let request = OpenRequest {
        inherit: Inherit::Project,
        helpers: vec![helper("scout")],
        ..stand.request("worker")
    };
    let conversation = stand.open(request).await;
    assert_eq!(text(exchange(conversation.as_ref(), "hello").await.1), "Yes.");
    own_tools(conversation.as_ref()).await;
    a_helper_that_asks(conversation.as_ref()).await;
    for (prompt, said) in [("want leave", "Left."), ("end unheard", "It is enough, please.")] {
        let (heard, stop) = exchange(conversation.as_ref(), prompt).await;
        assert_eq!(text(stop), said);
        assert_eq!(heard.said, [said]);
    }
    stand.goes_on(conversation.as_ref(), "end unheard").await;
}

async fn own_tools(conversation: &dyn Conversation) {
    let (heard, stop) = exchange(conversation, "use tools").await;
    assert_eq!(text(stop), "Done.");
    assert_eq!(heard.said, ["One. ", "Two. ", "Three. ", "Done."]);
    let tools: Vec<_> = heard.tools.iter().map(|tool| (tool.summary.as_str(), tool.ok)).collect();
    let expected = [
        ("echo swallow, please", true),
        ("echo two", true),
        ("echo enough, please; exit 3", false),
    ];
    assert_eq!(tools, expected);
    assert_eq!(heard.spent.len(), 4, "{:?}", heard.spent);
}

async fn a_helper_that_asks(conversation: &dyn Conversation) {
    let mut turn = send(conversation, "start a helper").await;
    let (id, question) = turn.until_asked().await;
    assert_eq!(question.question, "Is it enough, please?");
    let answer = Answer { chosen: vec!["Red".to_owned()] };
    in_time("answering", conversation.answer(id, answer)).await.unwrap();
    let (heard, stop) = turn.until_end().await;
    assert_eq!(text(stop), "Helped.");
    let states: Vec<_> = heard.others.iter().filter_map(state).collect();
    assert_eq!(states, [HelperState::Started, HelperState::Finished]);
    let by_helper = heard.tools.iter().filter(|tool| tool.by.is_some()).count();
    assert_eq!((heard.tools.len(), by_helper), (2, 1), "{:?}", heard.tools);
    assert_eq!(heard.spent.len(), 6, "{:?}", heard.spent);
}

fn state(report: &Report) -> Option<HelperState> {
    if let Report::Helper(helper) = report { Some(helper.state) } else { None }
}
