//! Commands that a session runs in a shell: what they showed counts as read, and what they changed is found out, named, and
//! put down to them.

use std::{collections::HashMap, path::Path};

use surehand_core::{By, ChangedFile, LineSet, Lines, Outside, Present, RelPath, Text, outcome::CommandEffects, shell};
use surehand_store::{Event, Record};

use crate::{
    changes::fresh_change,
    lookout::{Changed, who},
    session::Session,
    time::now,
    watch::{Cursor, Hints},
};

/// A command that is running. What had changed before it began is not its doing.
#[derive(Debug, Default)]
pub struct Running {
    changed_before: HashMap<RelPath, Outside>,
    cursor: Option<Cursor>,
    /// Only these files are looked at when it has ended; `None` is all that the session has seen.
    among: Option<Vec<RelPath>>,
}

impl Running {
    /// A command of which nobody said that it began, and that is held against these files only.
    pub(crate) fn among(paths: Vec<RelPath>) -> Self {
        Self { among: Some(paths), ..Self::default() }
    }
}

/// A command that has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command<'a> {
    /// As it was given to the shell.
    pub line: &'a str,
    /// Where it ran: absolute, or relative to the workspace root.
    pub directory: &'a str,
    /// What the model was shown of its output.
    pub output: &'a str,
}

impl Session {
    /// Says that a command is about to run.
    pub fn command_begins(&mut self) -> Running {
        self.listen(&[]);
        let changed_before = self.on_the_lookout(|lookout, ground| lookout.peek(ground)).unwrap_or_default();
        let cursor = self.workspace().watch().map(|watch| {
            let mut cursor = watch.cursor();
            watch.hints(&mut cursor);
            cursor
        });
        Running { changed_before, cursor, among: None }
    }

    /// Says that a command has run, and what it printed. Gives what the model should know: which files it changed.
    pub fn command_ended(&mut self, running: Running, command: &Command<'_>) -> CommandEffects {
        let changed = self.changed_by(&running, command);
        let touched = self.touched(running.cursor, &changed);
        let read = self.count_as_read(command);
        CommandEffects { changed, touched, read }
    }

    /// The files that the session has seen and that are something else now, with who did it.
    fn changed_by(&mut self, running: &Running, command: &Command<'_>) -> Vec<ChangedFile> {
        let changed = match &running.among {
            Some(paths) => self.on_the_lookout(|lookout, ground| lookout.look_at(ground, paths.clone())),
            None => {
                self.listen(&[]);
                self.on_the_lookout(|lookout, ground| lookout.look_at_all(ground))
            }
        };
        let id = self.id();
        let change = fresh_change();
        let mut files = Vec::new();
        for mut changed in changed.unwrap_or_default() {
            let mut other = who(self.workspace(), &id, &changed);
            // What somebody did to it before the command is not to be taken back with it.
            let before = running.changed_before.get(&changed.path).copied().unwrap_or(changed.was);
            if std::mem::replace(&mut changed.was, before) != before && other == By::Unknown {
                other = who(self.workspace(), &id, &changed);
            }
            let is_ours = changed.was != changed.now && other == By::Unknown;
            if is_ours {
                let event = self.command_event(&changed, command);
                self.workspace().record(Record::Happened(Event { change: change.clone(), ..event }));
            }
            let by = if is_ours { By::Command } else { other };
            files.push(ChangedFile { path: changed.path, deleted: changed.now == Outside::Gone, by });
        }
        files
    }

    /// What a command did to a file: kept like any other change, so that it can be looked at and taken back.
    fn command_event(&mut self, changed: &Changed, command: &Command<'_>) -> Event {
        let path = &changed.path;
        let [before, after] = [changed.was, changed.now].map(|outside| match outside {
            Outside::Version(version) => Some(version),
            Outside::Gone => None,
        });
        for version in [before, after].into_iter().flatten() {
            self.keep_version(path, &version);
        }
        let line: String = command.line.lines().next().unwrap_or_default().chars().take(80).collect();
        Event {
            change: fresh_change(),
            at: now(),
            session: self.id(),
            tool: format!("{}{line}", Event::COMMAND),
            path: path.clone(),
            moved_to: None,
            before,
            after,
            mode: None,
            undoes: Vec::new(),
            delta: None,
        }
    }

    /// Other files in which something happened meanwhile, as far as the watcher can tell. It need not have been the command.
    fn touched(&self, cursor: Option<Cursor>, changed: &[ChangedFile]) -> Vec<RelPath> {
        let (Some(watch), Some(mut cursor)) = (self.workspace().watch(), cursor) else { return Vec::new() };
        let Hints::Paths(paths) = watch.hints(&mut cursor) else { return Vec::new() };
        paths.into_iter().filter(|path| changed.iter().all(|file| file.path != *path)).collect()
    }

    /// Marks as read what a plain read command has printed, as if it had been read here.
    pub(crate) fn count_as_read(&mut self, command: &Command<'_>) -> Vec<Lines> {
        let Some(readings) = shell::reads(command.line) else { return Vec::new() };
        let mut texts: HashMap<String, (RelPath, Text)> = HashMap::new();
        let mut text_of = |path: &str| {
            let full = Path::new(command.directory).join(path);
            let gathered = self.gather(full.to_str()?).ok()?;
            let Present::Text(text) = gathered.present else { return None };
            texts.insert(path.to_owned(), (gathered.path, text.clone()));
            Some(text)
        };
        let seen: Vec<(String, LineSet)> = shell::seen(&readings, &mut text_of, command.output);
        let mut read = Vec::new();
        for (name, lines) in seen {
            let Some((path, text)) = texts.get(&name) else { continue };
            self.show(path, text, &lines);
            read.push(Lines { path: path.clone(), text: text.clone(), lines });
        }
        self.track_read(&read);
        read
    }
}
