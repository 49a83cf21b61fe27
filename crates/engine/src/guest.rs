//! Tools of somebody else that work on our files: an agent's own, which its hooks tell us about. What such a tool is about to do is
//! judged by the gate, what it has done is recorded as if it had been done here, and what it has shown counts as read. A hook lives
//! for a moment, so that nothing here looks at all that a long session has seen: what is missed, the gate finds when it matters.

use std::sync::Arc;

use rustix::fs::{self as sys, AtFlags};
use serde_json::{Value, json};
use surehand_core::{
    LineMap, LineNo, LineRange, LineSet, Present, Refusal, RelPath, Text, View, gate,
    instructions::{News, chain},
};
use surehand_store::Record;

use crate::{
    command::{Command, Running},
    deed::{Deed, fresh_change},
    session::{Reply, Session, Success},
    tools,
    workspace::Workspace,
};

/// Who carries out what is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Doer {
    /// We do.
    #[default]
    We,
    /// Nobody: it is only judged.
    Nobody,
    /// Somebody else has: what was there is what the session saw.
    Guest,
}

/// A call of somebody else's tool, told as one of ours.
#[derive(Debug, Clone, PartialEq)]
pub struct GuestCall {
    /// Our tool.
    pub tool: &'static str,
    /// Its arguments.
    pub arguments: Value,
    /// The files that it is about.
    pub paths: Vec<String>,
}

/// What a call does to a file, where no more is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// It changes a part of it.
    Edit,
    /// It replaces all of it.
    Overwrite,
    /// It takes it from its place.
    TakeAway,
}

/// What somebody else's call has made of its files is not what it would have made here: it has matched in a way of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnWay;

/// What is the matter with a call of somebody else's tool is for that tool to say, but for what only the gate knows.
const OURS: &[&str] = &["unread", "stale", "deleted", "partial"];

/// So many of the files that the session saw last are looked at.
const LATELY: usize = 32;

impl Session {
    /// Whether a call that somebody else is about to carry out would be refused by the gate. The refusal counts, and what it shows
    /// is seen.
    pub fn judge(&mut self, call: &GuestCall) -> Option<Reply> {
        let refusal = self.done_by(Doer::Nobody, call)?.err()?;
        self.say_if_ours(call, refusal)
    }

    /// The same for one file of a call of which we know only what it does to the file.
    pub fn judge_touch(&mut self, call: &GuestCall, touch: Touch, path: &str) -> Option<Reply> {
        let gathered = self.gather_for_writing(path).ok()?;
        let target = self.target(&gathered);
        let refused = match touch {
            Touch::Edit => gate::edit(&target, None).err(),
            Touch::Overwrite => gate::overwrite(&target).err(),
            Touch::TakeAway => gate::take_away(&target).err(),
        };
        self.say_if_ours(call, refused?)
    }

    fn say_if_ours(&mut self, call: &GuestCall, refusal: Refusal) -> Option<Reply> {
        if !OURS.contains(&refusal.code()) {
            return None;
        }
        let path = refusal.path.as_deref().and_then(|path| RelPath::new(path).ok());
        let reply = self.say_refusal(call.tool, &call.arguments, refusal);
        path.iter().for_each(|path| self.keep_seen(path));
        Some(reply)
    }

    /// Keeps the text that the session has seen something of: when its tool has run, that is what it was done to, and by then it is
    /// nowhere else.
    fn keep_seen(&mut self, path: &RelPath) {
        if let Some(view) = self.view_of(path) {
            self.keep_version(path, &view.version());
        }
    }

    /// Records what somebody else has carried out. Gives what should be said about it: nothing, unless the files are not what the call
    /// has made of what the session saw. A call that has left its files as they were was not carried out, or is on record already.
    pub fn guest_did(&mut self, call: &GuestCall) -> Result<Option<String>, OwnWay> {
        if !call.paths.iter().any(|path| self.has_done_something(call, path)) {
            return Ok(None);
        }
        let success = self.done_by(Doer::Guest, call).and_then(Result::ok).ok_or(OwnWay)?;
        for path in &success.paths {
            self.mend(path);
            self.keep_seen(path);
        }
        let is_rewritten = is_rewritten(&success);
        let reply = self.say_success(success);
        self.track_files(call.tool, &reply);
        self.workspace().flush();
        Ok(is_rewritten.then_some(reply.text))
    }

    /// Takes files as somebody else's tool left them: lines that are the same are still seen, the others are not.
    pub fn guest_left(&mut self, call: &GuestCall) {
        call.paths.iter().for_each(|path| self.adopt(call.tool, path));
        self.workspace().flush();
    }

    fn done_by(&mut self, doer: Doer, call: &GuestCall) -> Option<Result<Success, Refusal>> {
        let tool = tools::find(call.tool)?;
        self.doer = doer;
        let outcome = (tool.run)(self, &call.arguments);
        self.doer = Doer::We;
        Some(outcome)
    }

    /// Whether a file is something else than the session takes it to be, or was written again as it is.
    fn has_done_something(&mut self, call: &GuestCall, path: &str) -> bool {
        let Ok(gathered) = self.gather(path) else { return false };
        match (&gathered.present, &gathered.view) {
            (Present::Absent, None) => false,
            (Present::Text(now), Some(view)) if view.version() == now.version() => {
                call.arguments["content"].as_str() == Some(&now.as_str()[now.body_start()..])
            }
            _ => true,
        }
    }

    fn adopt(&mut self, tool: &str, path: &str) {
        let Ok(gathered) = self.gather(path) else { return };
        let Present::Text(now) = &gathered.present else { return };
        let (Some(view), Some(seen)) = (&gathered.view, &gathered.seen) else { return };
        if view.version() == now.version() {
            return;
        }
        let map = LineMap::between(seen, now);
        let view = view.carried(seen, &map, now);
        self.keep_text(&gathered.path, now);
        let mut event = self.event_of(&Deed::of(tool), &fresh_change(), &gathered.path);
        (event.before, event.after) = (Some(seen.version()), Some(now.version()));
        self.workspace().record(Record::Happened(event));
        self.set_view(&gathered.path, view);
    }

    /// Records what somebody else's tool has shown of a file: these lines, from this number on. Only those that the file has count.
    /// Gives how many do.
    pub fn guest_showed(&mut self, path: &str, start: u32, content: &str) -> usize {
        let Ok(gathered) = self.gather(path) else { return 0 };
        let Present::Text(text) = &gathered.present else { return 0 };
        let shown = matching(text, start, content);
        let count = shown.count() as usize;
        if count > 0 || (text.line_count() == 0 && content.is_empty()) {
            self.show(&gathered.path, text, &shown);
            self.mend(&gathered.path);
            let result = json!({ "success": true, "path": gathered.path, "version": text.version() });
            self.track_files("read_file", &Reply { text: String::new(), is_error: false, result });
        }
        count
    }

    /// Records what a command in somebody else's shell has shown, and gives what the model should know of what it changed, with the
    /// files that it has read.
    pub fn guest_ran(&mut self, command: &Command<'_>) -> (String, Vec<RelPath>) {
        let among = self.lately_viewed();
        let reply = self.command_ended(Running::among(among), command);
        let seen = reply.result["seen"].as_array().map(Vec::as_slice).unwrap_or_default();
        let path = |seen: &Value| seen["path"].as_str().and_then(|path| RelPath::new(path).ok());
        let seen = seen.iter().filter_map(path).collect();
        (reply.text, seen)
    }

    /// Names, once, files that the session has seen lately and that are something else now.
    pub fn changed_elsewhere(&mut self) -> String {
        let paths = self.lately_viewed();
        let changed = self.on_the_lookout(|lookout, ground| lookout.look_at(ground, paths)).unwrap_or_default();
        let mut reply = Reply { text: String::new(), is_error: false, result: json!({}) };
        self.name_changed(&mut reply, changed);
        reply.text
    }

    fn lately_viewed(&mut self) -> Vec<RelPath> {
        let workspace = self.workspace().clone();
        self.tracker().map(|tracker| tracker.lately_viewed(&workspace, LATELY)).unwrap_or_default()
    }

    /// The instructions for work on a file that this session does not have yet, as [`Session::agents_md_if_new`] gives them.
    pub fn guest_instructions(&mut self, path: &str) -> Option<String> {
        let directory = self.path_of(path).ok()?.parent();
        self.tell_instructions(&[directory]).map(|told| told.text)
    }

    /// Somebody else has given the session the instructions of a directory and of those above, as far as it had none of them. Where a
    /// file with one of the names in `instead` stands beside, it gave that one, which may take ours in.
    pub fn guest_was_instructed(&mut self, directory: &str, instead: &[&str]) {
        let Ok(directory) = self.workspace().root().spell_place(directory) else { return };
        let names = self.workspace().config().instructions.names.clone();
        for directory in chain(directory.as_ref()) {
            let text_at = |session: &mut Self, name: &str| match directory {
                "" => session.text_at(name),
                directory => session.text_at(&format!("{directory}/{name}")),
            };
            let ours = names.iter().find_map(|name| Some((name, text_at(self, name)?)));
            let Some((name, (path, text))) = ours else { continue };
            let theirs = instead.iter().find_map(|name| text_at(self, name));
            if theirs.is_none_or(|(_, theirs)| theirs == text || theirs.as_str().contains(&format!("@{name}"))) {
                self.give_if_first(&path, &text);
            }
        }
    }

    /// Somebody else has given the session this file as instructions.
    pub fn guest_was_given(&mut self, path: &str) {
        if let Some((path, text)) = self.text_at(path) {
            self.give_if_first(&path, &text);
        }
    }

    fn give_if_first(&mut self, path: &RelPath, text: &Text) {
        let workspace = self.workspace().clone();
        let Some(tracker) = self.tracker() else { return };
        if tracker.given(&workspace).news(path, text.version()) == Some(News::First) {
            tracker.give(&workspace, path, text.version());
        }
    }

    fn text_at(&mut self, path: &str) -> Option<(RelPath, Text)> {
        let gathered = self.gather(path).ok()?;
        match gathered.present {
            Present::Text(text) => Some((gathered.path, text)),
            Present::Absent | Present::Blob(..) | Present::Unreadable(_) => None,
        }
    }

    /// What the session has seen of a file, if anything.
    pub fn view_of(&mut self, path: &RelPath) -> Option<View> {
        let workspace = self.workspace().clone();
        self.tracker()?.view(&workspace, path)
    }
}

impl Workspace {
    /// For a process that ends at once and is one of many: what takes long is left to others.
    pub fn pass_by(&self) {
        self.repo().is_passing_by = true;
    }

    /// The end of such a process: writes down what it knows, and leaves it to the system to close the rest. To close the store in an
    /// orderly way is to bring its log in, and to wait for the disk; so only that process does it that finds the log long.
    pub fn leave(self: Arc<Self>) {
        const LONG: i64 = 1 << 20;
        self.flush();
        let Some(state) = self.state().state_dir().filter(|_| self.has_state_database()) else { return };
        let log = sys::statat(&**state.dir(), "state.db-wal", AtFlags::SYMLINK_NOFOLLOW);
        if log.is_ok_and(|log| log.st_size < LONG) {
            self.repo().persist_reads(&self.repo_sources());
            std::mem::forget(self);
        }
    }
}

/// Whether one of the files is not what the call has made of it.
fn is_rewritten(success: &Success) -> bool {
    let files = success.result.get("files").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is_rewritten = |result: &Value| result["rewritten"] == true;
    files.iter().any(is_rewritten) || success.result.get("rewritten").is_some_and(|rewritten| *rewritten == true)
}

/// The lines of a text that a content shows from this number on.
fn matching(text: &Text, start: u32, content: &str) -> LineSet {
    let shown = content.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let numbered = (start.max(1)..=u32::MAX).filter_map(LineNo::new).zip(shown);
    let is_there = |(number, line): &(LineNo, &str)| text.has_line(*number) && text.line(*number) == *line;
    numbered.filter(is_there).map(|(number, _)| LineRange::line(number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_where_the_file_has_them() {
        let text = Text::of("a\nb\nc\n".to_owned()).unwrap();
        assert_eq!(matching(&text, 2, "b\r\nx").to_string(), "2");
        assert_eq!(matching(&text, 0, "a\nb\nc\n").to_string(), "1-3");
        assert_eq!(matching(&text, u32::MAX, "a\nb").to_string(), "");
    }
}
