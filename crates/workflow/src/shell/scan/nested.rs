//! Commands inside of `$(…)`, `<(…)`, `>(…)` and backticks, which share the input of the command
//! around them.

use super::{Level, Scanner};

/// How deep substitutions are followed, which keeps the time linear.
const DEEPEST: usize = 4;

/// The substitutions around the text and in it.
#[derive(Debug, Default)]
pub(super) struct Nested {
    /// How many substitutions this text is in.
    depth: usize,
    /// The number of levels around the substitution that is open, and where it begins.
    substitution: Option<(usize, usize)>,
    /// Whether `$((` has turned out to be a substitution that begins with `(…)`.
    is_command: bool,
}

/// Whether a command runs what it reads, or may do so: the text of `sh -c`, of `trap` and for `ssh`.
pub(in crate::shell) fn runs_input(text: &str) -> bool {
    let mut inner = Scanner::new(text);
    inner.nested.depth = DEEPEST - 1;
    inner.scan();
    inner.pipes.runs_input || inner.pipes.may_run_input
}

impl Scanner<'_> {
    pub(super) fn enter_substitution(&mut self, level: Level, length: usize) {
        // The text of `$(( $(a) ))` is looked at as a whole.
        self.nested.is_command |= matches!(level, Level::Substitution | Level::Backtick);
        if matches!(level, Level::Substitution | Level::Backtick | Level::Arithmetic)
            && self.nested.substitution.is_none()
        {
            self.nested.substitution = Some((self.levels.len(), self.at + length));
            // In dash `((` outside of words begins two subshells.
            self.nested.is_command = level != Level::Arithmetic || self.byte(0) == Some(b'(');
        }
    }

    /// Looks at the commands of a substitution when it has been left.
    pub(super) fn leave_substitution(&mut self, level: Option<Level>) {
        // Arithmetic ends with `))`; `$((a); b)` is a command.
        let is_inside = self.levels.last() == Some(&Level::Arithmetic);
        self.nested.is_command |= is_inside && self.byte(1) != Some(b')');
        if level == Some(Level::Arithmetic)
            && self.levels.is_empty()
            && self.is_arithmetic_command()
        {
            // A command of its own, behind which a keyword can stand: `for ((;;)) do`.
            self.word = None;
        }
        let Some((_, start)) = self.nested.substitution.filter(|open| open.0 == self.levels.len())
        else {
            return;
        };
        self.nested.substitution = None;
        if !self.nested.is_command {
            return;
        }
        if self.nested.depth >= DEEPEST {
            return self.command.feeds_code(false);
        }
        let mut inner = Scanner::new(self.text.get(start..self.at).unwrap_or_default());
        inner.nested.depth = self.nested.depth + 1;
        inner.scan();
        if inner.pipes.runs_input {
            self.command.feeds_code(true);
        } else if inner.pipes.may_run_input || inner.unclear.is_some() {
            self.command.feeds_code(false);
        }
    }

    /// Whether the arithmetic that ends here is `((…))` and not `$((…))`.
    fn is_arithmetic_command(&self) -> bool {
        let start = self.nested.substitution.map(|(_, start)| start);
        start.and_then(|start| start.checked_sub(3)).map(|at| self.bytes[at]) != Some(b'$')
    }
}
