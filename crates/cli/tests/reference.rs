//! The reference pages say what the program does: they are made from it. `UPDATE_REFERENCE=1` writes them.
#![expect(clippy::disallowed_methods, reason = "writes the pages when asked to")]

use std::{fmt::Write, fs, path::Path};

use serde_json::Value;
use surehand_engine::{KEYS, tools::TABLE};

#[track_caller]
fn check(page: &str, content: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(page);
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == content, "docs/reference/{page} is not up to date: run the tests once with UPDATE_REFERENCE=1");
}

#[test]
fn tools() {
    let mut page = String::from(
        "# Tools\n\nMade from the tools themselves. Every door (MCP, `surehand call`, the library) offers these, with these words.\n",
    );
    for tool in TABLE {
        write!(page, "\n## {}\n\n{}\n\n| argument | type | meaning |\n|---|---|---|\n", tool.name, tool.description()).unwrap();
        let schema = tool.input_schema();
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        rows(&mut page, "", &Value::Object(schema.clone()), &required);
    }
    page.push_str(RESULTS);
    check("tools.md", &page);
}

fn rows(page: &mut String, prefix: &str, schema: &Value, required: &[&str]) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let optional = if required.contains(&name.as_str()) { "" } else { "?" };
        let kind = match field["type"].as_str() {
            Some("array") => "list".to_owned(),
            Some(kind) => kind.to_owned(),
            None => "string".to_owned(),
        };
        let choices: Vec<String> =
            field["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).map(|c| format!("`{c}`")).collect();
        let meaning = [field["description"].as_str().unwrap_or_default().to_owned(), choices.join(" ")].join(" ");
        writeln!(page, "| `{prefix}{name}{optional}` | {kind} | {} |", meaning.trim().replace('\n', " ").replace('|', "\\|"))
            .unwrap();
        let items = &field["items"];
        let inner: Vec<&str> = items["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        rows(page, &format!("{prefix}{name}[]."), items, &inner);
    }
}

const RESULTS: &str = "
## Results

A result is text for the model. Programs find the same as one JSON object in the MCP result's `_meta[\"surehand/result\"]`, in
`surehand call --json` (with the text), and in `Reply::result`:

- success: `success: true` and what applies of `path`, `version`, `total_lines`, `shown`, `diff`, `first_changed_line`,
  `shifted: [{after, by}]`, `created`, `noop` with `message`, `rewrites`, `rewritten`, `written`, `unchanged`, `forgotten`,
  `warnings`; `multi_edit` has one such object for each file in `files: [..]`; `list_files` has `files: [path]`, `directories: [{path,
  files}]` for those given as counts, `total`, `cut`; `search_files` has `files: [{path, version, total_lines, matches, shown}]`,
  `total` and `total_files` with those not shown, `cut`;
- a refusal: `success: false` and `refusal: {code, path, affected_ranges, remaps, repeat, remedy}`, for `anchor_mismatch` also
  `mismatches: [{anchor, expected, found, why}]`. Its text begins with `Error:`
  and nothing on disk has changed;
- either: `changed_elsewhere: [{path, deleted, by}]` for files that changed since they were read, `instructions: [path]` for files whose
  [instructions](../guide/instructions.md) are in the text, `warnings`. The text has first what the tool says, then instructions from a line
  `--- instructions for work in ` up to `--- end of instructions ---`, then lines that begin with `note: `.

Codes: `unread` `stale` `deleted` `partial` `not_found` `ambiguous` `no_change` `anchor_mismatch` `overlap` `exists` `binary`
`encoding` `too_large` `outside_workspace` `protected` `bad_range` `bad_arguments` `conflict` `io`.
";

#[test]
fn settings() {
    let mut page = String::from(
        "# Settings\n\nMade from the settings themselves. `surehand.toml` in the root of the workspace, then the environment \
         (`policy.durability` is `SUREHAND_POLICY_DURABILITY`).\nAn unknown key is an error that names the nearest known one.\n\n\
         | key | takes | default | meaning |\n|---|---|---|---|\n",
    );
    for key in KEYS {
        writeln!(page, "| `{}` | {} | `{}` | {} |", key.name, key.wanted, key.default, key.meaning).unwrap();
    }
    page.push_str(
        "\nFor tests only: `SUREHAND_TEST_KILL_AFTER=N` makes a process kill itself (SIGKILL) after step N of its next commit.\n\n\
         Exit codes of `surehand`: 0 done, 1 the call was refused, 2 the command could not be carried out.\n",
    );
    check("settings.md", &page);
}
