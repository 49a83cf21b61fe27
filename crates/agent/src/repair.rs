//! Repair of refused edits: which lines to read again, and the same call under fresh anchors where it is proven that they name the same
//! lines.

use serde_json::{Value, json};

/// What can be done about a refused edit.
#[derive(Debug, Clone, PartialEq)]
pub struct Repair {
    /// The call of `read_file` that shows what changed.
    pub read: Value,
    /// The call once more with fresh anchors, if all of them are known.
    pub retry: Option<Value>,
}

/// What can be done about a refusal, as it is told to programs.
pub fn repair(tool: &str, arguments: &Value, refusal: &Value) -> Option<Repair> {
    let code = refusal["code"].as_str()?;
    // Who writes over lines that do not fit into the context would be shown them again and again. The refusal has shown them, and
    // if the call comes once more it is told what to do instead; a read would take back that it was refused before.
    let is_in_vain = code == "partial" && tool == "write_file";
    if !matches!(code, "stale" | "anchor_mismatch" | "partial") || is_in_vain {
        return None;
    }
    let path = refusal["path"].as_str()?;
    let mut ranges: Vec<Value> = refusal["affected_ranges"].as_array()?.clone();
    if ranges.is_empty() {
        return None;
    }
    let remaps: Vec<(String, String)> = refusal["remaps"].as_array().into_iter().flatten().filter_map(remap).collect();
    ranges.extend(remaps.iter().filter_map(|(_, to)| line_of(to)).map(|line| json!({ "start": line, "end": line })));
    let is_anchored = tool == "edit_lines";
    let read = json!({ "path": path, "ranges": ranges, "anchors": is_anchored });
    let retry = if is_anchored && code != "partial" { remapped(arguments, &remaps) } else { None };
    Some(Repair { read, retry })
}

fn remap(remap: &Value) -> Option<(String, String)> {
    Some((remap["from"].as_str()?.to_owned(), remap["to"].as_str()?.to_owned()))
}

fn line_of(anchor: &str) -> Option<u32> {
    anchor.split('#').next()?.parse().ok()
}

/// The arguments of `edit_lines` with every anchor in its new form; nothing if one of them has none.
fn remapped(arguments: &Value, remaps: &[(String, String)]) -> Option<Value> {
    if remaps.is_empty() {
        return None;
    }
    let mut arguments = arguments.clone();
    for edit in arguments.get_mut("edits")?.as_array_mut()? {
        for field in ["at", "to"] {
            let Some(anchor) = edit.get(field).and_then(Value::as_str) else { continue };
            let (_, to) = remaps.iter().find(|(from, _)| from == anchor)?;
            edit[field] = json!(to);
        }
    }
    Some(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(code: &str) -> Value {
        json!({
            "code": code, "path": "a.rs", "affected_ranges": [{ "start": 2, "end": 3 }],
            "remaps": [{ "from": "10#aa", "to": "12#aa" }, { "from": "11#bb", "to": "13#bb" }],
        })
    }

    fn edits(anchors: &[&str]) -> Value {
        let edits: Vec<Value> = anchors.iter().map(|at| json!({ "op": "delete", "at": at })).collect();
        json!({ "path": "a.rs", "edits": edits })
    }

    #[test]
    fn every_anchor_gets_its_new_form() {
        let repair = repair("edit_lines", &edits(&["10#aa", "11#bb"]), &refusal("stale")).unwrap();
        assert_eq!(repair.retry, Some(edits(&["12#aa", "13#bb"])));
        let ranges = json!([{ "start": 2, "end": 3 }, { "start": 12, "end": 12 }, { "start": 13, "end": 13 }]);
        assert_eq!(repair.read, json!({ "path": "a.rs", "ranges": ranges, "anchors": true }));
    }

    #[test]
    fn one_anchor_without_proof_is_left_to_the_model() {
        let repair = repair("edit_lines", &edits(&["10#aa", "99#zz"]), &refusal("stale")).unwrap();
        assert_eq!(repair.retry, None);
    }

    #[test]
    fn text_is_never_tried_again_without_the_model() {
        let repair =
            repair("edit_file", &json!({ "path": "a.rs", "old_string": "x", "new_string": "y" }), &refusal("stale")).unwrap();
        assert_eq!((repair.retry, &repair.read["anchors"]), (None, &json!(false)));
    }

    #[test]
    fn lines_that_were_never_seen_are_shown_and_not_edited() {
        assert_eq!(repair("edit_lines", &edits(&["10#aa"]), &refusal("partial")).unwrap().retry, None);
    }

    #[test]
    fn a_file_that_is_to_be_written_over_is_not_read_again() {
        assert_eq!(repair("write_file", &json!({ "path": "a.rs", "content": "" }), &refusal("partial")), None);
    }

    #[test]
    fn other_refusals_are_left_alone() {
        assert_eq!(repair("edit_file", &json!({}), &refusal("ambiguous")), None);
        assert_eq!(repair("edit_file", &json!({}), &json!({ "code": "stale", "path": "a.rs", "affected_ranges": [] })), None);
    }
}
