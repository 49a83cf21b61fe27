//! Transcripts of the command line: what is typed, what comes out, and the exit code.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{fs, path::Path, process::Command};

use insta::assert_snapshot;

fn surehand(dir: &Path, words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_surehand"));
    let output =
        command.current_dir(dir).args(words).env("COLUMNS", "100").env_remove("SUREHAND_POLICY_DURABILITY").output().unwrap();
    let place = dir.canonicalize().unwrap().display().to_string();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&place, "{dir}");
    let mut transcript = format!("$ surehand {}\n{}", words.join(" "), text(&output.stdout));
    if !output.stderr.is_empty() {
        transcript.push_str(&format!("[standard error]\n{}", text(&output.stderr)));
    }
    transcript.push_str(&format!("[exit {}]", output.status.code().unwrap()));
    without_change_ids(&transcript)
}

/// Changes get random names.
fn without_change_ids(transcript: &str) -> String {
    let mut parts = transcript.split("\"change\": \"");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |sum, part| format!("{sum}\"change\": \"{{id}}{}", &part[8..]))
}

#[test]
fn a_call_a_refusal_and_a_repair() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "one\n").unwrap();
    let edit = r#"{"path": "a.txt", "old_string": "one", "new_string": "two"}"#;
    assert_snapshot!(surehand(dir.path(), &["call", "edit_file", edit]), @r#"
    $ surehand call edit_file {"path": "a.txt", "old_string": "one", "new_string": "two"}
    Error: a.txt was not read this session — read_file first. An edit must be made from what the file holds now.
    [exit 1]
    "#);
    assert_snapshot!(surehand(dir.path(), &["call", "read_file", r#"{"path": "a.txt"}"#]), @r#"
    $ surehand call read_file {"path": "a.txt"}
    a.txt (1 line, version 2c8b08)
    1|one
    [exit 0]
    "#);
    assert_snapshot!(surehand(dir.path(), &["call", "edit_file", edit, "--json"]), @r#"
    $ surehand call edit_file {"path": "a.txt", "old_string": "one", "new_string": "two"} --json
    {
      "change": "{id}",
      "diff": "-1|one\n+1|two\n",
      "first_changed_line": 1,
      "path": "a.txt",
      "shifted": [],
      "shown": [
        {
          "end": 1,
          "start": 1
        }
      ],
      "success": true,
      "text": "a.txt edited (+1 -1, now 1 line, version 27dd8e)\n-1|one\n+1|two\n",
      "total_lines": 1,
      "version": "27dd8ed44a83ff94d557f9fd0412ed5a8cbca69ea04922d88c01184a07300a5a"
    }
    [exit 0]
    "#);
    assert_eq!(fs::read_to_string(dir.path().join("a.txt")).unwrap(), "two\n");
}

#[test]
fn mistakes_are_told_and_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    assert_snapshot!(surehand(dir.path(), &["call", "read_file", "{path: 1}"]), @"
    $ surehand call read_file {path: 1}
    [standard error]
    error: the arguments are not valid JSON: key must be a string at line 1 column 2
    [exit 2]
    ");
    assert_snapshot!(surehand(dir.path(), &["call", "read_file", "--root", "nowhere"]), @"
    $ surehand call read_file --root nowhere
    [standard error]
    error: nowhere: not a directory
    [exit 2]
    ");
    fs::write(dir.path().join("surehand.toml"), "[policy]\ndurabilty = \"fast\"\n").unwrap();
    assert_snapshot!(surehand(dir.path(), &["call", "read_file"]), @"
    $ surehand call read_file
    [standard error]
    error: {dir}/surehand.toml: unknown key policy.durabilty; did you mean policy.durability?
    [exit 2]
    ");
    assert!(!dir.path().join(".surehand").exists());
}

#[test]
fn the_root_is_the_nearest_parent_with_a_repository() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join(".git")).unwrap();
    fs::create_dir_all(dir.path().join("deep/er")).unwrap();
    let write = r#"{"path": "a.txt", "content": "x\n"}"#;
    assert_snapshot!(surehand(&dir.path().join("deep/er"), &["call", "write_file", write]), @r#"
    $ surehand call write_file {"path": "a.txt", "content": "x\n"}
    a.txt created (1 line, version 73cb38)
    [exit 0]
    "#);
    assert_eq!(fs::read_to_string(dir.path().join("a.txt")).unwrap(), "x\n");
    assert_eq!(fs::read_to_string(dir.path().join(".surehand/.gitignore")).unwrap(), "*\n");
}

#[test]
fn a_damaged_state_is_begun_anew_and_told() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "one\n").unwrap();
    let read = ["call", "read_file", r#"{"path": "a.txt"}"#];
    surehand(dir.path(), &read);
    fs::write(dir.path().join(".surehand/state.db"), "garbage, and enough of it to be looked at by anybody").unwrap();
    for rest in ["-wal", "-shm"] {
        let _ = fs::remove_file(dir.path().join(format!(".surehand/state.db{rest}")));
    }
    assert_snapshot!(surehand(dir.path(), &read), @r#"
    $ surehand call read_file {"path": "a.txt"}
    a.txt (1 line, version 2c8b08)
    1|one
    note: Surehand's state was damaged and begun anew (the damaged file is {dir}/.surehand/state.db.damaged-1); what was read before counts no longer
    [exit 0]
    "#);
}

#[test]
fn help_names_every_command() {
    let dir = tempfile::tempdir().unwrap();
    assert_snapshot!(surehand(dir.path(), &["--help"]), @"
    $ surehand --help
    The file-state layer for coding agents: knows what a model has seen of each file, and keeps
    everybody's changes safe

    Usage: surehand <COMMAND>

    Commands:
      mcp   Serve the file tools to an MCP client over standard input and output
      call  Call one tool from a shell or script; exit code 1 when it is refused
      log   List the changes that were made, newest first
      diff  Show what a change did: the last one, the last one of a file, a named one, or all of a
            session
      undo  Take a change back: the last one, the last one of a file, a named one, or all of a session
      demo  Play a story through the real tools and print what a model would see. Needs no key, no
            network
      help  Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version
    [exit 0]
    ");
    assert_snapshot!(surehand(dir.path(), &["call", "--help"]), @"
    $ surehand call --help
    Call one tool from a shell or script; exit code 1 when it is refused

    Usage: surehand call [OPTIONS] <TOOL> [ARGUMENTS]

    Arguments:
      <TOOL>       The tool: read_file, list_files, search_files, edit_file, multi_edit, edit_lines,
                   apply_patch, write_file, delete_file, move_file, undo, forget
      [ARGUMENTS]  Its arguments as a JSON object; `-` reads them from standard input [default: {}]

    Options:
          --session <ID>  Whose call it is: what was read counts for calls with the same name [default:
                          cli]
          --json          Print the result object, with the text in it
          --root <DIR>    The workspace; by default the nearest parent with .surehand or .git, else the
                          current directory
      -h, --help          Print help
    [exit 0]
    ");
}

#[test]
fn the_demo_tells_its_story() {
    let dir = tempfile::tempdir().unwrap();
    let told = surehand(dir.path(), &["demo"]);
    assert!(told.ends_with("[exit 0]"), "{told}");
    for fact in [
        "was not read this session — read_file first",
        "was modified since last read",
        "No edits were applied.",
        "SIGKILL",
        "a change that a crash interrupted was taken back",
        "File already exists with identical content",
    ] {
        assert!(told.contains(fact), "{fact}: {told}");
    }
    assert!(!told.contains('\u{1b}'), "no colours where nobody sees them");
    let lines = surehand(dir.path(), &["demo", "--json"]);
    let objects =
        lines.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    assert_eq!(objects.count(), 9);
}
