//! Silent connections, more than the server accepts.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;

const SILENT: usize = 1500;

/// Raises the limit of open files of this process as far as possible.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

fn connect_silently(server: &Server) -> Vec<TcpStream> {
    (0..SILENT).map(|_| TcpStream::connect(&server.address).unwrap()).collect()
}

#[test]
fn silent_connections_lock_nobody_out() {
    allow_many_files();
    let mut server = Server::start(&[]);
    let session = server.shake_hands();
    let mut stream = server.subscribe(&session);
    let silent = connect_silently(&server);
    let other = server.shake_hands();
    check_refused(&server.call(&other, "write_file", &json!({ "path": "new.txt", "content": "new\n" })), false);
    // A stream keeps its connection, although it is older than all the silent ones.
    wait_for(&mut stream, "notifications/resources/updated");
    server.signal("-TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    drop(silent);
}

#[test]
fn silent_connections_without_the_token_lock_nobody_out() {
    allow_many_files();
    let server = Server::start_with(&[], &[("SUREHAND_MCP_TOKEN", TOKEN)]);
    let silent = connect_silently(&server);
    // Some of them have sent a request, without an answer.
    for mut stream in silent.iter().rev().take(100) {
        stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\n").unwrap();
    }
    server.check_status(&[("authorization", &format!("Bearer {TOKEN}"))], 200);
    drop(silent);
}
