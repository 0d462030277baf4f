//! Whole sessions through the runner: time, bytes and memory to run them and to open them again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use atomic_event::{Question, StepError, StepResult};
use atomic_graph::{Graph, Kind, Node};
use atomic_runner::{Outcome, ResumeOptions, Run, Settings, StartRequest};
use atomic_workflow::{Action, Asking, Call, Function, Functions, Initial, Workflow};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::disk::CountingDisk;
use crate::double::{agent, stage};
use crate::measure::{cpu_micros, peak_mib, timed};
use crate::{Scale, row_of_its_own, say, text};

const SESSIONS: &str = "sessions";

/// Who does the steps.
#[derive(Clone, Copy)]
enum Work {
    /// An agent that answers at once: two syncs a step, one for its conversation and one for the
    /// transition.
    Agent,
    /// Functions, which are recorded up to 512 facts at a time.
    Functions,
}

const WORKS: [(Work, &str); 2] = [(Work::Functions, "functions"), (Work::Agent, "an agent")];

const COLUMNS: [&str; 10] = [
    "steps",
    "by",
    "run, s",
    "µs a step",
    "of it CPU",
    "journal, B a step",
    "all writes, B a step",
    "reopen, ms",
    "without snapshots, ms",
    "peak RSS, MiB",
];

pub(crate) fn measure(scale: Scale) -> Result<(), String> {
    say("\nThrough the runner, on disk, with a 10 KB state; then the session is opened again\n");
    say(&format!("| {} |", COLUMNS.join(" | ")));
    say(&format!("|{}", "---:|".repeat(COLUMNS.len())));
    for (_, name) in WORKS {
        for steps in scale.sizes {
            say(&row_of_its_own(&["run", name, &steps.to_string()])?);
        }
    }
    Ok(())
}

/// Measures one session.
pub(crate) fn row(name: &str, steps: usize) -> Result<(), String> {
    let known = WORKS.into_iter().find(|(_, work)| *work == name);
    let (work, _) = known.ok_or_else(|| format!("there is no {name}"))?;
    let folder = tempfile::tempdir().map_err(text)?;
    let disk = CountingDisk::default();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(text)?;
    let mut ran = (Duration::ZERO, PathBuf::new());
    let cpu = cpu_micros(|| {
        ran = timed(|| runtime.block_on(run(work, folder.path(), &disk, steps)))?;
        Ok(())
    })?;
    let (time, dir) = ran;
    let peak = peak_mib();
    let journal = dir.join("journal.jsonl").metadata().map_err(text)?.len() as f64;
    let written = disk.written() as f64;
    let with = runtime.block_on(async { reopen(work, &disk, &dir, steps) })?;
    std::fs::remove_dir_all(dir.join("checkpoints")).map_err(text)?;
    let without = runtime.block_on(async { reopen(work, &disk, &dir, steps) })?;
    let per_step = |sum: f64| format!("{:.0}", sum / steps as f64);
    let cells = [
        steps.to_string(),
        name.to_owned(),
        format!("{:.2}", time.as_secs_f64()),
        per_step(time.as_secs_f64() * 1_000_000.0),
        per_step(cpu),
        per_step(journal),
        per_step(written),
        format!("{with:.1}"),
        format!("{without:.1}"),
        format!("{peak:.0}"),
    ];
    say(&format!("| {} |", cells.join(" | ")));
    Ok(())
}

/// Runs all steps and stops at the question at their end.
async fn run(
    work: Work,
    folder: &Path,
    disk: &CountingDisk,
    steps: usize,
) -> Result<PathBuf, String> {
    let request = StartRequest {
        workflow: workflow(work, steps),
        prompt: steps.to_string(),
        workspace: folder.to_owned(),
        model: None,
        settings: Settings { checks: Some(vec![]), ..Settings::default() },
    };
    let (run, show) = Run::start(stage(disk, Duration::ZERO), request).map_err(text)?;
    // Nobody looks: what is shown would only pile up.
    drop(show);
    let (_wishes, intents) = mpsc::channel(1);
    let ended = run.drive(intents).await.map_err(text)?;
    match ended.outcome {
        Outcome::Waiting(_) => Ok(ended.dir),
        outcome @ (Outcome::Completed | Outcome::Failed { .. } | Outcome::Paused) => {
            Err(format!("it should wait, but: {outcome:?}"))
        }
    }
}

/// Takes the session up again; says how many milliseconds it takes until it could go on.
fn reopen(work: Work, disk: &CountingDisk, dir: &Path, steps: usize) -> Result<f64, String> {
    let find = |_: &str| Ok(workflow(work, steps));
    let resume = || {
        let options = ResumeOptions::default();
        Run::resume(stage(disk, Duration::ZERO), dir.to_owned(), options, find, |_| {})
            .map_err(text)
    };
    let (time, _run) = timed(resume)?;
    Ok(time.as_secs_f64() * 1_000.0)
}

fn workflow(work: Work, steps: usize) -> Workflow {
    let steps = u32::try_from(steps).unwrap_or(u32::MAX);
    let ask = Action::Ask(Asking {
        question: Question { question: "Go on?".to_owned(), ..Question::default() },
    });
    let node = |id: &str, action: &Action| action.node(id);
    let first = match work {
        Work::Functions => {
            node("work", &Action::Function { call: "count".into() }).may_go_to(["work"])
        }
        Work::Agent => {
            let inside = Graph::starting_at("turn").node(node("turn", &agent()));
            Node::new("work", Kind::Loop { graph: inside, until: None, max_rounds: steps })
        }
    };
    Workflow {
        name: "bench".into(),
        aliases: vec![],
        description: String::new(),
        sessions_dir: SESSIONS.to_owned(),
        graph: Graph::starting_at("work").node(first).node(node("ask", &ask)).edge("work", "ask"),
        functions: Functions::default().with("count", Function::step(count)),
        initial_state: Initial::made(|launch| {
            let limit: u64 = launch.prompt.parse().unwrap_or(0);
            [("text".into(), json!("x".repeat(10_000))), ("limit".into(), json!(limit))].into()
        }),
        source: None,
        state_shape: atomic_workflow::StateShape::default(),
    }
}

/// One step of the functions: counts, and goes round until it is enough.
fn count(call: &Call<'_>) -> Result<StepResult, StepError> {
    let n = call.get::<u64>("n") + 1;
    let result = StepResult::output(Value::Null).set("n", n);
    Ok(if n < call.get::<u64>("limit") { result.goto("work") } else { result })
}
