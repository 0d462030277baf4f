//! One running program: lines in, lines out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::process::{ChildStderr, ChildStdin};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::guard::{Guard, Guarded, Job};
use crate::serving::lock;

/// How many lines may wait for us.
const LINES: usize = 64;

/// Longer lines are nobody's words; one that never ends would fill the memory.
const LONGEST_LINE: usize = 256 * 1024 * 1024;

/// How long a program that has been told to end may take to do so by itself.
const LAST_WORDS: Duration = Duration::from_millis(600);

/// How long a program may take to end after its output has. The exit code says why it ended, and on
/// a busy machine it arrives late; a program that only closes its output is ended after this time.
pub(crate) const EXIT_AFTER_OUTPUT: Duration = Duration::from_secs(5);

/// How long reading the rest of the output of a program that has ended may take. A process that the
/// program has hidden from its guard could keep the output open.
const LAST_OUTPUT: Duration = Duration::from_secs(5);

/// The end of its error output is enough to know why it ended.
const COMPLAINT: usize = 2_000;

/// A program that was started.
pub(crate) struct Process {
    guarded: Guarded,
    /// Lines to write; without it, the program's input ends.
    input: Option<mpsc::UnboundedSender<String>>,
    lines: mpsc::Receiver<String>,
    complaint: Complaint,
    /// Whether the guard is gone.
    is_unguarded: bool,
    /// Whether nobody was there any more to read a line.
    is_deaf: Arc<AtomicBool>,
}

/// Writes lines for somebody who does not own the program, as long as it is there.
#[derive(Clone)]
pub(crate) struct Writer(mpsc::WeakUnboundedSender<String>);

impl Writer {
    pub(crate) fn write(&self, line: String) {
        if let Some(input) = self.0.upgrade() {
            let _ = input.send(line);
        }
    }
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exit {
    /// As an exit code, or 128 and the number of the signal.
    pub(crate) code: Option<i32>,
    /// In words.
    pub(crate) status: String,
    /// What it said about it.
    pub(crate) complaint: String,
    /// Whether the last line was surely not read, because nobody was there any more.
    pub(crate) is_deaf: bool,
}

impl Process {
    /// Starts a program.
    pub(crate) fn start(guard: &Guard, job: &Job) -> std::io::Result<Self> {
        let mut guarded = guard.spawn(job)?;
        let (sender, lines) = mpsc::channel(LINES);
        if let Some(stdout) = guarded.stdout.take() {
            tokio::spawn(read_lines(stdout, sender, LONGEST_LINE));
        }
        let complaint = Complaint::of(guarded.stderr.take());
        let (input, written) = mpsc::unbounded_channel();
        let is_deaf = Arc::new(AtomicBool::default());
        if let Some(stdin) = guarded.stdin.take() {
            let is_deaf = Arc::clone(&is_deaf);
            tokio::spawn(async move {
                let all = write_lines(stdin, written).await;
                is_deaf.store(all.is_err(), Ordering::Relaxed);
            });
        }
        Ok(Self { guarded, input: Some(input), lines, complaint, is_unguarded: false, is_deaf })
    }

    /// The next line; nothing when there will be no more.
    pub(crate) async fn line(&mut self) -> Option<String> {
        tokio::select! {
            biased;
            line = self.lines.recv() => return line,
            // Without its guard nobody would end what it leaves, so it has been ended with it.
            _ = self.guarded.wait(), if !self.is_unguarded => self.is_unguarded = true,
        }
        self.lines.recv().await
    }

    /// Writes one line, as soon as the program reads it. One that does not read any more does not
    /// hold us up; it is noticed by its end, or ended by us.
    pub(crate) fn write(&self, line: String) {
        if let Some(input) = &self.input {
            let _ = input.send(line);
        }
    }

    /// What lines are written with by somebody else; it does not keep the program's input open.
    pub(crate) fn writer(&self) -> Option<Writer> {
        self.input.as_ref().map(|input| Writer(input.downgrade()))
    }

    /// How it ended, once its output has.
    pub(crate) async fn exit(mut self) -> Exit {
        use std::os::unix::process::ExitStatusExt as _;
        // Its output may be closed while it goes on running; nobody could talk to it any more.
        let waited = timeout(EXIT_AFTER_OUTPUT, self.guarded.wait()).await;
        let status = match waited {
            Ok(status) => status.ok(),
            Err(_) => {
                self.guarded.end().await;
                None
            }
        };
        let code = status.and_then(|s| s.code().or(s.signal().map(|signal| 128 + signal)));
        Exit {
            code,
            status: status.map_or_else(|| "it was ended".to_owned(), |status| status.to_string()),
            complaint: self.complaint.whole().await,
            is_deaf: self.is_deaf.load(Ordering::Relaxed),
        }
    }

    /// Ends it and everything it started.
    pub(crate) async fn end(mut self) {
        // It then saves what it has to and ends by itself, if it has nothing to do.
        self.input = None;
        self.lines.close();
        if timeout(LAST_WORDS, self.guarded.wait()).await.is_err() {
            self.guarded.end().await;
        }
    }

    /// Ends it and everything it started without giving it time for last words.
    pub(crate) async fn kill(self) {
        self.guarded.end().await;
    }
}

async fn write_lines(
    mut stdin: ChildStdin,
    mut lines: mpsc::UnboundedReceiver<String>,
) -> std::io::Result<()> {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        stdin.write_all(line.as_bytes()).await?;
        stdin.flush().await?;
    }
    Ok(())
}

async fn read_lines(stdout: impl AsyncRead + Unpin, lines: mpsc::Sender<String>, longest: usize) {
    let mut reader = BufReader::with_capacity(64 * 1024, stdout);
    let mut bytes = vec![];
    loop {
        bytes.clear();
        let limit = u64::try_from(longest).unwrap_or(u64::MAX);
        match (&mut reader).take(limit).read_until(b'\n', &mut bytes).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let is_endless = bytes.len() >= longest && !bytes.ends_with(b"\n");
        if is_endless {
            // Its beginning makes no sense to anybody, and says so.
            bytes.truncate(COMPLAINT);
        }
        let line = String::from_utf8_lossy(&bytes).into_owned();
        // Somebody may not want to hear it any more; the program must not be held up by that.
        let _ = lines.send(line).await;
        if is_endless {
            return;
        }
    }
}

/// The end of a program's error output.
#[derive(Debug)]
pub(crate) struct Complaint {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Complaint {
    /// Begins to read.
    pub(crate) fn of(stderr: Option<ChildStderr>) -> Self {
        let text = Arc::default();
        let reader = stderr.map(|stderr| tokio::spawn(read_complaint(stderr, Arc::clone(&text))));
        Self { text, reader }
    }

    /// Returns all of it, once the program has ended: its exit can be known before the last of its
    /// output is read.
    pub(crate) async fn whole(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            let _ = timeout(LAST_OUTPUT, reader).await;
        }
        lock(&self.text).trim().to_owned()
    }
}

async fn read_complaint(mut stderr: ChildStderr, complaint: Arc<Mutex<String>>) {
    let mut chunk = [0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        let mut text = lock(&complaint);
        text.push_str(&String::from_utf8_lossy(&chunk[..read]));
        let surplus = text.len().saturating_sub(COMPLAINT);
        let start = text.ceil_char_boundary(surplus);
        text.drain(..start);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::read_lines;

    #[tokio::test]
    async fn a_line_without_an_end_is_the_last() {
        let (sender, mut lines) = mpsc::channel(8);
        read_lines(&b"1234567\n12345678\nno more\n"[..], sender, 8).await;
        let mut heard = vec![];
        while let Some(line) = lines.recv().await {
            heard.push(line);
        }
        assert_eq!(heard, ["1234567\n", "12345678"]);
    }
}
