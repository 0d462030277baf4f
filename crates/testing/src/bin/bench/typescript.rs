//! Workflows in TypeScript: what it costs to look at them, to load them, to call what is in them
//! and to hold them; with `--peer`, beside bun.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use atomic_typescript::{Arg, Bundle, Options, Worker};
use atomic_workflow::descriptor::{self, Fault, Found, Library};
use atomic_workflow::typescript::{Authored, about};
use atomic_workflow::{Workflow, builtin};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::measure::{all_cpu_millis, best_and_median, resident_mib, timed};
use crate::startup::{atomic, ran, tell};
use crate::{Scale, bun, numbers_of_its_own, say, text};

/// How many files there are.
const FILES: usize = 100;
/// How often a function is called before the clock is looked at.
const CALLS: usize = 2_000;
/// How often whole programs are started.
const STARTS: usize = 20;

macro_rules! examples {
    ($($name:literal)*) => {
        &[$(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/", $name)),)*]
    };
}

/// The files are those that people learn from, over and over.
const EXAMPLES: &[&str] = examples![
    "review-cycle.ts" "issue-to-pr.ts" "migrate.ts" "module-research.ts" "morning.ts" "nightly.ts"
    "release-notes.ts"
];

pub(crate) fn measure(scale: Scale, with_peer: bool) -> Result<(), String> {
    let count = scale.shrunk(FILES);
    let (folder, files) = write(count)?;
    let bytes: usize = EXAMPLES.iter().map(|example| example.len()).sum();
    let size = bytes as f64 / EXAMPLES.len() as f64 / 1_000.0;
    say(&format!("\nTypeScript: {count} workflow files of {size:.1} KB:\n"));
    say("| what | best, ms | median, ms | CPU, best, ms |\n|---|---:|---:|---:|");
    several(scale, "metadata, 1 thread", || metadata(&files))?;
    // What is made once in a process is in no row.
    load_all(&files, folder.path())?;
    several(scale, "loaded and dropped, 1 thread", || load_all(&files, folder.path()))?;
    several(scale, "loaded and dropped, 2 threads", || load_on_two(&files, folder.path()))?;
    calls(scale)?;
    let [each, threads] = numbers_of_its_own(&["typescript", &count.to_string()])?;
    say(&format!(
        "\nHeld: {:.0} KiB of RSS for each of {count} loaded workflows ({threads:.0} threads)",
        each * 1_024.0
    ));
    if with_peer { beside_bun(scale) } else { Ok(()) }
}

/// The files, in a folder of their own.
fn write(count: usize) -> Result<(TempDir, Vec<PathBuf>), String> {
    let folder = TempDir::new().map_err(text)?;
    let files = EXAMPLES.iter().cycle().take(count).enumerate().map(|(number, example)| {
        let path = folder.path().join(format!("workflow-{number}.ts"));
        fs::write(&path, example).map(|()| path).map_err(text)
    });
    let files: Result<Vec<PathBuf>, String> = files.collect();
    Ok((folder, files?))
}

fn several(
    scale: Scale,
    name: &str,
    mut work: impl FnMut() -> Result<(), String>,
) -> Result<(), String> {
    let (mut times, mut cpu) = (vec![], vec![]);
    for _ in 0..scale.repeats {
        let (time, millis) = timed(|| all_cpu_millis(&mut work))?;
        times.push(time.as_secs_f64() * 1_000.0);
        cpu.push(millis);
    }
    let ((best, median), (cpu, _)) = (best_and_median(times), best_and_median(cpu));
    say(&format!("| {name} | {best:.1} | {median:.1} | {cpu:.1} |"));
    Ok(())
}

/// What `atomic list` does.
fn metadata(files: &[PathBuf]) -> Result<(), String> {
    for path in files {
        let found = about(path, &fs::read_to_string(path).map_err(text)?);
        if found.name.is_none() {
            return Err(format!("{} has no name", path.display()));
        }
    }
    Ok(())
}

/// The built-in workflows and no others.
struct BuiltIn;

impl Library for BuiltIn {
    fn find(&self, name: &str) -> Option<Found> {
        builtin::find(name).ok().map(|workflow| Found::Ready(Box::new(workflow)))
    }

    fn names(&self) -> Vec<String> {
        vec![]
    }
}

/// What `atomic check` does with one file.
fn load(path: &Path, root: &Path) -> Result<Workflow, String> {
    let told =
        |faults: Vec<Fault>| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let document = Authored::read(path, root).map_err(told)?.run().map_err(told)?;
    descriptor::read(&document, &BuiltIn).into_workflow().map_err(told)
}

fn load_all(files: &[PathBuf], root: &Path) -> Result<(), String> {
    files.iter().try_for_each(|path| load(path, root).map(drop))
}

fn load_on_two(files: &[PathBuf], root: &Path) -> Result<(), String> {
    let (one, other) = files.split_at(files.len() / 2);
    thread::scope(|scope| {
        let other = scope.spawn(|| load_all(other, root));
        let own = load_all(one, root);
        other.join().map_err(|_| "loading panicked".to_owned())??;
        own
    })
}

/// The functions that are called, in the order in which they are found.
const FUNCTIONS: &str = r"
export const a_nothing = () => true;
export const b_condition = (s) => s.tasks.length > 3 && s.prompt !== '';
export const c_update = (s) => ({ rounds: s.rounds + 1, last: s.tasks[0].title });
";

fn calls(scale: Scale) -> Result<(), String> {
    let path = PathBuf::from("/calls.ts");
    let files = BTreeMap::from([(path.clone(), FUNCTIONS.to_owned())]);
    let bundle = Bundle::from_files(&path, &files).map_err(|faults| format!("{faults:?}"))?;
    let worker = Worker::start(&bundle, &Options::default());
    worker.load_exports().map_err(text)?;
    say("\nCalls of a function, with a state that is copied for it:\n");
    say(
        "| call | on the thread, best, µs | median, µs | through the channel, best, µs | median, µs |",
    );
    say("|---|---:|---:|---:|---:|");
    let calls = scale.shrunk(CALLS);
    let (small, large) = (state(8), state(820));
    let rows: [(&str, u32, Vec<Arg>, usize); 5] = [
        ("without a state", 0, vec![], calls),
        ("condition", 1, vec![small.0], calls),
        ("update", 2, vec![state(8).0], calls),
        ("condition", 1, vec![large.0], calls / 20 + 1),
        ("update", 2, vec![state(820).0], calls / 20 + 1),
    ];
    let sizes = [0, small.1, small.1, large.1, large.1];
    for ((name, function, args, calls), size) in rows.into_iter().zip(sizes) {
        let (mut within, mut around) = (vec![], vec![]);
        for _ in 0..scale.repeats {
            let before = worker.busy();
            let (time, ()) = timed(|| {
                for _ in 0..calls {
                    worker.call(function, args.clone()).map_err(text)?;
                }
                Ok(())
            })?;
            let micros = |seconds: f64| seconds * 1e6 / calls as f64;
            within.push(micros((worker.busy() - before).as_secs_f64()));
            around.push(micros(time.as_secs_f64()));
        }
        let ((best, median), (best_around, median_around)) =
            (best_and_median(within), best_and_median(around));
        let size = if size == 0 { String::new() } else { format!(", {:.1} KB", size as f64 / 1e3) };
        say(&format!(
            "| {name}{size} | {best:.1} | {median:.1} | {best_around:.1} | {median_around:.1} |"
        ));
    }
    Ok(())
}

/// A state as functions are given it, and its size as JSON.
fn state(tasks: usize) -> (Arg, usize) {
    let task = |number: usize| {
        json!({
            "id": format!("#{number}"),
            "title": "Read the tokens of a session from its journal",
            "status": if number.is_multiple_of(3) { "done" } else { "pending" },
            "attempts": number,
            "blockedBy": [format!("#{}", number / 2)],
        })
    };
    let tasks: Vec<Value> = (0..tasks).map(task).collect();
    let fields = [
        ("prompt", json!("Build what the plan says, and nothing else")),
        ("rounds", json!(3)),
        ("tasks", Value::Array(tasks)),
        ("outputs", json!({})),
    ];
    let size = fields.iter().map(|(key, value)| key.len() + value.to_string().len() + 4).sum();
    let fields = fields.map(|(key, value)| (key.to_owned(), Arg::Value(Arc::new(value))));
    (Arg::Object(fields.into()), size)
}

/// The MiB that one of so many workflows takes, and how many threads there are.
pub(crate) fn row(count: usize) -> Result<[f64; 2], String> {
    let (folder, files) = write(count)?;
    // What is made once in a process belongs to none of them.
    for path in files.iter().take(EXAMPLES.len()) {
        load(path, folder.path())?;
    }
    let before = resident_mib();
    let held: Result<Vec<Workflow>, String> =
        files.iter().map(|path| load(path, folder.path())).collect();
    let after = resident_mib();
    let threads = fs::read_dir("/proc/self/task").map_err(text)?.count();
    Ok([(after - before) / held?.len() as f64, threads as f64])
}

/// A stand-in for the SDK, which bun does not have.
const STUB: &str = r"
const node = (id, options) => ({ id, ...options });
export const agentNode = node, clearContextNode = node, subagentNode = node;
export const annotation = (initial, reducer) => ({ initial, reducer });
export const Reducers = { sum: (a, b) => a + b };
export const reviewCycle = (options) => ({ compile: (more) => ({ ...options, ...more }) });
";

/// Whole programs, from start to end.
fn beside_bun(scale: Scale) -> Result<(), String> {
    let Some(program) = atomic()? else {
        say("\nbun was not measured: build `atomic` with `cargo build --release` first");
        return Ok(());
    };
    let bun = match bun::program() {
        Ok(bun) => bun,
        Err(why) => {
            say(&format!("\nbun was not measured: {why}"));
            return Ok(());
        }
    };
    let folder = TempDir::new().map_err(text)?;
    let stub = folder.path().join("node_modules/atomic");
    fs::create_dir_all(&stub).map_err(text)?;
    for (path, content) in [
        (folder.path().join("review-cycle.ts"), EXAMPLES[0]),
        (folder.path().join("main.ts"), "import make from './review-cycle.ts';\nmake();\n"),
        (stub.join("workflows.js"), STUB),
        (stub.join("package.json"), r#"{"exports": {"./workflows": "./workflows.js"}}"#),
    ] {
        fs::write(path, content).map_err(text)?;
    }
    let runs = scale.shrunk(STARTS);
    say(&format!("\nOne file, whole programs, {runs} starts, wall:\n"));
    say("| command | best, ms | median, ms |\n|---|---:|---:|");
    let check = ["check", "--trust", "./review-cycle.ts"];
    let ours = tell("atomic check --trust review-cycle.ts", runs, || {
        ran(&program, &check, folder.path())
    })?;
    let version = tell("atomic --version", runs, || ran(&program, &["--version"], folder.path()))?;
    let theirs = tell("bun run (the same file, a stub for the SDK)", runs, || {
        ran(&bun, &["run", "main.ts"], folder.path())
    })?;
    say(&format!(
        "\nbun takes {:.1} times as long as `atomic check`, of which {version:.1} ms are the start",
        theirs / ours
    ));
    Ok(())
}
