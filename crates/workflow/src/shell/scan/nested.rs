//! Commands inside of `$(…)`, `<(…)`, `>(…)` and backticks, which share the input of the command
//! around them.

use super::{Level, Scanner};

/// How deep substitutions are followed, which keeps the time linear.
const DEEPEST: usize = 4;

impl Scanner<'_> {
    pub(super) fn enter_substitution(&mut self, level: Level, length: usize) {
        if matches!(level, Level::Substitution | Level::Backtick) && self.substitution.is_none() {
            self.substitution = Some((self.levels.len(), self.at + length));
        }
    }

    /// Looks at the commands of a substitution when it has been left.
    pub(super) fn leave_substitution(&mut self) {
        let Some((_, start)) = self.substitution.filter(|open| open.0 == self.levels.len()) else {
            return;
        };
        self.substitution = None;
        if self.depth >= DEEPEST {
            return self.command.feeds_code(false);
        }
        let mut inner = Scanner::new(self.text.get(start..self.at).unwrap_or_default());
        inner.depth = self.depth + 1;
        inner.scan();
        if inner.runs_input {
            self.command.feeds_code(true);
        } else if inner.may_run_input || inner.unclear.is_some() {
            self.command.feeds_code(false);
        }
    }
}
