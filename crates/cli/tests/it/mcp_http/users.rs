//! Tests which users of this machine are served. They need root, to act as two users.

use std::{
    fs::Permissions,
    os::unix::fs::{PermissionsExt, chown},
};

use super::*;

const NOBODY: u32 = 65_534;

/// Whether this process can act as another user. Prints a message if not.
fn can_act_as_nobody() -> bool {
    let can = rustix::process::geteuid().is_root() && as_nobody("true").status().is_ok_and(|status| status.success());
    if !can {
        eprintln!("not run: needs root and setpriv");
    }
    can
}

/// A command that runs as another user.
fn as_nobody(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups", program]).current_dir("/");
    command
}

/// Sends a request as another user and returns everything that comes back.
fn exchange_as_nobody(server: &Server, request: &str) -> String {
    const CLIENT: &str = r#"exec 3<>"/dev/tcp/${1/://}" && printf %s "$2" >&3 && cat <&3"#;
    let output = as_nobody("bash").args(["-c", CLIENT, "bash", &server.address, request]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn check_forbidden(answer: &str) {
    let answer = Answer::parse(answer);
    assert_eq!(answer.status, 403, "{answer:?}");
    assert!(answer.body.contains("--token") && answer.body.contains("Authorization: Bearer TOKEN"), "{answer:?}");
    assert!(!answer.body.contains("two"), "{answer:?}");
}

#[test]
fn another_user_is_refused_without_a_token() {
    if !can_act_as_nobody() {
        return;
    }
    let server = Server::start(&[]);
    fs::set_permissions(server.dir.path().join("a.txt"), Permissions::from_mode(0o600)).unwrap();
    let read = server.request_anew(&[], &[], "read_file", &read());
    assert!(server.exchange(&read).contains("two"), "the same request is served to the same user");
    check_forbidden(&exchange_as_nobody(&server, &read));
    let write = json!({ "path": "new.txt", "content": "theirs\n" });
    check_forbidden(&exchange_as_nobody(&server, &server.request_anew(&[], &[], "write_file", &write)));
    check_forbidden(&exchange_as_nobody(&server, &server.request("POST", &[], &message(1, "initialize", &hello(&json!({}))))));
    // Neither a session of the same user nor a header without a token helps.
    let session = server.shake_hands();
    let headers = [("mcp-session-id", session.as_str()), ("authorization", "Bearer s3cret-s3cret")];
    check_forbidden(&exchange_as_nobody(&server, &server.request("GET", &headers, "")));
    assert!(!server.dir.path().join("new.txt").exists());
}

#[test]
fn another_user_is_served_with_the_token() {
    if !can_act_as_nobody() {
        return;
    }
    let server = Server::start_with(&[], &[("SUREHAND_MCP_TOKEN", TOKEN)]);
    let read = |headers: &[(&str, &str)]| server.request_anew(headers, &[], "read_file", &read());
    let answer = exchange_as_nobody(&server, &read(&[("authorization", &format!("Bearer {TOKEN}"))]));
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("two"), "{answer}");
    let answer = exchange_as_nobody(&server, &read(&[]));
    assert!(answer.starts_with("HTTP/1.1 401") && !answer.contains("two"), "{answer}");
}

#[test]
fn root_is_refused_by_the_server_of_another_user() {
    if !can_act_as_nobody() {
        return;
    }
    if !as_nobody("test").args(["-x", PROGRAM]).status().unwrap().success() {
        eprintln!("not run: the other user cannot start {PROGRAM}");
        return;
    }
    let dir = workspace();
    for path in [dir.path(), &dir.path().join("a.txt")] {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let home = dir.path().to_str().unwrap().to_owned();
    let server = Server::start_by(as_nobody(PROGRAM), dir, &[], &[("HOME", &home)]);
    let read = server.request_anew(&[], &[], "read_file", &read());
    check_forbidden(&server.exchange(&read));
    let answer = exchange_as_nobody(&server, &read);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("two"), "{answer}");
}

#[test]
fn a_flood_of_connections_of_another_user_locks_nobody_out() {
    const FLOOD: &str = r#"ulimit -n "$(ulimit -Hn)"; for i in {1..1500}; do exec {fd}<>"/dev/tcp/${1/://}"; done; echo; cat"#;
    if !can_act_as_nobody() {
        return;
    }
    let server = Server::start(&[]);
    let session = server.shake_hands();
    let mut stream = server.subscribe(&session);
    let mut flood = as_nobody("bash");
    flood.args(["-c", FLOOD, "bash", &server.address]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut flood = flood.spawn().unwrap();
    flood.stdout.as_mut().unwrap().read_exact(&mut [0]).expect("all are connected");
    let other = server.shake_hands();
    check_refused(&server.call(&other, "write_file", &json!({ "path": "new.txt", "content": "new\n" })), false);
    wait_for(&mut stream, "notifications/resources/updated");
    // It ends when its input ends.
    flood.wait().unwrap();
}
