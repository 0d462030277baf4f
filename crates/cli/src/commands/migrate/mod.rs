//! `atomic migrate`: from an old list of features to a file of tasks, or to a session of Ralph.

mod list;
mod source;
mod task;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use atomic_runner::{Run, Settings, StartRequest};
use atomic_workflow::builtin::ralph::ralph_with_tasks;

use self::list::TaskList;
use self::source::Source;
use self::task::Status;
use super::run::{see_through, somebody_is_there};
use crate::args::MigrateArgs;
use crate::catalog::{self, Catalog};
use crate::failure::{Failure, exit_code};
use crate::{paint, settings, stage};

pub(crate) fn migrate(args: &MigrateArgs) -> Result<ExitCode, Failure> {
    let source = Source::read(&args.file)?;
    let listed = source.listed().and_then(TaskList::of);
    let tasks = listed.map_err(|problems| source.failure(&problems))?;
    let text = serde_json::to_string_pretty(&tasks.file(&stage::clock().now().to_string()))
        .map_err(|error| Failure::Failed(format!("{}: {error}", source.path())))?;
    // Before anything is written: a list that Ralph cannot take leaves nothing behind.
    let session = if args.ralph { Some(prepared(args, &source, &tasks)?) } else { None };
    if let Some(output) = &args.to {
        write(output, args, &format!("{text}\n"))?;
        paint::aside(&format!("{} written to {}", told(&tasks), output.display()));
    }
    match session {
        Some((stage, request)) => {
            let ended = see_through(&args.output, || {
                Ok(Run::start_streaming(stage, request, &args.output.modes())?)
            })?;
            Ok(ExitCode::from(exit_code(&ended.outcome)))
        }
        None => {
            if args.to.is_none() {
                paint::line(&text);
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// What a session of Ralph on these tasks is started with.
fn prepared(
    args: &MigrateArgs,
    source: &Source,
    tasks: &TaskList,
) -> Result<(atomic_runner::Stage, StartRequest), Failure> {
    let refused = |why: &str| Failure::Failed(format!("{}: {why}", source.path()));
    if tasks.tasks.iter().all(|task| task.status.is_done()) {
        return Err(refused("every task is done already; there is nothing to start"));
    }
    let workspace = catalog::here()?;
    let catalog = Catalog::of(&workspace);
    catalog.introduce(args.output.verbose);
    let mut wanted = Settings::default();
    let given = settings::for_start(&args.start, &args.settings, &workspace)?;
    settings::apply(&given, &mut wanted, somebody_is_there(&args.output));
    let workflow = ralph_with_tasks("ralph", &tasks.rows(), &wanted.limits)
        .map_err(|problem| refused(&format!("Ralph cannot take this list: {problem}")))?;
    let script = wanted.script.as_deref();
    let stage = stage::stage(settings::backend(&given), script, catalog.registry)?;
    let prompt = prompt(source, tasks);
    let model = settings::model(&given);
    Ok((stage, StartRequest { workflow, prompt, workspace, model, settings: wanted }))
}

/// What every agent is told the work is.
fn prompt(source: &Source, tasks: &TaskList) -> String {
    let about = tasks.title().map_or_else(String::new, |title| format!(": {title}"));
    format!("Implement the tasks of {}{about}", source.path())
}

/// How many tasks there are and how they stand.
fn told(tasks: &TaskList) -> String {
    let count = |status: Status| match tasks.count(status) {
        0 => None,
        count => Some(format!("{count} {}", status.word().replace('_', " "))),
    };
    let statuses =
        [Status::Passing, Status::Failing, Status::Skipped, Status::InProgress, Status::Pending];
    let counts: Vec<String> = statuses.into_iter().filter_map(count).collect();
    let noun = if tasks.tasks.len() == 1 { "task" } else { "tasks" };
    format!("{} {noun} ({})", tasks.tasks.len(), counts.join(", "))
}

/// Writes the new file: whole or not at all, and never over the old one.
fn write(output: &Path, args: &MigrateArgs, text: &str) -> Result<(), Failure> {
    let place = output.display();
    let refused = |why: String| Failure::Failed(format!("{place}: {why}"));
    if is_same(output, &args.file) {
        return Err(refused("this is the file that is migrated; name another one".to_owned()));
    }
    match std::fs::symlink_metadata(output) {
        Ok(found) if found.is_dir() => {
            return Err(refused("this is a folder; name a file in it".to_owned()));
        }
        Ok(_) if !args.force => {
            return Err(refused(
                "it exists; name another file, or overwrite it with --force".into(),
            ));
        }
        Ok(_) | Err(_) => {}
    }
    replace(output, text).map_err(|error| refused(format!("it cannot be written: {error}")))
}

/// Whether two paths lead to one file, by whatever links.
fn is_same(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (std::fs::metadata(one), std::fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        (Ok(_) | Err(_), _) => false,
    }
}

fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput)?;
    let temporary: PathBuf =
        path.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let mut file = std::fs::File::create_new(&temporary)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // What counts is the first error.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}
