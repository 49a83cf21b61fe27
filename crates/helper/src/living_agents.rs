//! The agents for which the helper sends heartbeats.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use surehand_engine::{
    client_process::ProcessState,
    store::{
        Millis,
        board::{Agent, AgentId, Heartbeat},
    },
};

use crate::protocol::AgentReport;

/// How long an agent counts as alive after a heartbeat. A helper that was killed is replaced in less time, if an agent
/// is at work.
const ALIVE_FOR: Duration = Duration::from_secs(30);

/// How long an agent whose process is unknown counts as alive after its last report.
const SILENT_FOR: Millis = 30 * 60 * 1000;

#[derive(Debug, Default)]
pub(crate) struct LivingAgents {
    agents: BTreeMap<AgentId, LivingAgent>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LivingAgent {
    pub agent: Agent,
    pub root: PathBuf,
    /// The process that it lives and dies with.
    process: Option<String>,
    /// Whether reports came from processes that ended while the agent lived on. Then their state does not count.
    outlives_processes: bool,
    /// In milliseconds since the Unix epoch.
    reported_at: Millis,
}

impl LivingAgents {
    /// Records a report of an agent. Returns whether the board must learn of it.
    pub(crate) fn report(&mut self, agent: Agent, root: &Path, report: &AgentReport, now: Millis, look: Look<'_>) -> bool {
        let mut living = LivingAgent {
            agent,
            root: root.to_owned(),
            process: report.process.clone(),
            outlives_processes: false,
            reported_at: now,
        };
        let Some(known) = self.agents.get(&living.agent.id) else {
            self.agents.insert(living.agent.id.clone(), living);
            return true;
        };
        let is_same_process = report.process.is_none() || report.process == known.process;
        let has_outlived = |process: &String| look(process) == ProcessState::Gone;
        living.outlives_processes =
            known.outlives_processes || (!is_same_process && known.process.as_ref().is_some_and(has_outlived));
        if is_same_process {
            living.process = known.process.clone();
        }
        let is_news = living.agent != known.agent;
        self.agents.insert(living.agent.id.clone(), living);
        is_news
    }

    /// Adds an agent that an earlier helper knew.
    pub(crate) fn restore(&mut self, living: LivingAgent) {
        self.agents.entry(living.agent.id.clone()).or_insert(living);
    }

    pub(crate) fn knows(&self, agent: &AgentId) -> bool {
        self.agents.contains_key(agent)
    }

    pub(crate) fn remove(&mut self, agent: &AgentId) -> bool {
        self.agents.remove(agent).is_some()
    }

    /// Removes the agents that have ended.
    pub(crate) fn take_ended(&mut self, now: Millis, look: Look<'_>) -> Vec<AgentId> {
        let ended = |living: &LivingAgent| match living.process.as_deref().filter(|_| !living.outlives_processes) {
            Some(process) => look(process) == ProcessState::Gone,
            None => now - living.reported_at >= SILENT_FOR,
        };
        self.agents.extract_if(.., |_, living| ended(living)).map(|(agent, _)| agent).collect()
    }

    /// Removes the agents that worked in this directory.
    pub(crate) fn take_all_in(&mut self, root: &Path) -> Vec<AgentId> {
        self.agents.extract_if(.., |_, living| living.root == root).map(|(agent, _)| agent).collect()
    }

    /// The heartbeats of the agents that can act. A suspended agent sends none, so its claims expire and other agents
    /// take over.
    pub(crate) fn heartbeats(&self, lease: Duration, look: Look<'_>) -> Vec<Heartbeat> {
        let acts = |living: &&LivingAgent| match living.process.as_deref().filter(|_| !living.outlives_processes) {
            Some(process) => look(process) == ProcessState::Alive,
            None => true,
        };
        let beat = |living: &LivingAgent| Heartbeat { agent: living.agent.clone(), alive_for: ALIVE_FOR, lease };
        self.agents.values().filter(acts).map(beat).collect()
    }

    /// Records the branch of a checkout. Returns whether it has changed.
    pub(crate) fn set_branch(&mut self, root: &Path, branch: Option<&str>) -> bool {
        let mut is_news = false;
        for living in self.agents.values_mut().filter(|living| living.root == root) {
            if living.agent.branch.as_deref() != branch {
                living.agent.branch = branch.map(str::to_owned);
                is_news = true;
            }
        }
        is_news
    }

    pub(crate) fn in_root(&self, root: &Path) -> impl Iterator<Item = &LivingAgent> {
        self.agents.values().filter(move |living| living.root == root)
    }

    pub(crate) fn len(&self) -> usize {
        self.agents.len()
    }
}

/// Returns the state of a process by its name. Systems that cannot report it do not name processes either.
pub(crate) type Look<'a> = &'a dyn Fn(&str) -> ProcessState;

#[cfg(test)]
mod tests {
    use surehand_engine::{SessionId, store::board::CheckoutId};

    use super::*;

    fn reported(agents: &mut LivingAgents, name: &str, process: Option<&str>, now: Millis, look: Look<'_>) -> bool {
        let agent = Agent {
            id: AgentId(name.into()),
            session: SessionId(name.into()),
            client: "codex".into(),
            host: "h".into(),
            checkout: CheckoutId("c".into()),
            branch: None,
            story: None,
        };
        let (session, process) = (agent.session.clone(), process.map(str::to_owned));
        let report = AgentReport { session, client: "codex".into(), process, story: None, is_over: false };
        agents.report(agent, Path::new("/p"), &report, now, look)
    }

    const LEASE: Duration = Duration::from_secs(120);
    const GONE: Look<'_> = &|_| ProcessState::Gone;
    const ALIVE: Look<'_> = &|_| ProcessState::Alive;

    fn names(agents: &[AgentId]) -> Vec<&str> {
        agents.iter().map(|agent| &*agent.0).collect()
    }

    #[test]
    fn an_agent_lives_as_long_as_its_process() {
        let mut agents = LivingAgents::default();
        assert!(reported(&mut agents, "a", Some("7-1"), 0, ALIVE));
        assert!(!reported(&mut agents, "a", Some("7-1"), 1, ALIVE), "it says nothing new");
        assert!(agents.take_ended(10 * SILENT_FOR, ALIVE).is_empty());
        assert_eq!(agents.heartbeats(LEASE, ALIVE).len(), 1);
        assert_eq!(names(&agents.take_ended(2, GONE)), ["a"]);
        assert_eq!(agents.len(), 0);
    }

    #[test]
    fn a_suspended_agent_stays_and_is_silent() {
        let mut agents = LivingAgents::default();
        reported(&mut agents, "a", Some("7-1"), 0, ALIVE);
        let suspended: Look<'_> = &|_| ProcessState::Suspended;
        assert!(agents.take_ended(1, suspended).is_empty());
        assert!(agents.heartbeats(LEASE, suspended).is_empty());
        assert_eq!(agents.heartbeats(LEASE, ALIVE).len(), 1);
    }

    #[test]
    fn without_a_process_that_says_so_an_agent_is_gone_half_an_hour_after_its_last_report() {
        let mut agents = LivingAgents::default();
        reported(&mut agents, "quiet", None, 0, GONE);
        // Its hooks are started by processes that end at once.
        reported(&mut agents, "short", Some("7-1"), 0, GONE);
        reported(&mut agents, "short", Some("8-1"), 1, GONE);
        assert!(agents.take_ended(SILENT_FOR - 1, GONE).is_empty());
        assert_eq!(agents.heartbeats(LEASE, GONE).len(), 2);
        assert_eq!(names(&agents.take_ended(SILENT_FOR, GONE)), ["quiet"]);
        assert_eq!(names(&agents.take_ended(SILENT_FOR + 1, GONE)), ["short"]);
    }

    #[test]
    fn a_branch_is_that_of_all_agents_of_a_checkout() {
        let mut agents = LivingAgents::default();
        reported(&mut agents, "a", None, 0, GONE);
        assert!(agents.set_branch(Path::new("/p"), Some("main")));
        assert!(!agents.set_branch(Path::new("/p"), Some("main")));
        assert!(!agents.set_branch(Path::new("/q"), Some("other")));
        assert_eq!(names(&agents.take_all_in(Path::new("/p"))), ["a"]);
    }
}
