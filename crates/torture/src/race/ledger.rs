//! The ledger: every token that anybody wrote or tried to, what its writer was told, and in the end where it is.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use crate::{account::Tally, scene::Scene, tree};

/// The token of a writer. All are equally long, so that one can be written over another.
pub(super) fn token(who: usize, number: usize) -> String {
    format!("T-{who:02}-{number:07}.")
}

/// How long a token is.
const LENGTH: usize = "T-00-0000000.".len();

/// The tokens in a text.
pub(super) fn tokens(text: &str) -> BTreeSet<String> {
    let starts = text.match_indices("T-").map(|(start, _)| start);
    starts.filter_map(|start| text.get(start..start + LENGTH)).filter(|token| token.ends_with('.')).map(str::to_owned).collect()
}

/// What is known of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its writer was told that it is written, or wrote it with a plain system call.
    Written,
    /// Its writer was told that nothing was written.
    Refused,
    /// Its writer was killed.
    Unknown,
    /// Somebody who had seen it took it away, or tried to.
    Released,
}

/// Where a token was to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// The files; the token goes into all of them or none, where nobody else writes.
    pub paths: Vec<String>,
    /// Whether nobody but Surehand writes there: then what was refused is nowhere, and what was written is nowhere else.
    pub is_quiet: bool,
}

/// Every token with its fate.
#[derive(Default)]
pub(super) struct Ledger(Mutex<BTreeMap<String, (Fate, Target)>>);

impl Ledger {
    /// Notes what became of a token that was to go into these files. One that was released stays so.
    pub(super) fn note(&self, token: &str, fate: Fate, target: Target) {
        let mut ledger = self.0.lock().expect("nobody panics while writing");
        let entry = ledger.entry(token.to_owned()).or_insert((fate.clone(), target));
        if entry.0 != Fate::Released {
            entry.0 = fate;
        }
    }

    /// These tokens may be gone from now on.
    pub(super) fn release(&self, tokens: &BTreeSet<String>) {
        let mut ledger = self.0.lock().expect("nobody panics while writing");
        for token in tokens {
            let nowhere = Target { paths: Vec::new(), is_quiet: false };
            ledger.entry(token.clone()).or_insert((Fate::Released, nowhere)).0 = Fate::Released;
        }
    }

    /// Looks for every token, counts them, and tells those that are not where they must be.
    pub(super) fn settle(&self, scene: &Scene, tally: &mut Tally) {
        let in_files = Places::of(&tree::files(&scene.root(), ""));
        let in_rescued = Places::of(&tree::state_part(&scene.root(), "rescued"));
        for (token, (fate, target)) in self.0.lock().expect("nobody panics while writing").iter() {
            let (here, rescued) = (in_files.of_token(token), in_rescued.of_token(token));
            match (fate, here.is_empty(), rescued.is_empty()) {
                (_, false, _) => tally.present += 1,
                (Fate::Released, true, _) => tally.replaced += 1,
                (Fate::Written, true, false) => tally.rescued += 1,
                (Fate::Written, true, true) => scene.violation(format!("LOST: {token}, which was written to {:?}", target.paths)),
                (Fate::Refused | Fate::Unknown, true, _) => tally.not_written += 1,
            }
            if target.is_quiet {
                check_quiet(scene, token, fate, target, here);
            }
        }
    }
}

/// Where nobody else writes the files themselves tell it all.
fn check_quiet(scene: &Scene, token: &str, fate: &Fate, target: &Target, here: &[String]) {
    let is_everywhere = target.paths.iter().all(|path| here.contains(path));
    let is_right = match fate {
        Fate::Written => is_everywhere,
        Fate::Refused => here.is_empty(),
        Fate::Unknown | Fate::Released => here.is_empty() || is_everywhere,
    };
    if !is_right {
        scene.violation(format!("{token} ({fate:?}) was for {:?} and is in {here:?}", target.paths));
    }
}

/// The files in which each token is.
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
