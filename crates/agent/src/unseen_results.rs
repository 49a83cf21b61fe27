//! The model writes all calls of an answer before it sees the result of the first. Lines shown by an earlier call count
//! as read for the session, although the model has not seen them yet. This module finds the calls that rely on such
//! lines.

use std::collections::{HashMap, HashSet};

use surehand_engine::{
    Call, Edit, Session, Tool,
    core::{ContentHash, RefusalCode, RelPath},
    tools,
};

use crate::{call_outcome::CallOutcome, model, tool::DONE};

/// What the session knew when the model wrote an answer, and what its calls have revealed since.
#[derive(Debug, Default)]
pub(crate) struct UnseenResults {
    overwrites: HashMap<RelPath, OverwriteTarget>,
    /// The files whose edits were refused because they had changed.
    stale: HashSet<RelPath>,
    has_failed: bool,
}

#[derive(Debug)]
struct OverwriteTarget {
    /// The version that the session has seen completely.
    version: Option<ContentHash>,
    /// Whether the model has not seen that version: it was shown, or made by someone else, while the answer was carried
    /// out.
    is_news: bool,
}

impl UnseenResults {
    /// Notes what the session knows before the calls of an answer are carried out.
    pub(crate) fn before_answer(session: &mut Session, calls: &[model::ModelCall]) -> Self {
        let mut overwrites = HashMap::new();
        for call in calls.iter().filter(|call| Tool::named(&call.name) == Some(Tool::WriteFile)) {
            let Ok(arguments) = serde_json::from_str(&call.arguments) else { continue };
            let Ok(Call::Edit(edit)) = tools::parse(Tool::WriteFile, &arguments) else { continue };
            for path in targets(session, &edit) {
                let version = fully_seen_version(session, &path);
                overwrites.insert(path, OverwriteTarget { version, is_news: false });
            }
        }
        Self { overwrites, ..Self::default() }
    }

    /// Why an edit must not be carried out: it would change content that the model has not seen.
    pub(crate) fn objection(&mut self, session: &mut Session, edit: &Edit) -> Option<String> {
        self.refresh(session, |target, now| target.is_news |= target.version != now);
        let is_write = matches!(edit, Edit::Write { .. });
        let is_unseen = |path: &RelPath| {
            let is_news = || self.overwrites.get(path).is_some_and(|target| target.is_news && target.version.is_some());
            self.stale.contains(path) || is_write && is_news() && session.workspace().config().policy.require_read
        };
        let path = targets(session, edit).into_iter().find(is_unseen)?;
        let tool = edit.tool().name();
        Some(format!(
            "{tool} was not carried out: when you wrote this call, you had not seen the current content of {path}. You see it now: decide again."
        ))
    }

    /// Why `done` must be refused: another call of the same answer failed, which the model does not know yet.
    pub(crate) fn is_done_too_early(&self) -> Option<String> {
        let why =
            || format!("Not done: another call of the same answer has failed. Check its result, then continue or call {DONE}.");
        self.has_failed.then(why)
    }

    pub(crate) fn observe(&mut self, session: &mut Session, result: &CallOutcome) {
        self.has_failed |= result.has_failed();
        let Some(outcome) = result.outcome() else { return };
        if let Some(refusal) = outcome.refusal()
            && matches!(refusal.code(), RefusalCode::Stale | RefusalCode::Deleted | RefusalCode::AnchorMismatch)
        {
            self.stale.extend(refusal.known_path());
        }
        let Some(changed) = outcome.changed() else { return };
        // The model knows the files that it just wrote, except for changes of others in a file whose edit was rebased
        // or repaired.
        self.refresh(session, |_, _| ());
        for file in &changed.files {
            let Some(target) = self.overwrites.get_mut(file.path()) else { continue };
            let has_others = result.is_repaired || file.planned.rebased().is_some();
            target.is_news = has_others || target.is_news && changed.tool != Tool::WriteFile;
        }
    }

    fn refresh(&mut self, session: &mut Session, judge: impl Fn(&mut OverwriteTarget, Option<ContentHash>)) {
        for (path, target) in &mut self.overwrites {
            let now = fully_seen_version(session, path);
            judge(target, now);
            target.version = now;
        }
    }
}

fn fully_seen_version(session: &mut Session, path: &RelPath) -> Option<ContentHash> {
    let workspace = session.workspace().clone();
    let view = session.tracker()?.view(&workspace, path)?;
    view.is_whole().then(|| view.version())
}

/// The files that an edit would change. Bad paths are left to the tool to refuse.
fn targets(session: &Session, edit: &Edit) -> Vec<RelPath> {
    edit.paths().iter().filter_map(|path| session.path_of(path).ok()).collect()
}
