//! `atomic check`: everything that is wrong with a workflow, a command, a skill or an agent,
//! before it runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use atomic_registry::{Class, Finding, Severity};
use atomic_workflow::descriptor::Library as _;

use crate::args::CheckArgs;
use crate::catalog::Catalog;
use crate::failure::Failure;
use crate::paint;

/// What is wrong with something, as it is shown.
struct Report {
    errors: Vec<String>,
    warnings: Vec<String>,
}

pub(crate) fn check(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let catalog = Catalog::here()?;
    let mut broken = 0;
    let mut tell = |what: &str, report: Result<Report, Failure>| match report {
        Ok(Report { errors, warnings }) => {
            errors
                .iter()
                .chain(&warnings)
                .for_each(|problem| paint::line(&paint::printable(problem)));
            paint::line(&format!("{what}: {}", verdict(errors.len(), warnings.len())));
            broken += usize::from(!errors.is_empty());
        }
        Err(failure) => {
            paint::complain(&failure.to_string());
            broken += 1;
        }
    };
    for text in &args.what {
        tell(text, checked(&catalog, text));
    }
    if args.what.is_empty() {
        for name in catalog.shelf.names() {
            tell(&name, workflow(&catalog, &name));
        }
        tell("commands, skills and agents", Ok(Report::of(catalog.registry.findings.iter())));
    }
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn checked(catalog: &Catalog, text: &str) -> Result<Report, Failure> {
    let is_prompt =
        Path::new(text).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md"));
    if is_prompt {
        return file(catalog, Path::new(text));
    }
    if let Some(report) = settings(catalog, Path::new(text)) {
        return Ok(report);
    }
    let not_a_workflow = match workflow(catalog, text) {
        Ok(report) => return Ok(report),
        Err(failure) => failure,
    };
    let names = catalog.names();
    match names.find(text).map(|named| (named.class, &named.name)) {
        Some((Class::Entity(kind), name)) => {
            let entity = catalog.registry.find(kind, name);
            let path = entity.and_then(|entity| entity.origin.path.clone());
            Ok(about(catalog, &path.unwrap_or_default()))
        }
        Some((Class::BuiltIn, _)) => Ok(Report { errors: vec![], warnings: vec![] }),
        // It could not even be read.
        Some((Class::Workflow, _)) => Err(not_a_workflow),
        None if text.contains(['/', '.']) => Err(not_a_workflow),
        None => match names.get(text) {
            Ok(_) => Err(not_a_workflow),
            Err(unknown) => Err(Failure::Usage(unknown.to_string())),
        },
    }
}

/// A file that holds settings, ours or those of OpenCode, in which entities are.
fn settings(catalog: &Catalog, path: &Path) -> Option<Report> {
    let name = path.file_name()?.to_str()?;
    if matches!(name, "opencode.json" | "opencode.jsonc") && path.exists() {
        return Some(about(catalog, known(catalog, path).unwrap_or(path)));
    }
    let files = crate::settings::files(&catalog.project);
    let findings = atomic_registry::settings::findings(&files, []);
    let is_ours = name == "settings.json" && path.parent()?.ends_with(".atomic");
    let real = path.canonicalize().ok();
    let of_it = |finding: &&Finding| finding.path.canonicalize().ok() == real;
    is_ours.then(|| Report::of(findings.iter().filter(of_it)))
}

fn workflow(catalog: &Catalog, text: &str) -> Result<Report, Failure> {
    let loaded = catalog.load(text)?;
    Ok(Report { errors: loaded.errors, warnings: loaded.warnings })
}

/// A file that should hold a command, a skill or an agent.
fn file(catalog: &Catalog, path: &Path) -> Result<Report, Failure> {
    if let Some(known) = known(catalog, path) {
        return Ok(about(catalog, known));
    }
    Err(Failure::Failed(if path.exists() {
        format!(
            "{}: it is in none of the folders that are read\n  help: put agents into \
             .atomic/agents, commands into .atomic/commands, skills into .atomic/skills/<name>/SKILL.md",
            path.display()
        )
    } else {
        format!("{}: there is no such file", path.display())
    }))
}

/// A path as the registry knows it: written the same or, only when none is, leading there.
fn known<'c>(catalog: &'c Catalog, path: &Path) -> Option<&'c Path> {
    let findings = || catalog.registry.findings.iter().map(|finding| finding.path.as_path());
    let all = || catalog.registry.files().map(PathBuf::as_path).chain(findings());
    let wanted = std::path::absolute(path).ok()?;
    all().find(|known| *known == wanted).or_else(|| {
        let real = path.canonicalize().ok()?;
        all().find(|known| known.canonicalize().is_ok_and(|known| known == real))
    })
}

fn about(catalog: &Catalog, path: &Path) -> Report {
    let of_it = |finding: &&Finding| finding.path == path;
    Report::of(catalog.registry.findings.iter().filter(of_it))
}

impl Report {
    fn of<'f>(findings: impl Iterator<Item = &'f Finding>) -> Self {
        let (mut errors, mut warnings) = (vec![], vec![]);
        for finding in findings {
            match finding.severity {
                Severity::Skipped => errors.push(finding.to_string()),
                Severity::Odd => warnings.push(finding.to_string()),
                Severity::Aside => {}
            }
        }
        Self { errors, warnings }
    }
}

fn verdict(errors: usize, warnings: usize) -> String {
    let count = |number: usize, what: &str| {
        if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
    };
    match (errors, warnings) {
        (0, 0) => "ok".to_owned(),
        (0, warnings) => format!("ok, {}", count(warnings, "warning")),
        (errors, 0) => count(errors, "error"),
        (errors, warnings) => {
            format!("{}, {}", count(errors, "error"), count(warnings, "warning"))
        }
    }
}
