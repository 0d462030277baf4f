//! A session on disk: its facts, in order, for good, and the files made from them.
//!
//! A [`Session`] is a folder with a journal, one fact a line. [`Session::append`] returns when
//! the facts are on disk and not before, so whatever acts on a fact can rely on it. The journal is
//! the only truth: snapshots shorten reading, and `session.json`, `tasks.json` and `progress.txt`
//! are for people; all of them can be deleted.
//!
//! Everything is done through a [`Disk`], of which there are two: the [`RealDisk`] and the
//! [`MemoryDisk`], which forgets whatever was not synced, as a real one may when the power goes.
//!
//! Nothing here prints, waits for anybody, or asks for the time.
//!
//! Start reading at [`Session::open`].

mod blob;
mod checks;
mod disk;
mod error;
pub mod failpoint;
mod files;
mod fork;
mod identity;
mod inbox;
mod index;
mod journal;
mod keep;
mod limits;
mod line;
mod progress;
mod reader;
mod secure;
mod session;
mod snapshot;
mod tasks;
mod values;

pub use atomic_event::TaskStatus;
pub use atomic_files::FileState;
pub use checks::{
    ChangedBranch, ChangedCheck, CheckSummary, RemovedTest, TaskCheck, TaskVerdict, VerifiedCount,
};
pub use disk::{AppendFile, Disk, Layout, Lock, LockError, MemoryDisk, RealDisk};
pub use error::SessionError;
pub use files::{Cost, PaidBy, Product, SessionStatus, SessionSummary, SpentSummary, TaskCount};
pub use fork::Fork;
pub use identity::{FolderIdentity, JournalSeal, contains_journal, is_moved, remove_leftover};
pub use inbox::{InboxAnswer, Left, leave_answer};
pub use index::{FindError, Index, IndexEntry, Listing};
pub use keep::{KeepStatus, Recovery, SessionFolders, keep_status};
pub use reader::Facts;
pub use session::{Opened, Session, Torn};
pub use tasks::{Kept, TaskRow, read_tasks};
pub use values::ValueFiles;
