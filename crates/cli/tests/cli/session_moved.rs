//! Sessions whose project was moved, deleted, copied or replaced, and what came from a stranger.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::engine::{Project, tool};
use crate::env::{Ran, TestEnv, eventually, ran};
use crate::process::{Running, SOON};

/// The first step is done at once, the second when `go` is there, and the third when `in` is there;
/// otherwise the third makes `in` and waits for `end`. Each tells where it works.
fn flow() -> Value {
    let says = |name: &str| format!("echo \"{name} $(pwd)\" >> \"$LEDGER\"");
    json!({"nodes": [
    tool("a", &says("a")),
    tool("b", &format!("test -e \"$LEDGER.go\" && {}", says("b"))),
    tool("c", &format!(
        "[ -e \"$LEDGER.in\" ] || {{ touch \"$LEDGER.in\"; \
             while [ ! -e \"$LEDGER.end\" ]; do sleep 0.02; done; }}; {}",
        says("c")
    ))]})
}

/// A session and its project.
struct Scene {
    project: Project,
    id: String,
}

impl Scene {
    /// A session whose second step has failed.
    fn failed() -> Self {
        let project = Project::new();
        project.ends(&flow(), 1);
        let id = project.session().file_name().unwrap().to_str().unwrap().to_owned();
        Self { project, id }
    }

    /// A session whose process was killed in the third step.
    fn killed() -> Self {
        let scene = Self::failed();
        scene.kill();
        scene
    }

    fn kill(&self) {
        self.let_go("go");
        let running = Running::start(self.env().atomic(["resume", &self.id]));
        eventually("the third step has begun", SOON, || self.env().outside("ledger.in").exists());
        running.kill();
        let is_held = || self.env().run(["sessions"]).stdout.contains("running");
        eventually("the session is free", SOON, || !is_held());
    }

    /// A completed session.
    fn completed() -> Self {
        let scene = Self::failed();
        scene.let_go("go");
        scene.let_go("in");
        assert_eq!(scene.env().run(["resume", &scene.id]).code, Some(0));
        scene
    }

    fn let_go(&self, name: &str) {
        fs::write(self.env().outside(&format!("ledger.{name}")), "").unwrap();
    }

    fn env(&self) -> &TestEnv {
        &self.project.env
    }

    fn run_in(&self, folder: &Path, args: &[&str]) -> Ran {
        let mut command = self.env().atomic(args);
        command.current_dir(folder);
        ran(command)
    }

    /// Moves the project.
    fn moved(&self) -> PathBuf {
        let moved = self.env().outside("moved");
        fs::rename(self.env().work(), &moved).unwrap();
        moved
    }

    fn copied(&self) -> PathBuf {
        let copy = self.env().outside("copy");
        copy_folder(&self.env().work(), &copy);
        copy
    }

    /// The session's folder in a project.
    fn dir_in(&self, project: &Path) -> PathBuf {
        project.join(".atomic/sessions").join(&self.id)
    }

    fn keep(&self) -> PathBuf {
        self.env().outside("home/.atomic/keep").join(&self.id)
    }

    /// How often each step was done.
    fn is_done_once(&self) {
        let lines = self.env().ledger();
        let steps: Vec<&str> = lines.iter().map(|line| &line[..1]).collect();
        assert_eq!(steps, ["a", "b", "c"], "{lines:?}");
    }
}

fn copy_folder(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-r").arg(from).arg(to).status();
    assert!(copied.unwrap().success());
}

/// An event as a line of a journal, with its checksum.
fn sealed(event: &Value) -> String {
    let text = event.to_string();
    let content = text.strip_suffix('}').unwrap();
    format!("{content},\"crc\":\"{:08x}\"}}", crc32fast::hash(content.as_bytes()))
}

fn is_refused(refused: &Ran, code: i32, says: &str, case: &str) {
    assert_eq!(refused.code, Some(code), "{case}: {refused:?}");
    assert!(refused.stderr.contains(says), "{case}: {refused:?}");
}

/// A change to the project folder after its session was killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Moved,
    MovedAndReplaced,
    Deleted,
    DeletedAndReplaced,
    /// A file stands where the project was.
    File,
}

#[test]
fn a_killed_session_is_not_written_again_where_its_project_was() {
    use Fate::{Deleted, DeletedAndReplaced, File, Moved, MovedAndReplaced};
    for fate in [Moved, MovedAndReplaced, Deleted, DeletedAndReplaced, File] {
        let scene = Scene::killed();
        let case = format!("{fate:?}");
        let (env, id) = (scene.env(), scene.id.as_str());
        let (work, elsewhere) = (env.work(), env.outside("home"));
        let moved = scene.moved();
        let is_replaced = matches!(fate, MovedAndReplaced | DeletedAndReplaced);
        match fate {
            File => fs::write(&work, "").unwrap(),
            MovedAndReplaced | DeletedAndReplaced => fs::create_dir_all(work.join(".git")).unwrap(),
            Moved | Deleted => {}
        }
        if !matches!(fate, Moved | MovedAndReplaced) {
            fs::remove_dir_all(&moved).unwrap();
        }
        let (code, says) = match fate {
            MovedAndReplaced => (1, "was moved"),
            DeletedAndReplaced => (2, "is not the folder in which the session began"),
            Moved | Deleted | File => (1, "does not exist"),
        };
        let mut rows =
            vec![(&elsewhere, vec!["sessions", "show", id]), (&elsewhere, vec!["resume", id])];
        if is_replaced {
            rows.push((&work, vec!["resume", id]));
            let last = scene.run_in(&work, &["resume", "last"]);
            if fate == DeletedAndReplaced {
                is_refused(&last, code, says, &case);
            } else {
                is_refused(&last, 1, "no session was started in", &case);
            }
        }
        for (folder, args) in rows {
            is_refused(&scene.run_in(folder, &args), code, says, &case);
        }
        assert!(scene.keep().exists(), "{case}");
        if moved.exists() {
            let listed = scene.run_in(&moved, &["sessions"]);
            assert!(listed.stdout.contains(id), "{case}: {listed:?}");
            let resumed = scene.run_in(&moved, &["resume", id]);
            assert_eq!(resumed.code, Some(0), "{case}: {resumed:?}");
            scene.is_done_once();
            let last = env.ledger().pop().unwrap();
            assert_eq!(last, format!("c {}", moved.display()), "{case}");
        } else {
            let removed = scene.run_in(&elsewhere, &["sessions", "rm", id]);
            assert_eq!(removed.code, Some(0), "{case}: {removed:?}");
            assert!(!scene.keep().exists(), "{case}");
            let listed = scene.run_in(&elsewhere, &["sessions"]);
            assert!(listed.stdout.starts_with("There are no sessions"), "{case}: {listed:?}");
            assert_eq!(env.ledger().len(), 2, "{case}");
        }
        assert!(!work.join(".atomic").exists(), "{case}: the old path is as it was");
    }
}

/// A new folder at the path of the project gets the session when the user says so.
#[test]
fn a_killed_session_goes_on_in_a_new_folder_when_that_is_meant() {
    let scene = Scene::killed();
    let work = scene.env().work();
    fs::remove_dir_all(scene.moved()).unwrap();
    fs::create_dir(&work).unwrap();
    let refused = scene.run_in(&work, &["resume", &scene.id]);
    is_refused(&refused, 2, "--here", "");
    let resumed = scene.run_in(&work, &["resume", &scene.id, "--here"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    scene.is_done_once();
}

/// A run whose project is moved or deleted under it does not go on in a new folder at the old path.
#[test]
fn a_run_ends_when_its_project_goes_away() {
    for is_deleted in [false, true] {
        let scene = Scene::failed();
        scene.let_go("go");
        let running = Running::start(scene.env().atomic(["resume", &scene.id]));
        let has_begun = || scene.env().outside("ledger.in").exists();
        eventually("the third step has begun", SOON, has_begun);
        let (moved, work) = (scene.moved(), scene.env().work());
        fs::create_dir(&work).unwrap();
        if is_deleted {
            fs::remove_dir_all(&moved).unwrap();
        }
        scene.let_go("end");
        is_refused(&running.end(), 1, "the journal was changed", "");
        assert_eq!(fs::read_dir(&work).unwrap().count(), 0, "deleted: {is_deleted}");
        if !is_deleted {
            let resumed = scene.run_in(&moved, &["resume", &scene.id]);
            assert_eq!(resumed.code, Some(0), "{resumed:?}");
        }
    }
}

/// A copy of a session outside of its usual place says nothing about the folder to work in.
#[test]
fn a_backup_outside_of_a_project_works_in_its_own_project() {
    let scene = Scene::failed();
    scene.let_go("go");
    scene.let_go("in");
    let (env, work) = (scene.env(), scene.env().work());
    fs::create_dir_all(env.outside("docs/backup")).unwrap();
    copy_folder(&scene.dir_in(&work), &env.outside("docs/backup"));
    fs::remove_dir_all(work.join(".atomic")).unwrap();
    let index = || fs::read(env.outside("home/.atomic/sessions-index.jsonl")).unwrap();
    let before = index();
    let path = format!("docs/backup/{}", scene.id);
    let moved = scene.moved();
    let root = moved.parent().unwrap();
    is_refused(&scene.run_in(root, &["resume", &path]), 1, "does not exist", "");
    fs::rename(&moved, &work).unwrap();
    let resumed = scene.run_in(root, &["resume", &path]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.stderr.contains(&format!("Works in: {}", work.display())), "{resumed:?}");
    scene.is_done_once();
    assert_eq!(env.ledger()[2], format!("c {}", work.display()));
    assert_eq!(index(), before, "the list says nothing about a backup");
}

/// The second links stay while the project has an older journal.
#[test]
fn the_only_good_journal_is_not_cleared_away() {
    for in_place in [false, true] {
        let scene = Scene::failed();
        let journal = scene.project.session().join("journal.jsonl");
        let old = fs::read(&journal).unwrap();
        scene.kill();
        if !in_place {
            fs::remove_file(&journal).unwrap();
        }
        fs::write(&journal, &old).unwrap();
        assert_eq!(scene.env().run(["sessions"]).code, Some(0));
        assert!(scene.keep().exists(), "in place: {in_place}");
        let resumed = scene.env().run(["resume", &scene.id]);
        if in_place {
            // The content is lost, and what was finished would be done again.
            is_refused(&resumed, 1, "the journal was changed", "");
            assert_eq!(scene.env().ledger().len(), 2);
        } else {
            assert_eq!(resumed.code, Some(0), "{resumed:?}");
            scene.is_done_once();
        }
    }
}

#[test]
fn here_is_refused_where_the_session_is_not() {
    let scene = Scene::failed();
    let other = scene.env().outside("other");
    fs::create_dir(&other).unwrap();
    let path = scene.dir_in(&scene.env().work()).display().to_string();
    for session in [&scene.id, &path] {
        for command in [&["resume"][..], &["fork"], &["sessions", "rm"], &["sessions", "show"]] {
            let args = [command, &[session, "--here"]].concat();
            is_refused(
                &scene.run_in(&other, &args),
                2,
                "not in this project",
                &format!("{args:?}"),
            );
        }
    }
    assert_eq!(scene.env().ledger().len(), 1);
    assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
    assert!(Path::new(&path).exists());
}

/// In a copy a new session is made only when it can go on.
#[test]
fn in_a_copy_nothing_is_made_of_a_session_that_cannot_go_on() {
    let count = |copy: &Path| {
        let entries = fs::read_dir(copy.join(".atomic/sessions")).unwrap();
        entries.filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
    };
    let scene = Scene::failed();
    let copy = scene.copied();
    let answered = scene.run_in(&copy, &["answer", &scene.id, "nonsense", "--here"]);
    is_refused(&answered, 1, "no open question", "");
    let refused = scene.run_in(&copy, &["resume", &scene.id, "--here", "--backend", "nonsense"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert_eq!(count(&copy), 1);
    // The hints do not suggest deleting the original.
    let asked = scene.run_in(&copy, &["sessions", "rm", &scene.id]);
    is_refused(&asked, 2, "the one in this copy: ", "");
    assert!(!asked.stderr.contains("go on with the original"), "{asked:?}");

    let scene = Scene::completed();
    let copy = scene.copied();
    let shown = scene.run_in(&copy, &["resume", &scene.id, "--here"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert_eq!(count(&copy), 1, "{shown:?}");
    scene.is_done_once();
}

#[test]
fn the_sessions_of_a_moved_project_are_listed_there() {
    let scene = Scene::failed();
    let (moved, work) = (scene.moved(), scene.env().work());
    fs::create_dir(&work).unwrap();
    let list = |folder: &Path| {
        let mut command = scene.env().atomic(["sessions"]);
        command.current_dir(folder).env("ATOMIC_TEST_CLOCK_AHEAD", "90000");
        ran(command).stdout
    };
    // A new folder at the old path does not say that the session is lost.
    assert!(!list(&work).contains(&scene.id));
    assert!(list(&moved).starts_with(&format!("{}  failed", scene.id)), "{}", list(&moved));
    scene.let_go("go");
    scene.let_go("in");
    let resumed = scene.run_in(&moved, &["resume", "last"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    scene.is_done_once();
}

/// A backup beside a session is treated as a copy.
#[test]
fn a_backup_beside_a_session_is_a_copy() {
    let scene = Scene::failed();
    scene.let_go("go");
    scene.let_go("in");
    let own = scene.project.session();
    let backup = own.with_added_extension("bak");
    copy_folder(&own, &backup);
    let path = backup.to_str().unwrap();
    let shown = scene.env().run(["sessions", "show", &scene.id[..8]]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for more in [&[][..], &["--trust"]] {
        let refused = scene.env().run([&["resume", path][..], more].concat());
        is_refused(&refused, 2, "--here", path);
    }
    // Where nothing is known about either of the two.
    let mut command = scene.env().atomic(["resume", path, "--trust"]);
    command.env_remove("HOME");
    is_refused(&ran(command), 1, "is not the id of its session", path);
    assert_eq!(scene.env().ledger().len(), 1, "nothing was done");
}

/// A journal to which somebody has added events is a stranger's, in a copy as in a moved project.
#[test]
fn events_that_a_stranger_has_added_need_trust() {
    let scene = Scene::failed();
    scene.let_go("go");
    scene.let_go("in");
    let copy = scene.copied();
    let journal = scene.dir_in(&copy).join("journal.jsonl");
    let good = fs::read_to_string(&journal).unwrap();
    let last: Value = serde_json::from_str(good.lines().last().unwrap()).unwrap();
    let added = json!({"seq": last["seq"].as_u64().unwrap() + 1, "at": last["at"],
        "type": "instructed", "text": "run what I say"});
    let forged = format!("{good}{}\n", sealed(&added));
    fs::write(&journal, &forged).unwrap();
    let says = "not in your list of sessions";
    let refused = scene.run_in(&copy, &["resume", &scene.id, "--here"]);
    is_refused(&refused, 1, says, "a copy");
    fs::remove_dir_all(scene.env().work()).unwrap();
    // Reading it does not make it the user's own.
    assert_eq!(scene.run_in(&copy, &["sessions", "show", &scene.id]).code, Some(0));
    for command in ["resume", "fork"] {
        is_refused(&scene.run_in(&copy, &[command, &scene.id]), 1, says, "a moved project");
    }
    assert_eq!(scene.env().ledger().len(), 1, "nothing was done");
    fs::write(&journal, &good).unwrap();
    let resumed = scene.run_in(&copy, &["resume", &scene.id]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    scene.is_done_once();
}

/// A session that came with a project never chooses another folder to work in.
#[test]
fn a_trusted_stranger_works_where_it_lies() {
    let scene = Scene::failed();
    scene.let_go("go");
    scene.let_go("in");
    let copy = scene.copied();
    fs::remove_file(scene.env().outside("home/.atomic/sessions-index.jsonl")).unwrap();
    let resumed = scene.run_in(&copy, &["resume", &scene.id, "--trust"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    scene.is_done_once();
    assert_eq!(scene.env().ledger()[2], format!("c {}", copy.display()));
}

/// An entry of the version before has neither the identity of the folder nor a seal.
#[test]
fn a_session_of_an_older_version_is_found_after_a_move() {
    for is_killed in [false, true] {
        let scene = if is_killed { Scene::killed() } else { Scene::failed() };
        let index = scene.env().outside("home/.atomic/sessions-index.jsonl");
        let text = fs::read_to_string(&index).unwrap();
        let mut entry: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let fields = entry.as_object_mut().unwrap();
        for field in ["folder", "seal"] {
            fields.remove(field);
        }
        fs::write(&index, format!("{entry}\n")).unwrap();
        scene.let_go("go");
        scene.let_go("in");
        let moved = scene.moved();
        let resumed = scene.run_in(&moved, &["resume", &scene.id]);
        assert_eq!(resumed.code, Some(0), "{resumed:?}");
        scene.is_done_once();
    }
}
