//! The tools of another agent, as its hooks report them. The gate judges an edit before such a tool makes it, its
//! changes are recorded as those of a session, and the lines it shows count as seen. A hook must be fast, so it never
//! checks all files of a long session; the gate later finds changes that a hook misses.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use surehand_core::{
    Cause, ChangeAuthor, ChangedFile, Content, Done, Edit, KnownLines, LineMap, LineNo, LineRange, LineSet, Outcome,
    OutsideState, Present, Refusal, RelPath, Text, View,
    excerpt::Excerpt,
    gate,
    instructions::{InstructionNews, ToldInstructions, chain},
    outcome::{ChangedBefore, CommandEffects, FileOutcome},
    plan::Rebased,
    refusal::IfRepeated,
};
use surehand_store::StoreRecord;

use crate::{
    change_log::ChangeOrigin,
    change_log::fresh_change,
    command::ShellCommand,
    file_cache::{keep_bytes, keep_first},
    fleet::FleetWarning,
    instructions::ClientInstructions,
    plan::PlanStep,
    session::{BaseVersion, PlanBasis, Session},
    stale_views::{StaleView, author_and_time},
    time,
};

/// The tools of another agent in a session.
#[derive(Debug)]
pub struct ForeignTools<'a> {
    session: &'a mut Session,
}

/// The intent of a tool, if the exact edit is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileIntent {
    /// Change a part of the file.
    Edit,
    /// Replace the whole content.
    Overwrite,
    /// Delete or move the file.
    TakeAway,
}

/// An edit that passed the gate and that another agent's tool is about to make. The hook keeps it until the tool has
/// run. It can be serialized for another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedEdit {
    /// The edit as the other agent requested it.
    pub edit: Edit,
    /// The versions of those files that the session has no view of.
    before: Vec<BaseVersion>,
}

/// The permission for an edit.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EditPermit {
    /// Keep this until the tool has run, for [`ForeignTools::adopt`].
    pub edit: AllowedEdit,
    /// Other changes to its files since the session saw them. Call [`ForeignTools::record_told`] when the model has
    /// received them.
    pub changed_before: Vec<ChangedBefore>,
    /// Files that it creates and that existed when the session last saw them.
    pub gone_before: Vec<RelPath>,
    /// Conflicts with the board. Each has a key, so that the model receives it once.
    pub warnings: Vec<FleetWarning>,
}

impl AllowedEdit {
    /// An edit that no hook announced.
    pub fn unjudged(edit: Edit) -> Self {
        Self { edit, before: Vec::new() }
    }
}

/// The lines of a file that a refusal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefusalLines<'a> {
    /// The lines that the edit quotes, with their context.
    Quotes(&'a Edit),
    Everything,
    Beginning,
}

/// The maximum number of parallel edits of one answer that can be distinguished.
const MOST_AT_ONCE: usize = 4;

/// The lines shown above and below an edit.
const LINES_AROUND: u32 = 3;

/// The number of lines shown of a file that is to be deleted.
const FIRST_LINES: usize = 20;

/// The number of recently seen files that are checked.
const LATELY: usize = 32;

impl Session {
    /// The interface for hooks that report another agent's tools in this session.
    pub fn foreign_tools(&mut self) -> ForeignTools<'_> {
        ForeignTools { session: self }
    }
}

impl ForeignTools<'_> {
    /// Judges an edit that another agent's tool is about to make. `running` holds the allowed edits that have not been
    /// reported as made, because changes on disk may be theirs. A refusal is counted, and the lines it shows count as
    /// seen.
    pub fn judge(&mut self, edit: &Edit, running: &[AllowedEdit]) -> Result<EditPermit, Box<Outcome>> {
        self.settle(&edit.paths(), running);
        let step = match self.session.plan_on(PlanBasis::Disk, edit) {
            Ok(step) => step,
            Err(refusal) => {
                return match self.refusal_of(edit, refusal) {
                    Some(refusal) => Err(self.report(edit, refusal)),
                    None => {
                        let warnings = self.session.check_claimed(&edit.paths()).map_err(|refusal| self.report(edit, refusal))?;
                        Ok(EditPermit { edit: self.allow(edit), changed_before: Vec::new(), gone_before: Vec::new(), warnings })
                    }
                };
            }
        };
        let (mut changed_before, mut gone_before, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
        match step {
            // A model that sends the exact current content knows it, even if another program wrote it.
            PlanStep::Nothing(path, text) => self.session.record_shown(&path, &text, &LineSet::whole(text.line_count())),
            PlanStep::Change(files) => {
                warnings = self.session.check_fleet(&files).map_err(|refusal| self.report(edit, refusal))?;
                for file in &files {
                    if let Err(refusal) = keep_first(self.session.workspace(), &file.planned) {
                        return Err(self.report(edit, refusal));
                    }
                    changed_before.extend(self.catch_up(file.planned.path(), file.planned.rebased()));
                    gone_before.extend(file.planned.is_made_anew().then(|| file.planned.path().clone()));
                }
            }
            PlanStep::Undo(_) => {}
        }
        Ok(EditPermit { edit: self.allow(edit), changed_before, gone_before, warnings })
    }

    /// [`Self::judge`] for one file if only the kind of the edit is known. `None` if it is allowed.
    pub fn judge_intent(&mut self, edit: &Edit, intent: FileIntent, path: &str, running: &[AllowedEdit]) -> Option<Box<Outcome>> {
        self.settle(&[path.to_owned()], running);
        let gathered = match intent {
            FileIntent::Edit => self.session.gather_for_writing(PlanBasis::Disk, path),
            FileIntent::Overwrite | FileIntent::TakeAway => self.session.gather_whole(PlanBasis::Disk, path),
        };
        let mut gathered = gathered.ok()?;
        gathered.is_warned = self.session.is_warned(edit, &gathered.present);
        let target = self.session.target(&gathered);
        let (refused, shows) = match intent {
            FileIntent::Edit => (gate::edit(&target, None).err(), RefusalLines::Quotes(edit)),
            FileIntent::Overwrite => (gate::overwrite(&target).err(), RefusalLines::Everything),
            FileIntent::TakeAway => (gate::take_away(&target).err(), RefusalLines::Beginning),
        };
        let refusal = self.refusal_showing(edit, refused?, shows)?;
        Some(self.report(edit, refusal))
    }

    /// Describes an edit that may be made, for [`ForeignTools::adopt`]. Judges nothing.
    pub fn allow(&mut self, edit: &Edit) -> AllowedEdit {
        let before = edit.paths().iter().filter_map(|path| self.version_before(path)).collect();
        AllowedEdit { edit: edit.clone(), before }
    }

    /// The current version of a file without a view. It is stored, because the tool will overwrite it.
    fn version_before(&mut self, path: &str) -> Option<BaseVersion> {
        let gathered = self.session.gather_whole(PlanBasis::Disk, path).ok()?;
        if gathered.view.is_some() {
            return None;
        }
        let content = gathered.present.content()?;
        let version = content.version();
        keep_bytes(self.session.workspace(), &gathered.path, &content).ok()?;
        Some(BaseVersion { path: gathered.path, version })
    }

    /// Updates the view of a file to its current content. If the edit is rebased, returns the changes that are new to
    /// the session.
    fn catch_up(&mut self, path: &RelPath, rebased: Option<&Rebased>) -> Option<ChangedBefore> {
        let rebased = rebased?;
        let gathered = self.session.gather(path.as_str()).ok()?;
        let (Present::Text(now), Some(view), Some(seen)) = (gathered.present, gathered.view, gathered.seen) else { return None };
        let changed = StaleView {
            path: path.clone(),
            was: OutsideState::Version(view.version()),
            now: OutsideState::Version(now.version()),
        };
        let made = author_and_time(self.session.workspace(), &self.session.id(), &changed);
        if made.is_none() {
            self.session.author_of(&changed);
        }
        let made = made.filter(|(by, _)| *by != ChangeAuthor::Unknown);
        let view = view.carried_unshown(&seen, &LineMap::between(&seen, &now), &now);
        self.session.keep_text(path, &now);
        self.session.set_view(path, view);
        let seconds_ago = made.map(|(_, at)| (time::now() - at).max(0) as u64 / 1000);
        let by = made.map_or(ChangeAuthor::Unknown, |(by, _)| by);
        Some(ChangedBefore { path: path.clone(), rebased: rebased.clone(), by, seconds_ago })
    }

    /// Records that the model has received other changes in the files of an edit. The lines shown count as seen.
    pub fn record_told(&mut self, changed: &[ChangedBefore]) {
        for ChangedBefore { path, rebased, .. } in changed {
            if let Some((path, text)) = self.session.text_at(path.as_str()) {
                self.session.record_shown(&path, &text, &rebased.fresh.shown);
            }
        }
    }

    /// The refusal for another agent's tool, if only the gate can know the reason. All other errors are left to the
    /// tool.
    fn refusal_of(&mut self, edit: &Edit, refusal: Refusal) -> Option<Refusal> {
        let shows = match edit {
            Edit::Write { .. } => RefusalLines::Everything,
            Edit::Delete { .. } | Edit::Move { .. } => RefusalLines::Beginning,
            _ => RefusalLines::Quotes(edit),
        };
        self.refusal_showing(edit, refusal, shows)
    }

    fn refusal_showing(&mut self, edit: &Edit, refusal: Refusal, shows: RefusalLines<'_>) -> Option<Refusal> {
        match refusal.cause {
            Cause::Unread { .. } => Some(self.showing(refusal, shows)),
            Cause::Stale { .. }
            | Cause::Invalidated
            | Cause::Deleted
            | Cause::Partial { .. }
            | Cause::Unshown { .. }
            | Cause::TooLargeToKeep { .. } => Some(refusal),
            Cause::Binary { .. } | Cause::Encoding { .. } | Cause::TooLarge { .. } => self.unshown(edit, refusal),
            _ => None,
        }
    }

    /// The refusal of an edit of an unread file, with the lines that the edit concerns. They count as seen, so the same
    /// edit may pass next time.
    fn showing(&mut self, refusal: Refusal, shows: RefusalLines<'_>) -> Refusal {
        let Some(path) = refusal.known_path() else { return refusal };
        let Some((_, text)) = self.session.text_at(path.as_str()) else { return refusal };
        let lines = match shows {
            RefusalLines::Quotes(edit) => quoted_lines(&text, &edit.quotes()),
            RefusalLines::Everything => LineSet::whole(text.line_count()),
            RefusalLines::Beginning => LineSet::whole(text.line_count().min(FIRST_LINES)),
        };
        let fresh = Excerpt::of(&text, &lines);
        let mut view = View::of(&text);
        view.show_set(&fresh.shown);
        self.session.keep_text(&path, &text);
        match fresh.shown.is_empty() && text.line_count() > 0 {
            true => refusal,
            false => Refusal { cause: Cause::Unread { fresh }, ..refusal }.teaching(view),
        }
    }

    /// The first refusal to change a file that cannot be shown.
    fn unshown(&mut self, edit: &Edit, refusal: Refusal) -> Option<Refusal> {
        let path = refusal.known_path()?;
        let gathered = self.session.gather_whole(PlanBasis::Disk, path.as_str()).ok()?;
        match &gathered.present {
            Present::Blob(blob, _) if !self.session.is_warned(edit, &gathered.present) => {
                let (why, version) = (Box::new(refusal.cause), blob.version());
                Some(Refusal::of(&path, Cause::Unshown { why, version, if_repeated: IfRepeated::Replaces }))
            }
            Present::Unreadable(cause @ Cause::TooLargeToKeep { .. }) => Some(Refusal::of(&path, cause.clone())),
            _ => None,
        }
    }

    fn report(&mut self, edit: &Edit, refusal: Refusal) -> Box<Outcome> {
        let path = refusal.known_path();
        let refused = self.session.record_refusal(edit, refusal);
        path.iter().for_each(|path| self.keep_seen(path));
        Box::new(Outcome::new(Err(refused)))
    }

    /// Stores the text of a viewed file, because the tool is about to overwrite it.
    fn keep_seen(&mut self, path: &RelPath) {
        if let Some(view) = self.session.view_of(path) {
            self.session.keep_version(path, &view.version());
        }
    }

    /// The claims that this session has lost without releasing them. Each call returns all of them.
    pub fn lost_claims(&self) -> Vec<FleetWarning> {
        self.session.lost_claims()
    }

    /// Records an edit that another agent's tool has made, together with parallel edits of the same answer. Returns an
    /// outcome if the model should know that the files differ from the expected result. An edit that left its files
    /// unchanged was not made, or is already recorded.
    pub fn adopt(&mut self, made: &AllowedEdit, running: &[AllowedEdit]) -> Option<Outcome> {
        if self.settle_made(made, running) {
            return None;
        }
        let outcome = match self.session.plan_on(PlanBasis::Before(&made.before), &made.edit) {
            Ok(step) => self.record_made(&made.edit, step),
            Err(_) => None,
        };
        if outcome.is_none() {
            made.edit.paths().iter().for_each(|path| self.adopt_file(made, path));
        }
        self.session.workspace().flush();
        outcome.filter(|outcome| matches!(&outcome.result, Ok(Done::Changed(changed)) if changed.files.iter().any(FileOutcome::is_rewritten)))
    }

    /// Checks the files of an edit that was made against the board: another checkout may have changed them while the
    /// tool ran, or the tool may have made other changes than it announced.
    pub fn check_made(&self, made: &Edit) -> Vec<FleetWarning> {
        self.session.check_made(&made.paths())
    }

    /// Records an edit that another agent's tool has made, together with parallel edits of the same answer. Returns
    /// whether the files are as the edit should leave them.
    pub fn settle_made(&mut self, made: &AllowedEdit, running: &[AllowedEdit]) -> bool {
        let all: Vec<AllowedEdit> = [made].into_iter().chain(running.iter().filter(|other| *other != made)).cloned().collect();
        self.settle(&made.edit.paths(), &all);
        !made.edit.paths().iter().any(|path| self.has_done_something(made, path))
    }

    /// Whether a file of an edit is empty, because a tool may truncate a file before it writes it.
    pub fn is_emptied(&mut self, edit: &Edit) -> bool {
        let is_empty = |path: &String| self.session.text_at(path).is_some_and(|(_, text)| text.line_count() == 0);
        edit.paths().iter().any(is_empty)
    }

    /// Records those running edits that are on disk, if together they explain everything that happened to the files.
    fn settle(&mut self, paths: &[String], running: &[AllowedEdit]) {
        let concerns = |allowed: &&AllowedEdit| allowed.edit.paths().iter().any(|path| paths.contains(path));
        let running: Vec<&AllowedEdit> = running.iter().filter(concerns).take(MOST_AT_ONCE).collect();
        if running.is_empty()
            || !running.iter().any(|made| made.edit.paths().iter().any(|path| self.has_done_something(made, path)))
        {
            return;
        }
        for chosen in 1..1_usize << running.len() {
            let made: Vec<&AllowedEdit> =
                (0..running.len()).filter(|bit| chosen >> bit & 1 == 1).map(|bit| running[bit]).collect();
            let before: Vec<BaseVersion> = made.iter().flat_map(|made| made.before.clone()).collect();
            let Some(edit) = Edit::joined(&made.iter().map(|made| &made.edit).collect::<Vec<_>>()) else { continue };
            let Ok(step) = self.session.plan_on(PlanBasis::Before(&before), &edit) else { continue };
            if self.is_on_disk(&step) {
                self.record_made(&edit, step);
                return;
            }
        }
    }

    /// Whether the files match the result of a plan.
    fn is_on_disk(&mut self, step: &PlanStep) -> bool {
        let PlanStep::Change(files) = step else { return false };
        files.iter().all(|file| {
            let planned = &file.planned;
            let Ok(gathered) = self.session.gather(planned.path_after().unwrap_or(planned.path()).as_str()) else { return false };
            match (planned.text(), gathered.present) {
                (Some(planned), Present::Text(now)) => *planned == now,
                (None, Present::Absent) => planned.path_after().is_none(),
                _ => false,
            }
        })
    }

    /// Records a plan that another agent's tool has carried out.
    fn record_made(&mut self, edit: &Edit, step: PlanStep) -> Option<Outcome> {
        let outcome = Outcome::new(Ok(self.session.adopt(edit, step)?));
        self.session.record(&outcome);
        outcome.paths().iter().for_each(|path| self.keep_seen(path));
        self.session.workspace().flush();
        Some(outcome)
    }

    /// Whether a file differs from what the session knows, or was rewritten with the same content.
    fn has_done_something(&mut self, made: &AllowedEdit, path: &str) -> bool {
        let Ok(gathered) = self.session.gather(path) else { return false };
        let was = made.before.iter().find(|before| before.path == gathered.path).map(|before| before.version);
        match (&gathered.present, &gathered.view) {
            (Present::Absent, None) => was.is_some(),
            (Present::Text(now), Some(view)) if view.version() == now.version() => {
                matches!(&made.edit, Edit::Write { content, .. } if *content == now.as_str()[now.body_start()..])
            }
            (now, None) => now.content().map(|now| now.version()) != was,
            _ => true,
        }
    }

    /// Adopts the result of a tool whose exact effect is unknown. Unchanged lines stay seen, and lines that the edit
    /// inserts are known; all others are unseen.
    fn adopt_file(&mut self, made: &AllowedEdit, path: &str) {
        let Ok(gathered) = self.session.gather(path) else { return };
        let was = made.before.iter().find(|before| before.path == gathered.path).map(|before| before.version);
        let before = gathered.view.as_ref().map(View::version).or(was);
        let now = gathered.present.content();
        if before == now.as_ref().map(Content::version) || matches!(gathered.present, Present::Unreadable(_)) {
            return;
        }
        let origin = ChangeOrigin::of(made.edit.tool().name());
        let mut event = self.session.event_of(&origin, &fresh_change(), &gathered.path);
        (event.before, event.after) = (before, now.as_ref().map(Content::version));
        self.session.workspace().record(StoreRecord::Happened(event));
        self.session.workspace().track_events();
        let now = match gathered.present {
            Present::Text(now) => now,
            Present::Absent => return self.session.forget_file(&gathered.path),
            Present::Blob(..) | Present::Unreadable(_) => return,
        };
        self.session.keep_text(&gathered.path, &now);
        let (mut view, changed) = match (gathered.view, gathered.seen) {
            (Some(view), Some(seen)) => {
                let map = LineMap::between(&seen, &now);
                (view.carried(&seen, &map, &now), map.affected())
            }
            (None, _) if was.is_none() => (View::of(&now), LineSet::whole(now.line_count())),
            _ => return,
        };
        view.show_set(&written_lines(&now, &changed, &made.edit));
        self.session.set_view(&gathered.path, view);
    }

    /// Records the lines of a file that another agent's tool has shown, starting at this number. Only lines that match
    /// the file count. Returns their number.
    pub fn record_shown(&mut self, path: &str, start: u32, content: &str) -> usize {
        let Some((path, text)) = self.session.text_at(path) else { return 0 };
        let lines = matching_lines(&text, start, content);
        let count = lines.count() as usize;
        if count > 0 || (text.line_count() == 0 && content.is_empty()) {
            self.session.record_shown(&path, &text, &lines);
            self.session.clear_refusals(&path);
            self.session.track_read(&[KnownLines { path, text, lines }]);
        }
        count
    }

    /// Notes the files that a command of another agent names, before it runs. [`ForeignTools::command_ran`] reports its
    /// end, perhaps in another process.
    pub fn command_begins(&mut self, command: &ShellCommand<'_>) {
        self.session.foreign_command_begins(command);
    }

    /// Records the output and the changes of a command in another agent's shell, and returns the changes.
    ///
    /// `running` holds the edits that other tools of the session are making. Changes of their files are not attributed
    /// to the command.
    pub fn command_ran(&mut self, command: &ShellCommand<'_>, running: &[AllowedEdit]) -> CommandEffects {
        let among = self.lately_viewed_besides(running);
        self.session.foreign_command_ended(among, command)
    }

    /// Notes the current files for a command whose output is reported later, to [`ForeignTools::record_printed`].
    pub fn prints_later(&mut self, command: &ShellCommand<'_>) {
        self.session.prints_later(command);
    }

    /// Records the output of a tool that is not a command, such as a search. `line` names the files that it may
    /// concern.
    pub fn record_printed(&mut self, printed: &ShellCommand<'_>) -> Vec<KnownLines> {
        self.session.record_printed(printed)
    }

    /// Records that a tool has shown the cells of a notebook (`.ipynb`), whose lines are in JSON. The whole file counts
    /// as seen if the text of every cell was shown in order. Returns whether it does.
    pub fn record_shown_notebook(&mut self, path: &str, cells: &str) -> bool {
        let Some((path, text)) = self.session.text_at(path) else { return false };
        let is_shown = shows_all_cells(text.as_str(), cells);
        if is_shown {
            let lines = LineSet::whole(text.line_count());
            self.session.record_shown(&path, &text, &lines);
            self.session.track_read(&[KnownLines { path, text, lines }]);
        }
        is_shown
    }

    /// Recently seen files that have changed, each reported once. Files of running edits are checked when these are
    /// done.
    pub fn changed_elsewhere(&mut self, running: &[AllowedEdit]) -> Vec<ChangedFile> {
        let paths = self.lately_viewed_besides(running);
        let changed = self.session.with_stale_views(|stale_views, sources| stale_views.check(sources, paths)).unwrap_or_default();
        self.session.name_changed(changed)
    }

    /// The files seen last, except those of these edits.
    fn lately_viewed_besides(&mut self, running: &[AllowedEdit]) -> Vec<RelPath> {
        let edited: Vec<String> = running.iter().flat_map(|allowed| allowed.edit.paths()).collect();
        let edited: HashSet<RelPath> = edited.iter().filter_map(|path| self.session.path_of(path).ok()).collect();
        self.lately_viewed().into_iter().filter(|path| !edited.contains(path)).collect()
    }

    fn lately_viewed(&mut self) -> Vec<RelPath> {
        let workspace = self.session.workspace().clone();
        // The answer comes from the store, and records of this process may still be on their way.
        workspace.flush();
        self.session.tracker().map(|tracker| tracker.lately_viewed(&workspace, LATELY)).unwrap_or_default()
    }

    /// The instructions for a file that this session has not received yet.
    pub fn instructions(&mut self, path: &str) -> Option<ToldInstructions> {
        let directory = self.session.path_of(path).ok()?.parent();
        self.session.take_instructions(&[directory])
    }

    /// Records that the client has given the model the instructions of a directory and its parents, by the client's own
    /// rules.
    pub fn were_instructed(&mut self, directory: &str, client: &ClientInstructions) {
        let workspace = self.session.workspace().clone();
        let Ok(directory) = workspace.root().normalize_place(directory) else { return };
        let is_replaced = client.instead.iter().any(|name| self.session.text_at(name).is_some());
        for directory in chain(directory.as_ref()) {
            self.were_instructed_in(directory, client, is_replaced && !directory.is_empty());
        }
    }

    fn were_instructed_in(&mut self, directory: &str, client: &ClientInstructions, is_replaced: bool) {
        let workspace = self.session.workspace().clone();
        let text_at = |tools: &mut Self, name: &str| match directory {
            "" => tools.session.text_at(name),
            directory => tools.session.text_at(&format!("{directory}/{name}")),
        };
        let names = &workspace.config().instructions.names;
        let ours = names.iter().find_map(|name| Some((name.as_str(), text_at(self, name)?)));
        let Some((name, (path, text))) = ours.filter(|(name, _)| client.names.contains(name)) else { return };
        let is_given = match client.instead.iter().filter(|other| **other != name).find_map(|name| text_at(self, name)) {
            Some((_, theirs)) => theirs == text || theirs.as_str().contains(&format!("@{name}")),
            None => !is_replaced || client.instead.contains(&name),
        };
        if is_given {
            self.give_if_first(&path, &text);
        }
    }

    /// [`Self::were_instructed`] for the root, once per context, for a client that does not report it.
    pub fn were_instructed_at_start(&mut self, client: &ClientInstructions) {
        if !std::mem::replace(&mut self.session.instructions.is_client_heeded, true) {
            self.were_instructed("", client);
        }
    }

    /// Records that the client has given the model this file as instructions.
    pub fn were_given(&mut self, path: &str) {
        if let Some((path, text)) = self.session.text_at(path) {
            self.give_if_first(&path, &text);
        }
    }

    fn give_if_first(&mut self, path: &RelPath, text: &Text) {
        let workspace = self.session.workspace().clone();
        let Some(tracker) = self.session.tracker() else { return };
        if tracker.given(&workspace).news(path, text.version()) == Some(InstructionNews::First) {
            tracker.record_given(&workspace, path, text.version());
        }
    }
}

/// Whether a text contains the source of every cell of a notebook, in order.
fn shows_all_cells(notebook: &str, shown: &str) -> bool {
    let Ok(notebook) = serde_json::from_str::<serde_json::Value>(notebook) else { return false };
    let Some(cells) = notebook["cells"].as_array() else { return false };
    let mut rest = shown;
    cells.iter().all(|cell| {
        let source: String = match &cell["source"] {
            serde_json::Value::Array(lines) => lines.iter().filter_map(|line| line.as_str()).collect(),
            source => source.as_str().unwrap_or_default().to_owned(),
        };
        let found = rest.find(source.trim_end());
        if let Some(at) = found {
            rest = &rest[at + source.trim_end().len()..];
        }
        found.is_some()
    })
}

/// The lines of a text that match a content from this number on.
fn matching_lines(text: &Text, start: u32, content: &str) -> LineSet {
    let shown = content.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let numbered = (start.max(1)..=u32::MAX).filter_map(LineNo::new).zip(shown);
    let is_equal = |(number, line): &(LineNo, &str)| text.has_line(*number) && text.line(*number) == *line;
    numbered.filter(is_equal).map(|(number, _)| LineRange::line(number)).collect()
}

/// The lines of a text that contain the quotes of an edit, with their context.
fn quoted_lines(text: &Text, quotes: &[String]) -> LineSet {
    const MOST_PLACES: usize = 3;
    let around = |(at, quote): (usize, &str)| {
        let first = text.line_at(at).get().saturating_sub(LINES_AROUND).max(1);
        let last = text.line_at(at + quote.len().saturating_sub(1)).get().saturating_add(LINES_AROUND);
        LineRange::new(LineNo::new(first)?, LineNo::new(last)?)
    };
    let places = |quote: &String| {
        let found = text.as_str().match_indices(quote.as_str()).take(if quote.is_empty() { 0 } else { MOST_PLACES });
        found.filter_map(around).collect::<Vec<_>>()
    };
    quotes.iter().flat_map(places).collect::<LineSet>().clipped(text.line_count())
}

/// The lines among these that an edit inserted.
fn written_lines(text: &Text, among: &LineSet, edit: &Edit) -> LineSet {
    let written = edit.writes();
    let written: HashSet<&str> = written.iter().flat_map(|text| text.lines()).collect();
    among.clipped(text.line_count()).iter().filter(|line| written.contains(text.line(*line))).map(LineRange::line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notebook_is_seen_with_all_of_its_cells() {
        let notebook = r##"{"cells":[{"source":["x = 1\n","print(x)"]},{"source":"# Title\n"}],"nbformat":4}"##;
        assert!(shows_all_cells(notebook, "--- Code ---\nx = 1\nprint(x)\n\n# Title"));
        assert!(!shows_all_cells(notebook, "# Title\nx = 1\nprint(x)"));
        assert!(!shows_all_cells(notebook, "x = 2\nprint(x)\n# Title"));
        assert!(!shows_all_cells("no JSON", "x"));
    }

    #[test]
    fn lines_count_where_the_file_has_them() {
        let text = Text::of("a\nb\nc\n".to_owned()).unwrap();
        assert_eq!(matching_lines(&text, 2, "b\r\nx").to_string(), "2");
        assert_eq!(matching_lines(&text, 0, "a\nb\nc\n").to_string(), "1-3");
        assert_eq!(matching_lines(&text, u32::MAX, "a\nb").to_string(), "");
    }
}
