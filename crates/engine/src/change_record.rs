//! Records changes that were carried out: an event for each file, and the session's view of the file after it.

use surehand_core::{
    Content, ContentHash, FileAction, Planned, Present, RelPath, Stamp, Text,
    outcome::{FileOutcome, Landed, RewrittenFile, WriteMethod},
};
use surehand_store::{ChangeId, FileEvent, StoreRecord};

use crate::{
    change_log::ChangeOrigin,
    disk::{commit::Committed, journal::CommitMethod},
    file_cache::PlannedFile,
    session::Session,
    time::now,
};

/// The program that carries out a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MadeBy {
    /// Surehand; the model sees the result.
    Us,
    /// Another agent's tool. The model knows what it sent, and sees no other result.
    ForeignTool,
}

impl Session {
    /// Records a change and updates the session's view of each file.
    pub(crate) fn record_change(
        &mut self,
        change: &ChangeId,
        origin: &ChangeOrigin<'_>,
        files: Vec<PlannedFile>,
        committed: Committed,
        by: MadeBy,
    ) -> Vec<FileOutcome> {
        let workspace = self.workspace().clone();
        let _together = workspace.store.hold();
        let mut outcomes = Vec::with_capacity(files.len());
        for ((file, stamp), how) in files.into_iter().zip(committed.stamps).zip(committed.how) {
            let mut event = self.event(origin, change, &file);
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
        outcomes
    }

    /// Keeps the content of a file that another program has written, if it differs from the plan, because it is stored
    /// nowhere else. Returns its version.
    fn keep_adopted(&mut self, outcome: &FileOutcome) -> Option<ContentHash> {
        if let Some(Content::Text(base)) = outcome.planned.base() {
            self.files.keep(&self.workspace, outcome.path(), base);
        }
        let text = outcome.text()?;
        self.files.keep(&self.workspace, outcome.path(), text);
        Some(text.version())
    }

    /// An event of this session about a file. The caller adds the effect on the file.
    pub(crate) fn event_of(&self, origin: &ChangeOrigin<'_>, change: &ChangeId, path: &RelPath) -> FileEvent {
        let record = origin.undoes.get(path).cloned().unwrap_or_default();
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
            undoes: record.undoes,
            delta: None,
            lines: None,
            undone: record.undone,
            entry: origin.entries.get(path).cloned(),
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
            // Another program wrote right after the commit, so the present content counts, not the content sent.
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

    /// Forgets a path whose file was deleted or replaced.
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
            // A moved file keeps its view. If another program has replaced it meanwhile, the gate will notice.
            _ if matches!(planned.act(), FileAction::Move { .. }) => Landed::AsPlanned,
            Present::Text(text) => Landed::Rewritten(Box::new(RewrittenFile::of(planned, sent, text))),
            Present::Absent | Present::Blob(..) | Present::Unreadable(_) => Landed::Gone,
        }
    }
}

fn written(how: CommitMethod) -> WriteMethod {
    match how {
        CommitMethod::Swap | CommitMethod::Create | CommitMethod::Remove | CommitMethod::Move => WriteMethod::Exchanged,
        CommitMethod::Rename => WriteMethod::Renamed,
        CommitMethod::InPlace => WriteMethod::InPlace,
    }
}
