//! The answer to `list_files`: every file on a line of its own, or, where that is too much, directories with their counts. What
//! is not listed is counted.

use std::ops::Range;

use crate::{
    path::RelPath,
    render::{
        count,
        scope::{Area, IGNORED, LeftOut, Scope, name},
    },
};

/// What a listing shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// For the model.
    pub text: String,
    /// The files that are listed by name.
    pub files: Vec<RelPath>,
    /// The directories that are given as a count, each with a `/` at its end, and how many files are below.
    pub folded: Vec<(String, usize)>,
}

/// Writes the files at these paths, which are in order, on at most `limit` lines.
pub fn list(paths: &[RelPath], scope: Scope<'_>, limit: usize, left_out: &LeftOut) -> Listing {
    if paths.is_empty() {
        let text = format!("No files {scope}. {IGNORED}\n{}", left_out.notes());
        return Listing { text, files: Vec::new(), folded: Vec::new() };
    }
    let tree = Tree { paths, limit };
    let Folded { folders, files, hint } = tree.fold(tree.top(scope.area));
    let mut text = match scope.area {
        Area::File(_) => "1 file".to_owned(),
        Area::Workspace | Area::Dir(_) => format!("{} {scope}", count(paths.len(), "file")),
    };
    if files.len() < paths.len() {
        text.push_str(&format!("; {} listed by name, the others as counts: use path or glob to see them", files.len()));
    }
    text.push('\n');
    for folder in &folders {
        text.push_str(&format!("{}: {}\n", name(tree.name(folder)), count(folder.files.len(), "file")));
    }
    for file in &files {
        text.push_str(&name(paths[*file].as_str()));
        text.push('\n');
    }
    text.push_str(&hint);
    text.push_str(&left_out.notes());
    Listing {
        text,
        files: files.into_iter().map(|file| paths[file].clone()).collect(),
        folded: folders.iter().map(|folder| (tree.name(folder).to_owned(), folder.files.len())).collect(),
    }
}

/// Paths in order: what is below a directory stands together.
struct Tree<'a> {
    paths: &'a [RelPath],
    limit: usize,
}

/// A directory with all files below it.
#[derive(Clone)]
struct Folder {
    /// How many bytes of their paths lead to it, the last `/` included.
    prefix: usize,
    files: Range<usize>,
}

/// The lines of a listing.
struct Folded {
    folders: Vec<Folder>,
    files: Vec<usize>,
    hint: String,
}

impl Tree<'_> {
    fn top(&self, area: Area<'_>) -> Folder {
        let prefix = match area {
            Area::Workspace => 0,
            Area::Dir(dir) => dir.as_str().len() + 1,
            Area::File(file) => file.as_str().len() - file.name().len(),
        };
        Folder { prefix, files: 0..self.paths.len() }
    }

    fn name(&self, folder: &Folder) -> &str {
        &self.paths[folder.files.start].as_str()[..folder.prefix]
    }

    /// The directories and the files directly in a directory.
    fn open(&self, folder: &Folder) -> (Vec<Folder>, Vec<usize>) {
        let (mut folders, mut files): (Vec<Folder>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut at = folder.files.start;
        while at < folder.files.end {
            let path = self.paths[at].as_str();
            let Some(slash) = path[folder.prefix..].find('/') else {
                files.push(at);
                at += 1;
                continue;
            };
            let prefix = folder.prefix + slash + 1;
            let inside = self.paths[at..folder.files.end].partition_point(|other| other.as_str().starts_with(&path[..prefix]));
            folders.push(Folder { prefix, files: at..at + inside });
            at += inside;
        }
        (folders, files)
    }

    /// Opens directories from the top down, on each level those with the fewest entries first, as long as the lines suffice.
    fn fold(&self, top: Folder) -> Folded {
        let (mut level, mut files) = self.open(&top);
        if level.len() + files.len() > self.limit {
            return self.trim(&top, level, files);
        }
        let mut closed: Vec<Folder> = Vec::new();
        while !level.is_empty() {
            let mut lines = closed.len() + level.len() + files.len();
            let mut opened: Vec<_> = level.into_iter().map(|folder| (self.open(&folder), folder)).collect();
            opened.sort_by_key(|((folders, files), folder)| (folders.len() + files.len(), folder.files.start));
            level = Vec::new();
            for ((inner, direct), folder) in opened {
                let cost = inner.len() + direct.len();
                if lines - 1 + cost > self.limit {
                    closed.push(folder);
                    continue;
                }
                lines = lines - 1 + cost;
                level.extend(inner);
                files.extend(direct);
            }
        }
        closed.sort_by_key(|folder| folder.files.start);
        files.sort_unstable();
        Folded { folders: closed, files, hint: String::new() }
    }

    /// The first entries of a directory that has too many, and how many more there are.
    fn trim(&self, top: &Folder, mut folders: Vec<Folder>, mut files: Vec<usize>) -> Folded {
        let more_folders = folders.split_off(folders.len().min(self.limit));
        let more_files = files.split_off(files.len().min(self.limit - folders.len()));
        let place = if top.prefix == 0 { "the workspace root" } else { self.name(top) };
        let mut hint = String::new();
        if !more_folders.is_empty() {
            let inside = more_folders.iter().map(|folder| folder.files.len()).sum();
            let folders = if more_folders.len() == 1 { "directory" } else { "directories" };
            hint.push_str(&format!("[and {} more {folders} with {}]\n", more_folders.len(), count(inside, "file")));
        }
        if !more_files.is_empty() {
            hint.push_str(&format!("[and {} directly in {}]\n", count(more_files.len(), "more file"), name(place)));
        }
        Folded { folders, files, hint }
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;

    fn paths(names: impl IntoIterator<Item = String>) -> Vec<RelPath> {
        let mut paths: Vec<RelPath> = names.into_iter().map(|name| RelPath::new(&name).unwrap()).collect();
        paths.sort();
        paths.dedup();
        paths
    }

    fn numbered(count: usize, dir: &str) -> impl Iterator<Item = String> {
        (0..count).map(move |n| format!("{dir}{n:04}.rs"))
    }

    const EVERYWHERE: Scope<'_> = Scope { area: Area::Workspace, glob: None };

    #[test]
    fn few_files_are_listed_one_by_one() {
        let paths = paths(["src/lib.rs", "README.md", "src/deep/a.rs", "src-old/x", "a\nb"].map(str::to_owned));
        assert_snapshot!(list(&paths, EVERYWHERE, 200, &LeftOut::default()).text, @r#"
        5 files in the workspace
        README.md
        "a\nb"
        src-old/x
        src/deep/a.rs
        src/lib.rs
        "#);
    }

    #[test]
    fn directories_that_do_not_fit_are_counted() {
        let mut names: Vec<String> = ["Cargo.toml", "src/main.rs", "src/a/b/only.rs"].map(str::to_owned).into();
        names.extend(numbered(1204, "src/generated/"));
        names.extend(numbered(4, "tests/"));
        names.extend(numbered(30, "vendor/deep/down/"));
        let listing = list(&paths(names), EVERYWHERE, 10, &LeftOut::default());
        assert_snapshot!(listing.text, @"
        1241 files in the workspace; 7 listed by name, the others as counts: use path or glob to see them
        src/generated/: 1204 files
        vendor/deep/down/: 30 files
        Cargo.toml
        src/a/b/only.rs
        src/main.rs
        tests/0000.rs
        tests/0001.rs
        tests/0002.rs
        tests/0003.rs
        ");
        assert_eq!(listing.folded, [("src/generated/".to_owned(), 1204), ("vendor/deep/down/".to_owned(), 30)]);
    }

    #[test]
    fn a_directory_with_too_many_entries_says_how_many_more() {
        let names = numbered(9, "src/").chain((0..3).flat_map(|dir| numbered(2, &format!("src/d{dir}/")).collect::<Vec<_>>()));
        let paths = paths(names);
        let below = RelPath::new("src").unwrap();
        let scope = Scope { area: Area::Dir(&below), glob: Some("*.rs") };
        assert_snapshot!(list(&paths, scope, 5, &LeftOut::default()).text, @r#"
        15 files in src/ matching "*.rs"; 2 listed by name, the others as counts: use path or glob to see them
        src/d0/: 2 files
        src/d1/: 2 files
        src/d2/: 2 files
        src/0000.rs
        src/0001.rs
        [and 7 more files directly in src/]
        "#);
        assert_snapshot!(list(&paths, scope, 2, &LeftOut::default()).text, @r#"
        15 files in src/ matching "*.rs"; 0 listed by name, the others as counts: use path or glob to see them
        src/d0/: 2 files
        src/d1/: 2 files
        [and 1 more directory with 2 files]
        [and 9 more files directly in src/]
        "#);
    }

    #[test]
    fn nothing_says_where_it_looked() {
        let scope = Scope { area: Area::Workspace, glob: Some("*.zig") };
        assert_snapshot!(list(&[], scope, 9, &LeftOut::default()).text, @r#"No files in the workspace matching "*.zig". Files that .gitignore or .ignore names are left out unless path names them; .git and .surehand always."#);
    }

    proptest! {
        #[test]
        fn every_file_is_listed_or_counted_on_so_many_lines(
            names in prop::collection::vec("[ab]{1,2}(/[ab.-]?[ab]){0,4}", 1..60),
            limit in 1_usize..40,
        ) {
            let paths = paths(names);
            let listing = list(&paths, EVERYWHERE, limit, &LeftOut::default());
            prop_assert!(listing.files.len() + listing.folded.len() <= limit);
            let folded: usize = listing.folded.iter().map(|(_, count)| count).sum();
            let tree = Tree { paths: &paths, limit };
            let (top_folders, top_files) = tree.open(&tree.top(Area::Workspace));
            if top_folders.len() + top_files.len() <= limit {
                prop_assert_eq!(listing.files.len() + folded, paths.len());
            }
            if paths.len() <= limit {
                prop_assert_eq!(listing.files, paths);
            }
        }
    }
}
