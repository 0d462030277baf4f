//! Snapshots only shorten reading: without them, or with useless ones, everything is the same.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::path::Path;

use atomic_runner::{ResumeOptions, Run, Settings};
use atomic_session::{Disk as _, MemoryDisk};
use atomic_testing::ralph_script::{Flaw, script};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::runner_stand::{Stand, on_one_thread};

/// What every worker says, so that the journal is long enough for snapshots.
const PADDING: usize = 8;

/// What becomes of a snapshot.
type Change = fn(Vec<u8>) -> Option<Vec<u8>>;

const CHANGES: [(&str, Change); 5] = [
    ("kept", Some),
    ("deleted", |_| None),
    ("cut short", |bytes| Some(bytes[..bytes.len() / 2].to_vec())),
    ("of another version", |bytes| {
        Some(String::from_utf8(bytes).unwrap().replacen("\"version\":1", "\"version\":2", 1).into())
    }),
    ("of a machine nobody knows", |bytes| Some(with_payload(&bytes, b"{\"machine\":7}"))),
];

/// The same snapshot of something else, checksum included.
fn with_payload(bytes: &[u8], payload: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let (header, _) = text.split_once(",\"payload\":").unwrap();
    let mut header: Value = serde_json::from_str(&format!("{header}}}")).unwrap();
    header["crc"] = format!("{:08x}", crc32fast::hash(payload)).into();
    let header = header.to_string();
    let header = header.strip_suffix('}').unwrap();
    [header.as_bytes(), b",\"payload\":", payload, b"}\n"].concat()
}

/// Copies a session to another disk, each snapshot changed as `change` says. Says how many
/// snapshots there were.
fn copy(from: &MemoryDisk, to: &MemoryDisk, dir: &Path, change: Change) -> usize {
    for folder in ["", "blobs", "logs", "inbox"] {
        let folder = dir.join(folder);
        to.create_dir(&folder).unwrap();
        for name in from.list(&folder).unwrap() {
            if let Ok(bytes) = from.read(&folder.join(&name), u64::MAX) {
                to.replace(&folder.join(&name), &bytes).unwrap();
            }
        }
    }
    let folder = dir.join("checkpoints");
    to.create_dir(&folder).unwrap();
    let names = from.list(&folder).unwrap();
    for name in &names {
        let bytes = from.read(&folder.join(name), u64::MAX).unwrap();
        if let Some(changed) = change(bytes) {
            to.replace(&folder.join(name), &changed).unwrap();
        }
    }
    names.len()
}

/// The facts without what a run does not decide.
fn plain(facts: &[Value]) -> Vec<Value> {
    let mut facts = facts.to_vec();
    for fact in &mut facts {
        fact.as_object_mut().unwrap().remove("crc");
    }
    facts
}

fn operations_of_a_whole_run() -> u64 {
    let stand = Stand::playing(script(Flaw::Reported, PADDING));
    on_one_thread(stand.see_through()).unwrap();
    stand.disk.operations()
}

#[test]
fn without_snapshots_or_with_useless_ones_a_resumed_run_is_the_same() {
    let cut_off = Stand::playing(script(Flaw::Reported, PADDING));
    let all = operations_of_a_whole_run();
    let mut seen = 0;
    for part in 1..4 {
        cut_off.disk.cut_power_after(all * part / 4 - cut_off.disk.operations());
        let _ = on_one_thread(cut_off.see_through()).unwrap_err();
        cut_off.disk.crash();
        let dir = cut_off.session().unwrap();
        let mut outcomes = vec![];
        for (name, change) in CHANGES {
            let stand = cut_off.beside();
            seen = seen.max(copy(&cut_off.disk, &stand.disk, &dir, change));
            let finale = on_one_thread(stand.see_through()).unwrap();
            assert_eq!(stand.misdeeds(), [""; 0], "snapshots {name}");
            outcomes.push((name, finale, plain(&stand.facts())));
        }
        let (_, finale, facts) = outcomes.remove(0);
        for (name, other, others) in outcomes {
            assert_eq!(other, finale, "snapshots {name}");
            assert_eq!(others, facts, "snapshots {name}");
        }
    }
    assert!(seen > 1, "there were only {seen} snapshots: the journal is too short");
}

#[test]
fn settings_given_on_resume_outlive_the_facts_before_a_snapshot() {
    let stand = Stand::playing(script(Flaw::Reported, PADDING));
    let all = operations_of_a_whole_run();
    stand.disk.cut_power_after(all / 4);
    let _ = on_one_thread(stand.see_through()).unwrap_err();
    stand.disk.crash();
    let dir = stand.session().unwrap();
    stand.disk.cut_power_after(all / 2);
    on_one_thread(async {
        let find = |_: &str| Ok(stand.workflow.clone());
        let adjust = |settings: &mut Settings| settings.budget.max_tokens = Some(123_456);
        let options = ResumeOptions::default();
        let resumed = Run::resume(stand.stage(), dir.clone(), options, find, adjust);
        let (_wishes, intents) = mpsc::channel(1);
        let _ = resumed.unwrap().0.drive(intents).await;
    });
    stand.disk.crash();
    assert!(!stand.disk.list(&dir.join("checkpoints")).unwrap().is_empty(), "no snapshot");
    let _ = on_one_thread(stand.see_through()).unwrap();
    let facts = stand.facts();
    let resumed: Vec<&Value> = facts.iter().filter(|f| f["type"] == "session_resumed").collect();
    assert!(resumed.len() > 1, "{resumed:?}");
    for fact in resumed {
        assert_eq!(fact["settings"]["maxTokens"], 123_456, "{fact}");
    }
}
