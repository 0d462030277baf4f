//! The words of one simple command: which of them a program would run instead of read.
//!
//! Quoting keeps a value from being parsed by the shell that runs the command. `eval`, `sh -c`,
//! `ssh` and the program texts of interpreters parse it again, so templates are refused there. The
//! tables name the programs that workflows use for this. What a script does with its arguments is
//! the script's own business.

mod tables;

use tables::{
    DECIDING, First, Interpreter, KEYWORDS, UNKNOWN_PROGRAM, WRAPPERS, Wrapper, XARGS, rule_for,
};

use super::refusal::{
    ARITHMETIC, CODE, DESCRIPTOR, EVALUATED, MAKE, NAMES, PROGRAM, REMOTE, Refusal, SHELL_CODE,
    VARIABLE,
};
use super::scan::{UNKNOWN, Word, is_variable};

/// A simple command as far as it has been read.
#[derive(Debug, Default)]
pub(super) struct SimpleCommand {
    /// Whether the next word is the target of a redirection.
    pub(super) expects_file: bool,
    /// Whether this redirection is `>&`.
    pub(super) is_descriptor: bool,
    /// Whether a `[[` waits for its `]]`, up to which no operator ends the command.
    pub(super) is_condition: bool,
    /// The number of the first template that belongs to this command.
    pub(super) first_template: usize,
    phase: Phase,
    interpreter: Option<Running>,
    /// Whether `xargs` makes the last program's arguments out of its input.
    is_fed: bool,
    /// Whether the program runs what it reads.
    runs_input: bool,
    /// Whether the program runs another one, in a container, that comes somewhere in its arguments.
    runs_others: bool,
    /// The last word, for options that take a name.
    last: Vec<u8>,
}

/// Meaning of the next word.
#[derive(Debug, Clone, Copy, Default)]
enum Phase {
    /// The name of a program, a keyword, or an assignment in front of it.
    #[default]
    Program,
    /// An argument of a program that runs another one: `timeout 5 …`.
    Wrapper {
        wrapper: &'static Wrapper,
        operands: u8,
        /// Whether the word belongs to the option before it.
        is_value: bool,
    },
    /// A plain argument.
    Arguments,
    /// An argument of `case`, up to `in`.
    Case,
    /// An argument of `find`, up to `-exec`.
    Find,
    /// An argument of `git`, some of which are commands.
    Git { has_command: bool },
    /// An argument of `make`.
    Make,
    /// An argument of `ssh`; with only a host, the other machine runs what `ssh` reads.
    Remote { operands: u8, is_value: bool },
    /// An argument of `export` or `readonly`.
    Declaration { has_option: bool },
    /// An argument of `[`, `test` or `printf`, which take names behind some options.
    Test,
    /// No template is accepted any more.
    Refused(&'static Refusal),
}

/// An interpreter whose arguments are being read.
#[derive(Debug)]
struct Running {
    rule: &'static Interpreter,
    /// Whether it is certain that it runs: its name may also be somebody's argument.
    is_certain: bool,
    next: Next,
    has_code: bool,
    /// Whether it takes its program text from its input.
    reads_input: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Option,
    Code,
    Value,
    /// The value of the option after which everything is data.
    File,
    Data,
    /// Anything, program text too.
    Doubt,
}

impl SimpleCommand {
    /// Takes in a finished word; `false` when what follows cannot be followed.
    pub(super) fn add(&mut self, word: &Word) -> bool {
        if std::mem::take(&mut self.expects_file) {
            self.is_descriptor = false;
            return true;
        }
        if self.is_condition {
            self.is_condition = word.is_quoted || word.text != b"]]";
            return true;
        }
        let text = String::from_utf8_lossy(&word.text);
        let is_clear = match self.phase {
            // In front of the program's name.
            Phase::Program if word.assigns => true,
            Phase::Program => self.program(&text),
            Phase::Wrapper { wrapper, operands, is_value } => {
                self.wrapped(&text, (wrapper, operands, is_value));
                true
            }
            Phase::Case => {
                if text == "in" {
                    self.phase = Phase::Program;
                }
                true
            }
            Phase::Find => {
                if matches!(&*text, "-exec" | "-execdir" | "-ok" | "-okdir") {
                    self.phase = Phase::Program;
                }
                true
            }
            Phase::Git { has_command } => {
                self.git(&text, has_command);
                true
            }
            Phase::Remote { operands, is_value } => {
                self.remote(&text, operands, is_value);
                true
            }
            Phase::Declaration { .. } => {
                if text.starts_with('-') {
                    self.phase = Phase::Declaration { has_option: true };
                }
                true
            }
            Phase::Arguments | Phase::Test | Phase::Make | Phase::Refused(_) => {
                self.argument(&text);
                true
            }
        };
        self.last.clone_from(&word.text);
        is_clear
    }

    /// A word where a program is named.
    fn program(&mut self, text: &str) -> bool {
        if KEYWORDS.contains(&text) {
            return true;
        }
        if matches!(text, "function" | "coproc") {
            return false;
        }
        if text.contains(char::from(UNKNOWN)) {
            self.phase = Phase::Arguments;
            self.run(&UNKNOWN_PROGRAM, true);
            return true;
        }
        let name = text.rsplit('/').next().unwrap_or(text);
        self.is_condition = name == "[[";
        self.phase = match name {
            "eval" | "trap" | "source" | "." | "alias" | "watch" | "parallel" | "su" | "enable"
            | "bind" | "complete" => Phase::Refused(&EVALUATED),
            "ssh" | "slogin" | "autossh" => Phase::Remote { operands: 0, is_value: false },
            "git" => Phase::Git { has_command: false },
            "make" | "gmake" => Phase::Make,
            // In bash numbers are compared here by evaluating them.
            "let" | "[[" => Phase::Refused(&ARITHMETIC),
            "read" | "unset" | "mapfile" | "readarray" | "getopts" => Phase::Refused(&NAMES),
            "export" | "readonly" | "local" | "declare" | "typeset" => {
                Phase::Declaration { has_option: false }
            }
            "[" | "test" | "printf" => Phase::Test,
            "case" => Phase::Case,
            "find" => Phase::Find,
            _ => Phase::Arguments,
        };
        self.runs_input = matches!(
            name,
            "." | "source" | "parallel" | "at" | "batch" | "crontab" | "ssh" | "slogin" | "autossh"
        );
        self.runs_others =
            matches!(name, "docker" | "podman" | "nerdctl" | "kubectl" | "lxc" | "nsenter");
        if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name)) {
            self.is_fed |= name == XARGS;
            let operands = wrapper.operands;
            self.phase = Phase::Wrapper { wrapper, operands, is_value: false };
        } else if let Some(rule) = rule_for(name) {
            self.run(rule, true);
        }
        true
    }

    fn run(&mut self, rule: &'static Interpreter, is_certain: bool) {
        let next = Next::Option;
        let running = Running { rule, is_certain, next, has_code: false, reads_input: false };
        self.interpreter = Some(running);
    }

    fn wrapped(&mut self, text: &str, (wrapper, operands, is_value): (&'static Wrapper, u8, bool)) {
        let next = |operands, is_value| Phase::Wrapper { wrapper, operands, is_value };
        if is_value {
            self.phase = next(operands, false);
        } else if let Some(letters) = text.strip_prefix('-') {
            let takes_value = letters.len() == 1 && wrapper.values.contains(letters);
            self.phase = next(operands, takes_value);
        } else if is_assignment(text) {
            // As in `env NAME=value program`.
        } else if operands > 0 {
            self.phase = next(operands - 1, false);
        } else {
            self.phase = Phase::Program;
            self.program(text);
        }
    }

    fn git(&mut self, text: &str, has_command: bool) {
        if matches!(text, "foreach" | "filter-branch" | "bisect" | "--exec" | "-x") {
            self.phase = Phase::Refused(&EVALUATED);
        } else if !text.starts_with('-') && self.last != b"-c" && self.last != b"-C" {
            self.phase = Phase::Git { has_command: true };
        } else {
            self.phase = Phase::Git { has_command };
        }
    }

    fn remote(&mut self, text: &str, operands: u8, is_value: bool) {
        let operands = if is_value || text.starts_with('-') { operands } else { operands + 1 };
        let letters = text.strip_prefix('-').filter(|_| !is_value).unwrap_or_default();
        let takes_value = letters.len() == 1 && "BbcDEeFIiJLlmOoPpQRSWw".contains(letters);
        self.phase = Phase::Remote { operands: operands.min(2), is_value: takes_value };
        self.runs_input = operands < 2;
    }

    fn argument(&mut self, text: &str) {
        if let Some(running) = &mut self.interpreter
            && running.next != Next::Data
        {
            return running.add(text);
        }
        // A program that runs another one, and is not in the table: `docker exec box sh -c …`.
        let name = text.rsplit('/').next().unwrap_or(text);
        if let Some(rule) = rule_for(name) {
            self.run(rule, false);
        }
    }

    /// Why a template is refused that stands behind this part of a word.
    pub(super) fn refusal(&self, word: &Word) -> Option<&'static Refusal> {
        let text = String::from_utf8_lossy(&word.text);
        if self.expects_file {
            return self.is_descriptor.then_some(&DESCRIPTOR);
        }
        let name = text.split_once('=').map_or("", |(name, _)| name);
        let may_assign = !matches!(self.phase, Phase::Arguments | Phase::Test | Phase::Case);
        if may_assign && DECIDING.contains(&name) {
            return Some(&VARIABLE);
        }
        match self.phase {
            Phase::Program => (!word.assigns).then_some(&PROGRAM),
            Phase::Wrapper { operands, is_value, .. } => {
                let is_plain =
                    is_value || is_assignment(&text) || (operands > 0 && !text.starts_with('-'));
                (!is_plain).then_some(&PROGRAM)
            }
            Phase::Declaration { has_option } => {
                (has_option || !is_assignment(&text)).then_some(&NAMES)
            }
            Phase::Test if self.last == b"-v" || self.last == b"-R" || text == "-v" => Some(&NAMES),
            Phase::Refused(refusal) => Some(refusal),
            Phase::Remote { .. } => Some(&REMOTE),
            Phase::Git { has_command } => {
                let is_setting = !has_command && self.last == b"-c" && !text.starts_with("user.");
                let is_command = is_setting || text.starts_with("--exec=");
                is_command.then_some(&EVALUATED)
            }
            Phase::Make => is_assignment(&text).then_some(&MAKE),
            Phase::Test | Phase::Case | Phase::Find => None,
            Phase::Arguments => self.interpreter.as_ref().and_then(|one| one.refusal(&text)),
        }
    }

    /// Whether the command runs program text that it reads from its input.
    pub(super) fn reads_code(&self) -> bool {
        if self.runs_input {
            return true;
        }
        let running = self.interpreter.as_ref();
        let running = running.filter(|running| running.is_certain || self.runs_others);
        let Some(running) = running else { return false };
        let Running { rule, has_code, reads_input, next, .. } = running;
        let is_without = !has_code && *next == Next::Option;
        rule.first == First::Script
            && (*reads_input || is_without || (self.is_fed && rule.is_shell && *has_code))
    }
}

impl Running {
    fn add(&mut self, text: &str) {
        let rule = self.rule;
        let shell_option = rule.is_shell && text.starts_with('+');
        match self.next {
            // The next word may be its value, or the program text.
            Next::Code if rule.is_shell && (text.starts_with('-') || shell_option) => {
                self.next = Next::Doubt;
            }
            Next::Code => {
                self.has_code = true;
                // Perl and sed take more of it, a shell does not.
                self.next = if rule.is_shell { Next::Data } else { Next::Option };
            }
            Next::Value => self.next = Next::Option,
            Next::File => self.next = Next::Data,
            Next::Data | Next::Doubt => {}
            Next::Option if text == "-" || text == "/dev/stdin" => self.reads_input = true,
            Next::Option if matches!(text, "--eval" | "--print" | "--command" | "--execute") => {
                self.next = Next::Code;
            }
            Next::Option if text.starts_with("--") || text.is_empty() => {}
            Next::Option if text.starts_with('-') || shell_option => self.option(&text[1..]),
            Next::Option => self.next = Next::Data,
        }
    }

    /// The letters of an option.
    fn option(&mut self, letters: &str) {
        let rule = self.rule;
        let has = |set: &str| letters.chars().position(|letter| set.contains(letter));
        let last = letters.chars().count() - 1;
        if rule.is_shell {
            self.reads_input |= has("s").is_some();
        }
        if let Some(at) = has(rule.code) {
            let is_attached = at < last && !rule.is_shell;
            self.has_code |= is_attached;
            self.next = if is_attached { Next::Option } else { Next::Code };
        } else if has(rule.file) == Some(last) {
            self.has_code = true;
            self.next = Next::File;
        } else if has(rule.values) == Some(last) {
            self.next = Next::Value;
        }
    }

    fn refusal(&self, text: &str) -> Option<&'static Refusal> {
        let code = if self.rule.is_shell { &SHELL_CODE } else { &CODE };
        match self.next {
            Next::Code | Next::Doubt => Some(code),
            Next::Value | Next::Data => None,
            Next::File => Some(&PROGRAM),
            Next::Option if text.starts_with("--") => {
                let is_code = text.starts_with("--eval=")
                    || text.starts_with("--print=")
                    || text.starts_with("--command=")
                    || text.starts_with("--execute=");
                is_code.then_some(code)
            }
            Next::Option if text.starts_with(['-', '+']) => {
                text.contains(|letter| self.rule.code.contains(letter)).then_some(code)
            }
            Next::Option if self.has_code || !self.is_certain => None,
            Next::Option => match self.rule.first {
                First::Script => Some(&PROGRAM),
                First::Code => Some(code),
                First::Data => None,
            },
        }
    }
}

/// Whether a word begins with `NAME=`, however it is quoted.
fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| is_variable(name.as_bytes()))
}
