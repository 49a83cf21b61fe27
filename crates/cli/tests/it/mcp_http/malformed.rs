//! Requests that are not HTTP, not JSON, or not a message: each is the client's mistake, and the server goes on.

use super::*;

/// The status of the answer to these bytes, or `None` if the connection is closed without one.
fn status_of(stream: &mut TcpStream, request: &[u8]) -> Option<u16> {
    // The server may close the connection before it has read everything.
    let _ = stream.write_all(request);
    read_status(stream)
}

/// Like `status_of`, but the stream ends after these bytes.
fn status_of_truncated(stream: &mut TcpStream, request: &[u8]) -> Option<u16> {
    // The caller is determined when the connection is accepted, and a stream that has ended has no owner. So wait for
    // an answer first.
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut first = Vec::new();
    while !first.ends_with(b"served at /mcp") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        first.extend(byte);
    }
    stream.write_all(request).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    read_status(stream)
}

fn read_status(stream: &mut TcpStream) -> Option<u16> {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    answer.strip_prefix("HTTP/1.1 ").map(|rest| rest[..3].parse().unwrap())
}

/// A request with these additional header lines.
fn request(lines: &str, body: &[u8]) -> Vec<u8> {
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n";
    [head.as_bytes(), lines.as_bytes(), b"\r\n", body].concat()
}

/// A request with this body and its correct length.
fn with_body(body: &[u8]) -> Vec<u8> {
    request(&format!("content-length: {}\r\n", body.len()), body)
}

#[test]
fn a_malformed_request_is_a_mistake_of_the_client() {
    const CHUNKED: &str = "transfer-encoding: chunked\r\n";
    let server = Server::start(&[]);
    let hello = message(1, "initialize", &hello(&json!({})));
    let (hello, length) = (hello.as_bytes(), hello.len());
    let both = format!("content-length: {length}\r\n{CHUNKED}");
    let framing = [
        ("chunked and a length, without chunks", request(&both, hello)),
        ("a length and chunked, without chunks", request(&format!("{CHUNKED}content-length: {length}\r\n"), hello)),
        ("two lengths", request(&format!("content-length: {length}\r\ncontent-length: 5\r\n"), hello)),
        ("two lengths in one line", request(&format!("content-length: {length}, 5\r\n"), hello)),
        ("a negative length", request("content-length: -1\r\n", hello)),
        ("a length with a sign", request(&format!("content-length: +{length}\r\n"), hello)),
        ("a length that is no number", request("content-length: ten\r\n", hello)),
        ("a length beyond 64 bits", request("content-length: 99999999999999999999999\r\n", hello)),
        ("a length of all memory", request("content-length: 18446744073709551615\r\n", hello)),
        ("a body longer than its length", request("content-length: 10\r\n", hello)),
        ("a chunk size that is no number", request(CHUNKED, b"zz\r\nhello\r\n0\r\n\r\n")),
        ("a chunk size beyond 64 bits", request(CHUNKED, b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n")),
        ("a negative chunk size", request(CHUNKED, b"-5\r\nhello\r\n0\r\n\r\n")),
        ("a chunk longer than its size", request(CHUNKED, b"2\r\nhello\r\n0\r\n\r\n")),
        ("an unknown encoding", request("transfer-encoding: gzip\r\n", hello)),
        ("chunked that is not last", request("transfer-encoding: chunked, gzip\r\n", hello)),
    ];
    let bodies: [(&str, &[u8]); 14] = [
        ("no body", b""),
        ("no JSON", b"hello"),
        ("half of JSON", &hello[..length / 2]),
        ("JSON and more", &[hello, b"}"].concat()),
        ("invalid UTF-8", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}"),
        ("half a surrogate", br#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#),
        ("UTF-16", &"{\"jsonrpc\":\"2.0\"}".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>()),
        ("NUL bytes", &[0; 100]),
        ("deep nesting", &[b'['; 100_000]),
        ("null", b"null"),
        ("an empty object", b"{}"),
        ("an array", b"[]"),
        ("a huge number as id", br#"{"jsonrpc":"2.0","id":1e999,"method":"ping"}"#),
        ("another version", br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#),
    ];
    let heads = [
        ("no HTTP", b"hello\r\n\r\n".to_vec()),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        ("an unknown version", b"POST /mcp HTTP/9.9\r\nhost: localhost\r\n\r\n".to_vec()),
        ("a method with a control character", b"PO\x01ST /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec()),
        ("no host", b"POST /mcp HTTP/1.1\r\nconnection: close\r\n\r\n".to_vec()),
        ("a long path", format!("POST /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(100_000)).into()),
        ("a space before a colon", request(&format!("content-length : {length}\r\n"), hello)),
        ("a name that is none", request("a b(c): d\r\n", hello)),
        ("a NUL byte in a value", request("x: a\0b\r\n", hello)),
        ("a folded line", request("x: a\r\n b\r\ncontent-length: 0\r\n", b"")),
        ("a long value", request(&format!("x: {}\r\n", "x".repeat(2 << 20)), hello)),
        ("many headers", request(&"x: x\r\n".repeat(10_000), hello)),
        ("a session that is no text", request("mcp-session-id: \u{fe}\u{ff}\r\ncontent-length: 0\r\n", b"")),
        ("a revision that is no text", request(&format!("mcp-protocol-version: \u{fe}\r\ncontent-length: {length}\r\n"), hello)),
    ];
    let truncated = [
        ("half of a head", b"POST /mcp HTTP/1.1\r\nhost: loc".to_vec()),
        ("a body shorter than its length", request("content-length: 100000\r\n", hello)),
        ("chunks without an end", request(CHUNKED, b"5\r\nhello\r\n")),
    ];
    let connect = || TcpStream::connect(&server.address).unwrap();
    for (what, body) in bodies {
        assert_eq!(status_of(&mut connect(), &with_body(body)), Some(400), "{what}");
    }
    let whole = framing.into_iter().chain(heads).map(|(what, request)| (what, status_of(&mut connect(), &request)));
    let truncated = truncated.into_iter().map(|(what, request)| (what, status_of_truncated(&mut connect(), &request)));
    for (what, status) in whole.chain(truncated) {
        assert!(status.is_none_or(|status| (400..500).contains(&status)), "{what}: {status:?}");
    }
    check_refused(&server.call(&server.shake_hands(), "read_file", &read()), false);
}

/// As RFC 9112 requires: the chunks count, and nothing that follows them is taken for another request.
#[test]
fn a_connection_with_chunks_and_a_length_ends_after_its_request() {
    let server = Server::start(&[]);
    let hello = message(1, "initialize", &hello(&json!({})));
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\n\
         content-type: application/json\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n\
         {:x}\r\n{hello}\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: localhost\r\n\r\n",
        hello.len()
    );
    let answer = server.exchange(&request);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.matches("HTTP/1.1").count() == 1, "{answer}");
}
