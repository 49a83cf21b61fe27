//! Rows of `rg --json`, each with the path, the number and the text of a line.

use serde::Deserialize;

use super::matching::OutputMatching;
use crate::lines::LineNo;

#[derive(Deserialize)]
struct SearchEvent {
    data: SearchMatch,
}

#[derive(Deserialize)]
struct SearchMatch {
    path: JsonText,
    lines: JsonText,
    line_number: u32,
}

#[derive(Deserialize)]
struct JsonText {
    text: String,
}

/// Counts the matching lines and their context.
pub(super) fn take_json(matching: &mut OutputMatching<'_>) {
    for row in 0..matching.rows.len() {
        let shown = matching.rows.row(row);
        if !["{\"type\":\"match\"", "{\"type\":\"context\""].iter().any(|start| shown.starts_with(start)) {
            continue;
        }
        let Ok(SearchEvent { data }) = serde_json::from_str(shown) else { continue };
        let Some(first) = LineNo::new(data.line_number) else { continue };
        let Some(file) = matching.names.meant_by(&data.path.text).first().copied() else { continue };
        let text = matching.candidates[file].text;
        for (by, line) in data.lines.text.lines().enumerate() {
            let index = first.index() + by;
            if index < text.line_count() && text.line(LineNo::at_index(index)) == line {
                matching.show(file, index);
                matching.used[row] = true;
            }
        }
    }
}
