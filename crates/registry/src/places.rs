//! Where entities are looked for.

use std::path::{Path, PathBuf};

use crate::project::Repository;
use crate::{Kind, Provider, Scope};

/// A folder in which entities are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) scope: Scope,
    pub(crate) provider: Provider,
    pub(crate) kind: Kind,
    pub(crate) folder: PathBuf,
    /// Whether the folder lies above the project's, so that only restrictions are read.
    pub(crate) is_above: bool,
}

/// A file of settings in which entities are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigFile {
    pub(crate) scope: Scope,
    pub(crate) path: PathBuf,
    /// What `~` stands for in it.
    pub(crate) home: Option<PathBuf>,
    /// Whether `{file:…}` in it is read.
    pub(crate) reads_files: bool,
    /// Whether only restrictions are read: the file lies above the project's folder, or the
    /// environment names it.
    pub(crate) only_restricts: bool,
    /// The text, where the environment has it instead of a file.
    pub(crate) text: Option<String>,
}

/// Settings of OpenCode that the environment names. Like the user's files they restrict everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenCodeEnvironment {
    /// Files, in the order in which OpenCode reads them.
    pub files: Vec<PathBuf>,
    /// The value of `OPENCODE_CONFIG_CONTENT`.
    pub content: Option<String>,
}

impl OpenCodeEnvironment {
    /// Reads the variables that OpenCode 1.18.33 knows.
    pub fn read(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Self {
        let path = |name: &str| variable(name).filter(|it| !it.is_empty()).map(PathBuf::from);
        let mut files = vec![];
        if let Some(folder) = path("XDG_CONFIG_HOME").map(|it| it.join("opencode")) {
            files.push(folder.join(OLDER));
            files.extend(NAMES.map(|name| folder.join(name)));
        }
        files.extend(path("OPENCODE_CONFIG"));
        if let Some(folder) = path("OPENCODE_CONFIG_DIR") {
            files.extend(NAMES.map(|name| folder.join(name)));
        }
        let content = variable(CONTENT).map(|text| text.to_string_lossy().into_owned());
        Self { files, content: content.filter(|text| !text.trim().is_empty()) }
    }
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
    /// Settings of OpenCode that the environment names.
    pub opencode: OpenCodeEnvironment,
    /// Whether the user trusts the project. Without trust the project's entities replace none of
    /// the user's and none that are built in, and `{file:…}` in them is not read.
    pub trusted: bool,
}

impl Folders {
    /// The folders of a project that is trusted, and of a user with this home folder.
    pub fn trusted(project: PathBuf, home: Option<PathBuf>) -> Self {
        let own = home.as_ref().map(|home| home.join(".atomic"));
        Self { project, home, own, opencode: OpenCodeEnvironment::default(), trusted: true }
    }

    /// Every folder, the nearest first and inside a scope in the order of providers.
    pub(crate) fn places(&self) -> Vec<Place> {
        let is_shared = self.home_is_project();
        let mut places = vec![];
        for scope in [Scope::Project, Scope::User, Scope::Managed] {
            for provider in Provider::ALL {
                for base in self.bases(provider, scope, is_shared) {
                    for (kind, name) in names(provider) {
                        let folder = base.join(name);
                        let is_above = false;
                        places.push(Place { scope, provider, kind: *kind, folder, is_above });
                    }
                }
            }
        }
        let (scope, provider, kind) = (Scope::Project, Provider::OpenCode, Kind::Agent);
        for folder in self.above() {
            let folders = ["agent", "agents"].map(|name| folder.join(".opencode").join(name));
            let is_above = true;
            places.extend(folders.map(|folder| Place { scope, provider, kind, folder, is_above }));
        }
        places
    }

    /// The folders above the project's, up to the root of its repository, the nearest first.
    /// OpenCode reads its settings and agents in them as well.
    fn above(&self) -> Vec<PathBuf> {
        let Ok(real) = self.project.canonicalize() else { return vec![] };
        let root = Repository::of(&real, self.home.as_deref()).root;
        let inside = real.ancestors().skip(1).take_while(|above| above.starts_with(&root));
        inside.map(Path::to_owned).collect()
    }

    /// OpenCode's own settings, which may hold entities too, in the order in which OpenCode 1.18.33
    /// merges those of a scope: a later file wins.
    pub(crate) fn config_files(&self) -> Vec<ConfigFile> {
        let is_shared = self.home_is_project();
        let mut files = vec![];
        let above = self.above();
        let file = |scope, path, only_restricts| ConfigFile {
            scope,
            path,
            home: self.home.clone(),
            reads_files: self.trusted || scope != Scope::Project,
            only_restricts,
            text: None,
        };
        for folder in above.iter().rev() {
            files.extend(NAMES.map(|name| file(Scope::Project, folder.join(name), true)));
        }
        for scope in [Scope::Project, Scope::User, Scope::Managed] {
            let below = (config_folders(scope), config_folders(Scope::Project));
            for folder in self.below(scope, below, is_shared) {
                if scope == Scope::User && folder.ends_with(USERS) {
                    files.push(file(scope, folder.join(OLDER), false));
                }
                files.extend(NAMES.map(|name| file(scope, folder.join(name), false)));
            }
            if scope == Scope::Project {
                // The outermost `.opencode` wins, other than with plain files.
                for folder in above.iter().map(|folder| folder.join(".opencode")) {
                    files.extend(NAMES.map(|name| file(scope, folder.join(name), true)));
                }
            }
            if scope == Scope::User {
                let is_new = |path: &&PathBuf| !files.iter().any(|file| file.path == **path);
                let named: Vec<PathBuf> =
                    self.opencode.files.iter().filter(is_new).cloned().collect();
                files.extend(named.into_iter().map(|path| file(scope, path, true)));
                let content = self.opencode.content.clone();
                files.extend(content.map(|text| ConfigFile {
                    text: Some(text),
                    ..file(scope, PathBuf::from(CONTENT), true)
                }));
            }
        }
        files
    }

    /// The folders of a provider in a scope.
    fn bases(&self, provider: Provider, scope: Scope, is_shared: bool) -> Vec<PathBuf> {
        if (provider, scope) == (Provider::Atomic, Scope::User) {
            // A folder of ours inside the project is the project's.
            let is_projects = |own: &PathBuf| is_same(own, &self.project.join(".atomic"));
            return self.own.clone().filter(|own| !is_projects(own)).into_iter().collect();
        }
        let below = (bases(provider, scope), bases(provider, Scope::Project));
        self.below(scope, below, is_shared)
    }

    /// Folders below the root of a scope. Where the home folder is the project, what both may have
    /// is read once, as the project's; what only a home folder has is still the user's.
    fn below(
        &self,
        scope: Scope,
        (names, of_project): (&[&str], &[&str]),
        is_shared: bool,
    ) -> Vec<PathBuf> {
        let root = match scope {
            Scope::Project => Some(&self.project),
            Scope::User => self.home.as_ref(),
            Scope::Managed => self.own.as_ref(),
            Scope::BuiltIn => None,
        };
        let is_read =
            |name: &&&str| !(is_shared && scope == Scope::User && of_project.contains(*name));
        names.iter().filter(is_read).filter_map(|name| Some(root?.join(name))).collect()
    }

    pub(crate) fn home_is_project(&self) -> bool {
        self.home.as_ref().is_some_and(|home| is_same(home, &self.project))
    }
}

/// Whether two paths lead to the same place; where one leads nowhere, whether they are written
/// the same.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
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
        (Provider::Copilot, Scope::User) => &[".copilot", ".github"],
        (Provider::Copilot, Scope::Managed) => &[".copilot"],
    }
}

/// The names of OpenCode's settings in every folder.
const NAMES: [&str; 2] = ["opencode.json", "opencode.jsonc"];

/// The user's folder of OpenCode's settings.
const USERS: &str = ".config/opencode";

/// The older name of settings, which OpenCode reads in the user's folder only.
const OLDER: &str = "config.json";

/// The variable that holds settings itself.
const CONTENT: &str = "OPENCODE_CONFIG_CONTENT";

/// Where OpenCode's settings lie below a root.
fn config_folders(scope: Scope) -> &'static [&'static str] {
    match scope {
        Scope::Project => &["", ".opencode"],
        Scope::User => &[USERS, ".opencode"],
        Scope::Managed => &[".opencode"],
        Scope::BuiltIn => &[],
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
