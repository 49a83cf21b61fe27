//! The time to scan a large tree: unchanged, beside `git status` and a bare walk that only stats each file; and for the
//! first time, beside `sha256sum` on all cores. Nothing is pinned to a core, because all of them use several.

use std::ffi::CStr;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
use serde_json::Value;

use crate::bench::Bench;
use crate::files::{content, create};
use crate::machine;
use crate::measurement::Summary;

/// Size of a file in bytes.
const BYTES: usize = 2 << 10;
/// Files in a directory.
const IN_DIRECTORY: usize = 10;
/// Typical ignore rules of a repository.
const RULES: &str = "target/\nnode_modules/\n/build\n*.log\n*.tmp\n*.o\n.DS_Store\n";

pub(crate) struct Scan {
    pub files: usize,
    /// A run of `surehand scan --json` in an unchanged tree, from start to end.
    pub warm: Summary,
    /// Without the start and the end of the process.
    pub warm_inside: Summary,
    /// The time of `git status --porcelain`.
    pub git: Summary,
    /// A walk that only stats each file.
    pub bare: Summary,
    /// The first scan, in which every file is hashed.
    pub cold: Summary,
    /// The time of `sha256sum` over all files, with one process per core.
    pub sums: Summary,
}

/// Measures the scans alternately with the comparisons, and returns the tree.
pub(super) fn measure(bench: &Bench) -> Result<(Scan, PathBuf)> {
    let files = bench.pace.pick(20_000, 100_000);
    let root = bench.workspace()?;
    for file in 0..files {
        create(&root, &path(file), &content(file, BYTES))?;
    }
    create(&root, ".gitignore", RULES)?;
    commit_all(&root)?;
    machine::settle();
    let server = bench.fast.surehand.program();
    let mut times: [Vec<Duration>; 6] = Default::default();
    let [warm, warm_inside, status, bare, cold, sums] = &mut times;
    for _ in 0..bench.pace.pick(2, 4) {
        let _ = fs::remove_file(surehand_testkit::state_of(&root).join("index"));
        keep(cold, || scan(server, &root, files + 1, "first"))?;
        keep(sums, || sha256sum(&root))?;
    }
    for _ in 0..bench.pace.pick(5, 21) {
        warm_inside.push(keep(warm, || scan(server, &root, files + 1, "unchanged"))?);
        keep(status, || git(&root, &["status", "--porcelain"]))?;
        let seen = keep(bare, || walk(&root))?;
        ensure!(seen == files + 1, "the bare walk has seen {seen} files");
    }
    let [warm, warm_inside, git, bare, cold, sums] = times.map(|times| Summary::of(&times));
    Ok((Scan { files, warm, warm_inside, git, bare, cold, sums }, root))
}

/// Creates a repository with all files in one commit.
pub(super) fn commit_all(root: &Path) -> Result<()> {
    git(root, &["init", "--quiet"])?;
    git(root, &["add", "--all"])?;
    git(root, &["-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "--quiet", "--message", "all"])
}

/// The path of a file in the tree.
pub(super) fn path(file: usize) -> String {
    let directory = file / IN_DIRECTORY;
    format!("area-{:03}/module-{directory:05}/source-{file:06}.rs", directory / 100)
}

/// Runs `act` and records its time.
pub(super) fn keep<T>(times: &mut Vec<Duration>, act: impl FnOnce() -> Result<T>) -> Result<T> {
    let began = Instant::now();
    let done = act();
    times.push(began.elapsed());
    done
}

/// Runs a scan. Returns the time that it reports.
fn scan(server: &Path, root: &Path, files: usize, expected: &str) -> Result<Duration> {
    let output = Command::new(server).args(["scan", "--json", "--root"]).arg(root).output().context("surehand scan")?;
    let result: Value = serde_json::from_slice(&output.stdout).context("the result of surehand scan")?;
    let hashed = if expected == "first" { files } else { 0 };
    ensure!(result["files"] == files && result["hashed"] == hashed, "a scan that is not {expected}: {result}");
    Ok(Duration::from_secs_f64(result["seconds"].as_f64().context("seconds")?))
}

fn git(root: &Path, words: &[&str]) -> Result<()> {
    let output = Command::new("git").current_dir(root).args(words).output().context("git")?;
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    ensure!(output.status.success() && said.is_empty(), "git {}: {said}", words.join(" "));
    Ok(())
}

/// Hashes the files that git tracks, a thousand files per process, with as many processes as cores.
fn sha256sum(root: &Path) -> Result<()> {
    let cores = available_parallelism().map_or(1, usize::from);
    let pipe = format!("git ls-files -z | xargs -0 -n 1000 -P {cores} sha256sum");
    let status = Command::new("sh").current_dir(root).args(["-c", &pipe]).stdout(Stdio::null()).status().context("sh")?;
    ensure!(status.success(), "{pipe}: {status}");
    Ok(())
}

/// Lists every directory and stats every file, with as many threads as cores. Returns the number of files.
fn walk(root: &Path) -> Result<usize> {
    let root = rustix::fs::open(root, DIRECTORY, Mode::empty())?;
    let walk = Walk { waiting: Mutex::new((vec![root], 0)), changed: Condvar::new(), files: AtomicUsize::new(0) };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..available_parallelism().map_or(1, usize::from)).map(|_| scope.spawn(|| walk.work())).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("the walk does not panic"))
    })?;
    Ok(walk.files.into_inner())
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

struct Walk {
    /// Open directories to list, and the number being listed.
    waiting: Mutex<(Vec<OwnedFd>, usize)>,
    changed: Condvar,
    files: AtomicUsize,
}

impl Walk {
    fn work(&self) -> Result<()> {
        while let Some(directory) = self.next() {
            let found = self.list(directory);
            let mut waiting = self.waiting.lock().expect("no holder of the lock panics");
            waiting.1 -= 1;
            waiting.0.extend(found?);
            self.changed.notify_all();
        }
        Ok(())
    }

    fn next(&self) -> Option<OwnedFd> {
        let mut waiting = self.waiting.lock().expect("no holder of the lock panics");
        loop {
            if let Some(directory) = waiting.0.pop() {
                waiting.1 += 1;
                return Some(directory);
            }
            if waiting.1 == 0 {
                return None;
            }
            waiting = self.changed.wait(waiting).expect("no holder of the lock panics");
        }
    }

    fn list(&self, directory: OwnedFd) -> Result<Vec<OwnedFd>> {
        let is_left_out = |name: &CStr| [c".", c"..", c".git", c".surehand"].contains(&name);
        let (mut directories, mut files) = (Vec::new(), 0);
        let mut entries = Dir::new(directory)?;
        while let Some(entry) = entries.read() {
            let entry = entry?;
            let name = entry.file_name();
            match entry.file_type() {
                FileType::Directory if is_left_out(name) => {}
                FileType::Directory => directories.push(openat(entries.fd()?, name, DIRECTORY, Mode::empty())?),
                _ => {
                    statat(entries.fd()?, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    files += 1;
                }
            }
        }
        self.files.fetch_add(files, Ordering::Relaxed);
        Ok(directories)
    }
}
