//! Commands that the agent runs, with real processes: their output, how they are ended, and the processes that they
//! leave behind.
#![expect(clippy::disallowed_methods, reason = "tests lay out files")]

use std::{
    fs,
    path::Path,
    process, thread,
    time::{Duration, Instant},
};

use proptest::prelude::*;
use serde_json::{Value, json};
use surehand_agent::{
    CancelToken, Secrets,
    command::{
        Approval, ApprovalRules, Approver, CommandEnd, CommandLimits, CommandOutcome, CommandRequest, CommandWatch,
        LeftProcesses, NoApprover, NotRun, RuleApprover, run_command, tool_spec,
    },
};
use surehand_engine::{CommandConfig, Config, Durability, Reply, Session, ToolNames, Workspace, core::shell};
use tempfile::TempDir;

/// A workspace with these files, and a session in it.
fn lay_out(files: &[(&str, &str)]) -> (TempDir, Session) {
    let dir = surehand_testkit::repository();
    files.iter().for_each(|(path, content)| fs::write(dir.path().join(path), content).unwrap());
    let config = Config { durability: Durability::Fast, ..Config::default() };
    let session = Session::new(Workspace::open(dir.path(), config).unwrap());
    (dir, session)
}

/// The commands here sleep for a minute, so a test that takes this long has waited for them.
const HANGS: Duration = Duration::from_secs(50);

/// Approves every command.
struct Anything;

impl Approver for Anything {
    fn approve(&mut self, _: &CommandRequest<'_>) -> Approval {
        Approval::Yes
    }
}

fn default_limits() -> CommandLimits {
    CommandLimits::from(&CommandConfig::default())
}

fn quick() -> CommandLimits {
    CommandLimits { time: Duration::from_millis(300), grace: Duration::from_millis(300), ..default_limits() }
}

/// The outcome of a command, as an object.
fn result(outcome: &CommandOutcome) -> Value {
    let run = match outcome {
        CommandOutcome::Ran(run) => run,
        CommandOutcome::NotRun { why: NotRun::Declined(said), repeat } => {
            return json!({ "refusal": { "code": "declined", "said": said, "repeat": repeat } });
        }
        CommandOutcome::NotRun { why, repeat } => return json!({ "refusal": { "code": why.code(), "repeat": repeat } }),
    };
    let (ended, output, effects) = (run.ran.ended, &run.ran.output, &run.effects);
    let mut result = json!({
        "success": ended == CommandEnd::Code(0),
        "timed_out": matches!(ended, CommandEnd::TimedOut(_)),
        "cancelled": ended == CommandEnd::Cancelled,
        "cut": output.cut.map(|cut| json!({ "bytes": cut.bytes, "lines": cut.lines })),
        "left_running": run.ran.left != LeftProcesses::Nothing,
        "changed_elsewhere": effects.changed,
    });
    match ended {
        CommandEnd::Code(code) => result["exit_code"] = json!(code),
        CommandEnd::Signal(signal) => result["signal"] = json!(signal),
        CommandEnd::TimedOut(_) | CommandEnd::Cancelled => {}
    }
    if !effects.read.is_empty() {
        result["seen"] = effects.read.iter().map(|read| read.path.as_str()).collect();
    }
    result
}

fn reply_of(outcome: &CommandOutcome) -> Reply {
    let is_error = matches!(outcome, CommandOutcome::NotRun { .. });
    Reply { text: outcome.text(&ToolNames::default()), is_error, result: result(outcome) }
}

fn unwatched(cancel: &CancelToken) -> CommandWatch<'_> {
    CommandWatch { cancel, output: None }
}

fn call_with(session: &mut Session, arguments: &Value, limits: &CommandLimits) -> Reply {
    reply_of(&run_command(session, arguments, &mut Anything, limits, &Secrets::default(), unwatched(&CancelToken::default())))
}

fn call(session: &mut Session, command: &str) -> Reply {
    call_with(session, &json!({ "command": command }), &default_limits())
}

/// The reply about a command in an empty workspace.
#[track_caller]
fn check(command: &str, expected: &str) {
    let (_dir, mut session) = lay_out(&[]);
    let reply = call(&mut session, command);
    assert_eq!((reply.text.as_str(), reply.is_error), (expected, false), "{command}");
}

/// Whether a process exists and is not a zombie.
fn is_running(pid: &str) -> bool {
    let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    state.is_ok_and(|state| !state.rsplit(')').next().unwrap().trim_start().starts_with('Z'))
}

/// The process ids that a command wrote into files, once the files exist.
fn pids(dir: &Path, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| fs::read_to_string(dir.join(name)).unwrap()).collect()
}

#[test]
fn how_it_ended_comes_first() {
    check("echo hello", "exit code 0\nhello\n");
    check("true", "exit code 0\n(no output)\n");
    check("echo a; exit 3", "exit code 3\na\n");
    check("printf 'no end'; false", "exit code 1\nno end\n");
    check("kill -9 $$", "ended by signal 9\n(no output)\n");
    let (_dir, mut session) = lay_out(&[]);
    // No line is parsed as an option of the shell.
    for line in ["no-such-program", "-no-such-option"] {
        let reply = call(&mut session, line);
        assert!(reply.text.starts_with("exit code 127\n") && reply.text.contains("not found"), "{}", reply.text);
        assert_eq!((&reply.result["success"], &reply.result["exit_code"]), (&json!(false), &json!(127)));
    }
    let reply = call(&mut session, "kill -9 $$");
    assert_eq!((&reply.result["signal"], &reply.result["exit_code"]), (&json!(9), &Value::Null));
    let reply = call(&mut session, "true");
    let flags = ["success", "timed_out", "cancelled", "left_running", "cut"].map(|key| reply.result[key].clone());
    assert_eq!(flags, [json!(true), json!(false), json!(false), json!(false), Value::Null]);
}

#[test]
fn output_and_errors_come_in_the_order_in_which_they_were_written() {
    let line = "for i in 1 2 3 4 5; do echo out $i; echo error $i >&2; done";
    let expected: String = (1..=5).map(|i| format!("out {i}\nerror {i}\n")).collect();
    check(line, &format!("exit code 0\n{expected}"));
}

#[test]
fn what_is_for_terminals_is_not_shown() {
    check(r"printf '\033[31mred\033[0m\n10%%\r20%%\r100%%\n'", "exit code 0\nred\n100%\n");
    check(r"printf 'a\377b\000c\n'", "exit code 0\na\u{fffd}bc\n");
    let (_dir, mut session) = lay_out(&[]);
    let text = call(&mut session, "head -c 100000 /bin/sh").text;
    assert!(text.len() < 20_000 && text.contains(" left out …]"), "{}", text.len());
}

#[test]
fn there_is_no_input() {
    check("cat", "exit code 0\n(no output)\n");
    check("read line || echo nothing", "exit code 0\nnothing\n");
}

#[test]
fn it_runs_in_the_root_without_a_terminal() {
    let (dir, mut session) = lay_out(&[("a.txt", "")]);
    let reply = call(&mut session, "pwd -P; ls; echo $TERM $NO_COLOR $PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT");
    let root = dir.path().canonicalize().unwrap();
    assert_eq!(reply.text, format!("exit code 0\n{}\na.txt\ndumb 1 cat cat 0\n", root.display()));
}

/// The environment of a process cannot be changed safely, so this test starts itself again with the keys in the
/// environment.
#[test]
fn our_keys_are_not_there() {
    const AGAIN: &str = "SUREHAND_TEST_AGAIN";
    if std::env::var_os(AGAIN).is_some() {
        assert_eq!(std::env::var("OPENAI_API_KEY").unwrap(), "secret");
        let (_dir, mut session) = lay_out(&[]);
        let reply = call(&mut session, "env");
        assert!(reply.text.contains("OTHER_KEY=kept") && !reply.text.contains("secret"), "{}", reply.text);
        return;
    }
    let keys = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "SUREHAND_API_KEY"].map(|key| (key, "secret"));
    let output = process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "our_keys_are_not_there"])
        .envs(keys)
        .envs([(AGAIN, "1"), ("OTHER_KEY", "kept")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn long_output_is_cut_in_the_middle() {
    let (_dir, mut session) = lay_out(&[]);
    let limits = CommandLimits { head_bytes: 10, tail_bytes: 12, ..default_limits() };
    let reply = call_with(&mut session, &json!({ "command": "seq 1 1000" }), &limits);
    assert_eq!(reply.text, "exit code 0\n1\n2\n3\n4\n5\n[… 3,874 bytes (993 lines) left out …]\n999\n1000\n");
    assert_eq!(reply.result["cut"], json!({ "bytes": 3874, "lines": 993 }));
}

#[test]
fn a_hundred_megabytes_of_output_take_hardly_any_memory() {
    let (_dir, mut session) = lay_out(&[]);
    let before = peak_memory();
    let reply = call(&mut session, "yes 'a line of text' | head -c 100000000; echo end");
    assert!(reply.text.starts_with("exit code 0\na line of text\n") && reply.text.ends_with("end\n"), "{}", reply.text.len());
    assert!(reply.text.len() < 17_000, "{}", reply.text.len());
    assert!(reply.result["cut"]["bytes"].as_u64().unwrap() > 99_000_000);
    // A single line that does not end.
    let reply = call(&mut session, "head -c 20000000 /dev/zero | tr '\\0' x");
    assert!(reply.text.contains("\n[… 19,984,000 bytes left out …]\nxxx"), "{}", reply.text.len());
    assert!(peak_memory() - before < 40_000, "{before} kB before, {} kB after", peak_memory());
}

/// The peak memory of this process, in kB.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn at_the_limit_all_that_it_started_is_ended() {
    let (dir, mut session) = lay_out(&[]);
    let line = "echo begun; sh -c 'echo $$ > child; sleep 60 & echo $! > grandchild; wait'; echo never";
    let start = Instant::now();
    let reply = call_with(&mut session, &json!({ "command": line }), &quick());
    assert!(start.elapsed() < HANGS);
    assert_eq!(reply.text.lines().next(), Some("stopped after 0.3 s, its time limit: run less, or set timeout (up to 600 s)"));
    assert!(reply.text.contains("\nbegun\n") && !reply.text.contains("never"), "{}", reply.text);
    assert_eq!((&reply.result["timed_out"], &reply.result["success"], reply.is_error), (&json!(true), &json!(false), false));
    for pid in pids(dir.path(), &["child", "grandchild"]) {
        assert!(!is_running(&pid), "{pid}");
    }
}

#[test]
fn a_process_that_ignores_sigterm_is_killed() {
    let (dir, mut session) = lay_out(&[]);
    let line = "trap '' TERM; echo $$ > shell; (trap '' TERM; sleep 60) & echo $! > child; sleep 60";
    let reply = call_with(&mut session, &json!({ "command": line }), &quick());
    assert_eq!(reply.result["timed_out"], true, "{}", reply.text);
    for pid in pids(dir.path(), &["shell", "child"]) {
        assert!(!is_running(&pid), "{pid}");
    }
}

#[test]
fn a_process_may_clean_up_after_sigterm() {
    let (_dir, mut session) = lay_out(&[]);
    let line = "trap 'echo cleared up; exit' TERM; echo begun; sleep 60 & wait";
    let reply = call_with(&mut session, &json!({ "command": line }), &quick());
    assert!(reply.text.contains("begun\ncleared up\n"), "{}", reply.text);
}

#[test]
fn a_call_may_ask_for_another_limit() {
    let (_dir, mut session) = lay_out(&[]);
    let limits = CommandLimits { most_time: Duration::from_millis(200), ..quick() };
    let reply = call_with(&mut session, &json!({ "command": "sleep 60", "timeout": 0.1 }), &limits);
    assert!(reply.text.starts_with("stopped after 0.1 s, its time limit"), "{}", reply.text);
    let reply = call_with(&mut session, &json!({ "command": "sleep 60", "timeout": 1e300 }), &limits);
    assert!(reply.text.starts_with("stopped after 0.2 s, the longest time there is: run less\n"), "{}", reply.text);
    // The limit is reached while output arrives without a pause.
    let reply = call_with(&mut session, &json!({ "command": "yes" }), &limits);
    assert_eq!(reply.result["timed_out"], true);
    // The limit is reached after the output was closed.
    let reply = call_with(&mut session, &json!({ "command": "exec >&- 2>&-; sleep 60" }), &limits);
    assert_eq!(reply.result["timed_out"], true);
}

#[test]
fn cancellation_stops_a_command() {
    let (dir, mut session) = lay_out(&[]);
    let cancel = CancelToken::default();
    let pid = dir.path().join("pid");
    let begun = process::Command::new("mkfifo").arg(dir.path().join("begun")).status().unwrap();
    assert!(begun.success());
    let (from_thread, fifo) = (cancel.clone(), dir.path().join("begun"));
    // Opening for reading waits until the command has opened the other end.
    let thread = thread::spawn(move || {
        fs::read(fifo).unwrap();
        from_thread.cancel();
    });
    let arguments = json!({ "command": "echo first; echo $$ > pid; echo > begun; sleep 60" });
    let reply = reply_of(&run_command(
        &mut session,
        &arguments,
        &mut Anything,
        &default_limits(),
        &Secrets::default(),
        unwatched(&cancel),
    ));
    thread.join().unwrap();
    assert!(reply.text.starts_with("stopped: the run was interrupted\nfirst\n"), "{}", reply.text);
    assert_eq!((&reply.result["cancelled"], &reply.result["timed_out"]), (&json!(true), &json!(false)));
    assert!(!is_running(&fs::read_to_string(pid).unwrap()));
    // After that, nothing is started, and no approval is requested.
    let reply = reply_of(&run_command(
        &mut session,
        &json!({ "command": "touch a" }),
        &mut NoApprover,
        &default_limits(),
        &Secrets::default(),
        unwatched(&cancel),
    ));
    assert_eq!((reply.is_error, &reply.result["refusal"]["code"]), (true, &json!("cancelled")));
    assert!(!dir.path().join("a").exists());
}

#[test]
fn background_processes_are_ended_and_reported() {
    for redirected in ["", " > /dev/null 2>&1"] {
        let (dir, mut session) = lay_out(&[]);
        let start = Instant::now();
        let reply = call(&mut session, &format!("sleep 60{redirected} & echo $! > pid; echo done"));
        assert!(start.elapsed() < HANGS);
        let expected = "exit code 0\ndone\nnote: it left processes running in the background, which were ended\n";
        assert!(reply.text.starts_with(expected), "{}", reply.text);
        assert_eq!(reply.result["left_running"], true);
        assert!(!is_running(&pids(dir.path(), &["pid"])[0]));
    }
}

/// The note about ended processes.
const ENDED: &str = "note: it left processes running in the background, which were ended\n";

/// Runs a command that leaves processes behind, each of which has written its id into a file of this name. Afterwards
/// none of them exists, not even as a zombie.
#[track_caller]
fn leaves_nothing(command: &str, names: &[&str], limits: &CommandLimits) -> Reply {
    let (dir, mut session) = lay_out(&[]);
    let start = Instant::now();
    let reply = call_with(&mut session, &json!({ "command": command }), limits);
    assert!(start.elapsed() < HANGS);
    for pid in pids(dir.path(), names) {
        assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists(), "{command}: {pid} is there: {}", reply.text);
    }
    reply
}

#[test]
fn a_process_that_leaves_session_parent_and_group_is_ended_too() {
    let wait = "while ! test -s pid; do :; done";
    for command in [
        format!("setsid sh -c 'echo $$ > pid; exec sleep 60' & {wait}"),
        // Without our pipe, and without our environment.
        format!("setsid env -i sh -c 'echo $$ > pid; exec sleep 60' > /dev/null 2>&1 & {wait}"),
        // A daemon, whose parent ends before the shell.
        format!("(setsid sh -c 'sh -c \"echo \\$\\$ > pid; exec sleep 60\" & exit' &) ; {wait}"),
        format!("(setsid setsid -f sh -c 'trap \"\" TERM HUP INT; echo $$ > pid; exec sleep 60' > /dev/null 2>&1 &) ; {wait}"),
        // Stopped.
        format!("setsid sh -c 'echo $$ > pid; kill -STOP $$; sleep 60' & {wait}"),
    ] {
        let limits = CommandLimits { grace: Duration::from_millis(50), ..default_limits() };
        let reply = leaves_nothing(&command, &["pid"], &limits);
        assert!(reply.text.ends_with(ENDED) && reply.text.starts_with("exit code 0\n"), "{command}: {}", reply.text);
        assert_eq!(reply.result["left_running"], true);
    }
}

#[test]
fn at_the_limit_daemons_are_ended_too() {
    let command = "setsid -f sh -c 'trap \"\" TERM; echo $$ > pid; exec sleep 60'; while ! test -s pid; do :; done; sleep 60";
    let reply = leaves_nothing(command, &["pid"], &CommandLimits { time: Duration::from_secs(2), ..quick() });
    assert_eq!(reply.result["timed_out"], true, "{}", reply.text);
}

#[test]
fn a_shell_that_is_killed_takes_its_tree_with_it() {
    let command = "setsid sh -c 'echo $$ > pid; exec sleep 60' & while ! test -s pid; do :; done; kill -KILL $$";
    let reply = leaves_nothing(command, &["pid"], &default_limits());
    assert!(reply.text.starts_with("ended by signal 9\n") && reply.text.ends_with(ENDED), "{}", reply.text);
}

#[test]
fn a_process_that_keeps_starting_successors_is_ended() {
    let limits = CommandLimits { grace: Duration::from_millis(20), ..default_limits() };
    // One process at a time, each of which starts the next one and ends: in one group, or each in a session of its own.
    let (dir, mut session) = lay_out(&[("one", ": >> begun; sh ./one & exit"), ("two", ": >> begun; setsid -f sh ./two & exit")]);
    for script in ["one", "two"] {
        let reply = call_with(&mut session, &json!({ "command": format!("trap '' TERM; sh ./{script}; sleep 0.1") }), &limits);
        assert!(reply.text.contains(ENDED) && dir.path().join("begun").exists(), "{script}: {}", reply.text);
        let places = fs::read_dir("/proc").unwrap().flatten().map(|entry| fs::read_link(entry.path().join("cwd")));
        assert!(!places.flatten().any(|place| place == dir.path()), "{script}");
    }
}

/// The program that uses this library has other children, and a command must not end them.
#[test]
fn the_other_children_of_a_program_are_left_alone() {
    use std::os::unix::process::CommandExt;
    let (_dir, mut session) = lay_out(&[]);
    let mut plain = process::Command::new("sleep").arg("60").spawn().unwrap();
    let mut grouped = process::Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
    let reply = call(&mut session, "setsid -f sleep 60; sleep 60 & true");
    assert!(reply.text.ends_with(ENDED), "{}", reply.text);
    for child in [&mut plain, &mut grouped] {
        assert_eq!(child.try_wait().unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// Orphans that end while the command runs do not fill the process table.
#[test]
fn orphans_are_reaped_while_the_command_runs() {
    let command =
        "for i in 1 2 3 4 5 6 7 8 9; do (true &); done; while grep -q \") Z $PPID \" /proc/[0-9]*/stat 2> /dev/null; do :; done";
    let reply = leaves_nothing(command, &[], &CommandLimits { time: Duration::from_secs(40), ..default_limits() });
    assert_eq!(reply.result["success"], true, "{}", reply.text);
}

#[test]
fn what_it_changed_is_named_and_can_be_undone() {
    let (dir, mut session) = lay_out(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    session.workspace().start_watching();
    for path in ["a.txt", "b.txt"] {
        assert!(!session.call("read_file", &json!({ "path": path })).is_error);
    }
    surehand_engine::testing::wait_for_watcher(session.workspace());
    let reply = call(&mut session, "sed -i s/one/1/ a.txt; rm b.txt; echo c > c.txt; exit 2");
    assert!(reply.text.starts_with("exit code 2\n(no output)\nnote: "), "{}", reply.text);
    assert!(reply.text.contains("a.txt (by your command), b.txt (gone by your command)"), "{}", reply.text);
    assert!(reply.text.contains("c.txt"), "{}", reply.text);
    assert_eq!(reply.result["changed_elsewhere"][0], json!({ "path": "a.txt", "deleted": false, "by": "command" }));
    assert_eq!(reply.result["success"], false);
    let reply = session.call("undo", &json!({}));
    assert!(!reply.is_error, "{}", reply.text);
    let content = |path| fs::read_to_string(dir.path().join(path)).unwrap();
    assert_eq!((content("a.txt"), content("b.txt")), ("one\n".to_owned(), "two\n".to_owned()));
}

/// Changes made before the time limit count.
#[test]
fn what_a_stopped_command_changed_is_named() {
    let (_dir, mut session) = lay_out(&[("a.txt", "one\n")]);
    session.call("read_file", &json!({ "path": "a.txt" }));
    let reply = call_with(&mut session, &json!({ "command": "echo 2 > a.txt; sleep 60" }), &quick());
    assert!(reply.text.starts_with("stopped after") && reply.text.contains("a.txt (by your command)"), "{}", reply.text);
}

#[test]
fn what_it_printed_of_a_file_counts_as_read() {
    let long: String = (1..=400).map(|line| format!("line {line}\n")).collect();
    let (_dir, mut session) = lay_out(&[("a.txt", "one\r\n\ttwo\n"), ("long.txt", &long)]);
    let edit = |path: &str, old: &str| json!({ "path": path, "old_string": old, "new_string": "2" });
    assert_eq!(session.call("edit_file", &edit("a.txt", "two")).result["refusal"]["code"], "unread");
    assert!(call(&mut session, "cat a.txt").result["seen"].is_array());
    assert!(!session.call("edit_file", &edit("a.txt", "two")).is_error);
    // Lines that were cut out do not count as seen.
    let limits = CommandLimits { head_bytes: 100, tail_bytes: 100, ..default_limits() };
    call_with(&mut session, &json!({ "command": "cat long.txt" }), &limits);
    let overwrite = json!({ "path": "long.txt", "content": "" });
    assert_eq!(session.call("write_file", &overwrite).result["refusal"]["code"], "partial");
    assert!(!session.call("edit_file", &edit("long.txt", "line 2\n")).is_error);
}

#[test]
fn what_is_declined_does_not_run() {
    struct Person;
    impl Approver for Person {
        fn approve(&mut self, _: &CommandRequest<'_>) -> Approval {
            Approval::No(None)
        }
    }
    let (dir, mut session) = lay_out(&[]);
    let arguments = json!({ "command": "touch a" });
    let mut decline = |permission: &mut dyn Approver| {
        let reply = reply_of(&run_command(
            &mut session,
            &arguments,
            permission,
            &default_limits(),
            &Secrets::default(),
            unwatched(&CancelToken::default()),
        ));
        assert_eq!((reply.is_error, &reply.result["refusal"]["code"]), (true, &json!("declined")));
        assert!(!dir.path().join("a").exists());
        reply
    };
    let reply = decline(&mut Person);
    assert_eq!(reply.text, "Error: the user declined the command. Go on without it, or find another way.\n");
    let mut ruled =
        RuleApprover::new(ApprovalRules { allow: vec!["touch b".to_owned()], ..ApprovalRules::default() }, NoApprover);
    let reply = decline(&mut ruled);
    assert!(reply.text.contains("commands.allow") && reply.text.ends_with("do not send it again.\n"), "{}", reply.text);
    assert!(reply.result["refusal"]["said"].as_str().unwrap().contains("--yes"));
    assert_eq!(reply.result["refusal"]["repeat"], 2);
}

#[test]
fn bad_arguments_are_refused_as_by_other_tools() {
    let (_dir, mut session) = lay_out(&[]);
    for (arguments, why) in [
        (json!({}), "run_command: missing field `command`"),
        (json!(null), "run_command: missing field `command`"),
        (json!("ls"), "run_command: the arguments must be a JSON object"),
        (json!({ "command": 3 }), "run_command: command: invalid type: integer `3`, expected a string"),
        (json!({ "command": "ls", "shell": "zsh" }), "run_command: unknown field `shell`"),
        (json!({ "command": " \n" }), "run_command: command is empty"),
        (json!({ "command": "a\0b" }), "run_command: command has a NUL character in it"),
        (json!({ "command": "ls", "timeout": 0 }), "run_command: timeout must be more than 0 seconds"),
        (json!({ "command": "ls", "timeout": -1 }), "run_command: timeout must be more than 0 seconds"),
        (json!({ "command": "ls", "timeout": "soon" }), "run_command: timeout: invalid type: string \"soon\""),
    ] {
        let reply = call_with(&mut session, &arguments, &default_limits());
        assert_eq!((reply.is_error, &reply.result["refusal"]["code"]), (true, &json!("bad_arguments")), "{arguments}");
        assert!(reply.text.contains(why), "{arguments}: {}", reply.text);
    }
}

#[test]
fn a_missing_root_is_reported() {
    let (dir, mut session) = lay_out(&[]);
    fs::remove_dir_all(dir.path()).unwrap();
    let reply = call(&mut session, "true");
    assert!(reply.is_error && reply.text.contains("could not be started"), "{}", reply.text);
}

#[test]
fn the_tool_is_described_in_few_words() {
    let spec = tool_spec();
    assert!(spec.description.split_whitespace().count() < 60, "{}", spec.description);
    assert_eq!((spec.name.as_str(), &spec.schema["required"]), ("run_command", &json!(["command"])));
}

/// Lines made of everything that is special to a shell.
fn lines() -> impl Strategy<Value = String> {
    let pieces = [
        "ok",
        "ok",
        "ok",
        "bad",
        " ",
        " ",
        "\t",
        "\n",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "$",
        "(",
        ")",
        "`",
        "\"",
        "\"",
        "'",
        "'",
        "\\",
        "\\\n",
        ">",
        "<",
        "2>&1",
        "2>/dev/null",
        "#",
        "{",
        "}",
        "=",
        "!",
        "*",
        "?",
        "[",
        "]",
        "~",
        "-",
        "$(bad)",
        "A=1",
        "x",
        ",",
    ];
    proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..12).prop_map(|pieces| pieces.concat())
}

/// Runs a line with only two programs in `PATH`, and returns the names of the files that exist afterwards.
fn files_after(shell: &str, line: &str) -> Vec<String> {
    let dir = surehand_testkit::repository();
    let (programs, place) = (dir.path().join("programs"), dir.path().join("place"));
    fs::create_dir_all(&programs).unwrap();
    fs::create_dir_all(&place).unwrap();
    for (name, script) in [("ok", "#!/bin/sh\n"), ("bad", "#!/bin/sh\n: > was-run\n")] {
        fs::write(programs.join(name), script).unwrap();
        fs::set_permissions(programs.join(name), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let mut command = process::Command::new(shell);
    command.args(["-c", "--", line]).env_clear().env("PATH", &programs).current_dir(&place).stdin(process::Stdio::null());
    command.output().unwrap();
    fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// A command that the list covers runs nothing else, whatever shell `sh` is.
    #[test]
    fn what_is_covered_runs_nothing_else(line in lines(), first in prop_oneof![Just("ok "), Just("ok"), Just("")]) {
        let line = format!("{first}{line}");
        if shell::covered(&line, &["ok".to_owned()]) {
            for shell in ["/bin/sh", "/bin/bash"].into_iter().filter(|shell| Path::new(shell).exists()) {
                prop_assert!(files_after(shell, &line).is_empty(), "{shell}: {line:?}");
            }
        }
    }
}
