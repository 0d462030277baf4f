//! cargo-deny, pinned, in a cache outside the tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Log, cache};
use crate::metadata::cargo;

const VERSION: &str = "0.20.2";

/// The program, installed first where it is missing; the error says why it cannot be had.
pub(super) fn program(log: &Log) -> Result<PathBuf, String> {
    if is_pinned_version(Path::new("cargo-deny")) {
        return Ok("cargo-deny".into());
    }
    let cache = cache::folder()?;
    let installed = cache.join(format!("cargo-deny-{VERSION}"));
    let program = installed.join("bin/cargo-deny");
    let lock = cache::lock(&cache, log)?;
    if !is_pinned_version(&program) {
        install(log, &cache, &installed)?;
    }
    drop(lock);
    Ok(program)
}

/// The advisories are not checked: their database is not to be had where this runs.
pub(super) fn command(program: &Path, root: &Path) -> Command {
    let mut command = Command::new(program);
    // Called by its own name it expects no `deny` in front.
    command.args(["--locked", "check", "licenses", "bans", "sources"]).current_dir(root);
    command
}

fn is_pinned_version(program: &Path) -> bool {
    let said = Command::new(program).arg("--version").output();
    said.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim().ends_with(VERSION))
}

/// Builds into a folder of its own and renames it, so that what is there is whole.
fn install(log: &Log, cache: &Path, installed: &Path) -> Result<(), String> {
    let staging = cache.join("staging");
    let build = cache.join("build");
    let mut command = cargo();
    command
        .args(["install", "cargo-deny", "--version", VERSION, "--locked", "--root"])
        .arg(&staging)
        // Outside the tree, so that its settings do not apply; and kept on failure, to go on from.
        .current_dir(cache)
        .env("CARGO_TARGET_DIR", &build)
        // It runs for a second and is built from cold in CI: what counts is the time to build it.
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    log.run(command)?;
    let failed = |e| format!("cannot put {} in place: {e}", installed.display());
    if installed.exists() {
        fs::remove_dir_all(installed).map_err(failed)?;
    }
    fs::rename(&staging, installed).map_err(failed)?;
    // Half a gigabyte nobody needs any more; should it stay, nothing is wrong.
    let _ = fs::remove_dir_all(&build);
    Ok(())
}
