//! Renders the scope of a listing or a search, and the files that it had to skip.

use std::borrow::Cow;

use crate::{
    outcome::{SearchArea, SearchScope, SkippedFiles},
    render::{Quote, count, join_first},
};

/// For example `in src/ matching "*.rs"`.
pub(super) fn in_scope(scope: &SearchScope) -> String {
    let place = match &scope.area {
        SearchArea::Workspace => "in the workspace".to_owned(),
        SearchArea::Dir(path) => format!("in {}/", name(path.as_str())),
        SearchArea::File(path) => return format!("in {}", name(path.as_str())),
    };
    match &scope.glob {
        None => place,
        Some(glob) => format!("{place} matching {}", Quote(glob)),
    }
}

pub(super) fn left_out(left_out: &SkippedFiles) -> String {
    let unreadable = left_out.unreadable.iter().map(|(path, why)| format!("{} ({why})", name(path)));
    let too_large = left_out.too_large.iter().map(|(path, size)| format!("{} ({size} bytes)", name(path.as_str())));
    let not_shown = left_out.not_shown.iter().map(|(path, what)| format!("{} ({what})", name(path.as_str())));
    let mut text = note("could not be read", unreadable);
    text.push_str(&note("not searched, over limits.file_bytes", too_large));
    text.push_str(&note("match, but cannot be shown", not_shown));
    if left_out.unnamed > 0 {
        text.push_str(&format!("[left out: {} that {} not UTF-8]\n", count(left_out.unnamed, "name"), is(left_out.unnamed)));
    }
    text
}

/// A hint on ignored files for an empty result.
pub const IGNORED: &str =
    "Files that .gitignore or .ignore names are left out unless path names them; .git and .surehand always.";

pub(super) fn is(number: usize) -> &'static str {
    if number == 1 { "is" } else { "are" }
}

fn note(what: &str, items: impl ExactSizeIterator<Item = String>) -> String {
    if items.len() == 0 {
        return String::new();
    }
    format!("[{what}: {}]\n", join_first(items, MOST_NAMED, "more"))
}

/// The maximum number of files of each kind that are named.
pub(super) const MOST_NAMED: usize = 20;

/// A path on a line of its own. It is quoted if it contains control characters.
pub fn name(path: &str) -> Cow<'_, str> {
    if path.chars().any(char::is_control) { Cow::Owned(format!("{path:?}")) } else { Cow::Borrowed(path) }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::path::RelPath;

    #[test]
    fn skipped_files_are_named_and_bounded() {
        let path = |name: &str| RelPath::new(name).unwrap();
        let missing = SkippedFiles {
            unreadable: (10..40).map(|n| (format!("d{n}/"), "Permission denied".to_owned())).collect(),
            unnamed: 1,
            too_large: vec![(path("big.sql"), 60_000_000)],
            not_shown: vec![(path("old\n.txt"), "not UTF-8")],
        };
        assert_snapshot!(left_out(&missing), @r#"
        [could not be read: d10/ (Permission denied), d11/ (Permission denied), d12/ (Permission denied), d13/ (Permission denied), d14/ (Permission denied), d15/ (Permission denied), d16/ (Permission denied), d17/ (Permission denied), d18/ (Permission denied), d19/ (Permission denied), d20/ (Permission denied), d21/ (Permission denied), d22/ (Permission denied), d23/ (Permission denied), d24/ (Permission denied), d25/ (Permission denied), d26/ (Permission denied), d27/ (Permission denied), d28/ (Permission denied), d29/ (Permission denied) and 10 more]
        [not searched, over limits.file_bytes: big.sql (60000000 bytes)]
        [match, but cannot be shown: "old\n.txt" (not UTF-8)]
        [left out: 1 name that is not UTF-8]
        "#);
        assert_eq!(left_out(&SkippedFiles::default()), "");
    }
}
