//! Undo: what was changed, and how to take it back. What somebody has done since is never overwritten unless that is asked for.

use std::collections::{HashMap, HashSet};

use surehand_core::{
    Cause, Content, ContentHash, LineMap, Planned, Present, Refusal, RelPath, plan,
    refusal::{BatchKind, BatchPlace},
    render::{self, Numbers},
};
use surehand_store::{ChangeId, Event, SessionId, StoreError, Which};

use crate::{
    files::Gathered,
    session::{Deed, Done, Session},
    workspace::Workspace,
};

/// Which changes are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// The last one, of a session or of all.
    Last(Option<SessionId>),
    /// The last one of this file, and of that change only this file.
    File(RelPath, Option<SessionId>),
    /// This one, with all its files.
    Change(ChangeId),
    /// All of a session.
    Session(SessionId),
}

/// What to do about what somebody has done since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// Refuse, and show it.
    Keep,
    /// Overwrite it. It can be brought back in turn.
    Overwrite,
}

/// What a file was before the selected changes and after them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Net {
    /// The name it had.
    pub path_before: RelPath,
    /// The name it has.
    pub path_after: RelPath,
    /// What it was; `None` when it was not there.
    pub before: Option<ContentHash>,
    /// What it became.
    pub after: Option<ContentHash>,
    /// Its mode before, if it was deleted.
    pub mode: Option<u32>,
    /// The changes, newest first.
    pub changes: Vec<ChangeId>,
    /// Whether somebody else's work lies between them.
    pub is_mixed: bool,
}

/// How many events are looked at to find the ones that are meant.
const MAX_EVENTS: usize = 100_000;

impl Workspace {
    /// The events that are meant, newest first. Those that were taken back, or that took back others, do not count, except when
    /// they are named.
    pub fn select(&self, selection: &Selection) -> Result<Vec<Event>, StoreError> {
        self.flush();
        let ask = |which: Which| self.ask(|store| store.events(&which, MAX_EVENTS));
        let last_change = |mut events: Vec<Event>| {
            let change = events.first().map(|event| event.change.clone());
            events.retain(|event| Some(&event.change) == change.as_ref());
            events
        };
        Ok(match selection {
            Selection::Change(change) => ask(Which { change: Some(change.clone()), ..Which::default() })?,
            Selection::Session(session) => standing(ask(Which { session: Some(session.clone()), ..Which::default() })?),
            Selection::Last(session) => last_change(standing(ask(Which { session: session.clone(), ..Which::default() })?)),
            Selection::File(path, session) => {
                let which = Which { path: Some(path.clone()), session: session.clone(), ..Which::default() };
                last_change(standing(ask(which)?))
            }
        })
    }
}

/// The events that still stand: neither taken back nor taking back.
fn standing(events: Vec<Event>) -> Vec<Event> {
    let mut undone: HashSet<(ChangeId, RelPath)> = HashSet::new();
    let mut standing = Vec::new();
    for event in events {
        if undone.contains(&(event.change.clone(), event.path.clone())) {
            continue;
        }
        if event.undoes.is_empty() {
            standing.push(event);
            continue;
        }
        let name = event.moved_to.unwrap_or(event.path);
        undone.extend(event.undoes.into_iter().map(|change| (change, name.clone())));
    }
    standing
}

/// What these events, newest first, came to for each file.
pub fn net(events: &[Event]) -> Vec<Net> {
    let mut files: Vec<Net> = Vec::new();
    for event in events {
        let name_after = event.moved_to.as_ref().unwrap_or(&event.path);
        match files.iter_mut().find(|net| net.path_before == *name_after) {
            Some(net) => {
                net.is_mixed |= net.before != event.after;
                net.path_before = event.path.clone();
                net.before = event.before;
                net.mode = event.mode;
                net.changes.push(event.change.clone());
            }
            None => files.push(Net {
                path_before: event.path.clone(),
                path_after: name_after.clone(),
                before: event.before,
                after: event.after,
                mode: event.mode,
                changes: vec![event.change.clone()],
                is_mixed: false,
            }),
        }
    }
    // Made and taken away again: nothing to take back.
    files.retain(|net| net.before.is_some() || net.after.is_some());
    files
}

impl Session {
    /// Takes changes back, all of their files or none. Gives what was done, and the changes that were taken back.
    pub(crate) fn undo(&mut self, selection: &Selection, since: Since) -> Result<(Vec<Event>, Done), Refusal> {
        let events = self.workspace().select(selection).map_err(|error| cannot(error.to_string()))?;
        if events.is_empty() {
            return Err(cannot(nothing_found(selection)));
        }
        let files = net(&events);
        let mut undoes: HashMap<RelPath, Vec<ChangeId>> = HashMap::new();
        for file in &files {
            for path in [&file.path_after, &file.path_before] {
                undoes.insert(path.clone(), file.changes.clone());
            }
        }
        let done = self.carry_out(&Deed { tool: "undo", undoes }, |session| {
            let mut plans = Vec::new();
            for (index, file) in files.iter().enumerate() {
                let planned = session.plan_undo(file, since).map_err(|refusal| {
                    let place = BatchPlace { edit: index + 1, of: files.len(), kind: BatchKind::Undo };
                    if files.len() > 1 { refusal.at(place) } else { refusal }
                })?;
                plans.extend(planned);
            }
            Ok(plans)
        })?;
        if done.planned.is_empty() {
            return Err(cannot("the files are already what they were before".to_owned()));
        }
        Ok((events, done))
    }

    fn plan_undo(&mut self, file: &Net, since: Since) -> Result<Vec<(Planned, Gathered)>, Refusal> {
        let gathered = self.gather_for_writing(file.path_after.as_str())?;
        let wanted = match file.before {
            None => None,
            Some(version) => Some(self.kept(&file.path_before, version)?),
        };
        let now = gathered.present.content();
        if now.as_ref().map(Content::version) == file.before && file.path_before == file.path_after {
            return Ok(Vec::new());
        }
        let is_as_left = now.as_ref().map(Content::version) == file.after && !file.is_mixed;
        if !is_as_left && since == Since::Keep {
            let diff = diff(now.as_ref(), wanted.as_ref());
            return Err(Refusal::of(&file.path_after, Cause::ChangedSince { diff }));
        }
        if file.path_before == file.path_after {
            let planned = plan::restore(&self.target(&gathered), wanted.as_ref(), file.mode)?;
            return Ok(vec![(planned, gathered)]);
        }
        self.plan_move_back(file, gathered, wanted)
    }

    /// A file that was moved gets its name back, and its content if that changed as well.
    fn plan_move_back(
        &mut self,
        file: &Net,
        gathered: Gathered,
        wanted: Option<Content>,
    ) -> Result<Vec<(Planned, Gathered)>, Refusal> {
        let there = self.gather_for_writing(file.path_before.as_str())?;
        if there.present != Present::Absent {
            let diff = diff(there.present.content().as_ref(), wanted.as_ref());
            return Err(Refusal::of(&file.path_before, Cause::ChangedSince { diff }));
        }
        if gathered.present.content() == wanted {
            let planned = plan::move_back(&self.target(&gathered), &file.path_before);
            return Ok(vec![(planned, gathered)]);
        }
        let mut plans = Vec::new();
        if wanted.is_some() {
            let mode = gathered.mode.or(file.mode);
            plans.push((plan::restore(&self.target(&there), wanted.as_ref(), mode)?, there));
        }
        if gathered.present != Present::Absent {
            plans.push((plan::restore(&self.target(&gathered), None, None)?, gathered));
        }
        Ok(plans)
    }

    /// A version that was replaced.
    fn kept(&self, path: &RelPath, version: ContentHash) -> Result<Content, Refusal> {
        self.content_of(&version).ok_or_else(|| {
            let why = format!(
                "version {} is no longer kept (see versions.bytes and versions.days in surehand.toml); nothing was undone",
                version.short()
            );
            Refusal::of(path, Cause::CannotUndo { why })
        })
    }
}

/// From what is there to what would come back.
fn diff(now: Option<&Content>, wanted: Option<&Content>) -> String {
    let Some(now) = now.and_then(Content::text) else { return String::new() };
    let empty = surehand_core::Text::of(String::new()).expect("nothing is text");
    let wanted = wanted.and_then(Content::text).unwrap_or(&empty);
    render::change::between(now, wanted, &LineMap::between(now, wanted), Numbers::Plain).text
}

fn cannot(why: String) -> Refusal {
    Refusal::of_call(Cause::CannotUndo { why })
}

fn nothing_found(selection: &Selection) -> String {
    match selection {
        Selection::Last(_) => "there is no change to undo".to_owned(),
        Selection::File(path, _) => format!("there is no change of {path} to undo"),
        Selection::Change(change) => format!("there is no change {change}"),
        Selection::Session(session) => format!("session {session} has no change to undo"),
    }
}
