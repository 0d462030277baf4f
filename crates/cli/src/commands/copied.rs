//! A session that is in two folders, because its project was copied.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

use super::find::pasteable;
use crate::failure::Failure;
use crate::paint;

/// A session in a copy of a project.
pub(super) struct Copied<'c> {
    /// Its folder in the list of sessions.
    pub(super) original: &'c Path,
    /// Its folder in the copy.
    pub(super) copy: &'c Path,
    /// Command line of the user with `{}` in place of the session; `None` for editors.
    pub(super) command: Option<&'c str>,
}

/// Whether the copy is meant. Asks where somebody can answer.
pub(super) fn which_folder(copied: &Copied<'_>, here: bool) -> Result<bool, Failure> {
    if here {
        return Ok(true);
    }
    let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if copied.command.is_some() && is_terminal {
        return ask(copied);
    }
    let Copied { original, copy, .. } = copied;
    let command = copied.command.unwrap_or("atomic resume {}");
    let session = copy.file_name().unwrap_or_default();
    let elsewhere = pasteable(command, original);
    let in_copy = pasteable(command, copy);
    Err(Failure::Usage(format!(
        "{}: this project is a copy, and the session belongs to {}\n  hint: the original: \
         {elsewhere}\n  hint: the one in this copy: {in_copy} --here",
        session.to_string_lossy(),
        original.display()
    )))
}

fn ask(copied: &Copied<'_>) -> Result<bool, Failure> {
    let mut screen = std::io::stderr();
    let question = format!(
        "This project is a copy. Which session is meant?\n  1  The original in {}\n  2  The one in \
         this copy: {}",
        copied.original.display(),
        copied.copy.display()
    );
    let _ = writeln!(screen, "{}", paint::printable(&question));
    let mut lines = std::io::stdin().lock().lines();
    loop {
        let _ = write!(screen, "1 or 2: ");
        let _ = screen.flush();
        match lines.next() {
            Some(Ok(line)) if line.trim() == "1" => return Ok(false),
            Some(Ok(line)) if line.trim() == "2" => return Ok(true),
            Some(Ok(_)) => {}
            Some(Err(_)) | None => {
                let problem = "the question which session is meant was not answered";
                return Err(Failure::Usage(problem.to_owned()));
            }
        }
    }
}
