//! All calls of an answer were written before the first of them was carried out. What comes to light on the way counts as read for the
//! session, but the model has not seen it yet: here such calls are told from those that the model could answer for.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use surehand_engine::{
    Reply, Session,
    core::{ContentHash, RelPath},
};

use crate::model::Call;

/// What the model knew when it wrote an answer, and what has come to light since.
#[derive(Debug, Default)]
pub struct Blind {
    /// The files that are to be written over.
    whole: HashMap<RelPath, Whole>,
    /// Files that turned out to be others than the model thought.
    stale: HashSet<RelPath>,
    has_failed: bool,
}

/// What is known of a file that is to be written over.
#[derive(Debug)]
struct Whole {
    /// The version that the session has seen in whole.
    version: Option<ContentHash>,
    /// Whether the model has not: it was shown, or somebody else made it, while the answer was carried out.
    is_news: bool,
}

/// Which files a call would change.
enum Targets {
    Files(Vec<RelPath>),
    /// It is for the tool to find out.
    Unknown,
}

impl Blind {
    /// Before an answer is carried out.
    pub fn before(session: &mut Session, calls: &[Call]) -> Self {
        let mut whole = HashMap::new();
        for call in calls.iter().filter(|call| call.name == "write_file") {
            let Ok(arguments) = serde_json::from_str(&call.arguments) else { continue };
            for path in named(session, &arguments, &["path"]) {
                let version = seen_in_whole(session, &path);
                whole.insert(path, Whole { version, is_news: false });
            }
        }
        Self { whole, ..Self::default() }
    }

    /// Why the next call must not be carried out: it would change what the model has not seen.
    pub fn objection(&mut self, session: &mut Session, tool: &str, arguments: &Value) -> Option<String> {
        self.look(session, |whole, now| whole.is_news |= whole.version != now);
        let is_unseen = |path: &RelPath| {
            let is_news = || self.whole.get(path).is_some_and(|whole| whole.is_news && whole.version.is_some());
            self.stale.contains(path) || tool == "write_file" && is_news() && session.workspace().config().policy.require_read
        };
        let path = match targets(session, tool, arguments)? {
            Targets::Unknown => self.stale.iter().next().cloned(),
            Targets::Files(files) => files.into_iter().find(is_unseen),
        }?;
        Some(format!(
            "{tool} was not carried out: you had not seen what {path} holds now when you wrote this call. You see it now: decide anew."
        ))
    }

    /// Why the run is not done: the model says so without knowing what came of its other calls.
    pub fn is_done_too_early(&self) -> Option<String> {
        let why = "Not done: another call of the same answer has failed. See what came of it, then go on or call done.";
        self.has_failed.then(|| why.to_owned())
    }

    /// A call has come to this.
    pub fn saw(&mut self, session: &mut Session, tool: &str, reply: &Reply) {
        let (result, refusal) = (&reply.result, &reply.result["refusal"]);
        self.has_failed |= reply.is_error || result["success"] == false;
        if matches!(refusal["code"].as_str(), Some("stale" | "deleted" | "anchor_mismatch")) {
            self.stale.extend(path_in(refusal));
        }
        if reply.is_error || !result["change"].is_string() || tool == crate::command::NAME {
            return;
        }
        // What the model made of a file it knows. But an edit that was made in spite of somebody else's change has left that in the file.
        self.look(session, |_, _| ());
        let Some(whole) = path_in(result).and_then(|path| self.whole.get_mut(&path)) else { return };
        let has_others = result["repaired"] == true || !result["rebased"].is_null();
        whole.is_news = has_others || whole.is_news && tool != "write_file";
    }

    /// Looks at what the session has seen by now.
    fn look(&mut self, session: &mut Session, judge: impl Fn(&mut Whole, Option<ContentHash>)) {
        for (path, whole) in &mut self.whole {
            let now = seen_in_whole(session, path);
            judge(whole, now);
            whole.version = now;
        }
    }
}

fn seen_in_whole(session: &mut Session, path: &RelPath) -> Option<ContentHash> {
    let workspace = session.workspace().clone();
    let view = session.tracker()?.view(&workspace, path)?;
    view.is_whole().then(|| view.version())
}

fn path_in(object: &Value) -> Option<RelPath> {
    serde_json::from_value(object["path"].clone()).ok()
}

fn targets(session: &Session, tool: &str, arguments: &Value) -> Option<Targets> {
    match tool {
        "edit_file" | "edit_lines" | "write_file" | "delete_file" => Some(Targets::Files(named(session, arguments, &["path"]))),
        "move_file" => Some(Targets::Files(named(session, arguments, &["from", "to"]))),
        "multi_edit" | "apply_patch" => Some(Targets::Unknown),
        _ => None,
    }
}

/// The files under these names, however they are spelled. What is no path is left to the tool.
fn named(session: &Session, arguments: &Value, names: &[&str]) -> Vec<RelPath> {
    names.iter().filter_map(|name| session.path_of(arguments[name].as_str()?).ok()).collect()
}
