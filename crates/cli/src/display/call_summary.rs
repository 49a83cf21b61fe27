//! Summarizes a call by its most informative argument. Escapes the model's text; the caller truncates it.

use serde_json::{Map, Value};
use surehand_engine::{Tool, core::edit::patch, render::count};

use super::escape;

const NAMED: usize = 3;

/// Returns an empty string if there is nothing to show.
pub(super) fn summarize(tool: &str, arguments: &Value) -> String {
    let Value::Object(given) = arguments else { return no_object(arguments) };
    let known = Tool::named(tool).and_then(|tool| of_tool(tool, given));
    known.unwrap_or_else(|| anything(given))
}

fn of_tool(tool: Tool, given: &Map<String, Value>) -> Option<String> {
    match tool {
        Tool::ReadFile => text(given, "path").map(|path| format!("{}{}", escape::name(path), ranges(given))),
        Tool::ListFiles => Some(place(given)),
        Tool::SearchFiles => text(given, "pattern").map(|pattern| searched(pattern, given)),
        Tool::MultiEdit => items(given, "edits").map(edits_of),
        Tool::EditLines => text(given, "path").map(|path| with_edits(path, given)),
        Tool::ApplyPatch => text(given, "patch").map(|patch| named(&patched(patch))),
        Tool::MoveFile => {
            text(given, "from").zip(text(given, "to")).map(|(from, to)| format!("{} → {}", escape::name(from), escape::name(to)))
        }
        Tool::Undo if given.get("all") == Some(&Value::Bool(true)) => Some("all".to_owned()),
        Tool::Restore => text(given, "to").map(|to| format!("to {}", escape::one_line(to))),
        Tool::UpdateTasks => Some(tasks(given)),
        Tool::EditFile | Tool::WriteFile | Tool::DeleteFile | Tool::Undo | Tool::RepoState | Tool::Forget => None,
    }
}

/// Summarizes arguments that are not an object: malformed JSON, or another value.
fn no_object(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::String(text) => format!("not JSON: {}", escape::one_line(text)),
        other => escape::one_line(&other.to_string()),
    }
}

/// For unknown tools: the first argument with a usual name, else the first string.
fn anything(given: &Map<String, Value>) -> String {
    if let Some(paths) = items(given, "paths") {
        let paths: Vec<&str> = paths.iter().filter_map(Value::as_str).collect();
        return named(&paths);
    }
    for key in ["path", "name", "id", "change"] {
        if let Some(value) = text(given, key) {
            return escape::name(value);
        }
    }
    let usual = ["command", "pattern", "query", "summary", "text"].into_iter().find_map(|key| text(given, key));
    first_line(usual.or_else(|| given.values().find_map(Value::as_str)).unwrap_or_default())
}

fn first_line(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first = escape::code(lines.next().unwrap_or_default());
    match lines.count() {
        0 => first,
        more => format!("{first} … ({})", count(more, "more line")),
    }
}

/// ` 10-14, 20-30`
fn ranges(given: &Map<String, Value>) -> String {
    let number = |of: &Map<String, Value>, key: &str| of.get(key).and_then(Value::as_f64).map(|number| number as u64);
    if let Some(ranges) = items(given, "ranges") {
        let range = |range: &Map<String, Value>| Some(format!("{}-{}", number(range, "start")?, number(range, "end")?));
        let ranges: Vec<String> = ranges.iter().filter_map(Value::as_object).filter_map(range).collect();
        return format!(" {}", ranges.join(", ")).trim_end().to_owned();
    }
    match (number(given, "offset"), number(given, "limit")) {
        (None, None) => String::new(),
        (Some(from), None) => format!(" {from}-"),
        (from, Some(limit)) => {
            let from = from.unwrap_or(1);
            format!(" {from}-{}", from.saturating_add(limit.max(1) - 1))
        }
    }
}

/// `"pattern" in src matching *.rs`
fn searched(pattern: &str, given: &Map<String, Value>) -> String {
    let place = place(given);
    let gap = if place.is_empty() || place.starts_with("matching ") { " " } else { " in " };
    format!("\"{}\"{gap}{place}", escape::code(pattern)).trim_end().to_owned()
}

/// `src matching *.rs`
fn place(given: &Map<String, Value>) -> String {
    let path = text(given, "path").map(escape::name);
    let glob = text(given, "glob").map(|glob| format!("matching {}", escape::name(glob)));
    [path, glob].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn edits_of(edits: &[Value]) -> String {
    let mut paths: Vec<&str> = edits.iter().filter_map(|edit| edit.get("path")?.as_str()).collect();
    paths.dedup();
    format!("{}: {}", count(edits.len(), "edit"), named(&paths))
}

fn with_edits(path: &str, given: &Map<String, Value>) -> String {
    match items(given, "edits").map_or(0, <[Value]>::len) {
        0 | 1 => escape::name(path),
        edits => format!("{}: {edits} edits", escape::name(path)),
    }
}

fn patched(patch: &str) -> Vec<String> {
    let mut paths = patch::named_files(patch);
    paths.dedup();
    paths
}

/// `3 added, 1 set`
fn tasks(given: &Map<String, Value>) -> String {
    let number = |key: &str| items(given, key).map_or(0, <[Value]>::len);
    let parts =
        [(number("add"), "added"), (number("set"), "set")].map(|(tasks, what)| (tasks > 0).then(|| format!("{tasks} {what}")));
    let story = text(given, "story").map(|story| format!("story {}", escape::one_line(story)));
    parts.into_iter().chain([story]).flatten().collect::<Vec<_>>().join(", ")
}

fn named(paths: &[impl AsRef<str>]) -> String {
    let mut names: Vec<String> = paths.iter().take(NAMED).map(|path| escape::name(path.as_ref())).collect();
    if paths.len() > NAMED {
        names.push(format!("{} more", paths.len() - NAMED));
    }
    names.join(", ")
}

fn text<'a>(given: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    given.get(key)?.as_str()
}

fn items<'a>(given: &'a Map<String, Value>, key: &str) -> Option<&'a [Value]> {
    Some(given.get(key)?.as_array()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(tool: &str, arguments: Value, expected: &str) {
        assert_eq!(summarize(tool, &arguments), expected);
    }

    #[test]
    fn a_read_names_its_lines() {
        check("read_file", json!({ "path": "src/a.rs" }), "src/a.rs");
        check("read_file", json!({ "path": "src/a.rs", "offset": 10, "limit": 5 }), "src/a.rs 10-14");
        check("read_file", json!({ "path": "src/a.rs", "limit": 5.0 }), "src/a.rs 1-5");
        check("read_file", json!({ "path": "src/a.rs", "offset": 10 }), "src/a.rs 10-");
        check("read_file", json!({ "path": "a", "ranges": [{ "start": 1, "end": 2 }, { "start": 7, "end": 9 }] }), "a 1-2, 7-9");
        check("read_file", json!({ "path": "a", "offset": u64::MAX, "limit": u64::MAX }), &format!("a {0}-{0}", u64::MAX));
        check("read_file", json!({ "path": "a", "offset": -3, "limit": 0 }), "a 0-0");
    }

    #[test]
    fn an_edit_names_its_files() {
        check("edit_file", json!({ "path": "a", "old_string": "x", "new_string": "y" }), "a");
        check("write_file", json!({ "content": "long", "path": "a" }), "a");
        check("edit_lines", json!({ "path": "a", "edits": [{}] }), "a");
        check("edit_lines", json!({ "path": "a", "edits": [{}, {}] }), "a: 2 edits");
        check("multi_edit", json!({ "edits": [{ "path": "a" }, { "path": "a" }, { "path": "b" }] }), "3 edits: a, b");
        check("multi_edit", json!({ "edits": [{ "path": "a" }] }), "1 edit: a");
        check("move_file", json!({ "from": "a", "to": "b" }), "a → b");
        check("delete_file", json!({ "path": "a" }), "a");
        check(
            "apply_patch",
            json!({ "patch": "*** Begin Patch\n*** Update File: a\n@@\n*** Add File: b\n*** End Patch" }),
            "a, b",
        );
        check("apply_patch", json!({ "patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n" }), "x");
        check("forget", json!({ "paths": ["a", "b", "c", "d", "e"] }), "a, b, c, 2 more");
    }

    #[test]
    fn a_search_names_pattern_and_place() {
        check("search_files", json!({ "pattern": "fn \\w+" }), "\"fn \\w+\"");
        check("search_files", json!({ "pattern": "x", "path": "src", "glob": "*.rs" }), "\"x\" in src matching *.rs");
        check("search_files", json!({ "pattern": "x", "glob": "*.rs" }), "\"x\" matching *.rs");
        check("list_files", json!({ "path": "src" }), "src");
        check("list_files", json!({}), "");
    }

    #[test]
    fn tasks_are_counted() {
        check("update_tasks", json!({ "add": [{}, {}, {}], "set": [{}] }), "3 added, 1 set");
        check("update_tasks", json!({ "set": [{}] }), "1 set");
        check("update_tasks", json!({ "story": "S-1\n" }), "story S-1");
        check("undo", json!({ "all": true }), "all");
        check("undo", json!({ "change": "k3x9" }), "k3x9");
        check("undo", json!({}), "");
    }

    #[test]
    fn a_command_is_its_first_line() {
        check("run_command", json!({ "command": "cargo test" }), "cargo test");
        check("run_command", json!({ "command": "cat <<E\na\nE" }), "cat <<E … (2 more lines)");
        check("run_command", json!({ "timeout": 5, "command": "ls\u{202e}\x1b[2J" }), "ls<U+202E><U+001B>[2J");
    }

    #[test]
    fn other_tools_are_summarized_by_their_first_text() {
        check("done", json!({ "summary": "All\nof it" }), "All … (1 more line)");
        check("new_tool", json!({ "n": 1, "what": "this" }), "this");
        check("new_tool", json!({ "n": 1 }), "");
        check("edit_file", json!("{\"path\": "), "not JSON: {\"path\":");
        check("edit_file", json!([1, 2]), "[1,2]");
        check("edit_file", Value::Null, "");
        check("edit_file", json!({ "path": 7 }), "");
    }
}
