//! The merged text with its conflict markers, as `git merge-file` writes it.

use super::{Merge3, MergePart, Origin};

/// The names in the conflict markers; empty for none.
#[derive(Debug, Clone, Copy)]
pub struct MarkerNames<'a> {
    /// The name of my version.
    pub mine: &'a str,
    /// The name of their version.
    pub theirs: &'a str,
}

impl Merge3<'_> {
    /// The merged text. Where the versions conflict, it has both, between markers.
    pub fn text(&self, names: MarkerNames<'_>) -> Vec<u8> {
        let mut text = Vec::new();
        let mut copied = 0;
        for part in &self.parts {
            match part.origin {
                Origin::Mine => continue,
                Origin::Theirs => {
                    copy(&mut text, &self.mine[copied..part.mine.start]);
                    copy(&mut text, &self.theirs[part.theirs.clone()]);
                }
                Origin::Both => {
                    copy(&mut text, &self.mine[copied..part.mine.start]);
                    self.write_conflict(&mut text, part, names);
                }
            }
            copied = part.mine.end;
        }
        copy(&mut text, &self.mine[copied..]);
        text
    }

    fn write_conflict(&self, text: &mut Vec<u8>, part: &MergePart, names: MarkerNames<'_>) {
        let line_break: &[u8] = if self.has_carriage_returns(part) { b"\r\n" } else { b"\n" };
        let marker = |text: &mut Vec<u8>, marker: &[u8], name: &str| {
            text.extend_from_slice(marker);
            if !name.is_empty() {
                text.push(b' ');
                text.extend_from_slice(name.as_bytes());
            }
            text.extend_from_slice(line_break);
        };
        let whole_lines = |text: &mut Vec<u8>, lines: &[&[u8]]| {
            copy(text, lines);
            if lines.last().is_some_and(|line| !line.ends_with(b"\n")) {
                text.extend_from_slice(line_break);
            }
        };
        marker(text, b"<<<<<<<", names.mine);
        whole_lines(text, &self.mine[part.mine.clone()]);
        marker(text, b"=======", "");
        whole_lines(text, &self.theirs[part.theirs.clone()]);
        marker(text, b">>>>>>>", names.theirs);
    }

    /// Whether the markers of a conflict end with `\r\n`. For that, the lines above it in both versions and the first
    /// line of the base must end so, as far as they are known.
    fn has_carriage_returns(&self, part: &MergePart) -> bool {
        let mine = ends_in_carriage_return(&self.mine, part.mine.start.saturating_sub(1));
        let theirs = ends_in_carriage_return(&self.theirs, part.theirs.start.saturating_sub(1));
        let base = ends_in_carriage_return(&self.base, 0);
        mine != Some(false) && theirs != Some(false) && base == Some(true)
    }
}

/// Whether a line ends with `\r\n`. If it is the last line and has no ending, the line above decides.
fn ends_in_carriage_return(lines: &[&[u8]], place: usize) -> Option<bool> {
    let line = lines.get(place)?;
    let line = if line.ends_with(b"\n") { line } else { lines.get(place.checked_sub(1)?)? };
    Some(line.ends_with(b"\r\n"))
}

fn copy(text: &mut Vec<u8>, lines: &[&[u8]]) {
    lines.iter().for_each(|line| text.extend_from_slice(line));
}
