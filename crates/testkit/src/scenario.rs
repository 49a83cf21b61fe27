//! Scenarios: one folder per promise, with the files before, the steps, the files after, and the text for the model.
//! The user's settings are in `settings.toml`.
//!
//! `steps.txt` begins with the promise as a comment. Then, line by line:
//! - `call TOOL {json}` calls a tool; `again` makes the same call once more;
//! - `expect WORD` checks the outcome of the last call: `ok`, `noop`, or the code of a refusal;
//! - `check {json}` checks that the result object of the last call contains at least this;
//! - `sh COMMAND` plays another program; the command must succeed.
//!
//! `{root}` stands for the workspace. With `UPDATE_SCENARIOS=1`, `replies.txt` and `after/` are written instead of
//! compared.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::tool_client::{Answer, ToolClient};

/// A folder with a promise.
pub struct Scenario {
    dir: PathBuf,
    steps: Vec<(usize, String)>,
}

impl Scenario {
    /// All scenarios of a folder, by name.
    pub fn all(dir: &Path) -> Vec<Scenario> {
        let mut dirs: Vec<PathBuf> =
            fs::read_dir(dir).expect("the scenarios").map(|entry| entry.expect("entry").path()).collect();
        dirs.retain(|dir| dir.is_dir());
        dirs.sort();
        dirs.into_iter().map(Scenario::load).collect()
    }

    fn load(dir: PathBuf) -> Self {
        let text = fs::read_to_string(dir.join("steps.txt")).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        assert!(text.starts_with("# "), "{}: begins with its promise", dir.display());
        let steps = text.lines().enumerate().map(|(index, line)| (index + 1, line.to_owned()));
        let steps = steps.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).collect();
        Self { dir, steps }
    }

    /// The name of the folder.
    pub fn name(&self) -> String {
        self.dir.file_name().expect("a folder has a name").to_string_lossy().into_owned()
    }

    /// Lays out the user's own settings in a folder for configuration.
    pub fn lay_out_settings(&self, configuration: &Path) {
        if let Ok(settings) = fs::read(self.dir.join("settings.toml")) {
            fs::create_dir_all(configuration.join("surehand")).expect("folder");
            fs::write(configuration.join("surehand/surehand.toml"), settings).expect("settings");
        }
    }

    /// Lays out the files before, in an empty folder.
    pub fn lay_out(&self, root: &Path) {
        for (path, content) in tree(&self.dir.join("before")) {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a file has a folder")).expect("folder");
            fs::write(path, content).expect("file");
        }
    }

    /// Plays the steps through a client and compares the text and the files with the expected ones.
    pub fn play(&self, client: &mut dyn ToolClient, root: &Path) {
        let mut last: Option<(String, Value, Answer)> = None;
        let mut transcript = String::new();
        for (line, step) in &self.steps {
            let place = || format!("{}, line {line}, through {}: {step}", self.name(), client.name());
            let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
            match word {
                "sh" => outside(root, rest, &place()),
                "call" => {
                    let (tool, arguments) = rest.split_once(' ').unwrap_or((rest, "{}"));
                    let typed = arguments.replace("{root}", &root.display().to_string());
                    let arguments: Value = serde_json::from_str(&typed).unwrap_or_else(|error| panic!("{}: {error}", place()));
                    last = Some(call(client, root, tool, arguments, &mut transcript));
                }
                "again" => {
                    let (tool, arguments, _) = last.take().unwrap_or_else(|| panic!("{}: nothing was called", place()));
                    last = Some(call(client, root, &tool, arguments, &mut transcript));
                }
                "expect" => {
                    let (_, _, answer) = last.as_ref().unwrap_or_else(|| panic!("{}: nothing was called", place()));
                    expect(answer, rest, &place());
                }
                "check" => {
                    let (_, _, answer) = last.as_ref().unwrap_or_else(|| panic!("{}: nothing was called", place()));
                    let wanted: Value = serde_json::from_str(rest).unwrap_or_else(|error| panic!("{}: {error}", place()));
                    assert!(holds(&answer.result, &wanted), "{}: {:#}", place(), answer.result);
                }
                _ => panic!("{}: what is that?", place()),
            }
        }
        self.compare(root, &transcript, client.name());
    }

    fn compare(&self, root: &Path, transcript: &str, client: &str) {
        let after = tree(root);
        if std::env::var_os("UPDATE_SCENARIOS").is_some() {
            fs::write(self.dir.join("replies.txt"), transcript).expect("replies.txt");
            let _ = fs::remove_dir_all(self.dir.join("after"));
            for (path, content) in &after {
                let path = self.dir.join("after").join(path);
                fs::create_dir_all(path.parent().expect("a file has a folder")).expect("folder");
                fs::write(path, content).expect("file");
            }
            return;
        }
        let expected = fs::read_to_string(self.dir.join("replies.txt")).unwrap_or_default();
        assert_eq!(transcript, expected, "{}: the text for the model, through {client}", self.name());
        let shown = |tree: BTreeMap<String, Vec<u8>>| {
            tree.into_iter().map(|(path, bytes)| (path, String::from_utf8_lossy(&bytes).into_owned())).collect::<Vec<_>>()
        };
        assert_eq!(shown(after), shown(tree(&self.dir.join("after"))), "{}: the files after, through {client}", self.name());
    }
}

fn call(
    client: &mut dyn ToolClient,
    root: &Path,
    tool: &str,
    arguments: Value,
    transcript: &mut String,
) -> (String, Value, Answer) {
    let answer = client.call(tool, &arguments);
    let written = format!("> {tool} {arguments}\n{}\n", answer.text);
    transcript.push_str(&written.replace(&root.display().to_string(), "{root}"));
    (tool.to_owned(), arguments, answer)
}

fn outside(root: &Path, command: &str, place: &str) {
    let output = Command::new("sh").args(["-euc", command]).current_dir(root).output().expect("a shell");
    assert!(
        output.status.success(),
        "{place}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn expect(answer: &Answer, word: &str, place: &str) {
    let found = if answer.is_error {
        answer.result["refusal"]["code"].as_str().unwrap_or("no code")
    } else if answer.result["noop"] == true {
        "noop"
    } else {
        "ok"
    };
    assert_eq!(found, word, "{place}: {}", answer.text);
}

/// Whether `value` has everything that `wanted` has.
fn holds(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(value), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| value.get(key).is_some_and(|value| holds(value, wanted)))
        }
        _ => value == wanted,
    }
}

/// All regular files below a folder by path, without our own state.
pub fn tree(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.expect("entry").path();
            let name = path.strip_prefix(dir).expect("below").display().to_string();
            if [".git", ".surehand"].contains(&name.as_str()) {
                continue;
            }
            let Ok(kind) = path.symlink_metadata() else { continue };
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                files.insert(name, fs::read(&path).unwrap_or_else(|error| error.to_string().into_bytes()));
            }
        }
    }
    files
}
