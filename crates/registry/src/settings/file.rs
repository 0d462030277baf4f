//! A settings file: JSON with comments and trailing commas.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use atomic_files::Refusal;
use jsonc_parser::ast::{self, Object};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::tokens::TokenAndRange;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::layer::{Origin, Reading, Scope, Sourced};
use super::problem::{Place, Problem};
use super::table::{self, Setting};
use crate::files;
use crate::project::ProjectFiles;

/// Names the schema for editors; it sets nothing.
const SCHEMA: &str = "$schema";

/// What a settings file is at its top: an object, unless there is nothing in it.
pub(super) struct Parsed<'t> {
    pub(super) object: Option<Object<'t>>,
    pub(super) tokens: Vec<TokenAndRange<'t>>,
}

/// What editors call JSON with comments; other liberties would be taken for mistakes there.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// What is wrong with a text.
pub(super) struct Fault {
    /// At which byte.
    offset: usize,
    message: String,
    remedy: &'static str,
}

impl Fault {
    /// The same in a file.
    pub(super) fn of(self, path: &Path, text: &str) -> Problem {
        Problem::new(Place::in_file(path, text, self.offset), self.message, self.remedy)
    }

    /// A setting that is set a second time.
    pub(super) fn twice(setting: &Setting, text: &str, (first, second): (usize, usize)) -> Self {
        let (line, _) = line_and_column(text, first);
        let message = format!("`{}` is set here and in line {line}", setting.key);
        Self { offset: second, message, remedy: "remove one" }
    }

    fn malformed(offset: usize, message: String) -> Self {
        let remedy = "mend it: settings stand in braces; comments and trailing commas are fine";
        Self { offset, message, remedy }
    }
}

/// Reads the text of a settings file.
pub(super) fn parse(text: &str) -> Result<Parsed<'_>, Fault> {
    let collect = CollectOptions { tokens: true, ..CollectOptions::default() };
    let parsed = parse_to_ast(text, &collect, &options()).map_err(|error| {
        let message = format!("it is no JSON: {}", error.kind());
        Fault::malformed(error.range().start, message)
    })?;
    let tokens = parsed.tokens.unwrap_or_default();
    match parsed.value {
        None => Ok(Parsed { object: None, tokens }),
        Some(ast::Value::Object(object)) => Ok(Parsed { object: Some(object), tokens }),
        Some(other) => Err(Fault::malformed(other.start(), "it holds no object".to_owned())),
    }
}

/// The text of the file; `None` when there is no file.
pub(super) fn load(path: &Path, project: Option<&ProjectFiles>) -> Result<Option<String>, Problem> {
    match fs::metadata(path) {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            if fs::symlink_metadata(path).is_err() {
                return Ok(None);
            }
            let message = "it is a link to a file that does not exist";
            return Err(Problem::new(Place::file(path), message, "mend or remove the link"));
        }
        Err(error) => {
            let message = format!("it cannot be read: {error}");
            return Err(Problem::new(Place::file(path), message, "make it readable"));
        }
    }
    let text = files::read_in(path, project).map_err(|finding| match finding.message {
        // Trust does not help: settings decide about trust.
        message if message == Refusal::Outside.to_string() => {
            let remedy = "copy the file it leads to into the repository";
            Problem::new(Place::file(path), message, remedy)
        }
        message => Problem::new(Place::file(path), message, finding.remedy),
    })?;
    match text.oddity {
        Some(oddity) => {
            let place =
                Place::File { path: path.to_owned(), at: oddity.line.map(|line| (line, 1)) };
            // The rest is about files that are read all the same.
            let what = oddity.message.split([',', ';']).next().unwrap_or_default();
            Err(Problem::new(place, what, oddity.remedy))
        }
        None => Ok(Some(text.text)),
    }
}

/// The mark some editors put first.
pub(super) const MARK: char = '\u{feff}';

/// What a settings file sets, and what is wrong with it.
pub(super) fn read(path: &Path, scope: Scope, project: Option<&ProjectFiles>) -> Reading {
    let mut reading = Reading::default();
    let text = match load(path, project) {
        Ok(Some(text)) => text,
        Ok(None) => return reading,
        Err(problem) => {
            reading.problems.push(problem);
            return reading;
        }
    };
    let text = text.strip_prefix(MARK).unwrap_or(&text);
    let at = |offset: usize| Place::in_file(path, text, offset);
    let object = match parse(text) {
        Ok(parsed) => parsed.object,
        Err(fault) => {
            reading.problems.push(fault.of(path, text));
            return reading;
        }
    };
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut problems, mut warnings) = (Told::default(), Told::default());
    for property in object.iter().flat_map(|object| &object.properties) {
        let name = property.name.as_str();
        let Some(setting) = table::find(name) else {
            if name != SCHEMA {
                warnings.add(|| unknown(at(property.start()), name));
            }
            continue;
        };
        if let Some(first) = seen.insert(setting.key, property.start()) {
            let places = (first, property.start());
            problems.add(|| Fault::twice(setting, text, places).of(path, text));
            continue;
        }
        let (start, end) = (property.value.start(), property.value.end());
        match setting.parse_json(&property.value, text.get(start..end).unwrap_or_default()) {
            Ok(value) => {
                let (line, _) = line_and_column(text, property.start());
                let origin = Origin::File { scope, path: path.to_owned(), line };
                reading.values.insert(setting, Sourced { value, origin });
            }
            Err(wrong) => {
                let message = format!("`{name}`: {}", wrong.problem);
                problems.add(|| Problem::new(at(start), message, wrong.remedy));
            }
        }
    }
    reading.problems = problems.all(path);
    reading.warnings = warnings.all(path);
    reading
}

/// Of how many things in one file it is told where they stand.
const MOST_TOLD: usize = 20;

/// What is wrong in one file. The first are told, and the others counted: to find a line and a
/// column takes as long as the text before them.
#[derive(Default)]
struct Told {
    first: Vec<Problem>,
    more: usize,
}

impl Told {
    fn add(&mut self, problem: impl FnOnce() -> Problem) {
        if self.first.len() < MOST_TOLD {
            self.first.push(problem());
        } else {
            self.more += 1;
        }
    }

    fn all(mut self, path: &Path) -> Vec<Problem> {
        if self.more > 0 {
            let message = format!("{} more like these", self.more);
            self.first.push(Problem::new(Place::file(path), message, "mend the first of them"));
        }
        self.first
    }
}

fn unknown(place: Place, name: &str) -> Problem {
    if let Some(instead) = table::renamed(name) {
        let message = format!("`{name}` is now `{instead}`, so it does nothing");
        return Problem::new(place, message, format!("write `{instead}`"));
    }
    let near = table::nearest_key(name);
    let near = near.map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"));
    let message = format!("there is no setting `{name}`{near}, so it does nothing");
    Problem::new(place, message, "`atomic config list` shows all")
}

/// The properties that set this.
pub(super) fn properties_of<'o, 't>(
    object: &'o Object<'t>,
    setting: &'static Setting,
) -> impl Iterator<Item = &'o ast::ObjectProp<'t>> {
    let is_it = move |property: &&ast::ObjectProp<'t>| {
        table::find(property.name.as_str()).is_some_and(|found| found.key == setting.key)
    };
    object.properties.iter().filter(is_it)
}

/// The line and the column of a byte, both counted from 1.
pub(super) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
