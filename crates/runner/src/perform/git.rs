//! Asking git for the tree that a check runs on. Only in a folder that the user trusts: a git
//! process obeys the settings of its repository.

use std::path::Path;
use std::time::Duration;

use atomic_backend::PrivateFolder;
use atomic_backend::guard::Job;

use super::{Performer, told_to_stop};
use crate::commit::GitFiles;

/// How long one git process may take.
const LIMIT: Duration = Duration::from_secs(30);

/// How much git may print.
const OUTPUT: usize = 4 << 20;

/// The most bytes of changed and new files that are hashed.
const MOST_BYTES: u64 = 64 << 20;

/// Settings under which git starts no program of the repository and changes nothing by itself.
const QUIET: [&str; 7] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "core.compression=0",
];

/// The files of a folder as git would commit them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GitTree {
    pub(super) tree: Option<String>,
    /// The commit that is checked out, where it holds exactly this tree.
    pub(super) commit: Option<String>,
}

impl Performer {
    /// The tree of the project's folder as it is now. Nothing is written to the repository: the
    /// index is a copy, and new objects go to a folder that is removed.
    pub(super) async fn git_tree(&self) -> GitTree {
        if !self.is_trusted {
            return GitTree::default();
        }
        self.ask_for_tree().await.unwrap_or_default()
    }

    async fn ask_for_tree(&self) -> Option<GitTree> {
        let files = GitFiles::of(&self.reach.workspace)?;
        let scratch = PrivateFolder::create("atomic-tree-").ok()?;
        std::fs::create_dir(scratch.path().join("objects")).ok()?;
        let index = files.git.join("index");
        if index.is_file() {
            std::fs::copy(&index, scratch.path().join("index")).ok()?;
        }
        let ask = async |args: &[&str]| self.git(&files, scratch.path(), args).await;
        let listed = ask(&["ls-files", "-z", "-m", "-o", "--exclude-standard"]).await?;
        let size = |name: &str| {
            std::fs::symlink_metadata(files.root.join(name)).map_or(0, |found| found.len())
        };
        if listed.split('\0').map(size).sum::<u64>() > MOST_BYTES {
            return None;
        }
        ask(&["add", "-A", "--", ":/"]).await?;
        let tree = ask(&["write-tree"]).await?.trim().to_owned();
        let head = ask(&["rev-parse", "HEAD", "HEAD^{tree}"]).await.unwrap_or_default();
        let mut head = head.lines();
        let (commit, of_commit) = (head.next(), head.next());
        let commit = commit.filter(|_| of_commit == Some(tree.as_str())).map(str::to_owned);
        Some(GitTree { tree: Some(tree), commit })
    }

    /// Runs git on a repository, with an index and objects of its own.
    async fn git(&self, files: &GitFiles, scratch: &Path, args: &[&str]) -> Option<String> {
        let mut argv = vec![
            "git".to_owned(),
            format!("--git-dir={}", files.git.display()),
            format!("--work-tree={}", files.root.display()),
        ];
        argv.extend(QUIET.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]));
        argv.extend(args.iter().map(|arg| (*arg).to_owned()));
        let above = files.root.parent().unwrap_or(&files.root);
        let variable = |name: &str, value: &Path| (name.to_owned(), value.display().to_string());
        let env = vec![
            variable("GIT_CEILING_DIRECTORIES", above),
            variable("GIT_INDEX_FILE", &scratch.join("index")),
            variable("GIT_OBJECT_DIRECTORY", &scratch.join("objects")),
            variable("GIT_ALTERNATE_OBJECT_DIRECTORIES", &files.shared.join("objects")),
            ("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned()),
            ("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned()),
            ("GIT_NO_LAZY_FETCH".to_owned(), "1".to_owned()),
        ];
        let (cwd, marker) = (files.root.clone(), self.reach.marker.clone());
        let job = Job { argv, cwd, env, marker, ..Job::default() };
        let mut orders = self.orders.clone();
        let stopped = async {
            told_to_stop(&mut orders).await;
        };
        let ran =
            self.reach.guard.capture(&job, None, (Some(LIMIT), OUTPUT), stopped).await.ok()?;
        let is_whole =
            ran.status.is_some_and(|status| status.success()) && ran.stdout.left_out == 0;
        is_whole.then_some(ran.stdout.text)
    }
}
