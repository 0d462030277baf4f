//! A session's folder in which something was replaced before a resume: refused with the name and
//! the reason, nothing changed, and nothing lost.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::Path;

use serde_json::json;

use crate::engine::Project;
use crate::process::Running;
use crate::strange_files::fifo;

/// What a file of a session is replaced by.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Strange {
    /// A link to a copy outside.
    Link,
    /// A second hard link, outside.
    HardLink,
    Fifo,
}

/// Every file and folder of a session that Atomic reads or writes.
const PLACES: &[(&str, &[Strange])] = {
    use Strange::{Fifo, HardLink, Link};
    &[
        ("journal.jsonl", &[Link, HardLink, Fifo]),
        ("lock", &[Link, HardLink, Fifo]),
        ("progress.txt", &[Link, HardLink, Fifo]),
        ("session.json", &[Link, Fifo]),
        ("tasks.json", &[Link, Fifo]),
        (".tasks.sha256", &[Link, Fifo]),
        ("logs", &[Link, Fifo]),
        ("logs/errors.log", &[Link, HardLink, Fifo]),
        ("logs/agent-calls.jsonl", &[Link]),
        ("checkpoints", &[Link]),
        ("checkpoints/00000000000000000001.json", &[Link, Fifo]),
        ("blobs", &[Link]),
        ("blobs/0000", &[Link, Fifo]),
        ("inbox", &[Link]),
        ("inbox/000001-x.json", &[Link, Fifo]),
        ("research", &[Link]),
        ("", &[Link]),
    ]
};

/// Names, types and texts of everything below a folder.
fn picture(folder: &Path) -> Vec<String> {
    let mut found = vec![];
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            let text = if kind.is_file() { fs::read(&path).unwrap() } else { vec![] };
            let text = String::from_utf8_lossy(&text).into_owned();
            found.push(format!("{} {} {text}", path.display(), kind.is_fifo()));
            if kind.is_dir() {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_session_with_something_strange_in_it_is_refused_and_kept() {
    let project = Project::new();
    let flow = json!({"nodes": [
        {"type": "askUser", "id": "ask", "question": "Go on?"},
        {"type": "tool", "id": "a", "command": "echo on > went.txt"}]});
    project.ends(&flow, 3);
    let session = project.session();
    let saved = project.env.outside("saved");
    let copied = project.env.outside("copied");
    for (name, all) in PLACES {
        for strange in *all {
            let place = if name.is_empty() { session.clone() } else { session.join(name) };
            let was_there = place.exists();
            if was_there {
                fs::rename(&place, &saved).unwrap();
            } else {
                fs::write(&saved, "").unwrap();
            }
            let copy = std::process::Command::new("cp").arg("-r").args([&saved, &copied]).status();
            assert!(copy.unwrap().success());
            match strange {
                Strange::Link => symlink(&copied, &place).unwrap(),
                Strange::HardLink => fs::hard_link(&copied, &place).unwrap(),
                Strange::Fifo => fifo(&place),
            }
            let around = |name: &str| picture(&project.env.outside(name));
            let before = (around("work"), around("home"), fs::read(&copied).ok());
            let ran = Running::start(project.env.atomic(["resume", "last"])).end();
            let case = format!("{name}: {strange:?}: {ran:?}");
            assert_eq!(ran.code, Some(1), "{case}");
            let says = match strange {
                Strange::HardLink => "has more than one hard link",
                Strange::Fifo if *name == "logs" => "is a FIFO, not a folder",
                Strange::Fifo => "is a FIFO, not a regular file",
                Strange::Link => "is a symbolic link",
            };
            assert!(ran.stderr.contains(says), "{case}");
            assert!(ran.stderr.contains(&place.display().to_string()), "{case}");
            // Others look at it without blocking, too.
            if *strange == Strange::Fifo {
                let listed = Running::start(project.env.atomic(["sessions"])).end();
                assert_eq!(listed.code, Some(0), "{case}: {listed:?}");
            }
            let after = (around("work"), around("home"), fs::read(&copied).ok());
            assert_eq!(after, before, "{case}");
            fs::remove_file(&place).unwrap();
            if was_there {
                fs::rename(&saved, &place).unwrap();
            } else {
                fs::remove_file(&saved).unwrap();
            }
            let gone = std::process::Command::new("rm").arg("-r").arg(&copied).status();
            assert!(gone.unwrap().success());
        }
    }
    // The hint about a hard link can be pasted.
    let journal = session.join("journal.jsonl");
    fs::hard_link(&journal, &saved).unwrap();
    let refused = project.resume(&[]);
    let hint = refused.stderr.split("give it one name: ").nth(1).unwrap().to_owned();
    assert!(std::process::Command::new("sh").args(["-c", &hint]).status().unwrap().success());
    assert_eq!(project.env.run(["answer", "last", "yes"]).code, Some(0));
    assert_eq!(project.resume(&[]).code, Some(0));
    assert_eq!(project.read("went.txt"), "on\n");
}

#[test]
fn an_answer_is_not_left_behind_a_link() {
    let project = Project::new();
    project.ends(&json!({"nodes": [{"type": "askUser", "id": "ask", "question": "Go on?"}]}), 3);
    let inbox = project.session().join("inbox");
    fs::remove_dir_all(&inbox).unwrap();
    let elsewhere = project.env.outside("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &inbox).unwrap();
    let ran = project.env.run(["answer", "last", "yes"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("inbox: is a symbolic link"), "{ran:?}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

/// A command that may use 500 MB of memory.
fn within_memory(project: &Project, args: &[&str]) -> crate::env::Ran {
    let atomic = project.env.atomic(args);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -v 500000; exec \"$0\" \"$@\""]).arg(atomic.get_program());
    command.args(atomic.get_args()).current_dir(project.env.work()).env_clear();
    command.envs(atomic.get_envs().filter_map(|(name, value)| Some((name, value?))));
    crate::env::ran(command)
}

/// A file with 1 GB and a few blocks: an archive or a repository can hold it.
fn grow(path: &Path) {
    let file = fs::File::options().append(true).create(true).open(path).unwrap();
    file.set_len(1 << 30).unwrap();
}

#[test]
fn a_file_of_a_session_that_is_too_large_is_named_and_not_read() {
    let project = Project::new();
    let flow = json!({"nodes": [
        {"type": "askUser", "id": "ask", "question": "Go on?"},
        {"type": "tool", "id": "a", "command": "true"}]});
    project.ends(&flow, 3);
    let session = project.session();
    let id = session.file_name().unwrap().to_str().unwrap();
    // The control: a program that reads such a file as a whole does not get along with 500 MB.
    let whole = "ulimit -v 500000; exec perl -e 'local $/; open F, $ARGV[0]; $_ = <F>' \"$0\"";
    let control = project.env.outside("control");
    grow(&control);
    let read = std::process::Command::new("sh").args(["-c", whole]).arg(control).output();
    assert!(!read.unwrap().status.success(), "the file is not too large");
    let table = [
        ("session.json", "", "session.json: is larger than 64 MB"),
        ("tasks.json", "tasks.json: is larger than 10 MB", "tasks.json: is larger than 10 MB"),
        (".tasks.sha256", "", ".tasks.sha256: is larger than 1 MB"),
        ("progress.txt", "", "progress.txt: is larger than 32 MB"),
        ("checkpoints/00000000000000000001.json", "", ""),
        ("journal.jsonl", "a line is longer than 64 MB", "a line is longer than 64 MB"),
    ];
    for (name, shown, refused) in table {
        let path = session.join(name);
        let before = fs::read(&path).ok();
        grow(&path);
        let listed = within_memory(&project, &["sessions"]);
        assert_eq!(listed.code, Some(0), "{name}: {listed:?}");
        assert!(listed.stdout.contains(id), "{name}: {listed:?}");
        let show = within_memory(&project, &["sessions", "show", id]);
        assert_eq!(show.code, Some(i32::from(name == "journal.jsonl")), "{name}: {show:?}");
        assert!(format!("{}{}", show.stdout, show.stderr).contains(shown), "{name}: {show:?}");
        let resume = within_memory(&project, &["resume", id]);
        // Without a snapshot the journal is read, and the question is still open.
        let code = if refused.is_empty() { 3 } else { 1 };
        assert_eq!(resume.code, Some(code), "{name}: {resume:?}");
        assert!(resume.stderr.contains(refused), "{name}: {resume:?}");
        match before {
            Some(before) => fs::write(&path, before).unwrap(),
            None => drop(fs::remove_file(&path)),
        }
    }
    assert_eq!(project.env.run(["answer", "last", "yes"]).code, Some(0));
    assert_eq!(project.resume(&[]).code, Some(0));
}
