//! The end of a long output, in bounded memory.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

const CHUNK: usize = 8 * 1024;

/// Keeps the last bytes of what is put in.
#[derive(Debug)]
pub(super) struct Tail {
    bytes: Vec<u8>,
    limit: usize,
    left_out: u64,
}

impl Tail {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, left_out: 0 }
    }

    /// Reads to the end of `source`. What was read before the future is dropped is kept.
    pub(super) async fn fill(&mut self, source: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
        let mut chunk = Vec::with_capacity(CHUNK);
        while source.read_buf(&mut chunk).await? > 0 {
            self.push(&chunk);
            chunk.clear();
        }
        Ok(())
    }

    fn push(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
        // Only now and then, so that each byte is moved about once.
        if self.bytes.len() > self.limit.saturating_mul(2).saturating_add(CHUNK) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if let Some(surplus) = self.bytes.len().checked_sub(self.limit).filter(|it| *it > 0) {
            self.bytes.drain(..surplus);
            self.left_out += surplus as u64;
        }
    }

    /// The text, and how many bytes before it were left out; what is not UTF-8 in it is replaced.
    pub(super) fn into_text(mut self) -> (String, u64) {
        self.cut();
        // The cut may have gone through a character: its rest would only show as rubbish.
        let is_rest = |byte: &&u8| self.left_out > 0 && **byte & 0b1100_0000 == 0b1000_0000;
        let start = self.bytes.iter().take(3).take_while(is_rest).count();
        let text = String::from_utf8_lossy(&self.bytes[start..]).into_owned();
        (text, self.left_out + start as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(limit: usize, chunks: &[&[u8]]) -> String {
        let mut tail = Tail::new(limit);
        for chunk in chunks {
            tail.push(chunk);
        }
        let (text, left_out) = tail.into_text();
        let all: usize = chunks.iter().map(|chunk| chunk.len()).sum();
        let kept = if text.contains('\u{fffd}') { all } else { text.len() };
        assert_eq!(left_out as usize, all - kept, "the last {limit} of {chunks:?}");
        text
    }

    #[test]
    fn the_end_is_kept_and_nothing_else() {
        let table: [(usize, &[&[u8]], &str); 7] = [
            (4, &[], ""),
            (4, &[b"abcd"], "abcd"),
            (4, &[b"abc", b"def"], "cdef"),
            (0, &[b"abc"], ""),
            (4, &["aé€".as_bytes()], "€"),
            (4, &["ab".as_bytes(), &"é".as_bytes()[..1], &"é".as_bytes()[1..]], "abé"),
            (9, &[b"\x80ok"], "\u{fffd}ok"),
        ];
        for (limit, chunks, expected) in table {
            assert_eq!(tail(limit, chunks), expected, "the last {limit} of {chunks:?}");
        }
    }

    #[test]
    fn memory_stays_bounded() {
        let mut tail = Tail::new(1000);
        for _ in 0..10_000 {
            tail.push(&[b'x'; 1000]);
        }
        assert!(tail.bytes.capacity() < 4 * (1000 + CHUNK), "{}", tail.bytes.capacity());
        assert_eq!(tail.into_text().0.len(), 1000);
    }
}
