//! Patches in the `*** Begin Patch` format that a client applies itself. It matches lines more loosely than Surehand,
//! overwrites files when it adds them, and resolves paths in its own directory. So a patch is split by file, and the
//! gate checks what each file needs even if Surehand could not apply the patch.

use surehand_engine::{Edit, FileIntent};

use super::event::absolute_path;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClientPatch {
    /// The whole patch as one edit, which makes it one change.
    pub whole: Edit,
    pub parts: Vec<PatchPart>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PatchPart {
    pub edit: Edit,
    /// Its effect on each path, whatever its lines are.
    pub intents: Vec<(FileIntent, String)>,
}

#[derive(Debug, Clone, Default)]
struct PatchSection {
    verb: &'static str,
    path: String,
    move_to: Option<String>,
    rows: Vec<String>,
}

impl ClientPatch {
    /// Parses a patch; `None` if the text has none. Paths are resolved in this directory.
    pub(super) fn parse(text: &str, directory: &str) -> Option<Self> {
        let mut sections: Vec<PatchSection> = Vec::new();
        let lines = text.lines().skip_while(|line| line.trim() != BEGIN).skip(1).take_while(|line| line.trim() != END);
        for line in lines {
            let header = [ADD, DELETE, UPDATE].into_iter().find_map(|verb| Some((verb, line.strip_prefix(verb)?.trim())));
            match (header, sections.last_mut()) {
                (Some((verb, path)), _) => {
                    sections.push(PatchSection { verb, path: absolute_path(directory, path), ..PatchSection::default() });
                }
                (None, Some(section)) => match line.strip_prefix(MOVE) {
                    Some(to) => section.move_to = Some(absolute_path(directory, to.trim())),
                    None => section.rows.push(line.to_owned()),
                },
                (None, None) => {}
            }
        }
        if sections.is_empty() { None } else { Some(Self::of(&sections)) }
    }

    fn of(sections: &[PatchSection]) -> Self {
        let mut files: Vec<Vec<&PatchSection>> = Vec::new();
        for section in sections {
            match files.iter_mut().find(|file| file[0].path == section.path) {
                Some(file) => file.push(section),
                None => files.push(vec![section]),
            }
        }
        Self {
            whole: as_patch(&sections.iter().collect::<Vec<_>>()),
            parts: files.iter().map(|file| PatchPart::of(file)).collect(),
        }
    }
}

impl PatchPart {
    fn of(sections: &[&PatchSection]) -> Self {
        let edit = match sections {
            [only] if only.verb == ADD => only.as_write(),
            [only] if only.verb == DELETE => Edit::Delete { path: only.path.clone() },
            _ => as_patch(sections),
        };
        Self { edit, intents: sections.iter().flat_map(|section| section.intents()).collect() }
    }
}

impl PatchSection {
    fn intents(&self) -> Vec<(FileIntent, String)> {
        let intent = match self.verb {
            ADD => FileIntent::Overwrite,
            DELETE => FileIntent::TakeAway,
            _ => FileIntent::Edit,
        };
        let moved = self.move_to.iter().filter(|to| **to != self.path).map(|to| (FileIntent::Overwrite, to.clone()));
        [(intent, self.path.clone())].into_iter().chain(moved).collect()
    }

    fn as_write(&self) -> Edit {
        let content: String = self.rows.iter().map(|row| format!("{}\n", row.strip_prefix('+').unwrap_or(row))).collect();
        Edit::write(&self.path, content)
    }

    fn text(&self) -> String {
        let moved = self.move_to.iter().map(|to| format!("{MOVE} {to}\n"));
        let rows = self.rows.iter().map(|row| format!("{row}\n"));
        [format!("{} {}\n", self.verb, self.path)].into_iter().chain(moved).chain(rows).collect()
    }
}

fn as_patch(sections: &[&PatchSection]) -> Edit {
    let text: String = sections.iter().map(|section| section.text()).collect();
    Edit::Patch { patch: format!("{BEGIN}\n{text}{END}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn intents(patch: &str) -> Vec<(FileIntent, String)> {
        ClientPatch::parse(patch, "/w/sub").unwrap().parts.into_iter().flat_map(|part| part.intents).collect()
    }

    #[test]
    fn names_are_seen_from_the_directory() {
        let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-b\n+B\n*** Delete File: /w/c\n*** End Patch";
        assert_eq!(intents(patch), [(FileIntent::Edit, "/w/sub/a.txt".to_owned()), (FileIntent::TakeAway, "/w/c".to_owned())]);
        let whole = ClientPatch::parse(patch, "/w/sub").unwrap().whole;
        let expected = "*** Begin Patch\n*** Update File: /w/sub/a.txt\n@@\n-b\n+B\n*** Delete File: /w/c\n*** End Patch\n";
        assert_eq!(whole, Edit::Patch { patch: expected.to_owned() });
    }

    #[test]
    fn an_added_file_is_a_write() {
        let patch = "*** Begin Patch\n*** Add File: new.txt\n+one\n++two\n*** End Patch\n";
        let parts = ClientPatch::parse(patch, "/w").unwrap().parts;
        assert_eq!(parts[0].edit, Edit::write("/w/new.txt", "one\n+two\n"));
    }

    #[test]
    fn a_move_may_overwrite() {
        let patch = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch\n";
        assert_eq!(intents(patch), [(FileIntent::Edit, "/w/sub/a".to_owned()), (FileIntent::Overwrite, "/w/sub/b".to_owned())]);
    }

    #[test]
    fn what_is_named_twice_is_one_part() {
        let patch = "*** Begin Patch\n*** Update File: a\n@@\n-1\n+2\n*** Update File: a\n@@\n-3\n+4\n*** End Patch\n";
        assert_eq!(ClientPatch::parse(patch, "/w").unwrap().parts.len(), 1);
    }

    #[test]
    fn a_patch_in_a_command_is_found() {
        assert_eq!(intents("apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF\n").len(), 1);
        assert_eq!(ClientPatch::parse("echo hello", "/w"), None);
        assert_eq!(ClientPatch::parse("*** Begin Patch\n*** End Patch\n", "/w"), None);
    }
}
