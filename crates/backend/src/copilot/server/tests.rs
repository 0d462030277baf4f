//! A program that says nothing is asked whether it is there.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};

use super::{Incoming, Lifeline, QUIET, Reader, Roster, Rpc, Server, heard};

/// A program's two ends: what it reads, and what it writes.
struct Program {
    reads: Reader<DuplexStream>,
    writes: DuplexStream,
}

impl Program {
    fn start() -> (Self, Reader<DuplexStream>, Arc<Server>) {
        let (stdin, reads) = duplex(1024);
        let (writes, stdout) = duplex(1024);
        let (line, _) = Lifeline::new();
        let server = Server { rpc: Rpc::new(stdin), line, talkers: Roster::default() };
        let program = Self { reads: Reader::new(reads), writes };
        (program, Reader::new(stdout), Arc::new(server))
    }

    async fn is_asked(&mut self) -> Value {
        let Incoming::Message(body) = self.reads.next().await else { panic!("no message") };
        serde_json::from_slice(&body).unwrap()
    }

    async fn says(&mut self, text: &str) {
        self.writes.write_all(text.as_bytes()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_asked_and_answers_is_there() {
    let (mut program, mut reader, server) = Program::start();
    let weak = Arc::downgrade(&server);
    let (incoming, ()) = tokio::join!(heard(&mut reader, &weak), async {
        // What has begun before it is asked is not lost.
        program.says("Content-Length: 2\r\n").await;
        assert_eq!(program.is_asked().await["method"], json!("ping"));
        tokio::time::sleep(QUIET / 2).await;
        program.says("\r\n{}").await;
    });
    assert_eq!(incoming, Incoming::Message(b"{}".to_vec()));
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_answer_is_not() {
    let (mut program, mut reader, server) = Program::start();
    let weak = Arc::downgrade(&server);
    let (incoming, asked) = tokio::join!(heard(&mut reader, &weak), program.is_asked());
    assert_eq!((incoming, &asked["method"]), (Incoming::Silence, &json!("ping")));
}

#[tokio::test(start_paused = true)]
async fn one_that_talks_is_not_asked() {
    let (mut program, mut reader, server) = Program::start();
    let weak = Arc::downgrade(&server);
    for _ in 0..3 {
        tokio::time::sleep(QUIET).await;
        program.says("Content-Length: 2\r\n\r\n{}").await;
        assert_eq!(heard(&mut reader, &weak).await, Incoming::Message(b"{}".to_vec()));
    }
    drop(server);
    assert_eq!(program.reads.next().await, Incoming::End);
}
