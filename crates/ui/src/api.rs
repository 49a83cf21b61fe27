//! The requests of the page, answered as JSON. The path names what is shown, and the query has its parameters.

use http_body_util::{BodyExt, Full};
use hyper::{
    Response, StatusCode,
    body::Bytes,
    header::{CONTENT_TYPE, HeaderValue},
};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use surehand_agent::past_runs;
use surehand_engine::{
    Workspace,
    attribution::Blame,
    core::{LineSet, RelPath},
    json as shown,
};
use surehand_http::HttpAnswer;

use crate::{actions, live::LiveState};

#[derive(Debug)]
pub(crate) struct Question {
    pub name: String,
    pub query: String,
    /// The action in JSON; `None` if the request only reads.
    pub body: Option<Bytes>,
}

#[derive(Debug)]
pub(crate) struct ApiError {
    pub status: StatusCode,
    pub why: String,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, why: impl std::fmt::Display) -> Self {
        Self { status, why: why.to_string() }
    }

    pub(crate) fn bad(why: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, why)
    }

    /// The subject does not exist or cannot be read.
    pub(crate) fn absent(why: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, why)
    }

    fn failed(why: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, why)
    }
}

pub(crate) fn answer(live: &LiveState, question: &Question) -> HttpAnswer {
    let (status, value) = match ask(live, question) {
        Ok(value) => (StatusCode::OK, value),
        Err(error) => (error.status, json!({ "error": error.why })),
    };
    let mut answer = Response::new(Full::new(Bytes::from(value.to_string())).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn ask(live: &LiveState, question: &Question) -> Result<Value, ApiError> {
    let workspace = live.workspace();
    if let Some(body) = &question.body {
        let request = serde_json::from_slice(body).map_err(|error| ApiError::bad(format!("not a request: {error}")))?;
        return match question.name.as_str() {
            "preview" => actions::preview(live, &request),
            "act" => {
                let done = actions::carry_out(live, &request);
                live.look_now();
                done
            }
            name => Err(ApiError::absent(format!("{name}: there is no such action"))),
        };
    }
    match question.name.as_str() {
        "start" => live.start().map_err(ApiError::failed),
        "entries" => Ok(live.entries(question.number("from")?)),
        "entry" => entry(workspace, &question.text("id")?),
        "file" => file(live, &question.text("path")?),
        "board" => live.board().shown(workspace),
        "runs" => runs(workspace),
        "run" => run(workspace, &question.text("id")?),
        "turn" => turn(workspace, &question.text("id")?, question.number("turn")?),
        name => Err(ApiError::absent(format!("{name}: there is no such resource"))),
    }
}

impl Question {
    fn text(&self, name: &str) -> Result<String, ApiError> {
        let value = self.query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let value = value.ok_or_else(|| ApiError::bad(format!("{name} is missing")))?;
        let value = percent_decode_str(value).decode_utf8().map_err(|_| ApiError::bad(format!("{name} is not UTF-8")))?;
        Ok(value.into_owned())
    }

    fn number<N: std::str::FromStr>(&self, name: &str) -> Result<N, ApiError> {
        self.text(name)?.parse().map_err(|_| ApiError::bad(format!("{name} is not a number")))
    }
}

/// Limit in bytes of a diff on the page; a longer one is cut.
const MOST_OF_DIFF: usize = 1 << 20;

fn entry(workspace: &Workspace, id: &str) -> Result<Value, ApiError> {
    let entry = workspace.find_activity(id).map_err(ApiError::absent)?;
    let diffs = workspace.diffs_of(&entry).map_err(ApiError::absent)?;
    let mut answer = shown::activity_with_diffs(&entry, &diffs);
    let diffs = answer["diffs"].as_array_mut().into_iter().flatten();
    diffs.for_each(|diff| cut(&mut diff["diff"]));
    if let Some(session) = entry.session() {
        answer["by"] = workspace.session_names().map_err(ApiError::failed)?.name(session).into();
    }
    Ok(answer)
}

/// Cuts a diff that is too long for a page, at the end of a line.
pub(crate) fn cut(diff: &mut Value) {
    let Some(text) = diff.as_str().filter(|text| text.len() > MOST_OF_DIFF) else { return };
    let end = text.as_bytes()[..MOST_OF_DIFF].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let left = text.len() - end;
    *diff = format!("{}\\ {left} more bytes are not shown here\n", &text[..end]).into();
}

/// The lines of a file: who wrote them, and which sessions have seen them.
fn file(live: &LiveState, path: &str) -> Result<Value, ApiError> {
    let workspace = live.workspace();
    let path = place(workspace, path)?;
    let blame = workspace.blame(&path).map_err(ApiError::absent)?;
    let names = workspace.session_names().map_err(ApiError::failed)?;
    let all_lines = 0..blame.text.line_count();
    let mut answer = shown::blame(&blame, std::slice::from_ref(&all_lines), &names);
    answer["git_trouble"] = json!(blame.git_trouble);
    answer["seen_by"] = seen_by(live, &path, &blame)?;
    Ok(answer)
}

fn seen_by(live: &LiveState, path: &RelPath, blame: &Blame) -> Result<Value, ApiError> {
    let ranges = |lines: &LineSet| lines.ranges().iter().map(|range| json!([range.start, range.end])).collect::<Vec<_>>();
    let seen = live.seen_lines(path, &blame.text).map_err(ApiError::failed)?;
    let of_session = seen.into_iter().map(|seen| {
        json!({ "session": seen.session, "name": seen.name, "stale": seen.is_stale, "lines": seen.lines.as_ref().map(ranges) })
    });
    Ok(of_session.collect())
}

pub(crate) fn place(workspace: &Workspace, path: &str) -> Result<RelPath, ApiError> {
    let place = workspace.place_of(path).map_err(ApiError::bad)?;
    place.ok_or_else(|| ApiError::bad(format!("{path}: a directory has no lines")))
}

fn runs(workspace: &Workspace) -> Result<Value, ApiError> {
    let runs = past_runs::list(workspace).map_err(ApiError::failed)?;
    Ok(runs.iter().map(past_runs::run_json).collect())
}

fn run(workspace: &Workspace, id: &str) -> Result<Value, ApiError> {
    let run = past_runs::find(workspace, id).map_err(ApiError::absent)?;
    let record = past_runs::read(workspace, &run).map_err(ApiError::failed)?;
    let mut answer = past_runs::run_json(&run);
    answer["turn_figures"] = json!(record.turn_figures());
    Ok(answer)
}

fn turn(workspace: &Workspace, id: &str, turn: u32) -> Result<Value, ApiError> {
    let run = past_runs::find(workspace, id).map_err(ApiError::absent)?;
    let record = past_runs::read(workspace, &run).map_err(ApiError::failed)?;
    record.turn_json(turn).ok_or_else(|| ApiError::absent(format!("run {} has no turn {turn}", run.id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let question = Question { name: String::new(), query: format!("x={text}"), body: None };
        assert_eq!(question.text("x").ok().as_deref(), expected, "{text}");
    }

    #[test]
    fn a_parameter_is_decoded() {
        check("a%20b", Some("a b"));
        check("%E2%80%AE", Some("\u{202e}"));
        check("100%", Some("100%"));
        check("%zz%2", Some("%zz%2"));
        check("%2e%2E%2f", Some("../"));
        check("%ff", None);
        check("a+b", Some("a+b"));
    }

    #[test]
    fn a_parameter_is_found_by_its_whole_name() {
        let question = |query: &str| Question { name: String::new(), query: query.to_owned(), body: None };
        assert_eq!(question("paths=1&path=2").text("path").unwrap(), "2");
        assert_eq!(question("path=").text("path").unwrap(), "");
        assert!(question("x=1").text("path").is_err());
        assert!(question("turn=-1").number::<u32>("turn").is_err());
    }

    #[test]
    fn a_long_diff_is_cut_at_the_end_of_a_line() {
        let line = "+é".repeat(100) + "\n";
        let mut diff: Value = line.repeat(MOST_OF_DIFF / line.len() + 2).into();
        cut(&mut diff);
        let text = diff.as_str().unwrap();
        assert!(text.len() < MOST_OF_DIFF + 100 && text.ends_with("more bytes are not shown here\n"));
        assert_eq!(text.lines().rev().nth(1), Some(line.trim_end()));
    }
}
