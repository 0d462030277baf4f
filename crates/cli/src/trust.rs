//! What the user has said they trust: folders, and the code of workflow files as it was then.
//!
//! It is kept in the user's home folder, one line for each time something was said, so that
//! several programs can write at once. Nothing in a project can say that it is trusted.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::home;

/// What the user trusts.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    /// What was said, oldest first.
    said: Vec<Said>,
}

/// Something the user said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Said {
    at: Timestamp,
    /// The folder it is about.
    root: PathBuf,
    #[serde(flatten)]
    what: What,
}

/// What was said about a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "trust", rename_all = "snake_case")]
enum What {
    /// The code of a workflow may be run while it is this code.
    File {
        file: PathBuf,
        /// Of the file and everything it imports.
        hash: String,
    },
    /// The code of a workflow was run, once: its sessions may be taken up again.
    Ran { hash: String },
    /// What is in the folder may be run: hooks, MCP servers and, whatever becomes of them,
    /// workflows if `always`.
    Folder { always: bool },
    /// Nothing of it is trusted any more.
    Withdrawn,
}

/// What holds for a folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Its hooks and MCP servers may run.
    pub(crate) folder: bool,
    /// So may its workflows, whatever becomes of them.
    pub(crate) always: bool,
    /// The workflow files whose code may run, each with its hash; the newest last.
    pub(crate) files: Vec<(PathBuf, String)>,
}

impl Standing {
    /// Whether this code may be run.
    pub(crate) fn has(&self, hash: &str) -> bool {
        self.always || self.files.iter().any(|(_, known)| known == hash)
    }
}

/// Where it is kept; without a home folder nothing can be remembered.
fn place() -> Option<PathBuf> {
    Some(home::folder()?.join("trust.jsonl"))
}

/// A folder by what it really is, however it was written.
fn real(root: &Path) -> PathBuf {
    root.canonicalize().unwrap_or_else(|_| root.to_owned())
}

impl Trust {
    /// What was said so far. A line that cannot be read gives no trust.
    pub(crate) fn read() -> Self {
        let text = place().and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        Self { said: text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect() }
    }

    /// What holds for a folder.
    pub(crate) fn of(&self, root: &Path) -> Standing {
        let root = real(root);
        let mut standing = Standing::default();
        for said in self.said.iter().filter(|said| said.root == root) {
            match &said.what {
                What::File { file, hash } => {
                    standing.files.retain(|(_, known)| known != hash);
                    standing.files.push((file.clone(), hash.clone()));
                }
                What::Folder { always } => {
                    standing.folder = true;
                    standing.always = *always;
                }
                What::Ran { .. } => {}
                What::Withdrawn => standing = Standing::default(),
            }
        }
        standing
    }

    /// Whether exactly this code was trusted or run before, wherever that was: what a session says
    /// about where its code comes from is no proof.
    pub(crate) fn knows(&self, hash: &str) -> bool {
        let mut roots: Vec<&Path> = vec![];
        for said in &self.said {
            match &said.what {
                What::File { hash: known, .. } | What::Ran { hash: known } if known == hash => {
                    roots.push(&said.root);
                }
                What::Withdrawn => roots.retain(|root| *root != said.root),
                What::File { .. } | What::Ran { .. } | What::Folder { .. } => {}
            }
        }
        !roots.is_empty()
    }

    /// The user has the code of a workflow run.
    pub(crate) fn remember_run(&mut self, root: &Path, hash: &str) -> Result<(), Failure> {
        if self.knows(hash) {
            return Ok(());
        }
        self.say(root, What::Ran { hash: hash.to_owned() })
    }

    /// Every folder about which something was said and not taken back, in the order of first
    /// mention.
    pub(crate) fn folders(&self) -> Vec<(PathBuf, Standing)> {
        let mut roots: Vec<&Path> = vec![];
        for said in &self.said {
            if !roots.contains(&said.root.as_path()) {
                roots.push(&said.root);
            }
        }
        let standing = roots.into_iter().map(|root| (root.to_owned(), self.of(root)));
        standing.filter(|(_, standing)| *standing != Standing::default()).collect()
    }

    /// The user trusts the code of a workflow.
    pub(crate) fn remember_file(
        &mut self,
        root: &Path,
        file: &Path,
        hash: &str,
    ) -> Result<(), Failure> {
        self.say(root, What::File { file: file.to_owned(), hash: hash.to_owned() })
    }

    /// The user trusts a folder.
    pub(crate) fn remember_folder(&mut self, root: &Path, always: bool) -> Result<(), Failure> {
        self.say(root, What::Folder { always })
    }

    /// The user trusts nothing in a folder any more.
    pub(crate) fn withdraw(&mut self, root: &Path) -> Result<(), Failure> {
        self.say(root, What::Withdrawn)
    }

    fn say(&mut self, root: &Path, what: What) -> Result<(), Failure> {
        let path = place().ok_or_else(|| {
            Failure::Failed(
                "there is no home folder to remember this in; set HOME, or use --trust".to_owned(),
            )
        })?;
        let said = Said { at: Timestamp::now(), root: real(root), what };
        append(&path, &said).map_err(|error| {
            Failure::Failed(format!("{}: it cannot be written: {error}", path.display()))
        })?;
        self.said.push(said);
        Ok(())
    }
}

/// Whether the user has trusted a project's folder: its hooks and MCP servers may run.
pub(crate) fn is_trusted(project: &Path) -> bool {
    Trust::read().of(project).folder
}

/// Adds a line. One write: several programs may do this at once.
fn append(path: &Path, said: &Said) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let line = serde_json::to_string(said)? + "\n";
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    file.write_all(line.as_bytes())?;
    file.sync_data()
}

/// Where a folder comes from: the address git fetches it from, without any password in it.
pub(crate) fn comes_from(root: &Path) -> Option<String> {
    let folder = root.ancestors().find(|folder| folder.join(".git").exists())?;
    let text = fs::read_to_string(folder.join(".git/config")).ok()?;
    let mut in_origin = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            in_origin = line == "[remote \"origin\"]";
        } else if let Some((key, value)) = line.split_once('=')
            && in_origin
            && key.trim() == "url"
        {
            return Some(without_password(value.trim()));
        }
    }
    None
}

fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}/{path}")
}

#[cfg(test)]
mod tests {
    use super::without_password;

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
