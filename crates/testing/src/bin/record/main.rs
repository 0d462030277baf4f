//! Records what real agent programs say, for the tests of those who read it.
//!
//! `record <program> <folder> [<scenario>…]` plays small scenarios with every pinned version of the program and a
//! scripted model, and writes each to `<folder>/<version>/<scenario>.jsonl`: a line about the
//! recording, then the program's lines, without what is different each time.

mod copilot;
mod normalise;
mod opencode;
mod scenarios;
mod troubles;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use atomic_backend::guard;
use atomic_testing::agents::{CLAUDE, COPILOT, OLDER_CLAUDE, OPENCODE};
use scenarios::SCENARIOS;
use serde_json::json;

const USAGE: &str = "usage: record claude|opencode|copilot <folder> [<scenario>…]";

fn main() -> ExitCode {
    if let Some(code) = guard::run_if_asked() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, folder, only @ ..] = arguments.as_slice() else { return misused() };
    let folder = PathBuf::from(folder);
    let runtime = tokio::runtime::Runtime::new();
    let recorded = runtime.and_then(|runtime| runtime.block_on(record(program, &folder, only)));
    match recorded {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "record: {error}");
            ExitCode::FAILURE
        }
    }
}

fn misused() -> ExitCode {
    let _ = writeln!(io::stderr(), "{USAGE}");
    ExitCode::from(2)
}

async fn record(program: &str, folder: &Path, only: &[String]) -> io::Result<()> {
    match program {
        "claude" => {
            for version in [OLDER_CLAUDE, CLAUDE] {
                let play = async |scenario: &str| scenarios::play(version, scenario).await;
                all(folder, [program, version], &chosen(&SCENARIOS, only), play).await?;
            }
            Ok(())
        }
        "opencode" => {
            let scenarios = chosen(&opencode::SCENARIOS, only);
            all(folder, [program, OPENCODE], &scenarios, opencode::play).await
        }
        "copilot" => {
            let scenarios = chosen(&copilot::SCENARIOS, only);
            all(folder, [program, COPILOT], &scenarios, copilot::play).await
        }
        _ => Err(io::Error::other(USAGE)),
    }
}

/// The scenarios that are named, or else those that are kept.
fn chosen<'a>(own: &[&'a str], only: &'a [String]) -> Vec<&'a str> {
    if only.is_empty() {
        return own.iter().copied().chain(troubles::KEPT).collect();
    }
    only.iter().map(String::as_str).collect()
}

/// Records scenarios of a program in one version.
async fn all(
    folder: &Path,
    [program, version]: [&str; 2],
    scenarios: &[&str],
    play: impl AsyncFn(&str) -> io::Result<Vec<String>>,
) -> io::Result<()> {
    for scenario in scenarios {
        keep(folder, [program, version, scenario], &play(scenario).await?)?;
    }
    Ok(())
}

/// Writes a recording down.
fn keep(
    folder: &Path,
    [program, version, scenario]: [&str; 3],
    lines: &[String],
) -> io::Result<()> {
    let folder = folder.join(version);
    fs::create_dir_all(&folder)?;
    let about = json!({ "program": program, "version": version, "scenario": scenario });
    let head = json!({ "recorded": about }).to_string();
    let mut text = String::new();
    for line in std::iter::once(&head).chain(lines) {
        text.push_str(line);
        text.push('\n');
    }
    fs::write(folder.join(format!("{scenario}.jsonl")), text)?;
    writeln!(io::stdout(), "{version} {scenario}")
}
