//! OpenCode when things break under it: the same conversations go on afterwards.

use std::time::{Duration, Instant};

use atomic_backend::Backend as _;
use atomic_event::Stop;
use atomic_testing::conformance::backend::{exchange, in_time, send};
use atomic_testing::model::{Ending, Reply, Script, Turn};
use rustix::process::Signal;

use super::opencode_stand::{Stand, nothing_is_left, processes, question, run, when};
use super::stand::{error, text, until};

/// Starts of a server included.
const SOON: Duration = Duration::from_secs(8);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_killed_and_stands_still() {
    let hang = Reply { ending: Ending::Hang, ..Reply::say("Well") };
    let lasting = "setsid sleep 300 & (touch started; sleep 300)";
    let script = Script::new()
        .with(when("stream it").reply(hang))
        .with(when("use it").reply(run(lasting)))
        .with(when("ask it").reply(Reply::call("question", question("Which?"))))
        .with(Turn::default().reply(Reply::say("Yes.")));
    let stand = Stand::new(script);
    killed_in_three_turns_at_once(&stand).await;
    killed_between_turns(&stand).await;
    standing_still(&stand).await;
    in_time("ending", stand.backend.end_resting()).await;
    nothing_is_left(&stand).await;
}

async fn killed_in_three_turns_at_once(stand: &Stand) {
    let [streams, uses, asks] =
        ["streams", "uses", "asks"].map(|step| stand.open(stand.request(step)));
    let (streams, uses, asks) = tokio::join!(streams, uses, asks);
    let mut streaming = send(streams.as_ref(), "stream it").await;
    let using = send(uses.as_ref(), "use it").await;
    let mut asking = send(asks.as_ref(), "ask it").await;
    streaming.until_typed().await;
    let (question, _) = asking.until_asked().await;
    stand.is_made("started").await;
    let marker = stand.marker("uses");
    until("all shells run", || processes(&marker).len() >= 3).await;
    stand.signal(Signal::KILL);
    for turn in [streaming, using, asking] {
        let error = error(turn.until_end().await.1);
        assert_eq!(error.code, "exited", "{}", error.message);
        assert!(error.message.contains("SIGKILL"), "{}", error.message);
    }
    until("nothing is left of the shells", || processes(&marker).is_empty()).await;
    let late = atomic_event::Answer { chosen: vec!["Red".to_owned()] };
    assert_eq!(asks.answer(question, late).await.unwrap_err().code(), "misused");
    tokio::join!(
        stand.goes_on(streams.as_ref(), "stream it"),
        stand.goes_on(uses.as_ref(), "use it"),
        stand.goes_on(asks.as_ref(), "ask it"),
    );
    stand.server();
    for conversation in [streams, uses, asks] {
        in_time("closing", conversation.close()).await;
    }
}

async fn killed_between_turns(stand: &Stand) {
    let conversation = stand.open(stand.request("between")).await;
    assert_eq!(text(exchange(conversation.as_ref(), "first").await.1), "Yes.");
    let before = stand.server();
    stand.signal(Signal::KILL);
    // Nobody may have noticed yet.
    stand.goes_on(conversation.as_ref(), "first").await;
    assert_ne!(stand.server(), before);
    assert_eq!(stand.times_asked("after first"), 1);
    in_time("closing", conversation.close()).await;
}

async fn standing_still(stand: &Stand) {
    let conversation = stand.open(stand.request("still")).await;
    let other = stand.open(stand.request("other")).await;
    assert_eq!(text(exchange(conversation.as_ref(), "second").await.1), "Yes.");
    let before = stand.server();
    stand.signal(Signal::STOP);
    let start = Instant::now();
    let turn = send(conversation.as_ref(), &format!("third {}", "long ".repeat(200_000))).await;
    in_time("interrupting", conversation.interrupt()).await;
    assert_eq!(turn.until_end().await.1, Stop::Interrupted);
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    tokio::join!(stand.goes_on(conversation.as_ref(), "second"), stand.goes_on(other.as_ref(), ""),);
    assert_ne!(stand.server(), before);
    // Closing takes no longer than interrupting.
    stand.signal(Signal::STOP);
    let turn = send(conversation.as_ref(), "fourth").await;
    in_time("closing", conversation.close()).await;
    assert_eq!(turn.until_end().await.1, Stop::Interrupted);
    in_time("closing", other.close()).await;
}
