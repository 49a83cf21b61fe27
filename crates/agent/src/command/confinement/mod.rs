//! Confinement of a command that runs without a question. The kernel refuses what it, or anything that it starts, may
//! not do: write outside the workspace or into what belongs to git and to Surehand, use a network, signal other
//! processes. A thread of its own takes on the restrictions and then starts the shell, which inherits them: so they are
//! in force before the shell begins, and no other thread of this process has them.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "unsupported.rs"]
mod system;

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
    process::{Child, Command},
    sync::OnceLock,
    thread,
};

use surehand_engine::Workspace;
use tempfile::TempDir;

use self::system::Restrictions;

/// How far this system can confine a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfinementSupport {
    /// It can, but for these details.
    InForce {
        /// What the kernel is too old for, in words.
        not_covered: Vec<&'static str>,
    },
    /// It cannot.
    Missing {
        /// The reason.
        why: String,
    },
}

/// How far this system can confine a command. This is tried out once.
pub fn confinement_support() -> &'static ConfinementSupport {
    static SUPPORT: OnceLock<ConfinementSupport> = OnceLock::new();
    SUPPORT.get_or_init(|| {
        on_own_thread(system::try_out).unwrap_or_else(|error| ConfinementSupport::Missing { why: error.to_string() })
    })
}

/// What a confined command may do.
pub(super) struct Confinement {
    restrictions: Restrictions,
    /// For temporary files of the command; removed with this value.
    scratch: TempDir,
}

impl Confinement {
    /// The confinement of a command in this workspace. It covers what is there now: an entry that is created in a
    /// directory with a protected entry, as the root is, cannot be written.
    pub(super) fn of(workspace: &Workspace) -> io::Result<Self> {
        let commands = &workspace.config().commands;
        let scratch = tempfile::Builder::new().prefix("surehand-command-").tempdir()?;
        let mut restrictions = Restrictions::new(commands.network)?;
        let mut grants = Grants { protected: &workspace.protected_paths()?, restrictions: &mut restrictions };
        grants.add(&scratch.path().canonicalize()?)?;
        let also = commands.writable.iter().filter_map(|path| writable_path(workspace, path));
        for place in also.collect::<io::Result<Vec<PathBuf>>>()? {
            grants.add(&place)?;
        }
        grants.add(workspace.path())?;
        Ok(Self { restrictions, scratch })
    }

    pub(super) fn spawn(&self, shell: &mut Command) -> io::Result<Child> {
        for name in ["TMPDIR", "TMP", "TEMP"] {
            shell.env(name, self.scratch.path());
        }
        on_own_thread(|| {
            self.restrictions.apply()?;
            shell.spawn()
        })
    }
}

/// Runs something on a thread that ends with it.
fn on_own_thread<T: Send>(act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let failed = |_| io::Error::other("the thread that starts confined commands failed");
    thread::scope(|scope| scope.spawn(act).join().unwrap_or_else(|panic| Err(failed(panic))))
}

/// A path of `commands.writable`, without links; `None` if it is not there. A directory of the root is made: a command
/// cannot make it.
fn writable_path(workspace: &Workspace, setting: &str) -> Option<io::Result<PathBuf>> {
    let home = workspace.config().state.home.as_deref();
    let path = match setting.strip_prefix("~/") {
        Some(below) => home?.join(below),
        None => workspace.path().join(setting),
    };
    if Path::new(setting).components().all(|part| matches!(part, Component::Normal(_))) && !setting.starts_with("~/") {
        match fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Some(Err(error)),
            Ok(()) | Err(_) => {}
        }
        // A link could come from the repository.
        return (!path.is_symlink()).then_some(Ok(path));
    }
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        found => Some(found),
    }
}

/// Grants rights to directories and files. A right to a directory holds for all that is below it, and nothing can be
/// taken out again. So a directory with something protected below it is not granted, but each of its other entries is.
struct Grants<'a> {
    protected: &'a [PathBuf],
    restrictions: &'a mut Restrictions,
}

impl Grants<'_> {
    /// Grants a place that has no links on its way.
    fn add(&mut self, place: &Path) -> io::Result<()> {
        if self.protected.iter().any(|path| place.starts_with(path)) {
            return Ok(());
        }
        self.add_entry(system::open(place)?, place)
    }

    fn add_entry(&mut self, entry: system::Entry, place: &Path) -> io::Result<()> {
        if !entry.is_dir {
            return if entry.is_writable_file { self.restrictions.grant_file(&entry) } else { Ok(()) };
        }
        if !self.protected.iter().any(|path| path.starts_with(place)) {
            return self.restrictions.grant_dir(&entry);
        }
        for name in entry.names()? {
            let path = place.join(&name);
            if is_protected_name(&name.to_string_lossy()) || self.protected.contains(&path) {
                continue;
            }
            match entry.open(&name) {
                // It may be gone by now.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                below => {
                    let below = below?;
                    if !self.is_protected_file(&below) {
                        self.add_entry(below, &path)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether an entry is something protected under another name.
    fn is_protected_file(&self, entry: &system::Entry) -> bool {
        use std::os::unix::fs::MetadataExt;
        let is_same = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| (found.dev(), found.ino()) == entry.identity);
        self.protected.iter().any(is_same)
    }
}

/// Whether a name beside something protected is protected as well, in whatever spelling a file system may take for the
/// same.
fn is_protected_name(name: &str) -> bool {
    let name = name.to_lowercase();
    name == ".git" || name.starts_with(".surehand") || name == "surehand.toml"
}
