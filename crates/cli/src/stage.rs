//! Putting together what a run acts with.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use atomic_backend::acp::{AcpBackend, AcpConfig, split_command};
use atomic_backend::claude::{ClaudeBackend, ClaudeConfig};
use atomic_backend::copilot::{CopilotBackend, CopilotConfig};
use atomic_backend::guard::Guard;
use atomic_backend::login::Pay;
use atomic_backend::opencode::{OpenCodeBackend, OpenCodeConfig};
use atomic_backend::script::{Script, ScriptBackend};
use atomic_backend::{Backend, PROVIDER_PATIENCE};
use atomic_registry::project::Repository;
use atomic_registry::settings::BACKEND;
use atomic_registry::{ACP, AGENT_PROGRAMS, AgentProgram, Registry, agent_program};
use atomic_runner::{Clock, Inherit, OtherBackends, Settings, Stage};
use atomic_session::{Disk, RealDisk};

use crate::commands::demo;
use crate::failure::Failure;
use crate::login::tell_unused_settings;
use crate::programs::SearchPath;
use crate::{environment, home};

/// The disk all sessions are on, for work in the current folder.
pub(crate) fn disk() -> Arc<dyn Disk> {
    let here = std::env::current_dir().ok();
    here.map_or_else(|| Arc::new(RealDisk::default()) as Arc<dyn Disk>, |here| disk_in(&here))
}

/// The disk for work in a project: below the root of its repository it follows no links.
fn disk_in(project: &Path) -> Arc<dyn Disk> {
    let repository = Repository::of(project, home::user().as_deref());
    Arc::new(RealDisk::in_project(repository.root))
}

/// What a run with this backend acts with; without one, with the first that is installed.
pub(crate) fn stage(
    backend: Option<&str>,
    settings: &Settings,
    project: &Path,
    registry: Arc<Registry>,
) -> Result<Stage, Failure> {
    stage_with(guard(settings, project), backend, settings, project, registry)
}

/// The same, with another way to start processes.
pub(crate) fn stage_with(
    guard: Guard,
    backend: Option<&str>,
    settings: &Settings,
    project: &Path,
    registry: Arc<Registry>,
) -> Result<Stage, Failure> {
    let disk = disk_in(project);
    Ok(Stage {
        clock: clock(),
        backend: self::backend(backend, settings, project, &guard)?,
        others: others(settings, SearchPath::of_environment(project), &guard),
        registry,
        index: home::index(&disk),
        holder: holder(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        disk,
        guard,
    })
}

/// Starts every process of a run: agent programs, commands of workflows, checks.
pub(crate) fn guard(settings: &Settings, project: &Path) -> Guard {
    Guard::from_current_exe().with_env(environment::in_project(project, settings.program.trusted))
}

/// Who we are, for those who find a session locked.
pub(crate) fn holder() -> String {
    format!("atomic {}", env!("CARGO_PKG_VERSION"))
}

/// The backend of this name; without one, of the first agent program that is installed.
pub(crate) fn backend(
    name: Option<&str>,
    settings: &Settings,
    project: &Path,
    guard: &Guard,
) -> Result<Arc<dyn Backend>, Failure> {
    let programs = SearchPath::of_environment(project);
    let name = match name {
        Some(name) => name,
        None => first_installed(&programs)?.name,
    };
    backend_by_name(name, settings, &programs, guard)
}

/// Makes the backends that nodes name.
fn others(settings: &Settings, programs: SearchPath, guard: &Guard) -> OtherBackends {
    let (settings, guard) = (settings.clone(), guard.clone());
    OtherBackends::made_by(move |id| {
        let made = backend_by_name(id.as_str(), &settings, &programs, &guard);
        made.map_err(|failure| failure.to_string())
    })
}

/// How long an agent program may try again inside a turn: two minutes, unless the user allows less.
fn patience(settings: &Settings) -> Duration {
    PROVIDER_PATIENCE.min(Duration::from_secs(settings.program.retry_window_secs))
}

/// Makes a backend. This is where one begins to exist: another one is an arm here and
/// a row in [`AGENT_PROGRAMS`], which everything else follows. The oldest version that works is told
/// to `doctor` in its `programs.rs`.
fn backend_by_name(
    name: &str,
    settings: &Settings,
    programs: &SearchPath,
    guard: &Guard,
) -> Result<Arc<dyn Backend>, Failure> {
    #[cfg(feature = "failpoints")]
    if let Some(made) = crate::stand_in::find(name, guard) {
        return made;
    }
    if settings.inherited() != Inherit::None {
        tell_unused_settings(name, &programs.project);
    }
    let pay = settings.program.pay.as_deref().and_then(Pay::read);
    match (name, settings.script.as_deref()) {
        ("claude", _) => {
            let config = ClaudeConfig {
                program: program(programs, "claude")?,
                allow_root: settings.program.allow_root || is_told_to_be_a_sandbox(),
                patience: patience(settings),
                starts: starts_at_once(),
                env: vec![],
            };
            Ok(Arc::new(ClaudeBackend::new(config, guard.clone()).paying(pay)))
        }
        ("opencode", _) => {
            let config = OpenCodeConfig {
                program: program(programs, "opencode")?,
                patience: patience(settings),
                env: vec![],
            };
            Ok(Arc::new(OpenCodeBackend::paying(config, guard.clone(), pay)))
        }
        ("copilot", _) => {
            let config = CopilotConfig {
                program: program(programs, "copilot")?,
                patience: patience(settings),
                env: vec![],
            };
            Ok(Arc::new(CopilotBackend::paying(config, guard.clone(), pay)))
        }
        ("script", Some(path)) if path == Path::new(demo::EMBEDDED) => {
            Ok(Arc::new(ScriptBackend::new(demo::script()?, guard.clone())))
        }
        ("script", Some(path)) => {
            Ok(Arc::new(ScriptBackend::new(Script::load(path)?, guard.clone())))
        }
        ("script", None) => Err(Failure::Usage(
            "the backend `script` plays a file of canned turns; name it with --script <FILE>"
                .to_owned(),
        )),
        (command, _) if command.starts_with(ACP) => {
            Ok(Arc::new(AcpBackend::new(speaker(command, programs)?, guard.clone())))
        }
        (other, _) => Err(Failure::Usage(format!(
            "there is no backend `{other}` in this version; choose {}",
            BACKEND.kind.words()
        ))),
    }
}

/// Starting a program is all computing.
fn starts_at_once() -> usize {
    std::thread::available_parallelism().map_or(2, NonZeroUsize::get)
}

/// How any program that speaks ACP is used, by the name of its backend.
pub(crate) fn speaker(name: &str, programs: &SearchPath) -> Result<AcpConfig, Failure> {
    let command = name.strip_prefix(ACP).unwrap_or_default().to_owned();
    let mut words = split_command(&command).map_err(|problem| {
        Failure::Usage(format!(
            "the backend `{name}` is no command that can be run: {problem}; write the command that \
             starts the program, as in `acp:opencode acp`"
        ))
    })?;
    let program = words.remove(0);
    let located = programs.find(&program);
    let path = located.path.ok_or_else(|| {
        Failure::Failed(match located.in_project.first() {
            Some(path) => format!(
                "the backend `{name}` needs {program}, which is only in the project ({}), and \
                 nothing from there is run; install it elsewhere",
                path.display()
            ),
            None => format!(
                "the backend `{name}` needs {program}, which is not installed, or not in PATH; \
                 install it, or write where it is: `acp:/path/to/{program} …`"
            ),
        })
    })?;
    Ok(AcpConfig {
        command,
        program: path,
        arguments: words,
        starts: starts_at_once(),
        env: vec![],
    })
}

/// The first agent program that is installed.
fn first_installed(programs: &SearchPath) -> Result<&'static AgentProgram, Failure> {
    let installed = AGENT_PROGRAMS.iter().find(|agent| programs.find(agent.name).path.is_some());
    installed.ok_or_else(|| {
        let installs: Vec<String> =
            AGENT_PROGRAMS.iter().map(|agent| format!("  {}", agent.install)).collect();
        Failure::Failed(format!(
            "no agent program is installed. Install one:\n{}\nor see a run without any: atomic demo",
            installs.join("\n")
        ))
    })
}

/// Where an agent program is. One that is part of the project is not run.
fn program(programs: &SearchPath, name: &str) -> Result<PathBuf, Failure> {
    let located = programs.find(name);
    if let Some(path) = located.path {
        return Ok(path);
    }
    let install = agent_program(name).map_or("", |agent| agent.install);
    Err(Failure::Failed(match located.in_project.first() {
        Some(path) => format!(
            "{name} is only in the project ({}), and nothing from there is run; install it \
             elsewhere: {install}",
            path.display()
        ),
        None => format!("{name} is not installed, or not in PATH; install it: {install}"),
    }))
}

/// Whether the user has told Claude Code itself that this machine is a sandbox.
pub(crate) fn is_told_to_be_a_sandbox() -> bool {
    let is_on =
        |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    is_on("IS_SANDBOX") || is_on("CLAUDE_CODE_BUBBLEWRAP")
}

#[cfg(not(feature = "failpoints"))]
pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(atomic_runner::SystemClock)
}

/// In tests the clock can be set ahead: `ATOMIC_TEST_CLOCK_AHEAD` is a number of seconds.
#[cfg(feature = "failpoints")]
pub(crate) fn clock() -> Arc<dyn Clock> {
    struct Ahead(i64);
    impl Clock for Ahead {
        fn now(&self) -> atomic_event::Moment {
            let now = jiff::Timestamp::now();
            atomic_event::Moment(now + jiff::SignedDuration::from_secs(self.0))
        }
    }
    let ahead = std::env::var("ATOMIC_TEST_CLOCK_AHEAD").ok().and_then(|text| text.parse().ok());
    Arc::new(Ahead(ahead.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use atomic_backend::login::Pay;
    use atomic_registry::AGENT_PROGRAMS;
    use atomic_registry::settings::{BACKEND, Kind, PAY};
    use atomic_workflow::backend_called;

    #[test]
    fn every_credential_that_can_be_chosen_is_known() {
        let Kind::Choice(choices) = PAY.kind else { panic!("{:?}", PAY.kind) };
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, Pay::ALL.map(Pay::name));
    }

    /// What can be chosen for a run can be named by a node.
    #[test]
    fn every_backend_is_in_the_table_of_names() {
        let Kind::Choice(choices) = BACKEND.kind else { panic!("{:?}", BACKEND.kind) };
        let programs = AGENT_PROGRAMS.iter().map(|agent| agent.name);
        for name in choices.iter().map(|(name, _)| *name).chain(programs) {
            let name = name.replace("<command>", "gemini --acp");
            assert!(backend_called(&name).is_some(), "{name}");
        }
    }
}
