//! Front ends: what happens, for a terminal, a pipe, or another program.

mod answer;
mod ask;
mod json;
mod live;
pub(crate) mod plain;
pub(crate) mod timeline;

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use atomic_event::{Delta, Envelope, Event, Intent, Question, QuestionId, StepError, dollars};
use atomic_graph::{Graph, code};
use atomic_runner::{Ended, EndedChecks, Outcome, Show, Shown, StreamMode, verified_line};
use atomic_session::{Cost, SessionSummary};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::args::OutputArgs;
use crate::paint;

/// What a person wants to see of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Its steps and its tasks.
    Steps,
    /// What the agent answers.
    Answer {
        /// Whether the session stays.
        is_kept: bool,
    },
}

/// Shows what happens in some way.
trait FrontEnd {
    /// A fact.
    fn fact(&mut self, envelope: &Envelope) -> io::Result<()>;
    /// Something to show and forget.
    fn delta(&mut self, delta: &Delta) -> io::Result<()>;
    /// What a stream says.
    fn streamed(&mut self, _: StreamMode, _: Value) -> io::Result<()> {
        Ok(())
    }
    /// There is nothing more.
    fn end(&mut self) -> io::Result<()>;
}

/// The thread that shows things, so that a slow reader never holds the run up.
#[derive(Debug)]
pub(crate) struct Printer(JoinHandle<()>);

impl Printer {
    /// Waits until everything is shown.
    pub(crate) fn finish(self) {
        let _ = self.0.join();
    }
}

/// Starts showing what happens.
pub(crate) fn spawn(
    output: &OutputArgs,
    look: Look,
    show: Show,
    session: PathBuf,
    intents: mpsc::Sender<Intent>,
) -> Printer {
    let (json, streams) = (output.json.then_some(output.deltas), !output.stream.is_empty());
    Printer(std::thread::spawn(move || {
        let mut front: Box<dyn FrontEnd> = match json {
            Some(deltas) => Box::new(json::Lines { deltas }),
            None if streams => Box::new(json::Streams),
            None if look != Look::Steps => Box::new(answer::Answer::new(intents.clone())),
            None if can_draw() => Box::new(live::Live::new(session, intents.clone())),
            None => Box::new(plain::PlainLines::new(intents.clone())),
        };
        let reason = match print_all(front.as_mut(), show) {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                "nobody reads our output".to_owned()
            }
            Err(error) => {
                paint::note_loss(&error);
                format!("the output cannot be written: {error}")
            }
        };
        // Nobody sees what we do any more: save everything and stop.
        let _ = intents.blocking_send(Intent::Pause { reason });
    }))
}

/// Whether lines on standard output can be drawn over. indicatif draws nothing at all where `TERM` is
/// unset or `dumb`, as in editors' shells and over some serial lines.
fn can_draw() -> bool {
    io::stdout().is_terminal() && !console::is_dumb()
}

fn print_all(front: &mut dyn FrontEnd, mut show: Show) -> io::Result<()> {
    while let Some(shown) = show.next_blocking() {
        match shown {
            Shown::Fact(envelope) => front.fact(&envelope)?,
            Shown::Delta(delta) => front.delta(&delta)?,
            Shown::Streamed { mode, value } => front.streamed(mode, value)?,
        }
    }
    front.end()
}

/// The last words of a run.
pub(crate) fn farewell(output: &OutputArgs, look: Look, ended: &Ended) {
    match look {
        _ if output.shows_facts() => {}
        _ if output.for_programs() => {
            stream_farewell(ended, look != Look::Answer { is_kept: false });
        }
        Look::Steps => steps_farewell(ended),
        Look::Answer { is_kept } => answer_farewell(ended, is_kept),
    }
}

/// Reports on standard error why a run ended whose streams do not contain its facts.
fn stream_farewell(ended: &Ended, is_kept: bool) {
    if let Outcome::Waiting(questions) = &ended.outcome {
        for (id, question) in questions {
            paint::aside(&question_text(id, question));
        }
    }
    answer_farewell(ended, is_kept);
}

/// The answer is there already; only what is left open is worth a word.
fn answer_farewell(ended: &Ended, is_kept: bool) {
    let session = &ended.session;
    match &ended.outcome {
        Outcome::Completed => return,
        Outcome::Failed { error, .. } => paint::complain(&with_frame(error)),
        Outcome::Waiting(_) => {
            paint::aside(&format!("Answer with: atomic answer {session} --resume <answer>"));
            return;
        }
        Outcome::Paused => paint::aside(&format!("Paused session: {session}")),
    }
    if is_kept {
        paint::aside(&resume_line(ended));
    }
}

/// What went wrong, with the lines of the workflow's own file around it.
fn with_frame(error: &StepError) -> String {
    let detail = error.detail.as_deref().filter(|_| error.code == code::FUNCTION);
    let is_frame = |line: &&str| line.contains(" | ");
    let frame: Vec<&str> =
        detail.into_iter().flat_map(str::lines).filter(is_frame).take(5).collect();
    if frame.is_empty() {
        return error.message.clone();
    }
    format!("{}\n{}", error.message, frame.join("\n"))
}

fn steps_farewell(ended: &Ended) {
    let name = workflow_name(&ended.dir);
    for line in task_lines(&ended.dir) {
        paint::line(&line);
    }
    if let Some(cost) = cost_of(&ended.dir) {
        paint::line(&format!("Cost: {cost}"));
    }
    for copy in kept_edits(&ended.dir) {
        let copy = copy.display();
        let note =
            format!("note: tasks.json was edited during a run; the edit was not used: {copy}");
        paint::line(&paint::printable(&note));
    }
    match &ended.outcome {
        Outcome::Completed => {
            let LastWords { text, result } = last_words(&ended.dir);
            if let Some(text) = text {
                paint::line(&paint::printable(&text));
            }
            paint::line(&format!("Completed {name} session: {}", ended.session));
            if let Some(result) = result {
                paint::line(&paint::printable(&result));
            }
            for line in check_lines(ended) {
                paint::line(&paint::printable(&line));
            }
        }
        Outcome::Failed { error, .. } => {
            paint::line(&format!("Failed {name} session: {}", ended.session));
            paint::complain(&with_frame(error));
            paint::line(&resume_line(ended));
        }
        Outcome::Waiting(questions) => {
            for (id, question) in questions {
                paint::line(&format!("\n{}", question_text(id, question)));
            }
            paint::line(&format!("\nWaiting {name} session: {}", ended.session));
            paint::line(&format!("Answer with: atomic answer {} --resume <answer>", ended.session));
        }
        Outcome::Paused => {
            paint::line(&format!("Paused {name} session: {}", ended.session));
            paint::line(&resume_line(ended));
        }
    }
}

/// What a session has cost so far, as in `$1.62 (estimated), 12345 tokens`; `–` is an unknown cost.
/// Nothing where nothing was reported.
fn cost_of(session: &Path) -> Option<String> {
    let summary = SessionSummary::read(crate::stage::disk().as_ref(), session).ok()?;
    let Cost { cost_usd, tokens, estimated } = summary.spent.total;
    let is_reported = tokens > 0 || cost_usd.is_some_and(|usd| usd > 0.0);
    let usd = cost_usd.map_or_else(|| "–".to_owned(), dollars);
    let mark = if estimated { " (estimated)" } else { "" };
    is_reported.then(|| format!("{usd}{mark}, {tokens} tokens"))
}

/// The copies of task lists that were edited during a run.
fn kept_edits(session: &Path) -> Vec<PathBuf> {
    let summary = SessionSummary::read(crate::stage::disk().as_ref(), session);
    summary.map_or_else(|_| vec![], |summary| summary.tasks.kept_edits)
}

/// What the checks of a completed run say; the last line is how much is verified. Nothing for a
/// workflow that does not run checks.
pub(crate) fn check_lines(ended: &Ended) -> Vec<String> {
    let Some(EndedChecks { verified, remarks }) = &ended.checks else { return vec![] };
    remarks.iter().cloned().chain([verified_line(verified)]).collect()
}

fn resume_line(ended: &Ended) -> String {
    format!("Resume with: atomic resume {}", ended.session)
}

/// The workflow's name, as a proper name.
pub(crate) fn proper_name(workflow: &str) -> String {
    let workflow = paint::printable(workflow);
    let mut letters = workflow.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}", letters.as_str())
}

fn workflow_name(session: &Path) -> String {
    let created = crate::commands::resume::first_fact(session);
    created.map_or_else(|_| String::new(), |created| proper_name(created.workflow.as_str()))
}

/// What a run that is completed has to say.
#[derive(Debug, Default)]
pub(crate) struct LastWords {
    /// The output of the step that ended last, when that is a text. A plain async workflow has a
    /// result instead, or nothing to say.
    pub(crate) text: Option<String>,
    /// What the function of a plain async workflow returned, if it returned anything: a text as
    /// it is, anything else as a line of JSON.
    pub(crate) result: Option<String>,
}

/// Reads what a run that is completed has to say.
pub(crate) fn last_words(session: &Path) -> LastWords {
    let mut words = LastWords::default();
    let Ok(facts) = atomic_session::Session::read_only(crate::stage::disk(), session) else {
        return words;
    };
    let mut is_script = false;
    for fact in facts.map_while(Result::ok) {
        if let Event::SessionCreated(created) = fact.event {
            is_script = Graph::deserialize(&created.graph).is_ok_and(|graph| graph.is_script());
        } else if let Event::StepFinished { result, .. } = fact.event {
            words.text = result.output.as_str().filter(|_| !is_script).map(str::to_owned);
        } else if let Event::RunFinished { result, .. } = fact.event {
            words.result = result.map(|result| match result.as_str() {
                Some(text) => text.to_owned(),
                None => result.to_string(),
            });
        }
    }
    words
}

/// The task list of a session as lines.
pub(crate) fn task_lines(session: &Path) -> Vec<String> {
    let rows = match atomic_session::read_tasks(crate::stage::disk().as_ref(), session) {
        Ok(rows) => rows,
        Err(error) => return vec![paint::printable(&error.to_string())],
    };
    let field = |row: &Value, key: &str| {
        paint::printable(row.get(key).and_then(Value::as_str).unwrap_or_default())
    };
    rows.iter()
        .map(|row| {
            let status = field(row, "status");
            let mut line =
                format!("{} {} {}", paint::mark(&status), field(row, "id"), field(row, "content"));
            let blockers = row.get("blockedBy").and_then(Value::as_array).into_iter().flatten();
            let blockers: Vec<&str> = blockers.filter_map(Value::as_str).collect();
            if !blockers.is_empty() && status != "completed" {
                let _ = write!(line, " › blocked by {}", paint::printable(&blockers.join(", ")));
            }
            if status == "failed" {
                let _ = write!(line, " — {}", field(row, "error"));
            }
            line
        })
        .collect()
}

/// A question as a person reads it.
pub(crate) fn question_text(id: &QuestionId, question: &Question) -> String {
    let mut text = format!("? {id}");
    if !question.header.is_empty() {
        let _ = write!(text, " [{}]", question.header);
    }
    let _ = write!(text, " {}", question.question);
    for (number, option) in (1..).zip(&question.options) {
        let _ = write!(text, "\n  {number}. {}", option.label);
        if !option.description.is_empty() {
            let _ = write!(text, " — {}", option.description);
        }
    }
    if question.multi_select && question.options.len() > 1 {
        let _ = write!(text, "\n  (several: 1,{})", question.options.len().min(3));
    }
    if question.options.is_empty() || question.free_text {
        text.push_str("\n  (or answer in your own words)");
    }
    paint::printable(&text)
}

/// Writes a line and makes sure it is out.
fn write_line(mut out: impl Write, line: &str) -> io::Result<()> {
    writeln!(out, "{line}")?;
    out.flush()
}
