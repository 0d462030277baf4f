//! A program that serves many is killed or stands still: the same conversations go on afterwards.
//! The scripts have `stream it`, which does not end, `use it`, which starts processes and `started`,
//! and `ask it`; everything else is answered by `Yes.`.

use atomic_backend::Backend;
use atomic_event::Stop;
use atomic_testing::conformance::backend::{exchange, in_time, send};
use rustix::process::Signal;

use super::serving_stand::{Stand, processes};
use super::stand::{error, text, until};

/// Leaves a process of its own, and does not end.
pub(super) const LASTING: &str = "setsid sleep 300 & (touch started; sleep 300)";

pub(super) async fn killed_in_three_turns_at_once<B: Backend, H>(stand: &Stand<B, H>) {
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
    // Where the marker is set by the command itself, the shell has none.
    until("both processes run", || processes(&marker).len() >= 2).await;
    stand.signal(Signal::KILL);
    for turn in [streaming, using, asking] {
        let error = error(turn.until_end().await.1);
        assert_eq!(error.code, "exited", "{}", error.message);
        assert!(error.message.contains("SIGKILL"), "{}", error.message);
    }
    let of_server = stand.server_marker();
    until("nothing is left", || [&marker, &of_server].iter().all(|it| processes(it).is_empty()))
        .await;
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

pub(super) async fn killed_between_turns<B: Backend, H>(stand: &Stand<B, H>) {
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

pub(super) async fn standing_still<B: Backend, H>(stand: &Stand<B, H>) {
    let conversation = stand.open(stand.request("still")).await;
    let other = stand.open(stand.request("other")).await;
    assert_eq!(text(exchange(conversation.as_ref(), "second").await.1), "Yes.");
    let before = stand.server();
    stand.signal(Signal::STOP);
    let turn = send(conversation.as_ref(), &format!("third {}", "long ".repeat(200_000))).await;
    in_time("interrupting", conversation.interrupt()).await;
    assert_eq!(turn.until_end().await.1, Stop::Interrupted);
    tokio::join!(stand.goes_on(conversation.as_ref(), "second"), stand.goes_on(other.as_ref(), ""));
    assert_ne!(stand.server(), before);
    // Closing takes no longer than interrupting.
    stand.signal(Signal::STOP);
    let turn = send(conversation.as_ref(), "fourth").await;
    in_time("closing", conversation.close()).await;
    assert_eq!(turn.until_end().await.1, Stop::Interrupted);
    in_time("closing", other.close()).await;
}
