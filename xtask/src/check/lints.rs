//! Every crate takes the lints of the workspace; one that does not is a hole in all of them.

use std::fs;

use toml::{Table, Value};

use super::Findings;
use crate::metadata::Metadata;

/// Reads every manifest for `[lints] workspace = true`.
pub(super) fn check(tree: &Metadata, findings: &mut Findings<'_>) -> Result<(), String> {
    for package in &tree.packages {
        let path = &package.manifest_path;
        let text =
            fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        let manifest: Table =
            text.parse().map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        let inherits = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        if inherits != Some(&Value::Boolean(true)) {
            let problem = format!(
                "crate `{}` does not take the workspace's lints; add [lints] workspace = true",
                package.name
            );
            findings.add(path, 1, problem);
        }
    }
    Ok(())
}
