//! The benchmarks: `cargo xtask bench [--smoke] [--peer] [--startup | --typescript | --agents]`.
//!
//! Prints tables and judges nothing. `--smoke` runs tiny sizes, only to see that everything still
//! runs. `--peer` also measures LangGraph on the same graphs, in a virtual environment of its own
//! that is kept in the cache folder. `--startup` measures only the registry and the start of the
//! program, `--typescript` only workflows in TypeScript, beside bun if `--peer` is given, and
//! `--agents` only turns of real agent programs.

mod branches;
mod bun;
mod direct;
mod direct_copilot;
mod disk;
mod double;
mod drive;
mod durable;
mod fans;
mod graphs;
mod growth;
mod measure;
mod memory;
mod overhead;
mod peer;
mod processes;
mod registry;
mod run;
mod startup;
mod turns;
mod typescript;

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::{Command, ExitCode};

use atomic_backend::guard;

/// How big everything is.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// The numbers of steps of whole sessions.
    sizes: [usize; 3],
    /// How often a thing is measured where the best and the median are told.
    repeats: usize,
    /// How often the branches that only wait are run.
    branch_repeats: usize,
    /// How many durable steps are timed one by one.
    durable_steps: usize,
    /// By what every other size is divided.
    shrink: usize,
}

impl Scale {
    /// A size, at this scale.
    fn shrunk(self, size: usize) -> usize {
        (size / self.shrink).max(size.min(10))
    }

    /// How often something slow is done.
    fn few(self, times: usize) -> usize {
        (times / self.shrink).max(1)
    }
}

/// The flag by which this program measures one row.
const ROW: &str = "--row";

const FULL: Scale = Scale {
    sizes: [1_000, 10_000, 100_000],
    repeats: 7,
    branch_repeats: 20,
    durable_steps: 4_000,
    shrink: 1,
};
const SMOKE: Scale =
    Scale { sizes: [10, 20, 40], repeats: 2, branch_repeats: 2, durable_steps: 20, shrink: 100 };

fn main() -> ExitCode {
    // This binary is its own guard, as `atomic` is.
    if let Some(code) = guard::run_if_asked() {
        return code;
    }
    let flags: Vec<String> = std::env::args().skip(1).collect();
    if let Some((ROW, rest)) = flags.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return exit(row(rest));
    }
    let known = ["--smoke", "--peer", "--startup", "--typescript", "--agents"];
    if let Some(unknown) = flags.iter().find(|flag| !known.contains(&flag.as_str())) {
        say(&format!("there is no flag {unknown}; there are: {}", known.join(", ")));
        return ExitCode::from(2);
    }
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    let scale = if has("--smoke") { SMOKE } else { FULL };
    if has("--startup") {
        return exit(registry::measure(scale).and_then(|()| startup::measure(scale)));
    }
    if has("--typescript") {
        return exit(typescript::measure(scale, has("--peer")));
    }
    if has("--agents") {
        return exit(agents(scale));
    }
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
    let branches = branches::measure(scale)?;
    if with_peer {
        peer::measure(scale, &in_memory, branches)?;
    }
    durable::measure(scale)?;
    growth::measure(scale)?;
    fans::measure(scale)?;
    run::measure(scale)?;
    registry::measure(scale)?;
    startup::measure(scale)?;
    typescript::measure(scale, with_peer)?;
    agents(scale)
}

/// Turns of real agent programs.
fn agents(scale: Scale) -> Result<(), String> {
    overhead::measure(scale)?;
    turns::measure(scale)
}

/// Measures one row of a table in a process of its own, so that its memory is its own.
fn row_of_its_own(arguments: &[&str]) -> Result<String, String> {
    let program = std::env::current_exe().map_err(text)?;
    let output = Command::new(program).arg(ROW).args(arguments).output().map_err(text)?;
    let row = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    if output.status.success() { Ok(row) } else { Err(format!("{arguments:?}: {row}")) }
}

/// The same, where the row is numbers.
fn numbers_of_its_own<const N: usize>(arguments: &[&str]) -> Result<[f64; N], String> {
    let row = row_of_its_own(arguments)?;
    let numbers: Vec<f64> = row.split(' ').filter_map(|number| number.parse().ok()).collect();
    numbers.try_into().map_err(|_: Vec<f64>| format!("{arguments:?}: {row}"))
}

/// The other side of it.
fn row(arguments: &[String]) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<usize>().map_err(text);
    let numbers = match words[..] {
        ["memory", case, size, repeats] => memory::row(case, number(size)?, number(repeats)?)?,
        ["growth", case, size, repeats] => growth::row(case, number(size)?, number(repeats)?)?,
        ["fan", work, items] => fans::row(work, number(items)?)?,
        ["typescript", count] => {
            say(&typescript::row(number(count)?)?.map(|number| number.to_string()).join(" "));
            return Ok(());
        }
        ["run", work, steps] => return run::row(work, number(steps)?),
        _ => return Err("no such row".to_owned()),
    };
    say(&numbers.map(|number| number.to_string()).join(" "));
    Ok(())
}

/// Prints a line; that nobody reads it is no failure.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// An error as text.
fn text(error: impl Display) -> String {
    error.to_string()
}
