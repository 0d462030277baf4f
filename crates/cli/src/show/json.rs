//! For other programs: every fact as one line of JSON.

use std::io;

use atomic_event::{Delta, Envelope};

use super::{FrontEnd, write_line};

/// Facts, and typing when it was asked for.
pub(super) struct Lines {
    pub(super) deltas: bool,
}

impl FrontEnd for Lines {
    fn fact(&mut self, envelope: &Envelope) -> io::Result<()> {
        write_line(io::stdout().lock(), &serde_json::to_string(envelope)?)
    }

    fn delta(&mut self, delta: &Delta) -> io::Result<()> {
        if !self.deltas {
            return Ok(());
        }
        write_line(io::stdout().lock(), &serde_json::to_string(delta)?)
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}
