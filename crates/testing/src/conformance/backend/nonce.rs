//! Finding the processes that a command left, by a number that is in nobody else's arguments.
#![expect(clippy::panic, reason = "a check that fails panics")]

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::time::sleep;

/// How many processes sleep when the command is well under way.
const SLEEPERS: usize = 4;

/// How long processes may take to go. On an idle machine they are gone within two seconds; on one
/// whose cores are busy with other work, a program may wait that long for its turn.
const GONE: Duration = Duration::from_secs(60);

/// A number that marks the arguments of processes.
pub(super) struct Nonce(String);

impl Nonce {
    pub(super) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let nanos =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        Self(format!("1000.{nanos}{:07}{count:03}", std::process::id()))
    }

    /// A command that never ends by itself and tries to get away: from its terminal, from its
    /// parent, from its environment.
    pub(super) fn command(&self) -> String {
        let sleep = format!("sleep {}", self.0);
        format!("setsid {sleep} & ({sleep} &); env -i {sleep} & {sleep}; wait")
    }

    /// Waits until the command is well under way.
    pub(super) async fn sleeps(&self) {
        let asleep = || self.processes().iter().filter(|p| p.program == "sleep").count();
        until("the command runs", Duration::from_secs(120), || asleep() >= SLEEPERS).await;
    }

    /// Waits until every process is gone, for as long as it may take.
    pub(super) async fn is_gone(&self) {
        until("every process is gone", GONE, || self.processes().is_empty()).await;
    }

    /// Every process is gone already.
    pub(super) fn assert_gone(&self) {
        assert_eq!(self.processes(), [], "nothing is left");
    }

    /// Some process carries the marker in its environment.
    pub(super) fn assert_marked(&self, marker: &str) {
        let variable = format!("ATOMIC_STEP={marker}");
        let marked = self.processes().iter().any(|process| {
            let environment = fs::read(format!("/proc/{}/environ", process.id)).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
        });
        assert!(marked, "no process has {variable}");
    }

    fn processes(&self) -> Vec<Process> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let named = |entry: fs::DirEntry| {
            let id: u32 = entry.file_name().to_str()?.parse().ok()?;
            let arguments = fs::read(entry.path().join("cmdline")).ok()?;
            let arguments = String::from_utf8_lossy(&arguments).into_owned();
            let program = arguments.split('\0').next()?.to_owned();
            arguments.contains(&self.0).then_some(Process { id, program })
        };
        entries.filter_map(named).collect()
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Process {
    id: u32,
    program: String,
}

/// Looks again and again: processes do not tell us when they come and go.
async fn until(what: &str, limit: Duration, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + limit;
    while !is_so() {
        if Instant::now() > deadline {
            panic!("not within {limit:?}: {what}");
        }
        sleep(Duration::from_millis(5)).await;
    }
}
