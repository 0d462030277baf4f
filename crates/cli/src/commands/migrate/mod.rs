//! `atomic migrate`: from an old list of features to a file of tasks, or to a session of Ralph.

mod keys;
mod list;
mod source;
mod task;
mod write;

use std::process::ExitCode;

use atomic_runner::{Run, Settings, StartRequest};
use atomic_workflow::builtin::ralph::ralph_with_tasks;

use self::list::TaskList;
use self::source::Source;
use self::task::Status;
use self::write::write;
use super::run::{see_through, somebody_is_there};
use crate::args::MigrateArgs;
use crate::catalog::{self, Catalog};
use crate::failure::{Failure, exit_code};
use crate::show::Look;
use crate::trust::Asking;
use crate::{paint, settings, stage};

pub(crate) fn migrate(args: &MigrateArgs) -> Result<ExitCode, Failure> {
    refuse_idle_flags(args)?;
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
            let ended = see_through(&args.output, Look::Steps, || {
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

/// Whoever gives a flag wants it to count.
fn refuse_idle_flags(args: &MigrateArgs) -> Result<(), Failure> {
    let given = args.start.first_flag().or_else(|| args.settings.first_flag());
    match given.or_else(|| args.output.first_flag()).filter(|_| !args.ralph) {
        None => Ok(()),
        Some(flag) => Err(Failure::Usage(format!(
            "--{flag} counts only with --ralph; leave it out, or add --ralph"
        ))),
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
    let mut catalog = Catalog::open(&workspace, settings::start_flags(&args.start, &args.settings));
    let somebody = somebody_is_there(&args.output);
    catalog.settle_trust(Asking::if_somebody(somebody))?;
    catalog.introduce(args.output.verbose);
    let mut wanted = Settings::default();
    let given = catalog.values()?;
    settings::apply(&given, &mut wanted, somebody);
    wanted.program.trusted = catalog.is_trusted();
    let workflow = ralph_with_tasks("ralph", &tasks.rows(), &wanted.limits)
        .map_err(|problem| refused(&format!("Ralph cannot take this list: {problem}")))?;
    catalog.tell_replacements(&workflow, &wanted)?;
    let backend = settings::backend(&given);
    let stage = stage::stage(backend, &wanted, &workspace, catalog.registry)?;
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
