//! The known files of a repository, and the ones among them that matter most: a repository may have a hundred thousand
//! files, and a prompt has room for a few lines.

use std::{cmp::Ordering, ops::Deref, sync::OnceLock};

use crate::repo_state::{FileState, FileStatus};

/// The files that were touched, by path, and the number of all other files.
#[derive(Debug, Default)]
pub struct FileList {
    touched: Vec<FileState>,
    untouched: Vec<(String, usize)>,
    few_untouched: Vec<FileState>,
    /// Computed on demand, because an unchanged list is shown again and again.
    overview: OnceLock<Overview>,
}

/// A summary of the list in a few lines.
#[derive(Debug)]
pub(crate) struct Overview {
    /// The number of files, deleted ones included.
    pub total: usize,
    pub deleted: usize,
    pub changed_outside: usize,
    /// The files that matter most: changed from outside, then most recently modified, then untouched.
    pub first: Vec<FileState>,
    /// The number of files directly in each directory, by path with a trailing slash; the root's path is empty.
    pub directories: Vec<(String, usize)>,
}

impl FileList {
    /// A list of touched files, sorted by path. `untouched` counts the other files in each directory, by path with a
    /// trailing slash; `few_untouched` are these files themselves, if there are few.
    pub fn new(touched: Vec<FileState>, untouched: Vec<(String, usize)>, few_untouched: Vec<FileState>) -> Self {
        Self { touched, untouched, few_untouched, overview: OnceLock::new() }
    }

    /// The number of untouched files in each directory.
    pub fn untouched(&self) -> &[(String, usize)] {
        &self.untouched
    }

    pub(crate) fn overview(&self) -> &Overview {
        self.overview.get_or_init(|| Overview::of(self))
    }
}

/// Dereferences to the files that were touched.
impl Deref for FileList {
    type Target = [FileState];

    fn deref(&self) -> &[FileState] {
        &self.touched
    }
}

impl From<Vec<FileState>> for FileList {
    fn from(touched: Vec<FileState>) -> Self {
        Self::new(touched, Vec::new(), Vec::new())
    }
}

impl PartialEq for FileList {
    fn eq(&self, other: &Self) -> bool {
        (&self.touched, &self.untouched, &self.few_untouched) == (&other.touched, &other.untouched, &other.few_untouched)
    }
}

impl Eq for FileList {}

impl Overview {
    /// No caller has room for more lines.
    const MOST_LINES: usize = 64;

    fn of(list: &FileList) -> Self {
        let order = |(a, is_touched_a): &(&FileState, bool), (b, is_touched_b): &(&FileState, bool)| {
            let key = |file: &FileState, is_touched: bool| (!file.changed_outside, !is_touched, std::cmp::Reverse(file.modified));
            key(a, *is_touched_a).cmp(&key(b, *is_touched_b)).then_with(|| a.path.cmp(&b.path))
        };
        let (mut changed_outside, mut deleted) = (0, 0);
        let touched = list.touched.iter().inspect(|file| {
            changed_outside += usize::from(file.changed_outside);
            deleted += usize::from(file.status == FileStatus::Deleted);
        });
        let all = touched.map(|file| (file, true)).chain(list.few_untouched.iter().map(|file| (file, false)));
        let first = first(all, Self::MOST_LINES, order).into_iter().map(|(file, _)| file.clone()).collect();
        let untouched = list.untouched.iter().filter(|(_, files)| *files > 0);
        let total = list.touched.len() + untouched.clone().map(|(_, files)| files).sum::<usize>();
        let counted = untouched.map(|(path, files)| (path.as_str(), *files));
        let directories = together(directories(&list.touched).into_iter().chain(counted).collect());
        let directories = directories.into_iter().map(|(path, files)| (path.to_owned(), files)).collect();
        Self { total, deleted, changed_outside, first, directories }
    }
}

/// The directory of a file with a trailing slash; empty for the root.
pub(crate) fn directory(file: &FileState) -> &str {
    let path = file.path.as_str();
    path.rfind('/').map_or("", |slash| &path[..=slash])
}

/// The number of files in each directory. Files are sorted, so those of one directory are mostly adjacent.
fn directories(files: &[FileState]) -> Vec<(&str, usize)> {
    let mut directories: Vec<(&str, usize)> = Vec::new();
    for file in files {
        match directories.last_mut() {
            Some((path, files)) if is_in(file, path) => *files += 1,
            _ => directories.push((directory(file), 1)),
        }
    }
    directories
}

fn is_in(file: &FileState, directory: &str) -> bool {
    file.path.as_str().strip_prefix(directory).is_some_and(|name| !name.as_bytes().contains(&b'/'))
}

/// Merges entries for the same directory, and sorts by path.
fn together(mut directories: Vec<(&str, usize)>) -> Vec<(&str, usize)> {
    directories.sort_by_key(|(path, _)| *path);
    directories.dedup_by(|(next, more), (path, files)| {
        let is_same = next == path;
        *files += if is_same { *more } else { 0 };
        is_same
    });
    directories
}

/// The first items in an order, without sorting all of them.
pub(crate) fn first<T>(items: impl Iterator<Item = T>, most: usize, order: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    let mut kept: Vec<T> = Vec::with_capacity(2 * most);
    let mut is_full = false;
    for item in items {
        if is_full && order(&item, &kept[most - 1]) == Ordering::Greater {
            continue;
        }
        kept.push(item);
        if kept.len() == 2 * most {
            kept.select_nth_unstable_by(most - 1, &order);
            kept.truncate(most);
            is_full = true;
        }
    }
    kept.sort_by(order);
    kept.truncate(most);
    kept
}
