//! Undoes changes in a file that others have changed since. It walks back through the history of the file, from the
//! present text to the oldest of these changes, with an [`UndoDraft`], and leaves every line that is not proven to come
//! from them.

use std::collections::{HashMap, HashSet};

use surehand_core::{
    ContentHash, LineMap, Present, RelPath, Text,
    line_map::Hunk,
    outcome::undo::{LeftHunk, NotUndone, NotUndoneCause},
    undo::{TextStep, UndoDraft, UndoneHunk, UndonePart},
};
use surehand_store::{ChangeId, EventFilter, FileEvent};

use crate::{
    event_log::{EventLog, has_effect},
    workspace::Workspace,
};

/// A file in which changes are undone, with its history.
pub(super) struct FileHistory {
    /// The number of the file in the log.
    file: usize,
    /// Newest first, with deltas between the contents, down to the oldest change that is undone.
    events: Vec<FileEvent>,
    /// The changes to undo.
    chosen: HashSet<ChangeId>,
    /// The present name of the file, or its last one.
    pub(super) name: RelPath,
    /// Whether another file has that name now.
    has_lost_name: bool,
}

/// The state of a file after the undo.
#[derive(Debug)]
pub(super) struct LineUndo {
    /// `None` if the file is deleted.
    pub(super) text: Option<Text>,
    /// From the present text to the new one, if it is known exactly.
    pub(super) lines: Option<LineMap>,
    pub(super) name: RelPath,
    /// The mode, if the file was deleted and is restored.
    pub(super) mode: Option<u32>,
    /// The hunks that were undone.
    pub(super) undone: Vec<UndonePart>,
    /// The hunks that were left.
    pub(super) left: Vec<LeftHunk>,
    /// Why the file keeps its name, if the undo would have changed it.
    pub(super) name_left: Option<NotUndoneCause>,
}

impl FileHistory {
    /// The history of the file that `chosen` events are about; they are newest first.
    pub(super) fn of(workspace: &Workspace, log: &EventLog, file: usize, chosen: &[&FileEvent]) -> Self {
        let mut events = log.events_of(file);
        let name = events.first().map_or_else(|| chosen[0].name_after().clone(), |last| last.name_after().clone());
        let chosen: HashSet<ChangeId> = chosen.iter().map(|event| event.change.clone()).collect();
        let oldest = events.iter().rposition(|event| chosen.contains(&event.change)).map_or(0, |last| last + 1);
        events.truncate(oldest);
        add_deltas(workspace, log, &mut events);
        let has_lost_name = log.has_lost_name(file, &name);
        Self { file, events, chosen, name, has_lost_name }
    }

    /// The changes to undo, newest first.
    pub(super) fn changes(&self) -> Vec<ChangeId> {
        let mut changes: Vec<ChangeId> = Vec::new();
        for event in self.events.iter().filter(|event| self.is_chosen(event)) {
            if !changes.contains(&event.change) {
                changes.push(event.change.clone());
            }
        }
        changes
    }

    fn is_chosen(&self, event: &FileEvent) -> bool {
        self.chosen.contains(&event.change)
    }

    /// Undoes the changes in the present content. The error says why the whole file has to stay.
    pub(super) fn undo(&self, workspace: &Workspace, log: &EventLog, present: &Present) -> Result<LineUndo, NotUndoneCause> {
        let now = match present {
            Present::Text(_) | Present::Blob(..) | Present::Unreadable(_) if self.has_lost_name => {
                return Err(NotUndoneCause::Deleted);
            }
            Present::Text(text) => Some(text.clone()),
            // Only a change that deleted the file may restore it.
            Present::Absent if self.events.first().is_some_and(|last| last.after.is_none() && self.is_chosen(last)) => None,
            Present::Absent => return Err(NotUndoneCause::Deleted),
            Present::Blob(..) | Present::Unreadable(_) => return Err(NotUndoneCause::NotText),
        };
        let mut walk = HistoryWalk {
            workspace,
            draft: UndoDraft::new(now.clone().unwrap_or_else(no_text)),
            version: now.as_ref().map(Text::version),
            bytes: now.as_ref().map(|text| text.bytes().to_vec()),
            name: self.name.clone(),
        };
        let mut mode = None;
        for (index, event) in self.events.iter().enumerate() {
            walk.reach(event);
            self.note_put_back(&mut walk.draft, &self.events[index..]);
            if self.is_chosen(event) {
                walk.undo(event, &log.undone_hunks(self.file, &event.change))?;
                mode = event.mode.or(mode);
            } else {
                walk.pass(event);
            }
            walk.step_back(event);
        }
        let undone = walk.draft.finish();
        let (name, name_left) = self.old_name(workspace);
        let is_ours = self.events.iter().any(|event| self.is_chosen(event) && event.before.is_none() && event.after.is_some());
        let goes = is_ours && undone.left.is_empty() && undone.text.bytes().is_empty();
        Ok(LineUndo {
            lines: undone.lines.filter(|_| now.is_some()),
            text: Some(undone.text).filter(|_| !goes),
            name,
            mode: mode.filter(|_| now.is_none()),
            undone: undone.undone,
            left: undone.left,
            name_left,
        })
    }

    /// Steps back over an undo: the lines that it restored are the lines that the undone change had removed.
    fn note_put_back(&self, draft: &mut UndoDraft, from: &[FileEvent]) {
        let Some((undo, older)) = from.split_first() else { return };
        if !undo.undone.is_empty() {
            draft.note_put_back(&undo.undone);
        } else if let Some(oldest) = undo.undoes.last().filter(|_| has_effect(undo))
            // Other changes in between may have stayed.
            && older.iter().any(|event| event.change == *oldest && event.before == undo.after)
        {
            draft.note_all_put_back(oldest);
        }
    }

    /// The name that the file had before the changes moved it, or its present name and the reason why it keeps that.
    fn old_name(&self, workspace: &Workspace) -> (RelPath, Option<NotUndoneCause>) {
        let (mut name, mut reached) = (self.name.clone(), self.name.clone());
        for event in &self.events {
            let Some(to) = &event.moved_to else { continue };
            if self.is_chosen(event) && *to != name {
                return (self.name.clone(), Some(NotUndoneCause::Moved));
            }
            if self.is_chosen(event) {
                name = event.path.clone();
            }
            reached.clone_from(&event.path);
        }
        let is_taken = name != self.name && workspace.root().path().join(name.as_str()).symlink_metadata().is_ok();
        match is_taken {
            true => (self.name.clone(), Some(NotUndoneCause::NameTaken(name))),
            false => (name, None),
        }
    }

    /// The parts of the changes that stay.
    pub(super) fn left(&self, text: Option<Text>, hunks: Vec<LeftHunk>, why: Option<NotUndoneCause>) -> Option<NotUndone> {
        let is_left = !hunks.is_empty() || why.is_some();
        is_left.then(|| NotUndone { path: self.name.clone(), text: text.filter(|_| !hunks.is_empty()), hunks, why })
    }
}

/// A walk back through the history of a file.
struct HistoryWalk<'a> {
    workspace: &'a Workspace,
    draft: UndoDraft,
    /// The version at the current point of the walk.
    version: Option<ContentHash>,
    /// The content there, if it is loaded.
    bytes: Option<Vec<u8>>,
    /// The name of the file there.
    name: RelPath,
}

impl HistoryWalk<'_> {
    /// Goes to the state after an event. If that differs from the state before the next event, another program wrote in
    /// between.
    fn reach(&mut self, event: &FileEvent) {
        if event.after != self.version {
            let now = self.text();
            (self.version, self.bytes) = (event.after, None);
            self.name.clone_from(event.name_after());
            match (self.text(), now) {
                (Some(before), Some(now)) => self.draft.pass_texts(&before, &now),
                _ => self.draft.lose_track(),
            }
        }
        if let Some(version) = event.after {
            self.draft.reach(version);
        }
    }

    fn undo(&mut self, event: &FileEvent, done: &[UndoneHunk]) -> Result<(), NotUndoneCause> {
        if event.before == event.after {
            return Ok(());
        }
        let after = self.text();
        let before = self.text_before(event);
        let (Some(before), Some(after)) = (before, after) else { return Err(self.why_unknown(event)) };
        if event.after.is_none() && self.draft.text().bytes().is_empty() {
            // The old text replaces the draft as a whole, so that its encoding is restored, too.
            self.draft.replace(before, None);
            return Ok(());
        }
        let done: Vec<Hunk> = done.iter().map(|undone| undone.hunk.clone()).collect();
        let step = TextStep { change: &event.change, before: &before, after: &after, lines: event.lines.as_ref() };
        self.draft.take_back(&step, &done);
        Ok(())
    }

    /// Steps back over a change that stays.
    fn pass(&mut self, event: &FileEvent) {
        if event.before == event.after {
            return;
        }
        if let Some(lines) = &event.lines {
            self.draft.pass(&event.change, lines);
            return;
        }
        match (self.text_before(event), self.text()) {
            (Some(before), Some(after)) => self.draft.pass_texts(&before, &after),
            _ => self.draft.lose_track(),
        }
    }

    /// Goes to the state before an event.
    fn step_back(&mut self, event: &FileEvent) {
        if event.before != event.after {
            self.bytes = match (&event.delta, self.bytes.take()) {
                (Some(delta), Some(after)) => delta.apply(&after),
                _ => None,
            };
            self.version = event.before;
        }
        self.name.clone_from(&event.path);
    }

    /// The text at this point; `None` if it is not kept, or not a text.
    fn text(&mut self) -> Option<Text> {
        let text = self.text_of(&self.name, self.version, self.bytes.clone())?;
        if self.version.is_some() {
            self.bytes = Some(text.bytes().to_vec());
        }
        Some(text)
    }

    fn text_before(&self, event: &FileEvent) -> Option<Text> {
        let before = event.delta.as_ref().zip(self.bytes.as_ref()).and_then(|(delta, after)| delta.apply(after));
        self.text_of(&event.path, event.before, before)
    }

    /// The text of a version, from these bytes if they are right, otherwise from the store.
    fn text_of(&self, name: &RelPath, version: Option<ContentHash>, bytes: Option<Vec<u8>>) -> Option<Text> {
        let Some(version) = version else { return Some(no_text()) };
        let text = bytes.and_then(|bytes| Text::new(bytes).ok()).filter(|text| text.version() == version);
        text.or_else(|| self.workspace.content_at(name, &version)?.text().cloned())
    }

    /// The reason why the texts of an event are not available.
    fn why_unknown(&self, event: &FileEvent) -> NotUndoneCause {
        let is_blob = |path: &RelPath, version: Option<ContentHash>| {
            version.and_then(|version| self.workspace.content_at(path, &version)).is_some_and(|content| content.text().is_none())
        };
        match is_blob(&event.path, event.before) || is_blob(event.name_after(), event.after) {
            true => NotUndoneCause::NotText,
            false => NotUndoneCause::NotKept,
        }
    }
}

/// An absent file counts as an empty text.
fn no_text() -> Text {
    Text::of(String::new()).expect("an empty text is a text")
}

/// Loads the deltas of these events from the store.
fn add_deltas(workspace: &Workspace, log: &EventLog, events: &mut [FileEvent]) {
    let Some(oldest) = events.last().cloned() else { return };
    let names: HashSet<RelPath> = events.iter().map(|event| event.path.clone()).collect();
    let mut places: HashMap<(ChangeId, RelPath), Vec<usize>> = HashMap::new();
    for (place, event) in events.iter().enumerate() {
        places.entry((event.change.clone(), event.path.clone())).or_default().push(place);
    }
    for name in names {
        let newer = log.iter().take_while(|event| **event != oldest).filter(|event| event.is_about(&name)).count();
        let which = EventFilter { path: Some(name), with_deltas: true, ..EventFilter::default() };
        let stored = workspace.ask(|store| store.events(&which, newer + 1)).unwrap_or_default();
        for stored in stored.into_iter().filter(|stored| stored.delta.is_some()) {
            let of_change = places.get(&(stored.change, stored.path)).into_iter().flatten();
            let is_same = |place: &&usize| (events[**place].before, events[**place].after) == (stored.before, stored.after);
            if let Some(place) = of_change.copied().find(|place| is_same(&place)) {
                events[place].delta = stored.delta;
            }
        }
    }
}
