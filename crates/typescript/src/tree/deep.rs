//! Room for a parser that calls itself without a limit.
//!
//! oxc recurses for everything that is nested, and a stack that overflows ends the whole program.
//! So it gets a large stack, and texts that are nested beyond all reason are not given to it.

use std::path::Path;
use std::thread;

use oxc_span::Span;

use super::scan::{Scan, Stop};
use crate::fault::{Fault, Page};
use crate::resolve::LARGEST;
use crate::text;

/// Held for every text that was tried with eight times as many brackets as [`DEEPEST`].
const STACK: usize = 64 << 20;
/// Brackets inside each other.
pub(super) const DEEPEST: usize = 1000;
/// Tokens of one statement, those around it counted: room for two thousand texts that are added.
pub(super) const LONGEST: usize = 5000;

/// Does the work on a thread with a large stack.
///
/// # Errors
/// The thread cannot be started, or the work has panicked.
pub(crate) fn run<T: Send>(file: &Path, work: impl FnOnce() -> T + Send) -> Result<T, Vec<Fault>> {
    let broken =
        |why: String| vec![Fault::about("ATM701", file, format!("cannot be parsed: {why}"))];
    thread::scope(|scope| {
        let started = thread::Builder::new()
            .name("atomic-parse".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, work);
        match started {
            Ok(handle) => handle
                .join()
                .map_err(|_| broken("the parser has failed; this is a bug of ours".to_owned())),
            Err(e) => Err(broken(format!("there is no thread to do it on ({e})"))),
        }
    })
}

/// Whether the parser can take the text: nothing in it is so long or so deep that following it
/// would end the program, or take for ever.
///
/// # Errors
/// It is too large, too long or too deep.
pub(crate) fn check(page: Page<'_>) -> Result<(), Vec<Fault>> {
    if page.text.len() as u64 > LARGEST {
        let message = format!("it is larger than {} MiB", LARGEST >> 20);
        return Err(vec![Fault::about("ATM709", page.file, message)]);
    }
    let Err((stop, at)) = Scan::new(page.text).run() else { return Ok(()) };
    let (message, help) = match stop {
        Stop::Deep => (
            format!("more than {DEEPEST} brackets are open here"),
            "move the inner parts to constants or functions of their own",
        ),
        Stop::Long => (
            format!("this expression is too long to be read: it has more than {LONGEST} parts"),
            "make several statements of it, or a list",
        ),
        Stop::Doubt => (
            "it cannot be told whether this is a division or a regular expression".to_owned(),
            "put it between parentheses",
        ),
    };
    let at = text::clamp(at);
    Err(vec![page.fault("ATM701", Span::new(at, at + 1), message).with_help(help)])
}
