//! One scene, killed and taken up again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::crash_rules::{self as rules, Kill};
use crate::crash_scene::Scene;
use crate::env::{TestEnv, eventually};
use crate::process::SOON;

const SIGKILL: i32 = 9;

/// Nothing here takes a tenth of this.
const PATIENCE: Duration = Duration::from_secs(240);

/// A scene under way, or over.
pub(crate) struct Case<'s> {
    scene: &'s Scene,
    pub(crate) env: TestEnv,
    pub(crate) kills: Vec<Kill>,
    /// For whoever has to find out why a test has failed.
    name: String,
}

/// What a scene comes to when nobody disturbs it.
pub(crate) struct Model {
    files: BTreeMap<PathBuf, Vec<u8>>,
    tasks: Option<String>,
    progress: Vec<String>,
    finished: BTreeSet<String>,
    /// The ledger: what was begun, and how often.
    pub(crate) begun: BTreeMap<(String, String), usize>,
    questions: usize,
    pub(crate) duration: Duration,
}

impl<'s> Case<'s> {
    pub(crate) fn new(scene: &'s Scene, name: impl Into<String>) -> Self {
        Self { scene, env: TestEnv::new(), kills: vec![], name: name.into() }
    }

    /// Runs the scene to its end. `to_the_end` starts it, and may have to do more.
    pub(crate) fn model(scene: &'s Scene, to_the_end: impl FnOnce(&Self)) -> Model {
        let case = Self::new(scene, "undisturbed");
        let begun_at = Instant::now();
        to_the_end(&case);
        let duration = begun_at.elapsed();
        let facts = case.facts();
        let story = rules::story(&facts);
        rules::check_ledger(&story, &case.env.ledger());
        let begun = rules::begun(&case.env.ledger());
        Model {
            files: case.files(),
            tasks: case.tasks(),
            progress: case.progress(),
            begun,
            finished: rules::finished(&story),
            questions: facts.iter().filter(|fact| fact["type"] == "question_asked").count(),
            duration,
        }
    }

    /// `atomic run` of the scene.
    pub(crate) fn run(&self) -> Command {
        self.logged(self.scene.run(&self.env))
    }

    /// `atomic resume last`.
    pub(crate) fn resume(&self) -> Command {
        self.logged(self.env.atomic(["resume", "last"]))
    }

    fn logged(&self, mut command: Command) -> Command {
        command.env("ATOMIC_FAILPOINT_LOG", self.env.outside("hits"));
        command
    }

    /// Runs a command that must end with this exit code.
    pub(crate) fn ends(&self, command: Command, code: i32) {
        let (status, said) = self.ended(command);
        assert_eq!(status.code(), Some(code), "{}: {status}\n{said}", self.name);
    }

    /// Runs a command to its end, and returns what it said.
    pub(crate) fn ended(&self, command: Command) -> (ExitStatus, String) {
        let what = format!("{command:?}");
        let mut child = self.spawn(command);
        let begun_at = Instant::now();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return (status, self.said());
            }
            if begun_at.elapsed() > PATIENCE {
                let _evidence = Evidence(self);
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("{}: {what} does not end\n{}", self.name, self.said());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Runs a command that dies at the `n`-th hit of a fail-point, and says whether it did.
    pub(crate) fn dies_at(&mut self, mut command: Command, point: &str, n: usize) -> bool {
        self.forget_hits();
        command.env("ATOMIC_FAILPOINT", format!("{point}:{n}"));
        let (status, said) = self.ended(command);
        if status.signal() == Some(SIGKILL) {
            return true;
        }
        // Facts are batched by who comes first, so a run may have fewer appends than another.
        let hits = self.hits().get(point).copied().unwrap_or(0);
        assert!(hits < n, "{} was passed {hits} times: {status}\n{said}", self.name);
        assert!(matches!(status.code(), Some(0 | 3)), "{}: {status}\n{said}", self.name);
        false
    }

    /// Runs a command and kills it after `delay`, unless it has ended; says whether it was killed.
    pub(crate) fn dies_after(&mut self, command: Command, delay: Duration) -> bool {
        let mut child = self.spawn(command);
        std::thread::sleep(delay);
        child.kill().unwrap();
        let status = child.wait().unwrap();
        let (killed, done) = (status.signal() == Some(SIGKILL), status.success());
        assert!(killed || done, "{}: {status}\n{}", self.name, self.said());
        killed
    }

    /// Starts a command; what it says is kept.
    pub(crate) fn spawn(&self, mut command: Command) -> Child {
        let said = File::create(self.env.outside("said")).unwrap();
        command.stdout(said.try_clone().unwrap()).stderr(said).spawn().unwrap()
    }

    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.env.outside("said")).unwrap()
    }

    /// Takes down how things stand after a kill. When `patient`, only once everything that the
    /// program had started is gone, which must not take long. Says whether there is a session to
    /// be taken up.
    pub(crate) fn note_kill(&mut self, patient: bool) -> bool {
        let facts = self.facts();
        if patient {
            self.nothing_survives();
        }
        // Before the first fact nothing may have been started, and with it the session is in the
        // list.
        if facts.is_empty() {
            assert_eq!(self.env.ledger(), Vec::<String>::new(), "{}", self.name);
            return false;
        }
        let list = fs::read(self.env.outside("home/.atomic/sessions-index.jsonl"));
        assert!(!list.unwrap_or_default().is_empty(), "{} is in no list: {facts:?}", self.name);
        let ledger = patient.then(|| self.env.ledger());
        self.kills.push(Kill { facts, ledger });
        true
    }

    /// Takes the session up and sees it through.
    pub(crate) fn resume_to_the_end(&self) {
        // Of one that is over the result is shown, and its files are as they should be then.
        self.ends(self.resume(), 0);
    }

    /// Nothing that knows this place runs any more, soon.
    pub(crate) fn nothing_survives(&self) {
        let what = format!("{}: everything it had started is gone", self.name);
        eventually(&what, SOON, || self.processes().is_empty());
    }

    /// The processes that were told of this place, each with its arguments.
    pub(crate) fn processes(&self) -> Vec<(u32, String)> {
        let place = self.env.outside("ledger").into_os_string().into_encoded_bytes();
        let told = |process: fs::DirEntry| {
            let id = process.file_name().to_str()?.parse().ok()?;
            let environment = fs::read(process.path().join("environ")).ok()?;
            let told = environment.windows(place.len()).any(|part| part == place);
            let arguments = fs::read(process.path().join("cmdline")).unwrap_or_default();
            told.then(|| (id, String::from_utf8_lossy(&arguments).replace('\0', " ")))
        };
        fs::read_dir("/proc").unwrap().flatten().filter_map(told).collect()
    }

    /// Everything that must be so at the end, whatever happened before.
    pub(crate) fn check(&self, model: &Model) {
        let _evidence = Evidence(self);
        let (facts, ledger) = (self.facts(), self.env.ledger());
        self.check_rules(&facts, &ledger);
        rules::check_questions(&facts, model.questions);
        assert_eq!(rules::finished(&rules::story(&facts)), model.finished);
        let begun: BTreeSet<_> = rules::begun(&ledger).into_keys().collect();
        assert_eq!(begun, model.begun.keys().cloned().collect());
        assert_eq!(self.tasks(), model.tasks);
        assert_eq!(self.progress(), model.progress);
        assert_eq!(self.files(), model.files);
    }

    /// What must be so even when nobody knows how it would have gone without a kill.
    pub(crate) fn check_rules(&self, facts: &[Value], ledger: &[String]) {
        self.nothing_survives();
        let last = facts.last().unwrap();
        assert_eq!(last["type"], "run_finished");
        assert_eq!(last["ending"]["kind"], "completed");
        let summary = fs::read_to_string(self.session().unwrap().join("session.json")).unwrap();
        let summary: Value = serde_json::from_str(&summary).unwrap();
        assert_eq!(summary["status"], "completed");
        rules::check_ledger(&rules::story(facts), ledger);
        for kill in &self.kills {
            rules::check_kill(kill, facts);
        }
        if let Some(kill) = self.kills.last() {
            rules::check_last_kill(kill, facts, ledger);
        }
        rules::check_losses(&self.kills, facts);
    }

    /// The folder of the only session, if there is one yet.
    pub(crate) fn session(&self) -> Option<PathBuf> {
        let folder = fs::read_dir(self.env.work().join(self.scene.sessions)).ok()?;
        let mut folders = folder.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
        let session = folders.next()?;
        assert_eq!(folders.next(), None, "{}: there are two sessions", self.name);
        Some(session)
    }

    /// The facts that are on disk; a line that was cut off is none. A worker may have deleted the
    /// session's folder just before the kill: then only the second link of the journal is left.
    pub(crate) fn facts(&self) -> Vec<Value> {
        let journal = self.session().and_then(|dir| fs::read(dir.join("journal.jsonl")).ok());
        let kept = || {
            let keep = fs::read_dir(self.env.outside("home/.atomic/keep")).ok()?;
            keep.flatten().find_map(|dir| fs::read(dir.path().join("journal.jsonl")).ok())
        };
        let journal = journal.or_else(kept).unwrap_or_default();
        let mut lines: Vec<_> = journal.split(|byte| *byte == b'\n').collect();
        let torn = lines.pop().and_then(|torn| serde_json::from_slice(torn).ok());
        let whole = lines.iter().map(|line| serde_json::from_slice(line).unwrap());
        whole.chain(torn).collect()
    }

    /// Whether an answer is on disk, taken in or not.
    pub(crate) fn has_answer(&self) -> bool {
        let inbox = fs::read_dir(self.session().unwrap().join("inbox")).unwrap();
        let is_answer = |name: &std::ffi::OsStr| !name.as_encoded_bytes().starts_with(b".");
        inbox.flatten().any(|entry| is_answer(&entry.file_name()))
            || self.facts().iter().any(|fact| fact["type"] == "question_answered")
    }

    fn tasks(&self) -> Option<String> {
        fs::read_to_string(self.session().unwrap().join("tasks.json")).ok()
    }

    /// The headings in `progress.txt`. What runs side by side is in any order, so iterations are
    /// without their numbers, which are there once each.
    fn progress(&self) -> Vec<String> {
        let path = self.session().unwrap().join("progress.txt");
        let text = fs::read_to_string(path).unwrap_or_default();
        let (mut lines, mut numbers) = (vec![], vec![]);
        for line in text.lines().filter(|line| line.starts_with('#')) {
            let iteration = line.strip_prefix("## Iteration ").and_then(|it| it.split_once(" — "));
            lines.push(iteration.map_or(line, |(_, task)| task).to_owned());
            numbers.extend(iteration.map(|(number, _)| number.parse::<usize>().unwrap()));
        }
        lines.sort();
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>(), "{}", self.name);
        lines
    }

    /// Every file in the project that is not the session's or made by cargo or git.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let work = self.env.work();
        let mut folders = vec![work.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let inside = path.strip_prefix(&work).unwrap().to_owned();
                let ours = [".ralph", ".atomic", "target", ".git"];
                let ours = ours.iter().any(|name| inside.starts_with(name));
                match path.is_dir() {
                    _ if ours => {}
                    true => folders.push(path),
                    false => drop(files.insert(inside, fs::read(path).unwrap())),
                }
            }
        }
        files
    }

    /// How often each fail-point was passed.
    pub(crate) fn hits(&self) -> BTreeMap<String, usize> {
        let text = fs::read_to_string(self.env.outside("hits")).unwrap_or_default();
        let mut hits = BTreeMap::new();
        for name in text.lines() {
            *hits.entry(name.to_owned()).or_default() += 1;
        }
        hits
    }

    /// Counts from here on.
    pub(crate) fn forget_hits(&self) {
        let _ = fs::remove_file(self.env.outside("hits"));
    }
}

/// Prints how things stand when a check fails; the folder is about to be removed.
struct Evidence<'c, 's>(&'c Case<'s>);

impl Drop for Evidence<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Case { name, env, kills, .. } = self.0;
            let short = |fact: Value| fact.to_string().chars().take(300).collect::<String>();
            let facts: Vec<_> = self.0.facts().into_iter().map(short).collect();
            let killed: Vec<_> = kills.iter().map(|kill| kill.facts.len()).collect();
            eprintln!("--- {name}: killed after {killed:?} facts of\n{}", facts.join("\n"));
            eprintln!("--- the ledger:\n{}", env.ledger().join("\n"));
        }
    }
}

/// Does this for every item, a few at a time, until one fails.
pub(crate) fn side_by_side<T: Send>(items: Vec<T>, each: impl Fn(T) + Sync) {
    let next = AtomicUsize::new(0);
    let items: Vec<_> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let item = item.lock().unwrap().take().unwrap();
                    let stop = StopAll(&next, items.len());
                    each(item);
                    std::mem::forget(stop);
                }
            });
        }
    });
}

/// Dropped by a panic only: there is nothing to be learnt from a hundred more.
struct StopAll<'a>(&'a AtomicUsize, usize);

impl Drop for StopAll<'_> {
    fn drop(&mut self) {
        self.0.store(self.1, Ordering::Relaxed);
    }
}
