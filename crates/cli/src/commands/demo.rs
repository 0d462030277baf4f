//! `atomic demo`: a real Ralph run on an agent that is a script.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use atomic_backend::guard::Guard;
use atomic_backend::script::{FileSource, Format, Script};
use atomic_registry::Registry;
use atomic_registry::settings::Values;
use atomic_runner::{Outcome, Run, Settings, StartRequest};
use atomic_workflow::builtin;

use super::run::{see_through, somebody_is_there};
use crate::args::DemoArgs;
use crate::catalog::{self, Catalog};
use crate::failure::{Failure, exit_code};
use crate::show::Look;
use crate::show::timeline;
use crate::{environment, home, paint, settings, stage, trust};

/// The name by which a session remembers the script inside this binary.
pub(crate) const EMBEDDED: &str = "embedded:demo";

const PROMPT: &str = "Build a snake game in Rust";

/// The files of a folder under `demo`, by the names the script uses.
macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../demo/", $name)))),*]
    };
}

const FILES: &[(&str, &str)] = embedded![
    "files/commit.sh",
    "files/task-1/board.rs",
    "files/task-1/lib.rs",
    "files/task-2/body.rs",
    "files/task-3/food.rs",
    "files/task-3/random.rs",
    "files/task-4/game.rs",
    "files/task-4/lib.rs",
    "files/task-4/rules.rs",
    "files/task-4-again/rules.rs",
    "files/task-4-bug-1/game.rs",
    "files/task-5/args.rs",
    "files/task-5/autopilot.rs",
    "files/task-5/keys.rs",
    "files/task-5/lib.rs",
    "files/task-5/main.rs",
    "files/task-5/play.rs",
    "files/task-5/program.rs",
    "files/task-5/steering.rs",
    "files/task-5/terminal.rs",
    "files/task-5/view.rs",
    "files/task-6/README.md",
    "files/task-7/steering.rs",
    "files/task-7/turning.rs",
];

/// The script inside this binary.
pub(crate) fn script() -> Result<Script, Failure> {
    let text = include_str!("../../demo/script.toml");
    Ok(Script::parse(text, Format::Toml, &FileSource::Embedded(FILES))?)
}

pub(crate) fn demo(args: &DemoArgs) -> Result<ExitCode, Failure> {
    // The folder one is in may be a stranger's project, and its programs are not run.
    let path = environment::without_programs_of(&catalog::here()?);
    require(
        "cargo",
        "The demo builds and tests a small Rust program. Install Rust and try again.",
        &path,
    )?;
    let remedy = "The demo keeps its work in a git repository. Install git and try again.";
    require("git", remedy, &path)?;
    let script = args.script.clone().map(|path| std::path::absolute(&path).unwrap_or(path));
    let script = script.unwrap_or_else(|| PathBuf::from(EMBEDDED));
    // What the demo shows is the same for everybody.
    let registry = Arc::new(Registry::embedded());
    if args.output.verbose {
        catalog::count(&registry);
    }
    let mut wanted = Settings { script: Some(script), ..Settings::default() };
    let guard = Guard::from_current_exe().with_env(vec![path.clone()]);
    let stage = stage::stage_with(guard, Some("script"), &wanted, Path::new("/"), registry)?;
    let workspace = make_folder(args.dir.as_deref(), &path)?;
    if !args.output.for_programs() {
        introduce(&workspace);
    }
    // The same for everybody: neither files nor variables change the demo.
    settings::apply(&Values::default(), &mut wanted, somebody_is_there(&args.output));
    // The folder is Atomic's own, and empty.
    wanted.program.trusted = true;
    let request = StartRequest {
        workflow: builtin::find("ralph")?,
        prompt: PROMPT.to_owned(),
        workspace: workspace.clone(),
        model: None,
        settings: wanted,
    };
    let ended = see_through(&args.output, Look::Steps, || {
        Ok(Run::start_streaming(stage, request, &args.output.modes())?)
    })?;
    // The script has written what is there now, and nobody else.
    if let Some(after) = Catalog::open(&workspace, Values::default()).trust() {
        trust::trust_as_made(after);
    }
    if !args.output.for_programs() {
        conclude(&workspace, &ended.dir, &ended.outcome);
    }
    Ok(ExitCode::from(exit_code(&ended.outcome)))
}

fn introduce(workspace: &Path) {
    paint::line(
        "The agent in this demo is a script: no model is involved and nothing is paid for.",
    );
    paint::line("Everything else is real: the files, the commits, `cargo test`, the task list.");
    paint::line(&format!("It works in {}\n", workspace.display()));
}

fn conclude(workspace: &Path, session: &Path, outcome: &Outcome) {
    paint::line("\nTime line:");
    for line in timeline::lines(session) {
        paint::line(&line);
    }
    paint::line(&format!("\nThe game:     {}", workspace.display()));
    if *outcome == Outcome::Completed {
        paint::line(&format!("  play it:    cd {} && cargo run", workspace.display()));
    }
    paint::line(&format!("The session:  {}", session.display()));
    paint::line("  tasks.json, progress.txt and journal.jsonl there say what happened");
    paint::line("\nThe same with a real agent:");
    paint::line(&format!("  atomic run ralph \"{PROMPT}\" --backend claude"));
}

/// An environment variable and its value.
type Variable = (String, String);

/// Stops with a clear word when a program is missing.
fn require(program: &str, remedy: &str, path: &Variable) -> Result<(), Failure> {
    let mut command = Command::new(program);
    // rustup obeys the `rust-toolchain.toml` of the folder it is called in.
    command.env(&path.0, &path.1).current_dir("/");
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Failed(format!(
            "`{program} --version` does not work ({status}). {remedy}"
        ))),
        Err(error) => {
            Err(Failure::Failed(format!("`{program}` cannot be run ({error}). {remedy}")))
        }
    }
}

/// Makes the folder the game is built in: a git repository with one commit, whoever the user is.
fn make_folder(wanted: Option<&Path>, path: &Variable) -> Result<PathBuf, Failure> {
    let failed = |path: &Path, error: &std::io::Error| {
        Failure::Failed(format!("the folder {} cannot be made: {error}", path.display()))
    };
    let folder = match wanted {
        Some(path) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            refuse_settings_of_cargo(&path)?;
            std::fs::create_dir(&path).map_err(|error| failed(&path, &error))?;
            path
        }
        None => {
            fresh_folder("atomic-demo").map_err(|error| failed(&std::env::temp_dir(), &error))?
        }
    };
    git(&folder, &["init", "--quiet", "--initial-branch=main"], path)?;
    let identity = ["-c", "user.name=Atomic demo", "-c", "user.email=demo@localhost"];
    let commit = ["commit", "--quiet", "--allow-empty", "--message", "Start"];
    git(&folder, &[identity.as_slice(), commit.as_slice()].concat(), path)?;
    Ok(folder)
}

/// Refuses a folder in a project that has a say in how cargo builds: the demo would run its programs.
fn refuse_settings_of_cargo(folder: &Path) -> Result<(), Failure> {
    const SETTINGS: [&str; 4] = [".cargo", "Cargo.toml", "rust-toolchain", "rust-toolchain.toml"];
    let home = home::user();
    let holds_home = |above: &&Path| !home.as_ref().is_some_and(|home| home.starts_with(above));
    for above in folder.ancestors().skip(1).take_while(holds_home) {
        if let Some(name) = SETTINGS.iter().find(|name| above.join(name).exists()) {
            return Err(Failure::Usage(format!(
                "{}: {} has settings for cargo\n  hint: choose a folder outside of that project",
                folder.display(),
                above.join(name).display()
            )));
        }
    }
    Ok(())
}

/// The first of `<name>-1`, `<name>-2`, … among the temporary files that does not exist yet.
pub(crate) fn fresh_folder(name: &str) -> std::io::Result<PathBuf> {
    let parent = std::env::temp_dir();
    for number in 1u32.. {
        let folder = parent.join(format!("{name}-{number}"));
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
}

fn git(folder: &Path, arguments: &[&str], path: &Variable) -> Result<(), Failure> {
    let mut command = Command::new("git");
    command.env(&path.0, &path.1).arg("-C").arg(folder).args(arguments);
    let output = command.output();
    let problem = match output {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Failure::Failed(format!("`git {}` failed: {problem}", arguments.join(" "))))
}
