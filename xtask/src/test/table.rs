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
            note: Some(reason.to_owned()),
        }
    }
}

/// The table, and below it the sum, alone on the last line.
pub(super) fn draw(rows: &[Row]) -> String {
    let sum = |count: fn(&Counts) -> u64| rows.iter().map(|row| count(&row.counts)).sum();
    let all = Counts { passed: sum(|c| c.passed), failed: sum(|c| c.failed) };
    let seconds = rows.iter().map(|row| row.seconds).sum();
    let heading = format!("{:<NAME_WIDTH$}  result   passed  failed    time", "suite");
    let mut lines = vec![heading];
    for row in rows {
        let start = line(&row.name, row.outcome.word(), row.counts, row.seconds);
        let note = row.note.as_deref().unwrap_or_default();
        lines.push(format!("{start}  {note}").trim_end().to_owned());
    }
    lines.push(line("all", "", all, seconds));
    lines.push(format!("\n{} passed, {} failed", all.passed, all.failed));
    lines.join("\n")
}

fn line(name: &str, word: &str, counts: Counts, seconds: f64) -> String {
    let Counts { passed, failed } = counts;
    format!("{name:<NAME_WIDTH$}  {word:<7}  {passed:>6}  {failed:>6}  {seconds:>6.1} s")
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
            note: None,
        };
        let rows = [
            row("fmt", Outcome::Passed, 1, 0, 0.44),
            row("tests graph", Outcome::Failed, 120, 2, 61.0),
            Row::not_run("deny", "no network"),
        ];
        let expected = "\
suite             result   passed  failed    time
fmt               ok            1       0     0.4 s
tests graph       FAILED      120       2    61.0 s
deny              not run       0       0     0.0 s  no network
all                           121       2    61.4 s

121 passed, 2 failed";
        assert_eq!(draw(&rows), expected);
    }
}
