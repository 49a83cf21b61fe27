//! The effects of an edit without the numbers in it, so that edits that go back and forth or count up are recognized as
//! equal.

use std::hash::Hash;

use surehand_engine::core::{
    RelPath,
    file_diff::{DiffHunk, DiffKind, FileDiff, RowKind},
    outcome::ChangeOutcome,
};

/// The effects of an edit on files.
#[derive(Debug, Default)]
pub(super) struct EditEffects {
    /// One for each place, or for the whole file.
    pub signatures: Vec<EditSignature>,
    /// The place of the edit, if it replaces lines at one place only.
    pub place: Option<EditPlace>,
}

/// A file, and the first line that is replaced.
pub(super) type EditPlace = (RelPath, usize);

/// The change at one place, without numbers and white space.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum EditSignature {
    /// A replacement and its reverse are equal.
    Replaced(EditPlace, [String; 2]),
    Inserted(RelPath, String),
    /// Deleted lines are gone, so each deletion is a new one.
    Deleted(RelPath, usize, String, u32),
    /// The file was created, deleted or moved, or is binary.
    Whole(RelPath, RelPath, &'static str),
}

impl EditEffects {
    pub(super) fn of(changed: &ChangeOutcome) -> Self {
        let diffs: Vec<FileDiff> = changed.described_files().map(|file| file.unified_diff()).collect();
        let mut effects = Self { signatures: diffs.iter().flat_map(signatures).collect(), place: None };
        if let [EditSignature::Replaced(place, _)] = effects.signatures.as_slice() {
            effects.place = Some(place.clone());
        }
        effects
    }
}

fn signatures(diff: &FileDiff) -> Vec<EditSignature> {
    let whole_file = |change| vec![EditSignature::Whole(diff.path_before().clone(), diff.path_after().clone(), change)];
    match diff.kind() {
        DiffKind::Unchanged => Vec::new(),
        DiffKind::Created => whole_file("created"),
        DiffKind::Deleted => whole_file("deleted"),
        DiffKind::Renamed => whole_file("moved"),
        DiffKind::Edited if diff.is_binary() => whole_file("edited"),
        DiffKind::Edited => diff.hunks().iter().map(|hunk| of_hunk(diff.path_after(), hunk)).collect(),
    }
}

fn of_hunk(path: &RelPath, hunk: &DiffHunk) -> EditSignature {
    let text = |kind: RowKind| {
        let rows = hunk.rows.iter().filter(|row| row.kind == kind);
        rows.flat_map(|row| row.text.chars()).filter(|c| !c.is_whitespace() && !c.is_numeric()).collect::<String>()
    };
    let number = |kind: RowKind| hunk.rows.iter().filter(|row| row.kind == kind).count();
    let before = hunk.rows.iter().take_while(|row| row.kind == RowKind::Same).count();
    let first = hunk.start_before + before;
    match (number(RowKind::Removed), number(RowKind::Added)) {
        (0, _) => EditSignature::Inserted(path.clone(), text(RowKind::Added)),
        (removed, 0) => EditSignature::Deleted(path.clone(), first, text(RowKind::Removed), removed as u32),
        _ => {
            let mut texts = [text(RowKind::Removed), text(RowKind::Added)];
            texts.sort();
            EditSignature::Replaced((path.clone(), first), texts)
        }
    }
}
