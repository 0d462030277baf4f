//! Finds the templates of a shell command and the quoting around each of them.
//!
//! A small state machine over the quoting of `sh`, not a parser. Where dash and bash disagree, or
//! where only a parser could tell, every template behind that place is refused.

mod here;
mod nested;
mod pipes;
mod variable;
mod word;

use std::ops::Range;

use here::HereDocument;
use nested::Nested;
pub(super) use nested::runs_input;
use pipes::Pipes;
pub(super) use variable::is_variable;
pub(super) use word::{UNKNOWN, Word};

use super::programs::SimpleCommand;
use crate::template::{Written, read};

use super::refusal::{
    ANSI_QUOTES, ARITHMETIC, BACKTICKS, COMMENT, HERE_DOCUMENT, PARAMETER, Refusal, SUBSTITUTION,
    UNCLEAR,
};

/// A template in a shell command.
#[derive(Debug, Clone)]
pub(super) struct Template<'t> {
    /// Its bytes, with the braces.
    pub(super) range: Range<usize>,
    pub(super) written: Written<'t>,
    pub(super) place: Place,
}

/// The quoting around a template.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    Bare,
    Double,
    Single,
    Refused(&'static Refusal),
}

/// Something open that the text has to leave again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// `"…"`
    Double,
    /// `$(…)`, `<(…)`
    Substitution,
    /// `$((…))`, `((…))`
    Arithmetic,
    /// `(…)` inside one of these.
    Paren,
    /// `${…}`
    Parameter,
    Backtick,
}

/// Finds the templates of a command, in the order of the text.
pub(super) fn templates(text: &str) -> Vec<Template<'_>> {
    let mut scanner = Scanner::new(text);
    scanner.scan();
    scanner.found
}

#[derive(Default)]
struct Scanner<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    nested: Nested,
    levels: Vec<Level>,
    /// The words around the substitutions that are open.
    outer: Vec<Option<Word>>,
    word: Option<Word>,
    /// The simple command that is being read, outside of everything in `levels`.
    command: SimpleCommand,
    /// Those whose text begins on the next line.
    here_documents: Vec<HereDocument>,
    /// Whether the next word belongs to `<<<`.
    here_string: bool,
    pipes: Pipes,
    /// How many of the levels are `"…"`.
    doubles: usize,
    /// Why everything from here on is refused.
    unclear: Option<&'static Refusal>,
    found: Vec<Template<'t>>,
}

impl<'t> Scanner<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, bytes: text.as_bytes(), ..Self::default() }
    }

    fn scan(&mut self) {
        while self.at < self.bytes.len() {
            self.step();
        }
        self.end_command(false);
        self.end_pipes();
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn step(&mut self) {
        match self.levels.last() {
            Some(Level::Double) => self.in_double(),
            Some(Level::Parameter) => self.in_parameter(),
            Some(Level::Backtick) => self.in_backticks(),
            Some(Level::Substitution | Level::Arithmetic | Level::Paren) | None => self.in_code(),
        }
    }

    fn in_double(&mut self) {
        let byte = self.bytes[self.at];
        match byte {
            b'\\' => self.escape(),
            b'"' => self.leave(),
            b'$' => self.dollar(true),
            b'`' => self.enter(Level::Backtick, 1),
            b'{' if self.template() => {}
            b'\n' if !self.here_documents.is_empty() => self.give_up(),
            other => self.push(other),
        }
    }

    fn in_parameter(&mut self) {
        let is_in_quotes = self.doubles > 0;
        let byte = self.bytes[self.at];
        match byte {
            b'\\' => self.escape(),
            b'}' => self.leave(),
            b'$' => self.dollar(is_in_quotes),
            b'`' => self.enter(Level::Backtick, 1),
            // Shells disagree about quotes inside `"${…}"`.
            b'"' | b'\'' if is_in_quotes => self.give_up(),
            b'"' => self.enter(Level::Double, 1),
            b'\'' => self.single_quotes(),
            // The brace of a template would end the expansion.
            b'{' => {
                let at = self.at;
                self.template();
                self.at = at + 1;
            }
            b'\n' if !self.here_documents.is_empty() => self.give_up(),
            other => self.push(other),
        }
    }

    fn in_backticks(&mut self) {
        let byte = self.bytes[self.at];
        match byte {
            b'\\' => self.at += 2,
            b'`' => self.leave(),
            b'{' if self.template() => {}
            b'\n' if !self.here_documents.is_empty() => self.give_up(),
            _ => self.at += 1,
        }
    }

    /// Commands: outside of everything, or inside `$(…)`.
    fn in_code(&mut self) {
        let byte = self.bytes[self.at];
        match byte {
            b'\\' => self.escape(),
            b'\'' => self.single_quotes(),
            b'"' => self.enter(Level::Double, 1),
            b'`' => self.enter(Level::Backtick, 1),
            b'$' => self.dollar(false),
            b'#' if self.word.is_none() => self.comment(),
            b'{' if self.template() => {}
            b' ' | b'\t' => {
                self.end_word();
                self.at += 1;
            }
            b'\n' => self.line_end(),
            b'<' | b'>' => self.redirection(),
            b';' | b'&' | b'|' => {
                let [this, next] = [self.byte(0), self.byte(1)];
                let is_double = this == next;
                self.end_command(this == Some(b'|') && !is_double);
                self.at += if is_double { 2 } else { 1 };
            }
            b'(' => self.open_paren(),
            b')' => self.close_paren(),
            b'=' => {
                if let Some(word) = self.word.as_mut().filter(|word| !word.is_quoted) {
                    word.assigns |= is_variable(&word.text);
                }
                self.push(b'=');
            }
            other => self.push(other),
        }
    }

    /// Adds a byte to the word.
    fn push(&mut self, byte: u8) {
        self.word.get_or_insert_default().push(byte);
        self.at += 1;
    }

    /// A backslash and what it quotes. A line end behind it is nothing at all.
    fn escape(&mut self) {
        self.at += 1;
        match self.byte(0) {
            Some(b'\n') => self.at += 1,
            Some(quoted) => {
                self.word.get_or_insert_default().is_quoted = true;
                self.push(quoted);
            }
            None => {}
        }
    }

    fn enter(&mut self, level: Level, length: usize) {
        self.enter_substitution(level, length);
        let is_shell = level == Level::Parameter && self.is_shell_variable();
        let splits = self.doubles == 0;
        let word = self.word.get_or_insert_default();
        word.is_quoted = true;
        if level == Level::Double {
            self.doubles += 1;
        } else {
            word.push(UNKNOWN);
            word.splits |= splits;
            if is_shell {
                b"SHELL".iter().for_each(|byte| word.push(*byte));
            }
            let outer = self.word.take();
            self.outer.push(outer);
        }
        self.levels.push(level);
        self.at += length;
    }

    /// Whether `${SHELL}` begins here, with or without a default.
    fn is_shell_variable(&self) -> bool {
        let rest = self.text[self.at..].strip_prefix("${SHELL");
        rest.is_some_and(|rest| rest.starts_with(['}', ':', '-']))
    }

    fn leave(&mut self) {
        let level = self.levels.pop();
        if level == Some(Level::Double) {
            self.doubles -= 1;
        } else {
            self.word = self.outer.pop().flatten();
            self.leave_substitution(level);
        }
        self.at += 1;
    }

    fn give_up(&mut self) {
        self.unclear = self.unclear.or(Some(&UNCLEAR));
        self.at += 1;
    }

    /// A `$`, and what it expands.
    fn dollar(&mut self, is_in_quotes: bool) {
        match self.byte(1) {
            Some(b'(') if self.byte(2) == Some(b'(') => self.open_arithmetic(3),
            Some(b'(') => self.enter(Level::Substitution, 2),
            Some(b'{') => self.enter(Level::Parameter, 2),
            Some(b'\'') if !is_in_quotes => self.ansi_quotes(),
            // `$"…"` and `$[…]` mean different things in different shells, and a line end that
            // is quoted hides what follows.
            Some(b'"') if !is_in_quotes => self.give_up(),
            Some(b'[') => self.give_up(),
            Some(b'\\') if self.byte(2) == Some(b'\n') => self.give_up(),
            Some(b'$' | b'!' | b'#' | b'?' | b'@' | b'*' | b'-' | b'0'..=b'9') => {
                self.push_expansion(2, is_in_quotes);
            }
            _ => self.push_expansion(1, is_in_quotes),
        }
    }

    fn push_expansion(&mut self, length: usize, is_in_quotes: bool) {
        self.push_unknown(length);
        self.word.get_or_insert_default().splits |= !is_in_quotes;
    }

    fn push_unknown(&mut self, length: usize) {
        self.push(UNKNOWN);
        self.at += length - 1;
    }

    /// `$((` or `((`; the second bracket is one that has to be closed, too.
    fn open_arithmetic(&mut self, length: usize) {
        self.enter(Level::Arithmetic, length);
        self.outer.push(self.word.take());
        self.levels.push(Level::Paren);
    }

    fn open_paren(&mut self) {
        if !self.levels.is_empty() {
            self.outer.push(self.word.take());
            self.levels.push(Level::Paren);
            self.at += 1;
        } else if self.byte(1) == Some(b'(') {
            self.end_command(false);
            self.open_arithmetic(2);
        } else {
            self.define_function();
            self.end_command(false);
            self.at += 1;
        }
    }

    fn close_paren(&mut self) {
        if self.levels.is_empty() {
            self.end_command(false);
            self.at += 1;
        } else {
            self.end_word();
            self.leave();
        }
    }

    fn single_quotes(&mut self) {
        self.word.get_or_insert_default().is_quoted = true;
        self.at += 1;
        while let Some(byte) = self.byte(0) {
            match byte {
                b'\'' => {
                    self.at += 1;
                    return;
                }
                b'{' if self.template_in(Place::Single) => {}
                b'\n' if !self.here_documents.is_empty() => self.give_up(),
                other => self.push(other),
            }
        }
    }

    /// `$'…'`, in which bash knows escapes and dash does not.
    fn ansi_quotes(&mut self) {
        self.push_unknown(2);
        while let Some(byte) = self.byte(0) {
            match byte {
                b'\'' => {
                    self.at += 1;
                    return;
                }
                b'\\' => self.give_up(),
                b'{' if self.template_in(Place::Refused(&ANSI_QUOTES)) => {}
                _ => self.at += 1,
            }
        }
    }

    fn comment(&mut self) {
        while let Some(byte) = self.byte(0).filter(|byte| *byte != b'\n') {
            if byte != b'{' || !self.template_in(Place::Refused(&COMMENT)) {
                self.at += 1;
            }
        }
        self.word = None;
    }

    /// Reads the template here, if there is one.
    fn template(&mut self) -> bool {
        let is_quoted = self.levels.last() == Some(&Level::Double);
        self.template_in(if is_quoted { Place::Double } else { Place::Bare })
    }

    fn template_in(&mut self, quoting: Place) -> bool {
        // `${name}` is a variable of some shell, in whichever quotes it stands. `\{name}` is text;
        // where the shell knows no backslash, nothing else has read it.
        let before = self.at.checked_sub(1).map(|at| self.bytes[at]);
        let is_escaped = !matches!(quoting, Place::Bare | Place::Double) && before == Some(b'\\');
        if before == Some(b'$') || is_escaped {
            return false;
        }
        let Some(written) = read(&self.text[self.at..]) else { return false };
        let length = written.length;
        let range = self.at..self.at + length;
        let place = match self.refusal(quoting) {
            Some(refusal) => Place::Refused(refusal),
            None => quoting,
        };
        if self.command.redirection.expects_file && self.command.redirection.is_input {
            self.command.redirection.inputs.push(self.found.len());
        }
        self.found.push(Template { range, written, place });
        self.push_unknown(length);
        true
    }

    fn refusal(&self, quoting: Place) -> Option<&'static Refusal> {
        if let Some(refusal) = self.unclear {
            return Some(refusal);
        }
        let around = self.levels.iter().find(|level| **level != Level::Double);
        match around {
            Some(Level::Arithmetic) => return Some(&ARITHMETIC),
            Some(Level::Parameter) => return Some(&PARAMETER),
            Some(Level::Backtick) => return Some(&BACKTICKS),
            Some(Level::Substitution | Level::Paren) => return Some(&SUBSTITUTION),
            Some(Level::Double) | None => {}
        }
        if let Place::Refused(refusal) = quoting {
            return Some(refusal);
        }
        if self.here_string {
            return Some(&HERE_DOCUMENT);
        }
        let empty = Word::default();
        self.command.refusal(self.word.as_ref().unwrap_or(&empty))
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if !self.levels.is_empty() {
            // A pattern of `case` has a bracket that closes nothing.
            if word.text == b"case" {
                self.unclear = self.unclear.or(Some(&UNCLEAR));
            }
            return;
        }
        self.here_string = false;
        let templates = self.found.len();
        if let Some(condition) = &mut self.command.condition
            && let Some(operand) = condition.add(&word, templates)
        {
            self.refuse(operand, &ARITHMETIC);
        }
        if !self.command.add(&word) {
            self.unclear = self.unclear.or(Some(&UNCLEAR));
        }
    }

    fn line_end(&mut self) {
        self.end_command(false);
        if !self.levels.is_empty() && !self.here_documents.is_empty() {
            return self.give_up();
        }
        self.at += 1;
        for document in std::mem::take(&mut self.here_documents) {
            self.skip(&document);
        }
    }
}
