//! For whoever renders a session's context anew each turn: what calls have shown, what files hold now, and that the session knows
//! what its prompt shows and nothing else.

use surehand_core::{LineSet, Present, RelPath, Text, View, working_set::Lines};

use crate::{instructions::Told, session::Session};

impl Session {
    /// From now on it is noted which lines are shown.
    pub fn note_shown(&mut self) {
        self.shown.get_or_insert_default();
    }

    /// The lines that calls have shown since the last time this was asked, in the order in which they came, each with the text
    /// of that moment. Lines that the model wrote itself are among them.
    pub fn take_shown(&mut self) -> Vec<Lines> {
        self.shown.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The instructions for directories in which calls worked since the last time this was asked. While it is noted what is shown,
    /// they come here and not with replies.
    pub fn take_told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.told)
    }

    /// Notes, if somebody wants to know, that lines were shown.
    pub(crate) fn note(&mut self, path: &RelPath, text: &Text, lines: &LineSet) {
        if let Some(shown) = &mut self.shown {
            shown.push(Lines { path: path.clone(), text: text.clone(), lines: lines.clone() });
        }
    }

    /// What a file holds now; nothing where there is none, it is no text, or the name leads to another file, which has its own.
    pub fn present(&mut self, path: &RelPath) -> Option<Text> {
        let gathered = self.gather(path.as_str()).ok()?;
        if gathered.path != *path {
            return None;
        }
        match gathered.present {
            Present::Text(text) => Some(text),
            Present::Absent | Present::Blob(..) | Present::Unreadable(_) => None,
        }
    }

    /// The context of this session shows these lines, under their numbers, and no others: they are seen, all else is forgotten.
    pub fn knows_only(&mut self, shown: &[Lines]) {
        let workspace = self.workspace().clone();
        let _together = workspace.hold_records();
        let Some(tracker) = self.tracker() else { return };
        for path in tracker.viewed(&workspace) {
            if !shown.iter().any(|lines| lines.path == path) {
                tracker.forget_view(&workspace, &path);
            }
        }
        for Lines { path, text, lines } in shown {
            let mut view = View::of(text);
            view.show_set(lines);
            self.keep_text(path, text);
            self.set_view(path, view);
        }
    }
}
