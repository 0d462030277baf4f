//! What a run acts with: everything outside, handed in, so that tests can hand in something else.

use std::fmt;
use std::sync::Arc;

use atomic_backend::Backend;
use atomic_backend::guard::Guard;
use atomic_event::Moment;
use atomic_registry::Registry;
use atomic_session::{Disk, Index};
use jiff::Timestamp;

use crate::backends::OtherBackends;

/// Says what time it is.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Moment;
}

/// The system's clock.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        Moment::to_the_millisecond(Timestamp::now())
    }
}

/// Everything a run acts with.
#[derive(Clone)]
pub struct Stage {
    /// Where sessions are kept.
    pub disk: Arc<dyn Disk>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Who does the work, unless a node names another.
    pub backend: Arc<dyn Backend>,
    /// Those that nodes can name.
    pub others: OtherBackends,
    /// What stands between us and every process.
    pub guard: Guard,
    /// The agents, skills and commands a workflow can name.
    pub registry: Arc<Registry>,
    /// The list of all sessions, where there is a home folder for it.
    pub index: Option<Arc<Index>>,
    /// Who we are, for those who find the session locked.
    pub holder: String,
    /// Our version.
    pub version: String,
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").field("backend", &self.backend.id()).finish_non_exhaustive()
    }
}
