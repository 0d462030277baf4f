//! Settings files and variables: what is wrong with them, and what nobody knows.

use std::path::Path;

use atomic_registry::Finding;
use atomic_registry::settings::Values;

use super::entities::place;
use super::{Known, Remark, Severity};

/// Reads the files of the project and of the user, and the environment: what is said about them,
/// and what they say.
pub(super) fn read(project: &Path, trusted: bool) -> (Vec<Finding>, Values) {
    let files = crate::settings::files(project);
    let findings = atomic_registry::settings::findings(&files, std::env::vars_os());
    (findings, atomic_registry::settings::read(&files, trusted, std::env::vars_os()).values)
}

pub(super) fn look(known: &Known) -> Vec<Remark> {
    if known.settings.is_empty() {
        return vec![Remark::fine("they can be used; atomic config shows them")];
    }
    let remark = |finding: &Finding| {
        let severity = match finding.severity {
            atomic_registry::Severity::Skipped => Severity::Problem,
            atomic_registry::Severity::Odd | atomic_registry::Severity::Aside => Severity::Warning,
        };
        let text = format!("{}: {}", place(finding, &known.catalog), finding.message);
        Remark::new(severity, text, finding.remedy.clone())
    };
    known.settings.iter().map(remark).collect()
}
