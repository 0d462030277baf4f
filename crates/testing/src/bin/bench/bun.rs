//! bun, as something to compare with: pinned in `bun/package.json`, and installed by npm into the
//! cache folder when it is first asked for.
//!
//! After a change of the version, in the folder: `npm install --package-lock-only --ignore-scripts
//! --omit-lockfile-registry-resolved`.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use atomic_testing::langgraph::cache;

const PACKAGES: &str = include_str!("bun/package.json");
const PACKAGE_LOCK: &str = include_str!("bun/package-lock.json");

/// The program; the error says why it cannot be had.
pub(crate) fn program() -> Result<PathBuf, String> {
    let cache = std::path::absolute(cache()).map_err(|e| format!("no place for a cache: {e}"))?;
    fs::create_dir_all(&cache).map_err(|e| format!("cannot create {}: {e}", cache.display()))?;
    let mut hasher = DefaultHasher::new();
    PACKAGE_LOCK.hash(&mut hasher);
    let installed = cache.join(format!("bun-{:016x}", hasher.finish()));
    // Held until we return, so that two runs do not install over each other.
    let lock = File::create(cache.join("bun.lock"))
        .and_then(|file| file.lock().map(|()| file))
        .map_err(|e| format!("cannot lock {}: {e}", cache.display()))?;
    if found(&installed).is_none() {
        install(&cache.join("bun-staging"), &installed)?;
    }
    drop(lock);
    found(&installed).ok_or_else(|| {
        let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
        format!("npm has installed no bun for {system} on {machine}")
    })
}

/// npm takes the packages that fit the machine.
fn found(folder: &Path) -> Option<PathBuf> {
    let packages = fs::read_dir(folder.join("node_modules/@oven")).ok()?.flatten();
    packages.map(|package| package.path().join("bin/bun")).find(|program| program.is_file())
}

/// Installs into a folder of its own and renames it, so that what is there is whole.
fn install(staging: &Path, installed: &Path) -> Result<(), String> {
    let failed = |e| format!("cannot put {} in place: {e}", installed.display());
    for left_over in [staging, installed].into_iter().filter(|folder| folder.exists()) {
        fs::remove_dir_all(left_over).map_err(failed)?;
    }
    fs::create_dir_all(staging).map_err(failed)?;
    fs::write(staging.join("package.json"), PACKAGES).map_err(failed)?;
    fs::write(staging.join("package-lock.json"), PACKAGE_LOCK).map_err(failed)?;
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--include=optional"]);
    npm.current_dir(staging).stdin(Stdio::null());
    let output = npm.output().map_err(|e| format!("npm cannot be started: {e}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("npm could not install it: {}", said.trim()));
    }
    fs::rename(staging, installed).map_err(failed)
}
