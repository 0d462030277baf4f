//! Ending what an earlier attempt left running, found by its marker.
//!
//! Its guard has normally done this long ago. This is for the case that the guard was killed, too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, pidfd_send_signal};

use super::processes::{self, Process};
use super::{END_LIMIT, GUARD_ARGUMENT, STEP_VARIABLE};

/// How often an empty environment is looked at, and how long after one another. Zombies and programs
/// that were started without any environment stay empty.
const LOOKS: u32 = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// Ends every process whose `ATOMIC_STEP` names a step of `run`, and everything below those, a
/// surviving guard included; never this process or one it descends from. Says how many were ended,
/// once they are gone.
///
/// Blocks for up to two seconds. A process that cleared its environment is found through its
/// parents only: when those and its guard are gone, it cannot be told from any other.
///
/// # Errors
///
/// [`TimedOut`](io::ErrorKind::TimedOut) when something is still there after two seconds.
pub fn end_survivors(run: &str) -> io::Result<usize> {
    let prefix = format!("{STEP_VARIABLE}={run}/");
    end_where(|variable| variable.starts_with(prefix.as_bytes()))
}

/// The same for one attempt of one step.
pub(crate) fn end_marked(marker: &str) -> io::Result<usize> {
    let wanted = format!("{STEP_VARIABLE}={marker}");
    end_where(|variable| variable == wanted.as_bytes())
}

fn end_where(is_marker: impl Fn(&[u8]) -> bool) -> io::Result<usize> {
    let deadline = Instant::now() + END_LIMIT;
    let mut ended = 0;
    loop {
        // Guards last: as long as one lives, nothing below it can get away from it.
        let mut victims = freeze(&is_marker, deadline)?;
        if victims.is_empty() {
            let guards = family(&is_marker)?;
            victims = guards.iter().filter_map(living).collect();
        }
        if victims.is_empty() {
            return Ok(ended);
        }
        for victim in &victims {
            // A failure shows below, as a process that does not end.
            let _ = pidfd_send_signal(victim, Signal::KILL);
        }
        ended += victims.iter().filter(|victim| has_ended(victim, deadline)).count();
        if Instant::now() > deadline {
            let limit = END_LIMIT.as_secs();
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("processes of an earlier attempt were still there after {limit} s"),
            ));
        }
    }
}

/// Stops the marked processes and those below them, guards left out, until no new one turns up: a
/// stopped process cannot fork between the look at it and its end.
fn freeze(is_marker: &impl Fn(&[u8]) -> bool, deadline: Instant) -> io::Result<Vec<OwnedFd>> {
    let mut frozen = BTreeMap::new();
    loop {
        let known = frozen.len();
        for process in family(is_marker)? {
            if !frozen.contains_key(&process.pid)
                && !is_guard(&process)
                && let Some(handle) = living(&process)
            {
                let _ = pidfd_send_signal(&handle, Signal::STOP);
                frozen.insert(process.pid, handle);
            }
        }
        if frozen.len() == known || Instant::now() > deadline {
            return Ok(frozen.into_values().collect());
        }
    }
}

/// The marked processes and everything below them.
fn family(is_marker: &impl Fn(&[u8]) -> bool) -> io::Result<Vec<Process>> {
    let all = processes::all()?;
    let untouchable = ourselves_and_above(&all);
    let is_candidate = |process: &&Process| !untouchable.contains(&process.pid);
    let mut found = marked(all.iter().filter(is_candidate).copied().collect(), is_marker);
    let roots = found.iter().map(|process| process.pid).collect();
    found.extend(processes::descendants(&all, &roots));
    Ok(found)
}

fn ourselves_and_above(all: &[Process]) -> BTreeSet<i32> {
    let parents: BTreeMap<i32, i32> = all.iter().map(|it| (it.pid, it.parent)).collect();
    let mut line = BTreeSet::new();
    let mut next = Some(getpid().as_raw_pid());
    while let Some(pid) = next.filter(|pid| line.insert(*pid)) {
        next = parents.get(&pid).copied();
    }
    line
}

/// The processes that bear the marker.
///
/// A process that is just replaced by `execve` shows an empty environment until the kernel has
/// copied the new one, and `spawn` returns before that. So an empty one is looked at again.
fn marked(mut open: Vec<Process>, is_marker: &impl Fn(&[u8]) -> bool) -> Vec<Process> {
    let mut found = vec![];
    for _ in 0..LOOKS {
        open.retain(|process| {
            // Unreadable means that it belongs to somebody else, and so cannot be ours.
            let Ok(environment) = fs::read(format!("/proc/{}/environ", process.pid)) else {
                return false;
            };
            if environment.split(|byte| *byte == 0).any(is_marker) {
                found.push(*process);
            }
            environment.is_empty() && !process.is_of_kernel()
        });
        if open.is_empty() {
            break;
        }
        thread::sleep(BETWEEN_LOOKS);
    }
    found
}

fn is_guard(process: &Process) -> bool {
    let command_line = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
    command_line.split(|byte| *byte == 0).nth(1) == Some(GUARD_ARGUMENT.as_bytes())
}

/// A handle on the process unless it has ended; a zombie only waits for its parent to notice.
fn living(process: &Process) -> Option<OwnedFd> {
    process.hold().filter(|handle| !has_ended(handle, Instant::now()))
}

/// Waits for it until `deadline`.
pub(super) fn has_ended(handle: &OwnedFd, deadline: Instant) -> bool {
    let rest = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok();
    let mut watched = [PollFd::new(handle, PollFlags::IN)];
    rustix::io::retry_on_intr(|| poll(&mut watched, rest.as_ref())).is_ok_and(|ready| ready > 0)
}
