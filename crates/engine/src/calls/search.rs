//! The `search` call. Exactly the lines that are shown count as seen.
//!
//! ripgrep's crates search the tree, but only to find the files that match. The session then reads each of those files
//! and searches it again, so that the lines shown, recorded and on disk belong to one version.

use std::os::fd::OwnedFd;

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch, sinks::Bytes};
use serde::Serialize;
use surehand_core::{
    Cause, Done, LineNo, Present, Refusal, RelPath, Text, Tool,
    outcome::{
        SearchResult, SearchScope, SkippedFiles,
        search::{MatchCollector, SearchDisplay, SearchHit},
    },
    render::LineNumbers,
};

use super::list::{check_is_wanted, walk};
use crate::{
    disk::walk::{EntryKind, PathTarget, WalkEntry, WalkVisitor, path_target},
    session::Session,
};

/// Searches files line by line. Lines that are shown in full count as seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SearchCall {
    /// A regular expression; a match lies within one line.
    pub pattern: String,
    /// A directory or file in any spelling; `None` means the whole workspace.
    pub path: Option<String>,
    /// Only files that match this pattern.
    pub glob: Option<String>,
    /// The maximum number of matching lines to show. All are counted.
    pub limit: Option<usize>,
    /// The number of lines to show before and after each match.
    pub context: usize,
    /// Whether to ignore case.
    pub case_insensitive: bool,
    /// Whether the pattern is literal text.
    pub fixed: bool,
    /// Whether each line comes with its anchor.
    pub anchors: bool,
}

const DEFAULT_LIMIT: usize = 100;

pub(super) fn search(session: &mut Session, call: &SearchCall) -> Result<Done, Refusal> {
    let limit = call.limit.unwrap_or(DEFAULT_LIMIT).min(session.limits().read_lines);
    let matcher = build_matcher(call)?;
    let workspace = session.workspace().clone();
    let limits = &workspace.config().limits;
    let show = SearchDisplay { numbers: LineNumbers::with_anchors(call.anchors), context: call.context, limit, limits };
    let path_target = path_target(workspace.root(), call.path.as_deref().unwrap_or_default())?;
    let candidates = match &path_target {
        PathTarget::File(path) => SearchCandidates::one(session, path.clone())?,
        PathTarget::Dir(below) => {
            let searcher = || FileSearcher::new(matcher.clone(), PatternLetters::of(&call.pattern), limits.file_bytes);
            let walked = walk(Tool::SearchFiles, session, below.as_ref(), call.glob.as_deref(), searcher)?;
            SearchCandidates::of(walked.visitors, walked.left_out)
        }
    };
    let SearchCandidates { files, searched, binary, mut left_out } = candidates;
    let scope = SearchScope { area: path_target.area(), glob: call.glob.clone() };
    let mut collector = MatchCollector::new(show, call.pattern.clone(), scope);
    for (path, hits) in files {
        check_is_wanted(session)?;
        if collector.is_full() {
            collector.leave(&path, hits);
        } else {
            take_hits(session, &matcher, &path, &mut collector, &mut left_out);
        }
    }
    left_out.sort();
    Ok(Done::Found(SearchResult { searched, binary, left_out, ..collector.finish() }))
}

/// Collects the matches in the current content of a file, as far as there is room.
fn take_hits(
    session: &mut Session,
    matcher: &RegexMatcher,
    path: &RelPath,
    collector: &mut MatchCollector<'_>,
    left_out: &mut SkippedFiles,
) {
    let gathered = match session.gather(path.as_str()) {
        Ok(gathered) => gathered,
        Err(refusal) => return left_out.not_shown.push((path.clone(), unshowable_kind(&refusal.cause))),
    };
    match gathered.present {
        Present::Text(text) => {
            collector.add(path, &gathered.path, &text, &find_hits(matcher, &text));
        }
        Present::Absent => {}
        Present::Blob(_, cause) | Present::Unreadable(cause) => left_out.not_shown.push((path.clone(), unshowable_kind(&cause))),
    }
}

fn find_hits(matcher: &RegexMatcher, text: &Text) -> Vec<SearchHit> {
    let mut hits = Vec::new();
    let mut searcher = search_builder().line_number(true).bom_sniffing(false).build();
    let body = &text.as_str().as_bytes()[text.body_start()..];
    let collect = |number: u64, line: &[u8]| {
        let Some(number) = u32::try_from(number).ok().and_then(LineNo::new) else { return Ok(false) };
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let content = line.strip_suffix(b"\r").unwrap_or(line);
        let at = matcher.find(content).unwrap_or_default().map_or(0..0, |at| at.start()..at.end());
        hits.push(SearchHit { line: number, at });
        Ok(true)
    };
    // The search reads from memory, and the pattern has been tested, so it cannot fail.
    let _ = searcher.search_slice(matcher, body, Bytes(collect));
    hits
}

/// Compiles the pattern of a call, or refuses it with the reason.
fn build_matcher(call: &SearchCall) -> Result<RegexMatcher, Refusal> {
    let bad =
        |why: String| Refusal::of_call(Cause::BadArguments { why: format!("{}: pattern: {why}", Tool::SearchFiles.name()) });
    const ONE_LINE: &str =
        "a match lies within one line, so a pattern has no line break; search for one of the lines, with context";
    if call.pattern.is_empty() {
        return Err(Refusal::of_call(Cause::EmptyPattern));
    }
    if call.pattern.contains(['\n', '\r']) {
        return Err(bad(ONE_LINE.to_owned()));
    }
    if let (false, Err(error)) = (call.fixed, regex_syntax::parse(&call.pattern)) {
        let (problem, at) = match &error {
            regex_syntax::Error::Parse(error) => (error.kind().to_string(), error.span().start.column),
            regex_syntax::Error::Translate(error) => (error.kind().to_string(), error.span().start.column),
            error => (error.to_string(), 1),
        };
        return Err(bad(format!(
            "not a regular expression at character {at}: {problem}. Escape what is meant literally with \\, or set fixed"
        )));
    }
    RegexMatcherBuilder::new()
        .case_insensitive(call.case_insensitive)
        .fixed_strings(call.fixed)
        .multi_line(true)
        // As in read_file, a line excludes its line ending.
        .crlf(true)
        .build(&call.pattern)
        .map_err(|error| match error.kind() {
            grep_regex::ErrorKind::NotAllowed(_) | grep_regex::ErrorKind::Banned(_) => bad(ONE_LINE.to_owned()),
            _ => bad(error.to_string()),
        })
}

fn search_builder() -> SearcherBuilder {
    let mut builder = SearcherBuilder::new();
    // Binary files are skipped before the search, by the rule of reads.
    builder.line_terminator(LineTerminator::crlf()).binary_detection(BinaryDetection::none());
    builder
}

/// The files that may match, in order.
#[derive(Default)]
struct SearchCandidates {
    files: Vec<(RelPath, usize)>,
    searched: usize,
    binary: usize,
    left_out: SkippedFiles,
}

impl SearchCandidates {
    /// The single file that the call names. Whether it matches is checked later.
    fn one(session: &mut Session, path: RelPath) -> Result<Self, Refusal> {
        let gathered = session.gather(path.as_str())?;
        match gathered.present {
            Present::Text(_) => Ok(Self { files: vec![(path, 0)], searched: 1, ..Self::default() }),
            Present::Absent => Err(Refusal::of(&path, Cause::NothingThere)),
            Present::Blob(_, cause) | Present::Unreadable(cause) => Err(Refusal::of(&path, cause)),
        }
    }

    fn of(searchers: Vec<FileSearcher>, left_out: SkippedFiles) -> Self {
        let mut found = Self { left_out, ..Self::default() };
        for searcher in searchers {
            found.files.extend(searcher.files);
            found.searched += searcher.searched;
            found.binary += searcher.binary;
            found.left_out.too_large.extend(searcher.too_large);
            found.left_out.unreadable.extend(searcher.unreadable);
        }
        found.files.sort_unstable();
        found
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternLetters {
    /// Characters whose bytes are the same in nearly every encoding.
    Ascii,
    /// Other characters, for which a file in another encoding must be decoded.
    Any,
}

impl PatternLetters {
    fn of(pattern: &str) -> Self {
        if pattern.is_ascii() { PatternLetters::Ascii } else { PatternLetters::Any }
    }
}

/// Searches the files that one thread of a walk visits.
struct FileSearcher {
    matcher: RegexMatcher,
    letters: PatternLetters,
    searcher: Searcher,
    max_bytes: u64,
    buffer: Vec<u8>,
    files: Vec<(RelPath, usize)>,
    searched: usize,
    binary: usize,
    too_large: Vec<(RelPath, u64)>,
    unreadable: Vec<(String, String)>,
}

/// A buffer that grew larger is freed after the file.
const KEPT_BUFFER: usize = 1 << 20;

impl WalkVisitor for FileSearcher {
    fn visit(&mut self, entry: &WalkEntry<'_>) {
        if entry.kind != EntryKind::File {
            return;
        }
        if let Err(errno) = self.search(entry) {
            self.unreadable.push((entry.path.to_owned(), std::io::Error::from(errno).to_string()));
        }
    }
}

impl FileSearcher {
    fn new(matcher: RegexMatcher, letters: PatternLetters, max_bytes: u64) -> Self {
        let searcher = search_builder().line_number(false).build();
        let (buffer, files, too_large, unreadable) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { matcher, letters, searcher, max_bytes, buffer, files, searched: 0, binary: 0, too_large, unreadable }
    }

    fn search(&mut self, entry: &WalkEntry<'_>) -> rustix::io::Result<()> {
        let Some((file, stat)) = entry.open()? else { return Ok(()) };
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        if size > self.max_bytes {
            self.too_large.push((entry.rel_path(), size));
            return Ok(());
        }
        let length = fill(&mut self.buffer, &file, size as usize)?;
        let bytes = &self.buffer[..length];
        if is_binary(bytes) {
            self.binary += 1;
            return Ok(());
        }
        self.searched += 1;
        let decoded = (self.letters == PatternLetters::Any && str::from_utf8(bytes).is_err()).then(|| Text::new(bytes.to_vec()));
        let bytes = match &decoded {
            Some(Ok(text)) => text.as_str().as_bytes(),
            _ => bytes,
        };
        let mut lines = 0;
        // The search reads from memory, and the pattern has been tested, so it cannot fail.
        let _ = self.searcher.search_slice(&self.matcher, bytes, LineCounter(&mut lines));
        if lines > 0 {
            self.files.push((entry.rel_path(), lines));
        }
        if self.buffer.len() > KEPT_BUFFER {
            self.buffer = Vec::new();
        }
        Ok(())
    }
}

/// Reads a file of about this size, and returns the number of bytes.
fn fill(buffer: &mut Vec<u8>, file: &OwnedFd, size: usize) -> rustix::io::Result<usize> {
    let mut length = 0;
    loop {
        if buffer.len() < (length + 1).max(size) {
            buffer.resize((size + 1).max(2 * length).max(64 << 10), 0);
        }
        match rustix::io::read(file, &mut buffer[length..])? {
            0 => return Ok(length),
            read => length += read,
        }
        // Bytes that another program appends meanwhile are ignored, as if they were appended later.
        if length == size {
            return Ok(length);
        }
    }
}

/// Whether a file is skipped: by the rule of [`Text`], except that UTF-16 with a byte order mark is searched.
fn is_binary(bytes: &[u8]) -> bool {
    let is_utf16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    !is_utf16 && bytes[..bytes.len().min(8192)].contains(&0)
}

struct LineCounter<'a>(&'a mut usize);

impl Sink for LineCounter<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, _: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        *self.0 += 1;
        Ok(true)
    }
}

fn unshowable_kind(cause: &Cause) -> &'static str {
    match cause {
        Cause::Encoding { .. } => "broken text",
        Cause::Binary { kind, .. } | Cause::NotAFile { kind } => kind,
        _ => "it changed meanwhile",
    }
}
