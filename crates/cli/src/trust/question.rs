//! The question whether a repository is trusted.

use std::io::{BufRead as _, Write as _};

use atomic_registry::project::{Definition, DefinitionKind, on_one_line};

use super::{Change, ProjectTrust, Standing};
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

/// How many definitions of a kind are listed that run nothing by themselves.
const LISTED: usize = 12;

/// How many are listed that do: a question must not hide one behind a number.
const LISTED_COMMANDS: usize = 500;

fn limit(definition: &Definition) -> usize {
    match definition.kind {
        DefinitionKind::Hook
        | DefinitionKind::McpServer
        | DefinitionKind::LanguageServer
        | DefinitionKind::Plugin
        | DefinitionKind::Git
        | DefinitionKind::Check
        | DefinitionKind::Workflow
        | DefinitionKind::Setting
        | DefinitionKind::ProgramSetting
        | DefinitionKind::Programs => LISTED_COMMANDS,
        DefinitionKind::Agent
        | DefinitionKind::Skill
        | DefinitionKind::Command
        | DefinitionKind::Instructions
        | DefinitionKind::OtherFile => LISTED,
    }
}

/// The question with everything the repository would change.
pub(crate) fn question_text(trust: &ProjectTrust) -> String {
    let root = on_one_line(&trust.repository.root.display().to_string());
    let mut lines = vec![];
    if let Standing::Changed(changes) = &trust.standing {
        lines.push(format!("{root} has changed since you trusted it:"));
        let shown = changes.iter().take(LISTED_COMMANDS).flat_map(Change::lines);
        lines.extend(shown.map(|line| format!("  {line}")));
        lines.extend(more(changes.len(), LISTED_COMMANDS));
    } else if let Standing::Unseen(unseen) = &trust.standing {
        lines.push(format!("You trust {root}, and in this folder it also defines:"));
        let unseen: Vec<&Definition> = unseen.iter().filter_map(Change::definition).collect();
        lines.extend(listed(&unseen));
    } else {
        lines.push(format!("{root} defines what is used only if you trust it:"));
        lines.extend(listed(&trust.definitions.iter().collect::<Vec<_>>()));
    }
    lines.extend(trust.repository.origin().map(|address| format!("  from {address}")));
    lines.push(
        "Agents work with all permissions and read the project's files, whatever you answer."
            .to_owned(),
    );
    paint::printable(&lines.join("\n"))
}

fn more(count: usize, listed: usize) -> Option<String> {
    (count > listed).then(|| format!("  and {} more", count - listed))
}

/// Definitions under the headings of their kinds.
fn listed(definitions: &[&Definition]) -> Vec<String> {
    let mut lines = vec![];
    for same in definitions.chunk_by(|one, next| one.kind.heading() == next.kind.heading()) {
        let Some(first) = same.first() else { continue };
        lines.push(format!("  {}", first.kind.heading()));
        let limit = limit(first);
        let shown = same.iter().take(limit).flat_map(|definition| definition.lines());
        lines.extend(shown.map(|line| format!("    {line}")));
        lines.extend(more(same.len(), limit).map(|line| format!("  {line}")));
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
