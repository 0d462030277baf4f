//! What a turn costs through us, beside the agent program alone, on a model that answers at once:
//! whole commands, each a start of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use atomic_testing::agents::{CLAUDE, COPILOT, ClaudeHome, CopilotHome, OPENCODE, OpenCodeHome};
use atomic_testing::model::{ModelServer, Reply, Script, Turn};
use tempfile::TempDir;

use crate::measure::best_and_median;
use crate::processes::watch;
use crate::startup::atomic;
use crate::{Scale, say, text};

const RUNS: usize = 20;

/// Of a program that takes seconds to start.
const SLOW_RUNS: usize = 10;

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
    let (claude_home, mut opencode_home, copilot_home) =
        (ClaudeHome::default(), None, CopilotHome::default());
    let contests = [
        Contest {
            agent: claude(),
            direct: &[
                "claude",
                "-p",
                "hello",
                "--permission-mode",
                "bypassPermissions",
                "--setting-sources=",
            ],
            runs: RUNS,
            env: Box::new(|url| claude_home.env(url)),
        },
        Contest {
            agent: opencode(),
            // With a title, neither asks the model for one.
            direct: &["opencode", "run", "hello", "--title", "hello"],
            runs: SLOW_RUNS,
            env: Box::new(|url| opencode_home.insert(OpenCodeHome::new(url)).env()),
        },
        Contest {
            agent: copilot(),
            direct: &["copilot", "-p", "hello", "--allow-all-tools", "--no-auto-update"],
            runs: RUNS,
            env: Box::new(|url| copilot_home.env(url)),
        },
    ];
    contests.into_iter().try_for_each(|contest| contest.hold(scale))
}

pub(crate) fn not_measured(what: &str) {
    say(&format!(
        "\nTurns of `{what}` were not measured: that needs `cargo build --release` and \
         ATOMIC_AGENTS=$(cargo xtask agents)",
    ));
}

/// A program by itself, and by us.
struct Contest<'a> {
    /// Where it is, if it is installed.
    agent: Option<PathBuf>,
    /// What one would type.
    direct: &'a [&'a str],
    runs: usize,
    /// What makes it talk to the model at an address.
    env: Box<dyn FnOnce(&str) -> Env + 'a>,
}

type Env = Vec<(String, String)>;

impl Contest<'_> {
    fn hold(self, scale: Scale) -> Result<(), String> {
        let Some((name, direct)) = self.direct.split_first() else { return Ok(()) };
        let (Some(atomic), Some(agent)) = (atomic()?, self.agent) else {
            not_measured(name);
            return Ok(());
        };
        let stand = Stand::new(agent, self.env)?;
        let through = ["-p", "hello", "--backend", name];
        let costs = stand.in_turns(direct, (&atomic, &through), scale.few(self.runs))?;
        tell(&self.direct[..2].join(" "), &format!("atomic -p --backend {name}"), costs);
        Ok(())
    }
}

fn tell(direct: &str, through: &str, costs: [Cost; 2]) {
    let program = direct.split(' ').next().unwrap_or_default();
    say(&format!(
        "\nOne turn of `{program}` on a model that answers at once, each a start of its own:\n"
    ));
    say(
        "| command | wall, best, ms | median | CPU of the program, median, ms | CPU of the rest | \
         memory of the command, MiB |\n|---|---:|---:|---:|---:|---:|",
    );
    let mut medians = vec![];
    for (name, cost) in [direct, through].into_iter().zip(costs) {
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

/// A program that is installed for the tests.
fn installed(path: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("ATOMIC_AGENTS")?);
    Some(folder.join(path)).filter(|path| path.is_file())
}

/// The newest one.
pub(crate) fn claude() -> Option<PathBuf> {
    installed(&format!("claude-{CLAUDE}/claude"))
}

pub(crate) fn opencode() -> Option<PathBuf> {
    installed(&format!("opencode-{OPENCODE}/bin/opencode"))
}

pub(crate) fn copilot() -> Option<PathBuf> {
    installed(&format!("copilot-{COPILOT}/copilot"))
}

struct Stand {
    env: Env,
    folder: TempDir,
    model: ModelServer,
    agent: PathBuf,
}

impl Stand {
    /// For a program that finds the model at an address by this environment.
    fn new(agent: PathBuf, env: impl FnOnce(&str) -> Env) -> Result<Self, String> {
        let script = Script::new().with(Turn::default().reply(Reply::say("Hello.")));
        let model = ModelServer::start(script).map_err(text)?;
        let env = env(&model.url());
        Ok(Self { env, folder: TempDir::new().map_err(text)?, model, agent })
    }

    /// The program and us, so many times each.
    fn in_turns(
        &self,
        direct: &[&str],
        (atomic, through): (&Path, &[&str]),
        runs: usize,
    ) -> Result<[Cost; 2], String> {
        let (mut alone, mut with_us) = (Cost::default(), Cost::default());
        // The first starts of a program unpack things. Where nothing is compared, that may be.
        if runs > 1 {
            self.run(&self.agent, direct, &mut Cost::default())?;
            self.run(atomic, through, &mut Cost::default())?;
        }
        for _ in 0..runs {
            self.run(&self.agent, direct, &mut alone)?;
            self.run(atomic, through, &mut with_us)?;
        }
        Ok([alone, with_us])
    }

    fn run(&self, program: &Path, arguments: &[&str], cost: &mut Cost) -> Result<(), String> {
        let mut command = Command::new(program);
        let path = self.agent.parent().map(Path::to_owned).unwrap_or_default();
        let own = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([path].into_iter().chain(std::env::split_paths(&own)));
        command.args(arguments).current_dir(self.folder.path()).envs(self.env.iter().cloned());
        // What is left in the folder for temporary files is gone with ours.
        command.env("PWD", self.folder.path()).env("TMPDIR", self.folder.path());
        command.env("PATH", path.map_err(text)?);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let before = Instant::now();
        let mut child = command.spawn().map_err(text)?;
        let used = watch(&mut child, &self.agent)?;
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
        let calls = self.model.take_requests().len();
        if calls == 0 { Err("nobody asked the model".to_owned()) } else { Ok(()) }
    }
}
