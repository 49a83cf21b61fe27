//! The work of one session on one file: the part that belongs to the session by the history of the file, and its
//! application to another version.

use std::collections::HashSet;

use surehand_core::{
    Content, ContentHash, LineNo, RelPath, Text,
    attribution::{LinePlaces, PartialText, Weave},
};

use super::{
    blame::LineAuthor,
    committed::CommittedFile,
    history::LineHistory,
    session_work::{LeftWhy, LeftWork, SessionFile, SessionWorkError, WorkBase, WorkSide, WorkSources, mode_at},
    steps::{FileStep, FileSteps, ModeStep, StepAuthor},
};
use crate::{
    checkpoint::read_file,
    git::{conversion::ConversionKind, program::GitError},
    workspace::Workspace,
};

/// A file that a session worked on, with its history.
pub(crate) struct FileReading {
    pub path: RelPath,
    present: Present,
    steps: Vec<FileStep>,
    /// For each step, whether the session made it.
    is_chosen: Vec<bool>,
    /// Changes of the mode, each with whether the session made it.
    modes: Vec<(bool, ModeStep)>,
    /// The file in the commit, with its name there.
    committed: Option<(RelPath, CommittedFile)>,
    is_in_submodule: bool,
}

/// The present state of a path.
enum Present {
    File(Content, u32),
    /// A link, or a file that is too large.
    Other,
    Nothing,
}

/// The lines of a session, ready to be applied to other texts.
#[derive(Debug, Clone)]
pub(crate) struct OwnLines {
    weave: Weave,
    base: Text,
    places: LinePlaces,
    present: Text,
    /// The steps of the session.
    chosen: HashSet<usize>,
}

impl FileReading {
    /// Reads a file; `None` if the session has no part in it.
    pub(crate) fn read(sources: &WorkSources<'_>, path: &RelPath) -> Result<Option<Self>, SessionWorkError> {
        let workspace = sources.workspace;
        let present = Present::read(workspace, path)?;
        let version = match &present {
            Present::File(content, _) => Some(content.version()),
            Present::Other | Present::Nothing => None,
        };
        let FileSteps { steps, modes, names } = FileSteps::read(workspace, path, version)?;
        let is_chosen: Vec<bool> = steps.iter().map(|step| sources.is_of_session(step)).collect();
        let modes = modes.into_iter().map(|step| (sources.changes.contains(&step.change), step));
        let modes: Vec<(bool, ModeStep)> = modes.collect();
        if !is_chosen.contains(&true) && !modes.iter().any(|(is_chosen, _)| *is_chosen) {
            return Ok(None);
        }
        let is_in_submodule = is_in_repository_below(workspace, path);
        let mut reading = Self { path: path.clone(), present, steps, is_chosen, modes, committed: None, is_in_submodule };
        if let Some(head) = sources.head {
            let in_tree = |name: &RelPath| workspace.copy.in_tree(name);
            reading.is_in_submodule |= head.is_in_submodule(&in_tree(path)).unwrap_or_default();
            let found = names.iter().filter_map(|name| Some((name.clone(), head.file(&in_tree(name)).ok()??)));
            let found: Vec<_> = found.collect();
            // The name may have belonged to another file before.
            let known = reading.versions();
            let place = found.iter().position(|(_, file)| known.contains(&file.content.version())).unwrap_or_default();
            reading.committed = found.into_iter().nth(place);
        }
        Ok(Some(reading))
    }

    /// The name of the file in the commit, if it has another one now.
    pub(crate) fn old_name(&self) -> Option<&RelPath> {
        let is_there = !matches!(self.present, Present::Nothing);
        self.committed.as_ref().map(|(name, _)| name).filter(|name| **name != self.path && is_there)
    }

    pub(crate) fn names_in_tree(&self, workspace: &Workspace) -> Vec<String> {
        let names = [Some(&self.path), self.committed.as_ref().map(|(name, _)| name)];
        names.into_iter().flatten().map(|name| workspace.copy.in_tree(name).to_string()).collect()
    }

    /// All versions that the file had.
    fn versions(&self) -> HashSet<ContentHash> {
        self.steps.iter().flat_map(|step| [step.before, step.after]).flatten().collect()
    }

    /// The work of the session on the file; `None` if it makes no difference.
    pub(crate) fn work(self, sources: &WorkSources<'_>) -> Result<Option<SessionFile>, SessionWorkError> {
        let first = self.is_chosen.iter().position(|is_chosen| *is_chosen);
        let (name, before, is_on_commit) = match (&self.committed, sources.base) {
            (Some((name, file)), WorkBase::Commit) => {
                let known = self.versions();
                (name.clone(), Some(WorkSide::committed(sources, name, file, &known)?), true)
            }
            _ if let Some(first) = first => {
                let step = &self.steps[first];
                let Some(side) = self.found(sources.workspace, step) else {
                    return Ok(Some(self.left(step.name_before.clone(), None, LeftWhy::NotKept, Vec::new())));
                };
                // A commit has nothing yet of a file that the session created.
                let is_on_commit = side.is_none() && sources.head.is_some();
                (step.name_before.clone(), side, is_on_commit)
            }
            // The session changed only the mode.
            _ => match &self.present {
                Present::File(content, mode) => {
                    (self.path.clone(), Some(WorkSide::of(content.clone(), self.mode_found(*mode))), false)
                }
                Present::Other | Present::Nothing => return Ok(None),
            },
        };
        let mut file = self.work_on(sources, name, before)?;
        file.is_on_commit = is_on_commit || sources.head.is_none() && file.before.is_none();
        Ok(Some(file).filter(|file| file.is_changed() || !file.left.is_empty()))
    }

    /// The file as the session found it. The outer `None` means that this content is not kept.
    fn found(&self, workspace: &Workspace, step: &FileStep) -> Option<Option<WorkSide>> {
        let Some(version) = step.before else { return Some(None) };
        let mode = match &self.present {
            Present::File(_, mode) => self.mode_found(*mode),
            Present::Other | Present::Nothing => 0o100_644,
        };
        let content = workspace.content_at(&step.name_before, &version).or_else(|| self.walked_back(workspace, version))?;
        Some(Some(WorkSide::of(content, mode)))
    }

    /// The mode before the session set it, or else the present one.
    fn mode_found(&self, present: u32) -> u32 {
        self.modes.iter().find(|(is_chosen, _)| *is_chosen).map_or(present, |(_, step)| step.before)
    }

    /// The mode after the session's work: the present one if the session set it or created the file.
    fn mode_after(&self, before: Option<&WorkSide>, present: u32) -> u32 {
        let is_own = self.modes.last().is_some_and(|(is_chosen, step)| *is_chosen && step.after == present);
        before.map_or(present, |before| if is_own { present } else { before.mode })
    }

    /// A version of which only the deltas from the present one are kept.
    fn walked_back(&self, workspace: &Workspace, version: ContentHash) -> Option<Content> {
        let Present::File(Content::Text(text), _) = &self.present else { return None };
        let history = LineHistory::follow(workspace, self.steps.clone(), text.clone(), &[]);
        history.text_of(version).map(Content::Text)
    }

    fn work_on(
        &self,
        sources: &WorkSources<'_>,
        name: RelPath,
        before: Option<WorkSide>,
    ) -> Result<SessionFile, SessionWorkError> {
        if self.is_in_submodule {
            return Ok(self.left(name, before, LeftWhy::Submodule, Vec::new()));
        }
        let from = self.begins_at(before.as_ref());
        if before.is_some()
            && let Some(others) = self.recreated_with(from.unwrap_or_default())
        {
            return Ok(self.left(name, before, LeftWhy::Recreated, others));
        }
        match &self.present {
            Present::Nothing => Ok(self.removed(name, before, from)),
            Present::Other => Ok(self.left(name, before, LeftWhy::NotAFile, Vec::new())),
            Present::File(content, mode) => {
                let (path_after, moved_by) = self.name_after(&name);
                let mode = self.mode_after(before.as_ref(), *mode);
                let texts = (before.as_ref().map(WorkSide::text), content.text());
                let mut file = match texts {
                    (Some(Some(_)) | None, Some(text)) => self.by_lines(sources, (name, before), text, mode)?,
                    _ => self.as_whole(sources, (name, before), from, (content, mode))?,
                };
                if let Some(after) = &mut file.after {
                    after.mode = mode;
                    file.path_after = path_after;
                }
                if !moved_by.is_empty() {
                    file.left.push(LeftWork::whole(LeftWhy::Moved, moved_by));
                }
                Ok(file)
            }
        }
    }

    /// The number of steps after which the file was as before the work; `None` if that is unknown.
    fn begins_at(&self, before: Option<&WorkSide>) -> Option<usize> {
        let version = before.map(|before| before.content.version());
        let at = |step: usize| match step.checked_sub(1) {
            Some(last) => self.steps[last].after,
            None => self.steps.first().and_then(|step| step.before),
        };
        (0..=self.steps.len()).rev().find(|step| at(*step) == version)
    }

    /// The other author, if a file was deleted and created again after this number of steps, once by the session and
    /// once by another.
    fn recreated_with(&self, from: usize) -> Option<Vec<LineAuthor>> {
        for removal in from..self.steps.len().saturating_sub(1) {
            let (gone, made) = (&self.steps[removal], &self.steps[removal + 1]);
            let is_gone = gone.after.is_none() && gone.before.is_some() && made.after.is_some();
            // A file that came back with a previous content is the same file.
            let came_back = || self.steps[..=removal].iter().any(|step| step.before == made.after);
            if is_gone && self.is_chosen[removal] != self.is_chosen[removal + 1] && !came_back() {
                let other = if self.is_chosen[removal] { made } else { gone };
                return Some(vec![LineAuthor::of(&other.by)]);
            }
        }
        None
    }

    /// The name that the session alone gave the file, and the others who moved it.
    fn name_after(&self, before: &RelPath) -> (RelPath, Vec<LineAuthor>) {
        let moves = self.steps.iter().zip(&self.is_chosen).filter(|(step, _)| step.name_before != step.name_after);
        let mut moves: Vec<_> = moves.collect();
        let from = moves.iter().rposition(|(step, _)| step.name_before == *before).unwrap_or(moves.len());
        moves.drain(..from);
        if moves.is_empty() || moves.iter().all(|(_, is_chosen)| !**is_chosen) {
            return (before.clone(), Vec::new());
        }
        if moves.iter().all(|(_, is_chosen)| **is_chosen) {
            return (self.path.clone(), Vec::new());
        }
        let others = moves.iter().filter(|(_, is_chosen)| !**is_chosen).map(|(step, _)| LineAuthor::of(&step.by)).collect();
        (before.clone(), others)
    }

    /// A file that was deleted.
    fn removed(&self, name: RelPath, before: Option<WorkSide>, from: Option<usize>) -> SessionFile {
        let removal = self.steps.iter().rposition(|step| step.after.is_none());
        match removal {
            Some(removal) if self.is_chosen[removal] => SessionFile { after: None, ..SessionFile::unchanged(name, before) },
            _ if before.is_none() => SessionFile::unchanged(name, before),
            // The commit already has all earlier work of the session.
            Some(removal) if from.is_some_and(|from| !self.is_chosen[from..removal].contains(&true)) => {
                SessionFile::unchanged(name, before)
            }
            removal => {
                let others = removal.map(|removal| LineAuthor::of(&self.steps[removal].by)).into_iter().collect();
                self.left(name, before, LeftWhy::Removed, others)
            }
        }
    }

    /// A file that has no lines.
    fn as_whole(
        &self,
        sources: &WorkSources<'_>,
        (name, before): (RelPath, Option<WorkSide>),
        from: Option<usize>,
        (content, mode): (&Content, u32),
    ) -> Result<SessionFile, SessionWorkError> {
        let steps = || self.is_chosen.iter().enumerate().skip(from.unwrap_or_default());
        let is_change = |step: usize| self.steps[step].before != self.steps[step].after;
        let has_chosen = steps().any(|(step, is_chosen)| *is_chosen && is_change(step));
        let others = steps().filter(|(step, is_chosen)| !**is_chosen && is_change(*step));
        let others: Vec<LineAuthor> = others.map(|(step, _)| LineAuthor::of(&self.steps[step].by)).collect();
        if !has_chosen {
            return Ok(SessionFile::unchanged(name, before));
        }
        if from.is_none() || !others.is_empty() {
            return Ok(self.left(name, before, LeftWhy::NotText, others));
        }
        let after = self.stored_side(sources, content.clone(), mode)?;
        Ok(SessionFile { after: Some(after), ..SessionFile::unchanged(name, before) })
    }

    fn by_lines(
        &self,
        sources: &WorkSources<'_>,
        (name, before): (RelPath, Option<WorkSide>),
        present: &Text,
        mode: u32,
    ) -> Result<SessionFile, SessionWorkError> {
        let empty = Text::of(String::new()).expect("an empty text is a text");
        let base = before.as_ref().and_then(WorkSide::text).cloned().unwrap_or(empty.clone());
        let marked: Vec<ContentHash> = before.iter().map(|before| before.content.version()).collect();
        let history = LineHistory::follow(sources.workspace, self.steps.clone(), present.clone(), &marked);
        let chosen = |step: usize| history.step(step).is_some_and(|step| sources.is_of_session(step));
        let places = if before.is_some() { history.place(&base) } else { LinePlaces::default() };
        let part_of = |base: &Text, present: &Text| history.weave.part((base, &places), present, chosen);
        let part = part_of(&base, present);
        let of_step =
            |step: &usize| history.author(*step).map_or(LineAuthor::Outside { by: history.begins_at() }, LineAuthor::of);
        let left = part.left.iter().map(|left| LeftWork {
            lines: left.lines.clone(),
            removed: left.removed.clone(),
            why: left.why.into(),
            others: left.others.iter().map(of_step).collect(),
        });
        let mut file = SessionFile { left: left.collect(), ..SessionFile::unchanged(name.clone(), before.clone()) };
        let model = before.as_ref().and_then(WorkSide::text).unwrap_or(present);
        let Ok(text) = model.with(part.content.clone()) else {
            return Ok(self.left(name, before, LeftWhy::Converted, Vec::new()));
        };
        // A file of others without the lines of this session is not a file.
        if before.is_none() && text.line_count() == 0 && !self.is_made_by_session() {
            file.after = None;
            return Ok(file);
        }
        let stored = match self.stored_part(sources, (before.as_ref(), &base), (present, &text), &part_of)? {
            Some(stored) => stored,
            None => return Ok(self.left(name, before, LeftWhy::Converted, Vec::new())),
        };
        file.after = Some(WorkSide { content: Content::Text(text), stored, mode });
        let chosen = (1..=history.steps.len()).filter(|step| chosen(*step)).collect();
        file.own_lines = Some(Box::new(OwnLines { weave: history.weave, base, places, present: present.clone(), chosen }));
        Ok(file)
    }

    /// The part as git stores it; `None` if git converts the lines so that they cannot be found again.
    fn stored_part(
        &self,
        sources: &WorkSources<'_>,
        (before, base): (Option<&WorkSide>, &Text),
        (present, part): (&Text, &Text),
        part_of: &dyn Fn(&Text, &Text) -> PartialText,
    ) -> Result<Option<Content>, GitError> {
        let unconverted = || Ok(Some(Content::Text(part.clone())));
        let in_tree = sources.workspace.copy.in_tree(&self.path);
        let conversion = sources.conversions.as_ref().and_then(|found| Some((found, found.kind(in_tree.as_str())?)));
        let Some((conversions, kind)) = conversion else { return unconverted() };
        let is_same_form = before.is_some_and(|before| before.content == before.stored);
        if kind == ConversionKind::Endings && is_same_form {
            return unconverted();
        }
        let stored = |text: &Text| conversions.stored(in_tree.as_str(), text.bytes()).map(Content::new);
        let Some(before) = before else { return stored(part).map(Some) };
        // Working line by line keeps the stored form of the commit's own lines.
        let now = stored(present)?;
        if let (Some(old), Some(new)) = (before.stored.text(), now.text())
            && (old.line_count(), new.line_count()) == (base.line_count(), present.line_count())
        {
            let part = part_of(old, new);
            return Ok(old.with(part.content).ok().map(Content::Text));
        }
        let is_exact = stored(base)? == before.stored;
        Ok(if is_exact { Some(stored(part)?) } else { None })
    }

    fn stored_side(&self, sources: &WorkSources<'_>, content: Content, mode: u32) -> Result<WorkSide, GitError> {
        let in_tree = sources.workspace.copy.in_tree(&self.path);
        let stored = match &sources.conversions {
            Some(conversions) if conversions.kind(in_tree.as_str()).is_some() => {
                Content::new(conversions.stored(in_tree.as_str(), content.bytes())?)
            }
            _ => content.clone(),
        };
        Ok(WorkSide { content, stored, mode })
    }

    fn is_made_by_session(&self) -> bool {
        let made = self.steps.iter().rposition(|step| step.before.is_none() && step.after.is_some());
        made.is_some_and(|made| self.is_chosen[made])
    }

    fn left(&self, name: RelPath, before: Option<WorkSide>, why: LeftWhy, others: Vec<LineAuthor>) -> SessionFile {
        SessionFile { left: vec![LeftWork::whole(why, others)], ..SessionFile::unchanged(name, before) }
    }
}

impl OwnLines {
    /// Applies the lines of the session to another text; `None` if some of them have no place in it.
    pub(crate) fn put_on(&self, base: &Text) -> Option<String> {
        let origins = self.weave.origins(&self.places);
        let places = self.weave.place(base, &self.present, |step, line| {
            let line = *origins.get(&(step, line))?;
            Some(self.base.full_line(LineNo::at_index(line)).to_owned())
        });
        let part = self.weave.part((base, &places), &self.present, |step| self.chosen.contains(&step));
        part.left.is_empty().then_some(part.content)
    }
}

impl WorkSources<'_> {
    fn is_of_session(&self, step: &FileStep) -> bool {
        matches!(&step.by, StepAuthor::Change { change, .. } if self.changes.contains(change))
    }
}

/// Whether a path lies in a nested repository.
fn is_in_repository_below(workspace: &Workspace, path: &RelPath) -> bool {
    let mut above = std::iter::successors(path.parent(), RelPath::parent);
    above.any(|dir| workspace.path().join(dir.as_str()).join(".git").symlink_metadata().is_ok())
}

impl Present {
    fn read(workspace: &Workspace, path: &RelPath) -> Result<Self, SessionWorkError> {
        let io = |error| SessionWorkError::Io { path: path.clone(), error };
        let content = read_file(workspace, path, workspace.config().limits.file_bytes).map_err(io)?;
        Ok(match (content, mode_at(workspace, path)) {
            (Some(content), Some(mode)) => Self::File(Content::new(content), mode),
            // If a directory took its place, the file is gone.
            _ if workspace.path().join(path.as_str()).symlink_metadata().is_ok_and(|meta| !meta.is_dir()) => Self::Other,
            _ => Self::Nothing,
        })
    }
}
