//! Workflow files, loaded as they would be to run them.

use std::path::{Path, PathBuf};

use super::{Known, Remark, Severity, counted};
use crate::catalog::Catalog;
use crate::shelf;

/// A file in a folder for workflows.
pub(super) struct WorkflowFile {
    path: PathBuf,
    /// What is wrong with it.
    errors: Vec<String>,
    /// What is odd about it.
    warnings: Vec<String>,
    is_workflow: bool,
}

/// Loads every file in the project's and the user's folder.
pub(super) fn read(catalog: &Catalog) -> Vec<WorkflowFile> {
    let folders = shelf::folders(&catalog.project).into_iter();
    let paths = folders.flat_map(|folder| files_in(&folder));
    paths.map(|path| judged(path, catalog)).collect()
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_hidden = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    };
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| !is_hidden(path)).collect();
    paths.sort();
    paths
}

fn judged(path: PathBuf, catalog: &Catalog) -> WorkflowFile {
    let is_workflow = shelf::is_workflow(&path);
    let (mut errors, mut warnings) = (vec![], vec![]);
    if is_workflow {
        // Nothing is run: of code only what can be read is looked at.
        (errors, warnings) = catalog.problems_in(&path);
    }
    WorkflowFile { path, errors, warnings, is_workflow }
}

pub(super) fn look(known: &Known) -> Vec<Remark> {
    let is_fine = |file: &&WorkflowFile| file.is_workflow && file.errors.is_empty();
    let fine = known.workflows.iter().filter(is_fine).count();
    let mut remarks = vec![Remark::fine(match fine {
        0 => "the built-in ones can be run".to_owned(),
        number => format!("{} and the built-in ones can be run", counted(number, "file")),
    })];
    for (folder, why) in &known.catalog.shelf.unreadable {
        let text = format!("{}: the folder cannot be read: {why}", known.catalog.shown(folder));
        remarks.push(Remark::new(Severity::Problem, text, "make it a readable folder"));
    }
    for file in &known.workflows {
        let path = file.path.display();
        // What `check` says has its place and its remedy in it.
        let errors = file.errors.iter().map(|text| (Severity::Problem, text));
        let warnings = file.warnings.iter().map(|text| (Severity::Warning, text));
        let said = errors.chain(warnings);
        remarks.extend(said.map(|(severity, text)| Remark::new(severity, text.clone(), "")));
        if !file.is_workflow {
            let text = format!(
                "{path}: left out: workflows are files that end in `.ts`, `.mts`, `.js` or `.json`"
            );
            remarks.push(Remark::new(Severity::Note, text, ""));
        }
    }
    remarks
}
