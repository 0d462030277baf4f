//! The words of a picture, the same in every format.

use crate::{Condition, Count, Graph, Kind, Node, OnError, OnLost, Ready, Strategy};

/// Text on one line, without anything that a terminal or an XML reader would stumble over.
pub(super) fn clean(text: &str) -> String {
    let words: Vec<String> = text
        .split_whitespace()
        .map(|word| word.chars().map(|c| if is_harmless(c) { c } else { '\u{FFFD}' }).collect())
        .collect();
    words.join(" ")
}

/// Control characters end lines or move the cursor; the others turn the direction of reading or
/// are no characters at all.
fn is_harmless(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FFFE}' | '\u{FFFF}')
}

/// How many columns a character takes in a terminal.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(|c| if is_wide(c) { 2 } else { 1 }).sum()
}

/// Whether a character is about twice as wide as a letter.
pub(super) fn is_wide(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{115F}' | '\u{2E80}'..='\u{A4CF}' | '\u{AC00}'..='\u{D7A3}'
        | '\u{F900}'..='\u{FAFF}' | '\u{FE30}'..='\u{FE6F}' | '\u{FF00}'..='\u{FF60}'
        | '\u{FFE0}'..='\u{FFE6}' | '\u{1F000}'..='\u{1FAFF}' | '\u{20000}'..='\u{3FFFD}')
}

/// At most `max` columns of a text.
pub(super) fn shorten(text: &str, max: usize) -> String {
    if columns(text) <= max {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += if is_wide(c) { 2 } else { 1 };
        if used > max {
            break;
        }
        short.push(c);
    }
    format!("{}…", short.trim_end())
}

/// The text in at most `rows` lines of at most `width` columns.
pub(super) fn wrap(text: &str, width: usize, rows: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    let mut rest = text.trim();
    while !rest.is_empty() {
        if lines.len() + 1 == rows {
            lines.push(shorten(rest, width));
            break;
        }
        let (line, after) = split(rest, width);
        lines.push(line.trim_end().to_owned());
        rest = after.trim_start();
    }
    lines
}

/// The first line of a text and what follows it: at the last blank that fits, else anywhere.
fn split(text: &str, width: usize) -> (&str, &str) {
    let mut used = 0;
    let mut blank = None;
    for (at, c) in text.char_indices() {
        if c == ' ' {
            blank = Some(at);
        }
        used += if is_wide(c) { 2 } else { 1 };
        if used > width && at > 0 {
            return text.split_at(blank.filter(|at| *at > 0).unwrap_or(at));
        }
    }
    (text, "")
}

/// A length of time, as short as can be.
pub(super) fn time(millis: u64) -> String {
    match millis / 1_000 {
        0..60 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        seconds @ 60..3_600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {:02} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// A limit of time, which is mostly a round number.
fn limit(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        _ if millis.is_multiple_of(3_600_000) => format!("{} h", millis / 3_600_000),
        _ if millis.is_multiple_of(60_000) => format!("{} min", millis / 60_000),
        1_000..60_000 if millis.is_multiple_of(1_000) => format!("{} s", millis / 1_000),
        _ => time(millis),
    }
}

/// A number, or the key under which it is.
fn count(count: &Count) -> String {
    match count {
        Count::Fixed(count) => count.to_string(),
        Count::Key(key) => format!("`{key}`"),
    }
}

/// When an edge is taken.
pub(super) fn condition(condition: &Condition) -> String {
    match condition {
        Condition::Equals { key, value } => format!("{key} = {value}"),
        Condition::Says { node, text } => format!("{node} says “{text}”"),
        Condition::Call(function) => format!("{function}?"),
        Condition::Otherwise => "otherwise".to_owned(),
        Condition::Not(inner) => match inner.as_ref() {
            Condition::Equals { key, value } => format!("{key} ≠ {value}"),
            Condition::Says { node, text } => format!("{node} does not say “{text}”"),
            Condition::Call(function) => format!("not {function}"),
            Condition::Not(same) => self::condition(same),
            Condition::Otherwise => "never".to_owned(),
        },
    }
}

/// What kind of node it is, with what decides how its inside is run.
pub(super) fn caption(node: &Node) -> String {
    match &node.kind {
        Kind::Work { launch: false, .. } => "work".to_owned(),
        Kind::Work { launch: true, .. } => "agent".to_owned(),
        Kind::Decision => "decision".to_owned(),
        Kind::Subgraph { isolated, input, output, .. } => {
            let mut parts = vec!["subgraph".to_owned()];
            parts.extend(isolated.then(|| "isolated".to_owned()));
            parts.extend(input.as_ref().map(|function| format!("in: {function}")));
            parts.extend(output.as_ref().map(|function| format!("out: {function}")));
            parts.join(" · ")
        }
        Kind::Loop { until, max_rounds, .. } => {
            let rounds = match max_rounds {
                0 => "no limit of rounds".to_owned(),
                1 => "1 round".to_owned(),
                many => format!("at most {many} rounds"),
            };
            let until = until.as_ref().map(|until| format!(" · until {}", condition(until)));
            format!("loop · {rounds}{}", until.unwrap_or_default())
        }
        Kind::Each(each) => {
            let workers = match &each.workers {
                Count::Fixed(1) => "one at a time".to_owned(),
                many @ (Count::Fixed(_) | Count::Key(_)) => format!("{} at once", count(many)),
            };
            let ready = match each.ready {
                Ready::Once => "",
                Ready::Tasks => " · as tasks become ready",
            };
            let fast = if each.fail_fast { " · stops at the first failure" } else { "" };
            format!("each of {} · {workers}{ready}{fast}", each.over)
        }
        Kind::Script(script) => {
            let calls = match &script.max_calls {
                None => return "script".to_owned(),
                Some(Count::Fixed(1)) => "at most 1 call".to_owned(),
                Some(many @ (Count::Fixed(_) | Count::Key(_))) => {
                    format!("at most {} calls", count(many))
                }
            };
            format!("script · {calls}")
        }
        Kind::Parallel(parallel) => {
            let strategy = match parallel.strategy {
                Strategy::All => "all",
                Strategy::Race => "race: the first to end",
                Strategy::Any => "any: the first to succeed",
            };
            let fast = if parallel.fail_fast { " · stops at the first failure" } else { "" };
            let merge = parallel.merge.as_ref().map(|merge| format!(" · merge: {merge}"));
            format!("parallel · {strategy}{fast}{}", merge.unwrap_or_default())
        }
    }
}

/// The rules of a node that are worth a word.
pub(super) fn rules(node: &Node) -> Vec<String> {
    let mut rules = vec![];
    if node.retry.attempts > 1 {
        rules.push(format!("{} attempts", node.retry.attempts));
    }
    rules.extend(node.timeout_ms.map(|millis| format!("at most {}", limit(millis))));
    rules.extend(node.max_visits.as_ref().map(|count| match count {
        Count::Fixed(1) => "at most 1 visit".to_owned(),
        many @ (Count::Fixed(_) | Count::Key(_)) => {
            format!("at most {} visits", self::count(many))
        }
    }));
    rules.extend(match &node.on_error {
        OnError::Abort | OnError::Goto(_) => None,
        OnError::Skip | OnError::SkipWith(_) => Some("skipped on error".to_owned()),
        OnError::Call(function) => Some(format!("on error: {function}")),
    });
    if node.on_lost == OnLost::Ask {
        rules.push("asks when cut off".to_owned());
    }
    rules.extend(node.model.as_ref().map(|model| format!("model {model}")));
    rules
}

/// The rules of a graph that are worth a word. Some hold only for the outermost one.
pub(super) fn graph_rules(graph: &Graph, outermost: bool) -> Vec<String> {
    let mut rules = vec![];
    if outermost {
        rules.extend(graph.max_steps.map(|steps| format!("at most {steps} steps")));
        rules.extend(graph.max_concurrency.map(|count| format!("{count} at once")));
        rules.extend(graph.timeout_ms.map(|millis| format!("at most {}", limit(millis))));
    }
    rules.extend(graph.max_iterations.as_ref().map(|c| format!("each node at most {}×", count(c))));
    if graph.fail_fast {
        rules.push("stops at the first failure".to_owned());
    }
    rules.extend(graph.model.as_ref().map(|model| format!("model {model}")));
    rules
}
