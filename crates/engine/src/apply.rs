//! Carries out plans: commits an edit, plans it again if a file has changed in between, and records the result as one change.

use std::{collections::HashMap, thread};

use surehand_core::{
    Cause, Content, ContentHash, Done, Edit, FileAction, LineSet, Outcome, Planned, Present, Refusal, RelPath, Stamp, Text,
    edit::UndoRequest,
    outcome::{ChangeOutcome, FileOutcome, Landed, RewrittenFile, SameContent, WriteMethod},
};
use surehand_store::{ChangeId, FileEvent, StoreRecord};

use crate::{
    call_progress::CallProgress,
    change_log::fresh_change,
    disk::{
        commit::{CommitError, Committed, FileChange, commit},
        journal::CommitMethod,
    },
    file_cache::{PlannedFile, keep_first},
    plan::{EditPlan, PlanStep},
    session::{PlanBasis, Session},
    time::now,
};

/// How often an edit is planned again because its file changed meanwhile.
pub(crate) const ATTEMPTS: usize = 20;

/// The tool that makes a change, and the earlier changes that it reverts.
pub(crate) struct ChangeOrigin<'a> {
    pub tool: &'a str,
    /// For each file, the changes that it takes back.
    pub undoes: HashMap<RelPath, Vec<ChangeId>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MadeBy {
    /// We have, and the model is shown what was done.
    Us,
    /// A tool that is not ours. The model knows what it sent, and is shown nothing by us.
    ForeignTool,
}

impl<'a> ChangeOrigin<'a> {
    pub(crate) fn of(tool: &'a str) -> Self {
        Self { tool, undoes: HashMap::new() }
    }
}

impl Session {
    /// Carries out a plan. If a file has changed since it was made, it is made anew.
    pub fn commit(&mut self, plan: EditPlan) -> Outcome {
        let EditPlan { session, edit, step } = plan;
        // What another session may do is not what this one may.
        let result = if session == self.id() { self.apply(&edit, step) } else { self.change(&edit) };
        self.finish_call(&edit, result)
    }

    /// Judges an edit and carries it out.
    pub fn edit(&mut self, edit: &Edit) -> Outcome {
        self.begin_call(&CallProgress::default());
        let result = self.change(edit);
        self.finish_call(edit, result)
    }

    /// Takes changes back for a person. Instructions are for models, and none are given.
    pub fn undo(&mut self, undo: &UndoRequest) -> Outcome {
        self.begin_call(&CallProgress::default());
        let edit = Edit::Undo(undo.clone());
        let result = self.change(&edit);
        self.finish_call_in(&[], &edit, result)
    }

    pub(crate) fn change(&mut self, edit: &Edit) -> Result<Done, Refusal> {
        let step = self.plan_on(PlanBasis::Disk, edit)?;
        self.apply(edit, step)
    }

    fn apply(&mut self, edit: &Edit, mut step: PlanStep) -> Result<Done, Refusal> {
        let mut last = None;
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                step = self.replan(edit, step)?;
            }
            let files = match &step {
                PlanStep::Change(files) => files,
                PlanStep::Undo(undo) if undo.files.is_empty() => return Err(self.mark_all_undone(undo)),
                PlanStep::Undo(undo) => &undo.files,
                PlanStep::Nothing(path, text) => {
                    if matches!(self.gather(path.as_str())?.present, Present::Text(now) if now == *text) {
                        return Ok(self.same_content(path.clone(), text.clone()));
                    }
                    last = Some(path.clone());
                    continue;
                }
            };
            files.iter().try_for_each(|file| keep_first(&self.workspace, &file.planned))?;
            let changes: Vec<FileChange<'_>> =
                files.iter().map(|file| FileChange { planned: &file.planned, identity: file.facts.identity }).collect();
            match beside_comparison(files, || commit(&self.workspace.copy, &changes)) {
                Ok(committed) => return Ok(Done::Changed(self.record_step(edit, step, committed))),
                Err(CommitError::Changed(path)) => {
                    // Whatever its stamp says.
                    self.files.forget(&path);
                    last = Some(path);
                }
                Err(CommitError::Refused(refusal)) => return Err(*refusal),
                Err(CommitError::Stopped) => {
                    return Err(Refusal::of_call(Cause::Io { why: CommitError::Stopped.to_string() }));
                }
            }
            if attempt > 3 {
                thread::sleep(std::time::Duration::from_millis(1 << attempt.min(6)));
            }
        }
        let path = last.expect("every attempt that comes here has set it");
        let why = "another program keeps writing it; nothing was written. Try again when it is quiet".to_owned();
        Err(Refusal::of(&path, Cause::Conflict { why }))
    }

    /// Plans the same edit for the present content; an undo, for the same changes.
    fn replan(&mut self, edit: &Edit, step: PlanStep) -> Result<PlanStep, Refusal> {
        match step {
            PlanStep::Undo(undo) => Ok(PlanStep::Undo(self.replan_undo(undo)?)),
            PlanStep::Change(_) | PlanStep::Nothing(..) => self.plan_on(PlanBasis::Disk, edit),
        }
    }

    /// A write of what is there already: the session knows all of it.
    fn same_content(&mut self, path: RelPath, text: Text) -> Done {
        self.record_shown(&path, &text, &LineSet::whole(text.line_count()));
        let rewrites = self.count_rewrite(&path, true);
        Done::SameContent(SameContent { path, text, rewrites })
    }

    fn record_step(&mut self, edit: &Edit, step: PlanStep, committed: Committed) -> ChangeOutcome {
        let tool = edit.tool();
        match step {
            PlanStep::Undo(undo) => {
                let origin = ChangeOrigin { tool: tool.name(), undoes: undo.undoes() };
                let (without_effect, undid) = (undo.without_effect(), undo.undid);
                let (change, files) = self.record_change(&origin, undo.files, committed, MadeBy::Us);
                self.mark_undone(&change, &without_effect);
                ChangeOutcome { change, tool, files, undid, rewrites: 0 }
            }
            PlanStep::Change(files) => {
                let (change, files) = self.record_change(&ChangeOrigin::of(tool.name()), files, committed, MadeBy::Us);
                let rewrites = self.count_if_rewrite(edit, &files);
                ChangeOutcome { change, tool, files, undid: Vec::new(), rewrites }
            }
            PlanStep::Nothing(..) => unreachable!("what is not committed is not recorded"),
        }
    }

    /// Counts a write over a file; gives how many there have been that changed little.
    fn count_if_rewrite(&mut self, edit: &Edit, files: &[FileOutcome]) -> u32 {
        match (edit, files.first()) {
            (Edit::Write { .. }, Some(file)) if !file.planned.is_new() => {
                self.count_rewrite(file.planned.path(), is_alike(&file.planned))
            }
            _ => 0,
        }
    }

    /// Records a plan that another program has carried out: what is there now is compared with what was planned.
    pub(crate) fn adopt(&mut self, edit: &Edit, step: PlanStep) -> Option<Done> {
        let tool = edit.tool();
        let files = match step {
            PlanStep::Change(files) => files,
            PlanStep::Nothing(path, text) => return Some(self.same_content(path, text)),
            PlanStep::Undo(_) => return None,
        };
        // Without a stamp, each file is looked at.
        let committed = Committed { stamps: vec![None; files.len()], how: vec![CommitMethod::Swap; files.len()] };
        let (change, files) = self.record_change(&ChangeOrigin::of(tool.name()), files, committed, MadeBy::ForeignTool);
        let rewrites = self.count_if_rewrite(edit, &files);
        Some(Done::Changed(ChangeOutcome { change, tool, files, undid: Vec::new(), rewrites }))
    }

    /// Records what was done, and what the session knows of each file afterwards.
    pub(crate) fn record_change(
        &mut self,
        origin: &ChangeOrigin<'_>,
        files: Vec<PlannedFile>,
        committed: Committed,
        by: MadeBy,
    ) -> (ChangeId, Vec<FileOutcome>) {
        let change = fresh_change();
        let workspace = self.workspace().clone();
        let _together = workspace.store.hold();
        let mut outcomes = Vec::with_capacity(files.len());
        for ((file, stamp), how) in files.into_iter().zip(committed.stamps).zip(committed.how) {
            let mut event = self.event(origin, &change, &file);
            let outcome = self.record_file_state(file.planned, stamp, how, by);
            match by {
                MadeBy::ForeignTool if outcome.is_rewritten() => {
                    (event.after, event.lines) = (self.keep_adopted(&outcome), None);
                }
                MadeBy::Us | MadeBy::ForeignTool => event.delta = self.files.keep_change(&self.workspace, &outcome.planned),
            }
            self.workspace().record(StoreRecord::Happened(event));
            outcomes.push(outcome);
        }
        (change, outcomes)
    }

    /// Keeps what is at the path of a file that another program has written, where that is not what was planned: the rest never was
    /// anywhere. Gives its version.
    fn keep_adopted(&mut self, outcome: &FileOutcome) -> Option<ContentHash> {
        if let Some(Content::Text(base)) = outcome.planned.base() {
            self.files.keep(&self.workspace, outcome.path(), base);
        }
        let text = outcome.text()?;
        self.files.keep(&self.workspace, outcome.path(), text);
        Some(text.version())
    }

    /// An event of this session about a file; what became of the file is for others to say.
    pub(crate) fn event_of(&self, origin: &ChangeOrigin<'_>, change: &ChangeId, path: &RelPath) -> FileEvent {
        FileEvent {
            change: change.clone(),
            at: now(),
            session: self.id(),
            tool: origin.tool.to_owned(),
            path: path.clone(),
            moved_to: None,
            before: None,
            after: None,
            mode: None,
            undoes: origin.undoes.get(path).cloned().unwrap_or_default(),
            delta: None,
            lines: None,
        }
    }

    fn event(&self, origin: &ChangeOrigin<'_>, change: &ChangeId, file: &PlannedFile) -> FileEvent {
        let planned = &file.planned;
        FileEvent {
            moved_to: planned.moved_to().cloned(),
            before: planned.base().map(Content::version),
            after: planned.after().map(Content::version),
            mode: file.facts.mode.filter(|_| *planned.act() == FileAction::Remove),
            lines: planned.provenance().cloned(),
            ..self.event_of(origin, change, planned.path())
        }
    }

    /// Updates the cache and the view of a file after a change.
    fn record_file_state(&mut self, planned: Planned, stamp: Option<Stamp>, how: CommitMethod, by: MadeBy) -> FileOutcome {
        let is_renamed = planned.path_after().is_none_or(|after| after != planned.path());
        if is_renamed {
            self.forget_file(planned.path());
        }
        let landed = match (planned.path_after(), planned.text(), stamp) {
            (Some(path), Some(text), Some(stamp)) => {
                self.files.record_found(&self.workspace, path, text, stamp);
                Landed::AsPlanned
            }
            // Another program was at it right after us: what landed counts, not what was sent.
            (Some(path), Some(text), None) => self.content_after_commit(path, text, &planned),
            (Some(path), None, _) => {
                self.forget_file(path);
                Landed::AsPlanned
            }
            (None, ..) => Landed::AsPlanned,
        };
        let file = FileOutcome::of(planned, landed, written(how));
        let view = match by {
            MadeBy::Us => file.view_after(),
            MadeBy::ForeignTool => file.view_untold(),
        };
        if let (Some(view), Some(_)) = (view, file.planned.text()) {
            self.set_view(file.path(), view);
        }
        file
    }

    /// Nothing is known of a path any more: we have taken away what was there, or put something else in its place.
    pub(crate) fn forget_file(&mut self, path: &RelPath) {
        self.files.forget(path);
        if let Some(tracker) = &mut self.tracker {
            tracker.forget(&self.workspace, std::slice::from_ref(path));
        }
    }

    /// The content at the path right after a commit.
    fn content_after_commit(&mut self, path: &RelPath, sent: &Text, planned: &Planned) -> Landed {
        let Ok(gathered) = self.files.gather(&self.workspace, path.as_str()) else { return Landed::AsPlanned };
        match gathered.present {
            Present::Text(text) if text == *sent => Landed::AsPlanned,
            // A file that was moved keeps the view that it had: the gate will find that it is another one.
            _ if matches!(planned.act(), FileAction::Move { .. }) => Landed::AsPlanned,
            Present::Text(text) => Landed::Rewritten(Box::new(RewrittenFile::of(planned, sent, text))),
            Present::Absent | Present::Blob(..) | Present::Unreadable(_) => Landed::Gone,
        }
    }
}

/// From here on it is worth a thread to hash a text, and to compare it with the one that it replaces.
const LARGE: usize = 256 << 10;

/// Commits, and hashes and compares meanwhile what is large: a commit mostly waits for the disk.
fn beside_comparison<T>(files: &[PlannedFile], commit: impl FnOnce() -> T) -> T {
    let is_large = |file: &&PlannedFile| file.planned.text().is_some_and(|text| text.bytes().len() >= LARGE);
    let Some(PlannedFile { planned, .. }) = files.iter().find(is_large) else { return commit() };
    thread::scope(|scope| {
        // Without a thread it is done when it is needed.
        let beside = |name: &str| thread::Builder::new().name(name.to_owned());
        let _ = beside("surehand-hash").spawn_scoped(scope, || planned.text().map(Text::version));
        if planned.needs_comparison() {
            let _ = beside("surehand-compare").spawn_scoped(scope, || planned.map());
        }
        commit()
    })
}

fn written(how: CommitMethod) -> WriteMethod {
    match how {
        CommitMethod::Swap | CommitMethod::Create | CommitMethod::Remove | CommitMethod::Move => WriteMethod::Exchanged,
        CommitMethod::Rename => WriteMethod::Renamed,
        CommitMethod::InPlace => WriteMethod::InPlace,
    }
}

/// Whether a rewrite left most lines as they were.
fn is_alike(planned: &Planned) -> bool {
    let (Some(Content::Text(base)), Some(text)) = (planned.base(), planned.text()) else { return false };
    let kept: usize = planned.map().kept().map(|(run, _)| run.len()).sum();
    let longer = base.line_count().max(text.line_count());
    // Of a file of one or two lines hardly anything is left after any change: there every rewrite counts.
    longer <= 2 || kept * 4 >= longer * 3
}
