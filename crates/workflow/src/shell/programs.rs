//! The words of one simple command: which of them a program would run instead of read.
//!
//! Quoting keeps a value from being parsed by the shell that runs the command. `eval`, `sh -c`,
//! `ssh` and the program texts of interpreters parse it again, so templates are refused there. The
//! tables name the programs that workflows use for this. What a script does with its arguments is
//! the script's own business.

mod git;
mod interpreter;
mod runners;
mod tables;

use git::Git;
use interpreter::{Next, Running, is_input};
use runners::{RUNNERS, Runner};
use tables::{
    DECIDING, EVALUATED_NUMBERS, First, Interpreter, KEYWORDS, RUN_INPUT, SHELL, UNKNOWN_PROGRAM,
    WRAPPERS, Wrapper, XARGS, rule_for,
};

use super::refusal::{
    ARITHMETIC, CODE, DESCRIPTOR, EVALUATED, FORMAT, MAKE, NAMES, PROGRAM, REMOTE, Refusal,
    VARIABLE,
};
use super::scan::{UNKNOWN, Word, is_variable};

/// A simple command as far as it has been read.
#[derive(Debug, Default)]
pub(super) struct SimpleCommand {
    pub(super) redirection: Redirection,
    /// Whether a `[[` waits for its `]]`, up to which no operator ends the command.
    pub(super) is_condition: bool,
    /// The number of the first template that belongs to this command.
    pub(super) first_template: usize,
    phase: Phase,
    interpreter: Option<Running>,
    /// Whether its name, or that of a program in a substitution, is known only when it runs.
    is_unknown: bool,
    /// Whether a substitution among its words runs what it reads.
    feeds_code: bool,
    /// The options of `find` or `fd`, which may run several programs, behind which one is named.
    runs_behind: &'static [&'static str],
    /// Whether it copies to other machines, where a shell may parse what stands behind `host:`.
    copies: bool,
    /// Whether `xargs` puts its input into the arguments (`-I`).
    replaces: bool,
    /// Whether `xargs` makes the last program's arguments out of its input.
    is_fed: bool,
    /// Whether the program runs what it reads.
    runs_input: bool,
    /// The last word, for options that take a name.
    last: Vec<u8>,
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
    Git(Git),
    /// An argument of `make`.
    Make,
    /// An argument of `ssh`; with only a host, the other machine runs what `ssh` reads.
    Remote { operands: u8, is_value: bool },
    /// An argument of `export` or `readonly`.
    Declaration { has_option: bool },
    /// An argument of `[` or `test`, which take names behind some options.
    Test,
    /// The first argument of `printf`.
    Format,
    /// An argument of a program that runs another one behind a subcommand: `uv run …`.
    Runner(&'static Runner),
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
        if self.is_condition {
            self.is_condition = word.is_quoted || word.text != b"]]";
            return true;
        }
        let text = String::from_utf8_lossy(&word.text);
        if self.runs_behind.contains(&text.as_ref()) {
            self.phase = Phase::Program;
            self.interpreter = None;
            self.last.clone_from(&word.text);
            return true;
        }
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
            Phase::Find => true,
            Phase::Format => {
                self.phase = if text == "-v" { Phase::Test } else { Phase::Arguments };
                true
            }
            Phase::Runner(runner) => {
                self.runner(&text, runner);
                true
            }
            Phase::PowerShell => {
                if self.last.eq_ignore_ascii_case(b"-file") {
                    self.phase = Phase::Arguments;
                    self.runs_input = is_input(&text);
                }
                true
            }
            Phase::Git(git) => {
                self.phase = Phase::Git(git.after(&text));
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
            let is_shell = text.starts_with(SHELL_VARIABLE);
            self.is_unknown = !is_shell;
            self.run(if is_shell { &SHELL } else { &UNKNOWN_PROGRAM }, true);
            return true;
        }
        let name = text.rsplit('/').next().unwrap_or(text);
        self.is_condition = name == "[[";
        self.phase = match name {
            "eval" | "trap" | "source" | "." | "alias" | "watch" | "parallel" | "su" | "enable"
            | "bind" | "complete" | "compgen" | "runuser" | "tmux" | "screen" | "hyperfine"
            | "just" | "nix-shell" | "socat" | "xterm" | "nodemon" | "watchexec"
            | "concurrently" => Phase::Refused(&EVALUATED),
            "pwsh" | "powershell" => Phase::PowerShell,
            "sqlite3" => Phase::Refused(&CODE),
            "ssh" | "slogin" | "autossh" => Phase::Remote { operands: 0, is_value: false },
            "git" => Phase::Git(Git::Option),
            "make" | "gmake" => Phase::Make,
            // In bash numbers are compared here by evaluating them.
            "let" | "[[" => Phase::Refused(&ARITHMETIC),
            "read" | "unset" | "mapfile" | "readarray" | "getopts" => Phase::Refused(&NAMES),
            "export" | "readonly" | "local" | "declare" | "typeset" => {
                Phase::Declaration { has_option: false }
            }
            "[" | "test" => Phase::Test,
            "printf" => Phase::Format,
            "case" => Phase::Case,
            "find" => Phase::Find,
            _ => Phase::Arguments,
        };
        self.runs_behind = match name {
            "find" => &["-exec", "-execdir", "-ok", "-okdir"],
            "fd" | "fdfind" => &["-x", "-X", "--exec", "--exec-batch"],
            // A program that `find` runs; another may follow.
            _ => self.runs_behind,
        };
        self.copies = matches!(name, "scp" | "rsync");
        self.runs_input = RUN_INPUT.contains(&name);
        if let Some(runner) = RUNNERS.iter().find(|runner| runner.names.contains(&name)) {
            self.phase = Phase::Runner(runner);
        }
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
        self.interpreter = Some(Running::new(rule, is_certain));
    }

    fn wrapped(&mut self, text: &str, (wrapper, operands, is_value): (&'static Wrapper, u8, bool)) {
        let next = |operands, is_value| Phase::Wrapper { wrapper, operands, is_value };
        if let Some(running) = &mut self.interpreter {
            running.add(text);
        }
        if is_value {
            self.phase = next(operands, false);
        } else if wrapper.names.contains(&"command") && matches!(text, "-v" | "-V") {
            // Only says what the name means.
            self.phase = Phase::Arguments;
        } else if text.starts_with('-') {
            let replaces = ["-I", "-i", "--replace"].iter().any(|one| text.starts_with(one));
            self.replaces |= self.is_fed && replaces;
            match wrapper.takes_value(text) {
                Some(takes_value) => self.phase = next(operands, takes_value),
                // The next word may be its value, or the program.
                None => {
                    self.phase = Phase::Refused(&PROGRAM);
                    self.runs_input = true;
                }
            }
        } else if is_assignment(text) {
            // As in `env NAME=value program`.
        } else if operands > 0 {
            self.phase = next(operands - 1, false);
        } else if text.starts_with(char::from(UNKNOWN)) && !text.starts_with(SHELL_VARIABLE) {
            // Options, or the program: `sudo $FLAGS deploy` and `sudo $SHELL -c …`.
            self.is_unknown = true;
            self.run(&UNKNOWN_PROGRAM, true);
        } else if matches!(text, "." | "..") {
            // A folder, as in `go run .`; the command `.` is a part of the shell.
            self.phase = Phase::Arguments;
        } else {
            self.phase = Phase::Program;
            self.program(text);
        }
    }

    fn runner(&mut self, text: &str, runner: &'static Runner) {
        if runner.runs.contains(&text) {
            let (wrapper, operands) = (runner.wrapper, runner.wrapper.operands);
            self.phase = Phase::Wrapper { wrapper, operands, is_value: false };
            self.interpreter = None;
        } else if runner.groups.contains(&text) {
            // Another subcommand follows.
        } else if !text.starts_with('-') && !self.last.starts_with(b"-") {
            self.phase = Phase::Arguments;
            // `bun` runs scripts, too.
            self.argument(text);
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
        if matches!(self.phase, Phase::Make) {
            self.runs_input |= text == "-f-" || text.ends_with("=-") || is_input(text);
            return;
        }
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
        if self.redirection.expects_file {
            return self.redirection.is_descriptor.then_some(&DESCRIPTOR);
        }
        let name = text.split_once('=').map_or("", |(name, _)| name);
        let may_assign = !matches!(self.phase, Phase::Arguments | Phase::Test | Phase::Case);
        if may_assign && DECIDING.contains(&name) {
            return Some(&VARIABLE);
        }
        if may_assign && EVALUATED_NUMBERS.contains(&name) {
            return Some(&ARITHMETIC);
        }
        match self.phase {
            Phase::Program => (!word.assigns).then_some(&PROGRAM),
            Phase::Wrapper { wrapper, operands, is_value } => {
                let is_plain = is_value
                    || is_assignment(&text)
                    || wrapper.begins_value(&text)
                    || (operands > 0 && !text.starts_with('-'));
                let running = self.interpreter.as_ref();
                let code = running.and_then(|running| running.refusal(&text));
                code.or((!is_plain).then_some(&PROGRAM))
            }
            Phase::Declaration { has_option } => {
                (has_option || !is_assignment(&text)).then_some(&NAMES)
            }
            Phase::Test if self.last == b"-v" || self.last == b"-R" || text == "-v" => Some(&NAMES),
            Phase::Refused(refusal) => Some(refusal),
            Phase::Remote { .. } => Some(&REMOTE),
            Phase::Git(git) => git.refusal(&text),
            Phase::PowerShell => Some(&EVALUATED),
            Phase::Make => (!is_folder(&self.last, &text)).then_some(&MAKE),
            _ if self.copies && text.contains(':') => Some(&REMOTE),
            Phase::Format => (text.is_empty() || text.starts_with('-')).then_some(&FORMAT),
            // May be the subcommand.
            Phase::Runner(_) => {
                (!text.starts_with('-') && !self.last.starts_with(b"-")).then_some(&PROGRAM)
            }
            Phase::Test | Phase::Case | Phase::Find => None,
            Phase::Arguments => self.interpreter.as_ref().and_then(|one| one.refusal(&text)),
        }
    }

    /// Whether the command runs program text that it reads from its input.
    pub(super) fn reads_code(&self) -> bool {
        if self.runs_input || self.feeds_code || (self.is_fed && self.is_chosen_by_input()) {
            return true;
        }
        let running = self.interpreter.as_ref();
        let running = running.filter(|running| running.is_certain);
        let Some(running) = running else { return false };
        let Running { rule, has_code, reads_input, next, .. } = running;
        let runs = rule.reads || rule.first == First::Script;
        let is_without = runs && !has_code && *next == Next::Option;
        let is_replaced = self.is_fed && *has_code && (rule.is_shell || self.replaces);
        *reads_input || is_without || is_replaced
    }

    /// Whether what `xargs` reads is a program, or one of its commands.
    fn is_chosen_by_input(&self) -> bool {
        match self.phase {
            Phase::Wrapper { wrapper, .. } => !wrapper.names.contains(&XARGS),
            Phase::Git(git) => git.refusal("").is_some(),
            Phase::Program | Phase::Refused(_) | Phase::Make | Phase::Remote { .. } => true,
            Phase::PowerShell => true,
            Phase::Arguments => {
                self.interpreter.as_ref().is_some_and(|one| one.refusal("").is_some())
            }
            Phase::Case | Phase::Find | Phase::Declaration { .. } => false,
            Phase::Test | Phase::Format | Phase::Runner(_) => false,
        }
    }

    /// A substitution among the words runs the input of the command, or may do so.
    pub(super) const fn feeds_code(&mut self, is_certain: bool) {
        self.feeds_code |= is_certain;
        self.is_unknown = true;
    }

    /// Whether the command may run what it reads, because its name is not known.
    pub(super) const fn may_read_code(&self) -> bool {
        self.is_unknown
    }
}

/// Beginning of a word that is `$SHELL`.
const SHELL_VARIABLE: &str = "\0SHELL";

/// Whether an argument of `make` is the folder to work in. Every other argument may assign a variable, and
/// GNU make runs `A:=$(shell command)`, also behind other text: `target-{x}`.
fn is_folder(last: &[u8], text: &str) -> bool {
    matches!(last, b"-C" | b"--directory")
        || text.starts_with("-C")
        || text.starts_with("--directory=")
}

/// Whether a word begins with `NAME=`, however it is quoted.
fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| is_variable(name.as_bytes()))
}
