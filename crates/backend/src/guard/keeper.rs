//! The guard process: starts the child, waits, and leaves nothing behind.
//!
//! It stays single-threaded and away from any runtime: there is one of these for every process we
//! start.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, setsid, wait,
};
use rustix::stdio::{dup2_stderr, dup2_stdout, stdin};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::{GUARD_ARGUMENT, processes, wire};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(300);
/// After this, only what cannot be ended is left (it belongs to another user, or the kernel holds
/// it), and waiting longer would only hold up everybody else.
const GIVE_UP: Duration = Duration::from_millis(1900);
/// Between two rounds of SIGKILL, when no child's end calls for one earlier.
const ROUND: Duration = Duration::from_millis(20);

/// The shell's exit codes for a program that is there but cannot be run, and for none.
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;
/// The guard could not do its work; used by `env`, `timeout` and their like, too.
const GUARD_FAILED: u8 = 125;

/// Plays the guard and returns its exit code when this process was started as one.
///
/// Must be the first thing in `main`, before any thread or runtime is started.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != GUARD_ARGUMENT {
        return None;
    }
    let argv: Vec<OsString> = arguments.collect();
    let code = guard(&argv).unwrap_or_else(|error| {
        complain(&format!("the process guard failed: {error}; only atomic itself can start it"));
        GUARD_FAILED
    });
    Some(ExitCode::from(code))
}

fn guard(argv: &[OsString]) -> io::Result<u8> {
    let [program, arguments @ ..] = argv else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program was named"));
    };
    let Some(start) = wire::receive_start(stdin())? else { return Ok(GUARD_FAILED) };
    // Away from the terminal: its signals are for atomic, which decides what becomes of us.
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    let _ = rustix::thread::set_name(c"atomic-guard");
    let asked_to_end = listen(&[SIGTERM, SIGINT, SIGHUP, SIGQUIT])?;
    let child_changed = listen(&[SIGCHLD])?;
    if is_ready(&stdin(), Duration::ZERO)? {
        return Ok(GUARD_FAILED); // Atomic died meanwhile: nothing to start for.
    }

    let is_talked_to = start.stdin.is_some();
    let child = Command::new(program)
        .args(arguments)
        .stdin(start.stdin.map_or_else(Stdio::null, Stdio::from))
        // A script that signals its own group must not hit its guard.
        .process_group(0)
        .spawn();
    let main = match child {
        Ok(child) => Pid::from_raw(child.id().cast_signed()),
        Err(error) => return Ok(not_started(program, &error)),
    };
    let keeper = Keeper { main, is_talked_to, status: None, asked_to_end, child_changed };
    keeper.keep()
}

struct Keeper {
    main: Option<Pid>,
    /// Whether the child is a program that is talked to, as agent programs are.
    is_talked_to: bool,
    status: Option<WaitStatus>,
    asked_to_end: UnixStream,
    child_changed: UnixStream,
}

impl Keeper {
    fn keep(mut self) -> io::Result<u8> {
        let watched = release_output().and_then(|()| self.watch());
        // Whatever went wrong, nothing is left behind.
        let ended = self.end_all();
        watched.and(ended)?;
        let Some(status) = self.status else { return Ok(GUARD_FAILED) };
        wire::send_report(stdin(), status.as_raw());
        let code = status.exit_status().or(status.terminating_signal().map(|signal| 128 + signal));
        Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(GUARD_FAILED))
    }

    /// Returns when the main child has ended, when atomic is gone or asks, or on a signal.
    fn watch(&mut self) -> io::Result<()> {
        while self.status.is_none() {
            let control = stdin();
            let mut watched = [
                PollFd::new(&control, PollFlags::IN),
                PollFd::new(&self.asked_to_end, PollFlags::IN),
                PollFd::new(&self.child_changed, PollFlags::IN),
            ];
            retry_on_intr(|| poll(&mut watched, None))?;
            if watched[..2].iter().any(|fd| !fd.revents().is_empty()) {
                return Ok(());
            }
            // Also what others left and was handed to us, lest it pile up over a long run.
            self.reap()?;
        }
        Ok(())
    }

    /// Ends every process below us, at last by force.
    fn end_all(&mut self) -> io::Result<()> {
        let since = Instant::now();
        if !self.reap()? {
            return Ok(());
        }
        if self.is_talked_to && !self.end_main(since)? {
            return Ok(());
        }
        let begun = Instant::now();
        for process in processes::below(getpid())? {
            let _ = process.signal(Signal::TERM);
        }
        while let Some(rest) = GRACE.checked_sub(begun.elapsed()) {
            is_ready(&self.child_changed, rest)?;
            if !self.reap()? {
                return Ok(());
            }
        }
        while since.elapsed() < GIVE_UP {
            // The next round kills processes forked meanwhile: orphans become our children.
            processes::kill(&processes::below(getpid())?);
            is_ready(&self.child_changed, ROUND)?;
            if !self.reap()? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Ends the main child before everything that it has started: an agent program that outlives the
    /// command it runs takes the end of that for a result, and asks the model again. Says whether any
    /// child is left.
    fn end_main(&mut self, begun: Instant) -> io::Result<bool> {
        let Some(main) = self.main else { return Ok(true) };
        if self.status.is_none() {
            let _ = kill_process(main, Signal::TERM);
        }
        while self.status.is_none()
            && let Some(rest) = GRACE.checked_sub(begun.elapsed())
        {
            is_ready(&self.child_changed, rest)?;
            self.reap()?;
        }
        while self.status.is_none() && begun.elapsed() < GIVE_UP {
            let _ = kill_process(main, Signal::KILL);
            is_ready(&self.child_changed, ROUND)?;
            self.reap()?;
        }
        self.reap()
    }

    /// Collects the children that have ended; says whether any is left. Orphans below us become
    /// our children, so without a child nothing is left below us at all.
    fn reap(&mut self) -> io::Result<bool> {
        // Emptied first: what ends from here on makes it ready again.
        let mut notices = [0; 64];
        while self.child_changed.read(&mut notices).is_ok_and(|read| read == notices.len()) {}
        loop {
            match retry_on_intr(|| wait(WaitOptions::NOHANG)) {
                Ok(Some((pid, status))) if Some(pid) == self.main => self.status = Some(status),
                Ok(Some(_)) => {}
                Ok(None) => return Ok(true),
                Err(Errno::CHILD) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Without this the reader would never see the end of the child's output.
fn release_output() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    Ok(())
}

fn not_started(program: &OsString, error: &io::Error) -> u8 {
    let program = program.display();
    let code = if error.kind() == io::ErrorKind::NotFound {
        complain(&format!("`{program}` was not found; check that it is installed and in PATH"));
        NOT_FOUND
    } else {
        complain(&format!("`{program}` cannot be run: {error}"));
        CANNOT_RUN
    };
    wire::send_report(stdin(), i32::from(code) << 8);
    code
}

/// To the child's error output, which is still ours as long as no child runs.
fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "atomic: {message}");
}

/// A stream that becomes readable when one of the signals arrives.
fn listen(signals: &[i32]) -> io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    reader.set_nonblocking(true)?;
    for signal in signals {
        signal_hook::low_level::pipe::register(*signal, writer.try_clone()?)?;
    }
    Ok(reader)
}

/// Waits until there is something to read or the other end is closed.
fn is_ready(fd: &impl AsFd, limit: Duration) -> io::Result<bool> {
    let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
    let ready = retry_on_intr(|| poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&limit)))?;
    Ok(ready > 0)
}
