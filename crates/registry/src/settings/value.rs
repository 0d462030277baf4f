//! Values of settings: read and checked here, wherever they stand.

use std::fmt;

use atomic_graph::check::nearest;
use jsonc_parser::ast;

use super::table::{BACKEND, Class, SCRIPT, Setting};
use crate::programs::ACP;

/// What values a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A word or a name.
    Text,
    /// The path of a file.
    Path,
    /// A whole number.
    Number {
        /// The smallest.
        least: u64,
        /// The largest.
        most: u64,
    },
    /// An amount in US dollars.
    Money,
    /// A length of time.
    Time {
        /// The shortest, in seconds: 0 where no time is a value.
        least: u64,
    },
    /// One of these words, each with what it means. One that ends with something in pointed brackets
    /// stands for any words in their place.
    Choice(&'static [(&'static str, &'static str)]),
    /// Commands for the shell.
    Commands,
    /// Several names.
    Names,
    /// On or off.
    Switch,
}

impl Kind {
    /// What stands for a value in a usage line.
    pub fn placeholder(self) -> &'static str {
        match self {
            Self::Text => "NAME",
            Self::Path => "FILE",
            Self::Number { .. } => "N",
            Self::Money => "USD",
            Self::Time { .. } => "TIME",
            Self::Choice(_) => "CHOICE",
            Self::Commands => "COMMAND",
            Self::Names => "NAMES",
            Self::Switch => "true|false",
        }
    }

    /// What values there are, in words.
    pub fn words(self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::Path => "a path".to_owned(),
            Self::Number { least, most: u64::MAX } => format!("a whole number from {least}"),
            Self::Number { least, most } => format!("a whole number from {least} to {most}"),
            Self::Money => "an amount above 0".to_owned(),
            Self::Time { least: 0 } => "a time up to ten years (`s`, `m`, `h`), or 0".to_owned(),
            Self::Time { .. } => "a time from 1s to ten years (`s`, `m`, `h`)".to_owned(),
            Self::Choice(choices) => listed(choices, "or"),
            Self::Commands => "commands".to_owned(),
            Self::Names => "names, with commas between them".to_owned(),
            Self::Switch => "`true` or `false`".to_owned(),
        }
    }
}

/// `a, b or c`.
fn listed(choices: &[(&str, &str)], joint: &str) -> String {
    let names: Vec<String> = choices.iter().map(|(name, _)| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} {joint} {last}", rest.join(", ")),
        Some(_) | None => names.concat(),
    }
}

/// A value that was checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text, a path or a choice.
    Text(String),
    /// A whole number.
    Number(u64),
    /// An amount of money.
    Money(f64),
    /// A length of time, in seconds.
    Seconds(u64),
    /// Several texts.
    List(Vec<String>),
    /// On or off.
    Switch(bool),
}

/// As it is typed; several texts one a line.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
            Self::Money(amount) => write!(f, "{amount}"),
            Self::Seconds(seconds) if seconds % 3_600 == 0 => write!(f, "{}h", seconds / 3_600),
            Self::Seconds(seconds) if seconds % 60 == 0 => write!(f, "{}m", seconds / 60),
            Self::Seconds(seconds) => write!(f, "{seconds}s"),
            Self::List(texts) => f.write_str(&texts.join("\n")),
            Self::Switch(on) => write!(f, "{on}"),
        }
    }
}

impl From<bool> for Value {
    fn from(on: bool) -> Self {
        Self::Switch(on)
    }
}

impl Value {
    /// As it stands in a settings file.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Number(number) => (*number).into(),
            // A whole amount is written as people write it.
            Self::Money(amount) => serde_json::from_str(&amount.to_string()).unwrap_or_default(),
            Self::Seconds(_) => self.to_string().into(),
            Self::List(texts) => texts.clone().into(),
            Self::Switch(on) => (*on).into(),
        }
    }
}

/// Why something is no value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongValue {
    /// What is wrong.
    pub problem: String,
    /// What to write instead.
    pub remedy: String,
}

impl fmt::Display for WrongValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem, self.remedy)
    }
}

impl std::error::Error for WrongValue {}

impl Setting {
    /// When this value counts in a project's file. A project never says which program is run: the
    /// backends `script` and `acp:` run commands of their own.
    pub fn class_of(&self, value: &Value) -> Class {
        let runs_commands = |text: &String| text == SCRIPT.key || text.starts_with(ACP);
        if self.key == BACKEND.key && matches!(value, Value::Text(text) if runs_commands(text)) {
            return Class::User;
        }
        self.class
    }

    /// Whether a value is stricter than another one, or than no limit.
    pub(super) fn is_stricter(&self, value: &Value, than: Option<&Value>) -> bool {
        let Class::Stricter { unless_set, order } = self.class else { return false };
        let preset = self.parse(unless_set).ok();
        let Some(than) = than.or(preset.as_ref()) else { return true };
        let rank = |text: &String| order.iter().position(|one| one == text);
        match (value, than) {
            (Value::Number(less), Value::Number(more))
            | (Value::Seconds(less), Value::Seconds(more)) => less < more,
            (Value::Money(less), Value::Money(more)) => less < more,
            (Value::Text(less), Value::Text(more)) => rank(less) < rank(more),
            (Value::Switch(less), Value::Switch(more)) => {
                rank(&less.to_string()) < rank(&more.to_string())
            }
            (
                Value::Text(_)
                | Value::Number(_)
                | Value::Money(_)
                | Value::Seconds(_)
                | Value::List(_)
                | Value::Switch(_),
                _,
            ) => false,
        }
    }

    /// Reads a value as it is typed.
    pub fn parse(&self, text: &str) -> Result<Value, WrongValue> {
        match self.kind {
            Kind::Text | Kind::Path => self.filled(text).map(Value::Text),
            Kind::Commands => self.filled(text).map(|command| Value::List(vec![command])),
            Kind::Names => {
                let names = text.split(',').map(|name| self.filled(name.trim()));
                names.collect::<Result<_, _>>().map(Value::List)
            }
            Kind::Number { least, most } => self.number(text, least, most),
            Kind::Money => money(text).ok_or_else(|| self.wrong(text)).map(Value::Money),
            Kind::Time { least } => {
                let time = seconds(text).filter(|time| *time >= least);
                time.ok_or_else(|| self.wrong(text)).map(Value::Seconds)
            }
            Kind::Choice(choices) => {
                let open = choices.iter().find_map(|(name, _)| rest_of(name, text));
                let is_named =
                    choices.iter().any(|(name, _)| *name == text && opening(name).is_none());
                match open {
                    _ if is_named => Ok(Value::Text(text.to_owned())),
                    Some(rest) if !rest.trim().is_empty() && !rest.starts_with('<') => {
                        self.filled(text).map(Value::Text)
                    }
                    Some(_) => Err(WrongValue {
                        problem: format!("`{}` is not complete", shortened(text)),
                        remedy: format!("write {}", listed(choices, "or")),
                    }),
                    None => Err(self.wrong(text)),
                }
            }
            Kind::Switch => match text {
                "true" | "1" | "yes" | "on" => Ok(Value::Switch(true)),
                "false" | "0" | "no" | "off" => Ok(Value::Switch(false)),
                _ => Err(self.wrong(text)),
            },
        }
    }

    /// Reads a value from a settings file, where it stands as `source`.
    pub(super) fn parse_json(
        &self,
        value: &ast::Value<'_>,
        source: &str,
    ) -> Result<Value, WrongValue> {
        match (self.kind, value) {
            (Kind::Commands | Kind::Names, ast::Value::Array(array)) => {
                let command = |element: &ast::Value<'_>| match element.as_string_lit() {
                    Some(text) => self.filled(&text.value),
                    None => Err(self.wrong(source)),
                };
                array.elements.iter().map(command).collect::<Result<_, _>>().map(Value::List)
            }
            (
                Kind::Text
                | Kind::Path
                | Kind::Commands
                | Kind::Names
                | Kind::Choice(_)
                | Kind::Time { .. },
                ast::Value::StringLit(text),
            ) => self.parse(&text.value),
            (
                Kind::Number { .. } | Kind::Money | Kind::Time { .. },
                ast::Value::NumberLit(number),
            ) => self.parse(number.value),
            (Kind::Switch, ast::Value::BooleanLit(on)) => Ok(Value::Switch(on.value)),
            (kind, value) => {
                let mut wrong = self.wrong(source);
                let is_text = value.as_string_lit().is_some();
                wrong.remedy.push_str(match kind {
                    Kind::Number { .. } | Kind::Money | Kind::Switch if is_text => {
                        ", without quotes"
                    }
                    Kind::Text | Kind::Path | Kind::Choice(_) | Kind::Time { .. } => ", in quotes",
                    Kind::Number { .. }
                    | Kind::Money
                    | Kind::Commands
                    | Kind::Names
                    | Kind::Switch => "",
                });
                Err(wrong)
            }
        }
    }

    fn filled(&self, text: &str) -> Result<String, WrongValue> {
        if text.trim().is_empty() {
            let remedy = format!("write one such as `{}`, or leave it out", self.example);
            return Err(WrongValue { problem: "there is nothing in it".to_owned(), remedy });
        }
        // It would end the text early where the system takes it.
        if text.contains('\0') {
            return Err(self.wrong(text));
        }
        Ok(text.to_owned())
    }

    fn number(&self, text: &str, least: u64, most: u64) -> Result<Value, WrongValue> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number {
            return Err(self.wrong(text));
        }
        match text.parse::<u64>() {
            Ok(number) if number < least => Err(WrongValue {
                problem: format!("`{text}` is too small"),
                remedy: format!("write {least} or more"),
            }),
            Ok(number) if number <= most => Ok(Value::Number(number)),
            Ok(_) | Err(_) => Err(WrongValue {
                problem: format!("`{}` is too large", shortened(text)),
                remedy: format!("write {most} or less"),
            }),
        }
    }

    /// Says that something is no value of this kind.
    fn wrong(&self, text: &str) -> WrongValue {
        let such_as = format!("write one such as {}", self.example);
        let (noun, remedy) = match self.kind {
            Kind::Text => ("text", such_as),
            Kind::Path => ("path", such_as),
            Kind::Number { .. } => ("whole number", such_as),
            Kind::Money => ("amount of money", "write 5 or 2.50".to_owned()),
            Kind::Time { least: 0 } => {
                ("length of time", "write 90s, 30m or 8h, or 0 for no wait".to_owned())
            }
            Kind::Time { .. } => ("length of time", "write 90s, 30m or 8h".to_owned()),
            Kind::Choice(choices) => ("choice", format!("write {}", listed(choices, "or"))),
            Kind::Commands => ("list of commands", format!("write [\"{}\"]", self.example)),
            Kind::Names => ("list of names", format!("write [\"{}\"]", self.example)),
            Kind::Switch => ("switch", "write true or false".to_owned()),
        };
        let mut problem = format!("`{}` is no {noun}", shortened(text));
        if let Kind::Choice(choices) = self.kind
            && let Some(near) = nearest(text, choices.iter().map(|(name, _)| *name))
        {
            problem = format!("{problem} (did you mean `{near}`?)");
        }
        WrongValue { problem, remedy }
    }
}

/// The fixed beginning of a choice that ends with something in pointed brackets.
fn opening(choice: &str) -> Option<&str> {
    choice.strip_suffix('>').and_then(|open| open.split_once('<')).map(|(fixed, _)| fixed)
}

/// What stands in a text in the place of what is in pointed brackets in a choice.
fn rest_of<'t>(choice: &str, text: &'t str) -> Option<&'t str> {
    text.strip_prefix(opening(choice)?)
}

/// The beginning of a text, on one line.
fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    let mut line: String = text.chars().take(MOST).collect();
    line = line.escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'");
    if text.chars().nth(MOST).is_some() {
        line.push('…');
    }
    line
}

/// Ten years; much more cannot be added to a point in time.
const LONGEST_SECS: u64 = 10 * 365 * 24 * 3_600;

/// A length of time in whole seconds.
fn seconds(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    let seconds = match text.get(digits.len()..)? {
        "" | "s" => number,
        "m" => number.checked_mul(60)?,
        "h" => number.checked_mul(3_600)?,
        _ => return None,
    };
    (0..=LONGEST_SECS).contains(&seconds).then_some(seconds)
}

/// An amount of money. A ceiling that nothing can reach, such as `nan`, would be none.
fn money(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('$').unwrap_or(text);
    let amount: f64 = digits.parse().ok()?;
    (amount.is_finite() && amount > 0.0).then_some(amount)
}
