//! Renders the reply to `list_files`: one file per line or, if there are too many, directories with counts. Files that
//! are not listed are counted.

use crate::{
    outcome::{Listing, SearchArea, list::UnlistedEntries},
    render::{
        count,
        scope::{IGNORED, in_scope, left_out, name},
    },
};

/// The listing as text.
pub fn list(listing: &Listing) -> String {
    let Listing { scope, files, folded, rest, total, left_out: missing } = listing;
    if *total == 0 {
        return format!("No files {}. {IGNORED}\n{}", in_scope(scope), left_out(missing));
    }
    let mut text = match scope.area {
        SearchArea::File(_) => "1 file".to_owned(),
        SearchArea::Workspace | SearchArea::Dir(_) => format!("{} {}", count(*total, "file"), in_scope(scope)),
    };
    if listing.is_cut() {
        text.push_str(&format!("; {} listed by name, the others as counts: use path or glob to see them", files.len()));
    }
    text.push('\n');
    for (folder, files) in folded {
        text.push_str(&format!("{}: {}\n", name(folder), count(*files, "file")));
    }
    for file in files {
        text.push_str(&name(file.as_str()));
        text.push('\n');
    }
    text.push_str(&and_more(rest));
    text.push_str(&left_out(missing));
    text
}

/// The entries of one directory that are not listed.
fn and_more(rest: &UnlistedEntries) -> String {
    let mut text = String::new();
    if rest.directories > 0 {
        let directories = if rest.directories == 1 { "directory" } else { "directories" };
        let files = count(rest.files_in_directories, "file");
        text.push_str(&format!("[and {} more {directories} with {files}]\n", rest.directories));
    }
    if rest.files > 0 {
        let place = rest.place.as_deref().unwrap_or("the workspace root");
        text.push_str(&format!("[and {} directly in {}]\n", count(rest.files, "more file"), name(place)));
    }
    text
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::{
        outcome::{SearchScope, SkippedFiles},
        path::RelPath,
    };

    fn paths(names: impl IntoIterator<Item = String>) -> Vec<RelPath> {
        let mut paths: Vec<RelPath> = names.into_iter().map(|name| RelPath::new(&name).unwrap()).collect();
        paths.sort();
        paths.dedup();
        paths
    }

    fn numbered(count: usize, dir: &str) -> impl Iterator<Item = String> {
        (0..count).map(move |n| format!("{dir}{n:04}.rs"))
    }

    const EVERYWHERE: SearchScope = SearchScope { area: SearchArea::Workspace, glob: None };

    fn listing(paths: &[RelPath], scope: SearchScope, limit: usize) -> Listing {
        Listing::of(paths, scope, limit, SkippedFiles::default())
    }

    #[test]
    fn few_files_are_listed_one_by_one() {
        let paths = paths(["src/lib.rs", "README.md", "src/deep/a.rs", "src-old/x", "a\nb"].map(str::to_owned));
        assert_snapshot!(list(&listing(&paths, EVERYWHERE, 200)), @r#"
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
        let listing = listing(&paths(names), EVERYWHERE, 10);
        assert_snapshot!(list(&listing), @"
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
        let scope = SearchScope { area: SearchArea::Dir(below), glob: Some("*.rs".to_owned()) };
        assert_snapshot!(list(&listing(&paths, scope.clone(), 5)), @r#"
        15 files in src/ matching "*.rs"; 2 listed by name, the others as counts: use path or glob to see them
        src/d0/: 2 files
        src/d1/: 2 files
        src/d2/: 2 files
        src/0000.rs
        src/0001.rs
        [and 7 more files directly in src/]
        "#);
        assert_snapshot!(list(&listing(&paths, scope.clone(), 2)), @r#"
        15 files in src/ matching "*.rs"; 0 listed by name, the others as counts: use path or glob to see them
        src/d0/: 2 files
        src/d1/: 2 files
        [and 1 more directory with 2 files]
        [and 9 more files directly in src/]
        "#);
    }

    #[test]
    fn nothing_says_where_it_looked() {
        let scope = SearchScope { area: SearchArea::Workspace, glob: Some("*.zig".to_owned()) };
        assert_snapshot!(list(&listing(&[], scope, 9)), @r#"No files in the workspace matching "*.zig". Files that .gitignore or .ignore names are left out unless path names them; .git and .surehand always."#);
    }
}
