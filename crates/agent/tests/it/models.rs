//! Models behind a real server on this machine: what is asked, what is understood, and what happens when it goes wrong.

use std::{net::TcpListener, thread, time::Duration};

use serde_json::{Value, json};
use surehand_agent::{
    CancelToken,
    model::{
        CallResult, ChatMessage, ChatModel, ModelAnswer, ModelCall, ModelConnection, ModelError, ModelProtocol, Prompt,
        RetryPolicy, StreamEvent, TokenPrices, TokenUsage, ToolSpec, connect,
    },
};
use surehand_testkit::model_server::{ModelServer, Turn};

const BOTH: [ModelProtocol; 2] = [ModelProtocol::OpenAi, ModelProtocol::Anthropic];

/// Patient with silence, quick to ask again.
fn retry_policy() -> RetryPolicy {
    let instant = Duration::from_micros(10);
    RetryPolicy { idle: Duration::from_secs(3600), attempts: 4, first_pause: instant, longest_pause: instant }
}

fn connection(protocol: ModelProtocol, url: &str) -> ModelConnection {
    ModelConnection {
        model: "test-model".to_owned(),
        url: Some(url.to_owned()),
        protocol: Some(protocol),
        retry: retry_policy(),
        ..ModelConnection::default()
    }
}

fn no_environment(_: &str) -> Option<String> {
    None
}

fn connected(connection: &ModelConnection) -> Box<dyn ChatModel> {
    connect(connection, &no_environment).unwrap()
}

fn model(protocol: ModelProtocol, server: &ModelServer) -> Box<dyn ChatModel> {
    connected(&connection(protocol, &server.url()))
}

fn prompt(text: &str) -> Prompt {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let schema = schema.as_object().unwrap().clone();
    let tool = ToolSpec { name: "read".to_owned(), description: "reads a file".to_owned(), schema };
    Prompt { system: "be careful".to_owned(), messages: vec![ChatMessage::User(text.to_owned())], tools: vec![tool] }
}

/// What was answered, and what was heard meanwhile.
type Said = (Result<ModelAnswer, ModelError>, Vec<String>);

/// Asks. Of retries it notes the reason, not the pause.
fn ask(model: &mut dyn ChatModel, prompt: &Prompt) -> Said {
    let mut heard = Vec::new();
    let answer = model.ask(prompt, &CancelToken::default(), &mut |piece| {
        heard.push(match piece {
            StreamEvent::Text(text) => format!("text {text}"),
            StreamEvent::Calling(tool) => format!("calling {tool}"),
            StreamEvent::Retry { why, .. } => format!("again {why}"),
        });
    });
    (answer, heard)
}

/// What a server that plays these turns is understood to say, in each protocol.
#[track_caller]
fn played(turns: &[Turn]) -> [Said; 2] {
    BOTH.map(|protocol| {
        let server = ModelServer::start(turns.to_vec());
        let said = ask(&mut *model(protocol, &server), &prompt("hello"));
        assert_eq!(server.turns_left(), 0, "{protocol:?} asked too seldom: {said:?}");
        said
    })
}

/// In both protocols, these turns come to this text and these calls.
#[track_caller]
fn check(turns: &[Turn], text: &str, calls: &[(&str, &str)]) {
    for (answer, heard) in played(turns) {
        let answer = answer.unwrap_or_else(|error| panic!("{error}; heard {heard:?}"));
        let found: Vec<_> = answer.calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
        assert_eq!((answer.text.as_str(), found.as_slice()), (text, calls));
        assert!(answer.calls.iter().all(|call| !call.id.is_empty()));
        // What was heard since the last retry is what counts.
        let again = heard.iter().rposition(|piece| piece.starts_with("again ")).map_or(0, |at| at + 1);
        let texts: String = heard[again..].iter().filter_map(|piece| piece.strip_prefix("text ")).collect();
        assert_eq!(texts, text);
    }
}

#[test]
fn text_is_heard_as_it_comes() {
    for (answer, heard) in played(&[Turn::text("Hello, world! Grüße.")]) {
        assert_eq!(answer.unwrap().text, "Hello, world! Grüße.");
        assert_eq!(heard, ["text Hello, ", "text world! ", "text Grüße."]);
    }
}

#[test]
fn reasoning_is_not_part_of_the_answer() {
    for (answer, heard) in played(&[Turn::text("yes").with_thought("hm")]) {
        assert_eq!(answer.unwrap().text, "yes");
        assert_eq!(heard, ["text yes"]);
    }
}

#[test]
fn several_calls_come_at_once() {
    let calls = [("read", json!({ "path": "a.rs" })), ("read", json!({ "path": "b.rs" })), ("list", json!({}))];
    let expected = [("read", r#"{"path":"a.rs"}"#), ("read", r#"{"path":"b.rs"}"#), ("list", "{}")];
    check(&[Turn::calls(&calls)], "", &expected);
    check(&[Turn::calls(&calls).with_text("I look.")], "I look.", &expected);
    check(&[Turn::calls(&calls).with_whole_calls()], "", &expected);
    check(&[Turn::calls(&calls).with_whole_calls().without_ids()], "", &expected);
    check(&[Turn::calls(&calls).without_ids()], "", &expected);
    check(&[Turn::calls(&calls).with_text("I look.").plain()], "I look.", &expected);
}

#[test]
fn bytes_may_be_cut_anywhere() {
    let arguments = json!({ "text": "äöü 😀 \"quoted\" \n line" });
    let written = arguments.to_string();
    for bytes in [1, 2, 3, 7, 64] {
        let turn = Turn::call("write", arguments.clone()).with_text("Grüße 😀 …").in_pieces_of(bytes);
        check(&[turn], "Grüße 😀 …", &[("write", &written)]);
    }
}

#[test]
fn arguments_that_are_no_json_are_passed_on_as_written() {
    check(&[Turn::raw_call("read", r#"{"path": "a.rs"#)], "", &[("read", r#"{"path": "a.rs"#)]);
    check(&[Turn::raw_call("read", "")], "", &[("read", "{}")]);
}

#[test]
fn an_answer_that_got_too_long_is_marked() {
    for (answer, _) in played(&[Turn::text("and so on and").cut()]) {
        assert!(answer.unwrap().is_cut);
    }
}

#[test]
fn usage_is_what_the_provider_counts() {
    for (answer, _) in played(&[Turn::text("hi").with_usage(1000, 800, 20)]) {
        assert_eq!(answer.unwrap().usage, TokenUsage { input: 1000, cached: 800, output: 20, cost: None });
    }
}

#[test]
fn where_the_provider_does_not_count_it_is_estimated() {
    for (answer, _) in played(&[Turn::text("hi").without_usage()]) {
        let TokenUsage { input, cached, output, cost } = answer.unwrap().usage;
        assert!((1..200).contains(&input) && (1..20).contains(&output), "{input} {output}");
        assert_eq!((cached, cost), (0, None));
    }
}

#[test]
fn cost_is_computed_from_prices_unless_the_provider_says_it() {
    let prices = TokenPrices { input: Some(2.0), cached: Some(1.0), output: Some(10.0) };
    let cost = |protocol, turn| {
        let server = ModelServer::start(vec![turn]);
        let connection = ModelConnection { prices, ..connection(protocol, &server.url()) };
        ask(&mut *connected(&connection), &prompt("hello")).0.unwrap().usage.cost
    };
    for protocol in BOTH {
        assert_eq!(cost(protocol, Turn::text("hi").with_usage(1_000_000, 500_000, 100_000)), Some(1.0 + 0.5 + 1.0));
    }
    let body = json!({ "choices": [{ "message": { "content": "hi" }, "finish_reason": "stop" }], "usage": { "cost": 0.25 } });
    assert_eq!(cost(ModelProtocol::OpenAi, Turn::body(body.to_string())), Some(0.25));
}

// What is sent.

/// The body of the request that is made for this prompt.
fn sent(protocol: ModelProtocol, prompt: &Prompt) -> Value {
    let server = ModelServer::start(vec![Turn::text("hi")]);
    ask(&mut *model(protocol, &server), prompt).0.unwrap();
    server.requests()[0].body.clone()
}

fn conversation() -> Prompt {
    let call = |id: &str, arguments: &str| ModelCall { id: id.into(), name: "read".into(), arguments: arguments.into() };
    let result = |id: &str, is_error| CallResult { id: id.into(), text: format!("result {id}"), is_error };
    let mut prompt = prompt("hello");
    prompt.messages.extend([
        ChatMessage::Assistant { text: "I look.".into(), calls: vec![call("a", r#"{"path":"x"}"#), call("b", "{\"path\"")] },
        ChatMessage::Results(vec![result("a", false), result("b", true)]),
        ChatMessage::User("go on".into()),
    ]);
    prompt
}

#[test]
fn a_conversation_in_chat_completions() {
    let call = |id: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": "read", "arguments": arguments } });
    assert_eq!(
        sent(ModelProtocol::OpenAi, &conversation()),
        json!({
            "model": "test-model",
            "stream": true,
            "stream_options": { "include_usage": true },
            "messages": [
                { "role": "system", "content": "be careful" },
                { "role": "user", "content": "hello" },
                { "role": "assistant", "content": "I look.", "tool_calls": [call("a", r#"{"path":"x"}"#), call("b", "{}")] },
                { "role": "tool", "tool_call_id": "a", "content": "result a" },
                { "role": "tool", "tool_call_id": "b", "content": "result b" },
                { "role": "user", "content": "go on" },
            ],
            "tools": [{ "type": "function", "function": {
                "name": "read", "description": "reads a file",
                "parameters": { "type": "object", "properties": { "path": { "type": "string" } } },
            } }],
        })
    );
}

#[test]
fn a_conversation_in_messages() {
    assert_eq!(
        sent(ModelProtocol::Anthropic, &conversation()),
        json!({
            "model": "test-model",
            "stream": true,
            "max_tokens": 8192,
            "system": [{ "type": "text", "text": "be careful", "cache_control": { "type": "ephemeral" } }],
            "messages": [
                { "role": "user", "content": [{ "type": "text", "text": "hello" }] },
                { "role": "assistant", "content": [
                    { "type": "text", "text": "I look." },
                    { "type": "tool_use", "id": "a", "name": "read", "input": { "path": "x" } },
                    { "type": "tool_use", "id": "b", "name": "read", "input": {} },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "a", "content": "result a" },
                    { "type": "tool_result", "tool_use_id": "b", "content": "result b", "is_error": true },
                    { "type": "text", "text": "go on" },
                ] },
            ],
            "tools": [{
                "name": "read", "description": "reads a file",
                "input_schema": { "type": "object", "properties": { "path": { "type": "string" } } },
            }],
        })
    );
}

#[test]
fn keys_go_into_the_headers() {
    let env = |name: &str| (name == "SUREHAND_API_KEY").then(|| "sk-secret".to_owned());
    for (protocol, path, header, value) in [
        (ModelProtocol::OpenAi, "/v1/chat/completions", "authorization", "Bearer sk-secret"),
        (ModelProtocol::Anthropic, "/v1/messages", "x-api-key", "sk-secret"),
    ] {
        let server = ModelServer::start(vec![Turn::text("hi"); 2]);
        ask(&mut *connect(&connection(protocol, &server.url()), &env).unwrap(), &prompt("hello")).0.unwrap();
        ask(&mut *model(protocol, &server), &prompt("hello")).0.unwrap();
        let requests = server.requests();
        assert_eq!(requests[0].path, path);
        assert_eq!(requests[0].header(header), Some(value));
        assert_eq!(requests[0].header("content-type"), Some("application/json"));
        assert_eq!(requests[0].header("anthropic-version"), (protocol == ModelProtocol::Anthropic).then_some("2023-06-01"));
        assert_eq!(requests[1].header(header), None, "no key, no header");
    }
}

#[test]
fn a_server_that_does_not_know_a_field_is_asked_without_it() {
    let refusal = Turn::status(422).saying("Extra inputs are not permitted: stream_options");
    let server = ModelServer::start(vec![refusal, Turn::text("hi"), Turn::text("hi")]);
    let mut model = model(ModelProtocol::OpenAi, &server);
    assert_eq!(ask(&mut *model, &prompt("hello")).0.unwrap().text, "hi");
    assert_eq!(ask(&mut *model, &prompt("hello")).0.unwrap().text, "hi");
    let asked: Vec<bool> = server.requests().iter().map(|request| request.body.get("stream_options").is_some()).collect();
    assert_eq!(asked, [true, false, false], "learnt for good");
}

// What goes wrong and may pass.

/// In both protocols, this turn is tried again, for this reason.
#[track_caller]
fn passes(turn: Turn, expected: &str) {
    for (answer, heard) in played(&[turn, Turn::text("it works")]) {
        assert_eq!(answer.unwrap().text, "it works");
        let why: Vec<_> = heard.iter().filter_map(|piece| piece.strip_prefix("again ")).collect();
        assert_eq!(why.len(), 1);
        assert!(why[0].starts_with(expected), "{why:?}");
    }
}

#[test]
fn a_busy_server_is_asked_again() {
    passes(Turn::status(429).header("retry-after", "0"), "429: scripted 429");
    passes(Turn::status(429).header("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT").saying("slow down"), "429: slow down");
    passes(Turn::status(500), "500: scripted 500");
    passes(Turn::status(503).with_body("<html>down</html>"), "503: no message");
    passes(Turn::status(529).saying("Overloaded"), "529: Overloaded");
    passes(Turn::status(408), "408: scripted 408");
    passes(Turn::status(409), "409: scripted 409");
}

fn long() -> Turn {
    Turn::text("a long answer that does not arrive")
}

#[test]
fn an_answer_that_breaks_off_is_asked_for_again() {
    passes(long().broken(), "the answer broke off");
    passes(long().unfinished(), "the answer broke off");
    passes(Turn::call("read", json!({ "path": "a/long/path" })).broken(), "the answer broke off");
    passes(long().plain().broken(), "the answer broke off");
    passes(Turn::close(), "");
}

#[test]
fn an_error_in_the_stream_may_pass() {
    passes(long().failing("overloaded_error", "Overloaded"), "529: Overloaded");
    passes(long().failing("api_error", "Internal server error"), "Internal server error");
}

#[test]
fn garbage_is_no_answer() {
    passes(Turn::body("<html>hello</html>"), "the answer cannot be read (no event in it): <html>hello</html>");
    passes(Turn::body(vec![0xff, 0xfe, 0x00]), "the answer cannot be read");
    passes(Turn::body("data: nonsense\n\n"), "not JSON: nonsense");
    passes(Turn::body("{\"half\": "), "the answer cannot be read");
    passes(Turn::body("{}"), "it contains no answer");
    passes(Turn::body(""), "the answer is empty");
    passes(Turn::body(" \n "), "the answer is empty");
}

#[test]
fn an_event_without_end_is_no_answer() {
    passes(Turn::body(vec![b'x'; 11 << 20]), "an event is longer than 10 MB");
}

#[test]
fn an_answer_without_end_is_no_answer() {
    passes(Turn::body(": nothing but comments\n\n".repeat((51 << 20) / 24)), "the answer is longer than 50 MB");
}

#[test]
fn what_does_not_pass_is_given_up_after_some_attempts() {
    for (answer, heard) in played(&vec![Turn::status(429); 4]) {
        let why = "429: scripted 429\ntry again later, or with another model".to_owned();
        assert_eq!(answer, Err(ModelError::Unavailable { model: "test-model".into(), attempts: 4, why }));
        assert_eq!(heard, ["again 429: scripted 429"; 3]);
    }
    let late = [vec![Turn::status(429); 3], vec![Turn::text("at last")]].concat();
    check(&late, "at last", &[]);
}

#[test]
fn a_server_that_is_not_there_is_told_with_its_address() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    for protocol in BOTH {
        let (answer, heard) = ask(&mut *connected(&connection(protocol, &url)), &prompt("hello"));
        let Err(ModelError::Unavailable { attempts: 4, why, .. }) = answer else { panic!("{answer:?}") };
        assert!(why.contains(&format!("that a server answers at {url}/v1/")), "{why}");
        assert_eq!(heard.len(), 3);
    }
}

#[test]
fn silence_is_a_failure() {
    for turn in [Turn::hang(), long().stalled()] {
        for protocol in BOTH {
            let server = ModelServer::start(vec![turn.clone(); 2]);
            let retry = RetryPolicy { idle: Duration::from_millis(100), attempts: 2, ..retry_policy() };
            let connection = ModelConnection { retry, ..connection(protocol, &server.url()) };
            let (answer, _) = ask(&mut *connected(&connection), &prompt("hello"));
            let Err(ModelError::Unavailable { attempts: 2, why, .. }) = answer else { panic!("{answer:?}") };
            assert!(why.starts_with("nothing came for 0.1 seconds\n"), "{why}");
        }
    }
}

#[test]
fn a_whole_answer_counts_though_the_line_stays_open_or_breaks() {
    let chunk = json!({ "choices": [{ "delta": { "content": "hi" }, "finish_reason": "stop" }] });
    let turn = Turn::body(format!("data: {chunk}\n\n"));
    for turn in [turn.clone(), turn.clone().broken(), turn.stalled()] {
        let server = ModelServer::start(vec![turn; 4]);
        let retry = RetryPolicy { idle: Duration::from_secs(1), ..retry_policy() };
        let connection = ModelConnection { retry, ..connection(ModelProtocol::OpenAi, &server.url()) };
        let (answer, _) = ask(&mut *connected(&connection), &prompt("hello"));
        assert_eq!(answer.unwrap().text, "hi");
    }
}

// What goes wrong for good.

/// In both protocols, this turn is a refusal with these words.
#[track_caller]
fn refuses(turn: Turn, status: u16, expected: &str) {
    for (answer, heard) in played(&[turn]) {
        let Err(ModelError::Refused { model, status: found, why }) = answer else { panic!("{answer:?}") };
        assert_eq!((model.as_str(), found), ("test-model", status));
        assert!(why.starts_with(expected), "{why}");
        assert_eq!(heard, [""; 0]);
    }
}

#[test]
fn a_refusal_has_the_providers_words_and_what_to_do() {
    refuses(Turn::status(400).saying("bad schema"), 400, "bad schema");
    refuses(Turn::status(402).saying("pay first"), 402, "pay first\nthe account of the key in ");
    refuses(Turn::status(403).saying("not for you"), 403, "not for you\nthe key in ");
    refuses(
        Turn::status(404).saying("no such model"),
        404,
        "no such model\ncheck the name of the model, test-model, and the address, ",
    );
    refuses(Turn::status(422).with_body(r#"{"detail":"field required"}"#), 422, "field required");
    let empty = r#"{"error":{"message":"quota","code":"insufficient_quota"}}"#;
    refuses(Turn::status(429).with_body(empty), 429, "quota\nthe account of the key in ");
}

#[test]
fn a_prompt_that_is_too_long_is_told_as_such() {
    let words = "prompt is too long: 210000 tokens > 200000 maximum";
    let remedy = "\nthe prompt is too long for test-model: ";
    refuses(Turn::status(400).saying(words), 400, &format!("{words}{remedy}"));
    refuses(Turn::status(413).with_body(""), 413, &format!("no message{remedy}"));
}

#[test]
fn a_refusal_may_come_in_the_stream() {
    let server = ModelServer::start(vec![long().failing("invalid_request_error", "no")]);
    let (answer, _) = ask(&mut *model(ModelProtocol::Anthropic, &server), &prompt("hello"));
    assert_eq!(answer, Err(ModelError::Refused { model: "test-model".into(), status: 400, why: "no".into() }));
}

#[test]
fn a_redirect_is_not_followed() {
    refuses(
        Turn::status(307).header("location", "http://elsewhere.example/"),
        307,
        "it has moved to http://elsewhere.example/\n",
    );
}

#[test]
fn a_missing_key_is_named() {
    for (protocol, variable) in [(ModelProtocol::OpenAi, "OPENAI_API_KEY"), (ModelProtocol::Anthropic, "ANTHROPIC_API_KEY")] {
        let server = ModelServer::start(vec![Turn::status(401).saying("who are you?")]);
        let (answer, _) = ask(&mut *model(protocol, &server), &prompt("hello"));
        let Err(ModelError::Refused { status: 401, why, .. }) = answer else { panic!("{answer:?}") };
        assert!(why.starts_with(&format!("who are you?\nset {variable} to a key for http://")), "{why}");
    }
}

/// Whatever the server does with the key, nobody is shown it.
#[track_caller]
fn hides_the_key(turns: Vec<Turn>, expected: &str) {
    let env = |name: &str| (name == "OPENAI_API_KEY").then(|| "sk-secret-123".to_owned());
    let server = ModelServer::start(turns);
    let (answer, heard) = ask(&mut *connect(&connection(ModelProtocol::OpenAi, &server.url()), &env).unwrap(), &prompt("hello"));
    let error = answer.unwrap_err();
    let shown = format!("{error} {error:?} {heard:?}");
    assert!(!shown.contains("sk-s"), "{shown}");
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn a_key_that_the_provider_echoes_is_not_shown() {
    hides_the_key(vec![Turn::status(401).saying("wrong: sk-secret-123")], "wrong: …\ncheck the key in OPENAI_API_KEY");
    // Cut where words get too long, but not through the key.
    hides_the_key(vec![Turn::status(400).saying(&format!("{} sk-secret-123", "x".repeat(590)))], "x …");
    hides_the_key(vec![Turn::status(500).saying("sk-secret-123 made me fail"); 4], "… made me fail");
    hides_the_key(vec![Turn::body("sk-secret-123"); 4], "no event in it): …");
    hides_the_key(vec![long().failing("api_error", "sk-secret-123"); 4], "attempts: …");
}

#[test]
fn words_of_a_provider_cannot_command_a_terminal() {
    let server = ModelServer::start(vec![Turn::status(400).saying("\u{1b}[2Jgone")]);
    let (answer, _) = ask(&mut *model(ModelProtocol::OpenAi, &server), &prompt("hello"));
    assert_eq!(answer, Err(ModelError::Refused { model: "test-model".into(), status: 400, why: " [2Jgone".into() }));
}

// Stopping.

/// Somebody wants to stop when the server has been asked. Without a look at the wish this would take an hour.
#[track_caller]
fn stops(turn: &Turn) {
    for protocol in BOTH {
        let server = ModelServer::start(vec![turn.clone()]);
        let cancel = CancelToken::default();
        let answer = thread::scope(|scope| {
            scope.spawn(|| {
                server.wait_for_requests(1);
                cancel.cancel();
            });
            let retry = RetryPolicy { longest_pause: Duration::from_secs(3600), ..retry_policy() };
            let connection = ModelConnection { retry, ..connection(protocol, &server.url()) };
            connected(&connection).ask(&prompt("hello"), &cancel, &mut |_| {})
        });
        assert_eq!(answer, Err(ModelError::Cancelled));
    }
}

#[test]
fn waiting_ends_at_once_when_somebody_wants_to_stop() {
    stops(&Turn::hang());
    stops(&long().stalled());
    stops(&Turn::status(500).stalled());
    stops(&Turn::status(429).header("retry-after", "3600"));
}

#[test]
fn nobody_is_asked_after_a_stop() {
    let server = ModelServer::start(vec![Turn::text("hi")]);
    let cancel = CancelToken::default();
    cancel.cancel();
    let answer = model(ModelProtocol::OpenAi, &server).ask(&prompt("hello"), &cancel, &mut |_| {});
    assert_eq!(answer, Err(ModelError::Cancelled));
    assert_eq!(server.requests(), []);
}

#[test]
fn a_turn_of_the_server_may_depend_on_what_it_was_asked() {
    let turn = Turn::made(|request| Turn::text(if request.told().contains("result b") { "seen" } else { "not seen" }));
    for protocol in BOTH {
        let server = ModelServer::start(vec![turn.clone()]);
        assert_eq!(ask(&mut *model(protocol, &server), &conversation()).0.unwrap().text, "seen");
    }
}
