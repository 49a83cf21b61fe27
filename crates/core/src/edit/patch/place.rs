//! Finds the places of chunks in a file. Lines are compared whole and exactly, except for their endings. A chunk that
//! fits nowhere, or in more than one place, is refused.

use std::ops::Range;

use super::{LastNewline, PatchChunk, PatchRow, StatedPlace};
use crate::{
    edit::{
        find::nearest,
        lines::{LineReplacement, splices_of, to_splice},
    },
    line_map::Splice,
    lines::{LineNo, LineRange, LineSet},
    refusal::Cause,
    text::{LineEnding, Text},
};

/// A chunk that cannot be applied, so that the file is not changed at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkRefused {
    /// The number of the chunk in its file, from 1.
    pub chunk: usize,
    /// Why it cannot be applied.
    pub cause: Cause,
}

/// The splices for these chunks in this text, in order.
pub(crate) fn patch_splices<'a>(text: &Text, chunks: &'a [PatchChunk<'a>]) -> Result<Vec<Splice<'a>>, ChunkRefused> {
    let places = place_chunks(text, chunks)?;
    let runs = chunks.iter().zip(&places).enumerate();
    let runs = runs.map(|(index, (chunk, place))| changed_runs(index + 1, chunk, place.start));
    let runs: Vec<Vec<LineReplacement<'a>>> = runs.collect();
    check_apart(&runs)?;
    let mut placed: Vec<LineReplacement<'a>> = runs.into_iter().flatten().collect();
    placed.sort_by_key(|run| (run.start, run.end, run.number));
    let mut splices = with_last_newline(text, &placed, last_newline(chunks));
    splices.retain(|splice| text.as_str()[splice.range.clone()] != *splice.with);
    if splices.is_empty() && !chunks.is_empty() {
        return Err(ChunkRefused { chunk: 1, cause: Cause::NoChange });
    }
    Ok(splices)
}

/// The lines of `picture` that chunks identify by quoting: the old lines of each chunk that occurs once in both texts,
/// and the lines beside them. A chunk that is placed by its line number or headers alone quotes nothing.
pub(crate) fn quoted_lines(picture: &Text, now: &Text, chunks: &[PatchChunk<'_>]) -> LineSet {
    let (picture, now) = (ChunkSearch::new(picture), ChunkSearch::new(now));
    let quoted = |chunk: &PatchChunk<'_>| {
        let old: Vec<&str> = chunk.old_rows().collect();
        let (&[start], &[_]) = (&picture.runs(&old)[..], &now.runs(&old)[..]) else { return None };
        LineRange::from_indexes(start.saturating_sub(1)..(start + old.len() + 1).min(picture.lines.len()))
    };
    chunks.iter().filter_map(quoted).collect()
}

/// The lines of each chunk in the text (0-based, half-open; empty for a chunk without old lines).
fn place_chunks(text: &Text, chunks: &[PatchChunk<'_>]) -> Result<Vec<Range<usize>>, ChunkRefused> {
    let search = ChunkSearch::new(text);
    let refused = |index: usize| move |cause: Cause| ChunkRefused { chunk: index + 1, cause };
    let candidates: Vec<Vec<usize>> = chunks
        .iter()
        .enumerate()
        .map(|(index, chunk)| search.candidates(chunk).map_err(refused(index)))
        .collect::<Result<_, _>>()?;
    let numbers = StatedNumbers::of(chunks, &candidates);
    let mut places: Vec<Range<usize>> = Vec::with_capacity(chunks.len());
    for (index, (chunk, candidates)) in chunks.iter().zip(&candidates).enumerate() {
        let above = places.last().map_or(0, |place| place.end);
        let start = choose_start(chunk, candidates, above, numbers).map_err(refused(index))?;
        places.push(start..start + chunk.old_rows().count());
    }
    Ok(places)
}

/// Whether the line numbers of a patch are those of the text.
#[derive(Debug, Clone, Copy)]
enum StatedNumbers {
    Right,
    /// A chunk that fits in only one place is not at its stated line.
    Wrong {
        chunk: usize,
        stated: LineNo,
        found: LineNo,
    },
}

impl StatedNumbers {
    fn of(chunks: &[PatchChunk<'_>], candidates: &[Vec<usize>]) -> Self {
        for (index, (chunk, candidates)) in chunks.iter().zip(candidates).enumerate() {
            if let (StatedPlace::At(stated), [only]) = (chunk.stated, candidates.as_slice()) {
                let found = LineNo::at_index(*only);
                if found != stated {
                    return StatedNumbers::Wrong { chunk: index + 1, stated, found };
                }
            }
        }
        StatedNumbers::Right
    }
}

/// The place of a chunk: the only candidate, or the one at the stated line, or the only one below the previous chunk.
///
/// The numbers of a unified diff refer to the text before any of its chunks, which is the text we search.
fn choose_start(chunk: &PatchChunk<'_>, candidates: &[usize], above: usize, numbers: StatedNumbers) -> Result<usize, Cause> {
    match (chunk.stated, numbers) {
        (StatedPlace::After(_), StatedNumbers::Wrong { chunk, stated, found }) => {
            let why = format!(
                "the chunk has nothing but its line number, and the numbers of the patch are off (chunk {chunk} says line {stated} \
                 and stands on line {found}): give the lines above and below with ' '"
            );
            return Err(Cause::BadRange { why });
        }
        (StatedPlace::At(line), StatedNumbers::Right) if candidates.contains(&line.index()) => return Ok(line.index()),
        _ => {}
    }
    if let [only] = candidates {
        return Ok(*only);
    }
    let mut below = candidates.iter().copied().filter(|start| *start >= above);
    match (below.next(), below.next()) {
        (Some(only), None) => Ok(only),
        _ => Err(ambiguous(chunk, candidates)),
    }
}

fn ambiguous(chunk: &PatchChunk<'_>, candidates: &[usize]) -> Cause {
    // New lines go below a header, so the header's line is reported.
    let back = usize::from(chunk.old_rows().next().is_none());
    // More lines than any reader needs.
    const MOST: usize = 1000;
    Cause::Ambiguous { lines: candidates.iter().take(MOST).map(|start| LineNo::at_index(start.saturating_sub(back))).collect() }
}

struct ChunkSearch<'t> {
    text: &'t Text,
    lines: Vec<&'t str>,
}

impl<'t> ChunkSearch<'t> {
    fn new(text: &'t Text) -> Self {
        Self { text, lines: text.lines().map(|(_, line)| line).collect() }
    }

    /// The index of the first line for each place where the chunk fits, from top to bottom; at least one.
    fn candidates(&self, chunk: &PatchChunk<'_>) -> Result<Vec<usize>, Cause> {
        let old: Vec<&str> = chunk.old_rows().collect();
        let all = if old.is_empty() { self.insertions(chunk)? } else { self.matches(chunk, &old)? };
        let must_end = chunk.stated == StatedPlace::EndOfFile || chunk.last_newline != LastNewline::Unsaid;
        if !must_end {
            return Ok(all);
        }
        let at_end = self.lines.len() - old.len().min(self.lines.len());
        if all.contains(&at_end) {
            return Ok(vec![at_end]);
        }
        let why = format!(
            "the chunk fits {}, but the patch says that it ends the file, which has {} lines",
            in_words(&all),
            self.lines.len()
        );
        Err(Cause::BadRange { why })
    }

    /// Every place where these lines occur together. No lines occur nowhere.
    fn runs(&self, old: &[&str]) -> Vec<usize> {
        if old.is_empty() {
            return Vec::new();
        }
        self.lines.windows(old.len()).enumerate().filter(|(_, lines)| *lines == old).map(|(at, _)| at).collect()
    }

    fn matches(&self, chunk: &PatchChunk<'_>, old: &[&str]) -> Result<Vec<usize>, Cause> {
        let all = self.runs(old);
        if all.is_empty() {
            let new: Vec<&str> = chunk.new_rows().collect();
            return Err(nearest(self.text, &old.join("\n"), &new.join("\n")));
        }
        if chunk.headers.is_empty() {
            return Ok(all);
        }
        let headers = HeaderBlocks::find(self, &chunk.headers)?;
        // Models tend to begin a chunk with the very line that its header names.
        for last in [LastHeader::Above, LastHeader::FirstLine] {
            let below = headers.narrow(&all, last);
            if !below.is_empty() {
                return Ok(below);
            }
        }
        let why =
            format!("the chunk fits {}, but that is not below its @@ lines ({})", in_words(&all), chunk.headers.join(" / "));
        Err(Cause::BadRange { why })
    }

    /// The places where a chunk without old lines may go.
    fn insertions(&self, chunk: &PatchChunk<'_>) -> Result<Vec<usize>, Cause> {
        let count = self.lines.len();
        let after = match chunk.stated {
            StatedPlace::After(after) => after,
            StatedPlace::At(line) => line.index() + 1,
            StatedPlace::Nowhere if !chunk.headers.is_empty() => {
                let headers = HeaderBlocks::find(self, &chunk.headers)?;
                let below: Vec<usize> = headers.nearest().map(|line| line + 1).collect();
                let below = headers.narrow(&below, LastHeader::Above);
                let why =
                    || format!("no line reads {:?} below the other @@ lines of the chunk", chunk.headers.last().unwrap_or(&""));
                return if below.is_empty() { Err(Cause::BadRange { why: why() }) } else { Ok(below) };
            }
            StatedPlace::Nowhere | StatedPlace::EndOfFile => count,
        };
        if after > count {
            let why = format!("the chunk adds lines after line {after}, but the file has {count} lines");
            return Err(Cause::BadRange { why });
        }
        Ok(vec![after])
    }
}

fn in_words(starts: &[usize]) -> String {
    match starts {
        [only] => format!("at line {}", LineNo::at_index(*only)),
        [first, ..] => format!("in {} places, the first at line {}", starts.len(), LineNo::at_index(*first)),
        [] => "nowhere".to_owned(),
    }
}

/// The lines that headers name, each with its block: the line itself and the more deeply indented lines below it. The
/// outermost header comes first.
struct HeaderBlocks(Vec<Vec<Range<usize>>>);

impl HeaderBlocks {
    /// Finds all places of each header. Indentation is ignored, because headers are written without it.
    fn find(search: &ChunkSearch<'_>, headers: &[&str]) -> Result<Self, Cause> {
        let places_of = |header: &&str| {
            let named = |at: &usize| search.lines[*at].trim() == header.trim();
            let places: Vec<Range<usize>> =
                (0..search.lines.len()).filter(named).map(|at| at..block_end(&search.lines, at)).collect();
            if places.is_empty() { Err(nearest(search.text, header, "")) } else { Ok(places) }
        };
        headers.iter().map(places_of).collect::<Result<_, _>>().map(Self)
    }

    /// The places of the last header.
    fn nearest(&self) -> impl Iterator<Item = usize> {
        self.0.last().into_iter().flatten().map(|block| block.start)
    }

    /// The starts that all headers lead to. If some of them are inside the blocks of their headers, only those count: a
    /// header names the function or class of the chunk, and the next one may have equal lines.
    fn narrow(&self, starts: &[usize], last: LastHeader) -> Vec<usize> {
        let led_to: Vec<(usize, HeaderReach)> =
            starts.iter().filter_map(|start| Some((*start, self.lead_to(*start, last)?))).collect();
        let any_inside = led_to.iter().any(|(_, within)| *within == HeaderReach::Blocks);
        led_to.into_iter().filter(|(_, within)| !any_inside || *within == HeaderReach::Blocks).map(|(start, _)| start).collect()
    }

    /// Whether the headers lead to a line: for each header, the last place above the next header counts.
    fn lead_to(&self, start: usize, last: LastHeader) -> Option<HeaderReach> {
        let mut within = HeaderReach::Blocks;
        let mut bound = match last {
            LastHeader::Above => start,
            LastHeader::FirstLine => start + 1,
        };
        // A chunk may begin with the line that closes a block; a header inside the block cannot be that line.
        let mut inner = start;
        for places in self.0.iter().rev() {
            let block = &places[places.partition_point(|block| block.start < bound).checked_sub(1)?];
            if inner > block.end {
                within = HeaderReach::TheFile;
            }
            bound = block.start;
            inner = block.start + 1;
        }
        Some(within)
    }
}

/// The place of the innermost header of a chunk.
#[derive(Debug, Clone, Copy)]
enum LastHeader {
    /// Above the chunk, as it should be.
    Above,
    /// It may also be the first line of the chunk.
    FirstLine,
}

/// How far a line is from the headers that lead to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeaderReach {
    /// Inside the block of each.
    Blocks,
    /// Somewhere below them, outside a block.
    TheFile,
}

/// The end of the more deeply indented lines below `at`; `at` itself if there are none. Blank lines are skipped.
fn block_end(lines: &[&str], at: usize) -> usize {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let below = lines.iter().enumerate().skip(at + 1).filter(|(_, line)| !line.trim().is_empty());
    below.take_while(|(_, line)| depth(line) > depth(lines[at])).last().map_or(at, |(last, _)| last + 1)
}

/// Chunks may share context lines at their edges, but not lines between the changes of one of them.
fn check_apart(chunks: &[Vec<LineReplacement<'_>>]) -> Result<(), ChunkRefused> {
    let core = |runs: &Vec<LineReplacement<'_>>| Some((runs.first()?.start, runs.last()?.end, runs.first()?.number));
    let mut cores: Vec<(usize, usize, usize)> = chunks.iter().filter_map(core).collect();
    cores.sort_unstable();
    for pair in cores.windows(2) {
        let ((_, end, one), (start, _, other)) = (pair[0], pair[1]);
        if start < end {
            let (first, second) = (one.min(other), one.max(other));
            return Err(ChunkRefused { chunk: second, cause: Cause::Overlap { first, second } });
        }
    }
    Ok(())
}

/// The lines of a chunk that change: one run for each group between kept rows, so that kept lines stay byte for byte.
fn changed_runs<'a>(number: usize, chunk: &PatchChunk<'a>, start: usize) -> Vec<LineReplacement<'a>> {
    let mut runs = Vec::new();
    let mut at = start;
    for changed in chunk.rows.split(|row| matches!(row, PatchRow::Keep(_))) {
        let end = at + changed.iter().filter(|row| row.before().is_some()).count();
        if !changed.is_empty() {
            runs.push(LineReplacement { number, start: at, end, lines: changed.iter().filter_map(|row| row.after()).collect() });
        }
        at = end + 1;
    }
    runs
}

/// The newline mark of the chunk at the end of the file.
fn last_newline(chunks: &[PatchChunk<'_>]) -> LastNewline {
    chunks.iter().map(|chunk| chunk.last_newline).find(|mark| *mark != LastNewline::Unsaid).unwrap_or(LastNewline::Unsaid)
}

/// The splices, with the final newline that the patch demands, else with the file's own.
fn with_last_newline<'a>(text: &Text, placed: &[LineReplacement<'a>], mark: LastNewline) -> Vec<Splice<'a>> {
    let is_open = text.last_line().is_some_and(|last| text.ending(last) == LineEnding::None);
    let all_ended = || placed.iter().map(|run| to_splice(text, run)).collect::<Vec<_>>();
    match (mark, is_open) {
        (LastNewline::Added, true) => all_ended(),
        (LastNewline::Removed, false) => {
            let mut splices = all_ended();
            if let Some(last) = splices.last_mut().filter(|last| last.range.end == text.as_str().len()) {
                let with = last.with.strip_suffix('\n').unwrap_or(&last.with);
                last.with = with.strip_suffix('\r').unwrap_or(with).to_owned().into();
            }
            splices
        }
        _ => splices_of(text, placed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::patch::tests::apply;

    /// An envelope of these chunks.
    fn envelope(chunks: &str) -> String {
        format!("*** Begin Patch\n*** Update File: f\n{chunks}*** End Patch\n")
    }

    fn unified(hunks: &str) -> String {
        format!("--- a/f\n+++ b/f\n{hunks}")
    }

    #[track_caller]
    fn check(content: &str, chunks: &str, result: &str) {
        assert_eq!(apply(content, &envelope(chunks)).as_deref(), Ok(result));
    }

    #[track_caller]
    fn check_unified(content: &str, hunks: &str, result: &str) {
        assert_eq!(apply(content, &unified(hunks)).as_deref(), Ok(result));
    }

    #[track_caller]
    fn check_ambiguous(content: &str, patch: &str, chunk: usize, lines: &[u32]) {
        let lines = lines.iter().map(|line| LineNo::new(*line).unwrap()).collect();
        assert_eq!(apply(content, patch), Err(ChunkRefused { chunk, cause: Cause::Ambiguous { lines } }));
    }

    /// The number of the chunk that is refused, and the reason in short.
    #[track_caller]
    fn refused(content: &str, patch: &str) -> String {
        let refused = apply(content, patch).unwrap_err();
        let cause = match refused.cause {
            Cause::NotFound { already_at: Some(line), .. } => format!("not found, already at {line}"),
            Cause::NotFound { nearest: Some(_), .. } => "not found, something like it shown".to_owned(),
            Cause::NotFound { nearest: None, .. } => "not found".to_owned(),
            Cause::BadRange { why } => why,
            cause => format!("{cause:?}"),
        };
        format!("{}: {cause}", refused.chunk)
    }

    #[test]
    fn a_chunk_that_fits_once_is_applied() {
        check("a\nb\nc\n", " a\n-b\n+B\n c\n", "a\nB\nc\n");
        check("a\nb\nc\n", "-b\n", "a\nc\n");
        check("a\nb\nc\n", " b\n+x\n+y\n", "a\nb\nx\ny\nc\n");
        check("a\nb\nc\n", "-a\n-b\n-c\n", "");
        check("a\nb\nc\nd\n", "@@\n-a\n+A\n@@\n-d\n+D\n", "A\nb\nc\nD\n");
        // The only possible place may be above the previous chunk.
        check("a\nb\nc\nd\n", "@@\n-d\n+D\n@@\n-a\n+A\n", "A\nb\nc\nD\n");
    }

    #[test]
    fn lines_are_compared_whole_and_exactly() {
        assert_eq!(refused("    let total = 1;\n", &envelope("-let total = 1;\n+x\n")), "1: not found, something like it shown");
        assert_eq!(refused("let total = 1; \n", &envelope("-let total = 1;\n+x\n")), "1: not found, something like it shown");
        assert_eq!(refused("a\nb\nc\n", &envelope(" a\n-c\n")), "1: not found, something like it shown");
        assert_eq!(refused("let new = 2;\n", &envelope("-gone\n+let new = 2;\n")), "1: not found, already at 1");
        assert_eq!(refused("a\n", &envelope("-a\n+b\n@@\n-zzzz\n")), "2: not found");
        assert_eq!(refused("", &envelope("-a\n+b\n")), "1: not found");
    }

    #[test]
    fn endings_are_kept_line_by_line() {
        check("a\r\nb\nc\r\n", " a\n-b\n+B\n+D\n c\n", "a\r\nB\nD\nc\r\n");
        check("a\r\nb\r\n", "-a\n+x\n+y\n", "x\r\ny\r\nb\r\n");
        check("a\r\nb\r\n", " b\n+c\n", "a\r\nb\r\nc\r\n");
        check("a\nb\r\nc\n", "-a\n-b\n-c\n+x\n+y\n+z\n", "x\ny\r\nz\n");
        check("\u{feff}a\nb\n", "-a\n+A\n b\n", "\u{feff}A\nb\n");
        check("\u{feff}a\n", "+0\n a\n", "\u{feff}0\na\n");
        check("\u{feff}", "+a\n", "\u{feff}a\n");
    }

    #[test]
    fn a_last_line_without_a_newline_stays_so() {
        check("a\nb", "-b\n+B\n", "a\nB");
        check("a\nb", " a\n-b\n", "a");
        check("a\nb", " b\n+c\n", "a\nb\nc");
        check("a\r\nb", "+c\n+d\n", "a\r\nb\r\nc\r\nd");
        check("a\nb", "-a\n+A\n b\n", "A\nb");
        check("a\nb", "-a\n-b\n", "");
    }

    #[test]
    fn unless_the_patch_says_otherwise() {
        let mark = "\\ No newline at end of file\n";
        check_unified("a\nb", &format!("@@ -2 +2 @@\n-b\n{mark}+b\n"), "a\nb\n");
        check_unified("a\r\nb", &format!("@@ -2 +2,2 @@\n-b\n{mark}+b\n+c\n"), "a\r\nb\r\nc\r\n");
        check_unified("a\nb\n", &format!("@@ -2 +2 @@\n-b\n+b\n{mark}"), "a\nb");
        check_unified("a\r\nb\r\n", &format!("@@ -2 +2 @@\n-b\n+B\n{mark}"), "a\r\nB");
        check_unified("a\nb", &format!("@@ -1,2 +1 @@\n a\n-b\n{mark}"), "a\n");
        check_unified("a\nb", &format!("@@ -1,2 +1,2 @@\n-a\n+A\n b\n{mark}"), "A\nb");
        check_unified("", &format!("@@ -0,0 +1 @@\n+a\n{mark}"), "a");
        // The patch is wrong about the end of the file, but does not mean to change it.
        check_unified("a\nb\n", &format!("@@ -2 +2 @@\n-b\n{mark}+B\n{mark}"), "a\nB\n");
        check_unified("a\nb\n", &format!("@@ -2 +2 @@\n-b\n{mark}+B\n"), "a\nB\n");
        assert_eq!(
            refused("b\na\n", &unified(&format!("@@ -1 +1 @@\n-b\n+B\n{mark}"))),
            "1: the chunk fits at line 1, but the patch says that it ends the file, which has 2 lines"
        );
    }

    #[test]
    fn a_last_newline_is_removed_in_any_encoding() {
        let text = Text::new(b"\xff\xfea\0\n\0".to_vec()).unwrap();
        let patch = unified("@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n");
        let patch = crate::edit::patch::parse(&patch).unwrap();
        let crate::edit::patch::FilePatch::Update { chunks, .. } = &patch.files[0] else { panic!("an update") };
        let splices = patch_splices(&text, chunks).unwrap();
        assert_eq!(crate::line_map::splice(&text, &splices).0, "\u{feff}b");
    }

    #[test]
    fn of_several_places_none_is_guessed() {
        check_ambiguous("x\na\nx\n", &envelope("-x\n+y\n"), 1, &[1, 3]);
        check_ambiguous("x\nx\nx\n", &envelope("-x\n-x\n"), 1, &[1, 2]);
        // Only one place is below the previous chunk.
        check("x\na\nx\n", "@@\n-a\n+A\n@@\n-x\n+y\n", "x\nA\ny\n");
        check_ambiguous("x\na\nx\nx\n", &envelope("@@\n-a\n+A\n@@\n-x\n+y\n"), 2, &[1, 3, 4]);
        check_ambiguous("x\nx\na\n", &envelope("@@\n-a\n+A\n@@\n-x\n+y\n"), 2, &[1, 2]);
    }

    #[test]
    fn a_stated_line_tells_equal_places_apart() {
        check_unified("x\na\nx\n", "@@ -3 +3 @@\n-x\n+y\n", "x\na\ny\n");
        check_unified("x\na\nx\n", "@@ -1 +1 @@\n-x\n+y\n", "y\na\nx\n");
        // The number is only a hint if the lines fit once.
        check_unified("x\na\nb\n", "@@ -9 +9 @@\n-a\n+A\n", "x\nA\nb\n");
        // The numbers are those of the text before all chunks.
        check_unified("a\nx\nx\n", "@@ -1 +1,3 @@\n a\n+b\n+c\n@@ -2 +4 @@\n-x\n+y\n", "a\nb\nc\ny\nx\n");
        check_ambiguous("x\na\nx\n", &unified("@@ -2 +2 @@\n-x\n+y\n"), 1, &[1, 3]);
        // If one chunk shows that the numbers are off, no other chunk is placed by them.
        check_ambiguous("0\nx\nx\na\n", &unified("@@ -2 +2 @@\n-x\n+y\n@@ -3 +3 @@\n-a\n+A\n"), 1, &[2, 3]);
    }

    const FUNCTIONS: &str = "\
class A:
    def f(self):
        x = 1
        return x

    def g(self):
        x = 1
        return x

class B:
    def f(self):
        x = 1
";

    #[test]
    fn headers_narrow_down() {
        let changed = |at: usize| {
            let lines =
                FUNCTIONS.lines().enumerate().map(|(index, line)| (index, if index + 1 == at { "        x = 2" } else { line }));
            lines.map(|(_, line)| format!("{line}\n")).collect::<String>()
        };
        let chunk = "-        x = 1\n+        x = 2\n";
        check(FUNCTIONS, &format!("@@ class B:\n{chunk}"), &changed(12));
        check(FUNCTIONS, &format!("@@ def g(self):\n{chunk}"), &changed(7));
        check(FUNCTIONS, &format!("@@ class A:\n@@     def f(self):\n{chunk}"), &changed(3));
        check(FUNCTIONS, &format!("@@ class A:\n@@ def g(self):\n{chunk}"), &changed(7));
        check(FUNCTIONS, &format!("@@ class B:\n@@ def f(self):\n{chunk}"), &changed(12));
        check_ambiguous(FUNCTIONS, &envelope(&format!("@@ class A:\n{chunk}")), 1, &[3, 7]);
        check_ambiguous(FUNCTIONS, &envelope(&format!("@@ def f(self):\n{chunk}")), 1, &[3, 12]);
        // Without indentation there are no blocks, so the place right below counts.
        check_ambiguous("T\n\nx\ny\nx\n", &envelope("@@ T\n-x\n+X\n"), 1, &[3, 5]);
        // The line that closes a block belongs to it.
        check(
            "fn a() {\n    x\n}\nfn b() {\n    y\n}\n",
            "@@ fn a() {\n-}\n+} // a\n",
            "fn a() {\n    x\n} // a\nfn b() {\n    y\n}\n",
        );
        // The header again as the first line.
        check(FUNCTIONS, &format!("@@ def g(self):\n     def g(self):\n{chunk}"), &changed(7));
        check(FUNCTIONS, &format!("@@ class B:\n@@ def f(self):\n     def f(self):\n{chunk}"), &changed(12));
    }

    #[test]
    fn a_header_that_does_not_lead_there_is_refused() {
        assert_eq!(
            refused("fn three() {\n    x\n}\n", &envelope("@@ fn thre() {\n-    x\n")),
            "1: not found, something like it shown"
        );
        assert_eq!(
            refused("a\nb\nc\n", &envelope("@@ b\n-a\n+A\n")),
            "1: the chunk fits at line 1, but that is not below its @@ lines (b)"
        );
        assert_eq!(
            refused("a\nb\nc\n", &envelope("@@ b\n@@ a\n-c\n")),
            "1: the chunk fits at line 3, but that is not below its @@ lines (b / a)"
        );
        assert_eq!(
            refused("a\nb\nc\n", &envelope("@@ b\n@@ a\n+c\n")),
            "1: no line reads \"a\" below the other @@ lines of the chunk"
        );
    }

    #[test]
    fn the_end_of_the_file_is_one_place() {
        check("x\na\nx\n", "@@\n-x\n+y\n*** End of File\n", "x\na\ny\n");
        check("x\na\nx", "@@\n-x\n+y\n*** End of File\n", "x\na\ny");
        assert_eq!(
            refused("x\na\n", &envelope("@@\n-x\n+y\n*** End of File\n")),
            "1: the chunk fits at line 1, but the patch says that it ends the file, which has 2 lines"
        );
        assert_eq!(
            refused("x\nx\na\n", &envelope("@@\n-x\n+y\n*** End of File\n")),
            "1: the chunk fits in 2 places, the first at line 1, but the patch says that it ends the file, which has 3 lines"
        );
    }

    #[test]
    fn added_lines_alone_have_a_place() {
        check("a\nb\n", "+c\n", "a\nb\nc\n");
        check("a\nb\n", "@@\n+c\n*** End of File\n", "a\nb\nc\n");
        check("", "+c\n", "c\n");
        check("a\nb\n", "@@ a\n+c\n", "a\nc\nb\n");
        check("a\nb", "@@ b\n+c\n", "a\nb\nc");
        check("a\nb\n", "@@\n+c\n@@\n+d\n", "a\nb\nc\nd\n");
        check_ambiguous("a\nb\na\n", &envelope("@@ a\n+c\n"), 1, &[1, 3]);
        check(
            FUNCTIONS,
            "@@ class B:\n@@ def f(self):\n+        y\n",
            &FUNCTIONS.replace("class B:\n    def f(self):\n", "class B:\n    def f(self):\n        y\n"),
        );
        check_unified("a\nb\n", "@@ -0,0 +1 @@\n+c\n", "c\na\nb\n");
        check_unified("a\nb\n", "@@ -1,0 +2 @@\n+c\n", "a\nc\nb\n");
        check_unified("a\nb", "@@ -2,0 +3 @@\n+c\n", "a\nb\nc");
        check_unified("", "@@ -0,0 +1 @@\n+c\n", "c\n");
        assert_eq!(
            refused("a\nb\n", &unified("@@ -3,0 +4 @@\n+c\n")),
            "1: the chunk adds lines after line 3, but the file has 2 lines"
        );
        assert_eq!(
            refused("a\nb\nc\n", &unified("@@ -1,0 +2 @@\n+x\n@@ -2 +3 @@\n-c\n")),
            "1: the chunk has nothing but its line number, and the numbers of the patch are off (chunk 2 says line 2 and stands on line 3): \
             give the lines above and below with ' '"
        );
    }

    #[test]
    fn chunks_share_context_at_most() {
        check("a\nb\nc\n", "@@\n-a\n b\n@@\n b\n-c\n", "b\n");
        check("a\nb\nc\n", "@@\n b\n-c\n@@\n-a\n b\n", "b\n");
        assert_eq!(refused("a\nb\nc\n", &envelope("@@\n-a\n b\n-c\n@@\n-b\n+B\n")), "2: Overlap { first: 1, second: 2 }");
        assert_eq!(refused("a\nb\nc\n", &envelope("@@\n-a\n-b\n@@\n-b\n-c\n")), "2: Overlap { first: 1, second: 2 }");
        assert_eq!(refused("a\nb\nc\n", &envelope("@@\n-a\n-b\n@@ a\n+x\n")), "2: Overlap { first: 1, second: 2 }");
        check("a\nb\nc\n", "@@\n-a\n@@\n-b\n+B\n@@ b\n+x\n", "B\nx\nc\n");
    }

    #[test]
    fn a_patch_without_effect_is_refused() {
        assert_eq!(refused("a\nb\n", &envelope("-a\n+a\n b\n")), "1: NoChange");
        assert_eq!(refused("a\nb\n", &envelope(" a\n b\n")), "1: NoChange");
        // Beside a real change, it does no harm.
        check("a\nb\n", "@@\n-a\n+a\n@@\n-b\n+B\n", "a\nB\n");
        assert_eq!(patch_splices(&Text::new(b"a".to_vec()).unwrap(), &[]), Ok(vec![]));
    }

    #[test]
    fn kept_lines_are_not_written_again() {
        let text = Text::new(b"a\nb\nc\nd\ne\n".to_vec()).unwrap();
        let patch = envelope(" a\n-b\n+B\n c\n+x\n d\n-e\n");
        let patch = crate::edit::patch::parse(&patch).unwrap();
        let [crate::edit::patch::FilePatch::Update { chunks, .. }] = &patch.files[..] else { panic!() };
        let splices = patch_splices(&text, chunks).unwrap();
        let ranges: Vec<_> = splices.iter().map(|splice| (splice.range.clone(), &*splice.with)).collect();
        assert_eq!(ranges, [(2..4, "B\n"), (6..6, "x\n"), (8..10, "")]);
    }
}
