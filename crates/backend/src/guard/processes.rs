//! The system's processes, as `/proc` shows them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{
    Pid, PidfdFlags, Signal, getpgrp, kill_process_group, pidfd_open, pidfd_send_signal,
};

/// A process at the moment it was looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// In clock ticks since boot: tells a process from a later one with the same number.
    pub(super) started: u64,
}

impl Process {
    /// A handle on this very process; `None` when it is gone.
    pub(super) fn hold(&self) -> Option<OwnedFd> {
        let handle = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        let same = look_at(self.pid)?.started == self.started;
        same.then_some(handle)
    }

    /// Whether it is a thread of the kernel: those are started by process 2.
    pub(super) fn is_of_kernel(&self) -> bool {
        self.pid == 2 || self.parent == 2
    }

    /// Signals this very process; one that is gone is no error.
    pub(super) fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        match self.hold() {
            Some(handle) => pidfd_send_signal(handle, signal),
            None => Ok(()),
        }
    }
}

/// Every process there is.
pub(super) fn all() -> io::Result<Vec<Process>> {
    let mut processes = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        processes.extend(pid.and_then(look_at));
    }
    Ok(processes)
}

/// Everything `ancestor` started, directly or not, that still exists.
pub(super) fn below(ancestor: Pid) -> io::Result<Vec<Process>> {
    Ok(descendants(&all()?, &BTreeSet::from([ancestor.as_raw_pid()])))
}

/// What descends from `roots`, without the roots.
pub(super) fn descendants(processes: &[Process], roots: &BTreeSet<i32>) -> Vec<Process> {
    let mut children = BTreeMap::<i32, Vec<Process>>::new();
    for process in processes {
        children.entry(process.parent).or_default().push(*process);
    }
    // Each list of children is taken out once: numbers reused while we looked cannot make a loop.
    let mut found = Vec::new();
    let mut open: Vec<i32> = roots.iter().copied().collect();
    while let Some(pid) = open.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            if !roots.contains(&child.pid) {
                open.push(child.pid);
                found.push(child);
            }
        }
    }
    found
}

/// Sends SIGKILL to processes and to their groups. Processes that were forked meanwhile are not hit.
///
/// A chain of processes that each fork and exit can outrun the look at each of them, but not a signal
/// to their group. Groups live inside sessions, and a guard starts its child in a session of its own:
/// every group below a guard has only processes from below it.
pub(super) fn kill(processes: &[Process]) {
    for process in processes {
        // A failure shows as a process that is still there.
        let _ = process.signal(Signal::KILL);
    }
    let groups: BTreeSet<i32> = processes.iter().map(|process| process.group).collect();
    let own = getpgrp().as_raw_pid();
    for group in
        groups.into_iter().filter(|group| *group > 1 && *group != own).filter_map(Pid::from_raw)
    {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// `None` when there is no such process any more.
pub(super) fn look_at(pid: i32) -> Option<Process> {
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &line)
}

/// The second field, the program's name in brackets, may hold anything, brackets included.
fn parse(pid: i32, line: &[u8]) -> Option<Process> {
    let after_name = line.iter().rposition(|byte| *byte == b')')? + 1;
    let fields = str::from_utf8(&line[after_name..]).ok()?;
    let mut fields = fields.split_ascii_whitespace().skip(1);
    Some(Process {
        pid,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
        session: fields.next()?.parse().ok()?,
        // Field 22 of the line; `fields` goes on with the seventh.
        started: fields.nth(15)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let line = b"7 (a) R 9 (\xff) S 3 4 5 0 -1 1 2 3 4 5 6 7 8 9 20 0 1 0 4711 12 13";
        let process = parse(7, line).unwrap();
        assert_eq!((process.parent, process.group, process.session), (3, 4, 5));
        assert_eq!(process.started, 4711);
    }

    #[test]
    fn descendants_are_found_below_every_root_and_loops_end() {
        let process = |(pid, parent)| Process { pid, parent, group: 0, session: 0, started: 0 };
        let all = [(2, 1), (3, 2), (4, 3), (5, 1), (6, 7), (7, 6)].map(process);
        let below = |roots: &[i32]| {
            let found = descendants(&all, &roots.iter().copied().collect());
            found.into_iter().map(|process| process.pid).collect::<BTreeSet<_>>()
        };
        assert_eq!(below(&[2]), [3, 4].into());
        assert_eq!(below(&[2, 3]), [4].into());
        assert_eq!(below(&[6]), [7].into());
        assert_eq!(below(&[5]), [].into());
    }
}
