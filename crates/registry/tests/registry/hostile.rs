//! Files and folders that nobody would write on purpose: told of, left out, and never the end.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use proptest::prelude::*;

use crate::tree::Tree;

#[test]
fn whatever_is_there_is_told_and_left_out() {
    let tree = Tree::of(&[
        ("project/.claude/agents/away.md", "---\nname: ../../x\n---\nx\n"),
        ("project/.claude/agents/note.txt", "x"),
        ("project/.claude/agents/README.md", "# About this folder\n"),
        ("project/.claude/agents/broken.md", "---\n: [\n---\nx\n"),
        ("project/.claude/agents/good.md", "---\ndescription: Good\n---\nx\n"),
        ("project/.claude/skills/empty/notes.md", "x"),
        ("project/.claude/skills/loose.md", "x"),
        ("project/opencode.json", "{\"agent\": [1, }"),
    ]);
    let agents = tree.path("project/.claude/agents");
    symlink(&agents, agents.join("round")).unwrap();
    symlink(agents.join("self.md"), agents.join("self.md")).unwrap();
    let fifo = agents.join("pipe.md");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    fs::write(agents.join("wide.md"), [0xff, 0xfe, 0x41, 0x00]).unwrap();
    fs::write(agents.join("latin.md"), b"---\ndescription: caf\xe9\n---\nx\n").unwrap();
    let large = fs::File::create(agents.join("large.md")).unwrap();
    large.set_len(100 * 1024 * 1024).unwrap();
    insta::assert_snapshot!(tree.listing());
}

/// Permissions keep nobody out who may read everything, so it is a file that stands there.
#[test]
fn a_folder_that_cannot_be_read_is_told() {
    let tree = Tree::of(&[
        ("project/.claude/agents", "x"),
        ("project/.opencode/agents/a.md", "---\ndescription: Good\n---\nx\n"),
    ]);
    let listing = tree.listing();
    let told = "project/.claude/agents: left out: the folder cannot be read: Not a directory";
    assert!(listing.contains(told), "{listing}");
    assert!(listing.starts_with("agent a "), "the others are read: {listing}");
}

proptest! {
    #[test]
    fn no_bytes_are_too_much(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let text = String::from_utf8_lossy(&bytes);
        let _ = atomic_registry::frontmatter::read(&text);
        let _ = atomic_registry::frontmatter::read(&format!("---\n{text}\n---\n"));
    }

    #[test]
    fn no_head_is_too_much(head in "([a-z\\-]{0,6}[:,\\[\\]{}&*!|>'\"#%@` \t\n-]{0,4}){0,30}") {
        let _ = atomic_registry::frontmatter::read(&format!("---\n{head}\n---\nbody"));
        let _ = atomic_registry::frontmatter::read(&format!("---\n{head}"));
    }
}

#[test]
fn deep_heads_end() {
    for open in ["[", "{a: ", "- ", "a:\n "] {
        let head = open.repeat(50_000);
        let _ = atomic_registry::frontmatter::read(&format!("---\nx: {head}\n---\n"));
        let _ = atomic_registry::frontmatter::read(&format!("---\n{head}\n---\n"));
    }
}
