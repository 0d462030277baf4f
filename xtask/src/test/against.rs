//! `xtask test --against <binary>`: process tests on another build of `atomic`, to see that a new
//! test fails without the change it belongs to.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::plan::{self, Tree};
use super::{Log, agents, client, has_nextest, nextest};
use crate::metadata::{Metadata, cargo};

/// Tells the tests which `atomic` to start.
const VARIABLE: &str = "ATOMIC_TEST_BINARY";

/// The package whose integration tests start `atomic`.
const PACKAGE: &str = "atomic-cli";

/// Runs the process tests whose names contain one of `names`, or all of them, and lists which fail
/// and which pass. A failing test is an answer, not an error.
pub(crate) fn run(metadata: &Metadata, binary: &Path, names: &[&str]) -> Result<(), String> {
    let binary = fs::canonicalize(binary).map_err(|e| format!("{}: {e}", binary.display()))?;
    if !has_nextest() {
        return Err("cargo-nextest is not installed\n\
                    hint: cargo install cargo-nextest --locked"
            .to_owned());
    }
    let tree = Tree::of(metadata, true);
    let filter = filter(names);
    let chosen = list(&tree, &filter)?;
    if chosen.is_empty() {
        return Err(format!("no process test has one of these words in its name: {names:?}"));
    }
    let logs = metadata.target_directory.join("xtask-test");
    fs::create_dir_all(&logs).map_err(|e| format!("cannot create {}: {e}", logs.display()))?;
    let log = Log::create(&logs, "against")?;
    let mut command = cargo();
    command.args(plan::nextest_call(&tree, "", &filter)).env(VARIABLE, &binary);
    if chosen.iter().any(|name| name.contains(plan::REAL)) {
        command.env(agents::VARIABLE, agents::folder(&log)?);
    }
    if chosen.iter().any(|name| name.contains(plan::CLIENT)) {
        command.env(client::VARIABLE, client::CLIENT.folder(&log)?);
    }
    // Nextest reports failed tests by its exit code.
    let ended = log.run(command);
    let finished = nextest::finished(&log.text());
    if finished.is_empty() {
        let problem = ended.err().unwrap_or_else(|| "no test was run".to_owned());
        return Err(format!("{problem}\n(log: {})", log.path.display()));
    }
    println!("{}", draw(&binary, &finished));
    println!("(log: {})", log.path.display());
    Ok(())
}

/// The filter of cargo-nextest for these tests.
fn filter(names: &[&str]) -> String {
    let process_tests = format!("package(={PACKAGE}) & kind(test)");
    let names: Vec<String> = names.iter().map(|name| format!("test({name})")).collect();
    if names.is_empty() {
        process_tests
    } else {
        format!("{process_tests} & ({})", names.join(" | "))
    }
}

/// Builds the tests and returns the names of those that the filter selects.
fn list(tree: &Tree, filter: &str) -> Result<Vec<String>, String> {
    let mut command = cargo();
    command.args(["nextest", "list", "--workspace", "--message-format", "json"]);
    command.args(plan::features(tree)).args(["-E", filter]);
    let output = command.output().map_err(|e| format!("cannot start cargo: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned());
    }
    let listed: Listed = serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("cannot read the list of cargo-nextest: {e}"))?;
    let tests = listed.suites.into_values().flat_map(|suite| suite.tests);
    let is_chosen = |test: &Test| test.filter.status == "matches";
    Ok(tests.filter(|(_, test)| is_chosen(test)).map(|(name, _)| name).collect())
}

/// What `cargo nextest list --message-format json` prints.
#[derive(Debug, Deserialize)]
struct Listed {
    #[serde(rename = "rust-suites")]
    suites: BTreeMap<String, TestBinary>,
}

#[derive(Debug, Deserialize)]
struct TestBinary {
    #[serde(rename = "testcases")]
    tests: BTreeMap<String, Test>,
}

#[derive(Debug, Deserialize)]
struct Test {
    #[serde(rename = "filter-match")]
    filter: FilterMatch,
}

#[derive(Debug, Deserialize)]
struct FilterMatch {
    status: String,
}

fn draw(binary: &Path, finished: &BTreeMap<String, nextest::Finished>) -> String {
    let mut lines = vec![format!("on {}:", binary.display())];
    for (word, passed) in [("red", false), ("green", true)] {
        let tests: Vec<_> = finished.iter().filter(|(_, test)| test.passed == passed).collect();
        lines.push(format!("\n{word} there: {}", tests.len()));
        lines.extend(tests.iter().map(|(name, _)| format!("  {name}")));
    }
    lines.join("\n")
}
