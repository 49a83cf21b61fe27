//! Chores of this repository, run as `cargo xtask`. `torture` shows that nothing is lost. `fleet` measures the parts
//! that several agents need. `bench` measures Surehand beside a bare server and beside other popular servers; `floor`
//! is that bare server, started by `bench`.
#![allow(clippy::print_stdout, reason = "the report goes to stdout, so that it can be piped into a file")]
#![allow(clippy::disallowed_methods, reason = "the files it writes are its own")]

mod bench;
mod files;
mod fleet;
mod machine;
mod measurement;
mod table;
mod torture;

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::{Args, Parser, Subcommand};

use crate::bench::floor::Durability;
use crate::bench::peer::Wanted;
use crate::bench::server::Profile;
use crate::bench::{Bench, Pace};

/// The command line of `cargo xtask`.
#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the Surehand repository")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure the server beside a bare one and beside the servers that people would pick; print a markdown report
    Bench(BenchArgs),
    /// Kill, race and starve real processes on real files: nothing may be lost
    Torture(torture::TortureArgs),
    /// Measure what several agents need of each other
    #[command(subcommand)]
    Fleet(fleet::FleetCommand),
    /// The bare server that `bench` compares with; started as `mcp` it stands in for the server, a check of the
    /// benchmark itself
    #[command(hide = true, alias = "mcp")]
    Floor(FloorArgs),
}

/// The flags of `bench`.
#[derive(Args)]
struct BenchArgs {
    /// The surehand binary [default: builds `-p surehand` with the profile `dist`]
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
        Command::Torture(args) => torture::run(args),
        Command::Fleet(command) => fleet::run(command),
        Command::Floor(args) => bench::floor::serve(&args.root, if args.sync { Durability::Full } else { Durability::Fast }),
    }
}

/// Runs the benchmark and prints its report.
fn bench(args: BenchArgs) -> Result<()> {
    // An unoptimised floor would flatter every ratio.
    ensure!(!cfg!(debug_assertions), "the floor must be optimised: run `cargo xtask bench`");
    let server = match args.server {
        Some(path) => bench::server::locate(&path)?,
        None => bench::server::build(Profile::Dist)?,
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
