//! `surehand restore`: restores files to an earlier state.

use std::process::ExitCode;

use jiff::Zoned;
use surehand_engine::{
    core::render::count,
    json,
    repo_state::rfc3339,
    restore::{RestoreFile, RestorePlan, RestoreRequest, RestoreTo, Restored},
    store::NotKept,
};

use crate::{args::RestoreArgs, local_paths::LocalPaths, output, question, workspace};

pub(crate) fn run(args: &RestoreArgs) -> anyhow::Result<ExitCode> {
    let mut session = workspace::open_session(&args.consent.place)?;
    let to = RestoreTo::find(session.workspace(), &args.to, &Zoned::now())?;
    let local_paths = LocalPaths::to(session.workspace().path());
    let request = RestoreRequest { paths: args.paths.iter().map(|path| local_paths.typed(path)).collect(), to };
    let plan = session.preview_restore(&request)?;
    if !args.consent.json {
        output::print(&preview(&plan, &local_paths))?;
    }
    let is_preview = plan.files.is_empty() || args.consent.dry_run;
    let is_wanted = !is_preview && (args.consent.yes || question::ask("Restore this?", args.consent.json)?);
    // Only this plan first saves the current content.
    let plan = if is_wanted { session.plan_restore(&request)? } else { plan };
    let restored = is_wanted.then(|| session.restore(&plan));
    match (&restored, args.consent.json) {
        (restored, true) => output::print_json(&json::restore(&plan, restored.as_ref()))?,
        (Some(restored), false) => output::print(&report(&plan, restored, &local_paths))?,
        (None, false) => {}
    }
    let is_done = restored.map_or(is_preview, |restored| restored.failed.is_empty());
    Ok(output::exit_code(is_done))
}

fn preview(plan: &RestorePlan, local_paths: &LocalPaths) -> String {
    const MOST: usize = 100;
    let from = match &plan.checkpoint {
        Some(checkpoint) => format!("checkpoint {} of {}", checkpoint.id, rfc3339(checkpoint.at)),
        None => "the changes on record; there is no checkpoint of that time".to_owned(),
    };
    let mut text = format!("To the state of {}, by {from}:\n", rfc3339(plan.moment));
    let line = |file: &RestoreFile| format!("  {:<10} {}\n", file.act.name(), local_paths.shown(file.path.as_str()));
    text.push_str(&output::listed(&plan.files, MOST, line, |more| format!("  and {more} more (--json lists them)\n")));
    if plan.files.is_empty() {
        text.push_str("  nothing to do: the files are as they were\n");
    }
    text + &list("left as it is", &plan.left, local_paths)
}

fn list(what: &str, files: &[NotKept], local_paths: &LocalPaths) -> String {
    const MOST: usize = 20;
    let line = |file: &NotKept| format!("  {what}: {} ({})\n", local_paths.shown(&file.path), file.why);
    output::listed(files, MOST, line, |more| format!("  {what}: {more} more (--json lists them)\n"))
}

fn report(plan: &RestorePlan, restored: &Restored, local_paths: &LocalPaths) -> String {
    let mut text = format!("Restored {}.\n", count(restored.files.len(), "file"));
    text.push_str(&list("not restored", &restored.failed, local_paths));
    match (&restored.changes[..], &plan.before) {
        _ if restored.files.is_empty() => {}
        ([change], _) if !restored.has_swapped => text.push_str(&format!("To take it back: surehand undo {change}\n")),
        (_, Some(before)) => text.push_str(&format!("To take it back: surehand restore --to {before}\n")),
        _ => {}
    }
    text
}
