//! For one turn: what the agent says, as it says it, and nothing else where others read it.

use std::io::{self, IsTerminal as _, Write as _};

use atomic_acp::ProviderWaits;
use atomic_event::{Delta, Envelope, Event, Intent, Report, RunStopped};
use tokio::sync::mpsc;

use super::ask::{self, Open};
use super::{FrontEnd, plain, question_text};
use crate::paint;

/// Text to standard output, everything else to standard error.
pub(super) struct Answer {
    typed: Typed,
    /// Whether somebody watches.
    is_watched: bool,
    open: Open,
    waits: ProviderWaits,
}

/// What was typed of the text that is not finished.
#[derive(Default)]
struct Typed {
    /// On lines that have ended because something came in between.
    before: String,
    /// On the line where the cursor is.
    here: String,
}

impl Typed {
    /// Something comes in between; whether a line has to end for it.
    fn interrupt(&mut self) -> bool {
        self.before.push_str(&self.here);
        !std::mem::take(&mut self.here).is_empty()
    }

    /// What is still to be written of a text that is finished. Pieces of it may have been passed over
    /// while we were behind. It is told when it is on disk, which a tool may have begun before.
    fn rest(&mut self, text: &str) -> String {
        let Self { before, here } = std::mem::take(self);
        let whole = format!("{before}{here}");
        if !before.is_empty() && here.is_empty() && text == whole {
            return String::new();
        }
        let rest = text.strip_prefix(&whole).or_else(|| text.strip_prefix(&here));
        rest.map_or_else(|| format!("\n{text}\n"), |rest| format!("{rest}\n"))
    }
}

impl Answer {
    pub(super) fn new(intents: mpsc::Sender<Intent>) -> Self {
        let open = ask::open(intents);
        let is_watched = io::stdout().is_terminal();
        Self { typed: Typed::default(), is_watched, open, waits: ProviderWaits::default() }
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let shown = if self.is_watched { &paint::printable(text) } else { text };
        out.write_all(shown.as_bytes())?;
        out.flush()
    }

    /// What happens besides belongs on a line of its own.
    fn aside(&mut self, text: &str) -> io::Result<()> {
        if self.typed.interrupt() {
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
            let rest = self.typed.rest(text);
            return self.write(&rest);
        }
        if let Event::QuestionAsked { id, question, .. } = event {
            return self.aside(&question_text(id, question));
        }
        let is_pause = matches!(event, Event::RunStopped(RunStopped::RunPaused { .. }));
        let is_news = is_pause || matches!(event, Event::StepReported { .. } | Event::Noted { .. });
        let text = if let Event::Provider(provider) = event {
            self.waits.line(provider).unwrap_or_default()
        } else if is_news {
            plain::describe(event)
        } else {
            String::new()
        };
        if text.is_empty() { Ok(()) } else { self.aside(text.trim_start()) }
    }

    fn delta(&mut self, delta: &Delta) -> io::Result<()> {
        match delta {
            Delta::Typed { text, .. } => {
                self.typed.here.push_str(text);
                self.write(text)
            }
            Delta::ToolBegan { call, .. } if self.is_watched => {
                self.aside(format!("{} {}", call.tool, call.summary).trim_end())
            }
            Delta::ToolBegan { .. } | Delta::Thought { .. } => Ok(()),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        if self.typed.here.is_empty() { Ok(()) } else { self.write("\n") }
    }
}

#[cfg(test)]
mod tests {
    use super::Typed;

    #[test]
    fn a_text_is_written_once_whatever_comes_in_between() {
        let table: [(&[&str], &str, &str); 7] = [
            (&["Hel", "lo"], "Hello", "\n"),
            (&["Hel"], "Hello", "lo\n"),
            (&[], "Hello", "Hello\n"),
            (&["Hello", "|"], "Hello", ""),
            (&["Hel", "|", "lo"], "Hello", "\n"),
            (&["Hel", "|", "Hello"], "Hello", "\n"),
            (&["Hexlo"], "Hello", "\nHello\n"),
        ];
        for (pieces, text, rest) in table {
            let mut typed = Typed::default();
            for piece in pieces {
                match *piece {
                    "|" => assert!(typed.interrupt()),
                    piece => typed.here.push_str(piece),
                }
            }
            assert_eq!(typed.rest(text), rest, "{pieces:?}");
            assert!(!typed.interrupt(), "{pieces:?}");
        }
    }
}
