//! A session made from the beginning of another one: whole or not there, and the other untouched.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use atomic_event::{Event, SessionId};
use atomic_session::{Disk, Fork, MemoryDisk, Session, SessionError, SessionSummary};
use serde_json::json;

use crate::support::{DIR, at, create, created, memory, noted, open, texts};

const NEW: &str = "/project/.atomic/sessions/two";
const SESSIONS: &str = "/project/.atomic/sessions";

/// Too long for a line, and different each time.
fn long(letter: &str) -> String {
    letter.repeat(20_000)
}

/// Too long itself, even without the long text in it.
fn list() -> serde_json::Value {
    json!([long("b"), "x".repeat(10_000), "y".repeat(10_000)])
}

/// A session with small and big facts.
fn told(disk: &Arc<dyn Disk>) -> Session {
    let mut session = create(disk, DIR);
    session.append(vec![noted("one"), noted(long("a"))], at()).unwrap();
    let patch = [("list".into(), list())].into();
    let patched = Event::StatePatched { patch, reason: "a test".to_owned() };
    session.append(vec![patched, noted("four"), noted(long("d"))], at()).unwrap();
    session
}

fn summary() -> SessionSummary {
    serde_json::from_value(json!({
        "sessionId": "two", "workflow": "ralph", "prompt": "", "originalPrompt": "",
        "status": "paused", "createdAt": at(), "lastUpdated": at(), "iteration": 0,
        "backend": "script", "model": null, "tasks": {"done": 0, "total": 0}, "costUsd": null,
    }))
    .unwrap()
}

fn plan(seq: u64) -> Fork {
    let Event::SessionCreated(mut first) = created() else { panic!("not the first fact") };
    first.session = SessionId::from("two");
    first.origin.forked_from = Some(SessionId::from("0b7c"));
    Fork {
        from: DIR.into(),
        seq,
        dir: NEW.into(),
        first: Event::SessionCreated(first),
        then: vec![noted("forked"), noted(long("e"))],
        summary: summary(),
    }
}

fn fork(disk: &Arc<dyn Disk>, seq: u64) -> Result<(), SessionError> {
    Session::fork(disk, plan(seq), "a test", at()).map(drop)
}

/// Every file below a folder, with its content.
fn content(disk: &dyn Disk, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for name in disk.list(Path::new(folder)).unwrap() {
        let path = format!("{folder}/{name}");
        match disk.read(Path::new(&path), u64::MAX) {
            Ok(bytes) => drop(files.insert(path, bytes)),
            Err(_) => files.extend(content(disk, &path)),
        }
    }
    files
}

#[test]
fn it_has_the_beginning_of_the_other_and_then_its_own() {
    let (_, disk) = memory();
    // Held all the time, with a line that is only half there.
    let session = told(&disk);
    disk.log(Path::new(DIR).join("journal.jsonl").as_path(), b"{\"seq\":7,\"to").unwrap();
    let before = content(disk.as_ref(), DIR);
    let facts = Session::fork(&disk, plan(5), "a test", at()).unwrap();
    assert_eq!(facts.iter().map(|fact| fact.seq).collect::<Vec<_>>(), [1, 6, 7]);
    assert_eq!(content(disk.as_ref(), DIR), before, "the other one is as it was");
    drop(session);

    assert_eq!(texts(&disk, NEW), ["one", &long("a"), "four", "forked", &long("e")]);
    let (_, opened) = open(&disk, NEW).unwrap();
    let Event::SessionCreated(first) = opened.first.event else { panic!("not the first fact") };
    assert_eq!((first.session.as_str(), first.origin.forked_from), ("two", Some("0b7c".into())));
    let Event::StatePatched { patch, .. } = &opened.facts[3].event else { panic!("no patch") };
    assert_eq!(patch["list"], list());

    let lines = |dir: &str| {
        let bytes = disk.read(&Path::new(dir).join("journal.jsonl"), u64::MAX).unwrap();
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(NEW)[1..5], lines(DIR)[1..5], "taken over as they are");
    assert_eq!(SessionSummary::read(disk.as_ref(), Path::new(NEW)).unwrap(), summary());
    let kept = |dir: &str| disk.list(&Path::new(dir).join("blobs")).unwrap();
    // What only later facts refer to stays where it is.
    assert!(kept(DIR).iter().filter(|blob| !kept(NEW).contains(blob)).count() == 1);
    assert_eq!(disk.list(&Path::new(NEW).join("checkpoints")).unwrap(), [""; 0]);
    assert_eq!(disk.list(Path::new(SESSIONS)).unwrap(), [".gitignore", "one", "two"]);
}

#[test]
fn what_cannot_be_taken_over_is_refused_and_leaves_nothing() {
    let (_, disk) = memory();
    drop(told(&disk));
    let names = disk.list(Path::new(SESSIONS)).unwrap();
    let error = fork(&disk, 9).unwrap_err();
    assert!(error.to_string().contains("it has 6 facts"), "{error}");
    assert_eq!(disk.list(Path::new(SESSIONS)).unwrap(), names);

    let blobs = Path::new(DIR).join("blobs");
    for name in disk.list(&blobs).unwrap() {
        let good = disk.read(&blobs.join(&name), u64::MAX).unwrap();
        for (bad, says) in [(None, "is missing"), (Some(b"\"x\"".as_slice()), "was changed")] {
            match bad {
                None => disk.remove(&blobs.join(&name)).unwrap(),
                Some(bad) => disk.replace(&blobs.join(&name), bad).unwrap(),
            }
            let error = fork(&disk, 6).unwrap_err();
            assert!(matches!(error, SessionError::Corrupt { .. }), "{error}");
            assert!(error.to_string().contains(says), "{error}");
            assert_eq!(disk.list(Path::new(SESSIONS)).unwrap(), names);
        }
        disk.replace(&blobs.join(&name), &good).unwrap();
    }
    fork(&disk, 6).unwrap();
    let again = fork(&disk, 6).unwrap_err();
    assert!(matches!(again, SessionError::AlreadyExists { .. }), "{again}");
}

/// After anything that can happen: whole, or nothing that anybody would take for a session, and
/// the next one can be made.
fn whole_or_nothing(double: &MemoryDisk, disk: &Arc<dyn Disk>, done: bool, when: &str) -> bool {
    let there = disk.exists(Path::new(NEW)).unwrap();
    assert!(there || !done, "{when} it was said to be there");
    if there {
        let found = texts(disk, NEW);
        assert_eq!(found, ["one", &long("a"), "four", "forked", &long("e")], "{when}");
        SessionSummary::read(disk.as_ref(), Path::new(NEW)).unwrap();
    } else {
        assert!(matches!(open(disk, NEW).unwrap_err(), SessionError::NotFound { .. }), "{when}");
    }
    let three = Fork { dir: Path::new(SESSIONS).join("three"), ..plan(5) };
    Session::fork(disk, three, "a test", at()).unwrap_or_else(|error| panic!("{when}: {error}"));
    let left = disk.list(Path::new(SESSIONS)).unwrap().into_iter();
    let left: Vec<_> = left.filter(|name| name.ends_with(".tmp")).collect();
    assert_eq!(left, [""; 0], "{when} something is left");
    double.crash();
    assert_eq!(texts(disk, Path::new(SESSIONS).join("three")).len(), 5, "{when}");
    there
}

#[test]
fn a_power_cut_or_a_kill_anywhere_leaves_a_whole_session_or_none() {
    let (mut whole, mut none) = (0, 0);
    for operations in 0.. {
        let mut done = false;
        for seed in 0..3 {
            let (double, disk) = memory();
            drop(told(&disk));
            let before = content(disk.as_ref(), DIR);
            double.cut_power_after(operations);
            done = fork(&disk, 5).is_ok();
            match seed {
                0 => double.crash(),
                1 => double.kill(),
                seed => double.crash_keeping_some(seed),
            }
            assert_eq!(content(disk.as_ref(), DIR), before, "the other one is as it was");
            let when = format!("after {operations} operations, seed {seed}");
            match whole_or_nothing(&double, &disk, done, &when) {
                true => whole += 1,
                false => none += 1,
            }
        }
        if done {
            assert!(operations > 40, "it takes many operations, not {operations}");
            assert!(whole > 3 && none > 100, "{whole} whole, {none} not there");
            return;
        }
    }
}

#[test]
fn a_full_disk_leaves_nothing() {
    for room in (0..60_000).step_by(3_000) {
        let (double, disk) = memory();
        drop(told(&disk));
        let names = disk.list(Path::new(SESSIONS)).unwrap();
        double.fail_after_bytes(room);
        let error = fork(&disk, 5).unwrap_err();
        assert!(matches!(error, SessionError::NoSpace { .. }), "{error}");
        assert_eq!(disk.list(Path::new(SESSIONS)).unwrap(), names);
        double.make_room();
        fork(&disk, 5).unwrap();
    }
}

/// Two at once do not take each other's work for a left-over.
#[test]
fn what_somebody_is_still_making_is_left_alone() {
    let (double, disk) = memory();
    drop(told(&disk));
    let hidden = Path::new(SESSIONS).join(".fork-other.tmp");
    disk.create_dir(&hidden).unwrap();
    let lock = disk.lock(&Path::new(SESSIONS).join(".fork-other.lock"), "somebody").unwrap();
    fork(&disk, 5).unwrap();
    assert!(disk.exists(&hidden).unwrap());
    drop(lock);
    double.kill();
    let three = Fork { dir: Path::new(SESSIONS).join("three"), ..plan(5) };
    Session::fork(&disk, three, "a test", at()).unwrap();
    assert_eq!(disk.list(Path::new(SESSIONS)).unwrap(), [".gitignore", "one", "three", "two"]);
}
