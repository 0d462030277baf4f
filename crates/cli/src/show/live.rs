//! For a terminal: what happens above, and below it the task list as it stands.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use atomic_event::{Delta, Envelope, Event, Intent, Moment, StepId};
use console::{Term, measure_text_width, truncate_str};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::sync::mpsc;

use super::ask::{self, Open};
use super::plain::{Plain, name};
use super::{FrontEnd, cost_of, task_lines};

const TASKS: &str = "{spinner} [{bar:24}] {pos}/{len} tasks · {elapsed} · {msg}";
const NO_TASKS: &str = "{spinner} {elapsed} · {msg}";

/// Lines above, bars below.
pub(super) struct Live {
    session: PathBuf,
    lines: Plain,
    bars: MultiProgress,
    whole: ProgressBar,
    tasks: Vec<ProgressBar>,
    running: BTreeMap<StepId, String>,
    open: Open,
}

impl Live {
    pub(super) fn new(session: PathBuf, intents: mpsc::Sender<Intent>) -> Self {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stdout_with_hz(10));
        let whole = bars.add(ProgressBar::new(0));
        whole.set_style(style(NO_TASKS));
        whole.enable_steady_tick(Duration::from_millis(120));
        let open = ask::open(intents);
        let lines = Plain::default();
        Self { session, lines, bars, whole, tasks: vec![], running: BTreeMap::new(), open }
    }

    /// Brings the bars up to date with the task file and the steps that run.
    fn refresh(&mut self) {
        let width = usize::from(Term::stdout().size().1).max(20) - 1;
        let lines = task_lines(&self.session);
        while self.tasks.len() < lines.len() {
            let bar = self.bars.add(ProgressBar::new_spinner());
            bar.set_style(style("{msg}"));
            self.tasks.push(bar);
        }
        for (bar, line) in self.tasks.iter().zip(&lines) {
            bar.set_message(fit(line, width));
        }
        let done = lines.iter().filter(|line| line.contains('✓')).count();
        self.whole.set_length(lines.len() as u64);
        self.whole.set_position(done as u64);
        let (template, taken) = if lines.is_empty() { (NO_TASKS, 14) } else { (TASKS, 56) };
        self.whole.set_style(style(template));
        let now = Moment::to_the_millisecond(jiff::Timestamp::now());
        let waits = self.lines.waits();
        let waits = waits
            .map(|(backend, until)| format!("waiting for {backend} until {}", until.local(now)));
        let running = self.running.values().cloned();
        let running: Vec<String> = waits.chain(running).collect();
        let cost = cost_of(&self.session).map(|cost| format!("{cost} · "));
        let message = format!("{}{}", cost.unwrap_or_default(), running.join(", "));
        let message = Some(message).filter(|_| width > taken + 8);
        self.whole.set_message(fit(&message.unwrap_or_default(), width.saturating_sub(taken)));
    }

    fn note_running(&mut self, event: &Event) {
        if let Event::StepFinished { step, .. } | Event::StepFailed { step, .. } = event {
            self.running.remove(step);
        } else if let Event::StepStarted(started) = event
            && started.workspace.is_some()
        {
            self.running.insert(started.step.clone(), name(&started.step));
        }
    }
}

impl FrontEnd for Live {
    fn fact(&mut self, envelope: &Envelope) -> io::Result<()> {
        // First of all: an answer may come as soon as the question is seen.
        ask::note(&self.open, &envelope.event);
        let width = usize::from(Term::stdout().size().1).max(20) - 1;
        for line in self.lines.lines(envelope) {
            // A line the terminal has to wrap would be counted as one when the bars are redrawn.
            self.bars.println(wrapped(&line, width))?;
        }
        self.note_running(&envelope.event);
        self.refresh();
        Ok(())
    }

    fn delta(&mut self, _: &Delta) -> io::Result<()> {
        Ok(())
    }

    /// The bars go; what is left is printed as plain lines.
    fn end(&mut self) -> io::Result<()> {
        self.whole.finish_and_clear();
        for bar in &self.tasks {
            bar.finish_and_clear();
        }
        self.bars.clear()
    }
}

/// The text in lines no wider than `width`.
fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut used = 0;
    for c in text.chars() {
        let wide = measure_text_width(c.encode_utf8(&mut [0; 4]));
        if used + wide > width {
            out.push('\n');
            used = 0;
        }
        out.push(c);
        used += wide;
    }
    out
}

fn fit(line: &str, width: usize) -> String {
    if measure_text_width(line) <= width {
        return line.to_owned();
    }
    truncate_str(line, width, "…").into_owned()
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::{fit, wrapped};

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        assert_eq!(wrapped("abcdef", 4), "abcd\nef");
        assert_eq!(wrapped("世界世界", 4), "世界\n世界");
        assert_eq!(wrapped("abcd", 4), "abcd");
        assert_eq!(fit("abcdef", 4), "abc…");
    }
}
