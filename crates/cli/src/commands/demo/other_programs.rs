//! The other programs that save the same files during a run: an editor, a formatter, a colleague. At the end, the demo
//! checks whether their changes are still there.

use std::{
    collections::HashMap,
    fs,
    io::{self, Write},
    path::Path,
};

use super::{
    story::{OUTSIDE, OutsideAct, OutsideChange, SaveTime},
    tool_call::ToolCall,
};

#[derive(Debug)]
pub(super) struct OtherPrograms<'a> {
    root: &'a Path,
    /// Number of calls of each tool on each file.
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

    pub(super) fn before(&mut self, tool_call: &ToolCall) -> io::Result<()> {
        let is_about = |change: &OutsideChange| change.call.tool.name() == tool_call.tool && change.call.path == tool_call.path;
        let due = |change: &OutsideChange, done: usize| is_about(change) && done + 1 == change.call.time;
        self.save(SaveTime::Before, due)
    }

    pub(super) fn after(&mut self, tool_call: &ToolCall) {
        *self.done.entry((tool_call.tool.clone(), tool_call.path.clone())).or_default() += 1;
    }

    pub(super) fn turn_ended(&mut self) -> io::Result<()> {
        self.save(SaveTime::AfterTurn, |change, done| done >= change.call.time)
    }

    pub(super) fn kept(&self) -> io::Result<KeptChanges> {
        let mut lost = 0;
        for change in &self.saved {
            let text = fs::read_to_string(self.root.join(change.path))?;
            lost += usize::from(!text.contains(change.act.trace()));
        }
        Ok(KeptChanges { saved: self.saved.len(), lost })
    }

    /// Saves the changes that are due. `is_due` gets the number of calls so far.
    fn save(&mut self, when: SaveTime, is_due: impl Fn(&OutsideChange, usize) -> bool) -> io::Result<()> {
        for change in OUTSIDE.iter().filter(|change| change.when == when) {
            let done =
                self.done.get(&(change.call.tool.name().to_owned(), change.call.path.to_owned())).copied().unwrap_or_default();
            let is_saved = self.saved.iter().any(|saved| std::ptr::eq(*saved, change));
            if is_saved || !is_due(change, done) {
                continue;
            }
            let path = self.root.join(change.path);
            let before = fs::read_to_string(&path).unwrap_or_default();
            if let Some(after) = acted(change.act, &before) {
                save(&path, &after)?;
                self.saved.push(change);
            }
        }
        Ok(())
    }
}

/// The text after a change; `None` if it does not apply.
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

/// Opens a file to overwrite it later, as an editor may do.
#[expect(clippy::disallowed_methods, reason = "plays the other program")]
pub(super) fn open_to_write(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().write(true).open(path)
}

/// Overwrites a file as any program does.
#[expect(clippy::disallowed_methods, reason = "plays the other program")]
pub(super) fn save(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)
}

/// Appends to a file through a handle that was opened before `meanwhile`, like a program that keeps the file open.
#[expect(clippy::disallowed_methods, reason = "plays the other program")]
pub(super) fn save_into_open_file(path: &Path, text: &str, meanwhile: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut file = fs::OpenOptions::new().append(true).open(path)?;
    meanwhile()?;
    Ok(file.write_all(text.as_bytes())?)
}
