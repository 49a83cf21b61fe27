//! `surehand call`: one tool call from a shell or script.

use std::{io::Read, process::ExitCode};

use anyhow::Context;
use serde_json::Value;
use surehand_engine::{Session, SessionId};

use crate::{args::CallArgs, output, workspace};

pub(crate) fn run(args: &CallArgs) -> anyhow::Result<ExitCode> {
    let mut typed = args.arguments.clone();
    if typed == "-" {
        typed.clear();
        std::io::stdin().read_to_string(&mut typed).context("standard input")?;
    }
    let arguments: Value = serde_json::from_str(&typed).context("the arguments are not valid JSON")?;
    let workspace = workspace::open(&args.place)?;
    let mut session = Session::continued(workspace, SessionId(args.session.clone()));
    output::print_reply(session.call(&args.tool, &arguments), args.json)
}
