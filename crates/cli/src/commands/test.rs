//! `atomic test`: a workflow on scripted agents, in a folder of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use atomic_backend::guard::{Guard, Job};
use atomic_backend::script::Script;
use atomic_event::{Event, Intent};
use atomic_files::PROMPT_LIMIT;
use atomic_runner::{OnQuestion, Outcome, Run, Settings, Show, Shown, StartRequest, StreamMode};
use atomic_workflow::descriptor::Fault;
use atomic_workflow::typescript::hash_of;
use serde::Deserialize;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use crate::args::TestArgs;
use crate::catalog::Catalog;
use crate::failure::Failure;
use crate::gate::{CodeUnit, UntrustedCode};
use crate::{catalog, paint, settings, stage};

/// What a script says about the test it is for, under `test`.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Plan {
    /// What the workflow is asked to do.
    prompt: String,
    /// A command that prepares the folder.
    setup: Option<String>,
    /// Answers to questions, in the order in which they are asked.
    answers: Vec<String>,
    expect: Expected,
}

impl Default for Plan {
    fn default() -> Self {
        let prompt = "Test".to_owned();
        Self { prompt, setup: None, answers: vec![], expect: Expected::default() }
    }
}

/// What has to be the case in the end.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Expected {
    status: Status,
    /// Part of the message of a run that fails.
    error: Option<String>,
    /// Values of the state.
    state: BTreeMap<String, Value>,
    /// What nodes have returned.
    outputs: BTreeMap<String, Value>,
    /// Files, and a text that is in each.
    files: BTreeMap<String, String>,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    #[default]
    Completed,
    Failed,
    Waiting,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Waiting => "waiting",
        }
    }
}

/// What came of a run.
struct Finished {
    outcome: Outcome,
    /// The state it ended with.
    values: Value,
    /// The question for which there was no answer, and why.
    unanswered: Option<String>,
}

/// What a setup has printed last is enough to see why it failed.
const KEPT: usize = 16 * 1024;

/// Whether somebody wants us to stop. While a test has a folder, it is given the time to end its
/// processes and to remove it.
#[derive(Clone)]
struct Signals {
    /// The number of the signal.
    stopped: watch::Receiver<Option<u8>>,
    has_folder: Arc<AtomicBool>,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        let (stop, stopped) = watch::channel(None);
        let (stop, has_folder) = (Arc::new(stop), Arc::new(AtomicBool::new(false)));
        for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
            let (mut signals, number) = (signal(kind)?, kind.as_raw_value());
            let (stop, has_folder) = (Arc::clone(&stop), Arc::clone(&has_folder));
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    // Whoever asks twice does not want to wait; the guards end the rest.
                    let is_second = stop.send_replace(u8::try_from(number).ok()).is_some();
                    if is_second || !has_folder.load(Ordering::SeqCst) {
                        crate::exit(128 + number);
                    }
                }
            });
        }
        Ok(Self { stopped, has_folder })
    }

    /// The exit code after a signal has come.
    fn code(&self) -> Option<ExitCode> {
        self.stopped.borrow().map(|number| ExitCode::from(128 + number))
    }

    /// Returns once a signal has come.
    async fn come(mut self) {
        // The sender lives as long as the program.
        let _ = self.stopped.wait_for(Option::is_some).await;
    }
}

pub(crate) fn test(args: &TestArgs) -> Result<ExitCode, Failure> {
    let runtime = super::run::runtime()?;
    let signals = {
        let _inside = runtime.enter();
        Signals::listen()
            .map_err(|error| Failure::Failed(format!("signals cannot be caught: {error}")))?
    };
    let mut failed = 0;
    for file in &args.files {
        let began = Instant::now();
        let name = paint::label(&file.display().to_string());
        let result = tried(file, args, (&runtime, &signals));
        if let Some(code) = signals.code() {
            paint::line(&format!("{name}: stopped"));
            return Ok(code);
        }
        let wrong = result.unwrap_or_else(|failure| vec![failure.to_string()]);
        let time = paint::time(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
        if wrong.is_empty() {
            paint::line(&format!("{name}: ok ({time})"));
            continue;
        }
        failed += 1;
        paint::line(&format!("{name}: failed ({time})"));
        for line in wrong.iter().flat_map(|text| text.lines()) {
            paint::line(&paint::printable(&format!("  {line}")));
        }
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Everything that is not as expected.
fn tried(
    file: &Path,
    args: &TestArgs,
    (runtime, signals): (&Runtime, &Signals),
) -> Result<Vec<String>, Failure> {
    let project = catalog::here()?;
    let mut catalog = Catalog::open(&project, settings::trust_flag(args.trust));
    catalog.shelf.gate.untrusted = UntrustedCode::Prompt;
    let workflow = catalog.workflow(&file.display().to_string())?;
    let script = args.script.clone().map_or_else(|| script_of(file), Ok)?;
    let script = std::path::absolute(&script).unwrap_or(script);
    // Its turns and its preparation run commands, too.
    let text = atomic_files::read_text(&script, PROMPT_LIMIT).unwrap_or_default();
    let told = |faults: Vec<Fault>| {
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Failure::Failed(lines.join("\n"))
    };
    catalog.admit_documents(&workflow)?;
    let admitted = catalog.shelf.gate.admit(CodeUnit::plain(&script, &hash_of(&text)));
    admitted.map_err(told)?;
    let plan = plan_in(&script)?;
    let folder = Scratch::new(args.keep, signals)?;
    if let Some(command) = &plan.setup {
        runtime.block_on(prepare(&folder.folder, command, signals))?;
    }
    let on_question = OnQuestion::Ask;
    let mut settings = Settings { script: Some(script), on_question, ..Settings::default() };
    // A test is about what comes of a refused turn, not about the wait for it.
    settings.program.retry_window_secs = 0;
    let mut stage = stage::stage(Some("script"), &settings, &project, catalog.registry)?;
    // Nobody wants to resume a test.
    stage.index = None;
    let prompt = plan.prompt.clone();
    let workspace = folder.folder.clone();
    let request = StartRequest { workflow, prompt, workspace, model: None, settings };
    let result = runtime.block_on(carried_out(&plan.answers, signals, || {
        Ok(Run::start_streaming(stage, request, &[StreamMode::Values])?)
    }))?;
    Ok(plan.expect.compared(&result, &folder.folder))
}

/// The folder of a test, which is gone afterwards, whatever comes of it.
struct Scratch {
    folder: PathBuf,
    is_kept: bool,
    has_folder: Arc<AtomicBool>,
}

impl Scratch {
    fn new(is_kept: bool, signals: &Signals) -> Result<Self, Failure> {
        // Before it is there, so that no signal leaves it behind.
        signals.has_folder.store(true, Ordering::SeqCst);
        let folder = super::demo::fresh_folder("atomic-test").map_err(|error| {
            Failure::Failed(format!("no folder for temporary files can be made: {error}"))
        })?;
        Ok(Self { folder, is_kept, has_folder: Arc::clone(&signals.has_folder) })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.is_kept {
            paint::line(&format!("kept  {}", self.folder.display()));
        } else if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            paint::warn(&format!("{}: it cannot be removed: {error}", self.folder.display()));
        }
        self.has_folder.store(false, Ordering::SeqCst);
    }
}

/// The script beside a workflow.
fn script_of(file: &Path) -> Result<PathBuf, Failure> {
    let candidates = ["script.toml", "script.json"].map(|ending| file.with_extension(ending));
    candidates.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        Failure::Failed(format!(
            "{}: there is no script for it; write {}, or name one with --script",
            file.display(),
            candidates[0].display()
        ))
    })
}

fn plan_in(script: &Path) -> Result<Plan, Failure> {
    let test = Script::load(script)?.test;
    if test.is_null() {
        return Ok(Plan::default());
    }
    serde_json::from_value(test)
        .map_err(|error| Failure::Failed(format!("{}: in [test]: {error}", script.display())))
}

/// Prepares the folder of a test. Nothing that was started for that is left afterwards.
async fn prepare(folder: &Path, command: &str, signals: &Signals) -> Result<(), Failure> {
    let job = Job {
        argv: ["sh", "-c", command].map(str::to_owned).into(),
        cwd: folder.to_owned(),
        // No other process has this one, also when several tests run at once.
        marker: format!("{}#setup", folder.display()),
        ..Job::default()
    };
    let guard = Guard::from_current_exe();
    let ran = guard.capture(&job, None, (None, KEPT), signals.clone().come()).await;
    let problem = match ran {
        Ok(ran) => match ran.status {
            Some(status) if status.success() => return Ok(()),
            Some(status) => format!("{status}\n{}", ran.stderr.text.trim_end()),
            None => "it was stopped".to_owned(),
        },
        Err(error) => error.to_string(),
    };
    Err(Failure::Failed(format!("the setup `{command}` failed: {problem}")))
}

/// Sees a run through without showing it, and answers what it asks.
async fn carried_out(
    answers: &[String],
    signals: &Signals,
    start: impl FnOnce() -> Result<(Run, Show), Failure>,
) -> Result<Finished, Failure> {
    let (intents, wishes) = mpsc::channel(16);
    let (run, show) = start()?;
    let (come, stop) = (signals.clone().come(), intents.clone());
    let stopper = tokio::spawn(async move {
        come.await;
        // The run may be over.
        let _ = stop.send(Intent::Pause { reason: "it was stopped".to_owned() }).await;
    });
    let listener = tokio::spawn(listen(show, answers.to_vec(), intents));
    let ended = run.drive(wishes).await;
    stopper.abort();
    let ended = ended?;
    let (values, unanswered) = listener.await.unwrap_or_default();
    Ok(Finished { outcome: ended.outcome, values, unanswered })
}

/// The state that a run ends with, and the question for which there was no answer.
async fn listen(
    mut show: Show,
    answers: Vec<String>,
    intents: mpsc::Sender<Intent>,
) -> (Value, Option<String>) {
    let (mut values, mut unanswered) = (Value::Null, None);
    let mut answers = answers.into_iter();
    while let Some(shown) = show.next().await {
        match shown {
            Shown::Streamed { mode: StreamMode::Values, mut value } => {
                values = value["values"].take();
            }
            Shown::Fact(fact) => {
                let Event::QuestionAsked { id, question, .. } = &fact.event else { continue };
                let given = answers.next().map(|given| question.accept(&[given]));
                let wish = match given {
                    Some(Ok(answer)) => Intent::Answer { question: id.clone(), answer },
                    other => {
                        let problem = other.and_then(Result::err).unwrap_or_default();
                        unanswered = Some(format!("{}\n{problem}", question.question));
                        Intent::Pause { reason: "nobody answers".to_owned() }
                    }
                };
                // The run may be over.
                let _ = intents.send(wish).await;
            }
            Shown::Streamed { .. } | Shown::Delta(_) => {}
        }
    }
    (values, unanswered)
}

impl Expected {
    /// Everything that is not as expected.
    fn compared(&self, result: &Finished, folder: &Path) -> Vec<String> {
        let mut wrong = vec![];
        let (status, why) = match &result.outcome {
            Outcome::Completed => (Status::Completed, "it was completed".to_owned()),
            Outcome::Failed { error, .. } => {
                let detail = error.detail.iter().map(|detail| format!("\n{detail}"));
                let detail: String = detail.collect();
                (Status::Failed, format!("it failed: {}{detail}", error.message))
            }
            Outcome::Waiting(_) | Outcome::Paused => {
                let asked = result.unanswered.as_deref().unwrap_or_default().trim_end();
                (Status::Waiting, format!("it waits for an answer: {asked}"))
            }
        };
        if status != self.status {
            wrong.push(format!("expected it to be {}, but {why}", self.status.word()));
        }
        if let Some(part) = &self.error
            && !why.contains(part.as_str())
        {
            wrong.push(format!("expected an error with {part:?}, but {why}"));
        }
        let outputs = result.values.get("outputs").unwrap_or(&Value::Null);
        let states = [("state", &self.state, &result.values), ("outputs", &self.outputs, outputs)];
        for (what, expected, there) in states {
            for (key, value) in expected {
                let found = there.get(key).unwrap_or(&Value::Null);
                if found != value {
                    wrong.push(format!("{what}.{key}: expected {value}, but it is {found}"));
                }
            }
        }
        for (path, part) in &self.files {
            match atomic_files::read_text(&folder.join(path), PROMPT_LIMIT) {
                Ok(text) if text.contains(part.as_str()) => {}
                Ok(text) => wrong.push(format!("{path}: {part:?} is not in it:\n{text}")),
                Err(error) => wrong.push(format!("{path}: {error}")),
            }
        }
        wrong
    }
}
