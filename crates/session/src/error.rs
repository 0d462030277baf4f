//! What can go wrong with a session.

use std::io;
use std::path::{Path, PathBuf};

use atomic_files::{FileKind, Refusal};

/// Why a session could not be created, read or written, sorted by what the caller can do.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// There is no such session.
    #[error("there is no session in {dir}; `atomic sessions` lists those there are")]
    NotFound {
        /// The folder.
        dir: PathBuf,
    },
    /// The folder was made, but the program died before the first fact was on disk.
    #[error(
        "the session in {dir} was never started: its journal has no first line; \
         start it again, and remove the folder"
    )]
    NeverStarted {
        /// The folder.
        dir: PathBuf,
    },
    /// There is already a session in the folder.
    #[error("there is already a session in {dir}; resume it, or choose another folder")]
    AlreadyExists {
        /// The folder.
        dir: PathBuf,
    },
    /// Another process has the session.
    #[error("the session in {dir} is held by {holder}; wait until it ends, or end it")]
    Held {
        /// The folder.
        dir: PathBuf,
        /// Who has it, by its own words.
        holder: String,
    },
    /// A newer version wrote it.
    #[error(
        "{path} was written by a newer version of Atomic \
         (format {format}, this one reads up to {readable}); use that version"
    )]
    Newer {
        /// The journal.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// The newest format this version reads.
        readable: u32,
    },
    /// Not one of our files. It was not touched.
    #[error("{path} is not a journal of Atomic ({problem}); it was left as it is")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What tells it apart.
        problem: String,
    },
    /// The journal is damaged where no crash can damage it. Nothing was changed.
    #[error(
        "{path} is damaged at byte {offset}: {problem}; nothing was changed, \
         restore the file from a copy or start a new session"
    )]
    Corrupt {
        /// The journal.
        path: PathBuf,
        /// Where the bad line begins.
        offset: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// Another program has changed the journal of a run.
    #[error(
        "{path}: the journal was changed by another program: {problem}\n  hint: {}",
        way_on(path, *is_kept)
    )]
    Changed {
        /// The journal.
        path: PathBuf,
        /// What is different.
        problem: String,
        /// Whether the second file of the journal still has what was written.
        is_kept: bool,
    },
    /// A fact that could not be read back was not written. The session is as it was.
    #[error("a fact could not be recorded: {problem}")]
    Unrecordable {
        /// Why not.
        problem: String,
    },
    /// The disk is full.
    #[error("there is no room left on the disk for {path}; make room and resume the session")]
    NoSpace {
        /// The file that was being written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An earlier write failed, so nothing more is written by this handle.
    #[error(
        "nothing more can be recorded in {path} because an earlier write failed ({reason}); \
         resume the session once that is mended"
    )]
    Dead {
        /// The journal.
        path: PathBuf,
        /// The failure that ended it.
        reason: String,
    },
    /// Something in the session's folder is not what Atomic made there.
    #[error("{path}: {problem}\n  hint: {}", remedy(path, *problem))]
    Strange {
        /// The file or folder.
        path: PathBuf,
        /// What it is.
        problem: Refusal,
    },
    /// The system refused something else.
    #[error("could not {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// How to go on after a journal was changed.
fn way_on(path: &Path, is_kept: bool) -> String {
    let session = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    if is_kept {
        return format!(
            "Atomic has kept what it wrote. End whatever changes the file, then run: \
             atomic resume {session}"
        );
    }
    format!(
        "restore the file from a copy and resume the session, or make a new session of what is \
         left: atomic fork {session}"
    )
}

/// What to do about something strange in a session's folder without losing anything.
fn remedy(path: &Path, problem: Refusal) -> String {
    match problem {
        Refusal::HardLinks => {
            let file = atomic_files::shell_quoted(path);
            let copy = atomic_files::shell_quoted(&path.with_added_extension("own"));
            format!("give it one name: cp -p {file} {copy} && mv {copy} {file}")
        }
        Refusal::Link | Refusal::Outside | Refusal::NotRegular(FileKind::Link) => {
            "replace the link by a copy of what it leads to, then run the command again".to_owned()
        }
        Refusal::NotRegular(_) | Refusal::NotFolder(_) | Refusal::TooLarge { .. } => {
            "move it away, then run the command again".to_owned()
        }
    }
}

impl SessionError {
    /// For `map_err`: what was being done, and to what.
    pub(crate) fn while_doing(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| {
            if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
                return Self::NoSpace { path, source };
            }
            if let Some(problem) = atomic_files::refusal(&source) {
                return Self::Strange { path, problem };
            }
            Self::Io { action, path, source }
        }
    }
}
