//! The destination of rendered text: a string, or the inside of a JSON string. A read that is rendered into JSON can be
//! sent at once; otherwise it would be scanned and copied once more.

/// A destination for text.
pub(crate) trait TextSink {
    fn put(&mut self, text: &str);

    /// Appends ASCII without characters that JSON escapes.
    fn put_plain(&mut self, text: &[u8]);

    fn end_line(&mut self);

    /// Reserves room for this many bytes.
    fn reserve(&mut self, bytes: usize);
}

impl TextSink for String {
    fn put(&mut self, text: &str) {
        self.push_str(text);
    }

    fn put_plain(&mut self, text: &[u8]) {
        self.push_str(std::str::from_utf8(text).expect("plain text is ASCII"));
    }

    fn end_line(&mut self) {
        self.push('\n');
    }

    fn reserve(&mut self, bytes: usize) {
        self.reserve(bytes);
    }
}

/// The inside of a JSON string at the end of these bytes.
pub(crate) struct JsonString<'a>(pub &'a mut Vec<u8>);

impl TextSink for JsonString<'_> {
    fn put(&mut self, text: &str) {
        escape(text, self.0);
    }

    fn put_plain(&mut self, text: &[u8]) {
        self.0.extend_from_slice(text);
    }

    fn end_line(&mut self) {
        self.0.extend_from_slice(b"\\n");
    }

    fn reserve(&mut self, bytes: usize) {
        // A line break takes two bytes, and so does a quote; code has about one of them in thirty characters.
        self.0.reserve(bytes + bytes / 16);
    }
}

/// Appends text escaped for JSON.
fn escape(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    loop {
        let (plain, behind) = rest.split_at(plain_length(rest));
        out.extend_from_slice(plain);
        let Some((escaped, after)) = behind.split_first() else { return };
        push_escaped(*escaped, out);
        rest = after;
    }
}

/// The number of bytes before the first one that must be escaped.
fn plain_length(bytes: &[u8]) -> usize {
    // With a fixed size the compiler vectorizes the loop.
    let (blocks, _) = bytes.as_chunks::<32>();
    let plain = blocks.iter().take_while(|block| !block.iter().fold(false, |found, byte| found | must_be_escaped(*byte))).count();
    let start = plain * 32;
    let (words, _) = bytes[start..].as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let found = escaped_in(u64::from_le_bytes(*word));
        if found != 0 {
            return start + 8 * index + found.trailing_zeros() as usize / 8;
        }
    }
    let start = start + 8 * words.len();
    start + bytes[start..].iter().take_while(|byte| !must_be_escaped(**byte)).count()
}

/// Sets a bit for each of eight bytes that must be escaped. Only the lowest set bit is reliable.
fn escaped_in(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let below = |limit: u8, word: u64| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let is = |byte: u8| below(1, word ^ (ONES * u64::from(byte)));
    (below(0x20, word) | is(b'"') | is(b'\\')) & (ONES << 7)
}

fn must_be_escaped(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

fn push_escaped(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x0c => out.extend_from_slice(b"\\f"),
        ..0x20 => {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&digits);
        }
        _ => out.push(byte),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_control_character_is_escaped_as_json_says() {
        let all: String = (0..0x30_u8).map(char::from).collect();
        let mut out = Vec::new();
        escape(&all, &mut out);
        assert_eq!(format!("\"{}\"", String::from_utf8(out).unwrap()), serde_json::to_string(&all).unwrap());
    }

    #[test]
    fn the_first_that_must_be_escaped_is_found_wherever_it_stands() {
        for length in 0..80 {
            for place in 0..length {
                for special in [b'"', b'\\', 0, 0x1f] {
                    let mut bytes = vec![0xc3; length];
                    bytes[place] = special;
                    assert_eq!(plain_length(&bytes), place, "{special} among {length}");
                }
            }
            assert_eq!(plain_length(&vec![b' '; length]), length);
        }
    }

    proptest! {
        #[test]
        fn it_is_what_a_serializer_writes(text in "([a-zé ]{0,40}|[\"\\\\\n\r\t\u{0}-\u{1f}]{0,3}){0,12}") {
            let mut out = b"before ".to_vec();
            escape(&text, &mut out);
            let expected = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(String::from_utf8(out).unwrap(), format!("before {}", &expected[1..expected.len() - 1]));
        }
    }
}
