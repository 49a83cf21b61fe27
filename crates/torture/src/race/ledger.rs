//! The ledger: every token that a program tried to write, the answer it got, and where the token is in the end.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use crate::{report::Tally, test_workspace::TestWorkspace, tree};

/// The token of a write. All tokens have the same length, so that one can overwrite another.
pub(super) fn token(who: usize, number: usize) -> String {
    format!("T-{who:02}-{number:07}.")
}

/// The length of a token.
const LENGTH: usize = "T-00-0000000.".len();

/// The tokens in a text.
pub(super) fn tokens(text: &str) -> BTreeSet<String> {
    let starts = text.match_indices("T-").map(|(start, _)| start);
    starts.filter_map(|start| text.get(start..start + LENGTH)).filter(|token| token.ends_with('.')).map(str::to_owned).collect()
}

/// The state of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// The write was acknowledged, or was a plain system call.
    Written,
    /// The write was refused.
    Refused,
    /// The writer was killed before an answer.
    Unknown,
    /// A writer who had seen it removed it or tried to.
    Released,
}

/// The destination of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// The written files. If only Surehand writes there, the token goes into all of them or none.
    pub paths: Vec<String>,
    /// Whether only Surehand writes there. Then a refused token is in no file, and a written one is in no other file.
    pub is_quiet: bool,
}

/// Every token with its state.
#[derive(Default)]
pub(super) struct Ledger(Mutex<BTreeMap<String, (Fate, Target)>>);

impl Ledger {
    /// Records the state of a token. A released token stays released.
    pub(super) fn note(&self, token: &str, fate: Fate, target: Target) {
        let mut ledger = self.0.lock().expect("no holder of the lock panics");
        let entry = ledger.entry(token.to_owned()).or_insert((fate.clone(), target));
        if entry.0 != Fate::Released {
            entry.0 = fate;
        }
    }

    /// Releases tokens: from now on they may be gone.
    pub(super) fn release(&self, tokens: &BTreeSet<String>) {
        let mut ledger = self.0.lock().expect("no holder of the lock panics");
        for token in tokens {
            let nowhere = Target { paths: Vec::new(), is_quiet: false };
            ledger.entry(token.clone()).or_insert((Fate::Released, nowhere)).0 = Fate::Released;
        }
    }

    /// Looks for every token, counts them, and reports those that are not where they must be.
    pub(super) fn settle(&self, workspace: &TestWorkspace, tally: &mut Tally) {
        let in_files = Places::of(&tree::files(&workspace.root(), ""));
        let in_rescued = Places::of(&tree::state_part(&workspace.root(), "rescued"));
        for (token, (fate, target)) in self.0.lock().expect("no holder of the lock panics").iter() {
            let (here, rescued) = (in_files.of_token(token), in_rescued.of_token(token));
            match (fate, here.is_empty(), rescued.is_empty()) {
                (_, false, _) => tally.present += 1,
                (Fate::Released, true, _) => tally.replaced += 1,
                (Fate::Written, true, false) => tally.rescued += 1,
                (Fate::Written, true, true) => {
                    workspace.violation(format!("LOST: {token}, which was written to {:?}", target.paths))
                }
                (Fate::Refused | Fate::Unknown, true, _) => tally.not_written += 1,
            }
            if target.is_quiet {
                check_quiet(workspace, token, fate, target, here);
            }
        }
    }
}

/// The tokens in files that only Surehand writes.
fn check_quiet(workspace: &TestWorkspace, token: &str, fate: &Fate, target: &Target, here: &[String]) {
    let is_everywhere = target.paths.iter().all(|path| here.contains(path));
    let is_right = match fate {
        Fate::Written => is_everywhere,
        Fate::Refused => here.is_empty(),
        Fate::Unknown | Fate::Released => here.is_empty() || is_everywhere,
    };
    if !is_right {
        workspace.violation(format!("{token} ({fate:?}) was for {:?} and is in {here:?}", target.paths));
    }
}

/// The files that contain each token.
struct Places(BTreeMap<String, Vec<String>>);

impl Places {
    fn of(files: &tree::Files) -> Self {
        let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (path, bytes) in files {
            for token in tokens(&String::from_utf8_lossy(bytes)) {
                places.entry(token).or_default().push(path.clone());
            }
        }
        Self(places)
    }

    fn of_token(&self, token: &str) -> &[String] {
        self.0.get(token).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_wherever_they_stand() {
        let text = format!("a {} b {}T-torn\n{}", token(1, 2), token(3, 4), token(5, 6));
        assert_eq!(tokens(&text), BTreeSet::from([token(1, 2), token(3, 4), token(5, 6)]));
    }

    #[test]
    fn what_was_released_stays_released() {
        let ledger = Ledger::default();
        ledger.release(&BTreeSet::from([token(1, 1)]));
        ledger.note(&token(1, 1), Fate::Written, Target { paths: Vec::new(), is_quiet: false });
        assert_eq!(ledger.0.lock().unwrap()[&token(1, 1)].0, Fate::Released);
    }
}
