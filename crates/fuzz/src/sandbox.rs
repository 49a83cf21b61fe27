//! A workspace in a temporary directory, with all kinds of files, and files outside it that nothing may touch.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::Arc,
};

use surehand_engine::{Config, Durability, StateHome, Workspace, WorkspaceOptions};
use tempfile::TempDir;

/// All files below a directory. Links have the content of their targets.
pub(crate) type Tree = BTreeMap<String, Vec<u8>>;

/// The workspace and its surroundings.
pub(crate) struct Sandbox {
    dir: TempDir,
    root: PathBuf,
}

/// The files that calls use.
pub(crate) const FILES: &[&str] = &[
    "a.txt",
    "src/b.rs",
    "crlf.txt",
    "latin.txt",
    "wide.txt",
    "data.bin",
    "empty",
    "src/AGENTS.md",
    "new.txt",
    "deep/er/new.txt",
];

/// Paths that lead outside, or to files that must not be written.
pub(crate) const OTHERS: &[&str] = &[
    "",
    ".",
    "..",
    "/",
    "../outside/o.txt",
    "out",
    "out/o.txt",
    "out/new.txt",
    "outfile",
    "link.txt",
    "hard.txt",
    "src",
    "a.txt/b",
    ".git/config",
    ".git/new",
    ".surehand/repostate.json",
    ".git/surehand/state.db",
    ".surehand/new",
    "surehand.toml",
    "src/../a.txt",
    "./a.txt",
    "a.txt\0",
    "/etc/hostname",
    "A.TXT",
    "no/such",
    "dangling",
    "fifo",
    "ignored.log",
];

impl Sandbox {
    /// Created in memory if possible, because one input may cause thousands of writes.
    pub(crate) fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let dir = dir.expect("a directory for the test");
        let root = dir.path().canonicalize().expect("it was just made").join("ws");
        let sandbox = Self { dir, root };
        sandbox.fill().expect("files for the test");
        sandbox
    }

    fn fill(&self) -> std::io::Result<()> {
        let wide: Vec<u8> = "\u{feff}eins\nzwei\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let files: &[(&str, &[u8])] = &[
            ("ws/a.txt", b"one\ntwo\n}\nthree\n}\nfour\n}\nfive\n"),
            ("ws/src/b.rs", b"fn b() {\n    let a = 1;\n    // b\n}\n\nfn c() {\n    let a = 1;\n}"),
            ("ws/crlf.txt", b"a\r\nb\r\nc\nd\r\n"),
            ("ws/latin.txt", b"caf\xe9\nna\xefve\nplain\n"),
            ("ws/wide.txt", &wide),
            ("ws/data.bin", b"\0\x01\x02\xff"),
            ("ws/empty", b""),
            ("ws/src/AGENTS.md", b"Say please.\n"),
            ("ws/.gitignore", b"*.log\n"),
            ("ws/ignored.log", b"noise\n"),
            ("ws/.git/config", b"[core]\n"),
            ("ws/surehand.toml", b"durability = \"fast\"\n"),
            ("outside/o.txt", b"nobody's business\n"),
        ];
        for directory in ["ws/src", "outside"] {
            fs::create_dir_all(self.dir.path().join(directory))?;
        }
        surehand_testkit::make_repository(&self.root);
        for (path, content) in files {
            fs::write(self.dir.path().join(path), content)?;
        }
        symlink("a.txt", self.root.join("link.txt"))?;
        symlink("../outside", self.root.join("out"))?;
        symlink("../outside/o.txt", self.root.join("outfile"))?;
        symlink("nowhere", self.root.join("dangling"))?;
        fs::hard_link(self.root.join("crlf.txt"), self.root.join("hard.txt"))
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The directory in which clients keep their files.
    pub(crate) fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }

    pub(crate) fn open(&self) -> Result<Arc<Workspace>, String> {
        Workspace::open(&self.root, self.config()).map_err(|error| error.to_string())
    }

    /// Opens the workspace as a hook does.
    pub(crate) fn open_for_one_call(&self) -> Result<Arc<Workspace>, String> {
        let options = WorkspaceOptions { config: self.config(), is_for_one_call: true, ..WorkspaceOptions::default() };
        Workspace::open_with(&self.root, options).map_err(|error| error.to_string())
    }

    /// Opens the workspace read-only.
    pub(crate) fn look(&self) -> Result<Arc<Workspace>, String> {
        Workspace::open_read_only(&self.root, self.config()).map_err(|error| error.to_string())
    }

    /// The user's state directory.
    pub(crate) fn state(&self) -> StateHome {
        StateHome { user: Some(self.dir.path().join("home")), ..StateHome::default() }
    }

    fn config(&self) -> Config {
        let state = self.state();
        Config { durability: Durability::Fast, state, ..Config::default() }
    }

    /// The content of a file of the workspace, as far as it can be shown.
    pub(crate) fn shown(&self, path: &str) -> String {
        let bytes = fs::read(self.root.join(path)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
    }

    /// Another program writes a file.
    pub(crate) fn write(&self, path: &str, content: &[u8]) {
        // A failed write has changed nothing.
        drop(fs::write(self.root.join(path), content));
    }

    /// The files that the tools may change.
    pub(crate) fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        gather(&self.root, "", &mut tree);
        tree
    }

    /// The files that must not change: everything outside the workspace.
    pub(crate) fn surroundings(&self) -> Tree {
        let mut tree = Tree::new();
        gather(&self.outside(), "", &mut tree);
        let names = fs::read_dir(self.dir.path()).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let names = names.filter(|name| name != "home");
        tree.extend(names.map(|name| (name.to_string_lossy().into_owned(), Vec::new())));
        tree
    }
}

/// The tools do not change state directories and internals of git, which are compared separately.
fn gather(dir: &Path, below: &str, tree: &mut Tree) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{below}{name}");
        if name == ".surehand" || path == ".git/surehand" {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => gather(&entry.path(), &format!("{path}/"), tree),
            Ok(kind) if kind.is_symlink() => {
                let target = fs::read_link(entry.path()).unwrap_or_default();
                tree.insert(format!("{path}@"), target.to_string_lossy().into_owned().into_bytes());
            }
            _ => drop(tree.insert(path, fs::read(entry.path()).unwrap_or_default())),
        }
    }
}

/// The names of files that differ, for a message.
pub(crate) fn difference(before: &Tree, after: &Tree) -> String {
    let names = before.keys().chain(after.keys()).filter(|name| before.get(*name) != after.get(*name));
    let show = |tree: &Tree, name: &str| tree.get(name).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    names.map(|name| format!("{name}: {:?} -> {:?}\n", show(before, name), show(after, name))).collect()
}
