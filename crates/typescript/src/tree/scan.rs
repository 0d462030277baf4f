//! Counts what a parser would have to follow, without following it.
//!
//! It must never take for text what the parser takes for code: whatever were hidden there would
//! not be counted. Where only a parser could tell, which is about `/`, it stops.

use super::deep::{DEEPEST, LONGEST};

/// Why a text is not given to the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Deep,
    Long,
    /// A `/` that may be a division or the beginning of a regular expression.
    Doubt,
}

/// What the last token means for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// A value must follow.
    Operator,
    /// A value has ended, and perhaps a statement.
    Value,
    /// `}`: of a block, or of a value.
    Brace,
    /// It may be either: `>`, `void`, a word with an escape.
    Doubt,
}

/// One open bracket, or the file.
#[derive(Default)]
struct Level {
    /// Tokens of the statement so far.
    run: usize,
    /// Type arguments that are open, as far as one can tell.
    angles: usize,
    /// The statement goes on after an `else`.
    has_else: bool,
    /// The bracket is the `${` of a template.
    is_template: bool,
    /// What `)` means.
    closes: Option<Last>,
}

/// After these the expression goes on, on the next line too, and `/` begins an expression.
const PREFIXES: &[&str] = &[
    "new",
    "typeof",
    "delete",
    "else",
    "do",
    "in",
    "instanceof",
    "return",
    "throw",
    "case",
    "default",
    "extends",
];
/// The same, but they are names or types elsewhere.
const PERHAPS: &[&str] = &[
    "void",
    "await",
    "yield",
    "keyof",
    "unique",
    "readonly",
    "infer",
    "as",
    "satisfies",
    "of",
    "is",
    "async",
    "abstract",
    "asserts",
];
/// What goes on with the statement before, even on a line of its own.
const INFIXES: &[&str] = &[
    "else",
    "in",
    "instanceof",
    "as",
    "satisfies",
    "of",
    "is",
    "extends",
    "implements",
    "while",
    "catch",
    "finally",
    "from",
];
/// After the brackets of these comes a statement.
const CONTROLS: &[&str] = &["if", "for", "while", "with"];
/// What is one token, the longest first.
const OPERATORS: &[&str] = &[
    ">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=", "=>", "==", "!=",
    "<=", ">=", "&&", "||", "??", "?.", "**", "++", "--", "+=", "-=", "*=", "%=", "&=", "|=", "^=",
    "<<", ">>",
];

pub(super) struct Scan<'a> {
    text: &'a str,
    at: usize,
    levels: Vec<Level>,
    /// The tokens of all levels.
    open: usize,
    last: Last,
    /// The last word, if it was the last token.
    word: &'a str,
    word_before: &'a str,
    is_after_dot: bool,
    /// A separator was seen, and what follows decides.
    has_ended: bool,
    is_new_line: bool,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            levels: vec![Level::default()],
            open: 0,
            last: Last::Operator,
            word: "",
            word_before: "",
            is_after_dot: false,
            has_ended: false,
            is_new_line: true,
        }
    }

    /// # Errors
    /// Why the parser cannot take the text, and the byte.
    pub(super) fn run(mut self) -> Result<(), (Stop, usize)> {
        if self.rest().starts_with("#!") {
            self.skip_line();
        }
        loop {
            self.skip_space();
            let Some(next) = self.rest().chars().next() else { return Ok(()) };
            let at = self.at;
            self.token(next).map_err(|stop| (stop, at))?;
            if self.open > LONGEST {
                return Err((Stop::Long, at));
            }
            if self.levels.len() > DEEPEST + 1 {
                return Err((Stop::Deep, at));
            }
            self.is_new_line = false;
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_line(&mut self) {
        let end = self.rest().find(['\n', '\r', '\u{2028}', '\u{2029}']);
        self.at = end.map_or(self.text.len(), |end| self.at + end);
    }

    fn skip_space(&mut self) {
        while let Some(next) = self.rest().chars().next() {
            if matches!(next, '\n' | '\r' | '\u{2028}' | '\u{2029}') {
                self.is_new_line = true;
            } else if self.rest().starts_with("//") {
                self.skip_line();
                continue;
            } else if self.rest().starts_with("/*") {
                let end =
                    self.rest()[2..].find("*/").map_or(self.text.len(), |end| self.at + end + 4);
                let skipped = &self.text[self.at..end];
                self.is_new_line |= skipped.contains(['\n', '\r', '\u{2028}', '\u{2029}']);
                self.at = end;
                continue;
            } else if !next.is_whitespace() && next != '\u{feff}' {
                return;
            }
            self.at += next.len_utf8();
        }
    }

    fn token(&mut self, next: char) -> Result<(), Stop> {
        match next {
            '"' | '\'' => {
                self.begin("\"");
                self.skip_string(next);
                self.value();
            }
            '`' => {
                self.begin("`");
                self.at += 1;
                self.template();
            }
            '/' => self.slash()?,
            '(' | '[' | '{' => self.open(next),
            ')' | ']' | '}' => self.close(next),
            ',' | ';' => {
                self.at += 1;
                let level = self.level();
                // Type arguments have commas, and so has what is before an `else`.
                self.has_ended |= next == ';' || (level.angles == 0 && !level.has_else);
                self.operator(Last::Operator);
            }
            _ if is_word(next) => self.word(),
            _ => self.punctuation(next),
        }
        Ok(())
    }

    fn level(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    /// A token begins: the statement before it has ended, or goes on with it.
    fn begin(&mut self, token: &str) {
        let first = token.chars().next().unwrap_or_default();
        let is_name = is_word(first) || first == '"';
        let starts = is_name && !INFIXES.contains(&token);
        let line_ended = self.is_new_line && self.last == Last::Value && starts;
        let block_ended = self.last == Last::Brace && (starts || first == '@');
        let case = token == "case" && !self.is_after_dot;
        if (self.has_ended && token != "else") || line_ended || block_ended || case {
            let level = self.level();
            let run = std::mem::take(&mut level.run);
            level.angles = 0;
            level.has_else = false;
            self.open -= run;
        }
        self.has_ended = false;
        self.level().run += 1;
        self.open += 1;
    }

    fn value(&mut self) {
        self.operator(Last::Value);
    }

    /// A token that is no word has ended.
    fn operator(&mut self, last: Last) {
        self.last = last;
        (self.word, self.word_before) = ("", "");
        self.is_after_dot = false;
    }

    fn skip_string(&mut self, quote: char) {
        self.at += 1;
        while let Some(next) = self.rest().chars().next() {
            if next == '\n' || next == '\r' {
                return;
            }
            self.at += next.len_utf8();
            if next == quote {
                return;
            }
            if next == '\\'
                && let Some(escaped) = self.rest().chars().next()
            {
                self.at += escaped.len_utf8();
                if escaped == '\r' && self.rest().starts_with('\n') {
                    self.at += 1;
                }
            }
        }
    }

    /// The text of a template, to its end or to the next expression in it.
    fn template(&mut self) {
        while let Some(next) = self.rest().chars().next() {
            if self.rest().starts_with("${") {
                self.at += 2;
                self.levels.push(Level { is_template: true, ..Level::default() });
                self.operator(Last::Operator);
                return;
            }
            self.at += next.len_utf8();
            if next == '`' {
                self.value();
                return;
            }
            if next == '\\'
                && let Some(escaped) = self.rest().chars().next()
            {
                self.at += escaped.len_utf8();
            }
        }
    }

    fn slash(&mut self) -> Result<(), Stop> {
        let is_doubtful = match self.last {
            Last::Operator => false,
            // A type, or an import, ends with its line; a division does not.
            Last::Value => self.is_new_line,
            Last::Brace | Last::Doubt => true,
        };
        let line = self.rest()[1..].split(['\n', '\r', '\u{2028}', '\u{2029}']).next();
        if is_doubtful && line.unwrap_or_default().contains(['/', '`', '\\']) {
            return Err(Stop::Doubt);
        }
        let is_expression = self.last == Last::Operator;
        self.begin("/");
        self.at += 1;
        if !is_expression {
            self.operator(Last::Operator);
            return Ok(());
        }
        let mut in_class = false;
        while let Some(next) = self.rest().chars().next() {
            if matches!(next, '\n' | '\r' | '\u{2028}' | '\u{2029}') {
                break;
            }
            self.at += next.len_utf8();
            match next {
                '\\' => {
                    let escaped = self.rest().chars().next();
                    let escaped =
                        escaped.filter(|one| !matches!(one, '\n' | '\r' | '\u{2028}' | '\u{2029}'));
                    self.at += escaped.map_or(0, char::len_utf8);
                }
                '[' => in_class = true,
                ']' => in_class = false,
                '/' if !in_class => break,
                _ => {}
            }
        }
        let flags = self.rest().find(|one| !is_word(one)).unwrap_or(self.rest().len());
        self.at += flags;
        self.value();
        Ok(())
    }

    fn open(&mut self, next: char) {
        let mut text = [0; 4];
        let is_control = CONTROLS.contains(&self.word) && !self.is_after_dot
            || self.word == "await" && self.word_before == "for";
        let closes = match next {
            '(' if is_control => Last::Operator,
            '(' if self.word.contains('\\') => Last::Doubt,
            '{' => Last::Brace,
            _ => Last::Value,
        };
        self.begin(next.encode_utf8(&mut text));
        self.at += 1;
        self.levels.push(Level { closes: Some(closes), ..Level::default() });
        self.operator(Last::Operator);
    }

    fn close(&mut self, next: char) {
        self.at += 1;
        self.has_ended = false;
        let closed = if self.levels.len() > 1 { self.levels.pop() } else { None };
        self.open -= closed.as_ref().map_or(0, |closed| closed.run);
        if next == '}' && closed.as_ref().is_some_and(|closed| closed.is_template) {
            self.template();
            return;
        }
        let last = closed.and_then(|closed| closed.closes);
        self.operator(last.unwrap_or(Last::Doubt));
    }

    fn word(&mut self) {
        let rest = self.rest();
        let is_number = rest.starts_with(|first: char| first.is_ascii_digit());
        let mut dots = 0;
        let end = rest.find(|one: char| {
            dots += usize::from(one == '.');
            !(is_word(one) || is_number && one == '.' && dots == 1)
        });
        let word = &rest[..end.unwrap_or(rest.len())];
        let is_name = self.is_after_dot;
        self.begin(if is_name { "a" } else { word });
        self.at += word.len();
        if is_name {
            self.value();
            return;
        }
        self.level().has_else |= word == "else";
        self.last = if PREFIXES.contains(&word) {
            Last::Operator
        } else if PERHAPS.contains(&word) || word.contains('\\') {
            Last::Doubt
        } else {
            Last::Value
        };
        self.word_before = std::mem::replace(&mut self.word, word);
    }

    fn punctuation(&mut self, next: char) {
        let rest = self.rest();
        let found = OPERATORS.iter().find(|operator| rest.starts_with(**operator));
        let token = match found {
            // `a?.5:1`
            Some(&"?.") if rest[2..].starts_with(|one: char| one.is_ascii_digit()) => "?",
            Some(found) => found,
            None => &rest[..next.len_utf8()],
        };
        let before = self.last;
        let is_new_line = self.is_new_line;
        self.begin(token);
        self.at += token.len();
        let level = self.level();
        let last = match token {
            "<" => {
                level.angles += 1;
                Last::Operator
            }
            ">" | ">>" | ">>>" => {
                level.angles = level.angles.saturating_sub(token.len());
                Last::Doubt
            }
            // After a value, on its line, they belong to it.
            "!" | "++" | "--" => match before {
                Last::Operator => Last::Operator,
                Last::Value if !is_new_line => Last::Value,
                Last::Value if token == "!" => Last::Operator,
                Last::Value | Last::Brace | Last::Doubt => Last::Doubt,
            },
            _ => Last::Operator,
        };
        self.operator(last);
        self.is_after_dot = matches!(token, "." | "?.");
    }
}

fn is_word(one: char) -> bool {
    one.is_ascii_alphanumeric()
        || matches!(one, '_' | '$' | '#' | '\\')
        || (!one.is_ascii() && !one.is_whitespace() && one != '\u{feff}')
}
