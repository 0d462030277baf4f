//! Every environment variable of ours is declared, and every one declared is used.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use atomic_registry::settings::{VARIABLES, variable_names};

use super::{Findings, files_below};

/// What they all begin with.
const PREFIX: &str = "ATOMIC_";

/// A name of others: the key of the provider `atomic-chat` in OpenCode.
const NAME_OF_OTHERS: &str = "ATOMIC_CHAT_API_KEY";

/// Where they are declared.
const TABLE: &str = "crates/registry/src/settings/table.rs";

/// Looks through everything that is run.
pub(super) fn check(root: &Path, findings: &mut Findings<'_>) -> Result<(), String> {
    let declared: BTreeSet<&str> = variable_names().collect();
    let table = root.join(TABLE);
    let mut used = BTreeSet::new();
    // A snapshot shows what is printed, misspelt names included.
    let wanted =
        |path: &Path| !path.ends_with("target") && path.extension().is_none_or(|it| it != "snap");
    for folder in ["crates", "xtask", ".ci"] {
        for path in files_below(&root.join(folder), &wanted)? {
            let text =
                fs::read(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
            let text = String::from_utf8_lossy(&text);
            for (index, line) in text.lines().enumerate() {
                for name in names_in(line) {
                    if name == NAME_OF_OTHERS {
                        continue;
                    }
                    if !declared.contains(name) {
                        let problem = format!("{name} is not declared in {TABLE}");
                        findings.add(&path, index + 1, problem);
                    } else if path != table {
                        used.insert(name.to_owned());
                    }
                }
            }
        }
    }
    // Another workspace has no table of ours. A setting is used by being declared.
    if table.is_file() {
        for variable in VARIABLES.iter().filter(|variable| !used.contains(variable.name)) {
            findings.add(&table, 1, format!("nothing uses {}", variable.name));
        }
    }
    Ok(())
}

/// The names of variables in a line.
fn names_in(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices(PREFIX).filter_map(move |(start, _)| {
        let joins = |c: char| c.is_ascii_uppercase() || c == '_';
        let inside =
            line[..start].chars().next_back().is_some_and(|c| joins(c) || c.is_ascii_digit());
        let rest = &line[start..];
        let end = rest.find(|c| !joins(c)).unwrap_or(rest.len());
        (!inside && end > PREFIX.len()).then(|| &rest[..end])
    })
}
