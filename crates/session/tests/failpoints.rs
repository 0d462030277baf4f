//! The places where a test can make the process die: that they do, and what is left.

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::sync::Arc;

    use atomic_event::{Created, Event, FORMAT, Moment, Origin};
    use atomic_session::{Disk, RealDisk, Session};
    use serde_json::json;

    const CHILD: &str = "ATOMIC_TEST_DIR";

    /// The same test is both processes: told a folder, it makes a session there.
    #[test]
    fn a_kill_leaves_exactly_what_was_written() {
        if let Some(dir) = std::env::var_os(CHILD) {
            return work(PathBuf::from(dir));
        }
        let table = [
            ("append.before:2", 0),
            ("append.fact:2", 1),
            ("append.fact:3", 2),
            ("append.fact:4", 3),
            ("append.written:2", 3),
            ("append.synced:2", 3),
            // The first two replaces are the one of `.gitignore`'s and the summary's.
            ("replace.before_rename:2", 3),
            ("replace.after_rename:2", 3),
        ];
        for (point, expected) in table {
            let folder = tempfile::tempdir().unwrap();
            let dir = folder.path().join("sessions/one");
            assert_eq!(run(&dir, point), Some(9), "{point} was not met");
            let disk: Arc<dyn Disk> = Arc::new(RealDisk::default());
            let (_, opened) = Session::open(disk, dir.clone(), "a test").unwrap();
            assert_eq!(opened.facts.len(), 1 + expected, "{point}");
            assert_eq!(opened.repaired, None, "{point}");
            assert_eq!(dir.join("session.json").exists(), point == "replace.after_rename:2");
        }
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(run(&folder.path().join("sessions/one"), "append.before:99"), None);
        let log = std::fs::read_to_string(folder.path().join("sessions/log")).unwrap();
        let appends: Vec<_> = log.lines().filter(|line| line.starts_with("append.")).collect();
        let fact = "append.fact";
        let (before, written, synced) = ("append.before", "append.written", "append.synced");
        let (first, second) =
            ([before, fact, written, synced], [before, fact, fact, fact, written, synced]);
        assert_eq!(appends, [&first[..], &second[..]].concat());
    }

    fn run(dir: &Path, point: &str) -> Option<i32> {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "tests::a_kill_leaves_exactly_what_was_written"]);
        child.env(CHILD, dir).env("ATOMIC_FAILPOINT", point);
        child.env("ATOMIC_FAILPOINT_LOG", dir.with_file_name("log"));
        let output = child.output().unwrap();
        assert!(output.status.success() || output.status.signal().is_some(), "{output:?}");
        output.status.signal()
    }

    fn work(dir: PathBuf) {
        let at = Moment("2026-11-15T10:00:00Z".parse().unwrap());
        let first = Event::SessionCreated(Box::new(Created {
            format: FORMAT,
            session: "0b7c".into(),
            version: String::new(),
            workflow: "ralph".into(),
            graph: json!({}),
            graph_hash: String::new(),
            prompt: String::new(),
            original_prompt: String::new(),
            workspace: PathBuf::new(),
            backend: "script".into(),
            model: None,
            settings: json!({}),
            state: [].into(),
            origin: Origin::default(),
        }));
        let (mut session, _) =
            Session::create(Arc::new(RealDisk::default()), dir, "a test", first, at).unwrap();
        let noted = |text: &str| Event::Noted { text: text.to_owned() };
        session.append(vec![noted("one"), noted("two"), noted("three")], at).unwrap();
        let summary = json!({
            "sessionId": "0b7c", "workflow": "ralph", "prompt": "", "originalPrompt": "",
            "status": "running", "createdAt": at, "lastUpdated": at, "iteration": 0,
            "backend": "script", "model": null, "tasks": {"done": 0, "total": 0}, "costUsd": null,
        });
        session.write_summary(&serde_json::from_value(summary).unwrap()).unwrap();
    }
}
