//! The session's folder, which a worker can delete while the run is under way.

use std::path::{Path, PathBuf};

use atomic_event::{Created, Event, Moment, SessionId};
use atomic_registry::project::Repository;
use atomic_session::{FolderIdentity, Index, IndexEntry, Recovery, Session, SessionFolders};

use crate::book::Book;
use crate::project::{Projection, progress_entry};
use crate::run::{Run, RunError, hashed};
use crate::stage::Stage;

/// How often the end of a run brings up to date files that somebody deletes meanwhile.
const ATTEMPTS: u32 = 20;

/// The folders of a session; without a list of all sessions there are no second links.
pub(crate) fn folders(index: Option<&Index>, dir: PathBuf) -> SessionFolders {
    match index {
        Some(index) => index.folders(dir),
        None => dir.into(),
    }
}

/// What is said about a session's folder that was found deleted or changed.
pub fn told(restored: &Recovery) -> String {
    match restored {
        Recovery::Deleted => {
            "the session's folder was deleted; Atomic has written it again".to_owned()
        }
        Recovery::Replaced { kept } => format!(
            "the session's journal was replaced by another file; Atomic goes on with the one it \
             wrote, and the other is in {}",
            kept.display()
        ),
    }
}

/// Enters the session in the list of all, by which it is found from other folders. Without that the
/// run goes on, but whoever started it must know; the error says why it is not in there.
pub(crate) fn remember(
    stage: &Stage,
    created: &Created,
    dir: &Path,
    at: Moment,
) -> Result<(), String> {
    let Some(index) = &stage.index else {
        return Err("there is no home folder".to_owned());
    };
    index.add(index_entry(created, dir, at)).map_err(|error| error.to_string())
}

/// A session as the list of all has it.
pub fn index_entry(created: &Created, dir: &Path, at: Moment) -> IndexEntry {
    let workspace = created.workspace.clone();
    let root = Repository::of(&workspace, std::env::home_dir().as_deref()).root;
    IndexEntry {
        session: created.session.clone(),
        dir: dir.to_owned(),
        workflow: created.workflow.clone(),
        created_at: at,
        prompt: created.prompt.clone(),
        workspace: Some(workspace),
        root: Some(root),
        digest: Some(digest_of(created)),
        folder: FolderIdentity::of(&created.workspace),
        seal: None,
    }
}

/// Notes in the list of all what the journal is. Before the second links are removed, so that at any
/// time one of the two tells the session from a journal to which a stranger has added events.
pub(crate) fn seal(index: Option<&Index>, session: &Session, id: &SessionId) {
    if let (Some(index), Some(seal)) = (index, session.seal()) {
        // Without the note the session needs `--trust` once its project is moved.
        let _ = index.add_seal(id, session.dir(), seal);
    }
}

/// The hash of what a session is about. A session that was moved or copied has the same.
pub fn digest_of(created: &Created) -> String {
    hashed(&serde_json::to_value(created).unwrap_or_default())
}

impl Run {
    /// Writes what is missing when the session's folder was deleted, and says so.
    pub(crate) fn tend_session(&mut self) -> Result<(), RunError> {
        self.session.secure()?;
        if !self.session.take_restored() {
            return Ok(());
        }
        let at = self.stage.clock.now();
        let text = told(&Recovery::Deleted);
        for envelope in self.session.append(vec![Event::Noted { text: text.clone() }], at)? {
            self.show_fact(envelope);
        }
        self.complain(&text);
        let (mut book, mut entries) = (Book::default(), vec![]);
        for fact in self.session.facts()? {
            let fact = fact?;
            book.learn(&fact.event, fact.at);
            entries.extend(progress_entry(&book, &fact.event, fact.at));
        }
        self.projection = Projection::default();
        self.projection.touch();
        self.project_progress(&entries)
    }

    /// Says why the session has no second links.
    pub(crate) fn tell_unkept(&mut self) {
        if let Some(why) = self.session.take_unkept() {
            self.complain(&format!("the session has no second copy outside of the project: {why}"));
        }
    }

    /// Brings every file up to date and removes the second links.
    pub(crate) fn let_go(&mut self) -> Result<(), RunError> {
        for _ in 0..ATTEMPTS {
            self.project_all()?;
            seal(self.stage.index.as_deref(), &self.session, &self.created.session);
            if self.session.release()? {
                return Ok(());
            }
        }
        self.project_all()
    }
}
