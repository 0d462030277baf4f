//! `xtask test`: everything there is to check, one suite after the other, and a table.
//!
//! A failing suite is shown whole and does not keep the next from running, so that one run shows
//! all failures; only a failing build does. A passing suite is only written to a log.

mod against;
mod agents;
mod cache;
mod client;
mod counts;
mod cpu;
mod deny;
mod nextest;
mod npm;
mod plan;
mod sample;
mod table;
mod tsc;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use crate::metadata::{Metadata, cargo};
use crate::{backends, bench, check, docs, schema};
use counts::Counts;
use plan::{Found, Job, Scope, Suite, Tree};
use sample::Sample;
use table::{Outcome, Row};

pub(crate) use against::run as run_against;

/// How much is to be run, as chosen on the command line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extent {
    /// `--quick`
    Quick,
    /// Everything, with a tenth of the long tests.
    Usual,
    /// `--full`
    Full,
}

/// Runs all suites; fails when one of them did.
pub(crate) fn run(extent: Extent) -> Result<ExitCode, String> {
    let metadata = Metadata::read(None)?;
    let scope = match extent {
        Extent::Quick => Scope::Quick,
        Extent::Usual => Scope::Sampled(Sample::choose(&metadata.workspace_root)?),
        Extent::Full => Scope::Full,
    };
    if let Scope::Sampled(Sample { seed }) = scope {
        let variable = sample::VARIABLE;
        println!("playing a tenth of the long tests: {variable}={seed}; --full plays all of them");
    }
    let tree = Tree::of(&metadata, has_nextest());
    if !tree.nextest {
        println!("cargo-nextest is not installed: the tests run under cargo test");
    }
    let logs = metadata.target_directory.join("xtask-test");
    fs::create_dir_all(&logs).map_err(|e| format!("cannot create {}: {e}", logs.display()))?;

    let mut run = Run { metadata, logs, scope, found: Found::default() };
    let mut rows: Vec<Row> = Vec::new();
    let mut build_failed = false;
    for suite in plan::plan(&tree, scope) {
        let row = match suite.lacks(build_failed, &run.found) {
            Some(reason) => Row::not_run(&suite.name, reason),
            None => run.perform(&suite)?,
        };
        build_failed |= suite.is_build && row.outcome == Outcome::Failed;
        rows.push(row);
    }
    println!("\n{}", table::draw(&rows));
    let failed = rows.iter().any(|row| row.outcome == Outcome::Failed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn has_nextest() -> bool {
    let asked = cargo().args(["nextest", "--version"]).output();
    asked.is_ok_and(|output| output.status.success())
}

/// Installs the real agent programs where they are missing and prints their folder.
pub(crate) fn print_agents() -> Result<(), String> {
    println!("{}", agents::folder(&Log::terminal()?)?.display());
    Ok(())
}

/// Installs the client of the Agent Client Protocol where it is missing and prints its folder.
pub(crate) fn print_client() -> Result<(), String> {
    println!("{}", client::CLIENT.folder(&Log::terminal()?)?.display());
    Ok(())
}

/// Checks the types of the SDK for TypeScript.
pub(crate) fn check_types(metadata: &Metadata) -> Result<(), String> {
    let log = Log::terminal()?;
    let compiler = tsc::compiler(&log)?;
    let scratch = metadata.target_directory.join("xtask-types");
    tsc::check(&log, &compiler, &metadata.workspace_root, &scratch)
}

/// The variable that names the folder of the pinned agent programs, and that folder: the one it
/// names already, or ours, installed first where they are missing.
pub(crate) fn agents() -> Result<(&'static str, PathBuf), String> {
    let named = std::env::var_os(agents::VARIABLE).map(PathBuf::from);
    let folder = named.map_or_else(|| agents::folder(&Log::terminal()?), Ok)?;
    Ok((agents::VARIABLE, folder))
}

/// The versions of an agent program that are pinned.
pub(crate) fn versions(program: &str) -> impl Iterator<Item = &'static str> {
    agents::versions(program)
}

/// Where proptest's cases come from. The same ones each time, so that a change is judged by itself
/// and not by luck; whoever looks for more sets it.
const PROPTEST_SEED: &str = "PROPTEST_RNG_SEED";

/// What suites are run with.
struct Run {
    metadata: Metadata,
    logs: PathBuf,
    scope: Scope,
    /// Known after the suites that ask for it.
    found: Found,
}

impl Run {
    fn perform(&mut self, suite: &Suite) -> Result<Row, String> {
        print!("{:<width$} … ", suite.name, width = table::NAME_WIDTH);
        io::stdout().flush().map_err(|e| format!("cannot write to the terminal: {e}"))?;
        let log = Log::create(&self.logs, &suite.name)?;
        let (began, cpu_before) = (Instant::now(), cpu::of_children());
        let end = self.carry_out(&suite.job, &log);
        let (seconds, cpu) = (began.elapsed().as_secs_f64(), cpu::of_children() - cpu_before);
        let output = log.text();
        let (mut outcome, mut note) = match end {
            End::Passed => (Outcome::Passed, None),
            End::Failed(note) => (Outcome::Failed, note),
            End::NotRun(note) => (Outcome::NotRun, Some(note)),
        };
        let mut counts = Counts::of(&suite.job, outcome, &output);
        if suite.needs_tests && outcome == Outcome::Passed && counts.passed == 0 {
            (outcome, note) = (Outcome::Failed, Some("no such test was found".to_owned()));
            counts = Counts::of(&suite.job, outcome, &output);
        }
        println!("{} {seconds:.1} s", outcome.word());
        if outcome == Outcome::Failed {
            println!("{output}\n(log: {})", log.path.display());
        }
        let tests = nextest::finished(&output);
        let tests = tests.into_iter().map(|(name, test)| (name, test.seconds)).collect();
        Ok(Row { name: suite.name.clone(), outcome, counts, seconds, cpu, tests, note })
    }

    fn carry_out(&mut self, job: &Job, log: &Log) -> End {
        let root = &self.metadata.workspace_root;
        let done = match job {
            Job::Cargo { calls, .. } => {
                // All of them, whatever the first says.
                let ends: Vec<_> = calls.iter().map(|call| self.cargo(log, call)).collect();
                ends.into_iter().collect::<Result<Vec<()>, String>>().map(|_| ())
            }
            Job::Check => check::run(&self.metadata).map(|said| log.write(&said)),
            Job::Schema => schema::compare(root),
            Job::Docs => docs::compare(root),
            Job::Backends => {
                backends::compare(&self.metadata, matches!(self.scope, Scope::Sampled(_)))
            }
            Job::Bench => bench::smoke(&self.metadata).and_then(|smoke| log.run(smoke)),
            Job::Deny => match deny::program(log) {
                Ok(program) => log.run(deny::command(&program, root)),
                Err(reason) => return End::missing_tool(log, reason),
            },
            Job::Types => match tsc::compiler(log) {
                Ok(compiler) => tsc::check(log, &compiler, root, &self.logs.join("types")),
                Err(reason) => return End::missing_tool(log, reason),
            },
            Job::Agents => {
                self.found.agents = agents::folder(log);
                match &self.found.agents {
                    // What is noted from here on is of this run.
                    Ok(_) => backends::forget(&self.metadata),
                    Err(reason) => return End::missing_tool(log, reason.clone()),
                }
            }
            Job::Client => {
                self.found.client = client::CLIENT.folder(log);
                match &self.found.client {
                    Ok(_) => Ok(()),
                    Err(reason) => return End::missing_tool(log, reason.clone()),
                }
            }
        };
        match done {
            Ok(()) => End::Passed,
            Err(problem) => {
                log.write(&problem);
                End::Failed(problem.starts_with("not there yet").then_some(problem))
            }
        }
    }

    fn cargo(&self, log: &Log, arguments: &[String]) -> Result<(), String> {
        let mut command = cargo();
        command.args(arguments).env(backends::VARIABLE, backends::folder(&self.metadata));
        let tools =
            [(agents::VARIABLE, &self.found.agents), (client::VARIABLE, &self.found.client)];
        for (variable, folder) in tools {
            if let Ok(folder) = folder {
                command.env(variable, folder);
            }
        }
        if std::env::var_os(PROPTEST_SEED).is_none() {
            command.env(PROPTEST_SEED, "1");
        }
        match self.scope {
            Scope::Sampled(Sample { seed }) => command.env(sample::VARIABLE, seed.to_string()),
            Scope::Quick | Scope::Full => command.env_remove(sample::VARIABLE),
        };
        log.run(command)
    }
}

/// How a suite ended, with a word on why where its output does not say it.
enum End {
    Passed,
    Failed(Option<String>),
    NotRun(String),
}

impl End {
    /// On a developer's machine a missing tool is said; where nobody reads it is a failure.
    fn missing_tool(log: &Log, reason: String) -> Self {
        log.write(&reason);
        let in_ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        if in_ci { Self::Failed(Some(reason)) } else { Self::NotRun(reason) }
    }
}

/// What a suite printed.
struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    fn create(folder: &Path, suite: &str) -> Result<Self, String> {
        let path = folder.join(format!("{}.log", suite.replace(' ', "-")));
        // Appending, because several processes write to it one after the other.
        let made = File::create(&path).and_then(|_| File::options().append(true).open(&path));
        let file = made.map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        Ok(Self { path, file })
    }

    /// Everything goes to standard error, for a person to read.
    fn terminal() -> Result<Self, String> {
        let stderr = io::stderr().as_fd().try_clone_to_owned();
        let file = stderr.map_err(|e| format!("cannot write to the terminal: {e}"))?.into();
        Ok(Self { path: "/dev/stderr".into(), file })
    }

    fn write(&self, text: &str) {
        // A log that cannot be written must not fail a suite that passed.
        let _ = writeln!(&self.file, "{text}");
    }

    fn text(&self) -> String {
        let bytes = fs::read(&self.path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).trim_end().to_owned()
    }

    fn run(&self, mut command: Command) -> Result<(), String> {
        let shown = format!("{command:?}");
        self.write(&format!("$ {shown}"));
        let clone = || self.file.try_clone().map_err(|e| format!("cannot write the log: {e}"));
        command.stdin(Stdio::null()).stdout(clone()?).stderr(clone()?);
        let status = command.status().map_err(|e| format!("cannot start {shown}: {e}"))?;
        if status.success() { Ok(()) } else { Err(format!("{shown} ended with {status}")) }
    }
}
