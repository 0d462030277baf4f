//! How wide texts are, by estimate: nobody knows the font of whoever looks at the picture.

use crate::draw::words::is_wide;

/// One line of text.
#[derive(Clone)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) style: Style,
}

/// How a text looks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// The id of a node.
    Name,
    /// What it does.
    Plain,
    /// Everything else.
    Small,
    /// How it stands.
    Progress,
}

impl Style {
    pub(super) fn size(self) -> f64 {
        match self {
            Self::Name => 13.0,
            Self::Plain | Self::Progress => 12.0,
            Self::Small => 11.0,
        }
    }

    /// From the top of one line to that of the next.
    pub(super) fn line_height(self) -> f64 {
        self.size() + 4.0
    }

    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Plain => "plain",
            Self::Small => "small",
            Self::Progress => "progress",
        }
    }
}

impl Text {
    pub(super) fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }

    pub(super) fn width(&self) -> f64 {
        let bold = if matches!(self.style, Style::Name | Style::Progress) { 1.1 } else { 1.0 };
        let ems: f64 = self.text.chars().map(ems).sum();
        ems * self.style.size() * bold
    }
}

/// The widest and the height of some lines.
pub(super) fn extent(lines: &[Text]) -> (f64, f64) {
    let width = lines.iter().map(Text::width).fold(0.0, f64::max);
    (width, lines.iter().map(|line| line.style.line_height()).sum())
}

/// How wide a character is, for its height, in the wider of the usual fonts.
fn ems(c: char) -> f64 {
    match c {
        ' ' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | 'i' | 'j' | 'l' | 'I' => 0.34,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' | '·' => 0.42,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' | '—' => 1.0,
        'A'..='Z' | '+' | '=' | '<' | '>' | '#' | '≠' | '×' | '~' | '^' | '&' => 0.84,
        c if is_wide(c) => 1.1,
        c if c.is_ascii() => 0.64,
        _ => 0.86,
    }
}
