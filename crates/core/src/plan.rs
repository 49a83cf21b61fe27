//! Plans: the only way to change a file. Each function takes a [`Target`] and an edit, asks the gate, and returns a [`Planned`]
//! change or a [`Refusal`]. `Planned` has no public constructor and `commit` takes nothing else, so a write that skips the gate
//! does not compile.

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
    encoding::Encoding,
    excerpt::Excerpt,
    gate::{self, Present, Target},
    hash::Anchor,
    line_map::{LineMap, Splice, exact_map, splice},
    lines::LineSet,
    path::RelPath,
    proof::Proof,
    rebase,
    refusal::{BatchKind, BatchPlace, Cause, CreatedBy, IfRepeated, Refusal, Unencodable},
    text::{NotText, Text, Unfit},
    view::View,
};

/// What is done to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAction {
    /// It gets this content; it is made if it was not there.
    Write {
        /// All of it.
        content: Content,
        /// What else a new file gets; one that is there keeps what it has.
        marks: NewFileAttributes,
    },
    /// It is removed.
    Remove,
    /// It gets another name, where there is no file.
    Move {
        /// The name.
        to: RelPath,
    },
}

/// Mode, owner and attributes of a new file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewFileAttributes {
    /// Those that new files get.
    Usual,
    /// Those of the file that it continues.
    Of(RelPath),
    /// The mode that the file had when it was taken away.
    Mode(u32),
}

/// A change that passed the gate. Commit it, or drop it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    path: RelPath,
    base: Option<Content>,
    act: FileAction,
    /// Where a file is written as a whole, this is found out when somebody asks.
    map: OnceLock<LineMap>,
    provenance: Option<LineMap>,
    /// Where a file is written as a whole, all of it counts as seen. A view names the version, and a large text is not hashed before
    /// somebody asks.
    view_after: OnceLock<Option<View>>,
    replacements: usize,
    rebased: Option<Rebased>,
    origin: Option<MovedFrom>,
    is_made_anew: bool,
}

/// The file that a new one continues, under another name and edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedFrom {
    /// The name it had.
    pub path: RelPath,
    /// What it held.
    pub text: Text,
}

/// What else had changed in a file whose edit was moved to its new place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebased {
    /// The lines that somebody else changed, as they are numbered now.
    pub affected: LineSet,
    /// What they are.
    pub fresh: Excerpt,
}

impl Planned {
    /// The file it changes; of a move, the name it has before.
    pub fn path(&self) -> &RelPath {
        &self.path
    }

    /// What it was planned for; `None` where there was no file. It must still be this when it is replaced.
    pub fn base(&self) -> Option<&Content> {
        self.base.as_ref()
    }

    /// What is done.
    pub fn act(&self) -> &FileAction {
        &self.act
    }

    /// What the file will hold, under whatever name; `None` when it is removed.
    pub fn after(&self) -> Option<&Content> {
        match &self.act {
            FileAction::Write { content, .. } => Some(content),
            FileAction::Remove => None,
            FileAction::Move { .. } => self.base.as_ref(),
        }
    }

    /// The text that the file will hold, if it will hold text.
    pub fn text(&self) -> Option<&Text> {
        self.after().and_then(Content::text)
    }

    /// The name that the file will have; `None` when it is removed.
    pub fn path_after(&self) -> Option<&RelPath> {
        match &self.act {
            FileAction::Write { .. } => Some(&self.path),
            FileAction::Remove => None,
            FileAction::Move { to } => Some(to),
        }
    }

    /// The name that the file is moved to.
    pub fn moved_to(&self) -> Option<&RelPath> {
        match &self.act {
            FileAction::Move { to } => Some(to),
            FileAction::Write { .. } | FileAction::Remove => None,
        }
    }

    /// Which lines it replaces by which. Of a large file that is written as a whole, the first question takes a while.
    pub fn map(&self) -> &LineMap {
        self.map.get_or_init(|| {
            let base = self.base().and_then(Content::text);
            self.text().map_or_else(LineMap::same, |text| map_to(base, text))
        })
    }

    /// The same, from the edits themselves: which of several equal lines is the old one is known, not guessed. `None` where the
    /// change is not a sum of edits.
    pub fn provenance(&self) -> Option<&LineMap> {
        self.provenance.as_ref()
    }

    /// Whether two texts are still to be compared before [`Planned::map`] can answer.
    pub fn needs_comparison(&self) -> bool {
        let replaces_text = self.base().and_then(Content::text).is_some() && self.text().is_some();
        replaces_text && self.map.get().is_none()
    }

    /// What the session will have seen of it; `None` when nobody keeps track, or there is nothing to see.
    pub fn view_after(&self) -> Option<&View> {
        self.view_after.get_or_init(|| self.text().map(View::whole)).as_ref()
    }

    /// How many places were replaced.
    pub fn replacements(&self) -> usize {
        self.replacements
    }

    /// Whether it creates the file.
    pub fn is_new(&self) -> bool {
        self.base.is_none()
    }

    /// Whether it creates a file that the session has seen and that has gone since.
    pub fn is_made_anew(&self) -> bool {
        self.is_made_anew
    }

    /// What else had changed, if the edit was moved to its new place.
    pub fn rebased(&self) -> Option<&Rebased> {
        self.rebased.as_ref()
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

/// What `write_file` comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WritePlan {
    /// The file has this content already: there is nothing to write.
    Same {
        /// The content.
        text: Text,
    },
    /// The file is to be written.
    Write(Box<Planned>),
}

/// Plans `edit_file`. An empty `old` creates the file.
pub fn edit_file(target: &Target<'_>, edit: &Replace<'_>) -> Result<Planned, Refusal> {
    let mut draft = EditDraft::new(*target);
    draft.replace(edit)?;
    draft.finish()
}

/// Plans `multi_edit`: for each edit the index of its target. One that cannot be made refuses them all.
///
/// Gives one plan for each target, in order; every target must have an edit.
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

/// Plans `edit_lines`.
pub fn edit_lines(target: &Target<'_>, edits: &[LineEdit<&str>]) -> Result<Planned, Refusal> {
    let anchors: Vec<_> = edits.iter().flat_map(LineEdit::anchors).collect();
    let mut draft = EditDraft::new(*target);
    let meant = draft.meant(Some(&anchors))?;
    let splices = line_splices(target, &meant, edits).map_err(|refusal| draft.not_proven(Some(&anchors)).unwrap_or(refusal))?;
    draft.apply(&splices, &LineSet::new(), Some(&anchors))?;
    draft.finish()
}

/// Plans `write_file`.
pub fn write_file(target: &Target<'_>, content: &str) -> Result<WritePlan, Refusal> {
    let base = match target.present {
        Present::Text(text) => Some(text),
        Present::Absent | Present::Blob(..) | Present::Unreadable(_) => None,
    };
    let content = base.map_or_else(|| content.to_owned(), |base| kept_endings(base, content));
    let text = match sized_text(target, base, content) {
        // What may not be overwritten is not told that the new text does not fit it. To send the same call again would not help, though.
        Err(refusal) => {
            let comes_first = |refused: &Refusal| !matches!(refused.cause, Cause::Unshown { .. });
            return Err(gate::overwrite(target).err().filter(comes_first).unwrap_or(refusal));
        }
        Ok(text) => text,
    };
    if base == Some(&text) {
        // Nothing would be lost and nothing is written, so it does not matter what the session has seen.
        return Ok(WritePlan::Same { text });
    }
    gate::overwrite(target)?;
    let view_after = if target.is_tracked() { OnceLock::new() } else { None.into() };
    Ok(WritePlan::Write(Box::new(Planned::whole(target, written(text), OnceLock::new(), view_after))))
}

/// What a patch does to one file: the index of its target, and of the one that it is moved to.
#[derive(Debug, Clone, Copy)]
pub struct PatchStep<'a> {
    /// What is done.
    pub file: &'a FilePatch<'a>,
    /// To which target.
    pub target: usize,
    /// Where to.
    pub to: Option<usize>,
}

/// Plans `apply_patch`. One file that cannot be changed as the patch says refuses it all. Gives the plans with the targets that they are
/// about.
pub fn apply_patch(targets: &[Target<'_>], steps: &[PatchStep<'_>]) -> Result<Vec<(usize, Planned)>, Refusal> {
    let mut sheet = PatchDraft { targets, fates: targets.iter().map(|_| TargetFate::Untouched).collect() };
    let place = |index: usize, chunk: usize| BatchPlace { edit: index + 1, of: steps.len(), kind: BatchKind::Patch { chunk } };
    for (index, step) in steps.iter().enumerate() {
        sheet.take(step).map_err(|(refusal, chunk)| refusal.at(place(index, chunk)))?;
    }
    sheet.finish().map_err(|(target, refusal)| {
        let index = steps.iter().rposition(|step| step.target == target).unwrap_or_default();
        refusal.at(place(index, 0))
    })
}

/// What a patch has done to its targets so far.
struct PatchDraft<'a, 'b> {
    targets: &'b [Target<'a>],
    fates: Vec<TargetFate<'a>>,
}

enum TargetFate<'a> {
    /// Nothing yet.
    Untouched,
    /// It is edited; more edits may follow.
    Edited(Box<EditDraft<'a>>),
    /// It is settled, by these plans.
    Settled(Vec<Planned>),
}

impl<'a> PatchDraft<'a, '_> {
    /// Plans one step. A refusal comes with the number of the chunk that it is about, or 0.
    fn take(&mut self, step: &PatchStep<'_>) -> Result<(), (Refusal, usize)> {
        let target = self.targets[step.target];
        let whole = |refusal: Refusal| (refusal, 0);
        match step.file {
            FilePatch::Add { content, .. } => {
                let mut draft = self.begin(step.target).map_err(whole)?;
                draft.create(content, CreatedBy::Adding).map_err(whole)?;
                let plan = draft.finish().map_err(whole)?;
                self.fates[step.target] = TargetFate::Settled(vec![plan]);
            }
            FilePatch::Delete { .. } => {
                self.begin(step.target).map_err(whole)?;
                self.fates[step.target] = TargetFate::Settled(vec![delete_file(&target).map_err(whole)?]);
            }
            FilePatch::Update { chunks, .. } => {
                let mut draft = match std::mem::replace(&mut self.fates[step.target], TargetFate::Untouched) {
                    TargetFate::Edited(draft) => *draft,
                    fate => {
                        self.fates[step.target] = fate;
                        self.begin(step.target).map_err(whole)?
                    }
                };
                if !chunks.is_empty() {
                    draft.patch(chunks)?;
                }
                self.fates[step.target] = match step.to {
                    None => TargetFate::Edited(Box::new(draft)),
                    Some(to) => TargetFate::Settled(self.moved(draft, to).map_err(whole)?),
                };
            }
        }
        Ok(())
    }

    /// A target that nothing has been done to.
    fn begin(&self, target: usize) -> Result<EditDraft<'a>, Refusal> {
        match self.fates[target] {
            TargetFate::Untouched => Ok(EditDraft::new(self.targets[target])),
            TargetFate::Edited(_) | TargetFate::Settled(_) => {
                let why = "the patch names it more than once, and not only to update it".to_owned();
                Err(self.targets[target].refuse(Cause::BadArguments { why }))
            }
        }
    }

    /// A file that gets another name, perhaps with edits.
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
        let origin = match from.present {
            Present::Text(text) => Some(MovedFrom { path: from.path.clone(), text: text.clone() }),
            Present::Absent | Present::Blob(..) | Present::Unreadable(_) => None,
        };
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

/// Plans `delete_file`.
pub fn delete_file(target: &Target<'_>) -> Result<Planned, Refusal> {
    gate::take_away(target)?;
    Ok(Planned::whole(target, FileAction::Remove, LineMap::same(), None))
}

/// Plans `move_file`: to this path, where this is now.
pub fn move_file(target: &Target<'_>, to: &RelPath, there: &Present) -> Result<Planned, Refusal> {
    gate::take_away(target)?;
    if target.path == to {
        return Err(target.refuse(Cause::NoChange));
    }
    match there {
        Present::Absent => {}
        Present::Unreadable(cause) if !matches!(cause, Cause::TooLarge { .. }) => return Err(Refusal::of(to, cause.clone())),
        Present::Text(_) | Present::Blob(..) | Present::Unreadable(_) => {
            return Err(Refusal::of(to, Cause::Exists { by: CreatedBy::Moving }));
        }
    }
    let view_after = target.view().cloned();
    Ok(Planned::whole(target, FileAction::Move { to: to.clone() }, LineMap::same(), view_after))
}

/// Plans to bring back what a file held before, and for one that is gone the mode it had; no content takes the file away. Whether that may be done is for the caller to judge: what
/// the session has seen does not matter here, but what somebody else has done since.
pub fn restore(target: &Target<'_>, content: Option<&Content>, mode: Option<u32>) -> Result<Planned, Refusal> {
    if let Present::Unreadable(cause) = target.present {
        return Err(target.refuse(cause.clone()));
    }
    let Some(content) = content else { return Ok(Planned::whole(target, FileAction::Remove, LineMap::same(), None)) };
    let now = match target.present {
        Present::Text(text) => Some(text),
        _ => None,
    };
    let map = content.text().map_or_else(LineMap::same, |text| map_to(now, text));
    // What the session knows of the file as it is, it knows of the same lines of what comes back.
    let view_after = content.text().filter(|_| target.is_tracked()).map(|text| match (target.view(), now) {
        (Some(view), Some(now)) if view.version() == now.version() => view.carried(now, &map, text),
        _ => View::of(text),
    });
    let act =
        FileAction::Write { content: content.clone(), marks: mode.map_or(NewFileAttributes::Usual, NewFileAttributes::Mode) };
    Ok(Planned::whole(target, act, map, view_after))
}

/// Plans to give a file back the name that it had, where there is no file now.
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

/// The edits of one file so far.
struct EditDraft<'a> {
    target: Target<'a>,
    /// Set by the first edit: the text as it is after the edits so far.
    text: Option<Text>,
    /// What the session takes that text to be, where somebody else has changed it: the edits are meant for this, and made there
    /// only as far as they are proven to fit.
    picture: Option<Text>,
    /// What became of the lines of the picture, if that is known.
    since_picture: Option<LineMap>,
    /// Of the picture if there is one, else of the text. It has the version of the text before the first edit until the last.
    view: Option<View>,
    /// What the edits so far have made of the lines of the file; `None` before the first, and where the file is new.
    map: Option<LineMap>,
    edits: usize,
    replacements: usize,
}

impl<'a> EditDraft<'a> {
    fn new(target: Target<'a>) -> Self {
        let view = target.view().cloned();
        Self { target, text: None, picture: None, since_picture: None, view, map: None, edits: 0, replacements: 0 }
    }

    /// The text that the next edit is meant for. Asks the gate before the first one.
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

    /// The refusal of an edit that cannot be proven to fit what somebody else has made of the file; `None` when nobody has.
    fn not_proven(&self, anchors: Option<&[Anchor]>) -> Option<Refusal> {
        match (&self.picture, self.target.present) {
            (Some(_), Present::Text(now)) => Some(gate::stale(&self.target, now, anchors)),
            _ => None,
        }
    }

    fn replace(&mut self, edit: &Replace<'_>) -> Result<(), Refusal> {
        if edit.old.is_empty() {
            return self.create(edit.new, CreatedBy::Creating);
        }
        let meant = self.meant(None)?;
        let splices = match replace_splices(&meant, edit) {
            Ok(splices) => splices,
            Err(cause) => return Err(self.not_proven(None).unwrap_or_else(|| self.refuse_match(cause, &meant))),
        };
        if let (Some(_), Some(now)) = (&self.picture, &self.text) {
            // Somebody who saw the file as it is now would have to mean the same places.
            let places = find(now, edit.old, if edit.all { Overlaps::Skip } else { Overlaps::Count }).places.len();
            if places != splices.len() {
                return Err(self.not_proven(None).expect("there is a picture"));
            }
        }
        self.apply(&splices, &LineSet::whole(meant.line_count()), None)
    }

    /// Makes the changes of a patch. A refusal comes with the number of the chunk that it is about, or 0.
    fn patch(&mut self, chunks: &[PatchChunk<'_>]) -> Result<(), (Refusal, usize)> {
        let meant = self.meant(None).map_err(|refusal| (refusal, 0))?;
        let splices = match patch_splices(&meant, chunks) {
            Ok(splices) => splices,
            Err(ChunkRefused { chunk, cause }) => {
                return Err((self.not_proven(None).unwrap_or_else(|| self.refuse_match(cause, &meant)), chunk));
            }
        };
        let quoted = match (&self.picture, &self.text) {
            (Some(picture), Some(now)) => quoted_lines(picture, now, chunks),
            _ => LineSet::new(),
        };
        self.apply(&splices, &quoted, None).map_err(|refusal| (refusal, 0))
    }

    /// A refusal of an edit whose text was not found shows lines of the file; they count as seen only if the file is still what
    /// the session will be compared with, that is, if no earlier edit of the batch has changed it.
    fn refuse_match(&self, cause: Cause, text: &Text) -> Refusal {
        let shown = match &cause {
            Cause::NotFound { nearest: Some(nearest), .. } if self.edits == 0 => nearest.fresh.shown.clone(),
            _ => Default::default(),
        };
        let refusal = self.target.refuse(cause);
        match &self.view {
            Some(view) if !shown.is_empty() && view.version() == text.version() => {
                let mut view = view.clone();
                view.show_set(&shown);
                refusal.teaching(view)
            }
            _ => refusal,
        }
    }

    fn create(&mut self, content: &str, by: CreatedBy) -> Result<(), Refusal> {
        let empty = match (&self.text, self.target.present) {
            (Some(text), _) | (None, Present::Text(text)) => text.as_str().is_empty(),
            (None, Present::Absent) => true,
            (None, Present::Blob(blob, cause)) => {
                return Err(gate::unshown(&self.target, blob, cause, IfRepeated::IsRefused));
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

    /// Makes splices that are for the text that was meant. `quoted` are the lines of it that the edit quotes, or whose place it
    /// names by quoting what is beside them.
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
        // The lines that the edit puts in are the same in both texts.
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
        let base = match self.target.present {
            Present::Text(text) => Some(text),
            Present::Absent | Present::Blob(..) | Present::Unreadable(_) => None,
        };
        let Some(text) = self.text.take() else { return Err(self.target.refuse(Cause::NoChange)) };
        if base == Some(&text) {
            // Edits of a batch that undo each other.
            return Err(self.target.refuse(Cause::NoChange));
        }
        let provenance = self.map.take().filter(|_| base.is_some());
        let map: LineMap = match (&provenance, base) {
            (Some(map), _) if self.edits == 1 => map.clone(),
            // Of several edits one may have changed what another wrote: the comparison shows what came of it.
            (Some(map), Some(base)) => map.refined(base, &text),
            _ => map_to(base, &text),
        };
        let (mut view_after, rebased) = self.settle_picture(&text);
        if view_after.is_none() && self.target.is_tracked() {
            // Without a read the session knows only what it wrote itself; a file it may edit unread has no view before that.
            view_after = Some(View::of(&text));
        }
        let act = written(text);
        let (path, base) = (self.target.path.clone(), base.cloned().map(Content::Text));
        let (replacements, is_made_anew) = (self.replacements, base.is_none() && self.target.view().is_some());
        Ok(Planned {
            path,
            base,
            act,
            map: map.into(),
            provenance,
            view_after: view_after.into(),
            replacements,
            rebased,
            origin: None,
            is_made_anew,
        })
    }

    /// What the session knows of the text in the end. Where it had another picture of it, it is told what differs.
    fn settle_picture(&mut self, text: &Text) -> (Option<View>, Option<Rebased>) {
        let (Some(picture), Some(view)) = (self.picture.take(), &self.view) else {
            return (self.view.take().map(|view| view.settled(text)), None);
        };
        let since_picture = self.since_picture.take();
        let proof = Proof::between(since_picture.as_ref(), &picture, text);
        let affected = proof.map().affected();
        let fresh = Excerpt::of(text, &affected);
        let mut view = view.carried_by(&proof, text);
        view.show_set(&fresh.shown);
        (Some(view), Some(Rebased { affected, fresh }))
    }
}

fn unencodable(why: Unencodable, encoding: Encoding) -> Cause {
    Cause::Unencodable { why, encoding: encoding.name() }
}

/// New content of a file, in the encoding that it has; UTF-8 for a new one.
fn sized_text(target: &Target<'_>, base: Option<&Text>, content: String) -> Result<Text, Refusal> {
    let text = match base {
        Some(base) => base.with(content),
        None => Text::of(content).map_err(Unfit::NotText),
    };
    let text = text.map_err(|unfit| {
        target.refuse(match unfit {
            Unfit::Character { char, encoding } => unencodable(Unencodable::Character(char), encoding),
            Unfit::Inexact { encoding } => unencodable(Unencodable::Inexact, encoding),
            Unfit::Mistakable { encoding } => unencodable(Unencodable::Mistakable, encoding),
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
