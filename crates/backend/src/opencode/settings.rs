//! What the user has set up in the program: which providers and models there are. Nothing of it is
//! executed here.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use serde_json::{Map, Value, json};

use super::wire::Model;
use crate::Inherit;

/// Of the user's settings, what a conversation cannot do without.
const ABOUT_PROVIDERS: [&str; 5] =
    ["provider", "model", "small_model", "enabled_providers", "disabled_providers"];

/// The provider of the program's makers. What is sent there is sent to somebody the user has not
/// chosen, so it is used only where it is named.
const HOSTED: &str = "opencode";

/// Where the program has its files.
#[derive(Clone, Debug)]
pub(super) struct Places {
    config: PathBuf,
    data: PathBuf,
    state: PathBuf,
    /// A file the user names in the environment.
    named: Option<PathBuf>,
}

/// What was found in settings.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// The model to use where none is asked for.
    pub(super) model: Option<Model>,
    /// Whose models may be used.
    pub(super) providers: BTreeSet<String>,
    /// What of the user's settings is about providers.
    pub(super) users: Map<String, Value>,
    /// What is wrong with a file of the user's settings, so that nothing of it is known.
    pub(super) problem: Option<String>,
}

impl Places {
    /// As the environment says; `own` is added to ours.
    pub(super) fn of_environment(own: &[(String, String)]) -> Self {
        let variable = |name: &str| {
            let given = own.iter().rev().find(|(known, _)| known == name);
            let given = given.map(|(_, value)| OsString::from(value));
            given.or_else(|| std::env::var_os(name)).filter(|value| !value.is_empty())
        };
        let home = PathBuf::from(variable("HOME").unwrap_or_default());
        let place = |name: &str, usual: &str| {
            variable(name).map_or_else(|| home.join(usual), PathBuf::from).join("opencode")
        };
        Self {
            config: place("XDG_CONFIG_HOME", ".config"),
            data: place("XDG_DATA_HOME", ".local/share"),
            state: place("XDG_STATE_HOME", ".local/state"),
            named: variable("OPENCODE_CONFIG").map(PathBuf::from),
        }
    }

    /// The folder that holds the program's own folder of settings.
    pub(super) fn config_home(&self) -> PathBuf {
        self.config.parent().map(Path::to_owned).unwrap_or_default()
    }

    /// What is set for a folder.
    pub(super) fn look(&self, workspace: &Path, inherit: Inherit) -> Found {
        let names = ["config.json", "opencode.json", "opencode.jsonc"];
        let files = names.map(|name| self.config.join(name));
        let mut found = Found::default();
        for file in files.iter().chain(&self.named) {
            let settings = parsed(file).unwrap_or_else(|problem| {
                found.problem.get_or_insert(problem);
                Map::new()
            });
            let settings = absolute(settings, file.parent().unwrap_or(Path::new("/")));
            found.take(&settings);
            let about = settings.into_iter().filter(|(key, _)| ABOUT_PROVIDERS.contains(&&**key));
            for (key, value) in about {
                merge(found.users.entry(key).or_insert(Value::Null), value);
            }
        }
        let logged_in = read(&self.data.join("auth.json"));
        found.providers.extend(logged_in.into_iter().map(|(provider, _)| provider));
        if inherit != Inherit::None {
            for folder in project(workspace).into_iter().rev() {
                for name in ["opencode.json", "opencode.jsonc", ".opencode/opencode.json"] {
                    found.take(&read(&folder.join(name)));
                }
            }
        }
        if found.model.is_none() {
            found.model = last_used(&read(&self.state.join("model.json")));
        }
        found
    }
}

impl Found {
    fn take(&mut self, settings: &Map<String, Value>) {
        let model = settings.get("model").and_then(Value::as_str).and_then(Model::read);
        self.model = model.or(self.model.take());
        let declared = settings.get("provider").and_then(Value::as_object).into_iter().flatten();
        self.providers.extend(declared.map(|(name, _)| name.clone()));
        let named = settings.get("enabled_providers").and_then(Value::as_array);
        let named = named.into_iter().flatten().filter_map(Value::as_str);
        self.providers.extend(named.map(str::to_owned));
    }

    /// Whose models a conversation may use: those the user has set up, and those that are asked for.
    pub(super) fn providers<'m>(
        &self,
        models: impl Iterator<Item = &'m Model>,
    ) -> BTreeSet<String> {
        let asked = models.map(|model| model.provider.clone());
        self.providers.iter().cloned().chain(asked).collect()
    }
}

/// The folders of a project that the program takes settings from, the innermost first.
fn project(workspace: &Path) -> Vec<&Path> {
    let root = workspace.ancestors().find(|folder| folder.join(".git").exists());
    let inside = |folder: &&Path| root.is_some_and(|root| folder.starts_with(root));
    let folders = workspace.ancestors().take_while(inside).collect::<Vec<_>>();
    if folders.is_empty() { vec![workspace] } else { folders }
}

/// Something of a project's that the program would run, whatever it is told about the project: it
/// loads plugins of a project by a way of its own that cannot be switched off.
pub(super) fn code_of_project(workspace: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let in_repository = workspace.ancestors().any(|folder| folder.join(".git").exists());
    let folders = if in_repository { project(workspace) } else { workspace.ancestors().collect() };
    // What is the user's own is no stranger's.
    let mut folders = folders.into_iter().filter(|folder| Some(*folder) != home);
    folders.find_map(|folder| plugins(folder).or_else(|| names_plugins(folder)))
}

/// A plugin or a tool in the folder for them.
fn plugins(folder: &Path) -> Option<PathBuf> {
    let places = ["plugin", "plugins", "tool", "tools"];
    let places = places.map(|place| folder.join(".opencode").join(place));
    let mut found = places.iter().flat_map(|place| std::fs::read_dir(place).into_iter().flatten());
    found.find_map(|entry| Some(entry.ok()?.path()))
}

/// Settings that name plugins, or that cannot be read and may.
fn names_plugins(folder: &Path) -> Option<PathBuf> {
    let names = ["opencode.json", "opencode.jsonc"];
    let here = names.map(|name| folder.join(name));
    let inside = names.map(|name| folder.join(".opencode").join(name));
    let is_suspect = |file: &PathBuf| match parsed(file) {
        Ok(settings) => ["plugin", "plugins"].iter().any(|key| settings.contains_key(*key)),
        Err(_) => true,
    };
    here.into_iter().chain(inside).find(is_suspect)
}

/// The model that was last chosen in the program itself.
fn last_used(state: &Map<String, Value>) -> Option<Model> {
    let last = state.get("recent")?.as_array()?.first()?;
    let text = |key: &str| Some(last.get(key)?.as_str()?.to_owned());
    let model = Model { provider: text("providerID")?, name: text("modelID")? };
    // Nobody has to choose it for that: the program starts with it.
    (model.provider != HOSTED).then_some(model)
}

/// The settings in a file. Whoever starts the program will be told by it what is wrong with them.
fn read(file: &Path) -> Map<String, Value> {
    parsed(file).unwrap_or_default()
}

/// The settings in a file that need not be there; the error says why there are none.
fn parsed(file: &Path) -> Result<Map<String, Value>, String> {
    let text = match atomic_files::read_text(file, atomic_files::PROMPT_LIMIT) {
        Ok(text) => text,
        Err(error) => match atomic_files::refusal(&error) {
            Some(refused) => return Err(format!("{}: {refused}", file.display())),
            None => String::new(),
        },
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    // The program fills these in before it looks whether it is JSON.
    let is_template = text.contains("{env:") || text.contains("{file:");
    match jsonc_parser::parse_to_serde_value(text, &ParseOptions::default()) {
        Ok(Value::Object(settings)) => Ok(settings),
        Err(error) if !is_template => {
            Err(format!("opencode's settings in {} are no JSON: {error}", file.display()))
        }
        _ => Ok(Map::new()),
    }
}

/// Settings whose references to files hold in another folder, too.
fn absolute(settings: Map<String, Value>, folder: &Path) -> Map<String, Value> {
    fn walk(value: &mut Value, folder: &Path) {
        match value {
            Value::String(text) if text.contains("{file:") => *text = resolved(text, folder),
            Value::Array(values) => values.iter_mut().for_each(|value| walk(value, folder)),
            Value::Object(fields) => fields.values_mut().for_each(|value| walk(value, folder)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut value = Value::Object(settings);
    walk(&mut value, folder);
    if let Value::Object(settings) = value { settings } else { Map::new() }
}

fn resolved(text: &str, folder: &Path) -> String {
    const OPEN: &str = "{file:";
    let mut pieces = text.split(OPEN);
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        whole.push_str(OPEN);
        if !piece.starts_with(['/', '~']) {
            whole.push_str(&folder.display().to_string());
            whole.push('/');
        }
        whole.push_str(piece);
    }
    whole
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(json!(null)), value);
            }
        }
        (into, from) => *into = from,
    }
}
