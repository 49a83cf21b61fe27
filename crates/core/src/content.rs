//! The content of a file: text, or bytes that are not text.

use std::{fmt, sync::Arc};

use crate::{
    hash::ContentHash,
    text::{NotText, Text},
};

/// The whole content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Text in any supported encoding.
    Text(Text),
    /// Binary content, or text over the size limit. It can be moved, deleted and restored, but not shown or edited.
    Blob(Blob),
}

/// Bytes that are not treated as text. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Blob(Arc<(Vec<u8>, ContentHash)>);

impl Content {
    /// Classifies these bytes as text if they are text.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self::with_reason(bytes).0
    }

    /// Like [`Content::new`], with the reason if the bytes are not text.
    pub fn with_reason(bytes: Vec<u8>) -> (Self, Option<NotText>) {
        match Text::try_new(bytes) {
            Ok(text) => (Content::Text(text), None),
            Err((bytes, not_text)) => (Content::Blob(Blob::new(bytes)), Some(not_text)),
        }
    }

    /// The exact bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Content::Text(text) => text.bytes(),
            Content::Blob(blob) => blob.bytes(),
        }
    }

    /// The version of these bytes.
    pub fn version(&self) -> ContentHash {
        match self {
            Content::Text(text) => text.version(),
            Content::Blob(blob) => blob.version(),
        }
    }

    /// The text, if it is text.
    pub fn text(&self) -> Option<&Text> {
        match self {
            Content::Text(text) => Some(text),
            Content::Blob(_) => None,
        }
    }
}

impl AsRef<[u8]> for Content {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl Blob {
    /// Wraps these bytes without examining them.
    pub fn new(bytes: Vec<u8>) -> Self {
        let version = ContentHash::of(&bytes);
        Self(Arc::new((bytes, version)))
    }

    /// The exact bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.0.0
    }

    /// The version of these bytes.
    pub fn version(&self) -> ContentHash {
        self.0.1
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} bytes)", self.bytes().len())
    }
}
