//! Edits by the client's tools: judged before the tool makes them, recorded afterwards. Parallel edits of one file are
//! settled together.

use std::time::Duration;

use surehand_engine::{AllowedEdit, Edit, EditPermit, Outcome, fleet::FleetWarning, render};

use super::{
    event::{ToolUse, absolute_path},
    handle::{HookCall, ShownBy, in_workspace},
    patch::{ClientPatch, PatchPart},
};

/// The content of a file after an edit, if another call is editing the file as well.
enum SharedEditState {
    /// The running edits explain every change of the file.
    Recorded,
    /// The other call has truncated the file to rewrite it. Its hook records both edits.
    HalfWritten,
    Differs,
}

impl HookCall<'_, '_> {
    /// Judges an edit. Files outside of every workspace pass.
    pub(super) fn judge_edit(&mut self, edit: &Edit) -> Result<String, String> {
        let running = self.notes(|notes| notes.running());
        let paths = edit.paths();
        let Some(path) = paths.first() else { return Ok(String::new()) };
        let place = self.workspaces.name_for(path);
        let Some(session) = self.workspaces.session_for(path) else { return Ok(String::new()) };
        let judged = session.foreign_tools().judge(edit, &running);
        let allowed = judged.map_err(|refused| self.render_refusal(place.as_deref(), *refused))?;
        let changed = self.changes_before(path, place.as_deref(), &allowed);
        Ok(self.start_edit(allowed.edit) + &changed)
    }

    /// Judges each file of a patch, and returns all refusals at once, as far as there is room: the lines that a refusal
    /// shows count as seen.
    pub(super) fn judge_patch(&mut self, text: &str) -> Result<String, String> {
        const MOST_OF_ONE: usize = 8_000;
        let Some(patch) = ClientPatch::parse(text, &self.input.directory) else { return Ok(String::new()) };
        let running = self.notes(|notes| notes.running());
        let (mut refused, mut said) = (String::new(), String::new());
        for PatchPart { edit, intents } in &patch.parts {
            if refused.len() + MOST_OF_ONE > self.adapter.max_context {
                break;
            }
            let Some((_, path)) = intents.first() else { continue };
            let place = self.workspaces.name_for(path);
            let Some(session) = self.workspaces.session_for(path) else { continue };
            let mut tools = session.foreign_tools();
            let by_intent = intents.iter().find_map(|(intent, path)| tools.judge_intent(edit, *intent, path, &running));
            match by_intent.map_or_else(|| tools.judge(edit, &running), Err) {
                Ok(allowed) => said.push_str(&self.changes_before(path, place.as_deref(), &allowed)),
                Err(outcome) => refused.push_str(&self.render_refusal(place.as_deref(), *outcome)),
            }
        }
        if !refused.is_empty() {
            return Err(refused);
        }
        for edit in self.patch_edits(patch) {
            let Some(session) = self.workspaces.session_of(&edit) else { continue };
            let allowed = session.foreign_tools().allow(&edit);
            said.push_str(&self.start_edit(allowed));
        }
        Ok(said)
    }

    /// Renders the changes in the files of an edit since the session saw them.
    fn changes_before(&mut self, path: &str, place: Option<&str>, allowed: &EditPermit) -> String {
        let session = self.workspaces.session_for(path);
        if let Some(session) = session.filter(|_| self.adapter.hears_of_tools()) {
            session.foreign_tools().record_told(&allowed.changed_before);
        }
        let changed = render::gone_before(&allowed.gone_before) + &render::changed_before(&allowed.changed_before, &self.names);
        in_workspace(place, &(changed + &self.warn_once(&allowed.warnings)))
    }

    /// Renders the warnings that were not shown yet.
    pub(super) fn warn_once(&mut self, warnings: &[FleetWarning]) -> String {
        if warnings.is_empty() {
            return String::new();
        }
        let line = |warning: &FleetWarning| format!("note: {}\n", render::notice::notice(&warning.notice));
        self.notes(|notes| warnings.iter().filter(|warning| notes.warn_once(&warning.key)).map(line).collect())
    }

    /// Renders a refusal, with the path relative to the home.
    fn render_refusal(&self, place: Option<&str>, mut refused: Outcome) -> String {
        if let (Some(place), Err(refused)) = (place, &mut refused.result) {
            refused.refusal.path = refused.refusal.path.take().map(|path| format!("{place}/{path}"));
        }
        render::text(&refused, &self.names)
    }

    /// Notes that a tool is making an edit. Returns a note for the model if the file is in another worktree.
    fn start_edit(&mut self, allowed: AllowedEdit) -> String {
        let paths = allowed.edit.paths();
        self.notes(|notes| notes.start_edit(allowed));
        let elsewhere = paths.iter().filter_map(|path| self.workspaces.enters_another_worktree(path));
        elsewhere
            .map(|root| format!("note: this edit is in another worktree of this repository ({}), not in yours\n", root.display()))
            .collect()
    }

    /// The edits that a tool makes. A patch is one change, unless its files are in several workspaces.
    fn edits_of(&mut self, used: &ToolUse) -> Vec<Edit> {
        match used {
            ToolUse::Change(edit) => vec![self.with_absolute_paths(edit)],
            ToolUse::Patch(text) => match ClientPatch::parse(text, &self.input.directory) {
                Some(patch) => self.patch_edits(patch),
                None => Vec::new(),
            },
            ToolUse::Read | ToolUse::Search { .. } | ToolUse::Shell { .. } => Vec::new(),
        }
    }

    pub(super) fn with_absolute_paths(&self, edit: &Edit) -> Edit {
        edit.clone().with_paths(|path| absolute_path(&self.input.directory, path))
    }

    fn patch_edits(&mut self, patch: ClientPatch) -> Vec<Edit> {
        let mut root_of = |edit: &Edit| self.workspaces.session_of(edit).map(|session| session.workspace().path().to_owned());
        let roots: Vec<_> = patch.parts.iter().map(|part| root_of(&part.edit)).collect();
        match roots.windows(2).all(|pair| pair[0] == pair[1]) {
            true => vec![patch.whole],
            false => patch.parts.into_iter().map(|part| part.edit).collect(),
        }
    }

    /// Drops edits that were not made, and records the edits that waited for them.
    pub(super) fn end_failed_edits(&mut self, used: &ToolUse) -> String {
        let edits = self.edits_of(used);
        self.notes(|notes| edits.iter().for_each(|edit| notes.end_edit(edit)));
        self.record_waiting_edits()
    }

    pub(super) fn record_edits(&mut self, used: &ToolUse) -> String {
        let edits = self.edits_of(used);
        let said: String = edits.iter().map(|edit| self.record_edit(edit)).collect();
        let paths: Vec<String> = edits.iter().flat_map(Edit::paths).collect();
        said + &self.new_instructions(&paths, ShownBy::Other)
    }

    /// Records an edit. Until then it counts as running; otherwise the hook of another call would report it as a
    /// foreign change.
    fn record_edit(&mut self, edit: &Edit) -> String {
        let (running, is_shared) = self.notes(|notes| (notes.running(), notes.is_shared(edit)));
        let made = running.iter().find(|running| running.edit == *edit).cloned();
        let made = made.unwrap_or_else(|| AllowedEdit::unjudged(edit.clone()));
        let state = if is_shared { self.settle_shared(&made, &running) } else { SharedEditState::Differs };
        let said = match state {
            SharedEditState::Recorded => {
                self.notes(|notes| notes.end_edit(edit));
                String::new()
            }
            SharedEditState::HalfWritten => {
                self.notes(|notes| notes.mark_made(edit));
                String::new()
            }
            SharedEditState::Differs => self.adopt(&made, &running),
        };
        said + &self.record_waiting_edits()
    }

    /// Checks the file several times, because another call may have written only a part of it.
    fn settle_shared(&mut self, made: &AllowedEdit, running: &[AllowedEdit]) -> SharedEditState {
        const CHECKS: usize = 8;
        const PAUSE: Duration = Duration::from_millis(20);
        let Some(session) = self.workspaces.session_of(&made.edit) else { return SharedEditState::Recorded };
        for check in 0..CHECKS {
            if check > 0 {
                std::thread::sleep(PAUSE);
            }
            if session.foreign_tools().settle_made(made, running) {
                return SharedEditState::Recorded;
            }
        }
        if session.foreign_tools().is_emptied(&made.edit) { SharedEditState::HalfWritten } else { SharedEditState::Differs }
    }

    /// Records the edits that waited for other calls on the same files.
    fn record_waiting_edits(&mut self) -> String {
        let (running, waiting) = self.notes(|notes| (notes.running(), notes.made_edits()));
        waiting.iter().map(|made| self.adopt(made, &running)).collect()
    }

    fn adopt(&mut self, made: &AllowedEdit, running: &[AllowedEdit]) -> String {
        let place = made.edit.paths().first().and_then(|path| self.workspaces.name_for(path));
        let (mut outcome, mut warnings) = (None, Vec::new());
        if let Some(session) = self.workspaces.session_of(&made.edit) {
            outcome = session.foreign_tools().adopt(made, running);
            warnings = session.foreign_tools().check_made(&made.edit);
        }
        self.notes(|notes| notes.end_edit(&made.edit));
        let said = outcome.map(|outcome| render::text(&outcome, &self.names)).unwrap_or_default();
        in_workspace(place.as_deref(), &(said + &self.warn_once(&warnings)))
    }
}
