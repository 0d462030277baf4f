//! Environment of the processes that Atomic starts in a project: agent programs, commands of
//! workflows, checks.

use std::path::Path;

use atomic_registry::project::{Repository, commands_in_git, is_lazy_fetch};

use crate::home;
use crate::programs::SearchPath;

/// Variables for every process in a project, beside those of Atomic itself.
///
/// Unless the project is trusted, no process finds programs in it, and git runs nothing that the
/// repository's own settings name: agent programs run `git status` when they start, and
/// `core.fsmonitor` is a command.
pub(crate) fn in_project(project: &Path, is_trusted: bool) -> Vec<(String, String)> {
    // A clone can bring a folder that looks like a bare repository and has settings of its own.
    let bare = ("safe.bareRepository", "explicit");
    if is_trusted {
        return git_settings(&[bare]);
    }
    let mut env = vec![without_programs_of(project)];
    let repository = Repository::of(project, home::user().as_deref());
    if commands_in_git(&repository).iter().all(is_lazy_fetch) {
        env.extend(git_settings(&[bare, ("core.fsmonitor", "false")]));
        // Reading a commit must not fetch from an address that the repository names. git honours
        // this from 2.45.0 on, and in the security releases of older lines, such as 2.39.4.
        env.push(("GIT_NO_LAZY_FETCH".to_owned(), "1".to_owned()));
    } else {
        // Overriding single keys is not enough: drivers and filters have names of their own.
        env.push(("GIT_DIR".to_owned(), "/dev/null".to_owned()));
    }
    env
}

/// The variable `PATH` without folders of the project and without relative ones.
pub(crate) fn without_programs_of(project: &Path) -> (String, String) {
    ("PATH".to_owned(), SearchPath::of_environment(project).for_programs())
}

/// Variables that add settings to git, beside those the user has added the same way.
fn git_settings(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    let count = std::env::var("GIT_CONFIG_COUNT").ok().and_then(|count| count.parse().ok());
    let mut count: usize = count.unwrap_or(0);
    let mut env = vec![];
    for (key, value) in settings {
        env.push((format!("GIT_CONFIG_KEY_{count}"), (*key).to_owned()));
        env.push((format!("GIT_CONFIG_VALUE_{count}"), (*value).to_owned()));
        count += 1;
    }
    env.push(("GIT_CONFIG_COUNT".to_owned(), count.to_string()));
    env
}
