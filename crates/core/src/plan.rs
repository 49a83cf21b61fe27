//! Plans: the only way to change a file. Each function takes a [`Target`] and an edit, asks the gate, and returns a
//! [`Planned`] change or a [`Refusal`]. `Planned` has no public constructor and `commit` takes nothing else, so a write
//! that skips the gate does not compile.

use std::sync::OnceLock;

use crate::{
    content::Content,
    edit::{
        find::{Overlaps, find},
        lines::{LineEdit, line_splices},
        patch::{ChunkRefused, FilePatch, PatchChunk, patch_splices, quoted_lines},
        replace::{Replace, replace_splices},
        write::kept_endings,
    },
    excerpt::Excerpt,
    file_diff::FileDiff,
    gate::{self, Present, Target},
    hash::Anchor,
    line_map::{LineMap, Splice, exact_map, splice},
    lines::LineSet,
    path::RelPath,
    proof::Proof,
    rebase,
    refusal::{BatchKind, BatchPlace, Cause, CreatedBy, IfRepeated, Refusal},
    text::{NotText, Text, Unfit},
    view::View,
};

/// The effect of a plan on a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAction {
    /// Writes this content, and creates the file if necessary.
    Write {
        /// The whole content, not a patch.
        content: Content,
        /// The attributes of a new file; an existing one keeps its own.
        marks: NewFileAttributes,
    },
    /// Removes the file from its path.
    Remove,
    /// Renames the file to a free path.
    Move {
        /// The new path, relative to the root.
        to: RelPath,
    },
}

/// Mode, owner and attributes of a new file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewFileAttributes {
    /// The defaults of a new file.
    Usual,
    /// Those of this file, which the new one continues.
    Of(RelPath),
    /// This mode, which the file had when it was deleted.
    Mode(u32),
}

/// A change that passed the gate. Commit it, or drop it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    path: RelPath,
    base: Option<Content>,
    act: FileAction,
    /// Computed on demand if the file is written as a whole.
    map: OnceLock<LineMap>,
    provenance: Option<LineMap>,
    /// Computed on demand if the file is written as a whole, because a view needs the version, and hashing a large text
    /// takes time.
    view_after: OnceLock<Option<View>>,
    replacements: usize,
    rebased: Option<Rebased>,
    origin: Option<MovedFrom>,
    is_made_anew: bool,
}

/// The file that a new file continues, moved and edited at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedFrom {
    /// The path before the move.
    pub path: RelPath,
    /// The text before the edits.
    pub text: Text,
}

/// The changes by others in a file whose edit was rebased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebased {
    /// The lines that others changed, in current numbers.
    pub affected: LineSet,
    /// The text of those lines, as shown in the reply.
    pub fresh: Excerpt,
}

impl Planned {
    /// The file that the plan changes; for a move, the old path.
    pub fn path(&self) -> &RelPath {
        &self.path
    }

    /// The content that it was planned for; `None` if there was no file. The file must still have this content when it
    /// is replaced.
    pub fn base(&self) -> Option<&Content> {
        self.base.as_ref()
    }

    /// Whether the file is written, removed or moved.
    pub fn act(&self) -> &FileAction {
        &self.act
    }

    /// The content of the file afterwards, under whatever path; `None` if it is removed.
    pub fn after(&self) -> Option<&Content> {
        match &self.act {
            FileAction::Write { content, .. } => Some(content),
            FileAction::Remove => None,
            FileAction::Move { .. } => self.base.as_ref(),
        }
    }

    /// The text of the file afterwards, if it is text.
    pub fn text(&self) -> Option<&Text> {
        self.after().and_then(Content::text)
    }

    /// The path of the file afterwards; `None` if it is removed.
    pub fn path_after(&self) -> Option<&RelPath> {
        match &self.act {
            FileAction::Write { .. } => Some(&self.path),
            FileAction::Remove => None,
            FileAction::Move { to } => Some(to),
        }
    }

    /// The path that the file is moved to.
    pub fn moved_to(&self) -> Option<&RelPath> {
        match &self.act {
            FileAction::Move { to } => Some(to),
            FileAction::Write { .. } | FileAction::Remove => None,
        }
    }

    /// The lines it replaces. For a large file that is written as a whole, the first call compares two texts.
    pub fn map(&self) -> &LineMap {
        self.map.get_or_init(|| {
            let base = self.base().and_then(Content::text);
            self.text().map_or_else(LineMap::same, |text| map_to(base, text))
        })
    }

    /// The line map from the edits themselves, which is certain even among equal lines. `None` if the change is not a
    /// sum of edits.
    pub fn provenance(&self) -> Option<&LineMap> {
        self.provenance.as_ref()
    }

    /// Whether [`Planned::map`] still has to compare two texts.
    pub fn needs_comparison(&self) -> bool {
        let replaces_text = self.base().and_then(Content::text).is_some() && self.text().is_some();
        replaces_text && self.map.get().is_none()
    }

    /// The session's view afterwards; `None` without a tracker, or if the file is removed or binary.
    pub fn view_after(&self) -> Option<&View> {
        self.view_after.get_or_init(|| self.text().map(View::whole)).as_ref()
    }

    /// The number of places that were replaced.
    pub fn replacements(&self) -> usize {
        self.replacements
    }

    /// Whether it creates the file.
    pub fn is_new(&self) -> bool {
        self.base.is_none()
    }

    /// Whether it creates a file that the session has seen and that was deleted since.
    pub fn is_made_anew(&self) -> bool {
        self.is_made_anew
    }

    /// The changes by others, if the edit was rebased.
    pub fn rebased(&self) -> Option<&Rebased> {
        self.rebased.as_ref()
    }

    /// The whole change as a diff, for people.
    pub fn unified_diff(&self) -> FileDiff {
        self.diff_to(self.path_after().unwrap_or(&self.path), self.after())
    }

    /// The diff from the file before the change to this path and content.
    pub(crate) fn diff_to(&self, path: &RelPath, content: Option<&Content>) -> FileDiff {
        let before = self.origin.as_ref().map(|origin| (&origin.path, Content::Text(origin.text.clone())));
        match &before {
            Some((origin, text)) => FileDiff::between((origin, Some(text)), (path, content)),
            None => FileDiff::between((&self.path, self.base()), (path, content)),
        }
    }

    /// The file that it continues, if it was moved and edited at once.
    pub fn origin(&self) -> Option<&MovedFrom> {
        self.origin.as_ref()
    }

    /// A change that is not a sum of edits.
    fn whole(
        target: &Target<'_>,
        act: FileAction,
        map: impl Into<OnceLock<LineMap>>,
        view_after: impl Into<OnceLock<Option<View>>>,
    ) -> Self {
        let (map, view_after) = (map.into(), view_after.into());
        let (path, base) = (target.path.clone(), target.present.content());
        let is_made_anew = base.is_none() && target.view().is_some();
        Self { path, base, act, map, provenance: None, view_after, replacements: 1, rebased: None, origin: None, is_made_anew }
    }
}

/// The plan of `write_file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WritePlan {
    /// The file has this content already, so nothing is written.
    Same {
        /// The content, which stays the same.
        text: Text,
    },
    /// The file must be written.
    Write(Box<Planned>),
}

/// Plans `edit_file`. An empty `old` creates the file.
pub fn edit_file(target: &Target<'_>, edit: &Replace<'_>) -> Result<Planned, Refusal> {
    let mut draft = EditDraft::new(*target);
    draft.replace(edit)?;
    draft.finish()
}

/// Plans `multi_edit`; each edit has the index of its target. If one edit is refused, all are.
///
/// Returns one plan for each target, in order. Every target must have an edit.
pub fn multi_edit(targets: &[Target<'_>], edits: &[(usize, Replace<'_>)]) -> Result<Vec<Planned>, Refusal> {
    let mut drafts: Vec<EditDraft<'_>> = targets.iter().map(|target| EditDraft::new(*target)).collect();
    for (number, (target, edit)) in edits.iter().enumerate() {
        drafts[*target].replace(edit).map_err(|refusal| refusal.in_batch(number + 1, edits.len()))?;
    }
    let last_edit_of = |target: usize| edits.iter().rposition(|(of, _)| *of == target).map_or(0, |index| index + 1);
    let finish = |(target, draft): (usize, EditDraft<'_>)| {
        draft.finish().map_err(|refusal| refusal.in_batch(last_edit_of(target), edits.len()))
    };
    drafts.into_iter().enumerate().map(finish).collect()
}

/// Plans `edit_lines`. All edits refer to one numbering.
pub fn edit_lines(target: &Target<'_>, edits: &[LineEdit]) -> Result<Planned, Refusal> {
    let anchors: Vec<_> = edits.iter().flat_map(LineEdit::anchors).collect();
    let mut draft = EditDraft::new(*target);
    let meant = draft.meant(Some(&anchors))?;
    let splices = line_splices(target, &meant, edits).map_err(|refusal| draft.not_proven(Some(&anchors)).unwrap_or(refusal))?;
    draft.apply(&splices, &LineSet::new(), Some(&anchors))?;
    draft.finish()
}

/// Plans `write_file`. Content without carriage returns or a byte order mark keeps those of the file.
pub fn write_file(target: &Target<'_>, content: &str) -> Result<WritePlan, Refusal> {
    let base = target.present.text();
    let content = base.map_or_else(|| content.to_owned(), |base| kept_endings(base, content));
    let text = match sized_text(target, base, content) {
        // If the file may not be overwritten at all, the refusal does not mention the new text. Sending the same call
        // again would not help, though.
        Err(refusal) => {
            let comes_first = |refused: &Refusal| !matches!(refused.cause, Cause::Unshown { .. });
            return Err(gate::overwrite(target).err().filter(comes_first).unwrap_or(refusal));
        }
        Ok(text) => text,
    };
    if base == Some(&text) {
        // Nothing is written, so it does not matter what the session has seen.
        return Ok(WritePlan::Same { text });
    }
    gate::overwrite(target)?;
    let view_after = if target.is_tracked() { OnceLock::new() } else { None.into() };
    Ok(WritePlan::Write(Box::new(Planned::whole(target, written(text), OnceLock::new(), view_after))))
}

/// The effect of a patch on one file.
#[derive(Debug, Clone, Copy)]
pub struct PatchStep<'a> {
    /// The section of the patch for this file.
    pub file: &'a FilePatch<'a>,
    /// The index of the target.
    pub target: usize,
    /// The index of the target that it is moved to.
    pub to: Option<usize>,
}

/// Plans `apply_patch`. If one file cannot be changed, the whole patch is refused. Returns the plans with the indexes
/// of their targets.
pub fn apply_patch(targets: &[Target<'_>], steps: &[PatchStep<'_>]) -> Result<Vec<(usize, Planned)>, Refusal> {
    let mut sheet = PatchDraft { targets, fates: targets.iter().map(|_| TargetFate::Untouched).collect() };
    let place = |index: usize, chunk: usize| BatchPlace { edit: index + 1, of: steps.len(), kind: BatchKind::Patch { chunk } };
    for (index, step) in steps.iter().enumerate() {
        sheet.take(step).map_err(|PatchRefusal { refusal, chunk }| refusal.at(place(index, chunk)))?;
    }
    sheet.finish().map_err(|(target, refusal)| {
        let index = steps.iter().rposition(|step| step.target == target).unwrap_or_default();
        refusal.at(place(index, 0))
    })
}

/// A refusal with the number of the chunk that failed; 0 means the whole file.
struct PatchRefusal {
    refusal: Refusal,
    chunk: usize,
}

impl From<Refusal> for PatchRefusal {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, chunk: 0 }
    }
}

/// The effect of a patch on its targets so far.
struct PatchDraft<'a, 'b> {
    targets: &'b [Target<'a>],
    fates: Vec<TargetFate<'a>>,
}

enum TargetFate<'a> {
    Untouched,
    /// Edited; more edits may follow.
    Edited(Box<EditDraft<'a>>),
    /// Finished, with the resulting plans.
    Settled(Vec<Planned>),
}

impl<'a> PatchDraft<'a, '_> {
    fn take(&mut self, step: &PatchStep<'_>) -> Result<(), PatchRefusal> {
        let target = self.targets[step.target];
        match step.file {
            FilePatch::Add { content, .. } => {
                let mut draft = self.begin(step.target)?;
                draft.create(content, CreatedBy::Adding)?;
                self.fates[step.target] = TargetFate::Settled(vec![draft.finish()?]);
            }
            FilePatch::Delete { .. } => {
                self.begin(step.target)?;
                self.fates[step.target] = TargetFate::Settled(vec![delete_file(&target)?]);
            }
            FilePatch::Update { chunks, .. } => {
                let mut draft = match std::mem::replace(&mut self.fates[step.target], TargetFate::Untouched) {
                    TargetFate::Edited(draft) => *draft,
                    fate => {
                        self.fates[step.target] = fate;
                        self.begin(step.target)?
                    }
                };
                if !chunks.is_empty() {
                    draft.patch(chunks)?;
                }
                self.fates[step.target] = match step.to {
                    None => TargetFate::Edited(Box::new(draft)),
                    Some(to) => TargetFate::Settled(self.moved(draft, to)?),
                };
            }
        }
        Ok(())
    }

    /// Takes a target that is still untouched.
    fn begin(&self, target: usize) -> Result<EditDraft<'a>, Refusal> {
        match self.fates[target] {
            TargetFate::Untouched => Ok(EditDraft::new(self.targets[target])),
            TargetFate::Edited(_) | TargetFate::Settled(_) => {
                let why = "the patch names it more than once, and not only to update it".to_owned();
                Err(self.targets[target].refuse(Cause::BadArguments { why }))
            }
        }
    }

    /// Moves a file, perhaps with edits.
    fn moved(&mut self, draft: EditDraft<'a>, to: usize) -> Result<Vec<Planned>, Refusal> {
        let (from, to_target) = (draft.target, self.targets[to]);
        self.begin(to)?;
        self.fates[to] = TargetFate::Settled(Vec::new());
        let plain = move_file(&from, to_target.path, to_target.present);
        if draft.edits == 0 {
            return plain.map(|plan| vec![plan]);
        }
        if let (Err(refusal), true) = (plain, from.path == to_target.path || *to_target.present != Present::Absent) {
            return Err(refusal);
        }
        let edited = draft.finish()?;
        let FileAction::Write { content, .. } = edited.act else { unreachable!("a draft is written") };
        let act = FileAction::Write { content, marks: NewFileAttributes::Of(from.path.clone()) };
        let origin = from.present.text().map(|text| MovedFrom { path: from.path.clone(), text: text.clone() });
        let written = Planned { path: to_target.path.clone(), base: None, act, origin, provenance: None, ..edited };
        Ok(vec![written, Planned::whole(&from, FileAction::Remove, LineMap::same(), None)])
    }

    fn finish(self) -> Result<Vec<(usize, Planned)>, (usize, Refusal)> {
        let mut plans = Vec::new();
        for (target, fate) in self.fates.into_iter().enumerate() {
            match fate {
                TargetFate::Untouched => {}
                TargetFate::Edited(draft) => plans.push((target, draft.finish().map_err(|refusal| (target, refusal))?)),
                TargetFate::Settled(settled) => plans.extend(settled.into_iter().map(|plan| (target, plan))),
            }
        }
        Ok(plans)
    }
}

/// Plans `delete_file`. A text file must have been read, if the policy requires it, and must not have changed since.
pub fn delete_file(target: &Target<'_>) -> Result<Planned, Refusal> {
    gate::take_away(target)?;
    Ok(Planned::whole(target, FileAction::Remove, LineMap::same(), None))
}

/// Plans `move_file` to this path, whose current state is `existing`.
pub fn move_file(target: &Target<'_>, to: &RelPath, existing: &Present) -> Result<Planned, Refusal> {
    gate::take_away(target)?;
    if target.path == to {
        return Err(target.refuse(Cause::NoChange));
    }
    match existing {
        Present::Absent => {}
        Present::Unreadable(cause) if !matches!(cause, Cause::TooLarge { .. }) => return Err(Refusal::of(to, cause.clone())),
        Present::Text(_) | Present::Blob(..) | Present::Unreadable(_) => {
            return Err(Refusal::of(to, Cause::Exists { by: CreatedBy::Moving }));
        }
    }
    let view_after = target.view().cloned();
    Ok(Planned::whole(target, FileAction::Move { to: to.clone() }, LineMap::same(), view_after))
}

/// The earlier content of a file, to be restored.
#[derive(Debug, Clone, Default)]
pub struct RestoredContent {
    /// The content to write; `None` if the file is to be removed.
    pub content: Option<Content>,
    /// The mode that the file had when it was deleted.
    pub mode: Option<u32>,
    /// Which line of the current text becomes which, if that is known exactly.
    pub lines: Option<LineMap>,
}

/// Plans to restore the earlier content of a file. The caller decides whether that is allowed: what the session has
/// seen does not matter here, but later changes by others do.
pub fn restore(target: &Target<'_>, restored: RestoredContent) -> Result<Planned, Refusal> {
    if let Present::Unreadable(cause) = target.present {
        return Err(target.refuse(cause.clone()));
    }
    let RestoredContent { content, mode, lines } = restored;
    let Some(content) = content else { return Ok(Planned::whole(target, FileAction::Remove, LineMap::same(), None)) };
    let now = target.present.text();
    let provenance = match (now, content.text()) {
        (Some(now), Some(text)) => lines.filter(|lines| lines.fits(now, text)),
        _ => None,
    };
    let map = match (&provenance, now, content.text()) {
        // A line that takes the place of an equal one is not shown as changed.
        (Some(lines), Some(now), Some(text)) => lines.refined(now, text),
        (_, now, Some(text)) => map_to(now, text),
        (.., None) => LineMap::same(),
    };
    // What the session has seen of the current text also holds for the same lines of the restored one.
    let view_after = content.text().filter(|_| target.is_tracked()).map(|text| match (target.view(), now) {
        (Some(view), Some(now)) if view.version() == now.version() => view.carried(now, &map, text),
        _ => View::of(text),
    });
    let act = FileAction::Write { content, marks: mode.map_or(NewFileAttributes::Usual, NewFileAttributes::Mode) };
    Ok(Planned { provenance, ..Planned::whole(target, act, map, view_after) })
}

/// Plans to rename a file back to a path that is free.
pub fn move_back(target: &Target<'_>, to: &RelPath) -> Planned {
    Planned::whole(target, FileAction::Move { to: to.clone() }, LineMap::same(), target.view().cloned())
}

fn written(text: Text) -> FileAction {
    FileAction::Write { content: Content::Text(text), marks: NewFileAttributes::Usual }
}

fn map_to(base: Option<&Text>, text: &Text) -> LineMap {
    match base {
        Some(base) => LineMap::between(base, text),
        None => LineMap::added(text.line_count()),
    }
}

struct EditDraft<'a> {
    target: Target<'a>,
    /// The text after the edits so far; set by the first one.
    text: Option<Text>,
    /// The text that the session knows, if others have changed the file since. The edits are meant for this text, and
    /// are applied to the current one only where they are proven to fit.
    picture: Option<Text>,
    /// How the lines of the picture moved, if that is recorded.
    since_picture: Option<LineMap>,
    /// The view of the picture if there is one, else of the text. Until the last edit it has the version from before
    /// the first.
    view: Option<View>,
    /// The line map of the edits so far; `None` before the first one and for a new file.
    map: Option<LineMap>,
    edits: usize,
    replacements: usize,
}

impl<'a> EditDraft<'a> {
    fn new(target: Target<'a>) -> Self {
        let view = target.view().cloned();
        Self { target, text: None, picture: None, since_picture: None, view, map: None, edits: 0, replacements: 0 }
    }

    /// The text that the next edit is meant for. Asks the gate before the first edit.
    fn meant(&mut self, anchors: Option<&[Anchor]>) -> Result<Text, Refusal> {
        let text = match &self.text {
            Some(text) => text,
            None => {
                let permit = gate::edit(&self.target, anchors)?;
                self.picture = permit.picture.cloned();
                self.since_picture = permit.provenance.cloned();
                self.text.insert(permit.now.clone())
            }
        };
        Ok(self.picture.as_ref().unwrap_or(text).clone())
    }

    /// The refusal of an edit that is not proven to fit the current text; `None` if only this session has changed the
    /// file.
    fn not_proven(&self, anchors: Option<&[Anchor]>) -> Option<Refusal> {
        let now = self.target.present.text().filter(|_| self.picture.is_some())?;
        Some(gate::refuse_stale(&self.target, now, anchors))
    }

    fn replace(&mut self, edit: &Replace<'_>) -> Result<(), Refusal> {
        if edit.old.is_empty() {
            return self.create(edit.new, CreatedBy::Creating);
        }
        let meant = self.meant(None)?;
        let splices = replace_splices(&meant, edit)
            .map_err(|cause| self.not_proven(None).unwrap_or_else(|| self.refuse_match(cause, &meant)))?;
        if let (Some(_), Some(now)) = (&self.picture, &self.text) {
            // In the current text the edit must mean the same places.
            let places = find(now, edit.old, if edit.all { Overlaps::Skip } else { Overlaps::Count }).len();
            if places != splices.len() {
                return Err(self.not_proven(None).expect("there is a picture"));
            }
        }
        self.apply(&splices, &LineSet::whole(meant.line_count()), None)
    }

    fn patch(&mut self, chunks: &[PatchChunk<'_>]) -> Result<(), PatchRefusal> {
        let meant = self.meant(None)?;
        let splices = patch_splices(&meant, chunks).map_err(|ChunkRefused { chunk, cause }| {
            let refusal = self.not_proven(None).unwrap_or_else(|| self.refuse_match(cause, &meant));
            PatchRefusal { refusal, chunk }
        })?;
        let quoted = match (&self.picture, &self.text) {
            (Some(picture), Some(now)) => quoted_lines(picture, now, chunks),
            _ => LineSet::new(),
        };
        Ok(self.apply(&splices, &quoted, None)?)
    }

    /// If the text was not found, the refusal shows lines of the file. They count as seen only if no earlier edit of
    /// the batch has changed the file, because the session will be compared with the file on disk.
    fn refuse_match(&self, cause: Cause, text: &Text) -> Refusal {
        let shown = match &cause {
            Cause::NotFound { nearest: Some(nearest), .. } if self.edits == 0 => nearest.fresh.shown.clone(),
            _ => Default::default(),
        };
        let refusal = self.target.refuse(cause);
        match &self.view {
            Some(view) if !shown.is_empty() && view.version() == text.version() => refusal.teaching(view.clone().showing(&shown)),
            _ => refusal,
        }
    }

    fn create(&mut self, content: &str, by: CreatedBy) -> Result<(), Refusal> {
        let empty = match (&self.text, self.target.present) {
            (Some(text), _) | (None, Present::Text(text)) => text.as_str().is_empty(),
            (None, Present::Absent) => true,
            (None, Present::Blob(blob, cause)) => {
                return Err(gate::refuse_unshown(&self.target, blob, cause, IfRepeated::IsRefused));
            }
            (None, Present::Unreadable(cause)) => return Err(self.target.refuse(cause.clone())),
        };
        if !empty {
            return Err(self.target.refuse(Cause::Exists { by }));
        }
        let text = sized_text(&self.target, None, content.to_owned())?;
        self.view = self.target.is_tracked().then(|| View::whole(&text));
        self.map = None;
        self.picture = None;
        self.text = Some(text);
        self.edits += 1;
        self.replacements += 1;
        Ok(())
    }

    /// Applies splices to the text they were meant for. `quoted` are the lines of that text that the edit quotes, or
    /// names by quoting their neighbours.
    fn apply(&mut self, splices: &[Splice<'_>], quoted: &LineSet, anchors: Option<&[Anchor]>) -> Result<(), Refusal> {
        let before = self.text.clone().expect("an edit is applied to the text that the gate gave");
        let Some(picture) = self.picture.clone() else {
            let (after, map) = self.spliced(&before, splices)?;
            self.view = self.view.as_ref().map(|view| view.during_own_edits(&map, &after));
            self.advance(after, map, splices.len());
            return Ok(());
        };
        let seen = self.view.as_ref().map(View::seen_lines).unwrap_or_default();
        let known = seen.ranges().iter().chain(quoted.ranges()).copied().collect();
        let proof = Proof::between(self.since_picture.as_ref(), &picture, &before);
        let Some(placed) = rebase::place(&picture, &before, &proof, &known, splices) else {
            return Err(self.not_proven(anchors).expect("there is a picture"));
        };
        let (after, map) = self.spliced(&before, &placed)?;
        let (imagined, imagined_map) = self.spliced(&picture, splices)?;
        self.view = self.view.as_ref().map(|view| view.during_own_edits(&imagined_map, &imagined));
        // The inserted lines are the same in both texts.
        let since = self.since_picture.as_ref().map(|since| imagined_map.inverse().then(since).then(&map));
        self.since_picture = since.map(|since| since.without_restored(&imagined, &after));
        self.picture = Some(imagined);
        self.advance(after, map, splices.len());
        Ok(())
    }

    fn spliced(&self, before: &Text, splices: &[Splice<'_>]) -> Result<(Text, LineMap), Refusal> {
        let (content, sources) = splice(before, splices);
        let after = sized_text(&self.target, Some(before), content)?;
        if after == *before {
            return Err(self.target.refuse(Cause::NoChange));
        }
        let map = exact_map(before, &after, &sources);
        Ok((after, map))
    }

    fn advance(&mut self, after: Text, map: LineMap, replacements: usize) {
        self.text = Some(after);
        self.map = match self.map.take() {
            None if self.edits == 0 => Some(map),
            so_far => so_far.map(|so_far| so_far.then(&map)),
        };
        self.edits += 1;
        self.replacements += replacements;
    }

    fn finish(mut self) -> Result<Planned, Refusal> {
        let base = self.target.present.text();
        let Some(text) = self.text.take() else { return Err(self.target.refuse(Cause::NoChange)) };
        if base == Some(&text) {
            // The edits of the batch undo each other.
            return Err(self.target.refuse(Cause::NoChange));
        }
        let provenance = self.map.take().filter(|_| base.is_some());
        let map: LineMap = match (&provenance, base) {
            (Some(map), _) if self.edits == 1 => map.clone(),
            // A later edit may have changed what an earlier one wrote, so the result is compared.
            (Some(map), Some(base)) => map.refined(base, &text),
            _ => map_to(base, &text),
        };
        let (mut view_after, rebased) = self.settle_picture(&text);
        if view_after.is_none() && self.target.is_tracked() {
            // Without a read, the session knows only what it wrote. A file that may be edited unread has no view yet.
            view_after = Some(View::of(&text));
        }
        let whole = Planned::whole(&self.target, written(text), map, view_after);
        Ok(Planned { provenance, replacements: self.replacements, rebased, ..whole })
    }

    /// The session's final view, and the changes by others if the session knew another text.
    fn settle_picture(&mut self, text: &Text) -> (Option<View>, Option<Rebased>) {
        let (Some(picture), Some(view)) = (self.picture.take(), &self.view) else {
            return (self.view.take().map(|view| view.settled(text)), None);
        };
        let since_picture = self.since_picture.take();
        let proof = Proof::between(since_picture.as_ref(), &picture, text);
        let affected = proof.map().affected();
        let fresh = Excerpt::of(text, &affected);
        let view = view.carried_by(&proof, text).showing(&fresh.shown);
        (Some(view), Some(Rebased { affected, fresh }))
    }
}

/// The new content of a file in its encoding, or in UTF-8 for a new file.
fn sized_text(target: &Target<'_>, base: Option<&Text>, content: String) -> Result<Text, Refusal> {
    let text = match base {
        Some(base) => base.with(content),
        None => Text::of(content).map_err(Unfit::NotText),
    };
    let text = text.map_err(|unfit| {
        target.refuse(match unfit {
            Unfit::Unencodable { why, encoding } => Cause::Unencodable { why, encoding: encoding.name() },
            Unfit::NotText(NotText::TooLarge) => Cause::BadArguments { why: "the new text is over 4 GiB".to_owned() },
            Unfit::NotText(_) => {
                Cause::BadArguments { why: "the new text holds NUL characters: these tools write text only".to_owned() }
            }
        })
    })?;
    let (size, limit) = (text.bytes().len() as u64, target.limits.file_bytes);
    if size > limit {
        return Err(target.refuse(Cause::TooLarge { unit: "bytes", size, limit, setting: "limits.file_bytes" }));
    }
    Ok(text)
}
