//! Added entries can be removed again, byte for byte, and foreign entries are left alone.

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::commands::init::{
    clients::InitClient,
    config_dirs::{ConfigDirs, ConfigScope},
    config_files::{InitRequest, RequiredContent, files},
};

/// The entries of each JSON file that a client needs in the scope `everywhere`.
fn wanted(client: InitClient, program: &str) -> Vec<Vec<ConfigEntry>> {
    wanted_in(client, ConfigScope::Everywhere, program)
}

fn wanted_in(client: InitClient, scope: ConfigScope, program: &str) -> Vec<Vec<ConfigEntry>> {
    let dirs = ConfigDirs::at("/project".into(), "/home".into());
    let request = InitRequest { program: program.to_owned(), with_server: true };
    let files = files(client, scope, &dirs, &request).into_iter();
    files.filter_map(|file| if let RequiredContent::Json(wanted) = file.needs { Some(wanted) } else { None }).collect()
}

fn everything(program: &str) -> Vec<ConfigEntry> {
    wanted(InitClient::Gemini, program).remove(0)
}

/// Adds twice, and removes with and without a copy of the original.
#[track_caller]
fn check(text: &str) -> String {
    let wanted = everything("surehand");
    let with = add(text, &wanted).unwrap();
    assert_eq!(add(&with, &wanted).unwrap(), with, "a second time changes nothing");
    assert_eq!(remove(&with, &wanted, &[text.to_owned()]).unwrap().as_deref(), Some(text));
    let found = find(&with, &wanted).unwrap();
    assert_eq!((found.server.is_some(), found.hooks.len()), (true, 4));
    with
}

const THEIRS: &str = r#"{
  // How it looks.
  "theme": "dark",
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "server"] } // theirs
  },
  "hooks": {
    "AfterTool": [
      { "matcher": "write_file", "hooks": [{ "type": "command", "command": "prettier --write" }] },
    ],
  },
}
"#;

#[test]
fn what_others_have_stays_as_it_is() {
    assert_snapshot!(check(THEIRS), @r#"
    {
      // How it looks.
      "theme": "dark",
      "mcpServers": {
        "files": { "command": "npx", "args": ["-y", "server"] }, // theirs
        "surehand": { "command": "surehand", "args": ["mcp"] }
      },
      "hooks": {
        "AfterTool": [
          { "matcher": "write_file", "hooks": [{ "type": "command", "command": "prettier --write" }] },
          {
            "matcher": "read_file|read_many_files|grep_search|search_file_content|write_file|replace|run_shell_command",
            "hooks": [
              {
                "name": "surehand",
                "type": "command",
                "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook gemini",
                "timeout": 30000
              }
            ]
          },
        ],
        "SessionStart": [
          {
            "hooks": [
              {
                "name": "surehand",
                "type": "command",
                "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook gemini",
                "timeout": 30000
              }
            ]
          }
        ],
        "BeforeAgent": [
          {
            "hooks": [
              {
                "name": "surehand",
                "type": "command",
                "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook gemini",
                "timeout": 30000
              }
            ]
          }
        ],
        "BeforeTool": [
          {
            "matcher": "read_file|read_many_files|grep_search|search_file_content|write_file|replace|run_shell_command",
            "hooks": [
              {
                "name": "surehand",
                "type": "command",
                "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook gemini",
                "timeout": 30000
              }
            ]
          }
        ],
      },
    }
    "#);
}

#[test]
fn without_a_copy_it_comes_out_as_well() {
    for text in [THEIRS, "{\"a\": 1}\n", "{\n\t\"hooks\": {\n\t\t\"Stop\": []\n\t}\n}\n", "\u{feff}{\r\n  \"a\": {}\r\n}\r\n"] {
        let wanted = everything("/a b/surehand");
        let with = add(text, &wanted).unwrap();
        assert_eq!(remove(&with, &wanted, &[]).unwrap().as_deref(), Some(text));
    }
}

#[test]
fn what_was_empty_stays_empty() {
    for text in ["", "\n", "{}", "{ }\n", "{\n}\n", "// nothing\n", "{\"mcpServers\": {}, \"hooks\": {\"BeforeTool\": [ ]}}"] {
        check(text);
    }
}

#[test]
fn a_file_that_is_all_ours_goes() {
    for client in InitClient::all() {
        for wanted in wanted(client, "surehand") {
            let ours = add("", &wanted).unwrap();
            assert_eq!(remove(&ours, &wanted, &[]).unwrap(), None);
            let edited = ours.replacen('{', "{\n  \"more\": 1,", 1);
            assert_eq!(
                remove(&edited, &wanted, &[]).unwrap().as_deref().map(str::trim),
                Some("{\n  \"more\": 1\n}")
                    .filter(|_| !edited.contains("version"))
                    .or(Some("{\n  \"more\": 1,\n  \"version\": 1\n}"))
            );
        }
    }
}

#[test]
fn what_came_later_stays() {
    let wanted = everything("surehand");
    let with = add("{\n  \"hooks\": {}\n}\n", &wanted).unwrap();
    let later = with.replace("\"AfterTool\": [\n", "\"AfterTool\": [\n      { \"hooks\": [{ \"command\": \"mine\" }] },\n");
    let later = later.replace("\"surehand\": {", "\"mine\": { \"command\": \"mine\" },\n    \"surehand\": {");
    assert_snapshot!(remove(&later, &wanted, &["{\n  \"hooks\": {}\n}\n".to_owned()]).unwrap().unwrap(), @r#"
    {
      "hooks": {
        "AfterTool": [
          { "hooks": [{ "command": "mine" }] }
        ]
      },
      "mcpServers": {
        "mine": { "command": "mine" }
      }
    }
    "#);
}

#[test]
fn a_handler_in_somebodys_group_leaves_the_group() {
    let wanted = everything("surehand");
    let text =
        r#"{"hooks": {"AfterTool": [{"matcher": "*", "hooks": [{"command": "mine"}, {"command": "surehand hook gemini"}]}]}}"#;
    let expected = r#"{"hooks": {"AfterTool": [{"matcher": "*", "hooks": [{"command": "mine"}]}]}}"#;
    assert_eq!(remove(text, &wanted, &[]).unwrap().as_deref(), Some(expected));
}

#[test]
fn a_program_that_has_moved_is_corrected_in_its_place() {
    let old = add(THEIRS, &everything("/old place/surehand")).unwrap();
    let new = add(&old, &everything("surehand")).unwrap();
    assert_eq!(new, add(THEIRS, &everything("surehand")).unwrap());
    let own = r#"{"mcpServers": {"surehand": {"command": "surehand", "args": ["mcp", "--root", "/x"], "env": {"A": "b"}}}}"#;
    let server = &everything("/new/surehand")[..1];
    assert_eq!(add(own, server).unwrap(), own.replace("\"surehand\", \"args\"", "\"/new/surehand\", \"args\""));
}

#[test]
fn what_release_0_1_wrote_becomes_what_this_one_writes() {
    let old = r#"{
  "mcpServers": { "surehand": { "command": "/old/surehand", "args": ["mcp"] } },
  "hooks": {
    "BeforeTool": [
      { "matcher": "read_file|read_many_files|write_file|replace|run_shell_command", "hooks": [{ "command": "'/old/surehand' hook gemini" }] }
    ],
    "AfterTool": [
      { "matcher": "read_file|mine", "hooks": [{ "command": "surehand hook gemini" }] }
    ],
    "SessionStart": [
      { "hooks": [{ "command": "A=1 surehand hook gemini" }] }
    ],
    "BeforeAgent": [
      { "hooks": [{ "command": "surehand", "args": ["hook", "gemini"] }] }
    ]
  }
}
"#;
    let mut wanted = wanted_in(InitClient::Gemini, ConfigScope::Project, "surehand").remove(0);
    wanted[0] = wanted[0].with_presence(Presence::IfThere);
    let new = add(old, &wanted).unwrap();
    assert_eq!(add(&new, &wanted).unwrap(), new);
    assert_snapshot!(new, @r#"
    {
      "mcpServers": { "surehand": { "command": "sh", "args": ["-c", "command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; exit 0", "surehand", "mcp"] } },
      "hooks": {
        "BeforeTool": [
          { "matcher": "read_file|read_many_files|grep_search|search_file_content|write_file|replace|run_shell_command", "hooks": [{ "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook gemini" }] }
        ],
        "AfterTool": [
          { "matcher": "read_file|mine", "hooks": [{ "command": "sh -c 'command -v \"$0\" >/dev/null 2>&1 && exec \"$0\" \"$@\"; cat >/dev/null 2>&1; exit 0' surehand hook gemini" }] }
        ],
        "SessionStart": [
          { "hooks": [{ "command": "A=1 surehand hook gemini" }] }
        ],
        "BeforeAgent": [
          { "hooks": [{ "command": "surehand", "args": ["hook", "gemini"] }] }
        ]
      }
    }
    "#);
    assert_eq!(remove(&new, &wanted, &[]).unwrap(), None);
}

#[test]
fn a_server_that_is_not_asked_for_is_not_put_in() {
    let wanted: Vec<ConfigEntry> = everything("surehand").iter().map(|one| one.with_presence(Presence::IfThere)).collect();
    for text in ["", "{}", "{ \"mcpServers\": {} }", "// nothing\n"] {
        assert_eq!(add(text, &wanted[..1]).unwrap(), text);
        let with_hooks = add(text, &wanted).unwrap();
        assert_eq!(find(&with_hooks, &wanted).unwrap().server, None);
        // It is not recorded whether the server was requested.
        assert_eq!(remove(&with_hooks, &everything("surehand"), &[text.to_owned()]).unwrap().as_deref(), Some(text));
    }
}

#[test]
fn a_server_may_lie_deep() {
    let wanted = wanted_in(InitClient::Claude, ConfigScope::Me, "surehand").remove(1);
    for text in
        ["", "{ \"a\": 1 }\n", "{\n  \"projects\": { \"/other\": {} }\n}\n", "{ \"projects\": { \"/project\": { \"b\": 2 } } }"]
    {
        let with = add(text, &wanted).unwrap();
        assert_eq!(find(&with, &wanted).unwrap().server, Some(vec!["surehand".to_owned(), "mcp".to_owned()]), "{with}");
        assert_eq!(remove(&with, &wanted, &[]).unwrap().unwrap_or_default(), text);
    }
}

#[test]
fn somebody_elses_server_is_left_alone() {
    let text = r#"{"mcpServers": {"surehand": {"command": "docker", "args": ["run", "surehand"]}}}"#;
    let server = &everything("surehand")[..1];
    assert_eq!(add(text, server).unwrap(), text);
    assert_eq!(remove(text, server, &[]).unwrap().as_deref(), Some(text));
    assert!(find(text, server).unwrap().name_is_taken);
}

#[test]
fn an_entry_of_the_wrong_kind_names_its_line() {
    let broken = |text: &str| add(text, &everything("surehand")).unwrap_err();
    assert_eq!(broken("[]"), SyntaxProblem { line: 1, why: "the file is not an object".to_owned() });
    assert_eq!(broken("{\n\"mcpServers\": null}"), SyntaxProblem { line: 2, why: "mcpServers is not an object".to_owned() });
    assert_eq!(
        broken("{\n\n\"hooks\": {\"BeforeTool\": 1}}"),
        SyntaxProblem { line: 3, why: "BeforeTool is not a list".to_owned() }
    );
}

/// A configuration as people write them, in various styles: with other servers and hooks, comments, trailing commas.
fn configuration() -> impl Strategy<Value = String> {
    let server = "[a-z]{1,4}".prop_map(|name| format!("\"{name}\": {{ \"command\": \"{name}\" }}"));
    let handler = prop_oneof![
        Just(r#"{ "hooks": [{ "type": "command", "command": "lint" }] }"#),
        Just(r#"{ "matcher": "*", "hooks": [{ "command": "a" }, { "command": "b" }] }"#),
        Just(r#"{ "hooks": [] }"#),
    ]
    .prop_map(str::to_owned);
    let event = (prop_oneof![Just("BeforeTool"), Just("AfterTool"), Just("Stop")], any::<u8>());
    let list = proptest::collection::vec(handler, 0..3);
    let event = (event, list, style()).prop_map(|((name, n), list, style)| {
        let name = if name == "Stop" { format!("Stop{n}") } else { name.to_owned() };
        (name.clone(), format!("\"{name}\": {}", held('[', &list, ']', &style, 3)))
    });
    let events = proptest::collection::vec(event, 0..4).prop_map(|mut events| {
        events.sort();
        events.dedup_by(|one, other| one.0 == other.0);
        events.into_iter().map(|(_, text)| text).collect::<Vec<_>>()
    });
    let servers = proptest::collection::btree_set(server, 0..3).prop_map(|all| all.into_iter().collect::<Vec<_>>());
    let part = |name: &'static str, items: BoxedStrategy<Vec<String>>| {
        proptest::option::of(
            (items, style()).prop_map(move |(items, style)| format!("\"{name}\": {}", held('{', &items, '}', &style, 2))),
        )
    };
    let other = proptest::option::of(Just("\"theme\": \"dark, // no comment {\"".to_owned()));
    let parts = (part("mcpServers", servers.boxed()), other, part("hooks", events.boxed()));
    (parts, style(), prop_oneof![Just(""), Just("\n"), Just(" \n// the end")], any::<bool>()).prop_map(
        |((one, two, three), style, end, crlf)| {
            let parts: Vec<String> = [one, two, three].into_iter().flatten().collect();
            let text = format!("{}{end}", held('{', &parts, '}', &style, 1));
            if crlf { text.replace('\n', "\r\n") } else { text }
        },
    )
}

#[derive(Debug, Clone)]
struct Written {
    in_lines: bool,
    trailing_comma: bool,
    comment: &'static str,
    unit: &'static str,
}

fn style() -> impl Strategy<Value = Written> {
    let comment = prop_oneof![Just(""), Just(" // say, [this]"), Just(" /* or */"), Just("\n// \"k\": {")];
    let unit = prop_oneof![Just("  "), Just("\t"), Just("    ")];
    (any::<bool>(), any::<bool>(), comment, unit).prop_map(|(in_lines, trailing_comma, comment, unit)| Written {
        in_lines,
        trailing_comma,
        comment,
        unit,
    })
}

fn held(open: char, items: &[String], close: char, style: &Written, depth: usize) -> String {
    let comma = if style.trailing_comma && !items.is_empty() { "," } else { "" };
    if !style.in_lines {
        return format!("{open}{}{comma}{close}", items.join(", "));
    }
    let (inner, outer) = (style.unit.repeat(depth), style.unit.repeat(depth - 1));
    let items: String = items.join(&format!(",\n{inner}"));
    format!("{open}\n{inner}{items}{comma}{}\n{outer}{close}", style.comment)
}

/// The parsed value of a text, regardless of its style.
fn meaning(text: &str) -> serde_json::Value {
    fn of(value: &Value<'_>) -> serde_json::Value {
        match value {
            Value::Object(object) => object.properties.iter().map(|p| (p.name.as_str().to_owned(), of(&p.value))).collect(),
            Value::Array(array) => array.elements.iter().map(of).collect(),
            Value::StringLit(text) => text.value.to_string().into(),
            other => format!("{other:?}").into(),
        }
    }
    of(&parse(text.trim_start_matches('\u{feff}')).unwrap().unwrap())
}

proptest! {
    #[test]
    fn removing_gives_what_was_there(text in configuration(), program in prop_oneof![Just("surehand"), Just("/it's here/surehand")]) {
        let wanted = everything(program);
        let with = add(&text, &wanted).unwrap();
        prop_assert_eq!(&add(&with, &wanted).unwrap(), &with);
        prop_assert_eq!(remove(&with, &wanted, std::slice::from_ref(&text)).unwrap(), Some(text.clone()));
        // Everything of the original is still there, in its order.
        let is_text = |char: &char| !char.is_whitespace() && *char != ',';
        let mut there = with.chars().filter(is_text);
        prop_assert!(text.chars().filter(is_text).all(|char| there.any(|other| other == char)));
    }

    #[test]
    fn what_was_not_empty_needs_no_copy(text in configuration()) {
        let means = meaning(&text);
        let is_empty = |value: &serde_json::Value| *value == serde_json::json!({}) || *value == serde_json::json!([]);
        let hooks = &means["hooks"];
        let empty = [&means, &means["mcpServers"], hooks, &hooks["BeforeTool"], &hooks["AfterTool"]].into_iter().any(is_empty);
        let wanted = everything("surehand");
        if !empty {
            prop_assert_eq!(remove(&add(&text, &wanted).unwrap(), &wanted, &[]).unwrap(), Some(text));
        }
    }

    #[test]
    fn after_an_edit_only_ours_goes(text in configuration()) {
        // Another version added other words, so the copy does not show the original text: the entries are removed one
        // by one.
        let with = add(&text, &everything("/other/surehand")).unwrap();
        let rest = remove(&with, &everything("surehand"), std::slice::from_ref(&text)).unwrap().unwrap();
        prop_assert_eq!(meaning(&rest), meaning(&text));
    }
}
