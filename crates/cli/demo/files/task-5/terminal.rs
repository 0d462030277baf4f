//! The terminal while a game is on the screen, and as it was when the game has ended.
//!
//! The standard library cannot switch a terminal to single key presses, so `stty` does it.

use std::io::{self, Write};
use std::process::{Command, Stdio};

const SHOW_GAME: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
const SHOW_SHELL: &str = "\x1b[?25h\x1b[?1049l";

/// A terminal that sends every key at once. Dropping it restores the old settings, so that
/// happens on every way out: the end of the game, an error, and a panic.
pub struct Terminal {
    old_settings: String,
}

impl Terminal {
    /// Takes the terminal over.
    pub fn open() -> io::Result<Self> {
        let old_settings = stty(&["-g"])?;
        let mut terminal = Self { old_settings };
        // Without `isig` Ctrl+C is a key like any other and cannot end the program half-way.
        stty(&["-icanon", "-echo", "-isig", "min", "1", "time", "0"])?;
        terminal.print(SHOW_GAME)?;
        Ok(terminal)
    }

    /// Shows a frame in place of the last one.
    pub fn draw(&mut self, frame: &str) -> io::Result<()> {
        // What is left of a longer line is erased line by line: clearing all would flicker.
        let lines = frame.replace('\n', "\x1b[K\n");
        self.print(&format!("\x1b[H{lines}\x1b[J"))
    }

    fn print(&mut self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Both are tried, whatever happens; there is nobody left to tell about a failure.
        let _ = self.print(SHOW_SHELL);
        let _ = stty(&[&self.old_settings]);
    }
}

fn stty(args: &[&str]) -> io::Result<String> {
    let output = Command::new("stty")
        .args(args)
        .stdin(Stdio::inherit())
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("cannot run stty: {error}")))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        let reason = String::from_utf8_lossy(&output.stderr);
        Err(io::Error::other(format!("stty failed: {}", reason.trim())))
    }
}
