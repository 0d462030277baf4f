//! Putting together what a run acts with.

use std::path::Path;
use std::sync::Arc;

use atomic_backend::Backend;
use atomic_backend::guard::Guard;
use atomic_backend::script::{Script, ScriptBackend};
use atomic_registry::Registry;
use atomic_runner::{Clock, Stage};
use atomic_session::{Disk, RealDisk};

use crate::commands::demo;
use crate::failure::Failure;
use crate::home;

/// The disk all sessions are on.
pub(crate) fn disk() -> Arc<dyn Disk> {
    Arc::new(RealDisk)
}

/// What a run with this backend acts with.
pub(crate) fn stage(
    backend: &str,
    script: Option<&Path>,
    registry: Arc<Registry>,
) -> Result<Stage, Failure> {
    let guard = Guard::from_current_exe();
    let disk = disk();
    Ok(Stage {
        clock: clock(),
        backend: backend_by_name(backend, script, &guard)?,
        registry,
        index: home::index(&disk),
        holder: holder(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        disk,
        guard,
    })
}

/// Who we are, for those who find a session locked.
pub(crate) fn holder() -> String {
    format!("atomic {}", env!("CARGO_PKG_VERSION"))
}

fn backend_by_name(
    name: &str,
    script: Option<&Path>,
    guard: &Guard,
) -> Result<Arc<dyn Backend>, Failure> {
    match (name, script) {
        ("script", Some(path)) if path == Path::new(demo::EMBEDDED) => {
            Ok(Arc::new(ScriptBackend::new(demo::script()?, guard.clone())))
        }
        ("script", Some(path)) => {
            Ok(Arc::new(ScriptBackend::new(Script::load(path)?, guard.clone())))
        }
        ("script", None) => Err(Failure::Usage(
            "the backend `script` plays a file of canned turns; name it with --script <FILE>"
                .to_owned(),
        )),
        (other, _) => Err(Failure::Usage(format!(
            "there is no backend `{other}` in this version; there is: script"
        ))),
    }
}

#[cfg(not(feature = "failpoints"))]
pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(atomic_runner::SystemClock)
}

/// In tests the clock can be set ahead: `ATOMIC_TEST_CLOCK_AHEAD` is a number of seconds.
#[cfg(feature = "failpoints")]
pub(crate) fn clock() -> Arc<dyn Clock> {
    struct Ahead(i64);
    impl Clock for Ahead {
        fn now(&self) -> atomic_event::Moment {
            let now = jiff::Timestamp::now();
            atomic_event::Moment(now + jiff::SignedDuration::from_secs(self.0))
        }
    }
    let ahead = std::env::var("ATOMIC_TEST_CLOCK_AHEAD").ok().and_then(|text| text.parse().ok());
    Arc::new(Ahead(ahead.unwrap_or(0)))
}
