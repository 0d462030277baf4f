//! The question whether a repository is trusted.

use std::io::{BufRead as _, Write as _};

use atomic_registry::project::Definition;

use super::{ProjectTrust, Standing};
use crate::paint;

/// The answer to the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Use the definitions, and ask again when one of them changes.
    Trust,
    /// Use them this once.
    Once,
    /// Go on without them, and do not ask again until one of them changes.
    GoOnWithout,
    /// Nobody answered.
    None,
}

/// How many definitions of a kind are listed.
const LISTED: usize = 12;

/// The question with everything the repository would change.
pub(crate) fn question_text(trust: &ProjectTrust) -> String {
    let root = &trust.repository.root;
    let mut lines = vec![];
    if let Standing::Changed(changes) = &trust.standing {
        lines.push(format!("{} has changed since you trusted it:", root.display()));
        lines.extend(changes.iter().take(LISTED).map(|change| format!("  {change}")));
        lines.extend(more(changes.len()));
    } else {
        lines.push(format!("{} defines what is used only if you trust it:", root.display()));
        lines.extend(listed(&trust.definitions));
    }
    lines.extend(trust.repository.origin().map(|address| format!("  from {address}")));
    lines.push(
        "Agents work with all permissions and read the project's files, whatever you answer."
            .to_owned(),
    );
    paint::printable(&lines.join("\n"))
}

fn more(count: usize) -> Option<String> {
    (count > LISTED).then(|| format!("  and {} more", count - LISTED))
}

/// Definitions under the headings of their kinds.
fn listed(definitions: &[Definition]) -> Vec<String> {
    let mut lines = vec![];
    for same in definitions.chunk_by(|one, next| one.kind.heading() == next.kind.heading()) {
        let Some(first) = same.first() else { continue };
        lines.push(format!("  {}", first.kind.heading()));
        lines.extend(same.iter().take(LISTED).map(|definition| format!("    {definition}")));
        lines.extend(more(same.len()).map(|line| format!("  {line}")));
    }
    lines
}

/// Asks the person at the terminal.
pub(crate) fn ask(question: &str) -> Answer {
    let mut screen = std::io::stderr();
    let _ = writeln!(
        screen,
        "{question}\n  1  Trust it, and ask again when a definition changes\n  2  Use them this \
         once\n  3  Go on without them"
    );
    let mut lines = std::io::stdin().lock().lines();
    loop {
        let _ = write!(screen, "1, 2 or 3: ");
        let _ = screen.flush();
        let Some(Ok(line)) = lines.next() else { return Answer::None };
        match line.trim() {
            "1" => return Answer::Trust,
            "2" => return Answer::Once,
            "3" => return Answer::GoOnWithout,
            _ => {}
        }
    }
}
