//! The merges of a repository, and the files that both sides changed. Everything is asked from git itself.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};

/// A repository that is only read.
pub(super) struct Repository {
    path: PathBuf,
    blobs: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// A merge commit with two parents.
#[derive(Debug, Clone)]
pub(super) struct Merge {
    pub commit: String,
    parents: [String; 2],
}

/// The blobs of a file that both sides changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommonFile {
    pub path: String,
    /// `None` if both sides added the file.
    pub base: Option<String>,
    pub mine: String,
    pub theirs: String,
}

impl Repository {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let mut command = git(path);
        command.args(["cat-file", "--batch"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut blobs = command.spawn().context("git cat-file")?;
        let questions = blobs.stdin.take().context("stdin is piped")?;
        let answers = BufReader::new(blobs.stdout.take().context("stdout is piped")?);
        Ok(Self { path: path.to_owned(), blobs, questions, answers })
    }

    /// The name of a repository: that of its directory, or of the one around it.
    pub(super) fn name(&self) -> String {
        let names = self.path.iter().rev().map(|name| name.to_string_lossy());
        let name = names.map(|name| name.trim_end_matches(".git").to_owned()).find(|name| !matches!(name.as_str(), "" | "repo"));
        name.unwrap_or_default().replace('+', "/")
    }

    /// The merge commits with two parents, newest first.
    pub(super) fn merges(&self) -> Result<Vec<Merge>> {
        let list = self.text(&["rev-list", "--parents", "--min-parents=2", "--max-parents=2", "HEAD"])?;
        let merge = |line: &str| {
            let mut ids = line.split(' ').map(str::to_owned);
            Some(Merge { commit: ids.next()?, parents: [ids.next()?, ids.next()?] })
        };
        list.lines().map(|line| merge(line).with_context(|| format!("not a merge: {line}"))).collect()
    }

    /// The files that both sides of a merge changed, each in its own way; `None` if the sides have more than one merge
    /// base, or none.
    pub(super) fn common_files(&self, merge: &Merge) -> Result<Option<Vec<CommonFile>>> {
        let [mine, theirs] = &merge.parents;
        let bases = git(&self.path).args(["merge-base", "--all", mine, theirs]).output()?;
        let bases = String::from_utf8(bases.stdout)?;
        let Some(base) = bases.lines().next().filter(|_| bases.lines().count() == 1) else { return Ok(None) };
        let (my_changes, mut their_changes) = (self.changes(base, mine)?, self.changes(base, theirs)?);
        let both = my_changes.into_iter().filter_map(|(path, my)| Some((path.clone(), my, their_changes.remove(&path)?)));
        let files = both.filter(|(_, my, their)| my.after != their.after);
        Ok(Some(
            files.map(|(path, my, their)| CommonFile { path, base: my.before, mine: my.after, theirs: their.after }).collect(),
        ))
    }

    /// The regular files that were changed or added between two commits.
    fn changes(&self, from: &str, to: &str) -> Result<BTreeMap<String, Change>> {
        let listed = self.output(&["diff-tree", "-r", "-z", "--raw", "--no-renames", "--abbrev=64", from, to])?;
        let mut fields = listed.split(|byte| *byte == 0);
        let mut changes = BTreeMap::new();
        while let (Some(what), Some(path)) = (fields.next().filter(|what| !what.is_empty()), fields.next()) {
            let what = str::from_utf8(what)?;
            let words: Vec<&str> = what.trim_start_matches(':').split(' ').collect();
            let [before_mode, after_mode, before, after, _] = words[..] else { bail!("git diff-tree says {what:?}") };
            let is_file = |mode: &str| mode.starts_with("100");
            let before = (before_mode != "000000").then(|| before.to_owned());
            if is_file(after_mode) && (before.is_none() || is_file(before_mode)) {
                let path = String::from_utf8_lossy(path).into_owned();
                changes.insert(path, Change { before, after: after.to_owned() });
            }
        }
        Ok(changes)
    }

    /// The content of a blob.
    pub(super) fn blob(&mut self, id: &str) -> Result<Vec<u8>> {
        writeln!(self.questions, "{id}")?;
        self.questions.flush()?;
        let mut header = String::new();
        self.answers.read_line(&mut header)?;
        let size = header.split_whitespace().nth(2).and_then(|size| size.parse::<usize>().ok());
        let mut content = vec![0; size.with_context(|| format!("{id}: git cat-file says {header:?}"))? + 1];
        self.answers.read_exact(&mut content)?;
        content.pop();
        Ok(content)
    }

    fn text(&self, words: &[&str]) -> Result<String> {
        Ok(String::from_utf8(self.output(words)?)?)
    }

    fn output(&self, words: &[&str]) -> Result<Vec<u8>> {
        let output = git(&self.path).args(words).output().context("git")?;
        ensure!(output.status.success(), "git {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
        Ok(output.stdout)
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        // It reads its input to the end, which never comes while `questions` lives.
        let _ = self.blobs.kill();
        let _ = self.blobs.wait();
    }
}

struct Change {
    before: Option<String>,
    after: String,
}

/// A command of git in a repository, with or without a work tree.
fn git(path: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(path).env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C.UTF-8");
    git.args(["-c", "core.fsmonitor=false", "-c", "safe.bareRepository=all", "-c", "safe.directory=*"]);
    git
}

/// How `git merge-file` compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// The default of `git merge-file`.
    Myers,
    /// The algorithm of `git merge`.
    Histogram,
}

/// Runs `git merge-file` on three contents, in a directory for its files.
pub(super) struct MergeFile {
    pub is_clean: bool,
    pub text: Vec<u8>,
}

impl MergeFile {
    /// Runs it; `None` if it takes one of them for binary.
    pub(super) fn run(dir: &Path, algorithm: Algorithm, [base, mine, theirs]: [&[u8]; 3]) -> Result<Option<Self>> {
        for (name, content) in [("base", base), ("mine", mine), ("theirs", theirs)] {
            std::fs::write(dir.join(name), content)?;
        }
        let mut git = Command::new("git");
        git.current_dir(dir).env("GIT_DIR", "/dev/null").env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        git.arg("merge-file");
        if algorithm == Algorithm::Histogram {
            git.arg("--diff-algorithm=histogram");
        }
        git.args(["-p", "-L", "mine", "-L", "base", "-L", "theirs", "mine", "base", "theirs"]);
        let output = git.output().context("git merge-file")?;
        match output.status.code() {
            Some(255) if String::from_utf8_lossy(&output.stderr).contains("binary") => Ok(None),
            Some(conflicts @ 0..=127) => Ok(Some(Self { is_clean: conflicts == 0, text: output.stdout })),
            _ => bail!("git merge-file: {}", String::from_utf8_lossy(&output.stderr)),
        }
    }
}
