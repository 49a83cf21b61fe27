//! Formats the output of `surehand init` about a client: before writing, a line per file; afterwards, the result and
//! the next steps.

use std::path::PathBuf;

use serde_json::{Value, json};
use surehand_engine::core::{file_diff::DiffHunk, render::count};

use super::{
    InitOutcome, InitStatus, Setup,
    changes::{ConfigChange, InitAction},
    clients::InitClient,
    config_dirs::ConfigScope,
};
use crate::display::diff::coloured_hunks;

pub(super) fn announcement(client: InitClient, scope: ConfigScope, steps: &[ConfigChange], setup: &Setup) -> String {
    let mut text = format!("\x1b[1m{}\x1b[0m {}\n", client.title(), scope.in_words());
    let changes: Vec<&ConfigChange> = steps.iter().filter(|step| !step.is_nothing()).collect();
    for together in changes.chunk_by(|one, other| !setup.shows_diff && are_alike(one, other)) {
        text.push_str(&line(together, setup));
        if setup.shows_diff {
            coloured_hunks(together[0].diff().hunks()).lines().for_each(|line| text.push_str(&format!("    {line}\n")));
        }
    }
    if setup.action == InitAction::Add {
        let profile = client.profile();
        text.push_str(&format!("  guarded: {}\n", profile.guarded));
        profile.limits.iter().for_each(|limit| text.push_str(&format!("  limit: {limit}\n")));
    }
    text
}

/// Whether two files share one line of output: scripts in one directory.
fn are_alike(one: &ConfigChange, other: &ConfigChange) -> bool {
    one.is_program && other.is_program && one.act() == other.act() && one.path.parent() == other.path.parent()
}

fn line(together: &[&ConfigChange], setup: &Setup) -> String {
    let first = together[0];
    let (path, what) = match (together, first.path.parent()) {
        ([_, _, ..], Some(directory)) => (format!("{}/", setup.dirs.shown(directory)), count(together.len(), "hook")),
        _ => (setup.dirs.shown(&first.path), first.what.clone()),
    };
    let what = if what.is_empty() { what } else { format!(": {what}") };
    format!("  {} {path}{what}\n", first.act())
}

pub(super) fn ending(outcome: &InitOutcome, setup: &Setup) -> String {
    let title = outcome.client.title();
    let mut text = match &outcome.state {
        InitStatus::Nothing if setup.action == InitAction::Add => {
            format!("{title} {}: nothing to do\n", outcome.scope.in_words())
        }
        InitStatus::Nothing => format!("{title}: nothing to do\n"),
        InitStatus::Failed(why) => format!("{title}: \x1b[31mfailed\x1b[0m: {why}\n"),
        InitStatus::Planned => "  not written: a dry run\n".to_owned(),
        InitStatus::Declined => "  not written\n".to_owned(),
        InitStatus::NotAsked => "  not written: no terminal to ask on; --yes writes without asking\n".to_owned(),
        InitStatus::Done => "  done\n".to_owned(),
    };
    for (step, copy) in &outcome.files {
        let path = setup.dirs.shown(&step.path);
        if matches!(outcome.state, InitStatus::Failed(_)) && !step.is_nothing() {
            let verb = if step.after.is_none() { "removed" } else { "wrote" };
            text.push_str(&format!("  {verb} {path}\n"));
        }
        text.extend(copy.iter().map(|copy| format!("  as it was: {}\n", setup.dirs.shown(copy))));
        text.extend(step.note.iter().map(|note| format!("  {path} {note}\n")));
    }
    next_steps(outcome, setup).iter().for_each(|step| text.push_str(&format!("  next: {step}\n")));
    text
}

fn next_steps(outcome: &InitOutcome, setup: &Setup) -> Vec<&'static str> {
    let by_hand = setup.server_by_hand(outcome.client, outcome.scope);
    let steps = match (&outcome.state, setup.action) {
        (InitStatus::Done, InitAction::Add) => outcome.client.next_steps(outcome.scope, setup.request.with_server),
        _ => Vec::new(),
    };
    steps.into_iter().chain(by_hand).collect()
}

pub(super) fn as_json(outcome: &InitOutcome, setup: &Setup) -> Value {
    let (state, error) = match &outcome.state {
        InitStatus::Done => ("done", None),
        InitStatus::Nothing => ("nothing", None),
        InitStatus::Planned => ("planned", None),
        InitStatus::Declined | InitStatus::NotAsked => ("not_asked", None),
        InitStatus::Failed(why) => ("failed", Some(why)),
    };
    let hunks = |step: &ConfigChange| step.diff().hunks().iter().map(DiffHunk::to_string).collect::<String>();
    let file = |(step, copy): &(ConfigChange, Option<PathBuf>)| {
        json!({
            "path": step.path,
            "act": step.act(),
            "what": step.what,
            "diff": hunks(step),
            "backup": copy,
            "note": step.note,
        })
    };
    let profile = outcome.client.profile();
    json!({
        "client": profile.name,
        "installed": outcome.client.is_installed(&setup.dirs),
        "scope": outcome.scope.name(),
        "state": state,
        "error": error,
        "guarded": profile.guarded,
        "limits": profile.limits,
        "files": outcome.files.iter().map(file).collect::<Vec<_>>(),
        "next": next_steps(outcome, setup),
    })
}
