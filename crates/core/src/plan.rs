//! Plans: the only way to a change of a file. Each function here takes a [`Target`] and an edit, asks the gate, and gives a
//! [`Planned`] change or a [`Refusal`]. Nobody else can make a `Planned`, and `commit` takes nothing else.

use crate::{
    change::{LineMap, Splice, exact_map, splice},
    edit::{
        lines::{LineEdit, line_splices},
        replace::{Replace, replace_splices},
        write::kept_endings,
    },
    gate::{self, Present, Target},
    path::RelPath,
    refusal::{Cause, Refusal},
    text::{NotText, Text},
    view::View,
};

/// What a plan was made for: the file must still be this when it is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// No file.
    Absent,
    /// A file with this text.
    Text(Text),
}

/// A change that passed the gate. Commit it, or drop it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    path: RelPath,
    base: Base,
    text: Text,
    map: LineMap,
    view_after: Option<View>,
    replacements: usize,
}

impl Planned {
    /// The file it changes.
    pub fn path(&self) -> &RelPath {
        &self.path
    }

    /// What it was planned for.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// What the file will be.
    pub fn text(&self) -> &Text {
        &self.text
    }

    /// Which lines it replaces by which.
    pub fn map(&self) -> &LineMap {
        &self.map
    }

    /// What the session will have seen of it; `None` when nobody keeps track.
    pub fn view_after(&self) -> Option<&View> {
        self.view_after.as_ref()
    }

    /// How many places were replaced.
    pub fn replacements(&self) -> usize {
        self.replacements
    }

    /// Whether it creates the file.
    pub fn is_new(&self) -> bool {
        self.base == Base::Absent
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
    Write(Planned),
}

/// Plans `edit_file`. An empty `old` creates the file.
pub fn edit_file(target: &Target<'_>, edit: &Replace<'_>) -> Result<Planned, Refusal> {
    let mut draft = Draft::new(*target);
    draft.replace(edit)?;
    draft.finish()
}

/// Plans `multi_edit`: for each edit the index of its target. One that cannot be made refuses them all.
///
/// Gives one plan for each target, in order; every target must have an edit.
pub fn multi_edit(targets: &[Target<'_>], edits: &[(usize, Replace<'_>)]) -> Result<Vec<Planned>, Refusal> {
    let mut drafts: Vec<Draft<'_>> = targets.iter().map(|target| Draft::new(*target)).collect();
    for (number, (target, edit)) in edits.iter().enumerate() {
        drafts[*target].replace(edit).map_err(|refusal| refusal.in_batch(number + 1, edits.len()))?;
    }
    let last_edit_of = |target: usize| edits.iter().rposition(|(of, _)| *of == target).map_or(0, |index| index + 1);
    let finish = |(target, draft): (usize, Draft<'_>)| {
        draft.finish().map_err(|refusal| refusal.in_batch(last_edit_of(target), edits.len()))
    };
    drafts.into_iter().enumerate().map(finish).collect()
}

/// Plans `edit_lines`.
pub fn edit_lines(target: &Target<'_>, edits: &[LineEdit<'_>]) -> Result<Planned, Refusal> {
    let anchors: Vec<_> = edits.iter().flat_map(LineEdit::anchors).collect();
    let text = gate::edit(target, Some(&anchors))?;
    let splices = line_splices(target, text, edits)?;
    let mut draft = Draft::new(*target);
    draft.apply(&splices)?;
    draft.finish()
}

/// Plans `write_file`.
pub fn write_file(target: &Target<'_>, content: &str) -> Result<WritePlan, Refusal> {
    let (bytes, base) = match target.present {
        Present::Text(text) => (kept_endings(text, content).into_bytes(), Some(text)),
        Present::Absent | Present::Unreadable(_) => (content.as_bytes().to_vec(), None),
    };
    let text = sized_text(target, bytes)?;
    if base == Some(&text) {
        // Nothing would be lost and nothing is written, so it does not matter what the session has seen.
        return Ok(WritePlan::Same { text });
    }
    gate::overwrite(target)?;
    let map = match base {
        Some(base) => LineMap::between(base, &text),
        None => LineMap::of_lines(&[], &text.full_lines().collect::<Vec<_>>()),
    };
    let view_after = target.is_tracked().then(|| View::whole(&text));
    let base = base.map_or(Base::Absent, |base| Base::Text(base.clone()));
    Ok(WritePlan::Write(Planned { path: target.path.clone(), base, text, map, view_after, replacements: 1 }))
}

/// The edits of one file so far.
struct Draft<'a> {
    target: Target<'a>,
    /// Set by the first edit: the text as it is after the edits so far.
    text: Option<Text>,
    view: Option<View>,
    map: Option<LineMap>,
    edits: usize,
    replacements: usize,
}

impl<'a> Draft<'a> {
    fn new(target: Target<'a>) -> Self {
        Self { target, text: None, view: target.view().cloned(), map: None, edits: 0, replacements: 0 }
    }

    fn replace(&mut self, edit: &Replace<'_>) -> Result<(), Refusal> {
        if edit.old.is_empty() {
            return self.create(edit.new);
        }
        let text = match &self.text {
            Some(text) => text.clone(),
            None => gate::edit(&self.target, None)?.clone(),
        };
        let splices = replace_splices(&text, edit).map_err(|cause| self.refuse_match(cause, &text))?;
        self.text = Some(text.clone());
        self.apply(&splices)
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

    fn create(&mut self, content: &str) -> Result<(), Refusal> {
        let empty = match (&self.text, self.target.present) {
            (Some(text), _) | (None, Present::Text(text)) => text.bytes().is_empty(),
            (None, Present::Absent) => true,
            (None, Present::Unreadable(cause)) => return Err(self.target.refuse(cause.clone())),
        };
        if !empty {
            return Err(self.target.refuse(Cause::Exists));
        }
        let text = sized_text(&self.target, content.as_bytes().to_vec())?;
        self.view = self.target.is_tracked().then(|| View::whole(&text));
        self.map = Some(LineMap::of_lines(&[], &text.full_lines().collect::<Vec<_>>()));
        self.text = Some(text);
        self.edits += 1;
        self.replacements += 1;
        Ok(())
    }

    fn apply(&mut self, splices: &[Splice<'_>]) -> Result<(), Refusal> {
        let before = match (&self.text, self.target.present) {
            (Some(text), _) | (None, Present::Text(text)) => text.clone(),
            (None, _) => return Err(self.target.refuse(Cause::NoSuchFile)),
        };
        let (bytes, sources) = splice(&before, splices);
        let after = sized_text(&self.target, bytes)?;
        if after == before {
            return Err(self.target.refuse(Cause::NoChange));
        }
        let map = exact_map(&before, &after, &sources);
        self.view = self.view.as_ref().map(|view| view.after_own_edit(&map, &after));
        self.map = (self.edits == 0).then_some(map);
        self.text = Some(after);
        self.edits += 1;
        self.replacements += splices.len();
        Ok(())
    }

    fn finish(self) -> Result<Planned, Refusal> {
        let base = match self.target.present {
            Present::Text(text) => Base::Text(text.clone()),
            Present::Absent | Present::Unreadable(_) => Base::Absent,
        };
        let Some(text) = self.text else { return Err(self.target.refuse(Cause::NoChange)) };
        let map = match (self.map, &base) {
            (Some(map), _) => map,
            (None, Base::Text(base)) => LineMap::between(base, &text),
            (None, Base::Absent) => LineMap::of_lines(&[], &text.full_lines().collect::<Vec<_>>()),
        };
        if base == Base::Text(text.clone()) {
            // Edits of a batch that undo each other.
            return Err(self.target.refuse(Cause::NoChange));
        }
        // Without a read the session knows only what it wrote itself; a file it may edit unread has no view before that.
        let view_after = self.target.is_tracked().then(|| self.view.unwrap_or_else(|| View::of(&text)));
        Ok(Planned { path: self.target.path.clone(), base, text, map, view_after, replacements: self.replacements })
    }
}

fn sized_text(target: &Target<'_>, bytes: Vec<u8>) -> Result<Text, Refusal> {
    let (size, limit) = (bytes.len() as u64, target.limits.file_bytes);
    if size > limit {
        return Err(target.refuse(Cause::TooLarge { unit: "bytes", size, limit, setting: "limits.file_bytes" }));
    }
    Text::new(bytes).map_err(|not_text| {
        let why = match not_text {
            NotText::Binary => "the new text holds NUL characters: these tools write text only".to_owned(),
            NotText::Encoding { .. } => "the new text is not UTF-8".to_owned(),
            NotText::TooLarge => "the new text is over 4 GiB".to_owned(),
        };
        target.refuse(Cause::BadArguments { why })
    })
}
