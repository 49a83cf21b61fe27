//! The JSON for `--json` and for the page: entries of the log, sessions, rescued files, blame, the work of a session.

use std::{ops::Range, path::Path};

use serde_json::{Value, json};
use surehand_core::{FileState, FileStatus, LineNo, RelPath, RepoState, TaskList, file_diff::FileDiff};
use surehand_store::{CheckpointInfo, FileEvent, Incident, IncidentKind, KnownSession};

use crate::{
    activity::Activity,
    attribution::{Blame, LeftWork, LineAuthor, SessionCommit, SessionCommitPlan, SessionFile, WorkSide},
    change_log::{LoggedChange, NetChange},
    repo_state::rfc3339,
    rescued::{Rescue, RescuePlace},
    restore::{RestoreAct, RestorePlan, Restored},
    session_names::SessionNames,
};

/// An entry of the log, without diffs.
pub fn activity(entry: &Activity) -> Value {
    let mut json = match entry {
        Activity::Change(logged) => change(logged),
        Activity::Checkpoint(info) => checkpoint(info),
        Activity::Incident(noticed) => incident(noticed),
        Activity::Rescue(kept) => rescue(kept),
    };
    json["kind"] = entry.kind().name().into();
    json["id"] = entry.id().into();
    json
}

/// An entry of the log with its diffs. A file that cannot be compared has the diff `null`.
pub fn activity_with_diffs(entry: &Activity, diffs: &[(RelPath, Option<FileDiff>)]) -> Value {
    let mut json = activity(entry);
    let diff =
        |(path, diff): &(RelPath, Option<FileDiff>)| json!({ "path": path, "diff": diff.as_ref().map(ToString::to_string) });
    json["diffs"] = diffs.iter().map(diff).collect();
    json
}

fn incident(Incident { at, session, path, kind, .. }: &Incident) -> Value {
    match kind {
        IncidentKind::Refused { tool, code, repeat } => {
            json!({ "at": rfc3339(*at), "session": session, "tool": tool, "path": path, "code": code, "repeat": repeat })
        }
        IncidentKind::Outside { before, after } => {
            json!({ "at": rfc3339(*at), "noticed_by": session, "path": path, "before": before, "after": after })
        }
        IncidentKind::RescueDropped { version, .. } => {
            json!({ "at": rfc3339(*at), "session": session, "path": path, "dropped": true, "version": version })
        }
    }
}

fn change(change: &LoggedChange) -> Value {
    let file = |file: &FileEvent| json!({ "path": file.path, "moved_to": file.moved_to, "before": file.before, "after": file.after, "undoes": file.undoes });
    json!({
        "change": change.change,
        "at": rfc3339(change.at),
        "session": change.session,
        "tool": change.tool,
        "undone": change.is_undone,
        "files": change.files.iter().map(file).collect::<Vec<_>>(),
    })
}

/// A rescued file, in the state directory or in the store.
pub fn rescue(rescue: &Rescue) -> Value {
    let mut json = json!({ "id": rescue.id, "at": rfc3339(rescue.at), "path": rescue.path });
    match &rescue.place {
        RescuePlace::File { path, size } => {
            (json["file"], json["size"], json["dropped"]) = (path.to_string_lossy().into(), (*size).into(), false.into());
        }
        RescuePlace::Store(version) => (json["version"], json["dropped"]) = (json!(version), true.into()),
    }
    json
}

/// A checkpoint, without its files.
pub fn checkpoint(checkpoint: &CheckpointInfo) -> Value {
    json!({
        "checkpoint": checkpoint.id,
        "name": checkpoint.name,
        "at": rfc3339(checkpoint.at),
        "until": rfc3339(checkpoint.until),
        "session": checkpoint.session,
        "occasion": checkpoint.occasion,
        "commit": checkpoint.commit,
        "files": checkpoint.files,
        "took_ms": checkpoint.took,
        "not_kept": checkpoint.not_kept,
    })
}

/// A session with the files that it has seen, and those of them that have changed since.
pub fn session(session: &KnownSession, name: &str, seen: &[RelPath], stale: &[RelPath]) -> Value {
    json!({
        "session": session.id,
        "name": name,
        "client": SessionNames::client(&session.id),
        "last_active": session.last_active.map(rfc3339),
        "changes": session.changes,
        "seen": seen,
        "stale": stale,
    })
}

/// The touched files and the open tasks.
pub fn state(state: &RepoState) -> Value {
    let paths = |fits: &dyn Fn(&FileState) -> bool| -> Vec<String> {
        state.files.iter().filter(|file| fits(file)).map(|file| file.path.to_string()).collect()
    };
    json!({
        "work_dir": state.work_dir,
        "story_id": state.tasks.story,
        "files": {
            "created": paths(&|file| file.status == FileStatus::Created),
            "modified": paths(&|file| file.status == FileStatus::Modified),
            "deleted": paths(&|file| file.status == FileStatus::Deleted),
            "unchanged": state.files.iter().filter(|file| file.status == FileStatus::Unchanged).count(),
            "changed_outside": paths(&|file| file.changed_outside),
        },
        "open_tasks": state.tasks.open(),
    })
}

/// The tasks of a story.
pub fn tasks(list: &TaskList) -> Value {
    json!({ "story_id": list.story, "tasks": list.tasks, "tasks_of_others": list.of_others })
}

/// The net change of a file with its diff, in the workspace with this root.
pub fn net_change(root: &Path, file: &NetChange, diff: &FileDiff) -> Value {
    json!({
        "path": file.path_after,
        "from": file.path_before,
        "before": file.before,
        "after": file.after,
        "diff": diff.to_string(),
        "workspace": root.to_string_lossy(),
    })
}

/// The work of a session on a file, in the workspace with this root.
pub fn session_file(root: &Path, file: &SessionFile, names: &SessionNames) -> Value {
    let version = |side: &Option<WorkSide>| side.as_ref().map(|side| side.content.version());
    json!({
        "path": file.path_after,
        "from": file.path_before,
        "before": version(&file.before),
        "after": version(&file.after),
        "diff": file.diff().to_string(),
        "left": left_work(file, names),
        "workspace": root.to_string_lossy(),
    })
}

/// The work of a session on a file that is left out.
fn left_work(file: &SessionFile, names: &SessionNames) -> Value {
    let lines = |lines: &Range<usize>| (!lines.is_empty()).then(|| json!({ "start": lines.start + 1, "end": lines.end }));
    let left = |left: &LeftWork| {
        json!({
            "lines": lines(&left.lines),
            "removed": lines(&left.removed),
            "why": left.why,
            "others": left.others.iter().map(|other| author(other, names)).collect::<Vec<_>>(),
        })
    };
    file.left.iter().map(left).collect()
}

/// The content of a session's commit. Without `commit`, a plan.
pub fn session_commit(
    plan: &SessionCommitPlan,
    commit: Option<&SessionCommit>,
    patch: Option<&str>,
    names: &SessionNames,
) -> Value {
    let file = |file: &SessionFile| {
        let diff = file.diff();
        json!({ "path": file.path_after, "from": file.path_before, "added": diff.added(), "removed": diff.removed() })
    };
    let left = |file: &SessionFile| json!({ "path": file.path_after, "left": left_work(file, names) });
    json!({
        "commit": commit.map(|commit| &commit.id),
        "files": plan.files.iter().map(file).collect::<Vec<_>>(),
        "left": plan.left.iter().map(left).collect::<Vec<_>>(),
        "committed": commit.map(|commit| &commit.files),
        "patch": patch,
    })
}

/// The authors of these lines, given as sorted ranges of indexes.
pub fn blame(blame: &Blame, wanted: &[Range<usize>], names: &SessionNames) -> Value {
    let run = |(lines, by): (Range<usize>, &LineAuthor)| {
        let text: Vec<&str> = lines.clone().map(|line| blame.text.line(LineNo::at_index(line))).collect();
        let mut json = author(by, names);
        (json["start"], json["end"], json["lines"]) = (json!(lines.start + 1), json!(lines.end), json!(text));
        json
    };
    json!({
        "path": blame.path,
        "total_lines": blame.text.line_count(),
        "removed_by": blame.removed_by.as_ref().map(|by| author(by, names)),
        "runs": blame.runs(wanted).map(run).collect::<Vec<_>>(),
    })
}

fn author(by: &LineAuthor, names: &SessionNames) -> Value {
    match by {
        LineAuthor::Session { session, tool, change, at } => {
            let command = tool.strip_prefix(FileEvent::COMMAND);
            let kind = if command.is_some() { "command" } else { "session" };
            json!({
                "by": kind, "session": session, "name": names.name(session), "tool": tool, "command": command,
                "change": change, "at": rfc3339(*at),
            })
        }
        LineAuthor::Outside { by } => json!({ "by": "outside", "at": by.map(rfc3339) }),
        LineAuthor::Commit(commit) => json!({
            "by": "commit",
            "commit": commit.as_ref().map(|commit| &commit.id),
            "author": commit.as_ref().map(|commit| &commit.author),
            "summary": commit.as_ref().map(|commit| &commit.summary),
            "at": commit.as_ref().map(|commit| rfc3339(commit.at)),
        }),
    }
}

/// The plan of a restore, with its result if it was carried out.
pub fn restore(plan: &RestorePlan, restored: Option<&Restored>) -> Value {
    let file = |path: &RelPath, act: RestoreAct| json!({ "path": path, "act": act.name().replace(' ', "_") });
    let mut json = json!({
        "to": rfc3339(plan.moment),
        "checkpoint": plan.checkpoint.as_ref().map(|checkpoint| &checkpoint.id),
        "before": plan.before,
        "files": plan.files.iter().map(|planned| file(&planned.path, planned.act)).collect::<Vec<_>>(),
        "left": plan.left,
        "restored": restored.is_some(),
    });
    if let Some(restored) = restored {
        json["changes"] = json!(restored.changes);
        json["done"] = restored.files.iter().map(|(path, act)| file(path, *act)).collect();
        json["failed"] = json!(restored.failed);
    }
    json
}
