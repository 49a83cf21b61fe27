//! `cargo xtask torture`: the arguments, and the report on standard output. The crate `surehand-torture` does the work.

use std::{env, path::PathBuf, time::Duration};

use anyhow::{Result, bail};
use clap::Args;
use surehand_torture::{Part, Progress, Report, Torture};

use crate::bench::server::{self, Profile};

/// The flags of `torture`.
#[derive(Args)]
pub(crate) struct TortureArgs {
    /// What to do: kill, race, metadata, hostile, filesystems [default: all of them]
    #[arg(value_name = "PART", value_parser = part)]
    parts: Vec<Part>,
    /// The seed of every choice [default: 1]
    #[arg(long, default_value_t = 1, hide_default_value = true)]
    seed: u64,
    /// How long each part runs
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Where the workspaces are, so that any file system can be tried [default: the directory for temporary files]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The surehand binary [default: builds `-p surehand` with the profile `release`]
    #[arg(long, value_name = "PATH")]
    server: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

fn part(typed: &str) -> Result<Part, String> {
    let names = Part::ALL.map(Part::name).join(", ");
    Part::ALL.into_iter().find(|part| part.name() == typed).ok_or(format!("the parts are {names}"))
}

/// Runs the parts that were asked for. Something that must never happen ends it with an error.
pub(crate) fn run(args: TortureArgs) -> Result<()> {
    let program = match args.server {
        Some(path) => server::locate(&path)?,
        None => server::build(Profile::Release)?,
    };
    let dir = args.dir.unwrap_or_else(env::temp_dir).canonicalize()?;
    let time = Duration::from_secs(args.seconds);
    let torture = Torture { program, seed: args.seed, time, dir, progress: Progress::Reported };
    eprintln!("seed {}", torture.seed);
    let parts = if args.parts.is_empty() { Part::ALL.to_vec() } else { args.parts };
    let mut report = Report { seed: torture.seed, outcomes: Vec::new() };
    for part in parts {
        report.outcomes.extend(torture.run(part)?.outcomes);
    }
    if args.json {
        println!("{:#}", report.to_json());
    } else {
        print!("{}", report.to_markdown());
    }
    match report.violations().count() {
        0 => Ok(()),
        number => bail!("{number} violations; the workspaces are kept, and --seed {} makes the same choices again", report.seed),
    }
}
