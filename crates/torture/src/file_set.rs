//! Files that only one client changes, in various encodings and with several hard links, and changes to them whose
//! result is known to the byte. So the disk holds either the state before a change or the state after it; anything else
//! is a violation.

use std::{collections::BTreeSet, fs, io, path::Path};

use serde_json::{Value, json};
use surehand_testkit::rng::Rng;

use crate::tree::{self, Files};

/// Encodings of the counted file: its first line, in bytes, and the size of its code units.
const WRITINGS: &[(&[u8], Units)] = &[
    ("héllo — wörld".as_bytes(), Units::Bytes),
    ("\u{feff}with a mark".as_bytes(), Units::Bytes),
    ("\u{feff}hé 😀 wörld".as_bytes(), Units::LittleEndian),
    ("\u{feff}hé 😀 wörld".as_bytes(), Units::BigEndian),
    (b"Un caf\xe9 \xe0 la cr\xe8me, s'il vous pla\xeet Zo\xe9", Units::Bytes),
    (b"\x90\xdd\x92\xe8\x83\x74\x83\x40\x83\x43\x83\x8b\x82\xf0\x93\xc7\x82\xdd\x8d\x9e\x82\xde", Units::Bytes),
    (
        b"\xb6\xc1\xc8\xa1\xc5\xe4\xd6\xc3\xce\xc4\xbc\xfe\xa3\xac\xc8\xbb\xba\xf3\xc6\xf4\xb6\xaf\xb7\xfe\xce\xf1\xc6\xf7",
        Units::Bytes,
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Units {
    Bytes,
    LittleEndian,
    BigEndian,
}

/// Files that only one client changes.
#[derive(Debug, Clone)]
pub(crate) struct FileSet {
    directory: String,
    /// The expected content of the files.
    pub files: Files,
    first_line: &'static [u8],
    units: Units,
    ending: &'static str,
    /// Whether the counted file has a second hard link.
    pub is_linked: bool,
    change_count: usize,
    number: usize,
    filling: usize,
    /// The number of small files that one batch changes together, so that a kill is likely to hit the middle of it.
    herd: usize,
}

/// A change of the files.
#[derive(Debug, Clone)]
pub(crate) struct SetChange {
    /// The kind of change. Changes of one kind take about the same time.
    pub kind: &'static str,
    /// The tool to call.
    pub tool: &'static str,
    pub arguments: Value,
    /// The files after it.
    pub after: Files,
    number: usize,
}

impl FileSet {
    /// Creates the files on disk.
    pub(crate) fn lay_out(root: &Path, directory: &str, rng: &mut Rng) -> io::Result<Self> {
        let (first_line, units) = *rng.pick(WRITINGS);
        let mut file_set = Self {
            directory: directory.to_owned(),
            files: Files::new(),
            first_line,
            units,
            ending: *rng.pick(&["\n", "\n", "\r\n"]),
            is_linked: rng.percent(40) && crate::fs_features::names_agree(root),
            change_count: 0,
            number: 0,
            filling: *rng.pick(&[0, 100, 5_000]),
            herd: *rng.pick(&[10, 30, 60]),
        };
        let start = [("v.txt", "v 0\nend\n"), ("m.txt", "m 0\nsame\n"), ("e.txt", "e 0\nsame\n"), ("d.txt", "d 0\n")];
        for (name, text) in start {
            file_set.files.insert(file_set.path(name), text.as_bytes().to_vec());
        }
        file_set.files.insert(file_set.path("u.txt"), file_set.counted(0));
        file_set.files.insert(file_set.path("b.txt"), file_set.big(0));
        for member in 0..file_set.herd {
            file_set.files.insert(file_set.member(member), b"herd 0\n".to_vec());
        }
        tree::lay_out(root, &file_set.files)?;
        if file_set.is_linked {
            fs::hard_link(root.join(file_set.path("u.txt")), root.join(file_set.path("ul.txt")))?;
            file_set.files.insert(file_set.path("ul.txt"), file_set.counted(0));
        }
        Ok(file_set)
    }

    pub(crate) fn directory(&self) -> &str {
        &self.directory
    }

    /// The calls that read everything a change needs.
    pub(crate) fn reads(&self) -> Vec<(&'static str, Value)> {
        // A file with several names is read under the first; the big one is too long to be read whole; the herd is
        // searched.
        let paths = self.files.keys().filter(|path| !path.ends_with("/ul.txt") && !path.contains("/h/"));
        let reads = paths.map(|path| ("read_file", json!({ "path": path, "limit": 100 })));
        let search = json!({ "pattern": "^herd", "path": self.path("h") });
        reads.chain([("search_files", search)]).collect()
    }

    /// A random change of the current files.
    pub(crate) fn plan(&mut self, rng: &mut Rng) -> SetChange {
        self.change_count += 1;
        match rng.within(0..14) {
            10.. => self.change_herd(rng),
            0 => self.edit_file(),
            1 | 2 => self.multi_edit(),
            3 => self.write_file(),
            4 => self.move_file(rng),
            5 if self.find('d').is_some() => self.delete_file(),
            _ => self.patch(rng),
        }
    }

    /// A random file that the change creates, replaces or removes.
    pub(crate) fn touched(&self, change: &SetChange, rng: &mut Rng) -> String {
        let paths: BTreeSet<&String> = self.files.keys().chain(change.after.keys()).collect();
        let touched: Vec<&String> = paths.into_iter().filter(|path| self.files.get(*path) != change.after.get(*path)).collect();
        (*rng.pick(&touched)).clone()
    }

    /// The change that undoes the last one.
    pub(crate) fn undo(&self, before: &Files, number: usize) -> SetChange {
        SetChange { kind: "undo", tool: "undo", arguments: json!({}), after: before.clone(), number }
    }

    /// The number in the counted file.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Makes the result of a change the expected content.
    pub(crate) fn accept(&mut self, change: &SetChange) {
        self.files.clone_from(&change.after);
        self.number = change.number;
    }

    /// The files on the disk, without the temporary files of Surehand.
    pub(crate) fn on_disk(&self, root: &Path) -> Files {
        let mut files = tree::files(root, &self.directory);
        files.retain(|path, _| !tree::is_ours(path));
        files
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.directory)
    }

    /// The file whose name begins with this letter, wherever it has been moved.
    fn find(&self, letter: char) -> Option<String> {
        let is_it =
            |path: &&String| !path.contains("/h/") && path.rsplit('/').next().is_some_and(|name| name.starts_with(letter));
        self.files.keys().find(is_it).cloned()
    }

    fn counted(&self, number: usize) -> Vec<u8> {
        let rest = format!("{end}count {number}{end}tail{end}", end = self.ending);
        if self.units == Units::Bytes {
            return [self.first_line, rest.as_bytes()].concat();
        }
        let text = String::from_utf8_lossy(self.first_line) + rest.as_str();
        let bytes = |unit: u16| if self.units == Units::BigEndian { unit.to_be_bytes() } else { unit.to_le_bytes() };
        text.encode_utf16().flat_map(bytes).collect()
    }

    fn big(&self, number: usize) -> Vec<u8> {
        let filling = (0..self.filling).map(|line| format!("line {line} of many that fill the file\n"));
        format!("b {number}\n{}", filling.collect::<String>()).into_bytes()
    }

    fn count(&self, after: &mut Files) -> (String, String) {
        after.insert(self.path("u.txt"), self.counted(self.change_count));
        if self.is_linked {
            after.insert(self.path("ul.txt"), self.counted(self.change_count));
        }
        (format!("count {}", self.number), format!("count {}", self.change_count))
    }

    fn edit(&self, path: &str, old: &str, new: &str) -> Value {
        json!({ "path": self.path(path), "old_string": old, "new_string": new })
    }

    fn edit_file(&self) -> SetChange {
        let mut after = self.files.clone();
        let (old, new) = self.count(&mut after);
        SetChange {
            kind: "edit_file",
            tool: "edit_file",
            arguments: self.edit("u.txt", &old, &new),
            after,
            number: self.change_count,
        }
    }

    fn multi_edit(&self) -> SetChange {
        let mut after = self.files.clone();
        let (old, new) = self.count(&mut after);
        let (version, big) = (self.first_line_of("v.txt"), self.first_line_of("b.txt"));
        let (next_version, next_big) = (format!("v {}\n", self.change_count), format!("b {}\n", self.change_count));
        after.insert(self.path("v.txt"), format!("{next_version}end\n").into_bytes());
        after.insert(self.path("b.txt"), self.big(self.change_count));
        let edits =
            [self.edit("u.txt", &old, &new), self.edit("v.txt", &version, &next_version), self.edit("b.txt", &big, &next_big)];
        SetChange {
            kind: "multi_edit",
            tool: "multi_edit",
            arguments: json!({ "edits": edits }),
            after,
            number: self.change_count,
        }
    }

    fn first_line_of(&self, name: &str) -> String {
        let bytes = &self.files[&self.path(name)];
        let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    fn member(&self, number: usize) -> String {
        self.path(&format!("h/{number}.txt"))
    }

    /// Changes every file of the herd. A patch also deletes some and creates them again under other names.
    fn change_herd(&self, rng: &mut Rng) -> SetChange {
        let mut after = self.files.clone();
        let new = format!("herd {}\n", self.change_count);
        let (mut edits, mut patch) = (Vec::new(), String::from("*** Begin Patch\n"));
        let is_patch = rng.percent(50);
        for path in self.files.keys().filter(|path| path.contains("/h/")) {
            let old = String::from_utf8_lossy(&self.files[path]);
            edits.push(json!({ "path": path, "old_string": old, "new_string": new }));
            let is_renamed = is_patch && rng.percent(30);
            let to = if is_renamed {
                self.path(&format!("h/{}/{}-{}", rng.within(0..3), self.change_count, edits.len()))
            } else {
                path.clone()
            };
            let kind = if is_renamed && rng.percent(50) { "fresh" } else { "update" };
            match (kind, is_renamed) {
                ("fresh", _) => patch += &format!("*** Delete File: {path}\n*** Add File: {to}\n+{new}"),
                (_, true) => patch += &format!("*** Update File: {path}\n*** Move to: {to}\n@@\n-{old}+{new}"),
                _ => patch += &format!("*** Update File: {path}\n@@\n-{old}+{new}"),
            }
            after.remove(path);
            after.insert(to, new.clone().into_bytes());
        }
        patch += "*** End Patch\n";
        let number = self.number;
        if is_patch {
            return SetChange { kind: "herd by patch", tool: "apply_patch", arguments: json!({ "patch": patch }), after, number };
        }
        SetChange { kind: "herd", tool: "multi_edit", arguments: json!({ "edits": edits }), after, number }
    }

    fn write_file(&self) -> SetChange {
        let mut after = self.files.clone();
        let content = format!("v {}\nend\n", self.change_count);
        after.insert(self.path("v.txt"), content.clone().into_bytes());
        let arguments = json!({ "path": self.path("v.txt"), "content": content });
        SetChange { kind: "write_file", tool: "write_file", arguments, after, number: self.number }
    }

    fn move_file(&self, rng: &mut Rng) -> SetChange {
        let mut after = self.files.clone();
        let from = self.find('m').expect("it is moved, never deleted");
        let to = self.path(&format!("{}m{}.txt", rng.pick(&["", "s0/", "s1/t/"]), self.change_count));
        let bytes = after.remove(&from).expect("it was found there");
        after.insert(to.clone(), bytes);
        SetChange {
            kind: "move_file",
            tool: "move_file",
            arguments: json!({ "from": from, "to": to }),
            after,
            number: self.number,
        }
    }

    fn delete_file(&self) -> SetChange {
        let mut after = self.files.clone();
        let path = self.find('d').expect("asked before");
        after.remove(&path);
        SetChange { kind: "delete_file", tool: "delete_file", arguments: json!({ "path": path }), after, number: self.number }
    }

    /// A patch over some of the files: updates, moves with and without a change, deletions, additions in new
    /// directories.
    fn patch(&self, rng: &mut Rng) -> SetChange {
        let mut after = self.files.clone();
        let (mut patch, mut number) = (String::from("*** Begin Patch\n"), self.number);
        if rng.percent(70) {
            let (old, new) = self.count(&mut after);
            patch += &format!("*** Update File: {}\n@@\n-{old}\n+{new}\n", self.path("u.txt"));
            number = self.change_count;
        }
        for letter in ['m', 'e'] {
            if rng.percent(60) {
                patch += &self.move_in_patch(letter, rng, &mut after);
            }
        }
        if let Some(old) = self.find('d') {
            patch += &format!("*** Delete File: {old}\n");
            after.remove(&old);
        }
        // Both files have the same content; they must not be confused.
        let directory = *rng.pick(&["", "n0/", "n1/x/y/"]);
        for twin in ["", "b"] {
            let path = self.path(&format!("{directory}d{}{twin}.txt", self.change_count));
            if twin.is_empty() || rng.percent(30) {
                patch += &format!("*** Add File: {path}\n+d {}\n", self.change_count);
                after.insert(path, format!("d {}\n", self.change_count).into_bytes());
            }
        }
        patch += "*** End Patch\n";
        SetChange { kind: "apply_patch", tool: "apply_patch", arguments: json!({ "patch": patch }), after, number }
    }

    fn move_in_patch(&self, letter: char, rng: &mut Rng, after: &mut Files) -> String {
        let from = self.find(letter).expect("it is moved, never deleted");
        let to = self.path(&format!("{}{letter}{}.txt", rng.pick(&["", "s0/", "s1/t/"]), self.change_count));
        let bytes = after.remove(&from).expect("it was found there");
        let mut patch = format!("*** Update File: {from}\n*** Move to: {to}\n");
        let text = String::from_utf8(bytes).expect("plain text");
        if letter == 'm' {
            after.insert(to, text.into_bytes());
            return patch;
        }
        let old = text.lines().next().expect("it has lines").to_owned();
        let new = format!("e {}", self.change_count);
        patch += &format!("@@\n-{old}\n+{new}\n same\n");
        after.insert(to, text.replace(&old, &new).into_bytes());
        patch
    }
}
