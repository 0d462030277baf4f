//! LangGraph on the same graphs, for comparison. Installed on demand, never in a check.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::memory::Measured;
use crate::{Scale, say, text};

const SCRIPT: &str = include_str!("peer.py");

pub(crate) fn measure(scale: Scale, ours: &[Measured]) -> Result<(), String> {
    let python = installed()?;
    let [linear, cycle, _] = scale.sizes;
    let repeats = scale.repeats.min(3);
    let arguments = [linear, cycle, repeats].map(|number| number.to_string());
    let output = run(Command::new(python).arg("-c").arg(SCRIPT).args(arguments))?;
    say("\nBeside LangGraph, in memory (CPU per step at best)\n");
    say("| case | steps | LangGraph, µs | Atomic, µs | times |");
    say("|---|---:|---:|---:|---:|");
    for line in output.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [case, steps, micros] = words[..] else { continue };
        let theirs: f64 = micros.parse().map_err(text)?;
        let same = |m: &&Measured| m.case.starts_with(case) && m.steps.to_string() == steps;
        let Some(our) = ours.iter().find(same) else { continue };
        let times = theirs / our.micros;
        say(&format!("| {case} | {steps} | {theirs:.0} | {:.2} | {times:.0} |", our.micros));
    }
    Ok(())
}

/// A Python that has LangGraph; it is kept in the cache folder.
fn installed() -> Result<PathBuf, String> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = cache.or_else(home).ok_or("there is neither XDG_CACHE_HOME nor HOME")?;
    let folder = cache.join("atomic-bench/venv");
    let python = folder.join("bin/python");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "langgraph"]))?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        let problem = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} failed:\n{problem}"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
