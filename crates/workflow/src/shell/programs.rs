//! The words of one simple command: which of them a program would run instead of read.
//!
//! Quoting keeps a value from being parsed by the shell that runs the command. `eval`, `sh -c`,
//! `ssh` and the program texts of interpreters parse it again, so templates are refused there. The
//! tables name the programs that workflows use for this; any other program may run its arguments, too.

mod behind;
mod condition;
mod git;
mod input;
mod interpreter;
mod interpreters;
mod runners;
mod tables;
mod variables;
mod wrappers;

pub(super) use condition::Condition;
use git::Git;
use interpreter::Running;
use interpreters::{SHELL, rule_for};
use runners::{Behind, RUNNERS, Runner};
use tables::{
    EDIT, EVALUATE, GNU, Interpreter, KEYWORDS, MAKES, NAME_VARIABLES, REMOTE_SHELLS, RUN_INPUT,
    Wrapper,
};
use variables::{decides, is_evaluated};
use wrappers::{WRAPPERS, XARGS};

use super::refusal::{
    ARITHMETIC, CODE, DESCRIPTOR, EVALUATED, EXPANSION, FORMAT, MAKE, NAMES, PROGRAM, REMOTE,
    Refusal, UNKNOWN_OPTION, VARIABLE,
};
use super::scan::{UNKNOWN, Word, is_variable};

/// A simple command as far as it has been read.
#[derive(Debug, Default)]
pub(super) struct SimpleCommand {
    pub(super) redirection: Redirection,
    /// A `[[` that waits for its `]]`, up to which no operator ends the command.
    pub(super) condition: Option<Condition>,
    /// The number of the first template that belongs to this command.
    pub(super) first_template: usize,
    /// The name of the program; empty when none is named, as behind `done` and in `exec <file`.
    pub(super) name: String,
    /// Whether the command changes the meaning of those behind it: `alias`, `declare -i`.
    pub(super) redefines: bool,
    phase: Phase,
    interpreter: Option<Running>,
    /// Whether its name, or that of a program in a substitution, is known only when it runs.
    is_unknown: bool,
    /// Whether a substitution among its words runs what it reads.
    feeds_code: bool,
    /// The options of `find` or `fd`, which may run several programs, behind which one is named.
    runs_behind: &'static [&'static str],
    /// How `xargs` makes the arguments of the program out of its input.
    fed: Option<Fed>,
    /// Whether the program runs what it reads.
    runs_input: bool,
    /// The command that `ssh` gives to the other machine.
    remote: String,
    /// The last word, for options that take a name.
    last: Vec<u8>,
}

/// The use that `xargs` makes of its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fed {
    /// Further arguments of the program.
    Behind,
    /// Text that replaces parts of the arguments (`-I`).
    Replaced,
}

/// The redirections of a simple command.
#[derive(Debug, Default)]
pub(super) struct Redirection {
    /// Whether the next word is the target of one.
    pub(super) expects_file: bool,
    /// Whether this one is `>&`.
    pub(super) is_descriptor: bool,
    /// Whether this one is `<`.
    pub(super) is_input: bool,
    /// The numbers of the templates in the names of files that are the input.
    pub(super) inputs: Vec<usize>,
    /// Whether the output goes to a command: `>(…)`.
    pub(super) has_process: bool,
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
    /// The name behind `for` or `select`, or the word behind the name.
    Loop { has_name: bool },
    /// An argument of `find`, up to `-exec`.
    Find,
    /// An argument of `git`, some of which are commands.
    Git(Git),
    /// An argument of `make`.
    Make,
    /// An argument of `ssh`; with only a host, the other machine runs what `ssh` reads.
    Remote { operands: u8, is_value: bool },
    /// An argument of `export` or `readonly`.
    Declaration { has_option: bool },
    /// An argument of `[` or `test`, which take names behind some options.
    Test,
    /// The format of `printf`, or the name behind `-v`.
    Format { is_name: bool },
    /// The name of a variable: `read`, `unset`.
    Names,
    /// An argument of `scp` or `rsync`; a shell may parse what stands behind `host:`.
    Copy,
    /// An argument of a program that runs another one behind a subcommand: `uv run …`.
    Runner { runner: &'static Runner, behind: Behind },
    /// An argument of `pwsh`, up to `-File` and the name of a script.
    PowerShell,
    /// No template is accepted any more.
    Refused(&'static Refusal),
}

impl SimpleCommand {
    /// Takes in a finished word; `false` when what follows cannot be followed.
    pub(super) fn add(&mut self, word: &Word) -> bool {
        if std::mem::take(&mut self.redirection.expects_file) {
            self.redirection.is_descriptor = false;
            return true;
        }
        if self.condition.is_some() {
            if Condition::is_end(word) {
                self.condition = None;
                self.phase = Phase::Arguments;
            }
            return true;
        }
        let text = String::from_utf8_lossy(&word.text);
        let is_clear = if self.names_program_behind(&text) {
            self.interpreter = None;
            true
        } else {
            self.add_to_phase(word, &text)
        };
        self.last.clone_from(&word.text);
        is_clear
    }

    fn add_to_phase(&mut self, word: &Word, text: &str) -> bool {
        match self.phase {
            // In front of the program's name.
            Phase::Program if word.assigns => {}
            Phase::Program => return self.program(text),
            Phase::Wrapper { wrapper, operands, is_value } => {
                return self.wrapped(word, text, (wrapper, operands, is_value));
            }
            Phase::Case => {
                if text == "in" {
                    self.phase = Phase::Program;
                }
            }
            Phase::Loop { has_name } => return self.for_loop(text, has_name),
            Phase::Find => {}
            Phase::Format { is_name } => self.format(text, is_name),
            Phase::Runner { runner, behind } => self.runner(word, text, (runner, behind)),
            Phase::PowerShell => {
                if self.last.eq_ignore_ascii_case(b"-file") {
                    self.phase = Phase::Arguments;
                    self.runs_input = interpreter::is_input(text);
                }
            }
            Phase::Git(git) if git.is_before_subcommand() && word.may_vanish() => {
                self.phase = Phase::Refused(&EXPANSION);
            }
            Phase::Git(git) => self.phase = Phase::Git(git.after(text)),
            Phase::Remote { operands, is_value } => self.remote(text, operands, is_value),
            Phase::Declaration { .. } => self.declare(text),
            Phase::Names => {
                // `read PATH` takes from the input what decides about programs.
                self.runs_input |= decides(text) || is_evaluated(text) || text.starts_with("-C");
            }
            Phase::Arguments | Phase::Test | Phase::Make | Phase::Copy | Phase::Refused(_) => {
                self.argument(word, text);
            }
        }
        true
    }

    /// A word where a program is named.
    fn program(&mut self, text: &str) -> bool {
        if KEYWORDS.contains(&text) {
            return true;
        }
        if matches!(text, "function" | "coproc") {
            return false;
        }
        let name = text.rsplit('/').next().unwrap_or(text);
        if text == SHELL_VARIABLE {
            self.phase = Phase::Arguments;
            self.run(&SHELL, true);
            name.clone_into(&mut self.name);
            return true;
        }
        let is_pattern = !matches!(name, "[" | "[[") && name.contains(['*', '?', '[', '{']);
        let is_cut = text.len() >= Word::LONGEST;
        if name.contains(char::from(UNKNOWN)) || is_pattern || is_cut {
            self.phase = Phase::Refused(&EXPANSION);
            self.is_unknown = true;
            self.interpreter = None;
            name.clone_into(&mut self.name);
            return true;
        }
        let plain = name.strip_prefix('g').filter(|plain| GNU.contains(plain));
        self.named(plain.unwrap_or(name));
        true
    }

    /// The program of this name runs.
    fn named(&mut self, name: &str) {
        if name == "[[" {
            self.condition = Some(Condition::new(self.first_template));
        }
        self.redefines |= name == "alias";
        self.phase = match name {
            _ if EVALUATE.contains(&name) => Phase::Refused(&EVALUATED),
            _ if EDIT.contains(&name) => Phase::Refused(&CODE),
            _ if REMOTE_SHELLS.contains(&name) => Phase::Remote { operands: 0, is_value: false },
            _ if MAKES.contains(&name) => Phase::Make,
            _ if NAME_VARIABLES.contains(&name) => Phase::Names,
            "pwsh" | "powershell" => Phase::PowerShell,
            "git" => Phase::Git(Git::Option),
            // Bash evaluates numbers here.
            "let" => Phase::Refused(&ARITHMETIC),
            "export" | "readonly" | "local" | "declare" | "typeset" => {
                Phase::Declaration { has_option: false }
            }
            "[" | "test" => Phase::Test,
            "printf" => Phase::Format { is_name: false },
            "case" => Phase::Case,
            "for" | "select" => Phase::Loop { has_name: false },
            "find" => Phase::Find,
            "scp" | "rsync" | "sftp" => Phase::Copy,
            _ => Phase::Arguments,
        };
        self.runs_behind = match name {
            "find" => &["-exec", "-execdir", "-ok", "-okdir"],
            "fd" | "fdfind" => behind::FD_PROGRAM,
            // A program that `find` runs; another may follow.
            _ => self.runs_behind,
        };
        let runs_input = [RUN_INPUT, EDIT, REMOTE_SHELLS].iter().any(|names| names.contains(&name));
        self.runs_input = runs_input;
        self.interpreter = None;
        name.clone_into(&mut self.name);
        if let Some(runner) = RUNNERS.iter().find(|runner| runner.names.contains(&name)) {
            self.phase = Phase::Runner { runner, behind: Behind::Plain };
        }
        if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name)) {
            if name == XARGS {
                self.fed = self.fed.or(Some(Fed::Behind));
            }
            let operands = wrapper.operands;
            self.phase = Phase::Wrapper { wrapper, operands, is_value: false };
            // The name of the program is still to come.
            self.name.clear();
        } else if let Some(rule) = rule_for(name) {
            self.run(rule, true);
        }
    }

    fn run(&mut self, rule: &'static Interpreter, is_certain: bool) {
        self.interpreter = Some(Running::new(rule, is_certain));
    }

    /// Why a template is refused that stands behind this part of a word.
    pub(super) fn refusal(&self, word: &Word) -> Option<&'static Refusal> {
        let text = String::from_utf8_lossy(&word.text);
        if self.redirection.expects_file {
            return self.redirection.is_descriptor.then_some(&DESCRIPTOR);
        }
        if let Some(condition) = &self.condition {
            return condition.refusal();
        }
        let name = assigned(&text);
        let may_assign = !matches!(self.phase, Phase::Arguments | Phase::Test | Phase::Case);
        if may_assign && decides(name) && !name.is_empty() {
            return Some(&VARIABLE);
        }
        if may_assign && is_evaluated(name) {
            return Some(&ARITHMETIC);
        }
        match self.phase {
            Phase::Program => (!word.assigns).then_some(&PROGRAM),
            Phase::Wrapper { wrapper, operands, is_value } => {
                let is_operand = operands > 0 && operands != tables::UNTIL_DASHES;
                let is_plain = is_value
                    || is_assignment(&text)
                    || wrapper.begins_value(&text)
                    || (is_operand && !text.starts_with('-'));
                (!is_plain).then_some(&PROGRAM)
            }
            Phase::Declaration { has_option } => {
                (has_option || !is_assignment(&text)).then_some(&NAMES)
            }
            // The operator may come from a variable: `[ "$operator" {x} ]` with `-v`.
            Phase::Test => {
                let is_name = matches!(self.last.as_slice(), b"-v" | b"-R") || text == "-v";
                (is_name || self.last.contains(&UNKNOWN)).then_some(&NAMES)
            }
            Phase::Refused(refusal) => Some(refusal),
            Phase::Names | Phase::Loop { .. } => Some(&NAMES),
            Phase::Remote { .. } => Some(&REMOTE),
            Phase::Git(git) => git.refusal(&text),
            Phase::PowerShell => Some(&EVALUATED),
            Phase::Make => (!behind::is_folder(&self.last, &text)).then_some(&MAKE),
            Phase::Copy if text.contains(':') => Some(&REMOTE),
            Phase::Format { is_name: true } => Some(&NAMES),
            Phase::Format { .. } => (text.is_empty() || text.starts_with('-')).then_some(&FORMAT),
            Phase::Runner { runner, behind } => match behind {
                Behind::Value => None,
                Behind::Unknown => Some(&UNKNOWN_OPTION),
                Behind::Plain if runner.options.begins_value(&text) => None,
                Behind::Plain if text.starts_with('-') => Some(&UNKNOWN_OPTION),
                Behind::Plain => Some(&PROGRAM),
            },
            Phase::Case | Phase::Find => None,
            Phase::Arguments if self.begins_program(&text) => Some(&PROGRAM),
            Phase::Arguments | Phase::Copy => {
                self.interpreter.as_ref().and_then(|one| one.refusal(&text))
            }
        }
    }
}

/// The word that is `$SHELL`.
const SHELL_VARIABLE: &str = "\0SHELL";

/// The name that a word assigns to, also as the value of an option: `--env=NAME=value`.
fn assigned(text: &str) -> &str {
    let text = text.strip_prefix("--env=").or(text.strip_prefix("-e")).unwrap_or(text);
    text.split_once('=').map_or("", |(name, _)| name)
}

/// Whether a word begins with `NAME=`, however it is quoted.
fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| is_variable(name.as_bytes()))
}
