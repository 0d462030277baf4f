//! What OpenCode would do for ever, or without a word: bounded and told, on one server.

use std::time::Duration;

use atomic_backend::{Conversation, OpenRequest, ToolRule, ToolRules};
use atomic_event::{Answer, Report, Stop};
use atomic_testing::conformance::backend::{Heard, exchange, in_time, send};
use atomic_testing::model::{Break, ModelServer, Reply, Script, Turn};
use serde_json::json;
use tokio::task::JoinSet;

use super::opencode_stand::{Stand, WINDOW, help, question, run, timed};
use super::serving_stand::{BREAKS, broken, hang, refusing, saying, when};
use super::stand::{PATIENCE, error, text};

/// Besides the window: the first look at a folder and the program's own time between two tries, on a
/// busy machine. By itself the program tries again without end.
const SLACK: Duration = Duration::from_secs(60);

/// How long the model takes for an answer that is broken.
const THINKING: Duration = Duration::from_millis(300);

/// More requests than any broken answer may lead to: the program asks on until it hears that it is to
/// stop, which takes it some seconds on a busy machine.
const REQUESTS: usize = 20;

fn script() -> Script {
    let slowly = |how: Break| Reply { delay: THINKING, ..Reply::broken(how) };
    let again = |how: Break| vec![slowly(how); 2 * REQUESTS];
    let breaks = BREAKS.map(|how| Turn { replies: again(how), ..when(&broken(how)) });
    let others = [
        when("limited for long").reply(refusing(429, "Slow down.", Some(100_000))),
        when("hold on").reply(hang()),
        when("ask and hold").reply(Reply::call("question", question("Which?"))),
        when("write it").reply(run("touch written; sleep 300")),
        when("read only, by explore")
            .reply(help("explore", "write by explore"))
            .reply(Reply::say("Tried.")),
        when("read only, by plan").reply(help("plan", "write by plan")).reply(Reply::say("Tried.")),
        when("write by explore").reply(write("by-explore")).reply(Reply::say("I tried.")),
        when("write by plan").reply(write("by-plan")).reply(Reply::say("I tried.")),
        when("refused").reply(run("touch refused")).reply(Reply::say("Refused, then.")),
        when("nobody to ask")
            .reply(Reply::call("question", question("Which?")))
            .reply(Reply::say("Decided.")),
        when("colour").reply(Reply::call("StructuredOutput", json!({ "colour": 7 }))),
    ];
    let turns = breaks.into_iter().chain(others);
    turns.fold(Script::new(), Script::with).with(Turn::default().reply(Reply::say("Yes.")))
}

fn write(name: &str) -> Reply {
    Reply::call("write", json!({ "filePath": format!("{{workspace}}/{name}"), "content": "it" }))
}

fn waits(heard: &Heard) -> usize {
    heard.others.iter().filter(|report| matches!(report, Report::Waited(_))).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_end_in_bounded_time_and_with_a_word() {
    let stand = Stand::new(script());
    let conversation = stand.open(stand.request("guards")).await;
    assert_eq!(text(exchange(conversation.as_ref(), "hello").await.1), "Yes.");
    tokio::join!(
        broken_answers(&stand),
        limited_for_long(&stand),
        one_prompt_at_a_time(&stand, conversation.as_ref()),
        refusals_are_told(&stand),
        readers_only_read(&stand),
    );
    a_form_that_does_not_fit(&stand).await;
    stand.server();
}

async fn broken_answers(stand: &Stand) {
    let mut under_way = JoinSet::new();
    for how in BREAKS {
        let conversation = stand.open(stand.request(&format!("{how:?}"))).await;
        under_way.spawn(async move {
            let (end, after) = timed(exchange(conversation.as_ref(), &broken(how))).await;
            (how, conversation, error(end.1), after)
        });
    }
    let mut surprises = vec![];
    while let Some(done) = under_way.join_next().await {
        let (how, conversation, error, after) = done.unwrap();
        let requests = stand.times_asked(&broken(how));
        if !["unavailable", "overloaded"].contains(&error.code.as_str())
            || after > WINDOW + SLACK
            || requests > REQUESTS
        {
            surprises.push(format!("{how:?}: {error:?} after {after:?}, {requests} requests"));
        }
        stand.goes_on(conversation.as_ref(), &broken(how)).await;
    }
    assert!(surprises.is_empty(), "{surprises:#?}");
}

async fn limited_for_long(stand: &Stand) {
    let conversation = stand.open(stand.request("limited")).await;
    let (end, after) = timed(exchange(conversation.as_ref(), "limited for long")).await;
    let error = error(end.1);
    assert_eq!(error.code, "rate_limited", "{}", error.message);
    assert!(after < WINDOW + SLACK, "{after:?}");
    assert_eq!(stand.times_asked("limited for long"), 1);
    stand.goes_on(conversation.as_ref(), "limited for long").await;
}

async fn one_prompt_at_a_time(stand: &Stand, conversation: &dyn Conversation) {
    for (prompt, step) in [("hold on", "first"), ("write it", "second"), ("ask and hold", "third")]
    {
        let mut turn = send(conversation, prompt).await;
        match step {
            "first" => turn.until_typed().await,
            "second" => stand.is_made("written").await,
            _ => _ = turn.until_asked().await,
        }
        let second = in_time("refusing", conversation.send("a second one".to_owned())).await;
        assert_eq!(second.unwrap_err().code(), "misused");
        in_time("interrupting", conversation.interrupt()).await;
        assert_eq!(turn.until_end().await.1, Stop::Interrupted);
        let next = format!("after the {step} was stopped");
        let (heard, stop) = exchange(conversation, &next).await;
        assert_eq!((text(stop).as_str(), heard.said), ("Yes.", vec!["Yes.".to_owned()]));
        let sent = stand.asked(&next);
        assert_eq!(sent.last_words(), next);
        assert!(sent.said().contains(prompt), "{}", sent.said());
        assert!(!sent.said().contains("a second one"), "{}", sent.said());
    }
}

async fn refusals_are_told(stand: &Stand) {
    let without = vec![ToolRule::new("bash", Some("touch:*"))];
    let off = ToolRules { without, ..ToolRules::default() };
    let request = OpenRequest { tools: off, questions: false, ..stand.request("refused") };
    let conversation = stand.open(request).await;
    let (heard, stop) = exchange(conversation.as_ref(), "refused").await;
    assert_eq!(text(stop), "Refused, then.");
    assert!(!heard.tools[0].ok && !stand.made("refused"), "{:?}", heard.tools);
    assert_eq!(text(exchange(conversation.as_ref(), "nobody to ask").await.1), "Decided.");
}

/// The program's own agents that only read.
async fn readers_only_read(stand: &Stand) {
    let conversation = stand.open(stand.request("readers")).await;
    for agent in ["explore", "plan"] {
        let (heard, stop) =
            exchange(conversation.as_ref(), &format!("read only, by {agent}")).await;
        assert_eq!(text(stop), "Tried.", "{heard:?}");
        assert!(!stand.made(&format!("by-{agent}")), "{agent} has written: {heard:?}");
    }
}

async fn a_form_that_does_not_fit(stand: &Stand) {
    let schema = json!({
        "type": "object",
        "properties": { "colour": { "type": "string" } },
        "required": ["colour"],
    });
    let request = || OpenRequest { schema: Some(schema.clone()), ..stand.request("form") };
    let conversation = stand.open(request()).await;
    let id = conversation.id();
    let answer = text(exchange(conversation.as_ref(), "colour").await.1);
    assert_eq!(answer, r#"{"colour":7}"#);
    in_time("closing", conversation.close()).await;
    // Another server reads what this one has written down.
    stand.signal(rustix::process::Signal::KILL);
    let conversation = stand.open(stand.resume("form", id)).await;
    stand.goes_on(conversation.as_ref(), "colour").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_goes_away_and_comes_back() {
    let mut stand = Stand::new(saying("Yes."));
    let conversation = stand.open(stand.request("provider")).await;
    assert_eq!(text(exchange(conversation.as_ref(), "hello").await.1), "Yes.");
    let table =
        [(429, "Too Many Requests", "rate_limited"), (500, "Something odd.", "unavailable")];
    for (status, words, code) in table {
        let refusing = Turn::default().reply(refusing(status, words, None));
        stand.model.replace(Script::new().with(refusing));
        let prompt = format!("status {status}");
        let mut turn = send(conversation.as_ref(), &prompt).await;
        assert_eq!(turn.until_waited().await, code);
        stand.model.replace(saying("Yes."));
        let (heard, stop) = turn.until_end().await;
        assert_eq!((text(stop).as_str(), waits(&heard)), ("Yes.", 1));
        stand.goes_on(conversation.as_ref(), &prompt).await;
    }
    // Nobody is there when a turn begins, and somebody is before it fails.
    let address = stand.model.address();
    let elsewhere = || ModelServer::start(Script::new()).unwrap();
    std::mem::replace(&mut stand.model, elsewhere()).stop();
    let mut turn = send(conversation.as_ref(), "wait for it").await;
    assert_eq!(turn.until_waited().await, "unavailable");
    stand.model = ModelServer::start_at(saying("Yes."), address).unwrap();
    assert_eq!(text(turn.until_end().await.1), "Yes.");
    // And in the middle of a turn, for too long.
    stand.model.replace(Script::new().with(Turn::default().reply(hang())));
    let mut turn = send(conversation.as_ref(), "hold on").await;
    turn.until_typed().await;
    std::mem::replace(&mut stand.model, elsewhere()).stop();
    let error = error(turn.until_end().await.1);
    assert_eq!(error.code, "unavailable", "{}", error.message);
    // A summary is no different.
    let (made, after) = timed(in_time("a summary", conversation.compact())).await;
    assert_eq!(made.unwrap_err().code, "unavailable");
    assert!(after < WINDOW + SLACK, "{after:?}");
    stand.model = ModelServer::start_at(saying("Yes."), address).unwrap();
    stand.goes_on(conversation.as_ref(), "hold on").await;
    summaries_that_fail(&stand, conversation.as_ref()).await;
}

async fn summaries_that_fail(stand: &Stand, conversation: &dyn Conversation) {
    let script = |reply: Reply| Script::new().with(Turn::default().reply(reply));
    let table = [
        (refusing(400, "messages.7: is odd", None), "rejected"),
        (refusing(429, "Slow down.", Some(100_000)), "rate_limited"),
        (Reply::broken(Break::NoFinish), "unavailable"),
    ];
    for (reply, code) in table {
        stand.model.replace(script(reply));
        let error = in_time("a summary", conversation.compact()).await.unwrap_err();
        assert_eq!(error.code, code, "{}", error.message);
    }
    stand.model.replace(script(hang()));
    let asked = stand.model.requests().len();
    let (made, ()) = tokio::join!(in_time("a summary", conversation.compact()), async {
        let came = |it: &atomic_testing::model::Received| it.number >= asked;
        tokio::task::block_in_place(|| stand.model.wait_for(came, PATIENCE)).unwrap();
        conversation.interrupt().await;
    });
    assert_eq!(made.unwrap_err().code, "misused");
    stand.model.replace(saying("Yes."));
    stand.goes_on(conversation, "").await;
    let answer = Answer { chosen: vec![] };
    let nobody_asked = atomic_event::QuestionId::from("nobody asked".to_owned());
    assert_eq!(conversation.answer(nobody_asked, answer).await.unwrap_err().code(), "misused");
}
