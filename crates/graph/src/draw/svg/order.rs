//! The order within each layer, so that few arrows cross.

use super::layers::Layers;

/// Orders each layer by where its neighbours are, back and forth, and keeps the best.
pub(super) fn reduce_crossings(layers: &mut Layers) {
    let spots = layers.spots.len();
    let rounds = if spots <= 2_000 { 12 } else { 4 };
    let mut position = vec![0; spots];
    for row in &layers.rows {
        note_positions(row, &mut position);
    }
    let mut fewest = crossings(layers, &position);
    let mut best = layers.rows.clone();
    for round in 0..rounds {
        if fewest == 0 {
            break;
        }
        sweep(layers, &mut position, round % 2 == 0);
        if spots <= 2_000 {
            swap_neighbours(layers, &mut position);
        }
        let now = crossings(layers, &position);
        if now < fewest {
            fewest = now;
            best.clone_from(&layers.rows);
        }
    }
    layers.rows = best;
}

fn note_positions(row: &[usize], position: &mut [usize]) {
    for (index, spot) in row.iter().enumerate() {
        position[*spot] = index;
    }
}

/// Sorts every layer by the middle of the neighbours in the layer before it.
fn sweep(layers: &mut Layers, position: &mut [usize], down: bool) {
    let count = layers.rows.len();
    for step in 0..count {
        let row = if down { step } else { count - 1 - step };
        let neighbours = if down { &layers.above } else { &layers.below };
        let middle = |spot: usize| {
            let near = &neighbours[spot];
            if near.is_empty() {
                return as_float(position[spot]);
            }
            let sum: f64 = near.iter().map(|(other, _)| as_float(position[*other])).sum();
            sum / as_float(near.len())
        };
        let mut keyed: Vec<(f64, usize)> =
            layers.rows[row].iter().map(|spot| (middle(*spot), *spot)).collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
        layers.rows[row] = keyed.into_iter().map(|(_, spot)| spot).collect();
        note_positions(&layers.rows[row], position);
    }
}

/// Swaps two that stand side by side wherever that saves crossings.
fn swap_neighbours(layers: &mut Layers, position: &mut [usize]) {
    for _ in 0..4 {
        let mut changed = false;
        for row in 0..layers.rows.len() {
            for index in 1..layers.rows[row].len() {
                let (left, right) = (layers.rows[row][index - 1], layers.rows[row][index]);
                let cost = |a: usize, b: usize| {
                    pair_crossings(&layers.above[a], &layers.above[b], position)
                        + pair_crossings(&layers.below[a], &layers.below[b], position)
                };
                if cost(right, left) < cost(left, right) {
                    layers.rows[row].swap(index - 1, index);
                    position.swap(left, right);
                    changed = true;
                }
            }
        }
        if !changed {
            return;
        }
    }
}

/// How many links of two spots cross when `left` is to the left.
fn pair_crossings(left: &[(usize, f64)], right: &[(usize, f64)], position: &[usize]) -> usize {
    // With many links on both sides the sum over pairs is not worth its time.
    if left.len() * right.len() > 4_096 {
        return 0;
    }
    let crosses = |a: usize| right.iter().filter(|(b, _)| position[*b] < position[a]).count();
    left.iter().map(|(a, _)| crosses(*a)).sum()
}

/// How many links cross, counted with a tree of sums.
fn crossings(layers: &Layers, position: &[usize]) -> u64 {
    let mut count = 0;
    for (row, next) in layers.rows.iter().zip(layers.rows.iter().skip(1)) {
        let mut sums = vec![0_u64; next.len() + 1];
        let mut total = 0;
        for spot in row {
            let mut ends: Vec<usize> =
                layers.below[*spot].iter().map(|(other, _)| position[*other]).collect();
            ends.sort_unstable();
            for end in &ends {
                count += total - sum_until(&sums, end + 1);
            }
            for end in &ends {
                add_at(&mut sums, end + 1);
            }
            total += ends.len() as u64;
        }
    }
    count
}

fn sum_until(sums: &[u64], mut at: usize) -> u64 {
    let mut sum = 0;
    while at > 0 {
        sum += sums[at];
        at &= at - 1;
    }
    sum
}

fn add_at(sums: &mut [u64], mut at: usize) {
    while at < sums.len() {
        sums[at] += 1;
        at += at & at.wrapping_neg();
    }
}

/// A count as a number to calculate with; no picture has more than 2^32 of anything.
fn as_float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
