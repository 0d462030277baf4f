//! The files of commands, skills and agents: how many were read, and what is wrong with the rest.

use atomic_registry::{Finding, Folders, Kind, Provider, Registry};

use super::{Known, Remark, Severity, counted, short};

pub(super) fn look(known: &Known) -> Vec<Remark> {
    let read = Provider::ALL.iter().filter_map(|provider| read(&known.registry, *provider));
    let mut remarks: Vec<Remark> = read.collect();
    if remarks.is_empty() {
        remarks.push(Remark::fine("none in the project or the home folder, besides the built-in"));
    }
    let findings = known.registry.findings.iter();
    remarks.extend(findings.map(|finding| remark(finding, &known.folders)));
    remarks
}

/// What was read from a provider's folders, when there is anything.
fn read(registry: &Registry, provider: Provider) -> Option<Remark> {
    let count = |kind: Kind| match registry.count(provider, kind) {
        0 => None,
        number => Some(counted(number, kind.word())),
    };
    let counts: Vec<String> = Kind::ALL.into_iter().filter_map(count).collect();
    let text = format!("{}: {}", provider.name(), counts.join(", "));
    (!counts.is_empty()).then(|| Remark::fine(text))
}

/// A finding with its place. Where nothing is to be done about it, it is only good to know.
fn remark(finding: &Finding, folders: &Folders) -> Remark {
    use atomic_registry::Severity::{Odd, Skipped};
    let path = short(&finding.path, folders);
    let line = finding.line.map_or_else(String::new, |line| format!(":{line}"));
    let (severity, what) = match finding.severity {
        Skipped if finding.remedy.is_empty() => (Severity::Note, "left out: "),
        Skipped => (Severity::Problem, "left out: "),
        Odd => (Severity::Warning, ""),
    };
    let text = format!("{path}{line}: {what}{}", finding.message);
    Remark::new(severity, text, finding.remedy.clone())
}
