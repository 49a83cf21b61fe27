//! The program as people use it: names, lists and questions, in temporary repositories.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::fs;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::going_back::{PROGRAM, Stage};

pub(crate) const CLAUDE: &str = "3f2a61d0-9c1e-4b57-8a44-0f6c2b1d9e77";
pub(crate) const OTHER: &str = "3f2b61d0-9c1e-4b57-8a44-0f6c2b1d9e77";

/// A typed command with its output. Parts that differ from run to run are replaced.
pub(crate) fn transcript(stage: &Stage, words: &[&str]) -> String {
    transcript_in(stage, "", words)
}

/// Like [`transcript`], in a directory of the repository.
pub(crate) fn transcript_in(stage: &Stage, directory: &str, words: &[&str]) -> String {
    let output = stage.command(PROGRAM).current_dir(stage.at(directory)).args(words).output().unwrap();
    let text = |bytes: &[u8]| settled(&String::from_utf8_lossy(bytes).replace(&stage.root().display().to_string(), "{dir}"));
    let mut transcript = format!("{directory}$ surehand {}\n{}", settled(&words.join(" ")), text(&output.stdout));
    if !output.stderr.is_empty() {
        transcript.push_str(&format!("[standard error]\n{}", text(&output.stderr)));
    }
    transcript + &format!("[exit {}]", output.status.code().unwrap())
}

/// Replaces random ids by `{id}` and times by `{moment}`. Ages become 0 s.
fn settled(text: &str) -> String {
    let is_id = |word: &str| word.len() == 8 && word.chars().all(|char| char.is_ascii_hexdigit());
    let is_moment = |word: &str| word.len() >= 20 && word.contains('T') && word.ends_with('Z');
    let mut settled = String::new();
    for piece in text.split_inclusive([' ', '"', '\n', '`', '(']) {
        let word = piece.trim_end_matches([' ', '"', '\n', '`', '(', ')', ',', ';', ':', '.']);
        settled.push_str(match (is_id(word), is_moment(word)) {
            (true, _) => "{id}",
            (_, true) => "{moment}",
            _ => word,
        });
        settled.push_str(&piece[word.len()..]);
    }
    (1..20).fold(settled, |settled, second| settled.replace(&format!(" {second} s ago"), " 0 s ago"))
}

/// An edit by a session of Claude Code: its hooks, and the edit itself.
#[track_caller]
pub(crate) fn claude_writes(stage: &Stage, session: &str, path: &str, content: &str) {
    let input = json!({ "file_path": stage.at(path), "content": content });
    let mut fields = json!({
        "session_id": session, "hook_event_name": "PreToolUse", "tool_name": "Write", "tool_use_id": path, "tool_input": input
    });
    stage.hook(&fields);
    fs::create_dir_all(stage.at(path).parent().unwrap()).unwrap();
    fs::write(stage.at(path), content).unwrap();
    fields["hook_event_name"] = json!("PostToolUse");
    fields["tool_response"] = json!({ "filePath": stage.at(path), "success": true });
    stage.hook(&fields);
}

#[test]
fn a_path_means_what_it_means_in_the_current_directory() {
    let stage = Stage::new();
    for (path, content) in [("mod.rs", "above\n"), ("src/mod.rs", "below\n"), ("src/deep/x.rs", "x\n")] {
        claude_writes(&stage, CLAUDE, path, content);
    }
    let log = stage.command(PROGRAM).current_dir(stage.at("src")).args(["log", "mod.rs", "--json"]).output().unwrap();
    let log: Value = serde_json::from_slice(&log.stdout).unwrap();
    assert_eq!(log[0]["files"][0]["path"], "src/mod.rs", "{log:#}");
    assert!(transcript_in(&stage, "src", &["diff", "mod.rs"]).contains("+below"));
    assert!(transcript_in(&stage, "src/deep", &["diff", "../../mod.rs"]).contains("+above"));
    stage.json(&["checkpoint", "mine"]);
    transcript_in(&stage, "src", &["undo", "mod.rs"]);
    assert!(stage.at("mod.rs").exists() && !stage.at("src/mod.rs").exists());
    fs::remove_file(stage.at("mod.rs")).unwrap();
    assert_snapshot!(transcript_in(&stage, "src/deep", &["restore", "../mod.rs", "../../mod.rs", "--to", "mine", "--dry-run"]), @"
    src/deep$ surehand restore ../mod.rs ../../mod.rs --to mine --dry-run
    To the state of {moment}, by checkpoint {id} of {moment}:
      create     ../../mod.rs
      create     ../mod.rs
    [exit 0]
    ");
    assert_snapshot!(transcript_in(&stage, "src", &["status"]), @"
    src$ surehand status
    workspace {dir}
    1 created:
        deep/x.rs
    2 deleted:
        ../mod.rs
        mod.rs
    1 changed outside since it was read:
        ../mod.rs
    last change {id} (undo, 0 s ago)
    1 session has seen files:
        claude 3f2a: 3 files, changed since: ../mod.rs, mod.rs
    There are no tasks.
    [exit 0]
    ");
    transcript_in(&stage, "src", &["restore", ".", "--to", "mine", "--yes"]);
    assert!(!stage.at("mod.rs").exists() && stage.at("src/mod.rs").exists());
}

#[test]
fn a_short_name_or_the_beginning_of_an_id_is_enough() {
    let stage = Stage::new();
    claude_writes(&stage, CLAUDE, "a.txt", "one\n");
    claude_writes(&stage, OTHER, "b.txt", "two\n");
    let paths_of = |session: &str| {
        let log = stage.json(&["log", "--session", session]);
        let paths = log.as_array().unwrap().iter().flat_map(|entry| entry["files"].as_array().into_iter().flatten());
        paths.map(|file| file["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (name, path) in [("claude 3f2a", "a.txt"), ("3f2b", "b.txt"), (&format!("claude-{CLAUDE}"), "a.txt")] {
        assert_eq!(paths_of(name), [path], "{name}");
    }
    assert_snapshot!(transcript(&stage, &["log", "--session", "claude"]), @"
    $ surehand log --session claude
    [standard error]
    error: claude is ambiguous: it may be claude 3f2a or claude 3f2b
    [exit 2]
    ");
    assert_snapshot!(transcript(&stage, &["diff", "--session", "nobody"]), @"
    $ surehand diff --session nobody
    [standard error]
    error: there is no session nobody
    hint: `surehand sessions` lists them
    [exit 2]
    ");
    let log = stage.json(&["log", "b.txt"]);
    let change = log[0]["change"].as_str().unwrap();
    // The beginning of a change id, unless a file has that name.
    let diff = stage.json(&["diff", &change[..6]]);
    assert_eq!(diff[0]["path"], "b.txt");
    claude_writes(&stage, CLAUDE, &change[..6], "three\n");
    assert_eq!(stage.json(&["diff", &change[..6]])[0]["path"], change[..6]);
    fs::remove_file(stage.at(&change[..6])).unwrap();
    assert_eq!(stage.json(&["diff", &change[..6]])[0]["path"], change[..6], "the log knows it as a file");
    assert_eq!(stage.json(&["diff", change])[0]["path"], "b.txt");
}
