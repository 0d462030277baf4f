//! Redirections and here-documents.

use super::{Level, Place, Scanner, Word};
use crate::shell::refusal::{HERE_DOCUMENT, UNCLEAR};

#[derive(Debug)]
pub(super) struct HereDocument {
    delimiter: Vec<u8>,
    strips_tabs: bool,
    is_quoted: bool,
}

impl Scanner<'_> {
    /// The text of a here-document, up to the line that ends it.
    pub(super) fn skip(&mut self, document: &HereDocument) {
        while self.at < self.bytes.len() {
            let rest = &self.bytes[self.at..];
            let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let mut line = &rest[..length];
            if document.strips_tabs {
                let tabs = line.iter().take_while(|byte| **byte == b'\t').count();
                line = &line[tabs..];
            }
            if line == document.delimiter {
                self.at = (self.at + length + 1).min(self.bytes.len());
                return;
            }
            // A line end that is quoted joins the next line to this one.
            if !document.is_quoted && line.ends_with(b"\\") {
                self.unclear = self.unclear.or(Some(&UNCLEAR));
            }
            let end = self.at + length;
            while self.at < end {
                if self.byte(0) != Some(b'{') || !self.template_in(Place::Refused(&HERE_DOCUMENT)) {
                    self.at += 1;
                }
            }
            self.word = None;
            self.at = end + 1;
        }
    }

    pub(super) fn redirection(&mut self) {
        let is_number = |word: &Word| !word.is_quoted && word.text.iter().all(u8::is_ascii_digit);
        if self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
        self.end_word();
        let [this, next] = [self.byte(0), self.byte(1)];
        match next {
            Some(b'(') => {
                self.command.redirection.has_process |=
                    this == Some(b'>') && self.levels.is_empty();
                return self.enter(Level::Substitution, 2);
            }
            Some(b'\\') if self.byte(2) == Some(b'\n') => return self.give_up(),
            Some(b'<') if this == Some(b'<') => return self.here(),
            Some(b'<' | b'>' | b'&' | b'|') => self.at += 2,
            _ => self.at += 1,
        }
        if self.levels.is_empty() && self.command.condition.is_none() {
            self.command.redirection.expects_file = true;
            self.command.redirection.is_descriptor = next == Some(b'&');
            self.command.redirection.is_input = this == Some(b'<');
        }
    }

    /// `<<`, `<<-` or `<<<`
    fn here(&mut self) {
        if !self.levels.is_empty() {
            return self.give_up();
        }
        self.at += 2;
        if self.byte(0) == Some(b'<') {
            self.at += 1;
            self.command.redirection.expects_file = true;
            self.here_string = true;
            return;
        }
        let strips_tabs = self.byte(0) == Some(b'-');
        self.at += usize::from(strips_tabs);
        while matches!(self.byte(0), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        let mut document = HereDocument { delimiter: vec![], strips_tabs, is_quoted: false };
        let mut quote = None;
        while let Some(byte) = self.byte(0) {
            match (byte, quote) {
                (b'\'' | b'"', None) => {
                    quote = Some(byte);
                    document.is_quoted = true;
                }
                (byte, Some(open)) if byte == open => quote = None,
                (b'$' | b'`' | b'\\' | b'{' | b'#', _) | (b'\n', Some(_)) => return self.give_up(),
                (b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')', None) => {
                    break;
                }
                (byte, _) => document.delimiter.push(byte),
            }
            self.at += 1;
        }
        if document.delimiter.is_empty() {
            self.unclear = self.unclear.or(Some(&UNCLEAR));
        }
        self.here_documents.push(document);
    }
}
