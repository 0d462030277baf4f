//! Real agent programs in a home of their own, with a scripted model in place of a provider.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

use std::path::{Path, PathBuf};

use serde_json::{Map, json};
use tempfile::TempDir;

/// The newest `claude` that is tested.
pub const CLAUDE: &str = "2.1.325";
/// The oldest.
pub const OLDER_CLAUDE: &str = "2.1.197";
/// The `opencode` that is tested.
pub const OPENCODE: &str = "1.18.33";

/// The `copilot` that is tested.
pub const COPILOT: &str = "1.0.102";

/// The folder with a program in one version, as it stands in `PATH`.
pub fn folder(name: &str, version: &str) -> PathBuf {
    let agents = std::env::var_os("ATOMIC_AGENTS")
        .expect("the tests of real agents need ATOMIC_AGENTS=$(cargo xtask agents)");
    let package = PathBuf::from(agents).join(format!("{name}-{version}"));
    if name == "opencode" { package.join("bin") } else { package }
}

/// A program in one version.
pub fn program(name: &str, version: &str) -> PathBuf {
    folder(name, version).join(name)
}

/// A home for `claude`: its settings and conversations, and nobody else's.
#[derive(Debug)]
pub struct ClaudeHome(TempDir);

impl Default for ClaudeHome {
    fn default() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }
}

impl ClaudeHome {
    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// What makes the program talk to the model at `url` and to nobody else, as in a sandbox.
    pub fn env(&self, url: &str) -> Vec<(String, String)> {
        let home = self.path().display().to_string();
        let config = self.path().join(".claude").display().to_string();
        [
            ("HOME", home.as_str()),
            ("CLAUDE_CONFIG_DIR", &config),
            ("ANTHROPIC_BASE_URL", url),
            ("ANTHROPIC_API_KEY", "of-no-use-anywhere"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("IS_SANDBOX", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }
}

/// A home for `opencode`, in which a provider is set up: the model at an address.
#[derive(Debug)]
pub struct OpenCodeHome(TempDir);

impl OpenCodeHome {
    /// The models that are set up in it.
    pub const MODELS: [&'static str; 3] = ["plain-1", "claude-alpha-1", "claude-beta-1"];

    /// A home whose provider `scripted` is at `url`.
    pub fn new(url: &str) -> Self {
        let home = Self(tempfile::tempdir().expect("a temporary folder"));
        let folder = home.path().join(".config/opencode");
        // The program fetches a package of types into every folder of settings that has none.
        std::fs::create_dir_all(folder.join("node_modules")).expect("a folder");
        let package = json!({ "dependencies": { "@opencode-ai/plugin": "*" } });
        let lock = json!({ "packages": { "": package } });
        let model = json!({
            "reasoning": true,
            "tool_call": true,
            // So large that nothing is summarised unless it is asked for.
            "limit": { "context": 20_000_000, "output": 8_192 },
            "cost": { "input": 3, "output": 15 },
        });
        let models = Self::MODELS.map(|name| (name.to_owned(), model.clone()));
        let settings = json!({
            "model": format!("scripted/{}", Self::MODELS[0]),
            "provider": { "scripted": {
                "npm": "@ai-sdk/anthropic",
                "options": { "baseURL": format!("{url}/v1"), "apiKey": "of-no-use-anywhere" },
                "models": Map::from_iter(models),
            } },
        });
        for (name, value) in
            [("package.json", package), ("package-lock.json", lock), ("opencode.json", settings)]
        {
            std::fs::write(folder.join(name), value.to_string()).expect("a file");
        }
        home
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// What makes the program live there and ask nobody on the network.
    pub fn env(&self) -> Vec<(String, String)> {
        let place = |name: &str| self.path().join(name).display().to_string();
        [
            ("HOME", place("")),
            ("XDG_CONFIG_HOME", place(".config")),
            ("XDG_DATA_HOME", place(".local/share")),
            ("XDG_STATE_HOME", place(".local/state")),
            ("XDG_CACHE_HOME", place(".cache")),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}

/// A home for `copilot`.
#[derive(Debug)]
pub struct CopilotHome(TempDir);

impl Default for CopilotHome {
    fn default() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }
}

impl CopilotHome {
    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// What makes the program talk to the model at `url` and to nobody else.
    pub fn env(&self, url: &str) -> Vec<(String, String)> {
        let home = self.path().display().to_string();
        // Unpacked once, when the programs are installed.
        let cache = folder("copilot", COPILOT).with_file_name("copilot-cache");
        [
            ("HOME", home.clone()),
            ("COPILOT_HOME", format!("{home}/.copilot")),
            ("COPILOT_CACHE_HOME", cache.display().to_string()),
            ("COPILOT_OFFLINE", "true".to_owned()),
            ("COPILOT_PROVIDER_TYPE", "openai".to_owned()),
            ("COPILOT_PROVIDER_WIRE_API", "completions".to_owned()),
            ("COPILOT_PROVIDER_BASE_URL", format!("{url}/v1")),
            ("COPILOT_PROVIDER_API_KEY", "of-no-use-anywhere".to_owned()),
            ("COPILOT_MODEL", "plain-1".to_owned()),
            // So large that nothing is summarised unless it is asked for.
            ("COPILOT_PROVIDER_MAX_PROMPT_TOKENS", "20000000".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}
