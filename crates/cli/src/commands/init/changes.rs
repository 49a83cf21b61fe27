//! Plans the changes to a client's files. Reads the files and writes nothing.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use surehand_engine::core::{Content, RelPath, file_diff::FileDiff, render::count};

use super::{
    backup,
    clients::InitClient,
    config_dirs::{ConfigDirs, ConfigScope},
    config_files::{ConfigFile, InitRequest, OwnedFile, OwnedFileKind, RequiredContent, files, is_shared},
    git_exclude,
    json_config::{self, ConfigEntry, FoundEntries, InstalledHook, Presence},
    json_edit::SyntaxProblem,
    program, toml_config,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InitAction {
    Add,
    Remove,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigChange {
    pub path: PathBuf,
    pub before: Option<String>,
    pub after: Option<String>,
    pub what: String,
    pub keeps_copy: bool,
    pub is_program: bool,
    /// An existing backup with the same content as `after`, which can be removed.
    pub old_copy: Option<PathBuf>,
    pub note: Option<String>,
}

impl ConfigChange {
    /// A missing file that is not created.
    pub(super) fn untouched(path: PathBuf, what: &str) -> Self {
        let (keeps_copy, is_program) = (false, false);
        Self { path, before: None, after: None, what: what.to_owned(), keeps_copy, is_program, old_copy: None, note: None }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.before == self.after
    }

    /// `create`, `change`, `remove` or `none`.
    pub(crate) fn act(&self) -> &'static str {
        match (&self.before, &self.after) {
            (before, after) if before == after => "none",
            (None, _) => "create",
            (_, None) => "remove",
            _ => "change",
        }
    }

    /// The diff of the change. It calls the file `file`, because the path is not one of the workspace.
    pub(crate) fn diff(&self) -> FileDiff {
        let name = RelPath::new("file").expect("a plain name");
        let content = |text: &Option<String>| text.as_ref().map(|text| Content::new(text.clone().into_bytes()));
        FileDiff::between((&name, content(&self.before).as_ref()), (&name, content(&self.after).as_ref()))
    }
}

/// Plans the changes for a client in a scope. The change of git's exclude file comes first: if it cannot be written,
/// nothing else is.
pub(crate) fn plan(
    client: InitClient,
    scope: ConfigScope,
    dirs: &ConfigDirs,
    request: &InitRequest,
    action: InitAction,
) -> anyhow::Result<Vec<ConfigChange>> {
    let mut planned = Vec::new();
    for file in files(client, scope, dirs, request) {
        let step = step(&file, dirs, action)?;
        if scope == ConfigScope::Me && action == InitAction::Add && !step.is_nothing() {
            ensure_it_is_not_committed(&file, dirs)?;
        }
        planned.push((file, step));
    }
    let is_shared = |file: &ConfigFile| is_shared(client, file, dirs, request);
    let exclude = git_exclude::step(scope, dirs, action, &planned, &is_shared)?;
    Ok(exclude.into_iter().chain(planned.into_iter().map(|(_, step)| step)).collect())
}

fn ensure_it_is_not_committed(file: &ConfigFile, dirs: &ConfigDirs) -> anyhow::Result<()> {
    if dirs.checkout.as_ref().is_some_and(|checkout| checkout.tracks(&file.path)) {
        let path = dirs.shown(&file.path);
        bail!("{path} is committed in this project, so it is not yours alone; choose --scope everywhere or --scope project");
    }
    Ok(())
}

/// Plans the change of a file. A malformed file that needs nothing is left alone.
fn step(file: &ConfigFile, dirs: &ConfigDirs, action: InitAction) -> anyhow::Result<ConfigChange> {
    match wanted_step(file, dirs, action) {
        Err(_) if action == InitAction::Add && !is_required(file) => {
            let note = "cannot be read and was left alone; surehand doctor says why".to_owned();
            Ok(ConfigChange { note: Some(note), ..ConfigChange::untouched(file.path.clone(), "") })
        }
        step => step,
    }
}

fn is_required(file: &ConfigFile) -> bool {
    match &file.needs {
        RequiredContent::Json(wanted) => wanted.iter().any(ConfigEntry::is_required),
        RequiredContent::Toml(server) => server.presence == Presence::Required,
        RequiredContent::Whole(whole) => whole.presence == Presence::Required,
    }
}

fn wanted_step(file: &ConfigFile, dirs: &ConfigDirs, action: InitAction) -> anyhow::Result<ConfigChange> {
    let before = backup::read(&file.path)?;
    let broken =
        |broken: SyntaxProblem| anyhow!("{}: line {}: {}; nothing was written", dirs.shown(&file.path), broken.line, broken.why);
    let is_program = matches!(&file.needs, RequiredContent::Whole(OwnedFile { kind: OwnedFileKind::Script(_), .. }));
    let untouched = ConfigChange::untouched(file.path.clone(), "");
    let mut step = ConfigChange { after: before.clone(), before, is_program, ..untouched };
    match action {
        InitAction::Add => add(file, &mut step).map_err(broken)?,
        InitAction::Remove => remove(file, &mut step).map_err(broken)?,
    }
    let with_ours = if action == InitAction::Add { &step.after } else { &step.before };
    let ours = with_ours.as_deref().map(|text| found_in(&file.needs, text)).transpose().map_err(broken)?;
    step.what = ours.map(|ours| in_words(&ours)).unwrap_or_default();
    Ok(step)
}

fn add(file: &ConfigFile, step: &mut ConfigChange) -> Result<(), SyntaxProblem> {
    let text = step.before.as_deref().unwrap_or_default();
    let after = match &file.needs {
        RequiredContent::Json(wanted) => json_config::add(text, wanted)?,
        RequiredContent::Toml(server) => toml_config::add(text, server)?,
        RequiredContent::Whole(whole) if !text.is_empty() && !text.contains(whole.mark) => {
            step.note = Some("was not written by surehand init and was left alone".to_owned());
            return Ok(());
        }
        RequiredContent::Whole(whole) if text.is_empty() && whole.presence == Presence::IfThere => text.to_owned(),
        RequiredContent::Whole(whole) => whole.text.clone(),
    };
    let ours = found_in(&file.needs, text)?;
    if ours.name_is_taken {
        step.note = Some("has another server called surehand, which was left alone".to_owned());
    }
    if step.before.is_some() || !after.is_empty() {
        // A file with Surehand entries already has a backup, or `init` created it.
        step.keeps_copy = step.before.as_deref().is_some_and(|before| before != after) && is_nothing_of_ours(&ours);
        step.after = Some(after);
    }
    Ok(())
}

fn remove(file: &ConfigFile, step: &mut ConfigChange) -> Result<(), SyntaxProblem> {
    let Some(text) = &step.before else { return Ok(()) };
    if is_nothing_of_ours(&found_in(&file.needs, text)?) {
        return Ok(());
    }
    let copies = originals(&file.path, &file.needs);
    let originals: Vec<String> = copies.iter().map(|(_, text)| text.clone()).collect();
    step.after = match &file.needs {
        RequiredContent::Json(wanted) => json_config::remove(text, wanted, &originals)?,
        RequiredContent::Toml(server) => toml_config::remove(text, server, &originals)?,
        RequiredContent::Whole(_) => None,
    };
    step.old_copy = copies.into_iter().find(|(_, text)| step.after.as_ref() == Some(text)).map(|(path, _)| path);
    step.keeps_copy = step.after.is_some() && step.old_copy.is_none();
    Ok(())
}

/// The backups of a file that date from before `init`: those without Surehand entries.
fn originals(path: &Path, needs: &RequiredContent) -> Vec<(PathBuf, String)> {
    let is_original = |text: &str| found_in(needs, text).is_ok_and(|ours| is_nothing_of_ours(&ours));
    backup::backups(path).into_iter().filter(|(_, text)| is_original(text)).collect()
}

pub(crate) fn found(file: &ConfigFile) -> anyhow::Result<FoundEntries> {
    let Some(text) = backup::read(&file.path)? else { return Ok(FoundEntries::default()) };
    found_in(&file.needs, &text).map_err(|broken| anyhow!("{}: line {}: {}", file.path.display(), broken.line, broken.why))
}

fn found_in(needs: &RequiredContent, text: &str) -> Result<FoundEntries, SyntaxProblem> {
    match needs {
        RequiredContent::Json(wanted) => json_config::find(text, wanted),
        RequiredContent::Toml(_) => {
            let words = toml_config::find(text)?;
            let is_ours = program::is_ours(&words);
            let name_is_taken = !words.is_empty() && !is_ours;
            Ok(FoundEntries { server: is_ours.then_some(words), name_is_taken, ..FoundEntries::default() })
        }
        RequiredContent::Whole(whole) if text.contains(whole.mark) => Ok(found_in_whole(whole, text)),
        RequiredContent::Whole(_) => Ok(FoundEntries::default()),
    }
}

fn found_in_whole(whole: &OwnedFile, text: &str) -> FoundEntries {
    let hook = |event: &str, words| vec![InstalledHook { event: event.to_owned(), words, ..InstalledHook::default() }];
    let (hooks, server) = match &whole.kind {
        OwnedFileKind::Script(event) => {
            let command = text.lines().find_map(|line| line.split_once(" && exec ")).map_or("", |(_, command)| command);
            (hook(event, program::words(command)), None)
        }
        OwnedFileKind::Plugin => {
            let program = text.lines().find_map(|line| line.strip_prefix("const PROGRAM = "));
            let program = program.and_then(|quoted| serde_json::from_str(quoted).ok()).unwrap_or_default();
            (hook("plugin", vec![program, "hook".to_owned(), "opencode".to_owned()]), None)
        }
        OwnedFileKind::Manifest => (Vec::new(), None),
        OwnedFileKind::Server(words) => (Vec::new(), Some(words.clone())),
    };
    FoundEntries { hooks, server, is_whole: true, ..FoundEntries::default() }
}

fn in_words(ours: &FoundEntries) -> String {
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

fn is_nothing_of_ours(ours: &FoundEntries) -> bool {
    ours.server.is_none() && ours.hooks.is_empty() && !ours.is_whole
}

/// The files of a client that belong to a scope. If two scopes share a file, git's exclude file decides which scope it
/// belongs to.
pub(crate) fn files_of(client: InitClient, scope: ConfigScope, dirs: &ConfigDirs) -> Vec<ConfigFile> {
    let request = InitRequest { program: program::NAME.to_owned(), with_server: false };
    let belongs = |file: &ConfigFile| {
        let is_shared = scope != ConfigScope::Everywhere && is_shared(client, file, dirs, &request);
        !is_shared || (scope == ConfigScope::Me) == git_exclude::is_mine(dirs, file)
    };
    files(client, scope, dirs, &request).into_iter().filter(belongs).collect()
}

/// Whether the files of a client contain Surehand entries. Unreadable files do not count.
pub(crate) fn has_any(client: InitClient, scope: ConfigScope, dirs: &ConfigDirs) -> bool {
    files_of(client, scope, dirs).iter().any(|file| found(file).is_ok_and(|ours| !is_nothing_of_ours(&ours)))
}

pub(crate) fn wants_server(file: &ConfigFile) -> bool {
    match &file.needs {
        RequiredContent::Json(wanted) => {
            wanted.iter().any(|one| matches!(one, ConfigEntry::Server { presence: Presence::Required, .. }))
        }
        RequiredContent::Toml(server) => server.presence == Presence::Required,
        RequiredContent::Whole(whole) => matches!(whole.kind, OwnedFileKind::Server(_)) && whole.presence == Presence::Required,
    }
}
