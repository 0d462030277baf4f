//! For one turn: what the agent says, as it says it, and nothing else where others read it.

use std::io::{self, IsTerminal as _, Write as _};

use atomic_event::{Delta, Envelope, Event, Intent, Report};
use tokio::sync::mpsc;

use super::ask::{self, Open};
use super::{FrontEnd, plain, question_text};
use crate::paint;

/// Text to standard output, everything else to standard error.
pub(super) struct Answer {
    /// What was typed of the text that is not finished.
    typed: String,
    /// Whether somebody watches.
    is_watched: bool,
    open: Open,
}

impl Answer {
    pub(super) fn new(intents: mpsc::Sender<Intent>) -> Self {
        let open = ask::open(intents);
        Self { typed: String::new(), is_watched: io::stdout().is_terminal(), open }
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let shown = if self.is_watched { &paint::printable(text) } else { text };
        out.write_all(shown.as_bytes())?;
        out.flush()
    }

    /// A text is finished. Pieces of it may have been passed over while we were behind.
    fn said(&mut self, text: &str) -> io::Result<()> {
        let typed = std::mem::take(&mut self.typed);
        match text.strip_prefix(typed.as_str()) {
            Some(rest) => self.write(&format!("{rest}\n")),
            None => self.write(&format!("\n{text}\n")),
        }
    }

    /// What happens besides belongs on a line of its own.
    fn aside(&mut self, text: &str) -> io::Result<()> {
        if !std::mem::take(&mut self.typed).is_empty() {
            self.write("\n")?;
        }
        paint::aside(text);
        Ok(())
    }
}

impl FrontEnd for Answer {
    fn fact(&mut self, envelope: &Envelope) -> io::Result<()> {
        ask::note(&self.open, &envelope.event);
        let event = &envelope.event;
        if let Event::StepReported { report: Report::Said { text }, .. } = event {
            return self.said(text);
        }
        if let Event::QuestionAsked { id, question, .. } = event {
            return self.aside(&question_text(id, question));
        }
        let is_news = matches!(event, Event::StepReported { .. } | Event::Noted { .. });
        let text = if is_news { plain::describe(event) } else { String::new() };
        if text.is_empty() { Ok(()) } else { self.aside(text.trim_start()) }
    }

    fn delta(&mut self, delta: &Delta) -> io::Result<()> {
        match delta {
            Delta::Typed { text, .. } => {
                self.typed.push_str(text);
                self.write(text)
            }
            Delta::ToolBegan { call, .. } if self.is_watched => {
                self.aside(&format!("{} {}", call.tool, call.summary))
            }
            Delta::ToolBegan { .. } | Delta::Thought { .. } => Ok(()),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        if self.typed.is_empty() { Ok(()) } else { self.write("\n") }
    }
}
