//! Which agent program would do the work here and why, and what is good to know about it.

use atomic_backend::claude;
use atomic_registry::settings::{ALLOW_ROOT, BACKEND, SCRIPT};
use atomic_registry::{ACP, AGENT_PROGRAMS, AgentProgram, agent_program};

use super::{Known, Remark, Severity};
use crate::{settings, stage};

pub(super) fn look(known: &Known) -> Vec<Remark> {
    let chosen = settings::backend(&known.values);
    let Some(program) = chosen.map_or_else(|| first_installed(known), agent_program) else {
        return vec![without_a_program(known, chosen)];
    };
    if !is_installed(known, program) {
        let text = format!("{} is to be used ({}), and not installed", program.name, why(known));
        let remedy = format!("install it: {}; or choose another with --backend", program.install);
        return vec![Remark::new(Severity::Problem, text, remedy)];
    }
    let mut remarks = vec![Remark::fine(format!("{} would be used: {}", program.name, why(known)))];
    remarks.extend(root(program, known));
    remarks
}

fn is_installed(known: &Known, program: &AgentProgram) -> bool {
    known.probes.of(program.name).is_some_and(|probe| probe.located.path.is_some())
}

fn first_installed(known: &Known) -> Option<&'static AgentProgram> {
    AGENT_PROGRAMS.iter().find(|program| is_installed(known, program))
}

/// Who has chosen.
fn why(known: &Known) -> String {
    let chosen = known.values.get(&BACKEND).or_else(|| known.values.get(&SCRIPT));
    chosen.map_or_else(
        || "the first that is installed".to_owned(),
        |chosen| chosen.origin.to_string(),
    )
}

/// Nothing to use, or nothing that is a program.
fn without_a_program(known: &Known, chosen: Option<&str>) -> Remark {
    if let Some(name) = chosen.filter(|name| name.starts_with(ACP))
        && let Err(problem) = stage::speaker(name, &known.search_path)
    {
        let remedy = "correct the command, or choose another backend with --backend";
        return Remark::new(Severity::Problem, problem.to_string(), remedy);
    }
    if let Some(name) = chosen {
        return Remark::fine(format!("{name} would be used: {}", why(known)));
    }
    let probes = AGENT_PROGRAMS.iter().filter_map(|program| known.probes.of(program.name));
    let is_in_project = probes.into_iter().any(|probe| !probe.located.in_project.is_empty());
    let place = if is_in_project { " outside the project" } else { "" };
    let names: Vec<&str> = AGENT_PROGRAMS.iter().map(|program| program.name).collect();
    let text = format!("there is no agent program{place} that can be used: {}", names.join(", "));
    let remedy = "install one of them; until then, `atomic demo` shows a run without any";
    Remark::new(Severity::Warning, text, remedy)
}

/// The warning that the program refuses to work as root.
fn root(program: &AgentProgram, known: &Known) -> Option<Remark> {
    let is_allowed = known.values.switch(&ALLOW_ROOT).unwrap_or(false);
    let is_allowed = is_allowed || stage::is_told_to_be_a_sandbox();
    if program.name != "claude" || claude::works_unasked(is_allowed) {
        return None;
    }
    let text = "claude refuses to skip permission prompts as root";
    let remedy = "run as a normal user, or pass --allow-root on a disposable machine";
    Some(Remark::new(Severity::Warning, text, remedy))
}
