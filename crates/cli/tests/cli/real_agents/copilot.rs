//! The real GitHub Copilot: its questions and its end.

use super::program::Program::Copilot;
use super::{Stand, asking};

#[test]
fn a_question_outlives_its_asker_and_the_answer_is_one_new_message() {
    let stand = Stand::of(&[Copilot], asking(Copilot));
    super::question_outlives_its_asker(&stand, |_| stand.has_no_processes());
    stand.has_no_processes();
}

#[test]
fn an_answer_that_was_heard_is_not_told_again() {
    super::heard_is_not_told_again(Copilot);
}

#[test]
fn nothing_outlives_us() {
    super::nothing_outlives(Copilot);
}
