//! The state of a workspace at a checkpoint: the files of its commit, overridden by the files that the checkpoint
//! lists.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use surehand_core::{ContentHash, RelPath};
use surehand_store::{Checkpoint, FileContent, FileState};

use crate::{
    checkpoint::usual_mode,
    git::{ObjectId, Objects, TreeEntry, files_of, tree_of},
    workspace::Workspace,
};

/// The state of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathState {
    Nothing,
    File { content: ContentSource, mode: Option<u32> },
    Link { target: String },
    Directory { mode: u32 },
    NotKept,
}

/// The place where the content of a file is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ContentSource {
    Version(ContentHash),
    Blob(ObjectId),
}

/// The maximum size of a blob that is read from git.
pub(crate) const MOST_OF_BLOB: usize = 256 << 20;

impl ContentSource {
    /// The bytes. The error says why they are not available.
    pub(super) fn load(&self, workspace: &Workspace, path: &RelPath) -> Result<Vec<u8>, String> {
        match self {
            ContentSource::Version(version) => {
                let content = workspace.content_at(path, version).map(|content| content.bytes().to_vec());
                content.ok_or_else(|| format!("version {} is no longer kept", version.short()))
            }
            ContentSource::Blob(id) => {
                let git = workspace.git_dirs().ok_or("there is no git repository any more")?;
                match Objects::of(&git.common).blob(id, MOST_OF_BLOB) {
                    Ok(Some(content)) => Ok(content),
                    Ok(None) => Err(format!("git does not have blob {id} any more")),
                    Err(error) => Err(error.to_string()),
                }
            }
        }
    }
}

/// Whether both have the same bytes.
pub(super) fn is_same_content(workspace: &Workspace, path: &RelPath, one: &ContentSource, other: &ContentSource) -> bool {
    match (one, other) {
        (ContentSource::Version(one), ContentSource::Version(other)) => one == other,
        (ContentSource::Blob(one), ContentSource::Blob(other)) => one == other,
        (ContentSource::Version(version), blob) | (blob, ContentSource::Version(version)) => {
            blob.load(workspace, path).is_ok_and(|content| ContentHash::of(&content) == *version)
        }
    }
}

/// The state of a workspace at a checkpoint.
pub(super) struct CheckpointTree<'a> {
    listed: HashMap<&'a RelPath, &'a FileState>,
    committed: BTreeMap<RelPath, TreeEntry>,
    objects: Option<Objects>,
    umask: u32,
}

impl<'a> CheckpointTree<'a> {
    /// Without a checkpoint, nothing is listed. The error says why git cannot read the commit.
    pub(super) fn of(workspace: &Workspace, checkpoint: Option<&'a Checkpoint>) -> Result<Self, String> {
        let listed = checkpoint.iter().flat_map(|checkpoint| &checkpoint.files).map(|file| (&file.path, &file.state)).collect();
        let umask = workspace.copy.umask();
        let mut checkpoint_tree = Self { listed, committed: BTreeMap::new(), objects: None, umask };
        if let Some(commit) = checkpoint.and_then(|checkpoint| checkpoint.info.commit.as_ref()) {
            let git = workspace.git_dirs().ok_or("there is no git repository any more")?;
            let objects = Objects::of(&git.common);
            let commit = ObjectId::from_hex(commit).ok_or("this is not a commit")?;
            let tree = tree_of(&objects, &commit).map_err(|error| error.to_string())?;
            let files = files_of(&objects, &tree).map_err(|error| error.to_string())?;
            let below = workspace.copy.below.as_ref();
            checkpoint_tree.committed =
                files.into_iter().filter_map(|(path, entry)| Some((in_root(&path, below)?, entry))).collect();
            checkpoint_tree.objects = Some(objects);
        }
        Ok(checkpoint_tree)
    }

    /// Whether the checkpoint itself lists the path.
    pub(super) fn lists(&self, path: &RelPath) -> bool {
        self.listed.contains_key(path)
    }

    pub(super) fn at(&self, path: &RelPath) -> PathState {
        match self.listed.get(path) {
            Some(FileState::File { content: FileContent::Version(version), mode, .. }) => {
                PathState::File { content: ContentSource::Version(*version), mode: Some(*mode) }
            }
            Some(FileState::File { content: FileContent::Blob(id), mode, .. }) => match ObjectId::from_hex(id) {
                Some(id) => PathState::File { content: ContentSource::Blob(id), mode: Some(*mode) },
                None => PathState::NotKept,
            },
            Some(FileState::Link { target }) => PathState::Link { target: target.clone() },
            Some(FileState::Directory { mode }) => PathState::Directory { mode: *mode },
            Some(FileState::Absent) => PathState::Nothing,
            Some(FileState::NotKept) => PathState::NotKept,
            None => self.committed_at(path),
        }
    }

    /// The state of a path in the commit.
    pub(super) fn committed_at(&self, path: &RelPath) -> PathState {
        self.committed.get(path).map_or(PathState::Nothing, |entry| self.of_commit(entry))
    }

    fn of_commit(&self, entry: &TreeEntry) -> PathState {
        match entry.mode {
            0o120_000 => {
                let target = self.objects.as_ref().and_then(|objects| objects.blob(&entry.id, 1 << 16).ok().flatten());
                match target.and_then(|target| String::from_utf8(target).ok()) {
                    Some(target) => PathState::Link { target },
                    None => PathState::NotKept,
                }
            }
            // A submodule is a repository of its own.
            0o160_000 => PathState::NotKept,
            mode => {
                let mode = usual_mode(mode & 0o100 != 0, self.umask);
                PathState::File { content: ContentSource::Blob(entry.id), mode: Some(mode) }
            }
        }
    }

    /// Files that differ between the two commits.
    pub(super) fn committed_otherwise(&self, other: &Self) -> BTreeSet<RelPath> {
        let paths = self.committed.keys().chain(other.committed.keys());
        paths.filter(|path| self.committed.get(*path) != other.committed.get(*path)).cloned().collect()
    }
}

/// Converts a path of the work tree to one of the root. Names that git itself reserves are excluded, because a crafted
/// commit can contain them.
fn in_root(path: &[u8], below: Option<&RelPath>) -> Option<RelPath> {
    let path = str::from_utf8(path).ok()?;
    let is_strange = |part: &str| matches!(part, "" | "." | "..") || crate::disk::export_dir::is_internal(part);
    if path.split('/').any(is_strange) {
        return None;
    }
    let path = RelPath::new(path).ok()?;
    match below {
        None => Some(path),
        Some(below) => path.relative_to(below),
    }
}
