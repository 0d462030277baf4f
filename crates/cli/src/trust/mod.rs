//! Trust in a repository: whether what a project defines is used.
//!
//! This is the one owner of the decision. Every command opens a project through
//! [`Catalog`](crate::catalog::Catalog), which holds a [`ProjectTrust`]; settings, registry,
//! workflow code and agent programs follow it.

mod change;
mod compare;
mod definitions;
mod question;
mod remembered;
mod store;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use atomic_registry::project::{Definition, DefinitionKind, Repository, on_one_line};
use atomic_registry::settings::{TRUSTED_FOLDERS, Values};

pub(crate) use change::Change;
pub(crate) use definitions::{definitions_of, workflow_definition};
pub(crate) use question::{Answer, ask, question_text};
pub(crate) use remembered::snapshot;
use remembered::{Agreed, Remembered, Snapshot};
use store::SeenState;
pub(crate) use store::{Decision, TrustStore};

use crate::failure::Failure;
use crate::{home, paint};

/// Whether what a project defines is used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The user says so for this time.
    Said(bool),
    /// The project defines nothing that needs trust.
    Nothing,
    /// The repository lies in a folder in which everything is trusted.
    InTrustedFolder,
    /// The user trusts the definitions as they are.
    Trusted,
    /// The definitions are used by this run only.
    Once,
    /// The user wants to go on without them.
    Declined,
    /// Nothing was decided yet.
    Undecided,
    /// The user trusted the repository, and definitions have changed since.
    Changed(Vec<Change>),
    /// The user trusted the repository in another folder, and this one has definitions that were
    /// not listed then.
    Unseen(Vec<Change>),
}

/// An answer to the question about trust, and the definitions it was given about.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    answer: Answer,
    about: Snapshot,
}

/// Who can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    /// A person at the terminal.
    Terminal,
    /// Nobody: the command goes on without what is not trusted, or refuses.
    Nobody,
    /// Nobody has to be: the command only shows things.
    Looking,
}

impl Asking {
    /// A person, if one is at the terminal.
    pub(crate) fn if_somebody(is_there: bool) -> Self {
        if is_there { Self::Terminal } else { Self::Nobody }
    }

    /// A person, if standard input and standard error are a terminal.
    pub(crate) fn at_terminal() -> Self {
        Self::if_somebody(std::io::stdin().is_terminal() && std::io::stderr().is_terminal())
    }
}

/// The trust in the repository of one folder.
#[derive(Clone, Debug)]
pub(crate) struct ProjectTrust {
    pub(crate) repository: Repository,
    /// Everything the project defines.
    pub(crate) definitions: Vec<Definition>,
    pub(crate) standing: Standing,
    folder: PathBuf,
    remembered: Remembered,
    trusted_folders: Vec<PathBuf>,
    /// The reason why the user's decisions cannot be read.
    problem: Option<String>,
}

impl ProjectTrust {
    /// Finds out how things stand; asks nobody and changes nothing. `users` are the values that
    /// are the user's own: flags, variables, and the user's file.
    pub(crate) fn of(folder: &Path, definitions: Vec<Definition>, users: &Values) -> Self {
        let repository = Repository::of(folder, home::user().as_deref());
        let store = TrustStore::read();
        let remembered = store.about(&repository.identity);
        let problem = store.problem().map(str::to_owned);
        let trusted_folders = trusted_folders(users);
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let standing = Standing::Undecided;
        let mut trust = Self {
            repository,
            definitions,
            standing,
            folder,
            remembered,
            trusted_folders,
            problem,
        };
        trust.standing = trust.found(users);
        trust
    }

    /// Whether a repository lies in a folder in which everything is trusted. A worktree lies where
    /// its repository does, too.
    fn is_in_trusted_folder(&self, repository: &Repository) -> bool {
        let Repository { root, identity, .. } = repository;
        let mut folders = self.trusted_folders.iter();
        folders.any(|folder| root.starts_with(folder) || identity.starts_with(folder))
    }

    /// Whether what the project defines is used.
    pub(crate) fn is_trusted(&self) -> bool {
        match self.standing {
            Standing::Said(is_trusted) => is_trusted,
            Standing::Nothing | Standing::InTrustedFolder | Standing::Trusted | Standing::Once => {
                true
            }
            Standing::Declined
            | Standing::Undecided
            | Standing::Changed(_)
            | Standing::Unseen(_) => false,
        }
    }

    /// Whether the user says for this time that everything may be used.
    pub(crate) fn is_said(&self) -> bool {
        self.standing == Standing::Said(true)
    }

    /// Settles whether the definitions are used, before something acts: asks a person who is
    /// there, and otherwise says what is not used. Definitions that have changed since they were
    /// trusted are refused then, because one of them may be there to protect.
    pub(crate) fn settle(&mut self, asking: Asking) -> Result<(), Failure> {
        if let Some(problem) = self.problem.as_ref().filter(|_| asking != Asking::Looking) {
            paint::warn(&format!("{problem}; no repository is trusted by a decision in it"));
        }
        match asking {
            Asking::Terminal if self.is_open() => {
                let answer = ask(&question_text(self));
                self.answer(answer)?;
            }
            Asking::Nobody => self.refusal().map_or(Ok(()), Err)?,
            Asking::Terminal | Asking::Looking => {}
        }
        if asking == Asking::Looking {
            return Ok(());
        }
        if matches!(self.standing, Standing::Said(true)) && !self.definitions.is_empty() {
            self.remember_once();
        }
        if let Some(line) = self.unused() {
            paint::warn(&line);
        }
        Ok(())
    }

    /// Whether a person has to be asked.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.standing, Standing::Undecided | Standing::Changed(_) | Standing::Unseen(_))
    }

    /// Takes what a person has answered for this time.
    fn take(&mut self, answer: Answer) {
        self.standing = match answer {
            Answer::Trust => Standing::Trusted,
            Answer::Once => Standing::Once,
            Answer::GoOnWithout | Answer::None => Standing::Declined,
        };
    }

    /// Takes what a person has answered, and remembers it if that is possible. Without an answer,
    /// definitions that have changed since they were trusted are refused.
    pub(crate) fn answer(&mut self, answer: Answer) -> Result<Answered, Failure> {
        if let (Answer::None, Some(refusal)) = (answer, self.refusal()) {
            return Err(refusal);
        }
        if let Err(failure) = self.remember(answer) {
            paint::warn(&failure.to_string());
        }
        Ok(self.answered(answer))
    }

    /// An answer about the definitions as they are.
    pub(crate) fn answered(&self, answer: Answer) -> Answered {
        Answered { answer, about: snapshot(&self.definitions) }
    }

    /// Applies an answer that was given earlier in the same session, unless definitions have
    /// changed since.
    pub(crate) fn apply(&mut self, answered: &Answered) {
        if self.is_open() && answered.about == snapshot(&self.definitions) {
            self.take(answered.answer);
        }
    }

    /// Takes what a person has answered, and remembers it.
    pub(crate) fn remember(&mut self, answer: Answer) -> Result<(), Failure> {
        let open = self.open();
        self.take(answer);
        let folder = self.folder.strip_prefix(&self.repository.root).unwrap_or(&self.folder);
        let decision = match answer {
            Answer::Trust => {
                let state = self.state(snapshot(&self.definitions), &open);
                Decision::Trusted { folder: folder.to_owned(), state }
            }
            Answer::GoOnWithout => {
                let definitions = snapshot(open.iter().filter_map(Change::definition));
                Decision::Declined(self.state(definitions, &open))
            }
            Answer::Once => {
                self.remember_once();
                return Ok(());
            }
            // Nobody answered, so nothing was decided.
            Answer::None => return Ok(()),
        };
        TrustStore::read().decide(&self.repository.identity, decision)
    }

    /// The state of this worktree that a decision about these definitions is about.
    fn state(&self, definitions: Snapshot, open: &[Change]) -> SeenState {
        let removed = open.iter().filter_map(|change| match change {
            Change::Removed { id, .. } => Some(id.clone()),
            Change::Added(_) | Change::Unseen(_) | Change::Changed { .. } => None,
        });
        let removed: Vec<_> = removed.collect();
        let is_root = removed.is_empty() || self.repository.root == self.repository.identity;
        let worktree = if is_root { PathBuf::new() } else { self.repository.root.clone() };
        SeenState { definitions, removed, worktree }
    }

    /// Lets the run that begins now be resumed with the same definitions.
    fn remember_once(&self) {
        let state = self.state(snapshot(&self.definitions), &self.open());
        // Without a home folder the resumed run is asked about.
        let _ = TrustStore::read().decide(&self.repository.identity, Decision::Once(state));
    }

    /// Lets a session go on as it began. One that began with trust keeps it while the definitions
    /// are the same; `checks` are the checks it has run so far, which it may have made itself.
    pub(crate) fn continue_session(&mut self, began_trusted: bool, checks: &[String]) {
        if !began_trusted || !self.is_open() {
            return;
        }
        let is_own_check = |change: &Change| {
            let is_own =
                |one: &Definition| one.kind == DefinitionKind::Check && checks.contains(&one.name);
            change.definition().is_some_and(is_own)
        };
        let mut open = self.open();
        open.retain(|change| !is_own_check(change));
        let root = &self.repository.root;
        let is_seen = |once: &Agreed| open.iter().all(|change| once.covers(change, root));
        let is_trusted = open.is_empty() && !self.remembered.is_withdrawn;
        if is_trusted || self.remembered.once.iter().any(is_seen) {
            self.standing = Standing::Once;
        }
    }

    /// The line about what is not used, when something is not.
    pub(crate) fn unused(&self) -> Option<String> {
        if self.is_trusted() || self.definitions.is_empty() {
            return None;
        }
        let why = match self.remembered.is_trusted && self.standing != Standing::Said(false) {
            true => "this folder has definitions that you have not trusted",
            false => "this repository is not trusted",
        };
        let listed = summary(&self.definitions);
        let command = self.command();
        Some(format!("not used, because {why}: {listed} (to use them: {command})"))
    }

    /// Whether workflow code may be run: `path` is where it was found.
    pub(crate) fn covers(&self, path: &Path, digest: &str) -> bool {
        let definition = workflow_definition(&self.repository.root, path, digest);
        match &self.standing {
            Standing::Said(is_trusted) => *is_trusted,
            Standing::InTrustedFolder if path.starts_with(&self.repository.root) => true,
            Standing::Once | Standing::Trusted
                if self
                    .definitions
                    .iter()
                    .any(|one| one.id() == definition.id() && one.digest == definition.digest) =>
            {
                true
            }
            Standing::Nothing
            | Standing::InTrustedFolder
            | Standing::Trusted
            | Standing::Once
            | Standing::Declined
            | Standing::Undecided
            | Standing::Changed(_)
            | Standing::Unseen(_) => self.is_remembered(path, digest),
        }
    }

    /// Whether the user has allowed this workflow code before, in whichever repository it lies.
    fn is_remembered(&self, path: &Path, digest: &str) -> bool {
        let repository = repository_of(path);
        let known = TrustStore::read().about(&repository.identity);
        let definition = workflow_definition(&repository.root, path, digest);
        let id = definition.id();
        let is_refused = known.is_withdrawn || known.declined.has(&id, digest);
        known.trusted.has(&id, digest) || !is_refused && self.is_in_trusted_folder(&repository)
    }

    /// Whether the user goes on without a workflow file that was listed in the question.
    pub(crate) fn has_declined(&self, path: &Path) -> bool {
        let id = workflow_definition(&self.repository.root, path, "").id();
        self.standing == Standing::Declined
            && self.definitions.iter().any(|definition| definition.id() == id)
    }

    /// Whether workflow code was allowed before, as it was then.
    pub(crate) fn has_changed(&self, path: &Path, digest: &str) -> bool {
        let repository = repository_of(path);
        let known = TrustStore::read().about(&repository.identity);
        let id = workflow_definition(&repository.root, path, digest).id();
        known.trusted.newest(&id).is_some() && !known.trusted.has(&id, digest)
    }
}

/// The repository in which a file lies.
pub(crate) fn repository_of(path: &Path) -> Repository {
    let folder = path.parent().unwrap_or(path);
    // Outside of a repository, of `…/x/.atomic/workflows/a.ts` the folder `…/x`.
    let around = folder.ancestors().find(|above| above.ends_with(".atomic"));
    let folder = around.and_then(Path::parent).unwrap_or(folder);
    Repository::of(folder, home::user().as_deref())
}

/// Remembers that workflow code may be run.
pub(crate) fn allow_code(path: &Path, digest: &str) -> Result<(), Failure> {
    let repository = repository_of(path);
    let definition = workflow_definition(&repository.root, path, digest);
    let decision = Decision::Allowed { definitions: snapshot([&definition]) };
    TrustStore::read().decide(&repository.identity, decision)
}

/// Trusts what is in a project that Atomic itself has made, as it is now.
pub(crate) fn trust_as_made(trust: &ProjectTrust) {
    if !trust.definitions.is_empty() {
        // Without a home folder the next run asks.
        let decision = Decision::Allowed { definitions: snapshot(&trust.definitions) };
        let _ = TrustStore::read().decide(&trust.repository.identity, decision);
    }
}

/// The folders in which everything is trusted.
fn trusted_folders(users: &Values) -> Vec<PathBuf> {
    let folders = users.list(&TRUSTED_FOLDERS).unwrap_or_default();
    let absolute = |text: &String| {
        let at_home = text.strip_prefix('~').and_then(|rest| {
            let rest = rest.strip_prefix('/').or(rest.is_empty().then_some(""))?;
            Some(home::user()?.join(rest))
        });
        let folder = at_home.unwrap_or_else(|| PathBuf::from(text));
        folder.is_absolute().then(|| folder.canonicalize().ok())?
    };
    folders.iter().filter_map(absolute).collect()
}

/// Definitions by kind, each kind with the files it stands in.
fn summary(definitions: &[Definition]) -> String {
    let mut kinds: Vec<(&str, Vec<String>)> = vec![];
    for definition in definitions {
        let is_check = definition.kind == DefinitionKind::Check;
        let path = || on_one_line(&definition.path.display().to_string());
        let place = if is_check { definition.name.clone() } else { path() };
        let heading = definition.kind.heading();
        match kinds.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, places)) if places.contains(&place) => {}
            Some((_, places)) => places.push(place),
            None => kinds.push((heading, vec![place])),
        }
    }
    let listed = kinds.iter().map(|(heading, places)| format!("{heading} ({})", places.join(", ")));
    paint::printable(&listed.collect::<Vec<_>>().join(", "))
}
