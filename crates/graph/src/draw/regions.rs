//! How nodes stand in which other graphs run. Nothing is recorded of them but what runs inside, so
//! that is what they are known by.

use std::collections::BTreeMap;

use super::overlay::{Seen, Spot, Status, place};
use crate::id::without_number;
use crate::{Kind, StepId, Strategy};

/// The steps, and the visits they are inside of.
pub(super) fn with_regions<'s>(
    steps: &'s BTreeMap<StepId, Seen>,
    spans: &BTreeMap<String, (u64, u64)>,
    spots: &BTreeMap<String, Spot<'_>>,
) -> BTreeMap<&'s str, Seen> {
    let is_known = |(step, _): &(&StepId, &Seen)| place(&step.stops(), spots).is_some();
    let known = steps.iter().filter(is_known);
    let mut all: BTreeMap<&str, Seen> = known.map(|(step, seen)| (step.as_str(), *seen)).collect();
    let mut inner: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for step in all.keys().copied() {
        let mut child = step;
        for visit in around(step).collect::<Vec<_>>().into_iter().rev() {
            let known = inner.contains_key(visit);
            inner.entry(visit).or_default().push(child);
            if known {
                break;
            }
            child = visit;
        }
    }
    // The innermost first: they are steps of those around them.
    let mut visits: Vec<&str> = inner.keys().copied().collect();
    visits.sort_by_key(|visit| std::cmp::Reverse(visit.matches('/').count()));
    for visit in visits {
        let children: Vec<(&str, Seen)> =
            inner[visit].iter().filter_map(|child| Some((*child, *all.get(child)?))).collect();
        let Some(status) = stands(visit, all.get(visit), &children, spots) else { continue };
        let took = spans.get(visit).map(|(first, last)| last - first);
        let took_ms = took.filter(|_| status < Status::Running);
        let order = children.iter().map(|(_, seen)| seen.order).max().unwrap_or_default();
        all.insert(visit, Seen { status, took_ms, order });
    }
    all
}

/// The visits that something is inside of, the outermost first.
pub(super) fn around(step: &str) -> impl Iterator<Item = &str> {
    step.match_indices('/').map(|(end, _)| {
        let part = step[..end].rfind('/').map_or(0, |slash| slash + 1);
        let visit = step[part..end].rfind('[').map_or(end, |open| part + open);
        without_number(&step[..visit], '!').unwrap_or(&step[..visit])
    })
}

/// How a visit stands, of which this is known and in which those were heard of.
fn stands(
    visit: &str,
    own: Option<&Seen>,
    children: &[(&str, Seen)],
    spots: &BTreeMap<String, Spot<'_>>,
) -> Option<Status> {
    let (path, _) = place(&StepId::new(visit).stops(), spots)?;
    let open = children.iter().map(|(_, seen)| seen.status).max()?;
    if open >= Status::Running {
        return Some(open);
    }
    // Out of time, or a function of its own failed: after that its steps are only stopped.
    let is_over = |own: &&Seen| {
        let later = |(_, seen): &&(&str, Seen)| seen.order > own.order;
        own.status == Status::Failed
            && children.iter().filter(later).all(|(_, seen)| seen.status == Status::Cancelled)
    };
    if own.is_some_and(|own| is_over(&own)) {
        return Some(Status::Failed);
    }
    let mut graphs: BTreeMap<(u32, &str), Vec<(&str, Seen)>> = BTreeMap::new();
    for (child, seen) in children {
        let entered = child.strip_prefix(visit)?.split('/').next()?;
        let (attempt, name) = match entered.strip_prefix('!') {
            Some(again) => again.split_at(again.find('[').unwrap_or(again.len())),
            None => ("1", entered),
        };
        graphs.entry((attempt.parse().ok()?, name)).or_default().push((child, *seen));
    }
    // Where all of it was tried again, the last attempt counts.
    let (last, _) = *graphs.last_key_value()?.0;
    let graphs = graphs.iter().filter(|((attempt, _), _)| *attempt == last);
    let ends: Vec<(u64, Status)> = graphs.map(|(_, steps)| graph_stands(steps, spots)).collect();
    let statuses = || ends.iter().map(|(_, status)| *status);
    match spots.get(&path)?.kind {
        Kind::Loop { .. } => ends.iter().max().map(|(_, status)| *status),
        Kind::Parallel(parallel)
            if parallel.strategy != Strategy::All && statuses().any(|s| s == Status::Completed) =>
        {
            Some(Status::Completed)
        }
        // A call that failed may have been caught: only the script itself knows how it ended.
        Kind::Script(_) => own.map(|own| own.status).or_else(|| statuses().max()),
        Kind::Parallel(_)
        | Kind::Each(_)
        | Kind::Subgraph { .. }
        | Kind::Work { .. }
        | Kind::Decision => statuses().max(),
    }
}

/// How a graph stands in which these steps were heard of, and when the last was.
fn graph_stands(steps: &[(&str, Seen)], spots: &BTreeMap<String, Spot<'_>>) -> (u64, Status) {
    let mut latest: BTreeMap<String, Seen> = BTreeMap::new();
    for (step, seen) in steps {
        let Some((path, _)) = place(&StepId::new(*step).stops(), spots) else { continue };
        let known = latest.entry(path).or_insert(*seen);
        if seen.order > known.order {
            *known = *seen;
        }
    }
    let is_caught = |path: &String| spots.get(path).is_some_and(|spot| spot.is_caught);
    let counts =
        latest.iter().filter(|(path, seen)| seen.status != Status::Failed || !is_caught(path));
    let worst = counts.map(|(_, seen)| seen.status).max().unwrap_or(Status::Completed);
    (steps.iter().map(|(_, seen)| seen.order).max().unwrap_or_default(), worst)
}
