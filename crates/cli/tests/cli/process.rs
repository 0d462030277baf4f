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

    /// Three processes that try to get away: from their session, their parent, their environment.
    pub(crate) fn scatter(&self) -> String {
        let sleep = format!("sleep {}", self.0);
        format!("setsid {sleep} & ({sleep} &); env -i \"PATH=$PATH\" {sleep} &")
    }

    /// The same, and a fourth process that is waited for.
    pub(crate) fn scatter_and_hang(&self) -> String {
        format!("{} sleep {}", self.scatter(), self.0)
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

    fn sleepers(&self) -> usize {
        self.processes().iter().filter(|arguments| arguments.starts_with("sleep\0")).count()
    }

    /// The arguments of every process that has the number in them.
    fn processes(&self) -> Vec<String> {
        processes("cmdline", "cmdline", &self.0)
    }
}

/// Every process with this at the beginning of a variable of its environment is gone within two
/// seconds.
pub(crate) fn nothing_has(variable: &str) {
    soon_none(|| processes("environ", "cmdline", variable));
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
