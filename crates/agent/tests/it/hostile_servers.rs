//! Servers that violate the protocol, over every protocol. An answer is understood, requested again, or refused for a
//! reason that a person understands. It is never half understood.

use std::time::Duration;

use serde_json::{Value, json};
use surehand_agent::model::{ModelConnection, ModelError, ModelProtocol, RetryPolicy, connect};
use surehand_testkit::model_server::{ModelServer, Turn};

use super::models::{ALL, ask, connected, connection, prompt, retry_policy};

const TEXT: &str = "I look at it: äöü 😀, \"quoted\".";

/// An answer with every part that an answer can have.
fn whole() -> Turn {
    Turn::calls(&[("read", json!({ "path": "a 😀.rs", "lines": [1, 2] })), ("list", json!({}))]).with_text(TEXT)
}

/// The required outcome of an odd answer.
enum Outcome {
    /// It is understood like the regular answer.
    Understood,
    /// It is requested again, for a reason with these words.
    Again(&'static str),
    /// The request fails with an error that has these words.
    Ends(&'static str),
}
use Outcome::{Again, Ends, Understood};

#[track_caller]
fn check(name: &str, turn: &Turn, outcome: &Outcome) {
    for protocol in ALL {
        check_over(protocol, name, turn, outcome);
    }
}

#[track_caller]
fn check_over(protocol: ModelProtocol, name: &str, turn: &Turn, outcome: &Outcome) {
    let server = ModelServer::start(vec![turn.clone(), whole()]);
    let retry = RetryPolicy { attempts: 2, ..retry_policy() };
    let connection = ModelConnection { retry, ..connection(protocol, &server.url()) };
    let (answer, heard) = ask(&mut *connected(&connection), &prompt("hello"));
    let whys: Vec<&str> = heard.iter().filter_map(|piece| piece.strip_prefix("again ")).collect();
    match outcome {
        Understood => assert_eq!((whys.as_slice(), server.turns_left()), (&[][..], 1), "{name}, {protocol:?}"),
        Again(why) => assert!(whys.len() == 1 && whys[0].contains(why), "{name}, {protocol:?}: {whys:?}, {answer:?}"),
        Ends(why) => {
            let error = answer.expect_err(name).to_string();
            assert!(error.contains(why) && server.turns_left() == 1, "{name}, {protocol:?}: {error}");
            return;
        }
    }
    let answer = answer.unwrap_or_else(|error| panic!("{name}, {protocol:?}: {error}"));
    let arguments = |at: usize| serde_json::from_str::<Value>(&answer.calls[at].arguments).unwrap();
    assert_eq!((answer.text.as_str(), answer.calls.len()), (TEXT, 2), "{name}, {protocol:?}: {answer:?}");
    assert_eq!((answer.calls[0].name.as_str(), answer.calls[1].name.as_str()), ("read", "list"), "{name}, {protocol:?}");
    assert_eq!((arguments(0), arguments(1)), (json!({ "path": "a 😀.rs", "lines": [1, 2] }), json!({})), "{name}, {protocol:?}");
    assert!(!answer.is_cut && answer.calls[0].id != answer.calls[1].id, "{name}, {protocol:?}: {answer:?}");
    assert!(answer.usage.input < 1_000_000 && answer.usage.output < 1_000_000, "{name}, {protocol:?}: {:?}", answer.usage);
}

/// Changes every event that is JSON.
fn with_events(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Turn {
    whole().rewritten(move |events| events.into_iter().map(|event| rewrite(&event, &change)).collect())
}

fn rewrite(event: &[u8], change: impl Fn(&mut Value)) -> Vec<u8> {
    let text = String::from_utf8(event.to_vec()).unwrap();
    let (name, data) = text.trim_end().split_once("data: ").unwrap();
    let Ok(mut data) = serde_json::from_str::<Value>(data) else { return event.to_vec() };
    change(&mut data);
    format!("{name}data: {data}\n\n").into_bytes()
}

/// Changes every field with one of these names, wherever it is.
fn change_fields(value: &mut Value, names: &[&str], change: &impl Fn(&mut Value)) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if names.contains(&name.as_str()) {
                    change(field);
                }
                change_fields(field, names, change);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| change_fields(item, names, change)),
        _ => {}
    }
}

fn replace_numbers(value: &mut Value, by: &Value) {
    match value {
        Value::Number(_) => value.clone_from(by),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace_numbers(field, by)),
        _ => {}
    }
}

/// The text as servers send it that split characters: each half escaped, in an event of its own.
fn split_in_surrogates(events: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    const HALVES: [(char, &str); 2] = [('\u{e000}', "\\ud83d"), ('\u{e001}', "\\ude00")];
    let half = |event: &[u8], number: usize| {
        let (mark, escaped) = HALVES[number];
        let event = rewrite(event, |event| {
            change_fields(event, &["content", "text", "delta", "arguments", "partial_json"], &|field| {
                let Some((before, after)) = field.as_str().and_then(|text| text.split_once('😀')) else { return };
                *field = json!(if number == 0 { format!("{before}{mark}") } else { format!("{mark}{after}") });
            });
        });
        String::from_utf8(event).unwrap().replace(mark, escaped).into_bytes()
    };
    // Events that repeat the whole text are not changed.
    let is_piece = |event: &[u8]| {
        let text = String::from_utf8_lossy(event);
        text.contains('😀') && text.contains("delta") && !text.contains("_item.") && !text.contains("\"output\"")
    };
    let split = |event: Vec<u8>| if is_piece(&event) { vec![half(&event, 0), half(&event, 1)] } else { vec![event] };
    events.into_iter().flat_map(split).collect()
}

fn html(status: u16) -> Turn {
    let page = "<!DOCTYPE html>\n<html><head><title>Bad gateway</title></head><body>nginx</body></html>";
    if status == 200 { Turn::body(page).header("content-type", "text/html") } else { Turn::status(status).with_body(page) }
}

#[test]
fn odd_answers_are_understood() {
    let set = |names: &'static [&'static str], to: Value| {
        with_events(move |event| change_fields(event, names, &|field| field.clone_from(&to)))
    };
    let usage =
        |number: Value| with_events(move |event| change_fields(event, &["usage"], &|field| replace_numbers(field, &number)));
    let insert = |odd: &'static [u8]| {
        whole().rewritten(move |events| events.into_iter().flat_map(|event| [odd.to_vec(), event]).collect())
    };
    let cases = [
        ("wrong content type", whole().header("content-type", "text/html; charset=utf-16")),
        ("JSON with the type of a stream", whole().plain().header("content-type", "text/event-stream")),
        ("duplicate ids of calls", set(&["call_id"], json!("same"))),
        ("usage below zero", usage(json!(-5))),
        ("usage beyond all numbers", usage(json!(1e300))),
        ("usage beyond u64", usage(serde_json::from_str("18446744073709551616").unwrap())),
        ("usage in words", usage(json!("many"))),
        ("usage that is nothing", set(&["usage"], Value::Null)),
        ("usage that is a list", set(&["usage"], json!([1, 2]))),
        ("comments between the events", insert(b": keep-alive\n\n")),
        ("empty lines between the events", insert(b"\n\n\r\n")),
        ("unknown fields of a stream", insert(b"retry: 5\nid: 7\nfoo\n\n")),
        ("unknown events", insert(b"event: mystery\ndata: {\"type\": \"mystery\", \"choices\": []}\n\n")),
        ("a byte order mark", whole().rewritten(|events| [vec![b"\xef\xbb\xbf".to_vec()], events].concat())),
        ("split surrogates", whole().rewritten(split_in_surrogates)),
        ("a slow drip", whole().dripping(Duration::from_millis(2))),
        ("HTTP/1.0 until the connection closes", whole().over_http_1_0()),
        ("one JSON object over HTTP/1.0", whole().plain().over_http_1_0()),
        (
            "line feeds and carriage returns",
            whole().rewritten(|events| {
                events.into_iter().map(|event| String::from_utf8(event).unwrap().replace('\n', "\r\n").into_bytes()).collect()
            }),
        ),
        (
            "no empty line at the end",
            whole().rewritten(|mut events| {
                events.last_mut().unwrap().pop();
                events
            }),
        ),
    ];
    for (name, turn) in &cases {
        check(name, turn, &Understood);
    }
    let ids = with_events(|event| {
        change_fields(event, &["tool_calls", "content_block"], &|field| {
            change_fields(field, &["id"], &|id| *id = json!("same"));
        });
    });
    check_over(ModelProtocol::Anthropic, "duplicate ids of blocks", &ids, &Understood);
}

#[test]
fn unknown_reasons_to_end_and_empty_fields_are_understood() {
    let reason = with_events(|event| {
        change_fields(event, &["finish_reason", "stop_reason"], &|field| {
            if field.is_string() {
                *field = json!("mystery");
            }
        });
    });
    let content = with_events(|event| {
        change_fields(event, &["content", "text", "arguments", "name"], &|field| {
            if field == "" {
                *field = Value::Null;
            }
        });
    });
    let refusal = with_events(|event| {
        if let Some(delta) = event.pointer_mut("/choices/0/delta") {
            delta["refusal"] = Value::Null;
            delta["function_call"] = Value::Null;
            delta["audio"] = json!({});
        }
    });
    for (name, turn) in [("an unknown reason to end", reason), ("null content", content), ("fields that are null", refusal)] {
        check(name, &turn, &Understood);
    }
}

#[test]
fn streams_without_a_final_event_are_understood_where_nothing_can_be_missing() {
    let without_last = whole().rewritten(|mut events| {
        events.pop();
        events
    });
    check_over(ModelProtocol::OpenAi, "no [DONE]", &without_last, &Understood);
    check_over(ModelProtocol::Anthropic, "no message_stop", &without_last, &Understood);
    // Without its last event, another call could follow.
    check_over(ModelProtocol::Responses, "no response.completed", &without_last, &Again("the answer broke off"));
}

#[test]
fn names_of_tools_may_come_in_pieces() {
    let in_pieces = whole().rewritten(|events| {
        let pieces = |event: Vec<u8>| {
            let name =
                |piece: &'static str| move |event: &mut Value| change_fields(event, &["name"], &|name| *name = json!(piece));
            if !String::from_utf8_lossy(&event).contains("\"name\":\"read\"") {
                return vec![event];
            }
            vec![rewrite(&event, name("re")), rewrite(&event, name("ad"))]
        };
        events.into_iter().flat_map(pieces).collect()
    });
    check_over(ModelProtocol::OpenAi, "a name in pieces", &in_pieces, &Understood);
}

#[test]
fn a_compressed_answer_is_unpacked() {
    let chunk = json!({ "choices": [{ "message": { "content": TEXT }, "finish_reason": "stop" }] });
    let packed = gzip(chunk.to_string().as_bytes());
    let server = ModelServer::start(vec![Turn::body(packed.clone()).header("content-encoding", "gzip")]);
    let (answer, _) = ask(&mut *connected(&connection(ModelProtocol::OpenAi, &server.url())), &prompt("hello"));
    assert_eq!(answer.unwrap().text, TEXT);
    check("broken gzip", &Turn::body(packed[..20].to_vec()).header("content-encoding", "gzip"), &Again("the answer broke off"));
    check("no gzip at all", &Turn::body("hello").header("content-encoding", "gzip"), &Again("the answer broke off"));
    check("another compression", &Turn::body("x").header("content-encoding", "br"), &Ends("is compressed (br)"));
}

/// Wraps bytes in gzip without compression.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap();
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        (0..8).for_each(|_| crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 });
    }
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    let lengths = [length.to_le_bytes(), (!length).to_le_bytes()].concat();
    [&head[..], &lengths, bytes, &(!crc).to_le_bytes(), &u32::from(length).to_le_bytes()].concat()
}

#[test]
fn broken_answers_are_asked_for_again() {
    let date = "Wed, 21 Oct 2015 07:28:00 GMT";
    let cases = [
        ("429 in seconds", Turn::status(429).header("retry-after", "0"), "429: "),
        ("429 with a date", Turn::status(429).header("retry-after", date), "429: "),
        ("429 with nonsense", Turn::status(429).header("retry-after", "soon"), "429: "),
        ("500", Turn::status(500), "500: "),
        ("502 with a page", html(502), "502: no message"),
        ("503 in seconds", Turn::status(503).header("retry-after", "0.001"), "503: "),
        ("529", Turn::status(529).saying("Overloaded"), "529: Overloaded"),
        ("a page with 200", html(200), "no event in it"),
        ("an empty 200", Turn::body(""), "the answer is empty"),
        ("an empty object", Turn::body("{}"), "it contains no answer"),
        ("an empty list", Turn::body("[]"), "it contains no answer"),
        ("null", Turn::body("data: null\n\n"), ""),
        ("bytes that are no text", Turn::body(vec![0xff, 0xfe, 0x80, 0x00]), "the answer cannot be read"),
        ("an event that is no JSON", Turn::body("data: {\"choices\": [\n\n"), "not JSON"),
        ("an event that is a number", Turn::body("data: 7\n\n"), ""),
        ("nothing at all", Turn::close(), ""),
        ("half a head", Turn::raw("HTTP/1.1 200 OK\r\ncontent-ty"), ""),
        ("no HTTP", Turn::raw("SSH-2.0-OpenSSH_9.6\r\n"), ""),
        ("a wrong length", Turn::raw("HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\ndata: {}\n\n"), "the answer broke off"),
        ("chunks that are none", Turn::raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello"), ""),
        ("an error in the stream", whole().failing("overloaded_error", "Overloaded"), "Overloaded"),
        ("a head that is too long", Turn::raw(format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(1 << 20))), ""),
    ];
    for (name, turn, why) in &cases {
        check(name, turn, &Again(why));
    }
}

#[test]
fn headers_without_end_are_given_up() {
    let endless =
        Turn::raw("HTTP/1.1 200 OK\r\n").kept_alive("x-more: and more and more and more and more and more\r\n".repeat(50));
    check("endless headers", &endless, &Again(""));
}

#[test]
fn what_will_not_pass_ends_at_once() {
    let cases = [
        ("a wrong key", Turn::status(401).saying("no"), "no\nset "),
        ("a page with 403", html(403), "403"),
        (
            "another address",
            Turn::status(301).header("location", "https://elsewhere.example/"),
            "it has moved to https://elsewhere",
        ),
        ("a redirect without an address", Turn::status(302), "302"),
        ("a status that is none", Turn::status(299).with_body("{\"error\": {\"message\": \"no such thing\"}}"), "no such thing"),
        ("informational and nothing else", Turn::status(304), "304"),
    ];
    for (name, turn, why) in &cases {
        match *name {
            // A success that contains an error may be temporary.
            "a status that is none" => check(name, turn, &Again(why)),
            _ => check(name, turn, &Ends(why)),
        }
    }
}

#[test]
fn a_key_follows_no_redirect() {
    for protocol in ALL {
        for status in [301, 302, 303, 307, 308] {
            let elsewhere = ModelServer::start(vec![whole()]);
            let there = elsewhere.url().replace("127.0.0.1", "localhost");
            let server = ModelServer::start(vec![Turn::status(status).header("location", &there)]);
            let key = |name: &str| name.ends_with("_API_KEY").then(|| "sk-secret-123".to_owned());
            let (answer, _) = ask(&mut *connect(&connection(protocol, &server.url()), &key).unwrap(), &prompt("hello"));
            let Err(ModelError::Refused { why, .. }) = answer else { panic!("{protocol:?}, {status}: {answer:?}") };
            assert!(why.contains(&there) && why.contains("keys do not follow redirects"), "{why}");
            assert_eq!(elsewhere.requests(), [], "{protocol:?}, {status}");
        }
    }
}

#[test]
fn a_connection_may_break_anywhere() {
    for protocol in ALL {
        // The last points are beyond the end, where nothing breaks.
        for point in (0..5000).step_by(37) {
            let server = ModelServer::start(vec![whole().broken_at(point), whole()]);
            let (answer, heard) = ask(&mut *connected(&connection(protocol, &server.url())), &prompt("hello"));
            let answer = answer.unwrap_or_else(|error| panic!("{protocol:?} at {point}: {error}"));
            assert_eq!((answer.text.as_str(), answer.calls.len()), (TEXT, 2), "{protocol:?} at {point}: {heard:?}");
            assert_eq!(answer.calls[0].arguments, json!({ "path": "a 😀.rs", "lines": [1, 2] }).to_string());
            let asked_again = heard.iter().any(|piece| piece.starts_with("again "));
            assert_eq!(asked_again, server.turns_left() == 0, "{protocol:?} at {point}");
        }
    }
}

#[test]
fn an_answer_may_be_cut_between_any_two_bytes() {
    for bytes in [1, 2, 3, 5, 11] {
        check("pieces", &whole().in_pieces_of(bytes), &Understood);
        check("pieces of one object", &whole().plain().in_pieces_of(bytes), &Understood);
    }
}
