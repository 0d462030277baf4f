//! Settings, from built-in values over files and variables to flags, each with its origin.
//!
//! [`SETTINGS`] declares them, with everything that is known about each; [`read`] puts the layers
//! below the flags together. Nothing here looks at the environment by itself.

mod edit;
mod file;
mod layer;
mod page;
mod problem;
mod table;
mod value;
mod variables;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

pub use edit::{set, unset};
pub use layer::{Origin, Reading, Scope, Sourced, Values};
pub use page::{reference, template};
pub use problem::{Place, Problem};
pub use table::{
    ALLOW_ROOT, BACKEND, CHECK, Class, ENV_ALLOW, INHERIT, INHIBIT_SLEEP, MAX_ATTEMPTS, MAX_COST,
    MAX_ITERATIONS, MAX_LAUNCHES, MAX_REVIEW_ROUNDS, MAX_TASK_COST, MAX_TOKENS, MODEL, ON_QUESTION,
    PAY, Preset, RALPH_PLANNER, RALPH_REVIEWER, RALPH_WORKER, REQUIRE_CHECKS, RETRY_WINDOW, SCRIPT,
    SETTINGS, Setting, TIMEOUT, TRUST, TRUSTED_FOLDERS, TURN_TIMEOUT, WORKERS, find, nearest_key,
    renamed, variable_names,
};
pub use value::{Kind, Value, WrongValue};
pub use variables::{Audience, VARIABLES, Variable};

use crate::finding::Finding;
use crate::places;
use crate::project::ProjectFiles;

/// The name of a settings file in its folder.
pub const FILE_NAME: &str = "settings.json";

/// The folder in a project with everything of ours.
pub const PROJECT_FOLDER: &str = ".atomic";

/// What every variable of the program begins with.
const PREFIX: &str = "ATOMIC_";

/// The settings files there may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    user: Option<PathBuf>,
    project: PathBuf,
    /// The user's home folder, which is not part of a project.
    home: Option<PathBuf>,
}

impl Files {
    /// Those of the user, whose folder for everything of ours this is, and of the project.
    pub fn new(user: Option<&Path>, project: &Path) -> Self {
        let user = user.map(|folder| folder.join(FILE_NAME));
        let project = project.join(PROJECT_FOLDER).join(FILE_NAME);
        Self { user, project, home: None }
    }

    /// The same for a user with this home folder: a repository that holds it is not a project.
    #[must_use]
    pub fn with_home(self, home: Option<PathBuf>) -> Self {
        Self { home, ..self }
    }

    /// The files of the project; none where the project's settings are the user's own.
    pub fn of_project(&self) -> std::io::Result<Option<ProjectFiles>> {
        let folder = self.project.parent().and_then(Path::parent).unwrap_or(Path::new(""));
        let files = ProjectFiles::of(folder, self.home.as_deref())?;
        // A project whose file is a link to the user's is a project all the same.
        let is_users = self.is_one_file() && files.require_inside(&self.project).is_ok();
        Ok((!is_users).then_some(files))
    }

    /// One of them; none of the user's without a home folder.
    pub fn path(&self, scope: Scope) -> Option<&Path> {
        match scope {
            Scope::User => self.user.as_deref(),
            Scope::Project => Some(&self.project),
        }
    }

    /// Whether the project's file is the user's own: the project is the home folder.
    fn is_one_file(&self) -> bool {
        self.user.as_ref().is_some_and(|user| places::is_same(user, &self.project))
    }

    /// Reads the user's file.
    pub fn read_user(&self) -> Reading {
        self.user
            .as_deref()
            .map_or_else(Reading::default, |path| file::read(path, Scope::User, None))
    }

    /// Reads both files, the project's over the user's, as far as the project's counts. A file
    /// that is both is read once, as the user's.
    pub fn read(&self, trusted: bool) -> Reading {
        let user = self.read_user();
        if self.is_one_file() {
            return user;
        }
        let below = user.values.clone().over(Values::built_in());
        // Without a folder there is no file in it either.
        let Ok(project) = self.of_project() else { return user };
        let read = file::read(&self.project, Scope::Project, project.as_ref());
        read.of_project(&below, trusted).over(user)
    }

    /// The values in the project's file that count only when the user trusts the repository.
    pub fn needing_trust(&self) -> Values {
        self.read(false).withheld
    }
}

/// What environment variables say. An empty one counts as not set.
pub fn read_variables(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Reading {
    // Other programs may have variables like ours; only one that looks misspelt is worth a word
    // each time.
    of_variables(variables, |near| near.is_some())
}

/// What variables say, and those that do not exist, as far as they are to be told: that depends on
/// which was probably meant.
fn of_variables(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    is_told: impl Fn(Option<&str>) -> bool,
) -> Reading {
    let is_ours = |name: &String| name.starts_with(PREFIX);
    let named =
        |(name, text): (OsString, OsString)| Some((name.into_string().ok().filter(is_ours)?, text));
    let mut variables: Vec<(String, OsString)> = variables.into_iter().filter_map(named).collect();
    variables.sort();
    let mut reading = Reading::default();
    for (name, text) in variables.into_iter().filter(|(_, text)| !text.is_empty()) {
        if let Some(setting) = SETTINGS.iter().find(|setting| setting.variable == name) {
            read_variable(setting, &text, &mut reading);
        } else if let Some(instead) = name.strip_prefix(PREFIX).and_then(renamed) {
            let message = format!("{name} is now {PREFIX}{}", instead.to_uppercase());
            let remedy = "rename the variable";
            reading.problems.push(Problem::new(Place::Variable(name), message, remedy));
        } else if !variable_names().any(|known| known == name) {
            let near = nearest_variable(&name);
            reading.warnings.extend(is_told(near).then(|| unknown(name, near)));
        }
    }
    reading
}

fn read_variable(setting: &'static Setting, text: &OsStr, reading: &mut Reading) {
    let place = || Place::Variable(setting.variable.to_owned());
    match text.to_str().map(|text| setting.parse(text)) {
        Some(Ok(value)) => {
            let origin = Origin::Variable(setting.variable);
            reading.values.insert(setting, Sourced { value, origin });
        }
        Some(Err(wrong)) => {
            reading.problems.push(Problem::new(place(), wrong.problem, wrong.remedy));
        }
        None => {
            reading.problems.push(Problem::new(place(), "it is not UTF-8", "write it as UTF-8"));
        }
    }
}

fn unknown(name: String, near: Option<&str>) -> Problem {
    let meant = near.map_or_else(String::new, |near| format!(" (did you mean {PREFIX}{near}?)"));
    let message = format!("there is no such variable{meant}, so it does nothing");
    let remedy = "`atomic config list` shows all settings";
    Problem::new(Place::Variable(name), message, remedy)
}

/// The variable that was probably meant, without what they all begin with.
fn nearest_variable(name: &str) -> Option<&'static str> {
    let known = variable_names().filter_map(|known| known.strip_prefix(PREFIX));
    atomic_graph::check::nearest(name.strip_prefix(PREFIX)?, known)
}

/// Everything of the user's below the flags: built-in < user's file < variables.
pub fn read_users_own(
    files: &Files,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Reading {
    let built_in = Reading { values: Values::built_in(), ..Reading::default() };
    read_variables(variables).over(files.read_user()).over(built_in)
}

/// Everything below the flags: built-in < user's file < project's file < variables. `trusted` is
/// whether the user trusts the project's repository.
pub fn read(
    files: &Files,
    trusted: bool,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Reading {
    let built_in = Reading { values: Values::built_in(), ..Reading::default() };
    read_variables(variables).over(files.read(trusted)).over(built_in)
}

/// Everything that is wrong or odd about settings files and variables.
pub fn findings(
    files: &Files,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<Finding> {
    let all = of_variables(variables, |_| true).over(files.read(true));
    let problems = all.problems.into_iter().map(|problem| problem.into_finding(true));
    let warnings = all.warnings.into_iter().map(|problem| problem.into_finding(false));
    problems.chain(warnings).collect()
}
