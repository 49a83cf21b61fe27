//! The work that a checkpoint keeps: the differences between its files and the commit.

use surehand_core::{Content, RelPath, file_diff::FileDiff};
use surehand_store::CheckpointId;

use super::{
    RestoreError,
    checkpoint_tree::{CheckpointTree, PathState},
};
use crate::workspace::Workspace;

/// Up to this many bytes of files are compared; the files after that are only named.
const MOST_BYTES: usize = 16 << 20;

/// A file that differs from the commit.
#[derive(Debug)]
#[non_exhaustive]
pub struct KeptFile {
    /// Path relative to the workspace root.
    pub path: RelPath,
    /// From the commit to the checkpoint; `None` if the files are too large to compare, or cannot be read.
    pub diff: Option<FileDiff>,
}

impl Workspace {
    /// The files of a checkpoint whose content differs from the commit, sorted by path.
    pub fn kept_work(&self, id: &CheckpointId) -> Result<Vec<KeptFile>, RestoreError> {
        let checkpoint = self.ask(|store| store.checkpoint(id))?;
        let checkpoint = checkpoint.ok_or_else(|| RestoreError::Gone(format!("checkpoint {id}")))?;
        let tree = CheckpointTree::of(self, Some(&checkpoint)).map_err(RestoreError::Git)?;
        let mut compared = 0;
        let mut kept = Vec::new();
        for file in &checkpoint.files {
            let path = &file.path;
            let states = [tree.committed_at(path), tree.at(path)];
            if !states.iter().any(|state| matches!(state, PathState::File { .. })) {
                continue;
            }
            if compared > MOST_BYTES {
                kept.push(KeptFile { path: path.clone(), diff: None });
                continue;
            }
            let [before, after] = states.map(|state| self.content_of(path, &state));
            let (Ok(before), Ok(after)) = (before, after) else {
                kept.push(KeptFile { path: path.clone(), diff: None });
                continue;
            };
            compared += [&before, &after].into_iter().flatten().map(|content| content.bytes().len()).sum::<usize>();
            if before != after {
                let diff = FileDiff::between((path, before.as_ref()), (path, after.as_ref()));
                kept.push(KeptFile { path: path.clone(), diff: Some(diff) });
            }
        }
        Ok(kept)
    }

    /// The content of a file; `None` if there is no file.
    fn content_of(&self, path: &RelPath, state: &PathState) -> Result<Option<Content>, String> {
        match state {
            PathState::File { content, .. } => content.load(self, path).map(|bytes| Some(Content::new(bytes))),
            PathState::NotKept => Err("its content was not kept".to_owned()),
            PathState::Nothing | PathState::Link { .. } | PathState::Directory { .. } => Ok(None),
        }
    }
}
