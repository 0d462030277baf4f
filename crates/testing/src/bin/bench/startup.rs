//! How long the program takes to say its version.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::measure::{best_and_median, timed};
use crate::{Scale, say, text};

const RUNS: usize = 50;

pub(crate) fn measure(scale: Scale) -> Result<(), String> {
    let program = std::env::current_exe().map_err(text)?.with_file_name("atomic");
    if !program.exists() {
        say("\nStart-up was not measured: build `atomic` with `cargo build --release` first");
        return Ok(());
    }
    let times = (0..scale.shrunk(RUNS)).map(|_| version(&program));
    let (best, median) = best_and_median(times.collect::<Result<_, _>>()?);
    say(&format!("\n`atomic --version`: {best:.1} ms at best, {median:.1} in the median (wall)"));
    Ok(())
}

fn version(program: &Path) -> Result<f64, String> {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null());
    let (time, status) = timed(|| command.status().map_err(text))?;
    if !status.success() {
        return Err(format!("{}: {status}", program.display()));
    }
    Ok(time.as_secs_f64() * 1_000.0)
}
