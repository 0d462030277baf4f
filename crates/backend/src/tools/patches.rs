//! The files that a patch is about.

use serde_json::Value;

use super::Subject;

/// What every line begins with that is not part of a file's text.
const HEADER: &str = "***";

/// The headers that name a file.
const FILES: [&str; 4] = ["Add File:", "Update File:", "Delete File:", "Move to:"];

/// The headers that name none.
const OTHERS: [&str; 3] = ["Begin Patch", "End Patch", "End of File"];

/// Every file that a patch names. Lines of a file's own text count too when a program could take
/// them for headers.
pub(super) fn subjects(patch: &Value) -> Vec<Subject<'_>> {
    let Value::String(patch) = patch else { return vec![Subject::Unclear] };
    let headers = patch.split('\n').filter_map(|line| line.trim().strip_prefix(HEADER));
    let found: Vec<Subject<'_>> = headers.map(str::trim_start).filter_map(subject).collect();
    // A patch of nothing is one in a shape that we do not know.
    if found.is_empty() { vec![Subject::Unclear] } else { found }
}

fn subject(header: &str) -> Option<Subject<'_>> {
    if OTHERS.contains(&header) {
        return None;
    }
    let path = FILES.iter().find_map(|start| header.strip_prefix(start)).map(str::trim);
    Some(path.filter(|path| is_plain(path)).map_or(Subject::Unclear, Subject::Path))
}

/// Whether all programs read a path in the same way: some end it at a colon, and they differ in
/// what they take for white space.
fn is_plain(path: &str) -> bool {
    let is_odd = |c: char| c == ':' || c == '\u{feff}' || c.is_control();
    !path.is_empty() && !path.contains(is_odd)
}
