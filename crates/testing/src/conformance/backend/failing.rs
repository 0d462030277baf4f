//! Checks that each way to fail is told apart from the others.
#![expect(clippy::panic, reason = "a check that fails panics")]

use atomic_event::Stop;

use super::hearing::{folder, in_time, open, request};
use super::{Failure, Scenario, Stage};

/// Makes a check of each way in which a turn fails.
macro_rules! told {
    ($($check:ident $failure:ident)*) => {
        $(
            #[doc = concat!("The turn fails as [`Failure::", stringify!($failure), "`] does.")]
            pub async fn $check(stage: &dyn Stage) {
                fails(stage, Failure::$failure).await;
            }
        )*
    };
}

told! {
    an_end_of_the_program_is_told Exit
    garbage_is_told Garbage
    a_rate_limit_is_told RateLimit
    an_overload_is_told Overloaded
    an_overflow_is_told ContextOverflow
    a_missing_login_is_told Login
    a_used_up_quota_is_told Quota
    an_outage_is_told Unavailable
    a_refusal_is_told Refused
    an_unknown_model_is_told ModelUnknown
    a_rejection_is_told Rejected
}

/// The code is the failure's own, and the message names the backend.
async fn fails(stage: &dyn Stage, failure: Failure) {
    let backend = stage.backend(&Scenario::Failure(failure));
    let (_, stop) = open(backend.as_ref()).await.exchange("go").await;
    let Stop::Failed(error) = stop else { panic!("{failure:?}: {stop:?}") };
    assert_eq!(error.code, failure.code(), "{failure:?}: {}", error.message);
    assert!(error.message.contains(backend.id().as_str()), "{failure:?}: {}", error.message);
}

/// A program that is not there is no other trouble.
pub async fn a_missing_program_is_told(stage: &dyn Stage) {
    does_not_open(stage, &Scenario::NotInstalled, "not_installed").await;
}

/// A program that is too old is not talked to.
pub async fn an_old_program_is_told(stage: &dyn Stage) {
    does_not_open(stage, &Scenario::TooOld, "too_old").await;
}

async fn does_not_open(stage: &dyn Stage, scenario: &Scenario, code: &str) {
    let backend = stage.backend(scenario);
    let workspace = folder();
    let opened = in_time("opening", backend.open(request(workspace.path(), None))).await;
    let Err(error) = opened else { panic!("{scenario:?}: a conversation") };
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(backend.id().as_str()), "{error}");
}
