//! Patches: changes of several files in one text, as a `*** Begin Patch` envelope or as a unified diff. [`parse`] reads
//! both into the same values. `patch_splices` finds the exact places of the chunks in a file, or fails. The plan
//! decides which files may be changed.

use std::borrow::Cow;

use super::Edit;
use crate::lines::LineNo;

mod envelope;
mod parse;
mod place;
#[cfg(test)]
mod tests;
mod unified;

pub use parse::parse;
pub use place::ChunkRefused;
pub(crate) use place::{patch_splices, quoted_lines};

/// A parsed patch. Nothing is known about the files yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch<'a> {
    /// The sections of the patch, at least one; a file may occur several times.
    pub files: Vec<FilePatch<'a>>,
}

/// The change of one file. Paths are as the patch spells them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilePatch<'a> {
    /// Create a file with this content.
    Add {
        /// The path of the new file.
        path: Cow<'a, str>,
        /// The content of the new file.
        content: String,
    },
    /// Delete the file at this path.
    Delete {
        /// The path of the file.
        path: Cow<'a, str>,
    },
    /// Edit or move a file, or both.
    Update {
        /// The current path of the file.
        path: Cow<'a, str>,
        /// The new path, if the file is moved.
        move_to: Option<Cow<'a, str>>,
        /// The changes, from top to bottom; empty only if the file is moved without edits.
        chunks: Vec<PatchChunk<'a>>,
    },
}

impl FilePatch<'_> {
    /// The path of the file; for a move the one before.
    pub fn path(&self) -> &str {
        match self {
            FilePatch::Add { path, .. } | FilePatch::Delete { path } | FilePatch::Update { path, .. } => path,
        }
    }
}

/// The files in a patch, by their paths before and after. For a patch that cannot be parsed, the files in its headers.
pub fn named_files(patch: &str) -> Vec<String> {
    let Ok(parsed) = parse(patch) else { return envelope::named_files(patch) };
    let names = |file: &FilePatch<'_>| {
        let to = match file {
            FilePatch::Update { move_to, .. } => move_to.as_deref(),
            FilePatch::Add { .. } | FilePatch::Delete { .. } => None,
        };
        [Some(file.path()), to].into_iter().flatten().map(str::to_owned).collect::<Vec<_>>()
    };
    parsed.files.iter().flat_map(names).collect()
}

/// For each chunk of a patch and each file that it adds, the text of the rows that `pick` selects.
pub(super) fn rows_of_chunks(patch: &str, pick: impl Fn(&PatchRow<'_>) -> Option<String>) -> Vec<String> {
    let Ok(parsed) = parse(patch) else { return Vec::new() };
    let text = |rows: &[PatchRow<'_>]| rows.iter().filter_map(&pick).collect::<Vec<_>>().join("\n");
    let of_file = |file: &FilePatch<'_>| match file {
        FilePatch::Add { content, .. } => vec![text(&content.lines().map(PatchRow::Add).collect::<Vec<_>>())],
        FilePatch::Update { chunks, .. } => chunks.iter().map(|chunk| text(&chunk.rows)).collect(),
        FilePatch::Delete { .. } => Vec::new(),
    };
    parsed.files.iter().flat_map(of_file).filter(|text| !text.is_empty()).collect()
}

/// Joins several patches, or returns `None` if they have different formats.
pub(super) fn joined(edits: &[&Edit]) -> Option<Edit> {
    const ENVELOPE: (&str, &str) = ("*** Begin Patch", "*** End Patch");
    let inside = |edit: &&Edit| match edit {
        Edit::Patch { patch } => {
            let patch = patch.trim().strip_prefix(ENVELOPE.0)?.strip_suffix(ENVELOPE.1)?;
            Some(patch.trim_start_matches('\n').to_owned())
        }
        _ => None,
    };
    let inside: Option<String> = edits.iter().map(inside).collect();
    Some(Edit::Patch { patch: format!("{}\n{}{}\n", ENVELOPE.0, inside?, ENVELOPE.1) })
}

/// A run of lines with its changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchChunk<'a> {
    /// Lines above it that name its class, function and so on, outermost first.
    pub headers: Vec<&'a str>,
    /// The context, removed and added lines; at least one.
    pub rows: Vec<PatchRow<'a>>,
    /// The place that the patch gives for the chunk.
    pub stated: StatedPlace,
    /// Whether the patch says that the file ends without a newline.
    pub last_newline: LastNewline,
}

/// A line of a chunk, without its ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchRow<'a> {
    /// A context line, which stays.
    Keep(&'a str),
    /// A line that is removed.
    Remove(&'a str),
    /// A line that is added.
    Add(&'a str),
}

/// The place that a patch gives for a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatedPlace {
    /// The patch gives no place.
    Nowhere,
    /// Its last old line is the last line of the file.
    EndOfFile,
    /// Its first old line is this one.
    At(LineNo),
    /// The chunk has no old lines, and goes below this many lines.
    After(usize),
}

/// The meaning of `\ No newline at end of file`. If the mark is present, the chunk reaches the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastNewline {
    /// The patch has no such mark.
    Unsaid,
    /// The last line has no newline, neither before nor after.
    Absent,
    /// The last line had no newline, and gets one.
    Added,
    /// The new last line has no newline.
    Removed,
}

impl<'a> PatchChunk<'a> {
    /// The context and removed lines, as the file has them.
    pub fn old_rows(&self) -> impl Iterator<Item = &'a str> {
        self.rows.iter().filter_map(|row| row.before())
    }

    /// The context and added lines, as the file gets them.
    pub fn new_rows(&self) -> impl Iterator<Item = &'a str> {
        self.rows.iter().filter_map(|row| row.after())
    }
}

impl<'a> PatchRow<'a> {
    fn before(self) -> Option<&'a str> {
        match self {
            PatchRow::Keep(line) | PatchRow::Remove(line) => Some(line),
            PatchRow::Add(_) => None,
        }
    }

    fn after(self) -> Option<&'a str> {
        match self {
            PatchRow::Keep(line) | PatchRow::Add(line) => Some(line),
            PatchRow::Remove(_) => None,
        }
    }
}

/// A patch that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch: {why}")]
pub struct BadPatch {
    /// The line of the patch where parsing failed, 1-based.
    pub line: usize,
    /// The problem, and how to fix it.
    pub why: String,
}
