//! The lines of a candidate as ids of texts in the output. All texts that are not in the output share one id, so a file
//! costs one lookup per line.

use std::{borrow::Cow, collections::HashMap};

use crate::text::Text;

/// The id of a text in the output.
pub(super) type TextId = u32;

pub(super) const NONE: TextId = TextId::MAX;

/// The texts of an output in all forms, with their ids.
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
    /// The number of letters and digits in each line, up to a limit.
    words: Vec<u8>,
}

impl FileLines {
    pub(super) fn of(text: &Text, known: &TextIds<'_>) -> Self {
        let mut lines = Self { ids: Vec::with_capacity(text.line_count()), places: HashMap::new(), words: Vec::new() };
        for (index, (_, line)) in text.lines().enumerate() {
            let id = known.get(line);
            lines.ids.push(id);
            lines.words.push(count_word_chars(line));
            if id != NONE {
                lines.places.entry(id).or_default().push(index);
            }
        }
        lines
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The lines with this text.
    pub(super) fn places(&self, id: TextId) -> &[usize] {
        self.places.get(&id).map_or(&[], Vec::as_slice)
    }

    /// The texts that both the file and the output have.
    pub(super) fn shared(&self) -> impl Iterator<Item = (TextId, &[usize])> {
        self.places.iter().map(|(id, places)| (*id, places.as_slice()))
    }

    /// Whether a line has at least this many letters or digits.
    pub(super) fn has_words(&self, line: usize, least: u8) -> bool {
        self.words[line] >= least
    }

    /// Whether a line with at least this many letters or digits occurs once in the file.
    pub(super) fn is_unique(&self, line: usize, least: u8) -> bool {
        self.has_words(line, least) && self.places(self.ids[line]).len() == 1
    }
}

/// The number of letters and digits in a line, counted up to a limit.
pub(super) fn count_word_chars(line: &str) -> u8 {
    const ENOUGH: usize = 8;
    line.chars().filter(|c| c.is_alphanumeric()).take(ENOUGH).count() as u8
}
