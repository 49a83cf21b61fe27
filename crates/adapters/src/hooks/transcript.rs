//! Reads the transcripts that clients write, one JSON object per line: whether messages were removed from the context,
//! and which files the client put into it.

use std::{
    fs::File,
    io::{BufRead, BufReader, Seek, SeekFrom},
};

use serde_json::Value;

use super::event::{ShownLines, line_number};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TranscriptState {
    /// Whether messages were replaced or rewound.
    pub is_rewritten: bool,
    /// The offset up to which it was read; `None` if it cannot be read.
    pub until: Option<u64>,
}

/// The start of a line that replaces all messages, or rewinds the last ones.
const REWRITING: &[&str] = &[r#"{"$set":{"messages":"#, r#"{"$rewindTo":"#];

/// Reads the lines that were added since offset `from`.
pub(super) fn read_changes(path: &str, from: Option<u64>) -> TranscriptState {
    let nothing = TranscriptState { is_rewritten: false, until: None };
    let Ok(mut file) = File::open(path) else { return nothing };
    let Ok(end) = file.seek(SeekFrom::End(0)) else { return nothing };
    // A shorter file is a new transcript.
    let from = from.filter(|from| *from <= end).unwrap_or_default();
    if file.seek(SeekFrom::Start(from)).is_err() {
        return nothing;
    }
    let mut state = TranscriptState { is_rewritten: false, until: Some(from) };
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        if !line.ends_with(b"\n") {
            // The line is still being written.
            break;
        }
        state.is_rewritten |= REWRITING.iter().any(|start| line.starts_with(start.as_bytes()));
        state.until = state.until.map(|until| until + line.len() as u64);
        line.clear();
    }
    state
}

/// The lines of a file that the client attached since the last compaction. The transcript may lag behind.
pub(super) fn attached(record: &str, path: &str) -> Vec<ShownLines> {
    const FORGOT: &str = r#""subtype":"compact_boundary""#;
    let Ok(file) = File::open(record) else { return Vec::new() };
    let mut lines = BufReader::new(file);
    let (mut shown, mut line) = (Vec::new(), Vec::new());
    while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line);
        if text.contains(FORGOT) && is_boundary(&text) {
            shown.clear();
        } else if text.contains(r#""type":"attachment""#) {
            shown.extend(attachment(&text).filter(|shown| shown.path == path));
        }
        line.clear();
    }
    shown
}

fn is_boundary(line: &str) -> bool {
    serde_json::from_str(line).is_ok_and(|line: Value| line["subtype"] == "compact_boundary")
}

fn attachment(line: &str) -> Option<ShownLines> {
    let line: Value = serde_json::from_str(line).ok()?;
    let attachment = &line["attachment"];
    let file = &attachment["content"]["file"];
    if line["type"] != "attachment" || attachment["type"] != "file" {
        return None;
    }
    let start = line_number(file, "startLine").unwrap_or(1);
    Some(ShownLines::new(file["filePath"].as_str()?, start, file["content"].as_str()?))
}
