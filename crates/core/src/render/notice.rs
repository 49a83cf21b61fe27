//! Renders each notice as one line.

use crate::{
    notice::{ChangeAuthor, ChangedFile, LostClaimOn, Notice},
    path::RelPath,
    render::{self, join_first},
};

/// A notice as one line.
pub fn notice(notice: &Notice) -> String {
    notice_naming(notice, RelPath::to_string)
}

/// Like [`notice`], with each path rendered by `name`.
pub(super) fn notice_naming(notice: &Notice, name: impl Fn(&RelPath) -> String) -> String {
    match notice {
        Notice::Rescued { path, to } => {
            let path = name(path);
            format!(
                "another program wrote into {path} while it was being replaced; its text is kept in {to}, and is not in {path}"
            )
        }
        Notice::Completed { paths } => format!("a change that a crash interrupted was complete: {}", list(paths, name)),
        Notice::TakenBack { paths, kept } if kept.is_empty() => {
            format!("a change that a crash interrupted was rolled back, nothing of it remains: {}", list(paths, name))
        }
        Notice::TakenBack { paths, kept } => format!(
            "a change that a crash interrupted was rolled back ({}), except in files that another program has changed since: {}",
            list(paths, &name),
            list(kept, &name)
        ),
        Notice::NotRecovered { why } => format!("a change that a crash interrupted could not be recovered yet ({why}); the next start tries again"),
        Notice::ChangedOutside { files } => {
            format!("changed since you read {}: {}", if files.len() == 1 { "it" } else { "them" }, changed(files, name))
        }
        Notice::NotWatching { why } => {
            format!("Surehand cannot watch this workspace ({why}); it checks the files themselves instead")
        }
        Notice::StateLost => {
            "Surehand's state directory was removed while in use and has been created again; reads from now on are forgotten when this process ends".to_owned()
        }
        Notice::RootReplaced => {
            "the directory of this workspace was removed and created again; earlier reads no longer count, so read files again before you edit them".to_owned()
        }
        Notice::StateSetAside { to } => {
            format!(
                "Surehand's state was damaged and has been replaced (the damaged file is {to}); earlier reads no longer count"
            )
        }
        Notice::RepoStateRebuilt => {
            "the record of changes was lost; the list of files was rebuilt from the files on disk, and there are no tasks".to_owned()
        }
        Notice::Claimed { path, pattern, by } => {
            let path = name(path);
            format!("{by} has claimed {pattern}, so {path} is its work at present; agree with it, or work on something else")
        }
        Notice::ClaimLost { what, by } => claim_lost(what, by.as_deref()),
        Notice::Collides { collision } => render::collision::collision(collision).unwrap_or_default(),
        Notice::NotRemembered { why } => format!("Surehand could not write its state ({why}); files are not affected"),
    }
}

fn claim_lost(what: &LostClaimOn, by: Option<&str>) -> String {
    match (what, by) {
        (LostClaimOn::Task(task), Some(by)) => {
            format!("shared task {task} is no longer yours, {by} has taken it over; stop working on it")
        }
        (LostClaimOn::Task(task), None) => {
            format!("shared task {task} is no longer yours, it was taken back or closed; stop working on it")
        }
        (LostClaimOn::Paths(pattern), Some(by)) => format!("your claim on {pattern} has ended, {by} has these paths now"),
        (LostClaimOn::Paths(pattern), None) => format!("your claim on {pattern} has ended; claim it again if you still need it"),
    }
}

fn changed(files: &[ChangedFile], name: impl Fn(&RelPath) -> String) -> String {
    const MAX: usize = 20;
    let line = |file: &ChangedFile| {
        let deleted = if file.deleted { Some("gone") } else { None };
        match [deleted, by(file.by)].into_iter().flatten().collect::<Vec<_>>().join(" ") {
            said if said.is_empty() => name(&file.path),
            said => format!("{} ({said})", name(&file.path)),
        }
    };
    join_first(files.iter().map(line), MAX, "more")
}

/// The author of a change as a phrase; `None` if unknown.
pub(super) fn by(by: ChangeAuthor) -> Option<&'static str> {
    match by {
        ChangeAuthor::Command => Some("by your command"),
        ChangeAuthor::AnotherSession => Some("by another session"),
        ChangeAuthor::CommandOfAnotherSession => Some("by a command of another session"),
        ChangeAuthor::Unknown => None,
    }
}

fn list(paths: &[RelPath], name: impl Fn(&RelPath) -> String) -> String {
    const MAX: usize = 10;
    join_first(paths.iter().map(name), MAX, "more")
}
