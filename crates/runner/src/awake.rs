//! Keeping the machine from sleeping while a run works.

use atomic_backend::guard::{Guard, Guarded, Job};
use atomic_event::SessionId;

use crate::perform::Live;
use crate::run::Run;

/// A program that keeps the machine from sleeping for as long as it runs. Its guard ends it when
/// Atomic dies.
#[derive(Debug, Default)]
pub(crate) struct SleepInhibitor {
    /// How the program is started, where there is one.
    job: Option<Job>,
    held: Option<Guarded>,
}

impl SleepInhibitor {
    fn new(argv: Vec<String>, session: &SessionId) -> Self {
        let marker = format!("{session}/sleep/1");
        let job = Job { argv, cwd: "/".into(), marker, ..Job::default() };
        Self { job: Some(job), held: None }
    }

    /// Starts the program, unless it runs. A run does not fail because the machine may sleep.
    fn hold(&mut self, guard: &Guard) {
        if self.held.is_none()
            && let Some(job) = &self.job
        {
            match guard.spawn(job) {
                Ok(held) => self.held = Some(held),
                Err(_) => self.job = None,
            }
        }
    }

    /// Ends the program. When this returns, it is gone.
    pub(crate) async fn release(&mut self) {
        self.job = None;
        if let Some(held) = self.held.take() {
            held.end().await;
        }
    }
}

impl Run {
    /// Keeps the machine from sleeping with this command while the run works, unless the settings say
    /// otherwise. The command is never looked for in `PATH`.
    pub fn inhibit_sleep(&mut self, argv: Vec<String>) {
        if self.settings.program.inhibit_sleep {
            self.crew.awake = SleepInhibitor::new(argv, &self.created.session);
        }
    }

    /// Inhibits sleep while somebody works; nobody does while everything waits for an answer. A wait for a provider
    /// has an end at which a turn is tried.
    pub(crate) fn keep_awake(&mut self) {
        let only_waits = !self.book.unanswered().is_empty()
            && self.crew.live.values().all(Live::only_waits)
            && self.crew.parking.is_empty()
            && !self.timers.run_goes_on(|step| self.book.open.contains_key(step));
        if only_waits {
            // Dropping ends the program without waiting for it.
            self.crew.awake.held = None;
        } else {
            self.crew.awake.hold(&self.stage.guard);
        }
    }
}
