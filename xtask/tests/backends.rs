//! `xtask backends` from the outside, in a workspace with nothing but a table and results.

#![expect(clippy::unwrap_used, reason = "what a test cannot set up is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

const TABLE: &str = r#"
backends = [{ name = "claude", title = "Claude Code" }]

[[capability]]
name = "Talking"
checks = ["talks"]

[[failure]]
name = "`gone`"
checks = ["is_told"]
"#;

struct Workspace(TempDir);

impl Workspace {
    fn new() -> Self {
        let this = Self(TempDir::new().unwrap());
        let table = this.path("crates/testing/src/conformance/backend/capabilities.toml");
        fs::create_dir_all(table.parent().unwrap()).unwrap();
        fs::write(table, TABLE).unwrap();
        fs::create_dir(this.path("docs")).unwrap();
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn result(&self, version: &str, check: &str) -> PathBuf {
        self.path("target/conformance/claude").join(version).join(check)
    }

    fn note(&self, version: &str, check: &str) {
        let result = self.result(version, check);
        fs::create_dir_all(result.parent().unwrap()).unwrap();
        fs::write(result, "").unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/agents");
        let metadata = serde_json::json!({
            "packages": [],
            "workspace_root": self.0.path(),
            "target_directory": self.path("target"),
        });
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command
            .args(arguments)
            .env("CARGO", fixtures.join("cargo"))
            .env("CARGO_METADATA", metadata.to_string())
            .env("CARGO_CALLS", self.path("calls"))
            .env("ATOMIC_TOOLS", self.path("tools"))
            .env("NPM_CALLS", self.path("npm"))
            .env("PATH", format!("{}:/usr/bin:/bin", fixtures.join("bin").display()))
            .env_remove("ATOMIC_AGENTS")
            .env_remove("ATOMIC_TEST_SAMPLE");
        command
    }

    /// What is said when it fails.
    fn write(&self) -> Result<(), String> {
        let output = self.command(&["backends"]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap().trim_end().to_owned();
        if output.status.success() { Ok(()) } else { Err(said) }
    }

    /// How the page is found to be by a run of all tests in which these pass, and its log.
    fn compare(&self, notes: &str) -> (&'static str, String) {
        self.compare_in(&["test", "--full"], notes)
    }

    /// The same by another run.
    fn compare_in(&self, run: &[&str], notes: &str) -> (&'static str, String) {
        let output = self.command(run).env("CARGO_NOTES", notes).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let (_, table) = said.split_once("\nsuite ").unwrap();
        let row = table.lines().find(|line| line.starts_with("backends ")).unwrap();
        let word = ["ok", "FAILED"].into_iter().find(|word| row.contains(word)).unwrap();
        (word, fs::read_to_string(self.path("target/xtask-test/backends.log")).unwrap())
    }
}

#[test]
fn the_page_is_written_when_everything_has_passed_in_every_version() {
    let workspace = Workspace::new();
    let said = workspace.write().unwrap_err();
    assert!(said.ends_with("conformance; run cargo xtask test --full first"), "{said}");

    for check in ["talks", "is_told"] {
        workspace.note("2.1.325", check);
    }
    let said = workspace.write().unwrap_err();
    assert!(said.contains("talks has not passed on claude 2.1.197"), "{said}");
    assert!(said.contains("is_told has not passed on claude 2.1.197"), "{said}");
    assert!(!workspace.path("docs/backends.md").exists());

    for check in ["talks", "is_told"] {
        workspace.note("2.1.197", check);
    }
    assert_eq!(workspace.write(), Ok(()));
    let page = fs::read_to_string(workspace.path("docs/backends.md")).unwrap();
    assert!(page.contains("|  | Claude Code 2.1.197, 2.1.325 |\n|---|---|\n| Talking | yes |\n"));
    assert!(page.contains("| `gone` | yes |\n"), "{page}");

    fs::remove_file(workspace.result("2.1.325", "talks")).unwrap();
    let said = workspace.write().unwrap_err();
    assert!(said.ends_with("talks has not passed on claude 2.1.325"), "{said}");
}

#[test]
fn a_page_that_is_not_what_has_passed_in_this_run_is_a_failure() {
    let workspace = Workspace::new();
    let both = "claude/2.1.197/talks claude/2.1.325/talks";
    let all = format!("{both} claude/2.1.197/is_told claude/2.1.325/is_told");
    let (word, log) = workspace.compare(&all);
    assert_eq!(word, "FAILED");
    assert!(log.contains("cannot read docs/backends.md"), "{log}");

    assert_eq!(workspace.write(), Ok(()));
    assert_eq!(workspace.compare(&all), ("ok", String::new()));

    // What has passed in an earlier run does not count.
    let (word, log) = workspace.compare(both);
    assert_eq!(word, "FAILED");
    assert!(log.contains("is_told has not passed on claude 2.1.197"), "{log}");

    // A run that plays a tenth of the tests of the older program does not miss the others.
    let newest = "claude/2.1.325/talks claude/2.1.325/is_told";
    assert_eq!(workspace.compare_in(&["test"], newest), ("ok", String::new()));
    let (word, log) = workspace.compare_in(&["test"], both);
    assert_eq!(word, "FAILED");
    assert!(log.contains("is_told has not passed on claude 2.1.325"), "{log}");

    fs::write(workspace.path("docs/backends.md"), "another page").unwrap();
    let (word, log) = workspace.compare(&all);
    assert_eq!(word, "FAILED");
    assert!(log.contains("agent programs can do; run cargo xtask backends"), "{log}");
}
