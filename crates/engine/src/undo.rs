//! Undo: takes changes back. What somebody has done since is never overwritten unless that is asked for.

use std::collections::{HashMap, HashSet};

use surehand_core::{
    Blob, Cause, Content, ContentHash, LineMap, Planned, Present, Refusal, RelPath, Text, plan,
    refusal::{BatchKind, BatchPlace},
    render::{self, Numbers},
};
use surehand_store::{ChangeId, Event, Record};

use crate::{
    changes::{Net, Selection, net},
    deed::{Deed, Done, fresh_change},
    files::{Facts, Gathered},
    session::Session,
    time::now,
};

/// So many changes in a row may turn out to have been taken back by hand.
const MOST_WITHOUT_EFFECT: usize = 100;

/// What to do about what somebody has done since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// Refuse, and show it.
    Keep,
    /// Overwrite it. It can be brought back in turn.
    Overwrite,
}

impl Session {
    /// Takes changes back, all of their files or none. Gives what was done, and the changes that were taken back.
    pub(crate) fn undo(&mut self, selection: &Selection, since: Since) -> Result<(Vec<Event>, Done), Refusal> {
        for _ in 0..MOST_WITHOUT_EFFECT {
            let events = self.workspace().select(selection).map_err(|error| cannot(error.to_string()))?;
            if events.is_empty() {
                return Err(cannot(nothing_found(selection)));
            }
            let done = self.undo_events(&events, since)?;
            if !done.planned.is_empty() {
                return Ok((events, done));
            }
            // Somebody has taken it back by hand: the last change is the one before.
            if !matches!(selection, Selection::Last(_)) {
                break;
            }
        }
        Err(cannot("the files are already what they were before".to_owned()))
    }

    fn undo_events(&mut self, events: &[Event], since: Since) -> Result<Done, Refusal> {
        let (nothing, files): (Vec<Net>, Vec<Net>) = net(events).into_iter().partition(Net::is_nothing);
        if let Some(name) = used_twice(&files) {
            return Err(cannot(format!("{name} was the name of two files; undo the changes one by one, the last one first")));
        }
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
        let is_done = |file: &&Net| done.planned.iter().any(|plan| [&file.path_after, &file.path_before].contains(&plan.path()));
        let without_effect = nothing.iter().chain(files.iter().filter(|file| !is_done(file)));
        self.mark_undone(done.change.clone().unwrap_or_else(fresh_change), without_effect);
        Ok(done)
    }

    /// Writes down that changes are taken back for which nothing had to be done: they would come up again and again.
    fn mark_undone<'a>(&self, change: ChangeId, files: impl Iterator<Item = &'a Net>) {
        for file in files {
            self.workspace().record(Record::Happened(Event {
                change: change.clone(),
                at: now(),
                session: self.id(),
                tool: "undo".to_owned(),
                path: file.path_after.clone(),
                moved_to: None,
                before: file.before,
                after: file.before,
                mode: None,
                undoes: file.changes.clone(),
                delta: None,
            }));
        }
    }

    fn plan_undo(&mut self, file: &Net, since: Since) -> Result<Vec<(Planned, Facts)>, Refusal> {
        let gathered = self.gather_by_name(file.path_after.as_str())?;
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
            return Ok(vec![(planned, gathered.facts())]);
        }
        self.plan_move_back(file, gathered, wanted)
    }

    /// A file that was moved gets its name back, and its content if that changed as well.
    fn plan_move_back(
        &mut self,
        file: &Net,
        gathered: Gathered,
        wanted: Option<Content>,
    ) -> Result<Vec<(Planned, Facts)>, Refusal> {
        let there = self.gather_for_writing(file.path_before.as_str())?;
        if there.present != Present::Absent {
            let diff = diff(there.present.content().as_ref(), wanted.as_ref());
            return Err(Refusal::of(&file.path_before, Cause::ChangedSince { diff }));
        }
        if gathered.present.content() == wanted {
            let planned = plan::move_back(&self.target(&gathered), &file.path_before);
            return Ok(vec![(planned, gathered.facts())]);
        }
        let mut plans = Vec::new();
        if wanted.is_some() {
            let mode = gathered.mode.or(file.mode);
            plans.push((plan::restore(&self.target(&there), wanted.as_ref(), mode)?, there.facts()));
        }
        if gathered.present != Present::Absent {
            plans.push((plan::restore(&self.target(&gathered), None, None)?, gathered.facts()));
        }
        Ok(plans)
    }

    /// A version that was replaced. What is too large to be shown comes back as bytes.
    fn kept(&self, path: &RelPath, version: ContentHash) -> Result<Content, Refusal> {
        let limit = self.limits().file_bytes;
        let as_it_is = |content: Content| match content {
            Content::Text(text) if text.bytes().len() as u64 > limit => Content::Blob(Blob::new(text.bytes().to_vec())),
            content => content,
        };
        self.workspace().content_at(path, &version).map(as_it_is).ok_or_else(|| {
            let why = format!(
                "version {} is no longer kept (see versions.bytes and versions.days in surehand.toml); nothing was undone",
                version.short()
            );
            Refusal::of(path, Cause::CannotUndo { why })
        })
    }
}

/// A name that two of the files have or had: they cannot get their places back all at once.
fn used_twice(files: &[Net]) -> Option<&RelPath> {
    let mut seen = HashSet::new();
    files.iter().flat_map(|file| HashSet::from([&file.path_before, &file.path_after])).find(|name| !seen.insert(*name))
}

/// From what is there to what would come back.
fn diff(now: Option<&Content>, wanted: Option<&Content>) -> String {
    let Some(now) = now.and_then(Content::text) else { return String::new() };
    let empty = Text::of(String::new()).expect("nothing is text");
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
