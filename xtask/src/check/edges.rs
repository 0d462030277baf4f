//! Which crate may depend on which.

use std::fs;

use super::Findings;
use super::rules::{ONLY_CLI, Packages, RULES, Rule, TEST_ONLY};
use crate::metadata::{Dependency, Metadata, Package, short};

/// Compares every direct dependency with the table.
pub(super) fn check(tree: &Metadata, findings: &mut Findings<'_>) -> Result<(), String> {
    for package in &tree.packages {
        let path = &package.manifest_path;
        let manifest =
            fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        let Some(rule) = RULES.iter().find(|rule| rule.name == package.short_name()) else {
            let name = &package.name;
            let problem = format!(
                "crate `{name}` has no rule; say in xtask/src/check/rules.rs what it must not do"
            );
            findings.add(path, line_of(&manifest, name), problem);
            continue;
        };
        for dependency in &package.dependencies {
            if let Some(problem) = problem(tree, rule, package, dependency) {
                findings.add(path, line_of(&manifest, &dependency.name), problem);
            }
        }
    }
    Ok(())
}

fn problem(
    tree: &Metadata,
    rule: &Rule,
    package: &Package,
    dependency: &Dependency,
) -> Option<String> {
    let to = dependency.name.as_str();
    let is_dev = dependency.kind.as_deref() == Some("dev");
    let edge = format!("{} → {}", package.short_name(), short(to));
    if tree.package(to).is_some() {
        return inner_problem(rule, short(to), is_dev, &edge);
    }
    if is_dev {
        return None;
    }
    if ONLY_CLI.contains(&to) && rule.name != "cli" {
        return Some(format!("{edge} is forbidden: only cli may use {to}"));
    }
    let Rule { name, must_not, .. } = rule;
    match rule.packages {
        Packages::Only(these) if !these.contains(&to) => Some(format!(
            "{edge} is forbidden: {name} must not {must_not}, and may only use {}",
            these.join(", ")
        )),
        Packages::AllBut(those) if those.contains(&to) => {
            Some(format!("{edge} is forbidden: {name} must not {must_not}"))
        }
        Packages::Only(_) | Packages::AllBut(_) => None,
    }
}

/// A dependency between two crates of the workspace.
fn inner_problem(rule: &Rule, to: &str, is_dev: bool, edge: &str) -> Option<String> {
    let Rule { name, knows, must_not, .. } = rule;
    if to == TEST_ONLY {
        let problem = format!("{edge} is forbidden: {TEST_ONLY} may only be a dev-dependency");
        return (!is_dev).then_some(problem);
    }
    if knows.contains(&to) {
        return None;
    }
    let known = if knows.is_empty() { "no other crate".to_owned() } else { knows.join(", ") };
    Some(format!("{edge} is forbidden: {name} must not {must_not}; it may know {known}"))
}

/// The line of a manifest that speaks of `name`, or the first.
fn line_of(manifest: &str, name: &str) -> usize {
    let speaks = |line: &str| {
        let line = line.trim_start();
        let table = line.starts_with('[') && line.contains(name);
        let key = line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '.', '=']));
        let value = line.starts_with("name") && line.contains(name);
        table || key || value
    };
    manifest.lines().position(speaks).map_or(1, |index| index + 1)
}
