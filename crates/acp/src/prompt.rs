//! The parts of a prompt as one text.

use std::fmt::Write as _;

use agent_client_protocol::v1::schema::{ContentBlock, EmbeddedResourceResource};

/// What a person has sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// What was typed, with the places that were mentioned where they were.
    pub text: String,
    /// What was attached, each under its name.
    pub attached: String,
    /// What cannot be passed on.
    pub left_out: Vec<String>,
}

/// A command as it is typed: `/name rest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slash<'t> {
    /// The name, without its slash.
    pub name: &'t str,
    /// What stands behind it.
    pub rest: &'t str,
}

impl Prompt {
    /// Puts the parts together.
    pub fn read(blocks: &[ContentBlock]) -> Self {
        let mut prompt = Self::default();
        for block in blocks {
            match block {
                ContentBlock::Text(text) => prompt.text.push_str(&text.text),
                ContentBlock::ResourceLink(link) => prompt.mention(&place(&link.uri)),
                ContentBlock::Resource(embedded) => prompt.attach(&embedded.resource),
                ContentBlock::Image(image) => prompt.leave_out("an image", &image.mime_type),
                ContentBlock::Audio(audio) => prompt.leave_out("a sound", &audio.mime_type),
                _ => prompt.left_out.push("something of an unknown kind".to_owned()),
            }
        }
        prompt
    }

    /// The command it is, if it is one.
    pub fn slash(&self) -> Option<Slash<'_>> {
        let typed = self.text.trim().strip_prefix('/')?;
        let (name, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
        // `/etc/hosts is wrong` is no command, and neither is a lone slash.
        let is_name = !name.is_empty() && !name.contains('/');
        is_name.then_some(Slash { name, rest: rest.trim() })
    }

    /// A text with everything that was attached.
    pub fn with_attached(&self, text: &str) -> String {
        if self.attached.is_empty() {
            return text.to_owned();
        }
        format!("{text}\n\n{}", self.attached.trim_end())
    }

    /// Names a place where it was mentioned, apart from the words around it.
    fn mention(&mut self, place: &str) {
        if !self.text.is_empty() && !self.text.ends_with(char::is_whitespace) {
            self.text.push(' ');
        }
        let _ = write!(self.text, "`{place}`");
    }

    fn attach(&mut self, resource: &EmbeddedResourceResource) {
        match resource {
            EmbeddedResourceResource::TextResourceContents(text) => {
                let place = place(&text.uri);
                self.mention(&place);
                let fence = fence(&text.text);
                let end = if text.text.ends_with('\n') { "" } else { "\n" };
                let _ = write!(self.attached, "{place}:\n{fence}\n{}{end}{fence}\n\n", text.text);
            }
            EmbeddedResourceResource::BlobResourceContents(blob) => {
                let place = place(&blob.uri);
                self.mention(&place);
                self.leave_out("a file", &place);
            }
            _ => self.left_out.push("something of an unknown kind".to_owned()),
        }
    }

    fn leave_out(&mut self, what: &str, which: &str) {
        self.left_out.push(format!("{what} ({which})"));
    }
}

/// A file by its path, anything else by its address.
fn place(uri: &str) -> String {
    let path =
        uri.strip_prefix("file://").map(|path| path.strip_prefix("localhost").unwrap_or(path));
    path.map_or_else(|| uri.to_owned(), decoded)
}

/// A path as the disk has it: an address writes `%20` for a space.
fn decoded(path: &str) -> String {
    let mut bytes = vec![];
    let mut rest = path.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = behind.get(if byte.is_some() { 2 } else { 0 }..).unwrap_or_default();
    }
    // What is no text afterwards is left as it was written.
    String::from_utf8(bytes).unwrap_or_else(|_| path.to_owned())
}

/// Longer than any row of backticks in the text.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::ContentBlock;
    use serde_json::{Value, json};

    use super::{Prompt, Slash};

    fn prompt(blocks: Value) -> Prompt {
        let blocks: Vec<ContentBlock> = serde_json::from_value(blocks).unwrap();
        Prompt::read(&blocks)
    }

    #[test]
    fn parts_become_one_text() {
        let prompt = prompt(json!([
            {"type": "text", "text": "Look at"},
            {"type": "resource_link", "name": "a.rs", "uri": "file:///w/a.rs"},
            {"type": "text", "text": " and "},
            {"type": "resource", "resource": {"uri": "file:///w/b.md", "text": "```\nx\n```"}},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///w/c.bin", "blob": "AAAA"}},
        ]));
        insta::assert_snapshot!(prompt.with_attached(&prompt.text), @r"
        Look at `/w/a.rs` and `/w/b.md` `/w/c.bin`

        /w/b.md:
        ````
        ```
        x
        ```
        ````
        ");
        assert_eq!(prompt.left_out, ["an image (image/png)", "a file (/w/c.bin)"]);
        assert_eq!(prompt.slash(), None);
    }

    #[test]
    fn files_are_named_by_their_paths() {
        let table = [
            ("file:///tmp/a%20b.txt", "`/tmp/a b.txt`"),
            ("file://localhost/tmp/%C3%a4.txt", "`/tmp/ä.txt`"),
            ("file:///tmp/100%/%zz%2", "`/tmp/100%/%zz%2`"),
            ("file:///tmp/%ff", "`/tmp/%ff`"),
            ("https://example.com/a%20b", "`https://example.com/a%20b`"),
        ];
        for (uri, expected) in table {
            let link = json!([{"type": "resource_link", "name": "a", "uri": uri}]);
            assert_eq!(prompt(link).text, expected, "{uri}");
        }
    }

    #[test]
    fn what_begins_with_a_slash_and_a_name_is_a_command() {
        let slash = |text: &str| {
            let prompt = Prompt { text: text.to_owned(), ..Prompt::default() };
            prompt.slash().map(|Slash { name, rest }| format!("{name}|{rest}"))
        };
        let table = [
            ("/ralph \"Build it\"", Some("ralph|\"Build it\"")),
            ("  /agent:worker\nfix it ", Some("agent:worker|fix it")),
            ("/help", Some("help|")),
            ("/etc/hosts is wrong", None),
            ("/", None),
            ("a /help", None),
        ];
        for (text, expected) in table {
            assert_eq!(slash(text).as_deref(), expected, "{text}");
        }
    }
}
