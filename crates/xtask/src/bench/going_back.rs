//! The time to keep the state of all files and to restore it: checkpoints beside `git status`, and a restore of many
//! files. And the time to say who wrote a file that was changed often, and to take one of these changes back.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::bench::scan::{commit_all, keep, path};
use crate::files::{content, create};
use crate::machine;
use crate::measurement::Summary;

/// Files of a small repository.
const FEW: usize = 1_000;
/// Size of a file in bytes.
const BYTES: usize = 2 << 10;

/// The results. Times are from the start of a process to its end.
pub(crate) struct GoingBack {
    /// Commands with the number of files in the repository.
    pub rows: Vec<GoingBackRow>,
}

pub(crate) struct GoingBackRow {
    pub label: &'static str,
    /// The number of files in the repository.
    pub files: usize,
    /// How long it took.
    pub surehand: Summary,
    /// `git status` or `git blame` in the same state.
    pub git: Option<Summary>,
}

/// Measures in a small repository, and in the tree of the scan.
pub(super) fn measure(bench: &Bench, tree: &Path, files: usize) -> Result<GoingBack> {
    let server = bench.full.surehand.program();
    let root = bench.workspace()?;
    (0..FEW).try_for_each(|file| create(&root, &path(file), &content(file, BYTES)))?;
    commit_all(&root)?;
    machine::settle();
    let mut rows = vec![
        checkpoints(server, &root, FEW, bench.pace.pick(5, 40), Occasion::FileChanged)?,
        checkpoints(server, &root, FEW, bench.pace.pick(5, 40), Occasion::NothingChanged)?,
    ];
    rows.push(restores(server, &root, bench.pace.pick(2, 10))?);
    rows.extend(history_of_a_file(server, &bench.workspace()?, bench.pace.pick(3, 20))?);
    rows.push(checkpoints(server, tree, files, bench.pace.pick(3, 15), Occasion::FileChanged)?);
    rows.push(checkpoints(server, tree, files, bench.pace.pick(3, 15), Occasion::NothingChanged)?);
    Ok(GoingBack { rows })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Occasion {
    NothingChanged,
    FileChanged,
}

/// Checkpoints and `git status` in turn. The first round is not counted, because neither knows the stamps.
fn checkpoints(server: &Path, root: &Path, files: usize, rounds: usize, occasion: Occasion) -> Result<GoingBackRow> {
    let (mut ours, mut git_times) = (Vec::<Duration>::new(), Vec::<Duration>::new());
    let mut last = String::new();
    for round in 0..=rounds {
        if occasion == Occasion::FileChanged {
            create(root, &path(round), &content(files + round, BYTES))?;
        }
        let taken = keep(&mut ours, || surehand(server, root, &["checkpoint"]))?;
        let id = taken["checkpoint"].as_str().context("the id of a checkpoint")?.to_owned();
        ensure!(round == 0 || (id != last) == (occasion == Occasion::FileChanged), "checkpoint {id} after {last}");
        last = id;
        keep(&mut git_times, || git(root, &["status", "--porcelain"]))?;
        if round == 0 {
            ours.clear();
            git_times.clear();
        }
    }
    let label = match occasion {
        Occasion::NothingChanged => "checkpoint, nothing changed",
        Occasion::FileChanged => "checkpoint, one more file changed",
    };
    Ok(GoingBackRow { label, files, surehand: Summary::of(&ours), git: Some(Summary::of(&git_times)) })
}

/// Restores all files after each has been overwritten.
fn restores(server: &Path, root: &Path, rounds: usize) -> Result<GoingBackRow> {
    let taken = surehand(server, root, &["checkpoint", "before"])?;
    let id = taken["checkpoint"].as_str().context("the id of a checkpoint")?;
    let before = std::fs::read_to_string(root.join(path(FEW - 1))).context("a file")?;
    let mut times = Vec::<Duration>::new();
    for round in 0..rounds {
        (0..FEW).try_for_each(|file| create(root, &path(file), &format!("overwritten {round}\n")))?;
        keep(&mut times, || surehand(server, root, &["restore", "--to", id, "--yes"]))?;
        let now = std::fs::read_to_string(root.join(path(FEW - 1))).context("a file")?;
        ensure!(now == before, "the last file was not restored");
    }
    Ok(GoingBackRow { label: "restore of all files", files: FEW, surehand: Summary::of(&times), git: None })
}

/// Lines of a file that is changed often.
const LINES: usize = 10_000;
/// The number of changes to the file.
const CHANGES: usize = 1_000;

/// Blame beside `git blame`, and an undo by lines of a change with hundreds of others before and after it.
fn history_of_a_file(server: &Path, root: &Path, rounds: usize) -> Result<[GoingBackRow; 2]> {
    let text: String = (0..LINES).map(|line| format!("line {line}.\n")).collect();
    create(root, "often.txt", &text)?;
    commit_all(root)?;
    let call = |tool: &str, arguments: &Value| surehand(server, root, &["call", tool, &arguments.to_string(), "--session", "s"]);
    for offset in (1..=LINES).step_by(1_000) {
        call("read_file", &json!({ "path": "often.txt", "offset": offset, "limit": 1_000 }))?;
    }
    let mut middle = String::new();
    for change in 0..CHANGES {
        // All over the file, in no order.
        let old = format!("line {}.\n", change * 7_919 % LINES);
        let edit = json!({ "path": "often.txt", "old_string": old, "new_string": format!("change {change}\nand more\n") });
        let made = call("edit_file", &edit)?;
        if change == CHANGES / 2 {
            made["change"].as_str().context("the id of a change")?.clone_into(&mut middle);
        }
    }
    let (mut blames, mut git_blames, mut undos) = (Vec::<Duration>::new(), Vec::<Duration>::new(), Vec::<Duration>::new());
    for _ in 0..rounds {
        let blamed = keep(&mut blames, || surehand(server, root, &["blame", "often.txt"]))?;
        ensure!(blamed["total_lines"] == LINES + CHANGES, "the file has {} lines", blamed["total_lines"]);
        keep(&mut git_blames, || git(root, &["blame", "--incremental", "often.txt"]))?;
        let undone = keep(&mut undos, || surehand(server, root, &["undo", &middle]))?;
        ensure!(undone["undone"] == json!([middle]), "undone: {undone}");
        surehand(server, root, &["redo"])?;
    }
    let row = |label, times: &[Duration], git: Option<&[Duration]>| GoingBackRow {
        label,
        files: 1,
        surehand: Summary::of(times),
        git: git.map(Summary::of),
    };
    Ok([
        row("blame, 10,000 lines with 1,000 changes", &blames, Some(&git_blames)),
        row("undo of one of 1,000 changes of that file", &undos, None),
    ])
}

fn surehand(server: &Path, root: &Path, words: &[&str]) -> Result<Value> {
    let output = Command::new(server).args(words).args(["--json", "--root"]).arg(root).output().context("surehand")?;
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "surehand {}: {}", words.join(" "), said());
    serde_json::from_slice(&output.stdout).with_context(|| format!("the result of surehand {}", words.join(" ")))
}

fn git(root: &Path, words: &[&str]) -> Result<()> {
    let output = Command::new("git").current_dir(root).args(words).output().context("git")?;
    ensure!(output.status.success(), "git {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
    Ok(())
}
