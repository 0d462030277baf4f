//! The journal: order, checksums, and what is mended and what is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_event::{Envelope, Event, FORMAT};
use atomic_session::{Disk, RealDisk, Session, SessionError};
use serde_json::{Value, json};

use crate::support::{
    DIR, JOURNAL, at, create, created, created_with, memory, noted, open, texts, texts_of,
};

/// A journal of four facts on a real disk, as bytes, and a way to open any other bytes.
struct Bench {
    folder: tempfile::TempDir,
    disk: Arc<dyn Disk>,
    bytes: Vec<u8>,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::default());
        let dir = folder.path().join("sessions/one");
        let mut session = create(&disk, &dir);
        session.append(vec![noted("one"), noted("two words")], at()).unwrap();
        session.append(vec![noted("three")], at()).unwrap();
        let bytes = fs::read(dir.join("journal.jsonl")).unwrap();
        Self { folder, disk, bytes }
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("sessions/one")
    }

    fn journal(&self) -> Vec<u8> {
        fs::read(self.dir().join("journal.jsonl")).unwrap()
    }

    fn open_with(&self, bytes: &[u8]) -> Result<(Vec<String>, Option<u64>), SessionError> {
        fs::write(self.dir().join("journal.jsonl"), bytes).unwrap();
        let (_, opened) = open(&self.disk, self.dir())?;
        Ok((texts_of(&opened.facts), opened.repaired.map(|torn| torn.bytes)))
    }

    /// Where the lines begin.
    fn starts(&self) -> Vec<usize> {
        let ends = self.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        [0].into_iter().chain(ends.map(|(at, _)| at + 1)).collect()
    }
}

#[test]
fn a_line_begins_with_its_number_and_ends_with_its_checksum() {
    let bench = Bench::new();
    let text = std::str::from_utf8(&bench.bytes).unwrap();
    let line = text.lines().nth(1).unwrap();
    let body = r#"{"seq":2,"at":"2026-11-15T10:00:00Z","type":"noted","text":"one""#;
    assert_eq!(line, format!("{body},\"crc\":\"{:08x}\"}}", crc32fast::hash(body.as_bytes())));
    assert_eq!(text.lines().count(), 4);
}

#[test]
fn a_journal_cut_anywhere_in_its_last_line_is_repaired() {
    let bench = Bench::new();
    let last = bench.starts()[3];
    for cut in last + 1..bench.bytes.len() {
        let (found, repaired) = bench.open_with(&bench.bytes[..cut]).unwrap();
        if cut == bench.bytes.len() - 1 {
            // Only the line end is missing, so nothing is lost.
            assert_eq!((found.len(), repaired), (3, Some(0)));
            assert_eq!(bench.journal(), bench.bytes);
            continue;
        }
        assert_eq!(found, ["one", "two words"], "cut at {cut}");
        assert_eq!(repaired, Some((cut - last) as u64));
        assert_eq!(bench.journal(), bench.bytes[..last], "the rest is as it was");
        let name = match cut - last {
            1 => format!("logs/torn-{last}.bin"),
            n => format!("logs/torn-{last}-{n}.bin"),
        };
        assert_eq!(fs::read(bench.dir().join(name)).unwrap(), bench.bytes[last..cut]);
    }
}

#[test]
fn a_repaired_session_goes_on() {
    let bench = Bench::new();
    let (mut session, _) = {
        fs::write(bench.dir().join("journal.jsonl"), &bench.bytes[..bench.bytes.len() - 9])
            .unwrap();
        open(&bench.disk, bench.dir()).unwrap()
    };
    let facts = session.append(vec![noted("instead")], at()).unwrap();
    assert_eq!(facts[0].seq, 4);
    drop(session);
    assert_eq!(texts(&bench.disk, bench.dir()), ["one", "two words", "instead"]);
}

#[test]
fn a_last_line_with_unfilled_blocks_is_repaired() {
    let bench = Bench::new();
    let last = bench.starts()[3];
    let good = &bench.bytes[..last];
    let tails: &[&[u8]] = &[b"\0\0\0\0", b"{\"seq\":4,\0\0\0", b"{\"seq\":4\0\0\"}\n", b"\0\n"];
    for tail in tails {
        let (found, repaired) = bench.open_with(&[good, tail].concat()).unwrap();
        assert_eq!((found.len(), repaired), (2, Some(tail.len() as u64)), "{tail:?}");
        assert_eq!(bench.journal(), good);
    }
    // Not at the very end: no crash leaves this.
    let error = bench.open_with(&[good, b"\0\0\n", &bench.bytes[last..]].concat()).unwrap_err();
    assert!(matches!(error, SessionError::Corrupt { offset, .. } if offset == last as u64));
}

#[test]
fn a_changed_byte_anywhere_is_refused_with_its_place_and_nothing_is_touched() {
    let bench = Bench::new();
    let starts = bench.starts();
    for at in 0..bench.bytes.len() {
        for change in [0x01, 0x80] {
            let mut changed = bench.bytes.clone();
            changed[at] ^= change;
            let line = starts.iter().rev().find(|start| **start <= at).copied().unwrap();
            match bench.open_with(&changed) {
                Err(SessionError::Corrupt { offset, path, .. }) => {
                    assert_eq!(offset, line as u64, "byte {at}");
                    assert_eq!(path, bench.dir().join("journal.jsonl"));
                }
                other => panic!("byte {at} changed: {other:?}"),
            }
            assert_eq!(bench.journal(), changed);
            let read = Session::read_only(Arc::clone(&bench.disk), &bench.dir());
            let last = read.and_then(Iterator::collect::<Result<Vec<_>, _>>);
            assert!(matches!(last, Err(SessionError::Corrupt { .. })), "byte {at}: {last:?}");
        }
    }
    assert!(fs::read_dir(bench.dir().join("logs")).unwrap().next().is_none());
}

#[test]
fn a_missing_a_doubled_and_a_swapped_line_are_refused() {
    let bench = Bench::new();
    let lines: Vec<&[u8]> = bench.bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let orders: &[&[usize]] = &[&[0, 2, 3], &[0, 1, 1, 2], &[0, 2, 1, 3], &[0, 1, 3]];
    for order in orders {
        let bytes = order.iter().map(|n| lines[*n]).collect::<Vec<_>>().concat();
        let error = bench.open_with(&bytes).unwrap_err();
        assert!(matches!(error, SessionError::Corrupt { .. }), "{order:?}: {error:?}");
        assert_eq!(bench.journal(), bytes);
    }
}

#[test]
fn foreign_newer_and_unfinished_journals_are_told_apart_and_left_alone() {
    let newer = r#"{"format":2,"type":"session_created","hash":"blake3"}"#;
    let table: &[(&str, &str)] = &[
        ("", "never started"),
        ("{\"se", "never started"),
        ("{\"seq\":1,\"at\":\"20", "never started"),
        ("\0\0\0\0", "never started"),
        ("hello", "foreign"),
        ("hello\nworld\n", "foreign"),
        ("{\"event\":\"start\"}\n", "foreign"),
        ("{\"seq\":1}\n", "corrupt"),
        (&format!("{newer}\n"), "newer"),
    ];
    for (content, expected) in table {
        let (_, disk) = memory();
        disk.create_dir(Path::new(DIR)).unwrap();
        disk.log(Path::new(JOURNAL), content.as_bytes()).unwrap();
        for result in [open(&disk, DIR).map(drop), read_all(&disk).map(drop)] {
            assert_eq!(kind(&result), *expected, "{content:?}");
        }
        assert_eq!(disk.read(Path::new(JOURNAL), u64::MAX).unwrap(), content.as_bytes());
    }
}

#[test]
fn a_folder_that_is_not_ours_is_not_touched() {
    let (_, disk) = memory();
    assert_eq!(kind(&open(&disk, DIR).map(drop)), "not found");
    disk.create_dir(Path::new(DIR)).unwrap();
    assert_eq!(kind(&open(&disk, DIR).map(drop)), "never started");
    disk.replace(&Path::new(DIR).join("session.json"), b"{}").unwrap();
    assert_eq!(kind(&open(&disk, DIR).map(drop)), "foreign");
    assert_eq!(disk.list(Path::new(DIR)).unwrap(), ["session.json"]);
}

#[test]
fn a_newer_format_is_refused() {
    let (_, disk) = memory();
    let newer = created_with(FORMAT + 1);
    drop(Session::create(Arc::clone(&disk), PathBuf::from(DIR), "a test", newer, at()).unwrap());
    let error = open(&disk, DIR).unwrap_err();
    assert!(error.to_string().contains("newer version"), "{error}");
    assert_eq!(kind(&Err::<(), _>(error)), "newer");
}

#[test]
fn a_session_begins_with_its_creation_and_only_once() {
    let (_, disk) = memory();
    let create =
        |first| Session::create(Arc::clone(&disk), PathBuf::from(DIR), "a test", first, at());
    assert!(matches!(create(noted("x")), Err(SessionError::Unrecordable { .. })));
    let (session, first) = create(created()).unwrap();
    assert_eq!((first.seq, session.seq()), (1, 1));
    assert_eq!(kind(&create(created()).map(drop)), "held");
    drop(session);
    assert_eq!(kind(&create(created()).map(drop)), "already exists");
    assert_eq!(open(&disk, DIR).unwrap().1.first, first);
}

#[test]
fn facts_of_types_we_do_not_know_are_kept() {
    let (_, disk) = memory();
    let mut session = create(&disk, DIR);
    let unknown = Event::Unknown(json!({"type": "moon_landed", "crew": [1, 2]}));
    session.append(vec![unknown.clone()], at()).unwrap();
    drop(session);
    assert_eq!(open(&disk, DIR).unwrap().1.facts[1].event, unknown);
}

#[test]
fn a_fact_that_could_not_be_read_back_is_not_written() {
    let (_, disk) = memory();
    let mut session = create(&disk, DIR);
    let nested = |depth: usize| {
        let value = (0..depth).fold(json!(1), |inner, _| json!([inner]));
        Event::StatePatched { patch: [("k".into(), value)].into(), reason: String::new() }
    };
    // The fact and its patch are two levels themselves.
    session.append(vec![nested(125)], at()).unwrap();
    let before = disk.read(Path::new(JOURNAL), u64::MAX).unwrap();
    let error = session.append(vec![noted("x"), nested(126)], at()).unwrap_err();
    assert!(matches!(error, SessionError::Unrecordable { .. }));
    assert_eq!(disk.read(Path::new(JOURNAL), u64::MAX).unwrap(), before);
    session.append(vec![noted("goes on")], at()).unwrap();
    drop(session);
    assert_eq!(open(&disk, DIR).unwrap().1.facts[1].event, nested(125));
}

#[test]
fn numbers_come_back_to_the_last_bit() {
    let (_, disk) = memory();
    let mut session = create(&disk, DIR);
    let value = json!([0.1 + 0.2, 1e-320, 8.988465674311582e307, u64::MAX, i64::MIN, -0.0]);
    let patch = Event::StatePatched { patch: [("k".into(), value)].into(), reason: "".into() };
    session.append(vec![patch.clone()], at()).unwrap();
    drop(session);
    assert_eq!(open(&disk, DIR).unwrap().1.facts[1].event, patch);
}

#[test]
fn reading_takes_no_lock_and_repairs_nothing() {
    let (_, disk) = memory();
    let mut session = create(&disk, DIR);
    session.append(vec![noted("one")], at()).unwrap();
    disk.log(Path::new(JOURNAL), b"{\"seq\":3,\"at").unwrap();
    let before = disk.read(Path::new(JOURNAL), u64::MAX).unwrap();
    assert_eq!(texts_of(&read_all(&disk).unwrap()), ["one"]);
    assert_eq!(disk.read(Path::new(JOURNAL), u64::MAX).unwrap(), before);
}

#[test]
fn a_batch_is_one_write_and_one_sync() {
    let (memory, disk) = memory();
    let mut session = create(&disk, DIR);
    let before = memory.operations();
    session.append((0..50).map(|n| noted(n.to_string())).collect(), at()).unwrap();
    assert_eq!(memory.operations() - before, 2);
    assert!(session.append(Vec::new(), at()).unwrap().is_empty());
    assert_eq!(memory.operations() - before, 2, "nothing to record, nothing to do");
}

fn read_all(disk: &Arc<dyn Disk>) -> Result<Vec<Envelope>, SessionError> {
    Session::read_only(Arc::clone(disk), Path::new(DIR))?.collect()
}

fn kind<T>(result: &Result<T, SessionError>) -> &'static str {
    match result {
        Ok(_) => "good",
        Err(SessionError::NotFound { .. }) => "not found",
        Err(SessionError::NeverStarted { .. }) => "never started",
        Err(SessionError::AlreadyExists { .. }) => "already exists",
        Err(SessionError::Held { .. }) => "held",
        Err(SessionError::Newer { .. }) => "newer",
        Err(SessionError::Foreign { .. }) => "foreign",
        Err(SessionError::Corrupt { .. }) => "corrupt",
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn the_journal_is_one_json_object_a_line() {
    let bench = Bench::new();
    for line in bench.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let value: Value = serde_json::from_slice(line).unwrap();
        assert!(value.is_object());
    }
}
