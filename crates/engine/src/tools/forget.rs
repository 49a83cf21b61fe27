//! `forget`: what left the context no longer counts as seen.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use surehand_core::{Refusal, render};

use super::arguments;
use crate::session::{Session, Success};

/// Say that what you had read is no longer in your context (after a compaction, truncation or reset): all of it, or the files in `paths`.
/// Before the next edit of a forgotten file, read it again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Forget {
    /// The files to forget; without it, everything.
    paths: Option<Vec<String>>,
}

pub fn run(session: &mut Session, call: &Value) -> Result<Success, Refusal> {
    let call: Forget = arguments("forget", call)?;
    let workspace = session.workspace().clone();
    let Some(paths) = call.paths else {
        session.reset();
        let text = "Everything that was read in this session is forgotten: read_file before the next edit.\n".to_owned();
        return Ok(Success { text, ..Success::default() });
    };
    let paths = paths.iter().map(|path| session.path_of(path)).collect::<Result<Vec<_>, _>>()?;
    let forgotten = session.tracker().map_or_else(Vec::new, |tracker| tracker.forget(&workspace, &paths));
    let names: Vec<&str> = forgotten.iter().map(|path| path.as_str()).collect();
    let text = if names.is_empty() {
        "None of these files had been read in this session.\n".to_owned()
    } else {
        format!("Forgotten ({}): {}. read_file before the next edit.\n", render::count(names.len(), "file"), names.join(", "))
    };
    let result = Map::from_iter([("forgotten".to_owned(), json!(names))]);
    Ok(Success { text, result, ..Success::default() })
}
