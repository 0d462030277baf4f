//! Files in a folder that a stranger may have filled: a cloned repository can hold links to
//! anywhere, FIFOs that block, and files without end.
//!
//! Two rules hold everywhere:
//!
//! - Open first, then look at what was opened. A file is judged by `fstat` on its descriptor, never
//!   by its path, so a link that is swapped in between the check and the use has no effect: the
//!   descriptor stays what it was.
//! - Folders below a [`Root`] are reached through the descriptor of the root, by `openat2` where the
//!   kernel has it, else component by component with `O_NOFOLLOW`.
//!
//! [`Root::read`] follows links that stay below the root. A [`Folder`] never follows links; all
//! writing goes through one. [`read`] is for files that the user has named or owns.

mod folder;
mod open;
mod read;
mod refusal;
mod root;
mod shell;
mod state;

pub use folder::{Folder, Permissions, Staged};
pub use read::{read, read_text, text};
pub use refusal::{FileKind, Refusal, refusal};
pub use root::Root;
pub use shell::shell_quoted;
pub use state::FileState;

/// The largest file of a project that is read, in bytes: 1 MB.
pub const PROJECT_LIMIT: u64 = 1 << 20;

/// The largest prompt or spec, in bytes: 10 MB.
pub const PROMPT_LIMIT: u64 = 10 << 20;
