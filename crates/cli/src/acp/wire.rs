//! Lines from standard input and to standard output. Nothing else is ever written there.

use std::convert::Infallible;
use std::io::{self, BufRead as _, Read as _};

use agent_client_protocol::{Agent, ConnectTo, Lines};
use futures_util::{sink, stream};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{mpsc, oneshot};

/// The longest line that is taken in, in bytes. A file in a prompt fits; a line without an end does
/// not fill the memory.
const LONGEST: u64 = 64 * 1024 * 1024;

/// The connection with whoever has started us, and who hears when its input has ended.
pub(super) fn lines() -> (impl ConnectTo<Agent>, oneshot::Receiver<Infallible>) {
    let (lines, ended) = read();
    let incoming = stream::unfold(lines, async |mut lines| {
        let line = lines.recv().await?;
        Some((line, lines))
    });
    let outgoing = sink::unfold(tokio::io::stdout(), async |mut out, mut line: String| {
        line.push('\n');
        out.write_all(line.as_bytes()).await?;
        out.flush().await?;
        Ok::<_, io::Error>(out)
    });
    (Lines::new(outgoing, incoming), ended)
}

/// Reads in a thread of its own, which is left alone when we end: nobody can wake it up.
fn read() -> (mpsc::Receiver<io::Result<String>>, oneshot::Receiver<Infallible>) {
    let (sender, lines) = mpsc::channel(64);
    let (end, ended) = oneshot::channel();
    std::thread::spawn(move || {
        // Dropped when nothing more is read, which is how its end is told.
        let _end = end;
        let mut input = io::stdin().lock();
        loop {
            let mut line = vec![];
            let read = (&mut input).take(LONGEST).read_until(b'\n', &mut line);
            let is_cut = line.len() as u64 == LONGEST && line.last() != Some(&b'\n');
            let line = match read {
                Ok(0) => return,
                Ok(_) if is_cut => Err(io::Error::other("a line is longer than 64 MiB")),
                // What is no text is no JSON either, and is answered as such.
                Ok(_) => Ok(String::from_utf8_lossy(&line).trim_end().to_owned()),
                Err(error) => Err(error),
            };
            if sender.blocking_send(line).is_err() || is_cut {
                return;
            }
        }
    });
    (lines, ended)
}
