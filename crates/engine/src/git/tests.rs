//! What is read here is what git itself says, of repositories that git has made.
#![expect(clippy::disallowed_methods, reason = "tests lay out repositories")]

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Command};

use proptest::prelude::*;

use super::{GitDirs, GitIndex, Head, HeadTree, ObjectId, ObjectKind, Objects, discover, files_of, head_of, tree_of};

struct Repository(tempfile::TempDir);

impl Repository {
    fn new(format: &str) -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        repository.git(&["init", "-q", "-b", "trunk", &format!("--object-format={format}")]);
        repository
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.git_in("", arguments)
    }

    fn git_in(&self, dir: &str, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"] {
            git.env_remove(variable);
        }
        let settings = ["user.name=a", "user.email=a@b", "commit.gpgsign=false", "gc.auto=0"];
        let settings = settings.iter().flat_map(|setting| ["-c", setting]);
        let output = git.current_dir(self.at(dir)).args(settings).args(arguments).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    }

    fn dirs(&self) -> GitDirs {
        discover(&self.at(""), None).unwrap().git.unwrap()
    }

    fn head(&self) -> ObjectId {
        match head_of(&self.dirs()).unwrap() {
            Head::Commit(commit) => commit,
            Head::Unborn => panic!("there is a commit"),
        }
    }

    /// `git ls-tree -r HEAD`, and the content of each blob as git gives it.
    #[track_caller]
    fn check_tree(&self) {
        let objects = Objects::of(&self.dirs().common);
        let tree = tree_of(&objects, &self.head()).unwrap();
        let listed = self.git(&["ls-tree", "-r", "-z", "HEAD"]);
        let listed: BTreeMap<Vec<u8>, String> = listed
            .split_terminator('\0')
            .map(|line| line.split_once('\t').unwrap())
            .map(|(what, path)| (path.as_bytes().to_vec(), what.to_owned()))
            .collect();
        let read = files_of(&objects, &tree).unwrap();
        let in_words =
            |(path, entry): (&Vec<u8>, &super::TreeEntry)| (path.clone(), format!("{:06o} blob {}", entry.mode, entry.id));
        assert_eq!(read.iter().map(in_words).collect::<BTreeMap<_, _>>(), listed);
        for (path, entry) in &read {
            let (kind, content) = objects.read(&entry.id, usize::MAX).unwrap().unwrap();
            let path = str::from_utf8(path).unwrap();
            assert_eq!(kind, ObjectKind::Blob);
            assert!(content == self.git(&["cat-file", "blob", &entry.id.to_string()]).into_bytes(), "{path}");
            assert_eq!(objects.blob(&entry.id, content.len()).unwrap().as_ref(), Some(&content));
            if !content.is_empty() {
                assert_eq!(objects.blob(&entry.id, content.len() - 1).unwrap(), None, "{path}");
            }
        }
    }

    /// The entries of the index and which of them are as in the commit, as git says it.
    #[track_caller]
    fn check_index(&self) {
        let dirs = self.dirs();
        let index = GitIndex::read(&dirs).unwrap();
        let listed: Vec<String> = self.git(&["ls-files", "-s", "-z"]).split_terminator('\0').map(str::to_owned).collect();
        let in_words = |entry: &super::entries::IndexEntry| {
            format!("{:06o} {} 0\t{}", entry.mode, entry.id, str::from_utf8(index.name(entry)).unwrap())
        };
        assert_eq!(index.entries().iter().map(in_words).collect::<Vec<_>>(), listed);
        for (place, entry) in index.entries().iter().enumerate() {
            assert_eq!(index.find(index.name(entry)), Some(place));
        }
        let objects = Objects::of(&dirs.common);
        let head = HeadTree::compare(&objects, &tree_of(&objects, &self.head()).unwrap(), &index).unwrap();
        let staged = self.git(&["diff", "--cached", "--name-only", "--no-renames", "-z", "HEAD"]);
        let staged: Vec<&str> = staged.split_terminator('\0').collect();
        for (place, entry) in index.entries().iter().enumerate() {
            let path = str::from_utf8(index.name(entry)).unwrap();
            assert_eq!(head.has(place), !staged.contains(&path), "{path}");
        }
        let others: Vec<&str> = head.others.keys().map(|path| str::from_utf8(path).unwrap()).collect();
        let of_head =
            |path: &&&str| files_of(&objects, &tree_of(&objects, &self.head()).unwrap()).unwrap().contains_key(path.as_bytes());
        assert_eq!(others, staged.iter().filter(of_head).copied().collect::<Vec<_>>());
    }
}

#[test]
fn the_commit_at_head_is_found_wherever_it_is_noted() {
    for format in ["sha1", "sha256"] {
        let repository = Repository::new(format);
        assert_eq!(head_of(&repository.dirs()).unwrap(), Head::Unborn);
        repository.write("a", "a\n");
        repository.commit();
        let expected = repository.git(&["rev-parse", "HEAD"]).trim().to_owned();
        let check = |dir: &str, expected: &str| {
            let git = discover(&repository.at(dir), None).unwrap().git.unwrap();
            let Head::Commit(found) = head_of(&git).unwrap() else { panic!("{dir}: there is a commit") };
            assert_eq!(found.to_string(), expected, "{dir}");
        };
        check("", &expected);
        repository.git(&["pack-refs", "--all"]);
        check("", &expected);
        repository.git(&["checkout", "-q", "--detach"]);
        check("", &expected);
        repository.git(&["worktree", "add", "-q", "-b", "side", "beside"]);
        repository.git_in("beside", &["commit", "-q", "--allow-empty", "-m", "y"]);
        let side = repository.git(&["rev-parse", "side"]).trim().to_owned();
        assert_ne!(side, expected);
        check("beside", &side);
        check("", &expected);
    }
}

#[test]
fn a_head_that_leads_elsewhere_or_makes_no_sense_tells_nothing() {
    let repository = Repository::new("sha1");
    for head in ["ref: ../../../etc/passwd", "ref: refs/heads/../../x", "ref: /etc/passwd", "hello", "", "ref: refs/heads/a\0b"] {
        repository.write(".git/HEAD", head);
        assert!(head_of(&repository.dirs()).is_err(), "{head:?}");
    }
    repository.write(".git/HEAD", "ref: refs/heads/a");
    repository.write(".git/refs/heads/a", "ref: refs/heads/a");
    assert!(head_of(&repository.dirs()).is_err());
}

#[test]
fn an_index_that_is_split_sparse_or_strange_tells_nothing() {
    let repository = Repository::new("sha1");
    repository.write("a/b", "b\n");
    repository.commit();
    repository.git(&["update-index", "--split-index"]);
    assert!(GitIndex::read(&repository.dirs()).is_err());
    repository.git(&["update-index", "--no-split-index"]);
    assert_eq!(GitIndex::read(&repository.dirs()).unwrap().entries().len(), 1);
    let whole = fs::read(repository.at(".git/index")).unwrap();
    for length in 0..whole.len() {
        fs::write(repository.at(".git/index"), &whole[..length]).unwrap();
        // Whatever it says, it comes to an end.
        let _ = GitIndex::read(&repository.dirs());
    }
    for strange in ["", "DIRC", "hello, this is no index at all", "DIRC\0\0\0\x02\0\0\0\x05short"] {
        fs::write(repository.at(".git/index"), strange).unwrap();
        assert!(GitIndex::read(&repository.dirs()).is_err(), "{strange:?}");
    }
}

#[test]
fn a_damaged_pack_is_an_error_and_no_panic() {
    let repository = Repository::new("sha1");
    for number in 0..20 {
        repository.write("a", (0..200).map(|line| format!("{} {line}\n", line % (number + 2))).collect::<String>());
        repository.commit();
    }
    repository.git(&["gc", "-q"]);
    let commit = repository.head();
    let pack = fs::read_dir(repository.at(".git/objects/pack")).unwrap().flatten().map(|entry| entry.path());
    let pack = pack.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "pack")).unwrap();
    fs::set_permissions(&pack, fs::Permissions::from_mode(0o600)).unwrap();
    let whole = fs::read(&pack).unwrap();
    for at in (12..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        fs::write(&pack, &damaged).unwrap();
        let objects = Objects::of(&repository.dirs().common);
        if let Ok(tree) = tree_of(&objects, &commit) {
            let files = files_of(&objects, &tree).unwrap_or_default();
            files.values().for_each(|file| drop(objects.blob(&file.id, 1 << 20)));
        }
    }
}

#[test]
fn objects_of_alternates_are_found() {
    let repository = Repository::new("sha1");
    repository.write("one/.keep", "");
    repository.git_in("one", &["init", "-q"]);
    repository.write("one/a", "a\n");
    repository.git_in("one", &["add", "."]);
    repository.git_in("one", &["commit", "-q", "-m", "x"]);
    repository.git(&["clone", "-q", "--shared", "one", "two"]);
    let git = discover(&repository.at("two"), None).unwrap().git.unwrap();
    let Head::Commit(commit) = head_of(&git).unwrap() else { panic!("there is a commit") };
    let objects = Objects::of(&git.common);
    assert_eq!(files_of(&objects, &tree_of(&objects, &commit).unwrap()).unwrap().len(), 2);
}

/// What is done to a repository.
#[derive(Debug, Clone)]
enum Act {
    Write(String, Vec<u8>),
    Remove(String),
    Executable(String),
    Link(String),
    Add,
    Commit,
    Pack,
    IndexVersion(u8),
}

fn act() -> impl Strategy<Value = Act> {
    let path = || "(a|b|c-d|é)(/(a|b|x.y)){0,2}";
    let content = prop_oneof![
        prop::collection::vec(prop_oneof![Just(b'a'), Just(b'\n'), Just(b'z')], 0..40),
        (1_u8..200, 1_usize..40).prop_map(|(seed, times)| {
            (0..times * 50)
                .flat_map(|line| format!("line {line} of {}\n", if line % 97 == 0 { seed } else { 0 }).into_bytes())
                .collect()
        }),
    ];
    prop_oneof![
        6 => (path(), content).prop_map(|(path, content)| Act::Write(path, content)),
        1 => path().prop_map(Act::Remove),
        1 => path().prop_map(Act::Executable),
        1 => path().prop_map(Act::Link),
        2 => Just(Act::Add),
        2 => Just(Act::Commit),
        1 => Just(Act::Pack),
        1 => (2_u8..=4).prop_map(Act::IndexVersion),
    ]
}

fn carry_out(repository: &Repository, act: &Act) {
    match act {
        // Where a file is in the way of a directory or the other way round, the first one stays.
        Act::Write(path, content) => {
            let path = repository.at(path);
            let _ = fs::create_dir_all(path.parent().unwrap());
            let _ = fs::write(path, content);
        }
        Act::Remove(path) => {
            let _ = fs::remove_file(repository.at(path));
        }
        Act::Executable(path) => {
            let _ = fs::set_permissions(repository.at(path), fs::Permissions::from_mode(0o755));
        }
        Act::Link(path) => {
            let path = repository.at(path);
            let _ = fs::create_dir_all(path.parent().unwrap());
            let _ = std::os::unix::fs::symlink("nowhere/at/all", path);
        }
        Act::Add => drop(repository.git(&["add", "-A"])),
        Act::Commit => repository.commit(),
        Act::Pack => drop(repository.git(&["gc", "-q"])),
        Act::IndexVersion(version) => drop(repository.git(&["update-index", "--index-version", &version.to_string()])),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 40, ..ProptestConfig::default() })]
    #[test]
    fn what_is_read_is_what_git_says(acts in prop::collection::vec(act(), 1..25), is_sha256 in any::<bool>()) {
        let repository = Repository::new(if is_sha256 { "sha256" } else { "sha1" });
        repository.commit();
        for act in &acts {
            carry_out(&repository, act);
        }
        repository.check_tree();
        repository.check_index();
    }
}
