//! Tools of somebody else that work on our files: an agent's own, which its hooks tell us about. What such a tool is about to do is
//! judged by the gate, what it has done is recorded as if it had been done here, and what it has shown counts as read.

use serde_json::Value;
use surehand_core::{LineMap, LineNo, LineRange, LineSet, Present, RelPath, Text, View};
use surehand_store::Record;

use crate::{
    session::{Deed, Reply, Session, fresh_change},
    tools,
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

/// What is the matter with a call of somebody else's tool is for that tool to say, but for what only the gate knows.
const OURS: &[&str] = &["unread", "stale", "deleted", "partial"];

impl Session {
    /// Whether a call that somebody else is about to carry out would be refused by the gate, told as a call of ours. The refusal
    /// counts, and what it shows is seen.
    pub fn judge(&mut self, tool: &str, arguments: &Value) -> Option<Reply> {
        let refusal = self.done_by(Doer::Nobody, tool, arguments)?.err()?;
        OURS.contains(&refusal.code()).then(|| self.say_refusal(tool, arguments, refusal))
    }

    /// Records what somebody else has carried out, told as a call of ours. Gives what should be said about it: nothing, unless
    /// the files are not what the call has made of what the session saw.
    pub fn guest_did(&mut self, tool: &str, arguments: &Value, paths: &[&str]) -> Option<String> {
        let outcome = self.done_by(Doer::Guest, tool, arguments)?;
        let said = match outcome {
            Ok(success) => {
                success.paths.iter().for_each(|path| self.mend(path));
                let files = success.result.get("files").and_then(Value::as_array).map(Vec::as_slice);
                let is_rewritten = |result: &Value| result["rewritten"] == true;
                let rewritten = files.is_some_and(|files| files.iter().any(is_rewritten))
                    || success.result.get("rewritten").is_some_and(|rewritten| *rewritten == true);
                let reply = self.say_success(success);
                self.track_files(tool, &reply);
                rewritten.then_some(reply.text)
            }
            // It has matched in a way of its own. What it made of the file is only partly known.
            Err(_) => {
                paths.iter().for_each(|path| self.adopt(tool, path));
                None
            }
        };
        self.workspace().flush();
        said
    }

    fn done_by(
        &mut self,
        doer: Doer,
        tool: &str,
        arguments: &Value,
    ) -> Option<Result<crate::session::Success, surehand_core::Refusal>> {
        let tool = tools::find(tool)?;
        self.doer = doer;
        let outcome = (tool.run)(self, arguments);
        self.doer = Doer::We;
        Some(outcome)
    }

    /// Takes a file as somebody else's tool left it: lines that are the same are still seen, the others are not.
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
            let result = serde_json::json!({ "success": true, "path": gathered.path, "version": text.version() });
            self.track_files("read_file", &Reply { text: String::new(), is_error: false, result });
        }
        count
    }

    /// Names, once, files that the session has seen lately and that are something else now. A hook lives for a moment and must not look
    /// at all that a long session has seen; what it does not find here, the gate finds when it matters.
    pub fn changed_elsewhere(&mut self) -> String {
        const LATELY: usize = 64;
        let workspace = self.workspace().clone();
        let Some(tracker) = self.tracker() else { return String::new() };
        let paths = tracker.lately_viewed(&workspace, LATELY);
        let changed = self.on_the_lookout(|lookout, ground| lookout.look_at(ground, paths)).unwrap_or_default();
        let mut reply = Reply { text: String::new(), is_error: false, result: serde_json::json!({}) };
        self.name_changed(&mut reply, changed);
        reply.text
    }

    /// What the session has seen of a file, if anything.
    pub fn view_of(&mut self, path: &RelPath) -> Option<View> {
        let workspace = self.workspace().clone();
        self.tracker()?.view(&workspace, path)
    }
}

/// The lines of a text that a content shows from this number on.
fn matching(text: &Text, start: u32, content: &str) -> LineSet {
    let shown = content.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let numbered = (start.max(1)..).map_while(LineNo::new).zip(shown);
    let is_there = |(number, line): &(LineNo, &str)| text.has_line(*number) && text.line(*number) == *line;
    numbered.filter(is_there).map(|(number, _)| LineRange::line(number)).collect()
}
