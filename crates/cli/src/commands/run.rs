//! `atomic run`: start a workflow and see it through.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{IsTerminal as _, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::process::ExitCode;
use std::time::Duration;

use atomic_event::{BackendId, Intent};
use atomic_files::PROMPT_LIMIT;
use atomic_graph::Graph;
use atomic_runner::{Ended, PromptError, Run, Settings, Show, StartRequest, read_prompt};
use atomic_workflow::descriptor::author_words;
use atomic_workflow::{Workflow, launchers};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendTimeoutError;

use crate::args::{OutputArgs, RunArgs};
use crate::catalog::Catalog;
use crate::failure::{Failure, exit_code};
use crate::gate::UntrustedCode;
use crate::show::Look;
use crate::trust::Asking;
use crate::{catalog, paint, settings, show, stage};

/// Whether a person can see questions and answer them here.
pub(crate) fn somebody_is_there(output: &OutputArgs) -> bool {
    !output.for_programs() && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Whether that person sees standard output as well, where a run names its payer.
pub(crate) fn sees_output(somebody: bool) -> bool {
    somebody && std::io::stdout().is_terminal()
}

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let workspace = catalog::here()?;
    let flags = settings::start_flags(&args.start, &args.settings);
    let mut catalog = Catalog::open(&workspace, flags);
    let somebody = somebody_is_there(&args.output);
    catalog.settle_trust(Asking::if_somebody(somebody))?;
    catalog.introduce(args.output.verbose);
    let mut wanted = Settings::default();
    let given = catalog.values()?;
    settings::apply(&given, &mut wanted, somebody);
    wanted.program.trusted = catalog.is_trusted();
    if somebody {
        catalog.shelf.gate.untrusted = UntrustedCode::Prompt;
    }
    let workflow = catalog.workflow(&args.workflow)?;
    catalog.admit_documents(&workflow)?;
    catalog.tell_replacements(&workflow, &wanted)?;
    if args.plan {
        return plan(&workflow, &args.prompt, &wanted);
    }
    let prompt = match piped(&args.prompt)? {
        Some(prompt) if prompt.trim().is_empty() => {
            return Err(PromptError::Empty(workflow.name).into());
        }
        Some(prompt) => prompt,
        None => read_prompt(&args.prompt, &workspace, &workflow.name, &args.workflow)?,
    };
    wanted.program.is_attended = sees_output(somebody);
    wanted.program.backend_from = settings::backend_from(&given, &workspace);
    let backend = settings::backend(&given);
    let stage = stage::stage(backend, &wanted, &workspace, catalog.registry)?;
    let model = settings::model(&given);
    let request = StartRequest { workflow, prompt, workspace, model, settings: wanted };
    let ended = see_through(&args.output, Look::Steps, || {
        Ok(Run::start_streaming(stage, request, &args.output.modes())?)
    })?;
    Ok(ExitCode::from(exit_code(&ended.outcome)))
}

/// The prompt that comes through a pipe of ours: `/dev/stdin`, or what a shell makes of `<(…)`. Any
/// other FIFO is not read, so that one in a project cannot block.
fn piped(text: &str) -> Result<Option<String>, Failure> {
    let folders = ["/dev/fd/", "/proc/self/fd/"];
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    let is_ours = text == "/dev/stdin"
        || folders.iter().any(|folder| text.strip_prefix(folder).is_some_and(is_number));
    if !is_ours || !std::fs::metadata(text).is_ok_and(|found| found.file_type().is_fifo()) {
        return Ok(None);
    }
    let mut prompt = String::new();
    let read =
        File::open(text).and_then(|file| file.take(PROMPT_LIMIT + 1).read_to_string(&mut prompt));
    read.map_err(|error| Failure::Failed(format!("{text}: cannot be read: {error}")))?;
    if prompt.len() as u64 > PROMPT_LIMIT {
        let most = PROMPT_LIMIT >> 20;
        return Err(Failure::Failed(format!("{text}: is larger than {most} MB")));
    }
    Ok(Some(prompt))
}

/// Says what a run could cost at most, and whether it would be refused; starts nothing.
fn plan(workflow: &Workflow, prompt: &str, settings: &Settings) -> Result<ExitCode, Failure> {
    let certificate = atomic_runner::planned(workflow, prompt, settings)?;
    let text = author_words(&certificate.to_string()).replace("`maxLaunches`", "--max-launches");
    paint::line(&paint::printable(text.trim_end()));
    for (backend, nodes) in named_backends(&workflow.graph) {
        paint::line(&paint::printable(&format!("On {backend}: {}", nodes.join(", "))));
    }
    atomic_runner::refuse_too_many(&certificate, settings.max_launches)?;
    Ok(ExitCode::SUCCESS)
}

/// The backends that nodes name, each with those nodes.
fn named_backends(graph: &Graph) -> BTreeMap<BackendId, Vec<String>> {
    let mut named: BTreeMap<BackendId, Vec<String>> = BTreeMap::new();
    for launcher in launchers(graph) {
        if let Some(backend) = &launcher.backend {
            named.entry(backend.clone()).or_default().push(launcher.to_string());
        }
    }
    named
}

/// What a run is driven on.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let built = builder.worker_threads(2).enable_all().build();
    built.map_err(|error| Failure::Failed(format!("the program could not start: {error}")))
}

/// Starts a run and carries it to its end, showing what happens and passing on what the user wants.
pub(crate) fn see_through(
    output: &OutputArgs,
    look: Look,
    start: impl FnOnce() -> Result<(Run, Show), Failure>,
) -> Result<Ended, Failure> {
    runtime()?.block_on(async {
        let (intents, wishes) = mpsc::channel(16);
        // Before anything is started, so that no signal finds us unprepared.
        listen_for_signals(&intents)
            .map_err(|error| Failure::Failed(format!("signals cannot be caught: {error}")))?;
        let (mut run, shown) = start()?;
        if let Some(inhibitor) = crate::sleep::inhibitor().filter(|_| look == Look::Steps) {
            run.inhibit_sleep(inhibitor);
        }
        let is_kept = look != Look::Answer { is_kept: false };
        if let Some(why) = shown.unlisted().filter(|_| is_kept) {
            paint::warn(&format!(
                "this session is not in the list of sessions: {why}; resume it with \
                 `atomic resume --trust {}`",
                run.dir().display()
            ));
        }
        let printer = show::spawn(output, look, shown, run.dir().to_owned(), intents);
        let ended = run.drive(wishes).await;
        let printed = tokio::task::spawn_blocking(move || printer.finish());
        let _ = printed.await;
        let ended = ended?;
        show::farewell(output, look, &ended);
        Ok(ended)
    })
}

/// The first signal pauses. A second Ctrl+C ends Atomic and all that it has started at once.
fn listen_for_signals(intents: &mpsc::Sender<Intent>) -> std::io::Result<()> {
    let kinds = [
        (SignalKind::interrupt(), "Ctrl+C"),
        (SignalKind::terminate(), "SIGTERM"),
        (SignalKind::hangup(), "the terminal was closed"),
    ];
    for (kind, reason) in kinds {
        let mut signals = signal(kind)?;
        let intents = intents.clone();
        tokio::spawn(async move {
            let mut pausing = false;
            while signals.recv().await.is_some() {
                if pausing && kind == SignalKind::interrupt() {
                    crate::exit(130);
                }
                pausing = true;
                let pause = Intent::Pause { reason: reason.to_owned() };
                let sent = intents.send_timeout(pause, Duration::from_millis(100)).await;
                if matches!(sent, Err(SendTimeoutError::Closed(_))) {
                    // The run is over and saved; only its output is still being read.
                    crate::exit(128 + kind.as_raw_value());
                }
            }
        });
    }
    Ok(())
}
