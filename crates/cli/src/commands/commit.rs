//! `surehand commit`: commits exactly the lines of a session.

use std::{
    io::{self, IsTerminal},
    path::Path,
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
};

use signal_hook::{consts::signal, flag};
use surehand_engine::{
    SessionId, Workspace,
    attribution::{SessionCommit, SessionCommitError, SessionCommitPlan, SessionCommitRequest, SessionFile, WorkBase},
    core::RelPath,
    json,
    render::count,
};

use super::{entry_format::EntryFormat, session_work::has_work};
use crate::{args::CommitArgs, local_paths::LocalPaths, output, workspace};

pub(crate) fn run(args: &CommitArgs) -> anyhow::Result<ExitCode> {
    let workspace = match args.dry_run {
        true => workspace::open_read_only(&args.state.place)?,
        false => workspace::open(&args.state.place)?,
    };
    let session = workspace::find_session(&workspace, &args.session)?;
    let mut elsewhere = workspace::other_roots(&session, workspace.path())?;
    elsewhere.retain(|root| may_have_work(root, &session));
    let request = SessionCommitRequest { session, paths: paths(&workspace, &args.paths)? };
    let report = CommitReport::new(&workspace, args)?;
    let done = match args.dry_run {
        true => workspace.plan_session_commit(&request).map(|plan| (plan, None)),
        false => {
            // Git ends when it is interrupted. We continue, and put the index back.
            for signal in [signal::SIGINT, signal::SIGTERM, signal::SIGHUP] {
                flag::register(signal, Arc::new(AtomicBool::new(false)))?;
            }
            workspace.commit_session(&request, &args.messages).map(|(plan, commit)| (plan, Some(commit)))
        }
    };
    for root in elsewhere {
        anstream::eprintln!("note: this session has lines to commit in {} as well; commit them there", root.display());
    }
    match done {
        Ok((plan, commit)) => report.done(&plan, commit.as_ref()),
        Err(SessionCommitError::Nothing) => report.nothing(&workspace.plan_session_commit(&request)?),
        Err(error) if is_refusal(&error) => {
            output::print_error(&error.to_string(), args.state.json);
            Ok(ExitCode::FAILURE)
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether a session has something to commit in this work tree. If that cannot be determined, it may have, and only a
/// person can find out.
fn may_have_work(root: &Path, session: &SessionId) -> bool {
    let Ok(workspace) = workspace::open_read_only(&workspace::at(root)) else { return true };
    let request = SessionCommitRequest { session: session.clone(), paths: Vec::new() };
    match workspace.plan_session_commit(&request) {
        Ok(plan) => !plan.files.is_empty(),
        Err(SessionCommitError::NoRepository | SessionCommitError::Nothing) => false,
        // For example, an unfinished merge there.
        Err(_) => has_work(&workspace, session, WorkBase::Commit).unwrap_or(true),
    }
}

/// Whether nothing is broken, but the state of the repository or a git hook forbids the commit.
fn is_refusal(error: &SessionCommitError) -> bool {
    use SessionCommitError::{Conflicts, HeadMoves, InProgress, Refused};
    matches!(error, InProgress { .. } | Conflicts | Refused | HeadMoves)
}

/// The selected files and directories; empty means everything.
fn paths(workspace: &Workspace, typed: &[String]) -> anyhow::Result<Vec<RelPath>> {
    let local_paths = LocalPaths::to(workspace.path());
    let mut paths = Vec::new();
    for path in typed {
        match workspace.place_of(&local_paths.typed(path))? {
            Some(path) => paths.push(path),
            // This is the root.
            None => return Ok(Vec::new()),
        }
    }
    Ok(paths)
}

struct CommitReport<'a> {
    workspace: &'a Workspace,
    args: &'a CommitArgs,
    format: EntryFormat,
}

impl<'a> CommitReport<'a> {
    fn new(workspace: &'a Workspace, args: &'a CommitArgs) -> anyhow::Result<Self> {
        Ok(Self { workspace, args, format: EntryFormat::of(workspace)? })
    }

    fn done(&self, plan: &SessionCommitPlan, commit: Option<&SessionCommit>) -> anyhow::Result<ExitCode> {
        if plan.files.is_empty() {
            return self.nothing(plan);
        }
        let patch = || self.workspace.patch_of(&plan.files);
        match (self.args.state.json, commit) {
            (true, None) => self.print_json(plan, None, Some(&String::from_utf8_lossy(&patch()?)))?,
            (true, commit) => self.print_json(plan, commit, None)?,
            (false, None) if io::stdout().is_terminal() => output::print(&String::from_utf8_lossy(&patch()?))?,
            (false, None) => output::print_bytes(&patch()?)?,
            (false, Some(commit)) => output::print(&summary(plan, commit))?,
        }
        self.note_left(plan);
        Ok(ExitCode::SUCCESS)
    }

    fn nothing(&self, plan: &SessionCommitPlan) -> anyhow::Result<ExitCode> {
        if self.args.state.json {
            self.print_json(plan, None, None)?;
        } else {
            output::print_error("there is nothing to commit", false);
        }
        self.note_left(plan);
        Ok(ExitCode::FAILURE)
    }

    fn note_left(&self, plan: &SessionCommitPlan) {
        if !self.args.state.json {
            let notes = plan.left.iter().flat_map(|file| self.format.left(file));
            notes.for_each(|note| anstream::eprintln!("note: {note}"));
        }
    }

    fn print_json(&self, plan: &SessionCommitPlan, commit: Option<&SessionCommit>, patch: Option<&str>) -> anyhow::Result<()> {
        let object = json::session_commit(plan, commit, patch, &self.format.names);
        output::print_json(&object)
    }
}

fn summary(plan: &SessionCommitPlan, commit: &SessionCommit) -> String {
    let diffs: Vec<_> = plan.files.iter().map(SessionFile::diff).collect();
    let (added, removed) = diffs.iter().fold((0, 0), |(added, removed), diff| (added + diff.added(), removed + diff.removed()));
    let short: String = commit.id.chars().take(8).collect();
    let files = count(plan.files.len(), "file");
    let others = commit.files.len().saturating_sub(plan.entries());
    let by_hooks = if others > 0 { format!("; a hook added {}", count(others, "file")) } else { String::new() };
    format!("committed \x1b[33m{short}\x1b[0m: {files}, +{added} -{removed}{by_hooks}\n")
}
