//! Studies of Surehand: each measures something that a page of the documentation reports.
//!
//! `economy` counts the tokens of edits (`docs/economy.md`), `context` weighs the agent's prompts over a long story
//! (`docs/benchmarks.md`), and `histories` replays git histories through rebase (`docs/reliability.md`).
#![allow(clippy::disallowed_methods, reason = "the files it writes are its own")]

mod context;
mod economy;
mod git;
mod histories;
#[path = "../../crates/xtask/src/machine.rs"]
#[allow(dead_code, reason = "the benchmark uses the rest")]
mod machine;
#[path = "../../crates/xtask/src/table.rs"]
mod table;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::{Args, Parser, Subcommand};

use crate::economy::{Economy, Packages};
use crate::histories::divided;

/// The command line.
#[derive(Parser)]
#[command(name = "surehand-studies", about = "Measurements behind the documentation of Surehand")]
struct Cli {
    #[command(subcommand)]
    study: Study,
}

/// The studies.
#[derive(Subcommand)]
enum Study {
    /// Weigh the agent's prompts over a long story, in both modes, and print a markdown table
    Context(ContextArgs),
    /// Count the tokens of edits over real histories, by dialect, with and without outside changes, and print markdown
    /// tables
    Economy(EconomyArgs),
    /// Replay the history of a git repository: a rebased edit must equal the one made by an author who saw the other
    /// change
    Histories(HistoriesArgs),
}

/// The flags of `context`.
#[derive(Args)]
struct ContextArgs {
    /// The number of turns
    #[arg(long, default_value_t = 1_000)]
    turns: usize,
    /// The number of files
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
    /// At most this many edits of each repository and package, spread over all of it
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
    /// At most this many pairs of successive commits of a file, and this many commits that change a file in several
    /// places
    #[arg(long, default_value_t = 10_000)]
    limit: usize,
    /// Name every edit of a divided commit that was not made in its place
    #[arg(long)]
    list: bool,
}

fn main() -> Result<()> {
    match Cli::parse().study {
        Study::Context(args) => context(&args),
        Study::Economy(args) => economy(args),
        Study::Histories(args) => histories(&args),
    }
}

/// Plays the story and prints the size of its prompts.
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

/// Plays the edits of histories and prints their cost.
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

/// Replays a history and prints the result. A wrong edit ends it with an error.
fn histories(args: &HistoriesArgs) -> Result<()> {
    let tally = histories::replay(&args.repository, args.limit)?;
    println!(
        "{} pairs of commits, {} edits: {} rebased, every one as if its author had seen the change; {} refused",
        tally.pairs, tally.edits, tally.rebased, tally.refused
    );
    let report = divided::replay(&args.repository, args.limit)?;
    print!("\n{report}");
    report.failures.iter().filter(|_| args.list).for_each(|failure| println!("{failure}"));
    ensure!(report.wrong() == 0, "{} edits were made in a wrong place", report.wrong());
    Ok(())
}
