//! Compares our reader with git's own output, on repositories that git created.
#![expect(clippy::disallowed_methods, reason = "tests lay out repositories")]

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Command};

use proptest::prelude::*;

use super::{
    GitDirs, GitIndex, Head, HeadTree, History, ObjectId, ObjectKind, Objects, discover, files_of, head_of, reference,
    target_commit, tree_of,
};

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

    /// The output of `git merge-base --all`, which fails if there is none.
    fn merge_bases(&self, one: &str, other: &str) -> Vec<String> {
        let output = Command::new("git").current_dir(self.at("")).args(["merge-base", "--all", one, other]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    /// Compares with `git ls-tree -r HEAD` and the content of each blob.
    #[track_caller]
    fn check_tree(&self) {
        let objects = Objects::of(&self.dirs().common);
        let tree = tree_of(&objects, &self.head()).unwrap();
        let listed = self.git(&["ls-tree", "-r", "-z", "HEAD"]);
        let listed: BTreeMap<Vec<u8>, String> = listed
            .split_terminator('\0')
            .map(|line| line.split_once('\t').unwrap())
            .map(|(entry, path)| (path.as_bytes().to_vec(), entry.to_owned()))
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

    /// Compares the index entries, and which of them equal the commit, with git's output.
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
fn a_head_that_leads_elsewhere_or_makes_no_sense_is_an_error() {
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
fn an_index_that_is_split_sparse_or_strange_is_an_error() {
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
        // Whatever the input is, the reader terminates.
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

/// An operation on a repository.
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
        // If a file and a directory conflict, the first one stays.
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

/// A change to a history after it was made.
#[derive(Debug, Clone)]
enum Rewrite {
    None,
    Graft(usize, Vec<usize>),
    Replace(usize, Vec<usize>),
    Shallow(usize),
    Pack,
}

/// A history: for each commit its parents (numbers of earlier ones, modulo) and its date.
fn history() -> impl Strategy<Value = (Vec<(Vec<usize>, u32)>, Rewrite)> {
    let parents = prop_oneof![1 => Just(0), 6 => Just(1), 5 => Just(2), 1 => Just(3)];
    // Parents are mostly near, so that branches cross. Clocks go wrong now and then.
    let commit =
        parents.prop_flat_map(|count| (prop::collection::vec(1_usize..6, count), prop_oneof![4 => Just(0), 1 => 0_u32..100]));
    let number = 0_usize..40;
    let rewrite = prop_oneof![
        4 => Just(Rewrite::None),
        1 => (number.clone(), prop::collection::vec(number.clone(), 0..3)).prop_map(|(commit, parents)| Rewrite::Graft(commit, parents)),
        1 => (number.clone(), prop::collection::vec(number.clone(), 0..3)).prop_map(|(commit, parents)| Rewrite::Replace(commit, parents)),
        1 => number.prop_map(Rewrite::Shallow),
        1 => Just(Rewrite::Pack),
    ];
    (prop::collection::vec(commit, 2..24), rewrite)
}

/// Makes these commits, and returns their ids.
fn make_history(repository: &Repository, commits: &[(Vec<usize>, u32)]) -> Vec<String> {
    let mut stream = String::new();
    for (number, (parents, skew)) in commits.iter().enumerate() {
        let date = 1_700_000_000 + 10 * number as i64 - i64::from(*skew) * 7;
        stream += &format!("commit refs/heads/c{number}\nmark :{}\ncommitter a <a@b> {date} +0000\ndata 0\n", number + 1);
        let mut named: Vec<usize> = parents.iter().filter_map(|back| number.checked_sub(*back)).collect();
        named.dedup();
        for (place, parent) in named.iter().enumerate() {
            stream += &format!("{} :{}\n", if place == 0 { "from" } else { "merge" }, parent + 1);
        }
        stream.push('\n');
    }
    repository.write("stream", stream);
    let input = fs::File::open(repository.at("stream")).unwrap();
    let done = Command::new("git").args(["fast-import", "--quiet"]).current_dir(repository.at("")).stdin(input).status().unwrap();
    assert!(done.success());
    (0..commits.len()).map(|number| repository.git(&["rev-parse", &format!("c{number}")]).trim().to_owned()).collect()
}

fn rewrite_history(repository: &Repository, rewrite: &Rewrite, ids: &[String]) {
    let id = |number: usize| ids[number % ids.len()].as_str();
    // Parents come before their children, so that there is no circle.
    let earlier = |commit: usize, parents: &[usize]| -> Vec<&str> {
        let mut numbers: Vec<usize> =
            parents.iter().map(|parent| parent % ids.len()).filter(|parent| *parent < commit % ids.len()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(id).collect()
    };
    match rewrite {
        Rewrite::None => {}
        Rewrite::Graft(commit, parents) => {
            let line = [vec![id(*commit)], earlier(*commit, parents)].concat().join(" ");
            repository.write(".git/info/grafts", format!("# a comment\n{line}\n"));
        }
        Rewrite::Replace(commit, parents) => {
            let parents = earlier(*commit, parents);
            let words = [vec!["replace", "--graft", id(*commit)], parents].concat();
            // It fails if these are its parents anyway.
            Command::new("git").current_dir(repository.at("")).args(words).output().unwrap();
            repository.git(&["pack-refs", "--all"]);
        }
        Rewrite::Shallow(commit) => repository.write(".git/shallow", format!("{}\n", id(*commit))),
        Rewrite::Pack => drop(repository.git(&["repack", "-adq"])),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 60, ..ProptestConfig::default() })]
    #[test]
    fn merge_bases_are_those_of_git((commits, rewrite) in history(), pairs in prop::collection::vec((0_usize..24, 0_usize..24), 6)) {
        let repository = Repository::new("sha1");
        let ids = make_history(&repository, &commits);
        rewrite_history(&repository, &rewrite, &ids);
        let dirs = repository.dirs();
        let objects = Objects::of(&dirs.common);
        let history = History::of(&dirs, &objects).unwrap();
        for (one, other) in pairs {
            let (one, other) = (&ids[one % ids.len()], &ids[other % ids.len()]);
            let found = history.merge_bases(&ObjectId::from_hex(one).unwrap(), &ObjectId::from_hex(other).unwrap()).unwrap();
            let mut found: Vec<String> = found.iter().map(ToString::to_string).collect();
            found.sort();
            let mut expected = repository.merge_bases(one, other);
            expected.sort();
            prop_assert_eq!(found, expected, "{:?} and {:?}", one, other);
        }
    }
}

#[test]
fn the_merge_base_with_a_missing_commit_is_an_error() {
    let repository = Repository::new("sha1");
    let ids = make_history(&repository, &[(vec![], 0), (vec![1], 0), (vec![1], 0), (vec![2], 0)]);
    let dirs = repository.dirs();
    let objects = Objects::of(&dirs.common);
    let id = |number: usize| ObjectId::from_hex(&ids[number]).unwrap();
    assert_eq!(History::of(&dirs, &objects).unwrap().merge_bases(&id(2), &id(3)).unwrap(), [id(1)]);
    let missing = ObjectId::from_hex("0123456789012345678901234567890123456789").unwrap();
    assert!(History::of(&dirs, &objects).unwrap().merge_bases(&id(2), &missing).is_err());
    // A blob is not a commit.
    repository.write("a", "a\n");
    let blob = ObjectId::from_hex(repository.git(&["hash-object", "-w", "a"]).trim()).unwrap();
    assert!(History::of(&dirs, &objects).unwrap().merge_bases(&id(2), &blob).is_err());
}

#[test]
fn the_target_branch_is_the_upstream_or_the_main_branch() {
    let repository = Repository::new("sha1");
    let target = |dir: &str| {
        let git = discover(&repository.at(dir), None).unwrap().git.unwrap();
        target_commit(&git, &reference(&git, "HEAD").unwrap()).unwrap().map(|commit| commit.to_string())
    };
    let id = |name: &str| Some(repository.git(&["rev-parse", name]).trim().to_owned());
    assert_eq!(target(""), None, "there is no commit");
    repository.commit();
    assert_eq!(target(""), None, "it is on the main branch, and there is no other");
    repository.git(&["worktree", "add", "-q", "-b", "side", "beside"]);
    repository.git_in("beside", &["commit", "-q", "--allow-empty", "-m", "y"]);
    assert_eq!(target("beside"), id("trunk"));

    repository.git(&["branch", "-m", "trunk", "odd"]);
    assert_eq!(target("beside"), id("odd"), "the branch of the main checkout");
    repository.git(&["branch", "-m", "odd", "trunk"]);

    let next = repository.git(&["commit-tree", "-m", "z", "-p", "trunk", "trunk^{tree}"]).trim().to_owned();
    repository.git(&["update-ref", "refs/remotes/origin/develop", &next]);
    repository.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/develop"]);
    assert_eq!(target("beside"), id("origin/develop"), "the default branch of the remote");
    assert_eq!(target(""), id("origin/develop"));

    repository.git(&["config", "branch.side.remote", "origin"]);
    repository.git(&["config", "branch.side.merge", "refs/heads/side"]);
    repository.git(&["update-ref", "refs/remotes/origin/side", "side"]);
    assert_eq!(target("beside"), id("origin/develop"), "its own copy is no target");
    repository.git(&["config", "branch.side.merge", "refs/heads/release"]);
    repository.git(&["update-ref", "refs/remotes/origin/release", "trunk"]);
    assert_eq!(target("beside"), id("trunk"), "another branch upstream is");
    repository.git_in("beside", &["checkout", "-q", "--detach"]);
    assert_eq!(target("beside"), id("origin/develop"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 40, ..ProptestConfig::default() })]
    #[test]
    fn the_reader_agrees_with_git(acts in prop::collection::vec(act(), 1..25), is_sha256 in any::<bool>()) {
        let repository = Repository::new(if is_sha256 { "sha256" } else { "sha1" });
        repository.commit();
        for act in &acts {
            carry_out(&repository, act);
        }
        repository.check_tree();
        repository.check_index();
    }
}
