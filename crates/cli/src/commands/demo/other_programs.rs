//! Those who save the same files meanwhile: an editor, a formatter, a colleague. They know nothing of Surehand. At the end it is
//! looked up whether what they saved is still there.

use std::{collections::HashMap, fs, io, path::Path};

use super::{
    story::{OUTSIDE, OutsideAct, OutsideChange, SaveTime},
    tool_call::ToolCall,
};

#[derive(Debug)]
pub(super) struct OtherPrograms<'a> {
    root: &'a Path,
    /// How often a tool has done its work on a file.
    done: HashMap<(String, String), usize>,
    saved: Vec<&'static OutsideChange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeptChanges {
    pub saved: usize,
    pub lost: usize,
}

impl<'a> OtherPrograms<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self { root, done: HashMap::new(), saved: Vec::new() }
    }

    pub(super) fn before(&mut self, deed: &ToolCall) -> io::Result<()> {
        let is_about = |outside: &OutsideChange| outside.call.tool.name() == deed.tool && outside.call.path == deed.path;
        let due = |outside: &OutsideChange, done: usize| is_about(outside) && done + 1 == outside.call.time;
        self.save(SaveTime::Before, due)
    }

    pub(super) fn after(&mut self, deed: &ToolCall) {
        *self.done.entry((deed.tool.clone(), deed.path.clone())).or_default() += 1;
    }

    pub(super) fn turn_ended(&mut self) -> io::Result<()> {
        self.save(SaveTime::AfterTurn, |outside, done| done >= outside.call.time)
    }

    pub(super) fn kept(&self) -> io::Result<KeptChanges> {
        let mut lost = 0;
        for outside in &self.saved {
            let text = fs::read_to_string(self.root.join(outside.path))?;
            lost += usize::from(!text.contains(outside.act.trace()));
        }
        Ok(KeptChanges { saved: self.saved.len(), lost })
    }

    /// Saves what is due now and can be done. `is_due` is told how often the tool has done its work.
    fn save(&mut self, when: SaveTime, is_due: impl Fn(&OutsideChange, usize) -> bool) -> io::Result<()> {
        for outside in OUTSIDE.iter().filter(|outside| outside.when == when) {
            let done =
                self.done.get(&(outside.call.tool.name().to_owned(), outside.call.path.to_owned())).copied().unwrap_or_default();
            let is_saved = self.saved.iter().any(|saved| std::ptr::eq(*saved, outside));
            if is_saved || !is_due(outside, done) {
                continue;
            }
            let path = self.root.join(outside.path);
            let before = fs::read_to_string(&path).unwrap_or_default();
            if let Some(after) = acted(outside.act, &before) {
                save(&path, &after)?;
                self.saved.push(outside);
            }
        }
        Ok(())
    }
}

/// The text of a file after it; nothing where it cannot be done.
fn acted(act: OutsideAct, text: &str) -> Option<String> {
    match act {
        OutsideAct::Make(text) => Some(text.to_owned()),
        OutsideAct::Top(line) => Some(format!("{line}\n{text}")),
        OutsideAct::Change(from, to) => text.contains(from).then(|| text.replacen(from, to, 1)),
        OutsideAct::Add(after, line) => {
            let end = text.find(after)? + after.len();
            let end = end + text[end..].find('\n')? + 1;
            Some(format!("{}{line}\n{}", &text[..end], &text[end..]))
        }
    }
}

/// Saves a file as any program does: what was in it is gone.
#[expect(clippy::disallowed_methods, reason = "plays the other program")]
pub(super) fn save(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)
}
