//! No package registry is named in the tree: where packages come from is the machine's setting.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Findings, files_below};
use crate::metadata::Metadata;

/// Hosts in two halves, so that this file does not break the rule it checks.
const HOSTS: &[(&str, &str)] = &[
    ("crates", "io"),
    ("npmjs", "org"),
    ("npmjs", "com"),
    ("yarnpkg", "com"),
    ("jsr", "io"),
    ("pypi", "org"),
    ("pythonhosted", "org"),
    ("rubygems", "org"),
    ("docker", "io"),
    ("ghcr", "io"),
];

/// Beginnings of addresses that name a registry without a well-known host.
const ADDRESSES: &[&str] = &[concat!("registry", "+http"), concat!("sparse", "+http")];

/// Words of a cargo configuration that choose a registry.
const SETTINGS: &[&str] = &["[source", "[registr", "replace-with"];

/// The field with which a lock file of npm names the address of a package, whatever its host.
const RESOLVED: &str = "\"resolved\": \"http";

/// Searches every file that is, or could be, tracked.
pub(super) fn check(tree: &Metadata, findings: &mut Findings<'_>) -> Result<(), String> {
    let hosts: Vec<String> = HOSTS.iter().map(|(name, top)| format!("{name}.{top}")).collect();
    for path in tracked_files(tree)? {
        // A file can be tracked and deleted at once; a link leads to a file that is looked at.
        let Ok(bytes) = fs::read(&path) else { continue };
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        for (index, line) in text.lines().enumerate() {
            if is_cargos_own(&path, line) {
                continue;
            }
            if let Some(what) = named_registry(&path, line, &hosts) {
                let problem =
                    format!("names a package registry ({what}); leave that to the machine");
                findings.add(&path, index + 1, problem);
            }
        }
    }
    Ok(())
}

/// The one form in which a lock file names its registry, the same on every machine.
fn is_cargos_own(path: &Path, line: &str) -> bool {
    let index = concat!("\"registry", "+https://github.com/rust-lang/crates", ".io-index\"");
    path.ends_with("Cargo.lock") && line.strip_prefix("source = ") == Some(index)
}

fn named_registry(path: &Path, line: &str, hosts: &[String]) -> Option<String> {
    if let Some(host) = hosts.iter().find(|host| names_host(line, host)) {
        return Some(host.clone());
    }
    if let Some(address) = ADDRESSES.iter().find(|address| line.contains(**address)) {
        return Some((*address).to_owned());
    }
    if path.ends_with("package-lock.json") && line.contains(RESOLVED) {
        return Some(RESOLVED.to_owned());
    }
    if path.ends_with(".npmrc") && line.contains("registry") {
        return Some("registry".to_owned());
    }
    let is_configuration = path.parent().is_some_and(|folder| folder.ends_with(".cargo"));
    let setting = SETTINGS.iter().find(|setting| line.trim_start().starts_with(**setting));
    setting.filter(|_| is_configuration).map(|setting| (*setting).to_owned())
}

/// Whether the host stands in the line as a whole name.
fn names_host(line: &str, host: &str) -> bool {
    line.match_indices(host).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + host.len()..].chars().next();
        let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !joins(before) && before != Some('-') && !joins(after)
    })
}

/// What git tracks or would track; without git, all there is.
fn tracked_files(tree: &Metadata) -> Result<Vec<PathBuf>, String> {
    let root = &tree.workspace_root;
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    if let Ok(listed) = listed
        && listed.status.success()
    {
        let names = String::from_utf8_lossy(&listed.stdout);
        return Ok(names.split('\0').filter(|n| !n.is_empty()).map(|n| root.join(n)).collect());
    }
    let target = &tree.target_directory;
    files_below(root, &|path| path != target && !path.ends_with(".git"))
}
