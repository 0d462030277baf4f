//! Values with where they come from, and how layers of them lie on each other.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::problem::Problem;
use super::table::{Preset, SETTINGS, Setting};
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
}

impl Reading {
    /// This, and below it another layer.
    pub(super) fn over(mut self, below: Self) -> Self {
        self.values = self.values.over(below.values);
        // Told from the bottom up, in the order in which the layers are explained.
        self.problems.splice(0..0, below.problems);
        self.warnings.splice(0..0, below.warnings);
        self
    }
}
