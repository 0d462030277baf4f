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

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

pub use edit::{set, unset};
pub use layer::{Origin, Reading, Scope, Sourced, Values};
pub use page::{reference, template};
pub use problem::{Place, Problem};
pub use table::{
    Audience, BACKEND, CHECK, ENV_ALLOW, INHERIT, MAX_ATTEMPTS, MAX_COST, MAX_ITERATIONS,
    MAX_LAUNCHES, MAX_REVIEW_ROUNDS, MAX_TOKENS, MODEL, ON_QUESTION, Preset, RETRY_WINDOW, SANDBOX,
    SCRIPT, SETTINGS, Setting, TIMEOUT, TRUST, TURN_TIMEOUT, VARIABLES, Variable, WORKERS, find,
    nearest_key, variable_names,
};
pub use value::{Kind, Value, WrongValue};

use crate::finding::Finding;
use crate::places;

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
}

impl Files {
    /// Those of the user, whose folder for everything of ours this is, and of the project.
    pub fn new(user: Option<&Path>, project: &Path) -> Self {
        let user = user.map(|folder| folder.join(FILE_NAME));
        let project = project.join(PROJECT_FOLDER).join(FILE_NAME);
        Self { user, project }
    }

    /// One of them; none of the user's without a home folder.
    pub fn path(&self, scope: Scope) -> Option<&Path> {
        match scope {
            Scope::User => self.user.as_deref(),
            Scope::Project => Some(&self.project),
        }
    }

    /// Reads them, the project's over the user's. A file that is both is read once, as the
    /// project's.
    pub fn read(&self) -> Reading {
        let project = file::read(&self.project, Scope::Project);
        match &self.user {
            Some(user) if !places::is_same(user, &self.project) => {
                project.over(file::read(user, Scope::User))
            }
            Some(_) | None => project,
        }
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

/// Everything below the flags: built-in < user's file < project's file < variables.
pub fn read(files: &Files, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Reading {
    let built_in = Reading { values: Values::built_in(), ..Reading::default() };
    read_variables(variables).over(files.read()).over(built_in)
}

/// Everything that is wrong or odd about settings files and variables.
pub fn findings(
    files: &Files,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<Finding> {
    let all = of_variables(variables, |_| true).over(files.read());
    let problems = all.problems.into_iter().map(|problem| problem.into_finding(true));
    let warnings = all.warnings.into_iter().map(|problem| problem.into_finding(false));
    problems.chain(warnings).collect()
}
