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
}

impl Scanner<'_> {
    pub(super) fn enter_substitution(&mut self, level: Level, length: usize) {
        if matches!(level, Level::Substitution | Level::Backtick)
            && self.nested.substitution.is_none()
        {
            self.nested.substitution = Some((self.levels.len(), self.at + length));
        }
    }

    /// Looks at the commands of a substitution when it has been left.
    pub(super) fn leave_substitution(&mut self) {
        let Some((_, start)) = self.nested.substitution.filter(|open| open.0 == self.levels.len())
        else {
            return;
        };
        self.nested.substitution = None;
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
}
