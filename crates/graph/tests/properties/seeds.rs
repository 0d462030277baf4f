//! Many seeds, on all processors; a seed that fails is named.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::coverage::Coverage;
use crate::dice::Dice;

/// The variable that makes the suite run a single seed.
const ONLY: &str = "ATOMIC_SEED";

/// The variable that says how many seeds nobody has tried are to be run.
const MORE: &str = "ATOMIC_SEEDS";

/// Whether a single seed is run.
pub(crate) fn is_single() -> bool {
    std::env::var(ONLY).is_ok()
}

/// The seeds to run: always the same ones, so that a change is judged by itself and not by luck;
/// and as many that nobody has tried as are asked for.
pub(crate) fn seeds(fixed: u64) -> Vec<u64> {
    if let Ok(seed) = std::env::var(ONLY) {
        return vec![seed.parse().unwrap()];
    }
    let fresh = std::env::var(MORE).map_or(0, |more| more.parse().unwrap());
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let mut dice = Dice::new(u64::try_from(now.as_nanos() % u128::from(u64::MAX)).unwrap());
    (0..fixed).chain((0..fresh).map(|_| dice.next())).collect()
}

/// How many seeds may fail before the others are left alone.
const ENOUGH: usize = 5;

/// Runs the seeds and adds up what they covered.
pub(crate) fn all(seeds: &[u64], test: impl Fn(u64) -> Coverage + Sync) -> Coverage {
    let workers = 2;
    let work = |worker: usize| {
        let (mut coverage, mut failures) = (Coverage::default(), vec![]);
        for seed in seeds.iter().skip(worker).step_by(workers) {
            match catch_unwind(AssertUnwindSafe(|| test(*seed))) {
                Ok(more) => coverage.add(&more),
                Err(problem) => failures.push(format!("{ONLY}={seed}: {}", message(&*problem))),
            }
            if failures.len() >= ENOUGH {
                break;
            }
        }
        (coverage, failures)
    };
    let parts: Vec<(Coverage, Vec<String>)> = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..workers).map(|n| scope.spawn(move || work(n))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (mut coverage, mut failures) = (Coverage::default(), vec![]);
    for (part, failed) in parts {
        coverage.add(&part);
        failures.extend(failed);
    }
    assert!(failures.is_empty(), "these seeds failed:\n{}", failures.join("\n"));
    coverage
}

fn message(problem: &(dyn Any + Send)) -> String {
    let text = problem.downcast_ref::<String>().map(String::as_str);
    let text = text.or(problem.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
    text.chars().take(300).collect()
}
