//! Reads an SVG back and looks at where things are.

use std::collections::BTreeMap;

use super::read::{Shown, Tag, xml};

/// How far something may be off: numbers are written with one digit after the point.
const SLACK: f64 = 0.25;

#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Outline {
    Box,
    Diamond,
    Circle,
}

#[derive(Debug)]
struct Shape {
    path: String,
    is_node: bool,
    area: Area,
    outline: Outline,
}

#[derive(Debug)]
struct Arrow {
    from: String,
    to: String,
    points: Vec<(f64, f64)>,
}

/// One graph of the picture.
#[derive(Debug)]
struct Sheet {
    bounds: Area,
    shapes: Vec<Shape>,
    arrows: Vec<Arrow>,
    /// The ground behind labels.
    labels: Vec<Area>,
    /// What is written beside the graph.
    texts: Vec<Area>,
}

/// An SVG as it was read.
#[derive(Debug, Default)]
pub(super) struct Svg {
    sheets: Vec<Sheet>,
}

impl Area {
    fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right - SLACK
            && other.left < self.right - SLACK
            && self.top < other.bottom - SLACK
            && other.top < self.bottom - SLACK
    }

    fn contains(&self, other: &Self) -> bool {
        self.left <= other.left + SLACK
            && self.top <= other.top + SLACK
            && other.right <= self.right + SLACK
            && other.bottom <= self.bottom + SLACK
    }
}

impl Shape {
    /// How far a point is inside (more than 0), or outside, by the outline.
    fn depth(&self, (x, y): (f64, f64)) -> f64 {
        let (half_width, half_height) =
            ((self.area.right - self.area.left) / 2.0, (self.area.bottom - self.area.top) / 2.0);
        let dx = (x - self.area.left - half_width).abs();
        let dy = (y - self.area.top - half_height).abs();
        match self.outline {
            Outline::Box => (half_width - dx).min(half_height - dy),
            Outline::Diamond => {
                (1.0 - dx / half_width - dy / half_height) * half_width.min(half_height)
            }
            Outline::Circle => half_width - dx.hypot(dy),
        }
    }
}

impl Svg {
    pub(super) fn read(text: &str) -> Self {
        let mut reader = Reader { svg: Self::default(), frames: vec![], current: None };
        for tag in xml(text) {
            reader.take(tag);
        }
        reader.svg
    }

    pub(super) fn shown(&self) -> Shown {
        let shapes = self.sheets.iter().flat_map(|sheet| &sheet.shapes);
        let arrows = self.sheets.iter().flat_map(|sheet| &sheet.arrows);
        Shown {
            nodes: shapes.filter(|shape| shape.is_node).map(|shape| shape.path.clone()).collect(),
            ways: arrows.map(|arrow| (arrow.from.clone(), arrow.to.clone())).collect(),
        }
        .sorted()
    }

    /// Fails where anything is in the way of anything else.
    pub(super) fn check(&self) {
        for sheet in &self.sheets {
            sheet.check_places();
            for arrow in &sheet.arrows {
                sheet.check_arrow(arrow);
            }
            sheet.check_labels();
        }
    }

    /// How many labels there are.
    pub(super) fn labels(&self) -> usize {
        self.sheets.iter().map(|sheet| sheet.labels.len()).sum()
    }
}

impl Sheet {
    fn check_places(&self) {
        let mut all: Vec<(&str, Area)> =
            self.shapes.iter().map(|shape| (shape.path.as_str(), shape.area)).collect();
        all.extend(self.labels.iter().map(|area| ("a label", *area)));
        all.extend(self.texts.iter().map(|area| ("a text", *area)));
        for (index, (name, area)) in all.iter().enumerate() {
            assert!(self.bounds.contains(area), "{name} {area:?} is outside of {:?}", self.bounds);
            for (other, place) in &all[..index] {
                assert!(!area.overlaps(place), "{name} and {other} overlap: {area:?} {place:?}");
            }
        }
    }

    fn check_arrow(&self, arrow: &Arrow) {
        let name = format!("{} -> {}", arrow.from, arrow.to);
        let ends = [(&arrow.from, arrow.points.first()), (&arrow.to, arrow.points.last())];
        for (path, point) in ends {
            let shape = self.shapes.iter().find(|shape| shape.path == *path).expect(&name);
            let depth = shape.depth(*point.expect("a way has points"));
            assert!(depth.abs() < 1.0, "{name} does not end at {path}: off by {depth}");
        }
        for point in &arrow.points {
            let (x, y) = *point;
            let bounds = &self.bounds;
            let is_inside = (bounds.left..=bounds.right).contains(&x)
                && (bounds.top..=bounds.bottom).contains(&y);
            assert!(is_inside, "{name} leaves its graph at {point:?}: {bounds:?}");
            for shape in &self.shapes {
                let depth = shape.depth(*point);
                assert!(depth < 1.0, "{name} runs through {} at {point:?}: {depth}", shape.path);
            }
        }
    }
}

impl Sheet {
    /// A label is on its own arrow and in the way of no other.
    fn check_labels(&self) {
        for label in &self.labels {
            let meets = |point: &(f64, f64)| {
                (label.left + 2.0..label.right - 2.0).contains(&point.0)
                    && (label.top + 2.0..label.bottom - 2.0).contains(&point.1)
            };
            let arrows: Vec<String> = self
                .arrows
                .iter()
                .filter(|arrow| arrow.points.iter().any(meets))
                .map(|arrow| format!("{} -> {}", arrow.from, arrow.to))
                .collect();
            assert!(arrows.len() <= 1, "{label:?} is on {arrows:?}");
        }
    }
}

/// A group that is being read.
struct Frame {
    area: Option<(Area, Outline)>,
    /// Where in the list of sheets its content goes; none for plain nodes so far.
    sheet: Option<usize>,
    /// Its branches so far.
    panels: Vec<Area>,
    parent_sheet: usize,
    path: String,
    is_node: bool,
}

struct Reader {
    svg: Svg,
    frames: Vec<Frame>,
    /// The style of the text that is being read, and where it is.
    current: Option<(String, f64, f64, bool)>,
}

impl Reader {
    fn take(&mut self, tag: Tag) {
        match tag {
            Tag::Text(text) => self.take_text(&text),
            Tag::Close(name) if name == "g" => self.close(),
            Tag::Close(_) => self.current = None,
            Tag::Open { name, attributes } => self.open(&name, &attributes),
        }
    }

    fn open(&mut self, name: &str, attributes: &BTreeMap<String, String>) {
        let number = |key: &str| -> f64 { attributes[key].parse().expect("a number") };
        let class = attributes.get("class").map(String::as_str).unwrap_or_default();
        match name {
            "svg" => {
                let (width, height) = (number("width"), number("height"));
                let bounds = Area { left: 0.0, top: 0.0, right: width, bottom: height };
                self.add_sheet(bounds);
            }
            "g" => {
                let node = attributes.get("data-node");
                let path = node.or_else(|| attributes.get("data-marker")).expect("a path");
                let parent_sheet = self.sheet();
                self.frames.push(Frame {
                    area: None,
                    sheet: None,
                    panels: vec![],
                    parent_sheet,
                    path: path.clone(),
                    is_node: node.is_some(),
                });
            }
            "rect" => {
                let (left, top) =
                    attributes.get("x").map_or((0.0, 0.0), |_| (number("x"), number("y")));
                let (right, bottom) = (left + number("width"), top + number("height"));
                self.take_rect(Area { left, top, right, bottom }, class, attributes);
            }
            "circle" => {
                let (x, y, r) = (number("cx"), number("cy"), number("r"));
                let area = Area { left: x - r, top: y - r, right: x + r, bottom: y + r };
                self.outline(area, Outline::Circle);
            }
            "polygon" => {
                let points = numbers(&attributes["points"].replace(',', " "));
                let area =
                    Area { left: points[6], top: points[1], right: points[2], bottom: points[5] };
                self.outline(area, Outline::Diamond);
            }
            "path" if class.starts_with("arrow ") => {
                let sheet = self.sheet();
                self.svg.sheets[sheet].arrows.push(Arrow {
                    from: attributes["data-from"].clone(),
                    to: attributes["data-to"].clone(),
                    points: sample(&attributes["d"]),
                });
            }
            "text" => {
                let middle = attributes.contains_key("text-anchor");
                self.current = Some((class.to_owned(), number("x"), number("y"), middle));
            }
            _ => {}
        }
    }

    fn take_rect(&mut self, area: Area, class: &str, attributes: &BTreeMap<String, String>) {
        if class == "panel" {
            let frame = self.frames.last_mut().expect("a branch inside of a node");
            let (bounds, _) = frame.area.expect("an outline");
            assert!(bounds.contains(&area), "{} leaves its node", attributes["data-branch"]);
            assert!(!frame.panels.iter().any(|panel| panel.overlaps(&area)), "branches overlap");
            frame.panels.push(area);
            let own = self.add_sheet(area);
            self.frames.last_mut().expect("the same").sheet = Some(own);
            return;
        }
        let is_label = !attributes.contains_key("rx") || attributes["rx"] == "3";
        if self.frames.last().is_some_and(|frame| frame.area.is_none()) {
            self.outline(area, Outline::Box);
        } else if is_label && attributes.contains_key("x") {
            let sheet = self.sheet();
            self.svg.sheets[sheet].labels.push(area);
        }
    }

    /// The sheet that things are drawn on now.
    fn sheet(&mut self) -> usize {
        let Some(frame) = self.frames.last() else { return 0 };
        if let Some(sheet) = frame.sheet {
            return sheet;
        }
        let (bounds, _) = frame.area.expect("an outline before anything inside");
        let sheet = self.add_sheet(bounds);
        self.frames.last_mut().expect("the same").sheet = Some(sheet);
        sheet
    }

    fn add_sheet(&mut self, bounds: Area) -> usize {
        let (shapes, arrows, labels, texts) = (vec![], vec![], vec![], vec![]);
        self.svg.sheets.push(Sheet { bounds, shapes, arrows, labels, texts });
        self.svg.sheets.len() - 1
    }

    /// The first outline of a group is its own.
    fn outline(&mut self, area: Area, outline: Outline) {
        let Some(frame) = self.frames.last_mut().filter(|frame| frame.area.is_none()) else {
            return;
        };
        frame.area = Some((area, outline));
        let path = frame.path.clone();
        let shape = Shape { path, is_node: frame.is_node, area, outline };
        let sheet = frame.parent_sheet;
        self.svg.sheets[sheet].shapes.push(shape);
    }

    fn close(&mut self) {
        self.frames.pop();
    }

    /// A text has to fit into what is around it.
    fn take_text(&mut self, text: &str) {
        let Some((class, x, y, middle)) = self.current.clone() else { return };
        let size = match class.split(' ').next() {
            Some("name") => 13.0,
            Some("small") => 11.0,
            _ => 12.0,
        };
        let width: f64 = text.chars().map(|c| if c.is_ascii() { 0.52 } else { 0.8 }).sum::<f64>();
        let left = if middle { x - width * size / 2.0 } else { x };
        let area = Area { left, top: y - size * 0.7, right: left + width * size, bottom: y };
        if class.contains("label-") {
            return;
        }
        let Some(frame) = self.frames.last() else { return self.svg.sheets[0].texts.push(area) };
        let (bounds, outline) = frame.area.expect("an outline before its text");
        let shape = Shape { path: String::new(), is_node: false, area: bounds, outline };
        for corner in [
            (area.left, area.top),
            (area.right, area.top),
            (area.left, area.bottom),
            (area.right, area.bottom),
        ] {
            assert!(shape.depth(corner) > 0.0, "{text:?} sticks out of {}", frame.path);
        }
    }
}

fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|number| number.parse().expect("a number")).collect()
}

/// Points along a path, close to each other.
fn sample(path: &str) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = vec![];
    let mut rest = path;
    while !rest.is_empty() {
        let (command, after) = rest.split_at(1);
        let end = after.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(after.len());
        let mut to: Vec<(f64, f64)> =
            numbers(&after[..end]).chunks(2).map(|pair| (pair[0], pair[1])).collect();
        rest = &after[end..];
        let expected = match command {
            "M" | "L" => 1,
            "Q" => 2,
            "C" => 3,
            other => panic!("a command this picture does not need: {other}"),
        };
        assert_eq!(to.len(), expected, "points of {command} in {path}");
        let Some(last) = points.last() else {
            points.append(&mut to);
            continue;
        };
        to.insert(0, *last);
        points.extend((1..=24).map(|step| along(&to, f64::from(step) / 24.0)));
    }
    points
}

/// A point of the curve with these control points.
fn along(points: &[(f64, f64)], part: f64) -> (f64, f64) {
    if let [only] = points {
        return *only;
    }
    let between: Vec<(f64, f64)> = points
        .windows(2)
        .map(|two| {
            let mix = |a: f64, b: f64| a + (b - a) * part;
            (mix(two[0].0, two[1].0), mix(two[0].1, two[1].1))
        })
        .collect();
    along(&between, part)
}
