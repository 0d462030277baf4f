//! Changing a settings file: one key, and nothing else in it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use atomic_files::{Permissions, Root, refusal};
use jsonc_parser::ast::{Object, ObjectProp};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::tokens::{Token, TokenAndRange};

use super::file::{self, Fault, MARK, Parsed};
use super::problem::{Place, Problem};
use super::table::{self, Setting};
use super::value::Value;
use crate::project::ProjectFiles;

/// How long somebody else who changes settings is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// Sets something in a settings file, which is made if there is none. Comments, order, other keys
/// and the way it is indented stay. A file of a project is never written through a link out of it.
pub fn set(
    path: &Path,
    project: Option<&ProjectFiles>,
    setting: &'static Setting,
    value: &Value,
) -> Result<(), Problem> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let made = match project {
        // A folder that is a link is looked at when the file is written.
        Some(_) if fs::metadata(folder).is_ok_and(|found| found.is_dir()) => Ok(()),
        Some(project) => project.create_folder(folder).map(drop),
        None => fs::create_dir_all(folder),
    };
    made.map_err(|error| {
        let message = format!("the folder {} cannot be made: {error}", folder.display());
        Problem::new(Place::file(path), message, "make it, or remove what is in the way")
    })?;
    change(path, project, |text| with(text, setting, value).map(Some)).map(|_| ())
}

/// Removes a key from a settings file, be it the key of a setting or of none; whether it was there.
pub fn unset(path: &Path, project: Option<&ProjectFiles>, key: &str) -> Result<bool, Problem> {
    if file::load(path, project)?.is_none() {
        return Ok(false);
    }
    change(path, project, |text| without(text, key))
}

/// Replaces the text of a file by what is made of it, all at once; whether that is something else.
fn change(
    path: &Path,
    project: Option<&ProjectFiles>,
    edit: impl FnOnce(&str) -> Result<Option<String>, Fault>,
) -> Result<bool, Problem> {
    let unwritable = |error: io::Error| match refusal(&error) {
        Some(refused) => {
            let remedy = "nothing was changed; replace the link by a file of its own";
            Problem::new(Place::file(path), refused.to_string(), remedy)
        }
        None => {
            let message = format!("it cannot be written: {error}");
            Problem::new(Place::file(path), message, "nothing was changed")
        }
    };
    // What a link leads to is changed; the link stays.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = real.parent().unwrap_or(Path::new(""));
    let opened = match project {
        Some(project) => Some(project.folder_of_target(path).map_err(unwritable)?),
        None => File::open(folder).ok(),
    };
    let _held = opened.map(|opened| lock(path, folder, opened)).transpose()?;
    let text = file::load(path, project)?.unwrap_or_default();
    let (mark, text) = match text.strip_prefix(MARK) {
        Some(rest) => (MARK.to_string(), rest),
        None => (String::new(), text.as_str()),
    };
    let changed = edit(text).map_err(|fault| fault.of(path, text))?;
    let Some(changed) = changed else { return Ok(false) };
    let changed = format!("{mark}{changed}");
    let written = match project {
        Some(project) => project.replace(path, changed.as_bytes()),
        None => Root::open(folder).and_then(|root| {
            let name = real.file_name().map(Path::new).unwrap_or(&real);
            root.replace(name, changed.as_bytes(), Permissions::KeptOr(0o666))
        }),
    };
    written.map_err(unwritable)?;
    Ok(true)
}

/// Locks the folder of a settings file. Whoever comes second waits, and then sees what the first has
/// written; but nobody needs more than a moment. Where a folder cannot be locked at all, the later
/// of two changes at the same moment wins.
fn lock(path: &Path, folder: &Path, file: File) -> Result<Option<File>, Problem> {
    let patience = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) if Instant::now() < patience => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => {
                let folder = folder.display();
                let message = format!("another program keeps the folder {folder} locked");
                let remedy = format!(
                    "nothing was changed; end that program (`lsof {folder}` names it), then try again"
                );
                return Err(Problem::new(Place::file(path), message, remedy));
            }
        }
    }
}

/// The text with a setting set.
fn with(text: &str, setting: &'static Setting, value: &Value) -> Result<String, Fault> {
    let Parsed { object, tokens } = file::parse(text)?;
    let json = json(value);
    let Some(object) = object else {
        let (above, line) = (text.trim_end(), line_end(text));
        let gap = if above.is_empty() { "" } else { line };
        let entry = format!("{{{line}  \"{}\": {json}{line}}}{line}", setting.key);
        return Ok(format!("{above}{gap}{entry}"));
    };
    let mut found = file::properties_of(&object, setting);
    let changed = match (found.next(), found.next()) {
        (Some(first), Some(second)) => {
            return Err(Fault::twice(setting, text, (first.start(), second.start())));
        }
        (Some(property), None) => splice(text, property.value.start()..property.value.end(), &json),
        (None, _) => add(text, &object, &tokens, &format!("\"{}\": {json}", setting.key)),
    };
    Ok(changed)
}

/// A value as people write it.
fn json(value: &Value) -> String {
    match value {
        Value::List(texts) => {
            let texts: Vec<String> = texts
                .iter()
                .map(|text| serde_json::Value::from(text.as_str()).to_string())
                .collect();
            format!("[{}]", texts.join(", "))
        }
        Value::Text(_)
        | Value::Number(_)
        | Value::Money(_)
        | Value::Seconds(_)
        | Value::Switch(_) => value.to_json().to_string(),
    }
}

/// Adds an entry at the end of an object.
fn add(text: &str, object: &Object<'_>, tokens: &[TokenAndRange<'_>], entry: &str) -> String {
    let close = object.end() - 1;
    let last = object.properties.last();
    let is_on_one_line = !text[object.start()..close].contains('\n');
    if let Some(last) = last.filter(|_| is_on_one_line) {
        return splice(text, last.end()..last.end(), &format!(", {entry}"));
    }
    // Below everything, so that no comment comes between a key and what is said about it.
    let end = text[..close].trim_end().len();
    let closing = closing_indent(text, close);
    let indent = inner_indent(text, object).unwrap_or_else(|| format!("{closing}  "));
    let line = line_end(text);
    let comma = last.map(|last| comma_after(tokens, last.end()).is_some());
    let trailing = if comma == Some(true) { "," } else { "" };
    let below = format!("{line}{indent}{entry}{trailing}{line}{closing}");
    let changed = splice(text, end..close, &below);
    match last {
        Some(last) if comma == Some(false) => splice(&changed, last.end()..last.end(), ","),
        Some(_) | None => changed,
    }
}

/// The white space in front of the closing brace, when nothing else is there.
fn closing_indent(text: &str, close: usize) -> &str {
    let start = text[..close].rfind('\n').map_or(0, |at| at + 1);
    let before = &text[start..close];
    if start > 0 && before.trim().is_empty() { before } else { "" }
}

/// The white space in front of the first line inside an object.
fn inner_indent(text: &str, object: &Object<'_>) -> Option<String> {
    let inside = &text[object.start()..object.end() - 1];
    let line = inside.lines().skip(1).find(|line| !line.trim().is_empty())?;
    let indent = &line[..line.len() - line.trim_start().len()];
    (!indent.is_empty()).then(|| indent.to_owned())
}

/// How lines end in this text.
fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// The text without a key; `None` when it is not there.
fn without(text: &str, key: &str) -> Result<Option<String>, Fault> {
    let mut changed: Option<String> = None;
    loop {
        let text = changed.as_deref().unwrap_or(text);
        let Parsed { object, tokens } = file::parse(text)?;
        let property = object.iter().flat_map(|object| &object.properties).find(|property| {
            let name = property.name.as_str();
            name == key || table::find(key).is_some_and(|wanted| is_named(name, wanted))
        });
        let Some(property) = property else { return Ok(changed) };
        changed = Some(remove(text, property, &tokens));
    }
}

fn is_named(name: &str, setting: &Setting) -> bool {
    table::find(name).is_some_and(|found| found.key == setting.key)
}

/// The text without a property and the comma that separates it from another.
fn remove(text: &str, property: &ObjectProp<'_>, tokens: &[TokenAndRange<'_>]) -> String {
    let own = property.start()..property.end();
    let Some(comma) = comma_after(tokens, own.end) else {
        let changed = cut(text, own.clone());
        return match comma_before(tokens, own.start) {
            Some(comma) => cut(&changed, comma),
            None => changed,
        };
    };
    if text[own.end..comma.start].trim().is_empty() {
        return cut(text, own.start..comma.end);
    }
    // There is a comment between the two.
    cut(&cut(text, comma), own)
}

fn comma_after(tokens: &[TokenAndRange<'_>], end: usize) -> Option<Range<usize>> {
    let next = tokens.iter().find(|token| token.start() >= end)?;
    (next.token == Token::Comma).then(|| next.start()..next.end())
}

fn comma_before(tokens: &[TokenAndRange<'_>], start: usize) -> Option<Range<usize>> {
    let before = tokens.iter().rev().find(|token| token.end() <= start)?;
    (before.token == Token::Comma).then(|| before.start()..before.end())
}

/// Takes something out, with its lines when nothing else is on them.
fn cut(text: &str, range: Range<usize>) -> String {
    let line_start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let line_stop = text[range.end..].find('\n').map(|at| range.end + at + 1);
    if let Some(stop) = line_stop
        && text[line_start..range.start].trim().is_empty()
        && text[range.end..stop].trim().is_empty()
    {
        return splice(text, line_start..stop, "");
    }
    // Not two blanks where one was on either side, nor one where there was none.
    let has_gap = text[..range.start].ends_with([' ', '\t', '\n', '{']);
    let rest = text[range.end..].trim_start_matches([' ', '\t']);
    let end = if has_gap { text.len() - rest.len() } else { range.end };
    splice(text, range.start..end, "")
}

fn splice(text: &str, range: Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}
