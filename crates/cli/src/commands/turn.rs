//! `atomic -p`: one turn of one agent.

use std::io::Read as _;
use std::process::ExitCode;
use std::sync::Arc;

use atomic_files::PROMPT_LIMIT;
use atomic_registry::Kind;
use atomic_runner::{Inherit, OnQuestion, ProgramSettings, Run, Settings, StartRequest};
use atomic_session::MemoryDisk;
use atomic_workflow::builtin::prompt;

use super::run::{see_through, somebody_is_there};
use crate::args::TurnArgs;
use crate::catalog::{self, Catalog};
use crate::failure::{Failure, exit_code};
use crate::show::Look;
use crate::trust::Asking;
use crate::{settings, stage};

pub(crate) fn turn(args: &TurnArgs) -> Result<ExitCode, Failure> {
    let prompt = text(args)?;
    let workspace = catalog::here()?;
    let flags = settings::start_flags(&args.start, &args.settings);
    let mut catalog = Catalog::open(&workspace, flags);
    let somebody = somebody_is_there(&args.output);
    catalog.settle_trust(Asking::if_somebody(somebody))?;
    catalog.introduce(args.output.verbose);
    if let Some(name) = &args.agent {
        let found = catalog.registry.get(Kind::Agent, name);
        found.map_err(|error| Failure::Usage(error.to_string()))?;
    }
    // What the user types is not part of a workflow, and gets what the user has.
    let mut wanted = Settings { inherit: Inherit::All, ..Settings::default() };
    wanted.program.retry_window_secs = ProgramSettings::SHORT_RETRY_WINDOW_SECS;
    let given = catalog.values()?;
    settings::apply(&given, &mut wanted, somebody);
    wanted.program.trusted = catalog.is_trusted();
    if args.no_session && wanted.on_question == OnQuestion::Pause {
        // There will be nothing to come back to.
        wanted.on_question = OnQuestion::Fail;
    }
    wanted.program.is_attended = somebody;
    wanted.program.backend_from = settings::backend_from(&given, &workspace);
    let backend = settings::backend(&given);
    let mut stage = stage::stage(backend, &wanted, &workspace, catalog.registry)?;
    if args.no_session {
        stage.disk = Arc::new(MemoryDisk::default());
        stage.index = None;
    }
    let (workflow, model) = (prompt::prompt(args.agent.as_deref()), settings::model(&given));
    let request = StartRequest { workflow, prompt, workspace, model, settings: wanted };
    let look = Look::Answer { is_kept: !args.no_session };
    let ended = see_through(&args.output, look, || {
        Ok(Run::start_streaming(stage, request, &args.output.modes())?)
    })?;
    Ok(ExitCode::from(exit_code(&ended.outcome)))
}

/// What to say to the agent.
fn text(args: &TurnArgs) -> Result<String, Failure> {
    let Some(given) = &args.prompt else {
        return Err(Failure::Usage("there is nothing to do; give a prompt with -p".to_owned()));
    };
    let mut text = given.clone();
    if given == "-" {
        text.clear();
        let mut input = std::io::stdin().take(PROMPT_LIMIT + 1);
        input.read_to_string(&mut text).map_err(|error| {
            Failure::Failed(format!("the prompt cannot be read from standard input: {error}"))
        })?;
        if text.len() as u64 > PROMPT_LIMIT {
            let most = PROMPT_LIMIT >> 20;
            return Err(Failure::Failed(format!("standard input: is larger than {most} MB")));
        }
    }
    if text.trim().is_empty() {
        return Err(Failure::Usage("the prompt is empty; say what to do".to_owned()));
    }
    Ok(text)
}
