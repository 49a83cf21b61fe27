//! `surehand snapshot`: the state of the repository, as a model gets it.

use surehand_engine::{ToolNames, render::snapshot::format_for_prompt, repo_state};

use crate::{args::StateArgs, output, workspace};

pub(crate) fn run(args: &StateArgs) -> anyhow::Result<()> {
    let state = workspace::open_read_only(&args.place)?.snapshot();
    let text = if args.json { repo_state::to_json(&state) } else { format_for_prompt(&state, &ToolNames::default()) };
    output::print(&text)
}
