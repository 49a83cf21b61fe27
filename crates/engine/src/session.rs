//! A session calls tools: it gathers what is there, lets core decide, commits, remembers, and says what came of it.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use surehand_core::{
    Cause, ChangedFile, ContentHash, Limits, Notice, Outside, Policy, Present, Refusal, RelPath, Target, Text, View,
    instructions::is_about_to_work, render, working_set::Lines,
};
use surehand_store::SessionId;

use crate::{
    changes::Selection,
    course::Course,
    disk::walk::{Place, place},
    files::{Files, Gathered},
    guest::Doer,
    instructions::{self, Instructions, Told},
    lookout::{Changed, Ground, Lookout, who},
    time::now,
    tools,
    tracker::FileTracker,
    undo::Since,
    watch::{Cursor, Hints},
    workspace::Workspace,
};

/// One model's context window in a workspace.
#[derive(Debug)]
pub struct Session {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) tracker: Option<FileTracker>,
    pub(crate) files: Files,
    instructions: Instructions,
    /// How far it has listened to the watcher.
    cursor: Option<Cursor>,
    lookout: Lookout,
    /// What was shown, if somebody wants to know.
    pub(crate) shown: Option<Vec<Lines>>,
    /// Who carries out what is planned.
    pub(crate) doer: Doer,
    /// Instructions that came up meanwhile, for whoever wants to know what was shown and has another place for them than replies.
    pub(crate) told: Vec<Told>,
    /// The course of the call that is being made.
    pub(crate) course: Course,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// For the model.
    pub text: String,
    /// Whether the call was refused.
    pub is_error: bool,
    /// The same for programs.
    pub result: Value,
}

/// A call that was carried out.
#[derive(Debug, Default)]
pub struct Success {
    /// For the model.
    pub text: String,
    /// For programs; `success` is added.
    pub result: Map<String, Value>,
    /// The files it was about.
    pub paths: Vec<RelPath>,
    /// The directories it was about besides; `None` is the root.
    pub directories: Vec<Option<RelPath>>,
}

/// What a reply is about.
enum About {
    /// These files, as they are now.
    Shown(Vec<RelPath>),
    /// This file, with the code of what is wrong with it.
    Refused(Option<RelPath>, &'static str),
}

/// More ranges than this are told as fewer, larger ones.
const MAX_RANGES: usize = 200;

impl Session {
    /// A new session with a tracker of its own.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self::tracked_by(workspace, FileTracker::new(fresh_id()))
    }

    /// A session that goes on, in another process, under the name it has: one context window, several calls. A client that
    /// resumes an old conversation starts a new session instead, because its context is not what it was.
    pub fn continued(workspace: Arc<Workspace>, id: SessionId) -> Self {
        Self::tracked_by(workspace, FileTracker::continued(id))
    }

    /// A session that other processes have as well, at the same time: an agent's hooks and its server, say. What it has seen is
    /// asked of the store in every call, and is there for the others when the call ends.
    pub fn shared(workspace: Arc<Workspace>, id: SessionId) -> Self {
        Self::tracked_by(workspace, FileTracker::shared(id))
    }

    /// A session with this tracker.
    pub fn tracked_by(workspace: Arc<Workspace>, tracker: FileTracker) -> Self {
        let files = Files::of(tracker.session().clone());
        Self { tracker: Some(tracker), files, ..Self::untracked(workspace) }
    }

    /// A session of which nobody keeps track: nothing is refused for being unread or stale. Writes are as safe as ever.
    pub fn untracked(workspace: Arc<Workspace>) -> Self {
        let (files, instructions, lookout) = (Files::of(fresh_id()), Instructions::default(), Lookout::default());
        Self {
            workspace,
            tracker: None,
            files,
            instructions,
            cursor: None,
            lookout,
            shown: None,
            doer: Doer::We,
            told: Vec::new(),
            course: Course::default(),
        }
    }

    /// The workspace.
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// The tracker, if there is one.
    pub fn tracker(&mut self) -> Option<&mut FileTracker> {
        self.tracker.as_mut()
    }

    /// Forgets everything that was seen, as after a reset of the context.
    pub fn reset(&mut self) {
        if let Some(tracker) = &mut self.tracker {
            tracker.clear_session(&self.workspace);
        }
        self.instructions.forget();
        self.hand_over();
    }

    /// Calls a tool by name. Whatever the arguments are, this answers.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Reply {
        self.call_on(&Course::default(), tool, arguments)
    }

    /// The same for a call whose course is followed from elsewhere.
    pub fn call_on(&mut self, course: &Course, tool: &str, arguments: &Value) -> Reply {
        self.course = course.clone();
        if let Some(tracker) = &mut self.tracker {
            tracker.take_over();
        }
        let reply = self.carry_call(tool, arguments);
        self.hand_over();
        reply
    }

    /// What others who have the session must know is in the store from here on.
    fn hand_over(&self) {
        if self.tracker.as_ref().is_some_and(FileTracker::is_shared) {
            self.workspace.flush();
        }
    }

    fn carry_call(&mut self, tool: &str, arguments: &Value) -> Reply {
        let outcome = match tools::find(tool) {
            Some(tool) => (tool.run)(self, arguments),
            None => {
                let names: Vec<&str> = tools::TABLE.iter().map(|tool| tool.name).collect();
                let why =
                    format!("there is no tool {:?}; there are {}", tool.chars().take(60).collect::<String>(), names.join(", "));
                Err(Refusal::of_call(Cause::BadArguments { why }))
            }
        };
        let directories = directories(&outcome);
        self.reply(tool, arguments, outcome, &directories)
    }

    /// The instructions that the repository has for work on a file or in a directory and that this session does not have yet:
    /// what its `AGENTS.md` says and those of the directories above, parents first, each once. Whoever wants them elsewhere than
    /// at the end of replies, in a system prompt say, asks here before the call. If they are too much at once, asking again gives
    /// the rest.
    pub fn agents_md_if_new(&mut self, path: &str) -> Option<String> {
        self.instructions_if_new(path).map(|told| told.text)
    }

    /// The same, with the files that they are from.
    pub fn instructions_if_new(&mut self, path: &str) -> Option<Told> {
        let directory = match place(self.workspace.root(), path) {
            Ok(Place::Dir(directory)) => directory,
            // Also where there is no file yet.
            Ok(Place::File(_)) | Err(_) => self.path_of(path).ok()?.parent(),
        };
        self.listen(&[]);
        self.tell_instructions(&[directory])
    }

    /// Takes changes back: for people, who may mean those of any session.
    pub fn take_back(&mut self, selection: &Selection, since: Since) -> Reply {
        let outcome = tools::undo::take_back(self, selection, since);
        // Instructions are for models.
        self.reply("undo", &Value::Null, outcome, &[])
    }

    /// Says what came of a call, with the instructions for work in these directories.
    fn reply(
        &mut self,
        tool: &str,
        arguments: &Value,
        outcome: Result<Success, Refusal>,
        directories: &[Option<RelPath>],
    ) -> Reply {
        let about = match &outcome {
            Ok(success) => About::Shown(success.paths.clone()),
            Err(refusal) => About::Refused(refusal.path.as_deref().and_then(|path| RelPath::new(path).ok()), refusal.code()),
        };
        let mut reply = match outcome {
            Ok(success) => self.say_success(success),
            Err(refusal) => self.say_refusal(tool, arguments, refusal),
        };
        self.track_files(tool, &reply);
        self.listen(about.shown());
        self.add_instructions(&mut reply, directories);
        self.add_changed_files(&mut reply, &about);
        self.add_notices(&mut reply);
        reply
    }

    /// Keeps the state of the repository up to date with what a tool did.
    pub(crate) fn track_files(&self, tool: &str, reply: &Reply) {
        let mut repo = self.workspace.repo();
        if repo.update_from_tool_result(tool, &reply.result, |path| self.files.stamp(path)) {
            repo.persist_soon(&self.workspace.repo_sources());
        }
    }

    /// Adds what the repository asks of whoever works in these directories, if the session does not have it yet.
    fn add_instructions(&mut self, reply: &mut Reply, directories: &[Option<RelPath>]) {
        let Some(told) = self.tell_instructions(directories) else { return };
        reply.result["instructions"] = json!(told.paths);
        match self.shown {
            Some(_) => self.told.push(told),
            None => reply.text.push_str(&told.text),
        }
    }

    pub(crate) fn tell_instructions(&mut self, directories: &[Option<RelPath>]) -> Option<Told> {
        let tracker = self.tracker.as_mut();
        let mut ground = instructions::Ground { workspace: &self.workspace, tracker, files: &mut self.files };
        self.instructions.tell(&mut ground, directories)
    }

    /// Names the files that the session has seen and that are something else now, but for those that the reply is about.
    fn add_changed_files(&mut self, reply: &mut Reply, about: &About) {
        // Not every refusal says that its file has changed: a bad range does not.
        let is_said = |changed: &Changed| match about {
            About::Refused(Some(path), code) => *path == changed.path && (changed.now == Outside::Gone || *code == "stale"),
            About::Refused(None, _) | About::Shown(_) => false,
        };
        let changed = self.on_the_lookout(|lookout, ground| lookout.look(ground)).unwrap_or_default();
        let (said, news): (Vec<Changed>, Vec<Changed>) = changed.into_iter().partition(is_said);
        said.iter().for_each(|changed| self.workspace.repo().changed_outside(&changed.path, changed.now));
        self.name_changed(reply, news);
    }

    /// Names files that are not what the session saw, with who did it.
    pub(crate) fn name_changed(&mut self, reply: &mut Reply, changed: Vec<Changed>) {
        let id = self.id();
        let file = |changed: Changed| {
            self.workspace.repo().changed_outside(&changed.path, changed.now);
            let by = who(&self.workspace, &id, &changed);
            ChangedFile { path: changed.path, deleted: changed.now == Outside::Gone, by }
        };
        add_changed(reply, changed.into_iter().map(file).collect());
    }

    /// Takes in what the watcher has heard since the last time. What the session has just been told about needs no look.
    pub(crate) fn listen(&mut self, fresh: &[RelPath]) {
        let hints = match self.workspace.watch() {
            Some(watch) => watch.hints(self.cursor.get_or_insert_with(|| watch.cursor())),
            None => Hints::Everything,
        };
        self.instructions.listen(&hints, &self.workspace.config().instructions);
        self.on_the_lookout(|lookout, ground| lookout.listen(ground, &hints, fresh));
    }

    /// Brings together what the lookout needs; nothing where nobody keeps track.
    pub(crate) fn on_the_lookout<T>(&mut self, look: impl FnOnce(&mut Lookout, &mut Ground<'_>) -> T) -> Option<T> {
        let tracker = self.tracker.as_mut()?;
        let mut ground = Ground { workspace: &self.workspace, tracker, files: &mut self.files };
        Some(look(&mut self.lookout, &mut ground))
    }

    pub(crate) fn say_success(&mut self, success: Success) -> Reply {
        success.paths.iter().for_each(|path| self.mend(path));
        let mut result = Map::from_iter([("success".to_owned(), Value::Bool(true))]);
        result.extend(success.result);
        Reply { text: success.text, is_error: false, result: Value::Object(result) }
    }

    pub(crate) fn say_refusal(&mut self, tool: &str, arguments: &Value, refusal: Refusal) -> Reply {
        let path = refusal.path.as_deref().and_then(|path| RelPath::new(path).ok());
        let mut repeat = 1;
        if let Some(tracker) = &mut self.tracker {
            let unshown = match &refusal.cause {
                Cause::Unshown { version, .. } => Some(*version),
                _ => None,
            };
            let call = digest(tool, arguments, unshown);
            repeat = tracker.count_refusal(&self.workspace, call, path.clone());
        }
        if let (Some(view), Some(path)) = (&refusal.view_after, &path) {
            self.set_view(path, view.clone());
            if let Some(text) = self.shown.as_ref().and_then(|_| self.files.text(&self.workspace, &view.version())) {
                self.note(path, &text, &refusal.affected_ranges());
            }
        }
        let mut told = json!({
            "code": refusal.code(),
            "path": refusal.path,
            "affected_ranges": refusal.affected_ranges().coarsened(MAX_RANGES),
            "remaps": refusal.remaps(),
            "repeat": repeat,
            "remedy": render::refusal::remedy(&refusal),
        });
        if let Some(view) = &refusal.view_after {
            // What the remaps and ranges are of.
            told["version"] = json!(view.version());
        }
        if let Cause::AnchorMismatch { mismatches, .. } = &refusal.cause {
            told["mismatches"] = json!(mismatches);
        }
        let result = json!({ "success": false, "refusal": told });
        Reply { text: render::refusal::refusal(&refusal, repeat), is_error: true, result }
    }

    fn add_notices(&mut self, reply: &mut Reply) {
        let notices = self.workspace.take_notices();
        if notices.is_empty() {
            return;
        }
        let lines: Vec<String> = notices.iter().map(render::notice::notice).collect();
        for line in &lines {
            reply.text.push_str(&format!("note: {line}\n"));
        }
        if let Value::Object(result) = &mut reply.result {
            let warnings = result.entry("warnings").or_insert_with(|| json!([]));
            if let Value::Array(warnings) = warnings {
                warnings.extend(lines.into_iter().map(Value::String));
            }
        }
    }

    /// What calls about this file were refused for has been mended.
    pub(crate) fn mend(&mut self, path: &RelPath) {
        if let Some(tracker) = &mut self.tracker {
            tracker.mend(&self.workspace, path);
        }
    }

    /// The one spelling of a file, without reading it.
    pub fn path_of(&self, spelling: &str) -> Result<RelPath, Refusal> {
        self.files.path_of(&self.workspace, spelling)
    }

    /// What is at a path, and what the session has seen of it.
    pub(crate) fn gather(&mut self, spelling: &str) -> Result<Gathered, Refusal> {
        let gathered = self.files.gather(&self.workspace, spelling)?;
        Ok(self.with_view(gathered))
    }

    fn with_view(&mut self, mut gathered: Gathered) -> Gathered {
        if let Some(tracker) = &mut self.tracker {
            gathered.view = tracker.view(&self.workspace, &gathered.path);
            gathered.seen = match (&gathered.view, &gathered.present) {
                (Some(view), Present::Text(text)) if view.version() == text.version() => Some(text.clone()),
                (Some(view), _) => self.files.text(&self.workspace, &view.version()),
                (None, _) => None,
            };
        }
        if self.doer == Doer::Guest {
            // What it has been done to is what the session saw.
            gathered.present = gathered.seen.clone().map_or(Present::Absent, Present::Text);
        }
        gathered
    }

    /// The same for a path that is to be written: somebody's internals are refused.
    pub(crate) fn gather_for_writing(&mut self, spelling: &str) -> Result<Gathered, Refusal> {
        let gathered = self.gather(spelling)?;
        self.check_is_ours_to_write(&gathered.path)?;
        Ok(gathered)
    }

    /// The same for a file that is to be replaced or taken away as a whole, whether it can be shown or not.
    pub(crate) fn gather_whole(&mut self, spelling: &str) -> Result<Gathered, Refusal> {
        let gathered = self.files.gather_whole(&self.workspace, spelling)?;
        self.check_is_ours_to_write(&gathered.path)?;
        Ok(self.with_view(gathered))
    }

    /// The same for a file that is to lose the name it is called by: of several names that one is meant, though what the session
    /// has seen of the file counts by any of them.
    pub(crate) fn gather_by_name(&mut self, spelling: &str) -> Result<Gathered, Refusal> {
        let mut gathered = self.gather_whole(spelling)?;
        if gathered.links > 1 {
            gathered.path = self.files.spelled(&self.workspace, spelling)?;
            self.check_is_ours_to_write(&gathered.path)?;
        }
        Ok(gathered)
    }

    fn check_is_ours_to_write(&self, path: &RelPath) -> Result<(), Refusal> {
        // The settings say how strict we are: who is held to them does not change them.
        let in_tree = self.workspace.in_tree(path);
        if [path, &in_tree].iter().any(|path| path.as_str() == "surehand.toml") || self.workspace.is_protected(&in_tree) {
            return Err(Refusal::of(path, Cause::Protected));
        }
        Ok(())
    }

    /// Whether this very call was refused before because what is there, as it is now, cannot be shown.
    pub(crate) fn is_warned(&mut self, tool: &str, arguments: &Value, there: &Present) -> bool {
        let (Some(tracker), Present::Blob(blob, _)) = (&mut self.tracker, there) else { return false };
        tracker.was_refused(&self.workspace, &digest(tool, arguments, Some(blob.version())))
    }

    /// A target for the gate.
    pub(crate) fn target<'a>(&'a self, gathered: &'a Gathered) -> Target<'a> {
        Target {
            path: &gathered.path,
            tracking: gathered.tracking(self.tracker.is_some()),
            present: &gathered.present,
            policy: self.policy(),
            limits: self.limits(),
        }
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.workspace.config().policy
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.workspace.config().limits
    }

    /// Whose changes these are.
    pub(crate) fn id(&self) -> SessionId {
        self.tracker.as_ref().map_or_else(|| SessionId("untracked".to_owned()), |tracker| tracker.session().clone())
    }

    pub(crate) fn set_view(&mut self, path: &RelPath, view: View) {
        if let Some(tracker) = &mut self.tracker {
            let is_new = tracker.view(&self.workspace, path).is_none();
            tracker.set_view(&self.workspace, path, view);
            if is_new {
                self.workspace.watch_file(path);
            }
        }
    }

    /// Keeps what a file held, if that is at hand, so that it can be brought back.
    pub(crate) fn keep_version(&mut self, path: &RelPath, version: &ContentHash) {
        if let Some(text) = self.files.text(&self.workspace, version) {
            self.files.keep(&self.workspace, path, &text);
        }
    }

    /// Keeps a text of a file, to compare with later.
    pub(crate) fn keep_text(&mut self, path: &RelPath, text: &Text) {
        self.files.keep(&self.workspace, path, text);
    }

    /// Records that lines were shown.
    pub(crate) fn show(&mut self, path: &RelPath, text: &Text, lines: &surehand_core::LineSet) {
        self.note(path, text, lines);
        if let Some(tracker) = &mut self.tracker {
            let is_new = tracker.view(&self.workspace, path).is_none();
            tracker.show(&self.workspace, &mut self.files, path, text, lines);
            if is_new {
                self.workspace.watch_file(path);
            }
        }
    }

    /// Counts a rewrite of a file.
    pub(crate) fn count_rewrite(&mut self, path: &RelPath, alike: bool) -> u32 {
        match &mut self.tracker {
            Some(tracker) => tracker.count_rewrite(&self.workspace, path, alike),
            None => 0,
        }
    }
}

/// A call, as refusals of it are counted. One that was refused for what cannot be shown is another when the file has changed.
fn digest(tool: &str, arguments: &Value, unshown: Option<ContentHash>) -> ContentHash {
    let unshown = unshown.map(|version| format!(" {version}")).unwrap_or_default();
    ContentHash::of(format!("{tool} {arguments}{unshown}").as_bytes())
}

impl About {
    fn shown(&self) -> &[RelPath] {
        match self {
            About::Shown(paths) => paths,
            About::Refused(..) => &[],
        }
    }
}

/// The directories in which a call did something, or was about to. `None` is the root.
fn directories(outcome: &Result<Success, Refusal>) -> Vec<Option<RelPath>> {
    let mut directories: Vec<Option<RelPath>> = match outcome {
        Ok(success) => success.directories.iter().cloned().chain(success.paths.iter().map(RelPath::parent)).collect(),
        Err(refusal) if is_about_to_work(&refusal.cause) => {
            refusal.path.iter().filter_map(|path| RelPath::new(path).ok()).map(|path| path.parent()).collect()
        }
        Err(_) => Vec::new(),
    };
    directories.dedup();
    directories
}

/// Names files that are not what the session saw.
pub(crate) fn add_changed(reply: &mut Reply, files: Vec<ChangedFile>) {
    if files.is_empty() {
        return;
    }
    reply.result["changed_elsewhere"] = json!(files);
    reply.text.push_str(&format!("note: {}\n", render::notice::notice(&Notice::ChangedOutside { files })));
}

/// A name for a new session.
fn fresh_id() -> SessionId {
    SessionId(format!("{:x}-{:016x}", now(), random()))
}

pub(crate) fn random() -> u64 {
    let mut random = [0_u8; 8];
    match rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()) {
        Ok(_) => u64::from_ne_bytes(random),
        // Without randomness the time still tells them apart.
        Err(_) => jiff::Timestamp::now().as_nanosecond() as u64,
    }
}
