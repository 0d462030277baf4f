//! What every [`Backend`] has to pass.
//!
//! The suite says in a [`Scenario`] what the agent is to do; the test makes a backend whose agent
//! does that, with a script or with a real program and a scripted model. One line,
//! [`backend_conformance!`](crate::backend_conformance), makes a test of every check.

mod going_on;
mod hearing;
mod nonce;
mod scenario;
mod stopping;
mod talking;

use atomic_backend::Backend;

pub use going_on::*;
pub use hearing::{Heard, Listener, MARKER, exchange, in_time, request, send};
pub use scenario::{Failure, Scenario};
pub use stopping::*;
pub use talking::*;

/// Makes a backend whose agent does what the scenario says.
pub type Stage<'a> = &'a (dyn Fn(&Scenario) -> Box<dyn Backend> + Sync);

/// Makes one test of every check of the suite; the argument is a function
/// `fn(&Scenario) -> Box<dyn Backend>`.
#[macro_export]
macro_rules! backend_conformance {
    ($stage:expr) => {
        $crate::backend_conformance! { $stage;
            the_id_is_known_before_the_first_prompt
            text_is_streamed_and_kept
            silence_is_an_empty_text
            tools_are_reported
            much_is_written_and_printed
            usage_is_reported
            a_question_is_asked_and_the_answer_goes_on
            several_questions_are_asked_one_after_the_other
            a_second_prompt_during_a_turn_is_refused
            a_conversation_is_continued_by_its_id
            an_unknown_conversation_is_gone
            failures_are_told_apart
            a_failed_turn_is_followed_by_another
            a_conversation_that_rested_goes_on
            a_summarised_conversation_goes_on
            the_model_is_chosen_and_changed
            two_conversations_at_once_do_not_mix
            interrupting_nothing_does_nothing
            a_text_is_interrupted
            a_hanging_turn_is_interrupted
            a_question_is_interrupted
            a_tool_is_interrupted_with_all_its_processes
            closing_leaves_no_process
            dropping_the_conversation_leaves_no_process
            dropping_the_turn_interrupts_it
        }
    };
    ($stage:expr; $($check:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                $crate::conformance::backend::$check(&$stage).await;
            }
        )*
    };
}
