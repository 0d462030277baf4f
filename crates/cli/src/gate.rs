//! The gate before the code of a workflow file is run: only code that the user trusts passes.
//!
//! A repository that was cloned must not run code by being looked at. Code in the user's own folder
//! is the user's; everything else needs trust ([`crate::trust`]), and again when it has changed.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use atomic_workflow::descriptor::Fault;
use atomic_workflow::typescript::{Authored, hash_of, shown};
use atomic_workflow::{Source, Workflow};

use crate::failure::Failure;
use crate::shelf::{FOLDER, is_code};
use crate::trust::{
    Answer, Asking, Decision, ProjectTrust, TrustStore, allow_code, ask, repository_of,
};
use crate::{home, paint};

/// The code of the problem that code is not trusted.
pub(crate) const UNTRUSTED: &str = "ATM720";

/// What happens to code that is not trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UntrustedCode {
    /// A person at the terminal is asked about it.
    Prompt,
    /// It is refused.
    #[default]
    Refuse,
    /// No code is run at all, trusted or not: the command only looks around.
    NeverRun,
}

/// Code that is run as a whole, and trusted as a whole.
#[derive(Clone, Copy)]
pub(crate) struct CodeUnit<'c> {
    pub(crate) path: &'c Path,
    /// The hash of everything it consists of.
    pub(crate) hash: &'c str,
    /// The number of files it imports.
    pub(crate) imports: usize,
    /// The description it gives of itself.
    pub(crate) description: &'c str,
}

impl<'c> CodeUnit<'c> {
    /// A file of code with its imports.
    pub(crate) fn of(authored: &'c Authored) -> Self {
        Self {
            path: authored.found(),
            hash: authored.hash(),
            imports: authored.imports(),
            description: authored.description().unwrap_or_default(),
        }
    }

    /// A file that consists of its text alone.
    pub(crate) fn plain(path: &'c Path, hash: &'c str) -> Self {
        Self { path, hash, imports: 0, description: "" }
    }
}

/// Decides whether code may be run.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    pub(crate) trust: Option<ProjectTrust>,
    pub(crate) untrusted: UntrustedCode,
    /// The hashes of code that may be run this once, because a person was asked elsewhere.
    pub(crate) allowed: Vec<String>,
    /// The code that was refused although a person could be asked about it.
    pub(crate) refused: RefCell<Vec<Refused>>,
}

/// Code that was refused.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) path: PathBuf,
    pub(crate) hash: String,
    /// The text of a question about it.
    pub(crate) about: String,
    /// Whether the user goes on without it, and is not asked again.
    pub(crate) is_declined: bool,
}

impl Gate {
    /// Returns the code refused so far, once.
    pub(crate) fn take_refused(&self) -> Vec<Refused> {
        self.refused.take()
    }

    /// Admits code, or says why not.
    pub(crate) fn admit(&self, unit: CodeUnit<'_>) -> Result<(), Vec<Fault>> {
        let path = unit.path;
        if self.untrusted == UntrustedCode::NeverRun {
            let fault = Fault::of_file(path, UNTRUSTED, "its code is not run here", "");
            return Err(vec![fault]);
        }
        let is_covered = || self.trust.as_ref().is_some_and(|trust| trust.covers(path, unit.hash));
        let is_allowed = self.allowed.iter().any(|hash| hash == unit.hash);
        if is_allowed || is_users_own(path) || is_covered() {
            remember_run(path, unit.hash);
            return Ok(());
        }
        let has_changed =
            self.trust.as_ref().is_some_and(|trust| trust.has_changed(path, unit.hash));
        let about = about(unit, has_changed);
        // The question about the whole repository has listed this code already.
        let is_declined = self.trust.as_ref().is_some_and(|trust| trust.has_declined(path));
        let may_ask = self.untrusted == UntrustedCode::Prompt && !is_declined;
        if !may_ask || Asking::at_terminal() != Asking::Terminal {
            let (path, hash) = (path.to_owned(), unit.hash.to_owned());
            self.refused.borrow_mut().push(Refused { path, hash, about, is_declined });
            return Err(refusal(unit.path, has_changed));
        }
        match ask(&paint::printable(&about)) {
            Answer::Trust => {
                // It was decided for this time, even if it cannot be remembered.
                if let Err(failure) = allow_code(path, unit.hash) {
                    paint::warn(&failure.to_string());
                }
            }
            Answer::Once => {}
            Answer::GoOnWithout | Answer::None => return Err(refusal(path, has_changed)),
        }
        remember_run(path, unit.hash);
        Ok(())
    }

    /// Admits the documents that a project's workflow consists of: they have commands in them. A
    /// document that is named by its path is not asked about: it can be read, and was meant.
    pub(crate) fn admit_documents(&self, workflow: &Workflow) -> Result<(), Vec<Fault>> {
        let mut sources: Vec<&Source> = workflow.source.iter().collect();
        while let Some(source) = sources.pop() {
            sources.extend(source.uses.values());
            if let Some(path) = shelved(source.found()).filter(|_| !is_code(source.found())) {
                self.admit(CodeUnit::plain(&path, &hash_of(&source.text)))?;
            }
        }
        Ok(())
    }

    /// Admits the code that a session has kept: a session can lie in a project that was cloned.
    pub(crate) fn admit_kept(&self, authored: &Authored) -> Result<(), Vec<Fault>> {
        let is_said = self.trust.as_ref().is_some_and(ProjectTrust::is_said);
        if is_said || TrustStore::read().has_run(authored.hash()) {
            return Ok(());
        }
        let why = "the session has code that was never run on this machine";
        let remedy = "if you know where the session comes from, pass --trust";
        Err(vec![Fault::of_file(authored.path(), UNTRUSTED, why, remedy)])
    }
}

/// Remembers that code was run, so that a session that has kept it can be resumed.
fn remember_run(path: &Path, hash: &str) {
    let mut store = TrustStore::read();
    if !store.has_run(hash) {
        // Without a home folder its sessions are asked about when they are resumed.
        let decision = Decision::Ran { hash: hash.to_owned() };
        let _ = store.decide(&repository_of(path).identity, decision);
    }
}

/// Remembers that refused code may be run, also another time.
pub(crate) fn remember(refused: &Refused) -> Result<(), Failure> {
    allow_code(&refused.path, &refused.hash)
}

/// Whether a file is in the user's own folder for workflows. What users have put there is theirs,
/// wherever it leads.
fn is_users_own(path: &Path) -> bool {
    let own = home::folder().and_then(|folder| folder.join("workflows").canonicalize().ok());
    let is_inside = |own: &PathBuf| {
        let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
        path.starts_with(own) || folder.is_some_and(|folder| folder.starts_with(own))
    };
    own.is_some_and(|own| is_inside(&own))
}

/// Where a file lies that was found in the workflows of a project, or of the user: not where it
/// leads, for a link must not be a way around being asked.
fn shelved(path: &Path) -> Option<PathBuf> {
    let is_shelf = |path: &Path| path.parent().is_some_and(|folder| folder.ends_with(FOLDER));
    let found = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if !is_shelf(&found) {
        return path.canonicalize().ok().filter(|real| is_shelf(real));
    }
    let name = found.file_name()?;
    // Of `…/x/.atomic/workflows/a.json` the folder `…/x`.
    let project = found.ancestors().nth(3)?;
    let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    Some(project.join(FOLDER).join(name))
}

/// What a person should know who is asked about code.
fn about(unit: CodeUnit<'_>, has_changed: bool) -> String {
    let imports = match unit.imports {
        0 => String::new(),
        1 => " and a file it imports".to_owned(),
        number => format!(" and {number} files it imports"),
    };
    let why = if has_changed {
        "This workflow has changed since you trusted it"
    } else {
        "This workflow is not trusted yet"
    };
    let mut lines = vec![format!("{why}:"), format!("  file  {}{imports}", unit.path.display())];
    let origin = repository_of(unit.path).origin();
    lines.extend(origin.map(|address| format!("  from  {address}")));
    if !unit.description.is_empty() {
        lines.push(format!("  says  {}", paint::one_line(unit.description)));
    }
    lines.push("Its code can start commands and change files here.".to_owned());
    lines.join("\n")
}

fn refusal(path: &Path, has_changed: bool) -> Vec<Fault> {
    let why = if has_changed {
        "the workflow has changed since you trusted it"
    } else {
        "the workflow is not trusted yet"
    };
    // A repository is trusted with the workflows in its own folder for them.
    let is_shelved = path.parent().is_some_and(|folder| folder.ends_with(FOLDER));
    let what = if is_shelved { repository_of(path).root } else { shown(path) };
    let remedy =
        format!("read it, then run: atomic trust {}; or pass --trust this once", what.display());
    vec![Fault::of_file(&shown(path), UNTRUSTED, why, remedy)]
}
