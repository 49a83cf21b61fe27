//! Undo reverts changes: as a whole if nothing else has happened to the file, else line by line, as far as the lines
//! are proven to come from these changes. It overwrites later work only if the caller asks for that.

mod by_lines;

use std::collections::{HashMap, HashSet};

use surehand_core::{
    Blob, Cause, Content, ContentHash, LineMap, Present, Refusal, RelPath, Tool,
    edit::{UndoRequest, UndoTarget, WhoseChanges},
    outcome::{
        UndoneChange,
        undo::{NotUndone, NotUndoneCause, UndoExtent, UndoKind},
    },
    plan::{self, RestoredContent},
    refusal::{BatchKind, BatchPlace},
    undo::UndonePart,
};
use surehand_store::{ChangeId, FileEvent, StoreRecord};

use self::by_lines::{FileHistory, LineUndo};
use crate::{
    change_log::{ChangeOrigin, ChangeSelection, NetChange, UndoRecord, fresh_change, merge_events},
    event_log::{EventLog, EventRole},
    file_cache::{GatheredFile, PlannedFile},
    restore::EntryUndo,
    session::{PlanBasis, Session},
};

/// The maximum number of changes in a row that are skipped because they were already reverted by hand.
const MOST_WITHOUT_EFFECT: usize = 1000;

/// The changes to undo, and the writes that this takes.
#[derive(Debug)]
pub(crate) struct UndoPlan {
    pub files: Vec<PlannedFile>,
    pub undid: Vec<UndoneChange>,
    /// The parts of the changes that stay.
    pub left: Vec<NotUndone>,
    /// Whether it undoes changes, or undoes undos.
    pub kind: UndoKind,
    /// Recorded with each file that is written.
    records: HashMap<RelPath, UndoRecord>,
    /// Recorded for files that are not written.
    pub unwritten: Vec<UnwrittenUndo>,
    /// Paths to restore apart from file contents: links, directories, permissions.
    pub entries: Vec<EntryUndo>,
    events: Vec<FileEvent>,
    force: bool,
}

/// The record of an undo that does not write to a file: no write is needed, or none is possible.
#[derive(Debug, Clone)]
pub(crate) struct UnwrittenUndo {
    path: RelPath,
    /// The present version of the file.
    version: Option<ContentHash>,
    record: UndoRecord,
}

/// The undo of the changes to one file.
struct FileUndo {
    /// Newest first.
    changes: Vec<ChangeId>,
    extent: UndoExtent,
    files: Vec<PlannedFile>,
    /// The paths under which it is recorded.
    paths: Vec<RelPath>,
    record: UndoRecord,
    /// The present version of the file.
    version: Option<ContentHash>,
    left: Option<NotUndone>,
    /// Whether the path was not a regular file before or after the changes, and is restored as a whole.
    is_entry: bool,
}

impl UndoPlan {
    /// The tool under whose name it is recorded, with the record for each path.
    pub(crate) fn origin(&self) -> ChangeOrigin<'static> {
        let tool = match self.kind {
            UndoKind::Undo => Tool::Undo.name(),
            UndoKind::Redo => REDO,
        };
        let entries = self.entries.iter().map(|entry| (entry.path.clone(), entry.record())).collect();
        ChangeOrigin { tool, undoes: self.records.clone(), entries }
    }

    /// The paths that are recorded together with the contents.
    pub(crate) fn paths(&self) -> HashSet<RelPath> {
        let written = self.files.iter().map(|file| file.planned.path());
        written.chain(self.unwritten.iter().map(|file| &file.path)).cloned().collect()
    }
}

/// The name in the log of an undo that undoes an undo.
const REDO: &str = "redo";

impl Session {
    /// Plans an undo. The search for the last change skips changes that were already reverted by hand. If only such
    /// changes are found, the plan writes no file.
    pub(crate) fn plan_undo(&mut self, undo: &UndoRequest) -> Result<UndoPlan, Refusal> {
        let selection = self.selection(undo)?;
        let log = self.workspace().event_log().map_err(|error| cannot(error.to_string()))?;
        let (mut passed, mut unwritten): (Vec<ChangeId>, Vec<UnwrittenUndo>) = (Vec::new(), Vec::new());
        for _ in 0..MOST_WITHOUT_EFFECT {
            let mut events = log.select(&selection, &passed);
            if let (true, ChangeSelection::Change(_)) = (events.is_empty(), &selection) {
                events = self.workspace().select_events(&selection).map_err(|error| cannot(error.to_string()))?;
            }
            if events.is_empty() && passed.is_empty() {
                return Err(self.nothing_to_undo(&selection));
            }
            if events.is_empty() {
                break;
            }
            let mut plan = self.plan_undo_of(&log, events, undo.force)?;
            unwritten.append(&mut plan.unwritten);
            if !plan.files.is_empty() || !plan.entries.is_empty() {
                return Ok(UndoPlan { unwritten, ..plan });
            }
            passed.extend(plan.events.iter().map(|event| event.change.clone()));
            if !matches!(selection, ChangeSelection::Last(_) | ChangeSelection::LastUndo(_)) {
                break;
            }
        }
        Ok(UndoPlan {
            files: Vec::new(),
            undid: Vec::new(),
            left: Vec::new(),
            kind: UndoKind::Undo,
            records: HashMap::new(),
            unwritten,
            entries: Vec::new(),
            events: Vec::new(),
            force: undo.force,
        })
    }

    fn nothing_to_undo(&self, selection: &ChangeSelection) -> Refusal {
        match selection {
            ChangeSelection::Last(_) => cannot("there is no change to undo".to_owned()),
            ChangeSelection::LastUndo(_) => cannot("there is no undo to take back".to_owned()),
            ChangeSelection::File(path, _) => {
                Refusal::of(path, Cause::CannotUndo { why: "there is no change of it to undo".to_owned() })
            }
            ChangeSelection::Change(change) => cannot(format!("there is no change {change}")),
            ChangeSelection::Session(session) => {
                let name = self.workspace().session_names().map_or_else(|_| session.to_string(), |names| names.name(session));
                cannot(format!("{name} has no change to undo"))
            }
        }
    }

    fn selection(&self, undo: &UndoRequest) -> Result<ChangeSelection, Refusal> {
        let by = match &undo.by {
            WhoseChanges::Mine => Some(self.id()),
            WhoseChanges::Session(session) => Some(session.clone()),
            WhoseChanges::Anyone => None,
        };
        Ok(match (&undo.which, by) {
            (UndoTarget::Last, by) => ChangeSelection::Last(by),
            (UndoTarget::LastUndo, by) => ChangeSelection::LastUndo(by),
            (UndoTarget::File(path), by) => ChangeSelection::File(self.path_of(path)?, by),
            (UndoTarget::Change(change), _) => ChangeSelection::Change(change.clone()),
            (UndoTarget::All, Some(session)) => ChangeSelection::Session(session),
            (UndoTarget::All, None) => return Err(cannot("name the session whose changes are to be taken back".to_owned())),
        })
    }

    /// Plans the undo of these events, newest first.
    fn plan_undo_of(&mut self, log: &EventLog, events: Vec<FileEvent>, force: bool) -> Result<UndoPlan, Refusal> {
        let (entries, changed): (Vec<EntryUndo>, Vec<EntryUndo>) =
            EntryUndo::of_events(&events).into_iter().partition(|entry| entry.is_as_left(self.workspace()));
        let other_kinds = entries.iter().chain(&changed).filter(|entry| entry.is_other_kind());
        let other_kinds: HashSet<RelPath> = other_kinds.map(|entry| entry.path.clone()).collect();
        let mut files = self.plan_files(log, &events, (&other_kinds, force))?;
        files.extend(entries.iter().filter(|entry| entry.is_other_kind()).map(FileUndo::of_entry));
        files.extend(
            changed
                .iter()
                .filter(|entry| entry.is_other_kind())
                .map(|entry| FileUndo::of_entry(entry).leave(NotUndone::whole(&entry.path))),
        );
        let is_anything_done = !entries.is_empty() || files.iter().any(|file| !file.files.is_empty());
        let of_mode = changed.iter().filter(|entry| !entry.is_other_kind()).map(|entry| NotUndone::whole(&entry.path));
        let left: Vec<NotUndone> = files.iter().filter_map(|file| file.left.clone()).chain(of_mode).collect();
        let is_redo = !events.is_empty() && events.iter().all(|event| log.role(event) == EventRole::Undo);
        let kind = if is_redo { UndoKind::Redo } else { UndoKind::Undo };
        if !is_anything_done && !left.is_empty() {
            let cause = Cause::ChangedSince { undo: kind, left };
            let [only] = &files[..] else { return Err(Refusal::of_call(cause)) };
            return Err(Refusal::of(&only.paths[0], cause));
        }
        let undid = undone_changes(log, &events, &files);
        let (mut planned, mut records, mut unwritten) = (Vec::new(), HashMap::new(), Vec::new());
        for file in files {
            if file.is_entry {
                records.insert(file.paths[0].clone(), file.record);
            } else if file.files.is_empty() {
                unwritten.push(UnwrittenUndo { path: file.paths[0].clone(), version: file.version, record: file.record });
            } else {
                records.extend(file.paths.into_iter().map(|path| (path, file.record.clone())));
                planned.extend(file.files);
            }
        }
        Ok(UndoPlan { files: planned, undid, left, kind, records, unwritten, entries, events, force })
    }

    pub(crate) fn replan_undo(&mut self, plan: UndoPlan) -> Result<UndoPlan, Refusal> {
        let log = self.workspace().event_log().map_err(|error| cannot(error.to_string()))?;
        self.plan_undo_of(&log, plan.events, plan.force)
    }

    /// Marks changes that were reverted by hand as undone, so that the next undo does not find them again.
    pub(crate) fn mark_all_undone(&self, plan: &UndoPlan) -> Refusal {
        self.mark_unwritten(&fresh_change(), &plan.origin(), &plan.unwritten);
        cannot("the files are already what they were before".to_owned())
    }

    /// Records the parts that were undone or left without a write.
    pub(crate) fn mark_unwritten(&self, change: &ChangeId, origin: &ChangeOrigin<'_>, unwritten: &[UnwrittenUndo]) {
        for UnwrittenUndo { path, version, record } in unwritten {
            self.workspace().record(StoreRecord::Happened(FileEvent {
                before: *version,
                after: *version,
                undoes: record.undoes.clone(),
                undone: record.undone.clone(),
                ..self.event_of(origin, change, path)
            }));
        }
    }

    /// Plans the undo for each file, except for paths in `others`, which were not regular files.
    fn plan_files(
        &mut self,
        log: &EventLog,
        events: &[FileEvent],
        (others, force): (&HashSet<RelPath>, bool),
    ) -> Result<Vec<FileUndo>, Refusal> {
        let mut nets = merge_events(events);
        nets.retain(|net| !others.contains(&net.path_after));
        let (nothing, nets): (Vec<NetChange>, Vec<NetChange>) = nets.into_iter().partition(NetChange::is_nothing);
        if let Some(name) = used_twice(&nets) {
            return Err(cannot(format!("{name} was the name of two files; undo the changes one by one, the last one first")));
        }
        let mut files: Vec<FileUndo> = Vec::new();
        let mut by_lines: HashSet<usize> = HashSet::new();
        let of = nets.len();
        for (index, net) in nets.iter().enumerate() {
            let place = BatchPlace { edit: index + 1, of, kind: BatchKind::Undo };
            let in_batch = |refusal: Refusal| if of > 1 { refusal.at(place) } else { refusal };
            let file = file_of(log, events, net);
            // If others moved the file in between, it has two entries in `nets`.
            let is_shared =
                file.is_some_and(|file| nets.iter().filter(|other| file_of(log, events, other) == Some(file)).count() > 1);
            let gathered = self.gather_by_name(PlanBasis::Disk, net.path_after.as_str()).map_err(in_batch)?;
            if force || (!is_shared && is_as_left(net, &gathered)) {
                files.push(self.plan_whole(events, net, gathered, force).map_err(in_batch)?);
                continue;
            }
            let Some(file) = file else {
                let undo = FileUndo::new(vec![net.path_after.clone()], net.changes.clone(), version_of(&gathered));
                files.push(undo.leave(left_as_whole(&net.path_after, NotUndoneCause::NotKept)));
                continue;
            };
            if by_lines.insert(file) {
                let chosen: Vec<&FileEvent> = events.iter().filter(|event| log.file_of(event) == Some(file)).collect();
                let history = FileHistory::of(self.workspace(), log, file, &chosen);
                files.push(self.plan_by_lines(log, &history).map_err(in_batch)?);
            }
        }
        // The changes created these files and deleted them again.
        files.extend(nothing.into_iter().map(|net| FileUndo::new(vec![net.path_after], net.changes, None)));
        Ok(files)
    }

    /// Plans to restore a file as a whole.
    fn plan_whole(
        &mut self,
        events: &[FileEvent],
        net: &NetChange,
        gathered: GatheredFile,
        force: bool,
    ) -> Result<FileUndo, Refusal> {
        let version = version_of(&gathered);
        let is_as_before = version == net.before && net.path_before == net.path_after;
        let wanted = match net.before {
            // If only the permissions have changed, the content may be in git alone.
            Some(version) if !is_as_before => Some(self.kept(&net.path_before, version)?),
            _ => None,
        };
        let paths = vec![net.path_after.clone(), net.path_before.clone()];
        let mut undo = FileUndo::new(paths, net.changes.clone(), version);
        if net.path_before != net.path_after {
            match self.plan_move_back(net, gathered, wanted, force)? {
                Ok(files) => undo.files = files,
                Err(why) => return Ok(undo.leave(left_as_whole(&net.path_after, why))),
            }
        } else if version != net.before {
            let lines = way_back(events, net);
            let restored = RestoredContent { content: wanted, mode: net.mode, lines };
            let planned = plan::restore(&self.target(&gathered), restored)?;
            undo.files = vec![PlannedFile::of(planned, &gathered)];
        }
        Ok(undo)
    }

    /// Plans to give a moved file its old name, and its content if that changed as well. The inner error is the reason
    /// if another file has the name.
    fn plan_move_back(
        &mut self,
        net: &NetChange,
        gathered: GatheredFile,
        wanted: Option<Content>,
        force: bool,
    ) -> Result<Result<Vec<PlannedFile>, NotUndoneCause>, Refusal> {
        let destination = self.gather_for_writing(PlanBasis::Disk, net.path_before.as_str())?;
        if destination.present != Present::Absent {
            let why = NotUndoneCause::NameTaken(net.path_before.clone());
            if !force {
                return Ok(Err(why));
            }
            // The caller did not ask to overwrite the other file.
            let left = vec![left_as_whole(&net.path_after, why)];
            return Err(Refusal::of(&net.path_before, Cause::ChangedSince { undo: UndoKind::Undo, left }));
        }
        self.plan_move(gathered, destination, wanted, net.mode).map(Ok)
    }

    /// Plans to give a file another name and content. If `wanted` is `None`, the file is removed.
    fn plan_move(
        &mut self,
        gathered: GatheredFile,
        destination: GatheredFile,
        wanted: Option<Content>,
        mode: Option<u32>,
    ) -> Result<Vec<PlannedFile>, Refusal> {
        if gathered.present.content() == wanted && wanted.is_some() {
            let planned = plan::move_back(&self.target(&gathered), &destination.path);
            return Ok(vec![PlannedFile::of(planned, &gathered)]);
        }
        let mut plans = Vec::new();
        if wanted.is_some() {
            let restored = RestoredContent { content: wanted, mode: gathered.mode.or(mode), lines: None };
            plans.push(PlannedFile::of(plan::restore(&self.target(&destination), restored)?, &destination));
        }
        if gathered.present != Present::Absent {
            plans.push(PlannedFile::of(plan::restore(&self.target(&gathered), RestoredContent::default())?, &gathered));
        }
        Ok(plans)
    }

    /// Plans to undo lines in a file that others have changed since.
    fn plan_by_lines(&mut self, log: &EventLog, history: &FileHistory) -> Result<FileUndo, Refusal> {
        let gathered = self.gather_by_name(PlanBasis::Disk, history.name.as_str())?;
        let changes = history.changes();
        let version = version_of(&gathered);
        let undo = match history.undo(self.workspace(), log, &gathered.present) {
            Ok(undo) => undo,
            Err(why) => {
                let undo = FileUndo::new(vec![history.name.clone()], changes, version);
                return Ok(undo.leave(left_as_whole(&history.name, why)));
            }
        };
        let LineUndo { text, lines, name, mode, undone, left, name_left } = undo;
        let content = text.clone().map(Content::Text);
        let is_same = gathered.present.content() == content;
        let mut paths = vec![history.name.clone()];
        let files = match (name == history.name, is_same) {
            (true, true) => Vec::new(),
            (true, false) => {
                let planned = plan::restore(&self.target(&gathered), RestoredContent { content, mode, lines })?;
                vec![PlannedFile::of(planned, &gathered)]
            }
            (false, _) => {
                let destination = self.gather_for_writing(PlanBasis::Disk, name.as_str())?;
                paths.push(name);
                self.plan_move(gathered, destination, content, mode)?
            }
        };
        let is_left = |change: &ChangeId| left.iter().any(|hunk| hunk.change == *change);
        let undoes = changes.iter().filter(|change| name_left.is_none() && !is_left(change)).cloned().collect();
        let mut record = UndoRecord { undoes, undone };
        record.note_tried(&changes);
        let extent = if left.is_empty() && name_left.is_none() { UndoExtent::ByLines } else { UndoExtent::Partly };
        let left = history.left(text, left, name_left);
        Ok(FileUndo { changes, extent, files, paths, record, version, left, is_entry: false })
    }

    /// The content of a replaced version. A text that is too large to be shown is restored as bytes.
    fn kept(&self, path: &RelPath, version: ContentHash) -> Result<Content, Refusal> {
        let limit = self.limits().file_bytes;
        let restorable = |content: Content| match content {
            Content::Text(text) if text.bytes().len() as u64 > limit => Content::Blob(Blob::new(text.bytes().to_vec())),
            content => content,
        };
        self.workspace().content_at(path, &version).map(restorable).ok_or_else(|| {
            let why = format!(
                "version {} is no longer kept (see versions.bytes and versions.days in surehand.toml); nothing was undone",
                version.short()
            );
            Refusal::of(path, Cause::CannotUndo { why })
        })
    }
}

impl FileUndo {
    /// An undo that reverts the changes as a whole.
    fn new(paths: Vec<RelPath>, changes: Vec<ChangeId>, version: Option<ContentHash>) -> Self {
        let record = UndoRecord { undoes: changes.clone(), undone: Vec::new() };
        let (extent, files) = (UndoExtent::Whole, Vec::new());
        Self { changes, extent, files, paths, record, version, left: None, is_entry: false }
    }

    /// The undo for a path that is restored as a whole.
    fn of_entry(entry: &EntryUndo) -> Self {
        Self { is_entry: true, ..Self::new(vec![entry.path.clone()], entry.changes.clone(), None) }
    }

    /// Leaves the whole file. The record says that the undo was attempted.
    fn leave(self, left: NotUndone) -> Self {
        let record = UndoRecord::nothing_of(&self.changes);
        Self { extent: UndoExtent::Partly, record, left: Some(left), is_entry: false, ..self }
    }

    /// Whether at least a part of a change was undone.
    fn is_done(&self, change: &ChangeId) -> bool {
        let has_hunks = |part: &UndonePart| part.change == *change && !part.hunks.is_empty();
        self.record.undoes.contains(change) || self.record.undone.iter().any(has_hunks)
    }
}

/// The extent to which each change was undone, newest first.
fn undone_changes(log: &EventLog, events: &[FileEvent], files: &[FileUndo]) -> Vec<UndoneChange> {
    let mut undone: Vec<UndoneChange> = Vec::new();
    for event in events {
        let mut of_change = files.iter().filter(|file| file.changes.contains(&event.change));
        let is_whole = |file: &FileUndo| file.record.undoes.contains(&event.change);
        let is_known = undone.iter().any(|undone| undone.change == event.change);
        if is_known || !of_change.clone().any(|file| file.is_done(&event.change)) {
            continue;
        }
        let extent = match (of_change.clone().all(is_whole), of_change.all(|file| file.extent == UndoExtent::Whole)) {
            (true, true) => UndoExtent::Whole,
            (true, false) => UndoExtent::ByLines,
            (false, _) => UndoExtent::Partly,
        };
        undone.push(UndoneChange { change: event.change.clone(), extent, edits: log.edits_of(event) });
    }
    undone
}

/// Whether a file is as the changes left it, or as it was before them, and no other change came in between.
fn is_as_left(net: &NetChange, gathered: &GatheredFile) -> bool {
    let now = version_of(gathered);
    let is_before = now == net.before && net.path_before == net.path_after;
    is_before || (now == net.after && !net.is_mixed)
}

fn file_of(log: &EventLog, events: &[FileEvent], net: &NetChange) -> Option<usize> {
    events.iter().find(|event| *event.name_after() == net.path_after).and_then(|event| log.file_of(event))
}

/// The line map from the content that the changes left to the content before them, if each event has a line map.
fn way_back(events: &[FileEvent], net: &NetChange) -> Option<LineMap> {
    let mut way: Option<LineMap> = None;
    let mut version = net.after;
    for event in events.iter().filter(|event| event.path == net.path_after && event.before != event.after) {
        if event.moved_to.is_some() || event.after != version {
            return None;
        }
        let lines = event.lines.as_ref()?;
        way = Some(way.map_or_else(|| lines.clone(), |way| lines.then(&way)));
        version = event.before;
    }
    way.filter(|_| version == net.before).map(|way| way.inverse())
}

/// A name that two of the files have or had, which makes it impossible to restore both at once.
fn used_twice(files: &[NetChange]) -> Option<&RelPath> {
    let mut seen = HashSet::new();
    files.iter().flat_map(|file| HashSet::from([&file.path_before, &file.path_after])).find(|name| !seen.insert(*name))
}

fn version_of(gathered: &GatheredFile) -> Option<ContentHash> {
    gathered.present.content().as_ref().map(Content::version)
}

fn left_as_whole(path: &RelPath, why: NotUndoneCause) -> NotUndone {
    NotUndone { path: path.clone(), text: None, hunks: Vec::new(), why: Some(why) }
}

fn cannot(why: String) -> Refusal {
    Refusal::of_call(Cause::CannotUndo { why })
}
