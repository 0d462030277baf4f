//! The lists of checks, and running them.
#![expect(clippy::panic, reason = "a check that fails panics")]

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use atomic_backend::BoxFuture;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

use super::{Program, Stage, exceptions};

/// Names the folder in which a file is made for every check that passes.
const FOLDER: &str = "ATOMIC_CONFORMANCE";

/// One check.
#[derive(Clone, Copy)]
pub struct Check {
    /// What it is called.
    pub name: &'static str,
    /// Runs it; it panics with what is wrong.
    pub run: for<'a> fn(&'a dyn Stage) -> BoxFuture<'a, ()>,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Check {
    /// What every backend passes, those that play canned turns included.
    pub const BASIC: &'static [Self] = crate::backend_conformance! { @basic list };

    /// What backends of programs pass besides.
    pub const OF_PROGRAMS: &'static [Self] = crate::backend_conformance! { @of_programs list };

    /// Everything that a backend of a program passes.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::BASIC.iter().chain(Self::OF_PROGRAMS).copied()
    }

    /// Runs it on a stage, keeps that it passed, and says what is wrong: that it did not, or that
    /// it did or did otherwise than the table of exceptions says.
    async fn perform(self, stage: Arc<dyn Stage>) -> Result<(), String> {
        let program = stage.program();
        let ended = tokio::spawn(async move { (self.run)(stage.as_ref()).await }).await;
        if ended.is_ok() {
            keep(program, self.name);
        }
        match (ended.map_err(words), exceptions::fails_with(program.name, self.name)) {
            (ended, None) => ended,
            (Ok(()), Some(_)) => Err("passes, and is declared as an exception".to_owned()),
            (Err(problem), Some(expected)) if problem.contains(expected) => Ok(()),
            (Err(problem), Some(expected)) => Err(format!("not \"{expected}\" but {problem}")),
        }
    }
}

/// Longer than any check takes on a busy machine: with ten programs per core the longest took over
/// 100 s. A check that hangs is named, and does not hold up the others.
const LONGEST: Duration = Duration::from_secs(400);

/// Runs one check on a stage.
///
/// # Panics
/// When it does not pass.
pub async fn run_one(stage: Arc<dyn Stage>, name: &str) {
    let Some(check) = Check::all().find(|check| check.name == name) else {
        panic!("there is no check {name}");
    };
    run_all(stage, [check], 1).await;
}

/// Runs checks on one stage, so many at once, each in a task of its own and each to its end.
///
/// # Panics
/// When one does not pass; the message names every one that did not.
pub async fn run_all(
    stage: Arc<dyn Stage>,
    checks: impl IntoIterator<Item = Check>,
    at_once: usize,
) {
    let mut waiting: VecDeque<Check> = checks.into_iter().collect();
    let count = waiting.len();
    let mut under_way = JoinSet::new();
    let mut failures = vec![];
    loop {
        while under_way.len() < at_once.max(1)
            && let Some(check) = waiting.pop_front()
        {
            let stage = Arc::clone(&stage);
            under_way.spawn(async move {
                let performed = timeout(LONGEST, check.perform(stage)).await;
                let late = Err(format!("it did not end within {LONGEST:?}"));
                (check.name, performed.unwrap_or(late))
            });
        }
        match under_way.join_next().await {
            None => break,
            Some(Ok((_, Ok(())))) => {}
            Some(Ok((name, Err(problem)))) => failures.push(format!("{name}: {problem}")),
            Some(Err(error)) => failures.push(words(error)),
        }
    }
    let Program { name, version } = stage.program();
    assert!(
        failures.is_empty(),
        "{name} {version}: {} of {count} checks failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// What a task that did not come to its end said.
fn words(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => match panic.downcast::<String>() {
            Ok(text) => *text,
            Err(panic) => panic.downcast_ref::<&str>().copied().unwrap_or("it panicked").to_owned(),
        },
        Err(error) => error.to_string(),
    }
}

/// Notes that a check has passed, where somebody wants to know.
fn keep(program: Program, check: &str) {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let folder = folder.join(program.name).join(program.version);
    if let Err(error) = note(&folder, check) {
        panic!("cannot note in {} that {check} has passed: {error}", folder.display());
    }
}

fn note(folder: &Path, check: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join(check), "")
}
