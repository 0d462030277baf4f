//! Lines from standard input and to standard output. Nothing else is ever written there.

use std::convert::Infallible;
use std::io::{self, BufRead as _, Read as _};

use agent_client_protocol::{Agent, ConnectTo, Lines};
use futures_util::{sink, stream};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{mpsc, oneshot};

/// The longest line that is taken in, in bytes. A file in a prompt fits; a line without an end does
/// not fill the memory.
const LONGEST: u64 = 64 * 1024 * 1024;

/// The connection with whoever has started us, and who hears when its input has ended.
pub(super) fn lines() -> (impl ConnectTo<Agent>, oneshot::Receiver<Infallible>) {
    let (lines, ended) = read();
    let incoming = stream::unfold(lines, async |mut lines| {
        let line = lines.recv().await?;
        Some((line, lines))
    });
    let outgoing = sink::unfold(tokio::io::stdout(), async |mut out, mut line: String| {
        line.push('\n');
        out.write_all(line.as_bytes()).await?;
        out.flush().await?;
        Ok::<_, io::Error>(out)
    });
    (Lines::new(outgoing, incoming), ended)
}

/// Reads in a thread of its own, which is left alone when we end: nobody can wake it up.
fn read() -> (mpsc::Receiver<io::Result<String>>, oneshot::Receiver<Infallible>) {
    let (sender, lines) = mpsc::channel(64);
    let (end, ended) = oneshot::channel();
    std::thread::spawn(move || {
        // Dropped when nothing more is read, which is how its end is told.
        let _end = end;
        let mut input = io::stdin().lock();
        loop {
            let mut line = vec![];
            let read = (&mut input).take(LONGEST).read_until(b'\n', &mut line);
            let is_cut = line.len() as u64 == LONGEST && line.last() != Some(&b'\n');
            let line = match read {
                Ok(0) => return,
                Ok(_) if is_cut => Err(io::Error::other("a line is longer than 64 MiB")),
                // What is no text is no JSON either, and is answered as such.
                Ok(_) => Ok(whole_characters(String::from_utf8_lossy(&line).trim_end())),
                Err(error) => Err(error),
            };
            if sender.blocking_send(line).is_err() || is_cut {
                return;
            }
        }
    });
    (lines, ended)
}

/// A line in which every escape is a character. Editors written in JavaScript may cut a text in the
/// middle of one; such a line could not be read, and its request would never be answered.
fn whole_characters(line: &str) -> String {
    let mut whole = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        whole.push_str(before);
        let (shown, length) = match (half(escape), half(escape.get(6..).unwrap_or_default())) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (None, 12),
            (Some(0xd800..=0xdfff), _) => (Some("\\ufffd"), 6),
            // The character behind a backslash is no beginning of another escape.
            _ => (None, escape.chars().take(2).map(char::len_utf8).sum()),
        };
        let (taken, behind) = escape.split_at(length);
        whole.push_str(shown.unwrap_or(taken));
        rest = behind;
    }
    whole.push_str(rest);
    whole
}

/// The number in an escape such as `\ud83d`.
fn half(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::whole_characters;

    #[test]
    fn half_a_character_costs_no_request() {
        let table = [
            (r#""a\ud83d\ude00b""#, r#""a\ud83d\ude00b""#),
            (r#""a\ud83d""#, r#""a\ufffd""#),
            (r#""\ude00\ud83dx\n""#, r#""\ufffd\ufffdx\n""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\u00e4 ä \ud8""#, r#""\u00e4 ä \ud8""#),
            ("\\ä", "\\ä"),
            ("\\", "\\"),
        ];
        for (line, expected) in table {
            assert_eq!(whole_characters(line), expected, "{line}");
        }
    }
}
