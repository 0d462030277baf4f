//! Trouble with the provider, alike for all programs: a scenario each.

use std::time::Duration;

use atomic_testing::model::{ApiError, Break, Ending, Reply};

/// How long trouble may last in a recording.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Scenarios that are kept for every program.
pub(crate) const KEPT: [&str; 6] =
    ["far", "failing", "overloaded", "quota-reset", "overflow-code", "cut"];

/// What the provider answers in a scenario of trouble.
pub(crate) fn reply(scenario: &str) -> Option<Reply> {
    let refused = |status| refusing(status, None);
    let reply = match scenario {
        "limited" => refused(429),
        "seconds" => refused(429).header("retry-after", "3"),
        "date" => refused(429).header("retry-after", "{date+4}"),
        "ms" => refused(429).header("retry-after-ms", "3000"),
        "far" => refused(429).header("retry-after", "600"),
        "far-date" => refused(429).header("retry-after", "{date+600}"),
        "far-ms" => refused(429).header("retry-after-ms", "600000"),
        "far-openai" => refused(429)
            .header("x-ratelimit-reset-requests", "10m0s")
            .header("x-ratelimit-remaining-requests", "0"),
        "far-anthropic" => refused(429)
            .header("anthropic-ratelimit-requests-remaining", "0")
            .header("anthropic-ratelimit-requests-reset", "{time+600}"),
        "failing" => refused(500),
        "failing-far" => refused(503).header("retry-after", "600"),
        "overloaded" => refused(529),
        "overloaded-far" => refused(529).header("retry-after", "600"),
        "overload-event" => Reply::broken(Break::ErrorEvent),
        "quota" => refusing(429, Some("You exceeded your current quota.")),
        "quota-reset" => unified(refusing(429, Some("Claude AI usage limit reached|1795000000"))),
        "quota-words" => {
            refusing(429, Some("You've hit your limit. It resets at 2026-12-24T18:00:00Z."))
        }
        "overflow-openai" => {
            refusing(400, Some("This model's maximum context length is 128000 tokens."))
        }
        "overflow-code" => Reply {
            ending: Ending::Error(ApiError {
                status: 400,
                kind: Some("context_length_exceeded".to_owned()),
                message: Some("Too much.".to_owned()),
                retry_after: None,
            }),
            ..Reply::default()
        },
        "overflow-anthropic" => {
            refusing(400, Some("prompt is too long: 250000 tokens > 200000 maximum"))
        }
        "overflow-413" => refused(413),
        "cut" => Reply { chunk: std::num::NonZeroUsize::new(4), ..Reply::broken(Break::Cut) },
        "closed" => Reply::broken(Break::Close),
        "warned" => {
            let status = "anthropic-ratelimit-unified-status";
            unified(Reply::say("Done.")).header(status, "allowed_warning")
        }
        _ => return None,
    };
    Some(reply)
}

fn refusing(status: u16, message: Option<&str>) -> Reply {
    let message = message.map(str::to_owned);
    let error = ApiError { status, kind: None, message, retry_after: None };
    Reply { ending: Ending::Error(error), ..Reply::default() }
}

/// Headers of an account with a subscription whose limit of five hours is reached.
fn unified(reply: Reply) -> Reply {
    let header = |reply: Reply, name: &str, value: &str| {
        reply.header(&format!("anthropic-ratelimit-unified-{name}"), value)
    };
    let reply = header(reply, "status", "rejected");
    let reply = header(reply, "reset", "{epoch+7200}");
    let reply = header(reply, "representative-claim", "five_hour");
    let reply = header(reply, "5h-status", "rejected");
    let reply = header(reply, "5h-reset", "{epoch+7200}");
    let reply = header(reply, "5h-utilization", "1.0");
    reply.header("retry-after", "7200")
}
