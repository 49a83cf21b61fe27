//! Chores of this repository, run as `cargo xtask`.
//! `torture` shows that nothing is lost, `histories` replays a git history through rebase. `context`
//! weighs the agent's prompts over a long story, `economy` counts the tokens of edits. `bench` measures Surehand beside a bare server and beside
//! the servers that people would pick; `floor` is that bare server, started by `bench`.
#![allow(clippy::print_stdout, reason = "the report goes to stdout, so that it can be piped into a file")]
#![allow(clippy::disallowed_methods, reason = "the files it writes are its own")]

mod bench;
mod context;
mod economy;
mod files;
mod git;
mod histories;
mod machine;
mod sample;
mod torture;

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::{Args, Parser, Subcommand};
use surehand_testkit::dice;

use crate::bench::floor::Durability;
use crate::bench::peer::Wanted;
use crate::bench::{Bench, Pace};
use crate::economy::{Economy, Packages};
use crate::histories::divided;

/// What was typed after `cargo xtask`.
#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the Surehand repository")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The chores.
#[derive(Subcommand)]
enum Command {
    /// Measure the server beside a bare one and beside the servers that people would pick; print a markdown report
    Bench(BenchArgs),
    /// Weigh the prompts of the agent over a long story, in both modes, and print a markdown table
    Context(ContextArgs),
    /// Count the tokens of edits over real histories, by dialect, without and with outside changes, and print markdown tables
    Economy(EconomyArgs),
    /// Replay the history of a git repository: rebased edits must be what somebody would have done who saw the other change
    Histories(HistoriesArgs),
    /// Kill, race and starve real processes on real files: nothing may be lost
    Torture(torture::TortureArgs),
    /// The bare server that `bench` compares with; started as `mcp` it stands in for the server, a check of the benchmark itself
    #[command(hide = true, alias = "mcp")]
    Floor(FloorArgs),
}

/// The flags of `bench`.
#[derive(Args)]
struct BenchArgs {
    /// The surehand binary [default: builds `-p surehand` in release mode and uses that]
    #[arg(long, value_name = "PATH")]
    server: Option<PathBuf>,
    /// Few calls: a look at the numbers in half a minute
    #[arg(long)]
    quick: bool,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// Write docs/benchmarks.md and docs/benchmarks.svg instead of printing
    #[arg(long, conflicts_with = "json")]
    write: bool,
    /// Which other servers take part; they are installed by name below target/peers [default: all, with --quick none]
    #[arg(long, value_enum)]
    peers: Option<Wanted>,
}

/// The flags of `context`.
#[derive(Args)]
struct ContextArgs {
    /// How long the story is
    #[arg(long, default_value_t = 1_000)]
    turns: usize,
    /// How many files there are
    #[arg(long, default_value_t = 500)]
    files: usize,
    /// Print one JSON object, with every turn, instead of a table
    #[arg(long)]
    json: bool,
}

/// The flags of `economy`.
#[derive(Args)]
struct EconomyArgs {
    /// A git repository whose history is measured; may be given several times
    #[arg(long, value_name = "DIR", default_value = ".")]
    repository: Vec<PathBuf>,
    /// Measure releases of well-known packages as well; cargo, npm and pip fetch them into target/economy, once
    #[arg(long)]
    packages: bool,
    /// At most so many edits of each repository and package, spread over all of it
    #[arg(long, default_value_t = 400)]
    limit: usize,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// Put the tables into docs/economy.md
    #[arg(long, conflicts_with = "json")]
    write: bool,
}

/// The flags of `histories`.
#[derive(Args)]
struct HistoriesArgs {
    /// The repository
    #[arg(default_value = ".")]
    repository: PathBuf,
    /// At most so many pairs of successive commits of a file, and so many commits of a file that change it in several places
    #[arg(long, default_value_t = 10_000)]
    limit: usize,
    /// Name every edit of a divided commit that was not made in its place
    #[arg(long)]
    list: bool,
}

/// The flags of `floor`.
#[derive(Args)]
struct FloorArgs {
    /// The directory whose files are served
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// Sync the file before the swap and the directory after it
    #[arg(long)]
    sync: bool,
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Bench(args) => bench(args),
        Command::Context(args) => context(&args),
        Command::Economy(args) => economy(args),
        Command::Histories(args) => histories(&args),
        Command::Torture(args) => torture::run(args),
        Command::Floor(args) => bench::floor::serve(&args.root, if args.sync { Durability::Full } else { Durability::Fast }),
    }
}

/// Plays the story and prints what its prompts weigh.
fn context(args: &ContextArgs) -> Result<()> {
    ensure!(args.turns >= context::FEWEST_TURNS, "a story has at least {} turns", context::FEWEST_TURNS);
    ensure!(args.files >= context::FEWEST_FILES, "a story is about at least {} files", context::FEWEST_FILES);
    let found = context::measure(args.turns, args.files)?;
    if args.json {
        println!("{:#}", found.to_json());
    } else {
        print!("{}", found.to_markdown());
    }
    Ok(())
}

/// Plays the edits of histories and says what they cost.
fn economy(args: EconomyArgs) -> Result<()> {
    let packages = if args.packages { Packages::Fetched } else { Packages::None };
    let tally = Economy { repositories: args.repository, packages, limit: args.limit }.measure()?;
    if args.json {
        println!("{:#}", tally.to_json());
    } else if args.write {
        economy::write(&tally.to_markdown())?;
    } else {
        print!("{}", tally.to_markdown());
    }
    Ok(())
}

/// Replays a history and says what came of it. A wrong result ends it with an error.
fn histories(args: &HistoriesArgs) -> Result<()> {
    let tally = histories::replay(&args.repository, args.limit)?;
    println!(
        "{} pairs of commits, {} edits: {} rebased, every one as if made by somebody who saw the change; {} refused",
        tally.pairs, tally.edits, tally.rebased, tally.refused
    );
    let report = divided::replay(&args.repository, args.limit)?;
    print!("\n{report}");
    report.failures.iter().filter(|_| args.list).for_each(|failure| println!("{failure}"));
    ensure!(report.wrong() == 0, "{} edits were made in a wrong place", report.wrong());
    Ok(())
}

/// Runs the benchmark and prints its report.
fn bench(args: BenchArgs) -> Result<()> {
    // An unoptimised floor would flatter every ratio.
    ensure!(!cfg!(debug_assertions), "the floor must be optimised: run `cargo run --release -p xtask -- bench`");
    let server = match args.server {
        Some(path) => bench::server::locate(&path)?,
        None => bench::server::build()?,
    };
    let pace = if args.quick { Pace::Quick } else { Pace::Full };
    let wanted = args.peers.unwrap_or(pace.pick(Wanted::None, Wanted::All));
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers");
    let report = Bench::new(&server, pace, wanted, &cache)?.run()?;
    if args.json {
        println!("{:#}", report.to_json());
    } else if args.write {
        bench::page::write(&report)?.iter().for_each(|path| println!("{}", path.display()));
    } else {
        print!("{}", report.to_markdown());
    }
    Ok(())
}
