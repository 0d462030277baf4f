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
    #[error("there is no file {path}{}", suggestion(.text, .typed, .similar.as_deref()))]
    NoSuchFile {
        /// The path.
        path: PathBuf,
        /// What was typed.
        text: String,
        /// The workflow, as it was typed.
        typed: String,
        /// A file with a similar name beside it.
        similar: Option<PathBuf>,
    },
    /// It looks like a path, and there is a folder.
    #[error("{path} is a folder, not a file{}", suggestion(.text, .typed, None))]
    IsFolder {
        /// The path.
        path: PathBuf,
        /// What was typed.
        text: String,
        /// The workflow, as it was typed.
        typed: String,
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
fn suggestion(text: &str, typed: &str, similar: Option<&Path>) -> String {
    let meant = similar.map(|path| format!("; did you mean {}?", path.display()));
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let is_plain = |c: char| c.is_alphanumeric() || "._/:@+-".contains(c);
    let typed = if typed.chars().all(is_plain) { typed.to_owned() } else { quoted(typed) };
    let prompt = quoted(&format!("Do this: {text}"));
    format!(
        "{}\n  hint: for a prompt that only looks like a path, add a word: atomic run {typed} {prompt}",
        meant.unwrap_or_default()
    )
}

/// The content of the file that `text` names, else the text itself without outer quotes. `typed` is
/// the workflow as the user wrote it: a path has to be one in a command that can be pasted, too.
pub fn read_prompt(
    text: &str,
    folder: &Path,
    workflow: &WorkflowName,
    typed: &str,
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
    let is_address = text.contains("://");
    if one_word && looks_like_a_path && !is_address {
        let (text, typed) = (text.to_owned(), typed.to_owned());
        if path.is_dir() {
            return Err(PromptError::IsFolder { path, text, typed });
        }
        let similar = similar_file(&path);
        return Err(PromptError::NoSuchFile { path, text, typed, similar });
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
        std::fs::create_dir(dir.path().join("src")).unwrap();
        let read_for =
            |typed: &str, text: &str| match read_prompt(text, dir.path(), &"ralph".into(), typed) {
                Ok(prompt) => prompt,
                Err(e) => e.to_string().replace(&dir.path().display().to_string(), "DIR"),
            };
        let read = |text: &str| read_for("ralph", text);
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
            (
                "src/",
                "DIR/src/ is a folder, not a file\n  hint: for a prompt that only looks like a path, \
                 add a word: atomic run ralph 'Do this: src/'",
            ),
            ("https://example.org/issues/1", "https://example.org/issues/1"),
            ("Do this: a/b", "Do this: a/b"),
            ("fix a/b please", "fix a/b please"),
            ("  ", "Please provide a prompt for the ralph workflow."),
            ("empty.md", "Please provide a prompt for the ralph workflow."),
        ];
        for (text, expected) in table {
            assert_eq!(read(text), expected, "{text}");
        }
        for (typed, shown) in [("./x.json", "./x.json"), ("my flows/x.ts", "'my flows/x.ts'")] {
            let told = read_for(typed, "and/or");
            assert!(told.ends_with(&format!(": atomic run {shown} 'Do this: and/or'")), "{told}");
        }
    }
}
