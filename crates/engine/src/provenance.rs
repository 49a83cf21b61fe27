//! Provenance: the line map from one version of a file to another, composed from the recorded changes between them.
//! Nothing is compared, so equal lines are never confused. If a change is missing or was not a sum of edits, there is
//! no map, and the caller must compare the texts.

use surehand_core::{ContentHash, LineMap, RelPath};
use surehand_store::{EventFilter, FileEvent};

use crate::workspace::Workspace;

/// The maximum number of changes that are composed.
const MAX_CHANGES: usize = 64;

impl Workspace {
    /// The line map of a file from version `from` to version `to`, composed from recorded changes.
    pub(crate) fn provenance(&self, path: &RelPath, from: ContentHash, to: ContentHash) -> Option<LineMap> {
        let which = EventFilter { path: Some(path.clone()), ..EventFilter::default() };
        let ask = || self.ask(|store| store.events(&which, MAX_CHANGES)).ok().and_then(|events| compose(&events, path, from, to));
        ask().or_else(|| {
            // The last change may not have reached the store yet.
            self.flush();
            ask()
        })
    }
}

/// Follows the events from the newest back to the one that started from `from`. Each event must have produced the
/// version from which the next one started.
fn compose(newest_first: &[FileEvent], path: &RelPath, from: ContentHash, to: ContentHash) -> Option<LineMap> {
    let (mut version, mut map) = (to, None::<LineMap>);
    // An undo by hand is recorded, but does not change the file.
    let is_change = |event: &&FileEvent| event.before != event.after;
    for event in newest_first.iter().filter(is_change) {
        if version == from {
            break;
        }
        if event.path != *path || event.moved_to.is_some() || event.after != Some(version) {
            return None;
        }
        let lines = event.lines.as_ref()?;
        map = Some(map.map_or_else(|| lines.clone(), |map| lines.then(&map)));
        version = event.before?;
    }
    map.filter(|_| version == from)
}

#[cfg(test)]
mod tests {
    use surehand_store::{ChangeId, SessionId};

    use super::*;

    fn version(content: &str) -> ContentHash {
        ContentHash::of(content.as_bytes())
    }

    fn event(before: &str, after: &str, lines: Option<&str>) -> FileEvent {
        FileEvent {
            change: ChangeId(format!("{before}{after}")),
            at: 0,
            session: SessionId("s".to_owned()),
            tool: "edit_lines".to_owned(),
            path: RelPath::new("f").unwrap(),
            moved_to: None,
            before: Some(version(before)),
            after: Some(version(after)),
            mode: None,
            undoes: Vec::new(),
            delta: None,
            lines: lines.map(|lines| lines.parse().unwrap()),
            undone: Vec::new(),
            entry: None,
        }
    }

    /// The expected map from version a to version c by these events, given oldest first.
    #[track_caller]
    fn check(events: &[FileEvent], expected: Option<&str>) {
        let newest_first: Vec<FileEvent> = events.iter().rev().cloned().collect();
        let map = compose(&newest_first, &RelPath::new("f").unwrap(), version("a"), version("c"));
        assert_eq!(map.map(|map| map.to_string()).as_deref(), expected);
    }

    #[test]
    fn a_complete_chain_is_composed() {
        let (first, second) = (event("a", "b", Some("5 0-0+1")), event("b", "c", Some("6 3-1+0")));
        check(&[first.clone(), second.clone()], Some("5 0-0+1 2-1+0"));
        // Events before the version seen do not matter.
        check(&[event("z", "a", None), first.clone(), second.clone()], Some("5 0-0+1 2-1+0"));
        // An undo by hand changes nothing.
        check(&[first.clone(), second.clone(), event("x", "x", None)], Some("5 0-0+1 2-1+0"));
        // The file returned to the version seen, so the chain starts there.
        check(&[first.clone(), event("b", "a", None), first, second], Some("5 0-0+1 2-1+0"));
    }

    #[test]
    fn a_chain_with_a_gap_gives_no_map() {
        let (first, second) = (event("a", "b", Some("5 0-0+1")), event("b", "c", Some("6 3-1+0")));
        check(&[], None);
        check(std::slice::from_ref(&second), None);
        check(std::slice::from_ref(&first), None);
        // Another program wrote between them, or after them.
        check(&[first.clone(), event("x", "c", Some("6 3-1+0"))], None);
        check(&[first.clone(), second.clone(), event("c", "d", Some("5 1-1+0"))], None);
        // One event rewrote the whole file, one deleted it, one renamed it.
        check(&[first.clone(), FileEvent { lines: None, ..second.clone() }], None);
        check(&[first.clone(), FileEvent { before: None, ..second.clone() }], None);
        check(&[first, FileEvent { moved_to: Some(RelPath::new("g").unwrap()), ..second }], None);
    }

    #[test]
    fn a_long_chain_is_not_followed() {
        let step = |number: usize| match number {
            0 => "a".to_owned(),
            number => format!("step {number}"),
        };
        let mut events: Vec<FileEvent> =
            (0..MAX_CHANGES).map(|number| event(&step(number), &step(number + 1), Some("5 1-1+1"))).collect();
        events.push(event(&step(MAX_CHANGES), "c", Some("5 2-1+1")));
        check(&events[1..], None);
        check(&events, Some("5 1-2+2"));
    }
}
