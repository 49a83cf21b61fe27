//! Every promise in `scenarios/`, through every client: the library, MCP, and the command line.

use std::path::Path;

use serde_json::Value;
use surehand_engine::{Config, Session, Workspace};
use surehand_testkit::{
    scenario::Scenario,
    tool_client::{Answer, CliClient, McpClient, ToolClient},
};

/// The directory in which a scenario is played.
struct Place<'a> {
    root: &'a Path,
    /// The directory of the user's configuration.
    configuration: &'a str,
}

impl Place<'_> {
    fn environment(&self) -> [(&str, &str); 2] {
        [("SUREHAND_POLICY_DURABILITY", "fast"), ("XDG_CONFIG_HOME", self.configuration)]
    }
}

struct EngineClient(Session);

impl ToolClient for EngineClient {
    fn name(&self) -> &'static str {
        "engine"
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Answer {
        let reply = self.0.call(tool, arguments);
        Answer { text: reply.text, is_error: reply.is_error, result: reply.result }
    }
}

fn play_all(open: impl Fn(&Place<'_>) -> Box<dyn ToolClient>) {
    let scenarios = Scenario::all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios"));
    assert!(scenarios.len() > 40, "the promises are there");
    for scenario in scenarios {
        let (dir, configuration) = (surehand_testkit::repository(), tempfile::tempdir().unwrap());
        let root = dir.path().canonicalize().unwrap();
        scenario.lay_out(&root);
        scenario.lay_out_settings(configuration.path());
        let mut client = open(&Place { root: &root, configuration: configuration.path().to_str().unwrap() });
        scenario.play(&mut *client, &root);
    }
}

#[test]
fn promises_hold_through_the_engine() {
    play_all(|place| {
        let environment = place.environment().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config = Config::load(place.root, environment).unwrap();
        Box::new(EngineClient(Session::new(Workspace::open(place.root, config).unwrap())))
    });
}

#[test]
fn promises_hold_through_mcp() {
    let program = Path::new(env!("CARGO_BIN_EXE_surehand"));
    play_all(|place| Box::new(McpClient::start(program, place.root, &place.environment())));
}

#[test]
fn promises_hold_through_the_command_line() {
    let program = Path::new(env!("CARGO_BIN_EXE_surehand"));
    play_all(|place| Box::new(CliClient::new(program, place.root, &place.environment())));
}
