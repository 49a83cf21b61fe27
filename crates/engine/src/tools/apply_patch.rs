//! `apply_patch`: changes of several files in one text, all or none.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{
    Cause, Refusal,
    edit::patch::{self, FilePatch},
    plan::{self, PatchStep},
    refusal::{BatchKind, BatchPlace},
    render::Numbers,
};

use super::{arguments, change, check_count};
use crate::{
    files::Gathered,
    session::{Session, Success},
};

/// Apply a patch to one or more files, all or nothing: the `*** Begin Patch` format (`*** Add File:`, `*** Update File:`, `*** Delete File:`, `*** Move to:`, chunks
/// under `@@` lines) or a unified diff. Every file it changes must have been read in this session and be unchanged since. Lines of context must match exactly and name
/// one place; put the function or class after `@@` where they do not.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyPatch {
    /// The patch.
    patch: String,
}

pub fn run(session: &mut Session, call: &Value) -> Result<Success, Refusal> {
    let call: ApplyPatch = arguments("apply_patch", call)?;
    let parsed = patch::parse(&call.patch).map_err(|bad| Refusal::of_call(Cause::BadPatch { line: bad.line, why: bad.why }))?;
    check_count(session, "apply_patch", parsed.files.len())?;
    let done = session.change("apply_patch", |session| {
        let batch = gather(session, &parsed.files)?;
        let targets: Vec<_> = batch.files.iter().map(|gathered| session.target(gathered)).collect();
        let planned = plan::apply_patch(&targets, &batch.steps)?;
        Ok(planned.into_iter().map(|(target, planned)| (planned, batch.files[target].facts())).collect())
    })?;
    Ok(change::say_all(session, &done, Numbers::Plain))
}

struct Batch<'a> {
    /// Each once, however it is spelled.
    files: Vec<Gathered>,
    steps: Vec<PatchStep<'a>>,
}

fn gather<'a>(session: &mut Session, files: &'a [FilePatch<'a>]) -> Result<Batch<'a>, Refusal> {
    let mut batch = Batch { files: Vec::new(), steps: Vec::with_capacity(files.len()) };
    for (index, file) in files.iter().enumerate() {
        let place = BatchPlace { edit: index + 1, of: files.len(), kind: BatchKind::Patch { chunk: 0 } };
        let mut find = |path: &str| {
            let gathered = if takes_away(file) { session.gather_by_name(path) } else { session.gather_for_writing(path) };
            let gathered = gathered.map_err(|refusal| refusal.at(place))?;
            Ok(batch.files.iter().position(|known| known.path == gathered.path).unwrap_or_else(|| {
                batch.files.push(gathered);
                batch.files.len() - 1
            }))
        };
        let target = find(file.path())?;
        let to = match file {
            FilePatch::Update { move_to: Some(to), .. } => Some(find(to)?),
            _ => None,
        };
        batch.steps.push(PatchStep { file, target, to });
    }
    Ok(batch)
}

/// Whether the file loses the name that it is called by.
fn takes_away(file: &FilePatch<'_>) -> bool {
    matches!(file, FilePatch::Delete { .. } | FilePatch::Update { move_to: Some(_), .. })
}
