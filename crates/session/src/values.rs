//! Values that commands read from a file, because they are too long for an argument.

use std::path::PathBuf;
use std::sync::Arc;

use crate::blob::sha256;
use crate::{Disk, Session, SessionError};

/// The folder of these files. The blobs of the journal are elsewhere: a command may change what it
/// is given.
pub(crate) const VALUES: &str = "values";

/// Writes values into files of a session.
#[derive(Clone, Debug)]
pub struct ValueFiles {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
}

impl Session {
    /// Where values are written for commands.
    pub fn value_files(&self) -> ValueFiles {
        ValueFiles { disk: Arc::clone(&self.disk), folder: self.dir.join(VALUES) }
    }
}

impl ValueFiles {
    /// Writes a value and returns the path of its file, which only the user can read. The same
    /// value for the same reader has the same path, and is written again in case it was changed.
    pub fn write(&self, reader: &str, value: &str) -> Result<PathBuf, SessionError> {
        let name = sha256(format!("{reader}\0{value}").as_bytes());
        let path = self.folder.join(format!("{}.txt", &name[..32]));
        let made = self.disk.create_dir(&self.folder);
        made.map_err(SessionError::while_doing("create", &self.folder))?;
        let written = self.disk.replace(&path, value.as_bytes());
        written.map_err(SessionError::while_doing("write", &path))?;
        Ok(path)
    }
}
