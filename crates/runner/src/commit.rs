//! Which branch and commit a folder is at, read from git's own files: a process for every step would cost
//! more than most steps.

use std::path::{Component, Path, PathBuf};

/// The largest of git's own files that is read. `packed-refs` of a large repository has tens of
/// thousands of lines.
const LIMIT: u64 = 64 << 20;

/// Reads one of git's files, which may lie outside of the project. Nothing of it is ever shown but
/// what looks like the name of a commit.
fn read(path: &Path) -> Option<String> {
    atomic_files::read_text(path, LIMIT).ok()
}

/// The name that stands for the branch where a commit is checked out and no branch.
pub(crate) const DETACHED: &str = "(detached)";

/// A git repository and its files.
#[derive(Clone, Debug)]
pub(crate) struct GitFiles {
    /// The root of the working tree.
    pub(crate) root: PathBuf,
    /// The folder with `HEAD` and the index.
    pub(crate) git: PathBuf,
    /// The folder with objects and branches. A worktree has a HEAD of its own and shares these.
    pub(crate) shared: PathBuf,
}

/// What is checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) branch: String,
    /// The commit, unless the branch has none yet.
    pub(crate) commit: Option<String>,
}

impl GitFiles {
    /// The repository that a folder is in.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let root = folder.ancestors().find(|above| above.join(".git").exists())?;
        let git = root.join(".git");
        let git = if git.is_file() { linked(&git)? } else { git };
        let shared = read(&git.join("commondir"));
        let shared = shared.map_or_else(|| git.clone(), |path| git.join(path.trim()));
        Some(Self { root: root.to_owned(), git, shared })
    }
}

/// What is checked out in `folder`, when it is in a git repository.
pub(crate) fn head(folder: &Path) -> Option<Head> {
    let GitFiles { git, shared, .. } = GitFiles::of(folder)?;
    let head = read(&git.join("HEAD"))?;
    let Some(name) = head.trim().strip_prefix("ref: ") else {
        return Some(Head { branch: DETACHED.to_owned(), commit: commit(&head) });
    };
    if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let loose = [&git, &shared].into_iter().find_map(|git| read(&git.join(name)));
    let commit = loose.as_deref().and_then(commit).or_else(|| packed(&shared, name));
    let branch = name.strip_prefix("refs/heads/").unwrap_or(name).to_owned();
    Some(Head { branch, commit })
}

/// The commit that is checked out in `folder`, when it is in a git repository with one.
pub(crate) fn checked_out(folder: &Path) -> Option<String> {
    head(folder)?.commit
}

/// Where the `.git` file of a worktree or submodule leads.
fn linked(file: &Path) -> Option<PathBuf> {
    let text = read(file)?;
    let path = text.trim().strip_prefix("gitdir: ")?;
    Some(file.parent()?.join(path))
}

fn packed(git: &Path, name: &str) -> Option<String> {
    let refs = read(&git.join("packed-refs"))?;
    let line = refs.lines().find(|line| line.split(' ').nth(1) == Some(name))?;
    commit(line.split(' ').next()?)
}

fn commit(text: &str) -> Option<String> {
    let text = text.trim();
    let hex = text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    hex.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::checked_out;

    fn git(folder: &Path, args: &str) -> String {
        let words = args.split(' ');
        let fixed = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        let output = Command::new("git").current_dir(folder).args(fixed).args(words).output();
        let output = output.unwrap();
        assert!(output.status.success(), "git {args}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn it_says_the_same_as_git() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("repo");
        std::fs::create_dir(&folder).unwrap();
        let same = |folder: &Path| {
            assert_eq!(checked_out(folder), Some(git(folder, "rev-parse HEAD")));
        };
        assert_eq!(checked_out(&folder), None, "no repository");
        git(&folder, "init -q -b main");
        assert_eq!(checked_out(&folder), None, "no commit");
        git(&folder, "commit -q --allow-empty -m one");
        same(&folder);
        git(&folder, "pack-refs --all");
        same(&folder);
        git(&folder, "worktree add -q ../tree -b side");
        git(&home.path().join("tree"), "commit -q --allow-empty -m two");
        same(&home.path().join("tree"));
        same(&folder);
        git(&folder, "checkout -q --detach");
        same(&folder);
        std::fs::create_dir(folder.join("inner")).unwrap();
        same(&folder.join("inner"));
    }
}
