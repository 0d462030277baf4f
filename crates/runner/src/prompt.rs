//! From what was typed to the prompt of a run.

use std::path::{Component, Path, PathBuf};

use atomic_event::WorkflowName;
use atomic_files::{PROMPT_LIMIT, Refusal};
use atomic_registry::project::Repository;

/// Why there is no prompt.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// Nothing was given.
    #[error("Please provide a prompt for the {0} workflow.")]
    Empty(WorkflowName),
    /// It looks like a path, and there is nothing there.
    #[error("there is no file {path}{}", suggestion(.text, .workflow, .similar.as_deref()))]
    NoSuchFile {
        /// The path.
        path: PathBuf,
        /// What was typed.
        text: String,
        /// The workflow.
        workflow: WorkflowName,
        /// A file with a similar name beside it.
        similar: Option<PathBuf>,
    },
    /// The file cannot be read as text.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// What to do. Quotes do not help: a shell removes them, and `/ralph "spec.md"` is a path, too. A text
/// of several words is never refused.
fn suggestion(text: &str, workflow: &WorkflowName, similar: Option<&Path>) -> String {
    let meant = similar.map(|path| format!("; did you mean {}?", path.display()));
    let prompt = format!("Do this: {text}").replace('\'', r"'\''");
    format!(
        "{}\n  hint: for a prompt that only looks like a path, add a word: atomic run {workflow} '{prompt}'",
        meant.unwrap_or_default()
    )
}

/// The content of the file that `text` names, else the text itself without outer quotes.
pub fn read_prompt(
    text: &str,
    folder: &Path,
    workflow: &WorkflowName,
) -> Result<String, PromptError> {
    let text = unquoted(text.trim());
    if text.is_empty() {
        return Err(PromptError::Empty(workflow.clone()));
    }
    let path = folder.join(text);
    let one_word = !text.contains(char::is_whitespace);
    if one_word && path.is_file() || text.len() < 4096 && !text.contains('\n') && path.is_file() {
        let content = inside(text, &path, folder)
            .and_then(|()| atomic_files::read_text(&path, PROMPT_LIMIT))
            .map_err(|source| PromptError::Unreadable { path: path.clone(), source })?;
        if content.trim().is_empty() {
            return Err(PromptError::Empty(workflow.clone()));
        }
        return Ok(content);
    }
    let looks_like_a_path = text.contains('/') || text.ends_with(".md") || text.ends_with(".txt");
    if one_word && looks_like_a_path {
        let similar = similar_file(&path);
        let (text, workflow) = (text.to_owned(), workflow.clone());
        return Err(PromptError::NoSuchFile { path, text, workflow, similar });
    }
    Ok(text.to_owned())
}

/// Refuses a file of the project that is a link out of it. An absolute path, or one that leads out by
/// `..`, was meant by the user.
fn inside(text: &str, path: &Path, folder: &Path) -> std::io::Result<()> {
    let is_below = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(text).components().all(is_below) {
        return Ok(());
    }
    let root = Repository::of(folder, None).root.canonicalize()?;
    if path.canonicalize()?.starts_with(root) { Ok(()) } else { Err(Refusal::Outside.into()) }
}

fn unquoted(text: &str) -> &str {
    let strip = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    strip('"').or_else(|| strip('\'')).unwrap_or(text).trim()
}

/// The file beside `path` whose name differs least, if it differs little.
fn similar_file(path: &Path) -> Option<PathBuf> {
    let wanted = path.file_name()?.to_string_lossy().to_lowercase();
    let entries = std::fs::read_dir(path.parent()?).ok()?;
    let files = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|p| p.is_file());
    let distance = |file: &PathBuf| {
        let name = file.file_name().map(|n| n.to_string_lossy().to_lowercase());
        edits(&wanted, name.as_deref().unwrap_or_default())
    };
    files.map(|file| (distance(&file), file)).filter(|(d, _)| *d <= 3).min().map(|(_, file)| file)
}

/// How many characters to insert, remove or replace to get from `a` to `b`.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::read_prompt;

    #[test]
    fn a_prompt_is_text_or_a_file() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("spec.md"), "Build it\n").unwrap();
        std::fs::write(dir.path().join("empty.md"), " \n").unwrap();
        let read = |text: &str| match read_prompt(text, dir.path(), &"ralph".into()) {
            Ok(prompt) => prompt,
            Err(e) => e.to_string().replace(&dir.path().display().to_string(), "DIR"),
        };
        let table = [
            ("\"Build a game\"", "Build a game"),
            ("'one'", "one"),
            ("spec.md", "Build it\n"),
            (
                "spce.md",
                "there is no file DIR/spce.md; did you mean DIR/spec.md?\n  hint: for a prompt that \
                 only looks like a path, add a word: atomic run ralph 'Do this: spce.md'",
            ),
            (
                "a/b",
                "there is no file DIR/a/b\n  hint: for a prompt that only looks like a path, add a \
                 word: atomic run ralph 'Do this: a/b'",
            ),
            ("Do this: a/b", "Do this: a/b"),
            ("fix a/b please", "fix a/b please"),
            ("  ", "Please provide a prompt for the ralph workflow."),
            ("empty.md", "Please provide a prompt for the ralph workflow."),
        ];
        for (text, expected) in table {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
