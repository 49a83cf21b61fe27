//! Formats the work of a session, and the parts of it that are left out.

use surehand_engine::{
    SessionId, Workspace,
    attribution::{LeftWhy, LeftWork, LineAuthor, SessionFile, SessionWorkError, WorkBase},
    render::count,
};

use super::entry_format::EntryFormat;

/// Whether a session has any work that is not left out.
pub(super) fn has_work(workspace: &Workspace, session: &SessionId, base: WorkBase) -> Result<bool, SessionWorkError> {
    Ok(workspace.session_work(session, base)?.files.iter().any(SessionFile::is_changed))
}

impl EntryFormat {
    /// The parts of a file that are left out, one line each.
    pub(super) fn left(&self, file: &SessionFile) -> Vec<String> {
        let path = self.local_paths.shown(file.path_after.as_str());
        file.left.iter().map(|left| format!("{path}{}: {}", place(left), self.why(left))).collect()
    }

    fn why(&self, left: &LeftWork) -> String {
        let others = self.others(left);
        let why = match left.why {
            LeftWhy::ReplacesOthers => format!("this replaced lines of {others} that are not committed"),
            LeftWhy::ReplacedByOthers => format!("{others} changed this since"),
            LeftWhy::AmongOthers => format!("this is among lines of {others} that are not committed"),
            LeftWhy::NotText => format!("it has no lines and {others} changed it, too"),
            LeftWhy::Removed => format!("{others} removed or renamed it since"),
            LeftWhy::Recreated => format!("{others} had a part in removing it and making it again"),
            LeftWhy::Moved => return format!("its new name is left out, because {others} renamed it, too"),
            LeftWhy::NotCommitted => "others made the file and it is not committed; commit it first".to_owned(),
            LeftWhy::Ignored => "git ignores it".to_owned(),
            LeftWhy::Staged => "something else is staged in the same place; commit or unstage that first".to_owned(),
            LeftWhy::Converted => "git stores it in another form, in which its lines cannot be found".to_owned(),
            LeftWhy::NotKept => "its earlier content is no longer kept".to_owned(),
            LeftWhy::NotAFile => "it is a link or too large a file now".to_owned(),
            LeftWhy::Submodule => "it belongs to a submodule or another repository; commit it there".to_owned(),
            _ => return "left out".to_owned(),
        };
        format!("left out, because {why}")
    }

    fn others(&self, left: &LeftWork) -> String {
        let mut names: Vec<String> = Vec::new();
        for author in &left.others {
            let name = match author {
                LineAuthor::Session { session, .. } => self.names.name(session),
                LineAuthor::Outside { .. } => "a person or another program".to_owned(),
                LineAuthor::Commit(_) => "a commit".to_owned(),
            };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        match names.split_last() {
            None => "others".to_owned(),
            Some((only, [])) => only.clone(),
            Some((last, first)) => format!("{} and {last}", first.join(", ")),
        }
    }
}

/// The lines of a file that are left out.
fn place(left: &LeftWork) -> String {
    let removed = match left.removed.len() {
        0 => None,
        lines => Some(format!("the removal of {}", count(lines, "line"))),
    };
    let lines = match left.lines.len() {
        0 => None,
        1 => Some(format!("line {}", left.lines.end)),
        _ => Some(format!("lines {}-{}", left.lines.start + 1, left.lines.end)),
    };
    let places: Vec<String> = lines.into_iter().chain(removed).collect();
    if places.is_empty() { String::new() } else { format!(", {}", places.join(" and ")) }
}
