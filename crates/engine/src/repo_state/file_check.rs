//! Checks whether known files are unchanged.

use surehand_core::{ContentHash, RelPath, Stamp};

use crate::disk::{
    read_file::{FoundPath, find, read_whole, stat_of_file},
    walk::threads,
    working_copy::WorkingCopy,
};

/// Calls `check` for many items, in parallel if there are enough of them.
pub(super) fn in_parallel<T: Sync, R: Send>(items: &[T], check: impl Fn(&T) -> R + Sync) -> Vec<R> {
    const FEW: usize = 500;
    let threads = if items.len() < FEW { 1 } else { threads() };
    let part = items.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let parts: Vec<_> = items.chunks(part).skip(1).map(|part| scope.spawn(|| part.iter().map(&check).collect())).collect();
        let mut found: Vec<R> = items.iter().take(part).map(&check).collect();
        for part in parts {
            found.extend(part.join().unwrap_or_else(|panic| -> Vec<R> { std::panic::resume_unwind(panic) }));
        }
        found
    })
}

/// The current version and stamp of a file, which is read only if its stamp has changed. `None` if the file is gone.
pub(crate) fn check_file(
    copy: &WorkingCopy,
    path: &RelPath,
    known: Option<(ContentHash, &Stamp)>,
) -> Option<(ContentHash, Stamp)> {
    if let (Some((hash, known)), Some(stat)) = (known.filter(|(_, known)| !known.is_racy()), stat_of_file(&copy.tree, path)) {
        let stamp = copy.clock().stamp(&stat);
        if known.agrees_with(&stamp) {
            return Some((hash, stamp));
        }
    }
    let Ok(FoundPath::File { mut file, .. }) = find(&copy.tree, path) else { return None };
    let now = read_whole(path, &mut file, u64::MAX, copy.clock()).ok()?;
    Some((ContentHash::of(&now.bytes), now.stamp))
}
