//! Processes that run while a test goes on.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::env::{Ran, eventually};

/// How long anything may take to come about, also on a busy machine; not a promise of Atomic. Only a
/// test that hangs waits for as long.
pub(crate) const SOON: Duration = Duration::from_secs(120);

/// How long a process may outlive what started it.
const GONE: Duration = Duration::from_secs(2);

/// `atomic` at work. It is ended when the test ends.
pub(crate) struct Running(Option<Child>);

impl Running {
    /// Starts it, with its output in pipes unless that was set already.
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::start_as_it_is(command)
    }

    pub(crate) fn start_as_it_is(mut command: Command) -> Self {
        Self(Some(command.spawn().unwrap()))
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }

    pub(crate) fn id(&mut self) -> u32 {
        self.child().id()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child().try_wait().unwrap().is_some()
    }

    pub(crate) fn signal(&mut self, name: &str) {
        signal(self.id(), name);
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ran {
        eventually("the process ends", SOON, || self.has_ended());
        self.read_to_the_end()
    }

    /// Reads what it has printed and still prints, and waits for its end.
    pub(crate) fn read_to_the_end(mut self) -> Ran {
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Kills it outright.
    pub(crate) fn kill(mut self) {
        let child = self.child();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Sends a signal, such as `INT`, to one process.
pub(crate) fn signal(id: u32, name: &str) {
    let kill = format!("kill -{name} {id}");
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success(), "{kill}");
}

/// A number that is in nobody else's arguments.
pub(crate) struct Nonce(String);

impl Nonce {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        Self(format!("1000.{nanos}{:07}{count:03}", std::process::id()))
    }

    /// One process.
    pub(crate) fn sleep(&self) -> String {
        format!("sleep {}", self.0)
    }

    /// Three processes that try to get away: from their session, their parent, their environment.
    pub(crate) fn scatter(&self) -> String {
        let sleep = format!("sleep {}", self.0);
        format!("setsid {sleep} & ({sleep} &); env -i \"PATH=$PATH\" {sleep} &")
    }

    /// The same, and a fourth process that is waited for.
    pub(crate) fn scatter_and_hang(&self) -> String {
        format!("{} sleep {}", self.scatter(), self.0)
    }

    /// Starts three processes that only their parents tell from others: without an environment and in
    /// sessions of their own, forked twice, or deaf to SIGTERM. A fourth is waited for.
    pub(crate) fn hide_and_hang(&self) -> String {
        let (bare, sleep) = ("env -i \"PATH=$PATH\"", format!("sleep {}", self.0));
        format!(
            "{bare} setsid {sleep} & {bare} setsid sh -c '({sleep} &)' & \
             {bare} sh -c 'trap \"\" TERM; {sleep}; :' & exec {bare} {sleep}"
        )
    }

    /// Starts so many processes without an environment, each forked twice, and hangs.
    pub(crate) fn hide_many_and_hang(&self, count: usize) -> String {
        let sleep = format!("sleep {}", self.0);
        format!(
            "i=0; while [ $i -lt {count} ]; do i=$((i+1)); (env -i \"PATH=$PATH\" {sleep} &); done; \
             exec {sleep}"
        )
    }

    /// Starts two processes that belong to nobody's step, one in a session of its own.
    pub(crate) fn stay(&self) -> String {
        format!("for as in setsid env; do $as sleep {} >/dev/null 2>&1 & done", self.0)
    }

    /// Kills the processes, and says how many were there.
    pub(crate) fn end(&self) -> usize {
        let ids = ids_with(&self.0);
        ids.iter().for_each(|id| signal(*id, "KILL"));
        ids.len()
    }

    /// The same, but it ends once all three are there.
    pub(crate) fn scatter_and_leave(&self) -> String {
        format!("{} while [ $({}) -lt 3 ]; do sleep 0.02; done", self.scatter(), self.count())
    }

    /// A command that succeeds when none of the three is there.
    pub(crate) fn absent(&self) -> String {
        format!("test $({}) -eq 0", self.count())
    }

    /// A command that prints how many sleep.
    fn count(&self) -> String {
        format!("grep -lz '^{}$' /proc/[0-9]*/cmdline 2>/dev/null | wc -l", self.0)
    }

    /// Waits until so many of its processes sleep.
    pub(crate) fn sleeps(&self, count: usize) {
        eventually("the processes are there", SOON, || self.sleepers() >= count);
    }

    /// Every process is gone within two seconds.
    pub(crate) fn is_gone(&self) {
        soon_none(|| self.processes());
    }

    /// Sends a signal to the guard of the processes, and to no other process.
    pub(crate) fn signal_guard(&self, name: &str) {
        signal_guard(&self.0, name);
    }

    /// No process is there now.
    pub(crate) fn is_gone_now(&self) {
        assert_eq!(self.processes(), [""; 0]);
    }

    /// Whether no process is there now.
    pub(crate) fn has_none(&self) -> bool {
        self.processes().is_empty()
    }

    fn sleepers(&self) -> usize {
        self.processes().iter().filter(|arguments| arguments.starts_with("sleep\0")).count()
    }

    /// The arguments of every process that has the number in them.
    fn processes(&self) -> Vec<String> {
        processes("cmdline", "cmdline", &self.0)
    }
}

/// A test that fails must not leave its processes.
impl Drop for Nonce {
    fn drop(&mut self) {
        for id in ids_with(&self.0) {
            let _ = Command::new("kill").args(["-9", &id.to_string()]).status();
        }
    }
}

/// Every process with this at the beginning of a variable of its environment is gone within two
/// seconds.
pub(crate) fn nothing_has(variable: &str) {
    soon_none(|| processes("environ", "cmdline", variable));
}

/// Sends a signal to the only guard that has this among its arguments.
pub(crate) fn signal_guard(argument: &str, name: &str) {
    let mut guards = ids_with(argument);
    guards.retain(|id| {
        let line = fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.split('\0').nth(1) == Some("__guard")
    });
    assert_eq!(guards.len(), 1, "guards with {argument}: {guards:?}");
    signal(guards[0], name);
}

/// The ids of the processes that have this in their arguments.
fn ids_with(argument: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has = |id: &u32| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(argument)
    };
    ids.filter(has).collect()
}

fn soon_none(found: impl Fn() -> Vec<String>) {
    let since = Instant::now();
    while !found().is_empty() {
        if since.elapsed() > GONE {
            panic!("still there after {GONE:?}: {:?}", found());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Of all processes that have a text in one file about them, another one.
fn processes(with: &str, told: &str, text: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let is_process = |entry: &fs::DirEntry| {
        entry.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit())
    };
    let read = |entry: &fs::DirEntry, name: &str| {
        let read = fs::read(entry.path().join(name)).ok()?;
        Some(String::from_utf8_lossy(&read).into_owned())
    };
    let of = |entry: fs::DirEntry| {
        read(&entry, with).filter(|found| found.contains(text)).and_then(|_| read(&entry, told))
    };
    entries.filter(is_process).filter_map(of).collect()
}
