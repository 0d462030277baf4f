//! Layers: which shapes stand side by side, and what lies between the ends of a long arrow.
//!
//! Arrows that close a cycle are turned round, then every arrow leads from a layer to one further
//! down. Where it passes layers on its way it gets a bend in each, which is placed like a shape:
//! so arrows keep clear of shapes, and labels, which sit on bends, of everything.

use super::{Item, Link};

/// Shapes and bends in layers.
pub(super) struct Layers {
    /// The shapes in their order, then the bends.
    pub(super) spots: Vec<Spot>,
    /// What stands in each layer, from left to right.
    pub(super) rows: Vec<Vec<usize>>,
    /// The way of each link.
    pub(super) courses: Vec<Course>,
    /// The neighbours of each spot in the layer above, and how much it wants to be near them.
    pub(super) above: Vec<Vec<(usize, f64)>>,
    /// The same in the layer below.
    pub(super) below: Vec<Vec<(usize, f64)>>,
}

/// A place in a layer.
pub(super) struct Spot {
    pub(super) layer: usize,
    /// How far it reaches to the left and to the right of its middle, with some room.
    pub(super) left: f64,
    pub(super) right: f64,
    /// How much of that is room, on either side.
    pub(super) room: f64,
    pub(super) height: f64,
    pub(super) is_bend: bool,
}

/// The way of a link.
pub(super) struct Course {
    pub(super) way: Way,
    /// Whether it leads to a higher layer.
    pub(super) upward: bool,
}

/// Where a link runs.
pub(super) enum Way {
    /// Through these spots, from the top down, its ends among them. The label is at the one given.
    Through { spots: Vec<usize>, label: Option<usize> },
    /// Along the right side of everything, as it would need too many bends.
    Beside,
    /// From a shape to itself.
    Around,
}

const SHAPE_ROOM: f64 = 16.0;
const BEND_ROOM: f64 = 8.0;

impl Layers {
    pub(super) fn of(items: &[Item], links: &[Link]) -> Self {
        let upward = turned(items.len(), links);
        let layer = ranks(items.len(), links, &upward);
        let spots = items
            .iter()
            .zip(&layer)
            .map(|(item, layer)| Spot {
                layer: *layer,
                left: item.width / 2.0 + SHAPE_ROOM,
                right: item.width / 2.0 + item.beside + SHAPE_ROOM,
                room: SHAPE_ROOM,
                height: item.height,
                is_bend: false,
            })
            .collect();
        let mut layers =
            Self { spots, rows: vec![], courses: vec![], above: vec![], below: vec![] };
        let longest = longest_through(links, &layer);
        for (link, upward) in links.iter().zip(upward) {
            let way = layers.way(link, upward, longest);
            layers.courses.push(Course { way, upward });
        }
        layers.connect(links);
        layers.fill_rows(items.len());
        layers
    }

    /// Lays out the way of a link, with the bends it needs.
    fn way(&mut self, link: &Link, upward: bool, longest: usize) -> Way {
        if link.from == link.to {
            return Way::Around;
        }
        let (top, bottom) = if upward { (link.to, link.from) } else { (link.from, link.to) };
        let passed = self.spots[top].layer + 1..self.spots[bottom].layer;
        if passed.len() > longest {
            return Way::Beside;
        }
        // The label is where the arrow leaves its shape.
        let labelled = if upward { passed.end.checked_sub(1) } else { Some(passed.start) };
        let mut spots = vec![top];
        let mut label = None;
        for layer in passed {
            let size = link.label.filter(|_| labelled == Some(layer));
            let (width, height) = size.unwrap_or((0.0, 0.0));
            if size.is_some() {
                label = Some(self.spots.len());
            }
            let half = width / 2.0 + BEND_ROOM;
            spots.push(self.spots.len());
            self.spots.push(Spot {
                layer,
                left: half,
                right: half,
                room: BEND_ROOM,
                height,
                is_bend: true,
            });
        }
        spots.push(bottom);
        Way::Through { spots, label }
    }

    fn connect(&mut self, links: &[Link]) {
        self.above = vec![vec![]; self.spots.len()];
        self.below = vec![vec![]; self.spots.len()];
        for (course, link) in self.courses.iter().zip(links) {
            let Way::Through { spots, .. } = &course.way else { continue };
            // The usual ways down are the backbone of the picture; all else goes around it.
            let weight = match (link.strong, course.upward) {
                (true, false) => 24.0,
                (true, true) => 2.0,
                (false, _) => 1.0,
            };
            for pair in spots.windows(2) {
                self.below[pair[0]].push((pair[1], weight));
                self.above[pair[1]].push((pair[0], weight));
            }
        }
    }

    /// Puts everything into its layer, in the order of a walk down the links.
    fn fill_rows(&mut self, items: usize) {
        let layers = self.spots.iter().map(|spot| spot.layer + 1).max().unwrap_or(0);
        self.rows = vec![vec![]; layers];
        let mut seen = vec![false; self.spots.len()];
        for root in (0..items).filter(|item| self.above[*item].is_empty()) {
            let mut open = vec![root];
            while let Some(spot) = open.pop() {
                if std::mem::replace(&mut seen[spot], true) {
                    continue;
                }
                self.rows[self.spots[spot].layer].push(spot);
                open.extend(self.below[spot].iter().rev().map(|(next, _)| *next));
            }
        }
    }
}

/// The number of layers from one end of a link to the other, at least: a label needs one between.
fn least_length(link: &Link) -> usize {
    if link.label.is_some() { 2 } else { 1 }
}

/// The largest number of bends a link may have so that all bends together stay in proportion to
/// the picture: without this a chain whose every node leads to the last has a bend per pair.
fn longest_through(links: &[Link], layer: &[usize]) -> usize {
    let mut lengths: Vec<usize> =
        links.iter().map(|link| layer[link.from].abs_diff(layer[link.to])).collect();
    lengths.sort_unstable();
    let mut left = 1_000 + 8 * (links.len() + layer.len());
    for length in lengths {
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return length.saturating_sub(2).max(1),
        }
    }
    usize::MAX
}

/// Which links have to be turned round so that no cycle is left. Of a cycle, the link that leads
/// back to where the run came from is turned.
fn turned(count: usize, links: &[Link]) -> Vec<bool> {
    let mut is_led_to = vec![false; count];
    for link in links.iter().filter(|link| link.strong && link.from != link.to) {
        is_led_to[link.to] = true;
    }
    // A rare way counts only for what cannot be reached otherwise: it must not shape the picture.
    let counts = |link: &Link| link.from != link.to && (link.strong || !is_led_to[link.to]);
    let mut leaving: Vec<Vec<usize>> = vec![vec![]; count];
    let mut has_source = vec![false; count];
    for (index, link) in links.iter().enumerate().filter(|(_, link)| counts(link)) {
        leaving[link.from].push(index);
        has_source[link.to] = true;
    }
    let mut walk = Walk {
        links,
        leaving,
        state: vec![State::New; count],
        turned: vec![false; links.len()],
        finished: vec![],
    };
    let roots = (0..count).filter(|node| !has_source[*node]);
    for root in roots.chain(0..count) {
        walk.from(root);
    }
    let mut position = vec![0; count];
    for (index, node) in walk.finished.iter().rev().enumerate() {
        position[*node] = index;
    }
    for (index, link) in links.iter().enumerate().filter(|(_, link)| !counts(link)) {
        walk.turned[index] = position[link.from] > position[link.to];
    }
    walk.turned
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Finished,
}

/// A walk in depth, without recursion: a chain may be as long as it likes.
struct Walk<'a> {
    links: &'a [Link],
    leaving: Vec<Vec<usize>>,
    state: Vec<State>,
    turned: Vec<bool>,
    finished: Vec<usize>,
}

impl Walk<'_> {
    fn from(&mut self, root: usize) {
        if self.state[root] != State::New {
            return;
        }
        self.state[root] = State::Open;
        let mut open = vec![(root, 0)];
        while let Some((node, next)) = open.last_mut() {
            let Some(link) = self.leaving[*node].get(*next).copied() else {
                self.state[*node] = State::Finished;
                self.finished.push(*node);
                open.pop();
                continue;
            };
            *next += 1;
            let to = self.links[link].to;
            match self.state[to] {
                State::New => {
                    self.state[to] = State::Open;
                    open.push((to, 0));
                }
                State::Open => self.turned[link] = true,
                State::Finished => {}
            }
        }
    }
}

/// The layer of each node: as high as the links allow, but sources next to what they lead to.
fn ranks(count: usize, links: &[Link], upward: &[bool]) -> Vec<usize> {
    let mut leaving: Vec<Vec<(usize, usize)>> = vec![vec![]; count];
    let mut waits_for = vec![0_usize; count];
    for (link, upward) in links.iter().zip(upward).filter(|(link, _)| link.from != link.to) {
        let (top, bottom) = if *upward { (link.to, link.from) } else { (link.from, link.to) };
        leaving[top].push((bottom, least_length(link)));
        waits_for[bottom] += 1;
    }
    let sources: Vec<usize> = (0..count).filter(|node| waits_for[*node] == 0).collect();
    let mut layer = vec![0; count];
    let mut open = sources.clone();
    while let Some(node) = open.pop() {
        for (below, length) in &leaving[node] {
            layer[*below] = layer[*below].max(layer[node] + length);
            waits_for[*below] -= 1;
            if waits_for[*below] == 0 {
                open.push(*below);
            }
        }
    }
    for node in sources {
        let room = leaving[node].iter().map(|(below, length)| layer[*below] - length).min();
        layer[node] = room.unwrap_or(layer[node]);
    }
    layer
}
