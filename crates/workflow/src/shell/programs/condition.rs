//! The words of `[[ … ]]`.
//!
//! Bash reads the operators when it parses the command, so a value is only an operand. Operands of
//! numeric comparisons and names of variables are evaluated. In dash `[[` is the name of a program, and
//! `&&` or `||` inside begins a new command.

use std::ops::Range;

use crate::shell::refusal::{ARITHMETIC, CONDITION, Refusal};
use crate::shell::scan::Word;

/// A `[[` that waits for its `]]`.
#[derive(Debug)]
pub(in crate::shell) struct Condition {
    /// The number of templates before the last word, and behind it.
    last: Range<usize>,
    /// Whether bash evaluates the next word.
    evaluates: bool,
    /// Whether dash has begun a new command.
    is_split: bool,
}

impl Condition {
    /// `templates` is the number of templates before the command.
    pub(super) const fn new(templates: usize) -> Self {
        Self { last: templates..templates, evaluates: false, is_split: false }
    }

    /// An operator that ends a command for dash.
    pub(in crate::shell) const fn split(&mut self) {
        self.is_split = true;
    }

    /// Takes in a word that ends behind this number of templates. Returns the templates of the word
    /// before, when the word is an operator that evaluates them.
    pub(in crate::shell) fn add(&mut self, word: &Word, templates: usize) -> Option<Range<usize>> {
        let compares = [&b"-eq"[..], b"-ne", b"-lt", b"-le", b"-gt", b"-ge"];
        let is_comparison = !word.is_quoted && compares.contains(&word.text.as_slice());
        self.evaluates = is_comparison || matches!(word.text.as_slice(), b"-v" | b"-R");
        let last = self.last.end..templates;
        let operand = std::mem::replace(&mut self.last, last);
        is_comparison.then_some(operand)
    }

    pub(super) fn is_end(word: &Word) -> bool {
        !word.is_quoted && word.text == b"]]"
    }

    /// Why a template in the next word is refused.
    pub(super) fn refusal(&self) -> Option<&'static Refusal> {
        if self.evaluates {
            return Some(&ARITHMETIC);
        }
        self.is_split.then_some(&CONDITION)
    }
}
