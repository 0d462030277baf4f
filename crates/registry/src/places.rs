//! Where entities are looked for.

use std::path::{Path, PathBuf};

use crate::{Kind, Provider, Scope};

/// A folder in which entities are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) scope: Scope,
    pub(crate) provider: Provider,
    pub(crate) kind: Kind,
    pub(crate) folder: PathBuf,
}

/// A file of settings in which entities are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigFile {
    pub(crate) scope: Scope,
    pub(crate) path: PathBuf,
}

/// The folders that a project and a user have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    /// The project's folder.
    pub project: PathBuf,
    /// The user's home folder, when there is one.
    pub home: Option<PathBuf>,
    /// The user's folder for everything of ours; `.atomic` in the home folder unless it is moved.
    pub own: Option<PathBuf>,
}

impl Folders {
    /// The folders of a project, and of a user with this home folder.
    pub fn of(project: PathBuf, home: Option<PathBuf>) -> Self {
        let own = home.as_ref().map(|home| home.join(".atomic"));
        Self { project, home, own }
    }

    /// Every folder, the nearest first and inside a scope in the order of providers.
    pub(crate) fn places(&self) -> Vec<Place> {
        let mut places = vec![];
        // A folder of ours inside the project is the project's.
        let own = self.own.as_deref().filter(|own| !is_same(own, &self.project.join(".atomic")));
        for (scope, root) in self.roots() {
            for provider in Provider::ALL {
                let bases: Vec<PathBuf> = match (provider, scope) {
                    (Provider::Atomic, Scope::User) => {
                        own.map(Path::to_owned).into_iter().collect()
                    }
                    _ => bases(provider, scope)
                        .iter()
                        .filter_map(|base| Some(root.as_ref()?.join(base)))
                        .collect(),
                };
                for base in bases {
                    for (kind, name) in names(provider) {
                        let folder = base.join(name);
                        places.push(Place { scope, provider, kind: *kind, folder });
                    }
                }
            }
        }
        places
    }

    /// OpenCode's own settings, which may hold entities too.
    pub(crate) fn config_files(&self) -> Vec<ConfigFile> {
        let mut files = vec![];
        for (scope, root) in self.roots() {
            let Some(root) = root else { continue };
            let folders: &[&str] = match scope {
                Scope::Project => &["", ".opencode"],
                Scope::User => &[".config/opencode", ".opencode"],
                Scope::Managed => &[".opencode"],
                Scope::BuiltIn => &[],
            };
            for folder in folders {
                for name in ["opencode.json", "opencode.jsonc"] {
                    files.push(ConfigFile { scope, path: root.join(folder).join(name) });
                }
            }
        }
        files
    }

    /// The roots by scope. A home folder that is the project is read once, as the project.
    fn roots(&self) -> [(Scope, Option<PathBuf>); 3] {
        let home = self.home.clone().filter(|home| !is_same(home, &self.project));
        [
            (Scope::Project, Some(self.project.clone())),
            (Scope::User, home),
            (Scope::Managed, self.own.clone()),
        ]
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        (Ok(_) | Err(_), _) => one == other,
    }
}

/// The folders of a provider below a root. Our own of a user is a root itself.
fn bases(provider: Provider, scope: Scope) -> &'static [&'static str] {
    match (provider, scope) {
        (_, Scope::BuiltIn) | (Provider::Atomic, Scope::User | Scope::Managed) => &[],
        (Provider::Atomic, Scope::Project) => &[".atomic"],
        (Provider::Claude, _) => &[".claude"],
        (Provider::OpenCode, Scope::User) => &[".opencode", ".config/opencode"],
        (Provider::OpenCode, Scope::Project | Scope::Managed) => &[".opencode"],
        (Provider::Copilot, Scope::Project) => &[".github", ".copilot"],
        (Provider::Copilot, Scope::User | Scope::Managed) => &[".copilot"],
    }
}

/// What the folders of a provider are called.
fn names(provider: Provider) -> &'static [(Kind, &'static str)] {
    match provider {
        Provider::Atomic | Provider::Claude => {
            &[(Kind::Command, "commands"), (Kind::Skill, "skills"), (Kind::Agent, "agents")]
        }
        Provider::OpenCode => &[
            (Kind::Command, "command"),
            (Kind::Command, "commands"),
            (Kind::Skill, "skill"),
            (Kind::Skill, "skills"),
            (Kind::Agent, "agent"),
            (Kind::Agent, "agents"),
        ],
        Provider::Copilot => &[(Kind::Skill, "skills"), (Kind::Agent, "agents")],
    }
}
