//! `atomic doctor`: what is missing, odd or wrong, and what to do about it.
//!
//! First everything is found out ([`Known`]), then each check says what it makes of it. A check
//! does nothing but look at what is known, so a new one is a line in [`CHECKS`] and a function.

mod backend;
mod entities;
mod machine;
mod names;
mod programs;
mod settings;
mod trust;
mod uses;
mod workflows;

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::process::ExitCode;

use atomic_registry::Finding;
use atomic_registry::settings::Values;
use console::style;
use serde_json::json;

use self::machine::HomeFolder;
use self::programs::Probes;
use self::workflows::WorkflowFile;
use crate::args::DoctorArgs;
use crate::catalog::{self, Catalog};
use crate::failure::Failure;
use crate::gate::UntrustedCode;
use crate::paint;
use crate::programs::SearchPath;

/// Everything the checks look at.
struct Known {
    catalog: Catalog,
    workflows: Vec<WorkflowFile>,
    /// What is wrong or odd about settings files and variables.
    settings: Vec<Finding>,
    /// What they set.
    values: Values,
    search_path: SearchPath,
    probes: Probes,
    home: HomeFolder,
}

/// One thing that is looked at.
struct Check {
    title: &'static str,
    look: fn(&Known) -> Vec<Remark>,
}

/// Every check, in the order in which they are shown.
const CHECKS: &[Check] = &[
    Check { title: "Commands, skills and agents", look: entities::look },
    Check { title: "Names", look: names::look },
    Check { title: "Tools and models", look: uses::look },
    Check { title: "Workflows", look: workflows::look },
    Check { title: "Settings", look: settings::look },
    Check { title: "Trust", look: trust::look },
    Check { title: "Agent programs", look: programs::look },
    Check { title: "Backend", look: backend::look },
    Check { title: "This machine", look: machine::look },
];

/// What a check has to say.
#[derive(Debug)]
struct Remark {
    severity: Severity,
    text: String,
    /// What to do, where something can be done.
    remedy: String,
}

/// How bad it is. Only a problem makes `doctor` fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    /// As it should be.
    Fine,
    /// Good to know.
    Note,
    /// Something may not do what is expected of it.
    Warning,
    /// Something does not work.
    Problem,
}

impl Remark {
    fn fine(text: impl Into<String>) -> Self {
        Self::new(Severity::Fine, text, "")
    }

    fn new(severity: Severity, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { severity, text: text.into(), remedy: remedy.into() }
    }
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }

    /// The beginning of a remark: a mark for people, a word in a pipe.
    fn mark(self, in_terminal: bool) -> String {
        if !in_terminal {
            return format!("{}:", self.word());
        }
        match self {
            Self::Fine => style("✓").green(),
            Self::Note => style("·").dim(),
            Self::Warning => style("!").yellow(),
            Self::Problem => style("✗").red(),
        }
        .to_string()
    }
}

pub(crate) fn doctor(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let known = find_out()?;
    let found: Vec<(&Check, Vec<Remark>)> =
        CHECKS.iter().map(|check| (check, (check.look)(&known))).collect();
    for (check, remarks) in &found {
        if !args.json {
            paint::line(&shown(check.title, remarks, std::io::stdout().is_terminal()));
            continue;
        }
        for Remark { severity, text, remedy } in remarks {
            let remark = json!({
                "check": check.title, "severity": severity.word(), "text": text, "remedy": remedy,
            });
            paint::line(&remark.to_string());
        }
    }
    let count = |severity: Severity| {
        found.iter().flat_map(|(_, all)| all).filter(|remark| remark.severity == severity).count()
    };
    if !args.json {
        paint::line(&summary(count(Severity::Problem), count(Severity::Warning)));
    }
    Ok(ExitCode::from(u8::from(count(Severity::Problem) > 0)))
}

/// Finds everything out. Files are read while the programs are asked, so that nothing takes longer
/// than the slowest of them.
fn find_out() -> Result<Known, Failure> {
    let project = catalog::here()?;
    let search_path = SearchPath::of_environment(&project);
    let (files, probes) = std::thread::scope(|scope| {
        let files = scope.spawn(|| {
            let mut catalog = Catalog::open(&project, Values::default());
            catalog.shelf.gate.untrusted = UntrustedCode::NeverRun;
            let workflows = workflows::read(&catalog);
            let settings = settings::read(&project, catalog.is_trusted());
            (catalog, workflows, settings)
        });
        let probes = programs::ask_all(&search_path);
        (files.join(), probes)
    });
    let (catalog, workflows, (settings, values)) =
        files.map_err(|_| Failure::Failed("the files could not be read".to_owned()))?;
    let home = machine::home_folder();
    Ok(Known { catalog, workflows, settings, values, search_path, probes: probes?, home })
}

/// A check and its remarks, as they are read.
fn shown(title: &str, remarks: &[Remark], in_terminal: bool) -> String {
    let mut text = if in_terminal { style(title).bold().to_string() } else { title.to_owned() };
    for Remark { severity, text: said, remedy } in remarks {
        let said = paint::printable(said).replace('\n', "\n  ");
        let _ = write!(text, "\n  {} {said}", severity.mark(in_terminal));
        if !remedy.is_empty() {
            let _ = write!(text, "\n    help: {}", paint::printable(remedy));
        }
    }
    text.push('\n');
    text
}

fn summary(problems: usize, warnings: usize) -> String {
    match (problems, warnings) {
        (0, 0) => "No problems.".to_owned(),
        (0, warnings) => format!("No problems, {}.", counted(warnings, "warning")),
        (problems, 0) => format!("{}.", counted(problems, "problem")),
        (problems, warnings) => {
            format!("{}, {}.", counted(problems, "problem"), counted(warnings, "warning"))
        }
    }
}

/// `1 agent`, `2 agents`.
fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
