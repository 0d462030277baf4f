//! A graph as a picture that needs nothing but itself.
//!
//! Each graph is laid out in layers ([`layers`], [`order`], [`place`], [`route`]); a node with
//! graphs inside is a box around their layouts.

mod layers;
mod measure;
mod order;
mod paint;
mod place;
mod route;

use self::layers::Layers;
use self::measure::{Style, Text, extent};
use super::overlay::Overlay;
use super::picture::{Arrow, Inner, Shape, Sheet, What, Why};
use super::words;
use crate::Graph;

/// Draws a graph as SVG, on a ground of its own and in colours for light and dark. Every box has
/// its path as `data-node`, every arrow the paths of its ends as `data-from` and `data-to`.
pub fn svg(graph: &Graph, overlay: &Overlay) -> String {
    let sheet = Sheet::of(graph, overlay);
    let laid = Laid::of(&sheet);
    paint::document(&sheet, &laid)
}

/// A place on a sheet.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    x: f64,
    y: f64,
}

/// Something to be placed.
#[derive(Clone)]
struct Item {
    width: f64,
    height: f64,
    /// Room to the right of it, for arrows to itself.
    beside: f64,
    outline: Outline,
}

/// The border of a shape.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outline {
    Box,
    Diamond,
    Circle,
}

/// Something between two items.
struct Link {
    from: usize,
    to: usize,
    /// The size of its label.
    label: Option<(f64, f64)>,
    /// Whether it is a usual way, which shapes the picture.
    strong: bool,
}

/// Where the items of a sheet are and their links run.
struct Plan {
    width: f64,
    height: f64,
    /// The upper left corner of each item.
    at: Vec<Point>,
    routes: Vec<Route>,
}

/// The way of a link. From one knot to the next it runs straight where they are above or beside
/// each other, otherwise in a curve that begins and ends upright.
struct Route {
    knots: Vec<Point>,
    /// The middle of its label, if there is room for one.
    label: Option<Point>,
}

/// A sheet with everything in its place.
struct Laid {
    plan: Plan,
    boxes: Vec<Boxed>,
    labels: Vec<Option<Text>>,
}

/// What is in a box.
struct Boxed {
    item: Item,
    lines: Vec<Text>,
    panels: Vec<Panel>,
}

/// A graph in a box.
struct Panel {
    /// Relative to the box.
    at: Point,
    width: f64,
    height: f64,
    title: Option<Text>,
    /// Relative to the panel.
    inset: Point,
    laid: Laid,
}

const PADDING: f64 = 14.0;
const LABEL_COLUMNS: usize = 34;
/// The width beyond which branches go below each other.
const SHELF: f64 = 1_400.0;

impl Laid {
    fn of(sheet: &Sheet) -> Self {
        let labels: Vec<Option<Text>> = sheet.arrows.iter().map(label).collect();
        let mut boxes: Vec<Boxed> = sheet.shapes.iter().map(Boxed::of).collect();
        let mut loops = vec![0_u32; boxes.len()];
        for (arrow, label) in sheet.arrows.iter().zip(&labels) {
            if arrow.from == arrow.to {
                let item = &mut boxes[arrow.from].item;
                loops[arrow.from] += 1;
                item.height = item.height.max(f64::from(loops[arrow.from]) * 24.0);
                let text = label.as_ref().map_or(0.0, Text::width);
                item.beside = item.beside.max(26.0 + text);
            }
        }
        let links: Vec<Link> = sheet
            .arrows
            .iter()
            .zip(&labels)
            .map(|(arrow, label)| Link {
                from: arrow.from,
                to: arrow.to,
                label: label.as_ref().map(|text| (text.width() + 8.0, 18.0)),
                strong: matches!(arrow.why, Why::Edge | Why::Join),
            })
            .collect();
        let items: Vec<Item> = boxes.iter().map(|boxed| boxed.item.clone()).collect();
        let plan = lay_out(&items, &links);
        Self { plan, boxes, labels }
    }
}

fn lay_out(items: &[Item], links: &[Link]) -> Plan {
    let mut layers = Layers::of(items, links);
    order::reduce_crossings(&mut layers);
    let x = place::place(&layers);
    route::route(items, links, &layers, &x)
}

fn label(arrow: &Arrow) -> Option<Text> {
    let text = arrow.label.as_deref()?;
    Some(Text::new(words::shorten(text, LABEL_COLUMNS), Style::Small))
}

impl Boxed {
    fn of(shape: &Shape) -> Self {
        match shape.what {
            What::Start | What::End => Self::circle(18.0),
            What::Cluster => Self::cluster(shape),
            What::Decision => Self::diamond(lines(shape)),
            What::Caught | What::Missing | What::Work | What::Agent => Self::plain(lines(shape)),
        }
    }

    fn circle(size: f64) -> Self {
        let item = Item { width: size, height: size, beside: 0.0, outline: Outline::Circle };
        Self { item, lines: vec![], panels: vec![] }
    }

    fn plain(lines: Vec<Text>) -> Self {
        let (width, height) = extent(&lines);
        let width = (width + 2.0 * PADDING).max(96.0);
        let item = Item { width, height: height + 16.0, beside: 0.0, outline: Outline::Box };
        Self { item, lines, panels: vec![] }
    }

    /// The text has to fit between slanted lines: what is left of the width at its upper and
    /// lower edge is as wide as it is.
    fn diamond(lines: Vec<Text>) -> Self {
        let (width, height) = extent(&lines);
        let (width, height) = (width + 12.0, height + 4.0);
        let item = Item {
            width: width * 1.6,
            height: height / (1.0 - 1.0 / 1.6),
            beside: 0.0,
            outline: Outline::Diamond,
        };
        Self { item, lines, panels: vec![] }
    }

    fn cluster(shape: &Shape) -> Self {
        let lines = lines(shape);
        let (text_width, text_height) = extent(&lines);
        let head = text_height + 14.0;
        let mut panels: Vec<Panel> = vec![];
        let (mut x, mut y) = (PADDING, head);
        let (mut widest, mut row_height) = (0.0_f64, 0.0_f64);
        for inner in &shape.inner {
            let mut panel = Panel::of(inner);
            if x > PADDING && x + panel.width > SHELF {
                (x, y) = (PADDING, y + row_height + PADDING);
                row_height = 0.0;
            }
            panel.at = Point { x, y };
            x += panel.width + PADDING;
            widest = widest.max(x);
            row_height = row_height.max(panel.height);
            panels.push(panel);
        }
        let width = widest.max(text_width + 2.0 * PADDING);
        if let [only] = panels.as_mut_slice() {
            only.at.x = (width - only.width) / 2.0;
        }
        let height = y + row_height + if panels.is_empty() { 0.0 } else { PADDING };
        let item = Item { width, height, beside: 0.0, outline: Outline::Box };
        Self { item, lines, panels }
    }
}

impl Panel {
    fn of(inner: &Inner) -> Self {
        let laid = Laid::of(&inner.sheet);
        let (width, height) = (laid.plan.width, laid.plan.height);
        let Some(branch) = &inner.branch else {
            let at = Point { x: 0.0, y: 0.0 };
            return Self { at, width, height, title: None, inset: at, laid };
        };
        let title = [vec![branch.clone()], inner.sheet.rules.clone()].concat().join(" · ");
        let title = Text::new(words::shorten(&title, 48), Style::Small);
        let full = width.max(title.width()) + 2.0 * PADDING;
        let inset = Point { x: (full - width) / 2.0, y: 28.0 };
        let height = height + inset.y + PADDING;
        Self { at: inset, width: full, height, title: Some(title), inset, laid }
    }
}

/// What is written in a shape.
fn lines(shape: &Shape) -> Vec<Text> {
    let (wide, rows) = if shape.what == What::Cluster { (56, 2) } else { (30, 3) };
    let mut lines = vec![];
    if shape.what == What::Agent {
        lines.push(Text::new(&*shape.caption, Style::Small));
    }
    lines.push(Text::new(words::shorten(&shape.id, wide + 6), Style::Name));
    if matches!(shape.what, What::Cluster | What::Missing) {
        lines.extend(small(&shape.caption, wide + 8));
    }
    let description = shape.description.as_deref().unwrap_or_default();
    let described = words::wrap(description, wide, rows);
    lines.extend(described.into_iter().map(|line| Text::new(line, Style::Plain)));
    lines.extend(small(&shape.all_rules(), wide + 4));
    let progress = shape.progress().unwrap_or_default();
    let progress = words::wrap(&progress, wide, 2);
    lines.extend(progress.into_iter().map(|line| Text::new(line, Style::Progress)));
    lines
}

fn small(text: &str, width: usize) -> impl Iterator<Item = Text> {
    words::wrap(text, width, 2).into_iter().map(|line| Text::new(line, Style::Small))
}
