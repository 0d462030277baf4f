//! The benchmarks: `cargo xtask bench [--smoke] [--peer]`.
//!
//! Prints tables and judges nothing. `--smoke` runs tiny sizes, only to see that everything still
//! runs. `--peer` also measures LangGraph on the same graphs, in a virtual environment of its own
//! that is kept in the cache folder.

mod disk;
mod durable;
mod measure;
mod memory;
mod peer;
mod run;

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::{Command, ExitCode};

use atomic_backend::guard;

/// How big everything is.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// The numbers of steps.
    sizes: [usize; 3],
    /// How often a thing is measured where the best and the median are told.
    repeats: usize,
    /// How many durable steps are timed one by one.
    durable_steps: usize,
}

/// The flag by which this program measures one row.
const ROW: &str = "--row";

const FULL: Scale = Scale { sizes: [1_000, 10_000, 100_000], repeats: 7, durable_steps: 4_000 };
const SMOKE: Scale = Scale { sizes: [10, 20, 40], repeats: 2, durable_steps: 20 };

fn main() -> ExitCode {
    // This binary is its own guard, as `atomic` is.
    if let Some(code) = guard::run_if_asked() {
        return code;
    }
    let flags: Vec<String> = std::env::args().skip(1).collect();
    if let Some((ROW, rest)) = flags.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return exit(row(rest));
    }
    let known = ["--smoke", "--peer"];
    if let Some(unknown) = flags.iter().find(|flag| !known.contains(&flag.as_str())) {
        say(&format!("there is no flag {unknown}; there are: {}", known.join(", ")));
        return ExitCode::from(2);
    }
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    let scale = if has("--smoke") { SMOKE } else { FULL };
    exit(measure_all(scale, has("--peer")))
}

fn exit(outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            say(&format!("the benchmark broke down: {problem}"));
            ExitCode::FAILURE
        }
    }
}

fn measure_all(scale: Scale, with_peer: bool) -> Result<(), String> {
    let in_memory = memory::measure(scale)?;
    durable::measure(scale)?;
    run::measure(scale)?;
    if with_peer {
        peer::measure(scale, &in_memory)?;
    }
    Ok(())
}

/// Measures one row of a table in a process of its own, so that its memory is its own, and prints
/// it. Returns the row.
fn row_of_its_own(arguments: &[String]) -> Result<String, String> {
    let program = std::env::current_exe().map_err(text)?;
    let output = Command::new(program).arg(ROW).args(arguments).output().map_err(text)?;
    let row = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    if !output.status.success() {
        return Err(format!("{arguments:?}: {row}"));
    }
    say(&row);
    Ok(row)
}

/// The other side of it.
fn row(arguments: &[String]) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["memory", case, steps, repeats] => {
            memory::row(case, steps.parse().map_err(text)?, repeats.parse().map_err(text)?)
        }
        ["run", work, steps] => run::row(work, steps.parse().map_err(text)?),
        _ => Err("no such row".to_owned()),
    }
}

/// Prints a line; that nobody reads it is no failure.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// An error as text.
fn text(error: impl Display) -> String {
    error.to_string()
}
