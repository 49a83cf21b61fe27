//! Undo reverts changes. It overwrites later work only if the caller asks for that.

use std::collections::{HashMap, HashSet};

use surehand_core::{
    Blob, Cause, Content, ContentHash, Present, Refusal, RelPath, Text, Tool,
    edit::{UndoRequest, UndoTarget, WhoseChanges},
    outcome::UndoneChange,
    plan,
    refusal::{BatchKind, BatchPlace},
    short_diff::TextDiff,
};
use surehand_store::{ChangeId, FileEvent, StoreRecord};

use crate::{
    change_log::{ChangeSelection, NetChange, fresh_change, net},
    file_cache::{GatheredFile, PlannedFile},
    session::{PlanBasis, Session},
    time::now,
};

/// The most changes in a row that may have been reverted by hand.
const MOST_WITHOUT_EFFECT: usize = 1000;

/// Changes that are to be taken back, and what that takes.
#[derive(Debug)]
pub(crate) struct UndoPlan {
    pub files: Vec<PlannedFile>,
    pub undid: Vec<UndoneChange>,
    nets: Vec<NetChange>,
    /// Changes that were already reverted by hand and were skipped to find these.
    passed: Vec<NetChange>,
    force: bool,
}

impl UndoPlan {
    /// For each file, the changes that are taken back.
    pub(crate) fn undoes(&self) -> HashMap<RelPath, Vec<ChangeId>> {
        let both = |net: &NetChange| [net.path_after.clone(), net.path_before.clone()].map(|path| (path, net.changes.clone()));
        self.nets.iter().filter(|net| !net.is_nothing()).flat_map(both).collect()
    }

    /// The files for which nothing has to be done.
    pub(crate) fn without_effect(&self) -> Vec<NetChange> {
        let names = |net: &NetChange| [net.path_after.clone(), net.path_before.clone()];
        let is_done = |net: &&NetChange| self.files.iter().any(|file| names(net).contains(file.planned.path()));
        self.passed.iter().chain(self.nets.iter().filter(|net| !is_done(net))).cloned().collect()
    }
}

impl Session {
    /// Plans to revert changes, all of their files or none. Changes that were already reverted by hand are skipped when the
    /// last change is looked for. If none is left, no file is changed.
    pub(crate) fn plan_undo(&mut self, undo: &UndoRequest) -> Result<UndoPlan, Refusal> {
        let selection = self.selection(undo)?;
        let mut passed: Vec<NetChange> = Vec::new();
        for _ in 0..MOST_WITHOUT_EFFECT {
            let known: Vec<ChangeId> = passed.iter().flat_map(|net| net.changes.clone()).collect();
            let events = self.workspace().select(&selection, &known).map_err(|error| cannot(error.to_string()))?;
            if events.is_empty() && passed.is_empty() {
                return Err(cannot(nothing_found(&selection)));
            }
            if events.is_empty() {
                break;
            }
            let plan = self.plan_undo_of(&events, undo.force)?;
            if !plan.files.is_empty() {
                return Ok(UndoPlan { passed, ..plan });
            }
            passed.extend(plan.nets);
            if !matches!(selection, ChangeSelection::Last(_)) {
                break;
            }
        }
        Ok(UndoPlan { files: Vec::new(), undid: Vec::new(), nets: Vec::new(), passed, force: undo.force })
    }

    fn selection(&self, undo: &UndoRequest) -> Result<ChangeSelection, Refusal> {
        let by = match &undo.by {
            WhoseChanges::Mine => Some(self.id()),
            WhoseChanges::Session(session) => Some(session.clone()),
            WhoseChanges::Anyone => None,
        };
        Ok(match (&undo.which, by) {
            (UndoTarget::Last, by) => ChangeSelection::Last(by),
            (UndoTarget::File(path), by) => ChangeSelection::File(self.path_of(path)?, by),
            (UndoTarget::Change(change), _) => ChangeSelection::Change(change.clone()),
            (UndoTarget::All, Some(session)) => ChangeSelection::Session(session),
            (UndoTarget::All, None) => return Err(cannot("name the session whose changes are to be taken back".to_owned())),
        })
    }

    fn plan_undo_of(&mut self, events: &[FileEvent], force: bool) -> Result<UndoPlan, Refusal> {
        let (nothing, nets): (Vec<NetChange>, Vec<NetChange>) = net(events).into_iter().partition(NetChange::is_nothing);
        if let Some(name) = used_twice(&nets) {
            return Err(cannot(format!("{name} was the name of two files; undo the changes one by one, the last one first")));
        }
        let mut undid: Vec<UndoneChange> =
            events.iter().map(|event| UndoneChange { change: event.change.clone(), tool: event.tool.clone() }).collect();
        undid.dedup_by(|one, other| one.change == other.change);
        let files = self.plan_nets(&nets, force)?;
        Ok(UndoPlan { files, undid, nets: nets.into_iter().chain(nothing).collect(), passed: Vec::new(), force })
    }

    /// Marks changes that were reverted by hand as undone, so that they are not found again and again.
    pub(crate) fn mark_all_undone(&self, plan: &UndoPlan) -> Refusal {
        self.mark_undone(&fresh_change(), &plan.without_effect());
        cannot("the files are already what they were before".to_owned())
    }

    pub(crate) fn replan_undo(&mut self, plan: UndoPlan) -> Result<UndoPlan, Refusal> {
        let files = self.plan_nets(&plan.nets, plan.force)?;
        Ok(UndoPlan { files, ..plan })
    }

    fn plan_nets(&mut self, nets: &[NetChange], force: bool) -> Result<Vec<PlannedFile>, Refusal> {
        let mut files = Vec::new();
        let of = nets.iter().filter(|net| !net.is_nothing()).count();
        for (index, net) in nets.iter().filter(|net| !net.is_nothing()).enumerate() {
            let planned = self.plan_net(net, force).map_err(|refusal| {
                let place = BatchPlace { edit: index + 1, of, kind: BatchKind::Undo };
                if of > 1 { refusal.at(place) } else { refusal }
            })?;
            files.extend(planned);
        }
        Ok(files)
    }

    /// Writes down that changes are taken back for which nothing had to be done: they would come up again and again.
    pub(crate) fn mark_undone(&self, change: &ChangeId, files: &[NetChange]) {
        for file in files {
            self.workspace().record(StoreRecord::Happened(FileEvent {
                change: change.clone(),
                at: now(),
                session: self.id(),
                tool: Tool::Undo.name().to_owned(),
                path: file.path_after.clone(),
                moved_to: None,
                before: file.before,
                after: file.before,
                mode: None,
                undoes: file.changes.clone(),
                delta: None,
                lines: None,
            }));
        }
    }

    fn plan_net(&mut self, file: &NetChange, force: bool) -> Result<Vec<PlannedFile>, Refusal> {
        let gathered = self.gather_by_name(PlanBasis::Disk, file.path_after.as_str())?;
        let wanted = match file.before {
            None => None,
            Some(version) => Some(self.kept(&file.path_before, version)?),
        };
        let now = gathered.present.content();
        if now.as_ref().map(Content::version) == file.before && file.path_before == file.path_after {
            return Ok(Vec::new());
        }
        let is_as_left = now.as_ref().map(Content::version) == file.after && !file.is_mixed;
        if !is_as_left && !force {
            let diff = diff(now.as_ref(), wanted.as_ref());
            return Err(Refusal::of(&file.path_after, Cause::ChangedSince { diff }));
        }
        if file.path_before == file.path_after {
            let planned = plan::restore(&self.target(&gathered), wanted.as_ref(), file.mode)?;
            return Ok(vec![PlannedFile::of(planned, &gathered)]);
        }
        self.plan_move_back(file, gathered, wanted)
    }

    /// A file that was moved gets its name back, and its content if that changed as well.
    fn plan_move_back(
        &mut self,
        file: &NetChange,
        gathered: GatheredFile,
        wanted: Option<Content>,
    ) -> Result<Vec<PlannedFile>, Refusal> {
        let there = self.gather_for_writing(PlanBasis::Disk, file.path_before.as_str())?;
        if there.present != Present::Absent {
            let diff = diff(there.present.content().as_ref(), wanted.as_ref());
            return Err(Refusal::of(&file.path_before, Cause::ChangedSince { diff }));
        }
        if gathered.present.content() == wanted {
            let planned = plan::move_back(&self.target(&gathered), &file.path_before);
            return Ok(vec![PlannedFile::of(planned, &gathered)]);
        }
        let mut plans = Vec::new();
        if wanted.is_some() {
            let mode = gathered.mode.or(file.mode);
            plans.push(PlannedFile::of(plan::restore(&self.target(&there), wanted.as_ref(), mode)?, &there));
        }
        if gathered.present != Present::Absent {
            plans.push(PlannedFile::of(plan::restore(&self.target(&gathered), None, None)?, &gathered));
        }
        Ok(plans)
    }

    /// A version that was replaced. What is too large to be shown comes back as bytes.
    fn kept(&self, path: &RelPath, version: ContentHash) -> Result<Content, Refusal> {
        let limit = self.limits().file_bytes;
        let as_it_is = |content: Content| match content {
            Content::Text(text) if text.bytes().len() as u64 > limit => Content::Blob(Blob::new(text.bytes().to_vec())),
            content => content,
        };
        self.workspace().content_at(path, &version).map(as_it_is).ok_or_else(|| {
            let why = format!(
                "version {} is no longer kept (see versions.bytes and versions.days in surehand.toml); nothing was undone",
                version.short()
            );
            Refusal::of(path, Cause::CannotUndo { why })
        })
    }
}

/// A name that two of the files have or had: they cannot get their places back all at once.
fn used_twice(files: &[NetChange]) -> Option<&RelPath> {
    let mut seen = HashSet::new();
    files.iter().flat_map(|file| HashSet::from([&file.path_before, &file.path_after])).find(|name| !seen.insert(*name))
}

/// The difference between the present content and the restored one; `None` if either is not text.
fn diff(now: Option<&Content>, wanted: Option<&Content>) -> Option<Box<TextDiff>> {
    let now = now.and_then(Content::text)?;
    let empty = Text::of(String::new()).expect("nothing is text");
    let wanted = wanted.and_then(Content::text).unwrap_or(&empty);
    Some(Box::new(TextDiff::of(now.clone(), wanted.clone()))).filter(|texts| !texts.diff.rows.is_empty())
}

fn cannot(why: String) -> Refusal {
    Refusal::of_call(Cause::CannotUndo { why })
}

fn nothing_found(selection: &ChangeSelection) -> String {
    match selection {
        ChangeSelection::Last(_) => "there is no change to undo".to_owned(),
        ChangeSelection::File(path, _) => format!("there is no change of {path} to undo"),
        ChangeSelection::Change(change) => format!("there is no change {change}"),
        ChangeSelection::Session(session) => format!("session {session} has no change to undo"),
    }
}
