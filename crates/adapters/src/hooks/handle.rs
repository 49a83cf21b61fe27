//! The handling of a hook, the same for every client: judges an edit before the client's tool makes it, records the
//! effects and the output of tools, and notifies the model of other changes. [`super::edits`] handles the edits.

use std::path::Path;

use surehand_engine::{
    Session, SessionId, ShellCommand, ToolNames,
    render::{self, snapshot::format_for_prompt},
};

use super::{
    clients::{ClientAdapter, GooseResult, TranscriptUse, read_new_results},
    event::{HookEvent, HookInput, SessionStart, ShownLines, ToolOutcome, ToolUse, absolute_path},
    pending_notes::PendingNotes,
    search_hits, transcript,
    workspaces::{SessionWorkspaces, name_from},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HookVerdict {
    Pass,
    /// The call does not run, and the model reads this.
    Deny(String),
    /// The call runs, and the model reads this as well.
    Context(String),
}

/// One call of a hook.
pub(super) struct HookCall<'a, 'e> {
    pub workspaces: &'a mut SessionWorkspaces<'e>,
    pub input: &'a HookInput,
    pub adapter: &'a ClientAdapter,
    pub names: ToolNames,
}

/// Pending notes are added only if at least this much room is left.
const LEAST_CONTEXT: usize = 1_000;

const AFTER_FORGETTING: &str = "The context was made shorter: what was read before no longer counts as read.";

impl HookCall<'_, '_> {
    /// Judges or records the event. A text for the model goes into this answer if it `adds_context`, or else into the
    /// next answer that does.
    pub(super) fn handle(&mut self, adds_context: bool) -> HookVerdict {
        self.check_transcript();
        self.record_goose_results();
        let input = self.input;
        let said = match &input.event {
            HookEvent::Starts(start) => self.start_session(*start),
            HookEvent::ContextLost => {
                self.lose_context();
                String::new()
            }
            HookEvent::Prompted(files) => {
                self.record_all_shown(files);
                String::new()
            }
            HookEvent::Before(tool_use) => match self.before_tool(tool_use) {
                Ok(said) => said,
                Err(refused) => {
                    // The model reads the reason of a denial, so the answer can carry pending notes.
                    let room = self.adapter.max_context.checked_sub(refused.len()).filter(|room| *room > LEAST_CONTEXT);
                    return match self.deliver("", room) {
                        HookVerdict::Context(notes) => HookVerdict::Deny(refused + &notes),
                        HookVerdict::Pass | HookVerdict::Deny(_) => HookVerdict::Deny(refused),
                    };
                }
            },
            HookEvent::After(tool_use, outcome) => self.after_tool(tool_use, outcome),
        };
        self.deliver(&said, adds_context.then_some(self.adapter.max_context))
    }

    /// Puts a text and the pending notes into an answer as far as there is room, and keeps the rest. Without `room`, it
    /// keeps everything.
    fn deliver(&mut self, said: &str, room: Option<usize>) -> HookVerdict {
        let Some(room) = room else {
            if !said.is_empty() {
                self.notes(|notes| notes.add_note(said));
            }
            return HookVerdict::Pass;
        };
        let (notes, is_forgotten) =
            self.notes(|notes| (std::mem::take(&mut notes.notes), std::mem::take(&mut notes.is_forgotten)));
        let state = if is_forgotten { self.render_state(AFTER_FORGETTING) } else { String::new() };
        let text = state + &notes + said;
        let (now, later) = split_to_fit(&text, room);
        if !later.is_empty() {
            self.notes(|notes| notes.add_note(later));
        }
        if now.trim().is_empty() { HookVerdict::Pass } else { HookVerdict::Context(now) }
    }

    /// Changes the notes for the next hook of the session.
    pub(super) fn notes<T>(&mut self, change: impl FnOnce(&mut PendingNotes) -> T) -> T {
        let home = self.workspaces.home();
        let id = home.tracker().map_or_else(|| SessionId(String::new()), |tracker| tracker.session().clone());
        PendingNotes::update(home.workspace(), &id, change)
    }

    /// Checks the client's record of the conversation, because some clients do not report a compaction.
    fn check_transcript(&mut self) {
        let (Some(path), TranscriptUse::ShowsLoss) = (&self.input.transcript, self.adapter.transcript) else { return };
        let begins = matches!(self.input.event, HookEvent::Starts(_));
        let is_shorter = self.notes(|notes| {
            // A session does not lose the context that it starts with: the record has it before the next event.
            let last = std::mem::take(&mut notes.transcript).filter(|_| !begins);
            let read = transcript::read_changes(path, last);
            if !begins {
                notes.transcript = read.until.or(last);
            }
            read.is_rewritten && last.is_some()
        });
        if is_shorter {
            self.lose_context_if_used();
        }
    }

    /// Records the results of tools from goose's database, because goose does not pass them to its hooks.
    fn record_goose_results(&mut self) {
        let (Some(record), TranscriptUse::HoldsResults) = (&self.input.transcript, self.adapter.transcript) else { return };
        let last = self.notes(|notes| notes.transcript);
        let Some(new) = read_new_results(Path::new(record), &self.input.session, last) else { return };
        if new.is_rewritten {
            self.lose_context_if_used();
        }
        for GooseResult { command, text } in &new.results {
            self.record_printed(command, text);
        }
        self.notes(|notes| notes.transcript = new.until);
    }

    /// Records a file that the client put into the context without a tool: one that was read shortly before a
    /// compaction, or one that the person named.
    fn record_attached_file(&mut self, path: &str) {
        let (Some(record), TranscriptUse::HoldsFiles, None) =
            (&self.input.transcript, self.adapter.transcript, &self.input.agent)
        else {
            return;
        };
        let Some(session) = self.workspaces.session_for(path) else { return };
        if session.path_of(path).is_ok_and(|path| session.view_of(&path).is_some()) {
            return;
        }
        self.record_all_shown(&transcript::attached(record, path));
    }

    fn start_session(&mut self, beginning: SessionStart) -> String {
        match beginning {
            SessionStart::New | SessionStart::Resumed => {
                self.note_loaded_instructions();
                self.workspaces.home().checkpoint_at_start();
            }
            SessionStart::Cleared | SessionStart::Compacted => {
                self.forget_views();
                self.notes(|notes| notes.is_forgotten = false);
            }
        }
        match beginning {
            SessionStart::New => self.welcome(),
            SessionStart::Resumed => self.render_state("The conversation continues."),
            SessionStart::Cleared | SessionStart::Compacted => self.render_state(AFTER_FORGETTING),
        }
    }

    fn lose_context(&mut self) {
        self.forget_views();
        self.notes(|notes| notes.is_forgotten = true);
    }

    fn lose_context_if_used(&mut self) {
        if self.workspaces.all().any(has_views) {
            self.lose_context();
        }
    }

    /// Forgets all views. The instructions that the client loads into every context are still there.
    fn forget_views(&mut self) {
        self.workspaces.all().for_each(Session::reset);
        self.note_loaded_instructions();
    }

    fn note_loaded_instructions(&mut self) {
        self.workspaces.home().foreign_tools().were_instructed(&self.input.directory, self.adapter.instructions);
    }

    /// Returns the note for the model before a tool runs, or the reason why it must not run.
    fn before_tool(&mut self, used: &ToolUse) -> Result<String, String> {
        match used {
            ToolUse::Read | ToolUse::Search { .. } => Ok(String::new()),
            ToolUse::Change(edit) => {
                let edit = self.with_absolute_paths(edit);
                edit.paths().iter().for_each(|path| self.record_attached_file(path));
                self.judge_edit(&edit)
            }
            ToolUse::Patch(text) => self.judge_patch(text),
            // Earlier changes by others are reported first, so that they are not attributed to the command.
            ToolUse::Shell { command, directory } => {
                let directory = self.shell_directory(directory.as_deref());
                let command = ShellCommand { line: command, directory: &directory, output: "" };
                // Every workspace that the command may change must be open for that.
                self.workspaces.of_command(&command).for_each(drop);
                let said = self.changed_elsewhere();
                self.workspaces.opened().for_each(|session| {
                    session.foreign_tools().command_begins(&command);
                    session.checkpoint_before(command.line);
                });
                Ok(said)
            }
        }
    }

    /// Lists the files that changed since the session saw them.
    fn changed_elsewhere(&mut self) -> String {
        let home = self.workspaces.home().workspace().path().to_owned();
        let running = self.notes(|notes| notes.running());
        let said = |session: &mut Session| {
            let changed = render::changed_elsewhere(&session.foreign_tools().changed_elsewhere(&running));
            in_workspace(name_from(&home, session).as_deref(), &changed)
        };
        let said: String = self.workspaces.opened().map(said).collect();
        said + &self.lost_claims()
    }

    fn lost_claims(&mut self) -> String {
        let lost: Vec<_> = self.workspaces.opened().flat_map(|session| session.foreign_tools().lost_claims()).collect();
        self.warn_once(&lost)
    }

    /// Records the effects of a tool, and returns the note for the model.
    fn after_tool(&mut self, used: &ToolUse, outcome: &ToolOutcome) -> String {
        for path in &self.input.given {
            let path = self.absolute(path);
            let session = self.workspaces.session_with_instructions(&path);
            session.into_iter().for_each(|session| session.foreign_tools().were_given(&path));
        }
        let said = match (used, outcome) {
            (ToolUse::Shell { command, directory }, outcome) => {
                let directory = self.shell_directory(directory.as_deref());
                let output = if let ToolOutcome::Printed(output) = outcome { output } else { "" };
                return self.after_command(&ShellCommand { line: command, directory: &directory, output });
            }
            (ToolUse::Change(_) | ToolUse::Patch(_), ToolOutcome::Failed) => self.end_failed_edits(used),
            (ToolUse::Change(_) | ToolUse::Patch(_), _) => self.record_edits(used),
            (ToolUse::Read, ToolOutcome::Showed(shown)) => {
                let paths = self.record_all_shown(shown);
                self.new_instructions(&paths, ShownBy::Read)
            }
            (ToolUse::Read, ToolOutcome::ShowedNotebook { path, cells }) => {
                let path = self.absolute(path);
                if let Some(session) = self.workspaces.session_for(&path) {
                    session.foreign_tools().record_shown_notebook(&path, cells);
                }
                self.new_instructions(&[path], ShownBy::Read)
            }
            (ToolUse::Search { paths }, ToolOutcome::Printed(printed)) => {
                self.record_search(paths, printed);
                String::new()
            }
            (ToolUse::Search { .. }, ToolOutcome::Showed(shown)) => {
                self.record_all_shown(shown);
                String::new()
            }
            (ToolUse::Read | ToolUse::Search { .. }, _) => String::new(),
        };
        said + &self.changed_elsewhere()
    }

    /// Records the output and the changes of a command, in every workspace that it may have touched.
    fn after_command(&mut self, command: &ShellCommand<'_>) -> String {
        let home = self.workspaces.home().workspace().path().to_owned();
        let running = self.notes(|notes| notes.running());
        let (mut said, mut read) = (String::new(), Vec::new());
        for session in self.workspaces.of_command(command) {
            let effects = session.foreign_tools().command_ran(command, &running);
            if self.adapter.transcript == TranscriptUse::HoldsResults {
                session.foreign_tools().prints_later(command);
            }
            let root = session.workspace().path().to_owned();
            read.extend(effects.read.iter().filter_map(|lines| root.join(lines.path.as_str()).to_str().map(str::to_owned)));
            said.push_str(&in_workspace(name_from(&home, session).as_deref(), &render::command(&effects)));
        }
        said + &self.new_instructions(&read, ShownBy::Other)
    }

    pub(super) fn absolute(&self, path: &str) -> String {
        absolute_path(&self.input.directory, path)
    }

    fn shell_directory(&self, directory: Option<&str>) -> String {
        directory.map_or_else(|| self.input.directory.clone(), |below| self.absolute(below))
    }

    /// Records lines that the model was shown. Returns the paths of their files.
    fn record_all_shown(&mut self, shown: &[ShownLines]) -> Vec<String> {
        let record = |shown: &ShownLines| {
            let path = self.absolute(&shown.path);
            if let Some(session) = self.workspaces.session_for(&path) {
                session.foreign_tools().record_shown(&path, shown.start, &shown.content);
            }
            path
        };
        shown.iter().map(record).collect()
    }

    /// Records the output of a search: the hits, and any other lines of files in it.
    fn record_search(&mut self, paths: &[String], printed: &str) {
        let only = if let [only] = paths { Some(only.as_str()) } else { None };
        self.record_all_shown(&search_hits::hits(printed, only));
        self.record_printed(&paths.join(" "), printed);
    }

    /// Records the lines of files in the output of a command.
    fn record_printed(&mut self, line: &str, output: &str) {
        let printed = ShellCommand { line, directory: &self.input.directory, output };
        self.workspaces.of_command(&printed).for_each(|session| drop(session.foreign_tools().record_printed(&printed)));
    }

    /// The instructions for these files that the model has not read yet.
    pub(super) fn new_instructions(&mut self, paths: &[String], shown_by: ShownBy) -> String {
        let client = self.adapter.instructions;
        // The client loads those of the root even if no start of the session was reported.
        self.workspaces.home().foreign_tools().were_instructed("", client);
        if shown_by == ShownBy::Read && client.where_files_are_read {
            for path in paths {
                let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
                let session = self.workspaces.session_with_instructions(path);
                session.into_iter().for_each(|session| session.foreign_tools().were_instructed(directory, client));
            }
        }
        let new =
            paths.iter().filter_map(|path| self.workspaces.session_with_instructions(path)?.foreign_tools().instructions(path));
        new.map(|new| render::instructions::instructions(&new, &self.names)).collect()
    }

    /// The state for a new session, if there are open tasks or outside changes.
    fn welcome(&mut self) -> String {
        let state = self.workspaces.home().snapshot();
        let has_news = !state.tasks.open().is_empty() || state.files.iter().any(|file| file.changed_outside);
        if has_news { format_for_prompt(&state, &self.names) } else { String::new() }
    }

    /// The state of every workspace of the session, for a context that lost it.
    fn render_state(&mut self, why: &str) -> String {
        // Each takes up to 500 tokens.
        const MOST: usize = 4;
        let states = self.workspaces.all().take(MOST).map(|session| session.snapshot());
        let states: String = states.map(|state| format_for_prompt(&state, &self.names)).collect();
        format!("{why}\n{states}")
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ShownBy {
    Read,
    Other,
}

/// Puts the name of the workspace above a text about files outside of the home.
pub(super) fn in_workspace(place: Option<&str>, text: &str) -> String {
    match place {
        Some(place) if !text.is_empty() => format!("In {place}:\n{text}"),
        _ => text.to_owned(),
    }
}

fn has_views(session: &mut Session) -> bool {
    let workspace = session.workspace().clone();
    session.tracker().is_some_and(|tracker| !tracker.lately_viewed(&workspace, 1).is_empty())
}

/// Splits a text at the size that the client accepts, because it would drop a larger one.
fn split_to_fit(text: &str, max_context: usize) -> (String, &str) {
    const CONTINUED: &str = "[continued with the next result]\n";
    if text.len() <= max_context {
        return (text.to_owned(), "");
    }
    let at = text.floor_char_boundary(max_context - CONTINUED.len());
    let end = text[..at].rfind('\n').map_or(at, |end| end + 1);
    (format!("{}{CONTINUED}", &text[..end]), &text[end..])
}
