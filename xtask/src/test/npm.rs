//! Packages that only tests use: pinned by a lock file, installed by npm into a cache outside the
//! tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use super::{Log, cache};

/// Packages that are installed together.
pub(super) struct Packages {
    /// The name of their folder in the cache.
    pub(super) name: &'static str,
    /// What they are, for whoever reads that they cannot be had.
    pub(super) what: &'static str,
    /// `package.json`.
    pub(super) wanted: &'static str,
    /// `package-lock.json`.
    pub(super) locked: &'static str,
    /// A file that is there when they are.
    pub(super) file: &'static str,
}

impl Packages {
    /// Their folder, installed first where they are missing; the error says why they cannot be had.
    pub(super) fn folder(&self, log: &Log) -> Result<PathBuf, String> {
        let cache = cache::folder()?.join(self.name);
        let key: String =
            Sha256::digest(self.locked).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let folder = cache.join(key);
        let lock = cache::lock(&cache, log)?;
        if !folder.join(self.file).is_file() {
            self.install(log, &cache.join("staging"), &folder)?;
        }
        drop(lock);
        Ok(folder)
    }

    /// Installs into a folder of its own and renames it, so that what is there is whole.
    fn install(&self, log: &Log, staging: &Path, folder: &Path) -> Result<(), String> {
        let failed = |e| format!("cannot write to {}: {e}", staging.display());
        for old in [staging, folder].into_iter().filter(|old| old.exists()) {
            fs::remove_dir_all(old).map_err(failed)?;
        }
        fs::create_dir_all(staging).map_err(failed)?;
        fs::write(staging.join("package.json"), self.wanted).map_err(failed)?;
        fs::write(staging.join("package-lock.json"), self.locked).map_err(failed)?;
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(staging);
        log.run(npm).map_err(|problem| {
            log.write(&problem);
            format!("npm could not install {}", self.what)
        })?;
        fs::rename(staging, folder).map_err(failed)
    }
}
