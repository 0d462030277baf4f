//! Files and folders that nobody would write on purpose: told of, left out, and never the end.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use atomic_registry::{Kind, Registry};

use crate::tree::Tree;

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// 100 MB that take no place.
fn large(path: &Path) {
    fs::File::create(path).unwrap().set_len(100 * 1024 * 1024).unwrap();
}

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
    pipe(&agents.join("pipe.md"));
    fs::write(agents.join("wide.md"), [0xff, 0xfe, 0x41, 0x00]).unwrap();
    fs::write(agents.join("latin.md"), b"---\ndescription: caf\xe9\n---\nx\n").unwrap();
    large(&agents.join("large.md"));
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

/// A provider's folder that is a file, a pipe, or a link in a circle or to nothing: told once, and
/// what is beside it is read.
#[test]
fn a_folder_of_a_provider_that_cannot_be_entered_is_told_once() {
    let tree = Tree::of(&[
        ("project/.opencode", "x"),
        ("project/.atomic/agents/a.md", "---\ndescription: Good\n---\nx\n"),
        ("home/.config", "x"),
    ]);
    symlink(".claude", tree.path("project/.claude")).unwrap();
    symlink("nowhere", tree.path("project/.github")).unwrap();
    pipe(&tree.path("home/.claude"));
    insta::assert_snapshot!(tree.listing());
}

/// Pipes, sockets, devices and links that lead nowhere, in place of files, folders and settings.
#[test]
fn what_is_no_file_is_told_and_never_opened() {
    let tree = Tree::of(&[
        ("project/.claude/skills/pipe/notes.md", "x"),
        ("project/.claude/skills/good/SKILL.md", "---\ndescription: Good\n---\nx\n"),
        ("project/.opencode/x", "x"),
        ("home/.config/opencode/x", "x"),
        ("home/.opencode/opencode.json/x", "x"),
        (
            "project/opencode.jsonc",
            r#"{"command": {
                "zero": {"template": "{file:/dev/zero}"},
                "pipe": {"template": "{file:./opencode.json}"},
                "good": {"template": "x"}
            }}"#,
        ),
    ]);
    let skills = tree.path("project/.claude/skills");
    pipe(&skills.join("pipe/SKILL.md"));
    let _socket = UnixListener::bind(skills.join("socket")).unwrap();
    symlink("/dev/zero", skills.join("device.md")).unwrap();
    symlink("nowhere", skills.join("lost")).unwrap();
    symlink("..", skills.join("good/up")).unwrap();
    symlink(&skills, skills.join("round")).unwrap();
    symlink("nowhere", tree.path("project/.claude/agents")).unwrap();
    symlink("commands", tree.path("project/.claude/commands")).unwrap();
    pipe(&tree.path("project/.opencode/agents"));
    pipe(&tree.path("project/opencode.json"));
    large(&tree.path("project/.opencode/opencode.json"));
    symlink("/dev/zero", tree.path("home/.config/opencode/opencode.json")).unwrap();
    symlink("nowhere", tree.path("home/.opencode/opencode.jsonc")).unwrap();
    insta::assert_snapshot!(tree.listing());
}

/// A file is read again when its prompt is needed; it may have become something else by then.
#[test]
fn a_file_that_became_a_pipe_is_told() {
    let tree = Tree::of(&[("project/.claude/agents/a.md", "---\ndescription: A\n---\nx\n")]);
    let registry = tree.registry();
    let path = tree.path("project/.claude/agents/a.md");
    fs::remove_file(&path).unwrap();
    pipe(&path);
    // Whoever opens it all the same reads nothing, instead of waiting for ever.
    let writer = Command::new("sh").args(["-c", ": > \"$0\""]).arg(&path).spawn();
    let told = registry.prompt(registry.find(Kind::Agent, "a").unwrap()).unwrap_err();
    let mut writer = writer.unwrap();
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert_eq!((told.path, told.message.as_str()), (path, "is a FIFO, not a regular file"));
}

/// File names that are no text, and that would break a line.
#[test]
fn names_of_files_are_anything() {
    let tree = Tree::of(&[("project/.claude/agents/a\nb.md", "x")]);
    tree.write("project/.claude/agents/!.md", "x");
    let name = OsStr::from_bytes(b"caf\xe9.md");
    fs::write(tree.path("project/.claude/agents").join(name), "x").unwrap();
    insta::assert_snapshot!(tree.listing());
}

/// Neither what it calls itself nor what its file is called can be typed.
#[test]
fn a_file_that_cannot_be_called_anything_is_told_to_be_left_out() {
    let tree = Tree::of(&[("project/.claude/agents/!.md", "---\nname: '???'\n---\nx\n")]);
    assert_eq!(
        tree.listing(),
        "project/.claude/agents/!.md:2: left out: \"???\" is no name, and neither is \"!\"\n  \
         help: choose another `name`"
    );
}

#[test]
fn a_switch_that_is_neither_on_nor_off_is_told() {
    let head = "---\ndescription: A\nhidden: perhaps\ndisable: 1\n---\nx\n";
    let tree = Tree::of(&[("project/.claude/agents/a.md", head)]);
    assert_eq!(
        tree.listing(),
        "agent a [] A tools=all model=- (project claude, project/.claude/agents/a.md)\n\
         project/.claude/agents/a.md:4: `disable: 1` is neither true nor false and counts as \
         false\n  help: write true or false\n\
         project/.claude/agents/a.md:3: `hidden: \"perhaps\"` is neither true nor false and counts \
         as false\n  help: write true or false"
    );
}

/// A link into the system's own files must not be read to its end.
#[test]
fn a_folder_with_too_much_in_it_is_told_once() {
    let tree = Tree::of(&[("project/.claude/agents/a.md", "---\ndescription: A\n---\nx\n")]);
    for number in 0..100 {
        tree.write(&format!("project/.claude/commands/{}/{number}.bin", number / 10), "x");
    }
    let registry = Registry::read_at_most(&tree.folders(), 40);
    assert!(registry.find(Kind::Agent, "a").is_some(), "the others are read");
    let commands = tree.path("project/.claude/commands");
    let of_folder = |path: &Path| path == commands;
    let told: Vec<_> = registry.findings.iter().filter(|f| of_folder(&f.path)).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        told[0].message,
        "there are more than 40 files and folders in it: the rest is left out"
    );
    assert!(registry.findings.len() < 20, "{} findings", registry.findings.len());
    let all = Registry::read_at_most(&tree.folders(), 111);
    assert_eq!(all.findings.len(), 100, "everything fits");
}
