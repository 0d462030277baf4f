//! The agent programs, and git: where they are, and what they say to `--version`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use atomic_backend::guard::{Finished, Guard, Job};
use atomic_backend::login::users_file;
use atomic_backend::{claude, copilot, opencode};
use atomic_registry::{AGENT_PROGRAMS, AgentProgram};
use tokio::task::JoinSet;

use super::{Known, Remark, Severity};
use crate::failure::Failure;
use crate::login;
use crate::programs::{Located, SearchPath};

pub(super) const GIT: &str = "git";

/// Time limit for the answer of a program. Beside a load the start of a shell script has taken more than
/// two seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// How much of what a program prints is looked at.
const MOST_BYTES: usize = 16 * 1024;

/// What was found out about each program.
pub(super) struct Probes(Vec<Probe>);

/// What was found out about a program.
pub(super) struct Probe {
    name: &'static str,
    pub(super) located: Located,
    /// Absent when there is nothing to ask.
    pub(super) answer: Option<Answer>,
}

/// What a program says to `--version`.
#[derive(Debug)]
pub(super) enum Answer {
    /// Its version.
    Version(String),
    /// Nothing.
    Silence,
    /// Something in which there is no version.
    Garbage(String),
    /// That it has failed, with its last words.
    Failure(String),
    /// Nothing in time.
    Late,
    /// More than anybody wants to know.
    Flood,
}

impl Probes {
    pub(super) fn of(&self, name: &str) -> Option<&Probe> {
        self.0.iter().find(|probe| probe.name == name)
    }
}

/// Asks every program at the same time.
pub(super) fn ask_all(search_path: &SearchPath) -> Result<Probes, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Failed(format!("the program could not start: {error}")))?;
    let names: Vec<&'static str> =
        AGENT_PROGRAMS.iter().map(|agent| agent.name).chain([GIT]).collect();
    let path = search_path.for_programs();
    runtime.block_on(async {
        let mut probes: Vec<Probe> = vec![];
        let mut asked = JoinSet::new();
        for name in names {
            let located = search_path.find(name);
            if let Some(program) = located.path.clone() {
                let (index, path) = (probes.len(), path.clone());
                asked.spawn(async move { (index, ask(name, program, path).await) });
            }
            probes.push(Probe { name, located, answer: None });
        }
        while let Some(answered) = asked.join_next().await {
            let Ok((index, answer)) = answered else { continue };
            if let Some(probe) = probes.get_mut(index) {
                probe.answer = Some(answer);
            }
        }
        Ok(Probes(probes))
    })
}

/// Asks one program, away from the project: what lies there must not have a say in it.
async fn ask(name: &str, program: PathBuf, path: String) -> Answer {
    let job = Job {
        argv: vec![program.to_string_lossy().into_owned(), "--version".to_owned()],
        cwd: PathBuf::from("/"),
        env: vec![("PATH".to_owned(), path)],
        marker: format!("doctor-{}/{name}", std::process::id()),
        stdin: false,
    };
    let guard = Guard::from_current_exe();
    match guard.run(&job, Some(PATIENCE), MOST_BYTES, std::future::pending()).await {
        Ok(finished) => understood(&finished),
        Err(error) => Answer::Failure(error.to_string()),
    }
}

fn understood(finished: &Finished) -> Answer {
    let Finished { status, tail, left_out } = finished;
    let Some(status) = status else {
        return if *left_out > 0 { Answer::Flood } else { Answer::Late };
    };
    if !status.success() {
        let last = tail.lines().map(str::trim).rfind(|line| !line.is_empty());
        let words = last.map_or_else(String::new, |line| format!(": {}", excerpt(line)));
        return Answer::Failure(format!("{status}{words}"));
    }
    if *left_out > 0 {
        return Answer::Flood;
    }
    match version_in(tail) {
        Some(version) => Answer::Version(version),
        None if tail.trim().is_empty() => Answer::Silence,
        None => Answer::Garbage(excerpt(tail.trim())),
    }
}

/// The first word that looks like a version: `2.1.325`, `v1.0`.
fn version_in(text: &str) -> Option<String> {
    let is_version = |word: &&str| {
        let mut parts = word.split('.');
        let mut is_number =
            || parts.next().is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()));
        is_number() && is_number() && word.len() < 40
    };
    let words = text.split(|c: char| c.is_whitespace() || "(),;:\"".contains(c));
    let plain = |word: &&str| word.chars().all(|c| c.is_ascii_graphic());
    words
        .map(|word| word.trim_start_matches('v').trim_end_matches('.'))
        .filter(plain)
        .find(is_version)
        .map(str::to_owned)
}

/// The beginning of a text, on one line.
fn excerpt(text: &str) -> String {
    let beginning: String = text.chars().take(60).collect();
    let more = if text.chars().count() > 60 { "…" } else { "" };
    format!("{beginning:?}{more}")
}

pub(super) fn look(known: &Known) -> Vec<Remark> {
    let mut remarks = vec![];
    for agent in &AGENT_PROGRAMS {
        let Some(probe) = known.probes.of(agent.name) else { continue };
        let mut about = about(probe, &format!("install it: {}", agent.install));
        if let Some(last) = about.last_mut() {
            judge(last, agent, probe);
        }
        let is_installed = probe.located.path.is_some();
        remarks.extend(about);
        if is_installed {
            remarks.extend(login_remarks(agent, &known.catalog.project));
        }
    }
    remarks.extend(known.search_path.relative.iter().map(|entry| {
        let entry = if entry.as_os_str().is_empty() { Path::new(".") } else { entry };
        let text = format!(
            "PATH has the folder `{}`, which is another one everywhere; nothing was run from it",
            entry.display()
        );
        Remark::new(Severity::Warning, text, "write whole paths in PATH")
    }));
    remarks
}

/// The user's files that cannot be used, and the project's settings that are not.
fn login_remarks(agent: &AgentProgram, project: &Path) -> Vec<Remark> {
    let name = agent.name;
    let problem = atomic_backend::login::problem(name, project).map(|problem| {
        let problem = problem.lines().next().unwrap_or_default().to_owned();
        let remedy = format!("correct it: {name} gets its provider from there");
        Remark::new(Severity::Problem, format!("{name}: {problem}"), remedy)
    });
    let unused = login::lines(name, project).into_iter().map(|line| {
        let own = users_file(name).unwrap_or("your own settings");
        let remedy = format!("if the setting is yours, move it to {own}");
        Remark::new(Severity::Note, line.replace('\n', "\\n"), remedy)
    });
    problem.into_iter().chain(unused).collect()
}

/// Adds to what is said about an agent program whether it can be used.
fn judge(remark: &mut Remark, agent: &AgentProgram, probe: &Probe) {
    if let Some(Answer::Version(version)) = &probe.answer
        && let Some(needed) = needed_instead_of(agent.name, version)
    {
        remark.severity = Severity::Warning;
        let _ = write!(remark.text, " is too old; {needed} or later is needed");
        remark.remedy = format!("update it: {}", agent.install);
    }
}

/// The oldest version of a program that works, when this one is older still.
fn needed_instead_of(name: &str, version: &str) -> Option<String> {
    match name {
        "claude" => claude::needed_instead_of(version),
        "copilot" => copilot::needed_instead_of(version),
        "opencode" => opencode::needed_instead_of(version),
        _ => None,
    }
}

/// What there is to say about a program; `install` is the remedy where there is none.
pub(super) fn about(probe: &Probe, install: &str) -> Vec<Remark> {
    let Probe { name, located, answer } = probe;
    let mut remarks: Vec<Remark> = located
        .in_project
        .iter()
        .map(|path| {
            let text = format!("{}: not run, because it is in the project", path.display());
            let remedy = "take the folder out of PATH unless you trust it";
            Remark::new(Severity::Warning, text, remedy)
        })
        .collect();
    let Some(path) = &located.path else {
        let text = if located.in_project.is_empty() {
            format!("{name} is not installed")
        } else {
            format!("{name} is there, but only in the project, so it was not looked at")
        };
        remarks.push(Remark::new(Severity::Note, text, install));
        return remarks;
    };
    let path = path.display();
    let wrong = |what: String| {
        let remedy = format!("try `{path} --version` yourself, or {install}");
        Remark::new(Severity::Warning, format!("{name}: {path} {what}"), remedy)
    };
    remarks.push(match answer {
        Some(Answer::Version(version)) => Remark::fine(format!("{name} {version}, {path}")),
        Some(Answer::Silence) => wrong("prints nothing for --version".to_owned()),
        Some(Answer::Garbage(said)) => wrong(format!("prints no version: {said}")),
        Some(Answer::Failure(why)) => wrong(format!("fails ({why})")),
        Some(Answer::Late) => wrong("does not answer within 5 s".to_owned()),
        Some(Answer::Flood) => {
            wrong(format!("prints more than {} KiB for --version", MOST_BYTES / 1024))
        }
        None => wrong("could not be asked".to_owned()),
    });
    remarks
}
