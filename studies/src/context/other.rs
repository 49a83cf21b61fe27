//! The other program: an editor, a formatter, another agent. It changes files during the story, mostly files that the
//! story is about, usually between turns and sometimes in the middle of one.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;

use surehand_agent::RunEvent;

use surehand_testkit::rng::Rng;

/// The files that the story touched last.
const RECENT: usize = 12;

/// A program that knows nothing of the run.
pub(super) struct Other {
    root: PathBuf,
    rng: Rng,
    recent: VecDeque<String>,
    /// How many files it has changed.
    pub changes: usize,
}

impl Other {
    /// A program that changes files below this directory.
    pub(super) fn new(root: PathBuf, rng: Rng) -> Self {
        Self { root, rng, recent: VecDeque::new(), changes: 0 }
    }

    /// Something has happened in the run.
    pub(super) fn hear(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Call { arguments, .. } => {
                if let Some(path) = arguments["path"].as_str().filter(|path| !self.recent.iter().any(|recent| recent == path)) {
                    self.recent.push_back(path.to_owned());
                    if self.recent.len() > RECENT {
                        self.recent.pop_front();
                    }
                }
            }
            RunEvent::TurnEnded { .. } if self.rng.percent(8) => self.change(),
            // The prompt has just been built, and is outdated for this file when the answer comes.
            RunEvent::Turn { .. } if self.rng.percent(2) => self.change(),
            _ => {}
        }
    }

    fn change(&mut self) {
        if self.recent.is_empty() {
            return;
        }
        let path = self.root.join(&self.recent[self.rng.within(0..self.recent.len())]);
        let Ok(content) = fs::read_to_string(&path) else { return };
        let mut lines: Vec<String> = content.lines().map(str::to_owned).collect();
        if lines.is_empty() {
            return;
        }
        let at = self.rng.within(0..lines.len());
        match self.rng.within(0..3) {
            0 => lines[at].push_str(" // checked"),
            1 => lines.insert(at, format!("    // See note {}.", self.rng.within(1..1000))),
            _ => drop(lines.remove(at)),
        }
        if fs::write(&path, lines.join("\n") + "\n").is_ok() {
            self.changes += 1;
        }
    }
}
