//! The reports of a checkout: its recorded changes as headlines, and the lines that differ from the fork point. All of
//! them are derived from the store and the files of the workspace, so a helper that starts anew can begin again. The
//! board accepts each headline once, and only lines that it does not have are sent.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use surehand_engine::{
    Workspace,
    core::RelPath,
    fleet::{BranchChanges, agent_of},
    store::{
        FileEvent, Millis, StoreError,
        board::{AgentId, BoardCopy, Checkout, ContentChange, FileChange, Headline},
    },
};

/// The most events of one delivery. A checkout with more changes since the last one loses the oldest headlines.
const MOST_EVENTS: usize = 1000;

/// The period of the first delivery after a start, in milliseconds.
const FIRST_PERIOD: Millis = 24 * 60 * 60 * 1000;

pub(crate) struct WatchedCheckout {
    pub workspace: Arc<Workspace>,
    pub checkout: Checkout,
    /// Whether the board knows it.
    pub is_joined: bool,
    /// The change counter up to which everything was delivered.
    delivered: Option<u64>,
    /// The time of the last event that was delivered.
    last_event: Option<Millis>,
    /// The lines that it has changed; `None` without git, and before the first check.
    changes: Option<BranchChanges>,
    /// When all files were last checked, and how long that took.
    walked: Option<(Instant, Duration)>,
    /// The last agent that changed each file.
    authors: BTreeMap<RelPath, AgentId>,
}

/// People and other programs change files without an event. A walk finds such changes. It may take at most this part of
/// the time.
const WALK_EVERY: Duration = Duration::from_secs(3);
const WALK_SHARE: u32 = 50;

/// Headlines, and the events that they cover.
pub(crate) struct Delivery {
    pub headlines: Vec<Headline>,
    count: u64,
    last_event: Option<Millis>,
    paths: Vec<RelPath>,
}

impl WatchedCheckout {
    pub(crate) fn new(workspace: Arc<Workspace>, checkout: Checkout) -> Self {
        Self {
            workspace,
            checkout,
            is_joined: false,
            delivered: None,
            last_event: None,
            changes: None,
            walked: None,
            authors: BTreeMap::new(),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        self.workspace.path()
    }

    /// The pending headlines; `None` if nothing was recorded since the last delivery.
    pub(crate) fn prepare(&self, now: Millis) -> Result<Option<Delivery>, StoreError> {
        let count = self.workspace.change_count();
        if self.delivered == Some(count) {
            return Ok(None);
        }
        // Events of the same millisecond may have arrived since, so the last ones are sent again.
        let since = self.last_event.unwrap_or(now - FIRST_PERIOD);
        let mut events = self.workspace.last_events(MOST_EVENTS)?;
        events.retain(|event| event.at >= since);
        let last_event = events.iter().map(|event| event.at).max().or(self.last_event);
        let headlines = events.iter().rev().map(|event| self.headline(event)).collect();
        let paths = events.iter().flat_map(|event| [&event.path, event.name_after()]).cloned().collect();
        Ok(Some(Delivery { headlines, count, last_event, paths }))
    }

    pub(crate) fn delivered(&mut self, delivery: &Delivery) {
        self.delivered = Some(delivery.count);
        self.last_event = delivery.last_event;
    }

    /// Checks the files of these headlines again, and all files at times. Returns whether any were checked.
    pub(crate) fn look_at_files(&mut self, delivery: Option<&Delivery>) -> bool {
        for headline in delivery.iter().flat_map(|delivery| &delivery.headlines) {
            if let (Some(path), Some(agent)) = (&headline.path, &headline.agent) {
                self.authors.insert(path.clone(), agent.clone());
            }
        }
        let is_due = self.walked.is_none_or(|(at, took)| at.elapsed() >= WALK_EVERY.max(took * WALK_SHARE));
        let begun = Instant::now();
        match (&mut self.changes, delivery) {
            (Some(changes), _) if is_due => {
                if changes.refresh(&self.workspace).is_err() {
                    self.changes = None;
                }
            }
            // Without git, and before the first commit, there is no fork point. That check costs next to nothing.
            (None, _) if is_due => self.changes = BranchChanges::find(&self.workspace).ok(),
            (Some(changes), Some(delivery)) => {
                // The next walk finds the files that cannot be read now.
                let _ = changes.refresh_paths(&self.workspace, &delivery.paths);
                return true;
            }
            _ => return false,
        }
        self.walked = Some((Instant::now(), begun.elapsed()));
        true
    }

    /// The differences between the changed lines and those on the board. `now` is the time of the board, which all
    /// checkouts share.
    pub(crate) fn unreported(&self, board: &BoardCopy, now: Millis) -> Vec<FileChange> {
        let Some(changes) = &self.changes else { return Vec::new() };
        let none = BTreeMap::new();
        let known = board.changes.get(&self.checkout.id()).unwrap_or(&none);
        let is_known = |change: &&FileChange| {
            known.get(&change.path).is_some_and(|known| {
                (&known.fork_point, &known.base, &known.change) == (&change.fork_point, &change.base, &change.change)
            })
        };
        let revision = |path: &RelPath| known.get(path).map_or(now, |known| now.max(known.revision + 1));
        let changed = changes.files().filter(|change| !is_known(change)).map(|change| FileChange {
            by: self.authors.get(&change.path).cloned(),
            revision: revision(&change.path),
            ..change.clone()
        });
        let is_there = |path: &RelPath| changes.files().any(|change| change.path == *path);
        let gone = known.values().filter(|known| !is_there(&known.path)).map(|known| FileChange {
            change: ContentChange::Same,
            revision: revision(&known.path),
            ..known.clone()
        });
        changed.chain(gone).collect()
    }

    /// Delivers everything again, for a board that has lost it.
    pub(crate) fn start_over(&mut self) {
        (self.is_joined, self.delivered, self.last_event, self.walked) = (false, None, None, None);
    }

    fn headline(&self, event: &FileEvent) -> Headline {
        let checkout = self.checkout.id();
        let did = match (event.before, event.after, &event.moved_to) {
            (_, _, Some(to)) => format!("moved {} to {to}", event.path),
            (None, ..) => format!("created {}", event.path),
            (_, None, _) => format!("deleted {}", event.path),
            _ => format!("changed {}", event.path),
        };
        let (kind, summary) = match event.tool.strip_prefix(FileEvent::COMMAND) {
            Some(command) => ("command", format!("{did} by a command: {}", first_words(command))),
            None => (event.tool.as_str(), did),
        };
        Headline {
            id: format!("{checkout} {} {}", event.change, event.path).chars().take(MOST_OF_ID).collect(),
            agent: Some(agent_of(&event.session)),
            kind: kind.to_owned(),
            path: Some(event.name_after().clone()),
            summary: first_words(&summary),
            checkout,
        }
    }
}

const MOST_OF_ID: usize = 200;

/// The beginning of a text, on one line.
fn first_words(text: &str) -> String {
    const MOST: usize = 200;
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() > MOST { line.chars().take(MOST - 1).chain(['…']).collect() } else { line.to_owned() }
}
