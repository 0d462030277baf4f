//! `atomic check`: everything that is wrong with a workflow, a command, a skill or an agent,
//! before it runs.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use atomic_registry::{Class, Entity, Finding, Names, Severity};
use atomic_workflow::descriptor::{Fault, Library as _};

use crate::args::CheckArgs;
use crate::catalog::Catalog;
use crate::failure::Failure;
use crate::gate::UntrustedCode;
use crate::load::Loaded;
use crate::{paint, uses};

/// What is wrong with something, as it is shown.
#[derive(Default)]
struct Report {
    errors: Vec<String>,
    warnings: Vec<String>,
}

pub(crate) fn check(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let mut catalog = Catalog::here(crate::settings::trust_flag(args.trust))?;
    // A file that is named is asked about; nothing is when everything is checked.
    if !args.what.is_empty() {
        catalog.shelf.gate.untrusted = UntrustedCode::Prompt;
    }
    let index = Index::of(&catalog);
    let mut broken = 0;
    let mut tell = |what: &str, report: Result<Report, Failure>| match report {
        Ok(Report { errors, warnings }) => {
            errors
                .iter()
                .chain(&warnings)
                .for_each(|problem| paint::line(&paint::printable(problem)));
            let verdict = verdict(errors.len(), warnings.len());
            paint::line(&format!("{}: {verdict}", paint::label(what)));
            broken += usize::from(!errors.is_empty());
        }
        Err(failure) => {
            paint::complain(&failure.to_string());
            broken += 1;
        }
    };
    for text in &args.what {
        tell(text, index.checked(text));
    }
    if args.what.is_empty() {
        for name in catalog.shelf.names() {
            // By its file: whatever its name looks like, it is this one.
            let loaded = match catalog.shelf.file(&name) {
                Some(path) => catalog.read(path),
                None => catalog.load(&name),
            };
            tell(&name, loaded.map(Report::of_workflow));
        }
        let mut report = Report::of(catalog.registry.findings.iter());
        report.add(&uses::findings(catalog.registry.every()));
        tell("commands, skills and agents", Ok(report));
    }
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Everything that is known about files, by their paths.
struct Index<'c> {
    catalog: &'c Catalog,
    files: BTreeMap<&'c Path, About<'c>>,
    /// The same paths by what they really are, once somebody asked.
    real: OnceCell<BTreeMap<PathBuf, &'c Path>>,
    names: OnceCell<Names>,
}

/// What is known about a file.
#[derive(Default)]
struct About<'c> {
    entities: Vec<&'c Entity>,
    findings: Vec<&'c Finding>,
}

impl<'c> Index<'c> {
    fn of(catalog: &'c Catalog) -> Self {
        let mut files: BTreeMap<&Path, About<'_>> = BTreeMap::new();
        for entity in catalog.registry.every() {
            if let Some(path) = &entity.origin.path {
                files.entry(path).or_default().entities.push(entity);
            }
        }
        for finding in &catalog.registry.findings {
            files.entry(&finding.path).or_default().findings.push(finding);
        }
        Self { catalog, files, real: OnceCell::new(), names: OnceCell::new() }
    }

    fn checked(&self, text: &str) -> Result<Report, Failure> {
        let is_prompt =
            Path::new(text).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md"));
        if is_prompt {
            return self.file(Path::new(text));
        }
        if let Some(report) = self.settings(Path::new(text)) {
            return Ok(report);
        }
        let not_a_workflow = match self.catalog.load(text) {
            Ok(loaded) => return Ok(Report::of_workflow(loaded)),
            Err(failure) => failure,
        };
        let names = self.names.get_or_init(|| self.catalog.names());
        match names.find(text).map(|named| (named.class, &named.name)) {
            Some((Class::Entity(kind), name)) => {
                let entity = self.catalog.registry.find(kind, name);
                let path = entity.and_then(|entity| entity.origin.path.as_deref());
                Ok(self.about(path.unwrap_or(Path::new(""))))
            }
            Some((Class::BuiltIn, _)) => Ok(Report::default()),
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
    fn settings(&self, path: &Path) -> Option<Report> {
        let name = path.file_name()?.to_str()?;
        let is_opencodes = matches!(name, "opencode.json" | "opencode.jsonc")
            || (name == "config.json" && path.parent()?.ends_with(".config/opencode"));
        if is_opencodes && path.exists() {
            return Some(self.about(self.known(path).unwrap_or(path)));
        }
        let is_ours = name == "settings.json" && path.parent()?.ends_with(".atomic");
        if !is_ours {
            return None;
        }
        let files = crate::settings::files(&self.catalog.project);
        let findings = atomic_registry::settings::findings(&files, []);
        let real = path.canonicalize().ok();
        let of_it = |finding: &&Finding| finding.path.canonicalize().ok() == real;
        Some(Report::of(findings.iter().filter(of_it)))
    }

    /// A file that should hold a command, a skill or an agent.
    fn file(&self, path: &Path) -> Result<Report, Failure> {
        if let Some(known) = self.known(path) {
            return Ok(self.about(known));
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
    fn known(&self, path: &Path) -> Option<&'c Path> {
        let wanted = std::path::absolute(path).ok()?;
        if let Some((known, _)) = self.files.get_key_value(wanted.as_path()) {
            return Some(known);
        }
        let real = self.real.get_or_init(|| {
            let mut paths = BTreeMap::new();
            for known in self.files.keys() {
                if let Ok(real) = known.canonicalize() {
                    paths.entry(real).or_insert(*known);
                }
            }
            paths
        });
        real.get(&path.canonicalize().ok()?).copied()
    }

    /// What is said about a file, and about what the entities in it name.
    fn about(&self, path: &Path) -> Report {
        let Some(about) = self.files.get(path) else { return Report::default() };
        let mut report = Report::of(about.findings.iter().copied());
        report.add(&uses::findings(about.entities.iter().copied()));
        report
    }
}

impl Report {
    fn of<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> Self {
        let mut report = Self::default();
        report.add(findings);
        report
    }

    fn of_workflow(loaded: Loaded) -> Self {
        let Loaded { errors, mut warnings, refused, .. } = loaded;
        // What is not trusted may still be sound.
        warnings.extend(refused.map(|fault| {
            let message = format!("only what can be read of it was checked: {}", fault.message);
            Fault { is_error: false, message, ..fault }.to_string()
        }));
        Self { errors, warnings }
    }

    fn add<'f>(&mut self, findings: impl IntoIterator<Item = &'f Finding>) {
        for finding in findings {
            match finding.severity {
                Severity::Skipped => self.errors.push(finding.to_string()),
                Severity::Odd => self.warnings.push(finding.to_string()),
                Severity::Aside => {}
            }
        }
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
