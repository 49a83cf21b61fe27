//! `surehand completions`: the completion script for a shell.

use clap::CommandFactory;

use crate::{
    args::{Args, CompletionsArgs},
    output,
};

pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "surehand", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
