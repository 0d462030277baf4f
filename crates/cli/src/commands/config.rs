//! `atomic config`: settings, where they come from, and changing them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use atomic_registry::project::{Definition, DefinitionKind, ProjectFiles};
use atomic_registry::settings::{
    self as registry, Class, Files, Kind, Origin, SETTINGS, Scope, Setting, Sourced, Value, Values,
};
use serde_json::json;

use crate::args::ConfigCommand;
use crate::catalog::{self, Catalog};
use crate::failure::Failure;
use crate::trust::{Decision, TrustStore, snapshot};
use crate::{paint, settings};

pub(crate) fn config(command: Option<&ConfigCommand>) -> Result<ExitCode, Failure> {
    let project = catalog::here()?;
    match command {
        None => list(&project, false)?,
        Some(ConfigCommand::List { json }) => list(&project, *json)?,
        Some(ConfigCommand::Get { key, json }) => get(&project, known(key)?, *json)?,
        Some(ConfigCommand::Set { key, value, place }) => {
            let setting = known(key)?;
            let values = value.iter().filter_map(|value| setting.parse(value).ok());
            let is_users = values.into_iter().any(|value| setting.class_of(&value) == Class::User);
            if is_users && place.scope() == Scope::Project {
                return Err(Failure::Usage(format!(
                    "`{key}` cannot be set by a project\n  hint: set it for yourself: atomic config \
                     set --user {key} {}",
                    value.join(" ")
                )));
            }
            set(&project, setting, value, place.scope())?;
            if place.scope() == Scope::Project {
                allow(&project, setting);
            }
        }
        Some(ConfigCommand::Unset { key, place }) => unset(&project, key, place.scope())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Lets a setting count that the user has just typed, as it is now.
fn allow(project: &Path, setting: &Setting) {
    let Some(trust) = Catalog::open(project, Values::default()).shelf.gate.trust else { return };
    let is_it = |definition: &&Definition| {
        definition.kind == DefinitionKind::Setting && definition.name == setting.key
    };
    let definitions = snapshot(trust.definitions.iter().filter(is_it));
    if !definitions.is_empty() {
        // Without a home folder the next run asks.
        let decision = Decision::Allowed { definitions };
        let _ = TrustStore::read().decide(&trust.repository.identity, decision);
    }
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

/// The values that hold in a project.
fn values_of(project: &Path) -> Result<Values, Failure> {
    settings::below_flags(project, is_trusted(project))
}

fn is_trusted(project: &Path) -> bool {
    Catalog::open(project, Values::default()).is_trusted()
}

fn list(project: &Path, as_json: bool) -> Result<(), Failure> {
    let values = values_of(project)?;
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
    let values = values_of(project)?;
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
    let own = project_files(&files, scope)?;
    registry::set(&path, own.as_ref(), setting, &value)
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

/// The files of the project, for its settings file.
fn project_files(files: &Files, scope: Scope) -> Result<Option<ProjectFiles>, Failure> {
    if scope == Scope::User {
        return Ok(None);
    }
    let failed = |error| Failure::Failed(format!("the project cannot be opened: {error}"));
    files.of_project().map_err(failed)
}

fn unset(project: &Path, key: &str, scope: Scope) -> Result<(), Failure> {
    let files = settings::files(project);
    let path = path_of(&files, scope)?;
    let failed = |problem: registry::Problem| Failure::Failed(problem.to_string());
    let own = project_files(&files, scope)?;
    if registry::unset(&path, own.as_ref(), key).map_err(failed)? {
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
    let is_trusted = catalog::here().is_ok_and(|project| is_trusted(&project));
    let reading = registry::read(files, is_trusted, std::env::vars_os());
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
