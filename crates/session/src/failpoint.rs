//! Places where a test can make the process die, compiled in only with the feature `failpoints`.
//!
//! `ATOMIC_FAILPOINT=<name>:<n>` kills the process with SIGKILL at the n-th hit (from 1) of that
//! name; `ATOMIC_FAILPOINT_LOG=<file>` adds the name of every hit to a file, one a line.

#[cfg(feature = "failpoints")]
pub use armed::{hit, hit_after};

/// Marks a place where the process may be made to die.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub fn hit(_name: &str) {}

/// The same; `last_act` is carried out first, and only then.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub fn hit_after(_name: &str, _last_act: impl FnOnce()) {}

#[cfg(feature = "failpoints")]
mod armed {
    use std::collections::BTreeMap;
    use std::env;
    use std::fs::OpenOptions;
    use std::io::Write as _;
    use std::path::PathBuf;
    use std::sync::{Mutex, OnceLock, PoisonError};

    struct Orders {
        name: String,
        count: u64,
        log: Option<PathBuf>,
        hits: Mutex<BTreeMap<String, u64>>,
    }

    static ORDERS: OnceLock<Orders> = OnceLock::new();

    /// Marks a place where the process may be made to die.
    pub fn hit(name: &str) {
        hit_after(name, || {});
    }

    /// The same; `last_act` is carried out first, and only then.
    pub fn hit_after(name: &str, last_act: impl FnOnce()) {
        let orders = ORDERS.get_or_init(read_orders);
        // Held to the end, so that the log and the counts agree whatever other threads do.
        let mut hits = orders.hits.lock().unwrap_or_else(PoisonError::into_inner);
        let count = hits.entry(name.to_owned()).or_default();
        *count += 1;
        if let Some(path) = &orders.log {
            let file = OpenOptions::new().append(true).create(true).open(path);
            let _ = file.and_then(|mut file| file.write_all(format!("{name}\n").as_bytes()));
        }
        if orders.name == name && orders.count == *count {
            last_act();
            die();
        }
    }

    fn read_orders() -> Orders {
        let armed = env::var("ATOMIC_FAILPOINT").unwrap_or_default();
        let (name, count) = armed.rsplit_once(':').unwrap_or((&armed, "0"));
        let Ok(count) = count.parse() else {
            // A misspelt order that is never carried out would make a test pass for nothing.
            std::process::abort();
        };
        Orders {
            name: name.to_owned(),
            count,
            log: env::var_os("ATOMIC_FAILPOINT_LOG").map(PathBuf::from),
            hits: Mutex::default(),
        }
    }

    fn die() -> ! {
        use rustix::process::{Signal, getpid, kill_process};
        let _ = kill_process(getpid(), Signal::KILL);
        std::process::abort()
    }
}
