//! Where things are from left to right.

use super::layers::Layers;

/// The middle of every spot. What is linked is put below each other as far as the order and the
/// widths within the layers allow, and most of all bends of the same arrow: then long arrows are straight.
pub(super) fn place(layers: &Layers) -> Vec<f64> {
    let mut x = vec![0.0; layers.spots.len()];
    for row in &layers.rows {
        let width: f64 = row.iter().map(|s| layers.spots[*s].left + layers.spots[*s].right).sum();
        let mut at = -width / 2.0;
        for spot in row {
            at += layers.spots[*spot].left;
            x[*spot] = at;
            at += layers.spots[*spot].right;
        }
    }
    let count = layers.rows.len();
    for _ in 0..6 {
        (1..count).for_each(|row| settle(layers, row, &layers.above, &mut x));
        (0..count).rev().skip(1).for_each(|row| settle(layers, row, &layers.below, &mut x));
    }
    (1..count).for_each(|row| settle(layers, row, &layers.above, &mut x));
    x
}

/// Moves the spots of a layer to where their neighbours are.
fn settle(layers: &Layers, row: usize, near: &[Vec<(usize, f64)>], x: &mut [f64]) {
    let row = &layers.rows[row];
    let wish = |spot: usize| {
        let total: f64 = near[spot].iter().map(|(_, weight)| weight).sum();
        if total == 0.0 {
            return Wish { at: x[spot], weight: 0.1 };
        }
        let at: f64 = near[spot].iter().map(|(other, weight)| x[*other] * weight).sum();
        let inner = layers.spots[spot].is_bend
            && near[spot].iter().all(|(other, _)| layers.spots[*other].is_bend);
        Wish { at: at / total, weight: if inner { 2.0 * total } else { total } }
    };
    let wishes: Vec<Wish> = row.iter().map(|spot| wish(*spot)).collect();
    let gaps: Vec<f64> =
        row.windows(2).map(|two| layers.spots[two[0]].right + layers.spots[two[1]].left).collect();
    for (spot, at) in row.iter().zip(fit(&wishes, &gaps)) {
        x[*spot] = at;
    }
}

/// Where something would like to be, and how much.
pub(super) struct Wish {
    pub(super) at: f64,
    pub(super) weight: f64,
}

/// The places nearest to the wishes that keep the order and the gaps: those that get into each
/// other's way form a block, which stands at the mean of what its members want.
pub(super) fn fit(wishes: &[Wish], gaps: &[f64]) -> Vec<f64> {
    struct Block {
        sum: f64,
        weight: f64,
        members: usize,
    }
    let mut offsets = vec![0.0; wishes.len()];
    for index in 1..wishes.len() {
        offsets[index] = offsets[index - 1] + gaps[index - 1];
    }
    let mut blocks: Vec<Block> = vec![];
    for (wish, offset) in wishes.iter().zip(&offsets) {
        let sum = (wish.at - offset) * wish.weight;
        let mut block = Block { sum, weight: wish.weight, members: 1 };
        while let Some(before) = blocks.pop_if(|b| b.sum / b.weight > block.sum / block.weight) {
            block.sum += before.sum;
            block.weight += before.weight;
            block.members += before.members;
        }
        blocks.push(block);
    }
    let starts = blocks.iter().flat_map(|b| std::iter::repeat_n(b.sum / b.weight, b.members));
    starts.zip(&offsets).map(|(start, offset)| start + offset).collect()
}
