//! What every disk must do, the real one and the double.

use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use atomic_session::{Disk, LockError, MemoryDisk, RealDisk};

#[test]
fn the_disk_in_memory_conforms() {
    conforms(&MemoryDisk::new(), Path::new("/root"));
}

#[test]
fn the_real_disk_conforms() {
    let folder = tempfile::tempdir().unwrap();
    conforms(&RealDisk::default(), &folder.path().join("root"));
}

fn conforms(disk: &dyn Disk, root: &Path) {
    makes_folders(disk, root);
    replaces_files(disk, root);
    renames_and_removes_folders(disk, root);
    appends_and_cuts(disk, root);
    locks(disk, root);
}

fn makes_folders(disk: &dyn Disk, root: &Path) {
    let deep = root.join("a/b");
    assert!(!disk.exists(root).unwrap());
    disk.create_dir(&deep).unwrap();
    disk.create_dir(&deep).unwrap();
    disk.sync_dir(&deep).unwrap();
    assert!(disk.exists(&root.join("a")).unwrap());
    assert_eq!(disk.list(&root.join("a")).unwrap(), ["b"]);
    assert_eq!(disk.list(&root.join("none")).unwrap_err().kind(), ErrorKind::NotFound);
    let file = root.join("file");
    disk.replace(&file, b"x").unwrap();
    assert!(disk.create_dir(&file).is_err(), "there is a file of that name");
    assert!(disk.create_dir(&file.join("under")).is_err());
    disk.remove(&file).unwrap();
}

fn replaces_files(disk: &dyn Disk, root: &Path) {
    let path = root.join("a/file");
    assert_eq!(disk.read(&path, u64::MAX).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(disk.remove(&path).unwrap_err().kind(), ErrorKind::NotFound);
    for content in ["one", "", "three"] {
        disk.replace(&path, content.as_bytes()).unwrap();
        assert_eq!(disk.read(&path, u64::MAX).unwrap(), content.as_bytes());
    }
    assert_eq!(disk.list(&root.join("a")).unwrap(), ["b", "file"], "nothing temporary is left");
    let mut streamed = String::new();
    disk.reader(&path).unwrap().read_to_string(&mut streamed).unwrap();
    assert_eq!(streamed, "three");
    disk.remove(&path).unwrap();
    assert!(!disk.exists(&path).unwrap());
    let lost = disk.replace(&root.join("none/file"), b"x").unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::NotFound);
}

fn renames_and_removes_folders(disk: &dyn Disk, root: &Path) {
    let (old, new) = (root.join("old"), root.join("new"));
    assert_eq!(disk.rename_dir(&old, &new).unwrap_err().kind(), ErrorKind::NotFound);
    disk.create_dir(&old.join("inner")).unwrap();
    disk.replace(&old.join("inner/file"), b"x").unwrap();
    disk.create_dir(&new).unwrap();
    assert_eq!(disk.rename_dir(&old, &new).unwrap_err().kind(), ErrorKind::AlreadyExists);
    disk.remove_dir(&new).unwrap();
    disk.rename_dir(&old, &new).unwrap();
    assert!(!disk.exists(&old).unwrap());
    assert_eq!(disk.read(&new.join("inner/file"), u64::MAX).unwrap(), b"x");
    disk.remove_dir(&new).unwrap();
    assert!(!disk.exists(&new).unwrap());
    assert_eq!(
        disk.read(&new.join("inner/file"), u64::MAX).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert_eq!(disk.remove_dir(&new).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(disk.list(root).unwrap(), ["a"]);
}

fn appends_and_cuts(disk: &dyn Disk, root: &Path) {
    let path = root.join("journal");
    let mut file = disk.append(&path).unwrap();
    file.write(b"one\n").unwrap();
    file.sync().unwrap();
    file.write(b"two\n").unwrap();
    assert_eq!(
        disk.read(&path, u64::MAX).unwrap(),
        b"one\ntwo\n",
        "readers see what is not synced yet"
    );
    file.cut(4).unwrap();
    file.write(b"three\n").unwrap();
    drop(file);
    let mut again = disk.append(&path).unwrap();
    again.write(b"four\n").unwrap();
    disk.log(&path, b"five\n").unwrap();
    assert_eq!(disk.read(&path, u64::MAX).unwrap(), b"one\nthree\nfour\nfive\n");
    disk.log(&root.join("log"), b"new\n").unwrap();
    assert_eq!(disk.read(&root.join("log"), u64::MAX).unwrap(), b"new\n");
}

fn locks(disk: &dyn Disk, root: &Path) {
    let path = root.join("lock");
    assert_eq!(disk.lock_holder(&path).unwrap(), None);
    let lock = disk.lock(&path, "the first\nand more").unwrap();
    assert_eq!(disk.lock_holder(&path).unwrap().as_deref(), Some("the first"));
    match disk.lock(&path, "the second") {
        Err(LockError::Held { holder }) => assert_eq!(holder, "the first"),
        other => panic!("{other:?}"),
    }
    drop(lock);
    assert_eq!(disk.lock_holder(&path).unwrap(), None);
    let lock = disk.lock(&path, "").unwrap();
    assert_eq!(disk.lock_holder(&path).unwrap().as_deref(), Some("another process"));
    drop(lock);
}

#[test]
fn what_the_real_disk_makes_is_for_the_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("a/b");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    RealDisk::default().create_dir(&root).unwrap();
    RealDisk::default().replace(&root.join("replaced"), b"x").unwrap();
    RealDisk::default().append(&root.join("appended")).unwrap();
    RealDisk::default().log(&root.join("logged"), b"x").unwrap();
    let lock = RealDisk::default().lock(&root.join("lock"), "me").unwrap();
    assert_eq!((mode(&root), mode(&folder.path().join("a"))), (0o700, 0o700));
    for name in RealDisk::default().list(&root).unwrap() {
        assert_eq!(mode(&root.join(&name)), 0o600, "{name}");
    }
    drop(lock);
}

/// What the double forgets when the power goes.
#[test]
fn a_power_cut_leaves_only_what_was_synced() {
    let disk = MemoryDisk::new();
    let path = |name: &str| Path::new("/d").join(name);
    disk.create_dir(Path::new("/d")).unwrap();
    let mut file = disk.append(&path("appended")).unwrap();
    file.write(b"synced").unwrap();
    file.sync().unwrap();
    file.write(b" and not").unwrap();
    disk.replace(&path("replaced"), b"one").unwrap();
    disk.log(&path("logged"), b"gone").unwrap();
    disk.remove(&path("replaced")).unwrap();
    let lock = disk.lock(&path("lock"), "me").unwrap();
    assert_eq!(disk.durable(&path("appended")).unwrap(), b"synced");
    assert_eq!(disk.durable(&path("logged")), None);

    disk.crash();
    assert_eq!(disk.list(Path::new("/d")).unwrap(), ["appended", "replaced"]);
    assert_eq!(disk.read(&path("appended"), u64::MAX).unwrap(), b"synced");
    assert_eq!(
        disk.read(&path("replaced"), u64::MAX).unwrap(),
        b"one",
        "the removal was not synced"
    );
    assert!(file.write(b"x").is_err(), "what was open before is of no use");
    let again = disk.lock(&path("lock"), "me again").unwrap();
    drop(lock);
    assert!(disk.lock_holder(&path("lock")).unwrap().is_some(), "the old lock has no say");
    drop(again);
}

#[test]
fn a_folder_made_without_its_sync_is_gone_with_all_that_is_in_it() {
    let disk = MemoryDisk::new();
    disk.create_dir(Path::new("/d")).unwrap();
    // Making a folder is one operation, its sync the next.
    disk.cut_power_after(1);
    assert!(disk.create_dir(Path::new("/d/e")).is_err());
    disk.crash();
    assert!(!disk.exists(Path::new("/d/e")).unwrap());
    assert!(disk.exists(Path::new("/d")).unwrap());
}

#[test]
fn a_power_cut_in_the_middle_of_a_replace_leaves_the_old_or_the_new() {
    for operations in 0..6 {
        for seed in 0..20 {
            let disk = MemoryDisk::new();
            let path = Path::new("/d/file");
            disk.create_dir(Path::new("/d")).unwrap();
            disk.replace(path, b"old").unwrap();
            disk.cut_power_after(operations);
            let done = disk.replace(path, b"new").is_ok();
            assert_eq!(done, operations >= 5, "a replace has five operations");
            disk.crash_keeping_some(seed);
            let left = disk.read(path, u64::MAX).unwrap();
            assert!(left == b"new" || (!done && left == b"old"), "{operations} {seed}");
        }
    }
}

#[test]
fn some_bytes_may_survive_a_power_cut_and_they_are_a_beginning() {
    let mut lengths = std::collections::BTreeSet::new();
    for seed in 0..100 {
        let disk = MemoryDisk::new();
        let path = Path::new("/file");
        let mut file = disk.append(path).unwrap();
        file.write(b"synced").unwrap();
        file.sync().unwrap();
        file.write(b"12345678").unwrap();
        disk.crash_keeping_some(seed);
        let left = disk.read(path, u64::MAX).unwrap();
        assert!(b"synced12345678".starts_with(&left) && left.starts_with(b"synced"));
        lengths.insert(left.len());
    }
    assert_eq!(lengths.len(), 9, "every length comes up");
}

#[test]
fn a_failed_sync_is_not_mended_by_a_second_one() {
    let disk = MemoryDisk::new();
    let mut file = disk.append(Path::new("/file")).unwrap();
    file.write(b"x").unwrap();
    disk.fail_next_sync();
    file.sync().unwrap_err();
    file.sync().unwrap();
    disk.crash();
    assert_eq!(disk.read(Path::new("/file"), u64::MAX).unwrap(), b"");
}
