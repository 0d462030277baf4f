//! The real agent programs, from the folder that `cargo xtask agents` prints.

mod acp;
mod claude;
mod claude_chaos;
mod claude_errors;
mod claude_life;
mod claude_waits;
mod claude_words;
mod copilot;
mod copilot_chaos;
mod copilot_guards;
mod copilot_isolation;
mod copilot_many;
mod copilot_order;
mod copilot_shells;
mod copilot_stand;
mod copilot_waits;
mod opencode;
mod opencode_chaos;
mod opencode_guards;
mod opencode_isolation;
mod opencode_resync;
mod opencode_stand;
mod opencode_waits;
mod scripts;
mod serving_chaos;
mod serving_stand;
mod stand;

use std::process::Command;

use atomic_testing::agents::{CLAUDE, OLDER_CLAUDE, program};

#[test]
fn claude_is_there_in_both_versions() {
    for version in [OLDER_CLAUDE, CLAUDE] {
        let output = Command::new(program("claude", version)).arg("--version").output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said, format!("{version} (Claude Code)\n"));
    }
}
