//! The templates whose values reach a program that runs what it reads.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{Place, Scanner};
use crate::shell::refusal::{INPUT, Refusal, UNCLEAR};

/// The programs that read the output of others, or a file that several commands share.
#[derive(Debug, Default)]
pub(super) struct Pipes {
    /// Whether there has been a pipe, through which what was printed may reach what follows.
    has_pipe: bool,
    /// How many templates have been judged by what reads the output of their command.
    judged: usize,
    /// Whether one of the commands runs what it reads.
    pub(super) runs_input: bool,
    /// Whether one of the commands may do so.
    pub(super) may_run_input: bool,
    /// The numbers of templates in files that several commands read: `{ …; } <file`, `exec <file`.
    shared: Vec<usize>,
    /// The names of the functions that the text defines.
    functions: BTreeSet<String>,
}

impl Scanner<'_> {
    /// Ends the word and, outside of everything, the simple command.
    pub(super) fn end_command(&mut self, is_pipe: bool) {
        self.end_word();
        if !self.levels.is_empty() {
            return;
        }
        if let Some(condition) = &mut self.command.condition {
            return condition.split();
        }
        let command = std::mem::take(&mut self.command);
        let is_function = self.pipes.functions.contains(&command.name);
        // A function runs its input when any command of the text does.
        let reads_code = command.reads_code() || (is_function && self.pipes.runs_input);
        let may_read = command.may_read_code() || (is_function && self.pipes.may_run_input);
        self.pipes.runs_input |= reads_code;
        self.pipes.may_run_input |= may_read;
        let (first, end) = (command.first_template, self.found.len());
        let is_shared = command.name.is_empty() || is_function;
        if is_shared {
            self.pipes.shared.extend(&command.redirection.inputs);
        }
        if (reads_code || may_read) && self.pipes.has_pipe {
            self.refuse(self.pipes.judged..first, &INPUT);
            self.pipes.judged = first;
        }
        if reads_code || may_read {
            for number in &command.redirection.inputs {
                self.refuse(*number..number + 1, &INPUT);
            }
        }
        if command.has_reader() {
            // The output of the command may reach the substitution: `echo {x} > >(sh)`.
            self.refuse(first..end, &INPUT);
        }
        if is_shared && command.redirection.has_process && (reads_code || may_read) {
            // `{ …; } > >(sh)` and `exec > >(sh)`: what is printed before or behind reaches the shell.
            self.refuse(0..end, &INPUT);
            self.unclear = self.unclear.or(Some(&INPUT));
        }
        if command.redefines {
            self.unclear = self.unclear.or(Some(&UNCLEAR));
        }
        self.here_string = false;
        self.pipes.has_pipe |= is_pipe;
        self.command.first_template = end;
    }

    /// Judges the inputs that commands share when all commands are known.
    pub(super) fn end_pipes(&mut self) {
        if self.pipes.runs_input || self.pipes.may_run_input {
            for number in std::mem::take(&mut self.pipes.shared) {
                self.refuse(number..number + 1, &INPUT);
            }
        }
    }

    /// A bracket behind a name, which may define a function: `name()`.
    pub(super) fn define_function(&mut self) {
        let rest = self.bytes.get(self.at + 1..).unwrap_or_default();
        let next = rest.iter().find(|byte| !matches!(byte, b' ' | b'\t'));
        let name = self.word.as_ref().map(|word| String::from_utf8_lossy(&word.text).into_owned());
        let name = name.unwrap_or_else(|| self.command.name.clone());
        if next == Some(&b')') && !name.is_empty() {
            self.pipes.functions.insert(name);
        }
    }

    pub(super) fn refuse(&mut self, numbers: Range<usize>, refusal: &'static Refusal) {
        for template in self.found.get_mut(numbers).into_iter().flatten() {
            if !matches!(template.place, Place::Refused(_)) {
                template.place = Place::Refused(refusal);
            }
        }
    }
}
