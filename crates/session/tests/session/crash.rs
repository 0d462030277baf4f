//! Power cuts at every operation, and at random ones.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_session::{Session, SessionError, SessionSummary};
use proptest::prelude::*;

use crate::support::{DIR, JOURNAL, at, create, created, memory, noted, open, texts_of};

#[test]
fn a_power_cut_anywhere_in_create_leaves_a_good_session_or_one_never_started() {
    let mut good = 0;
    for operations in 0.. {
        let mut done = false;
        for seed in 0..10 {
            let (double, disk) = memory();
            double.cut_power_after(operations);
            let made =
                Session::create(Arc::clone(&disk), PathBuf::from(DIR), "a test", created(), at());
            done = made.is_ok();
            match seed {
                0 => double.crash(),
                seed => double.crash_keeping_some(seed),
            }
            match open(&disk, DIR) {
                Ok((_, opened)) => {
                    assert_eq!(opened.facts.len(), 1);
                    good += 1;
                }
                Err(SessionError::NeverStarted { .. } | SessionError::NotFound { .. }) => {
                    assert!(!done, "after {operations} operations it was said to be there");
                }
                Err(other) => panic!("after {operations} operations: {other}"),
            }
            drop(made);
        }
        if done {
            assert!(operations > 20, "create has many operations, not {operations}");
            assert!(good >= 10);
            return;
        }
    }
}

/// Killed anywhere in create, then taken up or made again: what is said to be there then survives
/// a power cut, although the killed process never synced it.
#[test]
fn a_session_made_after_a_kill_in_create_is_durable() {
    for operations in 0.. {
        let (double, disk) = memory();
        double.cut_power_after(operations);
        let done =
            Session::create(Arc::clone(&disk), PathBuf::from(DIR), "", created(), at()).is_ok();
        double.kill();
        if open(&disk, DIR).is_err() {
            let journal = disk.read(Path::new(JOURNAL), u64::MAX).unwrap_or_default();
            assert_eq!(journal, b"", "after {operations} operations");
            create(&disk, DIR);
        }
        double.crash();
        let opened = open(&disk, DIR).map(|(_, opened)| opened.facts.len());
        assert!(matches!(opened, Ok(1)), "after {operations} operations: {opened:?}");
        if done {
            return;
        }
    }
}

#[test]
fn a_power_cut_anywhere_in_open_changes_nothing() {
    for operations in 0.. {
        let (double, disk) = memory();
        let mut session = create(&disk, DIR);
        session.append(vec![noted("one"), noted("two")], at()).unwrap();
        drop(session);
        disk.log(Path::new(JOURNAL), b"{\"seq\":4,\"torn").unwrap();
        double.cut_power_after(operations);
        let done = open(&disk, DIR).is_ok();
        double.crash_keeping_some(operations);
        let (_, opened) = open(&disk, DIR).unwrap();
        assert_eq!(texts_of(&opened.facts), ["one", "two"], "after {operations} operations");
        if done {
            return;
        }
    }
}

/// SIGKILL loses nothing that was written, but what was written may not be durable: whoever opens
/// the session next acts on it, so it must be durable by then.
#[test]
fn what_open_returns_is_durable() {
    let (double, disk) = memory();
    let mut session = create(&disk, DIR);
    let first = disk.read(Path::new(JOURNAL), u64::MAX).unwrap().len();
    session.append(vec![noted("one"), noted("two")], at()).unwrap();
    drop(session);
    let bytes = disk.read(Path::new(JOURNAL), u64::MAX).unwrap();
    for missing in [0, 1] {
        // As a process leaves it that was killed after its write and before its sync.
        disk.replace(Path::new(JOURNAL), &bytes[..first]).unwrap();
        disk.log(Path::new(JOURNAL), &bytes[first..bytes.len() - missing]).unwrap();
        let (_, opened) = open(&disk, DIR).unwrap();
        assert_eq!(texts_of(&opened.facts), ["one", "two"]);
        double.crash();
        assert_eq!(disk.read(Path::new(JOURNAL), u64::MAX).unwrap(), bytes);
    }
}

/// Mostly short texts, some too long for a line.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 0_usize..300, 1 => 15_000_usize..20_000]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Whatever was said to be recorded is there after a power cut, and besides it at most a
    /// beginning of the batch that was being recorded.
    #[test]
    fn nothing_recorded_is_ever_lost(
        rounds in prop::collection::vec(
            (prop::collection::vec(prop::collection::vec(length(), 1..4), 1..6),
             0_u64..30, any::<Option<u64>>()),
            1..5,
        )
    ) {
        let (double, disk) = memory();
        let mut recorded: Vec<String> = Vec::new();
        drop(create(&disk, DIR));
        for (batches, operations, seed) in rounds {
            let (mut session, opened) = open(&disk, DIR).unwrap();
            prop_assert_eq!(texts_of(&opened.facts), &recorded[..]);
            double.cut_power_after(operations);
            let mut under_way = Vec::new();
            for batch in batches {
                let texts: Vec<String> = batch.iter().map(|n| format!("{n} {}", "x".repeat(*n))).collect();
                let events = texts.iter().map(noted).collect();
                if session.append(events, at()).is_err() {
                    under_way = texts;
                    break;
                }
                recorded.extend(texts);
            }
            match seed {
                None => double.crash(),
                Some(seed) => double.crash_keeping_some(seed),
            }
            drop(session);
            let (_, opened) = open(&disk, DIR).unwrap();
            let found = texts_of(&opened.facts);
            prop_assert!(found.starts_with(&recorded));
            prop_assert!(under_way.starts_with(&found[recorded.len()..]));
            if seed.is_none() {
                prop_assert_eq!(&found, &recorded);
            }
            recorded = found;
        }
    }
}

#[test]
fn a_failed_sync_ends_the_handle_for_good() {
    let (double, disk) = memory();
    let mut session = create(&disk, DIR);
    session.append(vec![noted("one")], at()).unwrap();
    double.fail_next_sync();
    let error = session.append(vec![noted("two")], at()).unwrap_err();
    assert!(matches!(error, SessionError::Io { action: "sync", .. }), "{error}");
    let before = double.operations();
    for _ in 0..3 {
        let error = session.append(vec![noted("three")], at()).unwrap_err();
        assert!(matches!(error, SessionError::Dead { .. }), "{error}");
        assert!(error.to_string().contains("input/output error"), "{error}");
    }
    assert_eq!(double.operations(), before, "the disk was not asked again");
    drop(session);
    double.crash();
    assert_eq!(texts_of(&open(&disk, DIR).unwrap().1.facts), ["one"]);
}

#[test]
fn a_summary_that_cannot_be_read_is_an_error_and_not_a_panic() {
    let (_, disk) = memory();
    drop(create(&disk, DIR));
    assert!(SessionSummary::read(disk.as_ref(), Path::new(DIR)).is_err());
}
