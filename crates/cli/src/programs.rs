//! Where programs are looked for. Looking at a project must not run anything in it, so its folders
//! are left out, and so is whatever depends on the folder one happens to be in.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::home;

/// The folders of `PATH`.
pub(crate) struct SearchPath {
    /// The folder that is worked in.
    pub(crate) project: PathBuf,
    folders: Vec<PathBuf>,
    /// Entries that mean another folder everywhere.
    pub(crate) relative: Vec<PathBuf>,
    /// What counts as the project.
    projects: Vec<PathBuf>,
}

/// Where a program is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Located {
    /// The one that is run.
    pub(crate) path: Option<PathBuf>,
    /// Those that come before it and are not run, because they belong to the project.
    pub(crate) in_project: Vec<PathBuf>,
}

impl SearchPath {
    pub(crate) fn of_environment(project: &Path) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let entries = std::env::split_paths(&path).filter(|_| !path.is_empty());
        let (folders, relative) = entries.partition(|entry: &PathBuf| entry.is_absolute());
        Self { project: project.to_owned(), folders, relative, projects: projects(project) }
    }

    /// The first program of this name that can be run.
    pub(crate) fn find(&self, name: &str) -> Located {
        let mut located = Located::default();
        for path in self.folders.iter().map(|folder| folder.join(name)) {
            let is_program = std::fs::metadata(&path)
                .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
            if !is_program {
                continue;
            }
            if self.is_in_project(&path) {
                located.in_project.push(path);
                continue;
            }
            located.path = Some(path);
            break;
        }
        located
    }

    /// Folders of the project that are in `PATH` and exist, as the entries of `PATH` name them.
    pub(crate) fn in_project(&self, project: &Path) -> Vec<PathBuf> {
        let relative = self.relative.iter().map(|entry| project.join(entry));
        let absolute = self.folders.iter().filter(|folder| self.is_in_project(folder)).cloned();
        relative.chain(absolute).filter(|folder| folder.is_dir()).collect()
    }

    /// The same folders for whatever a program starts in turn.
    pub(crate) fn for_programs(&self) -> String {
        let outside = self.folders.iter().filter(|folder| !self.is_in_project(folder));
        let joined = std::env::join_paths(outside).unwrap_or_default();
        joined.to_string_lossy().into_owned()
    }

    /// Whether it is in the project, also by a link.
    fn is_in_project(&self, path: &Path) -> bool {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        self.projects.iter().any(|project| real.starts_with(project) || path.starts_with(project))
    }
}

/// The current folder and the repository it is in. A folder that holds the home folder is nobody's
/// clone: what is below it was put there by the user.
fn projects(project: &Path) -> Vec<PathBuf> {
    let here = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    let repository = here.ancestors().find(|folder| folder.join(".git").exists());
    let home = home::user().map(|home| home.canonicalize().unwrap_or(home));
    let holds_home = |folder: &Path| home.as_ref().is_some_and(|home| home.starts_with(folder));
    let all = [Some(here.as_path()), repository];
    all.into_iter()
        .flatten()
        .filter(|folder| folder.parent().is_some() && !holds_home(folder))
        .map(Path::to_owned)
        .collect()
}
