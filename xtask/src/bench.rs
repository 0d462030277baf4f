//! `xtask bench`: the benchmarks from a release build, and a smoke run of them from the test build.

use std::process::Command;

use crate::metadata::{Metadata, cargo};

const PACKAGE: &str = "atomic-testing";
const BINARY: &str = "bench";

/// Runs the benchmarks with `flags` handed through.
pub(crate) fn run(tree: &Metadata, flags: &[&str]) -> Result<(), String> {
    is_there(tree)?;
    let fixed = ["run", "--release", "--package", PACKAGE, "--bin", BINARY, "--"];
    let status =
        cargo().args(fixed).args(flags).status().map_err(|e| format!("cannot start cargo: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("the benchmarks failed ({status})")) }
}

/// Returns the command of the smoke run. The build of the tests has made the binary; asking cargo
/// for this one package would compile it once more with other features.
pub(crate) fn smoke(tree: &Metadata) -> Result<Command, String> {
    is_there(tree)?;
    let mut command = Command::new(tree.target_directory.join("debug").join(BINARY));
    command.arg("--smoke");
    Ok(command)
}

/// Fails without the binary, so that a missing benchmark is not taken for a passing one.
fn is_there(tree: &Metadata) -> Result<(), String> {
    let exists = tree.package(PACKAGE).is_some_and(|p| p.has_target("bin", BINARY));
    if exists { Ok(()) } else { Err(format!("not there yet: {PACKAGE} has no binary `{BINARY}`")) }
}
