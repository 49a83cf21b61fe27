//! The claims of the agents that this helper keeps alive, so that an agent that loses one learns it.
//!
//! News tell of claims that another agent has taken over. A claim that has only vanished may come back: after an outage
//! or a suspension, a heartbeat extends it if it is still free. So the answer to the next heartbeat decides.

use std::collections::BTreeMap;

use surehand_engine::{
    core::PathPattern,
    fleet::{LostClaim, LostThing},
    store::board::{AgentId, BoardCall, BoardCopy, BoardTaskId, ClaimId, Fence, Holdings},
};

#[derive(Debug, Default)]
pub(crate) struct HeldClaims {
    tasks: BTreeMap<(AgentId, BoardTaskId), Fence>,
    paths: BTreeMap<(AgentId, ClaimId), (PathPattern, Fence)>,
}

impl HeldClaims {
    /// Takes in what these agents hold on the board.
    pub(crate) fn take_in(&mut self, board: &BoardCopy, is_known: impl Fn(&AgentId) -> bool) {
        for task in board.tasks.values() {
            if let Some(claim) = task.claim.as_ref().filter(|claim| is_known(&claim.by)) {
                self.tasks.insert((claim.by.clone(), task.id), claim.fence);
            }
        }
        for claim in board.claims.values().filter(|claim| is_known(&claim.by)) {
            self.paths.insert((claim.by.clone(), claim.id.clone()), (claim.pattern.clone(), claim.fence));
        }
    }

    /// Takes in a call that the board has carried out: what an agent gives up itself is not lost.
    pub(crate) fn called(&mut self, call: &BoardCall) {
        match call {
            BoardCall::EndTask { task, fence, .. } => self.tasks.retain(|(_, held), of| (held, &*of) != (task, fence)),
            BoardCall::ReleasePaths { claim, by: Some(by) } => drop(self.paths.remove(&(by.clone(), claim.clone()))),
            BoardCall::Leave(agent) => self.forget(agent),
            _ => {}
        }
    }

    /// Forgets an agent that has ended.
    pub(crate) fn forget(&mut self, agent: &AgentId) {
        self.tasks.retain(|(by, _), _| by != agent);
        self.paths.retain(|(by, _), _| by != agent);
    }

    /// Removes the claims that are over for certain, by the news.
    pub(crate) fn take_lost(&mut self, board: &BoardCopy) -> Vec<LostClaim> {
        let mut lost = Vec::new();
        self.tasks.retain(|(agent, task), fence| {
            let claim = board.tasks.get(task).and_then(|task| task.claim.as_ref());
            let is_held = claim.is_some_and(|claim| claim.by == *agent);
            if !is_held {
                let taken_by = claim.map(|claim| claim.by.clone());
                lost.push(LostClaim { agent: agent.clone(), what: LostThing::Task(*task), fence: *fence, taken_by });
            }
            is_held
        });
        self.paths.retain(|(agent, id), (pattern, fence)| {
            let successor = if board.claims.contains_key(id) { None } else { successor(board, agent, pattern) };
            let is_taken = successor.is_some();
            if is_taken {
                lost.push(lost_paths(agent, pattern, *fence, successor));
            }
            !is_taken
        });
        lost
    }

    /// Removes the claims on paths of which the board does not know any more, by its answer to a heartbeat.
    pub(crate) fn take_missing(&mut self, agent: &AgentId, holdings: &Holdings, board: &BoardCopy) -> Vec<LostClaim> {
        let mut lost = Vec::new();
        self.paths.retain(|(by, id), (pattern, fence)| {
            let is_held = by != agent || holdings.paths.iter().any(|(held, _)| held == id);
            if !is_held {
                lost.push(lost_paths(by, pattern, *fence, successor(board, by, pattern)));
            }
            is_held
        });
        lost
    }
}

/// The agent that has claimed these paths, or some of them, since.
fn successor(board: &BoardCopy, former: &AgentId, pattern: &PathPattern) -> Option<AgentId> {
    let overlaps = board.claims.values().find(|claim| claim.by != *former && claim.pattern.overlaps(pattern));
    overlaps.map(|claim| claim.by.clone())
}

fn lost_paths(agent: &AgentId, pattern: &PathPattern, fence: Fence, taken_by: Option<AgentId>) -> LostClaim {
    LostClaim { agent: agent.clone(), what: LostThing::Paths(pattern.clone()), fence, taken_by }
}
