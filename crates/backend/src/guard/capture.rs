//! A command whose two outputs are kept apart.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;

use super::tail::Tail;
use super::{Guard, Job};

/// What a finished command left, its two outputs apart.
#[derive(Clone, Debug)]
pub struct Captured {
    /// How it ended; `None` when it was ended by us (time-out or cancelled).
    pub status: Option<ExitStatus>,
    /// The end of its output.
    pub stdout: Kept,
    /// The end of its error output.
    pub stderr: Kept,
}

/// The end of an output.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The text.
    pub text: String,
    /// How many bytes before that were left out.
    pub left_out: u64,
}

impl From<Tail> for Kept {
    fn from(tail: Tail) -> Self {
        let (text, left_out) = tail.into_text();
        Self { text, left_out }
    }
}

impl Guard {
    /// Runs a command to its end, gives it `input`, and keeps the last `tail_bytes` of each of its
    /// outputs. Everything else is as with [`run`](Self::run).
    ///
    /// # Errors
    ///
    /// Those of [`spawn`](Self::spawn) and [`wait`](super::Guarded::wait).
    pub async fn capture(
        &self,
        job: &Job,
        input: Option<String>,
        (timeout, tail_bytes): (Option<Duration>, usize),
        cancel: impl Future<Output = ()>,
    ) -> io::Result<Captured> {
        let mut guarded = self.spawn(&Job { stdin: input.is_some(), ..job.clone() })?;
        let (stdin, stdout, stderr) =
            (guarded.stdin.take(), guarded.stdout.take(), guarded.stderr.take());
        let (mut out, mut err) = (Tail::new(tail_bytes), Tail::new(tail_bytes));
        let status = {
            let writing = async {
                if let (Some(mut stdin), Some(input)) = (stdin, input) {
                    // One that does not read to the end says so by its status, if at all.
                    let _ = stdin.write_all(input.as_bytes()).await;
                }
                Ok(())
            };
            let reading = async {
                let out = async {
                    match stdout {
                        Some(mut stdout) => out.fill(&mut stdout).await,
                        None => Ok(()),
                    }
                };
                let err = async {
                    match stderr {
                        Some(mut stderr) => err.fill(&mut stderr).await,
                        None => Ok(()),
                    }
                };
                tokio::try_join!(writing, out, err).map(drop)
            };
            guarded.seen_out(reading, cancel, timeout).await?
        };
        Ok(Captured { status, stdout: out.into(), stderr: err.into() })
    }
}
