//! The versions of files in a git repository.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use surehand_core::Text;

/// The versions of every file, newest first, as object names.
pub(crate) fn versions(repository: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let log = git(repository, &["log", "--no-merges", "--raw", "--no-abbrev", "--no-renames", "--diff-filter=AM", "--format="])?;
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in String::from_utf8_lossy(&log).lines() {
        let Some((meta, path)) = line.split_once('\t') else { continue };
        let Some(id) = meta.split(' ').nth(3) else { continue };
        versions.entry(path.to_owned()).or_default().push(id.to_owned());
    }
    Ok(versions)
}

/// A file that a commit changed, with the names of the objects that it was before and after.
pub(crate) struct Modification {
    pub path: String,
    pub before: String,
    pub after: String,
}

/// All modifications of files, newest first.
pub(crate) fn modifications(repository: &Path) -> Result<Vec<Modification>> {
    let log = git(repository, &["log", "--no-merges", "--raw", "--no-abbrev", "--no-renames", "--diff-filter=M", "--format="])?;
    let modification = |line: &str| {
        let (meta, path) = line.split_once('\t')?;
        let mut ids = meta.split(' ').skip(2);
        Some(Modification { path: path.to_owned(), before: ids.next()?.to_owned(), after: ids.next()?.to_owned() })
    };
    Ok(String::from_utf8_lossy(&log).lines().filter_map(modification).collect())
}

/// The objects of a repository, from one process for all questions.
pub(crate) struct Objects {
    git: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Objects {
    pub(crate) fn open(repository: &Path) -> Result<Self> {
        let mut command = Command::new("git");
        command.arg("-C").arg(repository).args(["cat-file", "--batch"]);
        let mut git = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("git")?;
        let questions = git.stdin.take().context("it is piped")?;
        let answers = BufReader::new(git.stdout.take().context("it is piped")?);
        Ok(Self { git, questions, answers })
    }

    /// The content of an object; `None` if it is binary, or the repository does not have it.
    pub(crate) fn text(&mut self, id: &str) -> Result<Option<Text>> {
        writeln!(self.questions, "{id}")?;
        let mut header = String::new();
        self.answers.read_line(&mut header)?;
        // `ID blob SIZE`, or `ID missing`.
        let Some(size) = header.split(' ').nth(2) else { return Ok(None) };
        let size: usize = size.trim_end().parse().with_context(|| header.clone())?;
        let mut content = vec![0; size + 1];
        self.answers.read_exact(&mut content)?;
        content.pop();
        Ok(Text::new(content).ok())
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // It only waits for the next question.
        let _ = self.git.kill();
        let _ = self.git.wait();
    }
}

/// The output of a git command.
pub(crate) fn git(repository: &Path, words: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new("git").arg("-C").arg(repository).args(words).output().context("git")?;
    ensure!(output.status.success(), "git {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
    Ok(output.stdout)
}
