//! What a turn costs through us, beside the agent program alone, on a model that answers at once.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use atomic_testing::agents::{CLAUDE, ClaudeHome};
use atomic_testing::model::{ModelServer, Reply, Script, Turn};
use tempfile::TempDir;

use crate::measure::best_and_median;
use crate::startup::atomic;
use crate::{Scale, say, text};

const RUNS: usize = 20;

/// One run of a command.
#[derive(Default)]
struct Cost {
    wall: Vec<f64>,
    /// CPU time of the agent program, in milliseconds.
    theirs: Vec<f64>,
    /// CPU time of everything else that belongs to the command.
    ours: Vec<f64>,
    /// The most memory the command itself used, in MiB.
    memory: f64,
}

pub(crate) fn measure(scale: Scale) -> Result<(), String> {
    let (Some(atomic), Some(claude)) = (atomic()?, claude()) else {
        say(
            "\nTurns of an agent program were not measured: that needs `cargo build --release` and \
             ATOMIC_AGENTS=$(cargo xtask agents)",
        );
        return Ok(());
    };
    let script = Script::new().with(Turn::default().reply(Reply::say("Hello.")));
    let server = ModelServer::start(script).map_err(text)?;
    let stand = Stand {
        home: ClaudeHome::default(),
        folder: TempDir::new().map_err(text)?,
        server,
        claude,
    };
    let direct = ["-p", "hello", "--permission-mode", "bypassPermissions", "--setting-sources="];
    let through = ["-p", "hello", "--backend", "claude"];
    let (mut alone, mut with_us) = (Cost::default(), Cost::default());
    // The first starts of the program unpack things.
    stand.run(&stand.claude, &direct, &mut Cost::default())?;
    stand.run(&atomic, &through, &mut Cost::default())?;
    for _ in 0..scale.shrunk(RUNS).min(RUNS) {
        stand.run(&stand.claude, &direct, &mut alone)?;
        stand.run(&atomic, &through, &mut with_us)?;
    }
    tell(alone, with_us);
    Ok(())
}

fn tell(alone: Cost, with_us: Cost) {
    say("\nOne turn of `claude` on a model that answers at once, each a start of its own:\n");
    say(
        "| command | wall, best, ms | median | CPU of the program, median, ms | CPU of the rest | \
         memory of the command, MiB |\n|---|---:|---:|---:|---:|---:|",
    );
    let mut medians = vec![];
    for (name, cost) in [("claude -p", alone), ("atomic -p", with_us)] {
        let (best, wall) = best_and_median(cost.wall);
        let (theirs, ours) = (best_and_median(cost.theirs).1, best_and_median(cost.ours).1);
        say(&format!(
            "| `{name}` | {best:.0} | {wall:.0} | {theirs:.0} | {ours:.1} | {:.0} |",
            cost.memory
        ));
        medians.push((best, wall, theirs, ours));
    }
    if let [(best, wall, ..), (our_best, our_wall, theirs, ours)] = medians[..] {
        say(&format!(
            "\nThrough us: {:.2} of the wall time at best, {:.2} in the median; our own CPU is {:.1} % \
             of the program's",
            our_best / best,
            our_wall / wall,
            ours / theirs * 100.0
        ));
    }
}

/// The newest program that is installed for the tests.
pub(crate) fn claude() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("ATOMIC_AGENTS")?);
    Some(folder.join(format!("claude-{CLAUDE}")).join("claude")).filter(|path| path.is_file())
}

struct Stand {
    home: ClaudeHome,
    folder: TempDir,
    server: ModelServer,
    claude: PathBuf,
}

impl Stand {
    fn run(&self, program: &Path, arguments: &[&str], cost: &mut Cost) -> Result<(), String> {
        let mut command = Command::new(program);
        let path = self.claude.parent().map(Path::to_owned).unwrap_or_default();
        let own = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([path].into_iter().chain(std::env::split_paths(&own)));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .envs(self.home.env(&self.server.url()));
        command.env("PATH", path.map_err(text)?);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let before = Instant::now();
        let mut child = command.spawn().map_err(text)?;
        let used = watch(&mut child, &self.claude)?;
        cost.wall.push(before.elapsed().as_secs_f64() * 1_000.0);
        let of = |theirs: bool| {
            let nanos = used.values().filter(|one| one.is_agent == theirs).map(|one| one.nanos);
            nanos.sum::<u64>() as f64 / 1e6
        };
        cost.theirs.push(of(true));
        cost.ours.push(of(false));
        let own = used.get(&child.id()).map_or(0.0, |one| one.peak_mib);
        cost.memory = cost.memory.max(own);
        // Whole conversations are kept otherwise.
        drop(self.server.take_requests());
        Ok(())
    }
}

/// What one process had used when it was last seen.
struct Used {
    nanos: u64,
    peak_mib: f64,
    is_agent: bool,
}

/// Looks at a process and everything below it until it ends. The system says only of the whole tree
/// what it used, so we look often.
fn watch(child: &mut Child, agent: &Path) -> Result<BTreeMap<u32, Used>, String> {
    let mut used = BTreeMap::new();
    loop {
        let ended = child.try_wait().map_err(text)?;
        if let Some(status) = ended {
            return if status.success() {
                Ok(used)
            } else {
                Err(format!("a turn ended with {status}"))
            };
        }
        let mut open = vec![child.id()];
        while let Some(id) = open.pop() {
            if let Some(now) = look_at(id, agent) {
                used.insert(id, now);
            }
            open.extend(children_of(id));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What any of its threads has started.
fn children_of(id: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let started = tasks.map(|task| fs::read_to_string(task.path().join("children")));
    let started: Vec<String> = started.filter_map(Result::ok).collect();
    started.iter().flat_map(|ids| ids.split_whitespace()).filter_map(|id| id.parse().ok()).collect()
}

fn look_at(id: u32, agent: &Path) -> Option<Used> {
    let mut nanos = 0;
    for task in fs::read_dir(format!("/proc/{id}/task")).ok()?.flatten() {
        let times = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        nanos += times.split(' ').next().and_then(|time| time.parse::<u64>().ok()).unwrap_or(0);
    }
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    let exe = fs::read_link(format!("/proc/{id}/exe")).ok()?;
    let is_agent = agent.canonicalize().is_ok_and(|agent| agent == exe);
    Some(Used { nanos, peak_mib: peak.unwrap_or(0.0) / 1_024.0, is_agent })
}
