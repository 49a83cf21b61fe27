//! A ring: a few files that nobody else touches, in all encodings and with several names, and changes of them whose outcome is
//! known to the byte. So what is on the disk is the state before a change, or the one after it, or something is wrong.

use std::{collections::BTreeSet, fs, io, path::Path};

use serde_json::{Value, json};
use surehand_testkit::dice::Dice;

use crate::tree::{self, Files};

/// How the counted file is written: its first line, in bytes, and whether characters have two bytes.
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

/// A few files that nobody else touches.
#[derive(Debug, Clone)]
pub(crate) struct Ring {
    directory: String,
    /// What is on the disk now.
    pub files: Files,
    first_line: &'static [u8],
    units: Units,
    ending: &'static str,
    /// Whether the counted file has a second name.
    pub is_linked: bool,
    turn: usize,
    number: usize,
    filling: usize,
    /// How many small files there are that are changed all at once, so that a kill is likely to come in between.
    herd: usize,
}

/// A change of a ring.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    /// What kind of change it is: those of one kind take about as long as each other.
    pub kind: &'static str,
    /// The tool to call.
    pub tool: &'static str,
    /// What to call it with.
    pub arguments: Value,
    /// The files after it.
    pub after: Files,
    number: usize,
}

impl Ring {
    /// Writes the files of a ring.
    pub(crate) fn lay_out(root: &Path, directory: &str, dice: &mut Dice) -> io::Result<Self> {
        let (first_line, units) = *dice.pick(WRITINGS);
        let mut ring = Self {
            directory: directory.to_owned(),
            files: Files::new(),
            first_line,
            units,
            ending: *dice.pick(&["\n", "\n", "\r\n"]),
            is_linked: dice.percent(40) && crate::capable::names_agree(root),
            turn: 0,
            number: 0,
            filling: *dice.pick(&[0, 100, 5_000]),
            herd: *dice.pick(&[10, 30, 60]),
        };
        let start = [("v.txt", "v 0\nend\n"), ("m.txt", "m 0\nsame\n"), ("e.txt", "e 0\nsame\n"), ("d.txt", "d 0\n")];
        for (name, text) in start {
            ring.files.insert(ring.path(name), text.as_bytes().to_vec());
        }
        ring.files.insert(ring.path("u.txt"), ring.counted(0));
        ring.files.insert(ring.path("b.txt"), ring.big(0));
        for member in 0..ring.herd {
            ring.files.insert(ring.member(member), b"herd 0\n".to_vec());
        }
        tree::lay_out(root, &ring.files)?;
        if ring.is_linked {
            fs::hard_link(root.join(ring.path("u.txt")), root.join(ring.path("ul.txt")))?;
            ring.files.insert(ring.path("ul.txt"), ring.counted(0));
        }
        Ok(ring)
    }

    /// Its directory.
    pub(crate) fn directory(&self) -> &str {
        &self.directory
    }

    /// What has to be read before a change: the arguments of the calls.
    pub(crate) fn reads(&self) -> Vec<(&'static str, Value)> {
        // A file with several names is read under the first; the big one is too long to be read whole; the herd is searched.
        let paths = self.files.keys().filter(|path| !path.ends_with("/ul.txt") && !path.contains("/h/"));
        let reads = paths.map(|path| ("read_file", json!({ "path": path, "limit": 100 })));
        let search = json!({ "pattern": "^herd", "path": self.path("h") });
        reads.chain([("search_files", search)]).collect()
    }

    /// A change that could be made now.
    pub(crate) fn plan(&mut self, dice: &mut Dice) -> Turn {
        self.turn += 1;
        match dice.within(0..14) {
            10.. => self.change_herd(dice),
            0 => self.edit_file(),
            1 | 2 => self.multi_edit(),
            3 => self.write_file(),
            4 => self.move_file(dice),
            5 if self.find('d').is_some() => self.delete_file(),
            _ => self.patch(dice),
        }
    }

    /// A file that a change makes, replaces or takes away.
    pub(crate) fn touched(&self, turn: &Turn, dice: &mut Dice) -> String {
        let paths: BTreeSet<&String> = self.files.keys().chain(turn.after.keys()).collect();
        let touched: Vec<&String> = paths.into_iter().filter(|path| self.files.get(*path) != turn.after.get(*path)).collect();
        (*dice.pick(&touched)).clone()
    }

    /// The change that takes the last one back.
    pub(crate) fn undo(&self, before: &Files, number: usize) -> Turn {
        Turn { kind: "undo", tool: "undo", arguments: json!({}), after: before.clone(), number }
    }

    /// The number that is in the counted files.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// A change has happened.
    pub(crate) fn accept(&mut self, turn: &Turn) {
        self.files.clone_from(&turn.after);
        self.number = turn.number;
    }

    /// What is on the disk, without what Surehand has put beside it.
    pub(crate) fn on_disk(&self, root: &Path) -> Files {
        let mut files = tree::files(root, &self.directory);
        files.retain(|path, _| !tree::is_ours(path));
        files
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.directory)
    }

    /// The file whose name begins with a letter, wherever it was moved.
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
        after.insert(self.path("u.txt"), self.counted(self.turn));
        if self.is_linked {
            after.insert(self.path("ul.txt"), self.counted(self.turn));
        }
        (format!("count {}", self.number), format!("count {}", self.turn))
    }

    fn edit(&self, path: &str, old: &str, new: &str) -> Value {
        json!({ "path": self.path(path), "old_string": old, "new_string": new })
    }

    fn edit_file(&self) -> Turn {
        let mut after = self.files.clone();
        let (old, new) = self.count(&mut after);
        Turn { kind: "edit_file", tool: "edit_file", arguments: self.edit("u.txt", &old, &new), after, number: self.turn }
    }

    fn multi_edit(&self) -> Turn {
        let mut after = self.files.clone();
        let (old, new) = self.count(&mut after);
        let (version, big) = (self.first_line_of("v.txt"), self.first_line_of("b.txt"));
        let (next_version, next_big) = (format!("v {}\n", self.turn), format!("b {}\n", self.turn));
        after.insert(self.path("v.txt"), format!("{next_version}end\n").into_bytes());
        after.insert(self.path("b.txt"), self.big(self.turn));
        let edits =
            [self.edit("u.txt", &old, &new), self.edit("v.txt", &version, &next_version), self.edit("b.txt", &big, &next_big)];
        Turn { kind: "multi_edit", tool: "multi_edit", arguments: json!({ "edits": edits }), after, number: self.turn }
    }

    fn first_line_of(&self, name: &str) -> String {
        let bytes = &self.files[&self.path(name)];
        let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    fn member(&self, number: usize) -> String {
        self.path(&format!("h/{number}.txt"))
    }

    /// Every member of the herd is changed; by a patch, some are deleted and made anew under other names as well.
    fn change_herd(&self, dice: &mut Dice) -> Turn {
        let mut after = self.files.clone();
        let new = format!("herd {}\n", self.turn);
        let (mut edits, mut patch) = (Vec::new(), String::from("*** Begin Patch\n"));
        let is_patch = dice.percent(50);
        for path in self.files.keys().filter(|path| path.contains("/h/")) {
            let old = String::from_utf8_lossy(&self.files[path]);
            edits.push(json!({ "path": path, "old_string": old, "new_string": new }));
            let is_renamed = is_patch && dice.percent(30);
            let to = if is_renamed {
                self.path(&format!("h/{}/{}-{}", dice.within(0..3), self.turn, edits.len()))
            } else {
                path.clone()
            };
            let kind = if is_renamed && dice.percent(50) { "fresh" } else { "update" };
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
            return Turn { kind: "herd by patch", tool: "apply_patch", arguments: json!({ "patch": patch }), after, number };
        }
        Turn { kind: "herd", tool: "multi_edit", arguments: json!({ "edits": edits }), after, number }
    }

    fn write_file(&self) -> Turn {
        let mut after = self.files.clone();
        let content = format!("v {}\nend\n", self.turn);
        after.insert(self.path("v.txt"), content.clone().into_bytes());
        let arguments = json!({ "path": self.path("v.txt"), "content": content });
        Turn { kind: "write_file", tool: "write_file", arguments, after, number: self.number }
    }

    fn move_file(&self, dice: &mut Dice) -> Turn {
        let mut after = self.files.clone();
        let from = self.find('m').expect("it is moved, never deleted");
        let to = self.path(&format!("{}m{}.txt", dice.pick(&["", "s0/", "s1/t/"]), self.turn));
        let bytes = after.remove(&from).expect("it was found there");
        after.insert(to.clone(), bytes);
        Turn { kind: "move_file", tool: "move_file", arguments: json!({ "from": from, "to": to }), after, number: self.number }
    }

    fn delete_file(&self) -> Turn {
        let mut after = self.files.clone();
        let path = self.find('d').expect("asked before");
        after.remove(&path);
        Turn { kind: "delete_file", tool: "delete_file", arguments: json!({ "path": path }), after, number: self.number }
    }

    /// A patch over some of the files: updates, moves with and without a change, deletions, additions in new directories.
    fn patch(&self, dice: &mut Dice) -> Turn {
        let mut after = self.files.clone();
        let (mut patch, mut number) = (String::from("*** Begin Patch\n"), self.number);
        if dice.percent(70) {
            let (old, new) = self.count(&mut after);
            patch += &format!("*** Update File: {}\n@@\n-{old}\n+{new}\n", self.path("u.txt"));
            number = self.turn;
        }
        for letter in ['m', 'e'] {
            if dice.percent(60) {
                patch += &self.move_in_patch(letter, dice, &mut after);
            }
        }
        if let Some(old) = self.find('d') {
            patch += &format!("*** Delete File: {old}\n");
            after.remove(&old);
        }
        // Twice the same content: one must not be taken for the other.
        let directory = *dice.pick(&["", "n0/", "n1/x/y/"]);
        for twin in ["", "b"] {
            let path = self.path(&format!("{directory}d{}{twin}.txt", self.turn));
            if twin.is_empty() || dice.percent(30) {
                patch += &format!("*** Add File: {path}\n+d {}\n", self.turn);
                after.insert(path, format!("d {}\n", self.turn).into_bytes());
            }
        }
        patch += "*** End Patch\n";
        Turn { kind: "apply_patch", tool: "apply_patch", arguments: json!({ "patch": patch }), after, number }
    }

    fn move_in_patch(&self, letter: char, dice: &mut Dice, after: &mut Files) -> String {
        let from = self.find(letter).expect("it is moved, never deleted");
        let to = self.path(&format!("{}{letter}{}.txt", dice.pick(&["", "s0/", "s1/t/"]), self.turn));
        let bytes = after.remove(&from).expect("it was found there");
        let mut patch = format!("*** Update File: {from}\n*** Move to: {to}\n");
        let text = String::from_utf8(bytes).expect("plain text");
        if letter == 'm' {
            after.insert(to, text.into_bytes());
            return patch;
        }
        let old = text.lines().next().expect("it has lines").to_owned();
        let new = format!("e {}", self.turn);
        patch += &format!("@@\n-{old}\n+{new}\n same\n");
        after.insert(to, text.replace(&old, &new).into_bytes());
        patch
    }
}
