//! Shell commands of a session: lines that a command prints count as seen, files that it changes are found and
//! attributed to it, and views follow files that it moves or edits.

mod file_modes;
mod files_before;
mod mentioned_files;
mod printed_lines;

use std::collections::HashMap;

use surehand_core::{
    ChangeAuthor, ChangedFile, ContentHash, KnownLines, LineMap, LineSet, OutsideState, Present, RelPath,
    outcome::CommandEffects,
    shell::{self, mentions, own_text::OwnText},
};
use surehand_store::{ChangeId, FileEvent, StoreRecord};

use self::{
    file_modes::file_mode,
    files_before::{FileBefore, FilesBefore, NotePurpose},
    mentioned_files::{CommandReach, MentionedFiles},
};
use crate::{
    change_log::{ChangeOrigin, fresh_change},
    checkpoint::lstat,
    session::Session,
    stale_views::{StaleView, author_of},
    time::now,
    watch::{HintCursor, WatchHints},
};

/// A running command. Changes from before its start are not attributed to it.
#[derive(Debug, Default)]
pub struct RunningCommand {
    changed_before: HashMap<RelPath, OutsideState>,
    /// The versions of the files that it names; `None` if it only reads or was not announced.
    named_before: Option<FilesBefore>,
    cursor: Option<HintCursor>,
    /// The files to check after it has ended, in addition to those that it names; `None` means all viewed files.
    among: Option<Vec<RelPath>>,
}

/// A command that is about to run or has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShellCommand<'a> {
    /// The command line.
    pub line: &'a str,
    /// The directory in which it runs: absolute, or relative to the workspace root.
    pub directory: &'a str,
    /// The output that the model saw; empty before the command runs.
    pub output: &'a str,
}

/// The maximum number of destinations of moved files that are checked before a command runs.
const MOST_DESTINATIONS: usize = 512;

/// The maximum number of named files that are checked before a command runs.
const MOST_NAMED: usize = 64;

/// The maximum number of views that follow when a command moves files together.
const MOST_MOVED: usize = 200;

/// The maximum size of a file that is stored before a command that may change it, unless the session has seen it.
const MOST_KEPT: u64 = 256 * 1024;

impl RunningCommand {
    /// Whether a change of a file can be attributed to the command: the command may write, and the content at its start
    /// is known.
    fn may_have_changed(&self, path: &RelPath) -> bool {
        let Some(named) = &self.named_before else { return false };
        match &self.among {
            // These were checked before the command began.
            Some(among) => among.contains(path) || matches!(named.get(path), FileBefore::Version(_)),
            None => true,
        }
    }

    /// Another agent's command is reported to the workspace of every file that it concerns.
    fn reach(&self) -> CommandReach {
        if self.among.is_some() { CommandReach::OwnTree } else { CommandReach::Everything }
    }
}

/// The change of a file by a command, as far as it is known.
struct CommandChange<'a> {
    command: &'a ShellCommand<'a>,
    change: &'a ChangeId,
    own_text: &'a OwnText,
    before: Option<&'a FilesBefore>,
}

impl Session {
    /// Call this before a command runs.
    pub fn command_begins(&mut self, command: &ShellCommand<'_>) -> RunningCommand {
        self.take_hints(&[]);
        let changed_before = self.with_stale_views(|stale_views, sources| stale_views.pending(sources)).unwrap_or_default();
        let cursor = self.workspace().watch().map(|watch| {
            let mut cursor = watch.cursor();
            watch.hints(&mut cursor);
            cursor
        });
        let named_before = (!shell::only_reads(command.line)).then(|| self.named_files(command, CommandReach::Everything));
        RunningCommand { changed_before, named_before, cursor, among: None }
    }

    /// [`Session::command_begins`] for a command whose end another process will report.
    pub(crate) fn foreign_command_begins(&mut self, command: &ShellCommand<'_>) {
        if !shell::only_reads(command.line) {
            let before = self.named_files(command, CommandReach::OwnTree);
            before.keep(self.workspace(), &self.id(), command, NotePurpose::Ended);
        }
    }

    /// Notes the present files that a command names, for output that will be reported later to
    /// [`Session::record_printed`].
    pub(crate) fn prints_later(&mut self, command: &ShellCommand<'_>) {
        let files = self.named_files(command, CommandReach::OwnTree);
        files.keep(self.workspace(), &self.id(), command, NotePurpose::Printed);
    }

    /// Records the end of a command whose start another process may have reported. Checks only these files and those
    /// that it names.
    pub(crate) fn foreign_command_ended(&mut self, among: Vec<RelPath>, command: &ShellCommand<'_>) -> CommandEffects {
        let named_before = FilesBefore::take(self.workspace(), &self.id(), command, NotePurpose::Ended);
        self.command_ended(RunningCommand { named_before, among: Some(among), ..RunningCommand::default() }, command)
    }

    /// The current versions of the files that a command names. Small files that the session has not seen are stored,
    /// because after the command their content is gone.
    fn named_files(&mut self, command: &ShellCommand<'_>, reach: CommandReach) -> FilesBefore {
        let mut before = FilesBefore { at: now(), ..FilesBefore::default() };
        let workspace = self.workspace().clone();
        let mentioned = MentionedFiles::of(&workspace, command.directory, &mentions::in_command(command.line), reach);
        // A file that already exists at a destination was not moved there.
        let sources: Vec<RelPath> = mentioned.files.iter().take(MOST_NAMED).cloned().collect();
        let taken = sources.iter().flat_map(|from| move_destinations(from, &mentioned)).take(MOST_DESTINATIONS);
        for to in taken.filter(|to| workspace.path().join(to.as_str()).symlink_metadata().is_ok()).collect::<Vec<_>>() {
            before.files.insert(to, FileBefore::Unknown);
        }
        for (number, path) in mentioned.files.into_iter().enumerate() {
            if let Some(mode) = file_mode(&workspace, &path).filter(|_| number < MOST_NAMED) {
                before.modes.insert(path.clone(), mode);
            }
            let gathered = (number < MOST_NAMED).then(|| self.files.gather_up_to(&workspace, path.as_str(), MOST_KEPT));
            let content_before = match gathered.and_then(Result::ok).map(|gathered| gathered.present) {
                Some(Present::Text(text)) => {
                    self.keep_text(&path, &text);
                    FileBefore::Version(text.version())
                }
                Some(Present::Absent | Present::Blob(..) | Present::Unreadable(_)) | None => FileBefore::Unknown,
            };
            before.files.insert(path, content_before);
        }
        before
    }

    /// Records the end of a command and its output. Returns the files that it changed, for the model.
    pub fn command_ended(&mut self, running: RunningCommand, command: &ShellCommand<'_>) -> CommandEffects {
        let mentions = mentions::in_command(command.line);
        let workspace = self.workspace().clone();
        let mentioned = MentionedFiles::of(&workspace, command.directory, &mentions, running.reach());
        let (change, own_text) = (fresh_change(), OwnText::of(command.line));
        let own = CommandChange { command, change: &change, own_text: &own_text, before: running.named_before.as_ref() };
        let changed = self.changed_by(&running, &own, &mentioned);
        let unseen = own.before.map(|before| self.take_unseen(before, &own, &mentioned, &changed)).unwrap_or_default();
        let of_command = changed.iter().filter(|file| file.by == ChangeAuthor::Command).map(|file| &file.path);
        let recorded: Vec<&RelPath> = of_command.chain(&unseen).collect();
        let has_changed_modes = self.take_modes(&own, &mentioned.files, &recorded);
        if has_changed_modes || !recorded.is_empty() {
            workspace.track_events();
        }
        let touched = self.touched_paths(running.cursor, &changed);
        let read = self.count_as_read(command, &mentions, mentioned, &FilesBefore::default());
        CommandEffects { changed, touched, read }
    }

    /// Records the output of a command that changed no files. The output may be older than this call.
    pub(crate) fn record_printed(&mut self, printed: &ShellCommand<'_>) -> Vec<KnownLines> {
        let mentions = mentions::in_command(printed.line);
        let workspace = self.workspace().clone();
        let mentioned = MentionedFiles::of(&workspace, printed.directory, &mentions, CommandReach::OwnTree);
        let then = FilesBefore::take(&workspace, &self.id(), printed, NotePurpose::Printed).unwrap_or_default();
        self.count_as_read(printed, &mentions, mentioned, &then)
    }

    /// The viewed files that have changed, with their authors.
    fn changed_by(&mut self, running: &RunningCommand, own: &CommandChange<'_>, mentioned: &MentionedFiles) -> Vec<ChangedFile> {
        let id = self.id();
        let mut files = Vec::new();
        for mut changed in self.changed_files(running, mentioned) {
            let mut other = author_of(self.workspace(), &id, &changed);
            // The version before the command, so that an undo of the command does not undo earlier changes.
            let before = self.state_before(running, &changed);
            let seen = StaleView { path: changed.path.clone(), ..changed };
            if std::mem::replace(&mut changed.was, before) != before && other == ChangeAuthor::Unknown {
                other = author_of(self.workspace(), &id, &changed);
            }
            let is_ours = changed.was != changed.now && other == ChangeAuthor::Unknown && running.may_have_changed(&changed.path);
            if is_ours {
                self.take_own_change(own, &changed, mentioned, running);
            } else if other == ChangeAuthor::Unknown {
                other = self.author_of(&seen);
            }
            let by = if is_ours { ChangeAuthor::Command } else { other };
            files.push(ChangedFile { path: changed.path, deleted: changed.now == OutsideState::Gone, by });
        }
        files
    }

    fn changed_files(&mut self, running: &RunningCommand, mentioned: &MentionedFiles) -> Vec<StaleView> {
        let Some(among) = &running.among else {
            self.take_hints(&[]);
            return self.with_stale_views(|stale_views, sources| stale_views.check_all(sources)).unwrap_or_default();
        };
        let workspace = self.workspace().clone();
        let mut paths = among.clone();
        paths.extend(mentioned.files.iter().take(MOST_NAMED).cloned());
        // A command may have deleted a directory that it names, with everything below it.
        if running.named_before.is_some() {
            let gone = self.tracker().map(|tracker| tracker.viewed_in(&workspace, &mentioned.absent, MOST_MOVED));
            paths.extend(gone.unwrap_or_default());
        }
        paths.sort_unstable();
        paths.dedup();
        self.with_stale_views(|stale_views, sources| stale_views.check(sources, paths)).unwrap_or_default()
    }

    fn state_before(&self, running: &RunningCommand, changed: &StaleView) -> OutsideState {
        let named = match running.named_before.as_ref().map(|before| before.get(&changed.path)) {
            Some(FileBefore::Version(version)) => Some(OutsideState::Version(version)),
            Some(FileBefore::Absent | FileBefore::Unknown) | None => None,
        };
        running.changed_before.get(&changed.path).copied().or(named).unwrap_or(changed.was)
    }

    /// Records what the session's own command did to a viewed file, and lets the view follow.
    fn take_own_change(
        &mut self,
        own: &CommandChange<'_>,
        changed: &StaleView,
        mentioned: &MentionedFiles,
        running: &RunningCommand,
    ) {
        let mut event = self.command_event(changed, own);
        if let (OutsideState::Version(version), OutsideState::Gone) = (changed.was, changed.now) {
            event.moved_to = self.follow_move(&changed.path, version, mentioned, running);
            event.after = event.moved_to.as_ref().map(|_| version);
        }
        self.workspace().record(StoreRecord::Happened(event));
        self.follow_change(own, changed);
    }

    /// Carries the view of a file over to the result of a command: unchanged lines stay seen, and lines that the
    /// command itself contains are known. If another program changed the file first, nothing is carried over, and the
    /// gate refuses edits as stale.
    fn follow_change(&mut self, own: &CommandChange<'_>, changed: &StaleView) {
        let Ok(gathered) = self.gather(changed.path.as_str()) else { return };
        let (Present::Text(now), Some(view)) = (gathered.present, gathered.view) else { return };
        if OutsideState::Version(now.version()) != changed.now {
            return;
        }
        let written = match (changed.was, gathered.seen) {
            (OutsideState::Gone, _) => own.own_text.written(None, &now),
            (OutsideState::Version(was), Some(seen)) if was == seen.version() => {
                let carried = view.carried_unshown(&seen, &LineMap::between(&seen, &now), &now);
                self.keep_text(&changed.path, &now);
                self.set_view(&changed.path, carried);
                own.own_text.written(Some(&seen), &now)
            }
            (OutsideState::Version(_), _) => return,
        };
        if !written.is_empty() {
            self.record_shown(&changed.path, &now, &written);
        }
    }

    /// Finds the new name of a file that a command has moved, by its content. The view follows.
    fn follow_move(
        &mut self,
        from: &RelPath,
        version: ContentHash,
        mentioned: &MentionedFiles,
        running: &RunningCommand,
    ) -> Option<RelPath> {
        let before = running.named_before.as_ref()?;
        let existed = |path: &RelPath| before.get(path) != FileBefore::Absent;
        let mut new = move_destinations(from, mentioned).into_iter().filter(|to| !existed(to));
        let to = new.find(|to| self.text_at(to.as_str()).is_some_and(|(_, text)| text.version() == version))?;
        let mut view = self.view_of(from).filter(|view| view.version() == version)?;
        view.record_told(OutsideState::Version(version));
        self.set_view(&to, view);
        let workspace = self.workspace().clone();
        self.tracker()?.forget_view(&workspace, from);
        Some(to)
    }

    /// Records the changes by a command to named files that the session has not seen. The lines that the command
    /// contains count as seen. Returns the files that changed.
    fn take_unseen(
        &mut self,
        before: &FilesBefore,
        own: &CommandChange<'_>,
        mentioned: &MentionedFiles,
        changed: &[ChangedFile],
    ) -> Vec<RelPath> {
        let (workspace, id) = (self.workspace().clone(), self.id());
        let mut has_changed = self.take_unseen_gone(before, own, mentioned, changed);
        for path in &mentioned.files {
            let (was, text_before) = match before.get(path) {
                FileBefore::Absent => (OutsideState::Gone, None),
                FileBefore::Version(version) => (OutsideState::Version(version), self.files.text(&workspace, &version)),
                FileBefore::Unknown => continue,
            };
            let is_handled = changed.iter().any(|file| file.path == *path) || self.view_of(path).is_some();
            let is_handled = is_handled || has_changed.contains(path);
            let Some((_, now)) = self.text_at(path.as_str()).filter(|_| !is_handled) else { continue };
            let change = StaleView { path: path.clone(), was, now: OutsideState::Version(now.version()) };
            if change.was == change.now || author_of(&workspace, &id, &change) != ChangeAuthor::Unknown {
                continue;
            }
            let event = self.command_event(&change, own);
            workspace.record(StoreRecord::Happened(event));
            has_changed.push(path.clone());
            let is_lost = text_before.is_none() && was != OutsideState::Gone;
            let written = if is_lost { LineSet::new() } else { own.own_text.written(text_before.as_ref(), &now) };
            if !written.is_empty() || now.line_count() == 0 {
                self.record_shown(path, &now, &written);
            }
        }
        has_changed
    }

    /// Records named files that the session has not seen and that a command has deleted or moved. Returns all of their
    /// names: without the record of the old name, an undo would remove a moved file.
    fn take_unseen_gone(
        &mut self,
        before: &FilesBefore,
        own: &CommandChange<'_>,
        mentioned: &MentionedFiles,
        changed: &[ChangedFile],
    ) -> Vec<RelPath> {
        let (workspace, id) = (self.workspace().clone(), self.id());
        let mut recorded = Vec::new();
        for (path, version) in before.versions() {
            let is_handled = changed.iter().any(|file| file.path == path) || self.view_of(&path).is_some();
            let exists = lstat(&workspace, &path).is_ok();
            let change = StaleView { path: path.clone(), was: OutsideState::Version(version), now: OutsideState::Gone };
            if is_handled || exists || author_of(&workspace, &id, &change) != ChangeAuthor::Unknown {
                continue;
            }
            let new = move_destinations(&path, mentioned).into_iter();
            let mut new =
                new.filter(|to| before.get(to) == FileBefore::Absent && !recorded.contains(to)).collect::<Vec<_>>().into_iter();
            let to = new.find(|to| self.text_at(to.as_str()).is_some_and(|(_, text)| text.version() == version));
            let event = FileEvent {
                mode: before.modes.get(&path).copied(),
                after: to.as_ref().map(|_| version),
                moved_to: to.clone(),
                ..self.command_event(&change, own)
            };
            workspace.record(StoreRecord::Happened(event));
            recorded.extend([Some(path), to].into_iter().flatten());
        }
        recorded
    }

    /// Records the change of a file by a command like any other change, so that it can be shown and undone.
    fn command_event(&mut self, changed: &StaleView, own: &CommandChange<'_>) -> FileEvent {
        let path = &changed.path;
        let [before, after] = [changed.was, changed.now].map(|outside| match outside {
            OutsideState::Version(version) => Some(version),
            OutsideState::Gone => None,
        });
        for version in [before, after].into_iter().flatten() {
            self.keep_version(path, &version);
        }
        let line: String = own.command.line.lines().next().unwrap_or_default().chars().take(80).collect();
        let tool = format!("{}{line}", FileEvent::COMMAND);
        let entry = before.and(after).and_then(|_| self.mode_change(own, path));
        FileEvent { before, after, entry, ..self.event_of(&ChangeOrigin::of(&tool), own.change, path) }
    }

    /// Other files that the watcher reported during the command. The command need not be the cause.
    fn touched_paths(&self, cursor: Option<HintCursor>, changed: &[ChangedFile]) -> Vec<RelPath> {
        let (Some(watch), Some(mut cursor)) = (self.workspace().watch(), cursor) else { return Vec::new() };
        let WatchHints::Paths(paths) = watch.hints(&mut cursor) else { return Vec::new() };
        paths.into_iter().filter(|path| changed.iter().all(|file| file.path != *path)).collect()
    }
}

/// The paths to which a command may have moved a file: a name that it mentions, the same base name in a directory that
/// it mentions, or, if it mentions a directory above the file, the same relative path below another one.
fn move_destinations(from: &RelPath, mentioned: &MentionedFiles) -> Vec<RelPath> {
    let mut places: Vec<String> = mentioned.files.iter().map(RelPath::to_string).collect();
    let above = mentioned.absent.iter().filter_map(|gone| Some((gone, from.relative_to(gone)?)));
    let above: Vec<(&RelPath, RelPath)> = above.collect();
    for directory in &mentioned.directories {
        let below = |rest: &str| directory.as_ref().map_or_else(|| rest.to_owned(), |directory| format!("{directory}/{rest}"));
        places.push(below(from.name()));
        for (gone, rest) in &above {
            places.push(below(rest.as_str()));
            places.push(below(&format!("{}/{rest}", gone.name())));
        }
    }
    places.iter().filter_map(|place| RelPath::new(place).ok()).filter(|place| place != from).collect()
}
