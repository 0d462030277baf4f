//! A stand for runs: a disk that forgets what was not synced, a clock that is set by hand, the
//! scripted Ralph, and a ledger of what was really done.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_backend::Backend;
use atomic_backend::guard::Guard;
use atomic_backend::script::{FileSource, Format, Script, ScriptBackend};
use atomic_event::{Answer, Intent, Question, QuestionId};
use atomic_runner::{
    Clock, OnQuestion, OtherBackends, Outcome, ResumeOptions, Run, RunError, Settings, Show, Stage,
    StartRequest,
};
use atomic_session::{
    Disk as _, InboxAnswer, MemoryDisk, Session, SessionError, SessionSummary, TaskRow,
    leave_answer,
};
use atomic_testing::clock::SetClock;
use atomic_testing::ledger::{Ledger, LedgerBackend};
use atomic_testing::ralph_script::{ANSWER, Flaw, GATE, asking_ralph, script};
use atomic_workflow::Workflow;
use serde_json::Value;
use tokio::sync::mpsc;

const SESSIONS: &str = ".ralph/sessions";

/// Everything a run acts with, and what it left.
pub(crate) struct Stand {
    pub(crate) disk: MemoryDisk,
    pub(crate) clock: Arc<SetClock>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) settings: Settings,
    pub(crate) workflow: Workflow,
    script: Value,
    folder: Arc<tempfile::TempDir>,
}

/// How a session ended, without what may differ from run to run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finale {
    /// What the last fact says.
    pub(crate) ending: String,
    pub(crate) status: String,
    /// `id status` and the blockers, in order.
    pub(crate) tasks: Vec<String>,
    /// Steps that finished.
    pub(crate) finished: BTreeSet<String>,
    /// Steps that failed for good.
    pub(crate) failed: BTreeSet<String>,
    /// `answered` and `delivered` records.
    pub(crate) answers: [usize; 2],
    /// The headings of `progress.txt`, without the number of the iteration.
    pub(crate) progress: BTreeSet<String>,
    /// The files in the project.
    pub(crate) files: BTreeMap<String, String>,
}

impl Finale {
    /// What is not as `expected`.
    pub(crate) fn differences(&self, expected: &Self) -> Vec<String> {
        let parts = |finale: &Self| {
            [
                ("ending", format!("{} {}", finale.ending, finale.status)),
                ("tasks", format!("{:?}", finale.tasks)),
                ("finished", format!("{:?}", finale.finished)),
                ("failed", format!("{:?}", finale.failed)),
                ("answers", format!("{:?}", finale.answers)),
                ("files", format!("{:?}", finale.files)),
            ]
        };
        let pairs = parts(self).into_iter().zip(parts(expected));
        let differing = pairs.filter(|((_, is), (_, should))| is != should);
        let differing =
            differing.map(|((what, is), (_, should))| format!("{what}: {is}, not {should}"));
        // A power cut may leave a piece of an entry, but it takes none away for good.
        let missing = expected.progress.difference(&self.progress);
        differing.chain(missing.map(|entry| format!("progress.txt has no {entry:?}"))).collect()
    }
}

impl Stand {
    /// The scripted Ralph, without checks: no process is started at all.
    pub(crate) fn new() -> Self {
        Self::playing(script(Flaw::Reported, 0))
    }

    /// The scripted Ralph with a check, which finds the bug.
    pub(crate) fn with_gate() -> Self {
        let mut stand = Self::playing(script(Flaw::FoundByGate, 0));
        let gate = format!("echo \"$ATOMIC_STEP\" >> ../gates\n{GATE}\n");
        fs::write(stand.folder.path().join("gate.sh"), gate).unwrap();
        stand.settings.checks = Some(vec!["sh ../gate.sh".to_owned()]);
        stand
    }

    /// A run of the scripted Ralph's workflow on another script.
    pub(crate) fn playing(script: Value) -> Self {
        let disk = MemoryDisk::new();
        let checks = Some(vec![]);
        let settings = Settings { checks, workers: Some(4), ..Settings::default() };
        let folder = Arc::new(tempfile::tempdir().unwrap());
        fs::create_dir(folder.path().join("work")).unwrap();
        Self {
            clock: Arc::new(SetClock::at("2026-11-15T10:00:00Z").unwrap()),
            ledger: Arc::new(Ledger::new(disk.clone(), SESSIONS)),
            workflow: asking_ralph("ralph"),
            disk,
            settings,
            script,
            folder,
        }
    }

    /// The same on another disk and with an empty ledger.
    pub(crate) fn beside(&self) -> Self {
        let disk = MemoryDisk::new();
        Self {
            ledger: Arc::new(Ledger::new(disk.clone(), SESSIONS)),
            clock: Arc::new(SetClock::at(&self.clock.now().to_string()).unwrap()),
            disk,
            settings: self.settings.clone(),
            workflow: self.workflow.clone(),
            script: self.script.clone(),
            folder: Arc::clone(&self.folder),
        }
    }

    /// The same on a disk that holds nothing but this journal, as after a power cut that left
    /// these bytes of it.
    pub(crate) fn with_journal(&self, journal: &[u8]) -> Self {
        let beside = self.beside();
        let dir = self.session().unwrap();
        beside.disk.create_dir(&dir).unwrap();
        beside.disk.replace(&dir.join("journal.jsonl"), journal).unwrap();
        beside
    }

    /// The journal as it is.
    pub(crate) fn journal(&self) -> Vec<u8> {
        self.disk.read(&self.session().unwrap().join("journal.jsonl"), u64::MAX).unwrap()
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn stage(&self) -> Stage {
        let guard = Guard::new(env!("CARGO_BIN_EXE_guard-host").into());
        let no_files = FileSource::Embedded(&[]);
        let script = Script::parse(&self.script.to_string(), Format::Json, &no_files).unwrap();
        let script: Arc<dyn Backend> = Arc::new(ScriptBackend::new(script, guard.clone()));
        Stage {
            disk: Arc::new(self.disk.clone()),
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            backend: Arc::new(LedgerBackend::new(script, Arc::clone(&self.ledger))),
            others: OtherBackends::default(),
            guard,
            registry: Arc::new(atomic_registry::Registry::embedded()),
            index: None,
            holder: "a test".to_owned(),
            version: "0.1.0".to_owned(),
        }
    }

    pub(crate) fn start(&self) -> Result<(Run, Show), RunError> {
        Run::start(self.stage(), self.request())
    }

    pub(crate) fn request(&self) -> StartRequest {
        StartRequest {
            workflow: self.workflow.clone(),
            prompt: "Write the files".to_owned(),
            workspace: self.work(),
            model: None,
            settings: self.settings.clone(),
        }
    }

    pub(crate) fn resume(&self, dir: &Path) -> Result<(Run, Show), RunError> {
        let options = ResumeOptions::default();
        let find = |_: &str| Ok(self.workflow.clone());
        Run::resume(self.stage(), dir.to_owned(), options, find, |_| {})
    }

    /// The session that was begun, if there is one; those that never were do not count.
    pub(crate) fn session(&self) -> Option<PathBuf> {
        let folder = self.work().join(SESSIONS);
        let names = self.disk.list(&folder).unwrap_or_default();
        let mut begun = names.iter().map(|name| folder.join(name)).filter(|dir| {
            let facts = Session::read_only(Arc::new(self.disk.clone()), dir);
            facts.is_ok_and(|mut facts| facts.next().is_some_and(|fact| fact.is_ok()))
        });
        begun.next()
    }

    /// One process: starts the session or takes it up again, drives it until it stops, and leaves
    /// the answers to the questions it stopped at.
    pub(crate) async fn live(&self) -> Result<Outcome, RunError> {
        let (run, show) = match self.session() {
            Some(dir) => self.resume(&dir)?,
            None => self.start()?,
        };
        let dir = run.dir().to_owned();
        let (wishes, intents) = mpsc::channel(16);
        let live_answers = self.settings.on_question == OnQuestion::Ask;
        let answering = live_answers.then(|| tokio::spawn(answer_live(show, wishes)));
        let ended = run.drive(intents).await;
        if let Some(answering) = answering {
            answering.abort();
        }
        let outcome = ended?.outcome;
        if let Outcome::Waiting(questions) = &outcome {
            self.answer(&dir, questions)?;
        }
        Ok(outcome)
    }

    fn answer(&self, dir: &Path, open: &[(QuestionId, Question)]) -> Result<(), SessionError> {
        for (id, _) in open {
            let left = InboxAnswer { question: Some(id.clone()), given: vec![ANSWER.to_owned()] };
            leave_answer(&self.disk, dir, &left)?;
        }
        Ok(())
    }

    /// One process after the other until the session has ended.
    pub(crate) async fn see_through(&self) -> Result<Finale, RunError> {
        loop {
            match self.live().await {
                Ok(Outcome::Waiting(_)) => {}
                Ok(_) => break,
                // The power went between the last fact and the end of the process.
                Err(RunError::Refused(why)) if why.contains("is completed") => break,
                Err(error) => return Err(error),
            }
        }
        // Whatever was to happen to the disk happens no more.
        self.disk.kill();
        Ok(self.finale())
    }

    /// The facts of the session as they are in the journal.
    pub(crate) fn facts(&self) -> Vec<Value> {
        String::from_utf8(self.journal())
            .unwrap()
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    pub(crate) fn finale(&self) -> Finale {
        let dir = self.session().unwrap();
        let facts = self.facts();
        let steps = |kind: &str| {
            let of_kind = facts.iter().filter(|fact| fact["type"] == kind);
            of_kind.map(|fact| fact["step"].as_str().unwrap().to_owned()).collect()
        };
        let count = |kind: &str| facts.iter().filter(|fact| fact["type"] == kind).count();
        let summary = SessionSummary::read(&self.disk, &dir).unwrap();
        // Not every workflow has tasks.
        let tasks = self.disk.read(&dir.join("tasks.json"), u64::MAX).ok();
        let tasks: Vec<TaskRow> =
            tasks.map(|tasks| serde_json::from_slice(&tasks).unwrap()).unwrap_or_default();
        let row = |task: &TaskRow| format!("{} {:?} {:?}", task.id, task.status, task.blocked_by);
        let progress = self.disk.read(&dir.join("progress.txt"), u64::MAX).unwrap_or_default();
        let progress = String::from_utf8_lossy(&progress);
        Finale {
            ending: facts.last().unwrap()["ending"].to_string(),
            status: format!("{:?}", summary.status),
            tasks: tasks.iter().map(row).collect(),
            finished: steps("step_finished"),
            failed: steps("step_failed"),
            answers: [count("question_answered"), count("answer_delivered")],
            progress: progress.lines().filter(|l| l.starts_with('#')).map(unnumbered).collect(),
            files: files_in(&self.work()),
        }
    }

    /// What is wrong with what was done, by the ledger and the journal: nothing may be done whose
    /// start is not on disk, nothing twice, nothing again whose finish is on disk; and where a
    /// step was begun again, the journal says why and how.
    pub(crate) fn misdeeds(&self) -> Vec<String> {
        let mut wrong = self.ledger.violations();
        let mut performed = self.ledger.opened();
        performed.extend(self.gates_run());
        if performed.is_empty() {
            return wrong;
        }
        let facts = self.facts();
        let has = |kind: &str, step: &str, attempt: u64| {
            let is = |fact: &&Value| {
                fact["type"] == kind && fact["step"] == step && fact["attempt"] == attempt
            };
            facts.iter().any(|fact| is(&fact))
        };
        let mut seen = BTreeSet::new();
        for (step, attempt) in &performed {
            if !seen.insert((step, attempt)) {
                wrong.push(format!("{step}/{attempt} was performed twice"));
            }
            if !has("step_started", step, u64::from(*attempt)) {
                wrong.push(format!("{step}/{attempt} was performed and left no start"));
            }
        }
        for fact in facts.iter().filter(|fact| fact["type"] == "step_started") {
            let (step, attempt) =
                (fact["step"].as_str().unwrap(), fact["attempt"].as_u64().unwrap());
            let how = fact["how"].as_str().unwrap();
            let again = ["continued", "run_again"].contains(&how);
            if again != (attempt > 1) || again != has("step_lost", step, attempt - 1) {
                wrong.push(format!("{step}/{attempt} was started as {how}"));
            }
        }
        wrong
    }

    /// The steps of the checks that were really run.
    fn gates_run(&self) -> Vec<(String, u32)> {
        let text = fs::read_to_string(self.folder.path().join("gates")).unwrap_or_default();
        text.lines()
            .map(|marker| {
                let (_, rest) = marker.split_once('/').unwrap();
                let (step, attempt) = rest.rsplit_once('/').unwrap();
                (step.to_owned(), attempt.parse().unwrap())
            })
            .collect()
    }
}

/// Answers every question as soon as it is shown.
async fn answer_live(mut show: Show, wishes: mpsc::Sender<Intent>) {
    use atomic_event::Event;
    use atomic_runner::Shown;
    while let Some(shown) = show.next().await {
        let Shown::Fact(fact) = shown else { continue };
        let question = if let Event::QuestionAsked { id, .. } = &fact.event {
            id.clone()
        } else if let Event::SessionResumed(_) = &fact.event {
            // One that was asked before a crash is still open.
            QuestionId::from("q1")
        } else {
            continue;
        };
        // Twice, as somebody impatient may do: the second must not count.
        for given in [ANSWER, "Red"] {
            let answer = Answer { chosen: vec![given.to_owned()] };
            let _ = wishes.send(Intent::Answer { question: question.clone(), answer }).await;
        }
    }
}

/// Runs a test's body as one process would: on one thread, so that two runs do the same.
pub(crate) fn on_one_thread<T>(body: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(body)
}

/// `## Iteration 3 — #1: …` without its number: which comes first is for the workers to decide.
fn unnumbered(heading: &str) -> String {
    heading.split_once(" — ").map_or(heading, |(_, task)| task).to_owned()
}

fn files_in(folder: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            files.insert(name, fs::read_to_string(path).unwrap());
        }
    }
    files
}
