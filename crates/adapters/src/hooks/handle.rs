//! What a hook does, the same for every client: judges an edit before the client's tool makes it, records what a tool did and showed, and
//! tells the model what else has changed.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use surehand_engine::{
    AllowedEdit, Edit, EditPermit, Outcome, Session, SessionId, ShellCommand, ToolNames,
    core::shell::mentions,
    render::{self, snapshot::format_for_prompt},
};

use super::{
    clients::{ClientAdapter, GooseResult, TranscriptUse, read_new_results},
    event::{HookEvent, HookInput, SessionStart, ShownLines, ToolOutcome, ToolUse, absolute_path},
    patch::{ClientPatch, PatchPart},
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

/// Judges or records an event. What the model should know goes into the answer if the answer `adds_context`, else into the next that does.
pub(super) fn handle_event(
    workspaces: &mut SessionWorkspaces<'_>,
    input: &HookInput,
    adapter: &ClientAdapter,
    adds_context: bool,
) -> HookVerdict {
    check_transcript(workspaces, input, adapter);
    record_goose_results(workspaces, input, adapter);
    let names = &(adapter.names)();
    let said = match &input.event {
        HookEvent::Starts(start) => start_session(workspaces, input, adapter, *start, names),
        HookEvent::ContextLost => {
            forget_views(workspaces, input, adapter);
            update_notes(workspaces.home(), |notes| notes.is_forgotten = true);
            String::new()
        }
        HookEvent::Prompted(files) => {
            files.iter().for_each(|shown| drop(record_shown(workspaces, input, shown)));
            String::new()
        }
        HookEvent::Before(tool_use) => match before_tool(workspaces, input, tool_use, adapter, names) {
            Ok(said) => said,
            Err(refused) => {
                // The model reads the reason of a denial, so the answer can carry pending notes.
                let room = adapter.max_context.checked_sub(refused.len()).filter(|room| *room > LEAST_CONTEXT);
                return match deliver(workspaces, "", room, names) {
                    HookVerdict::Context(notes) => HookVerdict::Deny(refused + &notes),
                    HookVerdict::Pass | HookVerdict::Deny(_) => HookVerdict::Deny(refused),
                };
            }
        },
        HookEvent::After(tool_use, outcome) => after_tool(workspaces, input, adapter, tool_use, outcome, names),
    };
    deliver(workspaces, &said, adds_context.then_some(adapter.max_context), names)
}

/// Pending notes are not added where less room than this is left.
const LEAST_CONTEXT: usize = 1_000;

/// Writes a text and the pending notes into an answer, as far as there is room, and keeps the rest. Without `room` it keeps everything.
fn deliver(workspaces: &mut SessionWorkspaces<'_>, said: &str, room: Option<usize>, names: &ToolNames) -> HookVerdict {
    let Some(room) = room else {
        if !said.is_empty() {
            update_notes(workspaces.home(), |notes| notes.add_note(said));
        }
        return HookVerdict::Pass;
    };
    let (notes, is_forgotten) =
        update_notes(workspaces.home(), |notes| (std::mem::take(&mut notes.notes), std::mem::take(&mut notes.is_forgotten)));
    let mut text = String::new();
    if is_forgotten {
        text.push_str(&render_state(workspaces, AFTER_FORGETTING, names));
    }
    text.push_str(&notes);
    text.push_str(said);
    let (now, later) = split_to_fit(&text, room);
    if !later.is_empty() {
        update_notes(workspaces.home(), |notes| notes.add_note(later));
    }
    if now.trim().is_empty() { HookVerdict::Pass } else { HookVerdict::Context(now) }
}

const AFTER_FORGETTING: &str = "The context was made shorter: what was read before no longer counts as read.";

/// Some clients do not report a compaction, but their record of the conversation shows it.
fn check_transcript(workspaces: &mut SessionWorkspaces<'_>, input: &HookInput, adapter: &ClientAdapter) {
    let (Some(path), TranscriptUse::TellsLoss) = (&input.transcript, adapter.transcript) else { return };
    let begins = matches!(input.event, HookEvent::Starts(_));
    let is_shorter = update_notes(workspaces.home(), |notes| {
        // What a session starts with is no loss: it is in the record before the next event.
        let last = std::mem::take(&mut notes.transcript).filter(|_| !begins);
        let looked = transcript::read_changes(path, last);
        if !begins {
            notes.transcript = looked.until.or(last);
        }
        looked.is_rewritten && last.is_some()
    });
    if is_shorter && workspaces.all().any(has_seen_something) {
        forget_views(workspaces, input, adapter);
        update_notes(workspaces.home(), |notes| notes.is_forgotten = true);
    }
}

/// goose does not tell its hooks what a tool has shown, but its database holds the results.
fn record_goose_results(workspaces: &mut SessionWorkspaces<'_>, input: &HookInput, adapter: &ClientAdapter) {
    let (Some(record), TranscriptUse::HoldsResults) = (&input.transcript, adapter.transcript) else { return };
    let last = update_notes(workspaces.home(), |notes| notes.transcript);
    let Some(looked) = read_new_results(Path::new(record), &input.session, last) else { return };
    if looked.is_rewritten && workspaces.all().any(has_seen_something) {
        forget_views(workspaces, input, adapter);
        update_notes(workspaces.home(), |notes| notes.is_forgotten = true);
    }
    for GooseResult { command, text } in &looked.results {
        let printed = ShellCommand { line: command, directory: &input.directory, output: text };
        workspaces_of_command(workspaces, &printed).for_each(|session| drop(session.foreign_tools().record_printed(&printed)));
    }
    update_notes(workspaces.home(), |notes| notes.transcript = looked.until);
}

/// Some clients put files into the context without a tool: those read last before a compaction, or those that the person named.
fn record_attached_files(workspaces: &mut SessionWorkspaces<'_>, input: &HookInput, adapter: &ClientAdapter, path: &str) {
    let (Some(record), TranscriptUse::HoldsFiles, None) = (&input.transcript, adapter.transcript, &input.agent) else { return };
    let Some(session) = workspaces.session_for(path) else { return };
    let is_seen = session.path_of(path).is_ok_and(|path| session.view_of(&path).is_some());
    if !is_seen {
        transcript::attached(record, path).iter().for_each(|shown| drop(record_shown(workspaces, input, shown)));
    }
}

fn start_session(
    workspaces: &mut SessionWorkspaces<'_>,
    input: &HookInput,
    adapter: &ClientAdapter,
    beginning: SessionStart,
    names: &ToolNames,
) -> String {
    match beginning {
        SessionStart::New | SessionStart::Resumed => {
            note_loaded_instructions(workspaces, input, adapter);
            workspaces.home().checkpoint_at_start();
        }
        SessionStart::Cleared | SessionStart::Compacted => {
            forget_views(workspaces, input, adapter);
            update_notes(workspaces.home(), |notes| notes.is_forgotten = false);
        }
    }
    match beginning {
        SessionStart::New => welcome(workspaces.home(), names),
        SessionStart::Resumed => render_state(workspaces, "The conversation goes on.", names),
        SessionStart::Cleared | SessionStart::Compacted => render_state(workspaces, AFTER_FORGETTING, names),
    }
}

/// Forgets what left the context. The instructions that the client loads into every context are still there.
fn forget_views(workspaces: &mut SessionWorkspaces<'_>, input: &HookInput, adapter: &ClientAdapter) {
    workspaces.all().for_each(Session::reset);
    note_loaded_instructions(workspaces, input, adapter);
}

fn note_loaded_instructions(workspaces: &mut SessionWorkspaces<'_>, input: &HookInput, adapter: &ClientAdapter) {
    workspaces.home().foreign_tools().were_instructed(&input.directory, adapter.instructions);
}

/// Returns the note for the model before a tool runs, or the reason why it must not run.
fn before_tool(
    workspaces: &mut SessionWorkspaces<'_>,
    input: &HookInput,
    used: &ToolUse,
    adapter: &ClientAdapter,
    names: &ToolNames,
) -> Result<String, String> {
    match used {
        ToolUse::Read | ToolUse::Search { .. } => Ok(String::new()),
        ToolUse::Change(edit) => {
            let edit = with_absolute_paths(edit, &input.directory);
            edit.paths().iter().for_each(|path| record_attached_files(workspaces, input, adapter, path));
            judge_edit(workspaces, &edit, adapter, names)
        }
        ToolUse::Patch(text) => match ClientPatch::parse(text, &input.directory) {
            Some(patch) => judge_patch(workspaces, &patch, adapter, names),
            None => Ok(String::new()),
        },
        // Earlier changes by others are reported first, so that they are not attributed to the command.
        ToolUse::Shell { command, directory } => {
            let directory = shell_directory(input, directory.as_deref());
            let command = ShellCommand { line: command, directory: &directory, output: "" };
            // Every workspace that the command may change must be open for that.
            workspaces_of_command(workspaces, &command).for_each(drop);
            let said = changed_elsewhere(workspaces);
            workspaces.opened().for_each(|session| {
                session.foreign_tools().command_begins(&command);
                session.checkpoint_before(command.line);
            });
            Ok(said)
        }
    }
}

/// Names the files that changed since the session saw them.
fn changed_elsewhere(workspaces: &mut SessionWorkspaces<'_>) -> String {
    let home = workspaces.home().workspace().path().to_owned();
    let running = update_notes(workspaces.home(), |notes| notes.running());
    let said = |session: &mut Session| {
        let changed = render::changed_elsewhere(&session.foreign_tools().changed_elsewhere(&running));
        in_workspace(name_from(&home, session).as_deref(), &changed)
    };
    workspaces.opened().map(said).collect()
}

/// Judges an edit. Files outside of every workspace pass.
fn judge_edit(
    workspaces: &mut SessionWorkspaces<'_>,
    edit: &Edit,
    adapter: &ClientAdapter,
    names: &ToolNames,
) -> Result<String, String> {
    let running = update_notes(workspaces.home(), |notes| notes.running());
    let paths = edit.paths();
    let Some(path) = paths.first() else { return Ok(String::new()) };
    let place = workspaces.name_for(path);
    let Some(session) = workspaces.session_for(path) else { return Ok(String::new()) };
    let judged = session.foreign_tools().judge(edit, &running);
    let allowed = judged.map_err(|refused| render_refusal(place.as_deref(), *refused, names))?;
    if adapter.hears_of_tools() {
        session.foreign_tools().record_told(&allowed.changed_before);
    }
    let changed = in_workspace(place.as_deref(), &render_changes_before(&allowed, names));
    Ok(start_edit(workspaces, allowed.edit) + &changed)
}

/// What changed in the files of an edit since the session saw them.
fn render_changes_before(allowed: &EditPermit, names: &ToolNames) -> String {
    render::gone_before(&allowed.gone_before) + &render::changed_before(&allowed.changed_before, names)
}

/// A refusal, with the path relative to the home.
fn render_refusal(place: Option<&str>, mut refused: Outcome, names: &ToolNames) -> String {
    if let (Some(place), Err(refused)) = (place, &mut refused.result) {
        refused.refusal.path = refused.refusal.path.take().map(|path| format!("{place}/{path}"));
    }
    render::text(&refused, names)
}

/// Puts the name of the workspace above a text about files outside of the home.
fn in_workspace(place: Option<&str>, text: &str) -> String {
    match place {
        Some(place) if !text.is_empty() => format!("In {place}:\n{text}"),
        _ => text.to_owned(),
    }
}

/// Notes that a tool is making an edit. Returns a note for the model if the file is in another worktree.
fn start_edit(workspaces: &mut SessionWorkspaces<'_>, allowed: AllowedEdit) -> String {
    let paths = allowed.edit.paths();
    update_notes(workspaces.home(), |notes| notes.start_edit(allowed));
    let elsewhere = paths.iter().filter_map(|path| workspaces.enters_another_worktree(path));
    let note =
        |root: PathBuf| format!("note: this edit is in another worktree of this repository ({}), not in yours\n", root.display());
    elsewhere.map(note).collect()
}

/// Judges each file of a patch, and returns all refusals at once, as far as there is room: the lines that a refusal shows count as seen.
fn judge_patch(
    workspaces: &mut SessionWorkspaces<'_>,
    patch: &ClientPatch,
    adapter: &ClientAdapter,
    names: &ToolNames,
) -> Result<String, String> {
    const MOST_OF_ONE: usize = 8_000;
    let running = update_notes(workspaces.home(), |notes| notes.running());
    let (mut refused, mut said) = (String::new(), String::new());
    for PatchPart { edit, intents } in &patch.parts {
        if refused.len() + MOST_OF_ONE > adapter.max_context {
            break;
        }
        let Some((_, path)) = intents.first() else { continue };
        let place = workspaces.name_for(path);
        let Some(session) = workspaces.session_for(path) else { continue };
        let mut tools = session.foreign_tools();
        let by_intent = intents.iter().find_map(|(intent, path)| tools.judge_intent(edit, *intent, path, &running));
        match by_intent.map_or_else(|| tools.judge(edit, &running), Err) {
            Ok(allowed) => {
                if adapter.hears_of_tools() {
                    tools.record_told(&allowed.changed_before);
                }
                said.push_str(&in_workspace(place.as_deref(), &render_changes_before(&allowed, names)));
            }
            Err(outcome) => refused.push_str(&render_refusal(place.as_deref(), *outcome, names)),
        }
    }
    if !refused.is_empty() {
        return Err(refused);
    }
    for edit in patch_edits(workspaces, patch) {
        let Some(session) = edit.paths().first().and_then(|path| workspaces.session_for(path)) else { continue };
        let allowed = session.foreign_tools().allow(&edit);
        said.push_str(&start_edit(workspaces, allowed));
    }
    Ok(said)
}

/// A patch is one change, unless its files are in several workspaces.
fn patch_edits(workspaces: &mut SessionWorkspaces<'_>, patch: &ClientPatch) -> Vec<Edit> {
    let mut root_of = |edit: &Edit| {
        let paths = edit.paths();
        paths.first().and_then(|path| workspaces.session_for(path)).map(|session| session.workspace().path().to_owned())
    };
    let roots: Vec<_> = patch.parts.iter().map(|part| root_of(&part.edit)).collect();
    match roots.windows(2).all(|pair| pair[0] == pair[1]) {
        true => vec![patch.whole.clone()],
        false => patch.parts.iter().map(|part| part.edit.clone()).collect(),
    }
}

/// Records what a tool did, and returns the note for the model.
fn after_tool(
    workspaces: &mut SessionWorkspaces<'_>,
    input: &HookInput,
    adapter: &ClientAdapter,
    used: &ToolUse,
    outcome: &ToolOutcome,
    names: &ToolNames,
) -> String {
    for path in &input.given {
        let path = absolute_path(&input.directory, path);
        workspaces.session_with_instructions(&path).into_iter().for_each(|session| session.foreign_tools().were_given(&path));
    }
    let mut said = String::new();
    match (used, outcome) {
        (ToolUse::Shell { command, directory }, outcome) => {
            let directory = shell_directory(input, directory.as_deref());
            let output = if let ToolOutcome::Printed(output) = outcome { output } else { "" };
            return after_command(workspaces, adapter, &ShellCommand { line: command, directory: &directory, output }, names);
        }
        (ToolUse::Change(edit), ToolOutcome::Failed) => {
            said.push_str(&end_failed_edits(workspaces, &[with_absolute_paths(edit, &input.directory)], names));
        }
        (ToolUse::Patch(text), ToolOutcome::Failed) => {
            let edits =
                ClientPatch::parse(text, &input.directory).map(|patch| patch_edits(workspaces, &patch)).unwrap_or_default();
            said.push_str(&end_failed_edits(workspaces, &edits, names));
        }
        (_, ToolOutcome::Failed) => {}
        (ToolUse::Read, ToolOutcome::Showed(shown)) => {
            let paths: Vec<String> = shown.iter().map(|shown| record_shown(workspaces, input, shown)).collect();
            said.push_str(&new_instructions(workspaces, adapter, &paths, ShownBy::Read, names));
        }
        (ToolUse::Read, ToolOutcome::ShowedNotebook { path, cells }) => {
            let path = absolute_path(&input.directory, path);
            if let Some(session) = workspaces.session_for(&path) {
                session.foreign_tools().record_shown_notebook(&path, cells);
            }
            said.push_str(&new_instructions(workspaces, adapter, &[path], ShownBy::Read, names));
        }
        (ToolUse::Search { paths }, ToolOutcome::Printed(printed)) => record_search(workspaces, input, paths, printed),
        (ToolUse::Search { .. }, ToolOutcome::Showed(shown)) => {
            shown.iter().for_each(|shown| drop(record_shown(workspaces, input, shown)))
        }
        (ToolUse::Read | ToolUse::Search { .. }, _) => {}
        (ToolUse::Change(edit), _) => {
            let edit = with_absolute_paths(edit, &input.directory);
            said.push_str(&record_edit(workspaces, &edit, names));
            said.push_str(&new_instructions(workspaces, adapter, &edit.paths(), ShownBy::Other, names));
        }
        (ToolUse::Patch(text), _) => {
            if let Some(patch) = ClientPatch::parse(text, &input.directory) {
                let edits = patch_edits(workspaces, &patch);
                edits.iter().for_each(|edit| said.push_str(&record_edit(workspaces, edit, names)));
                said.push_str(&new_instructions(workspaces, adapter, &patch.whole.paths(), ShownBy::Other, names));
            }
        }
    }
    said + &changed_elsewhere(workspaces)
}

/// Drops edits that were not made, and records those that waited for them.
fn end_failed_edits(workspaces: &mut SessionWorkspaces<'_>, edits: &[Edit], names: &ToolNames) -> String {
    update_notes(workspaces.home(), |notes| edits.iter().for_each(|edit| drop(notes.end_edit(edit))));
    record_made_edits(workspaces, names)
}

/// Records what a command printed and changed, in every workspace that it may have touched.
fn after_command(
    workspaces: &mut SessionWorkspaces<'_>,
    adapter: &ClientAdapter,
    command: &ShellCommand<'_>,
    names: &ToolNames,
) -> String {
    let home = workspaces.home().workspace().path().to_owned();
    let running = update_notes(workspaces.home(), |notes| notes.running());
    let (mut said, mut read) = (String::new(), Vec::new());
    for session in workspaces_of_command(workspaces, command) {
        let effects = session.foreign_tools().command_ran(command, &running);
        if adapter.transcript == TranscriptUse::HoldsResults {
            session.foreign_tools().prints_later(command);
        }
        let root = session.workspace().path().to_owned();
        read.extend(effects.read.iter().filter_map(|lines| root.join(lines.path.as_str()).to_str().map(str::to_owned)));
        said.push_str(&in_workspace(name_from(&home, session).as_deref(), &render::command(&effects)));
    }
    said + &new_instructions(workspaces, adapter, &read, ShownBy::Other, names)
}

/// Opens the workspaces that a command may touch: those of the session, the one that it runs in, and those of the paths that it names.
fn workspaces_of_command<'a>(
    workspaces: &'a mut SessionWorkspaces<'_>,
    command: &ShellCommand<'_>,
) -> impl Iterator<Item = &'a mut Session> {
    const MOST_BASES: usize = 6;
    const MOST_NAMES: usize = 100;
    let mentioned = mentions::in_command(command.line);
    let bases = [".".to_owned()].into_iter().chain(mentioned.directories).take(MOST_BASES);
    let bases: Vec<String> = bases.map(|base| absolute_path(command.directory, &base)).collect();
    let home = workspaces.home().workspace().path().to_owned();
    let printed = mentions::in_output(command.output).into_iter().take(MOST_NAMES);
    // A path that is only printed does not open a workspace outside of the home.
    let printed: Vec<String> =
        printed.filter(|name| !Path::new(name).is_absolute() || Path::new(name).starts_with(&home)).collect();
    let names: Vec<String> = mentioned.paths.into_iter().take(MOST_NAMES).chain(printed).collect();
    let named = bases.iter().flat_map(|base| names.iter().map(move |name| absolute_path(base, name)));
    let inside = bases.iter().filter(|base| Path::new(base).is_dir()).map(|base| format!("{base}/any file"));
    for path in inside.chain(named.filter(|path| Path::new(path).is_file())) {
        let _ = workspaces.session_for(&path);
    }
    workspaces.all()
}

fn shell_directory(input: &HookInput, directory: Option<&str>) -> String {
    directory.map_or_else(|| input.directory.clone(), |below| absolute_path(&input.directory, below))
}

fn record_shown(workspaces: &mut SessionWorkspaces<'_>, input: &HookInput, shown: &ShownLines) -> String {
    let path = absolute_path(&input.directory, &shown.path);
    if let Some(session) = workspaces.session_for(&path) {
        session.foreign_tools().record_shown(&path, shown.start, &shown.content);
    }
    path
}

/// Records what a search printed: the hits, and any other lines of files in the output.
fn record_search(workspaces: &mut SessionWorkspaces<'_>, input: &HookInput, paths: &[String], printed: &str) {
    let only = if let [only] = paths { Some(only.as_str()) } else { None };
    search_hits::hits(printed, only).iter().for_each(|hit| drop(record_shown(workspaces, input, hit)));
    let line = paths.join(" ");
    let printed = ShellCommand { line: &line, directory: &input.directory, output: printed };
    workspaces_of_command(workspaces, &printed).for_each(|session| drop(session.foreign_tools().record_printed(&printed)));
}

/// Records an edit that a tool has made. Until then it counts as running; otherwise the hook of another call would report it as a
/// foreign change.
fn record_edit(workspaces: &mut SessionWorkspaces<'_>, edit: &Edit, names: &ToolNames) -> String {
    let (running, is_shared) = update_notes(workspaces.home(), |notes| (notes.running(), notes.is_shared(edit)));
    let made = running.iter().find(|running| running.edit == *edit).cloned();
    let made = made.unwrap_or_else(|| AllowedEdit::unjudged(edit.clone()));
    let said = match if is_shared { settle_shared(workspaces, &made, &running) } else { SharedEditState::Differs } {
        SharedEditState::Recorded => {
            update_notes(workspaces.home(), |notes| drop(notes.end_edit(edit)));
            String::new()
        }
        SharedEditState::HalfWritten => {
            update_notes(workspaces.home(), |notes| notes.mark_made(edit));
            String::new()
        }
        SharedEditState::Differs => adopt(workspaces, &made, &running, names),
    };
    said + &record_made_edits(workspaces, names)
}

/// What is on disk after an edit of a file that another call is editing as well.
enum SharedEditState {
    /// The running edits explain every change of the file.
    Recorded,
    /// The other call has truncated the file to rewrite it. Its hook records both edits.
    HalfWritten,
    Differs,
}

/// Looks several times, because another call may have written only a part of the file.
fn settle_shared(workspaces: &mut SessionWorkspaces<'_>, made: &AllowedEdit, running: &[AllowedEdit]) -> SharedEditState {
    const LOOKS: usize = 8;
    const PAUSE: Duration = Duration::from_millis(20);
    let paths = made.edit.paths();
    let Some(session) = paths.first().and_then(|path| workspaces.session_for(path)) else { return SharedEditState::Recorded };
    for look in 0..LOOKS {
        if look > 0 {
            std::thread::sleep(PAUSE);
        }
        if session.foreign_tools().settle_made(made, running) {
            return SharedEditState::Recorded;
        }
    }
    if session.foreign_tools().is_emptied(&made.edit) { SharedEditState::HalfWritten } else { SharedEditState::Differs }
}

/// Records the edits that waited for other calls on the same files.
fn record_made_edits(workspaces: &mut SessionWorkspaces<'_>, names: &ToolNames) -> String {
    let (running, waiting) = update_notes(workspaces.home(), |notes| (notes.running(), notes.made_edits()));
    waiting.iter().map(|made| adopt(workspaces, made, &running, names)).collect()
}

fn adopt(workspaces: &mut SessionWorkspaces<'_>, made: &AllowedEdit, running: &[AllowedEdit], names: &ToolNames) -> String {
    let paths = made.edit.paths();
    let place = paths.first().and_then(|path| workspaces.name_for(path));
    let session = paths.first().and_then(|path| workspaces.session_for(path));
    let outcome = session.and_then(|session| session.foreign_tools().adopt(made, running));
    update_notes(workspaces.home(), |notes| drop(notes.end_edit(&made.edit)));
    outcome.map(|outcome| in_workspace(place.as_deref(), &render::text(&outcome, names))).unwrap_or_default()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ShownBy {
    /// The client's read tool.
    Read,
    Other,
}

/// The instructions for these files that the model does not have yet.
fn new_instructions(
    workspaces: &mut SessionWorkspaces<'_>,
    adapter: &ClientAdapter,
    paths: &[String],
    manner: ShownBy,
    names: &ToolNames,
) -> String {
    // The client loads those of the root even if no start of the session was reported.
    workspaces.home().foreign_tools().were_instructed("", adapter.instructions);
    if manner == ShownBy::Read && adapter.instructions.where_files_are_read {
        for path in paths {
            let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
            let session = workspaces.session_with_instructions(path);
            session.into_iter().for_each(|session| session.foreign_tools().were_instructed(directory, adapter.instructions));
        }
    }
    let told = paths.iter().filter_map(|path| workspaces.session_with_instructions(path)?.foreign_tools().instructions(path));
    told.map(|told| render::instructions::instructions(&told, names)).collect()
}

fn with_absolute_paths(edit: &Edit, directory: &str) -> Edit {
    edit.clone().with_paths(|path| absolute_path(directory, path))
}

fn update_notes<T>(session: &mut Session, change: impl FnOnce(&mut PendingNotes) -> T) -> T {
    let workspace = session.workspace().clone();
    let id = session.tracker().map_or_else(|| SessionId(String::new()), |tracker| tracker.session().clone());
    PendingNotes::update(&workspace, &id, change)
}

fn has_seen_something(session: &mut Session) -> bool {
    let workspace = session.workspace().clone();
    session.tracker().is_some_and(|tracker| !tracker.lately_viewed(&workspace, 1).is_empty())
}

/// The state for a new session, if there are open tasks or outside changes.
fn welcome(session: &mut Session, names: &ToolNames) -> String {
    let state = session.snapshot();
    let has_news = !state.tasks.open().is_empty() || state.files.iter().any(|file| file.changed_outside);
    if has_news { format_for_prompt(&state, names) } else { String::new() }
}

/// The state of every workspace of the session, for a context that lost it.
fn render_state(workspaces: &mut SessionWorkspaces<'_>, why: &str, names: &ToolNames) -> String {
    // Each takes up to 500 tokens.
    const MOST: usize = 4;
    let states = workspaces.all().take(MOST).map(|session| session.snapshot());
    let states: String = states.map(|state| format_for_prompt(&state, names)).collect();
    format!("{why}\n{states}")
}

/// Splits a text at the size that the client takes: it would drop a larger one.
fn split_to_fit(text: &str, max_context: usize) -> (String, &str) {
    const CONTINUED: &str = "[continued with the next result]\n";
    if text.len() <= max_context {
        return (text.to_owned(), "");
    }
    let at = text.floor_char_boundary(max_context - CONTINUED.len());
    let end = text[..at].rfind('\n').map_or(at, |end| end + 1);
    (format!("{}{CONTINUED}", &text[..end]), &text[end..])
}
