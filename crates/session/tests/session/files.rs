//! The files people read, the inbox and the index.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_event::Moment;
use atomic_session::{
    Disk, FindError, InboxAnswer, Index, IndexEntry, Kept, Product, RealDisk, Session,
    SessionStatus, SessionSummary, SpentSummary, TaskCount, TaskRow, TaskStatus, leave_answer,
};
use serde_json::json;

use crate::support::{DIR, at, create, memory, open};

fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

fn text(disk: &Arc<dyn Disk>, name: &str) -> String {
    String::from_utf8(disk.read(&path(name), u64::MAX).unwrap()).unwrap()
}

fn summary() -> SessionSummary {
    SessionSummary {
        session_id: "0b7c".into(),
        workflow: "ralph".into(),
        prompt: "build it well".to_owned(),
        original_prompt: "build it".to_owned(),
        status: SessionStatus::Waiting,
        created_at: at(),
        last_updated: at(),
        iteration: 3,
        backend: "script".into(),
        model: None,
        tasks: TaskCount { done: 1, total: 2, kept_edits: vec![] },
        spent: SpentSummary::default(),
        product: Product::default(),
        checks: None,
    }
}

#[test]
fn the_summary_is_readable_json() {
    let (double, disk) = memory();
    let mut session = create(&disk, DIR);
    session.write_summary(&summary()).unwrap();
    let expected = r#"{
  "sessionId": "0b7c",
  "workflow": "ralph",
  "prompt": "build it well",
  "originalPrompt": "build it",
  "status": "waiting",
  "createdAt": "2026-11-15T10:00:00Z",
  "lastUpdated": "2026-11-15T10:00:00Z",
  "iteration": 3,
  "backend": "script",
  "model": null,
  "tasks": {
    "done": 1,
    "total": 2
  },
  "costUsd": null,
  "tokens": 0,
  "estimated": false
}
"#;
    assert_eq!(text(&disk, "session.json"), expected);
    let before = double.operations();
    session.write_summary(&summary()).unwrap();
    assert_eq!(double.operations(), before, "nothing new, nothing written");
    double.crash();
    assert_eq!(SessionSummary::read(disk.as_ref(), Path::new(DIR)).unwrap(), summary());
}

fn row(id: &str, status: TaskStatus) -> TaskRow {
    TaskRow {
        id: id.to_owned(),
        content: "Do it".to_owned(),
        status,
        active_form: "Doing it".to_owned(),
        blocked_by: Vec::new(),
        error: None,
    }
}

#[test]
fn the_task_list_is_an_array_of_rows() {
    let (double, disk) = memory();
    let mut session = create(&disk, DIR);
    let mut blocked = row("#2", TaskStatus::InProgress);
    blocked.blocked_by = vec!["#1".to_owned()];
    blocked.error = Some("oh".to_owned());
    let rows = [row("#1", TaskStatus::Pending), blocked];
    assert_eq!(session.write_tasks(&rows).unwrap(), None);
    let expected = r##"[
  {
    "id": "#1",
    "content": "Do it",
    "status": "pending",
    "activeForm": "Doing it"
  },
  {
    "id": "#2",
    "content": "Do it",
    "status": "in_progress",
    "activeForm": "Doing it",
    "blockedBy": [
      "#1"
    ],
    "error": "oh"
  }
]
"##;
    assert_eq!(text(&disk, "tasks.json"), expected);
    let before = double.operations();
    session.write_tasks(&rows).unwrap();
    assert_eq!(double.operations(), before, "nothing new, nothing written");
}

#[test]
fn an_edited_task_list_is_kept_aside_and_said() {
    let (_, disk) = memory();
    let mut session = create(&disk, DIR);
    let pending = [row("#1", TaskStatus::Pending)];
    let done = [row("#1", TaskStatus::Completed)];
    session.write_tasks(&pending).unwrap();
    assert_eq!(session.write_tasks(&done).unwrap(), None);
    for n in 1..3 {
        let edited = format!("[edited {n}");
        disk.replace(&path("tasks.json"), edited.as_bytes()).unwrap();
        let kept = path(&format!("tasks.edited-{n}.json"));
        assert_eq!(session.write_tasks(&done).unwrap(), Some(Kept { path: kept.clone() }));
        assert_eq!(disk.read(&kept, u64::MAX).unwrap(), edited.as_bytes());
        assert!(text(&disk, "tasks.json").contains("completed"));
    }
    // Across a restart: ours is known as ours, an edit as an edit.
    drop(session);
    let (mut session, _) = open(&disk, DIR).unwrap();
    assert_eq!(session.write_tasks(&pending).unwrap(), None);
    drop(session);
    disk.replace(&path("tasks.json"), b"[]").unwrap();
    let (mut session, _) = open(&disk, DIR).unwrap();
    assert!(session.write_tasks(&pending).unwrap().is_some());
    // Somebody removed it: there is nothing to keep.
    disk.remove(&path("tasks.json")).unwrap();
    assert_eq!(session.write_tasks(&pending).unwrap(), None);
    assert!(text(&disk, "tasks.json").contains("pending"));
}

#[test]
fn a_power_cut_while_the_list_is_written_is_not_taken_for_an_edit() {
    let rows = |n: usize| vec![row("#1", TaskStatus::Pending); n];
    for operations in 0..12 {
        for seed in 0..10 {
            let (double, disk) = memory();
            let mut session = create(&disk, DIR);
            session.write_tasks(&rows(1)).unwrap();
            session.write_tasks(&rows(2)).unwrap();
            double.cut_power_after(operations);
            let done = session.write_tasks(&rows(3)).is_ok();
            assert_eq!(done, operations >= 10, "two replaces have ten operations");
            drop(session);
            double.crash_keeping_some(seed);
            let (mut session, _) = open(&disk, DIR).unwrap();
            assert_eq!(session.write_tasks(&rows(4)).unwrap(), None, "{operations} {seed}");
        }
    }
}

#[test]
fn progress_is_added_once() {
    let (_, disk) = memory();
    let mut session = create(&disk, DIR);
    let marker = "## Iteration 1 — #1: Do it";
    assert!(session.append_progress(marker, &format!("{marker}\ndone")).unwrap());
    assert!(!session.append_progress(marker, &format!("{marker}\ndone")).unwrap());
    drop(session);
    // An agent wrote something without a line end.
    disk.log(&path("progress.txt"), b"by hand").unwrap();
    let (mut session, _) = open(&disk, DIR).unwrap();
    assert!(!session.append_progress(marker, "again").unwrap());
    assert!(session.append_progress("<!-- 2 -->", "more\n").unwrap());
    assert!(!session.append_progress("<!-- 2 -->", "more\n").unwrap());
    let expected = format!("{marker}\ndone\nby hand\n<!-- 2 -->\nmore\n");
    assert_eq!(text(&disk, "progress.txt"), expected);
}

#[test]
fn logs_have_one_entry_a_write() {
    let (double, disk) = memory();
    let session = create(&disk, DIR);
    session.log_agent_call(&json!({"agent": "worker"})).unwrap();
    session.log_agent_call(&json!({"agent": "a\nb"})).unwrap();
    session.log_transcript(&json!({"text": "hi"})).unwrap();
    let before = double.operations();
    session.log_error("it broke\nbadly\n", at()).unwrap();
    assert_eq!(double.operations() - before, 2, "made, and written to");
    let calls = "{\"agent\":\"worker\"}\n{\"agent\":\"a\\nb\"}\n";
    assert_eq!(text(&disk, "logs/agent-calls.jsonl"), calls);
    assert_eq!(text(&disk, "logs/transcript.jsonl"), "{\"text\":\"hi\"}\n");
    let error = "2026-11-15T10:00:00.000Z it broke\n  badly\n";
    assert_eq!(text(&disk, "logs/errors.log"), error);
}

#[test]
fn answers_are_left_without_the_lock_and_taken_in_order() {
    let (double, disk) = memory();
    let session = create(&disk, DIR);
    let answer =
        |text: &str| InboxAnswer { question: Some("q1".into()), given: vec![text.to_owned()] };
    let texts = ["one", "two", "three", "four"];
    for text in texts {
        leave_answer(disk.as_ref(), Path::new(DIR), &answer(text)).unwrap();
    }
    drop(session);
    double.crash();
    let (session, _) = open(&disk, DIR).unwrap();
    disk.log(&path("inbox/broken.json"), b"{\"given\":").unwrap();
    disk.log(&path("inbox/.000009-x.json.tmp"), b"{").unwrap();
    let left = session.inbox().unwrap();
    let given: Vec<_> = left.iter().filter_map(|(_, a)| a.clone().ok()).collect();
    assert_eq!(given, texts.map(answer));
    let (name, problem) = &left[4];
    assert_eq!(name, "broken.json");
    assert!(problem.as_ref().unwrap_err().contains("logs/inbox-broken.json"), "{problem:?}");
    assert_eq!(text(&disk, "logs/inbox-broken.json"), "{\"given\":");
    for (name, _) in &left[..4] {
        session.clear_inbox(name).unwrap();
    }
    assert_eq!(session.inbox().unwrap(), []);
}

#[test]
fn an_answer_for_no_session_is_refused() {
    let (_, disk) = memory();
    let answer = InboxAnswer { question: None, given: vec!["x".to_owned()] };
    leave_answer(disk.as_ref(), Path::new(DIR), &answer).unwrap_err();
    disk.create_dir(Path::new(DIR)).unwrap();
    leave_answer(disk.as_ref(), Path::new(DIR), &answer).unwrap_err();
    assert_eq!(disk.list(Path::new(DIR)).unwrap(), [""; 0]);
}

#[test]
fn a_session_hides_itself_from_git_and_nothing_else() {
    let (_, disk) = memory();
    drop(create(&disk, DIR));
    assert_eq!(
        disk.read(Path::new("/project/.atomic/sessions/.gitignore"), u64::MAX).unwrap(),
        b"*\n"
    );
    disk.create_dir(Path::new("/project/docs")).unwrap();
    drop(create(&disk, "/project/docs/one"));
    assert!(!disk.exists(Path::new("/project/docs/.gitignore")).unwrap());
    assert_eq!(disk.read(Path::new("/project/docs/one/.gitignore"), u64::MAX).unwrap(), b"*\n");
}

#[test]
fn a_session_on_a_real_disk_is_for_the_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::default());
    let dir = folder.path().join("sessions/one");
    let mut session = create(&disk, &dir);
    session.write_summary(&summary()).unwrap();
    session.write_tasks(&[]).unwrap();
    session.append_progress("x", "x").unwrap();
    session.log_error("x", at()).unwrap();
    session.write_snapshot(&json!({})).unwrap();
    let mut waiting = vec![folder.path().join("sessions")];
    let mut seen = 0;
    while let Some(path) = waiting.pop() {
        let metadata = path.metadata().unwrap();
        let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(metadata.permissions().mode() & 0o7777, expected, "{}", path.display());
        if metadata.is_dir() {
            waiting.extend(std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
        }
        seen += 1;
    }
    assert!(seen >= 15, "{seen} files and folders");
}

#[test]
fn left_overs_of_a_crash_are_cleared_away() {
    let (_, disk) = memory();
    drop(create(&disk, DIR));
    for name in [".session.json.1.tmp", "checkpoints/.1.json.2.tmp", "blobs/.ab.3.tmp"] {
        disk.log(&path(name), b"half").unwrap();
    }
    drop(open(&disk, DIR).unwrap());
    for name in [".session.json.1.tmp", "checkpoints/.1.json.2.tmp", "blobs/.ab.3.tmp"] {
        assert!(!disk.exists(&path(name)).unwrap(), "{name}");
    }
}

#[test]
fn folders_somebody_deleted_are_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::default());
    let dir = folder.path().join("sessions/one");
    drop(create(&disk, &dir));
    std::fs::remove_dir(dir.join("checkpoints")).unwrap();
    let (mut session, _) = open(&disk, &dir).unwrap();
    session.write_snapshot(&json!({})).unwrap();
}

fn index() -> (Arc<dyn Disk>, Index) {
    let (_, disk) = memory();
    (Arc::clone(&disk), Index::new(disk, "/home/.atomic/sessions-index.jsonl".into()))
}

fn entry(id: &str, hour: u32) -> IndexEntry {
    IndexEntry {
        session: id.into(),
        dir: PathBuf::from("/project").join(id),
        workflow: "ralph".into(),
        created_at: Moment(format!("2026-11-15T{hour:02}:00:00Z").parse().unwrap()),
        prompt: "é".repeat(200),
        workspace: None,
        root: None,
        digest: None,
        folder: None,
        seal: None,
    }
}

#[test]
fn sessions_are_found_by_id_beginning_and_last() {
    let (disk, index) = index();
    assert!(matches!(index.find("last"), Err(FindError::NotFound { .. })));
    for (id, hour) in [("aa11", 10), ("ab22", 12), ("ab23", 11), ("ab2", 9)] {
        index.add(entry(id, hour)).unwrap();
    }
    let path = Path::new("/home/.atomic/sessions-index.jsonl");
    disk.log(path, b"garbage\n{\"session\":\"torn").unwrap();
    index.add(entry("cc44", 8)).unwrap();
    index.add(entry("cc44", 8)).unwrap();

    let listing = index.entries().unwrap();
    let ids: Vec<_> = listing.entries.iter().map(|e| e.session.as_str()).collect();
    assert_eq!((ids, listing.skipped), (vec!["ab22", "ab23", "aa11", "ab2", "cc44"], 2));
    assert_eq!(listing.entries[0].prompt, "é".repeat(120));

    let table = [
        ("aa11", "aa11"),
        ("aa", "aa11"),
        ("AA", "aa11"),
        ("last", "ab22"),
        ("ab2", "ab2"),
        ("ab", "! `ab` could be any of ab22, ab23, ab2; give more of the id"),
        ("zz", "! there is no session `zz`; `atomic sessions` lists those there are"),
        ("", "! there is no session ``; `atomic sessions` lists those there are"),
    ];
    for (asked, expected) in table {
        let found = match index.find(asked) {
            Ok(entry) => entry.session.to_string(),
            Err(error) => format!("! {error}"),
        };
        assert_eq!(found, expected, "asked for {asked:?}");
    }
}

#[test]
fn a_session_can_be_sent_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<Session>();
}
