//! Messages with their length in front, however they arrive.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, ReadBuf, duplex};

use super::{Incoming, LARGEST, LONGEST_LINE, Reader, Rpc};
use crate::BackendError;

/// An output that arrives in these pieces.
struct Pieces(VecDeque<Vec<u8>>);

impl AsyncRead for Pieces {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(mut piece) = self.0.pop_front() {
            let rest = piece.split_off(piece.len().min(into.remaining()));
            into.put_slice(&piece);
            if !rest.is_empty() {
                self.0.push_front(rest);
            }
        }
        Poll::Ready(Ok(()))
    }
}

fn framed(body: &[u8]) -> Vec<u8> {
    [format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

/// Everything that is read to the first thing that is no message, which is the last.
async fn read(pieces: Vec<Vec<u8>>) -> Vec<Incoming> {
    // An empty piece would be the end.
    let pieces = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
    let mut reader = Reader::new(Pieces(pieces));
    let mut all = vec![];
    loop {
        let next = reader.next().await;
        let is_last = !matches!(next, Incoming::Message(_));
        all.push(next);
        if is_last {
            return all;
        }
    }
}

fn now<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

fn message(body: &[u8]) -> Incoming {
    Incoming::Message(body.to_owned())
}

#[tokio::test]
async fn heads_may_be_written_in_other_ways() {
    for head in [
        "Content-Length: 2\r\n\r\n",
        "content-length:2\r\n\r\n",
        "CONTENT-LENGTH:   2  \r\n\r\n",
        "Content-Length: 2\n\n",
        "Content-Length: 2\r\nContent-Type: application/json\r\n\r\n",
    ] {
        let read = read(vec![format!("{head}{{}}").into_bytes()]).await;
        assert_eq!(read, [message(b"{}"), Incoming::End], "{head:?}");
    }
}

#[tokio::test]
async fn what_is_no_head_is_garbage() {
    let long = "x".repeat(2 * LONGEST_LINE);
    let too_large = format!("Content-Length: {}\r\n\r\n", LARGEST + 1);
    for text in [
        "this is no JSON\n",
        "\r\n",
        "{}\n",
        "Content-Length: \r\n\r\n",
        "Content-Length: -1\r\n\r\n",
        "Content-Length: 2.0\r\n\r\n",
        "Content-Length: 99999999999999999999999\r\n\r\n",
        &too_large,
        &long,
    ] {
        let output = [framed(b"{}"), text.as_bytes().to_owned()].concat();
        let read = read(vec![output]).await;
        let is_garbage = matches!(&read[..], [Incoming::Message(_), Incoming::Garbage(_)]);
        assert!(is_garbage, "{:?}: {read:?}", &text[..text.len().min(40)]);
    }
}

#[tokio::test]
async fn a_length_alone_takes_no_room() {
    // The most that may be told; nothing of it comes.
    let head = format!("Content-Length: {LARGEST}\r\n\r\n{{");
    assert_eq!(read(vec![head.into_bytes()]).await, [Incoming::End]);
}

proptest! {
    /// Any bodies, in any pieces, and with any end missing: all that are whole are read, in order.
    #[test]
    fn it_does_not_matter_where_the_output_is_cut(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..6),
        cuts in prop::collection::vec(any::<Index>(), 0..8),
        kept in any::<Index>(),
        is_cut_short in any::<bool>(),
    ) {
        let mut output: Vec<u8> = bodies.iter().flat_map(|body| framed(body)).collect();
        if is_cut_short {
            output.truncate(kept.index(output.len() + 1));
        }
        let mut whole = vec![];
        let mut end = 0;
        for body in &bodies {
            end += framed(body).len();
            if end <= output.len() {
                whole.push(message(body));
            }
        }
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(output.len() + 1)).collect();
        places.sort_unstable();
        let mut pieces = vec![];
        for place in places.into_iter().rev() {
            pieces.push(output.split_off(place));
        }
        pieces.push(output);
        pieces.reverse();
        let mut read = now(read(pieces));
        prop_assert_eq!(read.pop(), Some(Incoming::End));
        prop_assert_eq!(read, whole);
    }

    #[test]
    fn no_bytes_make_it_panic(output in prop::collection::vec(any::<u8>(), 0..400)) {
        now(read(vec![output]));
    }
}

#[tokio::test]
async fn an_answer_goes_to_whoever_made_the_call() {
    let (ours, theirs) = duplex(1024);
    let rpc = Rpc::new(ours);
    let mut reader = Reader::new(theirs);
    let mut heard = async || {
        let Incoming::Message(body) = reader.next().await else { panic!("no message") };
        serde_json::from_slice::<Value>(&body).unwrap()
    };
    let answering = async {
        let (first, second) = (heard().await, heard().await);
        assert_eq!(
            first,
            json!({ "jsonrpc": "2.0", "id": 1, "method": "a", "params": { "é": 1 } })
        );
        rpc.answered(&json!(7), Ok(json!("nobody asked")));
        rpc.answered(&second["id"], Err("no".to_owned()));
        rpc.answered(&first["id"], Ok(json!("yes")));
    };
    let (params, nothing) = (json!({ "é": 1 }), json!({}));
    let (first, second, ()) =
        tokio::join!(rpc.call("a", &params, None), rpc.call("b", &nothing, None), answering);
    assert_eq!(first, Ok(json!("yes")));
    assert!(matches!(second, Err(BackendError::Rejected { message, .. }) if message == "no"));
}

#[tokio::test]
async fn nobody_waits_for_a_program_that_is_gone() {
    let (ours, theirs) = duplex(1024);
    let rpc = Rpc::new(ours);
    drop(theirs);
    let nothing = json!({});
    let mut open = std::pin::pin!(rpc.call("a", &nothing, None));
    let is_open = std::future::poll_fn(|context| Poll::Ready(open.as_mut().poll(context)));
    assert!(is_open.await.is_pending());
    rpc.hang_up();
    for answer in [open.await, rpc.call("b", &json!({}), None).await] {
        assert!(matches!(answer, Err(BackendError::Exited { .. })), "{answer:?}");
    }
}
