//! The thread that serves the board of one repository. Only this thread talks to the board, so a slow board delays no
//! other repository.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use surehand_engine::{
    BoardConfig, StateHome, Workspace,
    client_process::ClientProcess,
    fleet::{CopyVersion, LocalCopy, LostClaim, SavedReports, agent_of, board_place, host, open_board},
    store::{
        Millis,
        board::{Agent, AgentId, Board, BoardAnswer, BoardBounds, BoardCall, BoardCopy, BoardError, CopyChange, RepositoryId},
    },
};

use crate::{
    delivery::{Delivery, WatchedCheckout},
    held_claims::HeldClaims,
    living_agents::{LivingAgent, LivingAgents},
    protocol::{AgentReport, BoardStatus},
    server::ConnectServer,
};

/// The interval at which the thread checks for work.
const TICK: Duration = Duration::from_millis(100);
/// How often heartbeats are sent; more often if a lease is short.
const BEAT_EVERY: Duration = Duration::from_secs(5);
/// How often to check which agents and directories are gone.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// How often to ask for news even if the board does not announce any.
const NEWS_EVERY: Duration = Duration::from_secs(1);
const PRUNE_EVERY: Duration = Duration::from_secs(3600);
/// The first and the longest pause before the next attempt to reach a board.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// The requests of other threads.
pub(crate) enum WorkerCommand {
    Report {
        workspace: Arc<Workspace>,
        agents: Vec<AgentReport>,
    },
    Call {
        call: BoardCall,
        reply: SyncSender<Result<BoardAnswer, BoardError>>,
    },
    /// Reads the board, and replies when the local copy is written.
    Look {
        workspace: Arc<Workspace>,
        reply: SyncSender<Result<(), BoardError>>,
    },
    Status(SyncSender<BoardStatus>),
    /// The workspace belongs to another repository now.
    Forget(PathBuf),
}

pub(crate) struct BoardWorker {
    repository: RepositoryId,
    config: BoardConfig,
    state: StateHome,
    connect: Arc<ConnectServer>,
    board: Option<Box<dyn Board>>,
    /// The time of the next attempt to reach the board, and the pause after that.
    retry: (Instant, Duration),
    copy: LocalCopy,
    /// Whether the local copy differs from the version on the disk.
    is_news: bool,
    written: Option<Instant>,
    /// When to write signs of life that are not on the disk yet.
    due: Option<Instant>,
    checkouts: BTreeMap<PathBuf, WatchedCheckout>,
    agents: LivingAgents,
    held: HeldClaims,
    /// Agents that have ended and are still on the board.
    leaving: Vec<AgentId>,
    beaten: Option<Instant>,
    read: Option<Instant>,
    checked: Instant,
    pruned: Option<Instant>,
    /// The number of agents, which other threads read.
    count: Arc<AtomicUsize>,
}

impl BoardWorker {
    pub(crate) fn new(
        repository: RepositoryId,
        config: BoardConfig,
        state: StateHome,
        connect: Arc<ConnectServer>,
        count: Arc<AtomicUsize>,
    ) -> Self {
        let copy = LocalCopy { repository: Some(repository.clone()), place: board_place(&config), ..LocalCopy::default() };
        Self {
            repository,
            config,
            state,
            connect,
            board: None,
            retry: (Instant::now(), FIRST_PAUSE),
            copy,
            is_news: true,
            written: None,
            due: None,
            checkouts: BTreeMap::new(),
            agents: LivingAgents::default(),
            held: HeldClaims::default(),
            leaving: Vec::new(),
            beaten: None,
            read: None,
            checked: Instant::now(),
            pruned: None,
            count,
        }
    }

    /// Works until no other thread can send commands any more.
    pub(crate) fn run(mut self, commands: &Receiver<WorkerCommand>) {
        loop {
            match commands.recv_timeout(TICK) {
                Ok(command) => {
                    self.obey(command);
                    commands.try_iter().for_each(|command| self.obey(command));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.check_liveness();
            let done = self.exchange();
            self.note(done);
            self.write_copies();
            self.count.store(self.agents.len(), Ordering::Relaxed);
        }
    }

    fn obey(&mut self, command: WorkerCommand) {
        match command {
            WorkerCommand::Report { workspace, agents } => self.report(&workspace, &agents),
            WorkerCommand::Call { call, reply } => {
                let answer = self.with_board(|board| call.carry_out(board));
                if let Ok(answer) = &answer {
                    self.held.called(&call, answer);
                }
                // The caller must see the effect of its own call.
                self.read = None;
                let _ = reply.send(answer);
            }
            WorkerCommand::Look { workspace, reply } => {
                self.watch(&workspace);
                self.read = None;
                let done = self.exchange();
                let failed = done.as_ref().err().map(ToString::to_string);
                self.note(done);
                self.written = None;
                self.write_copies();
                let place = self.copy.place.clone();
                let answer = failed.map_or(Ok(()), |why| Err(BoardError::Unreachable { place, why }));
                let _ = reply.send(answer);
            }
            WorkerCommand::Status(reply) => {
                let _ = reply.send(BoardStatus {
                    repository: self.repository.0.clone(),
                    place: self.copy.place.clone(),
                    roots: self.checkouts.keys().cloned().collect(),
                    agents: self.agents.len(),
                    read_at: self.copy.read_at,
                    trouble: self.copy.trouble.clone(),
                });
            }
            WorkerCommand::Forget(root) => self.forget(&root),
        }
    }

    fn report(&mut self, workspace: &Arc<Workspace>, reports: &[AgentReport]) {
        let Some(checkout) = self.watch(workspace) else { return };
        let root = workspace.path();
        for report in reports {
            let id = agent_of(&report.session);
            if report.is_over {
                if self.agents.remove(&id) {
                    self.has_ended(id);
                }
                continue;
            }
            let agent = Agent {
                id,
                session: report.session.clone(),
                client: report.client.clone(),
                host: host(),
                checkout: checkout.clone(),
                branch: workspace.branch(),
                story: report.story.clone(),
            };
            self.leaving.retain(|leaving| *leaving != agent.id);
            if self.agents.report(agent, root, report, millis_now(), &ClientProcess::state_of) {
                self.beaten = None;
            }
        }
        self.save_reports(workspace);
    }

    /// Starts to watch a workspace. Returns its name on the board.
    fn watch(&mut self, workspace: &Arc<Workspace>) -> Option<surehand_engine::store::board::CheckoutId> {
        if let Some(known) = self.checkouts.get(workspace.path()).filter(|known| Arc::ptr_eq(&known.workspace, workspace)) {
            return Some(known.checkout.id());
        }
        let checkout = workspace.checkout().ok()?;
        let id = checkout.id();
        self.checkouts.insert(workspace.path().to_owned(), WatchedCheckout::new(workspace.clone(), checkout));
        for saved in workspace.saved_reports().0 {
            if let Ok(living) = serde_json::from_value::<LivingAgent>(saved) {
                self.agents.restore(living);
            }
        }
        self.restore_copy(workspace);
        if self.copy.board.cursor.is_none() {
            // An agent may have lost claims since the last helper ended.
            self.held.take_in(&self.copy.board, |agent| self.agents.knows(agent));
        }
        self.written = None;
        Some(id)
    }

    /// Takes over the copy of an earlier helper until this one has read the board: during an outage, an old copy is
    /// better than none.
    fn restore_copy(&mut self, workspace: &Workspace) {
        let is_read = self.copy.board.cursor.is_some();
        let Some(last) = workspace.local_copy().ok().flatten().filter(|_| !is_read) else { return };
        let is_of_this_board = (&last.repository, &last.place) == (&self.copy.repository, &self.copy.place);
        if is_of_this_board && last.read_at > self.copy.read_at {
            // Without a cursor, the first news contains the whole board.
            (self.copy.read_at, self.copy.lost) = (last.read_at, last.lost);
            self.copy.board = BoardCopy { cursor: None, ..last.board };
            self.is_news = true;
        }
    }

    /// Saves the agents of this repository for the next helper.
    fn save_reports(&self, workspace: &Workspace) {
        let state = |workspace: &Workspace| workspace.state_report().paths.map(|paths| paths.repository);
        let state_directory = state(workspace);
        let mut saved = Vec::new();
        for watched in self.checkouts.values().filter(|watched| state(&watched.workspace) == state_directory) {
            saved.extend(self.agents.in_root(watched.root()).filter_map(|living| serde_json::to_value(living).ok()));
        }
        // If this fails, the next helper knows an agent only from its next hook on.
        let _ = workspace.save_reports(&SavedReports(saved));
    }

    fn forget(&mut self, root: &Path) {
        self.checkouts.remove(root);
        self.agents.take_all_in(root).into_iter().for_each(|agent| self.has_ended(agent));
    }

    fn has_ended(&mut self, agent: AgentId) {
        self.held.forget(&agent);
        let before = self.copy.lost.len();
        self.copy.lost.retain(|lost| lost.agent != agent);
        self.is_news |= self.copy.lost.len() < before;
        self.leaving.push(agent);
    }

    /// Finds agents that have ended and directories that are gone.
    fn check_liveness(&mut self) {
        if self.checked.elapsed() < CHECK_EVERY {
            return;
        }
        self.checked = Instant::now();
        let ended = self.agents.take_ended(millis_now(), &ClientProcess::state_of);
        ended.into_iter().for_each(|agent| self.has_ended(agent));
        let gone: Vec<PathBuf> = self
            .checkouts
            .values()
            .filter(|watched| !watched.workspace.is_there())
            .map(|watched| watched.root().to_owned())
            .collect();
        gone.iter().for_each(|root| self.forget(root));
        for watched in self.checkouts.values() {
            if self.agents.set_branch(watched.root(), watched.workspace.branch().as_deref()) {
                self.beaten = None;
            }
        }
    }

    /// Sends everything that is pending, and reads the news of the board.
    fn exchange(&mut self) -> Result<(), BoardError> {
        if self.board.is_none() && Instant::now() < self.retry.0 {
            return Ok(());
        }
        self.join()?;
        for agent in self.leaving.clone() {
            self.with_board(|board| board.leave(&agent))?;
            self.leaving.retain(|leaving| *leaving != agent);
            self.read = None;
        }
        let lease = self.config.lease();
        if is_due(self.beaten, BEAT_EVERY.min(lease / 4)) {
            let beats = self.agents.heartbeats(lease, &ClientProcess::state_of);
            if !beats.is_empty() {
                let holdings = self.send(|board| board.heartbeat(&beats))?;
                for (beat, holdings) in beats.iter().zip(holdings) {
                    let missing = self.held.take_missing(&beat.agent.id, &holdings, &self.copy.board);
                    self.note_lost(missing);
                }
            }
            self.beaten = Some(Instant::now());
        }
        // The news show which changes of this checkout the board already has.
        if self.copy.board.cursor.is_none() {
            self.read_news()?;
        }
        self.deliver()?;
        // A file can be checked for news at once; asking a server costs as much as reading its news.
        let is_file = self.config.url.is_none();
        if is_due(self.read, NEWS_EVERY) || (is_file && self.with_board(|board| board.wait(Duration::ZERO))?) {
            self.read_news()?;
        }
        if is_due(self.pruned, PRUNE_EVERY) {
            let is_more = self.with_board(|board| board.prune(&BoardBounds::default()))?;
            self.pruned = (!is_more).then(Instant::now);
        }
        Ok(())
    }

    fn join(&mut self) -> Result<(), BoardError> {
        let new: Vec<PathBuf> =
            self.checkouts.iter().filter(|(_, watched)| !watched.is_joined).map(|(root, _)| root.clone()).collect();
        for root in new {
            let checkout = self.checkouts[&root].checkout.clone();
            self.with_board(|board| board.join(&checkout))?;
            self.watched(&root).is_joined = true;
        }
        Ok(())
    }

    fn deliver(&mut self) -> Result<(), BoardError> {
        const MOST_AT_ONCE: usize = 100;
        let roots: Vec<PathBuf> = self.checkouts.keys().cloned().collect();
        for root in roots {
            // A store that cannot be read now is read at the next tick.
            let delivery = self.checkouts[&root].prepare(millis_now()).unwrap_or_default();
            for part in delivery.iter().flat_map(|delivery| delivery.headlines.chunks(MOST_AT_ONCE)) {
                self.send(|board| board.post(part))?;
            }
            self.report_changes(&root, delivery.as_ref())?;
            if let Some(delivery) = delivery {
                self.watched(&root).delivered(&delivery);
            }
        }
        Ok(())
    }

    fn watched(&mut self, root: &Path) -> &mut WatchedCheckout {
        self.checkouts.get_mut(root).expect("no checkout is removed during an exchange")
    }

    fn report_changes(&mut self, root: &Path, delivery: Option<&Delivery>) -> Result<(), BoardError> {
        /// Their text may be large.
        const MOST_AT_ONCE: usize = 20;
        let watched = self.checkouts.get_mut(root).expect("no checkout is removed during an exchange");
        if !watched.look_at_files(delivery) {
            return Ok(());
        }
        let (checkout, changes) =
            (watched.checkout.id(), watched.unreported(&self.copy.board, self.copy.board_time(millis_now())));
        for part in changes.chunks(MOST_AT_ONCE) {
            self.send(|board| board.report_changes(&checkout, part))?;
        }
        Ok(())
    }

    fn read_news(&mut self) -> Result<(), BoardError> {
        let cursor = self.copy.board.cursor.clone();
        // A slow answer is as old as the question.
        let asked_at = millis_now();
        let news = self.with_board(|board| board.news(cursor.as_ref()))?;
        if news.is_everything && cursor.is_some() && news.checkouts.is_empty() {
            // The board was lost. Its content now comes from other agents.
            self.checkouts.values_mut().for_each(WatchedCheckout::start_over);
            self.beaten = None;
        }
        self.is_news |= self.copy.trouble.is_some();
        match self.copy.board.apply(news) {
            CopyChange::Nothing => {}
            // A fleet sends signs of life all the time. In the last written copy, agents count as alive for some more
            // seconds.
            CopyChange::SignsOfLife { spare } => {
                let due = Instant::now() + Duration::from_millis(spare.unsigned_abs() / 2);
                self.due = Some(self.due.map_or(due, |known| known.min(due)));
            }
            CopyChange::Content => self.is_news = true,
        }
        let lost = self.held.take_lost(&self.copy.board);
        self.note_lost(lost);
        self.held.take_in(&self.copy.board, |agent| self.agents.knows(agent));
        (self.copy.read_at, self.copy.trouble) = (Some(asked_at), None);
        self.read = Some(Instant::now());
        Ok(())
    }

    /// Records lost claims in the local copy, where their former holders read them.
    fn note_lost(&mut self, lost: Vec<LostClaim>) {
        const MOST: usize = 1000;
        self.is_news |= !lost.is_empty();
        self.copy.lost.extend(lost);
        let extra = self.copy.lost.len().saturating_sub(MOST);
        self.copy.lost.drain(..extra);
    }

    fn with_board<T>(&mut self, act: impl FnOnce(&mut dyn Board) -> Result<T, BoardError>) -> Result<T, BoardError> {
        if self.board.is_none() {
            let connect = &*self.connect;
            self.board = Some(open_board(&self.config, &self.state, &self.repository, &|url, id| connect(url, id))?);
        }
        act(&mut **self.board.as_mut().expect("it was just opened"))
    }

    /// Sends a value, whose effect is then read. A value that the board refuses is dropped: it will always be refused,
    /// and must not block other values.
    fn send<T: Default>(&mut self, act: impl FnOnce(&mut dyn Board) -> Result<T, BoardError>) -> Result<T, BoardError> {
        let done = match self.with_board(act) {
            Err(BoardError::BadValue(_)) => T::default(),
            done => done?,
        };
        self.read = None;
        Ok(done)
    }

    /// Records whether the board can be reached.
    fn note(&mut self, done: Result<(), BoardError>) {
        let Err(error) = done else {
            if self.board.is_some() {
                self.retry = (Instant::now(), FIRST_PAUSE);
            }
            return;
        };
        self.board = None;
        let pause = self.retry.1;
        self.retry = (Instant::now() + pause, (pause * 2).min(LONGEST_PAUSE));
        let why = error.to_string();
        if self.copy.trouble.as_ref() != Some(&why) {
            (self.copy.trouble, self.is_news) = (Some(why), true);
        }
    }

    /// Writes the local copy, once for all worktrees of a repository. If its content is already on the disk, only its
    /// age is written.
    fn write_copies(&mut self) {
        self.is_news |= self.due.is_some_and(|due| due <= Instant::now());
        if !self.is_news && !is_due(self.written, NEWS_EVERY) {
            return;
        }
        if self.is_news {
            (self.copy.version, self.due) = (CopyVersion::fresh(), None);
        }
        let mut written = Vec::new();
        for watched in self.checkouts.values() {
            let Some(paths) = watched.workspace.state_report().paths else { continue };
            if written.contains(&paths.repository) {
                continue;
            }
            // On a full disk the last copy stays, and its age shows that. The next turn tries again.
            if matches!(watched.workspace.refresh_local_copy(&self.copy), Ok(false)) {
                let _ = watched.workspace.write_local_copy(&self.copy);
            }
            written.push(paths.repository);
        }
        (self.is_news, self.written) = (false, Some(Instant::now()));
    }
}

fn is_due(last: Option<Instant>, every: Duration) -> bool {
    last.is_none_or(|last| last.elapsed() >= every)
}

fn millis_now() -> Millis {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
