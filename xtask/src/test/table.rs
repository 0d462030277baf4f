//! What is shown at the end.

use super::counts::Counts;

/// Wide enough for the longest name.
pub(super) const NAME_WIDTH: usize = 16;

/// How a suite ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    NotRun,
}

impl Outcome {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Failed => "FAILED",
            Self::NotRun => "not run",
        }
    }
}

/// One suite.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) outcome: Outcome,
    pub(super) counts: Counts,
    pub(super) seconds: f64,
    /// CPU time in seconds.
    pub(super) cpu: f64,
    /// Seconds that each test took, where the test runner says it.
    pub(super) tests: Vec<(String, f64)>,
    /// Why it was not run, or what to know about it.
    pub(super) note: Option<String>,
}

impl Row {
    /// A suite nobody started.
    pub(super) fn not_run(name: &str, reason: &str) -> Self {
        Self {
            name: name.to_owned(),
            outcome: Outcome::NotRun,
            counts: Counts::default(),
            seconds: 0.0,
            cpu: 0.0,
            tests: Vec::new(),
            note: Some(reason.to_owned()),
        }
    }
}

/// Number of slow tests that are listed.
const SLOWEST: usize = 10;

/// The table, below it the slowest tests, and the sum, alone on the last line.
pub(super) fn draw(rows: &[Row]) -> String {
    let sum = |count: fn(&Counts) -> u64| rows.iter().map(|row| count(&row.counts)).sum();
    let all = Counts { passed: sum(|c| c.passed), failed: sum(|c| c.failed) };
    let times = rows.iter().fold([0.0; 2], |[seconds, cpu], row| {
        let Row { seconds: more, cpu: more_cpu, .. } = row;
        [seconds + more, cpu + more_cpu]
    });
    let heading = format!("{:<NAME_WIDTH$}  result   passed  failed      time       CPU", "suite");
    let mut lines = vec![heading];
    for row in rows {
        let start = line(&row.name, row.outcome.word(), row.counts, [row.seconds, row.cpu]);
        let note = row.note.as_deref().unwrap_or_default();
        lines.push(format!("{start}  {note}").trim_end().to_owned());
    }
    lines.push(line("all", "", all, times));
    lines.extend(slowest(rows));
    lines.push(format!("\n{} passed, {} failed", all.passed, all.failed));
    lines.join("\n")
}

fn line(name: &str, word: &str, counts: Counts, [seconds, cpu]: [f64; 2]) -> String {
    let Counts { passed, failed } = counts;
    format!(
        "{name:<NAME_WIDTH$}  {word:<7}  {passed:>6}  {failed:>6}  {seconds:>6.1} s  {cpu:>6.1} s"
    )
}

/// The slowest tests of all suites with their seconds, under a heading.
fn slowest(rows: &[Row]) -> Vec<String> {
    let mut tests: Vec<_> = rows.iter().flat_map(|row| &row.tests).collect();
    tests.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    tests.truncate(SLOWEST);
    let lines = tests.iter().map(|(name, seconds)| format!("{seconds:>6.1} s  {name}"));
    let heading = (!tests.is_empty()).then(|| "\nslowest tests".to_owned());
    heading.into_iter().chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::{Counts, Outcome, Row, draw};

    #[test]
    fn the_table_says_what_was_not_run_and_ends_with_the_sum() {
        let row = |name: &str, outcome, passed, failed, seconds| Row {
            name: name.to_owned(),
            outcome,
            counts: Counts { passed, failed },
            seconds,
            cpu: 2.0 * seconds,
            tests: Vec::new(),
            note: None,
        };
        let mut rows = [
            row("fmt", Outcome::Passed, 1, 0, 0.44),
            row("tests graph", Outcome::Failed, 120, 2, 61.0),
            Row::not_run("deny", "no network"),
        ];
        let expected = "\
suite             result   passed  failed      time       CPU
fmt               ok            1       0     0.4 s     0.9 s
tests graph       FAILED      120       2    61.0 s   122.0 s
deny              not run       0       0     0.0 s     0.0 s  no network
all                           121       2    61.4 s   122.9 s

121 passed, 2 failed";
        assert_eq!(draw(&rows), expected);

        rows[1].tests = (1..=12).map(|n| (format!("graph test-{n}"), f64::from(n))).collect();
        let drawn = draw(&rows);
        let (_, below) = drawn.split_once("slowest tests\n").unwrap();
        let lines: Vec<&str> = below.lines().collect();
        assert_eq!(lines[0], "  12.0 s  graph test-12");
        assert_eq!(lines[9..], ["   3.0 s  graph test-3", "", "121 passed, 2 failed"]);
    }
}
