//! One session, one holder.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use atomic_session::{Disk, RealDisk, Session, SessionError};

use crate::support::{DIR, at, create, memory, noted, open};

#[test]
fn a_second_handle_is_told_who_has_the_first() {
    let (double, disk) = memory();
    let session = create(&disk, DIR);
    let error = open(&disk, DIR).unwrap_err();
    let me = format!("process {}, a test", std::process::id());
    assert!(matches!(&error, SessionError::Held { holder, .. } if *holder == me), "{error}");
    assert_eq!(Session::holder(disk.as_ref(), Path::new(DIR)).unwrap(), Some(me));
    drop(session);
    assert_eq!(Session::holder(disk.as_ref(), Path::new(DIR)).unwrap(), None);
    let held = open(&disk, DIR).unwrap();
    double.crash();
    open(&disk, DIR).unwrap();
    drop(held);
}

const HOLD: &str = "ATOMIC_TEST_HOLD";

/// The same test is both processes: told a folder, it holds the session there until it is ended.
#[test]
fn a_lock_names_its_process_and_goes_with_it() {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::default());
    if let Some(dir) = std::env::var_os(HOLD) {
        let session = open(&disk, PathBuf::from(dir)).unwrap();
        println!("\nholding");
        let _ = std::io::stdin().read(&mut [0]);
        drop(session);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("sessions/one");
    drop(create(&disk, &dir));
    let mut holder = Holder::start(&dir);
    let error = open(&disk, &dir).unwrap_err();
    let named = format!("held by process {}, a test", holder.0.id());
    assert!(error.to_string().contains(&named), "{error}");
    assert!(Session::holder(disk.as_ref(), &dir).unwrap().is_some());

    // SIGKILL: nothing is tidied up, the text stays, the lock does not.
    holder.0.kill().unwrap();
    holder.0.wait().unwrap();
    assert_ne!(std::fs::read(dir.join("lock")).unwrap(), b"");
    assert_eq!(Session::holder(disk.as_ref(), &dir).unwrap(), None);
    let (mut session, _) = open(&disk, &dir).unwrap();
    session.append(vec![noted("mine now")], at()).unwrap();
    // A program we start does not inherit it.
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    drop(session);
    assert_eq!(Session::holder(disk.as_ref(), &dir).unwrap(), None);
    child.kill().unwrap();
    child.wait().unwrap();
}

struct Holder(Child);

impl Holder {
    fn start(dir: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "lock::a_lock_names_its_process_and_goes_with_it", "--nocapture"]);
        command.env(HOLD, dir).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = Self(command.spawn().unwrap());
        let output = BufReader::new(holder.0.stdout.take().unwrap());
        let said = output.lines().map_while(Result::ok).any(|line| line == "holding");
        assert!(said, "the other process did not get the session");
        holder
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
