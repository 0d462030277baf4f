//! Snapshots shorten reading and nothing else.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_event::Envelope;
use atomic_session::{Disk, MemoryDisk};
use serde_json::{Value, json};

use crate::support::{DIR, JOURNAL, at, create, memory, noted, open};

fn checkpoints() -> PathBuf {
    Path::new(DIR).join("checkpoints")
}

fn names(disk: &Arc<dyn Disk>) -> Vec<PathBuf> {
    let names = disk.list(&checkpoints()).unwrap();
    names.into_iter().map(|name| checkpoints().join(name)).collect()
}

/// A session of 31 facts with a snapshot after each ten; the state is how many there were.
fn with_snapshots() -> (MemoryDisk, Arc<dyn Disk>) {
    let (double, disk) = memory();
    let mut session = create(&disk, DIR);
    for _ in 0..3 {
        session.append(vec![noted("x"); 10], at()).unwrap();
        session.write_snapshot(&json!({ "known": session.seq() })).unwrap();
    }
    (double, disk)
}

/// What is known after opening: what the snapshot knew, and the facts after it.
fn known(disk: &Arc<dyn Disk>) -> (Option<u64>, u64) {
    let (session, opened) = open(disk, DIR).unwrap();
    let from = opened.snapshot.map(|snapshot| snapshot["known"].as_u64().unwrap());
    let seqs: Vec<u64> = opened.facts.iter().map(|fact| fact.seq).collect();
    let expected: Vec<u64> = (from.unwrap_or(0) + 1..=session.seq()).collect();
    assert_eq!(seqs, expected, "every fact after the snapshot, once");
    assert_eq!(opened.first.seq, 1);
    let all: Result<Vec<Envelope>, _> = session.facts().unwrap().collect();
    assert_eq!(all.unwrap().len() as u64, session.seq());
    (from, from.unwrap_or(0) + seqs.len() as u64)
}

#[test]
fn the_newest_two_are_kept_and_the_newest_is_used() {
    let (_, disk) = with_snapshots();
    let kept = [
        checkpoints().join(format!("{:020}.json", 21)),
        checkpoints().join(format!("{:020}.json", 31)),
    ];
    assert_eq!(names(&disk), kept);
    assert_eq!(known(&disk), (Some(31), 31));
}

#[test]
fn broken_and_missing_snapshots_lead_to_the_same() {
    type Break = fn(&Value, &[u8]) -> Vec<u8>;
    let table: &[(&str, Break)] = &[
        ("cut off", |_, bytes| bytes[..bytes.len() / 2].to_vec()),
        ("empty", |_, _| Vec::new()),
        ("changed", |_, bytes| String::from_utf8_lossy(bytes).replace("known", "knawn").into()),
        ("other version", |_, b| {
            String::from_utf8_lossy(b).replace("version\":1", "version\":2").into()
        }),
        ("other offset", |v, b| {
            let offset = v["offset"].as_u64().unwrap();
            let (old, new) = (format!("\"offset\":{offset}"), format!("\"offset\":{}", offset + 1));
            String::from_utf8_lossy(b).replace(&old, &new).into()
        }),
        ("other history", |v, b| {
            let journal = v["journal"].as_str().unwrap();
            String::from_utf8_lossy(b).replace(journal, "00000000").into()
        }),
    ];
    for (what, damage) in table {
        let (_, disk) = with_snapshots();
        for (after, expected) in [(1, Some(21)), (0, None)] {
            let path = &names(&disk)[after];
            let bytes = disk.read(path, u64::MAX).unwrap();
            let value: Value = serde_json::from_slice(&bytes).unwrap();
            let damaged = damage(&value, &bytes);
            assert_ne!(damaged, bytes, "{what}");
            disk.replace(path, &damaged).unwrap();
            assert_eq!(known(&disk), (expected, 31), "{what}");
        }
    }
    let (_, disk) = with_snapshots();
    for (left, expected) in [(1, Some(21)), (0, None)] {
        disk.remove(&names(&disk)[left]).unwrap();
        assert_eq!(known(&disk), (expected, 31));
    }
}

#[test]
fn a_snapshot_beyond_the_journal_is_not_used_and_does_not_push_out_good_ones() {
    let (_, disk) = with_snapshots();
    let bytes = disk.read(Path::new(JOURNAL), u64::MAX).unwrap();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    disk.replace(Path::new(JOURNAL), &lines[..25].concat()).unwrap();
    assert_eq!(known(&disk), (Some(21), 25));
    let (mut session, _) = open(&disk, DIR).unwrap();
    session.append(vec![noted("y"); 6], at()).unwrap();
    // The old one is of the same fact and place, but of another history.
    drop(session);
    assert_eq!(known(&disk), (Some(21), 31));
    let (mut session, _) = open(&disk, DIR).unwrap();
    session.append(vec![noted("y")], at()).unwrap();
    session.write_snapshot(&json!({ "known": 32 })).unwrap();
    drop(session);
    assert_eq!(names(&disk).len(), 2);
    assert_eq!(known(&disk), (Some(32), 32));
    disk.remove(&names(&disk)[1]).unwrap();
    assert_eq!(known(&disk), (Some(21), 32));
}

#[test]
fn a_changed_byte_before_the_snapshot_is_found() {
    let (_, disk) = with_snapshots();
    let mut bytes = disk.read(Path::new(JOURNAL), u64::MAX).unwrap();
    bytes[300] ^= 1;
    disk.replace(Path::new(JOURNAL), &bytes).unwrap();
    assert!(open(&disk, DIR).is_err());
}

/// All snapshots together stay in proportion to the journal, whatever the size of the state.
#[test]
fn snapshots_cost_in_proportion_to_the_journal() {
    for state in [100, 10_000, 300_000] {
        let (double, disk) = memory();
        let mut session = create(&disk, DIR);
        let known = json!({ "state": "x".repeat(state) });
        let text = "x".repeat(400);
        let (mut snapshots, mut in_snapshots) = (0, 0);
        for _ in 0..10_000 {
            session.append(vec![noted(text.as_str())], at()).unwrap();
            if session.snapshot_due() {
                let before = double.bytes_written();
                session.write_snapshot(&known).unwrap();
                in_snapshots += double.bytes_written() - before;
                snapshots += 1;
            }
        }
        let journal = disk.read(Path::new(JOURNAL), u64::MAX).unwrap().len() as u64;
        let most = journal / 2 + 2 * state as u64;
        assert!(in_snapshots <= most, "{in_snapshots} bytes of snapshots for {journal}");
        assert!(snapshots >= 5, "{snapshots} snapshots of {state} bytes");
        drop(session);
        let (_, opened) = open(&disk, DIR).unwrap();
        let longest = (64 * 1024).max(3 * state as u64) / 400;
        assert!(opened.snapshot.is_some() && (opened.facts.len() as u64) < longest);
    }
}
