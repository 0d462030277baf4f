//! A program that starts guarded processes, for tests that kill it or break it.
//!
//! `guard-host <mode> <marker> [argv…]`; what each mode does is said at its function.

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use atomic_backend::copilot::{CopilotBackend, CopilotConfig};
use atomic_backend::guard::{self, Guard, Job};
use atomic_backend::{Backend as _, OpenRequest, PROVIDER_PATIENCE};

fn main() -> ExitCode {
    if let Some(code) = guard::run_if_asked() {
        return code;
    }
    let outcome = tokio::runtime::Runtime::new().and_then(|runtime| runtime.block_on(act()));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "guard-host: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn act() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(mode), Some(marker)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other("usage: guard-host <mode> <marker> [argv…]"));
    };
    let job = Job { argv: arguments.collect(), marker, ..Job::default() };
    match mode.as_str() {
        "hold" => hold(&job).await,
        "panic" => panic_while_guarding(&job),
        "run" => run(&job).await,
        "storm" => storm(job).await,
        "copilot" => talk_to_copilot(job).await,
        "end-survivors" => say(&guard::end_survivors(&job.marker)?.to_string()),
        unknown => Err(io::Error::other(format!("no such mode: {unknown}"))),
    }
}

/// Starts the job and stays.
async fn hold(job: &Job) -> io::Result<()> {
    let _guarded = Guard::from_current_exe().spawn(job)?;
    std::future::pending().await
}

/// Has a conversation with the GitHub Copilot at the first argument, in the folder that is the second,
/// and stays.
async fn talk_to_copilot(job: Job) -> io::Result<()> {
    let [program, workspace, prompt] = job.argv.as_slice() else {
        return Err(io::Error::other(
            "usage: guard-host copilot <marker> <program> <folder> <prompt>",
        ));
    };
    let (program, env) = (program.into(), vec![]);
    let config = CopilotConfig { program, patience: PROVIDER_PATIENCE, env };
    let backend = CopilotBackend::new(config, Guard::from_current_exe());
    let request = OpenRequest::new("worker", workspace.into(), job.marker.clone());
    let conversation = backend.open(request).await.map_err(io::Error::other)?;
    let mut turn = conversation.send(prompt.clone()).await.map_err(io::Error::other)?;
    while turn.recv().await.is_some() {}
    std::future::pending().await
}

/// Starts the job and panics at the end of its own input.
#[expect(clippy::panic, reason = "that is what this mode is for")]
fn panic_while_guarding(job: &Job) -> io::Result<()> {
    let _guarded = Guard::from_current_exe().spawn(job)?;
    wait_for_end_of_input()?;
    panic!("as the test asked")
}

/// Runs the job at the end of its own input and prints what it printed.
async fn run(job: &Job) -> io::Result<()> {
    wait_for_end_of_input()?;
    let finished = Guard::from_current_exe().run(job, None, 1000, std::future::pending()).await?;
    say(&finished.tail)
}

/// Runs the job fifty times at once and prints each output, then how many descriptors were open
/// before and after.
async fn storm(job: Job) -> io::Result<()> {
    let guard = Guard::from_current_exe();
    // The runtime keeps descriptors of its own from the first process on.
    guard.run(&job, None, 0, std::future::pending()).await?;
    let before = open_descriptors()?;
    let jobs: Vec<_> = (0..50)
        .map(|_| {
            let (guard, job) = (guard.clone(), job.clone());
            tokio::spawn(async move { guard.run(&job, None, 1000, std::future::pending()).await })
        })
        .collect();
    for job in jobs {
        say(job.await.map_err(io::Error::other)??.tail.trim_end())?;
    }
    say(&format!("{before} {}", open_descriptors()?))
}

fn wait_for_end_of_input() -> io::Result<()> {
    io::stdin().read_to_end(&mut Vec::new()).map(drop)
}

fn open_descriptors() -> io::Result<usize> {
    PathBuf::from("/proc/self/fd").read_dir().map(Iterator::count)
}

fn say(line: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{line}")
}
