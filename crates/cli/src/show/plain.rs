//! For a pipe: what happens, in plain lines.

use std::io::{self, IsTerminal as _};

use atomic_acp::ProviderWaits;
use atomic_event::{
    BackendId, Certified, Delta, Ending, Envelope, Event, Helper, HelperState, How, Intent, Moment,
    Report, RunStopped, Started, StepId, Timer,
};
use tokio::sync::mpsc;

use atomic_runner::verified_line;

use super::ask::{self, Open};
use super::{FrontEnd, proper_name, question_text, write_line};
use crate::paint;

/// Turns facts into lines.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    start: Option<Moment>,
    waits: ProviderWaits,
}

impl Plain {
    /// The waits for providers that are not over.
    pub(super) fn waits(&self) -> impl Iterator<Item = (&BackendId, &Moment)> {
        self.waits.open()
    }

    /// What a person wants to know of a fact.
    pub(crate) fn lines(&mut self, envelope: &Envelope) -> Vec<String> {
        let start = *self.start.get_or_insert(envelope.at);
        let millis = envelope.at.millis_since(start);
        let time = format!("[{:>6}.{}s]", millis / 1_000, millis % 1_000 / 100);
        // Agents, programs and files have a say in it.
        let text = if let Event::Provider(provider) = &envelope.event {
            self.waits.line(provider).unwrap_or_default()
        } else {
            describe(&envelope.event)
        };
        let text = paint::printable(&text);
        text.lines().map(|line| format!("{time} {line}")).collect()
    }
}

/// Plain lines on standard output. Questions are answered by typing a line where a person is there.
pub(super) struct PlainLines {
    lines: Plain,
    open: Open,
    /// Whether questions are also printed on standard error: a person is there, and standard output
    /// leads elsewhere.
    asks_aside: bool,
}

impl PlainLines {
    pub(super) fn new(intents: mpsc::Sender<Intent>) -> Self {
        let (open, is_listening) = ask::open_if_somebody(intents);
        let asks_aside = is_listening && !io::stdout().is_terminal();
        Self { lines: Plain::default(), open, asks_aside }
    }
}

impl FrontEnd for PlainLines {
    fn fact(&mut self, envelope: &Envelope) -> io::Result<()> {
        // Before the question is printed: the answer may come as soon as it is seen.
        ask::note(&self.open, &envelope.event);
        for line in self.lines.lines(envelope) {
            write_line(io::stdout().lock(), &line)?;
        }
        if let Event::QuestionAsked { id, question, .. } = &envelope.event
            && self.asks_aside
        {
            paint::aside(&question_text(id, question));
        }
        Ok(())
    }

    fn delta(&mut self, _: &Delta) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A fact in words; nothing for those that are only of use to us.
pub(super) fn describe(event: &Event) -> String {
    match event {
        Event::SessionCreated(created) => {
            let name = proper_name(created.workflow.as_str());
            format!("Started {name} session: {}", created.session)
        }
        Event::SessionResumed(resumed) if resumed.revived => {
            "Resumed; what had failed gets another chance".to_owned()
        }
        Event::SessionResumed(_) => "Resumed".to_owned(),
        Event::StepStarted(started) => describe_start(started),
        Event::StepReported { step, report, .. } => describe_report(step, report),
        Event::StepFinished { step, result, .. } => {
            let field = |name: &str| result.output.get(name).and_then(|v| v.as_str());
            match (field("status"), field("summary"), field("refused")) {
                (Some(status), Some(summary), _) if step.node() == "settle" => {
                    let item = step.item().unwrap_or_default();
                    format!("  {item} {status}: {}", first_line(summary))
                }
                (_, _, Some(problem)) => format!("  the plan goes back: {problem}"),
                _ => String::new(),
            }
        }
        Event::StepFailed { step, error, .. } => {
            format!("  {} failed: {}", name(step), error.message)
        }
        Event::StepLost { step, reason, .. } => format!("  {} was cut off: {reason}", name(step)),
        Event::StepCancelled { step, .. } => format!("  {} was stopped", name(step)),
        Event::TimerFired { step, timer: Timer::Limit } => {
            format!("  {} takes too long and is stopped", name(step))
        }
        Event::LaunchesCertified(certified) => launches(certified),
        Event::SessionForked(forked) => {
            let after = forked.step.as_ref().map(|step| format!(" after {step}"));
            format!("Forked from session {}{}", forked.from, after.unwrap_or_default())
        }
        Event::QuestionAsked { id, question, .. } => question_text(id, question),
        Event::QuestionAnswered(answered) => {
            let by = match answered.by {
                atomic_event::AnsweredBy::Person => "",
                atomic_event::AnsweredBy::Policy => " (by policy, nobody was asked)",
            };
            format!("  answer to {}: {}{by}", answered.id, answered.answer.text())
        }
        Event::Instructed { text } => format!("User instruction: {text}"),
        Event::Noted { text } => format!("note: {text}"),
        Event::RunStopped(RunStopped::RunPaused { reason }) => format!("Paused: {reason}"),
        Event::RunStopped(RunStopped::RunWaiting { .. }) => "Waiting for an answer".to_owned(),
        Event::RunFinished { ending: Ending::Completed, verified, .. } => {
            verified.as_ref().map_or_else(|| "Completed".to_owned(), verified_line)
        }
        Event::RunFinished { ending: Ending::Failed { error, .. }, .. } => {
            format!("Failed: {}", error.message)
        }
        Event::ConversationOpened { .. }
        | Event::TimerFired { .. }
        | Event::FunctionEvaluated { .. }
        | Event::BranchChosen { .. }
        | Event::AnswerDelivered { .. }
        | Event::Provider(_)
        | Event::StatePatched { .. }
        | Event::Unknown(_) => String::new(),
    }
}

/// What an agent says or does, in words.
fn describe_report(step: &StepId, report: &Report) -> String {
    match report {
        Report::ToolUsed(tool) if tool.tool == "check" => {
            let verdict = if tool.ok { "passes" } else { "FAILS" };
            format!("  {}: `{}` {verdict}", name(step), tool.summary)
        }
        Report::ToolUsed(tool) if !tool.ok => {
            let used = format!("{} {}", tool.tool, tool.summary);
            format!("  {}: {} failed", name(step), used.trim_end())
        }
        Report::Waited(wait) => {
            let delay = wait.delay_ms.map(|ms| format!(" in {} s", ms.div_ceil(1_000)));
            format!(
                "  {}: {} (try {}); the program tries again{}",
                name(step),
                wait.code.replace('_', " "),
                wait.attempt,
                delay.unwrap_or_default()
            )
        }
        Report::Helper(helper) => format!("  {}: {}", name(step), helper_line(helper)),
        Report::Compacted { .. } => {
            format!("  {}: the conversation was summarised", name(step))
        }
        Report::Remarked { text } => format!("  {}: {text}", name(step)),
        Report::ToolUsed(_)
        | Report::Said { .. }
        | Report::Spent(_)
        | Report::Todos { .. }
        | Report::Checked(_)
        | Report::ProjectRead(_) => String::new(),
    }
}

fn helper_line(helper: &Helper) -> String {
    let who = if helper.agent.is_empty() { "a helper" } else { &helper.agent };
    match helper.state {
        HelperState::Started => format!("{who} begins: {}", helper.task),
        HelperState::Finished => {
            format!("{who} is done: {} ({} tools)", helper.task, helper.tools_used)
        }
        HelperState::Failed => format!("{who} failed: {}", helper.task),
    }
}

/// What the run can cost at most, where that is known.
fn launches(certified: &Certified) -> String {
    let Some(launches) = certified.launches.filter(|most| *most > 0) else { return String::new() };
    let at_once = certified.at_once.map_or_else(String::new, |n| format!(", {n} at once"));
    format!("At most {launches} launches of an agent{at_once}")
}

fn describe_start(started: &Started) -> String {
    let Some(description) = &started.description else { return String::new() };
    let how = match started.how {
        How::First => "",
        How::Retried => " (once more)",
        How::Continued => " (continued where it was cut off)",
        How::RunAgain => " (run again after it was cut off)",
        How::Revived => " (another chance)",
    };
    // Functions take no time; what they lead to is shown.
    if started.workspace.is_none() {
        return String::new();
    }
    let on = started.backend.as_ref().map_or_else(String::new, |id| format!(" (on {id})"));
    format!("{}: {description}{on}{how}", name(&started.step))
}

/// `#4 worker#2`: the item of the fan, the node, and which visit to it.
pub(crate) fn name(step: &StepId) -> String {
    let last = step.as_str().rsplit('/').next().unwrap_or_default();
    let name = step.item().map_or_else(|| last.to_owned(), |item| format!("{item} {last}"));
    paint::printable(&name)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
