//! `atomic graph`: a workflow, or a run of one, as a picture.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;

use atomic_event::{Envelope, Event, Moment, StepId, Timer};
use atomic_graph::draw::{Overlay, Role, Status, TreeLine, dot, mermaid, svg, tree};
use atomic_graph::{Graph, Kind};
use atomic_registry::project::ProjectFiles;
use atomic_session::Session;
use atomic_workflow::Action;
use console::Style;
use serde::Deserialize as _;

use crate::args::{Format, GraphArgs};
use crate::catalog::Catalog;
use crate::failure::Failure;
use crate::gate::UntrustedCode;
use crate::{paint, settings, stage};

pub(crate) fn graph(args: &GraphArgs) -> Result<ExitCode, Failure> {
    let Drawn { mut graph, overlay, errors } = drawn(args)?;
    tell_backends(&mut graph);
    let picture = match args.format {
        Format::Mermaid => mermaid(&graph, &overlay),
        Format::Dot => dot(&graph, &overlay),
        Format::Svg => svg(&graph, &overlay),
        Format::Tree => {
            let colours = args.output.is_none() && std::io::stdout().is_terminal();
            let lines = tree(&graph, &overlay);
            let lines: Vec<String> = lines.iter().map(|line| painted(line, colours)).collect();
            lines.join("\n")
        }
    };
    match &args.output {
        Some(path) => {
            let text = format!("{}\n", picture.trim_end());
            let files = ProjectFiles::of(Path::new("."), crate::home::user().as_deref());
            let written = files.and_then(|files| files.replace_named(path, text.as_bytes()));
            written.map_err(|error| {
                Failure::Failed(format!("{}: cannot be written: {error}", path.display()))
            })?;
        }
        None => paint::line(picture.trim_end()),
    }
    match errors.as_slice() {
        [] => Ok(ExitCode::SUCCESS),
        errors => Err(Failure::Failed(errors.join("\n"))),
    }
}

/// What is to be drawn.
struct Drawn {
    graph: Graph,
    overlay: Overlay,
    /// Why it is not all of it, or could not be run.
    errors: Vec<String>,
}

/// What is to be drawn: a workflow first, else a session.
fn drawn(args: &GraphArgs) -> Result<Drawn, Failure> {
    let text = args.what.as_str();
    let mut catalog = Catalog::here(settings::trust_flag(args.trust))?;
    catalog.shelf.gate.untrusted = UntrustedCode::Prompt;
    let not_a_workflow = match catalog.load(text) {
        Ok(mut loaded) => {
            // A picture helps to see what is wrong, so errors do not keep it back.
            let Some(graph) = loaded.graph.take() else {
                let graph = loaded.sound()?.graph;
                return Ok(Drawn { graph, overlay: Overlay::default(), errors: vec![] });
            };
            return Ok(Drawn { graph, overlay: Overlay::default(), errors: loaded.errors });
        }
        Err(failure) => failure,
    };
    let dir = match super::find_session(text, args.place, "atomic graph {}") {
        Ok(found) => found.dir,
        // The session is known, and which folder is meant has to be said.
        Err(failure @ Failure::Usage(_)) => return Err(failure),
        Err(Failure::Failed(_)) => return Err(not_a_workflow),
    };
    let created = atomic_runner::kept(stage::disk(), &dir)?;
    let graph = serde_json::from_value(created.graph).map_err(|error| {
        Failure::Failed(format!("the graph of the session cannot be read: {error}"))
    })?;
    Ok(Drawn { graph, overlay: overlay(&dir)?, errors: vec![] })
}

/// Has nodes say which backend they name. What a node does is not the engine's to read, so its
/// pictures do not know.
fn tell_backends(graph: &mut Graph) {
    for node in &mut graph.nodes {
        if let Kind::Work { action, launch: true, .. } = &node.kind
            && let Ok(action) = Action::deserialize(action)
            && let Some(backend) = action.backend()
        {
            let description = node.description.iter().cloned();
            let all: Vec<String> = description.chain([format!("on {backend}")]).collect();
            node.description = Some(all.join(" · "));
        }
        node.inner_mut().into_iter().for_each(tell_backends);
    }
}

/// How every step of a session stands, and how long it took.
fn overlay(dir: &Path) -> Result<Overlay, Failure> {
    let mut overlay = Overlay::default();
    let mut started: BTreeMap<StepId, Moment> = BTreeMap::new();
    let mut first = None;
    for fact in Session::read_only(stage::disk(), dir)? {
        let Envelope { event, at, .. } = fact?;
        let first = *first.get_or_insert(at);
        let Some((step, status)) = told(&event) else { continue };
        if status == Status::Running {
            started.insert(step.clone(), at);
        }
        let began = started.get(step).copied();
        // A node whose ways are chosen has finished before, unless nothing is done there.
        if began.is_some() && matches!(event, Event::BranchChosen { .. }) {
            continue;
        }
        let open = matches!(status, Status::Running | Status::Asking);
        let time = began.filter(|_| !open).map(|began| at.millis_since(began));
        overlay.add(step, status, time);
        overlay.heard(step, at.millis_since(first));
    }
    Ok(overlay)
}

/// How a step stands after a fact.
fn told(event: &Event) -> Option<(&StepId, Status)> {
    if let Event::StepStarted(started) = event {
        return Some((&started.step, Status::Running));
    }
    if let Event::FunctionEvaluated { step, value, error: None, .. } = event {
        // A script says itself how it ends.
        let ends = |key: &str| value.get(key).is_some_and(|ending| !ending.is_null());
        let is_done = ends("done").then_some(Status::Completed);
        let status = is_done.or(ends("failed").then_some(Status::Failed))?;
        return value.get("calls").map(|_| (step, status));
    }
    Some(if let Event::StepFinished { step, .. } | Event::BranchChosen { step, .. } = event {
        (step, Status::Completed)
    } else if let Event::StepFailed { step, .. }
    | Event::TimerFired { step, timer: Timer::Limit }
    | Event::FunctionEvaluated { step, error: Some(_), .. } = event
    {
        (step, Status::Failed)
    } else if let Event::StepLost { step, .. } = event {
        (step, Status::Lost)
    } else if let Event::StepCancelled { step, .. } = event {
        (step, Status::Cancelled)
    } else if let Event::QuestionAsked { step, .. } = event {
        (step, Status::Asking)
    } else {
        return None;
    })
}

fn painted(line: &TreeLine, colours: bool) -> String {
    if !colours {
        return line.to_string();
    }
    let paint = |role: Role| match role {
        Role::Frame | Role::Rules | Role::Way => Style::new().dim(),
        Role::Name => Style::new().bold(),
        Role::Kind => Style::new().cyan(),
        Role::Description => Style::new(),
        Role::ErrorWay | Role::Problem => Style::new().red(),
        Role::Progress(status) => match status {
            Status::Completed => Style::new().green(),
            Status::Failed | Status::Lost => Style::new().red(),
            Status::Running => Style::new().cyan(),
            Status::Asking => Style::new().yellow(),
            Status::Skipped | Status::Waiting | Status::Cancelled => Style::new().dim(),
        },
    };
    line.spans.iter().map(|span| paint(span.role).apply_to(&span.text).to_string()).collect()
}
