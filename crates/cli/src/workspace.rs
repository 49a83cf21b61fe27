//! Opens the workspace of a command, with its settings.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use surehand_adapters::{hooks::OpenedWorkspace, session_roots::SessionRoots};
use surehand_engine::{
    Config, FindRootError, IgnoredSetting, OpenError, PassedOver, Session, SessionId, StateDirError, Workspace, WorkspaceOptions,
    change_log::ChangeSelection,
    find_root,
    session_names::IdError,
    testing::{CommitProbe, ProbeVerdict},
};

use crate::{
    args::{PlaceArgs, SelectionArgs},
    fleet,
    local_paths::LocalPaths,
    user_dirs,
};

/// For tests: kills this process with `SIGKILL` after this many steps of a commit.
const KILL_AFTER: &str = "SUREHAND_TEST_KILL_AFTER";

pub(crate) fn open(place: &PlaceArgs) -> anyhow::Result<Arc<Workspace>> {
    let root = root(place)?;
    let options = WorkspaceOptions { config: settings(&root)?, probe: kill_probe(), ..WorkspaceOptions::default() };
    Workspace::open_with(&root, options).map_err(with_hint)
}

/// Opens the workspace of a command that makes changes, as the session `cli`.
pub(crate) fn open_session(place: &PlaceArgs) -> anyhow::Result<Session> {
    Ok(Session::continued(open(place)?, SessionId("cli".to_owned())))
}

/// Opens the workspace of a long-running command, as a part of the fleet.
pub(crate) fn open_in_fleet(place: &PlaceArgs) -> anyhow::Result<Arc<Workspace>> {
    let root = root(place)?;
    let config = settings(&root)?;
    let fleet = fleet::link(&root, &config.state, &config.board);
    let options = WorkspaceOptions { config, fleet, probe: kill_probe(), ..WorkspaceOptions::default() };
    let workspace = Workspace::open_with(&root, options).map_err(with_hint)?;
    fleet::follow(&workspace);
    Ok(workspace)
}

/// Opens the workspace of a command for reading. Creates nothing.
pub(crate) fn open_read_only(place: &PlaceArgs) -> anyhow::Result<Arc<Workspace>> {
    let root = root(place)?;
    let workspace = Workspace::open_read_only(&root, settings(&root)?).map_err(with_hint)?;
    let report = workspace.state_report();
    if let Some(PassedOver { path, why }) = report.passed_over {
        anstream::eprintln!("note: {} {why}; it is not used", path.display());
    }
    if let (true, Some(state)) = (report.is_read_only, report.paths) {
        anstream::eprintln!(
            "note: {} cannot be written; this is what it says, and the last changes may be missing",
            state.repository.display()
        );
    }
    Ok(workspace)
}

pub(crate) fn root(place: &PlaceArgs) -> anyhow::Result<PathBuf> {
    let Some(root) = &place.root else {
        let here = std::env::current_dir().context("the current directory is gone")?;
        return find_root(&here, &user_dirs::state_home()?).map_err(with_root_hint);
    };
    anyhow::ensure!(root.is_dir(), "{}: not a directory", root.display());
    root.canonicalize().with_context(|| root.display().to_string())
}

/// The effective settings: the user's, those that a repository may set, and the environment's.
pub(crate) fn settings(root: &Path) -> anyhow::Result<Config> {
    Ok(Config { state: user_dirs::state_home()?, ..Config::load(root, variables())? })
}

fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Describes the settings of the repository that are ignored, up to a limit.
pub(crate) fn ignored_settings(config: &Config) -> Vec<String> {
    const MOST: usize = 20;
    let in_words = |ignored: &IgnoredSetting| {
        let line = ignored.line.map(|line| format!(" (line {line})")).unwrap_or_default();
        match ignored.what.as_str() {
            "surehand.toml" => format!("surehand.toml of the workspace is ignored: {}", ignored.why),
            file if file.starts_with('/') => format!("{file} is ignored: {}", ignored.why),
            key => format!("{key} in surehand.toml of the workspace is ignored: {}{line}", ignored.why),
        }
    };
    let mut words: Vec<String> = config.ignored.iter().take(MOST).map(in_words).collect();
    if config.ignored.len() > MOST {
        words.push(format!("{} more keys in surehand.toml of the workspace are ignored", config.ignored.len() - MOST));
    }
    words
}

/// The roots of the other workspaces of a session.
pub(crate) fn other_roots(session: &SessionId, here: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let places = SessionRoots::of(&user_dirs::state_home()?, session);
    let roots = places.home.into_iter().chain(places.others);
    Ok(roots.filter(|root| root != here && root.is_dir()).collect())
}

pub(crate) fn at(root: &Path) -> PlaceArgs {
    PlaceArgs { root: Some(root.to_owned()) }
}

/// The settings for hooks, and the error in the user's settings, if any. If those cannot be read, the defaults apply,
/// so that protection stays on.
pub(crate) fn settings_of_hooks(root: &Path) -> anyhow::Result<(Config, Option<String>)> {
    let state = user_dirs::state_home()?;
    let (config, trouble) = match Config::for_hooks().load_over(root, variables()) {
        Ok(config) => (config, None),
        Err(error) => (Config::for_hooks(), Some(format!("uses its defaults, because your settings cannot be read: {error}"))),
    };
    Ok((Config { state, ..config }, trouble))
}

/// Opens a workspace for a hook.
pub(crate) fn open_for_hook(root: &Path) -> anyhow::Result<OpenedWorkspace> {
    let (config, trouble) = settings_of_hooks(root)?;
    let fleet = fleet::link_for_one_call(root, &config.state, &config.board);
    let options = WorkspaceOptions { config, is_for_one_call: true, fleet, probe: kill_probe(), ..WorkspaceOptions::default() };
    let workspace = Workspace::open_with(root, options).map_err(with_hint)?;
    Ok(OpenedWorkspace { workspace, trouble })
}

/// Adds a hint to the error about a place outside every workspace.
fn with_root_hint(error: FindRootError) -> anyhow::Error {
    match error {
        FindRootError::Everything { .. } => anyhow::anyhow!("{error}\nhint: go to a project, or name one with --root DIR"),
        error => error.into(),
    }
}

/// Adds a hint to the error about a state directory that cannot be written.
fn with_hint(error: OpenError) -> anyhow::Error {
    let OpenError::State(StateDirError::Unusable { path, error: io }) = &error else { return error.into() };
    let hint = match io.kind() {
        ErrorKind::PermissionDenied => "no permission to write there",
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        _ => return error.into(),
    };
    let path = path.display();
    anyhow::anyhow!(
        "{path}: cannot be created or used: {hint} ({io})\n\
         hint: Surehand keeps its state there; make it writable for your user only, or set SUREHAND_STATE_DIR to a \
         directory that is"
    )
}

/// The changes that the arguments select. An argument that is not a change id or the beginning of one is a path.
pub(crate) fn selection(typed: &SelectionArgs, session: &Session) -> anyhow::Result<ChangeSelection> {
    if let Some(typed) = &typed.session {
        return Ok(ChangeSelection::Session(find_session(session.workspace(), typed)?));
    }
    let Some(what) = &typed.what else { return Ok(ChangeSelection::Last(None)) };
    let workspace = session.workspace();
    let local_paths = LocalPaths::to(workspace.path());
    let file = session.path_of(&local_paths.typed(what)).map(|path| ChangeSelection::File(path, None));
    // A file takes precedence over a change whose id begins with the file's name.
    if let Ok(file @ ChangeSelection::File(path, _)) = &file
        && (workspace.path().join(path.as_str()).exists() || workspace.net_changes(file)?.is_some())
    {
        return Ok(file.clone());
    }
    match workspace.find_change(what) {
        Ok(change) => Ok(ChangeSelection::Change(change)),
        Err(IdError::Unknown { .. }) => Ok(file?),
        Err(error) => Err(error.into()),
    }
}

/// Finds a session by its short name, its id or the beginning of one.
pub(crate) fn find_session(workspace: &Workspace, typed: &str) -> anyhow::Result<SessionId> {
    match workspace.find_session(typed) {
        // The session has done nothing here, but in another workspace.
        Err(IdError::Unknown { .. }) if is_known_elsewhere(&SessionId(typed.to_owned()))? => Ok(SessionId(typed.to_owned())),
        Err(error @ IdError::Unknown { .. }) => Err(anyhow::anyhow!("{error}\nhint: `surehand sessions` lists them")),
        found => Ok(found?),
    }
}

fn is_known_elsewhere(session: &SessionId) -> anyhow::Result<bool> {
    Ok(SessionRoots::of(&user_dirs::state_home()?, session).home.is_some())
}

fn kill_probe() -> Option<CommitProbe> {
    // The tests run debug builds. A release build must not obey this.
    if !cfg!(debug_assertions) {
        return None;
    }
    let after: usize = std::env::var(KILL_AFTER).ok()?.parse().ok()?;
    Some(Arc::new(move |number, _| {
        if number == after {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
        ProbeVerdict::GoOn
    }))
}

#[cfg(test)]
mod tests {
    use std::io;

    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn where_nothing_may_be_written_there_is_a_way_out() {
        let message = |kind: ErrorKind| {
            let (path, error) = (PathBuf::from("/p/.git/surehand"), io::Error::from(kind));
            format!("{:#}", with_hint(OpenError::State(StateDirError::Unusable { path, error })))
        };
        assert_snapshot!(message(ErrorKind::PermissionDenied), @"
        /p/.git/surehand: cannot be created or used: no permission to write there (permission denied)
        hint: Surehand keeps its state there; make it writable for your user only, or set SUREHAND_STATE_DIR to a directory that is
        ");
        assert_snapshot!(message(ErrorKind::ReadOnlyFilesystem), @"
        /p/.git/surehand: cannot be created or used: the file system is read-only (read-only filesystem or storage medium)
        hint: Surehand keeps its state there; make it writable for your user only, or set SUREHAND_STATE_DIR to a directory that is
        ");
        assert_snapshot!(message(ErrorKind::StorageFull), @"/p/.git/surehand: cannot use the state directory: no storage space");
    }
}
