//! `cargo xtask fleet`: proofs and measurements of the parts that several agents need.

mod board;
mod forecast;
mod merges;

use anyhow::Result;
use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum FleetCommand {
    /// Let simulated agents work off tasks on a board whose server is killed; prove that each task was done once
    Board(board::BoardArgs),
    /// Compare the forecast of conflicts with `git merge-file`, on the merges of real histories
    Forecast(forecast::ForecastArgs),
}

/// Runs one of them. A result that must not be ends it with an error.
pub(crate) fn run(command: FleetCommand) -> Result<()> {
    match command {
        FleetCommand::Board(args) => board::run(args),
        FleetCommand::Forecast(args) => forecast::run(&args),
    }
}
