//! All calls of an answer were written before the first of them was carried out. What comes to light on the way counts as read for the
//! session, but the model has not seen it yet: here such calls are told from those that the model could answer for.

use std::collections::{HashMap, HashSet};

use surehand_engine::{
    Call, Edit, Session, Tool,
    core::{ContentHash, RefusalCode, RelPath},
    tools,
};

use crate::{call_outcome::CallOutcome, model, tool::DONE};

/// What the model knew when it wrote an answer, and what has come to light since.
#[derive(Debug, Default)]
pub(crate) struct UnseenResults {
    /// The files that are to be written over.
    whole: HashMap<RelPath, OverwriteTarget>,
    /// Files that turned out to be others than the model thought.
    stale: HashSet<RelPath>,
    has_failed: bool,
}

/// What is known of a file that is to be written over.
#[derive(Debug)]
struct OverwriteTarget {
    /// The version that the session has seen in whole.
    version: Option<ContentHash>,
    /// Whether the model has not: it was shown, or somebody else made it, while the answer was carried out.
    is_news: bool,
}

impl UnseenResults {
    /// Before an answer is carried out.
    pub(crate) fn before_answer(session: &mut Session, calls: &[model::ModelCall]) -> Self {
        let mut whole = HashMap::new();
        for call in calls.iter().filter(|call| Tool::named(&call.name) == Some(Tool::WriteFile)) {
            let Ok(arguments) = serde_json::from_str(&call.arguments) else { continue };
            let Ok(Call::Edit(edit)) = tools::parse(Tool::WriteFile, &arguments) else { continue };
            for path in targets(session, &edit) {
                let version = fully_seen_version(session, &path);
                whole.insert(path, OverwriteTarget { version, is_news: false });
            }
        }
        Self { whole, ..Self::default() }
    }

    /// Why the next call must not be carried out: it would change what the model has not seen.
    pub(crate) fn objection(&mut self, session: &mut Session, edit: &Edit) -> Option<String> {
        self.refresh(session, |whole, now| whole.is_news |= whole.version != now);
        let is_write = matches!(edit, Edit::Write { .. });
        let is_unseen = |path: &RelPath| {
            let is_news = || self.whole.get(path).is_some_and(|whole| whole.is_news && whole.version.is_some());
            self.stale.contains(path) || is_write && is_news() && session.workspace().config().policy.require_read
        };
        let path = targets(session, edit).into_iter().find(is_unseen)?;
        let tool = edit.tool().name();
        Some(format!(
            "{tool} was not carried out: you had not seen what {path} holds now when you wrote this call. You see it now: decide anew."
        ))
    }

    /// Why the run is not done: the model says so without knowing what came of its other calls.
    pub(crate) fn is_done_too_early(&self) -> Option<String> {
        let why =
            || format!("Not done: another call of the same answer has failed. See what came of it, then go on or call {DONE}.");
        self.has_failed.then(why)
    }

    /// A call has come to this.
    pub(crate) fn observe(&mut self, session: &mut Session, result: &CallOutcome) {
        self.has_failed |= result.has_failed();
        let Some(outcome) = result.outcome() else { return };
        if let Some(refusal) = outcome.refusal()
            && matches!(refusal.code(), RefusalCode::Stale | RefusalCode::Deleted | RefusalCode::AnchorMismatch)
        {
            self.stale.extend(refusal.known_path());
        }
        let Some(changed) = outcome.changed() else { return };
        // What the model made of a file it knows. But an edit that was made in spite of somebody else's change has left that in the file.
        self.refresh(session, |_, _| ());
        for file in &changed.files {
            let Some(whole) = self.whole.get_mut(file.path()) else { continue };
            let has_others = result.is_repaired || file.planned.rebased().is_some();
            whole.is_news = has_others || whole.is_news && changed.tool != Tool::WriteFile;
        }
    }

    /// Looks at what the session has seen by now.
    fn refresh(&mut self, session: &mut Session, judge: impl Fn(&mut OverwriteTarget, Option<ContentHash>)) {
        for (path, whole) in &mut self.whole {
            let now = fully_seen_version(session, path);
            judge(whole, now);
            whole.version = now;
        }
    }
}

fn fully_seen_version(session: &mut Session, path: &RelPath) -> Option<ContentHash> {
    let workspace = session.workspace().clone();
    let view = session.tracker()?.view(&workspace, path)?;
    view.is_whole().then(|| view.version())
}

/// The files that an edit would change. What is no path is left to the tool.
fn targets(session: &Session, edit: &Edit) -> Vec<RelPath> {
    edit.paths().iter().filter_map(|path| session.path_of(path).ok()).collect()
}
