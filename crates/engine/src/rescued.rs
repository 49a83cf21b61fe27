//! Rescued files: bytes that other programs wrote into a file while a commit replaced it. A person lists them, compares
//! them with the current files, and applies or drops them. A dropped one stays in the store as long as any other
//! version.

use std::{io, path::PathBuf};

use surehand_core::{Content, ContentHash, Refusal, RelPath, file_diff::FileDiff};
use surehand_store::{Incident, IncidentId, IncidentKind, Millis, SessionId, SharedBytes, StoreError, StoreRecord};

use crate::{
    change_log::fresh_change,
    checkpoint::read_file,
    disk::{rescue::RESCUED, rescued_files},
    restore::Restored,
    session::Session,
    session_names::{IdError, IdKind, find_id},
    time::now,
    workspace::Workspace,
};

/// The bytes that another program wrote into a file while a commit replaced it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rescue {
    /// Its id, which people type.
    pub id: String,
    /// When it was rescued or, if it was dropped, when that was.
    pub at: Millis,
    /// The file that the program wrote to, if known.
    pub path: Option<RelPath>,
    /// The place of the bytes.
    pub place: RescuePlace,
}

/// The place of rescued bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RescuePlace {
    /// In a file of the state directory.
    File {
        /// Path of the file in the state directory.
        path: PathBuf,
        /// Size of the file in bytes.
        size: u64,
    },
    /// In the store, because it was applied or dropped.
    Store(ContentHash),
}

/// Why a rescued file could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RescueError {
    /// The file cannot be read or deleted.
    #[error("{id}: {error}")]
    Io {
        /// Id of the rescued file.
        id: String,
        /// The error of the system.
        error: io::Error,
    },
    /// Its bytes are no longer stored.
    #[error("{id}: it was dropped, and its content is no longer kept")]
    Gone {
        /// Id of the rescued file.
        id: String,
    },
    /// The target file is unknown.
    #[error("{id}: its file is not known")]
    NoPath {
        /// Id of the rescued file.
        id: String,
    },
    /// The bytes could not be stored.
    #[error("{id}: the store does not take its content, so it stays where it is")]
    NotKept {
        /// Id of the rescued file.
        id: String,
    },
    /// The path is invalid.
    #[error(transparent)]
    Path(Box<Refusal>),
    /// The store reported an error.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Workspace {
    /// The rescued files that were neither applied nor dropped, newest first.
    pub fn rescues(&self) -> Vec<Rescue> {
        let Some(state) = self.state().state_dir() else { return Vec::new() };
        let dir = state.checkout_path.join(RESCUED);
        let rescue = |entry: rescued_files::RescuedEntry| {
            let path = match entry.path {
                // It may belong to a part of the work tree outside this root.
                Some(path) => Some(self.copy.in_root(&path)?.into_owned()),
                None => None,
            };
            let id = ContentHash::of(format!("{} {}", entry.name, entry.at).as_bytes()).to_string()[..8].to_owned();
            Some(Rescue { id, at: entry.at, path, place: RescuePlace::File { path: dir.join(entry.name), size: entry.size } })
        };
        let mut rescues: Vec<Rescue> =
            rescued_files::list(&state.checkout).unwrap_or_default().into_iter().filter_map(rescue).collect();
        rescues.sort_by_key(|rescue| std::cmp::Reverse(rescue.at));
        rescues
    }

    /// The rescued file that a person means, including dropped ones.
    pub fn find_rescue(&self, typed: &str) -> Result<Rescue, IdError> {
        self.flush();
        let dropped = self.ask(|store| store.incidents(usize::MAX))?.into_iter().filter_map(dropped_rescue);
        let known = self.rescues().into_iter().chain(dropped);
        find_id(IdKind::Rescue, typed, known.map(|rescue| (rescue.id.clone(), rescue)))
    }

    /// Reads the rescued bytes, from their file or from the store.
    pub fn rescued_content(&self, rescue: &Rescue) -> Result<Vec<u8>, RescueError> {
        let id = || rescue.id.clone();
        match &rescue.place {
            RescuePlace::File { path, .. } => {
                let read = self.state().dir().and_then(|state| rescued_files::read(&state, &file_name(path)));
                read.map_err(|error| RescueError::Io { id: id(), error })
            }
            RescuePlace::Store(version) => {
                self.ask(|store| store.version(version))?.ok_or_else(|| RescueError::Gone { id: id() })
            }
        }
    }

    /// The diff from the current file to the rescued bytes.
    pub fn rescue_diff(&self, rescue: &Rescue) -> Result<FileDiff, RescueError> {
        let rescued = Content::new(self.rescued_content(rescue)?);
        let path = self.path_of_rescue(rescue);
        let current = read_file(self, &path, MOST_BYTES);
        let current = current.map_err(|error| RescueError::Io { id: rescue.id.clone(), error })?.map(Content::new);
        Ok(FileDiff::between((&path, current.as_ref()), (&path, Some(&rescued))))
    }

    /// The target file, or a name for it if it is unknown.
    fn path_of_rescue(&self, rescue: &Rescue) -> RelPath {
        let named = || match &rescue.place {
            RescuePlace::File { path, .. } => RelPath::new(&file_name(path)).ok(),
            RescuePlace::Store(_) => None,
        };
        rescue.path.clone().or_else(named).unwrap_or_else(|| RelPath::new("unknown").expect("a name"))
    }

    /// Drops a rescued file. Its bytes stay in the store, so it can still be shown and applied.
    pub fn drop_rescue(&self, rescue: &Rescue) -> Result<(), RescueError> {
        let version = self.keep_rescued(rescue)?;
        self.discard_rescue(rescue, version)
    }

    /// Deletes a rescued file whose bytes the store has, and logs it.
    fn discard_rescue(&self, rescue: &Rescue, version: ContentHash) -> Result<(), RescueError> {
        let RescuePlace::File { path, .. } = &rescue.place else { return Ok(()) };
        let kind = IncidentKind::RescueDropped { rescue: rescue.id.clone(), version };
        self.notice(rescue.path.clone(), SessionId(PERSON.to_owned()), kind);
        self.flush();
        let discarded = self.state().dir().and_then(|state| rescued_files::discard(&state, &file_name(path)));
        discarded.map_err(|error| RescueError::Io { id: rescue.id.clone(), error })
    }

    fn keep_rescued(&self, rescue: &Rescue) -> Result<ContentHash, RescueError> {
        if let RescuePlace::Store(version) = &rescue.place {
            return Ok(*version);
        }
        let content = self.rescued_content(rescue)?;
        let version = ContentHash::of(&content);
        self.record(StoreRecord::Kept { version, content: SharedBytes::new(content), at: now() });
        self.flush();
        match self.ask(|store| store.has_version(&version))? {
            true => Ok(version),
            false => Err(RescueError::NotKept { id: rescue.id.clone() }),
        }
    }

    pub(crate) fn notice(&self, path: Option<RelPath>, session: SessionId, kind: IncidentKind) {
        let id = IncidentId(fresh_change().0);
        self.record(StoreRecord::Noticed(Incident { id, at: now(), session, path, kind }));
    }
}

/// A larger file is not compared.
const MOST_BYTES: u64 = 256 << 20;

/// The session of a person at the command line.
const PERSON: &str = "cli";

impl Session {
    /// Writes the rescued bytes to the target file, or to the given one. Its current content is kept for undo, and the
    /// rescued file is dropped.
    pub fn apply_rescue(&mut self, rescue: &Rescue, to: Option<&str>) -> Result<Restored, RescueError> {
        let path = match (to, &rescue.path) {
            (Some(to), _) => self.path_of(to).map_err(|refusal| RescueError::Path(Box::new(refusal)))?,
            (None, Some(path)) => path.clone(),
            (None, None) => return Err(RescueError::NoPath { id: rescue.id.clone() }),
        };
        let workspace = self.workspace().clone();
        let version = workspace.keep_rescued(rescue)?;
        let plan = self.plan_of_version(path, version);
        let restored = self.restore(&plan);
        if restored.failed.is_empty() {
            workspace.discard_rescue(rescue, version)?;
        }
        Ok(restored)
    }
}

fn dropped_rescue(incident: Incident) -> Option<Rescue> {
    let IncidentKind::RescueDropped { rescue, version } = incident.kind else { return None };
    Some(Rescue { id: rescue, at: incident.at, path: incident.path, place: RescuePlace::Store(version) })
}

fn file_name(path: &std::path::Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
