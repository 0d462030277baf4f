//! Words behind the name of a command that runs other programs or sets variables.

use super::interpreter::{Next, is_input};
use super::interpreters::rule_for;
use super::runners::{Behind, GO_RUN, Runner};
use super::tables::{UNTIL_DASHES, Wrapper};
use super::variables::{decides, is_evaluated};
use super::{Fed, Phase, SimpleCommand, is_assignment};
use crate::shell::refusal::{EVALUATED, EXPANSION, PROGRAM, UNKNOWN_OPTION, VARIABLE};
use crate::shell::scan::{UNKNOWN, Word, runs_input};

/// The options of `fd` behind which a program stands.
pub(super) const FD_PROGRAM: &[&str] = &["-x", "-X", "--exec", "--exec-batch"];

impl SimpleCommand {
    /// Whether the word is an option of `find` or `fd` behind which a program stands.
    pub(super) fn names_program_behind(&mut self, text: &str) -> bool {
        if self.runs_behind.contains(&text) {
            self.phase = Phase::Program;
            return true;
        }
        if self.begins_program(text) {
            // The next word is the program, or its first argument: `-Hx`, `-xrm`, `--exec=rm`.
            let is_complete = !text.starts_with("--") && text.ends_with(['x', 'X']);
            self.phase = if is_complete { Phase::Program } else { Phase::Refused(&PROGRAM) };
            return true;
        }
        false
    }

    /// Whether an option of `fd` has the beginning of a program's name: `-x`, `-Hx`, `--exec=`.
    pub(super) fn begins_program(&self, text: &str) -> bool {
        if self.runs_behind != FD_PROGRAM || !matches!(self.phase, Phase::Arguments) {
            return false;
        }
        if text.starts_with("--") {
            return text.starts_with("--exec");
        }
        let letters = text.strip_prefix('-').unwrap_or_default();
        // Behind these letters the rest of the word is a value.
        let flags = letters.split(|letter| "dEetSjcoC".contains(letter)).next().unwrap_or_default();
        flags.contains(['x', 'X'])
    }

    /// Takes in a word of a program that runs another one; `false` when what follows is unclear.
    pub(super) fn wrapped(
        &mut self,
        word: &Word,
        text: &str,
        (wrapper, operands, is_value): (&'static Wrapper, u8, bool),
    ) -> bool {
        let next = |operands, is_value| Phase::Wrapper { wrapper, operands, is_value };
        let has_operand = wrapper.operands > 0 && operands == 0;
        if word.may_vanish() {
            // Any number of words: options, the operand, or the program.
            self.is_unknown = true;
            self.phase = Phase::Refused(&EXPANSION);
        } else if is_value {
            self.phase = next(operands, false);
        } else if operands == UNTIL_DASHES {
            self.phase = next(if text == "--" { 0 } else { operands }, false);
        } else if wrapper.names.contains(&"command") && matches!(text, "-v" | "-V") {
            // Only says what the name means.
            self.phase = Phase::Arguments;
        } else if is_input(text) && !wrapper.names.contains(&"env") {
            // As in `uv run -`.
            self.phase = Phase::Arguments;
            self.runs_input = true;
        } else if text.starts_with('-') && (!has_operand || wrapper.permutes) {
            self.wrapper_option(text, (wrapper, operands));
        } else if text.starts_with('-') && wrapper.operands != UNTIL_DASHES {
            // An option of the program that the image or the user has.
            self.phase = Phase::Refused(&PROGRAM);
        } else if is_assignment(text) {
            // As in `env NAME=value program`.
        } else if operands > 0 {
            self.phase = next(operands - 1, false);
        } else if wrapper.names.contains(&GO_RUN) && matches!(text, "." | "..") {
            self.phase = Phase::Arguments;
        } else {
            self.phase = Phase::Program;
            return self.program(text);
        }
        true
    }

    fn wrapper_option(&mut self, text: &str, (wrapper, operands): (&'static Wrapper, u8)) {
        let replaces = ["-I", "-i", "--replace"].iter().any(|one| text.starts_with(one));
        if self.fed.is_some() && replaces {
            self.fed = Some(Fed::Replaced);
        }
        if let Some(is_value) = wrapper.takes_value(text) {
            self.phase = Phase::Wrapper { wrapper, operands, is_value };
        } else {
            // The next word may be its value, or the program.
            self.phase = Phase::Refused(&UNKNOWN_OPTION);
            self.runs_input = true;
        }
    }

    /// A word between a program such as `docker` and its subcommand.
    pub(super) fn runner(
        &mut self,
        word: &Word,
        text: &str,
        (runner, behind): (&'static Runner, Behind),
    ) {
        let next = |behind| Phase::Runner { runner, behind };
        if text.contains(char::from(UNKNOWN)) && (behind != Behind::Value || word.may_vanish()) {
            self.is_unknown = true;
            self.phase = Phase::Refused(&EXPANSION);
        } else if behind == Behind::Value {
            self.phase = next(Behind::Plain);
        } else if is_input(text) {
            self.runs_input = true;
            self.phase = Phase::Arguments;
        } else if text.starts_with('-') {
            self.phase = next(match runner.options.takes_value(text) {
                Some(true) => Behind::Value,
                Some(false) => Behind::Plain,
                None => Behind::Unknown,
            });
        } else if runner.runs.contains(&text) {
            let (wrapper, operands) = (runner.wrapper, runner.wrapper.operands);
            self.phase = Phase::Wrapper { wrapper, operands, is_value: false };
            self.interpreter = None;
        } else if runner.evaluates.contains(&text) {
            self.phase = Phase::Refused(&EVALUATED);
            self.runs_input = true;
        } else if behind == Behind::Plain
            && !runner.groups.contains(&text)
            // `cargo +nightly test`
            && !text.starts_with('+')
        {
            self.phase = Phase::Arguments;
            // `bun` runs scripts, too.
            self.argument(word, text);
        }
    }

    pub(super) fn remote(&mut self, text: &str, operands: u8, is_value: bool) {
        // The length bounds how deep `ssh a ssh b …` is followed.
        if operands > 0 && !is_value && self.remote.len() < Word::LONGEST {
            self.remote.push_str(text);
            self.remote.push(' ');
        }
        let operands = if is_value || text.starts_with('-') { operands } else { operands + 1 };
        let letters = text.strip_prefix('-').filter(|_| !is_value).unwrap_or_default();
        let takes_value = letters.len() == 1 && "BbcDEeFIiJLlmOoPpQRSWw".contains(letters);
        self.phase = Phase::Remote { operands: operands.min(2), is_value: takes_value };
        self.runs_input = operands < 2;
    }

    /// A word behind `for` or `select`; `false` when what follows is unclear.
    pub(super) fn for_loop(&mut self, text: &str, has_name: bool) -> bool {
        self.phase = match text {
            _ if !has_name && (decides(text) || is_evaluated(text)) => Phase::Refused(&VARIABLE),
            _ if !has_name => Phase::Loop { has_name: true },
            "in" => Phase::Arguments,
            "do" | "{" => Phase::Program,
            _ => return false,
        };
        // The commands of the loop follow.
        if matches!(self.phase, Phase::Program) {
            self.name.clear();
        }
        true
    }

    /// A word of `printf` before its arguments.
    pub(super) fn format(&mut self, text: &str, is_name: bool) {
        let name = if is_name { Some(text) } else { text.strip_prefix("-v") };
        self.phase = match name {
            Some("") => Phase::Format { is_name: true },
            Some(name) if decides(name) || is_evaluated(name) => Phase::Refused(&VARIABLE),
            // The format follows, or a second `-v`.
            Some(_) => Phase::Format { is_name: false },
            None => Phase::Arguments,
        };
    }

    /// A word of `declare` or `export`.
    pub(super) fn declare(&mut self, text: &str) {
        if !text.starts_with('-') {
            return;
        }
        self.phase = Phase::Declaration { has_option: true };
        // Bash evaluates what is assigned to an integer, and the name that a reference has.
        if self.name != "export" && text.contains(['i', 'n', char::from(UNKNOWN)]) {
            self.redefines = true;
            self.runs_input = true;
        }
    }

    pub(super) fn argument(&mut self, word: &Word, text: &str) {
        if matches!(self.phase, Phase::Make) {
            self.runs_input |= text == "-f-" || text.ends_with("=-") || is_input(text);
            return;
        }
        // `trap sh EXIT` runs the input of the whole command.
        self.runs_input |= self.name == "trap" && runs_input(text);
        if let Some(running) = &mut self.interpreter
            && running.next != Next::Data
        {
            return running.add(word, text);
        }
        // A program that runs another one, and is not in the table: `docker exec box sh -c …`.
        let name = text.rsplit('/').next().unwrap_or(text);
        if let Some(rule) = rule_for(name).filter(|_| !matches!(self.phase, Phase::Refused(_))) {
            self.run(rule, false);
        }
    }
}

/// Whether an argument of `make` is the folder to work in. Every other argument may assign a variable, and
/// GNU make runs `A:=$(shell command)`, also behind other text: `target-{x}`.
pub(super) fn is_folder(last: &[u8], text: &str) -> bool {
    matches!(last, b"-C" | b"--directory")
        || text.starts_with("-C")
        || text.starts_with("--directory=")
}
