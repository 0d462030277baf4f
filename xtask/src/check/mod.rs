//! `xtask check`: what the compiler does not see but the architecture promises.
//!
//! Every rule looks at the whole workspace and reports all it finds, so one run shows all there
//! is to mend.

mod edges;
mod hosts;
mod lints;
mod names;
mod rules;
mod source;
mod std_use;
mod variables;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::metadata::Metadata;

/// One thing that breaks one rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    /// Relative to the workspace.
    path: PathBuf,
    line: usize,
    problem: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.problem)
    }
}

/// Collects violations under one root.
struct Findings<'a> {
    root: &'a Path,
    found: Vec<Violation>,
}

impl Findings<'_> {
    fn add(&mut self, path: &Path, line: usize, problem: String) {
        let path = path.strip_prefix(self.root).unwrap_or(path).to_owned();
        self.found.push(Violation { path, line, problem });
    }
}

/// Checks the workspace; the error lists every violation, one a line.
pub(crate) fn run(tree: &Metadata) -> Result<String, String> {
    let mut findings = Findings { root: &tree.workspace_root, found: Vec::new() };
    edges::check(tree, &mut findings)?;
    lints::check(tree, &mut findings)?;
    hosts::check(tree, &mut findings)?;
    variables::check(&tree.workspace_root, &mut findings)?;
    let mut files = 0;
    for package in &tree.packages {
        let sources = source::load(package.folder())?;
        files += sources.len();
        names::check(package, &mut findings)?;
        for file in &sources {
            file.check_sizes(&mut findings);
            names::check_modules(file, &mut findings);
            std_use::check(package.short_name(), file, &mut findings);
        }
    }
    let mut found = findings.found;
    found.sort();
    found.dedup();
    if found.is_empty() {
        return Ok(format!("{} crates, {files} files: in order", tree.packages.len()));
    }
    let lines: Vec<String> = found.iter().map(Violation::to_string).collect();
    Err(format!("{}\n{} rules broken", lines.join("\n"), lines.len()))
}

/// Every file below `folder` for which `wanted` holds, in a fixed order; a folder for which it
/// does not hold is not entered.
fn files_below(folder: &Path, wanted: &dyn Fn(&Path) -> bool) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        if !folder.is_dir() {
            continue;
        }
        let unreadable = |e| format!("cannot read {}: {e}", folder.display());
        for entry in folder.read_dir().map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let path = entry.path();
            // A link may lead in a circle or out of the tree.
            let kind = entry.file_type().map_err(unreadable)?;
            if kind.is_symlink() || !wanted(&path) {
                continue;
            }
            if kind.is_dir() { open.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Ok(files)
}
