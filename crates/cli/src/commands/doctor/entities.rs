//! The files of commands, skills and agents: how many were read, and what is wrong with the rest.

use atomic_registry::{Finding, Kind, Provider, Registry};

use super::{Known, Remark, Severity, counted};
use crate::catalog::Catalog;

pub(super) fn look(known: &Known) -> Vec<Remark> {
    let read = Provider::ALL.iter().filter_map(|provider| read(&known.catalog.registry, *provider));
    let mut remarks: Vec<Remark> = read.collect();
    if remarks.is_empty() {
        remarks.push(Remark::fine("none in the project or the home folder, besides the built-in"));
    }
    let findings = known.catalog.registry.findings.iter();
    // Made by `atomic init` and by everybody else to keep a folder in git.
    let findings = findings.filter(|finding| !finding.path.ends_with(".gitkeep"));
    remarks.extend(findings.map(|finding| remark(finding, &known.catalog)));
    remarks
}

/// What was read from a provider's folders, when there is anything.
fn read(registry: &Registry, provider: Provider) -> Option<Remark> {
    let count = |kind: Kind| match registry.count(Some(provider), kind) {
        0 => None,
        number => Some(counted(number, kind.word())),
    };
    let counts: Vec<String> = Kind::ALL.into_iter().filter_map(count).collect();
    let text = format!("{}: {}", provider.name(), counts.join(", "));
    (!counts.is_empty()).then(|| Remark::fine(text))
}

/// A finding with its place.
pub(super) fn remark(finding: &Finding, catalog: &Catalog) -> Remark {
    use atomic_registry::Severity::{Aside, Odd, Skipped};
    let (severity, what) = match finding.severity {
        Aside => (Severity::Note, "left out: "),
        Skipped => (Severity::Problem, "left out: "),
        Odd => (Severity::Warning, ""),
    };
    let text = format!("{}: {what}{}", place(finding, catalog), finding.message);
    // A name in a stranger's file must not look like a remark.
    let text = text.replace('\n', "\\n");
    Remark::new(severity, text, finding.remedy.clone())
}

/// The file of a finding, and the line in it where one is meant.
pub(super) fn place(finding: &Finding, catalog: &Catalog) -> String {
    let line = finding.line.map_or_else(String::new, |line| format!(":{line}"));
    format!("{}{line}", catalog.shown(&finding.path))
}
