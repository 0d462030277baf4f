//! What cargo knows about a workspace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// The workspace, as `cargo metadata --no-deps` tells it.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) workspace_root: PathBuf,
    pub(crate) target_directory: PathBuf,
}

/// A crate of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
    pub(crate) features: BTreeMap<String, Vec<String>>,
}

/// Something a crate depends on directly.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `dev`, `build`, or nothing for a normal one.
    pub(crate) kind: Option<String>,
}

/// Something cargo builds from a crate.
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
}

impl Metadata {
    /// Asks cargo about the workspace of `manifest`, or of the current folder.
    pub(crate) fn read(manifest: Option<&Path>) -> Result<Self, String> {
        let mut command = cargo();
        command.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]);
        if let Some(manifest) = manifest {
            command.arg("--manifest-path").arg(manifest);
        }
        let output = command.output().map_err(|e| format!("cannot start cargo: {e}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("cargo metadata failed: {}", said.trim()));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|e| format!("cannot read what cargo metadata says: {e}"))
    }

    /// The package of this name.
    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }
}

impl Package {
    /// The folder of the crate.
    pub(crate) fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }

    /// The name the architecture uses: `atomic-graph` is `graph`.
    pub(crate) fn short_name(&self) -> &str {
        short(&self.name)
    }

    /// Whether the crate has a target of this kind and name.
    pub(crate) fn has_target(&self, kind: &str, name: &str) -> bool {
        self.targets.iter().any(|t| t.name == name && t.kind.iter().any(|k| k == kind))
    }
}

/// The name the architecture uses for a package.
pub(crate) fn short(package: &str) -> &str {
    package.strip_prefix("atomic-").unwrap_or(package)
}

/// The cargo that runs us, so that every step uses the same toolchain.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}
