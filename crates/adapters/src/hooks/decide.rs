//! What a hook answers, in our words: the same for every client.

use surehand_engine::{Command, RepoTracker, Running, Session, core::render::snapshot::format_for_prompt};

use super::{Beginning, Heard, Shown, Use, What, pending::Pending, words::Names};

/// What becomes of what the client tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It goes on, and there is nothing to say.
    Pass,
    /// It does not; the model reads this.
    Deny(String),
    /// It goes on, and the model reads this besides.
    Context(String),
}

impl Verdict {
    /// The same with the names of a client's tools.
    pub fn in_words_of(self, names: &Names) -> Self {
        match self {
            Verdict::Pass => Verdict::Pass,
            Verdict::Deny(text) => Verdict::Deny(names.put_into(&text)),
            Verdict::Context(text) => Verdict::Context(names.put_into(&text)),
        }
    }

    fn of_context(text: String) -> Self {
        if text.trim().is_empty() { Verdict::Pass } else { Verdict::Context(text) }
    }
}

/// Judges or records what a client tells. `room` is how many characters of context it takes.
pub(crate) fn decide(session: &mut Session, heard: &Heard, room: usize) -> Verdict {
    match &heard.what {
        What::Begins(Beginning::New) => Verdict::of_context(welcome(session, room)),
        What::Begins(Beginning::Resumed) => Verdict::of_context(state(session, "The conversation goes on.", room)),
        What::Begins(Beginning::Cleared | Beginning::Compacted) => {
            session.reset();
            Verdict::of_context(state(session, AFTER_COMPACTION, room))
        }
        What::Compacts => {
            session.reset();
            keep(session, &Pending { is_compacted: true, ..Pending::default() });
            Verdict::Pass
        }
        What::Prompted => Verdict::of_context(kept(session, room)),
        What::Before(used) => before(session, heard, used),
        What::After(used, shown) => {
            let mut text = kept(session, room);
            text.push_str(&after(session, heard, used, shown));
            Verdict::of_context(bounded(text, room))
        }
    }
}

const AFTER_COMPACTION: &str = "The context was made shorter: what was read before no longer counts as read.";

fn before(session: &mut Session, heard: &Heard, used: &Use) -> Verdict {
    match used {
        Use::Read { .. } => Verdict::Pass,
        Use::Change { tool, arguments, .. } => match session.judge(tool, &absolute(arguments, &heard.directory)) {
            Some(refused) => Verdict::Deny(refused.text),
            None => Verdict::Pass,
        },
        Use::Shell { .. } => {
            // What others changed before the command is told before it, so that it is not taken for the command's doing.
            let changed = session.changed_elsewhere();
            Verdict::of_context(changed)
        }
    }
}

fn after(session: &mut Session, heard: &Heard, used: &Use, shown: &Shown) -> String {
    let mut text = String::new();
    match (used, shown) {
        (Use::Read { path }, Shown::Lines { start, content }) => {
            session.guest_showed(path, *start, content);
            text.push_str(&session.agents_md_if_new(path).unwrap_or_default());
        }
        (Use::Change { tool, arguments, paths }, _) => {
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            let said = session.guest_did(tool, &absolute(arguments, &heard.directory), &paths);
            text.push_str(&said.unwrap_or_default());
            for path in paths {
                text.push_str(&session.agents_md_if_new(path).unwrap_or_default());
            }
        }
        (Use::Shell { command }, Shown::Output(output)) => {
            let command = Command { line: command, directory: &heard.directory, output };
            text.push_str(&session.command_ended(Running::default(), &command).text);
        }
        _ => {}
    }
    if !matches!(used, Use::Shell { .. }) {
        text.push_str(&session.changed_elsewhere());
    }
    text
}

/// Our tools take paths from the root; a client's may mean its own directory.
fn absolute(arguments: &serde_json::Value, directory: &str) -> serde_json::Value {
    let mut arguments = arguments.clone();
    for name in ["path", "from", "to"] {
        if let Some(path) = arguments[name].as_str().filter(|path| !path.starts_with('/')) {
            let path = format!("{directory}/{path}");
            arguments[name] = path.into();
        }
    }
    arguments
}

/// Keeps something for the next hook that can say it. If that fails, it is not said.
fn keep(session: &mut Session, pending: &Pending) {
    let workspace = session.workspace().clone();
    if let Some(tracker) = session.tracker() {
        let _ = pending.keep(&workspace, tracker.session());
    }
}

/// What was kept for the session.
fn kept(session: &mut Session, room: usize) -> String {
    let workspace = session.workspace().clone();
    let id = session.tracker().map(|tracker| tracker.session().clone());
    let Some(id) = id else { return String::new() };
    let pending = Pending::take(&workspace, &id);
    let mut text = if pending.is_compacted { state(session, AFTER_COMPACTION, room) } else { String::new() };
    text.push_str(&pending.notes);
    text
}

/// What a new conversation is told: only what there is to tell.
fn welcome(session: &mut Session, room: usize) -> String {
    let state = RepoTracker::load(session.workspace().clone()).snapshot();
    let has_news = !state.open_tasks().is_empty() || state.files.iter().any(|file| file.changed_outside);
    if has_news { bounded(format_for_prompt(&state), room) } else { String::new() }
}

/// The state of the repository, for a context that has lost it.
fn state(session: &mut Session, why: &str, room: usize) -> String {
    let state = RepoTracker::load(session.workspace().clone()).snapshot();
    bounded(format!("{why}\n{}", format_for_prompt(&state)), room)
}

/// Not more than a client takes: it would drop all of it.
fn bounded(text: String, room: usize) -> String {
    match text.char_indices().nth(room) {
        None => text,
        Some((at, _)) => {
            let end = text[..at].rfind('\n').map_or(at, |end| end + 1);
            format!("{}[cut here: {} characters more]\n", &text[..end], text[end..].chars().count())
        }
    }
}
