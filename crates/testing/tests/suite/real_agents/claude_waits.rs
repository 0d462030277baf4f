//! Claude Code, when its provider says that it will not answer for long.

use std::time::Duration;

use atomic_backend::PROVIDER_PATIENCE;
use atomic_event::StepError;
use atomic_testing::conformance::backend::exchange;
use atomic_testing::model::{Script, Turn};

use super::serving_stand::{refusing, retry_at};
use super::stand::{Stand, error, in_both_versions};

in_both_versions! {
    a_far_next_try_ends_the_turn_with_its_time
    a_limit_of_the_account_ends_the_turn_with_its_time
}

async fn failed(stand: &Stand) -> StepError {
    let conversation = stand.open(stand.request()).await;
    let error = error(exchange(conversation.as_ref(), "go").await.1);
    // The program would wait with the next one.
    let asked = stand.server.requests().into_iter().filter(|it| it.method == "POST");
    assert_eq!(asked.count(), 1);
    error
}

async fn a_far_next_try_ends_the_turn_with_its_time(version: &'static str) {
    for (status, header, value, code) in [
        (429, "retry-after", "600", "rate_limited"),
        (503, "retry-after", "600", "unavailable"),
        (529, "retry-after", "600", "overloaded"),
    ] {
        let reply = refusing(status, "", None).header(header, value);
        let script = Script::new().with(Turn::default().reply(reply));
        let stand = Stand::with(version, script, |config| config.patience = PROVIDER_PATIENCE);
        let error = failed(&stand).await;
        let outage = error.outage.unwrap();
        assert_eq!((error.code.as_str(), outage.status), (code, Some(status)), "{error:?}");
        retry_at(&error, Duration::from_secs(600));
    }
}

async fn a_limit_of_the_account_ends_the_turn_with_its_time(version: &'static str) {
    let header = |name: &str| format!("anthropic-ratelimit-unified-{name}");
    let reply = refusing(429, "Slow down.", None)
        .header(&header("status"), "rejected")
        .header(&header("reset"), "{epoch+7200}")
        .header(&header("representative-claim"), "five_hour")
        .header("retry-after", "7200");
    let script = Script::new().with(Turn::default().reply(reply));
    let stand = Stand::with(version, script, |config| {
        config.env.retain(|(name, _)| name != "ANTHROPIC_API_KEY");
        config.env.push(("CLAUDE_CODE_OAUTH_TOKEN".to_owned(), "of-no-use-anywhere".to_owned()));
    });
    let error = failed(&stand).await;
    // 2.1.197 says only the time.
    assert!(["quota", "rate_limited"].contains(&error.code.as_str()), "{error:?}");
    retry_at(&error, Duration::from_secs(7_200));
}
