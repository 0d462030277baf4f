//! Before the code of a workflow file is run: whether the user has said that it may be.
//!
//! A repository that was cloned must not run code by being looked at. What is in the user's own
//! folder is theirs; everything else is asked about once, and again when it has changed.

use std::cell::RefCell;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use atomic_workflow::descriptor::Fault;
use atomic_workflow::typescript::{Authored, hash_of, shown};
use atomic_workflow::{Source, Workflow};

use crate::failure::Failure;
use crate::shelf::{FOLDER, is_code};
use crate::trust::{Trust, comes_from};
use crate::{home, paint};

/// The code of the problem that code is not trusted.
pub(crate) const UNTRUSTED: &str = "ATM720";

/// What to do about code that nobody has trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Leave {
    /// Run it: the user has said so for this time.
    Given,
    /// Ask, if somebody is there.
    Ask,
    /// Leave it alone.
    #[default]
    None,
    /// Run no code at all, trusted or not: somebody only looks around.
    Never,
}

/// Something that can be run, and has to be trusted for it.
#[derive(Clone, Copy)]
pub(crate) struct Piece<'p> {
    pub(crate) path: &'p Path,
    /// Of everything it consists of.
    pub(crate) hash: &'p str,
    /// How many files belong to it.
    pub(crate) imports: usize,
    /// What it says it is for.
    pub(crate) description: &'p str,
}

impl<'p> Piece<'p> {
    /// A file of code.
    pub(crate) fn of(authored: &'p Authored) -> Self {
        Self {
            path: authored.found(),
            hash: authored.hash(),
            imports: authored.imports(),
            description: authored.description().unwrap_or_default(),
        }
    }

    /// A file that is nothing but its text.
    pub(crate) fn plain(path: &'p Path, hash: &'p str) -> Self {
        Self { path, hash, imports: 0, description: "" }
    }
}

/// Decides whether code may be run.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    project: PathBuf,
    pub(crate) leave: Leave,
    /// The hashes of code that may be run this once, because somebody was asked elsewhere.
    pub(crate) allowed: Vec<String>,
    trust: RefCell<Trust>,
    /// What was not let through although the user could be asked about it.
    refused: RefCell<Vec<Refused>>,
}

/// Code that was not let through.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) path: PathBuf,
    pub(crate) hash: String,
    /// What to tell whoever is asked about it.
    pub(crate) about: String,
}

impl Gate {
    pub(crate) fn new(project: &Path) -> Self {
        Self {
            project: project.to_owned(),
            leave: Leave::default(),
            allowed: vec![],
            trust: RefCell::new(Trust::read()),
            refused: RefCell::default(),
        }
    }

    /// What was not let through so far; it is told once.
    pub(crate) fn take_refused(&self) -> Vec<Refused> {
        self.refused.take()
    }

    /// Remembers that code may be run, also another time.
    pub(crate) fn remember(&self, refused: &Refused) -> Result<(), Failure> {
        let root = self.root_of(&refused.path);
        let inside = refused.path.strip_prefix(&root).unwrap_or(&refused.path);
        self.trust.borrow_mut().remember_file(&root, inside, &refused.hash)
    }

    /// Lets code through, or says why not.
    pub(crate) fn admit(&self, piece: Piece<'_>) -> Result<(), Vec<Fault>> {
        let path = piece.path;
        if self.leave == Leave::Never {
            let fault = Fault::of_file(path, UNTRUSTED, "its code is not run here", "");
            return Err(vec![fault]);
        }
        let root = self.root_of(path);
        let standing = self.trust.borrow().of(&root);
        let is_allowed = self.allowed.iter().any(|hash| hash == piece.hash);
        let is_given = self.leave == Leave::Given || is_allowed;
        if is_given || is_users_own(path) || standing.has(piece.hash) {
            // Without a home folder its sessions are asked about when they are resumed.
            let _ = self.trust.borrow_mut().remember_run(&root, piece.hash);
            return Ok(());
        }
        let inside = path.strip_prefix(&root).unwrap_or(path);
        let is_changed = standing.files.iter().any(|(file, _)| file == inside);
        let is_there = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if self.leave != Leave::Ask || !is_there {
            let about = about(piece, &root, is_changed);
            let (path, hash) = (path.to_owned(), piece.hash.to_owned());
            self.refused.borrow_mut().push(Refused { path, hash, about });
            return Err(refusal(piece.path, &root, is_changed));
        }
        self.ask(piece, &root, is_changed)
    }

    /// Lets the documents through that a project's workflow consists of: they have commands in
    /// them. One that is named by its path is not asked about: it can be read, and was meant.
    pub(crate) fn admit_documents(&self, workflow: &Workflow) -> Result<(), Vec<Fault>> {
        let mut sources: Vec<&Source> = workflow.source.iter().collect();
        while let Some(source) = sources.pop() {
            sources.extend(source.uses.values());
            if let Some(path) = shelved(source.found()).filter(|_| !is_code(source.found())) {
                self.admit(Piece::plain(&path, &hash_of(&source.text)))?;
            }
        }
        Ok(())
    }

    /// Lets the code through that a session has kept: a session can lie in a project that was
    /// cloned.
    pub(crate) fn admit_kept(&self, authored: &Authored) -> Result<(), Vec<Fault>> {
        if self.leave == Leave::Given || self.trust.borrow().knows(authored.hash()) {
            return Ok(());
        }
        let why = "the session has code that was never run on this machine";
        let remedy = "if you know where the session comes from, use --trust";
        Err(vec![Fault::of_file(authored.path(), UNTRUSTED, why, remedy)])
    }

    /// The folder that is trusted or not: the project, or that of a file from elsewhere.
    fn root_of(&self, path: &Path) -> PathBuf {
        let project = self.project.canonicalize().unwrap_or_else(|_| self.project.clone());
        if path.starts_with(&project) {
            return project;
        }
        // Of `…/x/.atomic/workflows/a.ts` the folder `…/x`.
        let around = path.ancestors().find(|folder| folder.ends_with(".atomic"));
        let around = around.or(Some(path)).and_then(Path::parent);
        around.unwrap_or(path).to_owned()
    }

    fn ask(&self, piece: Piece<'_>, root: &Path, is_changed: bool) -> Result<(), Vec<Fault>> {
        let path = piece.path;
        let mut screen = std::io::stderr();
        let _ = writeln!(screen, "{}", paint::printable(&introduction(piece, root, is_changed)));
        let mut lines = std::io::stdin().lock().lines();
        loop {
            let _ = write!(screen, "1, 2 or 3: ");
            let _ = screen.flush();
            let Some(Ok(line)) = lines.next() else { return Err(refusal(path, root, is_changed)) };
            let inside = path.strip_prefix(root).unwrap_or(path);
            let mut trust = self.trust.borrow_mut();
            let remembered = match line.trim() {
                "1" => trust.remember_file(root, inside, piece.hash),
                "2" => trust
                    .remember_file(root, inside, piece.hash)
                    .and_then(|()| trust.remember_folder(root, false)),
                "3" => return Err(refusal(path, root, is_changed)),
                _ => continue,
            };
            // It was said, even if it cannot be remembered.
            if let Err(failure) = remembered {
                paint::warn(&failure.to_string());
            }
            return Ok(());
        }
    }
}

/// Whether a file is in the user's own folder for workflows. What they have put there is theirs,
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

fn introduction(piece: Piece<'_>, root: &Path, is_changed: bool) -> String {
    let folder = root.display();
    [
        about(piece, root, is_changed).as_str(),
        "  1  Run it, and remember this code",
        &format!("  2  The same, and let the hooks and MCP servers of {folder} run, too"),
        "  3  Do not run it",
    ]
    .join("\n")
}

/// What somebody should know who is asked about code.
fn about(piece: Piece<'_>, root: &Path, is_changed: bool) -> String {
    let path = piece.path;
    let imports = match piece.imports {
        0 => String::new(),
        1 => " and a file it imports".to_owned(),
        number => format!(" and {number} files it imports"),
    };
    let why = if is_changed {
        "This workflow has changed since you trusted it"
    } else {
        "This workflow is code that has not been run here before"
    };
    let mut lines = vec![format!("{why}:"), format!("  file  {}{imports}", path.display())];
    lines.extend(comes_from(root).map(|address| format!("  from  {address}")));
    if !piece.description.is_empty() {
        lines.push(format!("  says  {}", paint::one_line(piece.description)));
    }
    lines.push("When it runs it can start commands and change files here.".to_owned());
    lines.join("\n")
}

fn refusal(path: &Path, root: &Path, is_changed: bool) -> Vec<Fault> {
    let why = if is_changed {
        "its code has changed since it was trusted"
    } else {
        "nobody has said that its code may be run"
    };
    let remedy = format!(
        "read it, then run `atomic trust {}`, or use --trust for this once",
        root.display()
    );
    vec![Fault::of_file(&shown(path), UNTRUSTED, why, remedy)]
}
