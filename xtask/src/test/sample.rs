//! The tenth of the long tests that a run plays unless it plays all of them.
//!
//! The crash scenes and the older version of an agent program take most of the time of a whole run.
//! `xtask test --full` plays all of them; `xtask test` plays a tenth, another one for another
//! commit.

use std::path::Path;
use std::process::Command;

/// Name of the variable that carries the seed to the tests. The crash tests read it through
/// `atomic_testing::sample`.
pub(super) const VARIABLE: &str = "ATOMIC_TEST_SAMPLE";

/// Number of parts into which the long tests are divided.
const PARTS: u64 = 10;

/// Number of hexadecimal digits of a commit that make a seed.
const DIGITS: &str = "--short=8";

/// A tenth of the long tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) seed: u64,
}

impl Sample {
    /// Reads the seed from the environment, or derives it from the commit that is checked out, so
    /// that a failed run can be repeated.
    pub(super) fn choose(root: &Path) -> Result<Self, String> {
        let seed = match std::env::var(VARIABLE) {
            Ok(text) => text.parse().map_err(|_| format!("{VARIABLE}: not a number: `{text}`"))?,
            Err(_) => seed_of_commit(root).unwrap_or_default(),
        };
        Ok(Self { seed })
    }

    /// Option of cargo-nextest that selects this tenth.
    pub(super) fn partition(self) -> String {
        format!("--partition hash:{}/{PARTS}", self.seed % PARTS + 1)
    }
}

/// Returns the first digits of the commit as a number, or nothing outside of a git repository.
fn seed_of_commit(root: &Path) -> Option<u64> {
    let mut command = Command::new("git");
    command.args(["rev-parse", DIGITS, "HEAD"]).current_dir(root);
    let output = command.output().ok().filter(|output| output.status.success())?;
    let digits = String::from_utf8(output.stdout).ok()?;
    u64::from_str_radix(digits.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::Sample;

    #[test]
    fn consecutive_seeds_select_every_tenth() {
        let parts: Vec<String> = (0..11).map(|seed| Sample { seed }.partition()).collect();
        assert_eq!(parts[0], "--partition hash:1/10");
        assert_eq!(parts[9], "--partition hash:10/10");
        assert_eq!(parts[10], parts[0]);
    }
}
