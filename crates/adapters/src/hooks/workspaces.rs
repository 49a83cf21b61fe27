//! The workspaces in which a client's session works: its home, and lazily those of other files that it meets. A file belongs to the work
//! tree nearest above it, whatever directory the client reports.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use surehand_engine::{Session, SessionId, StateHome, Workspace, find_root, work_tree_of};

use crate::session_roots::SessionRoots;

/// What a hook must know of the machine that it runs on.
pub struct HookEnvironment<'a> {
    /// The directories of the user.
    pub state: StateHome,
    /// The project of the session, if the client names one.
    pub project: Option<PathBuf>,
    /// Opens the workspace with this root, or says why that cannot be done.
    pub open: &'a dyn Fn(&Path) -> Result<OpenedWorkspace, String>,
}

/// A workspace that was opened.
#[derive(Debug, Clone)]
pub struct OpenedWorkspace {
    /// It.
    pub workspace: Arc<Workspace>,
    /// What is wrong with its settings, so that they are not what somebody has set.
    pub trouble: Option<String>,
}

impl From<Arc<Workspace>> for OpenedWorkspace {
    fn from(workspace: Arc<Workspace>) -> Self {
        Self { workspace, trouble: None }
    }
}

pub(super) struct SessionWorkspaces<'a> {
    around: &'a HookEnvironment<'a>,
    session: SessionId,
    home: Session,
    others: Vec<Session>,
    /// The work trees of the directories that were asked about.
    trees: HashMap<PathBuf, Option<PathBuf>>,
    /// What does not guard as it should, and why.
    pub troubles: Vec<String>,
}

impl<'a> SessionWorkspaces<'a> {
    /// Opens the home of a session that works in this directory now.
    pub(super) fn open(around: &'a HookEnvironment<'a>, session: SessionId, directory: &str) -> Result<Self, String> {
        let known = SessionRoots::of(&around.state, &session);
        let root = home_root(around, known.home.as_deref(), Path::new(directory))?;
        if known.home.as_deref() != Some(&root) {
            SessionRoots::change(&around.state, &session, |places| places.home = Some(root.clone()));
        }
        let mut troubles = Vec::new();
        let home = open_session(around, &session, &root, &mut troubles)?;
        Ok(Self { around, session, home, others: Vec::new(), trees: HashMap::new(), troubles })
    }

    pub(super) fn home(&mut self) -> &mut Session {
        &mut self.home
    }

    /// In the workspace of a file; nothing if the file is in no work tree and not below the home.
    pub(super) fn of(&mut self, path: &str) -> Option<&mut Session> {
        let path_of_tree = || work_tree_of(Path::new(path), &self.around.state);
        let directory = Path::new(path).parent()?.to_owned();
        let tree = self.trees.entry(directory).or_insert_with(path_of_tree).clone();
        let home = self.home.workspace().path();
        match tree {
            Some(tree) if tree != home => self.other(&tree),
            None if !path_is_below(path, home) => None,
            Some(_) | None => Some(&mut self.home),
        }
    }

    /// How the workspace of a file is called, seen from the home; nothing for the home itself.
    pub(super) fn name_of(&mut self, path: &str) -> Option<String> {
        let home = self.home.workspace().path().to_owned();
        name_from(&home, self.of(path)?)
    }

    /// In the workspace whose instructions are for work on a file: those of the home are for everything below it.
    pub(super) fn instructing(&mut self, path: &str) -> Option<&mut Session> {
        if path_is_below(path, self.home.workspace().path()) { Some(&mut self.home) } else { self.of(path) }
    }

    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Session> {
        for root in SessionRoots::of(&self.around.state, &self.session).others {
            // One that is gone has nothing to forget.
            if root.is_dir() {
                self.other(&root);
            }
        }
        self.opened()
    }

    pub(super) fn opened(&mut self) -> impl Iterator<Item = &mut Session> {
        [&mut self.home].into_iter().chain(&mut self.others)
    }

    /// Whether a file is in another work tree of the repository that the home is of; `true` once for each.
    pub(super) fn enters_another_worktree(&mut self, path: &str) -> Option<PathBuf> {
        let repository = |session: &Session| session.workspace().state_report().paths.map(|paths| paths.repository);
        let home = (self.home.workspace().path().to_owned(), repository(&self.home));
        let session = self.of(path)?;
        let root = session.workspace().path().to_owned();
        if root == home.0 || home.1.is_none() || repository(session) != home.1 {
            return None;
        }
        let what = format!("worktree {}", root.display());
        SessionRoots::change(&self.around.state, &self.session, |places| places.tell(&what)).then_some(root)
    }

    pub(super) fn leave(self) {
        for session in [self.home].into_iter().chain(self.others) {
            let workspace = session.workspace().clone();
            drop(session);
            workspace.close_quickly();
        }
    }

    fn other(&mut self, root: &Path) -> Option<&mut Session> {
        if let Some(index) = self.others.iter().position(|other| other.workspace().path() == root) {
            return self.others.get_mut(index);
        }
        match open_session(self.around, &self.session, root, &mut self.troubles) {
            Ok(session) => {
                if !SessionRoots::of(&self.around.state, &self.session).others.iter().any(|other| other == root) {
                    SessionRoots::change(&self.around.state, &self.session, |places| places.add(root));
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

/// How the workspace of a session is called, seen from the home.
pub(super) fn name_from(home: &Path, session: &Session) -> Option<String> {
    let root = session.workspace().path();
    let seen_from_home = root.strip_prefix(home).unwrap_or(root);
    (root != home).then(|| seen_from_home.display().to_string())
}

fn open_session(
    around: &HookEnvironment<'_>,
    session: &SessionId,
    root: &Path,
    troubles: &mut Vec<String>,
) -> Result<Session, String> {
    let OpenedWorkspace { workspace, trouble } = (around.open)(root)?;
    troubles.extend(trouble);
    Ok(Session::continued(workspace, session.clone()))
}

/// The root of the home: of the project that the client names, else of where the session began, else of where it is now.
fn home_root(around: &HookEnvironment<'_>, known: Option<&Path>, directory: &Path) -> Result<PathBuf, String> {
    let named = around.project.as_deref().into_iter().chain(known).filter(|dir| dir.is_dir());
    let mut roots = named.filter_map(|dir| find_root(dir, &around.state).ok());
    match roots.next() {
        Some(root) => Ok(root),
        None => find_root(directory, &around.state).map_err(|error| error.to_string()),
    }
}

/// Whether a path is below a directory, also where it is spelled through a link.
fn path_is_below(path: &str, directory: &Path) -> bool {
    let path = Path::new(path);
    let settled = || path.parent()?.ancestors().find_map(|dir| dir.canonicalize().ok());
    path.starts_with(directory) || settled().is_some_and(|dir| dir.starts_with(directory))
}
