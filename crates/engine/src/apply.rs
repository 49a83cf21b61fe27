//! Carries out plans: commits an edit, and plans it again if a file has changed in between. `change_record` records the
//! result as one change.

use std::thread;

use surehand_core::{
    Cause, Content, Done, Edit, LineSet, Outcome, Planned, Present, Refusal, RelPath, Text,
    edit::UndoRequest,
    outcome::{ChangeOutcome, SameContent, undo::NotUndone},
};

use crate::{
    call_progress::CallProgress,
    change_log::{ChangeOrigin, fresh_change},
    change_record::MadeBy,
    disk::{
        commit::{CommitError, Committed, FileChange, NameSync, commit},
        journal::CommitMethod,
    },
    file_cache::{PlannedFile, keep_first},
    plan::{EditPlan, PlanStep},
    session::{ATTEMPTS, PlanBasis, ReplyGroup, Session},
};

impl Session {
    /// Commits a plan. If a file has changed since the plan was made, the edit is planned again.
    pub fn commit(&mut self, plan: EditPlan) -> Outcome {
        let EditPlan { session, edit, step } = plan;
        // A plan of another session must pass the gate of this one.
        let result = if session == self.id() { self.apply(&edit, step) } else { self.change(&edit) };
        self.finish_call(&edit, result)
    }

    /// Judges an edit and commits it.
    pub fn edit(&mut self, edit: &Edit) -> Outcome {
        self.begin_call(&CallProgress::default());
        let result = self.change(edit);
        self.finish_call(edit, result)
    }

    /// Undoes changes for a person. Instructions are for models, so none are given.
    pub fn undo(&mut self, undo: &UndoRequest) -> Outcome {
        self.begin_call(&CallProgress::default());
        let edit = Edit::Undo(undo.clone());
        let result = self.change(&edit);
        let mut outcome = self.finish_call_in(&[], &edit, result);
        if let Err(refused) = &mut outcome.result {
            // Only models are warned about repeated calls.
            refused.repeat = 1;
        }
        outcome
    }

    pub(crate) fn change(&mut self, edit: &Edit) -> Result<Done, Refusal> {
        let step = self.plan_on(PlanBasis::Disk, edit)?;
        self.apply(edit, step)
    }

    fn apply(&mut self, edit: &Edit, mut step: PlanStep) -> Result<Done, Refusal> {
        let names = match self.replies {
            ReplyGroup::Alone => NameSync::AtOnce,
            ReplyGroup::WithOthers => NameSync::WithOthers,
        };
        let mut last = None;
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                step = self.replan(edit, step)?;
            }
            let files = match &step {
                PlanStep::Change(files) => files,
                PlanStep::Undo(undo) if undo.files.is_empty() && undo.entries.is_empty() => {
                    return Err(self.mark_all_undone(undo));
                }
                PlanStep::Undo(undo) => &undo.files,
                PlanStep::Nothing(path, text) => {
                    if matches!(self.gather(path.as_str())?.present, Present::Text(now) if now == *text) {
                        return Ok(self.same_content(path.clone(), text.clone()));
                    }
                    last = Some(path.clone());
                    continue;
                }
            };
            let warnings = self.check_fleet(files)?;
            files.iter().try_for_each(|file| keep_first(&self.workspace, &file.planned))?;
            let changes: Vec<FileChange<'_>> =
                files.iter().map(|file| FileChange { planned: &file.planned, identity: file.facts.identity }).collect();
            let committed = match changes.is_empty() {
                // The undo only restores links, directories or permissions.
                true => Ok(Committed { stamps: Vec::new(), how: Vec::new() }),
                false => beside_comparison(files, || commit(&self.workspace.copy, &changes, names)),
            };
            match committed {
                Ok(committed) => {
                    self.queue_fleet_warnings(warnings);
                    return Ok(Done::Changed(self.record_step(edit, step, committed)));
                }
                Err(CommitError::Changed(path)) => {
                    // Forget the file regardless of its stamp.
                    self.files.forget(&path);
                    last = Some(path);
                }
                Err(CommitError::Refused(refusal) | CommitError::NoRoom(refusal)) => return Err(*refusal),
                Err(CommitError::Stopped) => {
                    return Err(Refusal::of_call(Cause::Io { why: CommitError::Stopped.to_string() }));
                }
            }
            if attempt > 3 {
                thread::sleep(std::time::Duration::from_millis(1 << attempt.min(6)));
            }
        }
        let path = last.expect("an attempt that does not return sets it");
        let why = "another program keeps writing it; nothing was written. Try again when it is quiet".to_owned();
        Err(Refusal::of(&path, Cause::Conflict { why }))
    }

    /// Plans the same edit, or the same undo, for the current content.
    fn replan(&mut self, edit: &Edit, step: PlanStep) -> Result<PlanStep, Refusal> {
        match step {
            PlanStep::Undo(undo) => Ok(PlanStep::Undo(self.replan_undo(undo)?)),
            PlanStep::Change(_) | PlanStep::Nothing(..) => self.plan_on(PlanBasis::Disk, edit),
        }
    }

    /// The file already has this content, so the session knows all of it.
    fn same_content(&mut self, path: RelPath, text: Text) -> Done {
        self.record_shown(&path, &text, &LineSet::whole(text.line_count()));
        let rewrites = self.count_rewrite(&path, true);
        Done::SameContent(SameContent { path, text, rewrites })
    }

    fn record_step(&mut self, edit: &Edit, step: PlanStep, committed: Committed) -> ChangeOutcome {
        match step {
            PlanStep::Undo(undo) => {
                let (change, origin, unwritten) = (fresh_change(), undo.origin(), undo.unwritten.clone());
                let recorded = undo.paths();
                let files = self.record_change(&change, &origin, undo.files, committed, MadeBy::Us);
                self.mark_unwritten(&change, &origin, &unwritten);
                let (entries, restored) = self.undo_entries(&undo.entries, &change, &origin, &recorded);
                let mut left = undo.left;
                let failed = restored.failed.into_iter();
                left.extend(failed.filter_map(|file| Some(NotUndone::failed(RelPath::new(&file.path).ok()?, file.why))));
                // The reply shows the lines that stay.
                for left in &left {
                    left.text.iter().for_each(|text| self.record_shown(&left.path, text, &left.shown()));
                }
                ChangeOutcome {
                    entries,
                    undo: undo.kind,
                    undid: undo.undid,
                    left,
                    ..ChangeOutcome::of(change, edit.tool(), files)
                }
            }
            PlanStep::Change(files) => self.record_edit(edit, files, committed, MadeBy::Us),
            PlanStep::Nothing(..) => unreachable!("a plan without changes is not committed"),
        }
    }

    /// Records an edit, and counts rewrites of whole files that change little.
    fn record_edit(&mut self, edit: &Edit, files: Vec<PlannedFile>, committed: Committed, by: MadeBy) -> ChangeOutcome {
        let (change, tool) = (fresh_change(), edit.tool());
        let files = self.record_change(&change, &ChangeOrigin::of(tool.name()), files, committed, by);
        let rewrites = match (edit, files.first()) {
            (Edit::Write { .. }, Some(file)) if !file.planned.is_new() => {
                self.count_rewrite(file.planned.path(), is_alike(&file.planned))
            }
            _ => 0,
        };
        ChangeOutcome { rewrites, ..ChangeOutcome::of(change, tool, files) }
    }

    /// Records an edit that another program has made, by comparing the files with the plan.
    pub(crate) fn adopt(&mut self, edit: &Edit, step: PlanStep) -> Option<Done> {
        let files = match step {
            PlanStep::Change(files) => files,
            PlanStep::Nothing(path, text) => return Some(self.same_content(path, text)),
            PlanStep::Undo(_) => return None,
        };
        // Without a stamp, each file is read.
        let committed = Committed { stamps: vec![None; files.len()], how: vec![CommitMethod::Swap; files.len()] };
        Some(Done::Changed(self.record_edit(edit, files, committed, MadeBy::ForeignTool)))
    }
}

/// For a text of at least this size, hashing and comparing is worth a thread.
const LARGE: usize = 256 << 10;

/// Commits, and meanwhile hashes and compares large texts, because a commit mostly waits for the disk.
fn beside_comparison<T>(files: &[PlannedFile], commit: impl FnOnce() -> T) -> T {
    let is_large = |file: &&PlannedFile| file.planned.text().is_some_and(|text| text.bytes().len() >= LARGE);
    let Some(PlannedFile { planned, .. }) = files.iter().find(is_large) else { return commit() };
    thread::scope(|scope| {
        // Without a thread, the results are computed later, when they are needed.
        let beside = |name: &str| thread::Builder::new().name(name.to_owned());
        let _ = beside("surehand-hash").spawn_scoped(scope, || planned.text().map(Text::version));
        if planned.needs_comparison() {
            let _ = beside("surehand-compare").spawn_scoped(scope, || planned.map());
        }
        commit()
    })
}

fn is_alike(planned: &Planned) -> bool {
    let (Some(Content::Text(base)), Some(text)) = (planned.base(), planned.text()) else { return false };
    let kept: usize = planned.map().kept().map(|(run, _)| run.len()).sum();
    let longer = base.line_count().max(text.line_count());
    // In a file with one or two lines, any change replaces most of it, so every rewrite counts.
    longer <= 2 || kept * 4 >= longer * 3
}
