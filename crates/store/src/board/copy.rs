//! A local copy of a board, kept current by its news. Reading it needs no board.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use surehand_core::{RelPath, timestamp::Millis};

use super::{
    AgentId, BoardTask, BoardTaskId, Checkout, CheckoutId, ClaimId, ContentChange, Cursor, FileChange, News, PathClaim,
    PostedHeadline, Presence,
};

/// The content of a board, as of its last news.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BoardCopy {
    /// The position after the last news.
    pub cursor: Option<Cursor>,
    /// The time of the board at the last news.
    pub now: Millis,
    /// The checkouts of the repository, by id.
    pub checkouts: BTreeMap<CheckoutId, Checkout>,
    /// The agents, including those that ended recently.
    pub agents: BTreeMap<AgentId, Presence>,
    /// The tasks of all stories, by number.
    pub tasks: BTreeMap<BoardTaskId, BoardTask>,
    /// The claims on paths that may still be held, by id.
    pub claims: BTreeMap<ClaimId, PathClaim>,
    /// The files of each checkout that differ from its fork point.
    pub changes: BTreeMap<CheckoutId, BTreeMap<RelPath, FileChange>>,
    /// The last headlines, oldest first.
    pub headlines: VecDeque<PostedHeadline>,
}

/// The number of headlines that are kept.
const MOST_HEADLINES: usize = 200;

/// How long an ended agent is kept, in milliseconds.
const ENDED: Millis = 60 * 60 * 1000;

/// The effect of news on a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyChange {
    /// Only the time has changed.
    Nothing,
    /// Only the heartbeats of living agents are new.
    SignsOfLife {
        /// For how many milliseconds the old copy still shows correctly which agents are alive.
        spare: Millis,
    },
    /// The content has changed.
    Content,
}

impl BoardCopy {
    /// Applies news, and returns their effect.
    pub fn apply(&mut self, news: News) -> CopyChange {
        let is_quiet = !news.is_everything && news.is_empty();
        let spare = self.spare_without(&news);
        if news.is_everything {
            *self = Self::default();
        }
        (self.now, self.cursor) = (news.now, Some(news.cursor));
        self.checkouts.extend(news.checkouts.into_iter().map(|checkout| (checkout.id(), checkout)));
        self.agents.extend(news.agents.into_iter().map(|presence| (presence.agent.id.clone(), presence)));
        self.tasks.extend(news.tasks.into_iter().map(|task| (task.id, task)));
        self.claims.extend(news.paths.into_iter().map(|claim| (claim.id.clone(), claim)));
        for (checkout, change) in news.changes {
            let files = self.changes.entry(checkout).or_default();
            match change.change {
                ContentChange::Same => files.remove(&change.path),
                _ => files.insert(change.path.clone(), change),
            };
        }
        for headline in news.headlines {
            if !self.headlines.iter().any(|known| known.headline.id == headline.headline.id) {
                self.headlines.push_back(headline);
            }
        }
        let has_forgotten = self.forget_old();
        match spare {
            Some(spare) if !has_forgotten => CopyChange::SignsOfLife { spare },
            None if is_quiet && !has_forgotten => CopyChange::Nothing,
            _ => CopyChange::Content,
        }
    }

    /// How long this copy shows correctly, without these news, which agents are alive; `None` if they are more than
    /// heartbeats.
    fn spare_without(&self, news: &News) -> Option<Millis> {
        let spare = |sign: &Presence| {
            let known = self.agents.get(&sign.agent.id)?;
            let is_sign = known.agent == sign.agent && known.is_alive(news.now) && known.until <= sign.until;
            is_sign.then_some(known.until - news.now)
        };
        let News { cursor: _, now: _, is_everything, checkouts, agents, tasks, paths, changes, headlines } = news;
        let is_else =
            !(checkouts.is_empty() && tasks.is_empty() && paths.is_empty() && changes.is_empty() && headlines.is_empty());
        // An agent for which this does not hold comes first, as `None`.
        if *is_everything || is_else { None } else { agents.iter().map(spare).min().flatten() }
    }

    /// Removes entries that no longer matter. Returns whether any was removed.
    fn forget_old(&mut self) -> bool {
        let sizes = |copy: &Self| [copy.claims.len(), copy.agents.len(), copy.changes.len(), copy.headlines.len()];
        let (now, before) = (self.now, sizes(self));
        self.claims.retain(|_, claim| claim.is_held(now));
        self.agents.retain(|_, presence| now < presence.until.saturating_add(ENDED));
        self.changes.retain(|_, files| !files.is_empty());
        let extra = self.headlines.len().saturating_sub(MOST_HEADLINES);
        self.headlines.drain(..extra);
        sizes(self) != before
    }

    /// The claim of another agent on this path that is held at this time of the board.
    pub fn claim_of_another(&self, path: &RelPath, agent: &AgentId, now: Millis) -> Option<&PathClaim> {
        self.claims.values().find(|claim| claim.by != *agent && claim.is_held(now) && claim.pattern.matches(path))
    }

    /// The changes of a file in other checkouts than this one.
    pub fn changes_elsewhere<'a>(
        &'a self,
        path: &'a RelPath,
        here: &'a CheckoutId,
    ) -> impl Iterator<Item = (&'a CheckoutId, &'a FileChange)> {
        let others = self.changes.iter().filter(move |(checkout, _)| *checkout != here);
        others.filter_map(move |(checkout, files)| Some((checkout, files.get(path)?)))
    }
}

impl News {
    /// Whether the news is empty.
    pub fn is_empty(&self) -> bool {
        self.checkouts.is_empty()
            && self.agents.is_empty()
            && self.tasks.is_empty()
            && self.paths.is_empty()
            && self.changes.is_empty()
            && self.headlines.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use surehand_core::PathPattern;

    use super::*;
    use crate::board::{
        Agent, Board, Headline, Heartbeat, NewTask, PathClaimRequest, SharedHunk, SqliteBoard, TaskChoice, TaskClaimRequest,
    };

    fn path(text: &str) -> RelPath {
        RelPath::new(text).unwrap()
    }

    fn checkout(number: u64) -> Checkout {
        Checkout { host: "h".into(), device: 1, inode: number, path: format!("/{number}") }
    }

    fn beat(name: &str) -> Heartbeat {
        let agent = Agent {
            id: AgentId(name.into()),
            session: surehand_core::SessionId(name.into()),
            client: "test".into(),
            host: "h".into(),
            checkout: checkout(1).id(),
            branch: None,
            story: None,
        };
        Heartbeat { agent, alive_for: Duration::from_secs(60), lease: Duration::from_secs(60) }
    }

    fn changed(name: &str, change: ContentChange, revision: i64) -> FileChange {
        FileChange { path: path(name), fork_point: "f".into(), base: None, change, by: None, revision }
    }

    type Step<'a> = Box<dyn FnMut(&mut SqliteBoard) + 'a>;

    /// A copy that is updated step by step equals the copy of a reader that comes last.
    #[test]
    fn a_copy_that_follows_is_the_copy_of_all() {
        let mut board = SqliteBoard::in_memory().unwrap();
        let mut follower = BoardCopy::default();
        let (here, minute) = (checkout(1).id(), Duration::from_secs(60));
        let lines = ContentChange::Lines(vec![SharedHunk { before: 1..2, after: 1..2, text: None }]);
        let claim = PathClaimRequest {
            id: ClaimId("c".into()),
            by: AgentId("a".into()),
            pattern: PathPattern::new("src/**").unwrap(),
            lease: minute,
        };
        let mut steps: Vec<Step<'_>> = vec![
            Box::new(|board| board.join(&checkout(1)).unwrap()),
            Box::new(|board| drop(board.heartbeat(&[beat("a"), beat("b")]).unwrap())),
            Box::new(|board| {
                let task = NewTask { key: "k".into(), description: "do".into(), priority: 1 };
                board.add_tasks("s", &[task]).unwrap();
            }),
            Box::new(|board| {
                let choice = TaskChoice::NextOf("s".into());
                let request = TaskClaimRequest { id: ClaimId("t".into()), by: AgentId("a".into()), choice, lease: minute };
                assert!(board.claim_task(&request).unwrap().is_some());
            }),
            Box::new(|board| drop(board.claim_paths(&claim).unwrap())),
            Box::new(|board| board.report_changes(&here, &[changed("src/a.rs", lines.clone(), 1)]).unwrap()),
            Box::new(|board| {
                let headline = Headline {
                    id: "1".into(),
                    checkout: here.clone(),
                    agent: None,
                    kind: "edit".into(),
                    path: None,
                    summary: "x".into(),
                };
                board.post(&[headline]).unwrap();
            }),
            Box::new(|board| board.release_paths(&ClaimId("c".into())).unwrap()),
            Box::new(|board| board.report_changes(&here, &[changed("src/a.rs", ContentChange::Same, 2)]).unwrap()),
        ];
        for (number, step) in steps.iter_mut().enumerate() {
            step(&mut board);
            let news = board.news(follower.cursor.as_ref()).unwrap();
            assert_eq!(follower.apply(news), CopyChange::Content, "step {number} is news");
            let (agent, other, now) = (AgentId("a".into()), AgentId("b".into()), follower.now);
            let is_claimed = (4..7).contains(&number);
            assert_eq!(follower.claim_of_another(&path("src/a.rs"), &other, now).is_some(), is_claimed, "step {number}");
            assert_eq!(follower.claim_of_another(&path("src/a.rs"), &agent, now), None);
            let elsewhere = checkout(2).id();
            let is_changed = (5..8).contains(&number);
            assert_eq!(follower.changes_elsewhere(&path("src/a.rs"), &elsewhere).count() > 0, is_changed, "step {number}");
            assert_eq!(follower.changes_elsewhere(&path("src/a.rs"), &here).count(), 0);
            let mut whole = BoardCopy::default();
            whole.apply(board.news(None).unwrap());
            whole.now = follower.now;
            assert_eq!(follower, whole, "step {number}");
        }
        assert_eq!(follower.agents.values().filter(|presence| presence.is_alive(follower.now)).count(), 2);
        let text = serde_json::to_string(&follower).unwrap();
        assert_eq!(serde_json::from_str::<BoardCopy>(&text).unwrap(), follower);
        let quiet = board.news(follower.cursor.as_ref()).unwrap();
        assert_eq!(follower.apply(quiet), CopyChange::Nothing);
    }

    #[test]
    fn an_expired_entry_is_a_change() {
        let mut board = SqliteBoard::in_memory().unwrap();
        let claim = PathClaimRequest {
            id: ClaimId("c".into()),
            by: AgentId("a".into()),
            pattern: PathPattern::new("src/**").unwrap(),
            lease: Duration::from_secs(60),
        };
        board.claim_paths(&claim).unwrap();
        let mut copy = BoardCopy::default();
        copy.apply(board.news(None).unwrap());
        let mut quiet = || board.news(copy.cursor.as_ref()).unwrap();
        let (news, mut later) = (quiet(), quiet());
        assert_eq!(copy.apply(news), CopyChange::Nothing);
        later.now += 60_000;
        let last = later.clone();
        assert_eq!((copy.apply(later), copy.claims.len()), (CopyChange::Content, 0));
        assert_eq!(copy.apply(last), CopyChange::Nothing);
    }

    #[test]
    fn a_sign_of_life_changes_no_more_than_that() {
        let mut board = SqliteBoard::in_memory().unwrap();
        board.heartbeat(&[beat("a"), beat("b")]).unwrap();
        let mut copy = BoardCopy::default();
        copy.apply(board.news(None).unwrap());
        let cursor = copy.cursor.clone();
        let mut after = |beats: &[Heartbeat], pause: Millis| {
            board.heartbeat(beats).unwrap();
            let mut news = board.news(cursor.as_ref()).unwrap();
            news.agents.iter_mut().for_each(|presence| presence.until += pause);
            news.now = copy.now + pause;
            news
        };
        let ends_at = |copy: &BoardCopy, name: &str| copy.agents[&AgentId(name.into())].until - copy.now;
        let left = ends_at(&copy, "a").min(ends_at(&copy, "b"));
        let both = after(&[beat("a"), beat("b")], 40_000);
        let elsewhere = Heartbeat { agent: Agent { branch: Some("new".into()), ..beat("b").agent }, ..beat("b") };
        let moved = after(&[elsewhere], 40_000);
        let new = after(&[beat("c")], 40_000);
        let late = after(&[beat("a"), beat("b")], 70_000);
        let check = |news: &News, expected: CopyChange| assert_eq!(copy.clone().apply(news.clone()), expected, "{news:?}");
        check(&both, CopyChange::SignsOfLife { spare: left - 40_000 });
        check(&moved, CopyChange::Content);
        check(&new, CopyChange::Content);
        check(&late, CopyChange::Content);
        let mut gone = both;
        gone.agents.iter_mut().for_each(|presence| presence.until = copy.now);
        check(&gone, CopyChange::Content);
    }
}
