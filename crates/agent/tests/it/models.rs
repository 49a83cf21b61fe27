//! Models behind a real server on this machine: requests, answers, and failures.

use std::{collections::BTreeMap, net::TcpListener, thread, time::Duration};

use serde_json::{Value, json};
use surehand_agent::{
    CancelToken,
    model::{
        CallResult, ChatMessage, ChatModel, GenerationSettings, ModelAnswer, ModelCall, ModelConnection, ModelError,
        ModelProtocol, Prompt, ReasoningEffort, RetryPolicy, StreamEvent, TokenPrices, TokenUsage, ToolSpec, connect,
    },
};
use surehand_testkit::model_server::{ModelServer, Turn};

pub(super) const ALL: [ModelProtocol; 3] = [ModelProtocol::OpenAi, ModelProtocol::Anthropic, ModelProtocol::Responses];

/// A policy that waits long for answers, but retries quickly.
pub(super) fn retry_policy() -> RetryPolicy {
    let instant = Duration::from_micros(10);
    RetryPolicy { idle: Duration::from_secs(3600), attempts: 4, first_pause: instant, longest_pause: instant }
}

pub(super) fn connection(protocol: ModelProtocol, url: &str) -> ModelConnection {
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

pub(super) fn connected(connection: &ModelConnection) -> Box<dyn ChatModel> {
    connect(connection, &no_environment).unwrap()
}

pub(super) fn model(protocol: ModelProtocol, server: &ModelServer) -> Box<dyn ChatModel> {
    connected(&connection(protocol, &server.url()))
}

pub(super) fn prompt(text: &str) -> Prompt {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let schema = schema.as_object().unwrap().clone();
    let tool = ToolSpec { name: "read".to_owned(), description: "reads a file".to_owned(), schema };
    let messages = vec![ChatMessage::User(text.to_owned())];
    Prompt { system: "be careful".to_owned(), messages, tools: vec![tool], is_conversation: false }
}

/// The answer, and the events that were heard before it.
pub(super) type Said = (Result<ModelAnswer, ModelError>, Vec<String>);

/// Asks the model. For retries, it records the reason but not the pause.
pub(super) fn ask(model: &mut dyn ChatModel, prompt: &Prompt) -> Said {
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

/// The answer of a server that plays these turns, in each protocol.
#[track_caller]
fn played(turns: &[Turn]) -> [Said; 3] {
    ALL.map(|protocol| {
        let server = ModelServer::start(turns.to_vec());
        let said = ask(&mut *model(protocol, &server), &prompt("hello"));
        assert_eq!(server.turns_left(), 0, "{protocol:?} asked too seldom: {said:?}");
        said
    })
}

/// In each protocol, these turns result in this text and these calls.
#[track_caller]
fn check(turns: &[Turn], text: &str, calls: &[(&str, &str)]) {
    for (answer, heard) in played(turns) {
        let answer = answer.unwrap_or_else(|error| panic!("{error}; heard {heard:?}"));
        let found: Vec<_> = answer.calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
        assert_eq!((answer.text.as_str(), found.as_slice()), (text, calls));
        assert!(answer.calls.iter().all(|call| !call.id.is_empty()));
        // Only pieces since the last retry count.
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
    for protocol in ALL {
        assert_eq!(cost(protocol, Turn::text("hi").with_usage(1_000_000, 500_000, 100_000)), Some(1.0 + 0.5 + 1.0));
    }
    let body = json!({ "choices": [{ "message": { "content": "hi" }, "finish_reason": "stop" }], "usage": { "cost": 0.25 } });
    assert_eq!(cost(ModelProtocol::OpenAi, Turn::body(body.to_string())), Some(0.25));
}

// Requests.

/// The body of the request for this prompt.
fn sent(protocol: ModelProtocol, prompt: &Prompt) -> Value {
    let server = ModelServer::start(vec![Turn::text("hi")]);
    ask(&mut *model(protocol, &server), prompt).0.unwrap();
    server.requests()[0].body.clone()
}

fn conversation() -> Prompt {
    let call = |id: &str, arguments: &str| ModelCall { id: id.into(), name: "read".into(), arguments: arguments.into() };
    let result = |id: &str, is_error| CallResult { id: id.into(), text: format!("result {id}"), is_error };
    let mut prompt = prompt("hello");
    let calls = vec![call("a", r#"{"path":"x"}"#), call("b", "{\"path\"")];
    prompt.messages.extend([
        ChatMessage::Assistant { text: "I look.".into(), calls, reasoning: None },
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
            "max_tokens": 16384,
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
            "max_tokens": 16384,
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
fn a_conversation_in_responses() {
    let said = |role: &str, kind: &str, text: &str| json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] });
    let call =
        |id: &str, arguments: &str| json!({ "type": "function_call", "call_id": id, "name": "read", "arguments": arguments });
    let output = |id: &str| json!({ "type": "function_call_output", "call_id": id, "output": format!("result {id}") });
    assert_eq!(
        sent(ModelProtocol::Responses, &conversation()),
        json!({
            "model": "test-model",
            "stream": true,
            "store": false,
            "max_output_tokens": 16384,
            "instructions": "be careful",
            "input": [
                said("user", "input_text", "hello"),
                said("assistant", "output_text", "I look."), call("a", r#"{"path":"x"}"#), call("b", "{}"),
                output("a"), output("b"),
                said("user", "input_text", "go on"),
            ],
            "tools": [{
                "type": "function", "name": "read", "description": "reads a file", "strict": false,
                "parameters": { "type": "object", "properties": { "path": { "type": "string" } } },
            }],
        })
    );
}

/// The marks for the cache in a prompt: the role and the end of each marked part.
fn marks(prompt: &Prompt) -> Vec<String> {
    let body = sent(ModelProtocol::Anthropic, prompt);
    let is_marked = |block: &&Value| block["cache_control"] == json!({ "type": "ephemeral" });
    let system = body["system"].as_array().into_iter().flatten().filter(is_marked).map(|_| "system".to_owned());
    let messages = body["messages"].as_array().into_iter().flatten().enumerate();
    let in_messages = messages.flat_map(|(at, message)| {
        let blocks = message["content"].as_array().unwrap();
        let marked = blocks.iter().enumerate().filter(move |(_, block)| is_marked(block));
        marked.map(move |(block, _)| format!("{} {at}, block {} of {}", message["role"], block + 1, blocks.len()))
    });
    system.chain(in_messages).collect()
}

#[test]
fn a_conversation_is_marked_for_the_cache_where_it_ends_and_where_it_ended_a_turn_ago() {
    assert_eq!(marks(&conversation()), ["system"], "a prompt that is new in every turn is not worth it");
    let mut prompt = Prompt { is_conversation: true, ..conversation() };
    assert_eq!(marks(&prompt), ["system", "\"user\" 0, block 1 of 1", "\"user\" 2, block 3 of 3"]);
    prompt.messages.truncate(1);
    assert_eq!(marks(&prompt), ["system", "\"user\" 0, block 1 of 1"]);
    prompt.messages = vec![ChatMessage::User(" ".into())];
    assert_eq!(marks(&prompt), ["system"]);
}

#[test]
fn what_is_written_to_the_cache_is_counted_and_costs_more() {
    let usage =
        json!({ "input_tokens": 100, "cache_read_input_tokens": 800, "cache_creation_input_tokens": 400, "output_tokens": 10 });
    let body = json!({ "content": [{ "type": "text", "text": "hi" }], "stop_reason": "end_turn", "usage": usage });
    let server = ModelServer::start(vec![Turn::body(body.to_string())]);
    let prices = TokenPrices { input: Some(1e6), cached: Some(1e5), output: Some(1e6) };
    let connection = ModelConnection { prices, ..connection(ModelProtocol::Anthropic, &server.url()) };
    let usage = ask(&mut *connected(&connection), &prompt("hello")).0.unwrap().usage;
    assert_eq!(usage, TokenUsage { input: 1300, cached: 800, output: 10, cost: Some(100.0 + 400.0 * 1.25 + 80.0 + 10.0) });
}

// Reasoning that a provider wants back.

/// The answer to a first prompt, and the bodies of the requests for a second one, after the model and the answer were
/// modified by `change`.
fn second_request(
    protocol: ModelProtocol,
    turns: Vec<Turn>,
    generation: GenerationSettings,
    change: impl FnOnce(&mut ModelConnection, &mut ModelAnswer),
) -> (ModelAnswer, Vec<Value>) {
    let server = ModelServer::start(turns);
    let mut connection = ModelConnection { generation, ..connection(protocol, &server.url()) };
    let mut prompt = Prompt { is_conversation: true, ..prompt("hello") };
    let mut answer = ask(&mut *connected(&connection), &prompt).0.unwrap();
    change(&mut connection, &mut answer);
    let results = answer.calls.iter().map(|call| CallResult { id: call.id.clone(), text: "it".into(), is_error: false });
    let results = ChatMessage::Results(results.collect());
    let ModelAnswer { text, calls, reasoning, .. } = answer.clone();
    prompt.messages.extend([ChatMessage::Assistant { text, calls, reasoning }, results]);
    ask(&mut *connected(&connection), &prompt).0.unwrap();
    (answer, server.requests().into_iter().skip(1).map(|request| request.body).collect())
}

fn thoughtful() -> Turn {
    Turn::calls(&[("read", json!({ "path": "a" })), ("read", json!({ "path": "b" }))]).with_text("I look.").with_thought("hm, hm")
}

/// The assistant's part of a request.
fn assistant(protocol: ModelProtocol, body: &Value) -> Value {
    match protocol {
        ModelProtocol::OpenAi => body["messages"][2].clone(),
        ModelProtocol::Anthropic => body["messages"][1]["content"].clone(),
        ModelProtocol::Responses => body["input"].as_array().unwrap()[1..].to_vec().into(),
    }
}

#[test]
fn reasoning_goes_back_as_it_came_and_where_it_stood() {
    for turn in [thoughtful(), thoughtful().plain(), thoughtful().in_pieces_of(3)] {
        for protocol in ALL {
            let turns = vec![turn.clone(), Turn::text("done")];
            let (answer, bodies) = second_request(protocol, turns, GenerationSettings::default(), |_, _| {});
            assert_eq!((answer.text.as_str(), answer.reasoning.as_ref().unwrap().tokens), ("I look.", 10));
            let sent = assistant(protocol, &bodies[0]);
            let seal = "sealed-1-hm, hm";
            match protocol {
                ModelProtocol::OpenAi => {
                    assert_eq!(sent["tool_calls"][0]["extra_content"], json!({ "google": { "thought_signature": seal } }));
                    assert!(sent["tool_calls"][1].get("extra_content").is_none() && sent.get("reasoning_content").is_none());
                }
                ModelProtocol::Anthropic => {
                    assert_eq!(sent[0], json!({ "type": "thinking", "thinking": "hm, hm", "signature": seal }));
                    assert_eq!((&sent[1]["text"], &sent[2]["id"]), (&json!("I look."), &json!("call_1_0")));
                }
                ModelProtocol::Responses => {
                    assert_eq!(bodies[0]["include"], json!(["reasoning.encrypted_content"]));
                    let summary = json!([{ "type": "summary_text", "text": "hm, hm" }]);
                    let reasoning = json!({ "type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": seal });
                    assert_eq!(sent[0], reasoning);
                    assert_eq!((&sent[1]["type"], &sent[2]["call_id"]), (&json!("message"), &json!("call_1_0")));
                }
            }
        }
    }
}

#[test]
fn reasoning_of_another_model_or_host_is_not_sent() {
    for protocol in ALL {
        let turns = vec![thoughtful(), Turn::text("done")];
        let (answer, bodies) = second_request(protocol, turns, GenerationSettings::default(), |connection, _| {
            "another".clone_into(&mut connection.model)
        });
        assert!(answer.reasoning.is_some());
        assert!(!bodies[0].to_string().contains("sealed"), "{}", bodies[0]);
    }
}

#[test]
fn a_prompt_that_is_no_conversation_keeps_no_reasoning() {
    for (answer, _) in played(&[thoughtful()]) {
        assert_eq!(answer.unwrap().reasoning, None);
    }
    for protocol in ALL {
        let server = ModelServer::start(vec![thoughtful().cut()]);
        let prompt = Prompt { is_conversation: true, ..prompt("hello") };
        let answer = ask(&mut *model(protocol, &server), &prompt).0.unwrap();
        assert_eq!((answer.is_cut, answer.reasoning), (true, None), "that of a cut answer may be incomplete");
    }
}

#[test]
fn reasoning_that_is_refused_is_left_out() {
    for (protocol, words) in [
        (ModelProtocol::Anthropic, "messages.1.content.0: Invalid `signature` in `thinking` block"),
        (ModelProtocol::Responses, "The encrypted content seal could not be verified."),
    ] {
        let turns = vec![thoughtful(), Turn::status(400).saying(words), Turn::text("done")];
        let (_, bodies) = second_request(protocol, turns, GenerationSettings::default(), |_, _| {});
        let has_it: Vec<bool> = bodies.iter().map(|body| body.to_string().contains("sealed")).collect();
        assert_eq!(has_it, [true, false]);
    }
}

#[test]
fn a_server_that_misses_something_gets_it() {
    let missing = "Missing `reasoning_content` field in the assistant message at message index 2";
    let turns = vec![thoughtful(), Turn::status(400).saying(missing), Turn::text("done")];
    let (_, bodies) = second_request(ModelProtocol::OpenAi, turns, GenerationSettings::default(), |_, _| {});
    let sent: Vec<Value> = bodies.iter().map(|body| body["messages"][2]["reasoning_content"].clone()).collect();
    assert_eq!(sent, [Value::Null, json!("hm, hm")]);
    let missing = "Function call is missing a thought_signature in functionCall parts.";
    let turns = vec![thoughtful(), Turn::status(400).saying(missing), Turn::text("done")];
    let (_, bodies) =
        second_request(ModelProtocol::OpenAi, turns, GenerationSettings::default(), |_, answer| answer.reasoning = None);
    let signature = |body: &Value| body["messages"][2]["tool_calls"][0]["extra_content"]["google"]["thought_signature"].clone();
    assert_eq!([&bodies[0], &bodies[1]].map(signature), [Value::Null, json!("skip_thought_signature_validator")]);
}

#[test]
fn thinking_by_tokens_is_not_asked_for_after_an_answer_without_a_thought() {
    let adaptive = Turn::status(400).saying("adaptive thinking is not supported on this model");
    for (forgets, expected) in [(false, true), (true, false)] {
        let turns = vec![adaptive.clone(), thoughtful(), adaptive.clone(), Turn::text("done")];
        let (_, bodies) = second_request(ModelProtocol::Anthropic, turns, GENERATION, |_, answer| {
            if forgets {
                answer.reasoning = None;
            }
        });
        assert_eq!(bodies.last().unwrap().get("thinking").is_some(), expected);
    }
}

#[test]
fn the_details_of_a_router_go_back_as_they_came() {
    let delta = |delta: Value| format!("data: {}\n\n", json!({ "choices": [{ "delta": delta }] }));
    let detail = |fields: Value| delta(json!({ "reasoning": "hm", "reasoning_details": [fields] }));
    let body = [
        detail(json!({ "type": "reasoning.text", "index": 0, "text": "h", "signature": null, "format": "x" })),
        detail(json!({ "type": "reasoning.text", "index": 0, "text": "m" })),
        detail(json!({ "type": "reasoning.text", "index": 0, "text": "", "signature": "s" })),
        detail(json!({ "type": "reasoning.encrypted", "index": 1, "data": "d" })),
        detail(json!({ "type": "reasoning.encrypted", "data": "e" })),
        delta(json!({ "tool_calls": [{ "index": 0, "id": "a", "function": { "name": "read", "arguments": "{}" } }] })),
        "data: [DONE]\n\n".to_owned(),
    ];
    let turns = vec![Turn::body(body.concat()), Turn::text("done")];
    let (_, bodies) = second_request(ModelProtocol::OpenAi, turns, GenerationSettings::default(), |_, _| {});
    assert_eq!(
        bodies[0]["messages"][2]["reasoning_details"],
        json!([
            { "type": "reasoning.text", "index": 0, "text": "hm", "signature": "s", "format": "x" },
            { "type": "reasoning.encrypted", "index": 1, "data": "d" },
            { "type": "reasoning.encrypted", "data": "e" },
        ])
    );
}

#[test]
fn keys_go_into_the_headers() {
    let env = |name: &str| (name == "SUREHAND_API_KEY").then(|| "sk-secret".to_owned());
    for (protocol, path, header, value) in [
        (ModelProtocol::OpenAi, "/v1/chat/completions", "authorization", "Bearer sk-secret"),
        (ModelProtocol::Anthropic, "/v1/messages", "x-api-key", "sk-secret"),
        (ModelProtocol::Responses, "/v1/responses", "authorization", "Bearer sk-secret"),
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

// Settings in a request.

/// The bodies that are sent with these settings if the server refuses once with each of these messages.
fn sent_with(protocol: ModelProtocol, generation: GenerationSettings, refusals: &[&str]) -> Vec<Value> {
    let refusals = refusals.iter().map(|words| Turn::status(400).saying(words));
    let server = ModelServer::start(refusals.chain([Turn::text("hi")]).collect());
    let connection = ModelConnection { generation, ..connection(protocol, &server.url()) };
    ask(&mut *connected(&connection), &prompt("hello")).0.unwrap();
    server.requests().into_iter().map(|request| request.body).collect()
}

const GENERATION: GenerationSettings =
    GenerationSettings { temperature: Some(0.0), top_p: Some(0.5), effort: Some(ReasoningEffort::High) };

#[test]
fn temperature_top_p_and_effort_are_sent_if_they_are_set() {
    let sampling = |body: &Value| ["temperature", "top_p"].map(|name| body[name].clone());
    for protocol in ALL {
        let [body] = &sent_with(protocol, GENERATION, &[])[..] else { panic!("one request is enough") };
        assert_eq!(sampling(body), [json!(0.0), json!(0.5)]);
        let [body] = &sent_with(protocol, GenerationSettings::default(), &[])[..] else { panic!("one request is enough") };
        for name in ["temperature", "top_p", "reasoning_effort", "reasoning", "thinking", "output_config"] {
            assert_eq!(body.get(name), None, "{name}");
        }
    }
    assert_eq!(sent_with(ModelProtocol::OpenAi, GENERATION, &[])[0]["reasoning_effort"], "high");
    assert_eq!(sent_with(ModelProtocol::Responses, GENERATION, &[])[0]["reasoning"], json!({ "effort": "high" }));
}

#[test]
fn an_effort_that_a_model_does_not_know_becomes_a_number_of_tokens() {
    for words in ["adaptive thinking is not supported on this model", "This model does not support the effort parameter."] {
        let [first, second] = &sent_with(ModelProtocol::Anthropic, GENERATION, &[words])[..] else { panic!("two requests") };
        assert_eq!((&first["thinking"], &first["output_config"]), (&json!({ "type": "adaptive" }), &json!({ "effort": "high" })));
        assert_eq!(
            (&second["thinking"], second.get("output_config")),
            (&json!({ "type": "enabled", "budget_tokens": 8192 }), None)
        );
    }
}

#[test]
fn a_refusal_of_a_setting_names_the_setting() {
    for protocol in ALL {
        let words = "Unsupported value: 'temperature' does not support 0 with this model.";
        let server = ModelServer::start(vec![Turn::status(400).saying(words)]);
        let connection = ModelConnection { generation: GENERATION, ..connection(protocol, &server.url()) };
        let (answer, _) = ask(&mut *connected(&connection), &prompt("hello"));
        let why = format!("{words}\nmodel.temperature may not fit test-model: set another value, or none");
        assert_eq!(answer, Err(ModelError::Refused { model: "test-model".into(), status: 400, why }));
    }
}

fn table(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn headers_and_query_parameters_are_sent_with_each_request() {
    let env = |name: &str| (name == "SUREHAND_API_KEY").then(|| "sk-secret".to_owned());
    for protocol in ALL {
        let own = if protocol == ModelProtocol::Anthropic { "x-api-key" } else { "authorization" };
        let server = ModelServer::start(vec![Turn::status(429), Turn::text("hi"), Turn::text("hi")]);
        let plain = connection(protocol, &format!("{}/openai/deployments/mine", server.url()));
        let azure = ModelConnection {
            headers: table(&[("api-key", "{key}"), ("X-Title", "mine"), ("accept", "*/*")]),
            query: table(&[("api-version", "2025-04-01-preview"), ("a b", "ü&")]),
            ..plain.clone()
        };
        ask(&mut *connect(&azure, &env).unwrap(), &prompt("hello")).0.unwrap();
        let other = ModelConnection { headers: table(&[(own, "of-mine")]), ..plain };
        ask(&mut *connect(&other, &env).unwrap(), &prompt("hello")).0.unwrap();
        let requests = server.requests();
        for request in &requests[..2] {
            assert!(request.path.starts_with("/openai/deployments/mine/"), "{}", request.path);
            assert!(request.path.ends_with("?a%20b=%C3%BC%26&api-version=2025-04-01-preview"), "{}", request.path);
            assert_eq!((request.header("api-key"), request.header(own)), (Some("sk-secret"), None), "the key goes to one place");
            assert_eq!((request.header("x-title"), request.header("accept")), (Some("mine"), Some("*/*")));
        }
        assert_eq!((requests[2].header(own), requests[2].header("api-key")), (Some("of-mine"), None), "ours is replaced");
    }
}

#[test]
fn a_header_or_a_parameter_that_is_a_credential_is_not_shown() {
    let server = ModelServer::start(vec![
        Turn::status(401).saying("h-secret-123 and q-secret-123 are wrong"),
        Turn::status(404).saying("there is nothing at ?sig-key=q-secret-123"),
    ]);
    let connection = ModelConnection {
        headers: table(&[("authorization", "Basic h-secret-123")]),
        query: table(&[("sig-key", "q-secret-123")]),
        ..connection(ModelProtocol::OpenAi, &server.url())
    };
    for expected in ["… and … are wrong\n", "there is nothing at ?sig-key=…\n"] {
        let mut model = connected(&connection);
        assert!(!model.secrets().is_empty());
        let (answer, heard) = ask(&mut *model, &prompt("hello"));
        let shown = format!("{answer:?} {heard:?} {}", answer.as_ref().unwrap_err());
        assert!(!shown.contains("secret-123") && shown.contains(expected), "{shown}");
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

// The length of an answer.

/// The outcome of these turns with a limit of a hundred tokens, in each protocol, and the requests.
#[track_caller]
fn limited(turns: &[Turn]) -> Vec<(Said, Vec<Value>)> {
    let limited = |protocol| {
        let server = ModelServer::start(turns.to_vec());
        let connection = ModelConnection { max_output_tokens: 100, ..connection(protocol, &server.url()) };
        let said = ask(&mut *connected(&connection), &prompt("hello"));
        (said, server.requests().into_iter().map(|request| request.body).collect())
    };
    ALL.map(limited).into()
}

#[test]
fn a_runaway_answer_is_cut_at_its_limit_and_not_asked_for_again() {
    let words = "the same again ".repeat(10_000);
    let endless = [
        Turn::text(&words),
        Turn::text("no").with_thought(&words),
        Turn::raw_call("write", &format!("{{\"text\": \"{words}")),
        Turn::text(&words).kept_alive("\n"),
    ];
    for turn in endless {
        for ((answer, heard), requests) in limited(&[turn.clone(), Turn::text("once more")]) {
            let answer = answer.unwrap();
            assert!(answer.is_cut && requests.len() == 1, "{answer:?}");
            let length = answer.text.len() + answer.calls.iter().map(|call| call.arguments.len()).sum::<usize>();
            assert!(length < 1000, "{length}");
            assert!((100..500).contains(&answer.usage.output), "what came is paid for: {:?}", answer.usage);
            assert!(!heard.iter().any(|piece| piece.starts_with("again")), "{heard:?}");
        }
    }
}

#[test]
fn an_answer_within_its_limit_is_whole() {
    for ((answer, _), _) in limited(&[Turn::text(&"abc ".repeat(100)).with_thought("hm")]) {
        let answer = answer.unwrap();
        assert_eq!((answer.is_cut, answer.text.len(), answer.usage.output), (false, 400, 10));
    }
}

#[test]
fn a_call_that_was_cut_off_is_not_a_call_without_arguments() {
    for (answer, _) in played(&[Turn::calls(&[("list", json!({}))]).cut()]) {
        let calls = answer.unwrap().calls;
        assert_eq!((calls[0].name.as_str(), calls[0].arguments.as_str()), ("list", ""));
    }
    let arguments = json!({ "path": "a.rs" });
    for (answer, _) in played(&[Turn::calls(&[("list", json!({})), ("read", arguments.clone())]).cut()]) {
        let calls = answer.unwrap().calls;
        assert_eq!((calls[0].arguments.as_str(), calls[1].arguments.as_str()), ("{}", &*arguments.to_string()));
    }
}

#[test]
fn a_server_that_accepts_less_is_asked_for_less() {
    for protocol in ALL {
        let field = if protocol == ModelProtocol::Responses { "max_output_tokens" } else { "max_tokens" };
        let refusal = Turn::status(400).saying(&format!("{field}: 16384 > 8192, which is the maximum for test-model-5"));
        let server = ModelServer::start(vec![refusal, Turn::text("hi"), Turn::text("hi")]);
        let mut model = model(protocol, &server);
        for _ in 0..2 {
            assert_eq!(ask(&mut *model, &prompt("hello")).0.unwrap().text, "hi");
        }
        let limits: Vec<Value> = server.requests().iter().map(|request| request.body[field].clone()).collect();
        assert_eq!(limits, [16_384, 8192, 8192], "learnt for good");
    }
}

#[test]
fn a_server_that_knows_no_limit_is_sent_none() {
    let refusal = Turn::status(422).saying("Extra inputs are not permitted: max_tokens");
    let server = ModelServer::start(vec![refusal, Turn::text("hi")]);
    assert_eq!(ask(&mut *model(ModelProtocol::OpenAi, &server), &prompt("hello")).0.unwrap().text, "hi");
    assert_eq!(server.requests()[1].body.get("max_tokens"), None);
}

// Transient errors.

/// In each protocol, this turn is retried for this reason.
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
fn comments_without_end_are_no_answer_and_not_asked_for_again() {
    for (answer, heard) in played(&[Turn::body(": nothing but comments\n\n".repeat((36 << 20) / 24))]) {
        let error = answer.unwrap_err().to_string();
        assert!(
            error.starts_with("test-model gave no answer (1 attempt): ") && error.contains("no answer could be read"),
            "{error}"
        );
        assert_eq!(heard, [""; 0]);
    }
}

#[test]
fn retries_end_after_the_last_attempt() {
    for (answer, heard) in played(&vec![Turn::status(429); 4]) {
        let why = "429: scripted 429\ntry again later, or with another model".to_owned();
        assert_eq!(answer, Err(ModelError::Unavailable { model: "test-model".into(), problem: "failed", attempts: 4, why }));
        assert_eq!(heard, ["again 429: scripted 429"; 3]);
    }
    let late = [vec![Turn::status(429); 3], vec![Turn::text("at last")]].concat();
    check(&late, "at last", &[]);
}

#[test]
fn the_error_about_a_missing_server_names_its_address() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    for protocol in ALL {
        let (answer, heard) = ask(&mut *connected(&connection(protocol, &url)), &prompt("hello"));
        let Err(ModelError::Unavailable { attempts: 4, why, .. }) = answer else { panic!("{answer:?}") };
        assert!(why.contains(&format!("that a server answers at {url}/v1/")), "{why}");
        assert_eq!(heard.len(), 3);
    }
}

#[test]
fn silence_is_a_failure() {
    for turn in [Turn::hang(), long().stalled()] {
        for protocol in ALL {
            let server = ModelServer::start(vec![turn.clone(); 2]);
            let retry = RetryPolicy { idle: Duration::from_millis(100), attempts: 2, ..retry_policy() };
            let connection = ModelConnection { retry, ..connection(protocol, &server.url()) };
            let (answer, _) = ask(&mut *connected(&connection), &prompt("hello"));
            let Err(ModelError::Unavailable { attempts: 2, why, .. }) = answer else { panic!("{answer:?}") };
            assert!(why.contains(" came for 0.1 seconds\n"), "{why}");
        }
    }
}

/// After half of an answer, only this arrives.
#[track_caller]
fn is_silence(keep_alive: &str) {
    for protocol in ALL {
        let server = ModelServer::start(vec![long().kept_alive(keep_alive); 2]);
        let retry = RetryPolicy { idle: Duration::from_millis(100), attempts: 2, ..retry_policy() };
        let connection = ModelConnection { retry, ..connection(protocol, &server.url()) };
        let error = ask(&mut *connected(&connection), &prompt("hello")).0.unwrap_err().to_string();
        assert!(
            error.starts_with("test-model was silent (2 attempts): nothing of an answer came for 0.1 seconds\n"),
            "{keep_alive}: {error}"
        );
    }
}

#[test]
fn what_keeps_a_line_open_is_silence() {
    is_silence(": OPENROUTER PROCESSING\n\n");
    is_silence("event: ping\ndata: {\"type\": \"ping\"}\n\n");
    is_silence("data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"\"}}]}\n\n");
    is_silence(
        "data: {\"type\": \"content_block_delta\", \"index\": 0, \"delta\": {\"type\": \"text_delta\", \"text\": \"\"}}\n\n",
    );
    is_silence("data: {\"type\": \"response.output_text.delta\", \"output_index\": 0, \"delta\": \"\"}\n\n");
    is_silence("data: {\"type\": \"response.in_progress\", \"response\": {}}\n\n");
    is_silence("\n");
    is_silence("d");
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

// Permanent errors.

/// In each protocol, this turn is a refusal with these words.
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
fn a_prompt_that_is_too_long_is_reported_as_such() {
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
    for protocol in ALL {
        let variable = if protocol == ModelProtocol::Anthropic { "ANTHROPIC_API_KEY" } else { "OPENAI_API_KEY" };
        let server = ModelServer::start(vec![Turn::status(401).saying("who are you?")]);
        let (answer, _) = ask(&mut *model(protocol, &server), &prompt("hello"));
        let Err(ModelError::Refused { status: 401, why, .. }) = answer else { panic!("{answer:?}") };
        assert!(why.starts_with(&format!("who are you?\nset {variable} to a key for http://")), "{why}");
    }
}

/// No text shows the key, whatever the server does with it.
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
    // Cut where the message gets too long, but not inside the key.
    hides_the_key(vec![Turn::status(400).saying(&format!("{} sk-secret-123", "x".repeat(590)))], "x …");
    hides_the_key(vec![Turn::status(500).saying("sk-secret-123 made me fail"); 4], "… made me fail");
    hides_the_key(vec![Turn::body("sk-secret-123"); 4], "no event in it): …");
    hides_the_key(vec![long().failing("api_error", "sk-secret-123"); 4], "(4 attempts): …");
}

#[test]
fn words_of_a_provider_cannot_command_a_terminal() {
    let server = ModelServer::start(vec![Turn::status(400).saying("\u{1b}[2Jgone")]);
    let (answer, _) = ask(&mut *model(ModelProtocol::OpenAi, &server), &prompt("hello"));
    assert_eq!(answer, Err(ModelError::Refused { model: "test-model".into(), status: 400, why: " [2Jgone".into() }));
}

// Cancellation.

/// The run is cancelled after the request was sent. Without a check for that, the test would take an hour.
#[track_caller]
fn stops(turn: &Turn) {
    for protocol in ALL {
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
fn waiting_ends_at_once_when_the_run_is_cancelled() {
    stops(&Turn::hang());
    stops(&long().stalled());
    stops(&Turn::status(500).stalled());
    stops(&Turn::status(429).header("retry-after", "3600"));
}

#[test]
fn no_request_is_sent_after_a_cancellation() {
    let server = ModelServer::start(vec![Turn::text("hi")]);
    let cancel = CancelToken::default();
    cancel.cancel();
    let answer = model(ModelProtocol::OpenAi, &server).ask(&prompt("hello"), &cancel, &mut |_| {});
    assert_eq!(answer, Err(ModelError::Cancelled));
    assert_eq!(server.requests(), []);
}

#[test]
fn a_turn_of_the_server_may_depend_on_what_it_was_asked() {
    let turn = Turn::made(|request| Turn::text(if request.prompt().contains("result b") { "seen" } else { "not seen" }));
    for protocol in ALL {
        let server = ModelServer::start(vec![turn.clone()]);
        assert_eq!(ask(&mut *model(protocol, &server), &conversation()).0.unwrap().text, "seen");
    }
}
