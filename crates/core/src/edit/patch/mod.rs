//! Patches: changes of several files in one text, as a `*** Begin Patch` envelope or as a unified diff. [`parse`] reads either
//! into the same values, and `patch_splices` finds the places of the chunks in a file, exactly or not at all. Which files may be
//! changed is left to the plan.

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

/// A patch as it was given, in its order. Nothing about the files is known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch<'a> {
    /// At least one; a file may be named more than once.
    pub files: Vec<FilePatch<'a>>,
}

/// What becomes of one file. Paths are as the patch spells them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilePatch<'a> {
    /// A new file.
    Add {
        /// Its name.
        path: Cow<'a, str>,
        /// All of it.
        content: String,
    },
    /// The file goes.
    Delete {
        /// Its name.
        path: Cow<'a, str>,
    },
    /// The file changes, or gets another name, or both.
    Update {
        /// Its name before.
        path: Cow<'a, str>,
        /// Its name after, if that is another one.
        move_to: Option<Cow<'a, str>>,
        /// Empty only where the file is moved.
        chunks: Vec<PatchChunk<'a>>,
    },
}

impl FilePatch<'_> {
    /// The name of the file: before, if it is moved.
    pub fn path(&self) -> &str {
        match self {
            FilePatch::Add { path, .. } | FilePatch::Delete { path } | FilePatch::Update { path, .. } => path,
        }
    }
}

/// The files that a patch names, by their names before and after. Of one that cannot be understood, those in its headers.
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

/// For each chunk of a patch, and each file that it adds, the lines that `pick` takes, as a text.
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

/// Several patches one after the other as one; nothing if they are not all of the same kind.
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

/// A run of lines with what changes in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchChunk<'a> {
    /// Lines that stand above it, such as a class and then a function; from the outermost to the nearest.
    pub headers: Vec<&'a str>,
    /// At least one.
    pub rows: Vec<PatchRow<'a>>,
    /// Where the patch says that it stands.
    pub stated: StatedPlace,
    /// What the patch says about the end of the last line of the file.
    pub last_newline: LastNewline,
}

/// A line of a chunk, without its ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchRow<'a> {
    /// It is there and stays.
    Keep(&'a str),
    /// It is there and goes.
    Remove(&'a str),
    /// It comes.
    Add(&'a str),
}

/// Where a patch says that a chunk stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatedPlace {
    /// Wherever its lines are.
    Nowhere,
    /// Its last old line is the last line of the file.
    EndOfFile,
    /// Its first old line is this one.
    At(LineNo),
    /// It has no old lines and comes below this many lines.
    After(usize),
}

/// What `\ No newline at end of file` says. Whatever it says, the chunk reaches the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastNewline {
    /// The patch does not speak of it.
    Unsaid,
    /// There was none before and there is none after.
    Absent,
    /// There was none before; the new last line ends.
    Added,
    /// The new last line does not end.
    Removed,
}

impl<'a> PatchChunk<'a> {
    /// The lines as they are before.
    pub fn old_rows(&self) -> impl Iterator<Item = &'a str> {
        self.rows.iter().filter_map(|row| row.before())
    }

    /// The lines as they are after.
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
    /// The line of the patch, from 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub why: String,
}
