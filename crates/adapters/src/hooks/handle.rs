//! What a hook answers, in our words: the same for every client.

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
    ClientAdapter, HookEvent, HookInput, SessionStart, ShownLines, ToolOutcome, ToolUse, TranscriptUse,
    goose_database::{self, GooseResult},
    located,
    patch::{ClientPatch, PatchPart},
    pending_notes::PendingNotes,
    search_hits, transcript,
    workspaces::{SessionWorkspaces, name_from},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HookVerdict {
    /// It goes on, and there is nothing to say.
    Pass,
    /// It does not; the model reads this.
    Deny(String),
    /// It goes on, and the model reads this besides.
    Context(String),
}

/// Judges or records what a client tells, and says what the model should hear: at once if it `hears`, else at the next chance.
pub(super) fn decide(places: &mut SessionWorkspaces<'_>, heard: &HookInput, dialect: &ClientAdapter, hears: bool) -> HookVerdict {
    heed_transcript(places, heard, dialect);
    see_results(places, heard, dialect);
    let names = &(dialect.names)();
    let said = match &heard.what {
        HookEvent::Begins(beginning) => begins(places, heard, dialect, *beginning, names),
        HookEvent::Forgot => {
            forget(places, heard, dialect);
            note(places.home(), |notebook| notebook.is_forgotten = true);
            String::new()
        }
        HookEvent::Prompted(files) => {
            files.iter().for_each(|shown| drop(see(places, heard, shown)));
            String::new()
        }
        HookEvent::Before(used) => match before(places, heard, used, dialect, names) {
            Ok(said) => said,
            Err(refused) => return deny(places, refused, dialect),
        },
        HookEvent::After(used, outcome) => after(places, heard, dialect, used, outcome, names),
    };
    speak(places, &said, dialect, hears)
}

/// Denies a call. Every client hears that, so that it is a chance to say what was kept.
fn deny(places: &mut SessionWorkspaces<'_>, refused: String, dialect: &ClientAdapter) -> HookVerdict {
    let room = dialect.room.saturating_sub(refused.len());
    match speak(places, "", &ClientAdapter { room, ..*dialect }, room > LEAST_ROOM) {
        HookVerdict::Context(kept) => HookVerdict::Deny(refused + &kept),
        HookVerdict::Pass | HookVerdict::Deny(_) => HookVerdict::Deny(refused),
    }
}

/// In less than this nothing more is said.
const LEAST_ROOM: usize = 1_000;

/// Says something with all that was kept for this moment, as much as the client takes, and keeps the rest.
fn speak(places: &mut SessionWorkspaces<'_>, said: &str, dialect: &ClientAdapter, hears: bool) -> HookVerdict {
    if !hears {
        if !said.is_empty() {
            note(places.home(), |notebook| notebook.note(said));
        }
        return HookVerdict::Pass;
    }
    let (notes, is_forgotten) =
        note(places.home(), |notebook| (std::mem::take(&mut notebook.notes), std::mem::take(&mut notebook.is_forgotten)));
    let mut text = String::new();
    if is_forgotten {
        text.push_str(&state(places, AFTER_FORGETTING, &(dialect.names)()));
    }
    text.push_str(&notes);
    text.push_str(said);
    let (now, later) = divided(&text, dialect.room);
    if !later.is_empty() {
        note(places.home(), |notebook| notebook.note(later));
    }
    if now.trim().is_empty() { HookVerdict::Pass } else { HookVerdict::Context(now) }
}

const AFTER_FORGETTING: &str = "The context was made shorter: what was read before no longer counts as read.";

/// Some clients do not say that the context has lost something, but their record of the conversation does.
fn heed_transcript(places: &mut SessionWorkspaces<'_>, heard: &HookInput, dialect: &ClientAdapter) {
    let (Some(path), TranscriptUse::TellsLoss) = (&heard.transcript, dialect.transcript) else { return };
    let begins = matches!(heard.what, HookEvent::Begins(_));
    let is_shorter = note(places.home(), |notebook| {
        // What a conversation begins or goes on with is no loss: it is in the record before the next thing happens.
        let last = std::mem::take(&mut notebook.transcript).filter(|_| !begins);
        let looked = transcript::look(path, last);
        if !begins {
            notebook.transcript = looked.until.or(last);
        }
        looked.is_rewritten && last.is_some()
    });
    if is_shorter && places.all().any(has_seen_something) {
        forget(places, heard, dialect);
        note(places.home(), |notebook| notebook.is_forgotten = true);
    }
}

/// Some clients do not tell what a tool has shown, but their record of the conversation does.
fn see_results(places: &mut SessionWorkspaces<'_>, heard: &HookInput, dialect: &ClientAdapter) {
    let (Some(record), TranscriptUse::HoldsResults) = (&heard.transcript, dialect.transcript) else { return };
    let last = note(places.home(), |notebook| notebook.transcript);
    let Some(looked) = goose_database::look(Path::new(record), &heard.session, last) else { return };
    if looked.is_rewritten && places.all().any(has_seen_something) {
        forget(places, heard, dialect);
        note(places.home(), |notebook| notebook.is_forgotten = true);
    }
    for GooseResult { command, text } in &looked.results {
        let printed = ShellCommand { line: command, directory: &heard.directory, output: text };
        working_in(places, &printed).for_each(|session| drop(session.foreign_tools().record_printed(&printed)));
    }
    note(places.home(), |notebook| notebook.transcript = looked.until);
}

/// Some clients put files into the context without a tool: those that were read last when it was made shorter, or that the person
/// has named.
fn see_attached(places: &mut SessionWorkspaces<'_>, heard: &HookInput, dialect: &ClientAdapter, path: &str) {
    let (Some(record), TranscriptUse::HoldsFiles, None) = (&heard.transcript, dialect.transcript, &heard.agent) else { return };
    let Some(session) = places.of(path) else { return };
    let is_seen = session.path_of(path).is_ok_and(|path| session.view_of(&path).is_some());
    if !is_seen {
        transcript::attached(record, path).iter().for_each(|shown| drop(see(places, heard, shown)));
    }
}

fn begins(
    places: &mut SessionWorkspaces<'_>,
    heard: &HookInput,
    dialect: &ClientAdapter,
    beginning: SessionStart,
    names: &ToolNames,
) -> String {
    match beginning {
        SessionStart::New | SessionStart::Resumed => instructed(places, heard, dialect),
        SessionStart::Cleared | SessionStart::Compacted => {
            forget(places, heard, dialect);
            note(places.home(), |notebook| notebook.is_forgotten = false);
        }
    }
    match beginning {
        SessionStart::New => welcome(places.home(), names),
        SessionStart::Resumed => state(places, "The conversation goes on.", names),
        SessionStart::Cleared | SessionStart::Compacted => state(places, AFTER_FORGETTING, names),
    }
}

/// Forgets what the context has lost. What the client itself puts into every context is still there.
fn forget(places: &mut SessionWorkspaces<'_>, heard: &HookInput, dialect: &ClientAdapter) {
    places.all().for_each(Session::reset);
    instructed(places, heard, dialect);
}

/// The client has given the model the instructions of its directory.
fn instructed(places: &mut SessionWorkspaces<'_>, heard: &HookInput, dialect: &ClientAdapter) {
    places.home().foreign_tools().were_instructed(&heard.directory, dialect.instructions);
}

/// What is said before a tool runs, or why it must not.
fn before(
    places: &mut SessionWorkspaces<'_>,
    heard: &HookInput,
    used: &ToolUse,
    dialect: &ClientAdapter,
    names: &ToolNames,
) -> Result<String, String> {
    match used {
        ToolUse::Read | ToolUse::Search { .. } => Ok(String::new()),
        ToolUse::Change(edit) => {
            let edit = absolute(edit, &heard.directory);
            edit.paths().iter().for_each(|path| see_attached(places, heard, dialect, path));
            judge_edit(places, &edit, dialect, names)
        }
        ToolUse::Patch(text) => match ClientPatch::parse(text, &heard.directory) {
            Some(patch) => judge_patch(places, &patch, dialect, names),
            None => Ok(String::new()),
        },
        // What others changed before the command is told before it, so that it is not taken for the command's doing.
        ToolUse::Shell { command, directory } => {
            let directory = shell_directory(heard, directory.as_deref());
            let command = ShellCommand { line: command, directory: &directory, output: "" };
            // In all workspaces in which it may do something, or it would be blamed for what others did there.
            working_in(places, &command).for_each(drop);
            let said = changed_elsewhere(places);
            places.opened().for_each(|session| session.foreign_tools().command_begins(&command));
            Ok(said)
        }
    }
}

/// Names the files that are not what the session saw.
fn changed_elsewhere(places: &mut SessionWorkspaces<'_>) -> String {
    let home = places.home().workspace().path().to_owned();
    let running = note(places.home(), |notebook| notebook.running());
    let said = |session: &mut Session| {
        let changed = render::changed_elsewhere(&session.foreign_tools().changed_elsewhere(&running));
        said_in(name_from(&home, session).as_deref(), &changed)
    };
    places.opened().map(said).collect()
}

/// Judges an edit. Files that are in no workspace are none of our business.
fn judge_edit(
    places: &mut SessionWorkspaces<'_>,
    edit: &Edit,
    dialect: &ClientAdapter,
    names: &ToolNames,
) -> Result<String, String> {
    let running = note(places.home(), |notebook| notebook.running());
    let paths = edit.paths();
    let Some(path) = paths.first() else { return Ok(String::new()) };
    let place = places.name_of(path);
    let Some(session) = places.of(path) else { return Ok(String::new()) };
    let judged = session.foreign_tools().judge(edit, &running);
    let allowed = judged.map_err(|refused| refusal_in(place.as_deref(), *refused, names))?;
    if dialect.hears_of_tools() {
        session.foreign_tools().record_told(&allowed.changed_before);
    }
    let changed = said_in(place.as_deref(), &since_seen(&allowed, names));
    Ok(begins_edit(places, allowed.edit) + &changed)
}

/// What has become of the files of an edit since the session saw them.
fn since_seen(allowed: &EditPermit, names: &ToolNames) -> String {
    render::gone_before(&allowed.gone_before) + &render::changed_before(&allowed.changed_before, names)
}

/// A refusal, with the file as it is seen from the home.
fn refusal_in(place: Option<&str>, mut refused: Outcome, names: &ToolNames) -> String {
    if let (Some(place), Err(refused)) = (place, &mut refused.result) {
        refused.refusal.path = refused.refusal.path.take().map(|path| format!("{place}/{path}"));
    }
    render::text(&refused, names)
}

/// What is said of files in another workspace than the home begins with its name.
fn said_in(place: Option<&str>, text: &str) -> String {
    match place {
        Some(place) if !text.is_empty() => format!("In {place}:\n{text}"),
        _ => text.to_owned(),
    }
}

/// A tool is about to make an edit. Gives what is to be said if it is in another worktree.
fn begins_edit(places: &mut SessionWorkspaces<'_>, allowed: AllowedEdit) -> String {
    let paths = allowed.edit.paths();
    note(places.home(), |notebook| notebook.begins(allowed));
    let elsewhere = paths.iter().filter_map(|path| places.enters_another_worktree(path));
    let note =
        |root: PathBuf| format!("note: this edit is in another worktree of this repository ({}), not in yours\n", root.display());
    elsewhere.map(note).collect()
}

/// Judges the files of a patch. All that are refused are named at once, as far as there is room: what a refusal shows counts as seen.
fn judge_patch(
    places: &mut SessionWorkspaces<'_>,
    patch: &ClientPatch,
    dialect: &ClientAdapter,
    names: &ToolNames,
) -> Result<String, String> {
    const MOST_OF_ONE: usize = 8_000;
    let running = note(places.home(), |notebook| notebook.running());
    let (mut refused, mut said) = (String::new(), String::new());
    for PatchPart { edit, intents } in &patch.parts {
        if refused.len() + MOST_OF_ONE > dialect.room {
            break;
        }
        let Some((_, path)) = intents.first() else { continue };
        let place = places.name_of(path);
        let Some(session) = places.of(path) else { continue };
        let mut tools = session.foreign_tools();
        let by_intent = intents.iter().find_map(|(intent, path)| tools.judge_intent(edit, *intent, path, &running));
        match by_intent.map_or_else(|| tools.judge(edit, &running), Err) {
            Ok(allowed) => {
                if dialect.hears_of_tools() {
                    tools.record_told(&allowed.changed_before);
                }
                said.push_str(&said_in(place.as_deref(), &since_seen(&allowed, names)));
            }
            Err(outcome) => refused.push_str(&refusal_in(place.as_deref(), *outcome, names)),
        }
    }
    if !refused.is_empty() {
        return Err(refused);
    }
    for edit in patch_edits(places, patch) {
        let Some(session) = edit.paths().first().and_then(|path| places.of(path)) else { continue };
        let allowed = session.foreign_tools().allow(&edit);
        said.push_str(&begins_edit(places, allowed));
    }
    Ok(said)
}

/// A patch is one change, unless its files are in several workspaces.
fn patch_edits(places: &mut SessionWorkspaces<'_>, patch: &ClientPatch) -> Vec<Edit> {
    let mut root_of = |edit: &Edit| {
        let paths = edit.paths();
        paths.first().and_then(|path| places.of(path)).map(|session| session.workspace().path().to_owned())
    };
    let roots: Vec<_> = patch.parts.iter().map(|part| root_of(&part.edit)).collect();
    match roots.windows(2).all(|pair| pair[0] == pair[1]) {
        true => vec![patch.whole.clone()],
        false => patch.parts.iter().map(|part| part.edit.clone()).collect(),
    }
}

/// Records what a tool did, and says what should be known of it.
fn after(
    places: &mut SessionWorkspaces<'_>,
    heard: &HookInput,
    dialect: &ClientAdapter,
    used: &ToolUse,
    outcome: &ToolOutcome,
    names: &ToolNames,
) -> String {
    for path in &heard.gave {
        let path = located(&heard.directory, path);
        places.instructing(&path).into_iter().for_each(|session| session.foreign_tools().were_given(&path));
    }
    let mut said = String::new();
    match (used, outcome) {
        (ToolUse::Shell { command, directory }, outcome) => {
            let directory = shell_directory(heard, directory.as_deref());
            let output = if let ToolOutcome::Printed(output) = outcome { output } else { "" };
            return ran(places, dialect, &ShellCommand { line: command, directory: &directory, output }, names);
        }
        (ToolUse::Change(edit), ToolOutcome::Failed) => {
            said.push_str(&failed(places, &[absolute(edit, &heard.directory)], names));
        }
        (ToolUse::Patch(text), ToolOutcome::Failed) => {
            let edits = ClientPatch::parse(text, &heard.directory).map(|patch| patch_edits(places, &patch)).unwrap_or_default();
            said.push_str(&failed(places, &edits, names));
        }
        (_, ToolOutcome::Failed) => {}
        (ToolUse::Read, ToolOutcome::Showed(shown)) => {
            let paths: Vec<String> = shown.iter().map(|shown| see(places, heard, shown)).collect();
            said.push_str(&instructions(places, dialect, &paths, ShownBy::Read, names));
        }
        (ToolUse::Read, ToolOutcome::ShowedNotebook { path, cells }) => {
            let path = located(&heard.directory, path);
            if let Some(session) = places.of(&path) {
                session.foreign_tools().record_shown_notebook(&path, cells);
            }
            said.push_str(&instructions(places, dialect, &[path], ShownBy::Read, names));
        }
        (ToolUse::Search { paths }, ToolOutcome::Printed(printed)) => see_hits(places, heard, paths, printed),
        (ToolUse::Search { .. }, ToolOutcome::Showed(shown)) => shown.iter().for_each(|shown| drop(see(places, heard, shown))),
        (ToolUse::Read | ToolUse::Search { .. }, _) => {}
        (ToolUse::Change(edit), _) => {
            let edit = absolute(edit, &heard.directory);
            said.push_str(&record(places, &edit, names));
            said.push_str(&instructions(places, dialect, &edit.paths(), ShownBy::Other, names));
        }
        (ToolUse::Patch(text), _) => {
            if let Some(patch) = ClientPatch::parse(text, &heard.directory) {
                let edits = patch_edits(places, &patch);
                edits.iter().for_each(|edit| said.push_str(&record(places, edit, names)));
                said.push_str(&instructions(places, dialect, &patch.whole.paths(), ShownBy::Other, names));
            }
        }
    }
    said + &changed_elsewhere(places)
}

/// Edits were not made. Others may have waited for them.
fn failed(places: &mut SessionWorkspaces<'_>, edits: &[Edit], names: &ToolNames) -> String {
    note(places.home(), |notebook| edits.iter().for_each(|edit| drop(notebook.ends(edit))));
    record_waiting(places, names)
}

/// Records what a command has shown and changed, in every workspace that it may be about.
fn ran(places: &mut SessionWorkspaces<'_>, dialect: &ClientAdapter, command: &ShellCommand<'_>, names: &ToolNames) -> String {
    let home = places.home().workspace().path().to_owned();
    let running = note(places.home(), |notebook| notebook.running());
    let (mut said, mut read) = (String::new(), Vec::new());
    for session in working_in(places, command) {
        let effects = session.foreign_tools().command_ran(command, &running);
        if dialect.transcript == TranscriptUse::HoldsResults {
            session.foreign_tools().prints_later(command);
        }
        let root = session.workspace().path().to_owned();
        read.extend(effects.read.iter().filter_map(|lines| root.join(lines.path.as_str()).to_str().map(str::to_owned)));
        said.push_str(&said_in(name_from(&home, session).as_deref(), &render::command(&effects)));
    }
    said + &instructions(places, dialect, &read, ShownBy::Other, names)
}

/// In all workspaces that a command may be about: those that the session has worked in, the one that it runs in, and those of the files
/// and directories that it names.
fn working_in<'a>(places: &'a mut SessionWorkspaces<'_>, command: &ShellCommand<'_>) -> impl Iterator<Item = &'a mut Session> {
    const MOST_BASES: usize = 6;
    const MOST_NAMES: usize = 100;
    let mentioned = mentions::in_command(command.line);
    let bases = [".".to_owned()].into_iter().chain(mentioned.directories).take(MOST_BASES);
    let bases: Vec<String> = bases.map(|base| located(command.directory, &base)).collect();
    let home = places.home().workspace().path().to_owned();
    let printed = mentions::in_output(command.output).into_iter().take(MOST_NAMES);
    // What is only printed makes no workspace somewhere else.
    let printed: Vec<String> =
        printed.filter(|name| !Path::new(name).is_absolute() || Path::new(name).starts_with(&home)).collect();
    let names: Vec<String> = mentioned.paths.into_iter().take(MOST_NAMES).chain(printed).collect();
    let named = bases.iter().flat_map(|base| names.iter().map(move |name| located(base, name)));
    let inside = bases.iter().filter(|base| Path::new(base).is_dir()).map(|base| format!("{base}/any file"));
    for path in inside.chain(named.filter(|path| Path::new(path).is_file())) {
        let _ = places.of(&path);
    }
    places.all()
}

fn shell_directory(heard: &HookInput, directory: Option<&str>) -> String {
    directory.map_or_else(|| heard.directory.clone(), |below| located(&heard.directory, below))
}

fn see(places: &mut SessionWorkspaces<'_>, heard: &HookInput, shown: &ShownLines) -> String {
    let path = located(&heard.directory, &shown.path);
    if let Some(session) = places.of(&path) {
        session.foreign_tools().record_shown(&path, shown.start, &shown.content);
    }
    path
}

/// What a search has printed: hits under the names of their files, and otherwise whatever lines of files are in it.
fn see_hits(places: &mut SessionWorkspaces<'_>, heard: &HookInput, paths: &[String], printed: &str) {
    let only = if let [only] = paths { Some(only.as_str()) } else { None };
    search_hits::hits(printed, only).iter().for_each(|hit| drop(see(places, heard, hit)));
    let line = paths.join(" ");
    let printed = ShellCommand { line: &line, directory: &heard.directory, output: printed };
    working_in(places, &printed).for_each(|session| drop(session.foreign_tools().record_printed(&printed)));
}

/// Records an edit that a tool has made. It is running until that is done, or the hook of another call would take it for somebody
/// else's change.
fn record(places: &mut SessionWorkspaces<'_>, edit: &Edit, names: &ToolNames) -> String {
    let (running, is_shared) = note(places.home(), |notebook| (notebook.running(), notebook.is_shared(edit)));
    let made = running.iter().find(|running| running.edit == *edit).cloned();
    let made = made.unwrap_or_else(|| AllowedEdit::unjudged(edit.clone()));
    let said = match if is_shared { settle_shared(places, &made, &running) } else { SharedEditState::Differs } {
        SharedEditState::Recorded => {
            note(places.home(), |notebook| drop(notebook.ends(edit)));
            String::new()
        }
        SharedEditState::HalfWritten => {
            note(places.home(), |notebook| notebook.waits(edit));
            String::new()
        }
        SharedEditState::Differs => adopt(places, &made, &running, names),
    };
    said + &record_waiting(places, names)
}

/// What came of an edit of a file on which another call is at work.
enum SharedEditState {
    /// The edits that are running account for all that was done to the file.
    Recorded,
    /// The other call has emptied the file to write it anew: its hook records both.
    HalfWritten,
    /// Something else was done to it.
    Differs,
}

/// While another call writes the file, what is there may be half of it: a moment later it is whole.
fn settle_shared(places: &mut SessionWorkspaces<'_>, made: &AllowedEdit, running: &[AllowedEdit]) -> SharedEditState {
    const LOOKS: usize = 8;
    const PAUSE: Duration = Duration::from_millis(20);
    let paths = made.edit.paths();
    let Some(session) = paths.first().and_then(|path| places.of(path)) else { return SharedEditState::Recorded };
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

/// Records the edits that waited until other calls were done with the same files.
fn record_waiting(places: &mut SessionWorkspaces<'_>, names: &ToolNames) -> String {
    let (running, waiting) = note(places.home(), |notebook| (notebook.running(), notebook.waiting()));
    waiting.iter().map(|made| adopt(places, made, &running, names)).collect()
}

fn adopt(places: &mut SessionWorkspaces<'_>, made: &AllowedEdit, running: &[AllowedEdit], names: &ToolNames) -> String {
    let paths = made.edit.paths();
    let place = paths.first().and_then(|path| places.name_of(path));
    let session = paths.first().and_then(|path| places.of(path));
    let outcome = session.and_then(|session| session.foreign_tools().adopt(made, running));
    note(places.home(), |notebook| drop(notebook.ends(&made.edit)));
    outcome.map(|outcome| said_in(place.as_deref(), &render::text(&outcome, names))).unwrap_or_default()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ShownBy {
    /// By the client's own tool for that.
    Read,
    Other,
}

/// The instructions for work on these files that the model does not have, from the client or from us.
fn instructions(
    places: &mut SessionWorkspaces<'_>,
    dialect: &ClientAdapter,
    paths: &[String],
    manner: ShownBy,
    names: &ToolNames,
) -> String {
    // Without a beginning that we heard of, those of the root are what the client has given in any case.
    places.home().foreign_tools().were_instructed("", dialect.instructions);
    if manner == ShownBy::Read && dialect.instructions.where_files_are_read {
        for path in paths {
            let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
            let session = places.instructing(path);
            session.into_iter().for_each(|session| session.foreign_tools().were_instructed(directory, dialect.instructions));
        }
    }
    let told = paths.iter().filter_map(|path| places.instructing(path)?.foreign_tools().instructions(path));
    told.map(|told| render::instructions::instructions(&told, names)).collect()
}

fn absolute(edit: &Edit, directory: &str) -> Edit {
    edit.clone().with_paths(|path| located(directory, path))
}

fn note<T>(session: &mut Session, change: impl FnOnce(&mut PendingNotes) -> T) -> T {
    let workspace = session.workspace().clone();
    let id = session.tracker().map_or_else(|| SessionId(String::new()), |tracker| tracker.session().clone());
    PendingNotes::with(&workspace, &id, change)
}

fn has_seen_something(session: &mut Session) -> bool {
    let workspace = session.workspace().clone();
    session.tracker().is_some_and(|tracker| !tracker.lately_viewed(&workspace, 1).is_empty())
}

/// What a new conversation is told: only what there is to tell.
fn welcome(session: &mut Session, names: &ToolNames) -> String {
    let state = session.snapshot();
    let has_news = !state.tasks.open().is_empty() || state.files.iter().any(|file| file.changed_outside);
    if has_news { format_for_prompt(&state, names) } else { String::new() }
}

/// The state of the repository, and of others that the session has worked in, for a context that has lost it.
fn state(places: &mut SessionWorkspaces<'_>, why: &str, names: &ToolNames) -> String {
    // Each takes up to 500 tokens.
    const MOST: usize = 4;
    let states = places.all().take(MOST).map(|session| session.snapshot());
    let states: String = states.map(|state| format_for_prompt(&state, names)).collect();
    format!("{why}\n{states}")
}

/// As much of a text as a client takes at once, and the rest: of too much it would drop all.
fn divided(text: &str, room: usize) -> (String, &str) {
    const CONTINUED: &str = "[continued with the next result]\n";
    if text.len() <= room {
        return (text.to_owned(), "");
    }
    let at = text.floor_char_boundary(room - CONTINUED.len());
    let end = text[..at].rfind('\n').map_or(at, |end| end + 1);
    (format!("{}{CONTINUED}", &text[..end]), &text[end..])
}
