//! How long it takes to read commands, skills and agents, beside reading the bytes of their files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use atomic_registry::{Folders, Registry};
use rustix::fs::{Advice, fadvise};
use tempfile::TempDir;

use crate::measure::{best_and_median, timed};
use crate::startup::{atomic, ran};
use crate::{Scale, say, text};

const SIZES: [usize; 2] = [1_000, 10_000];

pub(crate) fn measure(scale: Scale) -> Result<(), String> {
    say("\nCommands, skills and agents of 2 KB, wall, median of");
    say(&format!(
        "{} runs (cold: their pages were dropped from the cache before):\n",
        scale.repeats
    ));
    say("| files | bytes alone, warm, ms | registry, warm, ms | best | times the bytes | \
         bytes alone, cold, ms | registry, cold, ms | `atomic list`, warm, ms |");
    say("|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut warm = vec![];
    for size in SIZES.map(|size| scale.shrunk(size)) {
        let tree = TempDir::new().map_err(text)?;
        let files = plant(tree.path(), size)?;
        warm.push(row(scale, tree.path(), &files)? / size as f64);
    }
    if let [few, many] = warm[..] {
        let ratio = many / few;
        say(&format!("\nA file of {} costs {ratio:.2} times one of {}.", SIZES[1], SIZES[0]));
    }
    Ok(())
}

/// Measures and prints a row; the median of reading them warm, in milliseconds.
fn row(scale: Scale, project: &Path, files: &[PathBuf]) -> Result<f64, String> {
    let folders = Folders::trusted(project.to_owned(), None);
    let times = |cold: bool, work: &dyn Fn() -> Result<(), String>| -> Result<Vec<f64>, String> {
        let one = || {
            if cold {
                forget(files)?;
            }
            Ok(timed(work)?.0.as_secs_f64() * 1_000.0)
        };
        (0..scale.repeats).map(|_| one()).collect()
    };
    let bytes = || files.iter().try_for_each(|path| fs::read(path).map(|_| ()).map_err(text));
    let registry = || {
        let read = Registry::read(&folders);
        let count = read.files().count();
        let all = count == files.len() && read.findings.is_empty();
        if all { Ok(()) } else { Err(format!("{count} of {} files were read", files.len())) }
    };
    let cold_bytes = best_and_median(times(true, &bytes)?).1;
    let cold = best_and_median(times(true, &registry)?).1;
    registry()?;
    let (best, warm) = best_and_median(times(false, &registry)?);
    let warm_bytes = best_and_median(times(false, &bytes)?).1;
    let listed = match atomic()? {
        Some(program) => {
            let runs: Result<Vec<f64>, String> =
                (0..scale.repeats).map(|_| ran(&program, &["list"], project)).collect();
            format!("{:.1}", best_and_median(runs?).1)
        }
        None => "–".to_owned(),
    };
    say(&format!(
        "| {} | {warm_bytes:.1} | {warm:.1} | {best:.1} | {:.1} | {cold_bytes:.1} | {cold:.1} | \
         {listed} |",
        files.len(),
        warm / warm_bytes,
    ));
    Ok(warm)
}

/// Drops what the system keeps of these files in memory.
fn forget(files: &[PathBuf]) -> Result<(), String> {
    for path in files {
        let file = File::open(path).map_err(text)?;
        fadvise(&file, 0, None, Advice::DontNeed).map_err(text)?;
    }
    Ok(())
}

/// Writes files of every provider and kind, as long as public ones usually are.
fn plant(project: &Path, size: usize) -> Result<Vec<PathBuf>, String> {
    let body = "Look at the code before you change it, and say what you saw.\n".repeat(28);
    let mut files = vec![];
    for number in 0..size {
        let name = format!("entity-{number}");
        let head = format!(
            "---\nname: {name}\ndescription: Looks at part {number} of the code and says what it \
             saw. Call it before you change anything.\n"
        );
        let (path, more) = match number % 6 {
            0 => (
                format!(".claude/agents/{name}.md"),
                "tools: Read, Grep, Bash(git:*)\nmodel: sonnet\n",
            ),
            1 => (
                format!(".claude/commands/{name}.md"),
                "argument-hint: \"[what]\"\nallowed-tools: [Read]\n",
            ),
            2 => (format!(".claude/skills/{name}/SKILL.md"), "license: MIT\n"),
            3 => (
                format!(".opencode/agents/{name}.md"),
                "mode: subagent\ntools:\n  bash: true\n  write: false\n",
            ),
            4 => (format!(".github/agents/{name}.agent.md"), "tools: ['read', 'search']\n"),
            _ => (format!(".atomic/agents/{name}.md"), "model: opus\n"),
        };
        let path = project.join(path);
        fs::create_dir_all(path.parent().unwrap_or(project)).map_err(text)?;
        fs::write(&path, format!("{head}{more}---\n\n{body}")).map_err(text)?;
        let file = File::open(&path).map_err(text)?;
        file.sync_all().map_err(text)?;
        files.push(path);
    }
    Ok(files)
}
