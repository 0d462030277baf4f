//! Second links: a session whose folder is deleted or changed under the process that holds it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_event::Envelope;
use atomic_session::{
    Disk, KeepStatus, MemoryDisk, Opened, RealDisk, Recovery, Session, SessionError,
    SessionFolders, keep_status,
};

use crate::support::{DIR, JOURNAL, at, created, memory, noted, texts_of};

const KEEP: &str = "/home/.atomic/keep/one";

fn folders() -> SessionFolders {
    SessionFolders { dir: DIR.into(), keep: Some(KEEP.into()) }
}

fn create(disk: &Arc<dyn Disk>) -> Result<Session, SessionError> {
    Session::create(Arc::clone(disk), folders(), "a test", created(), at()).map(|(made, _)| made)
}

fn open(disk: &Arc<dyn Disk>) -> Result<(Session, Opened), SessionError> {
    Session::open(Arc::clone(disk), folders(), "a test")
}

fn facts(session: &Session) -> Vec<Envelope> {
    session.facts().unwrap().map(Result::unwrap).collect()
}

/// A text that is kept in a file of its own.
fn long() -> String {
    "x".repeat(100_000)
}

/// On one disk, and with the second links on another.
fn both_disks(check: impl Fn(&MemoryDisk, &Arc<dyn Disk>)) {
    for is_apart in [false, true] {
        let (double, disk) = memory();
        if is_apart {
            double.mount(Path::new("/home"));
        }
        check(&double, &disk);
    }
}

#[test]
fn a_folder_that_is_deleted_under_a_session_is_written_again() {
    both_disks(|_, disk| {
        let mut session = create(disk).unwrap();
        session.append(vec![noted("one"), noted(long())], at()).unwrap();
        disk.remove_dir(Path::new(DIR)).unwrap();
        session.append(vec![noted("two")], at()).unwrap();
        assert!(session.take_restored());
        assert!(!session.take_restored());
        assert_eq!(texts_of(&facts(&session)), ["one".to_owned(), long(), "two".to_owned()]);
        assert!(Session::holder(disk.as_ref(), Path::new(DIR)).unwrap().is_some());
        assert!(session.release().unwrap());
        assert_eq!(keep_status(disk.as_ref(), Path::new(KEEP)), KeepStatus::Absent);
        assert!(!disk.exists(Path::new(KEEP)).unwrap());
        drop(session);
        let (_, opened) = open(disk).unwrap();
        assert_eq!(opened.restored, None);
        assert_eq!(opened.facts.len(), 4);
    });
}

#[test]
fn the_journal_and_the_values_alone_are_put_back() {
    both_disks(|_, disk| {
        let mut session = create(disk).unwrap();
        session.append(vec![noted(long())], at()).unwrap();
        disk.remove(Path::new(JOURNAL)).unwrap();
        session.append(vec![noted("two")], at()).unwrap();
        assert!(session.take_restored());
        disk.remove_dir(&Path::new(DIR).join("blobs")).unwrap();
        assert!(session.release().unwrap());
        assert_eq!(facts(&session).len(), 3);
    });
}

#[test]
fn a_session_whose_process_was_killed_is_restored() {
    both_disks(|double, disk| {
        let mut session = create(disk).unwrap();
        session.append(vec![noted(long())], at()).unwrap();
        assert_eq!(keep_status(disk.as_ref(), Path::new(KEEP)), KeepStatus::Held);
        disk.remove_dir(Path::new(DIR)).unwrap();
        double.kill();
        assert_eq!(keep_status(disk.as_ref(), Path::new(KEEP)), KeepStatus::Left);
        let (session, opened) = open(disk).unwrap();
        assert_eq!(opened.restored, Some(Recovery::Deleted));
        assert_eq!(texts_of(&opened.facts), [long()]);
        drop(session);
    });
}

/// Somebody else holds a session although its folder, or the file of its lock, is gone.
#[test]
fn the_journal_itself_is_locked() {
    both_disks(|_, disk| {
        let session = create(disk).unwrap();
        disk.remove_dir(Path::new(DIR)).unwrap();
        let error = open(disk).unwrap_err();
        assert!(matches!(error, SessionError::Held { .. }), "{error}");
        assert!(!disk.exists(Path::new(DIR)).unwrap(), "nothing was written");
        drop(session);
        open(disk).unwrap();
    });
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::default());
    let dir = folder.path().join("sessions/one");
    let folders = SessionFolders { dir: dir.clone(), keep: Some(folder.path().join("keep/one")) };
    let open = || Session::open(Arc::clone(&disk), folders.clone(), "a test");
    let made = Session::create(Arc::clone(&disk), folders.clone(), "a test", created(), at());
    let (mut session, _) = made.unwrap();
    std::fs::remove_file(dir.join("lock")).unwrap();
    let error = open().unwrap_err();
    assert!(matches!(error, SessionError::Held { .. }), "{error}");
    assert!(Session::holder(disk.as_ref(), &dir).unwrap().is_some());
    // The next fact takes the lock again, and then the holder is named.
    session.append(vec![noted("one")], at()).unwrap();
    let holder = Session::holder(disk.as_ref(), &dir).unwrap().unwrap();
    assert!(holder.contains("a test"), "{holder}");
    drop(session);
    open().unwrap();
}

/// Every way to change a journal on a real disk, and what becomes of it.
#[test]
fn a_journal_that_is_changed_under_a_session_stops_it() {
    type Change = fn(&Path);
    let changes: [(&str, Change, bool); 6] = [
        ("cut off", |path| cut(path, 10), false),
        ("emptied", |path| cut(path, 0), false),
        ("added to", |path| add(path, b"{}\n"), false),
        ("edited in place", |path| write_in_place(path, &edited_text(path)), false),
        ("edited by an editor", |path| replace(path, &edited_text(path)), true),
        ("linked", |path| std::fs::hard_link(path, path.with_extension("other")).unwrap(), false),
    ];
    for (what, change, is_kept) in changes {
        let folder = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::default());
        let dir = folder.path().join("sessions/one");
        let path = dir.join("journal.jsonl");
        let folders =
            SessionFolders { dir: dir.clone(), keep: Some(folder.path().join("keep/one")) };
        let made = Session::create(Arc::clone(&disk), folders.clone(), "a test", created(), at());
        let (mut session, _) = made.unwrap();
        session.append(vec![noted("one")], at()).unwrap();
        let written = std::fs::read(&path).unwrap();
        change(&path);
        let found = std::fs::read(&path).unwrap();
        let error = session.append(vec![noted("more")], at()).unwrap_err();
        assert!(
            matches!(&error, SessionError::Changed { is_kept: kept, .. } if *kept == is_kept),
            "{what}: {error}"
        );
        let error = session.write_tasks(&[]).unwrap_err();
        assert!(matches!(error, SessionError::Dead { .. }), "{what}: {error}");
        assert_eq!(std::fs::read(&path).unwrap(), found, "{what}: nothing more was written");
        drop(session);
        let again = Session::open(Arc::clone(&disk), folders, "a test");
        match what {
            "edited by an editor" => {
                let (session, opened) = again.unwrap();
                let Some(Recovery::Replaced { kept }) = opened.restored else { panic!("{what}") };
                assert_eq!(std::fs::read(kept).unwrap(), found);
                assert_eq!(std::fs::read(&path).unwrap(), written);
                drop(session);
            }
            // What was recorded is gone: going on would do paid work again.
            _ => drop(again.unwrap_err()),
        }
    }
}

fn edited_text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap().replace("\"one\"", "\"two\"")
}

fn cut(path: &Path, bytes: u64) {
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(bytes).unwrap();
}

fn add(path: &Path, bytes: &[u8]) {
    use std::io::Write as _;
    std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

fn write_in_place(path: &Path, text: &str) {
    use std::io::Write as _;
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    // The clock of a file system ticks every few milliseconds.
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    file.set_modified(later).unwrap();
}

fn replace(path: &Path, text: &str) {
    let other = path.with_extension("new");
    std::fs::write(&other, text).unwrap();
    std::fs::rename(other, path).unwrap();
}

/// A journal that was only touched is as it was.
#[test]
fn a_journal_that_was_touched_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::default());
    let dir = folder.path().join("sessions/one");
    let made = Session::create(Arc::clone(&disk), dir.clone(), "a test", created(), at());
    let (mut session, _) = made.unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    let file = std::fs::OpenOptions::new().append(true).open(dir.join("journal.jsonl")).unwrap();
    file.set_modified(later).unwrap();
    session.append(vec![noted("one")], at()).unwrap();
    assert_eq!(facts(&session).len(), 2);
}

/// A cut at a line end leaves a good journal that has forgotten paid work.
#[test]
fn a_journal_that_lost_whole_lines_is_refused() {
    let (_, disk) = memory();
    let mut session = create(&disk).unwrap();
    let first = disk.read(Path::new(JOURNAL), u64::MAX).unwrap().len();
    session.append(vec![noted("one")], at()).unwrap();
    let mut file = disk.append_linked(Path::new(JOURNAL)).unwrap();
    file.cut(first as u64).unwrap();
    session.append(vec![noted("two")], at()).unwrap_err();
    drop(session);
    let error = open(&disk).unwrap_err();
    assert!(matches!(&error, SessionError::Changed { is_kept: false, .. }), "{error}");
    assert!(error.to_string().contains("2 events were recorded, 1 are left"), "{error}");
    assert!(error.to_string().contains("atomic fork one"), "{error}");
}

/// The same between a kill and a resume, when no process looks at the journal. A copy on another disk
/// still has what was cut off.
#[test]
fn a_journal_that_is_cut_after_a_kill_is_refused_or_restored() {
    both_disks(|double, disk| {
        let mut session = create(disk).unwrap();
        let first = disk.read(Path::new(JOURNAL), u64::MAX).unwrap().len();
        session.append(vec![noted("one")], at()).unwrap();
        let end = disk.read(Path::new(JOURNAL), u64::MAX).unwrap().len();
        let is_apart = disk.state(Path::new(JOURNAL)).unwrap().unwrap().links == 1;
        double.kill();
        disk.append_linked(Path::new(JOURNAL)).unwrap().cut(first as u64).unwrap();
        match open(disk) {
            Ok((_, opened)) => {
                assert!(is_apart);
                assert!(matches!(opened.restored, Some(Recovery::Replaced { .. })));
                assert_eq!(texts_of(&opened.facts), ["one"]);
            }
            Err(error) => {
                assert!(!is_apart, "{error}");
                let problem = format!("{end} bytes were written, {first} are left");
                assert!(error.to_string().contains(&problem), "{error}");
            }
        }
    });
}

/// The lengths begin anew from time to time; the last one counts all the same.
#[test]
fn the_length_of_a_long_journal_is_known() {
    let (double, disk) = memory();
    let mut session = create(&disk).unwrap();
    for _ in 0..20_000 {
        session.append(vec![noted("one")], at()).unwrap();
    }
    let lengths = disk.read(&Path::new(KEEP).join("lengths"), u64::MAX).unwrap();
    assert!(lengths.len() < 70_000, "{}", lengths.len());
    double.kill();
    drop(open(&disk).unwrap());
    double.kill();
    let end = disk.read(Path::new(JOURNAL), u64::MAX).unwrap();
    let last = end[..end.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    disk.append_linked(Path::new(JOURNAL)).unwrap().cut(last as u64).unwrap();
    let error = open(&disk).unwrap_err();
    assert!(matches!(error, SessionError::Changed { is_kept: false, .. }), "{error}");
}

#[test]
fn links_that_somebody_removed_are_made_again() {
    both_disks(|double, disk| {
        let mut session = create(disk).unwrap();
        disk.remove_dir(Path::new(KEEP)).unwrap();
        session.append(vec![noted(long())], at()).unwrap();
        session.append(vec![noted("two")], at()).unwrap();
        let is_apart = disk.state(Path::new(JOURNAL)).unwrap().unwrap().links == 1;
        if !is_apart {
            disk.remove_dir(Path::new(DIR)).unwrap();
            double.kill();
            assert_eq!(open(disk).unwrap().1.facts.len(), 3);
        }
    });
}

/// Power cuts anywhere while a session with second links is made, written and let go, with the
/// folder deleted or not: nothing that was recorded is lost.
#[test]
fn a_power_cut_with_second_links_loses_nothing() {
    for is_deleted in [false, true] {
        for operations in 0.. {
            let mut is_done = false;
            for seed in 0..5 {
                let (double, disk) = memory();
                double.cut_power_after(operations);
                let mut recorded = 0;
                let outcome = create(&disk).and_then(|mut session| {
                    recorded = 1;
                    session.append(vec![noted(long())], at())?;
                    recorded = 2;
                    if is_deleted {
                        let _ = disk.remove_dir(Path::new(DIR));
                    }
                    session.append(vec![noted("two")], at())?;
                    recorded = 3;
                    session.release()
                });
                is_done = outcome.is_ok();
                match seed {
                    0 => double.crash(),
                    seed => double.crash_keeping_some(seed),
                }
                match open(&disk) {
                    Ok((_, opened)) => assert!(opened.facts.len() >= recorded, "{operations}"),
                    Err(SessionError::NeverStarted { .. } | SessionError::NotFound { .. }) => {
                        assert_eq!(recorded, 0, "{operations} {seed} {is_deleted}");
                    }
                    Err(other) => panic!("after {operations} operations: {other}"),
                }
            }
            if is_done {
                break;
            }
        }
    }
}

/// A home folder in which nothing can be written stops nobody.
#[test]
fn without_second_links_the_session_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::default());
    let folders = SessionFolders {
        dir: folder.path().join("sessions/one"),
        keep: Some(PathBuf::from("/dev/null/home/keep/one")),
    };
    let made = Session::create(Arc::clone(&disk), folders, "a test", created(), at());
    let (mut session, _) = made.unwrap();
    assert!(session.take_unkept().is_some());
    assert!(session.take_unkept().is_none());
    session.append(vec![noted(long())], at()).unwrap();
    std::fs::remove_file(folder.path().join("sessions/one/journal.jsonl")).unwrap();
    let error = session.append(vec![noted("two")], at()).unwrap_err();
    assert!(error.to_string().contains("it was removed"), "{error}");
}

/// An editor or `sed -i` gives the name of a big value to another file. The value is put back when the
/// session is let go, and after a kill.
#[test]
fn a_value_that_was_replaced_is_put_back() {
    for is_killed in [false, true] {
        both_disks(|double, disk| {
            let mut session = create(disk).unwrap();
            session.append(vec![noted(long())], at()).unwrap();
            let folder = Path::new(DIR).join("blobs");
            let value = folder.join(disk.list(&folder).unwrap().pop().unwrap());
            let written = disk.read(&value, u64::MAX).unwrap();
            let other = b"y".repeat(written.len());
            disk.replace(&value, &other).unwrap();
            if is_killed {
                double.kill();
            } else {
                assert!(session.release().unwrap());
                assert_eq!(disk.read(&value, u64::MAX).unwrap(), written);
            }
            drop(session);
            let (_, opened) = open(disk).unwrap();
            assert_eq!(texts_of(&opened.facts), [long()], "killed: {is_killed}");
            assert_eq!(disk.read(&value, u64::MAX).unwrap(), written);
        });
    }
}

/// A second copy that is damaged does not replace a value that is whole.
#[test]
fn a_whole_value_is_never_replaced_by_a_damaged_one() {
    both_disks(|double, disk| {
        let mut session = create(disk).unwrap();
        session.append(vec![noted(long())], at()).unwrap();
        let kept = Path::new(KEEP).join("blobs");
        let kept = kept.join(disk.list(&kept).unwrap().pop().unwrap());
        disk.replace(&kept, b"other").unwrap();
        double.kill();
        drop(session);
        let (session, opened) = open(disk).unwrap();
        assert_eq!(texts_of(&opened.facts), [long()]);
        assert!(disk.read(&kept, u64::MAX).unwrap().len() > 100_000, "the copy is whole again");
        drop(session);
    });
}

/// A home folder that fills up during a run stops it as little as one that was full before.
#[test]
fn a_home_folder_that_fills_up_stops_no_run() {
    both_disks(|double, disk| {
        let mut session = create(disk).unwrap();
        double.fill(Path::new("/home"));
        session.append(vec![noted(long())], at()).unwrap();
        let why = session.take_unkept().unwrap().to_string();
        assert!(why.contains(KEEP), "{why}");
        session.append(vec![noted("two")], at()).unwrap();
        assert!(session.release().unwrap());
        drop(session);
        double.kill();
        let (_, opened) = open(disk).unwrap();
        assert_eq!(texts_of(&opened.facts), [long(), "two".to_owned()]);
        assert_eq!(opened.restored, None);
    });
}

/// The printed way on after a change in place is to restore the journal from a copy, which is another
/// file. The second link is the changed one, and must not replace the restored journal.
#[test]
fn a_journal_that_was_restored_from_a_copy_goes_on() {
    for is_killed in [false, true] {
        let (double, disk) = memory();
        let mut session = create(&disk).unwrap();
        let first = disk.read(Path::new(JOURNAL), u64::MAX).unwrap().len();
        session.append(vec![noted("one")], at()).unwrap();
        let backup = disk.read(Path::new(JOURNAL), u64::MAX).unwrap();
        let cut = || disk.append_linked(Path::new(JOURNAL)).unwrap().cut(first as u64).unwrap();
        if is_killed {
            double.kill();
            cut();
        } else {
            cut();
            session.append(vec![noted("two")], at()).unwrap_err();
        }
        drop(session);
        open(&disk).unwrap_err();
        // A copy of an earlier state is no remedy, and is left where it is.
        disk.replace(Path::new(JOURNAL), &backup[..first]).unwrap();
        open(&disk).unwrap_err();
        assert_eq!(disk.read(Path::new(JOURNAL), u64::MAX).unwrap(), backup[..first]);
        disk.replace(Path::new(JOURNAL), &backup).unwrap();
        let (session, opened) = open(&disk).unwrap();
        assert_eq!(opened.restored, None);
        assert_eq!(texts_of(&opened.facts), ["one"], "killed: {is_killed}");
        drop(session);
        // From now on the second link is the restored journal.
        double.kill();
        disk.remove_dir(Path::new(DIR)).unwrap();
        assert_eq!(texts_of(&open(&disk).unwrap().1.facts), ["one"]);
    }
}
