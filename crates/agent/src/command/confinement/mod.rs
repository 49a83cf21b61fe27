//! Confinement of a command that runs without a question. The kernel keeps the command and its child processes from
//! writing outside the workspace or into files of git and Surehand, from using a network, and from signalling other
//! processes. A thread of its own takes on the restrictions and then starts the shell, which inherits them. So they are
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

/// The support of this system for confinement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfinementSupport {
    /// Commands can be confined, except for these details.
    InForce {
        /// The details that the kernel is too old for, as phrases.
        not_covered: Vec<&'static str>,
    },
    /// Commands cannot be confined.
    Missing {
        /// The reason, for the user.
        why: String,
    },
}

/// The support of this system for confinement. It is probed once per process.
pub fn confinement_support() -> &'static ConfinementSupport {
    static SUPPORT: OnceLock<ConfinementSupport> = OnceLock::new();
    SUPPORT.get_or_init(|| {
        on_own_thread(system::try_out).unwrap_or_else(|error| ConfinementSupport::Missing { why: error.to_string() })
    })
}

pub(super) struct Confinement {
    restrictions: Restrictions,
    /// Holds temporary files of the command; removed with this value.
    scratch: TempDir,
}

impl Confinement {
    /// The confinement of a command in this workspace. It covers only entries that exist now: an entry created later in
    /// a directory with a protected entry, such as the root, cannot be written.
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

/// Runs a function on a thread that ends with it.
fn on_own_thread<T: Send>(act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let failed = |_| io::Error::other("the thread that starts confined commands failed");
    thread::scope(|scope| scope.spawn(act).join().unwrap_or_else(|panic| Err(failed(panic))))
}

/// A path of `commands.writable`, without links; `None` if it does not exist. A directory below the root is created
/// here, because a command cannot create it.
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

/// Grants rights to directories and files. A right to a directory applies to everything below it, without exceptions.
/// So a directory with something protected below it is not granted, but each of its other entries is.
struct Grants<'a> {
    protected: &'a [PathBuf],
    restrictions: &'a mut Restrictions,
}

impl Grants<'_> {
    /// Grants a path that contains no links.
    fn add(&mut self, place: &Path) -> io::Result<()> {
        if self.protected.iter().any(|path| place.starts_with(path)) {
            return Ok(());
        }
        self.add_entry(system::open(place)?, place)
    }

    fn add_entry(&mut self, entry: system::GrantedEntry, place: &Path) -> io::Result<()> {
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

    /// Whether an entry is a protected one under another name.
    fn is_protected_file(&self, entry: &system::GrantedEntry) -> bool {
        use std::os::unix::fs::MetadataExt;
        let is_same = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| (found.dev(), found.ino()) == entry.identity);
        self.protected.iter().any(is_same)
    }
}

/// Whether a name beside a protected entry is protected as well, in every spelling that a file system may treat as
/// equal.
fn is_protected_name(name: &str) -> bool {
    let name = name.to_lowercase();
    name == ".git" || name.starts_with(".surehand") || name == "surehand.toml"
}
