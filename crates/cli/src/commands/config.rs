//! `atomic config`: settings, where they come from, and changing them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use atomic_registry::settings::{
    self as registry, Files, Kind, Origin, SETTINGS, Scope, Setting, Sourced, Value, Values,
};
use serde_json::json;

use crate::args::ConfigCommand;
use crate::failure::Failure;
use crate::{catalog, paint, settings};

pub(crate) fn config(command: Option<&ConfigCommand>) -> Result<ExitCode, Failure> {
    let project = catalog::here()?;
    match command {
        None => list(&project, false)?,
        Some(ConfigCommand::List { json }) => list(&project, *json)?,
        Some(ConfigCommand::Get { key, json }) => get(&project, known(key)?, *json)?,
        Some(ConfigCommand::Set { key, value, place }) => {
            let setting = known(key)?;
            let is_users_word = setting.users_word
                || value
                    .iter()
                    .filter_map(|value| setting.parse(value).ok())
                    .any(|value| setting.is_users_word(&value));
            if is_users_word && place.scope() == Scope::Project {
                let why = match setting.users_word {
                    true => "which could vouch for itself",
                    false => "which could name any program",
                };
                return Err(Failure::Usage(format!(
                    "`{key}` is not taken from a project's file, {why}; set it for yourself with \
                     --user"
                )));
            }
            set(&project, setting, value, place.scope())?;
        }
        Some(ConfigCommand::Unset { key, place }) => unset(&project, key, place.scope())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The setting of this key.
fn known(key: &str) -> Result<&'static Setting, Failure> {
    registry::find(key).ok_or_else(|| {
        let near = registry::nearest_key(key);
        let near = near.map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"));
        let remedy = "`atomic config list` shows all";
        Failure::Usage(format!("there is no setting `{key}`{near}; {remedy}"))
    })
}

fn list(project: &Path, as_json: bool) -> Result<(), Failure> {
    let values = settings::below_flags(project)?;
    if as_json {
        let all: Vec<_> = SETTINGS.iter().map(|setting| described(setting, &values)).collect();
        paint::value(&serde_json::to_string_pretty(&all).unwrap_or_default());
        return Ok(());
    }
    let rows = SETTINGS.iter().map(|setting| row(setting, &values));
    let rows: Vec<[String; 3]> =
        rows.map(|row| row.map(|column| paint::printable(&column))).collect();
    for line in paint::aligned(&rows) {
        paint::line(&line);
    }
    Ok(())
}

/// A setting as one line of the list.
fn row(setting: &Setting, values: &Values) -> [String; 3] {
    let key = setting.key.to_owned();
    match values.get(setting) {
        Some(Sourced { value: value @ Value::List(_), origin }) => {
            [key, value.to_json().to_string(), origin.to_string()]
        }
        Some(Sourced { value, origin }) => [key, value.to_string(), origin.to_string()],
        None => [key, format!("({})", setting.preset.text()), Origin::BuiltIn.to_string()],
    }
}

/// A setting for another program.
fn described(setting: &Setting, values: &Values) -> serde_json::Value {
    let found = values.get(setting);
    let origin = found.map_or(&Origin::BuiltIn, |found| &found.origin);
    json!({
        "key": setting.key,
        "value": found.map(|found| found.value.to_json()),
        "origin": origin.word(),
        "place": origin.place(),
    })
}

fn get(project: &Path, setting: &Setting, as_json: bool) -> Result<(), Failure> {
    let values = settings::below_flags(project)?;
    if as_json {
        paint::value(&described(setting, &values).to_string());
    } else if let Some(found) = values.get(setting) {
        paint::value(&found.value.to_string());
    }
    Ok(())
}

fn set(
    project: &Path,
    setting: &'static Setting,
    texts: &[String],
    scope: Scope,
) -> Result<(), Failure> {
    let value = parsed(setting, texts)?;
    let files = settings::files(project);
    let path = path_of(&files, scope)?;
    registry::set(&path, setting, &value)
        .map_err(|problem| Failure::Failed(problem.to_string()))?;
    let shown = value.to_string().replace('\n', ", ");
    say(&format!("Set {} to {shown} in {}", setting.key, path.display()));
    tell_what_counts(&files, setting, &path);
    Ok(())
}

/// The value that was typed, checked before anything is written.
fn parsed(setting: &Setting, texts: &[String]) -> Result<Value, Failure> {
    let wrong = |problem: String| Failure::Usage(format!("`{}`: {problem}", setting.key));
    let values = texts.iter().map(|text| setting.parse(text));
    let values: Vec<Value> =
        values.collect::<Result<_, _>>().map_err(|error| wrong(error.to_string()))?;
    if values.len() > 1 && !matches!(setting.kind, Kind::Commands | Kind::Names) {
        return Err(wrong("it takes one value; put it in quotes if there are spaces in it".into()));
    }
    let last = values.into_iter().reduce(settings::joined);
    last.ok_or_else(|| wrong("give a value".into()))
}

fn path_of(files: &Files, scope: Scope) -> Result<PathBuf, Failure> {
    files.path(scope).map(Path::to_owned).ok_or_else(|| {
        Failure::Failed("there is no home folder; set HOME or ATOMIC_HOME".to_owned())
    })
}

fn unset(project: &Path, key: &str, scope: Scope) -> Result<(), Failure> {
    let files = settings::files(project);
    let path = path_of(&files, scope)?;
    let failed = |problem: registry::Problem| Failure::Failed(problem.to_string());
    if registry::unset(&path, key).map_err(failed)? {
        say(&format!("Removed {key} from {}", path.display()));
        if let Some(setting) = registry::find(key) {
            tell_what_counts(&files, setting, &path);
        }
        return Ok(());
    }
    // A key of ours that is not there is as it should be; one that nobody knows is misspelt.
    let setting = known(key)?;
    say(&format!("{} is not set in {}", setting.key, path.display()));
    Ok(())
}

/// Says so when another layer has the last word here.
fn tell_what_counts(files: &Files, setting: &Setting, changed: &Path) {
    let reading = registry::read(files, std::env::vars_os());
    let Some(Sourced { value, origin }) = reading.values.get(setting) else { return };
    let is_changed = matches!(origin, Origin::File { path, .. } if path == changed);
    if !is_changed && *origin != Origin::BuiltIn {
        let shown = value.to_string().replace('\n', ", ");
        say(&format!("Here {shown} counts: {origin}"));
    }
}

/// Prints a sentence in which there are values and names of files.
fn say(text: &str) {
    paint::line(&paint::printable(text));
}
