//! For an agent that renders its prompt anew each turn: provides the current content of files, and makes the views
//! equal to what the prompt shows.

use surehand_core::{KnownLines, RelPath, Text, View};

use crate::session::Session;

/// The interface for an agent that renders its prompt anew each turn.
#[derive(Debug)]
pub struct PromptViews<'a> {
    session: &'a mut Session,
}

impl Session {
    /// For an agent that renders the context of this session anew each turn.
    pub fn prompt_views(&mut self) -> PromptViews<'_> {
        PromptViews { session: self }
    }
}

impl PromptViews<'_> {
    /// The current text of a file. `None` if there is no file, it is not a text, or the name leads to another file,
    /// which has its own entry.
    pub fn present(&mut self, path: &RelPath) -> Option<Text> {
        self.session.text_at(path.as_str()).filter(|(canonical, _)| canonical == path).map(|(_, text)| text)
    }

    /// Makes the views equal to the prompt, which shows exactly these lines under their numbers. They count as seen,
    /// and all others are forgotten.
    pub fn show_only(&mut self, shown: &[KnownLines]) {
        let workspace = self.session.workspace().clone();
        let _together = workspace.store.hold();
        let Some(tracker) = self.session.tracker() else { return };
        for path in tracker.viewed(&workspace) {
            if !shown.iter().any(|lines| lines.path == path) {
                tracker.forget_view(&workspace, &path);
            }
        }
        for KnownLines { path, text, lines } in shown {
            let mut view = View::of(text);
            view.show_set(lines);
            self.session.keep_text(path, text);
            self.session.set_view(path, view);
        }
    }
}
