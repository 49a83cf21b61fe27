//! Calls that models write into their text, one test for each shape and for each reason not to carry one out.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn tools() -> Vec<ToolSpec> {
    let schema = json!({ "type": "object", "properties": {
        "path": { "type": "string" }, "limit": { "type": "integer" }, "ranges": { "type": "array" }, "text": { "type": "string" },
    } });
    ["read_file", "write_file", "done"].map(|name| ToolSpec::new(name, "", schema.clone())).into()
}

fn prompt() -> Prompt {
    Prompt { tools: tools(), ..Prompt::default() }
}

fn found(text: &str) -> TextCalls {
    find_calls(text, &prompt(), "")
}

/// This text has this prose and these calls.
#[track_caller]
fn check(text: &str, before: &str, expected: &[(&str, Value)]) {
    let call = |(name, arguments): &(&str, Value)| TextCall {
        name: (*name).to_owned(),
        arguments: arguments.as_object().unwrap().clone(),
    };
    let calls = expected.iter().map(call).collect();
    assert_eq!(found(text), TextCalls::Found { text: before.to_owned(), calls }, "{text}");
}

#[track_caller]
fn unclear(text: &str, why: &str) {
    assert_eq!(found(text), TextCalls::Unclear(why.to_owned()), "{text}");
}

const MISPLACED: &str = "it is not complete, or not at the very end of the answer";

#[test]
fn json_is_understood_by_the_names_of_its_parts() {
    let read = [("read_file", json!({ "path": "a" }))];
    for call in [
        r#"{"name": "read_file", "arguments": {"path": "a"}}"#,
        r#"{"name": "read_file", "arguments": "{\"path\": \"a\"}"}"#,
        r#"{"tool": "read_file", "args": {"path": "a"}}"#,
        r#"{"name": "functions.read_file", "parameters": {"path": "a"}, "id": "1"}"#,
        r#"{"type": "function", "function": {"name": "read_file", "arguments": {"path": "a"}}}"#,
        r#"{"tool_calls": [{"id": "x", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"a\"}"}}]}"#,
        r#"[{"name": "read_file", "arguments": {"path": "a"}}]"#,
        r#"{"action": "read_file", "action_input": {"path": "a"}, "thought": "I look"}"#,
    ] {
        check(call, "", &read);
        check(&format!("I look.\n\n```json\n{call}\n```\n"), "I look.", &read);
        check(&format!("```\n{call}\n```"), "", &read);
        check(&format!("<tool_call>\n{call}\n</tool_call>"), "", &read);
        check(&format!("I look.\n<tool_call>{call}</tool_call>"), "I look.", &read);
        check(&format!("[TOOL_CALLS] {call}"), "", &read);
        check(&format!("<|python_tag|>{call}"), "", &read);
    }
}

#[test]
fn elements_are_understood_by_the_schema() {
    let expected = [("read_file", json!({ "path": "12", "limit": 12, "ranges": [{ "start": 1, "end": 2 }] }))];
    let ranges = r#"[{"start": 1, "end": 2}]"#;
    let invoke = format!(
        "<invoke name=\"read_file\">\n<parameter name=\"path\">12</parameter>\n<parameter name=\"limit\">12</parameter>\n\
         <parameter name=\"ranges\">{ranges}</parameter>\n</invoke>"
    );
    check(&invoke, "", &expected);
    check(&format!("Ok.\n<function_calls>\n{invoke}\n</function_calls>"), "Ok.", &expected);
    let function = format!(
        "<function=read_file>\n<parameter=path>\n12\n</parameter>\n<parameter=limit>\n12\n</parameter>\n\
         <parameter=ranges>\n{ranges}\n</parameter>\n</function>"
    );
    check(&function, "", &expected);
    check(&format!("<tool_call>\n{function}\n</tool_call>"), "", &expected);
    check(&format!("```xml\n{function}\n```"), "", &expected);
    check(r#"<function=read_file>{"path": "a"}</function>"#, "", &[("read_file", json!({ "path": "a" }))]);
    check("<invoke name=\"done\"></invoke>", "", &[("done", json!({}))]);
}

#[test]
fn white_space_of_a_text_is_kept() {
    let text = "  a\n\n";
    check(
        &format!("<invoke name=\"write_file\"><parameter name=\"text\">{text}</parameter></invoke>"),
        "",
        &[("write_file", json!({ "text": text }))],
    );
    check(
        &format!("<function=write_file><parameter=text>\n{text}\n</parameter></function>"),
        "",
        &[("write_file", json!({ "text": text }))],
    );
}

#[test]
fn several_calls_may_follow_each_other() {
    let (a, b) = (r#"{"name": "read_file", "arguments": {"path": "a"}}"#, r#"{"name": "done", "arguments": {}}"#);
    let both = [("read_file", json!({ "path": "a" })), ("done", json!({}))];
    for text in [
        format!("<tool_call>{a}</tool_call>\n<tool_call>{b}</tool_call>"),
        format!("```json\n{a}\n```\n\n```json\n{b}\n```"),
        format!("```json\n{a}\n{b}\n```"),
        format!("[{a}, {b}]"),
        format!("{a}\n{b}"),
    ] {
        check(&text, "", &both);
    }
}

#[test]
fn a_fence_in_an_argument_ends_nothing() {
    let call = json!({ "name": "write_file", "arguments": { "text": "```\ncode\n```\n</tool_call>" } });
    let expected = [("write_file", json!({ "text": "```\ncode\n```\n</tool_call>" }))];
    check(&format!("```json\n{call}\n```"), "", &expected);
    check(&format!("<tool_call>{call}</tool_call>"), "", &expected);
}

#[test]
fn an_example_is_not_carried_out() {
    let call = r#"{"name": "read_file", "arguments": {"path": "a"}}"#;
    unclear(&format!("```json\n{call}\n```\nThis is how it looks."), MISPLACED);
    unclear(&format!("One could say <tool_call>{call}</tool_call>"), MISPLACED);
    unclear(&format!("    <tool_call>{call}</tool_call>"), MISPLACED);
    unclear(&format!("````\n```json\n{call}\n```\n````"), MISPLACED);
    unclear(&format!("```markdown\n<tool_call>{call}</tool_call>\n```"), MISPLACED);
    unclear(&format!("> {call}"), MISPLACED);
    unclear(&format!("For example:\n\n```json\n{call}\n```"), "it reads like an example");
    unclear(&format!("I would call\n{call}"), "it reads like an example");
}

#[test]
fn what_is_incomplete_is_not_carried_out() {
    for text in [
        r#"<tool_call>{"name": "read_file", "arguments": {"path": "a"}}"#,
        r#"<tool_call>{"name": "read_file", "arguments": {"path": "a"}"#,
        "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}",
        "<function=read_file>\n{\"name\": \"done\", \"arguments\": {}}",
        "```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n",
        "<invoke name=\"read_file\"><parameter name=\"path\">a</parameter>",
        "<invoke name=\"read_file\"><parameter name=\"path\">a",
        "<function=read_file><parameter=path>a</parameter><parameter=path>b</parameter></function>",
    ] {
        unclear(text, MISPLACED);
    }
}

#[test]
fn a_call_of_nothing_known_is_answered() {
    unclear(r#"{"name": "fly", "arguments": {}}"#, "there is no tool \"fly\"");
    unclear(r#"{"name": "read_file", "arguments": [1]}"#, "the arguments of read_file are not a JSON object");
    unclear(r#"{"name": "read_file", "arguments": "a"}"#, "the arguments of read_file are not a JSON object");
}

#[test]
fn other_text_is_no_call() {
    for text in [
        "",
        "All is done.",
        "```rust\nfn main() {}\n```",
        r#"{"path": "a"}"#,
        r#"```json
{"name": "surehand", "version": 1}
```"#,
        "[1, 2]",
        "I use read_file and then done.",
    ] {
        assert_eq!(found(text), TextCalls::None, "{text}");
    }
    unclear(r#"{"name": "read_file", "parameters": {"type": "object", "properties": {}}}"#, MISPLACED);
    unclear(r#"{"name": "read_file", "description": "reads", "parameters": {}}"#, MISPLACED);
}

#[test]
fn a_quote_of_what_was_shown_is_not_carried_out() {
    let call = "<tool_call>\n{\"name\": \"done\", \"arguments\": {}}\n</tool_call>";
    let shown = "12|<tool_call>\n13#ab|{\"name\": \"done\", \"arguments\": {}}\n 14|</tool_call>\n";
    let prompt = Prompt { messages: vec![ChatMessage::User(shown.to_owned())], ..prompt() };
    let text = format!("The file says:\n{call}");
    let quote = TextCalls::Unclear("it is a quote of what you were shown".to_owned());
    assert_eq!(find_calls(&text, &prompt, ""), quote);
    // The model repeats the call after it was warned, so it is meant.
    assert!(matches!(find_calls(call, &prompt, &text), TextCalls::Found { .. }));
}

fn arguments() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![
        any::<String>().prop_map(Value::from),
        "[a-z`<>/{}\\[\\]\"\n =]{0,30}".prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
    ];
    prop::collection::btree_map("[a-z_]{1,8}", value, 0..5).prop_map(|map| map.into_iter().collect())
}

/// A call in each of the forms that hold any arguments.
fn json_forms(arguments: &Map<String, Value>) -> [String; 5] {
    let call = json!({ "name": "read_file", "arguments": arguments });
    let pretty = serde_json::to_string_pretty(&call).unwrap();
    [
        call.to_string(),
        format!("```json\n{pretty}\n```"),
        format!("<tool_call>\n{call}\n</tool_call>"),
        format!("<function=read_file>{}</function>", json!(arguments)),
        format!("[TOOL_CALLS][{call}]"),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_called(arguments in arguments(), before in "([A-Za-z., ]{0,20}\n){0,3}") {
        prop_assume!(!is_introduced_as_example(&before));
        for form in json_forms(&arguments) {
            let expected = vec![TextCall { name: "read_file".to_owned(), arguments: arguments.clone() }];
            let text = before.trim_end().to_owned();
            prop_assert_eq!(found(&format!("{before}{form}\n")), TextCalls::Found { text, calls: expected }, "{}", form);
        }
    }

    #[test]
    fn texts_in_elements_come_as_they_are(path in any::<String>(), text in any::<String>()) {
        prop_assume!(!path.contains("</parameter>") && !text.contains("</parameter>"));
        let call = format!(
            "<invoke name=\"write_file\"><parameter name=\"path\">{path}</parameter><parameter name=\"text\">{text}</parameter></invoke>"
        );
        check(&call, "", &[("write_file", json!({ "path": path, "text": text }))]);
        let call = format!("<function=write_file>\n<parameter=text>\n{text}\n</parameter>\n</function>");
        check(&call, "", &[("write_file", json!({ "text": text }))]);
    }

    #[test]
    fn nothing_is_called_of_a_part(arguments in arguments(), share in 0.0..1.0) {
        for form in json_forms(&arguments) {
            let end = (0..=(form.len() as f64 * share) as usize).rev().find(|at| form.is_char_boundary(*at)).unwrap();
            let part = &form[..end.min(form.len() - 1)];
            prop_assert!(!matches!(found(part), TextCalls::Found { .. }), "{}", part);
        }
    }

    #[test]
    fn nothing_is_called_if_words_follow(arguments in arguments(), after in "[A-Za-z.,]{1,20}") {
        for form in json_forms(&arguments) {
            let text = format!("{form}\n{after}");
            prop_assert!(!matches!(found(&text), TextCalls::Found { .. }), "{}", text);
        }
    }

    #[test]
    fn no_text_does_harm(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "```", "json", "\n", "<tool_call>", "</tool_call>", "<invoke name=\"", "\">", "done", "</invoke>", "<function=", ">",
                "</function>", "<parameter=", "</parameter>", "{", "}", "[", "]", "\"name\"", ":", "\"done\"", "\"arguments\"", ",", "é",
                " ", "[TOOL_CALLS]", "<|python_tag|>", "{\"name\":\"done\",\"arguments\":{}}",
            ]),
            0..30,
        )
    ) {
        let text = pieces.concat();
        if let TextCalls::Found { text: before, calls } = found(&text) {
            prop_assert!(!calls.is_empty() && calls.iter().all(|call| tools().iter().any(|tool| tool.name == call.name)));
            prop_assert!(text.starts_with(&before));
        }
    }
}
