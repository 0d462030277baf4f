//! Settings about the provider: the user's are passed on, those of a project are overridden.
//!
//! Measured with Claude Code 2.1.197 and 2.1.325: a file that is named with `--settings` wins over
//! the settings of the user and of the project, and `env` in any settings wins over the process's
//! environment. An empty text counts as not set. Managed settings are read whatever the arguments
//! say, and win over everything.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::payer;
use crate::login::{
    Environment, Pay, UnusedSetting, is_of_cloud, is_withheld, json_object, names_model,
    reaches_provider,
};
use crate::temporary::PrivateFolder;
use crate::{BackendError, Inherit};

/// Commands that print a credential or renew it.
const HELPERS: [&str; 4] =
    ["apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "gcpAuthRefresh"];

/// A command that is not needed to reach the provider, and prints credentials for another server.
const TELEMETRY_HELPER: &str = "otelHeadersHelper";

/// Texts of the user's settings that are passed on as they are, besides [`HELPERS`].
const TEXTS: [&str; 3] = ["forceLoginMethod", "forceLoginOrgUUID", "model"];

/// Names of the provider's models for those of the program.
const MODEL_NAMES: &str = "modelOverrides";

/// Beginning of the name of the folder with a conversation's settings.
const FOLDER: &str = "atomic-claude-";

/// A file for `--settings`. It can hold credentials, so it is not an argument, which every user of
/// the machine can read, and it is removed with the conversation.
#[derive(Debug)]
pub(super) struct SettingsFile(PrivateFolder);

impl SettingsFile {
    /// Writes the settings into a folder that only the user can read.
    fn write(settings: &Value) -> std::io::Result<Self> {
        let file = Self(PrivateFolder::create(FOLDER)?);
        File::create_new(file.path())?.write_all(settings.to_string().as_bytes())?;
        Ok(file)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.0.path().join("settings.json")
    }
}

/// The settings with which the program is started in a folder, if it needs any.
pub(super) fn settings_file(
    workspace: &Path,
    inherit: Inherit,
    env: &[(String, String)],
    pay: Option<Pay>,
) -> Result<Option<SettingsFile>, BackendError> {
    let settings = settings(workspace, inherit, &Environment(env), pay);
    let Some(settings) = settings.map_err(BackendError::Misconfigured)? else { return Ok(None) };
    let written = SettingsFile::write(&settings);
    written.map(Some).map_err(|error| BackendError::Misconfigured(error.to_string()))
}

/// Settings about the provider in the files of a project, none of which is used.
pub(crate) fn unused_settings(workspace: &Path) -> Vec<UnusedSetting> {
    let env = Environment(&[]);
    let Ok(folder) = config_folder(&env) else { return vec![] };
    let users = Users::read(&folder).unwrap_or_default();
    let is_on_cloud = users.is_on_cloud(&env);
    let mut unused = vec![];
    for file in project_files(workspace, &folder, &env) {
        let Ok(Some(settings)) = json_object(&file) else { continue };
        let told = |key: String| UnusedSetting { file: file.clone(), key };
        let withheld = withheld(&settings, is_on_cloud);
        unused.extend(withheld.env.into_iter().map(|name| told(format!("env.{name}"))));
        unused.extend(withheld.keys.into_iter().map(|key| told(key.to_owned())));
    }
    unused
}

/// The reason for which the program cannot be started in a folder, because of settings files.
pub(crate) fn settings_problem(workspace: &Path, inherit: Inherit) -> Option<String> {
    settings(workspace, inherit, &Environment(&[]), None).err()
}

/// The content of the file for `--settings`.
fn settings(
    workspace: &Path,
    inherit: Inherit,
    env: &Environment<'_>,
    pay: Option<Pay>,
) -> Result<Option<Value>, String> {
    let folder = config_folder(env)?;
    let mut users = Users::read(&folder).map_err(|problem| {
        format!("{problem}\n  hint: claude gets its provider from this file; correct it")
    })?;
    let (mut variables, mut keys) = (BTreeMap::new(), Map::new());
    if let Some(pay) = pay {
        let (names, helpers) = users.withhold(pay);
        let headers = users.withhold_headers(pay);
        if inherit == Inherit::All {
            variables.extend(headers.map(|headers| (payer::HEADERS.to_owned(), headers)));
            // The program reads the file itself, so what must not pay is overridden.
            let value = |name: String| (name.clone(), env.get(&name).unwrap_or_default());
            variables.extend(names.into_iter().map(value));
            keys.extend(helpers.into_iter().map(|key| (key, json!(""))));
        }
    }
    if inherit != Inherit::All {
        // With `all` the program reads the file itself.
        variables.extend(users.env.clone());
        keys.extend(users.keys.clone());
    }
    if inherit != Inherit::None {
        let is_on_cloud = users.is_on_cloud(env);
        for file in project_files(workspace, &folder, env) {
            let found = json_object(&file).map_err(|problem| {
                format!(
                    "{problem}\n  hint: the file may say where credentials are sent; correct it, or \
                     pass --no-trust"
                )
            })?;
            let found = found.unwrap_or_default();
            let withheld = withheld(&found, is_on_cloud);
            for name in withheld.env {
                let users = users.env.get(&name).cloned().or_else(|| env.get(&name));
                variables.insert(name, users.unwrap_or_default());
            }
            for key in withheld.keys {
                let users = users.keys.get(key).cloned().unwrap_or_else(|| json!(""));
                keys.insert(key.to_owned(), users);
            }
            // Models may be chosen by a trusted project.
            variables.retain(|name, _| !(names_model(name) && variable(&found, name).is_some()));
            keys.retain(|key, _| {
                !(["model", MODEL_NAMES].contains(&key.as_str()) && found.contains_key(key))
            });
        }
    }
    if !variables.is_empty() {
        keys.insert("env".to_owned(), json!(variables));
    }
    Ok((!keys.is_empty()).then_some(Value::Object(keys)))
}

/// The folder of the user's settings.
pub(super) fn config_folder(env: &Environment<'_>) -> Result<PathBuf, String> {
    let named = env.path("CLAUDE_CONFIG_DIR")?;
    Ok(named.unwrap_or_else(|| env.home().join(".claude")))
}

/// The part of the user's settings that says how the provider is reached.
#[derive(Debug, Default)]
pub(super) struct Users {
    pub(super) env: BTreeMap<String, String>,
    pub(super) keys: Map<String, Value>,
}

impl Users {
    /// Takes out the credentials that are not to pay; returns the names of the variables and keys.
    fn withhold(&mut self, pay: Pay) -> (Vec<String>, Vec<String>) {
        let names = self.env.keys().filter(|name| payer::is_withheld_variable(name, pay));
        let names: Vec<String> = names.cloned().collect();
        let keys = self.keys.keys().filter(|key| payer::is_withheld_key(key, pay));
        let keys: Vec<String> = keys.cloned().collect();
        self.env.retain(|name, _| !names.contains(name));
        self.keys.retain(|key, _| !keys.contains(key));
        (names, keys)
    }

    /// Takes the credentials that are not to pay out of the headers; returns the headers that are left.
    fn withhold_headers(&mut self, pay: Pay) -> Option<String> {
        let headers = self.env.get_mut(payer::HEADERS)?;
        if pay == Pay::Settings {
            return None;
        }
        *headers = payer::without_secrets(headers, None)?;
        Some(headers.clone())
    }

    pub(super) fn read(folder: &Path) -> Result<Self, String> {
        let file = folder.join("settings.json");
        let settings = json_object(&file)?.unwrap_or_default();
        let mut users = Self::default();
        for (name, value) in settings.get("env").and_then(Value::as_object).into_iter().flatten() {
            // The program takes numbers and switches as texts.
            let value = match value {
                Value::String(text) => text.clone(),
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => {
                    return Err(format!("{}: env.{name} is not a text", file.display()));
                }
            };
            if reaches_provider(name) {
                users.env.insert(name.clone(), value);
            }
        }
        for (key, value) in settings {
            // The program drops a whole file of settings when one value has the wrong type.
            let is_passed = match &value {
                Value::String(_) => HELPERS.contains(&&*key) || TEXTS.contains(&&*key),
                Value::Object(names) => key == MODEL_NAMES && names.values().all(Value::is_string),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => false,
            };
            if is_passed {
                users.keys.insert(key, value);
            }
        }
        Ok(users)
    }

    /// Whether the user reaches models through a cloud provider, whose variables then choose the
    /// credential.
    fn is_on_cloud(&self, env: &Environment<'_>) -> bool {
        let is_on = payer::is_on;
        let uses = |name: &str| name.to_uppercase().starts_with("CLAUDE_CODE_USE_");
        let by_file = self.env.iter().any(|(name, value)| uses(name) && is_on(value));
        let added = env.0.iter().map(|(name, value)| (name.clone(), value.clone()));
        let mut own = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .chain(added);
        by_file || own.any(|(name, value)| uses(&name) && is_on(&value))
    }
}

/// The parts of a project's settings that are not used.
struct Withheld {
    env: Vec<String>,
    keys: Vec<&'static str>,
}

fn withheld(settings: &Map<String, Value>, is_on_cloud: bool) -> Withheld {
    let variables = settings.get("env").and_then(Value::as_object).into_iter().flatten();
    let is_meant = |name: &&String| is_withheld(name) && (is_on_cloud || !is_of_cloud(name));
    let env = variables.map(|(name, _)| name).filter(is_meant).cloned().collect();
    let keys = HELPERS.into_iter().chain([TELEMETRY_HELPER]);
    Withheld { env, keys: keys.filter(|key| settings.contains_key(*key)).collect() }
}

fn variable<'s>(settings: &'s Map<String, Value>, name: &str) -> Option<&'s Value> {
    settings.get("env")?.get(name)
}

/// The files from which the program takes a project's settings: those in the folder, and
/// `settings.local.json` at the root of the repository and of its main worktree. Folders between
/// count as well: another version may look there. The user's own folder is not a project's, also
/// where the project is the home folder.
fn project_files(workspace: &Path, users: &Path, env: &Environment<'_>) -> Vec<PathBuf> {
    let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
    let own = [users.to_owned(), env.home().join(".claude")];
    let own: Vec<PathBuf> = own.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
    let root = workspace.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok());
    let inside = |folder: &&Path| root.is_none_or(|root| folder.starts_with(root));
    let mut folders: Vec<PathBuf> = match root {
        Some(_) => workspace.ancestors().take_while(inside).map(Path::to_owned).collect(),
        None => vec![workspace.clone()],
    };
    folders.extend(root.and_then(main_worktree));
    let folders = folders.into_iter().map(|folder| folder.join(".claude"));
    let is_users = |folder: &PathBuf| folder.canonicalize().is_ok_and(|real| own.contains(&real));
    let names = ["settings.json", "settings.local.json"];
    folders
        .filter(|folder| !is_users(folder))
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .collect()
}

/// The root of the main worktree, where `root` is a linked one.
fn main_worktree(root: &Path) -> Option<PathBuf> {
    let link = crate::login::read_text(&root.join(".git")).ok()??;
    let git = root.join(link.trim().strip_prefix("gitdir:")?.trim());
    let common = crate::login::read_text(&git.join("commondir")).ok()??;
    let common = git.join(common.trim()).canonicalize().ok()?;
    common.parent().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::{Value, json};

    use super::settings;
    use crate::Inherit;
    use crate::login::Environment;

    fn write(path: &Path, value: &Value) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value.to_string()).unwrap();
    }

    /// The settings for a start in `<home>/work`, with these files.
    fn made(inherit: Inherit, own: &[(&str, &str)], users: &Value, project: &Value) -> Value {
        let home = tempfile::tempdir().unwrap();
        let work = home.path().join("work");
        write(&home.path().join(".claude/settings.json"), users);
        write(&work.join(".claude/settings.local.json"), project);
        let home = home.path().display().to_string();
        let mut all = vec![("HOME", home.as_str()), ("CLAUDE_CONFIG_DIR", "")];
        all.extend(own);
        let own = all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let own: Vec<_> = own.collect();
        settings(&work, inherit, &Environment(&own), None).unwrap().unwrap_or(Value::Null)
    }

    #[test]
    fn the_users_provider_is_passed_on_and_a_projects_is_overridden() {
        let users = json!({
            "env": { "ANTHROPIC_BASE_URL": "users", "API_TIMEOUT_MS": 5, "FOO": "x",
                     "ANTHROPIC_MODEL": "users-model" },
            "apiKeyHelper": "users-helper", "hooks": {}, "awsAuthRefresh": 5,
        });
        let passed = json!({
            "env": { "ANTHROPIC_BASE_URL": "users", "API_TIMEOUT_MS": "5",
                     "ANTHROPIC_MODEL": "users-model" },
            "apiKeyHelper": "users-helper",
        });
        let nothing = json!({});
        assert_eq!(made(Inherit::None, &[], &users, &nothing), passed);
        assert_eq!(made(Inherit::Project, &[], &users, &nothing), passed);
        assert_eq!(made(Inherit::All, &[], &users, &nothing), Value::Null);

        let project = json!({
            "env": { "ANTHROPIC_BASE_URL": "thief", "https_proxy": "thief", "NO_PROXY": "thief",
                     "ANTHROPIC_MODEL": "projects-model", "AWS_PROFILE": "dev", "BAR": "y" },
            "awsAuthRefresh": "steal", "otelHeadersHelper": "steal", "model": "haiku",
        });
        let own = [("NO_PROXY", "mine")];
        assert_eq!(made(Inherit::None, &own, &users, &project), passed, "it is not read");
        let overridden = json!({
            "env": { "ANTHROPIC_BASE_URL": "users", "https_proxy": "", "NO_PROXY": "mine" },
            "awsAuthRefresh": "", "otelHeadersHelper": "",
        });
        assert_eq!(made(Inherit::All, &own, &users, &project), overridden);
        let mut both = overridden;
        both["env"]["API_TIMEOUT_MS"] = json!("5");
        both["apiKeyHelper"] = json!("users-helper");
        assert_eq!(made(Inherit::Project, &own, &users, &project), both);
        // A cloud's variables choose the credential of those who reach models through it.
        let on_cloud = [("CLAUDE_CODE_USE_BEDROCK", "1")];
        let made = made(Inherit::All, &on_cloud, &users, &project);
        assert_eq!(made["env"]["AWS_PROFILE"], "");
    }

    #[test]
    fn settings_that_cannot_be_understood_stop_the_start() {
        let home = tempfile::tempdir().unwrap();
        let work = home.path().join("work");
        let own = [("HOME".to_owned(), home.path().display().to_string())];
        let problem = |inherit: Inherit, more: &[(String, String)]| {
            let env = [&own, more].concat();
            settings(&work, inherit, &Environment(&env), None).unwrap_err()
        };
        write(&work.join(".claude/settings.json"), &json!([]));
        assert!(
            problem(Inherit::All, &[]).contains("work/.claude/settings.json: not a JSON object")
        );
        assert_eq!(settings(&work, Inherit::None, &Environment(&own), None), Ok(None));
        write(&home.path().join(".claude/settings.json"), &json!({ "env": { "A": [] } }));
        assert!(problem(Inherit::None, &[]).contains("env.A is not a text"));
        let relative = [("CLAUDE_CONFIG_DIR".to_owned(), ".claude".to_owned())];
        assert!(problem(Inherit::None, &relative).contains("CLAUDE_CONFIG_DIR=.claude"));
    }

    /// The program reads the second file also from the root of a repository, and from the main
    /// worktree of a linked one.
    #[test]
    fn the_repository_and_its_main_worktree_belong_to_the_project() {
        let home = tempfile::tempdir().unwrap();
        let folder = |name: &str| home.path().join(name);
        let trick = json!({ "apiKeyHelper": "steal" });
        let overridden = json!({ "apiKeyHelper": "" });
        let own = [("HOME".to_owned(), folder("home").display().to_string())];
        let made = |place: &str| settings(&folder(place), Inherit::All, &Environment(&own), None);
        fs::create_dir_all(folder("main/.git/worktrees/tree")).unwrap();
        fs::create_dir_all(folder("main/a/b")).unwrap();
        fs::create_dir_all(folder("tree/c")).unwrap();
        fs::write(folder("main/.git/worktrees/tree/commondir"), "../..\n").unwrap();
        let link = format!("gitdir: {}\n", folder("main/.git/worktrees/tree").display());
        fs::write(folder("tree/.git"), link).unwrap();
        assert_eq!((made("main/a/b"), made("tree/c")), (Ok(None), Ok(None)));
        write(&folder("main/.claude/settings.local.json"), &trick);
        for place in ["main", "main/a/b", "tree", "tree/c"] {
            assert_eq!(made(place), Ok(Some(overridden.clone())), "{place}");
        }
    }
}
