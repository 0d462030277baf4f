//! What GitHub Copilot would do for long, or say twice: bounded, and told once.

use std::num::NonZeroUsize;
use std::time::Duration;

use atomic_backend::Conversation;
use atomic_testing::conformance::backend::{exchange, in_time, send};
use atomic_testing::model::{Break, Ending, ModelServer, Received, Reply, Script, Turn};
use tokio::task::JoinSet;

use super::copilot_stand::Stand;
use super::serving_stand::{BREAKS, broken, hang, refusing, saying, when};
use super::stand::{PATIENCE, error, text};

/// More requests than any trouble may lead to.
const REQUESTS: usize = 8;

/// A part of it is typed before it breaks, where it breaks at all after it has begun.
fn half(how: Break) -> Reply {
    let chunk = NonZeroUsize::new(4);
    Reply { ending: Ending::Broken(how), chunk, ..Reply::say("Half of what it says.") }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trouble_ends_after_few_requests_and_with_its_code() {
    let trouble = [
        ("limited for long", refusing(429, "Slow down.", Some(100_000)), "rate_limited"),
        ("limited", refusing(429, "Slow down.", None), "rate_limited"),
        ("failing", refusing(500, "", None), "unavailable"),
    ];
    let prompts: Vec<(String, Reply, &str)> = BREAKS
        .into_iter()
        .map(|how| {
            let code = if how == Break::ErrorEvent { "overloaded" } else { "unavailable" };
            (broken(how), half(how), code)
        })
        .chain(trouble.map(|(prompt, reply, code)| (prompt.to_owned(), reply, code)))
        .collect();
    let turns = prompts.iter().map(|(prompt, reply, _)| when(prompt).reply(reply.clone()));
    let stand = Stand::new(turns.fold(Script::new(), Script::with));
    let mut under_way = JoinSet::new();
    for (prompt, _, code) in prompts {
        let conversation = stand.open(stand.request(&prompt.replace(' ', "-"))).await;
        under_way.spawn(async move {
            let (heard, stop) = exchange(conversation.as_ref(), &prompt).await;
            (conversation, prompt, heard, error(stop), code)
        });
    }
    let mut surprises = vec![];
    while let Some(done) = under_way.join_next().await {
        let (conversation, prompt, heard, error, code) = done.unwrap();
        let requests = stand.times_asked(&prompt);
        if error.code != code || requests > REQUESTS || !heard.said.is_empty() {
            surprises.push(format!("{prompt}: {error:?} after {requests} requests: {heard:?}"));
        }
        stand.goes_on(conversation.as_ref(), &prompt).await;
    }
    assert!(surprises.is_empty(), "{surprises:#?}");
    assert_eq!(stand.times_asked("limited for long"), 2, "one of them is the prompt after it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_again_is_told_once() {
    let breaks = [Break::Cut, Break::BadJson, Break::NoFinish];
    let turns = breaks.map(|how| when(&broken(how)).reply(half(how)));
    // The program itself gives up before that.
    let patient = Duration::from_secs(100);
    let stand = Stand::with(turns.into_iter().fold(Script::new(), Script::with), patient);
    let mut conversations = vec![];
    for how in breaks {
        conversations.push(stand.open(stand.request(&format!("{how:?}"))).await);
    }
    let mut turns = vec![];
    for (how, conversation) in breaks.iter().zip(&conversations) {
        turns.push(send(conversation.as_ref(), &broken(*how)).await);
    }
    for turn in &mut turns {
        assert_eq!(turn.until_waited().await, "unavailable");
    }
    stand.model.replace(saying("Yes."));
    for (turn, how) in turns.into_iter().zip(breaks) {
        let (heard, stop) = turn.until_end().await;
        assert_eq!((text(stop).as_str(), heard.said), ("Yes.", vec!["Yes.".to_owned()]), "{how:?}");
    }
    // And when the program gives up by itself.
    stand.model.replace(Script::new().with(Turn::default().reply(half(Break::NoFinish))));
    let (heard, stop) = exchange(conversations[0].as_ref(), "up to its end").await;
    let error = error(stop);
    assert_eq!((error.code.as_str(), heard.said.len()), ("unavailable", 0), "{}", error.message);
    stand.model.replace(saying("Yes."));
    stand.goes_on(conversations[0].as_ref(), "up to its end").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_goes_away_and_comes_back() {
    let mut stand = Stand::new(Script::new());
    let conversation = stand.open(stand.request("provider")).await;
    assert_eq!(text(exchange(conversation.as_ref(), "hello").await.1), "Yes.");
    summaries_that_fail(&stand, conversation.as_ref()).await;
    let address = stand.model.address();
    let elsewhere = || ModelServer::start(Script::new()).unwrap();
    stand.model.replace(Script::new().with(Turn::default().reply(hang())));
    let mut turn = send(conversation.as_ref(), "hold on").await;
    turn.until_typed().await;
    std::mem::replace(&mut stand.model, elsewhere()).stop();
    let error = error(turn.until_end().await.1);
    assert_eq!(error.code, "unavailable", "{}", error.message);
    let made = in_time("a summary", conversation.compact()).await;
    assert_eq!(made.unwrap_err().code, "unavailable");
    stand.model = ModelServer::start_at(saying("Yes."), address).unwrap();
    stand.goes_on(conversation.as_ref(), "hold on").await;
}

async fn summaries_that_fail(stand: &Stand, conversation: &dyn Conversation) {
    let script = |reply: Reply| Script::new().with(Turn::default().reply(reply));
    let table = [
        (refusing(400, "messages.7: is odd", None), "rejected"),
        (refusing(429, "Slow down.", Some(100_000)), "rate_limited"),
        // The program would try again for a minute.
        (refusing(429, "Slow down.", None), "rate_limited"),
        (Reply::broken(Break::NoFinish), "unavailable"),
    ];
    for (reply, code) in table {
        stand.model.replace(script(reply));
        let before = stand.model.requests().len();
        let error = in_time("a summary", conversation.compact()).await.unwrap_err();
        assert_eq!(error.code, code, "{}", error.message);
        assert!(stand.model.requests().len() - before <= REQUESTS);
    }
    stand.model.replace(script(hang()));
    let asked = stand.model.requests().len();
    let (made, ()) = tokio::join!(in_time("a summary", conversation.compact()), async {
        let came = |it: &Received| it.number >= asked;
        tokio::task::block_in_place(|| stand.model.wait_for(came, PATIENCE)).unwrap();
        conversation.interrupt().await;
    });
    assert_eq!(made.unwrap_err().code, "misused");
    stand.model.replace(saying("Yes."));
    stand.goes_on(conversation, "hello").await;
}
