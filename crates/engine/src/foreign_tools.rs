//! Another agent's own tools, which its hooks tell us about. What such a tool is about to do is judged by the gate, what it has done
//! is recorded as if it had been done here, and what it has shown counts as read. A hook lives for a moment, so that nothing here
//! looks at all that a long session has seen: what is missed, the gate finds when it matters.

use surehand_core::{
    ChangedFile, Done, Edit, LineMap, LineNo, LineRange, LineSet, Lines, Outcome, Present, Refusal, RefusalCode, RelPath, Text,
    gate,
    instructions::{News, ToldInstructions, chain},
    outcome::{CommandEffects, FileOutcome},
};
use surehand_store::Record;

use crate::{
    apply::ChangeOrigin,
    changes::fresh_change,
    command::{Command, Running},
    plan::PlanStep,
    session::{PlanBasis, Session},
};

/// The tools of another agent that works in a session.
#[derive(Debug)]
pub struct ForeignTools<'a> {
    session: &'a mut Session,
}

/// What a tool is about to do to a file, where no more is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileIntent {
    /// Change a part of it.
    Edit,
    /// Replace all of it.
    Overwrite,
    /// Take it from its place.
    TakeAway,
}

/// A foreign tool has made something else of its files than we would have: it has matched in a way of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the tool has made something else of its files than the edit says")]
pub struct OutcomeDiffers;

/// So many of the files that the session saw last are looked at.
const LATELY: usize = 32;

impl Session {
    /// For hooks that tell what the tools of another agent do in this session.
    pub fn foreign_tools(&mut self) -> ForeignTools<'_> {
        ForeignTools { session: self }
    }
}

impl ForeignTools<'_> {
    /// Whether the gate refuses an edit that a foreign tool is about to make. The refusal counts, and what it shows is seen.
    pub fn judge(&mut self, edit: &Edit) -> Option<Outcome> {
        match self.session.plan_on(PlanBasis::Disk, edit) {
            Ok(PlanStep::Nothing(path, text)) => {
                // Whoever sends all of what is there knows it, also where somebody else has written it.
                self.session.show(&path, &text, &LineSet::whole(text.line_count()));
                None
            }
            Ok(_) => None,
            Err(refusal) => self.report(edit, refusal),
        }
    }

    /// The same for one file of an edit of which we know only what it does to the file.
    pub fn judge_intent(&mut self, edit: &Edit, intent: FileIntent, path: &str) -> Option<Outcome> {
        let gathered = self.session.gather_for_writing(PlanBasis::Disk, path).ok()?;
        let target = self.session.target(&gathered);
        let refused = match intent {
            FileIntent::Edit => gate::edit(&target, None).err(),
            FileIntent::Overwrite => gate::overwrite(&target).err(),
            FileIntent::TakeAway => gate::take_away(&target).err(),
        };
        self.report(edit, refused?)
    }

    /// Reports what only the gate knows. Anything else is left to the tool itself.
    fn report(&mut self, edit: &Edit, refusal: Refusal) -> Option<Outcome> {
        match refusal.code() {
            RefusalCode::Unread | RefusalCode::Stale | RefusalCode::Deleted | RefusalCode::Partial => {}
            _ => return None,
        }
        let path = refusal.known_path();
        let refused = self.session.record_refusal(edit, refusal);
        path.iter().for_each(|path| self.keep_seen(path));
        Some(Outcome::new(Err(refused)))
    }

    /// Keeps the text that the session has seen something of: when its tool has run, that is what it was done to, and by then it is
    /// nowhere else.
    fn keep_seen(&mut self, path: &RelPath) {
        if let Some(view) = self.session.view_of(path) {
            self.session.keep_version(path, &view.version());
        }
    }

    /// Records an edit that a foreign tool has made. Gives what came of it if the model should know: nothing, unless the files are
    /// not what the edit makes of what the session saw. An edit that has left its files as they were was not made, or is on record
    /// already.
    pub fn adopt(&mut self, edit: &Edit) -> Result<Option<Outcome>, OutcomeDiffers> {
        if !edit.paths().iter().any(|path| self.has_done_something(edit, path)) {
            return Ok(None);
        }
        let step = self.session.plan_on(PlanBasis::View, edit).map_err(|_| OutcomeDiffers)?;
        let done = self.session.adopt(edit, step).ok_or(OutcomeDiffers)?;
        let is_rewritten = matches!(&done, Done::Changed(changed) if changed.files.iter().any(FileOutcome::is_rewritten));
        let outcome = Outcome::new(Ok(done));
        self.session.record(&outcome);
        outcome.paths().iter().for_each(|path| self.keep_seen(path));
        self.session.workspace().flush();
        Ok(is_rewritten.then_some(outcome))
    }

    /// Takes the files of an edit as a foreign tool has left them: lines that are the same are still seen, the others are not.
    pub fn adopt_files(&mut self, edit: &Edit) {
        edit.paths().iter().for_each(|path| self.adopt_file(edit, path));
        self.session.workspace().flush();
    }

    /// Whether a file is something else than the session takes it to be, or was written again as it is.
    fn has_done_something(&mut self, edit: &Edit, path: &str) -> bool {
        let Ok(gathered) = self.session.gather(path) else { return false };
        match (&gathered.present, &gathered.view) {
            (Present::Absent, None) => false,
            (Present::Text(now), Some(view)) if view.version() == now.version() => {
                matches!(edit, Edit::Write { content, .. } if *content == now.as_str()[now.body_start()..])
            }
            _ => true,
        }
    }

    fn adopt_file(&mut self, edit: &Edit, path: &str) {
        let Ok(gathered) = self.session.gather(path) else { return };
        let Present::Text(now) = &gathered.present else { return };
        let (Some(view), Some(seen)) = (&gathered.view, &gathered.seen) else { return };
        if view.version() == now.version() {
            return;
        }
        let map = LineMap::between(seen, now);
        let view = view.carried(seen, &map, now);
        self.session.keep_text(&gathered.path, now);
        let origin = ChangeOrigin::of(edit.tool().name());
        let mut event = self.session.event_of(&origin, &fresh_change(), &gathered.path);
        (event.before, event.after) = (Some(seen.version()), Some(now.version()));
        self.session.workspace().record(Record::Happened(event));
        self.session.set_view(&gathered.path, view);
    }

    /// Records what a foreign tool has shown of a file: these lines, from this number on. Only those that the file has count. Gives
    /// how many do.
    pub fn showed(&mut self, path: &str, start: u32, content: &str) -> usize {
        let Ok(gathered) = self.session.gather(path) else { return 0 };
        let Present::Text(text) = gathered.present else { return 0 };
        let lines = matching(&text, start, content);
        let count = lines.count() as usize;
        if count > 0 || (text.line_count() == 0 && content.is_empty()) {
            self.session.show(&gathered.path, &text, &lines);
            self.session.mend(&gathered.path);
            self.session.track_read(&[Lines { path: gathered.path, text, lines }]);
        }
        count
    }

    /// Records what a command in a foreign shell has shown, and gives what it changed.
    pub fn ran(&mut self, command: &Command<'_>) -> CommandEffects {
        let among = self.lately_viewed();
        self.session.command_ended(Running::among(among), command)
    }

    /// Records what a tool has printed that is no command: the hits of a search, say. `line` names the files that it can be about.
    pub fn printed(&mut self, printed: &Command<'_>) -> Vec<Lines> {
        self.session.count_as_read(printed)
    }

    /// Records that a tool has shown the cells of a notebook (`.ipynb`), whose lines are in JSON. All of the file is seen if the text of every
    /// cell that it has is in what was shown, one after the other. Gives whether it is.
    pub fn showed_notebook(&mut self, path: &str, cells: &str) -> bool {
        let Ok(gathered) = self.session.gather(path) else { return false };
        let Present::Text(text) = gathered.present else { return false };
        let is_shown = shows_all_cells(text.as_str(), cells);
        if is_shown {
            let lines = LineSet::whole(text.line_count());
            self.session.show(&gathered.path, &text, &lines);
            self.session.track_read(&[Lines { path: gathered.path, text, lines }]);
        }
        is_shown
    }

    /// Files that the session has seen lately and that are something else now, each once.
    pub fn changed_elsewhere(&mut self) -> Vec<ChangedFile> {
        let paths = self.lately_viewed();
        let changed = self.session.on_the_lookout(|lookout, ground| lookout.look_at(ground, paths)).unwrap_or_default();
        self.session.name_changed(changed)
    }

    fn lately_viewed(&mut self) -> Vec<RelPath> {
        let workspace = self.session.workspace().clone();
        self.session.tracker().map(|tracker| tracker.lately_viewed(&workspace, LATELY)).unwrap_or_default()
    }

    /// The instructions for work on a file that this session does not have yet.
    pub fn instructions(&mut self, path: &str) -> Option<ToldInstructions> {
        let directory = self.session.path_of(path).ok()?.parent();
        self.session.tell_instructions(&[directory])
    }

    /// The client has given the model the instructions of a directory and of those above, as far as it had none of them. Where a
    /// file with one of the names in `instead` stands beside, it gave that one, which may take ours in.
    pub fn were_instructed(&mut self, directory: &str, instead: &[&str]) {
        let workspace = self.session.workspace().clone();
        let Ok(directory) = workspace.root().spell_place(directory) else { return };
        let names = &workspace.config().instructions.names;
        for directory in chain(directory.as_ref()) {
            let text_at = |tools: &mut Self, name: &str| match directory {
                "" => tools.text_at(name),
                directory => tools.text_at(&format!("{directory}/{name}")),
            };
            let ours = names.iter().find_map(|name| Some((name, text_at(self, name)?)));
            let Some((name, (path, text))) = ours else { continue };
            let theirs = instead.iter().find_map(|name| text_at(self, name));
            if theirs.is_none_or(|(_, theirs)| theirs == text || theirs.as_str().contains(&format!("@{name}"))) {
                self.give_if_first(&path, &text);
            }
        }
    }

    /// The client has given the model this file as instructions.
    pub fn were_given(&mut self, path: &str) {
        if let Some((path, text)) = self.text_at(path) {
            self.give_if_first(&path, &text);
        }
    }

    fn give_if_first(&mut self, path: &RelPath, text: &Text) {
        let workspace = self.session.workspace().clone();
        let Some(tracker) = self.session.tracker() else { return };
        if tracker.given(&workspace).news(path, text.version()) == Some(News::First) {
            tracker.give(&workspace, path, text.version());
        }
    }

    fn text_at(&mut self, path: &str) -> Option<(RelPath, Text)> {
        let gathered = self.session.gather(path).ok()?;
        match gathered.present {
            Present::Text(text) => Some((gathered.path, text)),
            Present::Absent | Present::Blob(..) | Present::Unreadable(_) => None,
        }
    }
}

/// Whether a text has the source of every cell of a notebook in it, in their order.
fn shows_all_cells(notebook: &str, shown: &str) -> bool {
    let Ok(notebook) = serde_json::from_str::<serde_json::Value>(notebook) else { return false };
    let Some(cells) = notebook["cells"].as_array() else { return false };
    let mut rest = shown;
    cells.iter().all(|cell| {
        let source: String = match &cell["source"] {
            serde_json::Value::Array(lines) => lines.iter().filter_map(|line| line.as_str()).collect(),
            source => source.as_str().unwrap_or_default().to_owned(),
        };
        let found = rest.find(source.trim_end());
        if let Some(at) = found {
            rest = &rest[at + source.trim_end().len()..];
        }
        found.is_some()
    })
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
    fn a_notebook_is_seen_with_all_of_its_cells() {
        let notebook = r##"{"cells":[{"source":["x = 1\n","print(x)"]},{"source":"# Title\n"}],"nbformat":4}"##;
        assert!(shows_all_cells(notebook, "--- Code ---\nx = 1\nprint(x)\n\n# Title"));
        assert!(!shows_all_cells(notebook, "# Title\nx = 1\nprint(x)"));
        assert!(!shows_all_cells(notebook, "x = 2\nprint(x)\n# Title"));
        assert!(!shows_all_cells("no JSON", "x"));
    }

    #[test]
    fn lines_count_where_the_file_has_them() {
        let text = Text::of("a\nb\nc\n".to_owned()).unwrap();
        assert_eq!(matching(&text, 2, "b\r\nx").to_string(), "2");
        assert_eq!(matching(&text, 0, "a\nb\nc\n").to_string(), "1-3");
        assert_eq!(matching(&text, u32::MAX, "a\nb").to_string(), "");
    }
}
