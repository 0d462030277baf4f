//! Whether a command runs what it reads.

use super::interpreter::{Next, Running};
use super::tables::{First, START_SHELL};
use super::wrappers::XARGS;
use super::{Fed, Phase, SimpleCommand};
use crate::shell::scan::runs_input;

impl SimpleCommand {
    /// Whether the command runs program text that it reads from its input.
    pub(in crate::shell) fn reads_code(&self) -> bool {
        if self.runs_input || self.feeds_code || (self.fed.is_some() && self.is_chosen_by_input()) {
            return true;
        }
        if matches!(self.phase, Phase::Remote { .. }) && runs_input(&self.remote) {
            return true;
        }
        // A shell starts where no program is named: `sudo -s`.
        if let Phase::Wrapper { wrapper, .. } = self.phase
            && wrapper.names.iter().any(|name| START_SHELL.contains(name))
        {
            return true;
        }
        // `deno` alone evaluates what it reads.
        if matches!(self.phase, Phase::Runner { .. }) && self.name == "deno" {
            return true;
        }
        let running = self.interpreter.as_ref().filter(|running| running.is_certain);
        let Some(Running { rule, has_code, reads_input, next, .. }) = running else { return false };
        let runs = rule.reads || rule.first == First::Script;
        let is_without = runs && !has_code && *next != Next::Data;
        let is_replaced = match self.fed {
            Some(Fed::Replaced) => *has_code,
            Some(Fed::Behind) => *has_code && rule.is_shell,
            None => false,
        };
        *reads_input || is_without || is_replaced
    }

    /// Whether what `xargs` reads is a program, or one of its commands.
    fn is_chosen_by_input(&self) -> bool {
        match self.phase {
            Phase::Wrapper { wrapper, .. } => !wrapper.names.contains(&XARGS),
            Phase::Git(git) => git.refusal("").is_some(),
            Phase::Program | Phase::Refused(_) | Phase::Make | Phase::Remote { .. } => true,
            Phase::PowerShell | Phase::Find | Phase::Runner { .. } => true,
            Phase::Arguments | Phase::Copy => {
                let running = self.interpreter.as_ref();
                !self.runs_behind.is_empty() || running.is_some_and(|one| one.refusal("").is_some())
            }
            Phase::Case | Phase::Loop { .. } | Phase::Declaration { .. } => false,
            Phase::Test | Phase::Format { .. } | Phase::Names => false,
        }
    }

    /// A substitution among the words runs the input of the command, or may do so.
    pub(in crate::shell) const fn feeds_code(&mut self, is_certain: bool) {
        self.feeds_code |= is_certain;
        self.is_unknown = true;
    }

    /// Whether a substitution among the words runs what it reads.
    pub(in crate::shell) const fn has_reader(&self) -> bool {
        self.feeds_code
    }

    /// Whether the command may run what it reads, because its name is not known.
    pub(in crate::shell) const fn may_read_code(&self) -> bool {
        self.is_unknown
    }
}
