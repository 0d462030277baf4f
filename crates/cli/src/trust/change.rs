//! Differences between the definitions that were trusted and those that are there, as the trust
//! question shows them.

use atomic_registry::project::{Definition, DefinitionId, LONGEST_KEPT, on_one_line, whole_line};

/// A difference between the definitions that were trusted and those that are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Added(Definition),
    /// A definition of a folder in which the user has not decided yet.
    Unseen(Definition),
    Changed {
        definition: Definition,
        /// The text that was trusted; empty where none was kept.
        before: String,
    },
    Removed {
        id: DefinitionId,
        /// The text that was trusted; empty where none was kept.
        before: String,
    },
}

/// The largest number of lines that are shown of each side of a difference.
const MOST_LINES: usize = 20;

impl Change {
    /// Returns the definition as it is now.
    pub(crate) fn definition(&self) -> Option<&Definition> {
        match self {
            Self::Added(definition)
            | Self::Unseen(definition)
            | Self::Changed { definition, .. } => Some(definition),
            Self::Removed { .. } => None,
        }
    }

    /// Returns the change for the trust question, the first line being the headline.
    pub(crate) fn lines(&self) -> Vec<String> {
        match self {
            Self::Added(definition) | Self::Unseen(definition) => headed("added", definition),
            Self::Changed { definition, before } => {
                let mut lines = headed("changed", definition);
                lines
                    .extend(difference(before, &definition.text).iter().map(|line| indented(line)));
                lines
            }
            Self::Removed { id, before } => {
                let mut lines = vec![format!("removed  {}", on_one_line(&id.to_string()))];
                let old: Vec<&str> = before.lines().collect();
                lines.extend(marked('-', &old).iter().map(|line| indented(line)));
                lines
            }
        }
    }
}

fn headed(word: &str, definition: &Definition) -> Vec<String> {
    let mut lines = definition.lines().into_iter();
    let first = format!("{word:<8} {}", lines.next().unwrap_or_default());
    std::iter::once(first).chain(lines.map(|line| indented(&line))).collect()
}

fn indented(line: &str) -> String {
    format!("         {line}")
}

/// Returns the lines in which two texts differ: those between their common beginning and their
/// common end.
fn difference(before: &str, now: &str) -> Vec<String> {
    let mut lines = vec![];
    if !before.is_empty() && before == now {
        let is_cut = now.chars().count() >= LONGEST_KEPT;
        lines.push(match is_cut {
            true => format!("differs after the first {LONGEST_KEPT} characters"),
            false => "differs in something that is not shown, such as an imported file".to_owned(),
        });
    } else if !before.is_empty() {
        let (mut old, mut new): (Vec<&str>, Vec<&str>) =
            (before.lines().collect(), now.lines().collect());
        let common = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        old.drain(..common);
        new.drain(..common);
        let same = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new);
        let same = same.count();
        old.truncate(old.len() - same);
        new.truncate(new.len() - same);
        lines.extend(marked('-', &old));
        lines.extend(marked('+', &new));
    }
    lines
}

fn marked(mark: char, lines: &[&str]) -> Vec<String> {
    let shown = lines.iter().take(MOST_LINES);
    let mut shown: Vec<String> = shown.map(|line| format!("{mark} {}", whole_line(line))).collect();
    if lines.len() > MOST_LINES {
        shown.push(format!("{mark} … {} more lines", lines.len() - MOST_LINES));
    }
    shown
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.lines().join("\n"))
    }
}
