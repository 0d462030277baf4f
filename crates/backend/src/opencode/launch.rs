//! How the server is started: its settings, its environment, and the folder it has to itself.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::http::USER;
use super::talker::permissions;
use super::wire::Model;
use crate::temporary::PrivateFolder;
use crate::{Inherit, Persona};

/// The agent that takes on every persona.
pub(super) const PERSONA: &str = "atomic";

/// What the agent is where nobody is to be anybody.
pub(super) const NOBODY: &str = "build";

/// Agents of the program's own; another one of the same name would change how it works.
const OWN_AGENTS: [&str; 6] = [NOBODY, "plan", "compaction", "summary", "title", PERSONA];

/// What the name of a folder begins with that a server has to itself.
const FOLDER: &str = "atomic-opencode-";

/// The variable that names the socket at which we are asked.
const GATE: &str = "ATOMIC_GATE";

/// What can only be said when the server is started. One server serves all who want the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setup {
    pub(super) inherit: Inherit,
    pub(super) helpers: Vec<Persona>,
    /// Whose models may be used; all where nothing is going to be sent to them.
    pub(super) providers: Option<BTreeSet<String>>,
    /// The model to use where nobody says which.
    pub(super) model: Option<Model>,
    /// What of the user's settings is about providers.
    pub(super) users: Map<String, Value>,
    /// Providers that the project mentions, where settings are fetched from a server.
    pub(super) foreign: Option<BTreeSet<String>>,
}

impl Setup {
    /// Whether a server that was started like this will do for somebody who wants `other`.
    pub(super) fn serves(&self, other: &Self) -> bool {
        let reaches = match (&self.providers, &other.providers) {
            (Some(ours), Some(theirs)) => theirs.is_subset(ours),
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        };
        let helps = other.helpers.iter().all(|helper| self.helpers.contains(helper));
        let kind = |setup: &Self| (setup.inherit, setup.users.clone(), setup.foreign.clone());
        reaches && helps && kind(self) == kind(other)
    }

    /// The settings about providers that the plugin puts in place of those the program has merged:
    /// a project's files are among them, and no setting of the program leaves those out alone.
    fn providers(&self) -> Value {
        let users = |key: &str| self.users.get(key).cloned();
        json!({
            "provider": users("provider").unwrap_or_else(|| json!({})),
            "enabled": self.providers.as_ref().map(|it| json!(it)).or(users("enabled_providers")),
            "disabled": users("disabled_providers"),
            "foreign": self.foreign,
        })
    }
}

/// The folder a server has to itself. It is gone with it.
#[derive(Debug)]
pub(super) struct Den {
    folder: PrivateFolder,
}

impl Den {
    /// Makes it, with everything in it.
    pub(super) fn make(setup: &Setup) -> io::Result<Self> {
        let den = Self { folder: PrivateFolder::create(FOLDER)? };
        let config = den.config_home().join("opencode");
        for folder in
            [den.temporary(), den.home(), config.join("node_modules"), den.path("helpers")]
        {
            fs::create_dir_all(folder)?;
        }
        // The program fetches a package of types into every folder of settings that has none.
        let package = json!({ "dependencies": { "@opencode-ai/plugin": "*" } });
        fs::write(config.join("package.json"), package.to_string())?;
        let lock = json!({ "packages": { "": package } });
        fs::write(config.join("package-lock.json"), lock.to_string())?;
        fs::write(config.join("opencode.json"), written(&json!(setup.users), &[]))?;
        fs::write(den.path("providers.json"), setup.providers().to_string())?;
        fs::write(den.plugin(), include_str!("plugin.js"))?;
        for (place, helper) in setup.helpers.iter().enumerate() {
            fs::write(den.prompt(place), &helper.prompt)?;
        }
        Ok(den)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where it may put what nobody needs afterwards; it leaves megabytes there each time.
    fn temporary(&self) -> PathBuf {
        self.path("tmp")
    }

    fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// The folder where it has its settings in place of the user's.
    pub(super) fn config_home(&self) -> PathBuf {
        self.path("config")
    }

    fn plugin(&self) -> PathBuf {
        self.path("plugin.js")
    }

    fn prompt(&self, place: usize) -> PathBuf {
        self.path("helpers").join(format!("{place}.md"))
    }

    /// The socket at which we are asked.
    pub(super) fn gate(&self) -> PathBuf {
        self.path("gate")
    }

    /// The environment of the server, added to our own.
    pub(super) fn env(&self, setup: &Setup, password: &str) -> Vec<(String, String)> {
        let mut env = vec![
            ("TMPDIR", shown(&self.temporary())),
            (GATE, shown(&self.gate())),
            ("OPENCODE_SERVER_USERNAME", USER.to_owned()),
            ("OPENCODE_SERVER_PASSWORD", password.to_owned()),
            // It would leave our plugin out, and with it every restriction.
            ("OPENCODE_PURE", "0".to_owned()),
            ("OPENCODE_CONFIG_CONTENT", self.config(setup)),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
            ("OPENCODE_CLIENT", "cli".to_owned()),
        ];
        if setup.inherit != Inherit::All {
            // The user's own settings, plugins, rules and servers are looked for in these.
            env.push(("XDG_CONFIG_HOME", shown(&self.config_home())));
            env.push(("OPENCODE_TEST_HOME", shown(&self.home())));
            env.push(("OPENCODE_CONFIG", String::new()));
            env.push(("OPENCODE_PERMISSION", String::new()));
            if std::env::var_os("OPENCODE_CONFIG_DIR").is_some() {
                env.push(("OPENCODE_CONFIG_DIR", shown(&self.config_home().join("opencode"))));
            }
        }
        if setup.inherit == Inherit::None {
            let off = ["PROJECT_CONFIG", "CLAUDE_CODE", "EXTERNAL_SKILLS"];
            let names = off.map(|what| format!("OPENCODE_DISABLE_{what}"));
            let off = names.into_iter().map(|name| (name, "1".to_owned()));
            return env
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .chain(off)
                .collect();
        }
        env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// What the shells of tools are told in place of what the server was told.
    pub(super) fn shell_env(setup: &Setup, config_home: &Path) -> Vec<(String, String)> {
        let ours = |name: &str| std::env::var(name).ok();
        let nothing = String::new;
        let mut env = vec![
            ("TMPDIR", ours("TMPDIR").unwrap_or_else(|| shown(&std::env::temp_dir()))),
            (GATE, nothing()),
            ("OPENCODE_SERVER_PASSWORD", nothing()),
            ("OPENCODE_CONFIG_CONTENT", ours("OPENCODE_CONFIG_CONTENT").unwrap_or_default()),
        ];
        if setup.inherit != Inherit::All {
            env.push(("XDG_CONFIG_HOME", shown(config_home)));
            env.push(("OPENCODE_TEST_HOME", ours("HOME").unwrap_or_default()));
        }
        env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Settings that are stronger than all others.
    fn config(&self, setup: &Setup) -> String {
        let mut config = json!({
            "share": "disabled",
            "autoupdate": false,
            "plugin": [address(&self.plugin())],
            // Nothing of this is asked for; everything else is as the agent has it, so that one who
            // only reads stays one who only reads.
            "permission": { "external_directory": "allow", "doom_loop": "allow", "read": "allow" },
            "agent": self.agents(setup),
        });
        if setup.inherit != Inherit::All {
            config["snapshot"] = json!(false);
        }
        if let Some(providers) = &setup.providers {
            config["enabled_providers"] = json!(providers);
        }
        if let Some(Model { provider, name }) = &setup.model {
            let model = format!("{provider}/{name}");
            if !setup.users.contains_key("small_model") {
                config["small_model"] = json!(model);
            }
            config["model"] = json!(model);
        }
        let files: Vec<String> = (0..setup.helpers.len()).map(|n| self.reference(n)).collect();
        written(&config, &files)
    }

    /// How the settings name the file with a helper's prompt.
    fn reference(&self, place: usize) -> String {
        format!("{{file:{}}}", self.prompt(place).display())
    }

    fn agents(&self, setup: &Setup) -> Value {
        let mut agents = Map::new();
        let persona = json!({
            "mode": "primary",
            "prompt": "You are an agent in a workflow. What you are to be is said at the end of this text.",
            "permission": { "question": "allow" },
        });
        agents.insert(PERSONA.to_owned(), persona);
        for (place, helper) in setup.helpers.iter().enumerate() {
            if !OWN_AGENTS.contains(&helper.name.as_str()) {
                agents.insert(helper.name.clone(), self.helper(place, helper));
            }
        }
        Value::Object(agents)
    }

    fn helper(&self, place: usize, helper: &Persona) -> Value {
        let given = permissions(&helper.tools, &[]);
        let mut rules: Map<String, Value> = given
            .into_iter()
            .filter(|(_, is_given)| *is_given == json!(false))
            .map(|(permission, _)| (permission, json!("deny")))
            .collect();
        rules.insert("question".to_owned(), json!("allow"));
        let mut about = json!({
            "mode": "subagent",
            "description": helper.description,
            "prompt": self.reference(place),
            "permission": rules,
        });
        // What is no model here is left to the agent that starts it.
        if let Some(model) = helper.model.as_ref().filter(|model| Model::read(model).is_some()) {
            about["model"] = json!(model);
        }
        about
    }
}

/// Settings as a text in which only references to these files are references: whoever describes an
/// agent must not be able to name a file or a variable.
fn written(config: &Value, files: &[String]) -> String {
    let text = config.to_string();
    let text = text.replace("{env:", "\\u007benv:").replace("{file:", "\\u007bfile:");
    files.iter().fold(text, |text, file| {
        let reference = json!(file).to_string();
        text.replace(&reference.replace("{file:", "\\u007bfile:"), &reference)
    })
}

/// A file as an address: the program takes one with odd characters in it for another file.
fn address(file: &Path) -> String {
    reqwest::Url::from_file_path(file)
        .map_or_else(|()| format!("file://{}", file.display()), String::from)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::{address, written};

    #[test]
    fn only_our_own_files_are_references() {
        let ours = "{file:/tmp/den/helpers/0.md}".to_owned();
        let theirs =
            ["{file:/etc/passwd}", "{env:HOME}", "\u{1}file:/etc/passwd}", "\\u0001file:/x}"];
        let config = json!({ "prompt": ours, "description": theirs });
        let text = written(&config, std::slice::from_ref(&ours));
        assert_eq!(text.matches("{file:").count(), 1, "{text}");
        assert!(!text.contains("{env:"), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).ok(), Some(config));
    }

    #[test]
    fn a_plugin_in_an_odd_folder_has_its_own_address() {
        assert_eq!(address(Path::new("/a b/c#d%20/p.js")), "file:///a%20b/c%23d%2520/p.js");
    }
}
