//! Between us and every process we start: a tiny guard, our own binary run again.
//!
//! The guard is told of our death by the end of its control socket, so it also works when we are
//! killed outright. It adopts whatever its child leaves behind (`setsid`, double forks and cleared
//! environments included), ends all of it when the child has ended or when we ask, and only then
//! ends itself. A process is ended by SIGTERM first and by SIGKILL 300 ms later.
//!
//! A guard can be killed alone. A program that has called [`adopt_orphans`] then adopts what the
//! guard leaves, and ends it. Such a program kills a guard that was stopped and does not end.
//!
//! Two things are out of its reach: a process that belongs to another user (`sudo`), and what a
//! service started for the child (`docker run`, `systemd-run`).
//!
//! Start reading at [`Guard::spawn`] for our side and at [`run_if_asked`] for the guard's.

mod capture;
mod keeper;
mod orphans;
mod processes;
mod survivors;
mod tail;
mod wire;

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time;

pub use capture::{Captured, Kept};
pub use keeper::run_if_asked;
pub use orphans::{adopt_orphans, end_orphans, kill_guarded};
pub(crate) use survivors::end_marked;
pub use survivors::end_survivors;

/// What makes our binary play the guard, as its first argument.
const GUARD_ARGUMENT: &str = "__guard";

/// The variable that names the step a process belongs to.
const STEP_VARIABLE: &str = "ATOMIC_STEP";

/// Ending everything never takes longer than this.
const END_LIMIT: Duration = Duration::from_secs(2);

/// How long output is read on after everything is gone. Its end is there at once, unless an end of
/// the pipe was handed to a process that is not ours.
const DRAIN_LIMIT: Duration = Duration::from_millis(200);

/// How to start guarded processes: which binary plays the guard.
#[derive(Clone, Debug)]
pub struct Guard {
    exe: PathBuf,
    /// Added to our own environment for every process; a job's own variables win.
    env: Vec<(String, String)>,
}

/// A process to start.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Where it runs; empty means where we run.
    pub cwd: PathBuf,
    /// Added to our own environment.
    pub env: Vec<(String, String)>,
    /// The value of `ATOMIC_STEP` for it and everything it starts.
    pub marker: String,
    /// Whether its input is a pipe from us; otherwise it is empty.
    pub stdin: bool,
}

/// A process under guard. Dropping it ends the process and everything it started.
#[derive(Debug)]
pub struct Guarded {
    /// Its input, when it was asked for.
    pub stdin: Option<ChildStdin>,
    /// Its output.
    pub stdout: Option<ChildStdout>,
    /// Its error output.
    pub stderr: Option<ChildStderr>,
    guard: Child,
    /// The guard ends everything once our direction is closed, by us or by our death.
    control: UnixStream,
    status: Option<ExitStatus>,
    program: String,
    marker: String,
}

/// What a finished command left.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it ended; `None` when it was ended by us (time-out or cancelled).
    pub status: Option<ExitStatus>,
    /// The end of what it printed, both streams in the order they came.
    pub tail: String,
    /// How many bytes before that were left out.
    pub left_out: u64,
}

impl Guard {
    /// Uses `exe`, which must call [`run_if_asked`] first thing in `main`.
    pub fn new(exe: PathBuf) -> Self {
        Self { exe, env: vec![] }
    }

    /// Adds variables to the environment of every process. A job's own variables win.
    #[must_use]
    pub fn with_env(self, env: Vec<(String, String)>) -> Self {
        Self { env, ..self }
    }

    /// Uses the running binary itself, also when its file has been replaced or deleted since.
    pub fn from_current_exe() -> Self {
        Self::new(PathBuf::from("/proc/self/exe"))
    }

    /// Starts a process. A program that cannot be started says so on its error output and ends
    /// with 127 (not found) or 126, as in a shell.
    ///
    /// # Errors
    ///
    /// When the guard cannot be started: no such folder, no processes or files left, no tokio
    /// runtime.
    pub fn spawn(&self, job: &Job) -> io::Result<Guarded> {
        self.start(job, Stdio::piped(), Stdio::piped())
    }

    /// Runs a command to its end and keeps the last `tail_bytes` of what it printed.
    ///
    /// After `timeout`, or once `cancel` is ready, everything is ended; the answer, with a status
    /// of `None`, comes when all of it is gone. Dropping the future ends everything, too, but then
    /// nobody waits for it. Use [`std::future::pending`] where nothing cancels.
    ///
    /// # Errors
    ///
    /// Those of [`spawn`](Self::spawn) and [`wait`](Guarded::wait).
    pub async fn run(
        &self,
        job: &Job,
        timeout: Option<Duration>,
        tail_bytes: usize,
        cancel: impl Future<Output = ()>,
    ) -> io::Result<Finished> {
        // One pipe for both streams, so that what was printed first is read first.
        let (output, input) = io::pipe()?;
        let guarded = self.start(job, input.try_clone()?.into(), input.into())?;
        let mut output = ChildStdout::from_std(OwnedFd::from(output).into())?;
        let mut tail = tail::Tail::new(tail_bytes);

        let status = {
            let reading = tail.fill(&mut output);
            guarded.seen_out(reading, cancel, timeout).await?
        };
        let (tail, left_out) = tail.into_text();
        Ok(Finished { status, tail, left_out })
    }

    fn start(&self, job: &Job, stdout: Stdio, stderr: Stdio) -> io::Result<Guarded> {
        let Some(program) = job.argv.first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a job needs a program"));
        };
        // Without a runtime tokio would panic further down.
        tokio::runtime::Handle::try_current().map_err(io::Error::other)?;

        let (control, guards_end) = UnixStream::pair()?;
        let stdin = if job.stdin {
            let (reader, writer) = io::pipe()?;
            wire::send_start(&control, Some(reader.as_fd()))?;
            Some(ChildStdin::from_std(OwnedFd::from(writer).into())?)
        } else {
            wire::send_start(&control, None)?;
            None
        };
        control.set_nonblocking(true)?;

        let mut command = Command::new(&self.exe);
        command
            .arg(GUARD_ARGUMENT)
            .args(&job.argv)
            .envs(self.env.iter().chain(&job.env).map(|(name, value)| (name, value)))
            .env(STEP_VARIABLE, &job.marker)
            .stdin(OwnedFd::from(guards_end))
            .stdout(stdout)
            .stderr(stderr);
        if !job.cwd.as_os_str().is_empty() {
            command.current_dir(&job.cwd);
        }
        let mut guard = orphans::start_guard(&control, || command.spawn())
            .map_err(|error| self.not_started(job, &error))?;
        Ok(Guarded {
            stdin,
            stdout: guard.stdout.take(),
            stderr: guard.stderr.take(),
            guard,
            control,
            status: None,
            program: program.clone(),
            marker: job.marker.clone(),
        })
    }

    /// The system's own words do not say whether the folder or the binary is missing.
    fn not_started(&self, job: &Job, error: &io::Error) -> io::Error {
        let why = if !job.cwd.as_os_str().is_empty() && !job.cwd.is_dir() {
            format!("cannot run in {}: not a folder", job.cwd.display())
        } else {
            format!("cannot start the guard {}: {error}", self.exe.display())
        };
        io::Error::new(error.kind(), why)
    }
}

impl Guarded {
    /// Reads what it prints until it is over: by itself, or, without a status, because it was ended.
    async fn seen_out(
        mut self,
        reading: impl Future<Output = io::Result<()>>,
        cancel: impl Future<Output = ()>,
        timeout: Option<Duration>,
    ) -> io::Result<Option<ExitStatus>> {
        let mut reading = pin!(reading);
        let mut ending = pin!(async {
            tokio::select! {
                biased; // What has ended by itself was not ended by us.
                status = self.wait() => return status.map(Some),
                () = cancel => {}
                () = elapsed(timeout) => {}
            }
            self.end().await;
            Ok(None)
        });
        tokio::select! {
            status = &mut ending => {
                // Running into the limit loses nothing of what was ours.
                time::timeout(DRAIN_LIMIT, reading).await.unwrap_or(Ok(()))?;
                status
            }
            read = &mut reading => {
                read?;
                ending.await
            }
        }
    }

    /// Waits until the process and everything it started is gone; what it leaves running is ended.
    ///
    /// Closes [`stdin`](Self::stdin) first unless it was taken out, so that a process reading to
    /// the end of its input ends. Dropping the future loses nothing; call again.
    ///
    /// # Errors
    ///
    /// When the guard itself was killed from outside or could not do its work. What carries the
    /// job's marker has then been ended, and in a program that adopts orphans everything else, too.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        let guard_status = self.guard.wait().await?;
        if self.status.is_none() {
            self.status = wire::report(&self.control).ok().flatten();
        }
        if let Some(status) = self.status {
            return Ok(status);
        }
        let marker = self.marker.clone();
        tokio::task::spawn_blocking(move || orphans::end_adopted().and(end_marked(&marker)))
            .await
            .map_err(io::Error::other)??;
        let program = &self.program;
        Err(io::Error::other(format!(
            "the guard of `{program}` ended before `{program}` did ({guard_status})"
        )))
    }

    /// Ends the process and everything it started. Returns when all of it is gone, or after four
    /// seconds when something cannot be ended.
    pub async fn end(mut self) {
        // Only our direction is closed: the guard's report still comes, and tells a guard that has
        // done its work from one that was killed.
        let _ = self.control.shutdown(Shutdown::Write);
        if time::timeout(END_LIMIT, self.wait()).await.is_ok() || !orphans::is_adopting() {
            return;
        }
        // A process can stop its guard, which then ends nothing. What a killed guard leaves is ended by
        // this program.
        let _ = self.guard.start_kill();
        let _ = time::timeout(END_LIMIT, self.wait()).await;
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // The watch of the guard has the socket, too, so dropping ours does not close it.
        let _ = self.control.shutdown(Shutdown::Write);
        orphans::expect_end(&self.guard);
    }
}

/// Ready after `timeout`; never without one.
async fn elapsed(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => time::sleep(timeout).await,
        None => std::future::pending().await,
    }
}
