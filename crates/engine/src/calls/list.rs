//! The `list` call: lists the files of a directory.

use serde::Serialize;
use surehand_core::{
    Cause, Done, Refusal, RelPath, Tool,
    outcome::{Listing, SearchScope, SkippedFiles},
};

use crate::{
    disk::walk::{self, FilePaths, Globs, PathTarget, WalkOutcome, WalkVisitor, path_target},
    session::Session,
};

/// Lists files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ListCall {
    /// A directory or file in any spelling; `None` means the whole workspace.
    pub path: Option<String>,
    /// Only files that match this pattern.
    pub glob: Option<String>,
    /// The maximum number of lines.
    pub limit: Option<usize>,
}

const DEFAULT_LIMIT: usize = 200;

pub(super) fn list(session: &mut Session, call: &ListCall) -> Result<Done, Refusal> {
    let limit = call.limit.unwrap_or(DEFAULT_LIMIT).min(session.limits().read_lines);
    let workspace = session.workspace().clone();
    let path_target = path_target(workspace.root(), call.path.as_deref().unwrap_or_default())?;
    let (paths, left_out) = match &path_target {
        PathTarget::File(path) => (vec![path.clone()], SkippedFiles::default()),
        PathTarget::Dir(below) => {
            let walked = walk(Tool::ListFiles, session, below.as_ref(), call.glob.as_deref(), FilePaths::default)?;
            let mut paths: Vec<RelPath> = walked.visitors.into_iter().flat_map(|paths| paths.0).collect();
            paths.sort_unstable();
            (paths, walked.left_out)
        }
    };
    let scope = SearchScope { area: path_target.area(), glob: call.glob.clone() };
    Ok(Done::Listed(Listing::of(&paths, scope, limit, left_out)))
}

pub(super) fn walk<V: WalkVisitor>(
    tool: Tool,
    session: &Session,
    below: Option<&RelPath>,
    glob: Option<&str>,
    visitor: impl Fn() -> V + Sync,
) -> Result<WalkOutcome<V>, Refusal> {
    let globs = glob.map_or_else(|| Ok(Globs::all()), Globs::of);
    let bad = |error| Refusal::of_call(Cause::BadArguments { why: format!("{}: glob: {error}", tool.name()) });
    let (progress, root) = (&session.progress, session.workspace().root());
    let mut walked = walk::walk_on(progress, root, below, &globs.map_err(bad)?, visitor).map_err(|error| {
        let why = format!("cannot list it: {error}");
        Refusal::of_spelling(below.map_or(".", RelPath::as_str), Cause::Io { why })
    })?;
    check_is_wanted(session)?;
    walked.left_out.sort();
    Ok(walked)
}

pub(super) fn check_is_wanted(session: &Session) -> Result<(), Refusal> {
    if session.progress.is_stopped() {
        return Err(Refusal::of_call(Cause::Io { why: "the call was cancelled".to_owned() }));
    }
    Ok(())
}
