//! Values with where they come from, and how layers of them lie on each other.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::problem::{Place, Problem};
use super::table::{Class, Preset, SETTINGS, Setting};
use super::value::Value;

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The user's, for all projects.
    User,
    /// The project's.
    Project,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody has set it.
    BuiltIn,
    /// A settings file.
    File {
        /// Whose.
        scope: Scope,
        /// Which.
        path: PathBuf,
        /// The line in it.
        line: usize,
    },
    /// An environment variable.
    Variable(&'static str),
    /// A flag, without the dashes.
    Flag(&'static str),
}

impl Origin {
    /// In one word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::File { scope: Scope::User, .. } => "user",
            Self::File { scope: Scope::Project, .. } => "project",
            Self::Variable(_) => "variable",
            Self::Flag(_) => "flag",
        }
    }

    /// The file a value stands in.
    pub fn path(&self) -> Option<&Path> {
        if let Self::File { path, .. } = self { Some(path) } else { None }
    }

    /// The place of a problem with a value of this origin.
    fn in_file(&self) -> Place {
        match self {
            Self::File { path, line, .. } => {
                Place::File { path: path.clone(), at: Some((*line, 1)) }
            }
            Self::BuiltIn => Place::Variable(String::new()),
            Self::Variable(name) | Self::Flag(name) => Place::Variable((*name).to_owned()),
        }
    }

    /// Where exactly.
    pub fn place(&self) -> Option<String> {
        match self {
            Self::BuiltIn => None,
            Self::File { path, line, .. } => Some(format!("{}:{line}", path.display())),
            Self::Variable(name) => Some((*name).to_owned()),
            Self::Flag(name) => Some(format!("--{name}")),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place() {
            Some(place) => write!(f, "{} {place}", self.word()),
            None => f.write_str(self.word()),
        }
    }
}

/// A value with its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Sourced {
    /// What was set.
    pub value: Value,
    /// Where.
    pub origin: Origin,
}

/// Values of settings; those that nobody set are missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(BTreeMap<&'static str, Sourced>);

impl Values {
    /// The built-in values.
    pub fn built_in() -> Self {
        let mut values = Self::default();
        for setting in SETTINGS {
            if let Preset::Value(text) = setting.preset
                && let Ok(value) = setting.parse(text)
            {
                values.insert(setting, Sourced { value, origin: Origin::BuiltIn });
            }
        }
        values
    }

    /// Sets something.
    pub fn insert(&mut self, setting: &'static Setting, sourced: Sourced) {
        self.0.insert(setting.key, sourced);
    }

    /// What was set.
    pub fn get(&self, setting: &Setting) -> Option<&Sourced> {
        self.0.get(setting.key)
    }

    /// These, and where there is none the value of a layer below.
    #[must_use]
    pub fn over(mut self, below: Self) -> Self {
        for (key, sourced) in below.0 {
            self.0.entry(key).or_insert(sourced);
        }
        self
    }

    /// Every value with its setting, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Setting, &Sourced)> {
        SETTINGS.iter().filter_map(|setting| Some((*setting, self.get(setting)?)))
    }

    /// A text, a path or a choice.
    pub fn text(&self, setting: &Setting) -> Option<&str> {
        if let Value::Text(text) = &self.get(setting)?.value { Some(text) } else { None }
    }

    /// A whole number.
    pub fn number(&self, setting: &Setting) -> Option<u64> {
        if let Value::Number(number) = self.get(setting)?.value { Some(number) } else { None }
    }

    /// A whole number that is known to be small.
    pub fn small_number(&self, setting: &Setting) -> Option<u32> {
        self.number(setting).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// An amount of money.
    pub fn money(&self, setting: &Setting) -> Option<f64> {
        if let Value::Money(amount) = self.get(setting)?.value { Some(amount) } else { None }
    }

    /// A length of time in seconds.
    pub fn seconds(&self, setting: &Setting) -> Option<u64> {
        if let Value::Seconds(seconds) = self.get(setting)?.value { Some(seconds) } else { None }
    }

    /// Whether something is on.
    pub fn switch(&self, setting: &Setting) -> Option<bool> {
        if let Value::Switch(on) = self.get(setting)?.value { Some(on) } else { None }
    }

    /// Several texts.
    pub fn list(&self, setting: &Setting) -> Option<&[String]> {
        if let Value::List(texts) = &self.get(setting)?.value { Some(texts) } else { None }
    }
}

impl Extend<(&'static Setting, Sourced)> for Values {
    fn extend<I: IntoIterator<Item = (&'static Setting, Sourced)>>(&mut self, more: I) {
        self.0.extend(more.into_iter().map(|(setting, sourced)| (setting.key, sourced)));
    }
}

/// What one or more layers say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// What they set.
    pub values: Values,
    /// What is wrong: with any of these nothing should be started.
    pub problems: Vec<Problem>,
    /// What is odd and does no harm.
    pub warnings: Vec<Problem>,
    /// What a project's file sets and what counts only when the user trusts the repository.
    pub withheld: Values,
}

impl Reading {
    /// This, and below it another layer.
    pub(super) fn over(mut self, below: Self) -> Self {
        self.values = self.values.over(below.values);
        // Told from the bottom up, in the order in which the layers are explained.
        self.problems.splice(0..0, below.problems);
        self.warnings.splice(0..0, below.warnings);
        self.withheld = self.withheld.over(below.withheld);
        self
    }

    /// This reading of a project's file without the values that do not count there: those that
    /// are not stricter than the user's and, unless the repository is trusted, those that need
    /// trust.
    pub(super) fn of_project(mut self, user: &Values, trusted: bool) -> Self {
        for setting in SETTINGS.iter().copied() {
            let Some(found) = self.values.get(setting).cloned() else { continue };
            match setting.class_of(&found.value) {
                Class::Free => continue,
                Class::Trusted if trusted => continue,
                Class::Trusted => self.withheld.insert(setting, found),
                Class::Stricter { .. } => {
                    let than = user.get(setting);
                    if setting.is_stricter(&found.value, than.map(|than| &than.value)) {
                        continue;
                    }
                    let is_same = than.is_some_and(|than| than.value == found.value);
                    self.warnings.extend((!is_same).then(|| looser(setting, &found, than)));
                }
                Class::User => self.warnings.push(users_own(setting, &found)),
            }
            self.values.0.remove(setting.key);
        }
        self
    }
}

/// The problem that a project's file sets what only the user sets.
fn users_own(setting: &Setting, found: &Sourced) -> Problem {
    let Setting { key, .. } = setting;
    let message = format!("`{key}` is not used: a project cannot set it");
    let remedy = format!("remove it, or set it for yourself: atomic config set --user {key} …");
    Problem::new(found.origin.in_file(), message, remedy)
}

/// The problem that a project's file sets a limit that is not lower than the user's.
fn looser(setting: &Setting, found: &Sourced, than: Option<&Sourced>) -> Problem {
    let Setting { key, .. } = setting;
    let of_user = than.filter(|than| than.origin != Origin::BuiltIn);
    let whose = if of_user.is_some() { "your" } else { "the default" };
    let preset = match setting.class {
        Class::Stricter { unless_set, .. } => unless_set.to_owned(),
        Class::Free | Class::Trusted | Class::User => String::new(),
    };
    let limit = than.map_or(preset, |than| than.value.to_string());
    let message = format!(
        "`{key}`: {} is not used: a project can only be stricter than {whose} {limit}",
        found.value
    );
    let remedy = format!("remove it, or set it for yourself: atomic config set --user {key} …");
    Problem::new(found.origin.in_file(), message, remedy)
}
