//! The `atomic` command: parse, wire up, print. It decides nothing else.

mod access;
mod acp;
mod args;
mod catalog;
mod commands;
mod editor;
mod environment;
mod failure;
mod gate;
mod home;
mod load;
mod login;
mod paint;
mod programs;
mod removed;
mod roles;
mod settings;
mod shelf;
mod show;
mod sleep;
mod stage;
#[cfg(feature = "failpoints")]
mod stand_in;
mod trust;
mod uses;

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use args::{Cli, Command, SessionsCommand};
use failure::Failure;
use removed::RemovedFlag;

fn main() -> ExitCode {
    // Our own binary also plays the guard between us and every process we start.
    if let Some(code) = atomic_backend::guard::run_if_asked() {
        return code;
    }
    // Where the system cannot do it, the guards still end what they guard unless they are killed.
    let _ = atomic_backend::guard::adopt_orphans();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return unparsed(&error),
    };
    let Some(command) = cli.command else { return end(commands::turn::turn(&cli.turn)) };
    let outcome = match command {
        Command::Demo(args) => commands::demo::demo(&args),
        Command::Init => commands::init::init(),
        Command::New(args) => commands::new::new(&args),
        Command::Trust(args) => commands::trust::trust(&args),
        Command::Test(args) => commands::test::test(&args),
        Command::Run(args) => commands::run::run(&args),
        Command::Acp(args) => acp::acp(&args),
        Command::Resume(args) => commands::resume::resume(&args),
        Command::Answer(args) => commands::answer::answer(&args),
        Command::Fork(args) => commands::fork::fork(&args),
        Command::Check(args) => commands::check::check(&args),
        Command::Graph(args) => commands::graph::graph(&args),
        Command::List(args) => commands::list::list(&args),
        Command::Show(args) => commands::show::show(&args),
        Command::Models(args) => commands::models::models(&args),
        Command::Mcp(args) => commands::mcp::mcp(&args),
        Command::Migrate(args) => commands::migrate::migrate(&args),
        Command::Doctor(args) => commands::doctor::doctor(&args),
        Command::Sessions(args) => match args.command {
            None | Some(SessionsCommand::List) => commands::sessions::list(),
            Some(SessionsCommand::Show { session, place }) => {
                commands::sessions::show(&session, place)
            }
            Some(SessionsCommand::Rm { session, place }) => {
                commands::sessions::remove(&session, place)
            }
        },
        Command::Config(args) => commands::config::config(args.command.as_ref()),
    };
    end(outcome)
}

/// Ends the program and all that it guards at once.
pub(crate) fn exit(code: i32) -> ! {
    warn_of(atomic_backend::guard::kill_guarded());
    std::process::exit(code)
}

/// Names the processes that cannot be ended.
fn warn_of(ended: std::io::Result<()>) {
    if let Err(error) = ended {
        paint::warn(&format!("{error}\n  hint: end it as the user it runs as, with `kill`"));
    }
}

/// Says what is wrong with the arguments; a removed one has its own answer.
fn unparsed(error: &clap::Error) -> ExitCode {
    if let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg)
        && error.kind() == ErrorKind::UnknownArgument
        && let Some(RemovedFlag { flag, instead }) = removed::flag(given)
    {
        return Failure::Usage(format!("{flag} is gone\n  hint: {instead}")).report();
    }
    error.exit()
}

/// The exit code, also for output that could not be written.
fn end(outcome: Result<ExitCode, Failure>) -> ExitCode {
    // Processes that killed guards have left.
    warn_of(atomic_backend::guard::end_orphans());
    let code = outcome.unwrap_or_else(|failure| failure.report());
    match paint::lost() {
        None => code,
        Some(why) => {
            paint::complain(why);
            if code == ExitCode::SUCCESS { ExitCode::FAILURE } else { code }
        }
    }
}
