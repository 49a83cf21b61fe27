//! Every promise in `scenarios/`, through every door: the library, MCP, and the command line.

use std::path::Path;

use serde_json::Value;
use surehand_engine::{Config, Session, Workspace};
use surehand_testkit::{
    door::{Answer, CliDoor, Door, McpDoor},
    scenario::Scenario,
};

const FAST: &[(&str, &str)] = &[("SUREHAND_POLICY_DURABILITY", "fast")];

struct EngineDoor(Session);

impl Door for EngineDoor {
    fn name(&self) -> &'static str {
        "engine"
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Answer {
        let reply = self.0.call(tool, arguments);
        Answer { text: reply.text, is_error: reply.is_error, result: reply.result }
    }
}

fn play_all(open: impl Fn(&Path) -> Box<dyn Door>) {
    let scenarios = Scenario::all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios"));
    assert!(scenarios.len() > 40, "the promises are there");
    for scenario in scenarios {
        let dir = surehand_testkit::repository();
        let root = dir.path().canonicalize().unwrap();
        scenario.lay_out(&root);
        let mut door = open(&root);
        scenario.play(&mut *door, &root);
    }
}

#[test]
fn promises_hold_through_the_engine() {
    play_all(|root| {
        let config = Config::load(root, []).unwrap();
        Box::new(EngineDoor(Session::new(Workspace::open(root, config).unwrap())))
    });
}

#[test]
fn promises_hold_through_mcp() {
    play_all(|root| Box::new(McpDoor::start(Path::new(env!("CARGO_BIN_EXE_surehand")), root, FAST)));
}

#[test]
fn promises_hold_through_the_command_line() {
    play_all(|root| Box::new(CliDoor::new(Path::new(env!("CARGO_BIN_EXE_surehand")), root, FAST)));
}
