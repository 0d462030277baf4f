//! OpenCode, when its provider says that it will not answer for long.

use std::time::Duration;

use atomic_backend::PROVIDER_PATIENCE;
use atomic_testing::conformance::backend::exchange;
use atomic_testing::model::Script;

use super::opencode_stand::Stand;
use super::serving_stand::{refusing, retry_at, when};
use super::stand::error;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_far_next_try_ends_the_turn_with_its_time() {
    let table = [
        (
            "seconds",
            refusing(429, "Rate limit reached.", None).header("retry-after", "600"),
            "rate_limited",
        ),
        (
            "a date",
            refusing(429, "Rate limit reached.", None).header("retry-after", "{date+600}"),
            "rate_limited",
        ),
        (
            "in ms",
            refusing(529, "Overloaded", None).header("retry-after-ms", "600000"),
            "overloaded",
        ),
    ];
    let script = table.iter().fold(Script::new(), |script, (prompt, reply, _)| {
        script.with(when(prompt).reply(reply.clone()))
    });
    let stand = Stand::with(script, |config| config.patience = PROVIDER_PATIENCE);
    for (prompt, _, code) in table {
        let conversation = stand.open(stand.request(&prompt.replace(' ', "-"))).await;
        let error = error(exchange(conversation.as_ref(), prompt).await.1);
        assert_eq!(error.code, code, "{error:?}");
        retry_at(&error, Duration::from_secs(600));
        conversation.close().await;
    }
}
