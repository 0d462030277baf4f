//! Results of single tests, read from the output of cargo-nextest.

use std::collections::BTreeMap;

/// A test that has ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Finished {
    pub(super) passed: bool,
    pub(super) seconds: f64,
}

/// Returns every test of a run by its name, `<binary> <test>`. A failed test is printed twice, when
/// it ends and below the summary.
pub(super) fn finished(output: &str) -> BTreeMap<String, Finished> {
    output.lines().filter_map(line).collect()
}

/// Parses `PASS [   0.044s] ( 1/11) atomic-acp prompt::tests::parts_become_one_text`. Other words in
/// front are `FAIL`, `LEAK` (passed, but a process kept the output open), `TIMEOUT` and the names of
/// signals. `SLOW` has `[> 60.000s]` and is not an end.
fn line(line: &str) -> Option<(String, Finished)> {
    let (word, rest) = line.trim_start().split_once(" [")?;
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase() || c == '-');
    let (seconds, rest) = rest.split_once("s]").filter(|_| is_word)?;
    let seconds = seconds.trim().parse().ok()?;
    let (_, name) = rest.split_once(") ")?;
    let passed = ["PASS", "LEAK"].contains(&word);
    Some((name.trim().to_owned(), Finished { passed, seconds }))
}

#[cfg(test)]
mod tests {
    use super::{Finished, finished};

    #[test]
    fn every_end_of_a_test_is_read_once() {
        let output = "\
    Starting 4 tests across 2 binaries (9 tests skipped)
        PASS [   0.044s] (1/4) atomic-acp prompt::tests::parts_become_one_text
        SLOW [> 60.000s] (─────) atomic-cli::cli crash::killed_at_every_fact
        FAIL [   1.500s] (2/4) atomic-cli::cli usage::help
  stdout ───
    running 1 test
        LEAK [   0.009s] (3/4) atomic-cli::cli usage::leaks
     SIGKILL [  12.009s] (  4/400) atomic-cli::cli usage::dies
────────────
     Summary [  61.009s] 4 tests run: 2 passed (1 leaky), 2 failed, 9 skipped
        FAIL [   1.500s] (2/4) atomic-cli::cli usage::help
";
        let end = |passed, seconds| Finished { passed, seconds };
        let expected = [
            ("atomic-acp prompt::tests::parts_become_one_text", end(true, 0.044)),
            ("atomic-cli::cli usage::dies", end(false, 12.009)),
            ("atomic-cli::cli usage::help", end(false, 1.5)),
            ("atomic-cli::cli usage::leaks", end(true, 0.009)),
        ];
        let found: Vec<_> = finished(output).into_iter().collect();
        assert_eq!(found, expected.map(|(name, end)| (name.to_owned(), end)));
    }
}
