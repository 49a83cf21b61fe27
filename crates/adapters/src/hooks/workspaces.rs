//! The workspaces of a session: its home, and those of other files that it uses, opened when needed. A file belongs to
//! the work tree nearest above it, whatever working directory the client reports.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use surehand_engine::{
    Edit, Session, SessionId, ShellCommand, StateHome, Workspace, core::shell::mentions, find_root, work_tree_of,
};

use super::event::absolute_path;
use crate::session_roots::SessionRoots;

/// The environment of a hook.
pub struct HookEnvironment<'a> {
    /// The directories in which state may be kept.
    pub state: StateHome,
    /// The project of the session, if the client names one.
    pub project: Option<PathBuf>,
    /// Opens the workspace with this root, or returns why it cannot.
    pub open: &'a dyn Fn(&Path) -> Result<OpenedWorkspace, String>,
}

/// A workspace that was opened.
#[derive(Debug, Clone)]
pub struct OpenedWorkspace {
    /// The workspace, ready for sessions.
    pub workspace: Arc<Workspace>,
    /// The error if its settings could not be read, in which case the defaults apply.
    pub trouble: Option<String>,
}

impl From<Arc<Workspace>> for OpenedWorkspace {
    fn from(workspace: Arc<Workspace>) -> Self {
        Self { workspace, trouble: None }
    }
}

pub(super) struct SessionWorkspaces<'a> {
    environment: &'a HookEnvironment<'a>,
    session: SessionId,
    home: Session,
    others: Vec<Session>,
    /// The work trees of the directories that were looked up so far.
    trees: HashMap<PathBuf, Option<PathBuf>>,
    /// Why files are not guarded properly.
    pub troubles: Vec<String>,
}

impl<'a> SessionWorkspaces<'a> {
    /// Opens the home of a session that works in this directory now.
    pub(super) fn open(environment: &'a HookEnvironment<'a>, session: SessionId, directory: &str) -> Result<Self, String> {
        let known = SessionRoots::of(&environment.state, &session);
        let root = home_root(environment, known.home.as_deref(), Path::new(directory))?;
        if known.home.as_deref() != Some(&root) {
            SessionRoots::change(&environment.state, &session, |roots| roots.home = Some(root.clone()));
        }
        let mut troubles = Vec::new();
        let home = open_session(environment, &session, &root, &mut troubles)?;
        Ok(Self { environment, session, home, others: Vec::new(), trees: HashMap::new(), troubles })
    }

    pub(super) fn home(&mut self) -> &mut Session {
        &mut self.home
    }

    /// The session in the workspace of a file; `None` if the file is in no work tree and not below the home.
    pub(super) fn session_for(&mut self, path: &str) -> Option<&mut Session> {
        let path_of_tree = || work_tree_of(Path::new(path), &self.environment.state);
        let directory = Path::new(path).parent()?.to_owned();
        let tree = self.trees.entry(directory).or_insert_with(path_of_tree).clone();
        let home = self.home.workspace().path();
        match tree {
            Some(tree) if tree != home => self.open_other(&tree),
            None if !path_is_below(path, home) => None,
            Some(_) | None => Some(&mut self.home),
        }
    }

    /// The session in the workspace of an edit's first file.
    pub(super) fn session_of(&mut self, edit: &Edit) -> Option<&mut Session> {
        self.session_for(edit.paths().first()?)
    }

    /// The name of the workspace of a file, relative to the home; `None` for the home.
    pub(super) fn name_for(&mut self, path: &str) -> Option<String> {
        let home = self.home.workspace().path().to_owned();
        name_from(&home, self.session_for(path)?)
    }

    /// The session whose instructions apply to a file: those of the home apply to everything below it.
    pub(super) fn session_with_instructions(&mut self, path: &str) -> Option<&mut Session> {
        if path_is_below(path, self.home.workspace().path()) { Some(&mut self.home) } else { self.session_for(path) }
    }

    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Session> {
        for root in SessionRoots::of(&self.environment.state, &self.session).others {
            // A removed workspace has no views.
            if root.is_dir() {
                self.open_other(&root);
            }
        }
        self.opened()
    }

    /// Opens the workspaces that a command may touch: all workspaces of the session, that of its directory, and those
    /// of the paths that it names.
    pub(super) fn of_command(&mut self, command: &ShellCommand<'_>) -> impl Iterator<Item = &mut Session> {
        const MOST_BASES: usize = 6;
        const MOST_NAMES: usize = 100;
        let mentioned = mentions::in_command(command.line);
        let bases = [".".to_owned()].into_iter().chain(mentioned.directories).take(MOST_BASES);
        let bases: Vec<String> = bases.map(|base| absolute_path(command.directory, &base)).collect();
        let home = self.home.workspace().path();
        let printed = mentions::in_output(command.output).into_iter().take(MOST_NAMES);
        // A path that is only printed does not open a workspace outside of the home.
        let printed = printed.filter(|name| !Path::new(name).is_absolute() || Path::new(name).starts_with(home));
        let names: Vec<String> = mentioned.paths.into_iter().take(MOST_NAMES).chain(printed).collect();
        let named = bases.iter().flat_map(|base| names.iter().map(move |name| absolute_path(base, name)));
        let inside = bases.iter().filter(|base| Path::new(base).is_dir()).map(|base| format!("{base}/any file"));
        for path in inside.chain(named.filter(|path| Path::new(path).is_file())) {
            let _ = self.session_for(&path);
        }
        self.all()
    }

    pub(super) fn opened(&mut self) -> impl Iterator<Item = &mut Session> {
        [&mut self.home].into_iter().chain(&mut self.others)
    }

    /// The root of the worktree of a file, if it is another one of the same repository; returned once per worktree.
    pub(super) fn enters_another_worktree(&mut self, path: &str) -> Option<PathBuf> {
        let repository = |session: &Session| session.workspace().state_report().paths.map(|paths| paths.repository);
        let home = (self.home.workspace().path().to_owned(), repository(&self.home));
        let session = self.session_for(path)?;
        let root = session.workspace().path().to_owned();
        if root == home.0 || home.1.is_none() || repository(session) != home.1 {
            return None;
        }
        let warning = format!("worktree {}", root.display());
        SessionRoots::change(&self.environment.state, &self.session, |roots| roots.show_once(&warning)).then_some(root)
    }

    pub(super) fn close(self) {
        for session in [self.home].into_iter().chain(self.others) {
            let workspace = session.workspace().clone();
            drop(session);
            workspace.close_quickly();
        }
    }

    fn open_other(&mut self, root: &Path) -> Option<&mut Session> {
        if let Some(index) = self.others.iter().position(|other| other.workspace().path() == root) {
            return self.others.get_mut(index);
        }
        match open_session(self.environment, &self.session, root, &mut self.troubles) {
            Ok(session) => {
                if !SessionRoots::of(&self.environment.state, &self.session).others.iter().any(|other| other == root) {
                    SessionRoots::change(&self.environment.state, &self.session, |roots| roots.add(root));
                }
                self.others.push(session);
                self.others.last_mut()
            }
            Err(why) => {
                self.troubles.push(format!("cannot guard the files in {}: {why}", root.display()));
                None
            }
        }
    }
}

/// The name of a workspace, relative to the home; `None` for the home.
pub(super) fn name_from(home: &Path, session: &Session) -> Option<String> {
    let root = session.workspace().path();
    let seen_from_home = root.strip_prefix(home).unwrap_or(root);
    (root != home).then(|| seen_from_home.display().to_string())
}

fn open_session(
    environment: &HookEnvironment<'_>,
    session: &SessionId,
    root: &Path,
    troubles: &mut Vec<String>,
) -> Result<Session, String> {
    let OpenedWorkspace { workspace, trouble } = (environment.open)(root)?;
    troubles.extend(trouble);
    Ok(Session::continued(workspace, session.clone()))
}

/// The root of the home: that of the project that the client names, or else the recorded home, or else that of the
/// working directory.
fn home_root(environment: &HookEnvironment<'_>, known: Option<&Path>, directory: &Path) -> Result<PathBuf, String> {
    let named = environment.project.as_deref().into_iter().chain(known).filter(|dir| dir.is_dir());
    let mut roots = named.filter_map(|dir| find_root(dir, &environment.state).ok());
    match roots.next() {
        Some(root) => Ok(root),
        None => find_root(directory, &environment.state).map_err(|error| error.to_string()),
    }
}

/// Whether a path is below a directory, directly or through a symbolic link.
fn path_is_below(path: &str, directory: &Path) -> bool {
    let path = Path::new(path);
    let settled = || path.parent()?.ancestors().find_map(|dir| dir.canonicalize().ok());
    path.starts_with(directory) || settled().is_some_and(|dir| dir.starts_with(directory))
}
