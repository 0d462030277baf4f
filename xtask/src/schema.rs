//! `xtask schema`: the JSON Schema of the journal, generated from the code and checked in.

use std::fs;
use std::path::Path;

const PATH: &str = "docs/schema/journal.schema.json";

/// Writes the schema.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    let path = root.join(PATH);
    let folder = path.parent().unwrap_or(root);
    fs::create_dir_all(folder).map_err(|e| format!("cannot create {}: {e}", folder.display()))?;
    fs::write(&path, text()?).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

/// Fails when the file is not what [`write`] would write.
pub(crate) fn compare(root: &Path) -> Result<(), String> {
    let found = fs::read_to_string(root.join(PATH))
        .map_err(|e| format!("cannot read {PATH}: {e}; run cargo xtask schema"))?;
    if found == text()? {
        return Ok(());
    }
    Err(format!("{PATH} is not what the code says; run cargo xtask schema"))
}

fn text() -> Result<String, String> {
    let pretty = serde_json::to_string_pretty(&atomic_event::journal_schema())
        .map_err(|e| format!("cannot write the schema as JSON: {e}"))?;
    Ok(pretty + "\n")
}
