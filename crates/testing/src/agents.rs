//! Real agent programs in a home of their own, with a scripted model in place of a provider.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The newest `claude` that is tested.
pub const CLAUDE: &str = "2.1.325";
/// The oldest.
pub const OLDER_CLAUDE: &str = "2.1.197";

/// The folder with a program in one version.
pub fn folder(name: &str, version: &str) -> PathBuf {
    let agents = std::env::var_os("ATOMIC_AGENTS")
        .expect("the tests of real agents need ATOMIC_AGENTS=$(cargo xtask agents)");
    PathBuf::from(agents).join(format!("{name}-{version}"))
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
