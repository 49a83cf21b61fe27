//! Surrogate pairs that a server has split. JSON may write a character as two escapes (`\ud83d\ude00`), and some
//! servers send each half in an event of its own. Neither half is a character, so no parser accepts it. Here each half
//! becomes a private character, and two halves that meet in the answer become the original character.

use std::borrow::Cow;

use super::StreamEvent;

/// The private character of the half `0xd800`.
const FIRST: u32 = 0x10_d800;
const LOW: u32 = 0x10_dc00;
const LAST: u32 = 0x10_dfff;

/// The JSON text with escapes of half characters replaced by private characters; `None` if it has no such escape.
pub(super) fn without_halves(json: &str) -> Option<String> {
    let mut repaired = String::new();
    let mut done = 0;
    let mut at = 0;
    while let Some(found) = json[at..].find('\\') {
        let escape = at + found;
        match half_at(json, escape) {
            Some(high) if high < 0xdc00 && half_at(json, escape + 6).is_some_and(|low| low >= 0xdc00) => at = escape + 12,
            Some(half) => {
                repaired.push_str(&json[done..escape]);
                repaired.extend(char::from_u32(FIRST + half - 0xd800));
                at = escape + 6;
                done = at;
            }
            // An escaped backslash begins no escape.
            None => at = json.ceil_char_boundary(escape + 2),
        }
    }
    (done > 0).then(|| repaired + &json[done..])
}

/// The surrogate that is escaped at this position.
fn half_at(json: &str, at: usize) -> Option<u32> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|code| is_hex && (0xd800..=0xdfff).contains(code))
}

/// The text with its halves joined. A single half becomes a replacement character.
pub(super) fn joined(text: &str) -> Cow<'_, str> {
    let is_half = |char: char| (FIRST..=LAST).contains(&u32::from(char));
    if !text.contains(is_half) {
        return Cow::Borrowed(text);
    }
    let mut joined = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if !is_half(char) {
            joined.push(char);
            continue;
        }
        let low = |next: &char| u32::from(char) < LOW && (LOW..=LAST).contains(&u32::from(*next));
        let character = chars
            .next_if(low)
            .and_then(|next| char::from_u32(0x1_0000 + ((u32::from(char) - FIRST) << 10) + (u32::from(next) - LOW)));
        joined.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(joined)
}

/// Joins halves in text that is streamed. The first half waits for the second.
#[derive(Debug, Default)]
pub(super) struct StreamJoiner {
    held: Option<char>,
}

impl StreamJoiner {
    /// Passes a piece on, but keeps a first half at its end for the next piece.
    pub(super) fn pass(&mut self, event: StreamEvent<'_>, hear: &mut dyn FnMut(StreamEvent<'_>)) {
        let StreamEvent::Text(piece) = event else { return hear(event) };
        let mut text: String = self.held.take().into_iter().collect();
        text.push_str(piece);
        self.held = text.chars().last().filter(|last| (FIRST..LOW).contains(&u32::from(*last)));
        if self.held.is_some() {
            text.pop();
        }
        if !text.is_empty() {
            hear(StreamEvent::Text(&joined(&text)));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[track_caller]
    fn reads(json: &str, expected: &str) {
        let json = without_halves(json).unwrap_or_else(|| json.to_owned());
        assert_eq!(joined(serde_json::from_str::<Value>(&json).unwrap().as_str().unwrap()), expected);
    }

    #[test]
    fn a_half_alone_is_a_replacement_character() {
        reads(r#""a\ud83db""#, "a\u{fffd}b");
        reads(r#""\ude00""#, "\u{fffd}");
        reads(r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀");
        reads(r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}");
        reads(r#""\uD83D\n""#, "\u{fffd}\n");
    }

    #[test]
    fn whole_characters_and_backslashes_are_left_alone() {
        for json in [r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\\\\ud83d é 😀 \u00e9""#, r#""\u12""#, "\"\\", "\\u", "\\é"] {
            assert_eq!(without_halves(json), None, "{json}");
        }
        assert_eq!(joined("\u{10d7ff}\u{10e000}"), "\u{10d7ff}\u{10e000}");
    }

    #[test]
    fn halves_in_two_events_are_one_character() {
        let pieces = [r#""a\ud83d""#, r#""\ude00b\ud83d""#, r#""c""#, r#""\ude00""#];
        let (mut joiner, mut heard) = (StreamJoiner::default(), String::new());
        for piece in pieces {
            let piece = without_halves(piece).unwrap_or_else(|| piece.to_owned());
            let piece: Value = serde_json::from_str(&piece).unwrap();
            joiner.pass(StreamEvent::Text(piece.as_str().unwrap()), &mut |event| {
                let StreamEvent::Text(text) = event else { unreachable!() };
                heard.push_str(text);
            });
        }
        assert_eq!(heard, "a😀b\u{fffd}c\u{fffd}");
    }

    proptest! {
        #[test]
        fn a_text_in_escapes_is_read_however_it_is_cut(text: String, cuts in prop::collection::vec(0_usize..40, 0..6)) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(units.len())).chain([0, units.len()]).collect();
            cuts.sort_unstable();
            let read: String = cuts.windows(2).map(|cut| {
                let escapes: String = units[cut[0]..cut[1]].iter().map(|unit| format!("\\u{unit:04x}")).collect();
                let json = format!("\"{escapes}\"");
                let json = without_halves(&json).unwrap_or(json);
                serde_json::from_str::<Value>(&json).unwrap().as_str().unwrap().to_owned()
            }).collect();
            prop_assume!(!text.contains(|char: char| (FIRST..=LAST).contains(&u32::from(char))));
            prop_assert_eq!(joined(&read), text);
        }

        #[test]
        fn no_text_does_harm(text in "(\\\\|u|d83d|de00|é|\"|x){0,20}") {
            without_halves(&text);
        }
    }
}
