//! `surehand man`: the manual pages, generated from the command line.

use std::{fs, process::ExitCode};

use anyhow::Context;
use clap::CommandFactory;

use crate::{
    args::{Args, ManArgs},
    output,
};

pub(crate) fn run(args: &ManArgs) -> anyhow::Result<ExitCode> {
    let command = Args::command();
    let Some(directory) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).context("the page")?;
        output::print(&String::from_utf8_lossy(&page))?;
        return Ok(ExitCode::SUCCESS);
    };
    let failed = || format!("{}: cannot be written", directory.display());
    fs::create_dir_all(directory).with_context(failed)?;
    clap_mangen::generate_to(command, directory).with_context(failed)?;
    Ok(ExitCode::SUCCESS)
}
