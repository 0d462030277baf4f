//! The real agent programs, from the folder that `cargo xtask agents` prints.

#![expect(clippy::expect_used, reason = "a helper that fails fails its test")]

use std::path::PathBuf;
use std::process::Command;

/// The program in one version.
fn program(name: &str, version: &str) -> PathBuf {
    let folder = std::env::var_os("ATOMIC_AGENTS")
        .expect("the tests of real agents need ATOMIC_AGENTS=$(cargo xtask agents)");
    PathBuf::from(folder).join(format!("{name}-{version}")).join(name)
}

#[test]
fn claude_is_there_in_both_versions() {
    for version in ["2.1.197", "2.1.325"] {
        let output = Command::new(program("claude", version)).arg("--version").output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said, format!("{version} (Claude Code)\n"));
    }
}
