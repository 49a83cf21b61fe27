//! Plays the example of the page about the neutral hook protocol (`docs/hook-protocol.md`).

use std::{fs, path::Path, process::Command};

use serde_json::Value;
use surehand_adapters::hooks::{HookClient, HookEnvironment, OpenedWorkspace, answer};
use surehand_engine::{Config, Durability, StateHome, Workspace, WorkspaceOptions};

fn open(root: &Path) -> Result<OpenedWorkspace, String> {
    let config = Config { durability: Durability::Fast, ..Config::for_hooks() };
    let options = WorkspaceOptions { config, is_for_one_call: true, ..WorkspaceOptions::default() };
    Workspace::open_with(root, options).map(Into::into).map_err(|error| error.to_string())
}

/// An answer without the values that differ from run to run.
fn settled(mut answer: Value) -> Value {
    const STATE: &str = "\nRepository state";
    if let Some((before, _)) = answer["context"].as_str().and_then(|context| context.split_once(STATE)) {
        answer["context"] = format!("{before}\nSTATE").into();
    }
    answer
}

#[test]
fn the_example_of_the_protocol_goes_as_the_page_says() {
    let place = surehand_testkit::repository();
    let root = place.path().canonicalize().unwrap();
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hook-protocol.md")).unwrap();
    let (_, example) = page.split_once("```transcript\n").unwrap();
    let (example, _) = example.split_once("\n```").unwrap();
    let (mut got, mut count) = (Value::Null, 0);
    // An indented line continues the one above.
    for line in example.replace("\n    ", " ").lines() {
        match line.split_at(2) {
            ("$ ", command) => {
                assert!(Command::new("sh").args(["-c", command]).current_dir(&root).status().unwrap().success());
            }
            ("> ", input) => {
                let input = input.replace("DIR", root.to_str().unwrap());
                let around = HookEnvironment { state: StateHome::default(), project: None, open: &open };
                let answer = answer(HookClient::Generic, None, &input, &around);
                assert_eq!((answer.exit_code, answer.stderr.as_str()), (0, ""));
                got = settled(serde_json::from_str(&answer.stdout).unwrap());
            }
            ("< ", expected) => {
                assert_eq!(got, serde_json::from_str::<Value>(expected).unwrap());
                count += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(count > 8);
}
