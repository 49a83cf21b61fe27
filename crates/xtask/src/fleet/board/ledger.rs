//! The agents' own record of their work, which is independent of the board, and its comparison with the board.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    time::Duration,
};

use serde_json::{Value, json};
use surehand_store::board::{BoardTaskId, Fence};

/// The work of one agent.
#[derive(Debug, Default)]
pub(super) struct AgentLedger {
    /// Each claim that it was given.
    pub(super) claims: Vec<(BoardTaskId, Fence)>,
    /// How long each claim took, with everything that was sent again.
    pub(super) claim_times: Vec<Duration>,
    /// Each completion that the board confirmed.
    pub(super) completed: Vec<(BoardTaskId, Fence)>,
    /// The ids of the headlines that the board confirmed. The number of changes is the same.
    pub(super) headlines: Vec<String>,
    /// Completions that were refused because the lease had run out.
    pub(super) expired: usize,
    /// Completions that were sent long after the death of the agent.
    pub(super) late_sent: usize,
    /// Those of them that were refused.
    pub(super) late_refused: usize,
    /// How often an operation was sent again.
    pub(super) outages: usize,
}

/// The work of all agents.
#[derive(Debug, Default)]
pub(super) struct Ledger(Vec<AgentLedger>);

/// The result of the comparison.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Proof {
    /// Tasks that were completed exactly once.
    pub(super) completed_once: usize,
    /// Tasks that were completed more often.
    pub(super) completed_twice: usize,
    /// Tasks that were not completed, by the ledger or by the board.
    pub(super) lost: usize,
    /// Fencing numbers that two claims on one task have.
    pub(super) shared_fences: usize,
    /// Tasks that were claimed again after they were completed.
    pub(super) claimed_after_completion: usize,
    /// Late completions by agents that had lost their claims.
    pub(super) late_sent: usize,
    /// Those of them that were refused.
    pub(super) late_refused: usize,
    /// Completions that took longer than the lease, and were refused.
    pub(super) expired: usize,
    /// Headlines that a reader has not seen.
    pub(super) headlines_missed: usize,
    /// How often an operation was sent again.
    pub(super) outages: usize,
    /// The number of timelines in the fencing numbers.
    pub(super) timelines: usize,
}

impl Ledger {
    pub(super) fn add(&mut self, of_agent: AgentLedger) {
        self.0.push(of_agent);
    }

    pub(super) fn claims(&self) -> usize {
        self.0.iter().map(|agent| agent.claims.len()).sum()
    }

    /// Headlines and reported changes.
    pub(super) fn events(&self) -> usize {
        self.0.iter().map(|agent| 2 * agent.headlines.len()).sum()
    }

    pub(super) fn claim_times(&self) -> Vec<Duration> {
        self.0.iter().flat_map(|agent| agent.claim_times.iter().copied()).collect()
    }

    /// Compares the work of the agents with the added tasks, the tasks that are completed according to the board, and
    /// the headlines that each reader has seen.
    pub(super) fn prove(
        &self,
        added: &[BoardTaskId],
        completed_on_board: &HashSet<BoardTaskId>,
        seen: &[HashSet<String>],
    ) -> Proof {
        let claims = by_task(self.0.iter().flat_map(|agent| &agent.claims));
        let completed = by_task(self.0.iter().flat_map(|agent| &agent.completed));
        let times = |task: &BoardTaskId| completed.get(task).map_or(0, Vec::len);
        let is_shared = |fences: &[Fence]| fences.len() - fences.iter().collect::<BTreeSet<_>>().len();
        let is_claimed_later = |task: &BoardTaskId| {
            claims.get(task).and_then(|all| all.iter().max()) != completed.get(task).and_then(|all| all.iter().max())
        };
        let posted = || self.0.iter().flat_map(|agent| &agent.headlines);
        let sum = |count: fn(&AgentLedger) -> usize| self.0.iter().map(count).sum();
        Proof {
            completed_once: added.iter().filter(|task| times(task) == 1).count(),
            completed_twice: added.iter().filter(|task| times(task) > 1).count(),
            lost: added.iter().filter(|task| times(task) == 0 || !completed_on_board.contains(task)).count(),
            shared_fences: claims.values().map(|fences| is_shared(fences)).sum(),
            claimed_after_completion: completed.keys().filter(|task| is_claimed_later(task)).count(),
            late_sent: sum(|agent| agent.late_sent),
            late_refused: sum(|agent| agent.late_refused),
            expired: sum(|agent| agent.expired),
            headlines_missed: seen.iter().map(|seen| posted().filter(|id| !seen.contains(*id)).count()).sum(),
            outages: sum(|agent| agent.outages),
            timelines: claims.values().flatten().map(|fence| fence.timeline).collect::<BTreeSet<_>>().len(),
        }
    }
}

fn by_task<'a>(entries: impl Iterator<Item = &'a (BoardTaskId, Fence)>) -> BTreeMap<BoardTaskId, Vec<Fence>> {
    let mut by_task: BTreeMap<BoardTaskId, Vec<Fence>> = BTreeMap::new();
    entries.for_each(|(task, fence)| by_task.entry(*task).or_default().push(*fence));
    by_task
}

impl Proof {
    /// Whether the board kept its promises.
    pub(super) fn holds(&self) -> bool {
        let Self { completed_twice, lost, shared_fences, claimed_after_completion, headlines_missed, .. } = self;
        [completed_twice, lost, shared_fences, claimed_after_completion, headlines_missed].iter().all(|count| **count == 0)
            && self.late_refused == self.late_sent
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "completed_once": self.completed_once, "completed_twice": self.completed_twice, "lost": self.lost,
            "shared_fences": self.shared_fences, "claimed_after_completion": self.claimed_after_completion,
            "late_sent": self.late_sent, "late_refused": self.late_refused, "expired": self.expired,
            "headlines_missed": self.headlines_missed, "sent_again": self.outages, "timelines": self.timelines,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: BoardTaskId = BoardTaskId(1);

    fn fence(counter: i64) -> Fence {
        Fence { timeline: 1, counter }
    }

    #[track_caller]
    fn check(claims: &[i64], completed: &[i64], expected: Proof) {
        let entries = |counters: &[i64]| counters.iter().map(|counter| (TASK, fence(*counter))).collect();
        let agent = AgentLedger { claims: entries(claims), completed: entries(completed), ..AgentLedger::default() };
        let on_board = if completed.is_empty() { HashSet::new() } else { HashSet::from([TASK]) };
        let timelines = usize::from(!claims.is_empty());
        let proof = Ledger(vec![agent]).prove(&[TASK], &on_board, &[]);
        assert_eq!(proof, Proof { timelines, ..expected });
    }

    #[test]
    fn a_ledger_shows_what_happened_twice_and_what_is_lost() {
        check(&[1], &[1], Proof { completed_once: 1, ..Proof::default() });
        check(&[1, 2], &[2], Proof { completed_once: 1, ..Proof::default() });
        check(&[], &[], Proof { lost: 1, ..Proof::default() });
        check(&[1, 2], &[1, 2], Proof { completed_twice: 1, ..Proof::default() });
        check(&[1, 1], &[1], Proof { completed_once: 1, shared_fences: 1, ..Proof::default() });
        check(&[1, 2], &[1], Proof { completed_once: 1, claimed_after_completion: 1, ..Proof::default() });
    }

    #[test]
    fn a_headline_that_a_reader_missed_breaks_the_promise() {
        let agent = || AgentLedger { headlines: vec!["a".to_owned()], ..AgentLedger::default() };
        let prove = |seen: &[&str]| {
            let seen = seen.iter().map(|&id| id.to_owned()).collect();
            Ledger(vec![agent()]).prove(&[], &HashSet::new(), &[seen]).holds()
        };
        assert!(prove(&["a", "b"]) && !prove(&["b"]));
    }
}
