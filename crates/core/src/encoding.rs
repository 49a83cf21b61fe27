//! Encodings of text files. All text is handled as UTF-8; a file is written back in the encoding it was read in.

use std::fmt;

use encoding_rs as legacy;

use crate::text::NotText;

/// The encoding of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, with or without a byte order mark.
    Utf8,
    /// UTF-16, little-endian, with a byte order mark.
    Utf16Le,
    /// UTF-16, big-endian, with a byte order mark.
    Utf16Be,
    /// A legacy encoding, guessed from the bytes.
    Legacy(&'static legacy::Encoding),
}

pub(crate) struct Decoded {
    /// The text, including a byte order mark if the bytes have one.
    pub content: String,
    pub encoding: Encoding,
    /// Whether encoding the text gives exactly the same bytes.
    pub is_exact: bool,
}

impl Encoding {
    /// The usual name of the encoding.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "UTF-8",
            Encoding::Utf16Le => "UTF-16LE",
            Encoding::Utf16Be => "UTF-16BE",
            Encoding::Legacy(encoding) => encoding.name(),
        }
    }

    /// Encodes a text; fails with the first character that the encoding does not have.
    pub(crate) fn encode(self, content: &str) -> Result<Vec<u8>, char> {
        match self {
            Encoding::Utf8 => Ok(content.as_bytes().to_vec()),
            Encoding::Utf16Le => Ok(content.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Encoding::Utf16Be => Ok(content.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            Encoding::Legacy(encoding) => {
                let (bytes, _, some_do_not_fit) = encoding.encode(content);
                if !some_do_not_fit {
                    return Ok(bytes.into_owned());
                }
                let does_not_fit = |char: &char| encoding.encode(char.encode_utf8(&mut [0; 4])).2;
                Err(content.chars().find(does_not_fit).unwrap_or(char::REPLACEMENT_CHARACTER))
            }
        }
    }
}

impl fmt::Debug for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The encoding that a byte order mark declares, other than UTF-8.
pub(crate) fn marked(bytes: &[u8]) -> Option<Encoding> {
    match bytes {
        [0xff, 0xfe, ..] => Some(Encoding::Utf16Le),
        [0xfe, 0xff, ..] => Some(Encoding::Utf16Be),
        _ => None,
    }
}

/// Decodes UTF-16 with its byte order mark. Unpaired surrogates are an error, because they could not be written back.
pub(crate) fn decode_utf16(bytes: &[u8], encoding: Encoding) -> Result<Decoded, NotText> {
    let unit = |pair: &[u8]| match encoding {
        Encoding::Utf16Be => u16::from_be_bytes([pair[0], pair[1]]),
        _ => u16::from_le_bytes([pair[0], pair[1]]),
    };
    if !bytes.len().is_multiple_of(2) {
        return Err(NotText::Encoding { at: bytes.len() - 1 });
    }
    let mut content = String::with_capacity(bytes.len());
    let mut at = 0;
    for char in char::decode_utf16(bytes.chunks_exact(2).map(unit)) {
        let Ok(char) = char else { return Err(NotText::Encoding { at }) };
        at += 2 * char.len_utf16();
        content.push(char);
    }
    if content.contains('\0') {
        return Err(NotText::Binary);
    }
    Ok(Decoded { content, encoding, is_exact: true })
}

/// Guesses the encoding of bytes that are neither marked nor UTF-8, and decodes them.
pub(crate) fn decode_legacy(bytes: &[u8]) -> Result<Decoded, NotText> {
    if has_many_controls(bytes) {
        return Err(NotText::Binary);
    }
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let guess = detector.guess(None, chardetng::Utf8Detection::Deny);
    // Of two encodings that decode alike, the larger comes first. The last one accepts any bytes.
    let larger = if guess == legacy::GBK { legacy::GB18030 } else { guess };
    let mut inexact = None;
    for encoding in [larger, guess, legacy::WINDOWS_1252] {
        let Some(content) = encoding.decode_without_bom_handling_and_without_replacement(bytes) else { continue };
        let (content, encoding) = (content.into_owned(), Encoding::Legacy(encoding));
        if encoding.encode(&content).is_ok_and(|again| again == bytes) {
            return Ok(Decoded { content, encoding, is_exact: true });
        }
        inexact.get_or_insert(Decoded { content, encoding, is_exact: false });
    }
    inexact.ok_or(NotText::Encoding { at: 0 })
}

/// Whether the start has more control characters than text does.
fn has_many_controls(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(8192)];
    let is_odd = |byte: &&u8| **byte < 0x20 && !matches!(**byte, b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | 0x1b);
    start.iter().filter(is_odd).count() * 50 > start.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::text::{NotText, Text, Unencodable, Unfit};

    #[track_caller]
    fn check(bytes: &[u8], name: &str, content: &str) {
        let text = Text::new(bytes.to_vec()).unwrap();
        assert_eq!((text.encoding().name(), text.as_str()), (name, content));
        assert_eq!(text.bytes(), bytes);
    }

    fn encoded(label: &str, content: &str) -> Vec<u8> {
        encoding_rs::Encoding::for_label(label.as_bytes()).unwrap().encode(content).0.into_owned()
    }

    const JAPANESE: &str = "// 設定ファイルを読み込む\nfn main() { /* ここに処理を書く */ }\n";
    const CHINESE: &str = "// 读取配置文件，然后启动服务器\nint main() { return 0; } // 结束\n";
    const FRENCH: &str = "# Un café à la crème, s'il vous plaît\nnom = \"Zoé\"\n";

    #[test]
    fn an_encoding_is_guessed_from_the_bytes() {
        check("é".as_bytes(), "UTF-8", "é");
        check(b"\xff\xfeh\0i\0\n\0", "UTF-16LE", "\u{feff}hi\n");
        check(b"\xfe\xff\0h\0i\0\n", "UTF-16BE", "\u{feff}hi\n");
        check(&encoded("windows-1252", FRENCH), "windows-1252", FRENCH);
        check(&encoded("shift_jis", JAPANESE), "Shift_JIS", JAPANESE);
        check(&encoded("gb18030", CHINESE), "gb18030", CHINESE);
        check(b"caf\xe9\n", "windows-1252", "café\n");
    }

    #[test]
    fn a_change_after_which_the_text_would_read_as_another_is_refused() {
        let text = Text::new(encoded("gb18030", CHINESE)).unwrap();
        let short = CHINESE.split_once('\n').unwrap().1.to_owned();
        match text.with(short.clone()) {
            Ok(edited) => assert_eq!(Text::new(edited.bytes().to_vec()).unwrap().as_str(), short),
            Err(unfit) => assert!(matches!(unfit, Unfit::Unencodable { why: Unencodable::Mistakable, .. })),
        }
        // Plain ASCII is the same in all of them.
        assert!(text.with("int main() {}\n".to_owned()).is_ok());
    }

    #[test]
    fn bytes_that_are_text_in_no_encoding_are_binary() {
        let not_text = |bytes: &[u8]| Text::new(bytes.to_vec()).unwrap_err();
        assert_eq!(not_text(b"\x1f\x8b\x08\x00\x01"), NotText::Binary);
        assert_eq!(not_text(b"\x01\x02\x03\xff\xfe\x80\x05"), NotText::Binary);
        assert_eq!(not_text(b"\xff\xfeh\0i"), NotText::Encoding { at: 4 });
        assert_eq!(not_text(b"\xff\xfe\x00\xd8h\0"), NotText::Encoding { at: 2 });
    }

    proptest! {
        #[test]
        fn bytes_survive_being_text(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(text) = Text::new(bytes.clone()) {
                prop_assert_eq!(text.bytes(), &bytes[..]);
                if let Ok(again) = text.with(text.as_str().to_owned()) {
                    prop_assert_eq!(again.bytes(), &bytes[..]);
                }
                // The written bytes are read as the intended text.
                if let Ok(edited) = text.with(format!("{}end\n", text.as_str())) {
                    let read = Text::new(edited.bytes().to_vec()).unwrap();
                    prop_assert_eq!(read.as_str(), edited.as_str());
                }
            }
        }
    }
}
