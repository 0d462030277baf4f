//! The largest files of a session that are read, in bytes.
//!
//! A session can come with a cloned project, and a file of a few blocks can claim any size. Each
//! limit is far above what Atomic writes, and nothing larger is written.

/// `session.json`: two prompts of at most 10 MB each, with JSON escapes.
pub(crate) const SUMMARY: u64 = 64 << 20;

/// `tasks.json`.
pub(crate) const TASKS: u64 = 10 << 20;

/// `.tasks.sha256`: two hashes.
pub(crate) const HASHES: u64 = atomic_files::PROJECT_LIMIT;

/// `progress.txt`.
pub(crate) const PROGRESS: u64 = 32 << 20;

/// An answer in the inbox.
pub(crate) const ANSWER: u64 = atomic_files::PROMPT_LIMIT;

/// A snapshot. Without one a resume reads the journal from its beginning.
pub(crate) const SNAPSHOT: u64 = 64 << 20;

/// All values of one fact together, each as often as the fact refers to it.
pub(crate) const FACT: u64 = 256 << 20;

/// A line of the journal. Values over 16 KB are kept in files of their own, so a line is shorter than
/// 1 MB; a power cut can leave one block of zeros for all lines that were written together.
pub(crate) const LINE: u64 = 64 << 20;

/// The user's own index of all sessions.
pub(crate) const INDEX: u64 = 256 << 20;
