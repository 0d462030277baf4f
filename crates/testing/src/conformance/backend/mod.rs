//! What every [`Backend`](atomic_backend::Backend) has to pass.
//!
//! The suite says in a [`Scenario`] what the agent is to do; a [`Stage`] makes a backend whose
//! agent does that, with a script or with a real program and a scripted model. One line,
//! [`backend_conformance!`](crate::backend_conformance), makes a test of every check;
//! [`run_all`] runs them in one test, for a stage whose program is started once.

mod acting;
mod checks;
mod exceptions;
mod failing;
mod going_on;
mod hearing;
mod nonce;
mod scenario;
mod sent;
mod shared;
mod stage;
mod stopping;
mod talking;
mod telling;

pub use acting::*;
pub use checks::{Check, run_all, run_one};
pub use failing::*;
pub use going_on::*;
pub use hearing::{Heard, Listener, exchange, in_time, request, send};
pub use scenario::{Act, Failure, Scenario};
pub use sent::Sent;
pub use shared::SharedModel;
pub use stage::{Program, Stage, Words};
pub use stopping::*;
pub use talking::*;
pub use telling::*;

use sent::sent;

/// Makes one test of every check of the suite; the argument is a [`Stage`], made anew for each.
/// With `basic` before it, only of those that a backend without a program can pass.
#[macro_export]
macro_rules! backend_conformance {
    (@basic $make:ident $($stage:expr)?) => {
        $crate::backend_conformance! { @$make $($stage)?;
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
            an_end_of_the_program_is_told
            garbage_is_told
            a_rate_limit_is_told
            an_overload_is_told
            an_overflow_is_told
            a_missing_login_is_told
            a_used_up_quota_is_told
            an_outage_is_told
            a_refusal_is_told
            an_unknown_model_is_told
            a_rejection_is_told
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
    (@of_programs $make:ident $($stage:expr)?) => {
        $crate::backend_conformance! { @$make $($stage)?;
            a_missing_program_is_told
            an_old_program_is_told
            the_system_prompt_reaches_the_model
            somebody_else_goes_on_with_what_was_said
            prompts_reach_the_model_as_they_are
            thoughts_are_told
            the_agents_list_is_told
            a_summary_takes_the_place_of_what_was_said
            what_was_spent_is_counted_once
            the_price_is_told
            the_context_is_measured
            models_are_listed
            structured_output_is_the_final_text
            a_text_in_place_of_structured_output_is_told
            a_wait_for_the_provider_is_told
            every_tool_runs_unasked
            a_list_of_tools_allows_nothing_else
            what_is_taken_away_cannot_be_used
            servers_of_the_project_are_used
            servers_are_listed
            without_questions_there_is_no_tool_for_them
            helpers_are_told
            a_helper_of_a_restricted_agent_is_restricted
            a_helper_has_rules_of_its_own
            a_helper_asks
        }
    };
    (@list; $($check:ident)*) => {
        &[$(Check {
            name: stringify!($check),
            run: |stage| Box::pin(super::$check(stage)),
        }),*]
    };
    (@tests $stage:expr; $($check:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                let stage = ::std::sync::Arc::new($stage);
                $crate::conformance::backend::run_one(stage, stringify!($check)).await;
            }
        )*
    };
    (basic $stage:expr) => {
        $crate::backend_conformance! { @basic tests $stage }
    };
    ($stage:expr) => {
        $crate::backend_conformance! { @basic tests $stage }
        $crate::backend_conformance! { @of_programs tests $stage }
    };
}
