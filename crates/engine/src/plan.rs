//! Plans an edit: the gate judges it against the current files. A plan can be committed, dropped or, if another program
//! has already made the edit, adopted.

use std::collections::HashMap;

use surehand_core::{
    Cause, Edit, Planned, Present, Refusal, RelPath, Text, Tool,
    edit::{
        TextReplacement,
        patch::{self, FilePatch},
        replace::Replace,
    },
    file_diff::FileDiff,
    plan::{self, PatchStep, WritePlan},
    refusal::{BatchKind, BatchPlace},
};
use surehand_store::SessionId;

use crate::{
    call_progress::CallProgress,
    file_cache::{GatheredFile, PlannedFile},
    session::{PlanBasis, Session},
    undo::UndoPlan,
};

/// An edit that passed the gate. Nothing has been written.
#[derive(Debug)]
#[must_use = "nothing is written before it is committed"]
pub struct EditPlan {
    pub(crate) session: SessionId,
    pub(crate) edit: Edit,
    pub(crate) step: PlanStep,
}

#[derive(Debug)]
pub(crate) enum PlanStep {
    Change(Vec<PlannedFile>),
    /// The file already has this content.
    Nothing(RelPath, Text),
    Undo(UndoPlan),
}

impl EditPlan {
    /// The planned change of each file.
    pub fn changes(&self) -> impl Iterator<Item = &Planned> {
        let files = match &self.step {
            PlanStep::Change(files) => &files[..],
            PlanStep::Undo(undo) => &undo.files[..],
            PlanStep::Nothing(..) => &[],
        };
        files.iter().map(|file| &file.planned)
    }

    /// The effect of the plan, for people: a diff for each file. A move is described once, under its new name.
    pub fn diffs(&self) -> Vec<FileDiff> {
        let is_continued =
            |file: &Planned| self.changes().any(|other| other.origin().is_some_and(|origin| origin.path == *file.path()));
        self.changes().filter(|file| !is_continued(file)).map(Planned::unified_diff).collect()
    }
}

impl Session {
    /// Judges an edit and computes its effect. Nothing is written. If a refusal is shown to the model, call
    /// [`Session::refused`]: only then do its lines count as seen.
    pub fn plan(&mut self, edit: &Edit) -> Result<EditPlan, Refusal> {
        self.begin_call(&CallProgress::default());
        let step = self.plan_on(PlanBasis::Disk, edit)?;
        Ok(EditPlan { session: self.id(), edit: edit.clone(), step })
    }

    /// [`Session::plan`] for the files on disk, or for the versions that the session last knew.
    pub(crate) fn plan_on(&mut self, basis: PlanBasis<'_>, edit: &Edit) -> Result<PlanStep, Refusal> {
        Ok(match edit {
            Edit::Replace(replacement) => PlanStep::Change(vec![self.plan_replace(basis, replacement)?]),
            Edit::ReplaceMany(replacements) => PlanStep::Change(self.plan_replace_many(basis, replacements)?),
            Edit::Lines { path, edits } => {
                self.check_count(edit.tool(), edits.len())?;
                let gathered = self.gather_for_writing(basis, path)?;
                let planned = plan::edit_lines(&self.target(&gathered), edits)?;
                PlanStep::Change(vec![PlannedFile::of(planned, &gathered)])
            }
            Edit::Patch { patch } => PlanStep::Change(self.plan_patch(basis, patch)?),
            Edit::Write { path, content } => self.plan_write(basis, edit, path, content)?,
            Edit::Delete { path } => {
                let gathered = self.gather_by_name(basis, path)?;
                let planned = plan::delete_file(&self.target(&gathered))?;
                PlanStep::Change(vec![PlannedFile::of(planned, &gathered)])
            }
            Edit::Move { from, to } => {
                let gathered = self.gather_by_name(basis, from)?;
                let (to, existing) = self.gather_destination(basis, &gathered, to)?;
                let planned = plan::move_file(&self.target(&gathered), &to, &existing)?;
                PlanStep::Change(vec![PlannedFile::of(planned, &gathered)])
            }
            Edit::Undo(undo) => PlanStep::Undo(self.plan_undo(undo)?),
        })
    }

    /// The destination of a move, with its current content. On a case-insensitive file system, another case of the
    /// file's own name counts as free.
    fn gather_destination(&mut self, basis: PlanBasis<'_>, file: &GatheredFile, to: &str) -> Result<(RelPath, Present), Refusal> {
        let spelled = self.path_of(to)?;
        if self.workspace().root().is_own_name_in_other_letters(&file.path, &spelled) {
            return Ok((spelled, Present::Absent));
        }
        let destination = self.gather_for_writing(basis, to)?;
        Ok((destination.path, destination.present))
    }

    fn plan_replace(&mut self, basis: PlanBasis<'_>, replacement: &TextReplacement) -> Result<PlannedFile, Refusal> {
        let gathered = self.gather_for_writing(basis, &replacement.path)?;
        let planned = plan::edit_file(&self.target(&gathered), &replace(replacement))?;
        Ok(PlannedFile::of(planned, &gathered))
    }

    fn plan_replace_many(&mut self, basis: PlanBasis<'_>, all: &[TextReplacement]) -> Result<Vec<PlannedFile>, Refusal> {
        self.check_count(Tool::MultiEdit, all.len())?;
        let mut batch = BatchFiles::default();
        let mut edits = Vec::with_capacity(all.len());
        for (index, replacement) in all.iter().enumerate() {
            let file = batch.find(&replacement.path, || self.gather_for_writing(basis, &replacement.path));
            edits.push((file.map_err(|refusal| refusal.in_batch(index + 1, all.len()))?, replace(replacement)));
        }
        let targets: Vec<_> = batch.files.iter().map(|gathered| self.target(gathered)).collect();
        let planned = plan::multi_edit(&targets, &edits)?;
        Ok(planned.into_iter().zip(&batch.files).map(|(planned, gathered)| PlannedFile::of(planned, gathered)).collect())
    }

    fn plan_patch(&mut self, basis: PlanBasis<'_>, patch: &str) -> Result<Vec<PlannedFile>, Refusal> {
        let parsed = patch::parse(patch).map_err(|bad| Refusal::of_call(Cause::BadPatch { line: bad.line, why: bad.why }))?;
        self.check_count(Tool::ApplyPatch, parsed.files.len())?;
        let mut batch = BatchFiles::default();
        let mut steps = Vec::with_capacity(parsed.files.len());
        for (index, file) in parsed.files.iter().enumerate() {
            let place = BatchPlace { edit: index + 1, of: parsed.files.len(), kind: BatchKind::Patch { chunk: 0 } };
            let mut find = |path: &str| {
                let gathered = match loses_its_name(file) {
                    true => self.gather_by_name(basis, path),
                    false => self.gather_for_writing(basis, path),
                };
                Ok(batch.add(gathered.map_err(|refusal| refusal.at(place))?))
            };
            let target = find(file.path())?;
            let to = match file {
                FilePatch::Update { move_to: Some(to), .. } => Some(find(to)?),
                _ => None,
            };
            steps.push(PatchStep { file, target, to });
        }
        let targets: Vec<_> = batch.files.iter().map(|gathered| self.target(gathered)).collect();
        let planned = plan::apply_patch(&targets, &steps)?;
        Ok(planned.into_iter().map(|(target, planned)| PlannedFile::of(planned, &batch.files[target])).collect())
    }

    fn plan_write(&mut self, basis: PlanBasis<'_>, edit: &Edit, path: &str, content: &str) -> Result<PlanStep, Refusal> {
        let mut gathered = self.gather_whole(basis, path)?;
        gathered.is_warned = self.is_warned(edit, &gathered.present);
        Ok(match plan::write_file(&self.target(&gathered), content)? {
            WritePlan::Write(planned) => PlanStep::Change(vec![PlannedFile::of(*planned, &gathered)]),
            WritePlan::Same { text } => PlanStep::Nothing(gathered.path, text),
        })
    }

    fn check_count(&self, tool: Tool, edits: usize) -> Result<(), Refusal> {
        let limit = self.limits().batch_edits;
        if edits == 0 {
            return Err(Refusal::of_call(Cause::BadArguments { why: format!("{}: edits is empty", tool.name()) }));
        }
        if edits > limit {
            let (unit, setting) = ("edits in one call", "limits.batch_edits");
            return Err(Refusal::of_call(Cause::TooLarge { unit, size: edits as u64, limit: limit as u64, setting }));
        }
        Ok(())
    }
}

/// The files of an edit, each once in spite of different spellings.
#[derive(Default)]
struct BatchFiles {
    files: Vec<GatheredFile>,
    by_spelling: HashMap<String, usize>,
}

impl BatchFiles {
    /// The index of a file, which is gathered on first use.
    fn find(&mut self, spelling: &str, gather: impl FnOnce() -> Result<GatheredFile, Refusal>) -> Result<usize, Refusal> {
        match self.by_spelling.get(spelling) {
            Some(file) => Ok(*file),
            None => {
                let file = self.add(gather()?);
                self.by_spelling.insert(spelling.to_owned(), file);
                Ok(file)
            }
        }
    }

    fn add(&mut self, gathered: GatheredFile) -> usize {
        self.files.iter().position(|known| known.path == gathered.path).unwrap_or_else(|| {
            self.files.push(gathered);
            self.files.len() - 1
        })
    }
}

fn replace(replacement: &TextReplacement) -> Replace<'_> {
    Replace { old: &replacement.old, new: &replacement.new, all: replacement.all }
}

/// Whether the patch deletes or moves the file.
fn loses_its_name(file: &FilePatch<'_>) -> bool {
    matches!(file, FilePatch::Delete { .. } | FilePatch::Update { move_to: Some(_), .. })
}
