//! Ending what a guard leaves behind that was killed alone.
//!
//! The program adopts these processes: as a child sub-reaper it becomes the parent of everything
//! below a guard that dies, also of processes without the marker in their environment. An orphan is
//! a child of ours that we did not start, and these three rules tell the two apart:
//!
//! - A guard is remembered by its process id and start time, under a lock that is held from before
//!   its start. Orphans are sought under the same lock.
//! - Any other program that we start stays in our session. A guard leaves it before it starts its
//!   child, and no process can go back to it, so no orphan is in it.
//! - A process older than our first guard was there before: a shell that starts programs in the
//!   background and then replaces itself by us hands them to us.
//!
//! Orphans are reaped one by one, by process id. `waitpid(-1)` would take the exit codes of guards
//! from tokio and those of other programs from the standard library.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, pidfd_send_signal,
    set_child_subreaper, waitid,
};
use tokio::io::Interest;
use tokio::process::Child;

use super::processes::{self, Process};
use super::survivors::has_ended;
use super::{END_LIMIT, wire};

/// After this time without the end of an orphan, those that are left cannot be ended. With the time
/// it takes to notice the end of a guard, this is less than two seconds.
const GIVE_UP: Duration = Duration::from_millis(1800);
/// Ending orphans never takes longer, also when they fork on and on or the machine is very busy.
const LONGEST: Duration = Duration::from_secs(10);
/// Between two rounds of SIGKILL, when no orphan ends earlier.
const ROUND: Duration = Duration::from_millis(10);

static REAPER: OnceLock<OrphanReaper> = OnceLock::new();

#[derive(Debug)]
struct OrphanReaper {
    us: Process,
    guards: Mutex<Guards>,
    /// Held while orphans are ended: only the thread that has it reaps, so the process ids that it
    /// has read cannot be reused under it.
    ending: Mutex<()>,
}

/// The guards that this process has started.
#[derive(Debug, Default)]
struct Guards {
    /// By process id, with the start time, which is missing when it could not be read.
    started: BTreeMap<i32, Option<u64>>,
    /// The process ids of the guards that were asked to end, each with the time.
    asked: BTreeMap<i32, Instant>,
    /// The start time of the first guard.
    first: Option<u64>,
}

impl Guards {
    fn add(&mut self, pid: i32, started: Option<u64>) {
        self.first.get_or_insert(started.unwrap_or(0));
        self.started.insert(pid, started);
        self.asked.remove(&pid);
    }

    fn has(&self, process: &Process) -> bool {
        let known = self.started.get(&process.pid);
        known.is_some_and(|started| started.is_none_or(|started| started == process.started))
    }

    /// Drops the guards that are not our children any more, because they were reaped.
    fn forget_reaped(&mut self) {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.started.retain(|pid, _| waited(*pid, look) != Err(Errno::CHILD));
        self.asked.retain(|pid, _| self.started.contains_key(pid));
    }

    /// The guards that are there, each with the time it was asked to end.
    fn alive(&mut self) -> Vec<(Process, Option<Instant>)> {
        self.forget_reaped();
        let found = self.started.keys().filter_map(|pid| processes::look_at(*pid));
        let alive = found.filter(|process| self.has(process));
        alive.map(|guard| (guard, self.asked.get(&guard.pid).copied())).collect()
    }
}

/// Makes this process adopt and end what its guards leave behind when they are killed alone.
///
/// For the `main` of a program, before it starts threads or processes: a library must not change what
/// becomes of the orphans of the program that uses it.
///
/// # Errors
///
/// When the system has no sub-reapers, or `/proc` shows the processes of another namespace.
pub fn adopt_orphans() -> io::Result<()> {
    let us = getpid();
    // Process ids in the `/proc` of another namespace are those of other processes.
    let is_ours = std::fs::read_link("/proc/self")?.to_str() == Some(&us.as_raw_pid().to_string());
    let found = processes::look_at(us.as_raw_pid()).filter(|_| is_ours);
    let found = found.ok_or_else(|| io::Error::other("/proc does not show this process"))?;
    set_child_subreaper(Some(us))?;
    REAPER.get_or_init(|| OrphanReaper {
        us: found,
        guards: Mutex::default(),
        ending: Mutex::default(),
    });
    Ok(())
}

/// Ends every process that was adopted from a guard, and returns once they are gone. Waits before for
/// the guards that were asked to end, and kills those that do not. Does nothing in a program that has
/// not called [`adopt_orphans`] or has not started a guard.
///
/// Blocks for two seconds when something cannot be ended, and for as long when a guard does not end.
/// Processes get SIGKILL at once: whoever killed the guard has given them no time either.
///
/// # Errors
///
/// When processes are left that cannot be ended. The error names them.
pub fn end_orphans() -> io::Result<()> {
    let Some(reaper) = REAPER.get() else { return Ok(()) };
    reaper.end_guards(|asked| Some(asked? + END_LIMIT));
    reaper.end_orphans()
}

/// Kills every guard and what it guards, and returns once they are gone. For a program that ends at
/// once: a guard that was stopped or killed at the last moment would end nothing.
///
/// # Errors
///
/// The errors of [`end_orphans`].
pub fn kill_guarded() -> io::Result<()> {
    let Some(reaper) = REAPER.get() else { return Ok(()) };
    reaper.end_guards(|_| Some(Instant::now()));
    reaper.end_orphans()
}

/// Ends what was adopted from guards that are gone.
pub(super) fn end_adopted() -> io::Result<()> {
    REAPER.get().map_or(Ok(()), OrphanReaper::end_orphans)
}

/// Whether a guard may be killed, because this program adopts what it leaves.
pub(super) fn is_adopting() -> bool {
    REAPER.get().is_some()
}

/// Sees to it that a guard ends that was asked to, although nobody waits for it.
pub(super) fn expect_end(guard: &Child) {
    let (Some(reaper), Some(pid)) = (REAPER.get(), guard.id()) else { return };
    locked(&reaper.guards).asked.insert(pid.cast_signed(), Instant::now());
    // Outside of a runtime the end of the run sees to it.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    runtime.spawn(async {
        tokio::time::sleep(END_LIMIT).await;
        // The watch of the guard ends what it leaves.
        let _ = tokio::task::spawn_blocking(|| {
            reaper.end_guards(|asked| Some(asked? + END_LIMIT));
        })
        .await;
    });
}

/// Starts a guard and remembers it as ours. Its orphans are ended as soon as it is gone without a
/// report, also when nobody waits for it.
pub(super) fn start_guard(
    control: &UnixStream,
    start: impl FnOnce() -> io::Result<Child>,
) -> io::Result<Child> {
    let Some(reaper) = REAPER.get() else { return start() };
    let (guard, found) = {
        let mut guards = locked(&reaper.guards);
        let guard = start()?;
        // The guard is not reaped before `start_guard` returns, so its pid is not reused yet.
        let pid = guard.id().map(u32::cast_signed);
        let found = pid.and_then(processes::look_at);
        if let Some(pid) = pid {
            guards.add(pid, found.map(|guard| guard.started));
        }
        (guard, found)
    };
    // Without a free descriptor, waiting for the guard and the end of the run still end its orphans.
    let control = control.try_clone().and_then(tokio::net::UnixStream::from_std);
    if let (Some(found), Ok(control)) = (found, control) {
        tokio::spawn(watch(found, control));
    }
    Ok(guard)
}

async fn watch(guard: Process, control: tokio::net::UnixStream) {
    let report = control.async_io(Interest::READABLE, || wire::report(&control)).await;
    if !matches!(report, Ok(Some(_))) {
        let ending = tokio::task::spawn_blocking(move || {
            // The kernel closes the socket of a dying process before it hands over its children.
            if let Some(handle) = guard.hold() {
                has_ended(&handle, Instant::now() + GIVE_UP);
            }
            end_adopted()
        });
        // Processes that are left are looked for again, and named, at the end of the run.
        let _ = ending.await;
    }
}

impl OrphanReaper {
    /// Kills the guards that are still there at their deadline. A process can stop its guard, which is
    /// its parent, and a stopped guard ends nothing.
    fn end_guards(&self, deadline: impl Fn(Option<Instant>) -> Option<Instant>) {
        let guards = locked(&self.guards).alive();
        for (guard, asked) in guards {
            if let Some(deadline) = deadline(asked)
                && let Some(handle) = guard.hold()
                && !has_ended(&handle, deadline)
            {
                // A failure shows in the processes that are left.
                let _ = pidfd_send_signal(&handle, Signal::KILL);
                has_ended(&handle, Instant::now() + GIVE_UP);
            }
        }
    }

    fn end_orphans(&self) -> io::Result<()> {
        if locked(&self.guards).first.is_none() {
            return Ok(());
        }
        let _ending = locked(&self.ending);
        let begun = Instant::now();
        let mut last_end = begun;
        loop {
            // The process next to us in the line above every process that is left is our child, and
            // stays our child until it is reaped here. So when none is found, nothing is left.
            let (orphans, below) = self.find()?;
            if orphans.is_empty() {
                return Ok(());
            }
            let found = orphans.len();
            let left: Vec<Process> = orphans.into_iter().filter(|it| !is_reaped(it)).collect();
            if left.len() < found {
                last_end = Instant::now();
            }
            let mut denied = 0;
            for orphan in &left {
                let killed = Pid::from_raw(orphan.pid).map(|pid| kill_process(pid, Signal::KILL));
                denied += usize::from(killed == Some(Err(Errno::PERM)));
            }
            processes::kill(&left);
            processes::kill(&below);
            let is_hopeless = denied > 0 && denied == left.len();
            if is_hopeless || last_end.elapsed() > GIVE_UP || begun.elapsed() > LONGEST {
                return Err(still_there(&left));
            }
            if let Some(orphan) = left.first() {
                wait_for(orphan);
            }
        }
    }

    /// The orphans, and everything below them.
    fn find(&self) -> io::Result<(Vec<Process>, Vec<Process>)> {
        let mut guards = locked(&self.guards);
        guards.forget_reaped();
        let all = processes::all()?;
        let is_orphan = |process: &&Process| {
            process.parent == self.us.pid
                && process.session != self.us.session
                && guards.first.is_some_and(|first| process.started >= first)
                && !guards.has(process)
        };
        let orphans: Vec<Process> = all.iter().filter(is_orphan).copied().collect();
        let roots = orphans.iter().map(|orphan| orphan.pid).collect();
        let below = processes::descendants(&all, &roots);
        Ok((orphans, below))
    }
}

/// Reaps an orphan that has ended.
fn is_reaped(orphan: &Process) -> bool {
    let ended = waited(orphan.pid, WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    matches!(ended, Ok(true) | Err(Errno::CHILD))
}

/// Whether the child has ended.
fn waited(pid: i32, options: WaitIdOptions) -> Result<bool, Errno> {
    let pid = Pid::from_raw(pid).ok_or(Errno::CHILD)?;
    retry_on_intr(|| waitid(WaitId::Pid(pid), options)).map(|status| status.is_some())
}

/// Waits for one of many that were killed at the same time.
fn wait_for(orphan: &Process) {
    match orphan.hold() {
        Some(handle) => drop(has_ended(&handle, Instant::now() + ROUND)),
        None => thread::sleep(ROUND),
    }
}

fn still_there(left: &[Process]) -> io::Error {
    let pids: Vec<String> = left.iter().map(|process| process.pid.to_string()).collect();
    io::Error::new(
        io::ErrorKind::TimedOut,
        format!("cannot end what agents or commands have left: process {}", pids.join(", ")),
    )
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
