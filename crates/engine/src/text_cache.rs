//! Caches the texts that were read or written last, for checks and comparisons.

use std::collections::HashMap;

use surehand_core::{ContentHash, Text};

/// The approximate number of bytes that are kept.
const BUDGET: usize = 4 << 20;
/// The memory of a text besides its bytes and line index.
const ROOM: usize = 320;

/// A cache in two generations: when the young one is full, it replaces the old one, and old texts that were not used
/// meanwhile are dropped.
#[derive(Debug, Default)]
pub(crate) struct TextCache {
    young: HashMap<ContentHash, Text>,
    old: HashMap<ContentHash, Text>,
    young_bytes: usize,
}

impl TextCache {
    pub(crate) fn keep(&mut self, text: &Text) {
        if self.young.insert(text.version(), text.clone()).is_some() {
            return;
        }
        self.young_bytes += text.bytes().len() + 4 * text.line_count() + ROOM;
        if self.young_bytes > BUDGET / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
    }

    pub(crate) fn get(&mut self, version: &ContentHash) -> Option<Text> {
        if let Some(text) = self.young.get(version) {
            return Some(text.clone());
        }
        let text = self.old.get(version)?.clone();
        self.keep(&text);
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_texts_stay_and_the_total_is_bounded() {
        let text = |number: usize| Text::new(format!("{number}{}", "x".repeat(100_000)).into_bytes()).unwrap();
        let mut texts = TextCache::default();
        texts.keep(&text(0));
        for number in 1..1000 {
            texts.keep(&text(number));
            assert!(texts.get(&text(0).version()).is_some());
        }
        assert!(texts.get(&text(1).version()).is_none());
        assert!((texts.young.len() + texts.old.len()) * 100_000 < 2 * BUDGET);
    }
}
