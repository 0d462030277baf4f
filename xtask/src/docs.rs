//! `xtask docs`: the pages that are generated from the code and checked in.

use std::fs;
use std::path::Path;

const PATH: &str = "docs/settings.md";

/// Writes the reference of settings.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    fs::write(root.join(PATH), text()).map_err(|e| format!("cannot write {PATH}: {e}"))
}

/// Fails when the file is not what [`write`] would write.
pub(crate) fn compare(root: &Path) -> Result<(), String> {
    let found = fs::read_to_string(root.join(PATH))
        .map_err(|e| format!("cannot read {PATH}: {e}; run cargo xtask docs"))?;
    if found == text() {
        return Ok(());
    }
    Err(format!("{PATH} is not what the code says; run cargo xtask docs"))
}

fn text() -> String {
    atomic_registry::settings::reference()
}
