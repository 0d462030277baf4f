//! `xtask record`: what the pinned agent programs say, for the tests of the backends.

use crate::metadata::{Metadata, cargo};
use crate::test;

const PACKAGE: &str = "atomic-testing";
const BINARY: &str = "record";

/// Records one program into the folder of its backend.
pub(crate) fn run(tree: &Metadata, program: &str) -> Result<(), String> {
    let folder = tree.workspace_root.join("crates/backend/src").join(program).join("fixtures");
    let (variable, agents) = test::agents()?;
    // It starts others of the same package.
    let built = cargo().args(["build", "--package", PACKAGE, "--bins"]).status();
    built.map_err(|e| format!("cannot start cargo: {e}"))?;
    let status = cargo()
        .args(["run", "--package", PACKAGE, "--bin", BINARY, "--", program])
        .arg(&folder)
        .env(variable, agents)
        .status()
        .map_err(|e| format!("cannot start cargo: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("the recording failed ({status})")) }
}
