//! Finds the instructions for a directory (`AGENTS.md` there and in each parent up to the root), and returns those that
//! a session has not received yet. `core::instructions` decides which are new and writes the text.
//!
//! Most directories have none, and a search in every call would cost more than the call itself. So the result for a
//! directory is cached until the watcher reports a change. Without a watcher, the stamp of the directory is compared
//! once per call.

use std::collections::BTreeMap;

use surehand_core::{
    ContentHash, Present, RelPath, Stamp, Text,
    instructions::{Instruction, InstructionRecord, InstructionSettings, ToldInstructions, chain},
    render,
};

use crate::{
    disk::{export_dir::is_internal, read_file::stamp_of_directory},
    file_cache::FileCache,
    file_tracker::FileTracker,
    watch::WatchHints,
    workspace::Workspace,
};

/// The maximum size of an instruction file.
const MOST_BYTES: u64 = 1 << 20;

const MOST_FILES: usize = 20;

/// More hints than this count as "everything", because checking the few relevant directories is cheaper.
const MOST_HINTS: usize = 100;

/// The instructions found for the directories of a session.
#[derive(Debug, Default)]
pub(crate) struct InstructionCache {
    /// By directory; the root is empty.
    checked: BTreeMap<String, CheckedDirectory>,
    /// The directories that must be checked after any hint.
    unsure: Vec<String>,
    round: u64,
    /// The instructions that an untracked session has received.
    given: InstructionRecord,
    /// Whether the files that the session's client loads by itself are recorded.
    pub(crate) is_client_heeded: bool,
}

/// The instruction files that a client gives its model itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientInstructions {
    /// The names that it looks for in the working directory and its parents, in the client's spelling.
    pub names: &'static [&'static str],
    /// If one of these exists in the same directory or at the root, the client ignores `names`. A file in the same
    /// directory may include them.
    pub instead: &'static [&'static str],
    /// Whether it also looks in the directories of files that its own tools read.
    pub where_files_are_read: bool,
}

#[derive(Debug, Clone, Default)]
struct CheckedDirectory {
    round: u64,
    /// The stamp of a directory without instruction files.
    bare: Option<Stamp>,
    found: Option<InstructionFile>,
    /// Whether every change comes with a hint about the directory or the name. The target of a link may change without
    /// one.
    is_sure: bool,
    /// Whether the watcher has been asked to watch this directory even if it is ignored.
    is_watched: bool,
}

#[derive(Debug, Clone)]
struct InstructionFile {
    at: RelPath,
    /// The canonical path, so that two links to one file count once.
    path: RelPath,
    version: ContentHash,
}

/// The sources for finding the instructions of a session.
pub(crate) struct InstructionSources<'a> {
    pub workspace: &'a Workspace,
    /// Records the instructions that the session has received; `None` if it is untracked.
    pub tracker: Option<&'a mut FileTracker>,
    pub files: &'a mut FileCache,
}

impl InstructionCache {
    /// Invalidates the directories in which something may have changed.
    pub(crate) fn note_hints(&mut self, hints: &WatchHints, settings: &InstructionSettings) {
        match hints {
            WatchHints::Paths(paths) if paths.is_empty() => {}
            WatchHints::Paths(paths) if paths.len() <= MOST_HINTS => {
                std::mem::take(&mut self.unsure).iter().for_each(|directory| drop(self.checked.remove(directory)));
                paths.iter().for_each(|path| self.recheck(path, settings));
            }
            WatchHints::Paths(_) | WatchHints::Everything => self.round += 1,
        }
    }

    fn recheck(&mut self, path: &RelPath, settings: &InstructionSettings) {
        if settings.names.iter().any(|name| name.eq_ignore_ascii_case(path.name())) {
            let directory = path.as_str().rsplit_once('/').map_or("", |(directory, _)| directory);
            self.checked.remove(directory);
        }
        self.checked.remove(path.as_str());
        let beneath = format!("{path}/");
        let inside = self.checked.range(beneath.clone()..).map(|(directory, _)| directory);
        let inside: Vec<String> = inside.take_while(|directory| directory.starts_with(&beneath)).cloned().collect();
        inside.iter().for_each(|directory| drop(self.checked.remove(directory)));
    }

    /// Forgets the instructions that an untracked session has received.
    pub(crate) fn forget(&mut self) {
        self.given = InstructionRecord::default();
        self.is_client_heeded = false;
    }

    /// Takes the instructions for these directories that the session has not received yet, parents first; `None` is the
    /// root. Instructions that do not fit into one reply are left for the next one.
    pub(crate) fn take_new(
        &mut self,
        sources: &mut InstructionSources<'_>,
        directories: &[Option<RelPath>],
    ) -> Option<ToldInstructions> {
        if sources.workspace.config().instructions.names.is_empty() {
            return None;
        }
        let mut news: Vec<(InstructionFile, Instruction)> = Vec::new();
        for directory in directories.iter().flat_map(outside_internals) {
            let new = self.news(sources, directory);
            news.extend(new.filter(|(new, _)| news.iter().all(|(found, _)| found.version != new.version)));
            if news.len() == MOST_FILES {
                break;
            }
        }
        if news.is_empty() { None } else { Some(self.record_given(sources, news)) }
    }

    /// The instructions of one directory, if the session does not have them.
    fn news(&mut self, sources: &mut InstructionSources<'_>, directory: &str) -> Option<(InstructionFile, Instruction)> {
        self.check_directory(sources, directory);
        let found = self.checked.get(directory)?.found.as_ref()?;
        given_record(&self.given, sources).news(&found.path, found.version)?;
        // The file is read again, because the reply must show the current content.
        let Some(InstructionEntry::Text(found, text)) = read(sources, found.at.clone()) else { return None };
        let news = given_record(&self.given, sources).news(&found.path, found.version)?;
        if has_seen(sources, &found) {
            self.mark_given(sources, &found);
            return None;
        }
        let instruction = Instruction { directory: RelPath::new(directory).ok(), path: found.at.clone(), text, news };
        Some((found, instruction))
    }

    fn record_given(
        &mut self,
        sources: &mut InstructionSources<'_>,
        news: Vec<(InstructionFile, Instruction)>,
    ) -> ToldInstructions {
        let (found, instructions): (Vec<InstructionFile>, Vec<Instruction>) = news.into_iter().unzip();
        let instructions = render::instructions::fit(instructions, &sources.workspace.config().instructions);
        let given = &found[..instructions.parts.len()];
        // The text has no line numbers, so it allows no edit of the file: it is given, but not seen.
        given.iter().for_each(|found| self.mark_given(sources, found));
        instructions
    }

    fn mark_given(&mut self, sources: &mut InstructionSources<'_>, found: &InstructionFile) {
        match &mut sources.tracker {
            Some(tracker) => tracker.record_given(sources.workspace, &found.path, found.version),
            None => self.given.give(found.path.clone(), found.version),
        }
    }

    /// Finds the effective file of a directory, if it may have changed.
    fn check_directory(&mut self, sources: &mut InstructionSources<'_>, directory: &str) {
        if self.checked.get(directory).is_some_and(|checked| checked.round == self.round) {
            return;
        }
        let before = self.checked.remove(directory);
        let mut checked = find_instructions(sources, directory, before.as_ref());
        checked.round = self.round;
        let is_same = |before: &CheckedDirectory| before.is_watched && before.path() == checked.path();
        checked.is_watched = before.is_some_and(|before| is_same(&before));
        if let (false, Some(watch)) = (checked.is_watched, sources.workspace.watch()) {
            paths_to_watch(directory, &checked, &sources.workspace.config().instructions)
                .for_each(|path| watch.watch_path(&path));
            checked.is_watched = true;
        }
        self.unsure.retain(|unsure| unsure != directory);
        if !checked.is_sure {
            self.unsure.push(directory.to_owned());
        }
        self.checked.insert(directory.to_owned(), checked);
    }
}

impl CheckedDirectory {
    fn path(&self) -> Option<&RelPath> {
        self.found.as_ref().map(|found| &found.path)
    }
}

fn find_instructions(
    sources: &mut InstructionSources<'_>,
    directory: &str,
    before: Option<&CheckedDirectory>,
) -> CheckedDirectory {
    // Taken before the search, so that a file created during the search changes the stamp.
    let Some(stamp) = stamp_of_directory(sources.workspace.root(), directory, sources.workspace.copy.clock()) else {
        return CheckedDirectory::default();
    };
    let bare = before.and_then(|before| before.bare).filter(|bare| !bare.is_racy() && bare.agrees_with(&stamp));
    if bare.is_some() {
        return CheckedDirectory { bare, is_sure: true, ..CheckedDirectory::default() };
    }
    let entries = find(sources, directory);
    let bare = Some(stamp).filter(|_| entries.is_empty());
    let is_sure = entries.iter().all(|entry| matches!(entry, InstructionEntry::Text(found, _) if found.path == found.at));
    let found = entries.into_iter().find_map(|entry| match entry {
        InstructionEntry::Text(found, _) => Some(found),
        InstructionEntry::Empty => None,
    });
    CheckedDirectory { bare, found, is_sure, ..CheckedDirectory::default() }
}

/// An entry of a directory with the name of an instruction file.
enum InstructionEntry {
    Text(InstructionFile, Text),
    /// An empty, binary or too large file, or a link that leads outside or into git's directory. It may become a text
    /// later.
    Empty,
}

/// The entries of a directory with instruction file names, up to the first one with content.
fn find(sources: &mut InstructionSources<'_>, directory: &str) -> Vec<InstructionEntry> {
    let mut entries = Vec::new();
    for name in &sources.workspace.config().instructions.names {
        let entry = join(directory, name).and_then(|at| read(sources, at));
        let is_last = matches!(entry, Some(InstructionEntry::Text(..)));
        entries.extend(entry);
        if is_last {
            break;
        }
    }
    entries
}

/// Reads an entry; `None` if the path does not exist.
fn read(sources: &mut InstructionSources<'_>, at: RelPath) -> Option<InstructionEntry> {
    let gathered = match sources.files.gather_up_to(sources.workspace, at.as_str(), MOST_BYTES) {
        Ok(gathered) if !gathered.path.as_str().split('/').any(is_internal) => gathered,
        Ok(_) | Err(_) => return Some(InstructionEntry::Empty),
    };
    if gathered.path != at && !is_for_instructions(sources.workspace, gathered.path.name()) {
        // A clone can contain a link, such as `AGENTS.md` to `.env`, whose target belongs to the user.
        return Some(InstructionEntry::Empty);
    }
    match gathered.present {
        Present::Absent => None,
        Present::Text(text) if !text.as_str()[text.body_start()..].trim().is_empty() => {
            Some(InstructionEntry::Text(InstructionFile { at, path: gathered.path, version: text.version() }, text))
        }
        Present::Text(_) | Present::Blob(..) | Present::Unreadable(_) => Some(InstructionEntry::Empty),
    }
}

/// Whether files with this name hold instructions for agents, or are also meant for people.
fn is_for_instructions(workspace: &Workspace, name: &str) -> bool {
    const RULES: [&str; 3] = [".cursorrules", ".windsurfrules", ".clinerules"];
    let lower = name.to_ascii_lowercase();
    let is_prose = lower.ends_with(".md") || lower.ends_with(".mdc");
    is_prose || RULES.contains(&name) || workspace.config().instructions.names.iter().any(|known| known == name)
}

/// The instructions that the session has received, from its tracker if it has one.
fn given_record<'a>(untracked: &'a InstructionRecord, sources: &'a mut InstructionSources<'_>) -> &'a InstructionRecord {
    match &mut sources.tracker {
        Some(tracker) => tracker.given(sources.workspace),
        None => untracked,
    }
}

/// Whether the session has read the whole current file.
fn has_seen(sources: &mut InstructionSources<'_>, found: &InstructionFile) -> bool {
    let Some(tracker) = &mut sources.tracker else { return false };
    let view = tracker.view(sources.workspace, &found.path);
    view.is_some_and(|view| view.version() == found.version && view.is_whole() && !view.is_unknown())
}

/// The files that the watcher must report: the effective one, wherever it is, and one that may be created.
fn paths_to_watch(directory: &str, checked: &CheckedDirectory, settings: &InstructionSettings) -> impl Iterator<Item = RelPath> {
    let to_come = settings.names.first().and_then(|name| join(directory, name));
    checked.found.as_ref().map(|found| found.path.clone()).into_iter().chain(to_come)
}

fn join(directory: &str, name: &str) -> Option<RelPath> {
    RelPath::new(&format!("{directory}/{name}")).ok()
}

/// A directory and its parents, the outermost first, except git's and our own directories.
fn outside_internals(directory: &Option<RelPath>) -> impl Iterator<Item = &str> {
    chain(directory.as_ref()).take_while(|directory| !directory.rsplit('/').next().is_some_and(is_internal))
}
