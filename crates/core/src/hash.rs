//! Names for content: the version of a whole file and the short hash of one line.

use std::{fmt, str::FromStr};

use sha2::{Digest, Sha256};

use crate::lines::LineNo;

/// Serializes a type as the text of its `Display`, and parses that text again.
macro_rules! serde_as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text: std::borrow::Cow<'de, str> = serde::Deserialize::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use serde_as_text;

/// The version of a file: SHA-256 of its bytes, so that it can be checked with `sha256sum`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// The version of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Six hexadecimal digits, for people and models to distinguish versions at a glance. Surehand never compares them.
    pub fn short(&self) -> String {
        self.to_string()[..6].to_owned()
    }

    /// The 32 bytes of the digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The version with these bytes, as returned by [`ContentHash::as_bytes`].
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

/// Computes the version of content that arrives in pieces.
#[derive(Debug, Clone, Default)]
pub struct ContentHasher(Sha256);

impl ContentHasher {
    /// Appends the next piece of the content.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The version of all pieces together.
    pub fn finish(self) -> ContentHash {
        ContentHash(self.0.finalize().into())
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&digits).expect("hexadecimal digits are ASCII"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentHash({})", self.short())
    }
}

/// Not the 64 hexadecimal digits of a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a version (64 hexadecimal digits): {0}")]
pub struct BadContentHash(String);

impl FromStr for ContentHash {
    type Err = BadContentHash;

    fn from_str(text: &str) -> Result<Self, BadContentHash> {
        let bad = || BadContentHash(text.to_owned());
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return Err(bad());
        }
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| bad())?;
        }
        Ok(Self(bytes))
    }
}

serde_as_text!(ContentHash);

/// Two letters that catch a model's slip when it names a line. 676 values are far too few to prove identity, so
/// Surehand compares the full text for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LineHash([u8; 2]);

impl LineHash {
    /// The short hash of a line, without its line ending. White space counts.
    pub fn of(line: &str) -> Self {
        // FNV-1a: short inputs, no table, and the value is part of what models copy, so it must never change.
        let hash = line
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        let folded = (hash ^ (hash >> 32)) % 676;
        Self([b'a' + (folded / 26) as u8, b'a' + (folded % 26) as u8])
    }
}

impl fmt::Display for LineHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", char::from(self.0[0]), char::from(self.0[1]))
    }
}

/// A model's name for a line: its number as last shown, and the short hash of its text. Written `12#ab`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Anchor {
    /// The number under which the line was shown.
    pub line: LineNo,
    /// The short hash of the line's text.
    pub hash: LineHash,
}

impl Anchor {
    /// The anchor of a line with this text.
    pub fn of(line: LineNo, text: &str) -> Self {
        Self { line, hash: LineHash::of(text) }
    }
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.line, self.hash)
    }
}

serde_as_text!(Anchor);

/// Not a line name of the form `12#ab`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a line anchor: {0:?}; one looks like 12#ab")]
pub struct BadAnchor(String);

impl FromStr for Anchor {
    type Err = BadAnchor;

    fn from_str(text: &str) -> Result<Self, BadAnchor> {
        let bad = || BadAnchor(text.chars().take(40).collect());
        let (number, hash) = text.trim().split_once('#').ok_or_else(bad)?;
        let line = number.parse().ok().and_then(LineNo::new).ok_or_else(bad)?;
        let [first, second] = hash.as_bytes() else { return Err(bad()) };
        if !first.is_ascii_lowercase() || !second.is_ascii_lowercase() {
            return Err(bad());
        }
        Ok(Self { line, hash: LineHash([*first, *second]) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_what_sha256sum_prints() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(ContentHash::of(b"").to_string(), empty);
        assert_eq!(empty.parse(), Ok(ContentHash::of(b"")));
        assert!("e3b0".parse::<ContentHash>().is_err());
        assert!("zz".repeat(32).parse::<ContentHash>().is_err());
    }

    #[test]
    fn pieces_have_the_version_of_the_whole() {
        let mut hasher = ContentHasher::default();
        ["", "one ", "two"].iter().for_each(|piece| hasher.update(piece.as_bytes()));
        assert_eq!(hasher.finish(), ContentHash::of(b"one two"));
    }

    #[test]
    fn white_space_counts_in_a_line_hash() {
        assert_ne!(LineHash::of("a b"), LineHash::of("a  b"));
        assert_ne!(LineHash::of("}"), LineHash::of(" }"));
        assert_eq!(LineHash::of("}").to_string().len(), 2);
    }

    #[test]
    fn anchors_read_back_what_they_print() {
        let anchor = Anchor::of(LineNo::at_index(11), "fn main() {");
        assert_eq!(anchor.to_string().parse(), Ok(anchor));
        for bad in ["", "12", "0#ab", "12#", "12#abc", "12#AB", "-1#ab", "99999999999#ab", "a#bc"] {
            assert!(bad.parse::<Anchor>().is_err(), "{bad}");
        }
    }
}
