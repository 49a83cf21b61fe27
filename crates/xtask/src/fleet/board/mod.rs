//! `cargo xtask fleet board`: simulated agents claim tasks, report changes, post headlines and send heartbeats, while
//! the server of their board is killed. Each agent is a thread of this process with its own connection.

mod agent;
mod backend;
mod ledger;

use std::{
    collections::HashSet,
    panic::{self, AssertUnwindSafe},
    process,
    sync::{
        Barrier, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use surehand_core::TaskStatus;
use surehand_store::board::{Board, BoardTaskId, Cursor, NewTask};

use self::{
    agent::{Agent, patiently},
    backend::{Backend, BackendKind},
    ledger::{Ledger, Proof},
};
use crate::{machine, measurement::percentile, table::table};

/// The story of all tasks.
const STORY: &str = "simulation";
/// How many readers follow the news, each like the helper of one machine.
const READERS: usize = 2;

/// The flags of `fleet board`.
#[derive(Args)]
pub(crate) struct BoardArgs {
    /// How many agents; can be given several times [default: 10, 100 and 1,000]
    #[arg(long, value_name = "N")]
    agents: Vec<usize>,
    /// How many tasks they work off
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    tasks: usize,
    /// Where the board is [default: both]
    #[arg(long, value_enum)]
    backend: Option<BackendKind>,
    /// How often the server is killed and started again
    #[arg(long, value_name = "N", default_value_t = 0)]
    kills: usize,
    /// Add a synchronous replica; kill the primary, and promote the replica
    #[arg(long)]
    failover: bool,
    /// How long a claim lasts without a heartbeat; a short run ends no earlier than the claims of the agents that die
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    lease: u64,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// The parameters of a simulation.
#[derive(Debug, Clone, Copy)]
struct Plan {
    agents: usize,
    tasks: usize,
    kills: usize,
    failover: bool,
    /// How long a claim lasts without a heartbeat. Heartbeats are sent four times as often.
    lease: Duration,
}

/// The result of a simulation.
struct Outcome {
    backend: BackendKind,
    plan: Plan,
    time: Duration,
    ledger: Ledger,
    proof: Proof,
}

/// Runs the simulations that were asked for. A violation ends it with an error.
pub(crate) fn run(args: BoardArgs) -> Result<()> {
    let backends = args.backend.map_or_else(|| BackendKind::value_variants().to_vec(), |backend| vec![backend]);
    let has_sqlite = backends.contains(&BackendKind::Sqlite);
    ensure!(!has_sqlite || (args.kills == 0 && !args.failover), "SQLite has no server: add --backend postgres");
    let agents = if args.agents.is_empty() { vec![10, 100, 1000] } else { args.agents };
    let mut outcomes = Vec::new();
    for backend in backends {
        for &agents in &agents {
            let plan = Plan {
                agents,
                tasks: args.tasks,
                kills: args.kills,
                failover: args.failover,
                lease: Duration::from_secs(args.lease),
            };
            eprintln!("{}: {agents} agents, {} tasks", backend.name(), plan.tasks);
            outcomes.push(simulate(backend, plan)?);
        }
    }
    match args.json {
        true => println!(
            "{:#}",
            json!({ "machine": machine::describe(), "runs": outcomes.iter().map(Outcome::to_json).collect::<Vec<_>>() })
        ),
        false => println!("{}", to_markdown(&outcomes)),
    }
    match outcomes.iter().find(|outcome| !outcome.proof.holds()) {
        Some(outcome) => bail!("the board broke its promise: {:?}", outcome.proof),
        None => Ok(()),
    }
}

/// The state that the threads of a simulation share.
pub(super) struct Shared {
    /// The number of completed tasks.
    pub(super) completed: AtomicUsize,
    /// The number of all tasks.
    pub(super) tasks: usize,
    /// Whether the readers have nothing more to wait for.
    is_over: AtomicBool,
    /// Until when everybody waits to begin.
    start: Barrier,
}

impl Shared {
    fn is_completed(&self) -> bool {
        self.completed.load(Ordering::Acquire) >= self.tasks
    }
}

fn simulate(kind: BackendKind, plan: Plan) -> Result<Outcome> {
    let backend = Backend::start(kind, plan)?;
    let added = add_tasks(&mut *backend.open()?, plan.tasks);
    let shared = Shared {
        completed: AtomicUsize::new(0),
        tasks: plan.tasks,
        is_over: AtomicBool::new(false),
        start: Barrier::new(plan.agents + READERS + 1),
    };
    let servers = Mutex::new(backend);
    let open = || servers.lock().expect("no holder of the lock panics").open().expect("a board can be opened");
    let (ledger, seen, time) = thread::scope(|scope| {
        let agents: Vec<_> = (0..plan.agents)
            .map(|number| {
                let (agent, shared) = (Agent::new(number, open(), plan.lease), &shared);
                scope.spawn(move || {
                    shared.start.wait();
                    agent.work(shared)
                })
            })
            .collect();
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                let (board, shared) = (open(), &shared);
                scope.spawn(move || {
                    shared.start.wait();
                    follow(board, shared)
                })
            })
            .collect();
        shared.start.wait();
        let begun = Instant::now();
        if panic::catch_unwind(AssertUnwindSafe(|| disturb(&servers, plan, &shared))).is_err() {
            // The message is out. The agents would wait for their server for ever.
            process::exit(1);
        }
        while !shared.is_completed() {
            thread::sleep(Duration::from_millis(5));
        }
        let time = begun.elapsed();
        let mut ledger = Ledger::default();
        for agent in agents {
            ledger.add(agent.join().expect("an agent does not panic"));
        }
        shared.is_over.store(true, Ordering::Release);
        let seen: Vec<_> = readers.into_iter().map(|reader| reader.join().expect("a reader does not panic")).collect();
        (ledger, seen, time)
    });
    let mut board = open();
    let tasks = patiently(|| board.tasks(STORY));
    let completed = tasks.into_iter().filter(|task| task.status == TaskStatus::Completed).map(|task| task.id).collect();
    let proof = ledger.prove(&added, &completed, &seen);
    Ok(Outcome { backend: kind, plan, time, ledger, proof })
}

fn add_tasks(board: &mut dyn Board, count: usize) -> Vec<BoardTaskId> {
    let numbers: Vec<usize> = (0..count).collect();
    let task = |number: &usize| NewTask { key: format!("task {number}"), description: format!("do {number}"), priority: 1 };
    let parts = numbers.chunks(1000).map(|part| part.iter().map(task).collect::<Vec<_>>());
    parts.flat_map(|part| patiently(|| board.add_tasks(STORY, &part))).collect()
}

/// Kills the server, evenly over the run.
fn disturb(servers: &Mutex<Backend>, plan: Plan, shared: &Shared) {
    let steps = plan.kills + usize::from(plan.failover);
    for step in 0..steps {
        while shared.completed.load(Ordering::Acquire) < plan.tasks * (step + 1) / (steps + 1) {
            thread::sleep(Duration::from_millis(5));
        }
        let mut backend = servers.lock().expect("no holder of the lock panics");
        let begun = Instant::now();
        match step < plan.kills {
            true => backend.kill_and_restart(),
            false => backend.fail_over(),
        }
        eprintln!("{} after {:.1?}", if step < plan.kills { "killed and back" } else { "failed over" }, begun.elapsed());
    }
}

/// Follows the news like the helper of a machine, and returns the ids of all headlines that it has seen.
fn follow(mut board: Box<dyn Board>, shared: &Shared) -> HashSet<String> {
    let (mut seen, mut cursor): (HashSet<String>, Option<Cursor>) = (HashSet::new(), None);
    loop {
        let is_last = shared.is_over.load(Ordering::Acquire);
        let news = patiently(|| board.news(cursor.as_ref()));
        if news.is_everything {
            seen.clear();
        }
        seen.extend(news.headlines.into_iter().map(|posted| posted.headline.id));
        cursor = Some(news.cursor);
        if is_last {
            return seen;
        }
        // An outage shows in the next call.
        let _ = board.wait(Duration::from_millis(200));
    }
}

impl Outcome {
    fn claims_per_second(&self) -> f64 {
        self.ledger.claims() as f64 / self.time.as_secs_f64()
    }

    fn events_per_second(&self) -> f64 {
        self.ledger.events() as f64 / self.time.as_secs_f64()
    }

    /// The time of a claim in milliseconds, at this percentile.
    fn claim_millis(&self, percent: usize) -> f64 {
        let mut times = self.ledger.claim_times();
        times.sort_unstable();
        percentile(&times, percent).as_secs_f64() * 1000.0
    }

    fn to_json(&self) -> Value {
        let Plan { agents, tasks, kills, failover, lease: _ } = self.plan;
        json!({
            "backend": self.backend.name(), "agents": agents, "tasks": tasks, "kills": kills, "failover": failover,
            "seconds": self.time.as_secs_f64(), "claims_per_second": self.claims_per_second(),
            "events_per_second": self.events_per_second(), "claim_p50_ms": self.claim_millis(50),
            "claim_p95_ms": self.claim_millis(95), "proof": self.proof.to_json(), "holds": self.proof.holds(),
        })
    }
}

fn to_markdown(outcomes: &[Outcome]) -> String {
    let figures = outcomes.iter().map(|outcome| {
        [
            outcome.backend.name().to_owned(),
            outcome.plan.agents.to_string(),
            outcome.plan.tasks.to_string(),
            format!("{:.0}", outcome.time.as_secs_f64()),
            format!("{:.0}", outcome.claims_per_second()),
            format!("{:.0}", outcome.events_per_second()),
            format!("{:.1}", outcome.claim_millis(50)),
            format!("{:.1}", outcome.claim_millis(95)),
        ]
    });
    let header = ["board", "agents", "tasks", "seconds", "claims/s", "events/s", "claim p50, ms", "claim p95, ms"];
    let proofs = outcomes.iter().map(|outcome| {
        let proof = &outcome.proof;
        [
            outcome.backend.name().to_owned(),
            outcome.plan.agents.to_string(),
            outcome.plan.kills.to_string(),
            if outcome.plan.failover { "yes" } else { "no" }.to_owned(),
            proof.completed_once.to_string(),
            proof.completed_twice.to_string(),
            proof.lost.to_string(),
            proof.shared_fences.to_string(),
            format!("{} of {}", proof.late_refused, proof.late_sent),
            proof.headlines_missed.to_string(),
            proof.outages.to_string(),
        ]
    });
    let proof_header = [
        "board",
        "agents",
        "kills",
        "failover",
        "done once",
        "twice",
        "lost",
        "fences held twice",
        "late writes refused",
        "headlines missed",
        "operations sent again",
    ];
    let machine = machine::describe();
    format!("{machine}\n\n{}\n\n{}", table(1, header, figures), table(1, proof_header, proofs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(backend: BackendKind, plan: Plan) -> Outcome {
        let outcome = simulate(backend, plan).unwrap();
        assert!(outcome.proof.holds(), "{:?}", outcome.proof);
        assert_eq!(outcome.proof.completed_once, plan.tasks);
        assert!(outcome.proof.late_sent > 0, "some agents die while they hold a task");
        outcome
    }

    #[test]
    fn simulated_agents_do_each_task_once_on_sqlite() {
        let lease = Duration::from_secs(2);
        check(BackendKind::Sqlite, Plan { agents: 8, tasks: 300, kills: 0, failover: false, lease });
    }

    #[test]
    fn simulated_agents_do_each_task_once_though_postgresql_is_killed_and_fails_over() {
        let lease = Duration::from_secs(4);
        let outcome = check(BackendKind::Postgres, Plan { agents: 10, tasks: 300, kills: 1, failover: true, lease });
        assert!(outcome.proof.timelines >= 2, "{:?}", outcome.proof);
    }
}
