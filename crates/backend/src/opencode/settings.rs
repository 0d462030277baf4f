//! What the user has set up in the program: which providers and models there are. Nothing of it is
//! executed here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use serde_json::{Map, Value, json};

use super::fill::fill;
use super::wire::Model;
use crate::Inherit;
use crate::login::{Environment, UnusedSetting, read_text};

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
    /// The user's files of settings, in the order in which the program merges them.
    files: Vec<PathBuf>,
    /// Variables that are added to our environment.
    own: Vec<(String, String)>,
    /// The reason why a place is not known.
    problem: Option<String>,
}

/// What was found in settings.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// The model to use where none is asked for.
    pub(super) model: Option<Model>,
    /// Whose models may be used.
    pub(super) providers: BTreeSet<String>,
    /// The user's settings about providers, with all references filled in.
    pub(super) users: Map<String, Value>,
    /// Providers that the project's files mention, where the user has settings that the program
    /// fetches from a server: of the providers there, all others are kept. `None` keeps none of them.
    pub(super) foreign: Option<BTreeSet<String>>,
    /// What is wrong with a file of the user's settings, so that nothing of it is known.
    pub(super) problem: Option<String>,
}

impl Places {
    /// As the environment says; `own` is added to ours.
    pub(super) fn of_environment(own: &[(String, String)]) -> Self {
        let env = Environment(own);
        let mut problem = None;
        let mut absolute = |name: &str| {
            env.path(name).unwrap_or_else(|relative| {
                problem.get_or_insert(relative);
                None
            })
        };
        let mut place = |name: &str, usual: &str| {
            absolute(name).unwrap_or_else(|| env.home().join(usual)).join("opencode")
        };
        let config = place("XDG_CONFIG_HOME", ".config");
        let data = place("XDG_DATA_HOME", ".local/share");
        let state = place("XDG_STATE_HOME", ".local/state");
        let mut files: Vec<PathBuf> =
            ["config.json", "opencode.json", "opencode.jsonc"].map(|name| config.join(name)).into();
        files.extend(absolute("OPENCODE_CONFIG"));
        let folders = [Some(env.home().join(".opencode")), absolute("OPENCODE_CONFIG_DIR")];
        for folder in folders.into_iter().flatten() {
            files.extend(["opencode.json", "opencode.jsonc"].map(|name| folder.join(name)));
        }
        Self { config, data, state, files, own: own.to_vec(), problem }
    }

    /// The folder that holds the program's own folder of settings.
    pub(super) fn config_home(&self) -> PathBuf {
        self.config.parent().map(Path::to_owned).unwrap_or_default()
    }

    /// What is set for a folder.
    pub(super) fn look(&self, workspace: &Path, inherit: Inherit) -> Found {
        let mut found = Found { problem: self.problem.clone(), ..Found::default() };
        if let Err(problem) = self.look_at_users(&mut found) {
            found.problem.get_or_insert(problem);
        }
        let logged_in = self.logins();
        let is_remote =
            |login: &Value| login.get("type").and_then(Value::as_str) == Some("wellknown");
        if logged_in.values().any(is_remote) {
            found.foreign = self.mentioned(workspace);
        }
        found.providers.extend(logged_in.into_iter().map(|(provider, _)| provider));
        if inherit != Inherit::None {
            for file in self.project_files(workspace) {
                found.take_model(&read(&file));
            }
        }
        if found.model.is_none() {
            found.model = last_used(&read(&self.state.join("model.json")));
        }
        found
    }

    /// Everything in the user's files, and in the variable that stands for another one.
    fn look_at_users(&self, found: &mut Found) -> Result<(), String> {
        let env = Environment(&self.own);
        for file in &self.files {
            let Some(text) = read_text(file)? else { continue };
            let told = |problem: String| format!("{}: {problem}", file.display());
            let text = fill(&text, file.parent(), &env).map_err(told)?;
            found.take(parsed_text(&text).map_err(told)?);
        }
        if let Some(text) = env.get("OPENCODE_CONFIG_CONTENT") {
            let told = |problem: String| format!("OPENCODE_CONFIG_CONTENT: {problem}");
            let text = fill(&text, None, &env).map_err(told)?;
            found.take(parsed_text(&text).map_err(told)?);
        }
        Ok(())
    }

    /// The providers to which the user is logged in.
    pub(super) fn logins(&self) -> Map<String, Value> {
        match Environment(&self.own).get("OPENCODE_AUTH_CONTENT") {
            Some(text) => parsed_text(&text).unwrap_or_default(),
            None => read(&self.logins_file()),
        }
    }

    /// The file with the logins.
    pub(super) fn logins_file(&self) -> PathBuf {
        self.data.join("auth.json")
    }

    /// The variables that are added to our environment.
    pub(super) fn own(&self) -> &[(String, String)] {
        &self.own
    }

    /// The providers that a project's files mention; `None` where that cannot be known. The program fills
    /// in `{env:…}` and `{file:…}` before it parses a file, also in the middle of a key: with
    /// `"provi{env:NONE}der"` a project would keep its address for a provider that the user's server
    /// has named.
    fn mentioned(&self, workspace: &Path) -> Option<BTreeSet<String>> {
        let mut mentioned = BTreeSet::new();
        for file in self.files_in(searched(workspace)) {
            let text = read_text(&file).ok()?.unwrap_or_default();
            if is_template(&text) {
                return None;
            }
            let settings = parsed_text(&text).ok()?;
            mentioned.extend(declared(&settings).map(|(name, _)| name.clone()));
        }
        Some(mentioned)
    }

    /// The project's files of settings, the outermost first. A file of the user's is not a
    /// project's, also where the project is the home folder.
    fn project_files(&self, workspace: &Path) -> Vec<PathBuf> {
        self.files_in(project(workspace))
    }

    /// Files of settings in folders of which the innermost is the first.
    fn files_in(&self, folders: Vec<&Path>) -> Vec<PathBuf> {
        let own: Vec<PathBuf> = self.files.iter().filter_map(|it| it.canonicalize().ok()).collect();
        let names = ["opencode.json", "opencode.jsonc"];
        let files = folders.into_iter().rev().flat_map(|folder| {
            let inside = names.map(|name| folder.join(".opencode").join(name));
            names.map(|name| folder.join(name)).into_iter().chain(inside)
        });
        files.filter(|file| file.canonicalize().is_ok_and(|real| !own.contains(&real))).collect()
    }

    /// Settings about providers in a project's files, none of which is used.
    pub(super) fn unused(&self, workspace: &Path) -> Vec<UnusedSetting> {
        let mut unused = vec![];
        for file in self.project_files(workspace) {
            let settings = read(&file);
            let told = |key: String| UnusedSetting { file: file.clone(), key };
            unused.extend(declared(&settings).map(|(name, _)| told(format!("provider.{name}"))));
            let lists = ["enabled_providers", "disabled_providers"];
            let lists = lists.into_iter().filter(|key| settings.contains_key(*key));
            unused.extend(lists.map(|key| told(key.to_owned())));
        }
        unused
    }
}

/// The providers that settings declare.
fn declared(settings: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    settings.get("provider").and_then(Value::as_object).into_iter().flatten()
}

impl Found {
    /// Takes over a file of the user's.
    fn take(&mut self, settings: Map<String, Value>) {
        self.take_model(&settings);
        self.providers.extend(declared(&settings).map(|(name, _)| name.clone()));
        let named = settings.get("enabled_providers").and_then(Value::as_array);
        let named = named.into_iter().flatten().filter_map(Value::as_str);
        self.providers.extend(named.map(str::to_owned));
        let about = settings.into_iter().filter(|(key, _)| ABOUT_PROVIDERS.contains(&&**key));
        for (key, value) in about {
            merge(self.users.entry(key).or_insert(Value::Null), value);
        }
    }

    fn take_model(&mut self, settings: &Map<String, Value>) {
        let model = settings.get("model").and_then(Value::as_str).and_then(Model::read);
        self.model = model.or(self.model.take());
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

/// The folders in which the program looks for settings and plugins, the innermost first: those of the
/// repository, and without one every folder above.
fn searched(workspace: &Path) -> Vec<&Path> {
    let in_repository = workspace.ancestors().any(|folder| folder.join(".git").exists());
    if in_repository { project(workspace) } else { workspace.ancestors().collect() }
}

/// Something of a project's that the program would run, whatever it is told about the project: it
/// loads plugins of a project by a way of its own that cannot be switched off.
pub(super) fn code_of_project(workspace: &Path, home: Option<&Path>) -> Option<PathBuf> {
    // The user's own files are not a stranger's.
    let mut folders = searched(workspace).into_iter().filter(|folder| Some(*folder) != home);
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
    let text = read_text(file)?.unwrap_or_default();
    match parsed_text(&text) {
        Err(problem) if !is_template(&text) => Err(format!("{}: {problem}", file.display())),
        parsed => Ok(parsed.unwrap_or_default()),
    }
}

/// Whether a text has references that the program fills in before it parses the text.
fn is_template(text: &str) -> bool {
    text.contains("{env:") || text.contains("{file:")
}

fn parsed_text(text: &str) -> Result<Map<String, Value>, String> {
    match jsonc_parser::parse_to_serde_value(text, &ParseOptions::default()) {
        Ok(Value::Object(settings)) => Ok(settings),
        Ok(_) => Ok(Map::new()),
        Err(error) => Err(format!("not valid JSON: {error}")),
    }
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::{Value, json};

    use super::Places;
    use crate::Inherit;

    fn write(path: &Path, value: &Value) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value.to_string()).unwrap();
    }

    fn places(home: &Path, more: &[(&str, &str)]) -> Places {
        let home = home.display().to_string();
        let mut own = vec![("HOME", home.as_str())];
        for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "OPENCODE_CONFIG"] {
            own.push((name, ""));
        }
        own.extend(more);
        let own = own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Places::of_environment(&own.collect::<Vec<_>>())
    }

    #[test]
    fn providers_are_the_users_wherever_they_stand_and_never_a_projects() {
        let home = tempfile::tempdir().unwrap();
        let work = home.path().join("work");
        let declares = |name: &str| json!({ "provider": { name: { "options": {} } } });
        write(&home.path().join(".config/opencode/opencode.json"), &declares("file"));
        write(&home.path().join(".opencode/opencode.jsonc"), &declares("home"));
        write(&home.path().join("named.json"), &declares("named"));
        write(&home.path().join("folder/opencode.json"), &declares("folder"));
        let mut project = declares("project");
        project["model"] = json!("file/small");
        project["enabled_providers"] = json!(["thief"]);
        write(&work.join("opencode.json"), &project);
        let [named, folder] =
            ["named.json", "folder"].map(|name| home.path().join(name).display().to_string());
        let content = declares("content").to_string();
        let variables = [
            ("OPENCODE_CONFIG", named.as_str()),
            ("OPENCODE_CONFIG_DIR", &folder),
            ("OPENCODE_CONFIG_CONTENT", &content),
            ("OPENCODE_AUTH_CONTENT", r#"{"login": {"type": "api", "key": "k"}}"#),
        ];
        let places = places(home.path(), &variables);
        let found = places.look(&work, Inherit::All);
        assert_eq!(found.problem, None);
        let providers: Vec<&str> = found.providers.iter().map(String::as_str).collect();
        assert_eq!(providers, ["content", "file", "folder", "home", "login", "named"]);
        assert_eq!(found.model.map(|model| model.name).as_deref(), Some("small"));
        let unused: Vec<String> = places.unused(&work).into_iter().map(|it| it.key).collect();
        assert_eq!(unused, ["provider.project", "enabled_providers"]);
        // In the home folder the same file is the user's.
        assert_eq!(places.unused(home.path()), []);
    }

    /// A file of the project that cannot be understood may change any provider.
    #[test]
    fn fetched_providers_are_kept_only_where_a_project_certainly_leaves_them_alone() {
        let home = tempfile::tempdir().unwrap();
        let work = home.path().join("work");
        let file = work.join("opencode.json");
        fs::create_dir(&work).unwrap();
        let login = r#"{"https://corp": {"type": "wellknown", "key": "K", "token": "t"}}"#;
        let places = places(home.path(), &[("OPENCODE_AUTH_CONTENT", login)]);
        let mentioned = || {
            let found = places.look(&work, Inherit::All).foreign;
            found.map(|names| names.into_iter().collect::<Vec<_>>().join(" "))
        };
        assert_eq!(mentioned().as_deref(), Some(""));
        let large = format!("{{\"provider\": {{\"a\": {{}}}} {}}}", " ".repeat(2 << 20));
        for (text, expected) in [
            (r#"{"provider": {"a": {}, "b": {}}}"#, Some("a b")),
            (r#"{"theme": "x"} // a comment"#, Some("")),
            (r#"{"provider": {"{env:NAME}": {}}}"#, None),
            (r#"{"provi{env:NAME}der": {"a": {}}}"#, None),
            (r#"{"theme": "{file:./theme}"}"#, None),
            (r#"{"provider": {"a": "#, None),
            (&large, None),
        ] {
            fs::write(&file, text).unwrap();
            assert_eq!(mentioned().as_deref(), expected, "{}", &text[..text.len().min(80)]);
        }
        // Without a repository the program looks in every folder above.
        fs::write(&file, "{}").unwrap();
        write(&home.path().join("opencode.json"), &json!({ "provider": { "above": {} } }));
        assert_eq!(mentioned().as_deref(), Some("above"));
    }

    #[test]
    fn settings_of_the_user_that_cannot_be_used_are_named() {
        let home = tempfile::tempdir().unwrap();
        let problem = |more: &[(&str, &str)]| {
            places(home.path(), more).look(home.path(), Inherit::None).problem.unwrap_or_default()
        };
        assert_eq!(problem(&[]), "");
        assert!(problem(&[("OPENCODE_CONFIG", "mine.json")]).contains("OPENCODE_CONFIG=mine.json"));
        let content = [("OPENCODE_CONFIG_CONTENT", "{\"provider\": ")];
        assert!(problem(&content).contains("OPENCODE_CONFIG_CONTENT: not valid JSON"));
        let file = home.path().join(".config/opencode/opencode.json");
        write(&file, &json!({ "provider": { "a": { "options": { "apiKey": "{file:gone}" } } } }));
        assert!(problem(&[]).contains("/.config/opencode/gone: the file is not there"));
        fs::write(&file, "{").unwrap();
        assert!(problem(&[]).contains("opencode.json: not valid JSON"));
    }
}
