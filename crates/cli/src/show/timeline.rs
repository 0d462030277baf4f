//! When each step ran, as bars.

use std::path::Path;

use atomic_event::{Event, Moment, StepId};
use atomic_session::Session;

use super::plain::name;
use crate::{paint, stage};

const WIDTH: u64 = 40;

struct Bar {
    step: StepId,
    from: Moment,
    to: Moment,
    ok: bool,
}

/// The steps of a session that took time, in order of their start.
pub(crate) fn lines(session: &Path) -> Vec<String> {
    let bars = bars(session);
    let (Some(start), Some(end)) =
        (bars.iter().map(|b| b.from).min(), bars.iter().map(|b| b.to).max())
    else {
        return vec![];
    };
    let whole = end.millis_since(start).max(1);
    let width = bars.iter().map(|bar| name(&bar.step).chars().count()).max().unwrap_or(0);
    bars.iter()
        .map(|bar| {
            let before = bar.from.millis_since(start) * WIDTH / whole;
            let length = (bar.to.millis_since(bar.from) * WIDTH / whole).max(1);
            let (before, length) = (before.min(WIDTH - 1), length.min(WIDTH));
            let after = WIDTH.saturating_sub(before + length);
            let drawn = format!(
                "{}{}{}",
                "·".repeat(before as usize),
                "█".repeat(length as usize),
                "·".repeat(after as usize)
            );
            let mark = paint::mark(if bar.ok { "completed" } else { "failed" });
            let name = name(&bar.step);
            let pad = " ".repeat(width - name.chars().count());
            format!("  {mark} {name}{pad} {drawn} {}", paint::time(bar.to.millis_since(bar.from)))
        })
        .collect()
}

fn bars(session: &Path) -> Vec<Bar> {
    let Ok(facts) = Session::read_only(stage::disk(), session) else { return vec![] };
    let mut bars: Vec<Bar> = vec![];
    let end = |bars: &mut Vec<Bar>, step: &StepId, at: Moment, ok: bool| {
        if let Some(bar) = bars.iter_mut().rev().find(|bar| bar.step == *step) {
            (bar.to, bar.ok) = (at, ok);
        }
    };
    for fact in facts.filter_map(Result::ok) {
        if let Event::StepStarted(started) = &fact.event
            && started.workspace.is_some()
        {
            let step = started.step.clone();
            bars.push(Bar { step, from: fact.at, to: fact.at, ok: false });
        } else if let Event::StepFinished { step, result, .. } = &fact.event {
            let failures = result.output.get("failures").and_then(|f| f.as_array());
            end(&mut bars, step, fact.at, failures.is_none_or(Vec::is_empty));
        } else if let Event::StepFailed { step, .. } = &fact.event {
            end(&mut bars, step, fact.at, false);
        }
    }
    bars
}
