//! The repository a folder belongs to, and the commands in its own git settings.
//!
//! A clone never brings settings or hooks along, an unpacked archive does: `core.fsmonitor` in
//! `.git/config` names a command that `git status` runs, and agent programs run `git status` when
//! they start.

mod settings;

use std::fs;
use std::path::{Path, PathBuf};

use super::{Definition, DefinitionKind, ProjectFiles};
use crate::files;
use settings::{Entry, entries};

/// The repository of a folder: what trust is decided for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Its root; the folder itself where there is no repository.
    pub root: PathBuf,
    /// The root by which decisions are remembered: for a linked worktree that of the main one.
    pub identity: PathBuf,
    /// The folder with its settings and hooks, where there is a repository.
    git_dir: Option<PathBuf>,
}

impl Repository {
    /// The repository of a folder. One that holds the home folder is not somebody's clone, and
    /// does not make everything below it one repository.
    pub fn of(folder: &Path, home: Option<&Path>) -> Self {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let Some(root) = Self::around(&folder, home) else {
            return Self { root: folder.clone(), identity: folder, git_dir: None };
        };
        let git = root.join(".git");
        let linked = linked_git_dir(&git);
        let git_dir = linked.clone().unwrap_or_else(|| git.clone());
        let main = linked.and_then(|linked| main_worktree(&git, &linked));
        let identity = main.unwrap_or_else(|| root.clone());
        Self { root, identity, git_dir: Some(git_dir) }
    }

    /// The root of a folder's repository; the folder itself where there is none. The folder's path
    /// has no links in it.
    pub(super) fn root_of(folder: &Path, home: Option<&Path>) -> PathBuf {
        Self::around(folder, home).unwrap_or_else(|| folder.to_owned())
    }

    fn around(folder: &Path, home: Option<&Path>) -> Option<PathBuf> {
        let home = home.map(|home| home.canonicalize().unwrap_or_else(|_| home.to_owned()));
        let holds_home = |above: &Path| home.as_ref().is_some_and(|home| home.starts_with(above));
        let mut folders = folder.ancestors().take_while(|above| !holds_home(above));
        let is_root = |above: &&Path| fs::symlink_metadata(above.join(".git")).is_ok();
        folders.find(is_root).map(Path::to_owned)
    }

    /// The address the repository is fetched from, without any password in it.
    pub fn origin(&self) -> Option<String> {
        let common = self.common_dir().filter(|common| self.is_own(common))?;
        let bytes = atomic_files::read(&common.join("config"), files::MOST_BYTES).ok()?;
        value_of(&bytes, "remote.origin", "url").map(|address| without_password(&address))
    }

    /// Whether a git folder belongs to this repository: it lies in it, names it as a linked worktree,
    /// or, as that of a submodule, as its working tree.
    fn is_own(&self, common: &Path) -> bool {
        let Ok(common) = common.canonicalize() else { return true };
        if common.starts_with(&self.root) || self.identity != self.root {
            return true;
        }
        let config = atomic_files::read(&common.join("config"), files::MOST_BYTES);
        let worktree = config
            .ok()
            .and_then(|config| value_of(&config, "core", "worktree"))
            .and_then(|path| common.join(path).canonicalize().ok());
        worktree.as_deref() == Some(self.root.as_path())
    }

    /// The folder that all worktrees share.
    fn common_dir(&self) -> Option<PathBuf> {
        let git_dir = self.git_dir.as_ref()?;
        let shared = files::read(&git_dir.join("commondir")).ok();
        Some(shared.map_or_else(|| git_dir.clone(), |path| git_dir.join(path.text.trim())))
    }
}

/// The first value of a key in a settings file.
fn value_of(config: &[u8], section: &str, key: &str) -> Option<String> {
    let found = entries(config)?.into_iter().find(|one| one.section == section && one.key == key);
    found.map(|one| one.value)
}

fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}/{path}")
}

/// Where a `.git` file leads.
fn linked_git_dir(git: &Path) -> Option<PathBuf> {
    if !fs::metadata(git).is_ok_and(|found| found.is_file()) {
        return None;
    }
    let text = files::read(git).ok()?.text;
    let path = text.trim().strip_prefix("gitdir:")?.trim();
    Some(git.parent()?.join(path))
}

/// The main worktree of a linked one. A `.git` file can name any repository, so the repository has
/// to name the worktree, too.
fn main_worktree(git: &Path, git_dir: &Path) -> Option<PathBuf> {
    let back = files::read(&git_dir.join("gitdir")).ok()?.text;
    let named = git_dir.join(back.trim()).canonicalize().ok()?;
    if named != git.canonicalize().ok()? {
        return None;
    }
    let common = files::read(&git_dir.join("commondir")).ok()?.text;
    let common = git_dir.join(common.trim()).canonicalize().ok()?;
    (common.file_name()? == ".git").then(|| common.parent().map(Path::to_owned))?
}

/// Sections and keys that cannot name a command, a program or another file. `*` stands for any key.
const HARMLESS: &[(&str, &str)] = &[
    ("core", "repositoryformatversion"),
    ("core", "filemode"),
    ("core", "bare"),
    ("core", "logallrefupdates"),
    ("core", "ignorecase"),
    ("core", "precomposeunicode"),
    ("core", "symlinks"),
    ("core", "autocrlf"),
    ("core", "eol"),
    ("core", "safecrlf"),
    ("core", "quotepath"),
    ("core", "sparsecheckout"),
    ("core", "sparsecheckoutcone"),
    ("core", "abbrev"),
    ("core", "compression"),
    ("core", "longpaths"),
    ("core", "untrackedcache"),
    ("core", "preloadindex"),
    ("core", "commentchar"),
    ("remote", "url"),
    ("remote", "pushurl"),
    ("remote", "fetch"),
    ("remote", "push"),
    ("remote", "tagopt"),
    ("remote", "prune"),
    ("remote", "mirror"),
    ("remote", "promisor"),
    ("remote", "partialclonefilter"),
    ("remote", "gh-resolved"),
    ("remote", "skipfetchall"),
    ("branch", "*"),
    ("user", "name"),
    ("user", "email"),
    ("user", "useconfigonly"),
    ("extensions", "*"),
    ("pull", "*"),
    ("push", "default"),
    ("push", "autosetupremote"),
    ("push", "followtags"),
    ("fetch", "prune"),
    ("init", "defaultbranch"),
    ("color", "*"),
    ("advice", "*"),
    ("status", "*"),
    ("gc", "auto"),
    ("gc", "autodetach"),
    ("maintenance", "auto"),
    ("lfs", "repositoryformatversion"),
    ("lfs", "access"),
    ("submodule", "active"),
    ("submodule", "url"),
    ("submodule", "recurse"),
    ("index", "version"),
    ("feature", "*"),
    ("commit", "gpgsign"),
    ("rerere", "enabled"),
];

/// The definitions in a repository's own git settings that may run a command, and its git hooks.
/// A key counts unless it is known to be harmless.
pub fn commands_in_git(repository: &Repository) -> Vec<Definition> {
    let mut found = vec![];
    let Some(common) = repository.common_dir() else { return found };
    if !repository.is_own(&common) {
        // A `.git` file can name any folder, and a `config` that is not git's must not be shown.
        let text = common.display().to_string();
        let elsewhere = Definition::new(DefinitionKind::Git, ".git", "git folder", &text);
        found.push(elsewhere.detailed(format!("lies outside of the repository, in {text}")));
        return found;
    }
    // Below the root links do not lead out; a worktree's folder is the main repository's own.
    let files = ProjectFiles::at_root(&repository.root).ok();
    let read = |path: &Path| {
        let inside = files.as_ref().filter(|_| path.starts_with(&repository.root));
        files::read_in(path, inside)
    };
    let own = repository.git_dir.iter().map(|dir| dir.join("config.worktree"));
    for path in [common.join("config")].into_iter().chain(own) {
        if fs::symlink_metadata(&path).is_err() {
            continue;
        }
        let place = place_of(&path, repository);
        let bytes = match files.as_ref().filter(|_| path.starts_with(&repository.root)) {
            Some(files) => files.read(&path, files::MOST_BYTES),
            None => atomic_files::read(&path, files::MOST_BYTES),
        };
        let Some(entries) = bytes.ok().and_then(|bytes| entries(&bytes)) else {
            let target = fs::read_link(&path).unwrap_or_default().display().to_string();
            let whole = Definition::new(DefinitionKind::Git, place, "config", &target);
            found.push(whole.detailed("cannot be read"));
            continue;
        };
        for Entry { section, key, value } in entries {
            let name = section.split_once('.').map_or(section.as_str(), |(name, _)| name);
            let is_harmless =
                HARMLESS.iter().any(|(of, one)| *of == name && (*one == "*" || *one == key));
            if !is_harmless {
                let full = format!("{section}.{key}");
                found.push(Definition::new(DefinitionKind::Git, &place, full, &value));
            }
        }
    }
    let hooks = common.join("hooks");
    let inside = files.as_ref().filter(|_| hooks.starts_with(&repository.root));
    if inside.is_some_and(|files| files::leads_out(files, &hooks)) {
        let target = fs::read_link(&hooks).unwrap_or_default().display().to_string();
        let place = place_of(&hooks, repository);
        let link = Definition::new(DefinitionKind::Git, place, "hooks", &target);
        found.push(link.detailed(format!("link out of the repository, to {target}")));
        found.sort();
        return found;
    }
    for entry in fs::read_dir(hooks).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".sample") {
            let target = || fs::read_link(entry.path()).unwrap_or_default().display().to_string();
            let text = read(&entry.path()).map_or_else(|_| target(), |text| text.text);
            let place = place_of(&entry.path(), repository);
            let hook = Definition::new(DefinitionKind::Git, place, format!("hook {name}"), &text);
            found.push(hook.detailed(""));
        }
    }
    found.sort();
    found
}

fn place_of(path: &Path, repository: &Repository) -> PathBuf {
    // All worktrees of a repository share one decision, so they have to name the file alike.
    let inside = path.strip_prefix(&repository.identity);
    inside.or_else(|_| path.strip_prefix(&repository.root)).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{Repository, commands_in_git, without_password};

    #[test]
    fn a_new_repository_has_no_commands_and_a_worktree_belongs_to_its_main_one() {
        let dir = tempfile::tempdir().unwrap();
        let git = |args: &[&str]| {
            let mut command = Command::new("git");
            command.current_dir(dir.path()).args(["-c", "user.name=t", "-c", "user.email=t@e"]);
            assert!(command.args(args).status().unwrap().success(), "{args:?}");
        };
        git(&["init", "-q", "main"]);
        git(&["-C", "main", "commit", "-q", "--allow-empty", "-m", "one"]);
        git(&["-C", "main", "worktree", "add", "-q", "../tree", "-b", "side"]);
        git(&["-C", "main", "remote", "add", "origin", "https://example.org/a.git"]);
        let main = Repository::of(&dir.path().join("main"), None);
        assert_eq!(commands_in_git(&main), []);
        let tree = Repository::of(&dir.path().join("tree"), None);
        assert_eq!((&tree.identity, tree.root == main.root), (&main.root, false));
        // A `.git` file that names a repository which does not know of it.
        let foreign = dir.path().join("foreign");
        std::fs::create_dir(&foreign).unwrap();
        std::fs::copy(dir.path().join("tree/.git"), foreign.join(".git")).unwrap();
        let foreign = Repository::of(&foreign, None);
        assert_eq!(foreign.identity, foreign.root);
        git(&["-C", "main", "config", "core.fsmonitor", "./evil.sh"]);
        std::fs::write(dir.path().join("main/.git/hooks/post-checkout"), "#!/bin/sh\n").unwrap();
        let found: Vec<String> = commands_in_git(&tree).iter().map(|d| d.name.clone()).collect();
        assert_eq!(found, ["core.fsmonitor", "hook post-checkout"]);
    }

    #[test]
    fn an_address_is_shown_without_a_password() {
        let table = [
            ("https://me:secret@example.org/a/b.git", "https://example.org/a/b.git"),
            ("https://example.org/a@b", "https://example.org/a@b"),
            ("git@example.org:a/b.git", "git@example.org:a/b.git"),
            ("ssh://git@example.org/a", "ssh://example.org/a"),
        ];
        for (address, shown) in table {
            assert_eq!(without_password(address), shown, "{address}");
        }
    }
}
