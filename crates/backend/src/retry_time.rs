//! When a provider accepts requests again, from its words and from headers of HTTP.

use jiff::civil::{Date, Time};
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// Words without one of these say nothing about a next try.
const SUBJECTS: [&str; 5] = ["try again", "retry", "reset", "regain", "limit reached|"];

/// What a duration follows.
const BEFORE_A_DURATION: [&str; 9] = [
    "try again in ",
    "try again after ",
    "retry in ",
    "retry after ",
    "resets in ",
    "reset in ",
    "resets after ",
    "reset after ",
    "retrying in ",
];

/// The time that words name, in milliseconds since 1970: `limit reached|1795000000`, `resets at
/// 2026-12-24T18:00:00Z`, `regain access on 2026-12-01 at 00:00 UTC`, `try again in 6m30s`.
pub(crate) fn in_words(words: &str, now_ms: i64) -> Option<i64> {
    let lower = words.to_lowercase();
    if !SUBJECTS.iter().any(|subject| lower.contains(subject)) {
        return None;
    }
    epoch(words).or_else(|| moment(words)).or_else(|| Some(now_ms.saturating_add(delay(&lower)?)))
}

/// The time that headers name, in milliseconds since 1970: `retry-after-ms` and `retry-after`, which
/// has seconds or a date. Seconds count from the `date` of the answer, where it has one.
pub(crate) fn in_headers(headers: &Value, now_ms: i64) -> Option<i64> {
    let text = |name: &str| headers.get(name).and_then(Value::as_str).map(str::trim);
    let date = |text: &str| Some(rfc2822::parse(text).ok()?.timestamp().as_millisecond());
    let now_ms = text("date").and_then(date).unwrap_or(now_ms);
    let number = |text: &str, factor| after(now_ms, text.parse::<f64>().ok()? * factor);
    if let Some(at) = text("retry-after-ms").and_then(|text| number(text, 1.0)) {
        return Some(at);
    }
    let told = text("retry-after")?;
    number(told, 1_000.0).or_else(|| date(told))
}

/// A number of milliseconds from now; nothing where that is no time.
fn after(now_ms: i64, delay_ms: f64) -> Option<i64> {
    let is_delay = delay_ms.is_finite() && (0.0..1e12).contains(&delay_ms);
    is_delay.then(|| now_ms.saturating_add(delay_ms as i64))
}

/// Seconds or milliseconds since 1970 after a `|`.
fn epoch(words: &str) -> Option<i64> {
    let after = words.split('|').skip(1);
    let number = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        let number: i64 = digits.parse().ok()?;
        match digits.len() {
            10 => Some(number * 1_000),
            13 => Some(number),
            _ => None,
        }
    };
    after.into_iter().find_map(number)
}

/// A moment of RFC 3339, or a date and a time in UTC.
fn moment(words: &str) -> Option<i64> {
    let plain = |word: &'_ str| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned();
    let words: Vec<String> = words.split_whitespace().map(plain).collect();
    for (place, word) in words.iter().enumerate() {
        if let Ok(moment) = word.parse::<Timestamp>() {
            return Some(moment.as_millisecond());
        }
        // A date alone would also be read from a word that has a time of its own.
        let Some(date) = (word.len() == 10).then(|| word.parse::<Date>().ok()).flatten() else {
            continue;
        };
        let rest = words.iter().skip(place + 1).filter(|word| *word != "at").take(2);
        let rest: Vec<&String> = rest.collect();
        if let [time, zone] = rest[..]
            && zone == "UTC"
            && let Ok(time) = time.parse::<Time>()
            && let Ok(moment) = date.to_datetime(time).to_zoned(TimeZone::UTC)
        {
            return Some(moment.timestamp().as_millisecond());
        }
    }
    None
}

/// The duration after words such as `try again in`, in milliseconds.
fn delay(lower: &str) -> Option<i64> {
    BEFORE_A_DURATION.iter().find_map(|before| {
        let (_, mut rest) = lower.split_once(before)?;
        let mut sum: Option<SignedDuration> = None;
        while let Some((part, after)) = part(rest) {
            sum = Some(sum.unwrap_or_default().checked_add(part)?);
            rest = after.strip_prefix(" and").unwrap_or(after);
        }
        i64::try_from(sum?.as_millis()).ok()
    })
}

/// A number with its unit, and what follows.
fn part(text: &str) -> Option<(SignedDuration, &str)> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let seconds = match unit {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    };
    Some((SignedDuration::try_from_secs_f64(number * seconds).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{in_headers, in_words};

    const NOW: i64 = 1_000_000_000_000;

    #[test]
    fn words_name_the_time_of_the_next_try() {
        let table = [
            ("Claude AI usage limit reached|1795000000", Some(1_795_000_000_000)),
            ("Claude AI usage limit reached|1795000000123", Some(1_795_000_000_123)),
            ("Your limit resets at 2026-12-24T18:00:00Z.", Some(1_798_135_200_000)),
            ("You will regain access on 2026-12-01 at 00:00 UTC.", Some(1_796_083_200_000)),
            ("Please try again in 34 minutes.", Some(NOW + 34 * 60_000)),
            ("Please try again in 1 hour and 5 minutes.", Some(NOW + 65 * 60_000)),
            ("Rate limit reached. Please try again in 6m0s.", Some(NOW + 360_000)),
            ("Please try again in 1.5s.", Some(NOW + 1_500)),
            ("Please try again in 20ms.", Some(NOW + 20)),
            ("429 too many requests, retry after 600 seconds", Some(NOW + 600_000)),
            // No time at all, or one about something else.
            ("Please try again in a moment.", None),
            ("You've hit your session limit · resets 1:24am (UTC)", None),
            ("Try again later (request 2026-12-24)", None),
            ("The model was built at 2026-12-24T18:00:00Z", None),
            ("try again in 99999999999999999999999999 days", None),
            ("", None),
        ];
        for (words, expected) in table {
            assert_eq!(in_words(words, NOW), expected, "{words}");
        }
    }

    #[test]
    fn headers_name_the_time_of_the_next_try() {
        let table = [
            (json!({ "retry-after": "600" }), Some(NOW + 600_000)),
            (json!({ "retry-after": "0.5" }), Some(NOW + 500)),
            (json!({ "retry-after": "Sun, 09 Sep 2001 01:47:50 GMT" }), Some(NOW + 70_000)),
            (json!({ "retry-after-ms": "3000", "retry-after": "600" }), Some(NOW + 3_000)),
            (json!({ "retry-after-ms": "soon", "retry-after": "2" }), Some(NOW + 2_000)),
            (
                json!({ "retry-after": "70", "date": "Sun, 09 Sep 2001 01:46:50 GMT" }),
                Some(NOW + 80_000),
            ),
            (json!({ "retry-after": "soon" }), None),
            (json!({ "retry-after": "-5" }), None),
            (json!({ "retry-after": "1e300" }), None),
            (json!({ "retry-after": 600 }), None),
            (json!([]), None),
        ];
        for (headers, expected) in table {
            assert_eq!(in_headers(&headers, NOW), expected, "{headers}");
        }
    }
}
