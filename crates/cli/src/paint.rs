//! Printing. The only place that writes to the terminal besides the front ends in `show`.

use std::io::Write as _;

use console::style;

/// Prints a line. A reader that went away is noticed by the front ends, not here.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Prints an error.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(
        std::io::stderr(),
        "{} {}",
        style("error:").for_stderr().red().bold(),
        printable(text)
    );
}

/// Prints something that is not what was asked for.
pub(crate) fn aside(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", style(text).for_stderr().dim());
}

/// A text without anything that would act on a terminal: names of files, what stands in them and
/// what programs print come from strangers.
pub(crate) fn printable(text: &str) -> String {
    let harmless =
        |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c };
    text.chars().map(harmless).collect()
}

/// Prints something that is odd and stops nothing.
pub(crate) fn warn(text: &str) {
    let mark = style("warning:").for_stderr().yellow().bold();
    let _ = writeln!(std::io::stderr(), "{mark} {}", printable(text));
}

/// The mark of a task or step by how it stands.
pub(crate) fn mark(status: &str) -> String {
    match status {
        "completed" => style("✓").green().to_string(),
        "failed" => style("✗").red().to_string(),
        "in_progress" => style("●").cyan().to_string(),
        _ => style("○").dim().to_string(),
    }
}

/// A length of time, as short as can be.
pub(crate) fn time(millis: u64) -> String {
    match millis / 1_000 {
        0..60 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        seconds @ 60..3_600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {:02} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}
