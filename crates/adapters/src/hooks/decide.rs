//! What a hook answers, in our words: the same for every client.

use std::path::Path;

use surehand_engine::{
    Command, Edit, RepoTracker, Session, SessionId, ToolNames,
    render::{self, snapshot::format_for_prompt},
};

use super::{
    Beginning, Dialect, Heard, Loads, Shown, ToolOutcome, Transcript, Use, What,
    goose_record::{self, ToolResult},
    located,
    notebook::Notebook,
    patch::{Part, Patch},
    search, transcript,
};

/// What becomes of what the client tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It goes on, and there is nothing to say.
    Pass,
    /// It does not; the model reads this.
    Deny(String),
    /// It goes on, and the model reads this besides.
    Context(String),
}

/// Judges or records what a client tells, and says what the model should hear: at once if it `hears`, else at the next chance.
pub(super) fn decide(session: &mut Session, heard: &Heard, dialect: &Dialect, hears: bool) -> Verdict {
    heed_transcript(session, heard, dialect);
    see_results(session, heard, dialect);
    let names = &(dialect.names)();
    let said = match &heard.what {
        What::Begins(beginning) => begins(session, heard, dialect, *beginning, names),
        What::Forgot => {
            forget(session, heard, dialect);
            note(session, |notebook| notebook.is_forgotten = true);
            String::new()
        }
        What::Prompted(files) => {
            files.iter().for_each(|shown| drop(see(session, heard, shown)));
            String::new()
        }
        What::Before(used) => match before(session, heard, used, dialect, names) {
            Ok(said) => said,
            Err(refused) => return deny(session, refused, dialect),
        },
        What::After(used, outcome) => after(session, heard, dialect, used, outcome, names),
    };
    speak(session, &said, dialect, hears)
}

/// Denies a call. Every client hears that, so that it is a chance to say what was kept.
fn deny(session: &mut Session, refused: String, dialect: &Dialect) -> Verdict {
    let room = dialect.room.saturating_sub(refused.len());
    match speak(session, "", &Dialect { room, ..*dialect }, room > LEAST_ROOM) {
        Verdict::Context(kept) => Verdict::Deny(refused + &kept),
        Verdict::Pass | Verdict::Deny(_) => Verdict::Deny(refused),
    }
}

/// In less than this nothing more is said.
const LEAST_ROOM: usize = 1_000;

/// Says something with all that was kept for this moment, as much as the client takes, and keeps the rest.
fn speak(session: &mut Session, said: &str, dialect: &Dialect, hears: bool) -> Verdict {
    if !hears {
        if !said.is_empty() {
            note(session, |notebook| notebook.note(said));
        }
        return Verdict::Pass;
    }
    let kept = note(session, |notebook| {
        let kept = Notebook { transcript: None, ..notebook.clone() };
        *notebook = Notebook { transcript: notebook.transcript, ..Notebook::default() };
        kept
    });
    let mut text = String::new();
    if kept.is_forgotten {
        text.push_str(&state(session, AFTER_FORGETTING, &(dialect.names)()));
    }
    text.push_str(&kept.notes);
    text.push_str(said);
    let (now, later) = divided(&text, dialect.room);
    if !later.is_empty() {
        note(session, |notebook| notebook.note(later));
    }
    if now.trim().is_empty() { Verdict::Pass } else { Verdict::Context(now) }
}

const AFTER_FORGETTING: &str = "The context was made shorter: what was read before no longer counts as read.";

/// Some clients do not say that the context has lost something, but their record of the conversation does.
fn heed_transcript(session: &mut Session, heard: &Heard, dialect: &Dialect) {
    let (Some(path), Transcript::TellsLoss) = (&heard.transcript, dialect.transcript) else { return };
    let begins = matches!(heard.what, What::Begins(_));
    let is_shorter = note(session, |notebook| {
        // What a conversation begins or goes on with is no loss: it is in the record before the next thing happens.
        let last = std::mem::take(&mut notebook.transcript).filter(|_| !begins);
        let looked = transcript::look(path, last);
        if !begins {
            notebook.transcript = looked.until.or(last);
        }
        looked.is_rewritten && last.is_some()
    });
    if is_shorter && has_seen_something(session) {
        forget(session, heard, dialect);
        note(session, |notebook| notebook.is_forgotten = true);
    }
}

/// Some clients do not tell what a tool has shown, but their record of the conversation does.
fn see_results(session: &mut Session, heard: &Heard, dialect: &Dialect) {
    let (Some(record), Transcript::HoldsResults) = (&heard.transcript, dialect.transcript) else { return };
    let last = note(session, |notebook| notebook.transcript);
    let Some(looked) = goose_record::look(Path::new(record), &heard.session, last) else { return };
    if looked.is_rewritten && has_seen_something(session) {
        forget(session, heard, dialect);
        note(session, |notebook| notebook.is_forgotten = true);
    }
    for ToolResult { command, text } in &looked.results {
        session.foreign_tools().printed(&Command { line: command, directory: &heard.directory, output: text });
    }
    note(session, |notebook| notebook.transcript = looked.until);
}

/// Some clients put files into the context without a tool: those that were read last when it was made shorter, or that the person
/// has named.
fn see_attached(session: &mut Session, heard: &Heard, dialect: &Dialect, path: &str) {
    let (Some(record), Transcript::HoldsFiles, None) = (&heard.transcript, dialect.transcript, &heard.agent) else { return };
    let is_seen = session.path_of(path).is_ok_and(|path| session.view_of(&path).is_some());
    if !is_seen {
        transcript::attached(record, path).iter().for_each(|shown| drop(see(session, heard, shown)));
    }
}

fn begins(session: &mut Session, heard: &Heard, dialect: &Dialect, beginning: Beginning, names: &ToolNames) -> String {
    match beginning {
        Beginning::New | Beginning::Resumed => instructed(session, heard, dialect),
        Beginning::Cleared | Beginning::Compacted => {
            forget(session, heard, dialect);
            note(session, |notebook| notebook.is_forgotten = false);
        }
    }
    match beginning {
        Beginning::New => welcome(session, names),
        Beginning::Resumed => state(session, "The conversation goes on.", names),
        Beginning::Cleared | Beginning::Compacted => state(session, AFTER_FORGETTING, names),
    }
}

/// Forgets what the context has lost. What the client itself puts into every context is still there.
fn forget(session: &mut Session, heard: &Heard, dialect: &Dialect) {
    session.reset();
    instructed(session, heard, dialect);
}

/// The client has given the model the instructions of its directory.
fn instructed(session: &mut Session, heard: &Heard, dialect: &Dialect) {
    match dialect.loads {
        Loads::Nothing => {}
        Loads::Above => session.foreign_tools().were_instructed(&heard.directory, &[]),
        Loads::AboveAndRead { instead } => session.foreign_tools().were_instructed(&heard.directory, instead),
    }
}

/// What is said before a tool runs, or why it must not.
fn before(session: &mut Session, heard: &Heard, used: &Use, dialect: &Dialect, names: &ToolNames) -> Result<String, String> {
    match used {
        Use::Read | Use::Search { .. } => Ok(String::new()),
        Use::Change(edit) => {
            let edit = absolute(edit, &heard.directory);
            edit.paths().iter().for_each(|path| see_attached(session, heard, dialect, path));
            let refused = session.foreign_tools().judge(&edit);
            refused.map_or_else(|| Ok(String::new()), |refused| Err(render::text(&refused, names)))
        }
        Use::Patch(text) => match Patch::parse(text, &heard.directory) {
            Some(patch) => judge_parts(session, &patch.parts, dialect.room, names),
            None => Ok(String::new()),
        },
        // What others changed before the command is told before it, so that it is not taken for the command's doing.
        Use::Shell { .. } => Ok(render::changed_elsewhere(&session.foreign_tools().changed_elsewhere())),
    }
}

/// Judges the files of a patch. All that are refused are named at once, as far as there is room: what a refusal shows counts as seen.
fn judge_parts(session: &mut Session, parts: &[Part], room: usize, names: &ToolNames) -> Result<String, String> {
    const MOST_OF_ONE: usize = 8_000;
    let mut refused = String::new();
    for Part { edit, intents } in parts {
        if refused.len() + MOST_OF_ONE > room {
            break;
        }
        let mut tools = session.foreign_tools();
        let by_intent = intents.iter().find_map(|(intent, path)| tools.judge_intent(edit, *intent, path));
        if let Some(outcome) = by_intent.or_else(|| tools.judge(edit)) {
            refused.push_str(&render::text(&outcome, names));
        }
    }
    if refused.is_empty() { Ok(String::new()) } else { Err(refused) }
}

/// Records what a tool did, and says what should be known of it.
fn after(
    session: &mut Session,
    heard: &Heard,
    dialect: &Dialect,
    used: &Use,
    outcome: &ToolOutcome,
    names: &ToolNames,
) -> String {
    heard.gave.iter().for_each(|path| session.foreign_tools().were_given(&located(&heard.directory, path)));
    let mut said = String::new();
    match (used, outcome) {
        (Use::Shell { command, directory }, outcome) => {
            let directory = directory.as_ref().map_or_else(|| heard.directory.clone(), |sub| located(&heard.directory, sub));
            let output = if let ToolOutcome::Printed(output) = outcome { output } else { "" };
            let effects = session.foreign_tools().ran(&Command { line: command, directory: &directory, output });
            let read: Vec<String> = effects.read.iter().map(|lines| lines.path.to_string()).collect();
            return render::command(&effects) + &instructions(session, dialect, &read, Manner::Other, names);
        }
        (_, ToolOutcome::Failed) => {}
        (Use::Read, ToolOutcome::Showed(shown)) => {
            let directories = shown.iter().map(|shown| see(session, heard, shown));
            let paths: Vec<String> = directories.collect();
            said.push_str(&instructions(session, dialect, &paths, Manner::Read, names));
        }
        (Use::Read, ToolOutcome::ShowedNotebook { path, cells }) => {
            let path = located(&heard.directory, path);
            session.foreign_tools().showed_notebook(&path, cells);
            said.push_str(&instructions(session, dialect, &[path], Manner::Read, names));
        }
        (Use::Search { paths }, ToolOutcome::Printed(printed)) => see_hits(session, heard, paths, printed),
        (Use::Search { .. }, ToolOutcome::Showed(shown)) => shown.iter().for_each(|shown| drop(see(session, heard, shown))),
        (Use::Read | Use::Search { .. }, _) => {}
        (Use::Change(edit), _) => {
            let edit = absolute(edit, &heard.directory);
            said.push_str(&record(session, &edit, names));
            said.push_str(&instructions(session, dialect, &edit.paths(), Manner::Other, names));
        }
        (Use::Patch(text), _) => {
            if let Some(patch) = Patch::parse(text, &heard.directory) {
                said.push_str(&record_patch(session, &patch, names));
                said.push_str(&instructions(session, dialect, &patch.whole.paths(), Manner::Other, names));
            }
        }
    }
    said.push_str(&render::changed_elsewhere(&session.foreign_tools().changed_elsewhere()));
    said
}

fn see(session: &mut Session, heard: &Heard, shown: &Shown) -> String {
    let path = located(&heard.directory, &shown.path);
    session.foreign_tools().showed(&path, shown.start, &shown.content);
    path
}

/// What a search has printed: hits under the names of their files, and otherwise whatever lines of files are in it.
fn see_hits(session: &mut Session, heard: &Heard, paths: &[String], printed: &str) {
    let only = if let [only] = paths { Some(only.as_str()) } else { None };
    search::hits(printed, only).iter().for_each(|hit| drop(see(session, heard, hit)));
    let line = paths.join(" ");
    session.foreign_tools().printed(&Command { line: &line, directory: &heard.directory, output: printed });
}

/// Records an edit. If the tool has made something else of its files, they are taken as they are.
fn record(session: &mut Session, edit: &Edit, names: &ToolNames) -> String {
    let mut tools = session.foreign_tools();
    match tools.adopt(edit) {
        Ok(outcome) => outcome.map(|outcome| render::text(&outcome, names)).unwrap_or_default(),
        Err(_) => {
            tools.adopt_files(edit);
            String::new()
        }
    }
}

/// A patch is one change, if it can be told as one.
fn record_patch(session: &mut Session, patch: &Patch, names: &ToolNames) -> String {
    match session.foreign_tools().adopt(&patch.whole) {
        Ok(outcome) => outcome.map(|outcome| render::text(&outcome, names)).unwrap_or_default(),
        Err(_) => patch.parts.iter().map(|part| record(session, &part.edit, names)).collect(),
    }
}

/// How a file was met with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// By the client's own tool for that.
    Read,
    /// In another way.
    Other,
}

/// The instructions for work on these files that the model does not have, from the client or from us.
fn instructions(session: &mut Session, dialect: &Dialect, paths: &[String], manner: Manner, names: &ToolNames) -> String {
    // Without a beginning that we heard of, those of the root are what the client has given in any case.
    match (dialect.loads, manner) {
        (Loads::Nothing, _) => {}
        (Loads::Above, _) => session.foreign_tools().were_instructed("", &[]),
        (Loads::AboveAndRead { instead }, Manner::Other) => session.foreign_tools().were_instructed("", instead),
        (Loads::AboveAndRead { instead }, Manner::Read) => {
            for path in paths {
                let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
                session.foreign_tools().were_instructed(directory, instead);
            }
        }
    }
    let told = paths.iter().filter_map(|path| session.foreign_tools().instructions(path));
    told.map(|told| render::instructions::instructions(&told, names)).collect()
}

/// An edit with full names of files.
fn absolute(edit: &Edit, directory: &str) -> Edit {
    edit.clone().with_paths(|path| located(directory, path))
}

/// Looks into the notebook of the session.
fn note<T>(session: &mut Session, change: impl FnOnce(&mut Notebook) -> T) -> T {
    let workspace = session.workspace().clone();
    let id = session.tracker().map_or_else(|| SessionId(String::new()), |tracker| tracker.session().clone());
    Notebook::with(&workspace, &id, change)
}

fn has_seen_something(session: &mut Session) -> bool {
    let workspace = session.workspace().clone();
    session.tracker().is_some_and(|tracker| !tracker.lately_viewed(&workspace, 1).is_empty())
}

/// What a new conversation is told: only what there is to tell.
fn welcome(session: &mut Session, names: &ToolNames) -> String {
    let state = RepoTracker::load(session.workspace().clone()).snapshot();
    let has_news = !state.open_tasks().is_empty() || state.files.iter().any(|file| file.changed_outside);
    if has_news { format_for_prompt(&state, names) } else { String::new() }
}

/// The state of the repository, for a context that has lost it.
fn state(session: &mut Session, why: &str, names: &ToolNames) -> String {
    let state = RepoTracker::load(session.workspace().clone()).snapshot();
    format!("{why}\n{}", format_for_prompt(&state, names))
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
