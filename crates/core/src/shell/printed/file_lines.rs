//! The lines of a candidate, each as the number that stands for its text in the output. Texts that the output does not have are
//! all the same to us, so that a file costs one lookup for each line and nothing else.

use std::{borrow::Cow, collections::HashMap};

use crate::text::Text;

/// What stands for a text of the output.
pub(super) type TextId = u32;

/// No text of the output.
pub(super) const NONE: TextId = TextId::MAX;

/// The texts of an output, in all forms, by number.
#[derive(Default)]
pub(super) struct TextIds<'a>(HashMap<Cow<'a, str>, TextId>);

impl<'a> TextIds<'a> {
    pub(super) fn add(&mut self, text: Cow<'a, str>) -> TextId {
        let next = TextId::try_from(self.0.len()).expect("an output has fewer rows");
        *self.0.entry(text).or_insert(next)
    }

    fn get(&self, text: &str) -> TextId {
        self.0.get(text).copied().unwrap_or(NONE)
    }
}

/// The lines of a file. Indexes are 0-based.
pub(super) struct FileLines {
    pub(super) ids: Vec<TextId>,
    places: HashMap<TextId, Vec<usize>>,
    /// How many letters and digits each line has, as far as it matters.
    words: Vec<u8>,
}

impl FileLines {
    pub(super) fn of(text: &Text, known: &TextIds<'_>) -> Self {
        let mut lines = Self { ids: Vec::with_capacity(text.line_count()), places: HashMap::new(), words: Vec::new() };
        for (index, (_, line)) in text.lines().enumerate() {
            let id = known.get(line);
            lines.ids.push(id);
            lines.words.push(wordiness(line));
            if id != NONE {
                lines.places.entry(id).or_default().push(index);
            }
        }
        lines
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Where the file has this text.
    pub(super) fn places(&self, id: TextId) -> &[usize] {
        self.places.get(&id).map_or(&[], Vec::as_slice)
    }

    /// The texts that both the file and the output have.
    pub(super) fn shared(&self) -> impl Iterator<Item = (TextId, &[usize])> {
        self.places.iter().map(|(id, places)| (*id, places.as_slice()))
    }

    /// Whether a line has so many letters or digits.
    pub(super) fn has_words(&self, line: usize, least: u8) -> bool {
        self.words[line] >= least
    }

    /// Whether no other line of the file reads like this one, which has so many letters or digits.
    pub(super) fn is_unique(&self, line: usize, least: u8) -> bool {
        self.has_words(line, least) && self.places(self.ids[line]).len() == 1
    }
}

/// How many letters and digits a line has, counted up to a few.
pub(super) fn wordiness(line: &str) -> u8 {
    const ENOUGH: usize = 8;
    line.chars().filter(|c| c.is_alphanumeric()).take(ENOUGH).count() as u8
}
