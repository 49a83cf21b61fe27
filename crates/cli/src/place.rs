//! Where we are: the workspace of a command, with the settings of its file and of the environment.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use surehand_engine::{
    Config, IgnoredSetting, OpenError, Session, SessionId, Workspace,
    changes::Selection,
    disk::commit::{Probe, Verdict},
    store::ChangeId,
};

use crate::{
    args::{PlaceArgs, SelectionArgs},
    output,
};

/// For tests: kill this process, as hard as can be, after this many steps of a commit.
const KILL_AFTER: &str = "SUREHAND_TEST_KILL_AFTER";

/// Opens the workspace that a command is about.
pub fn open(place: &PlaceArgs) -> anyhow::Result<Arc<Workspace>> {
    open_at(&root(place)?)
}

/// The root of the workspace that a command is about.
pub fn root(place: &PlaceArgs) -> anyhow::Result<PathBuf> {
    let root = match &place.root {
        Some(root) => root.clone(),
        None => nearest_root(&std::env::current_dir().context("the current directory is gone")?),
    };
    anyhow::ensure!(root.is_dir(), "{}: not a directory", root.display());
    root.canonicalize().with_context(|| root.display().to_string())
}

/// The settings that count in a root: the user's, those of its file as far as a repository may set them, and the environment.
pub fn settings(root: &Path) -> anyhow::Result<Config> {
    let variables = std::env::vars_os();
    let variables = variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Ok(Config::load(root, variables)?)
}

/// What the repository's settings say in vain, in words. A clone may say a lot; some of it is enough.
pub fn ignored_settings(config: &Config) -> Vec<String> {
    const MOST: usize = 20;
    let in_words = |ignored: &IgnoredSetting| match ignored.what.as_str() {
        "surehand.toml" => format!("surehand.toml of the workspace is ignored: {}", ignored.why),
        key => format!("{key} in surehand.toml of the workspace is ignored: {}", ignored.why),
    };
    let mut words: Vec<String> = config.ignored.iter().take(MOST).map(in_words).collect();
    if config.ignored.len() > MOST {
        words.push(format!("{} more keys in surehand.toml of the workspace are ignored", config.ignored.len() - MOST));
    }
    words
}

/// Opens the workspace that a directory is in.
pub fn open_above(directory: &Path) -> anyhow::Result<Arc<Workspace>> {
    open_at(&nearest_root(directory))
}

fn open_at(root: &Path) -> anyhow::Result<Arc<Workspace>> {
    anyhow::ensure!(root.is_dir(), "{}: not a directory", root.display());
    Workspace::open_with(root, settings(root)?, killer()).map_err(with_hint)
}

/// What cannot be opened because nothing may be written there is told with a way out.
fn with_hint(error: OpenError) -> anyhow::Error {
    let OpenError::State { path, error: io } = &error else { return error.into() };
    let hint = match io.kind() {
        ErrorKind::PermissionDenied => "you may not write there",
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        _ => return error.into(),
    };
    let place = path.trim_end_matches("/.surehand");
    anyhow::anyhow!(
        "{path}: cannot be made or used: {hint} ({io})\n\
         hint: Surehand keeps there what was read and changed, so it needs a directory that it can write; make {place} \
         writable, or copy the project"
    )
}

/// Which changes are meant. What is not the name of a change is a file.
pub fn selection(typed: &SelectionArgs, session: &Session) -> anyhow::Result<Selection> {
    if let Some(id) = &typed.session {
        return Ok(Selection::Session(SessionId(id.clone())));
    }
    let Some(what) = &typed.what else { return Ok(Selection::Last(None)) };
    let change = Selection::Change(ChangeId(what.clone()));
    if !session.workspace().select(&change)?.is_empty() {
        return Ok(change);
    }
    Ok(Selection::File(session.path_of(what).map_err(output::refused)?, None))
}

fn nearest_root(from: &Path) -> PathBuf {
    let is_root = |dir: &&Path| dir.join(".surehand").is_dir() || dir.join(".git").exists();
    from.ancestors().find(is_root).unwrap_or(from).to_owned()
}

fn killer() -> Option<Probe> {
    let after: usize = std::env::var(KILL_AFTER).ok()?.parse().ok()?;
    Some(Arc::new(move |number, _| {
        if number == after {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
        Verdict::GoOn
    }))
}

#[cfg(test)]
mod tests {
    use std::io;

    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn where_nothing_may_be_written_there_is_a_way_out() {
        let told = |kind: ErrorKind| {
            let error = OpenError::State { path: "/p/.surehand".to_owned(), error: io::Error::from(kind) };
            format!("{:#}", with_hint(error))
        };
        assert_snapshot!(told(ErrorKind::PermissionDenied), @"
        /p/.surehand: cannot be made or used: you may not write there (permission denied)
        hint: Surehand keeps there what was read and changed, so it needs a directory that it can write; make /p writable, or copy the project
        ");
        assert_snapshot!(told(ErrorKind::ReadOnlyFilesystem), @"
        /p/.surehand: cannot be made or used: the file system is read-only (read-only filesystem or storage medium)
        hint: Surehand keeps there what was read and changed, so it needs a directory that it can write; make /p writable, or copy the project
        ");
        assert_snapshot!(told(ErrorKind::StorageFull), @"/p/.surehand: cannot use the state directory: no storage space");
    }
}
