//! What happened without anybody asking, in words.

use crate::{
    notice::{ChangeAuthor, ChangedFile, Notice},
    path::RelPath,
};

/// One line to tell.
pub fn notice(notice: &Notice) -> String {
    match notice {
        Notice::Rescued { path, to } => {
            format!(
                "another program wrote into {path} while it was being replaced; what it wrote is kept in {to}, and is not in {path}"
            )
        }
        Notice::Completed { paths } => format!("a change that a crash interrupted was complete: {}", list(paths)),
        Notice::TakenBack { paths, kept } if kept.is_empty() => {
            format!("a change that a crash interrupted was taken back, nothing of it remains: {}", list(paths))
        }
        Notice::TakenBack { paths, kept } => format!(
            "a change that a crash interrupted was taken back ({}), but for what somebody has changed since, which stays as it is: {}",
            list(paths),
            list(kept)
        ),
        Notice::NotRecovered { why } => format!("what a crash left could not be settled yet ({why}); it is tried again at the next start"),
        Notice::ChangedOutside { files } => {
            format!("changed since you read {}: {}", if files.len() == 1 { "it" } else { "them" }, changed(files))
        }
        Notice::NotWatching { why } => {
            format!("Surehand cannot watch this workspace ({why}); it looks at the files themselves instead")
        }
        Notice::StateLost => {
            "Surehand's state directory was removed while in use; it was made anew, and what is read from here on is forgotten when this process ends".to_owned()
        }
        Notice::RootReplaced => {
            "the directory of this workspace was removed and made again; nothing that was read before counts, so read files again before you edit them".to_owned()
        }
        Notice::StateSetAside { to } => {
            format!(
                "Surehand's state was damaged and begun anew (the damaged file is {to}); what was read before counts no longer"
            )
        }
        Notice::RepoStateRebuilt => {
            "the record of what was done to files was lost; the list of files was made anew from the files that are there, and there are no tasks".to_owned()
        }
        Notice::NotRemembered { why } => format!("Surehand could not write its state ({why}); files are not affected"),
    }
}

fn changed(files: &[ChangedFile]) -> String {
    const MAX: usize = 20;
    let name = |file: &ChangedFile| {
        let deleted = if file.deleted { Some("gone") } else { None };
        match [deleted, by(file.by)].into_iter().flatten().collect::<Vec<_>>().join(" ") {
            said if said.is_empty() => file.path.to_string(),
            said => format!("{} ({said})", file.path),
        }
    };
    let mut text = files.iter().take(MAX).map(name).collect::<Vec<_>>().join(", ");
    if files.len() > MAX {
        text.push_str(&format!(" and {} more", files.len() - MAX));
    }
    text
}

/// Who did something, if that is known.
pub(super) fn by(by: ChangeAuthor) -> Option<&'static str> {
    match by {
        ChangeAuthor::Command => Some("by your command"),
        ChangeAuthor::AnotherSession => Some("by another session"),
        ChangeAuthor::CommandOfAnotherSession => Some("by a command of another session"),
        ChangeAuthor::Unknown => None,
    }
}

fn list(paths: &[RelPath]) -> String {
    const MAX: usize = 10;
    let mut text = paths.iter().take(MAX).map(RelPath::as_str).collect::<Vec<_>>().join(", ");
    if paths.len() > MAX {
        text.push_str(&format!(" and {} more", paths.len() - MAX));
    }
    text
}
