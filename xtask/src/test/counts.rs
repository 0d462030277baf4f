//! How many tests a suite ran, read from what its runner printed.

use super::plan::Job;
use super::table::Outcome;

/// The program that ran the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runner {
    Nextest,
    CargoTest,
}

/// Passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: u64,
    pub(super) failed: u64,
}

impl Counts {
    /// The counts of one suite. One that is not a test run counts as one; one that failed has at
    /// least one failure, whatever its output says.
    pub(super) fn of(job: &Job, outcome: Outcome, output: &str) -> Self {
        let runner = match job {
            Job::Cargo { runner, .. } => *runner,
            Job::Check
            | Job::Schema
            | Job::Docs
            | Job::Backends
            | Job::Deny
            | Job::Agents
            | Job::Client
            | Job::Types
            | Job::Bench => None,
        };
        let counts = runner.map_or_else(Self::default, |runner| Self::read(runner, output));
        match outcome {
            Outcome::NotRun => Self::default(),
            Outcome::Passed if runner.is_none() => Self { passed: 1, failed: 0 },
            Outcome::Passed => counts,
            Outcome::Failed => Self { failed: counts.failed.max(1), ..counts },
        }
    }

    fn read(runner: Runner, output: &str) -> Self {
        let (mark, separator) = match runner {
            Runner::Nextest => ("Summary [", ','),
            Runner::CargoTest => ("test result:", ';'),
        };
        let mut counts = Self::default();
        for line in output.lines().filter(|line| line.trim_start().starts_with(mark)) {
            for part in line.split([separator, ':', '.', ']']) {
                counts.add(part);
            }
        }
        counts
    }

    /// `3 passed`, `1 failed`, `2 timed out`; also `3 passed (1 slow`.
    fn add(&mut self, part: &str) {
        let Some((number, what)) = part.trim().split_once(' ') else { return };
        let Ok(number) = number.parse::<u64>() else { return };
        if what.starts_with("passed") {
            self.passed += number;
        } else if ["failed", "timed out", "exec failed"].iter().any(|w| what.starts_with(w)) {
            self.failed += number;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::Job;
    use super::super::table::Outcome;
    use super::{Counts, Runner};

    #[test]
    fn counts_are_read_from_what_the_runners_print() {
        let nextest = [
            ("     Summary [   0.010s] 3 tests run: 3 passed, 2 skipped", 3, 0),
            (
                "     Summary [   9.010s] 5 tests run: 3 passed (1 slow, 1 leaky), 2 failed, 7 skipped",
                3,
                2,
            ),
            (
                "     Summary [  60.000s] 4 tests run: 1 passed, 1 failed, 2 timed out, 0 skipped",
                1,
                3,
            ),
            ("     Summary [   0.000s] 0 tests run: 0 passed, 9 skipped", 0, 0),
        ];
        for (line, passed, failed) in nextest {
            let read = Counts::read(Runner::Nextest, &format!("noise: 8 passed\n{line}\nend"));
            assert_eq!(read, Counts { passed, failed }, "{line}");
        }
        let cargo = "test result: ok. 4 passed; 0 failed; 1 ignored; 0 measured\n\
                     test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured";
        assert_eq!(Counts::read(Runner::CargoTest, cargo), Counts { passed: 5, failed: 2 });
    }

    #[test]
    fn a_suite_that_failed_without_a_failed_test_still_counts_as_a_failure() {
        let run = Job::Cargo { calls: Vec::new(), runner: Some(Runner::Nextest) };
        let table = [
            (Counts::of(&run, Outcome::Failed, "killed"), 0, 1),
            (Counts::of(&Job::Check, Outcome::Failed, ""), 0, 1),
            (Counts::of(&Job::Check, Outcome::Passed, ""), 1, 0),
            (Counts::of(&Job::Deny, Outcome::NotRun, ""), 0, 0),
        ];
        for (counts, passed, failed) in table {
            assert_eq!(counts, Counts { passed, failed });
        }
    }
}
