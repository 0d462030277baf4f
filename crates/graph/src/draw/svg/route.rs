//! Where arrows run and how high everything is.
//!
//! Within a layer an arrow runs straight down, at its bend or within the width of its own shape;
//! only in the empty gap between two layers it moves sideways. So it never meets a shape that it
//! does not belong to.

use std::collections::BTreeMap;

use super::layers::{Layers, Way};
use super::place::{Wish, fit};
use super::{Item, Link, Outline, Plan, Point, Route};

const LEAST_GAP: f64 = 28.0;
const MOST_GAP: f64 = 84.0;
const PORT_GAP: f64 = 20.0;
const LANE: f64 = 14.0;

/// Draws everything, given the middle of each spot.
pub(super) fn route(items: &[Item], links: &[Link], layers: &Layers, x: &[f64]) -> Plan {
    let spots = || layers.spots.iter().zip(x);
    let left = spots().map(|(spot, x)| x - spot.left + spot.room).fold(f64::INFINITY, f64::min);
    let right = spots().map(|(spot, x)| x + spot.right - spot.room).fold(left, f64::max);
    let ports = Ports::of(items, links, layers, x);
    let bands = Bands::of(layers, &ports, x);
    let mut loops = vec![(0, 0); items.len()];
    links.iter().filter(|link| link.from == link.to).for_each(|link| loops[link.from].0 += 1);
    let lanes = BTreeMap::new();
    let mut map = Map { items, links, layers, x, ports, bands, lanes, loops, right };
    let mut routes: Vec<Route> = (0..links.len()).map(|link| map.route(link)).collect();
    for knot in routes.iter_mut().flat_map(|route| route.knots.iter_mut().chain(&mut route.label)) {
        knot.x -= left;
    }
    let at = (0..items.len())
        .map(|item| Point { x: x[item] - left - items[item].width / 2.0, y: map.top_of(item) })
        .collect();
    let width = right + lanes_width(map.lanes.len()) - left;
    let height = map.bands.bottom.last().copied().unwrap_or(0.0);
    Plan { width, height, at, routes }
}

/// Where each link meets the lower side of its upper shape, and the upper side of its lower one.
struct Ports {
    leaving: Vec<f64>,
    entering: Vec<f64>,
}

impl Ports {
    fn of(items: &[Item], links: &[Link], layers: &Layers, x: &[f64]) -> Self {
        let mut bottoms: Vec<Vec<(usize, usize)>> = vec![vec![]; items.len()];
        let mut tops = bottoms.clone();
        let mut ports = Self { leaving: vec![0.0; links.len()], entering: vec![0.0; links.len()] };
        for (index, course) in layers.courses.iter().enumerate() {
            let link = &links[index];
            match &course.way {
                Way::Around => {}
                Way::Beside => {
                    let ends = (link.from, link.to);
                    let (top, bottom) = if course.upward { (ends.1, ends.0) } else { ends };
                    ports.leaving[index] = range(&items[top], x[top]).1;
                    ports.entering[index] = range(&items[bottom], x[bottom]).1;
                }
                Way::Through { spots, .. } => {
                    let last = spots.len() - 1;
                    bottoms[spots[0]].push((index, spots[1]));
                    tops[spots[last]].push((index, spots[last - 1]));
                }
            }
        }
        for item in 0..items.len() {
            spread(item, &bottoms[item], (items, links, x), &mut ports.leaving);
            spread(item, &tops[item], (items, links, x), &mut ports.entering);
        }
        ports
    }
}

/// Spreads the ends of links on one side of a shape: each as near as can be to where it comes from
/// or goes to, in the same order, so that they do not cross.
fn spread(
    item: usize,
    ends: &[(usize, usize)],
    (items, links, x): (&[Item], &[Link], &[f64]),
    ports: &mut [f64],
) {
    let mut ends = ends.to_vec();
    ends.sort_by(|a, b| x[a.1].total_cmp(&x[b.1]).then(a.0.cmp(&b.0)));
    let (low, high) = range(&items[item], x[item]);
    let wish = |other: usize| {
        let Some(shape) = items.get(other) else { return x[other] };
        // Two shapes: straight down where both are, if there is such a place.
        let (other_low, other_high) = range(shape, x[other]);
        let (low, high) = (low.max(other_low), high.min(other_high));
        let middle = f64::midpoint(x[item], x[other]);
        if low <= high { middle.clamp(low, high) } else { x[other] }
    };
    let wishes: Vec<Wish> = ends
        .iter()
        .map(|(link, other)| {
            let weight = if links[*link].strong { 4.0 } else { 1.0 };
            Wish { at: wish(*other).clamp(low, high), weight }
        })
        .collect();
    let between = u32::try_from(ends.len().saturating_sub(1).max(1)).unwrap_or(u32::MAX);
    let gap = PORT_GAP.min((high - low) / f64::from(between));
    let gaps = vec![gap; ends.len().saturating_sub(1)];
    let mut least = low;
    let mut most = high - gap * f64::from(between);
    if ends.len() < 2 {
        most = high;
    }
    for ((link, _), at) in ends.iter().zip(fit(&wishes, &gaps)) {
        ports[*link] = at.max(least).min(most);
        least += gap;
        most += gap;
    }
}

/// Where links may meet the upper and lower side of a shape.
fn range(item: &Item, middle: f64) -> (f64, f64) {
    let half = match item.outline {
        Outline::Box => item.width / 2.0 - 14.0_f64.min(item.width / 4.0),
        Outline::Diamond => item.width * 0.15,
        Outline::Circle => 0.0,
    };
    (middle - half, middle + half)
}

/// The top and the bottom of each layer.
struct Bands {
    top: Vec<f64>,
    bottom: Vec<f64>,
}

impl Bands {
    fn of(layers: &Layers, ports: &Ports, x: &[f64]) -> Self {
        let mut sideways = vec![0.0_f64; layers.rows.len()];
        for (index, course) in layers.courses.iter().enumerate() {
            let Way::Through { spots, .. } = &course.way else { continue };
            for (step, pair) in spots.windows(2).enumerate() {
                let from = if step == 0 { ports.leaving[index] } else { x[pair[0]] };
                let is_last = step + 2 == spots.len();
                let to = if is_last { ports.entering[index] } else { x[pair[1]] };
                let widest = &mut sideways[layers.spots[pair[0]].layer];
                *widest = widest.max((to - from).abs());
            }
        }
        let mut bands = Self { top: vec![], bottom: vec![] };
        let mut y = 0.0;
        for (row, sideways) in layers.rows.iter().zip(sideways) {
            bands.top.push(y);
            y += row.iter().map(|spot| layers.spots[*spot].height).fold(0.0, f64::max);
            bands.bottom.push(y);
            y += (LEAST_GAP + sideways * 0.1).min(MOST_GAP);
        }
        bands
    }
}

struct Map<'a> {
    items: &'a [Item],
    links: &'a [Link],
    layers: &'a Layers,
    x: &'a [f64],
    ports: Ports,
    bands: Bands,
    /// The lanes of links that run beside everything, by target: those with the same share one.
    lanes: BTreeMap<usize, usize>,
    /// How many links lead from each shape to itself, and how many of them are drawn.
    loops: Vec<(u32, u32)>,
    right: f64,
}

impl Map<'_> {
    fn top_of(&self, item: usize) -> f64 {
        let layer = self.layers.spots[item].layer;
        f64::midpoint(self.bands.top[layer], self.bands.bottom[layer])
            - self.items[item].height / 2.0
    }

    fn route(&mut self, link: usize) -> Route {
        let course = &self.layers.courses[link];
        let mut route = match &course.way {
            Way::Around => return self.around(link),
            Way::Beside => self.beside(link, course.upward),
            Way::Through { spots, label } => self.through(link, spots, *label),
        };
        if course.upward {
            route.knots.reverse();
        }
        route
    }

    fn through(&self, link: usize, spots: &[usize], label: Option<usize>) -> Route {
        let (top, bottom) = (spots[0], spots[spots.len() - 1]);
        let (leaving, entering) = (self.ports.leaving[link], self.ports.entering[link]);
        let mut way = vec![];
        push(&mut way, leaving, self.edge_of(top, leaving, 1.0));
        push(&mut way, leaving, self.bands.bottom[self.layers.spots[top].layer]);
        for bend in &spots[1..spots.len() - 1] {
            let layer = self.layers.spots[*bend].layer;
            push(&mut way, self.x[*bend], self.bands.top[layer]);
            push(&mut way, self.x[*bend], self.bands.bottom[layer]);
        }
        push(&mut way, entering, self.bands.top[self.layers.spots[bottom].layer]);
        push(&mut way, entering, self.edge_of(bottom, entering, -1.0));
        let label = label.map(|bend| {
            let layer = self.layers.spots[bend].layer;
            let y = f64::midpoint(self.bands.top[layer], self.bands.bottom[layer]);
            Point { x: self.x[bend], y }
        });
        Route { knots: way, label }
    }

    fn beside(&mut self, link: usize, upward: bool) -> Route {
        let ends = (self.links[link].from, self.links[link].to);
        let (top, bottom) = if upward { (ends.1, ends.0) } else { ends };
        let next = self.lanes.len();
        let lane = *self.lanes.entry(ends.1).or_insert(next);
        let x = self.right + lanes_width(lane + 1);
        let (leaving, entering) = (self.ports.leaving[link], self.ports.entering[link]);
        let (upper, lower) = (self.layers.spots[top].layer, self.layers.spots[bottom].layer);
        let high = f64::midpoint(self.bands.bottom[upper], self.bands.top[upper + 1]);
        let low = f64::midpoint(self.bands.bottom[lower - 1], self.bands.top[lower]);
        let mut way = vec![];
        push(&mut way, leaving, self.edge_of(top, leaving, 1.0));
        push(&mut way, leaving, high);
        push(&mut way, x, high);
        push(&mut way, x, low);
        push(&mut way, entering, low);
        push(&mut way, entering, self.edge_of(bottom, entering, -1.0));
        Route { knots: way, label: None }
    }

    /// A link from a shape to itself, on its right side.
    fn around(&mut self, link: usize) -> Route {
        let shape = self.links[link].from;
        let item = &self.items[shape];
        let (count, drawn) = self.loops[shape];
        let slot = item.height / f64::from(count);
        let middle = self.top_of(shape) + slot * (f64::from(drawn) + 0.5);
        self.loops[shape].1 += 1;
        let half = 8.0_f64.min(slot * 0.35);
        let out = self.x[shape] + item.width / 2.0 + 18.0;
        let mut way = vec![];
        push(&mut way, self.side_of(shape, middle - half), middle - half);
        push(&mut way, out, middle - half);
        push(&mut way, out, middle + half);
        push(&mut way, self.side_of(shape, middle + half), middle + half);
        let label = self.links[link].label.map(|(width, _)| out + 6.0 + width / 2.0);
        Route { knots: way, label: label.map(|x| Point { x, y: middle }) }
    }

    /// The height of a shape's border at `x`, below its middle (1) or above (-1).
    fn edge_of(&self, shape: usize, x: f64, side: f64) -> f64 {
        let item = &self.items[shape];
        let middle = self.top_of(shape) + item.height / 2.0;
        let part = match item.outline {
            Outline::Box | Outline::Circle => 1.0,
            Outline::Diamond => 1.0 - (x - self.x[shape]).abs() / (item.width / 2.0),
        };
        middle + side * part * item.height / 2.0
    }

    /// Where a shape's right border is at height `y`.
    fn side_of(&self, shape: usize, y: f64) -> f64 {
        let item = &self.items[shape];
        let middle = self.top_of(shape) + item.height / 2.0;
        let part = match item.outline {
            Outline::Box | Outline::Circle => 1.0,
            Outline::Diamond => 1.0 - (y - middle).abs() / (item.height / 2.0),
        };
        self.x[shape] + part * item.width / 2.0
    }
}

fn lanes_width(lanes: usize) -> f64 {
    LANE * f64::from(u32::try_from(lanes).unwrap_or(u32::MAX))
}

/// Adds a knot, without knots that say nothing.
fn push(way: &mut Vec<Point>, x: f64, y: f64) {
    if let [.., before, last] = way.as_slice()
        && same(before.x, last.x)
        && same(last.x, x)
    {
        way.pop();
    }
    if way.last().is_none_or(|last| !same(last.x, x) || !same(last.y, y)) {
        // Less than this is no bend, but would be drawn as a kink.
        let x = way.last().filter(|last| same(last.x, x)).map_or(x, |last| last.x);
        way.push(Point { x, y });
    }
}

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.5
}
