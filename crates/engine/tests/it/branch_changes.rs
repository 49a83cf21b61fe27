//! The changes of a checkout since its fork point, and forecasts of conflicts with another checkout, compared with git.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    process::{Command, Output},
    sync::Arc,
};

use proptest::prelude::*;
use surehand_core::{
    Forecast, Hunk, RelPath,
    forecast::{Side, UnknownForecast, VersionHunk, apply},
};
use surehand_engine::{
    BoardConfig, Config, StateHome, Workspace,
    fleet::{BranchChanges, Forecaster, ForkPointError},
    store::board::{ContentChange, FileChange},
};
use tempfile::TempDir;

/// A repository in `first`, with other checkouts beside it.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        machine.git(".", "init -q -b main first");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn try_git(&self, place: &str, arguments: &str) -> Output {
        let identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "protocol.file.allow=always"];
        Command::new("git").current_dir(self.path(place)).args(identity).args(arguments.split(' ')).output().unwrap()
    }

    fn git(&self, place: &str, arguments: &str) -> String {
        let done = self.try_git(place, arguments);
        assert!(done.status.success(), "git {arguments}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    fn commit(&self, place: &str) {
        self.git(place, "add -A");
        self.git(place, "commit -q --allow-empty -m x");
    }

    fn open_with(&self, place: &str, board: BoardConfig) -> Arc<Workspace> {
        let home = StateHome { user: Some(self.path("state/surehand")), ..StateHome::default() };
        Workspace::open(&self.path(place), Config { state: home, board, ..Config::default() }).unwrap()
    }

    fn open(&self, place: &str) -> Arc<Workspace> {
        self.open_with(place, BoardConfig::default())
    }

    fn changes(&self, place: &str) -> BTreeMap<String, ContentChange> {
        by_path(BranchChanges::find(&self.open(place)).unwrap().files().cloned())
    }

    /// The changed paths by git: those that differ from this commit, and untracked ones.
    fn changed_paths(&self, place: &str, commit: &str) -> BTreeSet<String> {
        let differing = self.git(place, &format!("diff --name-only --no-renames {commit}"));
        let unknown = self.git(place, "ls-files -o --exclude-standard");
        differing.lines().chain(unknown.lines()).map(str::to_owned).collect()
    }

    /// The change of a file of this checkout since its fork point.
    fn change(&self, workspace: &Workspace, place: &str, path: &RelPath) -> FileChange {
        let changes = BranchChanges::find(workspace).unwrap();
        changes.files().find(|change| change.path == *path).cloned().unwrap_or_else(|| {
            let fork_point = workspace.fork_point().unwrap().commit();
            let entry = self.git(place, &format!("ls-tree {fork_point} -- {path}"));
            let base = entry.split_whitespace().nth(2).map(str::to_owned);
            FileChange { path: path.clone(), fork_point, base, change: ContentChange::Same, by: None, revision: 0 }
        })
    }

    /// The forecast for the present content of a file of `place` against the change of `other`.
    fn forecast(&self, place: &str, other: &str, path: &str) -> Forecast {
        let (mine, theirs) = (self.open(place), self.open(other));
        let path = RelPath::new(path).unwrap();
        let change = self.change(&theirs, other, &path);
        let content = fs::read(self.path(place).join(path.as_str())).ok();
        Forecaster::new(&mine, &mine.fork_point().unwrap()).unwrap().forecast(content.as_deref(), &change, None)
    }
}

fn by_path(changes: impl Iterator<Item = FileChange>) -> BTreeMap<String, ContentChange> {
    changes.map(|change| (change.path.to_string(), change.change)).collect()
}

fn lines(count: usize) -> String {
    (1..=count).map(|number| format!("line {number}\n")).collect()
}

fn is_conflict(forecast: &Forecast) -> bool {
    matches!(forecast, Forecast::SameLines(_))
}

#[test]
fn changes_are_those_since_the_fork_point_committed_or_not() {
    let machine = Machine::new();
    machine.write("first/a.txt", lines(9));
    machine.write("first/old.txt", "old\n");
    machine.write("first/.gitignore", "*.log\n");
    machine.commit("first");
    machine.git("first", "worktree add -q -b side ../beside");
    machine.write("first/main.txt", "only on main\n");
    machine.commit("first");
    assert!(machine.changes("beside").is_empty());

    machine.write("beside/committed.txt", "c\n");
    machine.commit("beside");
    machine.write("beside/a.txt", lines(9).replace("line 5\n", "LINE 5\nmore\n"));
    machine.write("beside/x.log", "ignored\n");
    machine.write("beside/picture", b"\0\x01");
    fs::remove_file(machine.path("beside/old.txt")).unwrap();
    let changes = machine.changes("beside");
    assert_eq!(changes.keys().map(String::as_str).collect::<Vec<_>>(), ["a.txt", "committed.txt", "old.txt", "picture"]);
    let ContentChange::Lines(hunks) = &changes["a.txt"] else { panic!("it is text") };
    assert_eq!((hunks[0].before.clone(), hunks[0].after.clone()), (4..5, 4..6));
    assert_eq!(hunks[0].text.as_deref(), Some("LINE 5\nmore\n"));
    assert_eq!((&changes["old.txt"], &changes["picture"]), (&ContentChange::Deleted, &ContentChange::Binary));
}

#[test]
fn text_goes_to_a_server_only_if_the_user_allows_it() {
    let machine = Machine::new();
    machine.commit("first");
    machine.write("first/a", "a\n");
    let text = |board: BoardConfig| {
        let changes = BranchChanges::find(&machine.open_with("first", board)).unwrap();
        let change = changes.files().next().unwrap().change.clone();
        let ContentChange::Lines(hunks) = change else { panic!("it is text") };
        hunks[0].text.clone()
    };
    let url = Some("postgres://example.org/x".to_owned());
    assert_eq!(text(BoardConfig { url: url.clone(), ..BoardConfig::default() }), None);
    assert_eq!(text(BoardConfig { url, hunks: true, ..BoardConfig::default() }), Some("a\n".to_owned()));
    assert_eq!(text(BoardConfig::default()), Some("a\n".to_owned()));
}

#[test]
fn without_a_commit_there_is_no_fork_point_and_without_a_target_it_is_head() {
    let machine = Machine::new();
    assert!(matches!(machine.open("first").fork_point(), Err(ForkPointError::NoCommit)));
    machine.commit("first");
    let head = machine.git("first", "rev-parse HEAD");
    assert_eq!(machine.open("first").fork_point().unwrap().commit(), head.trim());
    machine.git("first", "checkout -q --detach");
    machine.commit("first");
    assert_eq!(machine.open("first").fork_point().unwrap().commit(), head.trim(), "main is the target now");
    fs::create_dir(machine.path("plain")).unwrap();
    assert!(matches!(machine.open("plain").fork_point(), Err(ForkPointError::NoRepository)));
}

#[test]
fn in_a_shallow_clone_whose_history_does_not_meet_changes_start_at_head() {
    let machine = Machine::new();
    machine.write("first/a", lines(3));
    machine.commit("first");
    machine.git("first", "checkout -q -b side");
    machine.commit("first");
    machine.git("first", "checkout -q main");
    machine.write("first/b", "only on main\n");
    machine.commit("first");
    let url = format!("file://{}", machine.path("first").display());
    machine.git(".", &format!("clone -q --depth 1 --no-single-branch {url} second"));
    machine.git("second", "checkout -q side");
    let head = machine.git("second", "rev-parse HEAD");
    machine.write("second/a", "x\n");
    let changes = BranchChanges::find(&machine.open("second")).unwrap();
    assert_eq!(changes.files().map(|change| change.fork_point.as_str()).collect::<Vec<_>>(), [head.trim()]);
    // The other side reports a fork point that is missing here.
    assert_eq!(machine.forecast("second", "first", "a"), Forecast::Unknown(UnknownForecast::NoBase));
}

#[test]
fn an_edit_is_followed_by_a_check_of_its_file_alone() {
    let machine = Machine::new();
    for name in ["a", "b"] {
        machine.write(&format!("first/{name}"), lines(5));
    }
    machine.commit("first");
    let workspace = machine.open("first");
    let mut changes = BranchChanges::find(&workspace).unwrap();
    let [a, b] = ["a", "b"].map(|name| RelPath::new(name).unwrap());
    machine.write("first/a", "x\n");
    machine.write("first/b", "x\n");
    let news = changes.refresh_paths(&workspace, std::slice::from_ref(&a)).unwrap();
    assert_eq!(news.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["a"]);
    assert!(changes.refresh_paths(&workspace, std::slice::from_ref(&a)).unwrap().is_empty(), "nothing is new");
    machine.write("first/a", lines(5));
    let news = changes.refresh_paths(&workspace, &[a.clone(), b]).unwrap();
    assert_eq!(by_path(news.into_iter())["a"], ContentChange::Same);
    assert_eq!(changes.files().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["b"]);
    // A commit moves the fork point of the main branch, and then there are no changes left.
    machine.commit("first");
    let news = changes.refresh_paths(&workspace, &[a]).unwrap();
    assert_eq!(by_path(news.into_iter())["b"], ContentChange::Same);
    assert_eq!(changes.files().count(), 0);
}

#[test]
fn a_workspace_in_a_directory_reports_paths_of_the_work_tree() {
    let machine = Machine::new();
    machine.write("first/sub/a", lines(3));
    machine.commit("first");
    machine.write("first/sub/a", "x\n");
    machine.write("first/b", "elsewhere\n");
    let state = StateHome { user: Some(machine.path("state/surehand")), ..StateHome::default() };
    let workspace = Workspace::open(&machine.path("first/sub"), Config { state, ..Config::default() }).unwrap();
    let changes = BranchChanges::find(&workspace).unwrap();
    assert_eq!(changes.files().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["sub/a"]);
}

#[test]
fn line_endings_that_git_converts_are_no_change() {
    let machine = Machine::new();
    machine.write("first/a", lines(9));
    machine.commit("first");
    machine.git("first", "config core.autocrlf true");
    machine.git("first", "worktree add -q -b side ../beside");
    assert!(fs::read_to_string(machine.path("beside/a")).unwrap().contains("\r\n"));
    machine.write("beside/a", lines(9).replace("line 3\n", "LINE 3\n").replace('\n', "\r\n"));
    let ContentChange::Lines(hunks) = &machine.changes("beside")["a"] else { panic!("it is text") };
    assert_eq!(hunks[0].before, 2..3);
    machine.write("first/a", lines(9).replace("line 8\n", "LINE 8\n"));
    assert_eq!(machine.forecast("beside", "first", "a"), Forecast::Clean);
    machine.write("first/a", lines(9).replace("line 3\n", "other\n"));
    assert!(is_conflict(&machine.forecast("beside", "first", "a")));
}

#[test]
fn files_that_a_sparse_checkout_leaves_out_are_not_deleted() {
    let machine = Machine::new();
    machine.write("first/in/a", "a\n");
    machine.write("first/out/b", "b\n");
    machine.commit("first");
    machine.git("first", "sparse-checkout set --no-cone --no-sparse-index /in/");
    assert!(!machine.path("first/out").exists());
    assert!(machine.changes("first").is_empty());
}

#[test]
fn a_file_that_one_side_deletes_or_both_add_is_forecast() {
    let machine = Machine::new();
    machine.write("first/a", lines(5));
    machine.commit("first");
    machine.git("first", "worktree add -q -b side ../beside");
    machine.write("beside/a", lines(6));
    fs::remove_file(machine.path("first/a")).unwrap();
    assert_eq!(machine.forecast("beside", "first", "a"), Forecast::Deleted { by: Side::Theirs });
    assert_eq!(machine.forecast("first", "beside", "a"), Forecast::Deleted { by: Side::Mine });
    machine.write("beside/new", "one\n");
    assert_eq!(machine.forecast("beside", "first", "new"), Forecast::Clean);
    machine.write("first/new", "two\n");
    assert!(is_conflict(&machine.forecast("beside", "first", "new")));
    machine.write("first/new", "one\n");
    assert_eq!(machine.forecast("beside", "first", "new"), Forecast::Clean);
}

#[test]
fn branches_made_from_each_other_meet_at_the_commit_they_share() {
    let machine = Machine::new();
    machine.write("first/a", lines(9));
    machine.commit("first");
    machine.git("first", "worktree add -q -b side ../beside");
    machine.write("beside/a", lines(9).replace("line 5\n", "of side\n"));
    machine.commit("beside");
    machine.git("beside", "worktree add -q -b onward ../onward");
    machine.write("onward/a", lines(9).replace("line 5\n", "of onward\n"));
    let (mine, theirs) = (machine.open("onward"), machine.open("beside"));
    let path = RelPath::new("a").unwrap();
    let change = machine.change(&theirs, "beside", &path);
    let forecaster = Forecaster::new(&mine, &mine.fork_point().unwrap()).unwrap();
    let content = fs::read(machine.path("onward/a")).unwrap();
    // The other side has the line as it was when this branch was made.
    let their_head = forecaster.head_at(&machine.path("beside")).unwrap();
    assert_eq!(forecaster.forecast(Some(&content), &change, Some(&their_head)), Forecast::Clean);

    assert_eq!(their_head, machine.git("beside", "rev-parse HEAD").trim());
    assert_eq!(forecaster.head_at(&machine.path("first")).unwrap(), machine.git("first", "rev-parse HEAD").trim());
    machine.git(".", "clone -q first second");
    assert_eq!(forecaster.head_at(&machine.path("second")), None, "a clone is another repository");
}

/// An action in one of two checkouts.
#[derive(Debug, Clone)]
enum Act {
    Write(usize, &'static str, usize, u8),
    Remove(usize, &'static str),
    Commit(usize),
    Stage(usize),
    /// The side branch merges main.
    Merge,
}

const PLACES: [&str; 2] = ["first", "beside"];

/// The last two files do not exist at the start.
const PATHS: [&str; 6] = ["a", "b", "d/c", "d/e/f", "new", "d/new"];

fn act() -> impl Strategy<Value = Act> {
    let path = || prop::sample::select(&PATHS[..]);
    prop_oneof![
        6 => (0_usize..2, path(), 0_usize..12, any::<u8>()).prop_map(|(place, path, line, by)| Act::Write(place, path, line, by)),
        1 => (0_usize..2, path()).prop_map(|(place, path)| Act::Remove(place, path)),
        2 => (0_usize..2).prop_map(Act::Commit),
        1 => (0_usize..2).prop_map(Act::Stage),
        1 => Just(Act::Merge),
    ]
}

fn carry_out(machine: &Machine, act: &Act) {
    match act {
        Act::Write(place, path, line, by) => {
            let file = machine.path(PLACES[*place]).join(path);
            let mut lines: Vec<String> = fs::read_to_string(&file).unwrap_or_default().lines().map(str::to_owned).collect();
            let line = (*line).min(lines.len());
            let end = (line + usize::from(by % 3)).min(lines.len());
            lines.splice(line..end, (0..by / 3 % 3).map(|number| format!("{number} by {by}")));
            machine
                .write(&format!("{}/{path}", PLACES[*place]), lines.iter().map(|line| format!("{line}\n")).collect::<String>());
        }
        Act::Remove(place, path) => drop(fs::remove_file(machine.path(PLACES[*place]).join(path))),
        Act::Commit(place) => machine.commit(PLACES[*place]),
        Act::Stage(place) => drop(machine.git(PLACES[*place], "add -A")),
        Act::Merge => {
            machine.commit("beside");
            if !machine.try_git("beside", "merge -q -m m main").status.success() {
                machine.git("beside", "merge --abort");
            }
        }
    }
}

fn two_checkouts() -> Machine {
    let machine = Machine::new();
    PATHS[..4].iter().for_each(|path| machine.write(&format!("first/{path}"), lines(12)));
    machine.commit("first");
    machine.git("first", "worktree add -q -b side ../beside");
    machine
}

/// The files that conflict when git merges main into the side branch, after both sides have committed.
fn conflicts_of_git(machine: &Machine) -> BTreeSet<String> {
    PLACES.iter().for_each(|place| machine.commit(place));
    machine.git("beside", "config merge.renames false");
    machine.try_git("beside", "merge -q --no-commit --no-ff -X diff-algorithm=myers main");
    machine.git("beside", "diff --name-only --diff-filter=U").lines().map(str::to_owned).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 60, ..ProptestConfig::default() })]
    #[test]
    fn changes_stay_what_git_says_whatever_happens(acts in prop::collection::vec(act(), 1..14)) {
        let machine = two_checkouts();
        let workspace = machine.open("beside");
        let mut changes = BranchChanges::find(&workspace).unwrap();
        let mut reported = by_path(changes.files().cloned());
        for (number, act) in acts.iter().enumerate() {
            carry_out(&machine, act);
            let news = match act {
                Act::Write(1, path, ..) | Act::Remove(1, path) if number % 2 == 0 => {
                    changes.refresh_paths(&workspace, &[RelPath::new(path).unwrap()]).unwrap()
                }
                _ => changes.refresh(&workspace).unwrap(),
            };
            reported.extend(by_path(news.into_iter()));
            reported.retain(|_, change| *change != ContentChange::Same);
            prop_assert_eq!(&reported, &by_path(changes.files().cloned()));
        }
        let fork = machine.git("beside", "merge-base HEAD main");
        prop_assert_eq!(workspace.fork_point().unwrap().commit(), fork.trim());
        prop_assert!(changes.files().all(|change| change.fork_point == fork.trim()));
        let fresh = BranchChanges::find(&workspace).unwrap();
        prop_assert_eq!(by_path(fresh.files().cloned()), reported);
        let paths: BTreeSet<String> = fresh.files().map(|change| change.path.to_string()).collect();
        prop_assert_eq!(paths, machine.changed_paths("beside", fork.trim()));
        for change in fresh.files() {
            let ContentChange::Lines(hunks) = &change.change else { continue };
            let base = change.base.as_ref().map_or_else(String::new, |id| machine.git("beside", &format!("cat-file blob {id}")));
            let hunk = |hunk: &surehand_engine::store::board::SharedHunk| Hunk {
                before: hunk.before.start as usize..hunk.before.end as usize,
                after: hunk.after.start as usize..hunk.after.end as usize,
            };
            let hunks: Vec<_> = hunks.iter().map(|shared| VersionHunk { lines: hunk(shared), text: shared.text.as_deref() }).collect();
            let content = fs::read(machine.path("beside").join(change.path.as_str())).unwrap();
            prop_assert_eq!(apply(base.as_bytes(), &hunks).unwrap().unwrap(), content);
        }
    }

    #[test]
    fn a_forecast_is_what_git_then_merges(acts in prop::collection::vec(act(), 1..14)) {
        let machine = two_checkouts();
        acts.iter().for_each(|act| carry_out(&machine, act));
        let forecasts = PATHS.map(|path| machine.forecast("beside", "first", path));
        let conflicts = conflicts_of_git(&machine);
        for (path, forecast) in PATHS.iter().zip(forecasts) {
            let is_clean = match forecast {
                Forecast::Clean => true,
                Forecast::SameLines(_) | Forecast::Deleted { .. } => false,
                other => panic!("{path}: {other:?}"),
            };
            prop_assert_eq!(is_clean, !conflicts.contains(*path), "{}", path);
        }
    }
}
