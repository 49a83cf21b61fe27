//! Forecasts whether two versions of a file in two checkouts will conflict when git merges them, and on which lines.
//!
//! A forecast reports no conflict where git would merge. If the answer is not known (the text is not shared, the base
//! is missing, the comparison would take too long), it is [`Forecast::Unknown`].

use std::{borrow::Cow, ops::Range};

use serde::Serialize;

use crate::{
    line_map::Hunk,
    lines::{LineNo, LineRange, LineSet},
    merge3::{self, Conflict, NotMerged, merge3, split_lines},
    path::RelPath,
};

/// A version of a file, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version<'a> {
    /// The whole content of the version.
    Content(&'a [u8]),
    /// The differences from the base, as computed by [`merge3::hunks`].
    Hunks(Vec<VersionHunk<'a>>),
    /// The file was deleted, or moved elsewhere.
    Deleted,
    /// Binary content that differs from the base and is not known.
    Binary,
}

/// Lines of the base that a version replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionHunk<'a> {
    /// The lines of the base, and their replacement in the version.
    pub lines: Hunk,
    /// The text of the replacement, with its line endings, if it is known.
    pub text: Option<&'a str>,
}

/// The predicted result of merging two versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Forecast {
    /// No conflict: the versions changed different lines, or made the same change, or one of them is the base.
    Clean,
    /// The versions conflict on these lines.
    SameLines(Vec<Conflict>),
    /// One side changed the file, and the other one deleted it. If it was moved, git may find its new place.
    Deleted {
        /// The side that deleted the file.
        by: Side,
    },
    /// Both sides changed the file, and git treats it as binary.
    Binary,
    /// The result cannot be predicted.
    Unknown(UnknownForecast),
}

/// A side of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The version of the caller's checkout.
    Mine,
    /// The other checkout's version.
    Theirs,
}

/// Why a forecast is not possible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownForecast {
    /// Both sides changed these lines, and their text is not known, so they conflict unless they made the same change.
    /// Empty for a binary file.
    NotShared(Vec<Conflict>),
    /// The base is not available.
    NoBase,
    /// The differences were not computed from this base.
    OtherBase,
    /// The comparison would take too long.
    TooMuchWork,
}

/// Predicts whether my version and theirs will conflict. A file that did not exist at the fork point has an empty base.
///
/// ```
/// use surehand_core::forecast::{Forecast, Version, forecast};
///
/// let base = b"a\nb\nc\n";
/// let (mine, theirs) = (Version::Content(b"a\nB\nc\n"), Version::Content(b"a\nb\nC\n"));
/// let forecast = forecast(base, &mine, &theirs);
/// assert!(matches!(forecast, Forecast::SameLines(conflicts) if conflicts[0].my_change == (1..2)));
/// ```
pub fn forecast(base: &[u8], mine: &Version<'_>, theirs: &Version<'_>) -> Forecast {
    let is_same = mine == theirs && matches!(mine, Version::Content(_) | Version::Deleted);
    if is_same || mine.is_base(base) || theirs.is_base(base) {
        return Forecast::Clean;
    }
    match (mine, theirs) {
        (_, Version::Deleted) => Forecast::Deleted { by: Side::Theirs },
        (Version::Deleted, _) => Forecast::Deleted { by: Side::Mine },
        (Version::Binary, _) | (_, Version::Binary) => Forecast::Unknown(UnknownForecast::NotShared(Vec::new())),
        _ => forecast_texts(base, mine, theirs).unwrap_or_else(Forecast::Unknown),
    }
}

fn forecast_texts(base: &[u8], mine: &Version<'_>, theirs: &Version<'_>) -> Result<Forecast, UnknownForecast> {
    if let (Some(mine), Some(theirs)) = (mine.content(base)?, theirs.content(base)?) {
        return match merge3(base, &mine, &theirs) {
            Ok(merge) if merge.is_clean() => Ok(Forecast::Clean),
            Ok(merge) => Ok(Forecast::SameLines(merge.conflicts())),
            Err(NotMerged::Binary) if mine == theirs => Ok(Forecast::Clean),
            Err(NotMerged::Binary) => Ok(Forecast::Binary),
            Err(NotMerged::TooMuchWork) => Err(UnknownForecast::TooMuchWork),
        };
    }
    let overlaps = merge3::overlaps(&mine.hunks(base)?, &theirs.hunks(base)?);
    // Two sides with different numbers of lines cannot be the same.
    let certain: Vec<Conflict> =
        overlaps.iter().filter(|conflict| conflict.mine.len() != conflict.theirs.len()).cloned().collect();
    match (overlaps.is_empty(), certain.is_empty()) {
        (true, _) => Ok(Forecast::Clean),
        (false, true) => Err(UnknownForecast::NotShared(overlaps)),
        (false, false) => Ok(Forecast::SameLines(certain)),
    }
}

impl Version<'_> {
    fn is_base(&self, base: &[u8]) -> bool {
        match self {
            Version::Content(content) => *content == base,
            Version::Hunks(hunks) => hunks.is_empty(),
            Version::Deleted | Version::Binary => false,
        }
    }

    /// The whole content, if it is known.
    fn content(&self, base: &[u8]) -> Result<Option<Cow<'_, [u8]>>, UnknownForecast> {
        match self {
            Version::Content(content) => Ok(Some((*content).into())),
            Version::Hunks(hunks) => Ok(apply(base, hunks)?.map(Into::into)),
            Version::Deleted | Version::Binary => Ok(None),
        }
    }

    fn hunks(&self, base: &[u8]) -> Result<Vec<Hunk>, UnknownForecast> {
        match self {
            Version::Content(content) => merge3::hunks(base, content).map_err(|error| match error {
                NotMerged::Binary => UnknownForecast::NotShared(Vec::new()),
                NotMerged::TooMuchWork => UnknownForecast::TooMuchWork,
            }),
            Version::Hunks(hunks) => Ok(hunks.iter().map(|hunk| hunk.lines.clone()).collect()),
            Version::Deleted | Version::Binary => Ok(Vec::new()),
        }
    }
}

/// The base with these hunks; `None` if the text of one is not known.
pub fn apply(base: &[u8], hunks: &[VersionHunk<'_>]) -> Result<Option<Vec<u8>>, UnknownForecast> {
    let lines: Vec<&[u8]> = split_lines(base).collect();
    let (mut content, mut copied, mut written) = (Vec::with_capacity(base.len()), 0, 0);
    let mut is_known = true;
    for VersionHunk { lines: Hunk { before, after }, text } in hunks {
        let kept = lines.get(copied..before.start).ok_or(UnknownForecast::OtherBase)?;
        let fits = written + kept.len() == after.start
            && before.start <= before.end
            && after.start <= after.end
            && before.end <= lines.len()
            && text.is_none_or(|text| split_lines(text.as_bytes()).count() == after.len());
        if !fits {
            return Err(UnknownForecast::OtherBase);
        }
        is_known &= text.is_some();
        kept.iter().for_each(|line| content.extend_from_slice(line));
        content.extend_from_slice(text.unwrap_or_default().as_bytes());
        (copied, written) = (before.end, after.end);
    }
    lines[copied..].iter().for_each(|line| content.extend_from_slice(line));
    Ok(is_known.then_some(content))
}

/// A content with the line endings of its base, if it differs in all of them: git can be set to check files out with
/// `\r\n`, and to commit them with `\n`.
pub fn in_line_endings_of<'a>(base: &[u8], content: &'a [u8]) -> Cow<'a, [u8]> {
    let has_return = |line: &[u8]| line.ends_with(b"\r\n");
    let breaks = |line: &&[u8]| line.ends_with(b"\n");
    let is_converted = content.contains(&b'\r')
        && split_lines(content).filter(breaks).all(has_return)
        && base.contains(&b'\n')
        && !split_lines(base).any(has_return);
    if !is_converted {
        return Cow::Borrowed(content);
    }
    let line = |line: &'a [u8]| line.strip_suffix(b"\r\n").map_or([line, b""], |line| [line, b"\n"]);
    Cow::Owned(split_lines(content).flat_map(line).collect::<Vec<_>>().concat())
}

impl Conflict {
    /// The lines that I changed, for people. If I removed lines there, these are the neighbours of the gap.
    pub fn my_lines(&self) -> LineRange {
        lines_or_neighbours(&self.my_change)
    }

    /// The lines of my version that they changed, for people. If they inserted lines there, these are the neighbours.
    pub fn their_lines(&self) -> LineRange {
        lines_or_neighbours(&self.their_change)
    }
}

fn lines_or_neighbours(lines: &Range<usize>) -> LineRange {
    let around = lines.start.saturating_sub(1)..lines.start + 1;
    LineRange::from_indexes(lines.clone()).or(LineRange::from_indexes(around)).expect("there is a line")
}

impl Forecast {
    /// The certain or the possible conflicts, whichever the forecast has.
    pub fn conflicts(&self) -> &[Conflict] {
        match self {
            Forecast::SameLines(conflicts) | Forecast::Unknown(UnknownForecast::NotShared(conflicts)) => conflicts,
            _ => &[],
        }
    }

    /// This forecast, limited to the conflicts on these lines of mine: those that an edit touched.
    #[must_use]
    pub fn on_lines(&self, edited: &LineSet) -> Forecast {
        let on_them = |conflicts: &Vec<Conflict>| -> Vec<Conflict> {
            let is_edited = |conflict: &&Conflict| conflict.my_lines().iter().any(|line: LineNo| edited.contains(line));
            conflicts.iter().filter(is_edited).cloned().collect()
        };
        let left = match self {
            Forecast::SameLines(conflicts) => Forecast::SameLines(on_them(conflicts)),
            Forecast::Unknown(UnknownForecast::NotShared(conflicts)) if !conflicts.is_empty() => {
                Forecast::Unknown(UnknownForecast::NotShared(on_them(conflicts)))
            }
            other => return other.clone(),
        };
        if left.conflicts().is_empty() { Forecast::Clean } else { left }
    }
}

/// Changes of another agent that will conflict with mine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Collision {
    /// The other agent, such as `codex 71c0`; `None` if only the checkout is known.
    pub agent: Option<String>,
    /// The branch of the other checkout.
    pub branch: Option<String>,
    /// The file that both checkouts changed.
    pub path: RelPath,
    /// Seconds since the other agent last changed the file.
    pub seconds_ago: Option<u64>,
    /// The predicted result of the merge.
    pub forecast: Forecast,
}
