//! Turns on a server that runs: OpenCode's and GitHub Copilot's, driven directly and through our
//! backends.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use atomic_backend::copilot::{CopilotBackend, CopilotConfig};
use atomic_backend::guard::Guard;
use atomic_backend::opencode::{OpenCodeBackend, OpenCodeConfig};
use atomic_backend::{Backend, Conversation, OpenRequest};
use atomic_event::{Stop, TurnEvent};
use atomic_testing::agents::{CopilotHome, OpenCodeHome};
use atomic_testing::model::{ModelServer, Reply, Script, Turn};
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::direct::{Direct, DirectOpenCode};
use crate::direct_copilot::DirectCopilot;
use crate::measure::best_and_median;
use crate::overhead::{copilot, not_measured, opencode};
use crate::processes::{below, nanos_of};
use crate::{Scale, say, text};

/// How often everything is done.
const ROUNDS: usize = 20;

/// How many turns there are at once.
const FAN: usize = 8;

/// How many there are at once on a server that carries many.
const MANY: usize = 32;

/// How long the programs may try again by themselves.
const RETRY: Duration = Duration::from_secs(3);

/// What the threads are called that drive a server.
const DRIVER: &str = "bench-driver";

/// The server still does something for a turn when it is over.
const AFTERWARDS: Duration = Duration::from_millis(100);

/// A kind of turn.
struct Kind {
    name: &'static str,
    prompt: &'static str,
    /// How often the model is asked.
    calls: usize,
}

const KINDS: [Kind; 2] = [
    Kind { name: "text", prompt: "hello", calls: 1 },
    Kind { name: "bash", prompt: "run something", calls: 2 },
];

pub(crate) fn measure(scale: Scale) -> Result<(), String> {
    let rounds = scale.few(ROUNDS);
    match opencode() {
        Some(program) => driven(async move { measure_opencode(program, rounds).await })?,
        None => not_measured("opencode serve"),
    }
    match copilot() {
        Some(program) => driven(async move { measure_copilot(program, rounds).await }),
        None => {
            not_measured("copilot --server");
            Ok(())
        }
    }
}

/// Does something on threads whose time can be told from that of others.
fn driven(work: impl Future<Output = Result<(), String>> + Send + 'static) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name(DRIVER)
        .thread_keep_alive(Duration::from_secs(3_600))
        .enable_all()
        .build()
        .map_err(text)?;
    // A task, as what blocks on one would be driven by a thread of another name.
    let measured = runtime.spawn(work);
    runtime.block_on(measured).map_err(text)?
}

fn model() -> Result<ModelServer, String> {
    let command = json!({ "command": "true", "description": "Does nothing" });
    let acting = Turn::default().user(KINDS[1].prompt).reply(Reply::call("bash", command));
    let script = Script::new()
        .with(acting.reply(Reply::say("Done.")))
        .with(Turn::default().reply(Reply::say("Hello.")));
    ModelServer::start(script).map_err(text)
}

async fn measure_opencode(program: PathBuf, rounds: usize) -> Result<(), String> {
    let (model, folder) = (model()?, TempDir::new().map_err(text)?);
    let homes = [(); 2].map(|()| OpenCodeHome::new(&model.url()));
    let direct = Arc::new(DirectOpenCode::start(&program, &homes[0], folder.path()).await?);
    let config = OpenCodeConfig { program: program.clone(), patience: RETRY, env: homes[1].env() };
    let backend = Arc::new(OpenCodeBackend::new(config, Guard::from_current_exe()));
    let contest =
        Contest { name: "opencode", program, model, folder, direct, backend, fans: &[1, FAN] };
    contest.hold(rounds).await
}

async fn measure_copilot(program: PathBuf, rounds: usize) -> Result<(), String> {
    let (model, folder) = (model()?, TempDir::new().map_err(text)?);
    let homes = [(); 2].map(|()| CopilotHome::default());
    let url = model.url();
    let direct = DirectCopilot::start(&program, homes[0].env(&url), &url, folder.path())?;
    let config =
        CopilotConfig { program: program.clone(), patience: RETRY, env: homes[1].env(&url) };
    let backend = Arc::new(CopilotBackend::new(config, Guard::from_current_exe()));
    let direct = Arc::new(direct);
    let contest =
        Contest { name: "copilot", program, model, folder, direct, backend, fans: &[1, FAN, MANY] };
    contest.hold(rounds).await
}

/// A server that is driven directly, and one that is driven by us.
struct Contest {
    name: &'static str,
    program: PathBuf,
    model: ModelServer,
    folder: TempDir,
    direct: Arc<dyn Direct>,
    backend: Arc<dyn Backend>,
    /// How many turns there are at once.
    fans: &'static [usize],
}

impl Contest {
    async fn hold(self, rounds: usize) -> Result<(), String> {
        let ours = Side::Ours(Arc::clone(&self.backend), self.folder.path().to_owned());
        let sides = [Side::Direct(Arc::clone(&self.direct)), ours];
        // The first turn of a folder loads things.
        for kind in &KINDS {
            for side in &sides {
                round(side, kind, 1).await?;
            }
        }
        self.model.take_requests();
        say(&format!(
            "\nTurns of `{}` on a server that runs, on a model that answers at once:\n",
            self.name
        ));
        say(
            "| turns | by | open, median, ms | turn, best, ms | median | close, median, ms | CPU of \
             the server, ms | CPU of the driver | memory of the server, MiB |\n\
             |---|---|---:|---:|---:|---:|---:|---:|---:|",
        );
        let mut ratios = vec![];
        for &at_once in self.fans {
            // What takes longer need not be done as often.
            let rounds = if at_once > FAN { rounds.div_ceil(4) } else { rounds };
            for kind in &KINDS {
                let costs = self.costs(&sides, kind, at_once, rounds).await?;
                ratios.push(tell(&format!("{at_once} × {}", kind.name), costs));
            }
        }
        say("");
        ratios.iter().for_each(|ratio| say(ratio));
        self.backend.end_resting().await;
        Ok(())
    }

    async fn costs(
        &self,
        sides: &[Side; 2],
        kind: &Kind,
        at_once: usize,
        rounds: usize,
    ) -> Result<[Cost; 2], String> {
        let mut costs = [Cost::default(), Cost::default()];
        for _ in 0..rounds {
            for (place, (side, cost)) in sides.iter().zip(&mut costs).enumerate() {
                let server = self.servers()?[place].0;
                let before = used(server);
                cost.add(round(side, kind, at_once).await?);
                tokio::time::sleep(AFTERWARDS).await;
                let after = used(server);
                cost.server.push((after.0 - before.0) / at_once as f64);
                cost.driver.push((after.1 - before.1) / at_once as f64);
                cost.memory = self.servers()?[place].1;
                let calls = self.model.take_requests().len();
                if calls != kind.calls * at_once {
                    return Err(format!("{calls} calls of the model in {at_once} turns"));
                }
            }
        }
        Ok(costs)
    }

    /// Both servers, in the order in which they were started, and the most memory each has used.
    fn servers(&self) -> Result<[(u32, f64); 2], String> {
        let all = below(std::process::id(), &self.program);
        let servers = all.into_iter().filter(|(_, used)| used.is_agent);
        let servers: Vec<_> = servers.map(|(id, used)| (id, used.peak_mib)).collect();
        servers.try_into().map_err(|all: Vec<_>| format!("{} servers run, and not two", all.len()))
    }
}

/// Prints the rows of both; how they compare.
fn tell(name: &str, costs: [Cost; 2]) -> String {
    let rows = ["directly", "through us"].into_iter().zip(costs).map(|(by, cost)| {
        let (best, median) = best_and_median(cost.turn);
        let [open, close, server, driver] =
            [cost.open, cost.close, cost.server, cost.driver].map(|all| best_and_median(all).1);
        say(&format!(
            "| {name} | {by} | {open:.1} | {best:.1} | {median:.1} | {close:.1} | {server:.0} | \
             {driver:.1} | {:.0} |",
            cost.memory
        ));
        (best, median, server, driver)
    });
    let rows: Vec<_> = rows.collect();
    let [(best, median, _, least), (our_best, our_median, server, driver)] = rows[..] else {
        return String::new();
    };
    format!(
        "- {name}, through us: {:.2} of the time at best, {:.2} in the median; our own CPU is {:.1} % \
         of the server's, that of the least driver {:.1} %",
        our_best / best,
        our_median / median,
        driver / server * 100.0,
        least / server * 100.0
    )
}

/// What turns have cost: milliseconds, CPU for each of those that were at once.
#[derive(Default)]
struct Cost {
    open: Vec<f64>,
    turn: Vec<f64>,
    close: Vec<f64>,
    server: Vec<f64>,
    driver: Vec<f64>,
    /// The most that the server has used so far, in MiB.
    memory: f64,
}

impl Cost {
    fn add(&mut self, [open, turn, close]: [Duration; 3]) {
        for (all, one) in [(&mut self.open, open), (&mut self.turn, turn), (&mut self.close, close)]
        {
            all.push(one.as_secs_f64() * 1_000.0);
        }
    }
}

/// CPU that a server has used and that our drivers have, in milliseconds.
fn used(server: u32) -> (f64, f64) {
    let millis = |nanos: Option<u64>| nanos.unwrap_or(0) as f64 / 1e6;
    let driver = nanos_of(std::process::id(), |name| name == DRIVER);
    (millis(nanos_of(server, |_| true)), millis(driver))
}

/// How long it takes to open sessions, to have a turn in each, and to close them.
async fn round(side: &Side, kind: &Kind, at_once: usize) -> Result<[Duration; 3], String> {
    let begun = Instant::now();
    let opening = (0..at_once).map(|_| side.clone().open());
    let sessions = all(opening).await?;
    let opened = Instant::now();
    let turns = sessions.into_iter().map(|session| session.turn(kind.prompt));
    let sessions = all(turns).await?;
    let done = Instant::now();
    all(sessions.into_iter().map(Session::close)).await?;
    Ok([opened - begun, done - opened, done.elapsed()])
}

/// Does everything at once.
async fn all<T: Send + 'static>(
    work: impl Iterator<Item = impl Future<Output = Result<T, String>> + Send + 'static>,
) -> Result<Vec<T>, String> {
    let mut doing: JoinSet<_> = work.collect();
    let mut done = vec![];
    while let Some(one) = doing.join_next().await {
        done.push(one.map_err(text)??);
    }
    Ok(done)
}

/// Who drives a server.
#[derive(Clone)]
enum Side {
    Direct(Arc<dyn Direct>),
    /// Our backend, in a folder.
    Ours(Arc<dyn Backend>, PathBuf),
}

enum Session {
    Direct(Arc<dyn Direct>, String),
    Ours(Box<dyn Conversation>),
}

impl Side {
    async fn open(self) -> Result<Session, String> {
        match self {
            Self::Direct(direct) => {
                let session = direct.open().await?;
                Ok(Session::Direct(direct, session))
            }
            Self::Ours(backend, folder) => {
                let marker = format!("bench/{}/1", uuid::Uuid::new_v4());
                let request = OpenRequest::new("bench", folder, marker);
                Ok(Session::Ours(backend.open(request).await.map_err(text)?))
            }
        }
    }
}

impl Session {
    /// Has a turn, to its end.
    async fn turn(self, prompt: &'static str) -> Result<Self, String> {
        match &self {
            Self::Direct(direct, session) => direct.turn(session, prompt).await?,
            Self::Ours(conversation) => {
                let mut turn = conversation.send(prompt.to_owned()).await.map_err(text)?;
                let mut stop = None;
                while let Some(event) = turn.recv().await {
                    if let TurnEvent::Ended(end) = event {
                        stop = Some(end);
                    }
                }
                if !matches!(stop, Some(Stop::Done { .. })) {
                    return Err(format!("a turn ended with {stop:?}"));
                }
            }
        }
        Ok(self)
    }

    async fn close(self) -> Result<(), String> {
        match self {
            Self::Direct(direct, session) => direct.close(&session).await,
            Self::Ours(conversation) => {
                conversation.close().await;
                Ok(())
            }
        }
    }
}
