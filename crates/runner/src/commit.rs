//! Which commit a folder is at, read from git's own files: a process for every step would cost
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

/// The commit that is checked out in `folder`, when it is in a git repository with one.
pub(crate) fn checked_out(folder: &Path) -> Option<String> {
    let git = folder.ancestors().map(|above| above.join(".git")).find(|git| git.exists())?;
    let git = if git.is_file() { linked(&git)? } else { git };
    let head = read(&git.join("HEAD"))?;
    let Some(name) = head.trim().strip_prefix("ref: ") else { return commit(&head) };
    if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    // A worktree has a HEAD of its own and shares everything else.
    let shared = read(&git.join("commondir"));
    let shared = shared.map_or_else(|| git.clone(), |path| git.join(path.trim()));
    let loose = [&git, &shared].into_iter().find_map(|git| read(&git.join(name)));
    loose.as_deref().and_then(commit).or_else(|| packed(&shared, name))
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
