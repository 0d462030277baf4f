//! The picture as text.

use std::fmt::Write as _;

use super::measure::{Style, Text, extent};
use super::{Boxed, Laid, Outline, Panel, Point, Route};
use crate::draw::colour::{self, Colours};
use crate::draw::overlay::Status;
use crate::draw::picture::{Arrow, Shape, Sheet, What, Why};

const MARGIN: f64 = 20.0;

/// The colours of nodes that have no status, by day and by night.
const KINDS: [(&str, Colours, Colours); 3] = [
    ("work", ["#ffffff", "#57606a", "#1f2328"], ["#1c2128", "#8b949e", "#e6edf3"]),
    ("agent", ["#f3f0ff", "#6e40c9", "#1f2328"], ["#271f3d", "#a78bfa", "#e6edf3"]),
    ("decision", ["#fff8e1", "#9a6700", "#1f2328"], ["#2e2710", "#d4a72c", "#e6edf3"]),
];

/// The colours of arrows, by day and by night.
const ARROWS: [(Why, &str, &str, &str); 5] = [
    (Why::Edge, "#57606a", "#8b949e", ""),
    (Why::Join, "#57606a", "#8b949e", "stroke-width:2.6"),
    (Why::Goto, "#57606a", "#8b949e", "stroke-dasharray:7 4"),
    (Why::Error, "#cf222e", "#f85149", "stroke-dasharray:2 4"),
    (Why::Revive, "#6e7781", "#848d97", "stroke-dasharray:2 4"),
];

/// The whole picture.
pub(super) fn document(sheet: &Sheet, laid: &Laid) -> String {
    let rules = Text::new(sheet.rules.join(" · "), Style::Small);
    let legend: Vec<Text> = sheet
        .statuses()
        .into_iter()
        .map(|status| Text::new(format!("{} {}", status.symbol(), status.name()), Style::Progress))
        .collect();
    let head = if rules.text.is_empty() { 0.0 } else { 24.0 };
    let foot = if legend.is_empty() { 0.0 } else { 36.0 };
    let legend_width: f64 = legend.iter().map(|text| text.width() + 34.0).sum();
    let width = laid.plan.width.max(rules.width()).max(legend_width) + 2.0 * MARGIN;
    let height = laid.plan.height + head + foot + 2.0 * MARGIN;
    let mut page = Page::default();
    page.line(&format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"atomic-graph\" role=\"img\" \
         width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">",
        number(width),
        number(height)
    ));
    page.style();
    page.line(&format!(
        "<rect class=\"ground\" width=\"{}\" height=\"{}\"/>",
        number(width),
        number(height)
    ));
    if head > 0.0 {
        page.text(&rules, Point { x: MARGIN, y: MARGIN }, "start");
    }
    let x = MARGIN.max((width - laid.plan.width) / 2.0);
    page.sheet(sheet, laid, Point { x, y: MARGIN + head });
    page.legend(&sheet.statuses(), &legend, height - MARGIN - 18.0);
    page.line("</svg>");
    page.text
}

#[derive(Default)]
struct Page {
    text: String,
    /// How many clusters there are around what is drawn.
    depth: usize,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn style(&mut self) {
        self.line("<style>");
        self.line(
            ".atomic-graph text{font-family:ui-sans-serif,system-ui,'Segoe UI',Helvetica,Arial,sans-serif}",
        );
        for style in [Style::Name, Style::Plain, Style::Small, Style::Progress] {
            let bold = matches!(style, Style::Name | Style::Progress);
            let weight = if bold { ";font-weight:bold" } else { "" };
            let (class, size) = (style.class(), style.size());
            self.line(&format!(".atomic-graph .{class}{{font-size:{size}px{weight}}}"));
        }
        self.line(".atomic-graph .arrow{fill:none;stroke-width:1.4}");
        self.line(".atomic-graph .agent{stroke-width:2}");
        self.line(".atomic-graph .missing,.atomic-graph .cancelled{stroke-dasharray:4 3}");
        for (why, _, _, more) in ARROWS {
            self.line(&format!(".atomic-graph .arrow.{}{{{more}}}", why.name()));
        }
        self.colours(false);
        self.line("@media (prefers-color-scheme:dark){");
        self.colours(true);
        self.line("}");
        self.line("</style>");
        for (why, ..) in ARROWS {
            let name = why.name();
            self.line(&format!(
                "<marker id=\"atomic-{name}\" viewBox=\"0 0 10 10\" refX=\"9.5\" refY=\"5\" \
                 markerWidth=\"9\" markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" \
                 orient=\"auto\"><path class=\"tip-{name}\" d=\"M0 1L10 5L0 9Z\"/></marker>"
            ));
        }
    }

    fn colours(&mut self, dark: bool) {
        let pick = |day: &'static str, night: &'static str| if dark { night } else { day };
        let rule = |what: &str, how: String| format!(".atomic-graph {what}{{{how}}}");
        let ground = pick("#ffffff", "#0d1117");
        let mut rules = vec![
            rule(".ground", format!("fill:{ground}")),
            rule(".behind", format!("fill:{}", pick("#f6f8fa", "#151b23"))),
            rule("text", format!("fill:{}", pick("#1f2328", "#e6edf3"))),
            rule(".small", format!("fill:{}", pick("#57606a", "#9198a1"))),
            rule(".marker", format!("fill:{0};stroke:{0}", pick("#57606a", "#8b949e"))),
            rule(".ring", format!("fill:none;stroke:{}", pick("#57606a", "#8b949e"))),
            rule(".panel", format!("fill:none;stroke:{}", pick("#afb8c1", "#484f58"))),
            rule(
                ".cluster",
                format!(
                    "fill:{};stroke:{}",
                    pick("#f6f8fa", "#151b23"),
                    pick("#8c959f", "#656c76")
                ),
            ),
            rule(".missing,.atomic-graph .caught", {
                format!("fill:{ground};stroke:{}", pick("#cf222e", "#f85149"))
            }),
        ];
        let statuses =
            Status::ALL.map(|status| (status.name(), colour::light(status), colour::dark(status)));
        for (class, day, night) in KINDS.into_iter().chain(statuses) {
            let [fill, line, text] = if dark { night } else { day };
            rules.push(rule(&format!(".{class}"), format!("fill:{fill};stroke:{line}")));
            rules.push(rule(&format!(".on-{class}"), format!("fill:{text}")));
        }
        for (why, day, night, _) in ARROWS {
            let colour = pick(day, night);
            let name = why.name();
            rules.push(rule(&format!(".arrow.{name}"), format!("stroke:{colour}")));
            rules.push(rule(&format!(".tip-{name}"), format!("fill:{colour}")));
            rules.push(rule(&format!(".label-{name}"), format!("fill:{colour}")));
        }
        rules.iter().for_each(|rule| self.line(rule));
    }

    fn sheet(&mut self, sheet: &Sheet, laid: &Laid, origin: Point) {
        for ((shape, boxed), at) in sheet.shapes.iter().zip(&laid.boxes).zip(&laid.plan.at) {
            self.shape(shape, boxed, moved(*at, origin));
        }
        for (arrow, route) in sheet.arrows.iter().zip(&laid.plan.routes) {
            self.arrow(sheet, arrow, route, origin);
        }
        for (index, label) in laid.labels.iter().enumerate() {
            if let (Some(text), Some(at)) = (label, laid.plan.routes[index].label) {
                self.label(text, sheet.arrows[index].why, moved(at, origin));
            }
        }
    }

    fn shape(&mut self, shape: &Shape, boxed: &Boxed, at: Point) {
        let item = &boxed.item;
        let attribute = if shape.what.is_node() { "data-node" } else { "data-marker" };
        let hint = [&shape.id, &shape.caption, shape.description.as_deref().unwrap_or_default()];
        let hint: Vec<_> = hint.into_iter().filter(|part| !part.is_empty()).collect();
        self.line(&format!(
            "<g {attribute}=\"{}\"><title>{}</title>",
            escape(&shape.path),
            escape(&hint.join(" · "))
        ));
        let class = class(shape);
        let (x, y) = (number(at.x), number(at.y));
        let (width, height) = (number(item.width), number(item.height));
        match item.outline {
            Outline::Circle => self.circle(shape, at, item.width / 2.0),
            Outline::Diamond => self.diamond(class, at, (item.width, item.height)),
            Outline::Box => {
                let round = if shape.what == What::Agent { 14 } else { 6 };
                self.line(&format!(
                    "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" \
                     height=\"{height}\" rx=\"{round}\"/>"
                ));
            }
        }
        if let (What::Cluster, Some(status)) = (shape.what, shape.status()) {
            // Only its head has the colour of its status: what is inside has a status of its own.
            let head = number(extent(&boxed.lines).1 + 10.0);
            self.line(&format!(
                "<rect class=\"{}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{head}\" \
                 rx=\"6\"/>",
                status.name()
            ));
        }
        self.lines(shape, boxed, at);
        self.depth += 1;
        for (inner, panel) in shape.inner.iter().zip(&boxed.panels) {
            self.panel(&inner.path, &inner.sheet, panel, moved(panel.at, at));
        }
        self.depth -= 1;
        self.line("</g>");
    }

    fn circle(&mut self, shape: &Shape, at: Point, radius: f64) {
        let (x, y) = (number(at.x + radius), number(at.y + radius));
        let mut circle = |class: &str, radius: f64| {
            let radius = number(radius);
            self.line(&format!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>"));
        };
        if shape.what == What::End {
            circle("ring", radius);
            circle("marker", radius - 4.0);
        } else {
            circle("marker", radius);
        }
    }

    fn diamond(&mut self, class: &str, at: Point, (width, height): (f64, f64)) {
        let (left, right) = (number(at.x), number(at.x + width));
        let (top, bottom) = (number(at.y), number(at.y + height));
        let (x, y) = (number(at.x + width / 2.0), number(at.y + height / 2.0));
        self.line(&format!(
            "<polygon class=\"{class}\" points=\"{x},{top} {right},{y} {x},{bottom} {left},{y}\"/>"
        ));
    }

    /// Writes what stands in a box: in the middle of it, or at the top left of a cluster.
    fn lines(&mut self, shape: &Shape, boxed: &Boxed, at: Point) {
        let cluster = shape.what == What::Cluster;
        let (_, height) = extent(&boxed.lines);
        let mut y = at.y + if cluster { 8.0 } else { (boxed.item.height - height) / 2.0 };
        let x = at.x + if cluster { super::PADDING } else { boxed.item.width / 2.0 };
        for text in &boxed.lines {
            let anchor = if cluster { "start" } else { "middle" };
            let class = shape.status().map(|status| format!(" on-{}", status.name()));
            self.classed(text, Point { x, y }, anchor, &class.unwrap_or_default());
            y += text.style.line_height();
        }
    }

    fn panel(&mut self, path: &str, sheet: &Sheet, panel: &Panel, at: Point) {
        if let Some(title) = &panel.title {
            self.line(&format!(
                "<rect class=\"panel\" data-branch=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" \
                 height=\"{}\" rx=\"6\" stroke-dasharray=\"3 3\"/>",
                escape(path),
                number(at.x),
                number(at.y),
                number(panel.width),
                number(panel.height)
            ));
            self.text(title, Point { x: at.x + 8.0, y: at.y + 6.0 }, "start");
        }
        self.sheet(sheet, &panel.laid, moved(panel.inset, at));
    }

    fn arrow(&mut self, sheet: &Sheet, arrow: &Arrow, route: &Route, origin: Point) {
        let name = arrow.why.name();
        let (from, to) = (&sheet.shapes[arrow.from], &sheet.shapes[arrow.to]);
        let label = arrow.label.iter().map(|label| format!(" · {label}")).collect::<String>();
        self.line(&format!(
            "<path class=\"arrow {name}\" data-from=\"{}\" data-to=\"{}\" d=\"{}\" \
             marker-end=\"url(#atomic-{name})\"><title>{} → {}{}</title></path>",
            escape(&from.path),
            escape(&to.path),
            path(&route.knots, origin),
            escape(&from.id),
            escape(&to.id),
            escape(&label),
        ));
    }

    fn label(&mut self, text: &Text, why: Why, middle: Point) {
        let width = text.width() + 6.0;
        let at = Point { x: middle.x, y: middle.y - text.style.line_height() / 2.0 };
        let behind = if self.depth == 0 { "ground" } else { "behind" };
        self.line(&format!(
            "<rect class=\"{behind}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\"/>",
            number(at.x - width / 2.0),
            number(at.y),
            number(width),
            number(text.style.line_height())
        ));
        self.classed(text, at, "middle", &format!(" label-{}", why.name()));
    }

    fn legend(&mut self, statuses: &[Status], texts: &[Text], y: f64) {
        let mut x = MARGIN;
        for (status, text) in statuses.iter().zip(texts) {
            self.line(&format!(
                "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"20\" rx=\"10\"/>",
                status.name(),
                number(x),
                number(y),
                number(text.width() + 24.0)
            ));
            let at = Point { x: x + text.width() / 2.0 + 12.0, y: y + 2.0 };
            self.classed(text, at, "middle", &format!(" on-{}", status.name()));
            x += text.width() + 34.0;
        }
    }

    fn text(&mut self, text: &Text, at: Point, anchor: &str) {
        self.classed(text, at, anchor, "");
    }

    /// Writes a line whose upper edge is at `at`.
    fn classed(&mut self, text: &Text, at: Point, anchor: &str, class: &str) {
        let anchor = if anchor == "start" { "" } else { " text-anchor=\"middle\"" };
        self.line(&format!(
            "<text class=\"{}{class}\" x=\"{}\" y=\"{}\"{anchor}>{}</text>",
            text.style.class(),
            number(at.x),
            number(at.y + text.style.size()),
            escape(&text.text)
        ));
    }
}

fn class(shape: &Shape) -> &'static str {
    if let Some(status) = shape.status().filter(|_| shape.what != What::Cluster) {
        return status.name();
    }
    match shape.what {
        What::Start | What::End => "marker",
        What::Caught => "caught",
        What::Missing => "missing",
        What::Work => "work",
        What::Agent => "agent",
        What::Decision => "decision",
        What::Cluster => "cluster",
    }
}

fn moved(point: Point, by: Point) -> Point {
    Point { x: point.x + by.x, y: point.y + by.y }
}

/// The way of an arrow: straight, round a corner, or in a curve.
fn path(knots: &[Point], origin: Point) -> String {
    let knots: Vec<Point> = knots.iter().map(|knot| moved(*knot, origin)).collect();
    let mut way = String::new();
    let mut put = |command: &str, points: &[Point]| {
        way.push_str(command);
        for (index, point) in points.iter().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            let _ = write!(way, "{gap}{} {}", number(point.x), number(point.y));
        }
    };
    for (index, knot) in knots.iter().enumerate() {
        let Some(before) = index.checked_sub(1).map(|before| knots[before]) else {
            put("M", &[*knot]);
            continue;
        };
        if !is_straight(before, *knot) {
            let middle = f64::midpoint(before.y, knot.y);
            let (first, second) =
                (Point { x: before.x, y: middle }, Point { x: knot.x, y: middle });
            put("C", &[first, second, *knot]);
            continue;
        }
        match knots.get(index + 1).filter(|next| is_corner(before, *knot, **next)) {
            None => put("L", &[*knot]),
            Some(next) => {
                put("L", &[towards(*knot, before, 5.0)]);
                put("Q", &[*knot, towards(*knot, *next, 5.0)]);
            }
        }
    }
    way
}

fn is_straight(a: Point, b: Point) -> bool {
    (a.x - b.x).abs() < f64::EPSILON || (a.y - b.y).abs() < f64::EPSILON
}

/// Whether a way turns at `b`, straight before and after.
fn is_corner(a: Point, b: Point, c: Point) -> bool {
    let upright = |a: Point, b: Point| (a.x - b.x).abs() < f64::EPSILON;
    is_straight(a, b) && is_straight(b, c) && upright(a, b) != upright(b, c)
}

/// A point on the way from `a` to `b`, at most half of it away.
fn towards(a: Point, b: Point, by: f64) -> Point {
    let length = (b.x - a.x).abs().max((b.y - a.y).abs()).max(1.0);
    let part = (by / length).min(0.5);
    Point { x: a.x + (b.x - a.x) * part, y: a.y + (b.y - a.y) * part }
}

/// A number with at most one digit after the point.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    let short = text.strip_suffix(".0").unwrap_or(&text);
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

/// Text between tags or in quotes. Characters that XML does not allow are replaced.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\r' | '\t' => {
                let _ = write!(safe, "&#{};", u32::from(c));
            }
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => safe.push('\u{FFFD}'),
            c => safe.push(c),
        }
    }
    safe
}
