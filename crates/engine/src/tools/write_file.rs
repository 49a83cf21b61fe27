//! `write_file`: a whole file.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use surehand_core::{
    Content, Planned, Refusal,
    plan::{self, WritePlan},
    render::{self, Numbers},
};

use super::{arguments, change};
use crate::session::{Session, Success};

/// Write a whole file. A new file needs nothing; over an existing file the whole of it must have been read in this session and be unchanged since.
/// Writing what is there already changes nothing. For a change of a part, use edit_file or edit_lines.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    /// Path of the file, relative to the workspace root or absolute. Missing directories are made.
    path: String,
    /// The whole content.
    content: String,
}

/// From this rewrite on it is said.
const SAID_FROM: u32 = 3;

pub fn run(session: &mut Session, given: &Value) -> Result<Success, Refusal> {
    let call: WriteFile = arguments("write_file", given)?;
    let mut same = None;
    let done = session.change("write_file", |session| {
        let mut gathered = session.gather_whole(&call.path)?;
        gathered.is_warned = session.is_warned("write_file", given, &gathered.present);
        match plan::write_file(&session.target(&gathered), &call.content)? {
            WritePlan::Write(planned) => Ok(vec![(*planned, gathered.facts())]),
            WritePlan::Same { text } => {
                same = Some((gathered.path, text));
                Ok(Vec::new())
            }
        }
    })?;
    if let Some((path, text)) = same {
        session.show(&path, &text, &surehand_core::LineSet::whole(text.line_count()));
        let times = session.count_rewrite(&path, true);
        let mut said =
            format!("{}: {path} (version {}); nothing was written.\n", render::change::SAME_CONTENT, text.version().short());
        let mut result = Map::from_iter([
            ("noop".to_owned(), json!(true)),
            ("message".to_owned(), json!(render::change::SAME_CONTENT)),
            ("path".to_owned(), json!(path)),
            ("version".to_owned(), json!(text.version())),
        ]);
        say_churn(&mut said, &mut result, path.as_str(), times);
        return Ok(Success { text: said, result, paths: vec![path], ..Success::default() });
    }
    let mut success = change::say_one(session, &done, Numbers::Plain);
    if let Some(planned) = done.planned.first().filter(|planned| !planned.is_new()) {
        let times = session.count_rewrite(planned.path(), is_alike(planned));
        say_churn(&mut success.text, &mut success.result, planned.path().as_str(), times);
    }
    Ok(success)
}

fn say_churn(text: &mut String, result: &mut Map<String, Value>, path: &str, times: u32) {
    if times >= SAID_FROM {
        text.push_str(&render::change::churn(path, times));
        result.insert("rewrites".to_owned(), json!(times));
    }
}

/// Whether a rewrite left most lines as they were.
fn is_alike(planned: &Planned) -> bool {
    let (Some(Content::Text(base)), Some(text)) = (planned.base(), planned.text()) else { return false };
    let kept: usize = planned.map().kept().map(|(run, _)| run.len()).sum();
    let longer = base.line_count().max(text.line_count());
    // Of a file of one or two lines hardly anything is left after any change: there every rewrite counts.
    longer <= 2 || kept * 4 >= longer * 3
}
