//! The repository a folder belongs to, and the commands in its own git settings.
//!
//! A clone never brings settings or hooks along, an unpacked archive does: `core.fsmonitor` in
//! `.git/config` names a command that `git status` runs, and agent programs run `git status` when
//! they start.

mod nested;
mod place;
mod settings;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Definition, DefinitionKind, ProjectFiles};
use crate::files;
use place::{Found, GitFolders};
use settings::{Entry, entries};

/// The repository of a folder: what trust is decided for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Its root; the folder itself where there is no repository.
    pub root: PathBuf,
    /// The folder by which decisions are remembered: for a linked worktree the root of the main one,
    /// or the bare repository.
    pub identity: PathBuf,
    /// The working tree that git finds, where there is one, and git's data.
    git: Option<(PathBuf, GitFolders)>,
    /// Files and folders called `.git` that git passes over.
    skipped: Vec<PathBuf>,
}

impl Repository {
    /// The repository of a folder. One that holds the home folder is not somebody's clone, and
    /// does not make everything below it one repository, but git reads its settings.
    pub fn of(folder: &Path, home: Option<&Path>) -> Self {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let home = home.map(|home| home.canonicalize().unwrap_or_else(|_| home.to_owned()));
        let (mut git, mut invalid) = (None, vec![]);
        // A repository in the home folder itself is the user's own.
        for above in folder.ancestors().take_while(|above| home.as_deref() != Some(*above)) {
            match place::at(above) {
                Found::Nothing => {}
                Found::Invalid(folders) => invalid.push((above, folders)),
                Found::Repository(folders) => {
                    git = Some((above.to_owned(), folders));
                    break;
                }
            }
        }
        // Without a valid repository a `.git` still says where the project begins.
        let marked = invalid.first().filter(|_| git.is_none()).map(|(above, _)| *above);
        if let Some((above, Some(folders))) = invalid.first().filter(|_| git.is_none()) {
            git = Some(((*above).to_owned(), folders.clone()));
            invalid.remove(0);
        }
        let skipped = invalid.iter().map(|(above, _)| above.join(".git")).collect();
        let holds_home = |tree: &Path| home.as_ref().is_some_and(|home| home.starts_with(tree));
        let tree = git.as_ref().filter(|(tree, _)| !holds_home(tree));
        let marked = marked.filter(|above| !holds_home(above));
        let root = tree.map(|(tree, _)| tree.as_path()).or(marked).unwrap_or(&folder).to_owned();
        let main =
            tree.and_then(|(tree, folders)| place::main_worktree(&tree.join(".git"), folders));
        // The folder around a bare repository, as in `.bare` with a `.git` file beside it.
        let around = tree.filter(|(tree, folders)| place::is_around_bare(tree, folders));
        let around = around.map(|(_, folders)| folders.shared.clone());
        let identity = main.or(around).unwrap_or_else(|| root.clone());
        Self { root, identity, git, skipped }
    }

    /// The root of a folder's repository; the folder itself where there is none. The folder's path
    /// has no links in it.
    pub(super) fn root_of(folder: &Path, home: Option<&Path>) -> PathBuf {
        Self::of(folder, home).root
    }

    /// The address the repository is fetched from, without any password in it.
    pub fn origin(&self) -> Option<String> {
        let (tree, folders) = self.git.as_ref().filter(|(tree, of)| self.is_own(tree, of))?;
        let config = folders.shared.join("config");
        let bytes = match config.starts_with(tree) {
            true => ProjectFiles::at_root(tree).ok()?.read(&config, files::MOST_BYTES).ok()?,
            false => atomic_files::read(&config, files::MOST_BYTES).ok()?,
        };
        value_of(&bytes, "remote.origin", "url").map(|address| without_password(&address))
    }

    /// Whether git's data belongs to this repository: it lies in it, in that of a linked worktree,
    /// or, as that of a submodule, names it as its working tree.
    fn is_own(&self, tree: &Path, folders: &GitFolders) -> bool {
        let GitFolders { own, shared } = folders;
        if (own.starts_with(tree) && shared.starts_with(tree)) || self.identity != self.root {
            return true;
        }
        let config = atomic_files::read(&shared.join("config"), files::MOST_BYTES);
        let worktree = config
            .ok()
            .and_then(|config| value_of(&config, "core", "worktree"))
            .and_then(|path| shared.join(path).canonicalize().ok());
        own == shared && worktree.as_deref() == Some(tree)
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
    ("core", "sharedrepository"),
    ("core", "whitespace"),
    ("merge", "conflictstyle"),
    ("merge", "ff"),
    ("rebase", "autosquash"),
    ("rebase", "autostash"),
    ("rebase", "updaterefs"),
    ("diff", "algorithm"),
    ("diff", "colormoved"),
    ("diff", "mnemonicprefix"),
    ("diff", "noprefix"),
    ("diff", "renames"),
    ("remote", "url"),
    ("remote", "pushurl"),
    ("remote", "fetch"),
    ("remote", "push"),
    ("remote", "tagopt"),
    ("remote", "prune"),
    ("remote", "mirror"),
    ("remote", "gh-resolved"),
    ("remote", "skipfetchall"),
    ("branch", "*"),
    ("user", "name"),
    ("user", "email"),
    ("user", "useconfigonly"),
    ("extensions", "noop"),
    ("extensions", "objectformat"),
    ("extensions", "compatobjectformat"),
    ("extensions", "preciousobjects"),
    ("extensions", "refstorage"),
    ("extensions", "relativeworktrees"),
    ("extensions", "worktreeconfig"),
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

/// Sections and keys that make git fetch missing objects by itself, from the address that the
/// repository names. Each of them is enough for git 2.47.
const LAZY_FETCH: &[(&str, &str)] =
    &[("remote", "promisor"), ("remote", "partialclonefilter"), ("extensions", "partialclone")];

/// Whether a definition only lets git fetch missing objects. `GIT_NO_LAZY_FETCH` prevents that, so a
/// partial clone can be used without trust.
pub fn is_lazy_fetch(definition: &Definition) -> bool {
    let (section, key) = definition.name.rsplit_once('.').unwrap_or_default();
    let section = section.split_once('.').map_or(section, |(section, _)| section);
    // Further values of a key are numbered.
    let key = key.split_once(' ').map_or(key, |(key, _)| key);
    definition.kind == DefinitionKind::Git && LAZY_FETCH.contains(&(section, key))
}

/// The definitions in a repository's own git settings that may run a command, and its git hooks.
/// A key counts unless it is known to be harmless.
pub fn commands_in_git(repository: &Repository) -> Vec<Definition> {
    let mut found = vec![];
    for path in &repository.skipped {
        let skipped =
            Definition::new(DefinitionKind::Git, place_of(path, repository), "git folder", "");
        found.push(skipped.detailed("is not a valid git folder"));
    }
    let Some((tree, folders)) = &repository.git else { return found };
    if !repository.is_own(tree, folders) {
        // A `.git` file can name any folder, and a `config` that is not git's must not be shown.
        let text = folders.shared.display().to_string();
        let elsewhere = Definition::new(DefinitionKind::Git, ".git", "git folder", &text);
        found.push(elsewhere.detailed(format!("lies outside of the repository, in {text}")));
        return found;
    }
    // Below the root links do not lead out; a worktree's folder is the main repository's own.
    let files = ProjectFiles::at_root(tree).ok();
    let inspection = Inspection { repository, tree, files: files.as_ref() };
    inspection.settings(&folders.shared.join("config"), &mut found);
    inspection.settings(&folders.own.join("config.worktree"), &mut found);
    inspection.hooks(&folders.shared.join("hooks"), &mut found);
    inspection.nested(folders, &mut found);
    found.sort();
    found.dedup();
    found
}

/// What git's data is looked at with.
struct Inspection<'r> {
    repository: &'r Repository,
    tree: &'r Path,
    files: Option<&'r ProjectFiles>,
}

impl Inspection<'_> {
    /// The files of the working tree, for a path in it.
    fn inside(&self, path: &Path) -> Option<&ProjectFiles> {
        self.files.filter(|_| path.starts_with(self.tree))
    }

    fn read(&self, path: &Path) -> Option<Vec<u8>> {
        let bytes = match self.inside(path) {
            Some(files) => files.read(path, files::MOST_BYTES),
            None => atomic_files::read(path, files::MOST_BYTES),
        };
        bytes.ok()
    }

    fn definition(&self, path: &Path, name: impl Into<String>, text: &str) -> Definition {
        Definition::new(DefinitionKind::Git, place_of(path, self.repository), name, text)
    }

    fn settings(&self, path: &Path, found: &mut Vec<Definition>) {
        if place::is_absent(path) {
            return;
        }
        let bytes = self.read(path);
        let Some(entries) = bytes.as_ref().and_then(|bytes| entries(bytes)) else {
            let text = bytes.map_or_else(|| target(path), |text| text.escape_ascii().to_string());
            found.push(self.definition(path, "config", &text).detailed("cannot be read"));
            return;
        };
        let mut names = BTreeMap::new();
        for Entry { section, key, value } in entries {
            let name = section.split_once('.').map_or(section.as_str(), |(name, _)| name);
            let is_harmless =
                HARMLESS.iter().any(|(of, one)| *of == name && (*one == "*" || *one == key));
            if is_harmless {
                continue;
            }
            // A key can have several values, and each is a definition with a name of its own.
            let name = format!("{section}.{key}");
            let count = names.entry(name.clone()).or_insert(0);
            *count += 1;
            let name = if *count == 1 { name } else { format!("{name} ({count})") };
            found.push(self.definition(path, name, &value));
        }
    }

    /// What repositories in the working tree define. Data elsewhere is not shown, only told.
    fn nested(&self, outer: &GitFolders, found: &mut Vec<Definition>) {
        let nested = nested::nested(self.tree, outer);
        for GitFolders { own, shared } in &nested.folders {
            let is_known =
                |folder: &Path| folder.starts_with(self.tree) || folder.starts_with(&outer.shared);
            if !is_known(own) || !is_known(shared) {
                let text = shared.display().to_string();
                let elsewhere = self.definition(own, "git folder", &text);
                found.push(elsewhere.detailed("lies outside of the repository"));
                continue;
            }
            self.settings(&own.join("config.worktree"), found);
            if *shared != outer.shared {
                let before = found.len();
                self.settings(&shared.join("config"), found);
                // Every submodule names its working tree.
                let is_inside = |path: &str| {
                    let path = shared.join(path).canonicalize();
                    path.is_ok_and(|path| path.starts_with(self.tree))
                };
                let settings = found.split_off(before).into_iter();
                let is_place =
                    |one: &Definition| one.name == "core.worktree" && is_inside(&one.text);
                found.extend(settings.filter(|one| !is_place(one)));
                self.hooks(&shared.join("hooks"), found);
            }
        }
        let index = outer.own.join("index");
        if nested.has_more && nested::has_submodules(&index) {
            let many = self.definition(&index, "submodules", "");
            found.push(many.detailed("too many files to look for the settings of submodules"));
        }
    }

    fn hooks(&self, folder: &Path, found: &mut Vec<Definition>) {
        if self.inside(folder).is_some_and(|files| files::leads_out(files, folder)) {
            let target = target(folder);
            let link = self.definition(folder, "hooks", &target);
            found.push(link.detailed(format!("link out of the repository, to {target}")));
            return;
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.ends_with(".sample") {
                let path = entry.path();
                let text = files::read_in(&path, self.inside(&path));
                let text = text.map_or_else(|_| target(&path), |text| text.text);
                let hook = self.definition(&path, format!("hook {name}"), &text);
                found.push(hook.detailed(""));
            }
        }
    }
}

/// Where a link leads; nothing for anything else.
fn target(path: &Path) -> String {
    fs::read_link(path).unwrap_or_default().display().to_string()
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
        let names = |repository: &Repository| -> Vec<String> {
            commands_in_git(repository).iter().map(|found| found.name.clone()).collect()
        };
        assert_eq!(names(&tree), ["core.fsmonitor", "hook post-checkout"]);
        // The home folder lies in the project.
        let home = dir.path().join("main/home");
        std::fs::create_dir(&home).unwrap();
        let around_home = Repository::of(&dir.path().join("main"), Some(&home));
        assert_eq!(names(&around_home), ["core.fsmonitor", "hook post-checkout"]);
        // Each value of a key has an id of its own.
        git(&["-C", "main", "config", "--add", "url.a.insteadOf", "b"]);
        git(&["-C", "main", "config", "--add", "url.a.insteadOf", "c"]);
        let twice = names(&main).into_iter().filter(|name| name.starts_with("url"));
        assert_eq!(twice.collect::<Vec<_>>(), ["url.a.insteadof", "url.a.insteadof (2)"]);
    }

    #[test]
    fn a_submodule_counts_once_it_has_a_command() {
        let dir = tempfile::tempdir().unwrap();
        let git = |args: &[&str]| {
            let mut command = Command::new("git");
            command.current_dir(dir.path()).args(["-c", "user.name=t", "-c", "user.email=t@e"]);
            command.args(["-c", "protocol.file.allow=always"]);
            assert!(command.args(args).status().unwrap().success(), "{args:?}");
        };
        git(&["init", "-q", "lib"]);
        git(&["-C", "lib", "commit", "-q", "--allow-empty", "-m", "one"]);
        git(&["init", "-q", "main"]);
        git(&["-C", "main", "submodule", "--quiet", "add", "../lib", "sub"]);
        let main = Repository::of(&dir.path().join("main"), None);
        assert_eq!(commands_in_git(&main), []);
        git(&["-C", "main/sub", "config", "core.fsmonitor", "./evil.sh"]);
        assert_eq!(commands_in_git(&main).len(), 1);
    }

    /// What cannot be judged is a definition.
    #[test]
    fn a_git_folder_that_cannot_be_read_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let init = Command::new("git").current_dir(dir.path()).args(["init", "-q"]).status();
        assert!(init.unwrap().success());
        let inner = dir.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let root = dir.path().canonicalize().unwrap();
        let large = format!("gitdir: {}\n", "x".repeat(2 << 20));
        for text in ["", "gitdir:../.git\n", "gitdir: nowhere\n", " gitdir: ../.git", &large] {
            std::fs::write(inner.join(".git"), text).unwrap();
            let found = Repository::of(&inner, None);
            assert_eq!((&found.root, commands_in_git(&found).len()), (&root, 1), "{text:.30}");
        }
        std::fs::remove_file(inner.join(".git")).unwrap();
        assert_eq!(commands_in_git(&Repository::of(&inner, None)), []);
        std::fs::write(dir.path().join(".git/commondir"), "nowhere\n").unwrap();
        assert_eq!(commands_in_git(&Repository::of(&inner, None)).len(), 1);
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
