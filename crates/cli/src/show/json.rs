//! For other programs: every fact as one line of JSON, or the streams they asked for.

use std::io;

use atomic_event::{Delta, Envelope};

use atomic_runner::StreamMode;
use serde_json::{Map, Value, json};

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

/// Streams, each line with its mode.
pub(super) struct Streams;

impl FrontEnd for Streams {
    fn fact(&mut self, _: &Envelope) -> io::Result<()> {
        Ok(())
    }

    fn delta(&mut self, _: &Delta) -> io::Result<()> {
        Ok(())
    }

    fn streamed(&mut self, mode: StreamMode, value: Value) -> io::Result<()> {
        let mut line = Map::from_iter([("mode".to_owned(), json!(mode))]);
        if let Value::Object(fields) = value {
            line.extend(fields);
        }
        write_line(io::stdout().lock(), &Value::Object(line).to_string())
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}
