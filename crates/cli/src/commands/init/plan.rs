//! What is to become of a client's files: made from what is there and what is wanted. Reads; writes nothing.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use surehand_engine::core::{Content, RelPath, file_diff::FileDiff};

use super::{
    client::{Client, ConfigFile, Needs, PLUGIN_MARK, Places, Scope},
    json::{self, OurHook, Ours},
    jsonc::Broken,
    save, toml,
};

/// In which direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// Everything of ours is there.
    Add,
    /// Nothing of ours is there.
    Remove,
}

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// The file.
    pub path: PathBuf,
    /// What it holds.
    pub before: Option<String>,
    /// What it will hold.
    pub after: Option<String>,
    /// A copy that will be needed no longer: the file will hold the same again.
    pub copy: Option<PathBuf>,
    /// What is to be said about it.
    pub note: Option<String>,
}

impl Step {
    /// Whether anything is to be done.
    pub(crate) fn is_nothing(&self) -> bool {
        self.before == self.after
    }

    /// `create`, `change`, `remove`; `none` where nothing is to be done.
    pub(crate) fn act(&self) -> &'static str {
        match (&self.before, &self.after) {
            (before, after) if before == after => "none",
            (None, _) => "create",
            (_, None) => "remove",
            _ => "change",
        }
    }

    /// The difference. It names the file `file`, because the path of a step is none of a workspace.
    pub(crate) fn diff(&self) -> FileDiff {
        let name = RelPath::new("file").expect("a plain name");
        let content = |text: &Option<String>| text.as_ref().map(|text| Content::new(text.clone().into_bytes()));
        FileDiff::between((&name, content(&self.before).as_ref()), (&name, content(&self.after).as_ref()))
    }
}

/// What becomes of the files of a client.
pub(crate) fn plan(client: Client, scope: Scope, places: &Places, program: &str, aim: Aim) -> anyhow::Result<Vec<Step>> {
    client.files(scope, places, program).iter().map(|file| step(file, places, aim)).collect()
}

fn step(file: &ConfigFile, places: &Places, aim: Aim) -> anyhow::Result<Step> {
    let before = save::read(&file.path)?;
    let broken =
        |broken: Broken| anyhow!("{}: line {}: {}; nothing was written", places.shown(&file.path), broken.line, broken.why);
    let mut step = Step { path: file.path.clone(), after: before.clone(), before, copy: None, note: None };
    match aim {
        Aim::Add => add(file, &mut step).map_err(broken)?,
        Aim::Remove => remove(file, &mut step).map_err(broken)?,
    }
    Ok(step)
}

fn add(file: &ConfigFile, step: &mut Step) -> Result<(), Broken> {
    let text = step.before.as_deref().unwrap_or_default();
    let after = match &file.needs {
        Needs::Json(wanted) => json::add(text, wanted)?,
        Needs::Toml(program) => toml::add(text, program)?,
        Needs::Whole(_) if !text.is_empty() && !text.contains(PLUGIN_MARK) => {
            step.note = Some("is not ours and was left alone".to_owned());
            return Ok(());
        }
        Needs::Whole(whole) => whole.clone(),
    };
    if found_in(&file.needs, text)?.name_is_taken {
        step.note = Some("has a server of its own called surehand, which was left alone".to_owned());
    }
    step.after = Some(after);
    Ok(())
}

fn remove(file: &ConfigFile, step: &mut Step) -> Result<(), Broken> {
    let Some(text) = &step.before else { return Ok(()) };
    if is_nothing_of_ours(&found_in(&file.needs, text)?) {
        return Ok(());
    }
    let copies = originals(&file.path, &file.needs);
    let originals: Vec<String> = copies.iter().map(|(_, text)| text.clone()).collect();
    step.after = match &file.needs {
        Needs::Json(wanted) => json::remove(text, wanted, &originals)?,
        Needs::Toml(program) => toml::remove(text, program, &originals)?,
        Needs::Whole(_) => None,
    };
    step.copy = copies.into_iter().find(|(_, text)| step.after.as_ref() == Some(text)).map(|(path, _)| path);
    Ok(())
}

/// The copies of a file from before anything of ours was in it.
fn originals(path: &Path, needs: &Needs) -> Vec<(PathBuf, String)> {
    let is_original = |text: &str| found_in(needs, text).is_ok_and(|ours| is_nothing_of_ours(&ours));
    save::backups(path).into_iter().filter(|(_, text)| is_original(text)).collect()
}

/// What is ours in a file.
pub(crate) fn found(file: &ConfigFile) -> anyhow::Result<Ours> {
    let Some(text) = save::read(&file.path)? else { return Ok(Ours::default()) };
    found_in(&file.needs, &text).map_err(|broken| anyhow!("{}: line {}: {}", file.path.display(), broken.line, broken.why))
}

fn found_in(needs: &Needs, text: &str) -> Result<Ours, Broken> {
    match needs {
        Needs::Json(wanted) => json::find(text, wanted),
        Needs::Toml(_) => {
            let words = toml::find(text)?;
            let is_ours = super::program::is_ours(&words);
            let name_is_taken = !words.is_empty() && !is_ours;
            Ok(Ours { server: is_ours.then_some(words), name_is_taken, ..Ours::default() })
        }
        Needs::Whole(_) if text.contains(PLUGIN_MARK) => {
            let plugin = OurHook { event: "plugin".to_owned(), ..OurHook::default() };
            Ok(Ours { hooks: vec![plugin], ..Ours::default() })
        }
        Needs::Whole(_) => Ok(Ours::default()),
    }
}

fn is_nothing_of_ours(ours: &Ours) -> bool {
    ours.server.is_none() && ours.hooks.is_empty()
}

/// Whether anything of ours is in the files of a client. A file that cannot be read has nothing to say about it.
pub(crate) fn has_any(client: Client, scope: Scope, places: &Places) -> bool {
    client.files(scope, places, super::program::NAME).iter().any(|file| found(file).is_ok_and(|ours| !is_nothing_of_ours(&ours)))
}
