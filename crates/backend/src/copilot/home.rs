//! Where the program keeps what it knows: the user's settings, and conversations.
//!
//! The settings of a session and its history lie in one folder. Turns that are to have none of the
//! user's settings, hooks and MCP servers have a folder of their own inside the program's.

use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use serde_json::Value;

use crate::login::{home_folder, json_object, read_text};
use crate::{Inherit, ModelOffer};

/// The folder of ours in the program's.
const OWN: &str = "atomic";

/// The program's folder.
#[derive(Debug)]
pub(super) struct Home(PathBuf);

/// Providers of the user's own, as they stand in the user's file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Providers {
    pub(super) providers: Vec<Value>,
    pub(super) models: Vec<Value>,
}

impl Providers {
    /// The provider of a model, by the name under which a session asks for it.
    pub(super) fn provider_of(&self, model: &str) -> Option<&Value> {
        if !self.offers().iter().any(|offer| offer.name == model) {
            return None;
        }
        let (name, _) = model.split_once('/')?;
        let is_named = |one: &&Value| one.get("name").and_then(Value::as_str) == Some(name);
        self.providers.iter().find(is_named)
    }

    /// The models, by the names under which a session can ask for them.
    pub(super) fn offers(&self) -> Vec<ModelOffer> {
        let text = |model: &Value, key: &str| Some(model.get(key)?.as_str()?.to_owned());
        let offer = |model: &Value| {
            let name = format!("{}/{}", text(model, "provider")?, text(model, "id")?);
            Some(ModelOffer { about: text(model, "name").unwrap_or_default(), name })
        };
        self.models.iter().filter_map(offer).collect()
    }
}

impl Home {
    /// As the program finds it.
    pub(super) fn of(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let named = variable("COPILOT_HOME").map(PathBuf::from);
        let users = || home_folder(variable("HOME").map(PathBuf::from)).join(".copilot");
        Self(named.unwrap_or_else(users))
    }

    /// The folder of a session's settings and history, where it is not the program's. A conversation
    /// goes on where it lies.
    pub(super) fn of_session(&self, id: &str, inherit: Inherit) -> Option<PathBuf> {
        let own = self.0.join(OWN);
        let lies_in = |folder: &Path| folder.join("session-state").join(id).exists();
        let is_own = match (lies_in(&self.0), lies_in(&own)) {
            (true, _) => false,
            (false, true) => true,
            (false, false) => inherit != Inherit::All,
        };
        is_own.then_some(own)
    }

    /// The providers that the user has set up in a file, with their models. The program reads it in
    /// its terminal and with `-p`; its server has to be told with every session.
    pub(super) fn providers(&self, named: Option<PathBuf>) -> Result<Option<Providers>, String> {
        let file = self.providers_file(named);
        let Some(mut settings) = json_object(&file)? else { return Ok(None) };
        let mut list = |key: &str| match settings.remove(key) {
            Some(Value::Array(entries)) => Ok(entries),
            None => Ok(vec![]),
            Some(_) => Err(format!("{}: `{key}` is not a list", file.display())),
        };
        let (providers, models) = (list("providers")?, list("models")?);
        Ok((!providers.is_empty()).then_some(Providers { providers, models }))
    }

    /// The file with the user's providers.
    pub(super) fn providers_file(&self, named: Option<PathBuf>) -> PathBuf {
        named.unwrap_or_else(|| self.0.join("providers.json"))
    }

    /// The file in which the program keeps its logins.
    pub(super) fn config_file(&self) -> PathBuf {
        self.0.join("config.json")
    }

    /// The model that the user has chosen there.
    pub(super) fn model(&self) -> Option<String> {
        ["settings.json", "config.json"].iter().find_map(|name| {
            let text = read_text(&self.0.join(name)).ok()??;
            let settings: Value =
                jsonc_parser::parse_to_serde_value(&text, &ParseOptions::default()).ok()?;
            settings.get("model")?.as_str().map(str::to_owned)
        })
    }
}

/// The program itself. What npm puts into PATH only starts it and waits, and does not pass on that
/// it is to end.
pub(super) fn native(program: &Path) -> PathBuf {
    let found = program.canonicalize().ok().filter(|real| real.ends_with("npm-loader.js"));
    let arch = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    let platforms: &[&str] =
        if cfg!(target_os = "macos") { &["darwin"] } else { &["linux", "linuxmusl"] };
    let folders = found.iter().flat_map(|real| real.ancestors().skip(1));
    for folder in folders {
        for platform in platforms {
            let package = format!("node_modules/@github/copilot-{platform}-{arch}/copilot");
            let native = folder.join(package);
            if native.is_file() {
                return native;
            }
        }
    }
    program.to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::{Home, native};
    use crate::Inherit;

    fn put(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// As npm installs it, with what is for the machine inside or beside.
    #[test]
    fn the_program_is_found_behind_what_npm_puts_into_the_path() {
        let arch = if cfg!(target_arch = "x86_64") { "x64" } else { "arm64" };
        let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
        for inside in ["lib/node_modules/@github/copilot/node_modules", "lib/node_modules"] {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().canonicalize().unwrap();
            let program = root.join("bin/copilot");
            put(&root.join("lib/node_modules/@github/copilot/npm-loader.js"), "");
            fs::create_dir(root.join("bin")).unwrap();
            symlink("../lib/node_modules/@github/copilot/npm-loader.js", &program).unwrap();
            assert_eq!(native(&program), program, "there is nothing to be found");
            let real = root.join(inside).join(format!("@github/copilot-{system}-{arch}/copilot"));
            put(&real, "");
            assert_eq!(native(&program), real);
            assert_eq!(native(&real), real, "it is the program itself");
        }
        assert_eq!(native(Path::new("/no/such/copilot")), Path::new("/no/such/copilot"));
    }

    #[test]
    fn a_conversation_goes_on_where_it_lies() {
        let folder = tempfile::tempdir().unwrap();
        let home =
            Home::of(&|name| (name == "COPILOT_HOME").then(|| folder.path().display().to_string()));
        let own = folder.path().join("atomic");
        for (inherit, place) in
            [(Inherit::All, None), (Inherit::Project, Some(&own)), (Inherit::None, Some(&own))]
        {
            assert_eq!(home.of_session("new", inherit).as_ref(), place);
        }
        fs::create_dir_all(own.join("session-state/ours")).unwrap();
        fs::create_dir_all(folder.path().join("session-state/theirs")).unwrap();
        assert_eq!(home.of_session("ours", Inherit::All), Some(own));
        assert_eq!(home.of_session("theirs", Inherit::Project), None);
    }

    #[test]
    fn the_users_model_is_read_where_the_program_keeps_it() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::of(&|name| (name == "HOME").then(|| folder.path().display().to_string()));
        assert_eq!(home.model(), None);
        put(
            &folder.path().join(".copilot/config.json"),
            "// kept by the program\n{\"model\": \"old\"}",
        );
        assert_eq!(home.model().as_deref(), Some("old"));
        put(&folder.path().join(".copilot/settings.json"), "{\"model\": \"new\", }");
        assert_eq!(home.model().as_deref(), Some("new"));
        put(&folder.path().join(".copilot/settings.json"), "no JSON");
        assert_eq!(home.model().as_deref(), Some("old"));
    }

    #[test]
    fn the_users_providers_are_read_from_their_file() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::of(&|name| (name == "HOME").then(|| folder.path().display().to_string()));
        let file = folder.path().join(".copilot/providers.json");
        assert_eq!(home.providers(None), Ok(None));
        put(
            &file,
            r#"{"providers": [{"name": "corp"}], "models": [{"id": "m", "provider": "corp"}]}"#,
        );
        let providers = home.providers(None).unwrap().unwrap();
        assert_eq!(providers.offers()[0].name, "corp/m");
        put(&file, r#"{"providers": {}}"#);
        assert!(home.providers(None).unwrap_err().contains("`providers` is not a list"));
        assert_eq!(home.providers(Some(folder.path().join("other.json"))), Ok(None));
    }
}
