//! How agent programs reach their providers: addresses, keys, key helpers, proxies.
//!
//! Only the user's own files and environment decide this. The same keys in a project's files are
//! not used, whether the project is trusted or not. The sources that each program reads, and which of
//! them wins, were measured on the pinned versions: `docs/claude.md`, `docs/opencode.md`, `docs/copilot.md`.

mod files;
mod names;
mod payment;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(crate) use files::{json_object, read_text};
pub(crate) use names::{is_of_cloud, is_withheld, names_model, reaches_provider};
pub use payment::{Credential, Pay};
pub(crate) use payment::{chosen_first, gateway, tilde};

use crate::Inherit;
use crate::{claude, copilot, opencode};

/// A setting in a project's file that says how a provider is reached, and is not used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnusedSetting {
    /// The project's file.
    pub file: PathBuf,
    /// The key in it, such as `env.ANTHROPIC_BASE_URL`.
    pub key: String,
}

/// Settings about the provider of an agent program in the files of a project, none of which is
/// used. Files that cannot be read are left out; a turn is refused because of them.
pub fn unused_settings(program: &str, workspace: &Path) -> Vec<UnusedSetting> {
    let mut found = match program {
        "claude" => claude::unused_settings(workspace),
        "opencode" => opencode::unused_settings(workspace),
        // Measured with 1.0.102: no file of a project sets a provider, a key or a proxy.
        _ => vec![],
    };
    found.sort();
    found.dedup();
    found
}

/// The user's own file where settings about the provider of an agent program belong.
pub fn users_file(program: &str) -> Option<&'static str> {
    match program {
        "claude" => Some("~/.claude/settings.json"),
        "opencode" => Some("~/.config/opencode/opencode.json"),
        "copilot" => Some("~/.copilot/providers.json"),
        _ => None,
    }
}

/// The problem with the user's own files of an agent program, if they cannot be used in this
/// folder.
pub fn problem(program: &str, workspace: &Path) -> Option<String> {
    match program {
        "claude" => claude::settings_problem(workspace, Inherit::None),
        "opencode" => opencode::settings_problem(workspace),
        "copilot" => copilot::settings_problem(),
        _ => None,
    }
}

/// The environment of an agent program: ours, with variables that are added to it.
pub(crate) struct Environment<'e>(pub(crate) &'e [(String, String)]);

impl Environment<'_> {
    /// The value of a variable; an empty one counts as not set, as the programs take it.
    pub(crate) fn get_os(&self, name: &str) -> Option<OsString> {
        let added = self.0.iter().rev().find(|(known, _)| known == name);
        let added = added.map(|(_, value)| OsString::from(value));
        added.or_else(|| std::env::var_os(name)).filter(|value| !value.is_empty())
    }

    /// The value of a variable, where it is a text.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.get_os(name)?.into_string().ok()
    }

    /// The path in a variable. A relative one would name a file of whichever project is open, so
    /// it is refused.
    pub(crate) fn path(&self, name: &str) -> Result<Option<PathBuf>, String> {
        let Some(path) = self.get_os(name).map(PathBuf::from) else { return Ok(None) };
        if path.is_absolute() {
            return Ok(Some(path));
        }
        Err(format!(
            "{name}={}: a relative path would name a file of the project\n  hint: give {name} an \
             absolute path, or unset it",
            path.display()
        ))
    }

    /// The home folder.
    pub(crate) fn home(&self) -> PathBuf {
        home_folder(self.get_os("HOME").map(PathBuf::from))
    }
}

/// The home folder: the one that is named, else the one in the system's list of users. Never a
/// relative path: files of whichever project is open would count as the user's.
pub(crate) fn home_folder(named: Option<PathBuf>) -> PathBuf {
    let is_absolute = |folder: &PathBuf| folder.is_absolute();
    let named = named.filter(is_absolute);
    let home = named.or_else(|| std::env::home_dir().filter(is_absolute));
    home.unwrap_or_else(|| PathBuf::from("/"))
}

#[cfg(test)]
mod tests {
    use super::{Environment, home_folder};

    #[test]
    fn no_place_of_the_users_is_relative() {
        assert_eq!(home_folder(Some("/home/me".into())), std::path::Path::new("/home/me"));
        for named in [None, Some(".".into()), Some("".into())] {
            assert!(home_folder(named).is_absolute());
        }
        let own = [("HERE".to_owned(), "file".to_owned()), ("EMPTY".to_owned(), String::new())];
        let env = Environment(&own);
        assert!(env.path("HERE").unwrap_err().contains("HERE=file"));
        assert_eq!(env.path("EMPTY"), Ok(None));
    }
}
