//! The roots that a client works in. The server keeps the workspace with which it was started. If the client works in
//! another tree, a warning says so, because its paths will be refused.
#![expect(deprecated, reason = "the newest revision dropped roots, but the others have them")]

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use rmcp::{Peer, RoleServer};

pub(super) async fn ask(peer: &Peer<RoleServer>) -> Vec<String> {
    if peer.peer_info().is_none_or(|client| client.capabilities.roots.is_none()) {
        return Vec::new();
    }
    let answer = peer.list_roots().await;
    answer.map(|answer| answer.roots.into_iter().map(|root| root.uri).collect()).unwrap_or_default()
}

/// A warning for each root outside of the served workspace.
pub(super) fn notes(workspace: &Path, roots: &[String]) -> Vec<String> {
    let elsewhere = |uri: &String| {
        let Some(root) = path_of(uri) else { return Some(uri.chars().take(200).collect()) };
        // A root that does not exist keeps its spelling.
        let root = root.canonicalize().unwrap_or(root);
        let is_here = root.starts_with(workspace) || workspace.starts_with(&root);
        (!is_here).then(|| root.display().to_string())
    };
    let note = |root: String| {
        format!(
            "the client's root {root} is not in this workspace: these tools work in {} and refuse paths outside it",
            workspace.display()
        )
    };
    roots.iter().filter_map(elsewhere).map(note).collect()
}

/// The path of a `file:` URL on this machine.
fn path_of(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = percent_decode_str(path).decode_utf8().ok().filter(|_| path.starts_with('/'))?;
    Some(PathBuf::from(path.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(root: &str, is_noted: bool) {
        let notes = notes(Path::new("/nowhere/work space"), &[root.to_owned()]);
        assert_eq!(notes.len(), usize::from(is_noted), "{notes:?}");
    }

    #[test]
    fn a_root_that_is_the_workspace_or_in_it_or_around_it_is_fine() {
        check("file:///nowhere/work%20space", false);
        check("file://localhost/nowhere/work%20space", false);
        check("file:///nowhere/work%20space/sub", false);
        check("file:///nowhere", false);
    }

    #[test]
    fn a_root_elsewhere_is_noted() {
        check("file:///nowhere/work", true);
        check("file:///elsewhere", true);
        check("https://example.com/", true);
        check("file:///nowhere/work%2", true);
        check("file:///nowhere/work%ff", true);
    }

    #[test]
    fn the_note_names_both_places() {
        let notes = notes(Path::new("/here"), &["file:///there", "file:///here/sub"].map(str::to_owned));
        assert_eq!(
            notes,
            ["the client's root /there is not in this workspace: these tools work in /here and refuse paths outside it"]
        );
    }
}
