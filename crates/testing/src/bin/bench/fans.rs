//! Wide fans through the runner, at two sizes: run to their end, then cut off half-way and taken
//! up again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use atomic_event::{StepError, StepResult};
use atomic_graph::{Count, Each, Graph, Kind, Node, Ready};
use atomic_runner::{Ended, Outcome, ResumeOptions, Run, Settings, StartRequest};
use atomic_workflow::{Action, Call, Function, Functions, Initial, Workflow};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::disk::CountingDisk;
use crate::double::{agent, stage};
use crate::measure::{cpu_micros, peak_mib};
use crate::{Scale, numbers_of_its_own, say, text};

/// Who works on the items.
#[derive(Clone, Copy)]
enum Work {
    Functions,
    Agents,
    /// Functions, eight items at a time, each with a time limit.
    Limited,
}

const WORKS: [(Work, &str); 3] = [
    (Work::Functions, "functions"),
    (Work::Agents, "agents"),
    (Work::Limited, "functions, 8 workers, time limits"),
];

const SIZES: [usize; 2] = [1_000, 10_000];

pub(crate) fn measure(scale: Scale) -> Result<(), String> {
    say("\nGrowth: CPU per item of an `each` through the runner, on disk, at two sizes\n");
    say("| items by | from | to | run, µs an item | at the larger | ratio | resumed half-way, µs \
         an item | at the larger | ratio | peak RSS, MiB |");
    say("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for (_, name) in WORKS {
        let [from, to] = SIZES.map(|size| scale.shrunk(size));
        let of = |size: usize| numbers_of_its_own::<3>(&["fan", name, &size.to_string()]);
        let ([run, resume, _], [large, large_resume, peak]) = (of(from)?, of(to)?);
        let ratios = [large / run, large_resume / resume];
        say(&format!(
            "| {name} | {from} | {to} | {run:.0} | {large:.0} | {:.1} | {resume:.0} | \
             {large_resume:.0} | {:.1} | {peak:.0} |",
            ratios[0], ratios[1]
        ));
    }
    Ok(())
}

/// Measures one fan: to its end, and from half of its journal.
pub(crate) fn row(name: &str, items: usize) -> Result<[f64; 3], String> {
    let known = WORKS.into_iter().find(|(_, work)| *work == name);
    let (work, _) = known.ok_or_else(|| format!("there is no {name}"))?;
    let folder = tempfile::tempdir().map_err(text)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(text)?;
    let mut dir = PathBuf::new();
    let run = cpu_micros(|| {
        dir = runtime.block_on(run(work, folder.path(), items))?;
        Ok(())
    })?;
    let peak = peak_mib();
    cut_off_half(&dir)?;
    let resume = cpu_micros(|| runtime.block_on(resume(work, &dir, items)))?;
    let per_item = |sum: f64| sum / items as f64;
    Ok([per_item(run), per_item(resume), peak])
}

async fn run(work: Work, folder: &Path, items: usize) -> Result<PathBuf, String> {
    let request = StartRequest {
        workflow: workflow(work, items),
        prompt: items.to_string(),
        workspace: folder.to_owned(),
        model: None,
        settings: Settings { checks: Some(vec![]), ..Settings::default() },
    };
    let disk = CountingDisk::default();
    let (run, show) = Run::start(stage(&disk, Duration::ZERO), request).map_err(text)?;
    // Nobody looks: what is shown would only pile up.
    drop(show);
    completed(run).await.map(|ended| ended.dir)
}

async fn resume(work: Work, dir: &Path, items: usize) -> Result<(), String> {
    let find = |_: &str| Ok(workflow(work, items));
    let (disk, options) = (CountingDisk::default(), ResumeOptions::default());
    let (run, show) =
        Run::resume(stage(&disk, Duration::ZERO), dir.to_owned(), options, find, |_| {})
            .map_err(text)?;
    drop(show);
    completed(run).await.map(drop)
}

async fn completed(run: Run) -> Result<Ended, String> {
    let (_wishes, intents) = mpsc::channel(1);
    let ended = run.drive(intents).await.map_err(text)?;
    match ended.outcome {
        Outcome::Completed => Ok(ended),
        outcome @ (Outcome::Waiting(_) | Outcome::Failed { .. } | Outcome::Paused) => {
            Err(format!("it should be done, but: {outcome:?}"))
        }
    }
}

/// Leaves of a session what a crash in the middle would have left.
fn cut_off_half(dir: &Path) -> Result<(), String> {
    let path = dir.join("journal.jsonl");
    let journal = fs::read_to_string(&path).map_err(text)?;
    let lines: Vec<&str> = journal.split_inclusive('\n').collect();
    fs::write(&path, lines[..lines.len() / 2].concat()).map_err(text)?;
    // Those of the second half do not belong to it any more.
    fs::remove_dir_all(dir.join("checkpoints")).map_err(text)
}

fn workflow(work: Work, items: usize) -> Workflow {
    let function = Action::Function { call: "touch".into() };
    let (action, workers) = match work {
        Work::Functions => (function, items as u64),
        Work::Agents => (agent(), items as u64),
        Work::Limited => (function, 8),
    };
    let mut inside = Graph::starting_at("work").node(action.node("work"));
    if matches!(work, Work::Limited) {
        let kind = Kind::Subgraph { graph: inside, isolated: false, input: None, output: None };
        inside = Graph::starting_at("sub").node(Node::new("sub", kind).timeout_ms(60_000));
    }
    let kind = Kind::Each(Each {
        over: "items".into(),
        item: "item".into(),
        graph: inside,
        workers: Count::Fixed(workers),
        ready: Ready::Once,
        fail_fast: false,
        order: Ready::Once.order(),
    });
    Workflow {
        name: "fan".into(),
        aliases: vec![],
        description: String::new(),
        sessions_dir: "sessions".to_owned(),
        graph: Graph::starting_at("each").node(Node::new("each", kind)),
        functions: Functions::default().with("touch", Function::step(touch)),
        initial_state: Initial::made(|launch| {
            let items: usize = launch.prompt.parse().unwrap_or(0);
            let items: Vec<Value> = (0..items).map(|id| json!({"id": id.to_string()})).collect();
            [("items".into(), items.into())].into()
        }),
        source: None,
        state_shape: atomic_workflow::StateShape::default(),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "what a function of a workflow looks like")]
fn touch(_: &Call<'_>) -> Result<StepResult, StepError> {
    Ok(StepResult::output("ok"))
}
