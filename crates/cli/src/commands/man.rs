//! `surehand man`: the manual pages, generated from the command line.

use std::fs;

use anyhow::Context;
use clap::CommandFactory;

use crate::{
    args::{Args, ManArgs},
    output,
};

pub(crate) fn run(args: &ManArgs) -> anyhow::Result<()> {
    let command = Args::command();
    let Some(directory) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).context("the page")?;
        return output::print(&String::from_utf8_lossy(&page));
    };
    let failed = || format!("{}: cannot be written", directory.display());
    fs::create_dir_all(directory).with_context(failed)?;
    clap_mangen::generate_to(command, directory).with_context(failed)
}
