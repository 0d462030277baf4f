//! How long the program takes to say its version, and to list what ships with it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::measure::{best_and_median, timed};
use crate::{Scale, say, text};

const RUNS: usize = 50;

pub(crate) fn measure(scale: Scale) -> Result<(), String> {
    let Some(program) = atomic()? else {
        say("\nStart-up was not measured: build `atomic` with `cargo build --release` first");
        return Ok(());
    };
    let runs = scale.shrunk(RUNS);
    say("\nStart-up, wall:\n");
    say("| command | best, ms | median, ms |\n|---|---:|---:|");
    let home = TempDir::new().map_err(text)?;
    let ours = tell("atomic --version", runs, || ran(&program, &["--version"], home.path()))?;
    tell("atomic list", runs, || ran(&program, &["list"], home.path()))?;
    match found("claude").or_else(crate::overhead::claude) {
        Some(claude) => {
            let version = || ran(&claude, &["--version"], home.path());
            let theirs = tell("claude --version", runs, version)?;
            say(&format!("\n`claude --version` takes {:.1} times as long", theirs / ours));
        }
        None => say("\n`claude --version` was not measured: there is no `claude` on PATH"),
    }
    Ok(())
}

/// Prints the row of a command; the median.
pub(crate) fn tell(
    name: &str,
    runs: usize,
    mut run: impl FnMut() -> Result<f64, String>,
) -> Result<f64, String> {
    let times: Result<Vec<f64>, String> = (0..runs).map(|_| run()).collect();
    let (best, median) = best_and_median(times?);
    say(&format!("| `{name}` | {best:.1} | {median:.1} |"));
    Ok(median)
}

/// The program that was built beside this one.
pub(crate) fn atomic() -> Result<Option<PathBuf>, String> {
    let program = std::env::current_exe().map_err(text)?.with_file_name("atomic");
    Ok(program.exists().then_some(program))
}

/// A program on PATH.
fn found(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Runs a command in a folder that is also its home; milliseconds.
pub(crate) fn ran(program: &Path, arguments: &[&str], home: &Path) -> Result<f64, String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(home).env("HOME", home).env_remove("ATOMIC_HOME");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (time, status) = timed(|| command.status().map_err(text))?;
    if !status.success() {
        return Err(format!("{} {}: {status}", program.display(), arguments.join(" ")));
    }
    Ok(time.as_secs_f64() * 1_000.0)
}
