//! `list_files`: the files of the workspace by name.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use surehand_core::{
    Refusal, RelPath,
    render::{
        self,
        scope::{LeftOut, Scope},
    },
};

use super::{Number, arguments, limit, walk};
use crate::{
    disk::walk::{Entry, Kind, Place, Visitor, place},
    session::{Session, Success},
};

/// List the files of the workspace, or below `path`, one per line. Hidden files are listed; what .gitignore or .ignore names is not, nor are links.
/// Where there are too many, directories come as counts. Names only: before an edit, read the file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListFiles {
    /// Directory to list, relative to the workspace root or absolute; without it, the whole workspace.
    path: Option<String>,
    /// Only files that match: `*.rs`, `src/**`, `*.{js,ts}`, or `!*.min.js` for all others. One with a slash is relative to the workspace root.
    glob: Option<String>,
    /// At most so many lines; 200 by default.
    limit: Option<Number>,
}

const DEFAULT_LIMIT: usize = 200;

pub fn run(session: &mut Session, call: &Value) -> Result<Success, Refusal> {
    let call: ListFiles = arguments("list_files", call)?;
    let limit = limit("list_files", call.limit, DEFAULT_LIMIT, session)?;
    let workspace = session.workspace().clone();
    let place = place(workspace.root(), call.path.as_deref().unwrap_or_default())?;
    let (paths, left_out) = match &place {
        Place::File(path) => (vec![path.clone()], LeftOut::default()),
        Place::Dir(below) => {
            let walked = walk("list_files", session, below.as_ref(), call.glob.as_deref(), Names::default)?;
            let mut paths: Vec<RelPath> = walked.visitors.into_iter().flat_map(|names| names.0).collect();
            paths.sort_unstable();
            (paths, walked.left_out)
        }
    };
    let scope = Scope { area: place.area(), glob: call.glob.as_deref() };
    let listing = render::list::list(&paths, scope, limit, &left_out);
    let folded: Vec<Value> = listing.folded.iter().map(|(path, files)| json!({ "path": path, "files": files })).collect();
    let result = Map::from_iter([
        ("cut".to_owned(), json!(listing.files.len() < paths.len())),
        ("files".to_owned(), json!(listing.files)),
        ("directories".to_owned(), json!(folded)),
        ("total".to_owned(), json!(paths.len())),
    ]);
    Ok(Success { text: listing.text, result, directories: vec![place.directory()], ..Success::default() })
}

/// The names of files.
#[derive(Default)]
struct Names(Vec<RelPath>);

impl Visitor for Names {
    fn visit(&mut self, entry: &Entry<'_>) {
        if entry.kind == Kind::File {
            self.0.push(entry.rel_path());
        }
    }
}
