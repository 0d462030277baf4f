//! Printing. The only place that writes to the terminal besides the front ends in `show`.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::OnceLock;

use console::{Alignment, measure_text_width, pad_str, style};

/// Why something that was to be printed is lost, if anything is.
static LOST: OnceLock<String> = OnceLock::new();

/// Prints a line. What cannot be printed is told at the end of the program.
pub(crate) fn line(text: &str) {
    if let Err(error) = writeln!(io::stdout(), "{text}") {
        note_loss(&error);
    }
}

/// Rows as lines in which the columns stand below each other.
pub(crate) fn aligned<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| measure_text_width(&row[column])).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let line = |row: &[String; N]| {
        let columns = row.iter().zip(widths);
        let padded = columns.map(|(text, width)| pad_str(text, width, Alignment::Left, None));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// A text on one line.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Prints a value and nothing else: as it is for a program, harmless on a terminal.
pub(crate) fn value(text: &str) {
    if io::stdout().is_terminal() { line(&printable(text)) } else { line(text) }
}

/// Remembers that output was lost. A reader that has seen enough misses nothing.
pub(crate) fn note_loss(error: &io::Error) {
    if error.kind() != io::ErrorKind::BrokenPipe {
        let _ = LOST.set(format!("the output cannot be written: {error}"));
    }
}

/// Why output was lost, if it was.
pub(crate) fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

/// Prints an error.
pub(crate) fn complain(text: &str) {
    let _ =
        writeln!(io::stderr(), "{} {}", style("error:").for_stderr().red().bold(), printable(text));
}

/// Prints something that is not what was asked for.
pub(crate) fn aside(text: &str) {
    let _ = writeln!(io::stderr(), "{}", style(printable(text)).for_stderr().dim());
}

/// A text without anything that would act on a terminal: names of files, what stands in them and
/// what programs print come from strangers.
pub(crate) fn printable(text: &str) -> String {
    let acts = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || turns_around(c);
    let harmless = |c: char| if acts(c) { '\u{fffd}' } else { c };
    text.replace("\r\n", "\n").chars().map(harmless).collect()
}

/// Whether a character changes the direction of what follows, so that it reads as something else.
fn turns_around(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The same for what stands in a line with other things, and must not begin another one.
pub(crate) fn label(text: &str) -> String {
    printable(text).replace(['\n', '\t'], "\u{fffd}")
}

/// Prints something that is odd and stops nothing.
pub(crate) fn warn(text: &str) {
    let mark = style("warning:").for_stderr().yellow().bold();
    let _ = writeln!(io::stderr(), "{mark} {}", printable(text));
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
