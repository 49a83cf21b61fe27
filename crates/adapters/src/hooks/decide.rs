//! What a hook answers, in our words: the same for every client.

use serde_json::Value;
use surehand_engine::{Command, GuestCall, RepoTracker, Session, SessionId, core::render::snapshot::format_for_prompt};

use super::{
    Beginning, Dialect, Heard, Loads, Outcome, Shown, Transcript, Use, What, located,
    notebook::Notebook,
    patch::{Part, Patch},
    transcript,
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
    let said = match &heard.what {
        What::Begins(beginning) => begins(session, heard, dialect, *beginning),
        What::Forgot => {
            forget(session, heard, dialect);
            note(session, |notebook| notebook.is_forgotten = true);
            String::new()
        }
        What::Prompted => String::new(),
        What::Before(used) => match before(session, heard, used, dialect) {
            Ok(said) => said,
            Err(refused) => return deny(session, &refused, dialect),
        },
        What::After(used, outcome) => after(session, heard, dialect, used, outcome),
    };
    speak(session, &dialect.names.put_into(&said), dialect, hears)
}

/// Denies a call. Every client hears that, so that it is a chance to say what was kept.
fn deny(session: &mut Session, refused: &str, dialect: &Dialect) -> Verdict {
    let refused = dialect.names.put_into(refused);
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
        text.push_str(&dialect.names.put_into(&state(session, AFTER_FORGETTING)));
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

/// Some clients put files into the context without a tool: those that were read last when it was made shorter, or that the person
/// has named.
fn see_attached(session: &mut Session, heard: &Heard, dialect: &Dialect, path: &str) {
    let (Some(record), Transcript::HoldsFiles, None) = (&heard.transcript, dialect.transcript, &heard.agent) else { return };
    let is_seen = session.path_of(path).is_ok_and(|path| session.view_of(&path).is_some());
    if !is_seen {
        transcript::attached(record, path).iter().for_each(|shown| drop(see(session, heard, shown)));
    }
}

fn begins(session: &mut Session, heard: &Heard, dialect: &Dialect, beginning: Beginning) -> String {
    match beginning {
        Beginning::New | Beginning::Resumed => instructed(session, heard, dialect),
        Beginning::Cleared | Beginning::Compacted => {
            forget(session, heard, dialect);
            note(session, |notebook| notebook.is_forgotten = false);
        }
    }
    match beginning {
        Beginning::New => welcome(session),
        Beginning::Resumed => state(session, "The conversation goes on."),
        Beginning::Cleared | Beginning::Compacted => state(session, AFTER_FORGETTING),
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
        Loads::Above => session.guest_was_instructed(&heard.directory, &[]),
        Loads::AboveAndRead { instead } => session.guest_was_instructed(&heard.directory, instead),
    }
}

/// What is said before a tool runs, or why it must not.
fn before(session: &mut Session, heard: &Heard, used: &Use, dialect: &Dialect) -> Result<String, String> {
    match used {
        Use::Read => Ok(String::new()),
        Use::Change(call) => {
            let call = absolute(call, &heard.directory);
            call.paths.iter().for_each(|path| see_attached(session, heard, dialect, path));
            session.judge(&call).map_or_else(|| Ok(String::new()), |refused| Err(refused.text))
        }
        Use::Patch(text) => match Patch::parse(text, &heard.directory) {
            Some(patch) => judge_parts(session, &patch.parts, dialect.room),
            None => Ok(String::new()),
        },
        // What others changed before the command is told before it, so that it is not taken for the command's doing.
        Use::Shell { .. } => Ok(session.changed_elsewhere()),
    }
}

/// Judges the files of a patch. All that are refused are named at once, as far as there is room: what a refusal shows counts as seen.
fn judge_parts(session: &mut Session, parts: &[Part], room: usize) -> Result<String, String> {
    const MOST_OF_ONE: usize = 8_000;
    let mut refused = String::new();
    for Part { call, touches } in parts {
        if refused.len() + MOST_OF_ONE > room {
            break;
        }
        let by_touch = touches.iter().find_map(|(touch, path)| session.judge_touch(call, *touch, path));
        if let Some(reply) = by_touch.or_else(|| session.judge(call)) {
            refused.push_str(&reply.text);
        }
    }
    if refused.is_empty() { Ok(String::new()) } else { Err(refused) }
}

/// Records what a tool did, and says what should be known of it.
fn after(session: &mut Session, heard: &Heard, dialect: &Dialect, used: &Use, outcome: &Outcome) -> String {
    heard.gave.iter().for_each(|path| session.guest_was_given(&located(&heard.directory, path)));
    let mut said = String::new();
    match (used, outcome) {
        (Use::Shell { command, directory }, outcome) => {
            let directory = directory.as_ref().map_or_else(|| heard.directory.clone(), |sub| located(&heard.directory, sub));
            let output = if let Outcome::Printed(output) = outcome { output } else { "" };
            let (said, read) = session.guest_ran(&Command { line: command, directory: &directory, output });
            let read: Vec<String> = read.iter().map(ToString::to_string).collect();
            return said + &instructions(session, dialect, &read, Manner::Other);
        }
        (_, Outcome::Failed) => {}
        (Use::Read, Outcome::Showed(shown)) => {
            let directories = shown.iter().map(|shown| see(session, heard, shown));
            let paths: Vec<String> = directories.collect();
            said.push_str(&instructions(session, dialect, &paths, Manner::Read));
        }
        (Use::Read, _) => {}
        (Use::Change(call), _) => {
            let call = absolute(call, &heard.directory);
            said.push_str(&record(session, &call));
            said.push_str(&instructions(session, dialect, &call.paths, Manner::Other));
        }
        (Use::Patch(text), _) => {
            if let Some(patch) = Patch::parse(text, &heard.directory) {
                said.push_str(&record_patch(session, &patch));
                said.push_str(&instructions(session, dialect, &patch.whole.paths, Manner::Other));
            }
        }
    }
    said.push_str(&session.changed_elsewhere());
    said
}

fn see(session: &mut Session, heard: &Heard, shown: &Shown) -> String {
    let path = located(&heard.directory, &shown.path);
    session.guest_showed(&path, shown.start, &shown.content);
    path
}

fn record(session: &mut Session, call: &GuestCall) -> String {
    session
        .guest_did(call)
        .unwrap_or_else(|_| {
            session.guest_left(call);
            None
        })
        .unwrap_or_default()
}

/// A patch is one change, if it can be told as one.
fn record_patch(session: &mut Session, patch: &Patch) -> String {
    match session.guest_did(&patch.whole) {
        Ok(said) => said.unwrap_or_default(),
        Err(_) => patch.parts.iter().map(|part| record(session, &part.call)).collect(),
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
fn instructions(session: &mut Session, dialect: &Dialect, paths: &[String], manner: Manner) -> String {
    // Without a beginning that we heard of, those of the root are what the client has given in any case.
    match (dialect.loads, manner) {
        (Loads::Nothing, _) => {}
        (Loads::Above, _) => session.guest_was_instructed("", &[]),
        (Loads::AboveAndRead { instead }, Manner::Other) => session.guest_was_instructed("", instead),
        (Loads::AboveAndRead { instead }, Manner::Read) => {
            for path in paths {
                let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
                session.guest_was_instructed(directory, instead);
            }
        }
    }
    paths.iter().filter_map(|path| session.guest_instructions(path)).collect()
}

/// A call with full names of files.
fn absolute(call: &GuestCall, directory: &str) -> GuestCall {
    let mut call = call.clone();
    call.paths.iter_mut().for_each(|path| *path = located(directory, path));
    locate_path(&mut call.arguments, directory);
    if let Some(edits) = call.arguments.get_mut("edits").and_then(Value::as_array_mut) {
        edits.iter_mut().for_each(|edit| locate_path(edit, directory));
    }
    call
}

fn locate_path(arguments: &mut Value, directory: &str) {
    if let Some(path) = arguments["path"].as_str() {
        arguments["path"] = located(directory, path).into();
    }
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
fn welcome(session: &mut Session) -> String {
    let state = RepoTracker::load(session.workspace().clone()).snapshot();
    let has_news = !state.open_tasks().is_empty() || state.files.iter().any(|file| file.changed_outside);
    if has_news { format_for_prompt(&state) } else { String::new() }
}

/// The state of the repository, for a context that has lost it.
fn state(session: &mut Session, why: &str) -> String {
    let state = RepoTracker::load(session.workspace().clone()).snapshot();
    format!("{why}\n{}", format_for_prompt(&state))
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
