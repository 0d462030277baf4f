//! The arguments of a program that runs program text.

use super::interpreters::{
    HARMLESS_LONG, LONG_CODE, LONG_LOADS, LONG_VALUES, RUN_MODULES, is_one_of,
};
use super::tables::{First, Interpreter};
use crate::shell::refusal::{
    CODE, EXPANSION, PERL_FILES, PROGRAM, Refusal, SHELL_CODE, UNKNOWN_OPTION,
};
use crate::shell::scan::{Word, runs_input};

/// An interpreter whose arguments are being read.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) rule: &'static Interpreter,
    /// Whether it is certain that it runs: its name may also be somebody's argument.
    pub(super) is_certain: bool,
    pub(super) next: Next,
    pub(super) has_code: bool,
    /// Whether it takes its program text from its input.
    pub(super) reads_input: bool,
    /// Whether the next word is its first argument.
    pub(super) is_first: bool,
    /// Why the meaning of the next word is in doubt, where the reason is known.
    doubt: Option<&'static Refusal>,
    /// How `perl` opens its other arguments.
    opens: Opens,
}

/// Meaning of the plain arguments behind the program text of `perl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opens {
    /// Data of the program.
    No,
    /// Files that `-n` or `-p` opens; a name such as `command|` is run.
    Anything,
    /// Files that `-i` changes, which have to be regular files.
    Files,
}

/// Meaning of the next word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Option,
    Code,
    /// The name of a module that is loaded before the program.
    Load,
    Value,
    /// The value of the option that names the program.
    File,
    Data,
    /// Anything, program text too.
    Doubt,
}

/// Meaning of the letters of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Letters {
    /// Nothing follows.
    Complete,
    /// The next word, or the rest of this one.
    Needs {
        next: Next,
        is_attached: bool,
    },
    Unknown,
}

impl Running {
    pub(super) const fn new(rule: &'static Interpreter, is_certain: bool) -> Self {
        let next = Next::Option;
        Self {
            rule,
            is_certain,
            next,
            has_code: false,
            reads_input: false,
            is_first: true,
            doubt: None,
            opens: Opens::No,
        }
    }

    pub(super) fn add(&mut self, word: &Word, text: &str) {
        let rule = self.rule;
        let is_open = !matches!(self.next, Next::Data) && !self.has_code;
        if word.may_vanish() && is_open && self.is_certain && rule.first != First::Data {
            self.next = Next::Doubt;
            self.doubt = Some(&EXPANSION);
            return;
        }
        let is_option = text.starts_with('-') || (rule.is_shell && text.starts_with('+'));
        let is_first = std::mem::replace(&mut self.is_first, false);
        match self.next {
            // The values of such letters are the next words, in the order of the letters.
            Next::Option if is_first && rule.bundles && !is_option => {
                if text.contains(|letter| rule.code.contains(letter)) {
                    self.next = Next::Doubt;
                }
            }
            // The next word may be its value, or the program text.
            Next::Code if is_option => self.next = Next::Doubt,
            Next::Code => {
                self.has_code = true;
                self.reads_input |= rule.is_shell && runs_input(text);
                // Perl and sed take more of it, a shell does not.
                self.next = if rule.is_shell { Next::Data } else { Next::Option };
            }
            Next::Value | Next::Load => self.next = Next::Option,
            Next::File => {
                self.reads_input |= is_input(text);
                self.next = self.behind_file();
                if self.is_python() && RUN_MODULES.contains(&text) {
                    self.reads_input = true;
                    self.next = Next::Doubt;
                }
            }
            Next::Data | Next::Doubt => {}
            // Behind program text `-` is data.
            Next::Option if is_input(text) => {
                self.reads_input |= rule.first == First::Script && !self.has_code;
            }
            Next::Option if self.is_word_option(text) => {
                self.next = if text.contains('=') { Next::Option } else { Next::Code };
            }
            Next::Option if text.starts_with("--") => self.long(&text[2..]),
            Next::Option if text.is_empty() => {}
            Next::Option if is_option => self.option(&text[1..]),
            Next::Option if rule.permutes => self.has_code |= rule.first == First::Code,
            Next::Option => self.next = Next::Data,
        }
    }

    /// The program of `awk` and `sed` may have further parts.
    const fn behind_file(&self) -> Next {
        if matches!(self.rule.first, First::Script) { Next::Data } else { Next::Option }
    }

    fn long(&mut self, option: &str) {
        let (name, value) = option.split_once('=').map_or((option, None), |(n, v)| (n, Some(v)));
        let is_known = name.is_empty()
            || value.is_some()
            || HARMLESS_LONG.contains(&name)
            || name.starts_with("no-")
            || self.rule.first == First::Data
            || !self.is_certain;
        if name == "test" {
            self.next = Next::Data;
        } else if self.is_code(name) {
            self.has_code |= value.is_some();
            self.next = if value.is_some() { Next::Option } else { Next::Code };
        } else if name == "file" {
            self.has_code = true;
            self.reads_input |= value.is_some_and(is_input);
            self.next = if value.is_some() { self.behind_file() } else { Next::File };
        } else if value.is_none() && is_one_of(LONG_LOADS, name) {
            self.next = Next::Load;
        } else if value.is_none() && LONG_VALUES.contains(&name) {
            self.next = Next::Value;
        } else if !is_known {
            self.next = Next::Doubt;
            self.doubt = Some(&UNKNOWN_OPTION);
        }
    }

    /// The letters of an option.
    fn option(&mut self, letters: &str) {
        if self.rule.is_shell {
            self.reads_input |= letters.contains('s');
        }
        let is_code = |letter| self.rule.code.contains(letter) || self.rule.file.contains(letter);
        let plain = letters.split(is_code).next().unwrap_or_default();
        // Interactive: these go on with what they read when the program has ended.
        let interactive = match self.rule.names.first() {
            Some(&("python" | "node" | "lua")) => "i",
            Some(&"php") => "a",
            Some(&"perl") => "d",
            _ => "",
        };
        self.reads_input |= plain.contains(|letter| interactive.contains(letter));
        if self.rule.names.contains(&"perl") {
            let (flags, in_place) =
                plain.split_once('i').map_or((plain, false), |(f, _)| (f, true));
            if in_place {
                self.opens = Opens::Files;
            } else if self.opens == Opens::No && flags.contains(['n', 'p']) {
                self.opens = Opens::Anything;
            }
        }
        match self.letters(letters) {
            Letters::Complete => {}
            Letters::Needs { next: Next::Code, is_attached: true } => self.has_code = true,
            Letters::Needs { next: Next::File, is_attached } => {
                self.has_code = true;
                self.reads_input |= is_attached && letters.ends_with(['-', '0', 'n']);
                self.next = if is_attached { self.behind_file() } else { Next::File };
            }
            Letters::Needs { is_attached: true, .. } => {}
            Letters::Needs { next, is_attached: false } => self.next = next,
            Letters::Unknown if self.is_certain => {
                self.next = Next::Doubt;
                self.doubt = Some(&UNKNOWN_OPTION);
            }
            Letters::Unknown => {}
        }
    }

    fn letters(&self, letters: &str) -> Letters {
        let rule = self.rule;
        if rule.is_shell && letters.contains('c') {
            // An option with a value besides it makes the order of the next words unclear.
            let has_value = letters.contains(|letter| rule.values.contains(letter));
            let next = if has_value { Next::Doubt } else { Next::Code };
            return Letters::Needs { next, is_attached: false };
        }
        if rule.first == First::Data {
            let Some(at) = letters.find(|letter| rule.code.contains(letter)) else {
                let is_file = letters.ends_with(|letter| rule.file.contains(letter));
                let next = Next::File;
                return if is_file {
                    Letters::Needs { next, is_attached: false }
                } else {
                    Letters::Complete
                };
            };
            return Letters::Needs { next: Next::Code, is_attached: at + 1 < letters.len() };
        }
        let mut has_digits = false;
        for (at, letter) in letters.char_indices() {
            let is_attached = at + letter.len_utf8() < letters.len();
            // `-0777`, `-l0`: only digits belong to the letter, and others may follow.
            if has_digits && letter.is_ascii_digit() {
                continue;
            }
            has_digits = matches!(letter, '0' | 'l' | 'T') && rule.attached.contains(letter);
            if has_digits {
                continue;
            }
            let next = match letter {
                _ if rule.code.contains(letter) => Next::Code,
                _ if rule.file.contains(letter) => Next::File,
                _ if rule.loads.contains(letter) => Next::Load,
                _ if rule.values.contains(letter) => Next::Value,
                _ if rule.flags.contains(letter) => continue,
                _ if rule.attached.contains(letter) => return Letters::Complete,
                _ => return Letters::Unknown,
            };
            return Letters::Needs { next, is_attached };
        }
        Letters::Complete
    }

    /// Why a template is refused that stands behind this part of a word.
    pub(super) fn refusal(&self, text: &str) -> Option<&'static Refusal> {
        let code = if self.rule.is_shell { &SHELL_CODE } else { &CODE };
        let is_file = self.opens == Opens::Anything && self.has_code && !text.starts_with('-');
        match self.next {
            Next::Option if is_file => Some(&PERL_FILES),
            Next::Data if self.opens == Opens::Anything => Some(&PERL_FILES),
            Next::Doubt if self.doubt.is_some() => self.doubt,
            Next::Option if self.is_word_option(text) => Some(code),
            Next::Code => Some(code),
            Next::Doubt if self.rule.is_shell => Some(code),
            Next::Doubt => Some(if self.rule.first == First::Code { code } else { &PROGRAM }),
            Next::Value | Next::Data => None,
            Next::File | Next::Load => Some(&PROGRAM),
            Next::Option if self.is_first && self.rule.bundles && !text.starts_with('-') => {
                self.is_certain.then_some(code)
            }
            Next::Option if text.starts_with("--") => {
                let name = text[2..].split_once('=').map(|(name, _)| name);
                match name {
                    Some(name) if self.is_code(name) => Some(code),
                    Some(name) if is_one_of(LONG_LOADS, name) || name == "file" => Some(&PROGRAM),
                    Some(_) => None,
                    None => self.is_certain.then_some(code),
                }
            }
            Next::Option if text.starts_with(['-', '+']) => match self.letters(&text[1..]) {
                Letters::Needs { next: Next::Code | Next::Doubt, .. } => Some(code),
                Letters::Needs { next: Next::File | Next::Load, .. } => Some(&PROGRAM),
                Letters::Needs { .. } => None,
                Letters::Complete if text.len() > 1 && self.rule.first == First::Data => None,
                Letters::Complete if self.is_attached(&text[1..]) => None,
                Letters::Complete | Letters::Unknown => self.is_certain.then_some(code),
            },
            Next::Option if self.has_code || !self.is_certain => None,
            Next::Option => match self.rule.first {
                First::Script => Some(&PROGRAM),
                First::Code => Some(code),
                First::Data => None,
            },
        }
    }

    /// Whether an option behind a single dash has a command: `-exec` of `go`.
    fn is_word_option(&self, text: &str) -> bool {
        let name = text.split('=').next().unwrap_or(text);
        name.starts_with('-') && !name.starts_with("--") && self.rule.long.contains(&name)
    }

    fn is_python(&self) -> bool {
        self.rule.names.contains(&"python")
    }

    /// Whether a long option has a command.
    fn is_code(&self, name: &str) -> bool {
        is_one_of(LONG_CODE, name) || is_one_of(self.rule.long, name)
    }

    fn is_attached(&self, letters: &str) -> bool {
        letters.contains(|letter| self.rule.attached.contains(letter))
    }
}

/// Whether a file is the input of the program.
pub(super) fn is_input(text: &str) -> bool {
    matches!(text, "-" | "/dev/stdin") || text.starts_with("/dev/fd/") || text.starts_with("/proc/")
}
