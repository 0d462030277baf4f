//! A disk that is full.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use atomic_session::{Disk, RealDisk, SessionError};

use crate::support::{DIR, JOURNAL, at, create, memory, noted, open, texts};

#[test]
fn a_full_disk_leaves_the_journal_at_its_last_good_line() {
    for room in [0, 1, 50, 150] {
        let (double, disk) = memory();
        let mut session = create(&disk, DIR);
        session.append(vec![noted("one")], at()).unwrap();
        let before = disk.read(Path::new(JOURNAL), u64::MAX).unwrap();
        double.fail_after_bytes(room);
        let error = session.append(vec![noted("two"), noted("three")], at()).unwrap_err();
        assert!(matches!(error, SessionError::NoSpace { .. }), "{error}");
        assert_eq!(
            disk.read(Path::new(JOURNAL), u64::MAX).unwrap(),
            before,
            "with room for {room} bytes"
        );
        double.make_room();
        let error = session.append(vec![noted("late")], at()).unwrap_err();
        assert!(matches!(error, SessionError::Dead { .. }), "{error}");
        drop(session);
        let (mut session, opened) = open(&disk, DIR).unwrap();
        assert_eq!(opened.repaired, None);
        session.append(vec![noted("again")], at()).unwrap();
        drop(session);
        assert_eq!(texts(&disk, DIR), ["one", "again"]);
    }
}

#[test]
fn no_room_for_a_big_value_is_no_room() {
    let (double, disk) = memory();
    let mut session = create(&disk, DIR);
    double.fail_after_bytes(10_000);
    let error = session.append(vec![noted("x".repeat(20_000))], at()).unwrap_err();
    assert!(matches!(error, SessionError::NoSpace { .. }), "{error}");
    assert_eq!(disk.list(&Path::new(DIR).join("blobs")).unwrap(), [""; 0], "no left-overs");
    assert!(matches!(session.append(vec![noted("x")], at()), Err(SessionError::Dead { .. })));
}

#[test]
fn no_room_for_a_snapshot_is_only_a_warning() {
    let (double, disk) = memory();
    let mut session = create(&disk, DIR);
    session.append(vec![noted("x".repeat(10_000)); 8], at()).unwrap();
    assert!(session.snapshot_due());
    double.fail_after_bytes(100);
    session.write_snapshot(&serde_json::json!({"k": "x".repeat(1000)})).unwrap_err();
    assert!(!session.snapshot_due(), "it is not tried again at once");
    double.make_room();
    session.append(vec![noted("goes on")], at()).unwrap();
}

/// A small file system in memory, gone with this value also when a test fails.
struct Mount(PathBuf);

impl Mount {
    fn new(folder: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256k", "none"]).arg(folder);
        mount.status().is_ok_and(|status| status.success()).then(|| Self(folder.to_owned()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_real_full_disk_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mount) = Mount::new(folder.path()) else {
        assert!(std::env::var_os("CI").is_none(), "a file system could not be mounted");
        println!("not run: a file system could not be mounted (this needs root)");
        return;
    };
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::default());
    let dir = mount.0.join("sessions/one");
    let mut session = create(&disk, &dir);
    let mut recorded = 0;
    let error = loop {
        match session.append(vec![noted("x".repeat(5_000))], at()) {
            Ok(_) => recorded += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, SessionError::NoSpace { .. }), "{error}");
    assert!(recorded > 10, "{recorded} facts fitted");
    let length = std::fs::metadata(dir.join("journal.jsonl")).unwrap().len();
    assert!(matches!(session.append(vec![noted("x")], at()), Err(SessionError::Dead { .. })));
    drop(session);

    // Still full: it can be read, and says so when it cannot be written.
    let journal = std::fs::read(dir.join("journal.jsonl")).unwrap();
    assert_eq!((journal.len() as u64, journal.last()), (length, Some(&b'\n')));

    // With room it goes on where it was.
    let resize = ["-o", "remount,size=512k"];
    assert!(Command::new("mount").args(resize).arg(&mount.0).status().unwrap().success());
    let (mut session, opened) = open(&disk, &dir).unwrap();
    assert_eq!((opened.facts.len(), opened.repaired), (recorded + 1, None));
    session.append(vec![noted("x".repeat(5_000))], at()).unwrap();
}
