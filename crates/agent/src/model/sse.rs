//! A parser for server-sent events: bytes in, events out, however the bytes are split. Written by hand because
//! the available parsers need async streams and drop the nonstandard `error` field of llama.cpp.

use std::mem;

/// The longest line and the longest event.
pub(super) const LONGEST: usize = 10 * 1024 * 1024;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// Empty if the event has no name.
    pub name: String,
    /// The lines of data, joined.
    pub data: String,
}

/// A line or an event is longer than [`LONGEST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventTooLong;

#[derive(Debug, Default)]
pub(super) struct SseParser {
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    /// A line feed that follows belongs to the same line ending.
    is_after_return: bool,
    is_after_first_line: bool,
}

impl SseParser {
    /// Parses the next bytes and adds the events that they complete.
    pub(super) fn feed(&mut self, mut bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), EventTooLong> {
        while !bytes.is_empty() {
            if mem::take(&mut self.is_after_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            if self.event.data.len() + self.line.len() + piece.len() > LONGEST {
                return Err(EventTooLong);
            }
            self.line.extend_from_slice(piece);
            let Some(end) = end else { break };
            self.is_after_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            self.end_line(events);
        }
        Ok(())
    }

    /// Ends the stream. The standard drops an event without an empty line after it, but some servers end like this.
    pub(super) fn finish(mut self, events: &mut Vec<SseEvent>) {
        self.end_line(events);
        self.end_event(events);
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) {
        let bytes = mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let is_first = !mem::replace(&mut self.is_after_first_line, true);
        let line = text.strip_prefix('\u{feff}').filter(|_| is_first).unwrap_or(&text);
        if line.is_empty() {
            return self.end_event(events);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "data" => self.add_data(value),
            // Not in the standard: llama.cpp reports errors in this field.
            "error" => {
                field.clone_into(&mut self.event.name);
                self.add_data(value);
            }
            _ => {}
        }
    }

    fn add_data(&mut self, value: &str) {
        if mem::replace(&mut self.has_data, true) {
            self.event.data.push('\n');
        }
        self.event.data.push_str(value);
    }

    fn end_event(&mut self, events: &mut Vec<SseEvent>) {
        let event = mem::take(&mut self.event);
        if mem::take(&mut self.has_data) {
            events.push(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<SseEvent> {
        let (mut parser, mut events) = (SseParser::default(), Vec::new());
        for chunk in chunks {
            parser.feed(chunk, &mut events).unwrap();
        }
        parser.finish(&mut events);
        events
    }

    #[track_caller]
    fn check(stream: &str, expected: &[(&str, &str)]) {
        let events = parse([stream.as_bytes()]);
        let found: Vec<_> = events.iter().map(|event| (event.name.as_str(), event.data.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn an_event_ends_with_an_empty_line() {
        check("data: a\n\ndata: b\n\n", &[("", "a"), ("", "b")]);
        check("event: ping\ndata: {}\n\n", &[("ping", "{}")]);
    }

    #[test]
    fn lines_end_in_three_ways() {
        check("data: a\r\n\r\ndata: b\r\rdata: c\n\n", &[("", "a"), ("", "b"), ("", "c")]);
        check("data: a\r\ndata: b\r\n\r\n", &[("", "a\nb")]);
    }

    #[test]
    fn one_blank_after_the_colon_is_not_data() {
        check("data:a\n\ndata:  b\n\ndata\n\n", &[("", "a"), ("", " b"), ("", "")]);
    }

    #[test]
    fn comments_and_unknown_fields_are_nothing() {
        check(": PROCESSING\n\nid: 7\nretry: 10\n\ndata: a\n\n", &[("", "a")]);
    }

    #[test]
    fn a_name_without_data_is_no_event() {
        check("event: ping\n\ndata: a\n\n", &[("", "a")]);
    }

    #[test]
    fn the_last_event_needs_no_empty_line() {
        check("data: a\n\ndata: [DONE]", &[("", "a"), ("", "[DONE]")]);
    }

    #[test]
    fn a_byte_order_mark_is_nothing() {
        check("\u{feff}data: a\n\n\u{feff}data: b\n\n", &[("", "a")]);
    }

    #[test]
    fn an_error_field_is_an_event() {
        check("error: {\"code\":500}\n\n", &[("error", "{\"code\":500}")]);
    }

    #[test]
    fn a_line_without_end_is_too_long() {
        let (mut parser, mut events) = (SseParser::default(), Vec::new());
        let piece = vec![b'x'; LONGEST / 4];
        let fed: Vec<_> = (0..5).map(|_| parser.feed(&piece, &mut events)).collect();
        assert_eq!(fed, [Ok(()), Ok(()), Ok(()), Ok(()), Err(EventTooLong)]);
    }

    #[test]
    fn an_event_without_end_is_too_long() {
        let (mut parser, mut events) = (SseParser::default(), Vec::new());
        let line = format!("data: {}\n", "x".repeat(LONGEST / 4));
        let fed: Vec<_> = (0..5).map(|_| parser.feed(line.as_bytes(), &mut events)).collect();
        assert_eq!(fed, [Ok(()), Ok(()), Ok(()), Err(EventTooLong), Err(EventTooLong)]);
    }

    proptest! {
        #[test]
        fn events_are_the_same_however_the_bytes_are_cut(
            pieces in prop::collection::vec(
                prop::sample::select(vec!["data:", "data: ", "event: a", ": c", "é", "😀", "{\"x\": 1}", "\n", "\r\n", "\r", "\n\n", "\u{feff}"]),
                0..60,
            ),
            cuts in prop::collection::vec(1_usize..9, 1..40),
        ) {
            let stream: String = pieces.concat();
            let (mut rest, mut chunks) = (stream.as_bytes(), Vec::new());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, tail) = rest.split_at((*cut).min(rest.len()));
                chunks.push(chunk);
                rest = tail;
            }
            prop_assert_eq!(parse(chunks), parse([stream.as_bytes()]));
        }

        #[test]
        fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            parse([bytes.as_slice()]);
        }
    }
}
