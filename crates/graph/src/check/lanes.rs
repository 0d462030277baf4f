//! Which nodes of a graph run in the same superstep.
//!
//! Where several ways leave a node, each is a lane: every edge without a condition is one, and
//! those with a condition are one together, because only one of them is taken. The lanes are
//! followed step by step. What is in two of them after the same number of steps may run at once;
//! what is in the same lane is left to the node where it forks.

use std::collections::BTreeMap;

use super::scope::Site;

/// The nodes a lane may have come to, and whether it has for certain.
pub(super) type Lane = BTreeMap<u32, bool>;

/// Shows all lanes after each step behind `fork`. `budget` is how many nodes may be looked at.
pub(super) fn behind(
    site: Site<'_, '_>,
    fork: u32,
    budget: &mut usize,
    mut see: impl FnMut(&[Lane]),
) {
    let layout = site.layout();
    let plain = layout.plain(fork).filter_map(|wire| wire.to);
    let mut lanes: Vec<Lane> = plain.map(|to| Lane::from([(to, true)])).collect();
    lanes.push(layout.choices(fork).filter_map(|wire| Some((wire.to?, false))).collect());
    // A way that is longer goes round.
    for _ in 0..site.graph().nodes.len() {
        lanes = apart(lanes);
        let looked_at = lanes.iter().map(Lane::len).sum();
        let Some(left) = budget.checked_sub(looked_at).filter(|_| lanes.len() > 1) else { return };
        *budget = left;
        see(&lanes);
        lanes = next(site, &lanes);
    }
}

/// A node that several lanes have come to runs once, and what follows it is a lane of its own.
fn apart(mut lanes: Vec<Lane>) -> Vec<Lane> {
    let mut met: BTreeMap<u32, (usize, bool)> = BTreeMap::new();
    for (node, certain) in lanes.iter().flatten() {
        let (times, is_certain) = met.entry(*node).or_default();
        *times += 1;
        *is_certain |= certain;
    }
    met.retain(|_, (times, _)| *times > 1);
    for lane in &mut lanes {
        lane.retain(|node, _| !met.contains_key(node));
    }
    lanes.extend(met.into_iter().map(|(node, (_, certain))| Lane::from([(node, certain)])));
    lanes.retain(|lane| !lane.is_empty());
    lanes
}

/// Where the lanes are one step later.
fn next(site: Site<'_, '_>, lanes: &[Lane]) -> Vec<Lane> {
    let layout = site.layout();
    let mut later = vec![];
    // An edge that waits for several nodes is followed only where all of them come by at once.
    let mut waiting: BTreeMap<u32, (usize, bool)> = BTreeMap::new();
    for lane in lanes {
        let mut ahead = Lane::new();
        for (node, certain) in lane {
            // A goto may lead past the edges.
            let certain = *certain && site.node(*node).targets.is_empty();
            for (number, wire) in layout.leaving(*node) {
                let is_plain = wire.when.is_none();
                match wire.to {
                    Some(to) if !wire.is_join() => {
                        *ahead.entry(to).or_default() |= certain && is_plain;
                    }
                    Some(_) => {
                        let (arrived, all) = waiting.entry(number).or_insert((0, true));
                        *arrived += 1;
                        *all &= certain && is_plain;
                    }
                    None => {}
                }
            }
        }
        later.push(ahead);
    }
    for (number, (arrived, certain)) in waiting {
        let wire = &layout.wires[number as usize];
        if let Some(to) = wire.to.filter(|_| arrived == wire.from.len()) {
            later.push(Lane::from([(to, certain)]));
        }
    }
    later
}
