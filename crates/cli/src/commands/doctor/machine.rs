//! What the machine has to offer: git, and a folder for what belongs to the user.

use std::path::{Path, PathBuf};

use super::programs::{self, GIT};
use super::{Known, Remark, Severity};
use crate::home;

/// The folder for everything of ours.
pub(super) enum HomeFolder {
    /// There is none.
    Unknown,
    /// It can be written to, or made.
    Usable { path: PathBuf, exists: bool },
    /// It cannot.
    Unusable { path: PathBuf, why: String },
}

/// Looks at our folder. One that does not exist is not made: looking changes nothing.
pub(super) fn home_folder() -> HomeFolder {
    let Some(path) = home::folder() else { return HomeFolder::Unknown };
    let exists = path.exists();
    let nearest = path.ancestors().find(|folder| folder.exists());
    match nearest.map(try_writing) {
        Some(Ok(())) => HomeFolder::Usable { path, exists },
        Some(Err(error)) => {
            let why = error.to_string();
            HomeFolder::Unusable { path, why }
        }
        None => HomeFolder::Unusable { path, why: "it cannot be made".to_owned() },
    }
}

/// Whether a file can be made in a folder; what it may be asked for is not what counts.
fn try_writing(folder: &Path) -> std::io::Result<()> {
    let path = folder.join(format!(".atomic-doctor-{}", std::process::id()));
    std::fs::File::create_new(&path)?;
    std::fs::remove_file(&path)
}

pub(super) fn look(known: &Known) -> Vec<Remark> {
    let install = "install git; without it nothing is kept apart and nothing can be undone";
    let mut remarks = known.probes.of(GIT).map_or_else(Vec::new, |probe| {
        let mut remarks = programs::about(probe, install);
        // Ralph works without it, but not as well.
        for remark in &mut remarks {
            if remark.severity == Severity::Note {
                remark.severity = Severity::Warning;
            }
        }
        remarks
    });
    remarks.push(match &known.home {
        HomeFolder::Unknown => {
            let remedy = "set HOME or ATOMIC_HOME; without it sessions cannot be found again";
            Remark::new(Severity::Problem, "there is no home folder", remedy)
        }
        HomeFolder::Usable { path, exists: true } => {
            Remark::fine(format!("{} can be written to", path.display()))
        }
        HomeFolder::Usable { path, exists: false } => {
            Remark::fine(format!("{} can be made", path.display()))
        }
        HomeFolder::Unusable { path, why } => {
            let text = format!("{} cannot be written to: {why}", path.display());
            Remark::new(Severity::Problem, text, "make it writable, or set ATOMIC_HOME")
        }
    });
    remarks
}
