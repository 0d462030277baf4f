//! Finding sessions: in the list of all, and in the project one is in.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use atomic_event::{Envelope, Event};
use atomic_registry::project::ProjectFiles;
use atomic_session::{FindError, IndexEntry, Listing, Session};

use crate::failure::Failure;
use crate::{home, stage};

/// Where the sessions of a project are, unless a workflow says otherwise.
const FOLDERS: [&str; 2] = [".ralph/sessions", ".atomic/sessions"];

/// The sessions that can be found from here.
pub(super) struct Known {
    pub(super) listing: Listing,
    /// The ids in the user's own list.
    listed: BTreeSet<String>,
    /// Why those of other projects cannot be found.
    pub(super) problem: Option<String>,
}

/// Everything in the list of all, and what is in this project without being in that list, because
/// it could not be written or is another one now.
pub(super) fn known_sessions() -> Known {
    let (mut listing, problem) = match home::index(&stage::disk()).map(|index| index.entries()) {
        Some(Ok(listing)) => (listing, None),
        Some(Err(error)) => (Listing::default(), Some(error.to_string())),
        None => {
            let problem = "there is no home folder; set HOME or ATOMIC_HOME";
            (Listing::default(), Some(problem.to_owned()))
        }
    };
    let listed: BTreeSet<String> =
        listing.entries.iter().map(|entry| entry.session.to_string()).collect();
    let here = std::env::current_dir().unwrap_or_default();
    let files = ProjectFiles::of(&here, home::user().as_deref());
    for folder in FOLDERS.map(|folder| here.join(folder)) {
        // A folder behind a link out of the repository holds no sessions of this project.
        let real = files.as_ref().ok().and_then(|files| files.resolve(&folder).ok());
        listing.entries.extend(real.into_iter().flat_map(|folder| unlisted(&folder, &listed)));
    }
    listing.entries.sort_by_key(|entry| Reverse(entry.created_at));
    Known { listing, listed, problem }
}

/// Whether a session was begun by this user on this machine.
pub(super) fn is_listed(dir: &Path) -> bool {
    let entries = home::index(&stage::disk()).and_then(|index| index.entries().ok());
    let is_it = |entry: &IndexEntry| {
        entry.dir == dir || entry.dir.canonicalize().ok().as_deref() == Some(dir)
    };
    entries.is_some_and(|listing| listing.entries.iter().any(is_it))
}

/// The sessions in a folder that are not in the list. Only their journals are read.
fn unlisted(folder: &Path, listed: &BTreeSet<String>) -> Vec<IndexEntry> {
    let folders = std::fs::read_dir(folder).into_iter().flatten().flatten();
    folders
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            // One that is still being made has a name that begins with a dot.
            !name.starts_with('.') && !listed.contains(&name)
        })
        .filter_map(|entry| described(entry.path()))
        .collect()
}

/// A session as the list has it, by its first fact.
fn described(dir: PathBuf) -> Option<IndexEntry> {
    let first = Session::read_only(stage::disk(), &dir).ok()?.next()?.ok()?;
    let Envelope { at, event: Event::SessionCreated(created), .. } = first else { return None };
    Some(IndexEntry {
        session: created.session,
        dir,
        workflow: created.workflow,
        created_at: at,
        prompt: created.prompt,
    })
}

/// Finds a session's folder: by itself, or by the session's id, the beginning of one, or `last`.
pub(crate) fn find_session(text: &str) -> Result<PathBuf, Failure> {
    let folder = Path::new(text);
    // A bare word is a name, also where the project has a folder called `last`.
    let is_path = text.contains('/') || text == ".";
    if is_path && folder.join("journal.jsonl").is_file() {
        return folder.canonicalize().map_err(|error| Failure::Failed(format!("{text}: {error}")));
    }
    if is_path {
        let remedy = "`atomic sessions` lists those there are";
        return Err(Failure::Failed(format!("there is no session in {text}; {remedy}")));
    }
    let Known { mut listing, listed, problem } = known_sessions();
    // A session that came with a project can claim any time: `last` is one of the user's own.
    listing.entries.sort_by_key(|entry| !listed.contains(entry.session.as_str()));
    match (listing.find(text), problem) {
        (Ok(entry), _) => Ok(entry.dir),
        (Err(FindError::NotFound { text }), Some(problem)) => Err(Failure::Failed(format!(
            "there is no session `{text}` in this folder, and those of other folders cannot be \
             looked for: {problem}"
        ))),
        (Err(error), _) => Err(error.into()),
    }
}
