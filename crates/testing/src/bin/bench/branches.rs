//! Fifty agents at once, each of which takes ten milliseconds, through the runner on disk.

use std::path::Path;
use std::time::{Duration, Instant};

use atomic_event::StepResult;
use atomic_graph::{Branch, Graph, Kind, Node, Parallel, Strategy};
use atomic_runner::{Outcome, Run, Settings, StartRequest};
use atomic_workflow::{Action, Function, Functions, Initial, Workflow};
use tokio::sync::mpsc;

use crate::disk::CountingDisk;
use crate::double::{agent, stage};
use crate::measure::best_and_median;
use crate::{Scale, say, text};

pub(crate) const BRANCHES: usize = 50;
const TURN: Duration = Duration::from_millis(10);

/// How long all branches took together, from the first start to the end of the run; in
/// milliseconds, best and median.
pub(crate) fn measure(scale: Scale) -> Result<(f64, f64), String> {
    // As `atomic run` makes it.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(text)?;
    let (mut created, mut ran) = (vec![], vec![]);
    for _ in 0..scale.branch_repeats {
        let folder = tempfile::tempdir().map_err(text)?;
        let (before, then) = runtime.block_on(once(folder.path()))?;
        created.push(before);
        ran.push(then);
    }
    let ((create, create_median), (best, median)) =
        (best_and_median(created), best_and_median(ran));
    say(&format!("\n{BRANCHES} branches of 10 ms, through the runner on disk (wall, ms)\n"));
    say("| | best | median |");
    say("|---|---:|---:|");
    say(&format!("| create the session, start the branches | {create:.1} | {create_median:.1} |"));
    say(&format!("| from there to the end of the run | {best:.1} | {median:.1} |"));
    Ok((best, median))
}

async fn once(folder: &Path) -> Result<(f64, f64), String> {
    let request = StartRequest {
        workflow: workflow(),
        prompt: String::new(),
        workspace: folder.to_owned(),
        model: None,
        settings: Settings { checks: Some(vec![]), ..Settings::default() },
    };
    let begun = Instant::now();
    let (run, show) = Run::start(stage(&CountingDisk::default(), TURN), request).map_err(text)?;
    drop(show);
    let started = Instant::now();
    let (_wishes, intents) = mpsc::channel(1);
    let ended = run.drive(intents).await.map_err(text)?;
    let took = started.elapsed();
    match ended.outcome {
        Outcome::Completed => Ok((millis(started - begun), millis(took))),
        outcome @ (Outcome::Waiting(_) | Outcome::Failed { .. } | Outcome::Paused) => {
            Err(format!("it should be done, but: {outcome:?}"))
        }
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn workflow() -> Workflow {
    let branch = |place: usize| Branch {
        id: format!("branch-{place}").into(),
        graph: Graph::starting_at("turn").node(agent().node("turn")),
    };
    let kind = Kind::Parallel(Parallel {
        branches: (0..BRANCHES).map(branch).collect(),
        strategy: Strategy::All,
        fail_fast: false,
        merge: None,
    });
    let join = Action::Function { call: "join".into() }.node("join");
    Workflow {
        name: "branches".into(),
        aliases: vec![],
        description: String::new(),
        sessions_dir: "sessions".to_owned(),
        graph: Graph::starting_at("fan")
            .node(Node::new("fan", kind))
            .node(join)
            .edge("fan", "join"),
        functions: Functions::default().with("join", Function::step(|_| Ok(StepResult::default()))),
        initial_state: Initial::Given([].into()),
        source: None,
        state_shape: atomic_workflow::StateShape::default(),
    }
}
