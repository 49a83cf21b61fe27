//! How a session carries out what was planned: until the files hold still, recorded as one change, with what is known of each file
//! afterwards.

use std::{
    collections::HashMap,
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

use surehand_core::{Act, Cause, Content, Planned, Present, Refusal, RelPath, Stamp, Text};
use surehand_store::{ChangeId, Event, Record};

use crate::{
    disk::{
        commit::{Change, CommitError, Committed, commit},
        journal::How,
    },
    files::{Facts, keep_first},
    guest::Doer,
    session::{Session, random},
    time::now,
};

/// How often a plan is made anew because a file changed under it.
const ATTEMPTS: usize = 20;

/// What a change is done by.
pub(crate) struct Deed<'a> {
    /// The tool.
    pub tool: &'a str,
    /// For each file, the changes that it takes back.
    pub undoes: HashMap<RelPath, Vec<ChangeId>>,
}

impl<'a> Deed<'a> {
    /// By this tool, taking nothing back.
    pub(crate) fn of(tool: &'a str) -> Self {
        Self { tool, undoes: HashMap::new() }
    }
}

/// Changes that were carried out.
pub(crate) struct Done {
    /// Their name, if there were any.
    pub change: Option<ChangeId>,
    /// What was done.
    pub planned: Vec<Planned>,
    /// The files that somebody was at right after, with what is there now.
    pub rewritten: Vec<(RelPath, Landed)>,
    /// How each file was written.
    pub how: Vec<How>,
}

/// What somebody made of a file right after it was written.
pub(crate) enum Landed {
    /// Another text.
    Text(Text),
    /// Nothing that can be read.
    Gone,
}

impl Session {
    /// Plans and commits until the files hold still. Gives the plans that were carried out.
    pub(crate) fn change(
        &mut self,
        tool: &str,
        plan: impl FnMut(&mut Session) -> Result<Vec<(Planned, Facts)>, Refusal>,
    ) -> Result<Done, Refusal> {
        self.carry_out(&Deed::of(tool), plan)
    }

    /// The same for a change that may take back another.
    pub(crate) fn carry_out(
        &mut self,
        deed: &Deed<'_>,
        mut plan: impl FnMut(&mut Session) -> Result<Vec<(Planned, Facts)>, Refusal>,
    ) -> Result<Done, Refusal> {
        let mut last = None;
        for attempt in 0..ATTEMPTS {
            let planned = plan(self)?;
            if planned.is_empty() || self.doer == Doer::Nobody {
                return Ok(Done { change: None, planned: Vec::new(), rewritten: Vec::new(), how: Vec::new() });
            }
            if self.doer == Doer::Guest {
                // Without a stamp, what is there now is compared with what was planned.
                let (stamps, how) = (vec![None; planned.len()], vec![How::Swap; planned.len()]);
                return Ok(self.record_change(deed, planned, Committed { stamps, how }));
            }
            planned.iter().try_for_each(|(planned, _)| keep_first(&self.workspace, planned))?;
            let changes: Vec<Change<'_>> =
                planned.iter().map(|(planned, facts)| Change { planned, identity: facts.identity }).collect();
            match commit(self.workspace.working_copy(), &changes) {
                Ok(committed) => return Ok(self.record_change(deed, planned, committed)),
                Err(CommitError::Changed(path)) => {
                    // Whatever its stamp says.
                    self.files.doubt(&path);
                    last = Some(path);
                }
                Err(CommitError::Refused(refusal)) => return Err(*refusal),
                Err(CommitError::Stopped) => {
                    return Err(Refusal::of_call(Cause::Io { why: "the commit was stopped".to_owned() }));
                }
            }
            if attempt > 3 {
                std::thread::sleep(std::time::Duration::from_millis(1 << attempt.min(6)));
            }
        }
        let path = last.expect("every attempt that comes here has set it");
        let why = "another program keeps writing it; nothing was written. Try again when it is quiet".to_owned();
        Err(Refusal::of(&path, Cause::Conflict { why }))
    }

    fn record_change(&mut self, deed: &Deed<'_>, planned: Vec<(Planned, Facts)>, committed: Committed) -> Done {
        let mut rewritten = Vec::new();
        let change = fresh_change();
        let _together = self.workspace().hold_records();
        for ((planned, facts), stamp) in planned.iter().zip(&committed.stamps) {
            let delta = self.files.keep_change(&self.workspace, planned);
            let event = self.event(deed, &change, planned, facts);
            self.workspace().record(Record::Happened(Event { delta, ..event }));
            rewritten.extend(self.settle_file(planned, *stamp).map(|landed| (planned.path().clone(), landed)));
        }
        let planned = planned.into_iter().map(|(planned, _)| planned).collect();
        Done { change: Some(change), planned, rewritten, how: committed.how }
    }

    /// An event of this session about a file; what became of the file is for others to say.
    pub(crate) fn event_of(&self, deed: &Deed<'_>, change: &ChangeId, path: &RelPath) -> Event {
        Event {
            change: change.clone(),
            at: now(),
            session: self.id(),
            tool: deed.tool.to_owned(),
            path: path.clone(),
            moved_to: None,
            before: None,
            after: None,
            mode: None,
            undoes: deed.undoes.get(path).cloned().unwrap_or_default(),
            delta: None,
        }
    }

    fn event(&self, deed: &Deed<'_>, change: &ChangeId, planned: &Planned, facts: &Facts) -> Event {
        let moved_to = match planned.act() {
            Act::Move { to } => Some(to.clone()),
            Act::Write { .. } | Act::Remove => None,
        };
        Event {
            moved_to,
            before: planned.base().map(Content::version),
            after: planned.after().map(Content::version),
            mode: facts.mode.filter(|_| *planned.act() == Act::Remove),
            ..self.event_of(deed, change, planned.path())
        }
    }

    /// What is known of a file after a change. Gives what somebody else has made of it right after, if somebody has.
    fn settle_file(&mut self, planned: &Planned, stamp: Option<Stamp>) -> Option<Landed> {
        let Some(path) = planned.path_after() else {
            self.let_go(planned.path());
            return None;
        };
        if path != planned.path() {
            self.let_go(planned.path());
        }
        let Some(text) = planned.text() else {
            self.let_go(path);
            return None;
        };
        if let Some(view) = planned.view_after() {
            if path != planned.path() {
                self.note(path, text, &view.seen_lines());
            }
            self.set_view(path, view.clone());
        }
        match stamp {
            Some(stamp) => {
                self.files.found(&self.workspace, path, text, stamp);
                None
            }
            // Somebody was at it right after us: what landed counts, not what was sent.
            None => self.landed(path, text),
        }
    }

    /// Nothing is known of a path any more: we have taken away what was there, or put something else in its place.
    fn let_go(&mut self, path: &RelPath) {
        self.files.doubt(path);
        if let Some(tracker) = &mut self.tracker {
            tracker.forget(&self.workspace, std::slice::from_ref(path));
        }
    }

    /// What is at the path of a commit that somebody was at right after us, a formatter say; `None` when it is what we put there.
    fn landed(&mut self, path: &RelPath, sent: &Text) -> Option<Landed> {
        let gathered = self.files.gather(&self.workspace, path.as_str()).ok()?;
        match gathered.present {
            Present::Text(text) if text == *sent => None,
            Present::Text(text) => Some(Landed::Text(text)),
            Present::Absent | Present::Blob(..) | Present::Unreadable(_) => Some(Landed::Gone),
        }
    }
}

/// A name for a change: short, because people type it.
pub(crate) fn fresh_change() -> ChangeId {
    // An odd step leads through all numbers before one comes again; another process begins somewhere else.
    static NEXT: LazyLock<AtomicU32> = LazyLock::new(|| AtomicU32::new(random() as u32));
    ChangeId(format!("{:08x}", NEXT.fetch_add(0x9e37_79b1, Ordering::Relaxed)))
}
