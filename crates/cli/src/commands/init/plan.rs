//! What is to become of a client's files: made from what is there and what is wanted. Reads; writes nothing.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use surehand_engine::core::{Content, RelPath, file_diff::FileDiff, render::count};

use super::{
    client::Client,
    exclude,
    files::{ConfigFile, Needs, Request, WholeFile, WholeKind, files, is_shared},
    json::{self, OurHook, Ours, Presence, Wanted},
    jsonc::Broken,
    places::{Places, Scope},
    program, save, toml,
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
    /// What of ours is in it, in words.
    pub what: String,
    /// Whether what it holds is kept in a copy.
    pub keeps_copy: bool,
    /// Whether it is run.
    pub is_program: bool,
    /// A copy that will be needed no longer: the file will hold the same again.
    pub old_copy: Option<PathBuf>,
    /// What is to be said about it.
    pub note: Option<String>,
}

impl Step {
    /// Nothing becomes of a file that is not there.
    pub(super) fn untouched(path: PathBuf, what: &str) -> Self {
        let (keeps_copy, is_program) = (false, false);
        Self { path, before: None, after: None, what: what.to_owned(), keeps_copy, is_program, old_copy: None, note: None }
    }

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

/// What becomes of the files of a client in a scope. What git is to ignore comes first: where that cannot be written, nothing else is.
pub(crate) fn plan(client: Client, scope: Scope, places: &Places, request: &Request, aim: Aim) -> anyhow::Result<Vec<Step>> {
    let mut planned = Vec::new();
    for file in files(client, scope, places, request) {
        let step = step(&file, places, aim)?;
        if scope == Scope::Me && aim == Aim::Add && !step.is_nothing() {
            ensure_it_is_not_committed(&file, places)?;
        }
        planned.push((file, step));
    }
    let is_shared = |file: &ConfigFile| is_shared(client, file, places, request);
    let exclude = exclude::step(scope, places, aim, &planned, &is_shared)?;
    Ok(exclude.into_iter().chain(planned.into_iter().map(|(_, step)| step)).collect())
}

fn ensure_it_is_not_committed(file: &ConfigFile, places: &Places) -> anyhow::Result<()> {
    if places.checkout.as_ref().is_some_and(|checkout| checkout.tracks(&file.path)) {
        let path = places.shown(&file.path);
        bail!("{path} is committed in this project, so it is not yours alone; choose --scope everywhere or --scope project");
    }
    Ok(())
}

/// What becomes of a file. One that nothing is put into may be broken: that is not for us to say.
fn step(file: &ConfigFile, places: &Places, aim: Aim) -> anyhow::Result<Step> {
    match wanted_step(file, places, aim) {
        Err(_) if aim == Aim::Add && !is_required(file) => {
            let note = "cannot be read and was left alone; surehand doctor says why".to_owned();
            Ok(Step { note: Some(note), ..Step::untouched(file.path.clone(), "") })
        }
        step => step,
    }
}

fn is_required(file: &ConfigFile) -> bool {
    match &file.needs {
        Needs::Json(wanted) => wanted.iter().any(Wanted::is_required),
        Needs::Toml(server) => server.presence == Presence::Required,
        Needs::Whole(whole) => whole.presence == Presence::Required,
    }
}

fn wanted_step(file: &ConfigFile, places: &Places, aim: Aim) -> anyhow::Result<Step> {
    let before = save::read(&file.path)?;
    let broken =
        |broken: Broken| anyhow!("{}: line {}: {}; nothing was written", places.shown(&file.path), broken.line, broken.why);
    let is_program = matches!(&file.needs, Needs::Whole(WholeFile { kind: WholeKind::Script(_), .. }));
    let untouched = Step::untouched(file.path.clone(), "");
    let mut step = Step { after: before.clone(), before, is_program, ..untouched };
    match aim {
        Aim::Add => add(file, &mut step).map_err(broken)?,
        Aim::Remove => remove(file, &mut step).map_err(broken)?,
    }
    let with_ours = if aim == Aim::Add { &step.after } else { &step.before };
    let ours = with_ours.as_deref().map(|text| found_in(&file.needs, text)).transpose().map_err(broken)?;
    step.what = ours.map(|ours| in_words(&ours)).unwrap_or_default();
    Ok(step)
}

fn add(file: &ConfigFile, step: &mut Step) -> Result<(), Broken> {
    let text = step.before.as_deref().unwrap_or_default();
    let after = match &file.needs {
        Needs::Json(wanted) => json::add(text, wanted)?,
        Needs::Toml(server) => toml::add(text, server)?,
        Needs::Whole(whole) if !text.is_empty() && !text.contains(whole.mark) => {
            step.note = Some("is not ours and was left alone".to_owned());
            return Ok(());
        }
        Needs::Whole(whole) if text.is_empty() && whole.presence == Presence::IfThere => text.to_owned(),
        Needs::Whole(whole) => whole.text.clone(),
    };
    let ours = found_in(&file.needs, text)?;
    if ours.name_is_taken {
        step.note = Some("has a server of its own called surehand, which was left alone".to_owned());
    }
    if step.before.is_some() || !after.is_empty() {
        // Of a file that has something of ours there is a copy already, or it was we who made it.
        step.keeps_copy = step.before.as_deref().is_some_and(|before| before != after) && is_nothing_of_ours(&ours);
        step.after = Some(after);
    }
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
        Needs::Toml(server) => toml::remove(text, server, &originals)?,
        Needs::Whole(_) => None,
    };
    step.old_copy = copies.into_iter().find(|(_, text)| step.after.as_ref() == Some(text)).map(|(path, _)| path);
    step.keeps_copy = step.after.is_some() && step.old_copy.is_none();
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
            let is_ours = program::is_ours(&words);
            let name_is_taken = !words.is_empty() && !is_ours;
            Ok(Ours { server: is_ours.then_some(words), name_is_taken, ..Ours::default() })
        }
        Needs::Whole(whole) if text.contains(whole.mark) => Ok(found_in_whole(whole, text)),
        Needs::Whole(_) => Ok(Ours::default()),
    }
}

fn found_in_whole(whole: &WholeFile, text: &str) -> Ours {
    let hook = |event: &str, words| vec![OurHook { event: event.to_owned(), words, ..OurHook::default() }];
    let (hooks, server) = match &whole.kind {
        WholeKind::Script(event) => {
            let command = text.lines().find_map(|line| line.split_once(" && exec ")).map_or("", |(_, command)| command);
            (hook(event, program::words(command)), None)
        }
        WholeKind::Plugin => {
            let program = text.lines().find_map(|line| line.strip_prefix("const PROGRAM = "));
            let program = program.and_then(|quoted| serde_json::from_str(quoted).ok()).unwrap_or_default();
            (hook("plugin", vec![program, "hook".to_owned(), "opencode".to_owned()]), None)
        }
        WholeKind::Manifest => (Vec::new(), None),
        WholeKind::Server(words) => (Vec::new(), Some(words.clone())),
    };
    Ours { hooks, server, is_whole: true, ..Ours::default() }
}

fn in_words(ours: &Ours) -> String {
    let hooks = match ours.hooks.as_slice() {
        [] => None,
        [hook] if ours.is_whole && hook.event == "plugin" => Some("plugin".to_owned()),
        [_] if ours.is_whole => Some("hook".to_owned()),
        hooks => Some(count(hooks.len(), "hook")),
    };
    let server = ours.server.as_ref().map(|_| "MCP server".to_owned());
    let manifest = (ours.is_whole && hooks.is_none() && server.is_none()).then(|| "plugin".to_owned());
    hooks.into_iter().chain(server).chain(manifest).collect::<Vec<_>>().join(", ")
}

fn is_nothing_of_ours(ours: &Ours) -> bool {
    ours.server.is_none() && ours.hooks.is_empty() && !ours.is_whole
}

/// The files of a client in a scope that belong to that scope. Of one that the scopes of a project share, what git is told to
/// ignore says whose it is.
pub(crate) fn files_of(client: Client, scope: Scope, places: &Places) -> Vec<ConfigFile> {
    let request = Request { program: program::NAME.to_owned(), with_server: false };
    let belongs = |file: &ConfigFile| {
        let is_shared = scope != Scope::Everywhere && is_shared(client, file, places, &request);
        !is_shared || (scope == Scope::Me) == exclude::is_mine(places, file)
    };
    files(client, scope, places, &request).into_iter().filter(belongs).collect()
}

/// Whether anything of ours is in the files of a client. A file that cannot be read has nothing to say about it.
pub(crate) fn has_any(client: Client, scope: Scope, places: &Places) -> bool {
    files_of(client, scope, places).iter().any(|file| found(file).is_ok_and(|ours| !is_nothing_of_ours(&ours)))
}

/// Whether a client would get its server here.
pub(crate) fn wants_server(file: &ConfigFile) -> bool {
    match &file.needs {
        Needs::Json(wanted) => wanted.iter().any(|one| matches!(one, Wanted::Server { presence: Presence::Required, .. })),
        Needs::Toml(server) => server.presence == Presence::Required,
        Needs::Whole(whole) => matches!(whole.kind, WholeKind::Server(_)) && whole.presence == Presence::Required,
    }
}
