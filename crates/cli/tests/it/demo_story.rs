//! The story of `surehand demo`, finished by the program itself with a model behind a real server. The model is the one
//! of the demo, which knows only what its prompt shows.

#[path = "../../src/commands/demo/forgetful_model.rs"]
mod forgetful_model;
#[path = "../../src/commands/demo/prompt_contents.rs"]
mod prompt_contents;
#[expect(dead_code, reason = "the demo plays other programs, too")]
#[path = "../../src/commands/demo/story.rs"]
mod story;

use std::sync::{Arc, Mutex};

use serde_json::Value;
use surehand_agent::{
    CancelToken,
    model::{ChatMessage, ChatModel, Prompt},
};
use surehand_testkit::model_server::{ModelServer, Speaks, Turn};

use self::{
    forgetful_model::ForgetfulModel,
    story::{STEPS, STORY},
};
use crate::run::Stage;

/// Answers like the demo's model, in any protocol.
fn forgetful() -> Turn {
    let model = Arc::new(Mutex::new(ForgetfulModel::default()));
    Turn::made(move |request| {
        let prompt = Prompt { messages: vec![ChatMessage::User(request.prompt())], ..Prompt::default() };
        let answer = model.lock().unwrap().ask(&prompt, &CancelToken::default(), &mut |_| {}).unwrap();
        let arguments = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let calls: Vec<_> = answer.calls.iter().map(|call| (call.name.as_str(), arguments(&call.arguments))).collect();
        Turn::calls(&calls)
    })
}

#[track_caller]
fn finishes_the_story(protocol: &str, speaks: Speaks, mode: &str) {
    let stage = Stage::new(&[]);
    let server = ModelServer::start(vec![forgetful(); 100]);
    let words = [STORY, "--protocol", protocol, "--mode", mode, "--dialect", "lines", "--json"];
    let output = stage.command(&server.url(), &words).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{protocol}, {mode}: {out}");
    assert!(server.requests().iter().all(|request| request.speaks() == speaks));
    for step in STEPS {
        let content = std::fs::read_to_string(stage.path(step.path)).unwrap();
        assert!(step.insert.as_ref().is_none_or(|insert| content.contains(insert.text)), "{}: {content}", step.path);
        let calls = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let is_write = |event: &Value| event["event"] == "call" && event["tool"] == "write_file";
        let writes = calls.filter(|event| is_write(event) && event["arguments"]["path"] == step.path).count();
        assert_eq!(writes, 1, "{} is written once", step.path);
    }
}

#[test]
fn the_story_of_the_demo_is_finished_over_chat_completions() {
    finishes_the_story("openai", Speaks::OpenAi, "snapshot");
    finishes_the_story("openai", Speaks::OpenAi, "history");
}

#[test]
fn the_story_of_the_demo_is_finished_over_messages() {
    finishes_the_story("anthropic", Speaks::Anthropic, "snapshot");
}

#[test]
fn the_story_of_the_demo_is_finished_over_responses() {
    finishes_the_story("responses", Speaks::Responses, "snapshot");
}
