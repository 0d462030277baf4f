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

    /// The end of what is said when it fails.
    fn run(&self) -> Result<(), String> {
        let cargo = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/agents/cargo");
        let metadata = serde_json::json!({
            "packages": [],
            "workspace_root": self.0.path(),
            "target_directory": self.path("target"),
        });
        let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .arg("backends")
            .env("CARGO", cargo)
            .env("CARGO_METADATA", metadata.to_string())
            .env("CARGO_CALLS", self.path("calls"))
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap().trim_end().to_owned();
        if output.status.success() { Ok(()) } else { Err(said) }
    }
}

#[test]
fn the_page_is_written_when_everything_has_passed_in_every_version() {
    let workspace = Workspace::new();
    let said = workspace.run().unwrap_err();
    assert!(said.ends_with("conformance; run cargo xtask test first"), "{said}");

    for check in ["talks", "is_told"] {
        workspace.note("2.1.325", check);
    }
    let said = workspace.run().unwrap_err();
    assert!(said.contains("talks has not passed on claude 2.1.197"), "{said}");
    assert!(said.contains("is_told has not passed on claude 2.1.197"), "{said}");
    assert!(!workspace.path("docs/backends.md").exists());

    for check in ["talks", "is_told"] {
        workspace.note("2.1.197", check);
    }
    assert_eq!(workspace.run(), Ok(()));
    let page = fs::read_to_string(workspace.path("docs/backends.md")).unwrap();
    assert!(page.contains("|  | Claude Code 2.1.197, 2.1.325 |\n|---|---|\n| Talking | yes |\n"));
    assert!(page.contains("| `gone` | yes |\n"), "{page}");

    fs::remove_file(workspace.result("2.1.325", "talks")).unwrap();
    let said = workspace.run().unwrap_err();
    assert!(said.ends_with("talks has not passed on claude 2.1.325"), "{said}");
}
