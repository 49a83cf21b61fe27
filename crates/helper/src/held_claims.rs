//! The claims of the agents that this helper keeps alive, so that an agent learns when it loses one.
//!
//! The news show claims that another agent has taken over. A claim that has only disappeared may come back: after an
//! outage or a suspension, a heartbeat extends it if it is still free. So the answer to the next heartbeat decides.

use std::collections::BTreeMap;

use surehand_engine::{
    core::PathPattern,
    fleet::{LostClaim, LostThing},
    store::board::{AgentId, BoardAnswer, BoardCall, BoardCopy, BoardTask, BoardTaskId, ClaimId, Fence, Holdings, PathClaim},
};

#[derive(Debug, Default)]
pub(crate) struct HeldClaims {
    tasks: BTreeMap<(AgentId, BoardTaskId), Fence>,
    paths: BTreeMap<(AgentId, ClaimId), (PathPattern, Fence)>,
}

impl HeldClaims {
    /// Records the claims of these agents on the board.
    pub(crate) fn take_in(&mut self, board: &BoardCopy, is_known: impl Fn(&AgentId) -> bool) {
        let is_ours = |task: &&BoardTask| task.claim.as_ref().is_some_and(|claim| is_known(&claim.by));
        board.tasks.values().filter(is_ours).for_each(|task| self.hold_task(task));
        board.claims.values().filter(|claim| is_known(&claim.by)).for_each(|claim| self.hold_paths(claim));
    }

    /// Records a call that the board has carried out. A granted claim counts as held, even if it is lost before the
    /// next news. A claim that the agent gives up itself is not lost.
    pub(crate) fn called(&mut self, call: &BoardCall, answer: &BoardAnswer) {
        match (call, answer) {
            (BoardCall::ClaimTask(_), BoardAnswer::Tasks(tasks)) => tasks.iter().for_each(|task| self.hold_task(task)),
            (BoardCall::ClaimPaths(_), BoardAnswer::Paths(claim)) => self.hold_paths(claim),
            (BoardCall::EndTask { task, fence, .. }, _) => {
                self.tasks.retain(|(_, held), of| (held, &*of) != (task, fence));
            }
            (BoardCall::ReleasePaths { claim, by: Some(by) }, _) => drop(self.paths.remove(&(by.clone(), claim.clone()))),
            (BoardCall::Leave(agent), _) => self.forget(agent),
            _ => {}
        }
    }

    fn hold_task(&mut self, task: &BoardTask) {
        if let Some(claim) = &task.claim {
            self.tasks.insert((claim.by.clone(), task.id), claim.fence);
        }
    }

    fn hold_paths(&mut self, claim: &PathClaim) {
        self.paths.insert((claim.by.clone(), claim.id.clone()), (claim.pattern.clone(), claim.fence));
    }

    /// Forgets an agent that has ended.
    pub(crate) fn forget(&mut self, agent: &AgentId) {
        self.tasks.retain(|(by, _), _| by != agent);
        self.paths.retain(|(by, _), _| by != agent);
    }

    /// Removes and returns the claims that are certainly over, according to the news.
    pub(crate) fn take_lost(&mut self, board: &BoardCopy) -> Vec<LostClaim> {
        let mut lost = Vec::new();
        self.tasks.retain(|(agent, task), fence| {
            let claim = board.tasks.get(task).and_then(|task| task.claim.as_ref());
            let is_held = claim.is_some_and(|claim| claim.by == *agent);
            if !is_held {
                let taken_by = claim.map(|claim| claim.by.clone());
                lost.push(lost_claim(agent, LostThing::Task(*task), *fence, taken_by));
            }
            is_held
        });
        self.paths.retain(|(agent, id), (pattern, fence)| {
            let successor = if board.claims.contains_key(id) { None } else { successor(board, agent, pattern) };
            let is_taken = successor.is_some();
            if is_taken {
                lost.push(lost_claim(agent, LostThing::Paths(pattern.clone()), *fence, successor));
            }
            !is_taken
        });
        lost
    }

    /// Removes and returns the claims on paths that the board does not list in its answer to a heartbeat.
    pub(crate) fn take_missing(&mut self, agent: &AgentId, holdings: &Holdings, board: &BoardCopy) -> Vec<LostClaim> {
        let mut lost = Vec::new();
        self.paths.retain(|(by, id), (pattern, fence)| {
            let is_held = by != agent || holdings.paths.iter().any(|(held, _)| held == id);
            if !is_held {
                let taken_by = successor(board, by, pattern);
                lost.push(lost_claim(by, LostThing::Paths(pattern.clone()), *fence, taken_by));
            }
            is_held
        });
        lost
    }
}

/// The agent that has since claimed these paths, or some of them.
fn successor(board: &BoardCopy, former: &AgentId, pattern: &PathPattern) -> Option<AgentId> {
    let overlaps = board.claims.values().find(|claim| claim.by != *former && claim.pattern.overlaps(pattern));
    overlaps.map(|claim| claim.by.clone())
}

fn lost_claim(agent: &AgentId, what: LostThing, fence: Fence, taken_by: Option<AgentId>) -> LostClaim {
    LostClaim { agent: agent.clone(), what, fence, taken_by }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use surehand_engine::{
        core::TaskStatus,
        store::board::{Board, NewTask, SqliteBoard, TaskChoice, TaskClaimRequest, TaskEdit},
    };

    use super::*;

    fn carry_out(board: &mut SqliteBoard, held: &mut HeldClaims, call: &BoardCall) -> BoardAnswer {
        let answer = call.carry_out(board).unwrap();
        held.called(call, &answer);
        answer
    }

    #[test]
    fn a_claim_that_is_gone_before_the_next_news_is_lost() {
        let mut board = SqliteBoard::in_memory().unwrap();
        let mut held = HeldClaims::default();
        let task = NewTask { key: "k".to_owned(), description: "a task".to_owned(), priority: 1 };
        let id = board.add_tasks("s", &[task]).unwrap()[0];
        let by = AgentId("a".to_owned());
        let (choice, lease) = (TaskChoice::This(id), Duration::from_secs(60));
        let claim = BoardCall::ClaimTask(TaskClaimRequest { id: ClaimId("1".to_owned()), by: by.clone(), choice, lease });
        carry_out(&mut board, &mut held, &claim);
        let status = Some(TaskStatus::Cancelled);
        let cancelled = TaskEdit { task: id, by: None, description: None, priority: None, status };
        carry_out(&mut board, &mut held, &BoardCall::EditTask(cancelled));
        let mut copy = BoardCopy::default();
        copy.apply(board.news(None).unwrap());
        let lost = held.take_lost(&copy);
        assert_eq!(lost.iter().map(|lost| (&lost.agent, &lost.what)).collect::<Vec<_>>(), [(&by, &LostThing::Task(id))]);
        assert_eq!(held.take_lost(&copy), []);
    }
}
