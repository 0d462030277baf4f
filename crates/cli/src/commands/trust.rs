//! `atomic trust`: trust a repository, or take trust back.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use atomic_registry::project::{Definition, Repository, on_one_line};
use atomic_registry::settings::Values;
use atomic_workflow::typescript::{Authored, hash_of};

use crate::args::TrustArgs;
use crate::catalog::Catalog;
use crate::failure::Failure;
use crate::trust::{Answer, Decision, TrustStore, allow_code, repository_of};
use crate::{home, paint, shelf};

pub(crate) fn trust(args: &TrustArgs) -> Result<ExitCode, Failure> {
    let Some(path) = &args.path else {
        list();
        return Ok(ExitCode::SUCCESS);
    };
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(_) if args.withdraw => return withdraw_deleted(path),
        Err(_) => return Err(missing(path)),
    };
    if args.withdraw {
        return withdraw(&real);
    }
    if real.is_file() {
        return trust_file(path);
    }
    let catalog = Catalog::open(&real, Values::default());
    let Some(mut trust) = catalog.shelf.gate.trust else { return Ok(ExitCode::SUCCESS) };
    trust.remember(Answer::Trust)?;
    let root = trust.repository.root.display();
    if trust.definitions.is_empty() {
        paint::line(&paint::printable(&format!("{root} defines nothing that needs trust yet.")));
        return Ok(ExitCode::SUCCESS);
    }
    paint::line(&paint::printable(&format!("Trusted {root} as it is now:")));
    for line in trust.definitions.iter().flat_map(lines) {
        paint::line(&paint::printable(&line));
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(definition: &Definition) -> Vec<String> {
    let heading = definition.kind.heading();
    let mut lines = definition.lines().into_iter();
    let first = format!("  {heading}  {}", lines.next().unwrap_or_default());
    std::iter::once(first).chain(lines.map(|line| format!("    {line}"))).collect()
}

/// Trusts the code of one workflow file.
fn trust_file(path: &Path) -> Result<ExitCode, Failure> {
    let failed = |why: String| Failure::Failed(format!("{}: {why}", path.display()));
    let found = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let hash = if shelf::is_code(path) {
        let authored = Authored::read(&found, &shelf::root_of(&found)).map_err(|faults| {
            let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
            Failure::Failed(lines.join("\n"))
        })?;
        authored.hash().to_owned()
    } else {
        hash_of(&shelf::text_of(path).map_err(|error| failed(format!("cannot be read: {error}")))?)
    };
    allow_code(&found, &hash)?;
    paint::line(&paint::printable(&format!("Trusted {} as it is now.", path.display())));
    Ok(ExitCode::SUCCESS)
}

fn withdraw(path: &Path) -> Result<ExitCode, Failure> {
    let repository = match path.is_file() {
        true => repository_of(path),
        // The same repository as `atomic trust` finds, also below a folder called `.atomic`.
        false => Repository::of(path, home::user().as_deref()),
    };
    withdraw_from(TrustStore::read(), &repository.identity)
}

/// Withdraws trust from a repository whose folder is gone; another can be cloned in its place.
fn withdraw_deleted(path: &Path) -> Result<ExitCode, Failure> {
    let store = TrustStore::read();
    let root = without_links(path).filter(|root| store.roots().contains(&root.as_path()));
    withdraw_from(store, &root.ok_or_else(|| missing(path))?)
}

/// Returns the absolute path of a missing file, as `canonicalize` named it while it was there.
fn without_links(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    path.ancestors().find_map(|above| {
        let below = path.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.join(below))
    })
}

fn withdraw_from(mut store: TrustStore, root: &Path) -> Result<ExitCode, Failure> {
    store.decide(root, Decision::Withdrawn)?;
    let root = root.display();
    paint::line(&paint::printable(&format!("Nothing in {root} is trusted any more.")));
    Ok(ExitCode::SUCCESS)
}

fn missing(path: &Path) -> Failure {
    Failure::Usage(format!("{}: no such file or folder", path.display()))
}

fn list() {
    let store = TrustStore::read();
    if let Some(problem) = store.problem() {
        paint::warn(problem);
    }
    let mut is_empty = true;
    for root in store.roots() {
        let known = store.about(root);
        if known.trusted.is_empty() && !known.is_trusted {
            continue;
        }
        is_empty = false;
        paint::line(&paint::printable(&root.display().to_string()));
        for id in known.trusted.ids() {
            paint::line(&paint::printable(&format!("  {}", on_one_line(&id.to_string()))));
        }
    }
    if is_empty {
        paint::line("No repository is trusted.");
    }
    if let Some(folder) = home::folder() {
        let files = crate::settings::files(&folder);
        let values = crate::settings::users_own(&files);
        for folder in values.list(&atomic_registry::settings::TRUSTED_FOLDERS).unwrap_or_default() {
            paint::line(&paint::printable(&format!("{folder}  (trusted_folders)")));
        }
    }
}
