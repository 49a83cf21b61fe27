//! Transcripts of the command line: arguments, output, and exit code.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use insta::{allow_duplicates, assert_snapshot};

fn surehand(dir: &Path, words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_surehand"));
    command.current_dir(dir).args(words).env("COLUMNS", "100").env_remove("SUREHAND_POLICY_DURABILITY");
    let output = command.env("HOME", dir.join("home")).env_remove("XDG_CONFIG_HOME").output().unwrap();
    let place = dir.canonicalize().unwrap().display().to_string();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&place, "{dir}");
    let mut transcript = format!("$ surehand {}\n{}", words.join(" "), text(&output.stdout));
    if !output.stderr.is_empty() {
        transcript.push_str(&format!("[standard error]\n{}", text(&output.stderr)));
    }
    transcript.push_str(&format!("[exit {}]", output.status.code().unwrap()));
    without_change_ids(&transcript)
}

/// Removes the random ids of changes, and their times.
fn without_change_ids(transcript: &str) -> String {
    let is_id = |word: &str| word.len() == 8 && word.chars().all(|char| char.is_ascii_hexdigit());
    let is_moment = |word: &str| word.len() >= 20 && word.contains('T') && word.ends_with('Z');
    let mut words = String::new();
    for piece in transcript.split_inclusive([' ', '"', '\n']) {
        let (word, end) = piece.split_at(piece.len() - piece.chars().next_back().map_or(0, char::len_utf8));
        match (is_id(word), is_moment(word)) {
            (true, _) => words.push_str("{change}"),
            (_, true) => words.push_str("{moment}"),
            _ => words.push_str(word),
        }
        words.push_str(end);
    }
    (1..9).fold(words, |words, second| words.replace(&format!("  {second} s ago"), "  0 s ago"))
}

/// The standard error of a hook, and its exit code.
fn hook(dir: &Path, client: &str, input: &serde_json::Value) -> (String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_surehand"));
    command.current_dir(dir).args(["hook", client]).env("HOME", dir.join("home"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // The hook of an unknown client ends without reading, perhaps before this is written.
    let _ = child.stdin.take().unwrap().write_all(input.to_string().as_bytes());
    let output = child.wait_with_output().unwrap();
    (String::from_utf8(output.stderr).unwrap(), output.status.code())
}

#[test]
fn a_client_that_is_not_known_passes() {
    let dir = surehand_testkit::repository();
    let (said, code) = hook(dir.path(), "newcomer", &serde_json::json!({}));
    assert!(said.starts_with("surehand hook: no such client: newcomer; there are claude, "), "{said}");
    assert_eq!(code, Some(0));
}

#[test]
fn reasonix_is_denied_by_the_exit_code() {
    let dir = surehand_testkit::repository();
    fs::write(dir.path().join("a.txt"), "one\n").unwrap();
    let arguments = serde_json::json!({ "path": "a.txt", "old_string": "one", "new_string": "two" });
    let edit = serde_json::json!({ "event": "PreToolUse", "sessionId": "s", "cwd": dir.path(), "toolName": "edit_file", "toolArgs": arguments });
    let (said, code) = hook(dir.path(), "reasonix", &edit);
    assert!(said.contains("a.txt was not read this session"), "{said}");
    assert_eq!(code, Some(2));
    // Exit code and standard error do not report a failure.
    assert_eq!(hook(dir.path(), "reasonix", &serde_json::json!("nonsense")), (String::new(), Some(0)));
}

#[test]
fn a_call_a_refusal_and_a_repair() {
    let dir = surehand_testkit::repository();
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
      "change": "{change}",
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
    let dir = surehand_testkit::repository();
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
    fs::create_dir_all(dir.path().join("home/.config/surehand")).unwrap();
    fs::write(dir.path().join("home/.config/surehand/surehand.toml"), "[policy]\ndurabilty = \"fast\"\n").unwrap();
    assert_snapshot!(surehand(dir.path(), &["call", "read_file"]), @"
    $ surehand call read_file
    [standard error]
    error: {dir}/home/.config/surehand/surehand.toml:2: unknown key policy.durabilty; did you mean policy.durability?
    [exit 2]
    ");
    assert!(!dir.path().join(".surehand").exists());
}

#[test]
fn the_root_is_the_nearest_parent_with_a_repository() {
    let dir = surehand_testkit::repository();
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
    let dir = surehand_testkit::repository();
    fs::write(dir.path().join("a.txt"), "one\n").unwrap();
    let read = ["call", "read_file", r#"{"path": "a.txt"}"#];
    surehand(dir.path(), &read);
    fs::write(dir.path().join(".git/surehand/state.db"), "garbage, and enough of it to be looked at by anybody").unwrap();
    for rest in ["-wal", "-shm"] {
        let _ = fs::remove_file(dir.path().join(format!(".git/surehand/state.db{rest}")));
    }
    assert_snapshot!(surehand(dir.path(), &read), @r#"
    $ surehand call read_file {"path": "a.txt"}
    a.txt (1 line, version 2c8b08)
    1|one
    note: Surehand's state was damaged and has been replaced (the damaged file is {dir}/.git/surehand/state.db.damaged-1); earlier reads no longer count
    [exit 0]
    "#);
}

#[test]
fn help_names_every_command() {
    let dir = surehand_testkit::repository();
    assert_snapshot!(surehand(dir.path(), &["--help"]), @"
    $ surehand --help
    The file-state layer for coding agents: tracks what a model has seen, and keeps every change safe

    Usage: surehand <COMMAND>

    Commands:
      run          Work on a story with a model: plan, change files, run commands, until it is done
      mcp          Serve the file tools to MCP clients, over standard input and output or over HTTP
      hook         Answer an agent's hook, with its event on standard input. `surehand init` sets it up
      init         Set up the installed clients: show what will be written, ask, and keep what is there
      doctor       Check the program, the workspace and every client, and say how to fix what is wrong
      call         Call one tool from a shell or script; exit code 1 means a refusal
      status       Show changed files, sessions and open tasks
      snapshot     Print the state of the repository, as a model gets it
      tasks        List, add and change tasks
      log          List everything that happened, newest first, and who did it
      show         Show a change, a checkpoint, a rescued file or any other log entry: author, time,
                   files and diff. For a run of the agent, show its events, or one turn with prompt,
                   answer and calls
      runs         List the runs of the agent, latest first: story, state, turns, tokens. `show` shows
                   one
      sessions     List the sessions: what each has seen, which of those files have changed since, and
                   its changes
      rescued      List, show, apply or drop text that other programs wrote into a file while it was
                   being replaced
      blame        Show who wrote each line of a file, and when: a session, a command, another program
                   or a commit
      diff         Show a change: the last one, the last one of a file, a named one, or exactly the
                   lines of a session
      undo         Undo a change: the last one, the last one of a file, a named one, or all of a session
      redo         Redo the last undone change. Repeat it to redo earlier ones
      commit       Commit exactly the lines of a session, and leave everything else as it is
      checkpoint   Save the state of all files so that it can be restored later. Hooks do this before
                   commands
      restore      Restore files to a time, a change or a checkpoint, after showing what will change
      scan         Scan the whole workspace for files created, modified and deleted since the last scan
      board        Show what all checkouts of this repository share: agents, tasks, claims, and who
                   changes what
      helper       Run the process that connects agents to the board. It starts by itself when needed
      usage        Show what Surehand stores, and how much space it takes
      clean        Remove stored data that is no longer wanted, after showing what will be removed
      ui           Show everything in a browser: sessions and what they have seen, the log, files,
                   rescued work, tasks and runs. Changes can be undone there
      demo         Compare both modes and a plain loop on one story. Needs no key and no network
      completions  Print the completion script for a shell
      man          Print the manual page, or write the pages of all commands to a directory
      self         Show the version, how it was installed, and how to update or remove it
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version
    [exit 0]
    ");
}

#[test]
fn the_demo_compares_the_modes() {
    let dir = tempfile::tempdir().unwrap();
    let output = surehand(dir.path(), &["demo"]);
    assert!(!output.contains('\u{1b}'), "no colours where nobody sees them");
    assert!(output.lines().all(|line| line.chars().count() <= 80), "{output}");
    assert_snapshot!(without_measures(&output), @r#"
    $ surehand demo
    {n} A stale edit is refused

    A model has read greet.py. Then you save a new line {n} in your editor, and the
    model edits what it remembers.

    → edit_file greet.py: 'hello' becomes 'hi'
    Error: greet.py was modified since last read; nothing was written. What
    changed since (line 2), as it is now; this counts as read:
    Send the call again if it still fits, or correct it using these lines; for
    more, read_file again.

    The model now knows your line and sends the edit again. It passes, and your
    line is still there.

    {n} A late save is rescued

    Another program still has the old file open and saves into it, after the
    model's edit has replaced it. The edit stands, and so does the save:

    $ surehand rescued
    {change} greet.py {n} bytes, with the line greet('you')

    {n} What that is worth in a long task

    A model writes a small service in Go. It knows only what its prompt shows: what
    has left the prompt, it does again. Meanwhile others save changes to the same
    files. The same model, three times:
    plain loop: does as told, sums up when it gets long 150 turns, {n} s
    Surehand, history: the prompt is the conversation {n} turns, {n} s
    Surehand, snapshot: the prompt is the present {n} turns, {n} s

    plain loop history snapshot
    turns until done not in 150 {n} {n}
    writes per unique file {n} 1 1
    most writes of one file {n} (main.go) 1 1
    changes of others lost {n} of {n} 0 of {n} 0 of {n}
    reads {n} {n} {n}
    refusals 0 {n} {n}
    repaired by the loop 0 {n} 1
    tokens of a prompt, first {tokens} {tokens} {tokens}
    median {tokens} {tokens} {tokens}
    longest {tokens} {tokens} {tokens}
    all together {tokens} {tokens} {tokens}
    seconds {n} {n} {n}

    tokens per turn, history (where it falls, the conversation was folded)
    tokens per turn, snapshot
    turn 1 {n}

    Next: surehand init guards the agents that you have, in this project
    surehand doctor says whether everything is guarded
    [exit 0]
    "#);
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none(), "it leaves the place as it was");
}

/// Removes the plots, and the numbers that differ from machine to machine.
fn without_measures(output: &str) -> String {
    // The number of turns depends on every word of the prompts. The test of the JSON output checks what must hold.
    let masked = |word: &str| match (word.strip_suffix('k'), word.parse::<f64>()) {
        (Some(number), _) if number.parse::<f64>().is_ok() => "{tokens}".to_owned(),
        (_, Ok(number)) if word.contains('.') || (number > 1.0 && number != 150.0) => "{n}".to_owned(),
        _ => word.to_owned(),
    };
    let is_plot = |line: &&str| line.contains(['│', '└', '|', '+']);
    let lines = output.lines().filter(|line| !is_plot(line));
    let lines = lines.map(|line| line.split_whitespace().map(masked).collect::<Vec<_>>().join(" "));
    without_seconds(&lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn the_demo_counts_for_programs() {
    let dir = surehand_testkit::repository();
    let mut command = Command::new(env!("CARGO_BIN_EXE_surehand"));
    let output = command.current_dir(dir.path()).args(["demo", "--json"]).output().unwrap();
    assert!(output.status.success());
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let tokens = |mode: &str| -> Vec<u64> {
        let turns = report["modes"][mode]["turns"].as_array().unwrap();
        assert!(turns.iter().zip(1..).all(|(turn, number)| turn["turn"] == number));
        turns.iter().map(|turn| turn["prompt_tokens"].as_u64().unwrap()).collect()
    };
    let (snapshot, history) = (tokens("snapshot"), tokens("history"));
    for mode in ["snapshot", "history"] {
        let counted = &report["modes"][mode];
        let keys: Vec<&str> = counted.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["lost_updates", "refusals", "repairs", "seconds", "turns", "writes_per_file"]);
        let writes = counted["writes_per_file"].as_object().unwrap();
        assert!(writes.len() == 8 && writes.values().all(|times| *times == 1), "{mode}: {writes:?}");
        assert_eq!(counted["lost_updates"], 0, "{mode}");
        assert!(
            counted["repairs"].as_u64() >= Some(1) && counted["refusals"].as_u64() > counted["repairs"].as_u64(),
            "{counted}"
        );
        assert!(counted["seconds"].as_f64() > Some(0.0));
    }
    let (longest, last) = (*snapshot.iter().max().unwrap(), *snapshot.last().unwrap());
    let mut middle = snapshot.clone();
    middle.sort_unstable();
    assert!(longest < 5000 && last * 10 <= middle[middle.len() / 2] * 11, "the prompt does not grow: {snapshot:?}");
    assert!(history.iter().max().unwrap() > &longest, "{history:?}");
    assert!(history.iter().sum::<u64>() > snapshot.iter().sum(), "{history:?} {snapshot:?}");
    assert!(history.windows(2).filter(|pair| pair[1] < pair[0] / 2).count() >= 2, "it is folded: {history:?}");
    assert!(report["plain"]["writes_per_file"]["main.go"].as_u64() > Some(5), "{}", report["plain"]);
    assert!(report["plain"]["lost_updates"].as_u64() > Some(0), "{}", report["plain"]);
}

#[test]
fn what_others_wrote_stays_when_a_change_is_undone() {
    let dir = surehand_testkit::repository();
    fs::write(dir.path().join("a.txt"), "one\ntwo\nthree\nfour\nfive\n").unwrap();
    let call = |tool: &str, arguments: &str| surehand(dir.path(), &["call", tool, arguments, "--session", "ann"]);
    call("read_file", r#"{"path": "a.txt"}"#);
    let edits = r#"{"edits": [{"path": "a.txt", "old_string": "two", "new_string": "2\nii"}, {"path": "a.txt", "old_string": "four", "new_string": "4"}]}"#;
    call("multi_edit", edits);
    fs::write(dir.path().join("a.txt"), "one\n2\nii\nthree\nIV\nfive\nsix\n").unwrap();
    assert_snapshot!(surehand(dir.path(), &["undo"]), @"
    $ surehand undo
    Undid multi_edit {change} by ann (in part). Later changes are kept; what could not be undone is listed below:
    a.txt edited (+1 -2, now 6 lines, version b76d86)
     1|one
    -2|2
    -3|ii
    +2|two
     3|three
     4|IV
    lines after 2 moved by -1
    not undone in a.txt, line 4: changed since
    -4|IV
    +|four
    [exit 0]
    ");
    let again = surehand(dir.path(), &["undo", "--session", "ann"]);
    assert_eq!(surehand(dir.path(), &["undo", "--session", "ann"]), again, "asking again changes nothing");
    assert_snapshot!(again, @"
    $ surehand undo --session ann
    [standard error]
    error: what was written has been changed since; nothing was undone
    not undone in a.txt, line 4: changed since
    -4|IV
    +|four
    hint: --force takes back the change, and what was written over it
    [exit 1]
    ");
    let undone = fs::read_to_string(dir.path().join("a.txt")).unwrap();
    for _ in 0..2 {
        let redone = surehand(dir.path(), &["redo"]);
        allow_duplicates! { assert_snapshot!(redone, @"
        $ surehand redo
        Redid multi_edit {change} by ann. The files are as they were before the undo:
        a.txt edited (+2 -1, now 7 lines, version 281198)
         1|one
        -2|two
        +2|2
        +3|ii
         4|three
         5|IV
        lines after 3 moved by +1
        [exit 0]
        ") }
        assert_eq!(fs::read_to_string(dir.path().join("a.txt")).unwrap(), "one\n2\nii\nthree\nIV\nfive\nsix\n");
        surehand(dir.path(), &["undo"]);
        assert_eq!(fs::read_to_string(dir.path().join("a.txt")).unwrap(), undone);
    }
}

#[test]
fn undo_and_redo_name_the_change_its_author_and_files_as_seen_from_here() {
    let dir = surehand_testkit::repository();
    let sub = dir.path().join("sub");
    fs::create_dir(&sub).unwrap();
    fs::write(sub.join("a.txt"), "one\ntwo\n").unwrap();
    let call = |tool: &str, arguments: &str| surehand(dir.path(), &["call", tool, arguments, "--session", "ann"]);
    call("read_file", r#"{"path": "sub/a.txt"}"#);
    call("edit_file", r#"{"path": "sub/a.txt", "old_string": "two", "new_string": "2"}"#);
    call("write_file", r#"{"path": "new.txt", "content": "new\n"}"#);
    assert_snapshot!(surehand(&sub, &["undo", "../new.txt"]), @"
    $ surehand undo ../new.txt
    Undid write_file {change} by ann. The files are as they were before:
    ../new.txt deleted (1 line, version 7aa7a5; redo brings it back)
    [exit 0]
    ");
    assert_snapshot!(surehand(&sub, &["redo"]), @"
    $ surehand redo
    Redid write_file {change} by ann. The files are as they were before the undo:
    ../new.txt created (1 line, version 7aa7a5)
    [exit 0]
    ");
    assert_snapshot!(surehand(&sub, &["undo", "a.txt"]), @"
    $ surehand undo a.txt
    Undid edit_file {change} by ann. The files are as they were before:
    a.txt edited (+1 -1, now 2 lines, version c3f9c8)
     1|one
    -2|2
    +2|two
    [exit 0]
    ");
    assert_snapshot!(surehand(&sub, &["redo", "--json"]), @r#"
    $ surehand redo --json
    {
      "change": "{change}",
      "diff": " 1|one\n-2|two\n+2|2\n",
      "files": [
        {
          "diff": " 1|one\n-2|two\n+2|2\n",
          "first_changed_line": 2,
          "path": "sub/a.txt",
          "shifted": [],
          "shown": [
            {
              "end": 2,
              "start": 1
            }
          ],
          "total_lines": 2,
          "version": "b8c083898d90038ced2e04df2f932eefa7d187080dee0d9942be12c156d95034"
        }
      ],
      "first_changed_line": 2,
      "path": "sub/a.txt",
      "redone": [
        {
          "change": "{change}",
          "session": "ann",
          "tool": "edit_file"
        }
      ],
      "shifted": [],
      "shown": [
        {
          "end": 2,
          "start": 1
        }
      ],
      "success": true,
      "text": "Redid edit_file {change} by ann. The files are as they were before the undo:\nsub/a.txt edited (+1 -1, now 2 lines, version b8c083)\n 1|one\n-2|two\n+2|2\n",
      "total_lines": 2,
      "undone": [
        "{change}"
      ],
      "version": "b8c083898d90038ced2e04df2f932eefa7d187080dee0d9942be12c156d95034"
    }
    [exit 0]
    "#);
    fs::write(sub.join("a.txt"), "one\nII\n").unwrap();
    assert_snapshot!(surehand(&sub, &["undo", "a.txt"]), @"
    $ surehand undo a.txt
    [standard error]
    error: what was written has been changed since; nothing was undone
    not undone in a.txt, line 2: changed since
    -2|II
    +|two
    hint: --force takes back the change, and what was written over it
    [exit 1]
    ");
    surehand(&sub, &["undo", "../new.txt"]);
    fs::write(dir.path().join("new.txt"), "mine\n").unwrap();
    assert_snapshot!(surehand(&sub, &["redo"]), @"
    $ surehand redo
    [standard error]
    error: what the undo left has been changed since; nothing was redone
    not redone in ../new.txt, line 1: cannot be told from equal lines beside it
    -1|mine
    +|new
    hint: --force brings the change back, over what was written since
    [exit 1]
    ");
}

#[test]
fn what_was_done_can_be_looked_at_and_taken_back() {
    let dir = surehand_testkit::repository();
    fs::write(dir.path().join("a.txt"), "one\ntwo\n").unwrap();
    let call = |tool: &str, arguments: &str| surehand(dir.path(), &["call", tool, arguments]);
    assert_snapshot!(surehand(dir.path(), &["log"]), @"
    $ surehand log
    There is nothing in the log.
    [exit 0]
    ");
    call("read_file", r#"{"path": "a.txt"}"#);
    call("edit_file", r#"{"path": "a.txt", "old_string": "one", "new_string": "1"}"#);
    call("write_file", r#"{"path": "sub/b.txt", "content": "new\n"}"#);
    assert_snapshot!(surehand(dir.path(), &["log"]), @"
    $ surehand log
    {change}   0 s ago  write_file  by command line
        sub/b.txt created
    {change}   0 s ago  edit_file  by command line
        a.txt edited
    [exit 0]
    ");
    assert_snapshot!(surehand(dir.path(), &["diff", "a.txt"]), @"
    $ surehand diff a.txt
    diff --git a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
    -one
    +1
     two
    [exit 0]
    ");
    assert_snapshot!(surehand(dir.path(), &["undo"]), @"
    $ surehand undo
    Undid write_file {change} by command line. The files are as they were before:
    sub/b.txt deleted (1 line, version 7aa7a5; redo brings it back)
    [exit 0]
    ");
    assert!(!dir.path().join("sub/b.txt").exists());
    fs::write(dir.path().join("a.txt"), "uno\ntwo\nthree\n").unwrap();
    assert_snapshot!(surehand(dir.path(), &["undo", "a.txt"]), @"
    $ surehand undo a.txt
    [standard error]
    error: what was written has been changed since; nothing was undone
    not undone in a.txt, line 1: changed since
    -1|uno
    +|one
    hint: --force takes back the change, and what was written over it
    [exit 1]
    ");
    assert_snapshot!(surehand(dir.path(), &["undo", "a.txt", "--force", "--json"]), @r#"
    $ surehand undo a.txt --force --json
    {
      "change": "{change}",
      "diff": "-1|uno\n+1|one\n 2|two\n-3|three\n",
      "files": [
        {
          "diff": "-1|uno\n+1|one\n 2|two\n-3|three\n",
          "first_changed_line": 1,
          "path": "a.txt",
          "shifted": [],
          "shown": [
            {
              "end": 2,
              "start": 1
            }
          ],
          "total_lines": 2,
          "version": "c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8"
        }
      ],
      "first_changed_line": 1,
      "path": "a.txt",
      "shifted": [],
      "shown": [
        {
          "end": 2,
          "start": 1
        }
      ],
      "success": true,
      "text": "Undid edit_file {change} by command line. The files are as they were before:\na.txt edited (+1 -2, now 2 lines, version c3f9c8)\n-1|uno\n+1|one\n 2|two\n-3|three\n",
      "total_lines": 2,
      "undone": [
        "{change}"
      ],
      "version": "c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8"
    }
    [exit 0]
    "#);
    assert_snapshot!(surehand(dir.path(), &["log", "a.txt", "--json", "-n", "1"]), @r#"
    $ surehand log a.txt --json -n 1
    [
      {
        "at": "{moment}",
        "change": "{change}",
        "files": [
          {
            "after": "c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8",
            "before": "062007797eb6a810c13ef783160f9dd98edbbf6d0d3ce348135fd2d0b231312d",
            "moved_to": null,
            "path": "a.txt",
            "undoes": [
              "{change}"
            ]
          }
        ],
        "id": "{change}",
        "kind": "undo",
        "session": "cli",
        "tool": "undo",
        "undone": false
      }
    ]
    [exit 0]
    "#);
    assert_snapshot!(surehand(dir.path(), &["undo"]), @"
    $ surehand undo
    [standard error]
    error: there is no change to undo
    [exit 1]
    ");
    assert_snapshot!(surehand(dir.path(), &["diff", "../x"]), @"
    $ surehand diff ../x
    [standard error]
    error: ../x leads outside the workspace. Use a path inside it.
    [exit 2]
    ");
    assert_snapshot!(surehand(dir.path(), &["diff", "--session", "nobody"]), @"
    $ surehand diff --session nobody
    [standard error]
    error: there is no session nobody
    hint: `surehand sessions` lists them
    [exit 2]
    ");
}

#[test]
fn a_scan_says_what_has_changed_since_the_last_one() {
    let dir = surehand_testkit::repository();
    let write = |path: &str, content: &str| fs::write(dir.path().join(path), content).unwrap();
    let scan = |words: &[&str]| without_seconds(&surehand(dir.path(), words));
    (0..30).for_each(|n| write(&format!("{n:02}.txt"), "one\n"));
    assert_snapshot!(scan(&["scan"]), @"
    $ surehand scan
    30 files in {time} s: the first scan, to which the next one will be compared
    [exit 0]
    ");
    assert_snapshot!(scan(&["scan"]), @"
    $ surehand scan
    30 files in {time} s: nothing has changed since the last scan
    [exit 0]
    ");
    write("a\nb.txt", "new\n");
    write("00.txt", "two\n");
    (1..26).for_each(|n| fs::remove_file(dir.path().join(format!("{n:02}.txt"))).unwrap());
    write(".gitignore", "29*\n");
    assert_snapshot!(scan(&["scan"]), @r#"
    $ surehand scan
    created .gitignore
    created "a\nb.txt"
    modified 00.txt
    deleted 01.txt
    deleted 02.txt
    deleted 03.txt
    deleted 04.txt
    deleted 05.txt
    deleted 06.txt
    deleted 07.txt
    deleted 08.txt
    deleted 09.txt
    deleted 10.txt
    deleted 11.txt
    deleted 12.txt
    deleted 13.txt
    deleted 14.txt
    deleted 15.txt
    deleted 16.txt
    deleted 17.txt
    deleted 18.txt
    deleted 19.txt
    deleted 20.txt
    deleted 5 more
    now ignored 29.txt
    6 files in {time} s: 2 created, 1 modified, 25 deleted since the last scan
    [exit 0]
    "#);
    write("26.txt", "new\n");
    assert_snapshot!(scan(&["scan", "--json"]), @r#"
    $ surehand scan --json
    {
      "bytes_hashed": 4,
      "created": [],
      "deleted": [],
      "files": 6,
      "first": false,
      "hashed": 1,
      "ignored": [],
      "modified": [
        "26.txt"
      ],
      "seconds": {time},
      "unnamed": 0,
      "unreadable": []
    }
    [exit 0]
    "#);
    write(".git/surehand/checkouts/main/index", "garbage");
    assert_snapshot!(scan(&["scan"]), @"
    $ surehand scan
    6 files in {time} s: the record of the last scan is damaged, so the next one will be compared to this
    [exit 0]
    ");
    assert_snapshot!(scan(&["scan", "--json", "--root", "nowhere"]), @r#"
    $ surehand scan --json --root nowhere
    {"error":"nowhere: not a directory"}
    [exit 2]
    "#);
}

fn without_seconds(transcript: &str) -> String {
    let is_time = |word: &str| word.contains('.') && word.parse::<f64>().is_ok();
    let pieces = transcript.split_inclusive([' ', ',', '\n']).map(|piece| {
        let word = piece.trim_end_matches([' ', ',', '\n']);
        if is_time(word) { piece.replace(word, "{time}") } else { piece.to_owned() }
    });
    pieces.collect()
}

#[test]
fn what_is_there_and_what_is_left_can_be_looked_at() {
    let dir = surehand_testkit::repository();
    fs::write(dir.path().join("a.rs"), "fn a() {}\n").unwrap();
    fs::write(dir.path().join("b.md"), "# B\n").unwrap();
    let run = |words: &[&str]| surehand(dir.path(), words);
    assert_snapshot!(run(&["tasks"]), @"
    $ surehand tasks
    There are no tasks.
    [exit 0]
    ");
    assert_snapshot!(run(&["tasks", "add", "write it"]), @"
    $ surehand tasks add write it
    1 task open, 0 completed:
    1. [pending] write it
    [exit 0]
    ");
    run(&["tasks", "add", "test it", "--priority", "1"]);
    run(&["tasks", "story", "S-1"]);
    assert_snapshot!(run(&["tasks", "start", "2"]), @"
    $ surehand tasks start 2
    Story: S-1
    2 tasks open, 0 completed:
    2. [in_progress] test it
    1. [pending] write it
    [exit 0]
    ");
    assert_snapshot!(run(&["tasks", "complete", "9"]), @"
    $ surehand tasks complete 9
    [standard error]
    error: there is no task 9
    [exit 2]
    ");
    run(&["call", "read_file", r#"{"path": "a.rs"}"#]);
    run(&["call", "read_file", r#"{"path": "b.md"}"#]);
    run(&["call", "edit_file", r#"{"path": "a.rs", "old_string": "a()", "new_string": "b()"}"#]);
    fs::write(dir.path().join("b.md"), "# Changed\n").unwrap();
    assert_snapshot!(run(&["status"]), @"
    $ surehand status
    workspace {dir}
    2 modified:
        a.rs
        b.md
    1 changed outside since it was read:
        b.md
    last change {change} (edit_file, 0 s ago; surehand undo takes it back)
    1 session has seen files:
        command line: 2 files, changed since: b.md
    Story: S-1
    2 tasks open, 0 completed:
    2. [in_progress] test it
    1. [pending] write it
    [exit 0]
    ");
    run(&["tasks", "complete", "2"]);
    run(&["tasks", "edit", "1", "write it well", "--priority", "3"]);
    assert_snapshot!(run(&["tasks", "--json"]), @r#"
    $ surehand tasks --json
    {
      "story_id": "S-1",
      "tasks": [
        {
          "description": "write it well",
          "id": 1,
          "priority": 3,
          "status": "pending",
          "story": "S-1"
        },
        {
          "description": "test it",
          "id": 2,
          "priority": 1,
          "status": "completed",
          "story": "S-1"
        }
      ],
      "tasks_of_others": []
    }
    [exit 0]
    "#);
    assert_snapshot!(run(&["tasks", "complete", "1"]), @"
    $ surehand tasks complete 1
    Story: S-1
    No task is open, 2 completed: everything is done.
    No longer open:
    1. [completed] write it well
    2. [completed] test it
    [exit 0]
    ");
}

/// A story has a list of its own, and the one before is kept.
#[test]
fn a_story_has_its_own_tasks() {
    let dir = surehand_testkit::repository();
    let run = |words: &[&str]| surehand(dir.path(), words);
    ["one", "two", "three", "four"].iter().for_each(|task| drop(run(&["tasks", "--story", "S-1", "add", task])));
    run(&["tasks", "story", "S-1"]);
    assert_snapshot!(run(&["tasks", "complete", "1", "2"]), @"
    $ surehand tasks complete 1 2
    Story: S-1
    2 tasks open, 2 completed:
    3. [pending] three
    4. [pending] four
    No longer open:
    1. [completed] one
    2. [completed] two
    [exit 0]
    ");
    run(&["tasks", "cancel", "3"]);
    run(&["tasks", "story", "S-2"]);
    assert_snapshot!(run(&["tasks", "add", "five"]), @"
    $ surehand tasks add five
    Story: S-2
    1 task open, 0 completed:
    5. [pending] five
    Open tasks of other stories and runs:
    4. [pending] four (story S-1)
    [exit 0]
    ");
    assert_snapshot!(run(&["tasks", "remove", "5", "4"]), @"
    $ surehand tasks remove 5 4
    Story: S-2
    There are no tasks.
    [exit 0]
    ");
    assert_snapshot!(run(&["tasks", "remove", "5"]), @"
    $ surehand tasks remove 5
    [standard error]
    error: there is no task 5
    [exit 2]
    ");
    assert_snapshot!(run(&["tasks", "--story", "S-1"]), @"
    $ surehand tasks --story S-1
    Story: S-1
    No task is open, 2 completed, 1 cancelled: everything is done.
    No longer open:
    1. [completed] one
    2. [completed] two
    3. [cancelled] three
    [exit 0]
    ");
}
