//! `xtask bench`: the benchmarks, always from a release build.

use crate::metadata::{Metadata, cargo};

const PACKAGE: &str = "atomic-testing";
const BINARY: &str = "bench";

/// Runs the benchmarks with `flags` handed through.
pub(crate) fn run(tree: &Metadata, flags: &[&str]) -> Result<(), String> {
    let status = cargo()
        .args(command_line(tree, flags)?)
        .status()
        .map_err(|e| format!("cannot start cargo: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("the benchmarks failed ({status})")) }
}

/// What to ask cargo for. Without the binary this is an error, so that nobody takes a missing
/// benchmark for a passing one.
pub(crate) fn command_line(tree: &Metadata, flags: &[&str]) -> Result<Vec<String>, String> {
    let exists = tree.package(PACKAGE).is_some_and(|p| p.has_target("bin", BINARY));
    if !exists {
        return Err(format!("not there yet: {PACKAGE} has no binary `{BINARY}`"));
    }
    let fixed = ["run", "--release", "--package", PACKAGE, "--bin", BINARY, "--"];
    Ok(fixed.iter().chain(flags).map(|&word| word.to_owned()).collect())
}
