//! One line of a journal: a fact as JSON, with a checksum as its last field.
//!
//! `{"seq":7,"at":"…","type":"…",…,"crc":"89abcdef"}`, where the checksum is the CRC-32 of
//! everything before `,"crc":`. The line begins with its number and ends with its checksum, so
//! both are checked without reading what is between them.

/// How deep JSON may be nested and still be read back.
pub(crate) const DEEPEST: usize = 127;

const CRC_FIELD: &[u8] = b",\"crc\":\"";
const CRC_DIGITS: usize = 8;
const END: &[u8] = b"\"}";
const SEAL: usize = CRC_FIELD.len() + CRC_DIGITS + END.len();

/// Turns a JSON object into a line, checksum and line end included.
pub(crate) fn seal(object: &mut Vec<u8>) {
    object.pop();
    let crc = crc32fast::hash(object);
    object.extend_from_slice(CRC_FIELD);
    object.extend_from_slice(format!("{crc:08x}").as_bytes());
    object.extend_from_slice(END);
    object.push(b'\n');
}

/// Checks that a line, without its line end, is whole and is number `seq`.
pub(crate) fn check(line: &[u8], seq: u64) -> Result<(), String> {
    let Some((body, crc)) = split_seal(line) else {
        return Err("the line has no checksum at its end".to_owned());
    };
    let actual = crc32fast::hash(body);
    if crc != format!("{actual:08x}").as_bytes() {
        return Err("the line does not match its checksum".to_owned());
    }
    if !body.starts_with(format!("{{\"seq\":{seq},").as_bytes()) {
        return Err(format!("the line is not number {seq}"));
    }
    Ok(())
}

/// Whether a line could be one of ours, whole or damaged.
pub(crate) fn looks_like_ours(line: &[u8]) -> bool {
    let start = b"{\"seq\":";
    let common = line.len().min(start.len());
    line[..common] == start[..common] || split_seal(line).is_some()
}

/// Whether a line ends as ours do.
pub(crate) fn is_sealed(line: &[u8]) -> bool {
    split_seal(line).is_some()
}

fn split_seal(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (body, seal) = line.split_at_checked(line.len().checked_sub(SEAL)?)?;
    let crc = seal.strip_prefix(CRC_FIELD)?.strip_suffix(END)?;
    Some((body, crc))
}

/// How deep a piece of JSON is nested.
pub(crate) fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_text) = (0_usize, 0, false);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if in_text => {
                bytes.next();
            }
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::{check, depth, seal};

    #[test]
    fn a_sealed_line_is_accepted_and_a_changed_one_is_not() {
        let mut line = br#"{"seq":3,"at":"now"}"#.to_vec();
        seal(&mut line);
        assert_eq!(line, b"{\"seq\":3,\"at\":\"now\",\"crc\":\"262b21fe\"}\n");
        let line = &line[..line.len() - 1];
        assert_eq!(check(line, 3), Ok(()));
        assert_eq!(check(line, 4), Err("the line is not number 4".to_owned()));
        for at in 0..line.len() {
            let mut changed = line.to_vec();
            changed[at] ^= 1;
            assert!(check(&changed, 3).is_err(), "byte {at} changed");
        }
    }

    #[test]
    fn depth_does_not_count_what_is_in_texts() {
        let table: &[(&str, usize)] =
            &[("1", 0), ("[[]]", 2), (r#"{"a":["[{"]}"#, 2), (r#"["\"[[",[]]"#, 2)];
        for (json, expected) in table {
            assert_eq!(depth(json.as_bytes()), *expected, "{json}");
        }
    }
}
