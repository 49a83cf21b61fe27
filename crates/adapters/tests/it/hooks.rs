//! Sessions of all clients with hooks, played as the clients play them: the hook runs before a tool, then the tool,
//! then the hook again. Every transcript is played for every client.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    cell::{Cell, RefCell},
    fs,
    io::Write,
    path::{Path, PathBuf},
    process,
};

use proptest::prelude::*;
use serde_json::{Value, json};
use surehand_adapters::hooks::{HookAnswer, HookClient, HookEnvironment, answer};
use surehand_engine::{
    Config, Durability, Session, SessionId, StateHome, Workspace, WorkspaceOptions,
    core::{
        FileStatus,
        edit::{UndoRequest, UndoTarget, WhoseChanges},
    },
    store::EventFilter,
};
use tempfile::TempDir;

/// A workspace with these files, and a directory beside it for the clients' own records.
struct Place {
    dir: TempDir,
}

impl Place {
    fn with(files: &[(&str, &str)]) -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        surehand_testkit::make_repository(&place.root());
        files.iter().for_each(|(path, content)| place.write(path, content));
        place
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("ws")
    }

    fn full(&self, path: &str) -> String {
        self.root().join(path).to_str().unwrap().to_owned()
    }

    fn write(&self, path: &str, content: &str) {
        fs::create_dir_all(self.root().join(path).parent().unwrap()).unwrap();
        fs::write(self.root().join(path), content).unwrap();
    }

    fn content(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap()
    }

    fn open(&self) -> std::sync::Arc<Workspace> {
        open(&self.root()).unwrap()
    }

    /// The answer of a hook that runs in a process of its own.
    fn answer(&self, client: HookClient, input: &str) -> HookAnswer {
        self.answer_to(client, None, input)
    }

    /// Like `answer`, but for a client that names the event outside of its input.
    fn answer_to(&self, client: HookClient, event: Option<&str>, input: &str) -> HookAnswer {
        let state = StateHome { user: Some(self.dir.path().join("state")), ..StateHome::default() };
        let opened = RefCell::new(Vec::new());
        let open = |root: &Path| {
            let workspace = open(root)?;
            opened.borrow_mut().push(workspace.clone());
            Ok(workspace.into())
        };
        let answer = answer(client, event, input, &HookEnvironment { state, project: None, open: &open });
        opened.into_inner().into_iter().for_each(surehand_testkit::close_leaked);
        answer
    }
}

/// The answer of a hook for which no workspace can be opened.
fn nowhere(client: HookClient, input: &str) -> HookAnswer {
    let open = |_: &Path| Err("no".to_owned());
    answer(client, Some("session.created"), input, &HookEnvironment { state: StateHome::default(), project: None, open: &open })
}

fn open(root: &Path) -> Result<std::sync::Arc<Workspace>, String> {
    let config = Config { durability: Durability::Fast, ..Config::for_hooks() };
    let options = WorkspaceOptions { config, is_for_one_call: true, ..WorkspaceOptions::default() };
    Workspace::open_with(root, options).map_err(|error| error.to_string())
}

/// A client in a workspace.
struct Agent<'a> {
    client: HookClient,
    place: &'a Place,
    session: String,
    /// The id of a subagent; `None` for the main agent.
    agent: Option<String>,
    /// Its working directory, below the root.
    directory: &'static str,
    calls: Cell<usize>,
}

/// The texts that the model reads.
type Heard = Result<String, String>;

/// A call, as a client makes it.
struct Call {
    tool: &'static str,
    arguments: Value,
}

impl<'a> Agent<'a> {
    fn new(client: HookClient, place: &'a Place) -> Self {
        Self::named(client, place, "s1")
    }

    fn named(client: HookClient, place: &'a Place, session: &str) -> Self {
        let agent = Self { client, place, session: session.to_owned(), agent: None, directory: "", calls: Cell::new(0) };
        fs::write(agent.transcript(), "{\"$set\":{\"messages\":[]}}\n").unwrap();
        agent.begins("startup");
        agent
    }

    fn transcript(&self) -> PathBuf {
        self.place.dir.path().join(format!("{}.jsonl", self.session))
    }

    fn cwd(&self) -> String {
        self.place.root().join(self.directory).to_str().unwrap().trim_end_matches('/').to_owned()
    }

    /// Runs the hook, and returns its output.
    fn tell(&self, event: &str, fields: Value) -> Value {
        let mut input = match self.client {
            HookClient::Claude | HookClient::Codex | HookClient::Gemini | HookClient::Qwen => {
                json!({ "session_id": self.session, "cwd": self.cwd(), "transcript_path": self.transcript() })
            }
            HookClient::Cursor => json!({
                "conversation_id": self.session, "cursor_version": "3", "workspace_roots": [self.place.root()], "cwd": self.cwd(),
            }),
            HookClient::Opencode | HookClient::Generic => json!({ "session": self.session, "directory": self.cwd() }),
            HookClient::Copilot | HookClient::Reasonix => json!({ "sessionId": self.session, "cwd": self.cwd() }),
            HookClient::Goose => {
                json!({ "session_id": self.session, "working_dir": self.cwd(), "sessions_database": self.database() })
            }
            HookClient::Cline => {
                json!({ "taskId": self.session, "workspaceRoots": [self.cwd()], "agent_id": "main", "parent_agent_id": null })
            }
        };
        let (field, argument) = match self.client {
            HookClient::Goose | HookClient::Reasonix | HookClient::Generic => ("event", None),
            HookClient::Cline => ("hookName", None),
            // It does not report this event.
            HookClient::Copilot => ("", Some(event)),
            _ => ("hook_event_name", None),
        };
        if argument.is_none() {
            input[field] = event.into();
        }
        if let Some(agent) = &self.agent {
            input[if self.client == HookClient::Generic { "agent" } else { "agent_id" }] = agent.as_str().into();
        }
        let fields = fields.as_object().unwrap().clone();
        input.as_object_mut().unwrap().extend(fields);
        let answer = self.place.answer_to(self.client, argument, &input.to_string());
        assert_eq!(answer.failed, None, "{input}");
        if self.client == HookClient::Reasonix && answer.exit_code == 2 {
            assert_eq!(answer.stdout, "");
            return json!({ "stderr": answer.stderr });
        }
        assert_eq!((answer.exit_code, answer.stderr.as_str()), (0, ""));
        if answer.stdout.is_empty() { Value::Null } else { serde_json::from_str(&answer.stdout).unwrap() }
    }

    /// The session database of goose.
    fn database(&self) -> PathBuf {
        self.place.dir.path().join("sessions.db")
    }

    /// Stores a message as goose does.
    fn keep(&self, content: &Value) {
        let database = rusqlite::Connection::open(self.database()).unwrap();
        database
            .execute_batch("CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, content_json TEXT, metadata_json TEXT)")
            .unwrap();
        let row = (&self.session, content.to_string(), "{\"agentVisible\":true}");
        database.execute("INSERT INTO messages (session_id, content_json, metadata_json) VALUES (?1, ?2, ?3)", row).unwrap();
    }

    /// Whether its model reads nothing after a tool has run.
    fn is_deaf(&self) -> bool {
        matches!(self.client, HookClient::Goose | HookClient::Reasonix)
    }

    /// The call passes, and the model reads these words if its client passes on any text.
    #[track_caller]
    fn reads(&self, heard: Heard, words: &[&str]) {
        if self.is_deaf() {
            passes(heard);
        } else {
            reads(heard, words);
        }
    }

    /// The part of an answer that the model reads.
    fn heard(&self, answer: &Value) -> Heard {
        let own = &answer["hookSpecificOutput"];
        let (denied, context) = match self.client {
            HookClient::Claude | HookClient::Codex | HookClient::Qwen => {
                assert!(answer.is_null() || answer.as_object().unwrap().len() == 1, "only what it knows: {answer}");
                let is_denied = own["permissionDecision"] == "deny";
                (is_denied.then(|| own["permissionDecisionReason"].clone()), &own["additionalContext"])
            }
            HookClient::Gemini => ((answer["decision"] == "deny").then(|| answer["reason"].clone()), &own["additionalContext"]),
            HookClient::Cursor => {
                assert!(!answer.is_null(), "always JSON");
                ((answer["permission"] == "deny").then(|| answer["agent_message"].clone()), &answer["additional_context"])
            }
            HookClient::Opencode => (answer.get("deny").cloned(), &answer["context"]),
            HookClient::Copilot => {
                let is_denied = answer["permissionDecision"] == "deny";
                (is_denied.then(|| answer["permissionDecisionReason"].clone()), &answer["additionalContext"])
            }
            HookClient::Goose => ((answer["decision"] == "block").then(|| answer["reason"].clone()), &Value::Null),
            HookClient::Cline => {
                assert_ne!(answer["cancel"], true, "that would end the task");
                let context = &answer["contextModification"];
                (answer.get("overrideInput").map(|_| context.clone()), context)
            }
            HookClient::Reasonix => (answer.get("stderr").cloned(), &own["additionalContext"]),
            HookClient::Generic => ((answer["decision"] == "deny").then(|| answer["reason"].clone()), &answer["context"]),
        };
        match denied {
            Some(why) => Err(why.as_str().filter(|why| !why.trim().is_empty()).expect("a no has a reason").to_owned()),
            None => Ok(context.as_str().unwrap_or_default().to_owned()),
        }
    }

    /// A whole call. `run` plays the tool and returns its response.
    fn call(&self, call: &Call, run: impl FnOnce() -> Value) -> Heard {
        self.calls.set(self.calls.get() + 1);
        let (before, after) = match self.client {
            HookClient::Claude | HookClient::Codex | HookClient::Qwen | HookClient::Goose | HookClient::Reasonix => {
                ("PreToolUse", "PostToolUse")
            }
            HookClient::Gemini => ("BeforeTool", "AfterTool"),
            HookClient::Cursor | HookClient::Copilot => ("preToolUse", "postToolUse"),
            HookClient::Opencode => ("tool.execute.before", "tool.execute.after"),
            HookClient::Cline => ("tool_call", "tool_result"),
            HookClient::Generic => ("before", "after"),
        };
        let id = format!("call{}", self.calls.get());
        if self.client == HookClient::Goose {
            let value = json!({ "name": call.tool, "arguments": call.arguments });
            self.keep(&json!([{ "type": "toolRequest", "id": id, "toolCall": { "status": "success", "value": value } }]));
        }
        let fields = match self.client {
            HookClient::Opencode => json!({ "tool": call.tool, "args": call.arguments }),
            HookClient::Generic => json!({ "tool": { call.tool: call.arguments } }),
            HookClient::Copilot | HookClient::Reasonix => json!({ "toolName": call.tool, "toolArgs": call.arguments }),
            HookClient::Cline => json!({ "tool_call": { "name": call.tool, "input": call.arguments } }),
            _ => {
                json!({ "tool_name": call.tool, "tool_input": call.arguments, "tool_use_id": id })
            }
        };
        let said = self.heard(&self.tell(before, fields.clone()))?;
        let response = run();
        let mut fields = fields;
        match self.client {
            HookClient::Opencode => fields["output"] = response,
            HookClient::Cursor => fields["tool_output"] = response.to_string().into(),
            HookClient::Generic => fields.as_object_mut().unwrap().extend(response.as_object().cloned().unwrap_or_default()),
            HookClient::Copilot => fields["toolResult"] = json!({ "resultType": "success", "textResultForLlm": response }),
            HookClient::Reasonix => fields["toolResult"] = response,
            HookClient::Cline => {
                fields = json!({ "tool_result": { "name": call.tool, "input": call.arguments, "output": response } });
            }
            HookClient::Goose => {
                let said = said + &self.heard(&self.tell(after, fields)).expect("what is done is not denied");
                let content = json!([{ "type": "text", "text": response }]);
                let result = json!({ "status": "success", "value": { "content": content } });
                self.keep(&json!([{ "type": "toolResponse", "id": id, "toolResult": result }]));
                return Ok(said);
            }
            _ => fields["tool_response"] = response,
        }
        Ok(said + &self.heard(&self.tell(after, fields)).expect("what is done is not denied"))
    }

    /// Reads a file, or these lines of it.
    fn read(&self, path: &str, lines: Option<(usize, usize)>) -> Heard {
        let content = self.place.content(path);
        let all: Vec<&str> = content.split('\n').collect();
        let total = content.lines().count();
        let (first, last) = lines.unwrap_or((1, all.len()));
        let part = all[first - 1..last.min(all.len())].join("\n");
        let full = self.place.full(path);
        match self.client {
            HookClient::Claude => self.call(&Call { tool: "Read", arguments: json!({ "file_path": full }) }, || {
                json!({ "type": "text", "file": { "filePath": full, "content": part, "startLine": first, "totalLines": total } })
            }),
            HookClient::Codex | HookClient::Goose => {
                let said = match lines {
                    None => self.shell(&format!("cat {path}")),
                    Some(_) => self.shell(&format!("sed -n '{first},{last}p' {path}")),
                };
                if self.client == HookClient::Goose {
                    // The next hook finds the result in the database.
                    self.tell("UserPromptSubmit", json!({}));
                }
                said
            }
            HookClient::Qwen => {
                let above = format!("Showing lines {first}-{last} of {total} total lines.\n\n---\n\n");
                let shown = if lines.is_some() { above + &part } else { part };
                self.call(&Call { tool: "read_file", arguments: json!({ "file_path": full }) }, || {
                    json!({ "llmContent": shown, "returnDisplay": "" })
                })
            }
            HookClient::Copilot => {
                let arguments = json!({ "path": full, "view_range": [first, last] });
                self.call(&Call { tool: "view", arguments }, || part.into())
            }
            HookClient::Cline => {
                let rows = part.strip_suffix('\n').unwrap_or(&part).split('\n').zip(first..);
                let rows: Vec<String> = rows.map(|(line, number)| format!("{number:2} | {line}")).collect();
                let result = json!([{ "query": format!("{full}:{first}-{last}"), "result": rows.join("\n"), "success": true }]);
                self.call(&Call { tool: "read_files", arguments: json!({ "files": [{ "path": full }] }) }, || result)
            }
            HookClient::Reasonix => {
                let rows = part.strip_suffix('\n').unwrap_or(&part).split('\n').zip(first..);
                let rows: String = rows.map(|(line, number)| format!("{number:2}→{line}\n")).collect();
                self.call(&Call { tool: "read_file", arguments: json!({ "path": full }) }, || rows.into())
            }
            HookClient::Generic => {
                let shown = json!({ "shown": [{ "path": full, "start": first, "text": part }] });
                self.call(&Call { tool: "read", arguments: json!({ "path": full }) }, || shown)
            }
            HookClient::Gemini => {
                let arguments = json!({ "file_path": full, "start_line": first, "end_line": last });
                let above = format!("\nIMPORTANT: The file content has been truncated.\nStatus: Showing lines {first}-{last} of {total} total lines.\nAction: …\n\n--- FILE CONTENT (truncated) ---\n");
                let shown = if lines.is_some() { above + &part } else { part };
                self.call(&Call { tool: "read_file", arguments }, || json!({ "llmContent": shown, "returnDisplay": "" }))
            }
            HookClient::Cursor => {
                let arguments = json!({ "file_path": full, "offset": first });
                self.call(&Call { tool: "Read", arguments }, || json!({ "content": part }))
            }
            HookClient::Opencode => {
                let rows = part.strip_suffix('\n').unwrap_or(&part).split('\n').zip(first..);
                let rows: String = rows.map(|(line, number)| format!("{number}: {line}\n")).collect();
                let shown = format!("<path>{full}</path>\n<type>file</type>\n<content>\n{rows}\n(End of file - total {total} lines)\n</content>");
                self.call(&Call { tool: "read", arguments: json!({ "filePath": full }) }, || shown.into())
            }
        }
    }

    /// Replaces a line, or a part of one.
    fn edit(&self, path: &str, old: &str, new: &str) -> Heard {
        self.edit_by(path, old, new, || self.place.write(path, &self.place.content(path).replacen(old, new, 1)))
    }

    /// Like `edit`; `run` plays the tool.
    fn edit_by(&self, path: &str, old: &str, new: &str, run: impl FnOnce()) -> Heard {
        let full = self.place.full(path);
        let old_and_new = json!({ "file_path": full, "old_string": old, "new_string": new });
        let (tool, arguments, done) = match self.client {
            HookClient::Claude => ("Edit", old_and_new, json!({ "filePath": full })),
            HookClient::Codex => {
                let patch = format!("*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch");
                ("apply_patch", json!({ "command": patch }), json!("Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.\n"))
            }
            HookClient::Gemini => ("replace", old_and_new, json!({ "llmContent": "Successfully modified file" })),
            HookClient::Cursor => ("Write", old_and_new, json!({ "success": true })),
            HookClient::Opencode => {
                ("edit", json!({ "filePath": full, "oldString": old, "newString": new }), json!("Edit applied successfully."))
            }
            HookClient::Qwen => ("edit", old_and_new, json!({ "llmContent": "The file has been updated." })),
            HookClient::Copilot => {
                ("edit", json!({ "path": full, "old_str": old, "new_str": new }), json!("File updated with changes."))
            }
            HookClient::Goose => {
                ("edit", json!({ "path": full, "before": old, "after": new }), json!("Edited (1 lines -> 1 lines)"))
            }
            HookClient::Cline => (
                "editor",
                json!({ "path": full, "old_text": old, "new_text": new }),
                json!({ "result": "Edited", "success": true }),
            ),
            HookClient::Reasonix => ("edit_file", json!({ "path": full, "old_string": old, "new_string": new }), json!("edited")),
            HookClient::Generic => ("edit", json!({ "path": full, "old": old, "new": new }), json!({})),
        };
        self.call(&Call { tool, arguments }, || {
            run();
            done
        })
    }

    /// Writes a whole file.
    fn write(&self, path: &str, content: &str) -> Heard {
        let full = self.place.full(path);
        let (tool, arguments, done) = match self.client {
            HookClient::Claude => ("Write", json!({ "file_path": full, "content": content }), json!({ "type": "create" })),
            HookClient::Codex => {
                let rows: String = content.lines().map(|line| format!("+{line}\n")).collect();
                let patch = format!("*** Begin Patch\n*** Add File: {path}\n{rows}*** End Patch");
                ("apply_patch", json!({ "command": patch }), json!("Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.\n"))
            }
            HookClient::Gemini => {
                ("write_file", json!({ "file_path": full, "content": content }), json!({ "llmContent": "done" }))
            }
            HookClient::Cursor => ("Write", json!({ "file_path": full, "contents": content }), json!({ "success": true })),
            HookClient::Opencode => ("write", json!({ "filePath": full, "content": content }), json!("Wrote file successfully.")),
            HookClient::Qwen => ("write_file", json!({ "file_path": full, "content": content }), json!({ "llmContent": "done" })),
            HookClient::Copilot => ("create", json!({ "path": full, "file_text": content }), json!("Created file")),
            HookClient::Goose => ("write", json!({ "path": full, "content": content }), json!("Created (1 lines)")),
            HookClient::Cline => {
                ("editor", json!({ "path": full, "new_text": content }), json!({ "result": "created", "success": true }))
            }
            HookClient::Reasonix => ("write_file", json!({ "path": full, "content": content }), json!("wrote 6 bytes")),
            HookClient::Generic => ("write", json!({ "path": full, "content": content }), json!({})),
        };
        self.call(&Call { tool, arguments }, || {
            self.place.write(path, content);
            done
        })
    }

    /// Runs a shell command.
    fn shell(&self, command: &str) -> Heard {
        let run = || {
            let output = process::Command::new("sh").args(["-c", command]).current_dir(self.cwd()).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let arguments = json!({ "command": command });
        match self.client {
            HookClient::Claude => self.call(&Call { tool: "Bash", arguments }, || json!({ "stdout": run(), "stderr": "" })),
            HookClient::Codex => self.call(&Call { tool: "Bash", arguments }, || run().into()),
            HookClient::Gemini => self.call(&Call { tool: "run_shell_command", arguments }, || {
                let output = run();
                let output = if output.is_empty() { "(empty)" } else { output.trim_end() };
                json!({ "llmContent": format!("<untrusted_context>\nOutput: {output}\nProcess Group PGID: 7\n</untrusted_context>") })
            }),
            HookClient::Cursor => self.call(&Call { tool: "Shell", arguments }, || json!({ "output": run(), "exitCode": 0 })),
            HookClient::Opencode => self.call(&Call { tool: "bash", arguments }, || run().into()),
            HookClient::Qwen => self.call(&Call { tool: "run_shell_command", arguments }, || {
                let output = run();
                let output = if output.is_empty() { "(empty)" } else { output.trim_end() };
                let below = "Error: (none)\nExit Code: 0\nSignal: (none)\nProcess Group PGID: (none)";
                json!({ "llmContent": format!("Command: {command}\nDirectory: (root)\nOutput: {output}\n{below}") })
            }),
            HookClient::Copilot => self.call(&Call { tool: "bash", arguments }, || {
                format!("{}<shellId: 0 completed with exit code 0>", run()).into()
            }),
            HookClient::Goose => self.call(&Call { tool: "shell", arguments }, || run().trim_end().into()),
            HookClient::Cline => self.call(&Call { tool: "run_commands", arguments: json!({ "commands": [command] }) }, || {
                json!([{ "query": command, "result": run(), "success": true }])
            }),
            HookClient::Reasonix => self.call(&Call { tool: "bash", arguments }, || run().into()),
            HookClient::Generic => self.call(&Call { tool: "shell", arguments }, || json!({ "printed": run() })),
        }
    }

    /// Searches all files for lines with a text, and prints them as the client does.
    fn search(&self, text: &str, files: &[&str]) -> Heard {
        let mut hits = Vec::new();
        for path in files {
            let content = self.place.content(path);
            let lines = content.lines().zip(1..).filter(|(line, _)| line.contains(text));
            hits.extend(lines.map(|(line, number)| ((*path).to_owned(), number, line.to_owned())));
        }
        let rows = |row: fn(&(String, i32, String)) -> String| hits.iter().map(row).collect::<Vec<_>>().join("\n");
        let plain = rows(|(path, number, line)| format!("{path}:{number}:{line}"));
        let below = rows(|(path, number, line)| format!("File: {path}\nL{number}: {line}\n---"));
        let arguments = json!({ "pattern": text });
        let found = |llm: String| json!({ "llmContent": format!("Found matches for pattern \"{text}\":\n---\n{llm}") });
        match self.client {
            HookClient::Claude => {
                let arguments = json!({ "pattern": text, "output_mode": "content" });
                self.call(&Call { tool: "Grep", arguments }, || json!({ "mode": "content", "content": plain }))
            }
            HookClient::Codex | HookClient::Goose => self.shell(&format!("grep -n {text} {}", files.join(" "))),
            HookClient::Gemini | HookClient::Qwen => self.call(&Call { tool: "grep_search", arguments }, || found(below)),
            HookClient::Cursor => self.call(&Call { tool: "Grep", arguments }, || json!({ "content": plain })),
            HookClient::Opencode => {
                let rows = rows(|(path, number, line)| format!("{path}:\n  Line {number}: {line}\n"));
                self.call(&Call { tool: "grep", arguments }, || format!("Found matches\n{rows}").into())
            }
            HookClient::Copilot | HookClient::Reasonix => self.call(&Call { tool: "grep", arguments }, || plain.into()),
            HookClient::Cline => {
                let rows = rows(|(path, number, line)| format!("{path}:{number}:3\n> {number}: {line}\n"));
                let result = json!([{ "query": text, "result": format!("Found results\n\n{rows}"), "success": true }]);
                self.call(&Call { tool: "search_codebase", arguments: json!({ "queries": [text] }) }, || result)
            }
            HookClient::Generic => self.call(&Call { tool: "search", arguments: json!({}) }, || json!({ "printed": plain })),
        }
    }

    fn begins(&self, source: &str) -> String {
        let event = match self.client {
            HookClient::Cursor | HookClient::Copilot => "sessionStart",
            HookClient::Opencode => "session.created",
            HookClient::Cline => "agent_start",
            HookClient::Generic => "begin",
            _ => "SessionStart",
        };
        let source = match (self.client, source) {
            (HookClient::Generic, "resume") => "resumed",
            (HookClient::Generic, "clear") => "cleared",
            (_, source) => source,
        };
        self.heard(&self.tell(event, json!({ "source": source }))).unwrap()
    }

    /// Compacts the context. Returns the text that the model reads at once.
    fn compacts(&self) -> String {
        match self.client {
            HookClient::Claude => {
                self.tell("PreCompact", json!({ "trigger": "auto" }));
                let said = self.begins("compact");
                self.tell("PostCompact", json!({ "trigger": "auto" }));
                said
            }
            HookClient::Codex => {
                self.tell("PreCompact", json!({ "trigger": "auto" }));
                self.tell("PostCompact", json!({ "trigger": "auto" }));
                self.begins("compact")
            }
            HookClient::Gemini => {
                self.tell("PreCompress", json!({ "trigger": "auto" }));
                self.rewrites_the_record();
                String::new()
            }
            HookClient::Cursor => self.heard(&self.tell("preCompact", json!({ "trigger": "auto" }))).unwrap(),
            HookClient::Opencode => self.heard(&self.tell("session.compacted", json!({}))).unwrap(),
            HookClient::Qwen => {
                self.tell("PreCompact", json!({ "trigger": "auto" }));
                self.begins("compact")
            }
            HookClient::Copilot => self.heard(&self.tell("preCompact", json!({ "trigger": "auto" }))).unwrap(),
            HookClient::Goose => {
                // goose writes all messages again, and hides those that are not in the context any more.
                let database = rusqlite::Connection::open(self.database()).unwrap();
                database.execute("UPDATE messages SET id = id + 1000, metadata_json = '{\"agentVisible\":false}'", ()).unwrap();
                String::new()
            }
            HookClient::Cline => self.heard(&self.tell("PreCompact", json!({}))).unwrap(),
            HookClient::Reasonix => self.heard(&self.tell("PostCompact", json!({}))).unwrap(),
            HookClient::Generic => self.heard(&self.tell("reset", json!({}))).unwrap(),
        }
    }

    /// Rewrites the record, as Gemini does after a compression and at other times.
    fn rewrites_the_record(&self) {
        let mut transcript = fs::OpenOptions::new().append(true).open(self.transcript()).unwrap();
        transcript.write_all(b"{\"$set\":{\"messages\":[{\"id\":\"1\"}]}}\n").unwrap();
    }

    /// Its names for the tools that read and write.
    fn names(&self) -> (&'static str, &'static str) {
        match self.client {
            HookClient::Claude => ("Read", "Write"),
            HookClient::Codex => ("cat (or sed -n)", "apply_patch (Add File)"),
            HookClient::Gemini => ("read_file", "write_file"),
            HookClient::Cursor => ("Read", "Write"),
            HookClient::Opencode | HookClient::Generic => ("read", "write"),
            HookClient::Qwen | HookClient::Reasonix => ("read_file", "write_file"),
            HookClient::Copilot => ("view", "create"),
            HookClient::Goose => ("shell (cat)", "write"),
            HookClient::Cline => ("read_files", "editor"),
        }
    }
}

/// Plays a transcript for every client.
#[track_caller]
fn for_every_client(files: &[(&str, &str)], play: impl Fn(&Agent<'_>, &Place)) {
    for client in HookClient::ALL {
        let place = Place::with(files);
        // Printed if a test fails.
        eprintln!("{client:?}");
        play(&Agent::new(*client, &place), &place);
    }
}

#[track_caller]
fn passes(heard: Heard) {
    assert_eq!(heard, Ok(String::new()));
}

#[track_caller]
fn denied(heard: Heard, words: &[&str]) {
    let why = heard.expect_err("it must not pass");
    words.iter().for_each(|word| assert!(why.contains(word), "{word:?} in {why}"));
}

#[track_caller]
fn reads(heard: Heard, words: &[&str]) {
    let said = heard.expect("it passes");
    words.iter().for_each(|word| assert!(said.contains(word), "{word:?} in {said:?}"));
}

const ABC: &[(&str, &str)] = &[("a.txt", "alpha\nbeta\ngamma\n")];

#[test]
fn an_unread_edit_is_denied_in_the_words_of_the_client() {
    for_every_client(ABC, |agent, place| {
        let (read, _) = agent.names();
        denied(agent.edit("a.txt", "beta", "BETA"), &["a.txt was not read this session", &format!("{read} first")]);
        assert_eq!(place.content("a.txt"), "alpha\nbeta\ngamma\n");
    });
}

#[test]
fn what_was_read_may_be_edited_and_edited_again() {
    for_every_client(ABC, |agent, place| {
        passes(agent.read("a.txt", None));
        passes(agent.edit("a.txt", "beta", "BETA"));
        passes(agent.edit("a.txt", "gamma", "GAMMA"));
        passes(agent.write("a.txt", "all\nnew\n"));
        passes(agent.edit("a.txt", "new", "newer"));
        assert_eq!(place.content("a.txt"), "all\nnewer\n");
    });
}

#[test]
fn a_change_from_outside_is_shown_and_then_the_edit_passes() {
    for_every_client(ABC, |agent, place| {
        passes(agent.read("a.txt", None));
        place.write("a.txt", "alpha\nbeta\nOUTSIDE\n");
        let (read, _) = agent.names();
        denied(agent.edit("a.txt", "beta", "BETA"), &["modified since last read", "3|OUTSIDE", &format!("{read} again")]);
        passes(agent.edit("a.txt", "beta", "BETA"));
        assert_eq!(place.content("a.txt"), "alpha\nBETA\nOUTSIDE\n");
    });
}

#[test]
fn a_file_of_which_a_part_was_read_may_be_edited_and_not_overwritten() {
    for_every_client(ABC, |agent, _| {
        passes(agent.read("a.txt", Some((1, 2))));
        let (_, write) = agent.names();
        denied(agent.write("a.txt", "short\n"), &["line 3 of a.txt was not read", &format!("{write} replaces the whole file")]);
        // The denial has shown it.
        passes(agent.write("a.txt", "short\n"));
    });
    for_every_client(ABC, |agent, _| {
        passes(agent.read("a.txt", Some((1, 2))));
        passes(agent.edit("a.txt", "beta", "BETA"));
    });
}

#[test]
fn a_file_that_is_gone_is_said_to_be() {
    for_every_client(ABC, |agent, place| {
        passes(agent.read("a.txt", None));
        fs::remove_file(place.root().join("a.txt")).unwrap();
        denied(agent.edit("a.txt", "beta", "BETA"), &["a.txt was deleted"]);
    });
}

#[test]
fn a_new_file_needs_nothing_and_is_known_to_its_author() {
    for_every_client(ABC, |agent, _| {
        passes(agent.write("sub/new.txt", "one\ntwo\n"));
        passes(agent.edit("sub/new.txt", "two", "TWO"));
        passes(agent.write("sub/new.txt", "three\n"));
    });
}

/// Codex writes files with patches that add them, and must have read a file that it adds again.
fn writes_whole_files(agent: &Agent<'_>) -> bool {
    agent.client != HookClient::Codex
}

#[test]
fn who_writes_what_is_there_already_knows_all_of_it() {
    for_every_client(ABC, |agent, place| {
        let now = place.content("a.txt");
        passes(agent.read("a.txt", Some((1, 1))));
        if writes_whole_files(agent) {
            passes(agent.write("a.txt", &now));
            passes(agent.write("a.txt", "all of it\n"));
        }
    });
}

#[test]
fn a_foreign_write_is_not_the_change_of_a_session_that_writes_the_same() {
    for_every_client(ABC, |agent, place| {
        passes(agent.read("a.txt", None));
        place.write("a.txt", "theirs\n");
        if writes_whole_files(agent) {
            passes(agent.write("a.txt", "theirs\n"));
            let log = place.open().log(&EventFilter::default(), 10).unwrap();
            assert!(log.is_empty(), "{:?}: {log:?}", agent.client);
        }
    });
}

#[test]
fn what_a_command_shows_counts_as_read() {
    for_every_client(ABC, |agent, _| {
        passes(agent.shell("cat a.txt"));
        passes(agent.edit("a.txt", "beta", "BETA"));
        passes(agent.write("a.txt", "all\n"));
    });
    for_every_client(ABC, |agent, _| {
        passes(agent.shell("sed -n 2,3p a.txt"));
        passes(agent.edit("a.txt", "beta", "BETA"));
        denied(agent.write("a.txt", "all\n"), &["line 1 of a.txt was not read"]);
    });
}

#[test]
fn changes_by_a_command_are_reported_once() {
    for_every_client(ABC, |agent, place| {
        passes(agent.read("a.txt", None));
        agent.reads(agent.shell("sed -i s/gamma/SHELL/ a.txt"), &["a.txt (by your command)"]);
        passes(agent.shell("true"));
        // The change came from its own command, and the line is unchanged.
        passes(agent.edit("a.txt", "beta", "BETA"));
        let log = place.open().log(&EventFilter::default(), 9).unwrap();
        assert_eq!(log[1].tool, "command: sed -i s/gamma/SHELL/ a.txt");
    });
}

#[test]
fn lines_printed_by_any_command_count_as_read() {
    for command in
        ["nl -ba a.txt | sed -n 1,80p", "ls && cat a.txt 2>/dev/null || true", "(cd . && grep -n '' a.txt)", "tac a.txt"]
    {
        for_every_client(ABC, |agent, _| {
            passes(agent.shell(command));
            passes(agent.write("a.txt", "all\n"));
        });
    }
}

#[test]
fn what_a_command_wrote_itself_is_known() {
    for_every_client(ABC, |agent, place| {
        passes(agent.shell("cat > new.txt <<'EOF'\none line\n\nlast line\nEOF"));
        passes(agent.edit("new.txt", "one line", "1 line"));
        passes(agent.write("new.txt", "all\n"));
        passes(agent.shell("echo 'last line' >> a.txt"));
        passes(agent.edit("a.txt", "last line", "end"));
        denied(agent.write("a.txt", "all\n"), &["of a.txt were not read"]);
        let log = place.open().log(&EventFilter::default(), 9).unwrap();
        assert!(log.iter().any(|change| change.tool == "command: cat > new.txt <<'EOF'"), "{log:?}");
    });
}

#[test]
fn a_file_that_a_command_moved_is_still_known() {
    for_every_client(ABC, |agent, place| {
        passes(agent.read("a.txt", None));
        agent.reads(agent.shell("mkdir sub && mv a.txt sub/b.txt"), &["a.txt (gone by your command)"]);
        passes(agent.edit("sub/b.txt", "beta", "BETA"));
        assert_eq!(place.content("sub/b.txt"), "alpha\nBETA\ngamma\n");
    });
}

#[test]
fn what_changed_before_a_command_is_not_the_commands() {
    for_every_client(ABC, |agent, place| {
        passes(agent.read("a.txt", None));
        place.write("a.txt", "theirs\n");
        let said = agent.shell("true").unwrap();
        assert!(agent.is_deaf() || (said.contains("a.txt") && !said.contains("command")), "{said}");
        assert_eq!(said.matches("a.txt").count(), usize::from(!agent.is_deaf()), "{said}");
    });
}

#[test]
fn after_compaction_all_is_forgotten_and_the_state_is_given() {
    for_every_client(ABC, |agent, _| {
        passes(agent.read("a.txt", None));
        passes(agent.edit("a.txt", "beta", "BETA"));
        let at_once = agent.compacts();
        let refused = agent.edit("a.txt", "alpha", "ALPHA").unwrap_err();
        assert!(refused.contains("a.txt was not read this session"), "{refused}");
        passes(agent.read("a.txt", None));
        let said = format!("{at_once}{refused}");
        assert_eq!(said.matches("The context was made shorter").count(), 1, "{said}");
        assert!(said.contains("Repository state"), "{said}");
        passes(agent.edit("a.txt", "alpha", "ALPHA"));
    });
}

#[test]
fn before_a_compaction_nothing_is_forgotten() {
    for_every_client(ABC, |agent, _| {
        passes(agent.read("a.txt", None));
        if !matches!(agent.client, HookClient::Cursor | HookClient::Cline | HookClient::Generic) {
            agent.tell("PreCompact", json!({ "trigger": "auto" }));
            agent.tell("PreCompress", json!({ "trigger": "auto" }));
        }
        passes(agent.edit("a.txt", "beta", "BETA"));
    });
}

#[test]
fn a_conversation_that_goes_on_knows_what_it_knew() {
    for client in [
        HookClient::Claude,
        HookClient::Codex,
        HookClient::Gemini,
        HookClient::Qwen,
        HookClient::Copilot,
        HookClient::Reasonix,
        HookClient::Generic,
    ] {
        let place = Place::with(ABC);
        let agent = Agent::new(client, &place);
        passes(agent.read("a.txt", None));
        assert!(agent.begins("resume").contains("The conversation continues."));
        passes(agent.edit("a.txt", "beta", "BETA"));
        agent.begins("clear");
        denied(agent.edit("a.txt", "BETA", "beta"), &["was not read this session"]);
    }
}

#[test]
fn instructions_are_given_once_unless_the_client_gives_them() {
    let files = &[("AGENTS.md", "root rules\n"), ("sub/AGENTS.md", "nested rules\n"), ("sub/b.txt", "one\n"), ("a.txt", "two\n")];
    for_every_client(files, |agent, place| {
        let mut said = agent.read("a.txt", None).unwrap();
        said.push_str(&agent.read("sub/b.txt", None).unwrap());
        said.push_str(&agent.edit("sub/b.txt", "one", "ONE").unwrap());
        said.push_str(&agent.edit("a.txt", "two", "TWO").unwrap());
        let (root, nested) = (said.matches("root rules").count(), said.matches("nested rules").count());
        let expected = match agent.client {
            // Instructions beside the file as well; opencode reports them, which it does not here.
            HookClient::Claude | HookClient::Copilot => (0, 0),
            HookClient::Codex | HookClient::Cursor | HookClient::Opencode | HookClient::Qwen | HookClient::Cline => (0, 1),
            HookClient::Gemini | HookClient::Generic => (1, 1),
            HookClient::Goose | HookClient::Reasonix => (0, 0),
        };
        assert_eq!((root, nested), expected, "{:?}: {said}", agent.client);
        // A client read them at its start; changes since then are news.
        place.write("AGENTS.md", "other rules\n");
        agent.reads(agent.edit("a.txt", "TWO", "2"), &["other rules"]);
    });
}

#[test]
fn claude_gives_its_own_file_where_there_is_one() {
    let files = &[("AGENTS.md", "root rules\n"), ("CLAUDE.md", "own rules\n"), ("a.txt", "two\n")];
    let place = Place::with(files);
    reads(Agent::new(HookClient::Claude, &place).read("a.txt", None), &["root rules"]);
    place.write("CLAUDE.md", "See @AGENTS.md\n");
    passes(Agent::named(HookClient::Claude, &place, "s2").read("a.txt", None));
}

/// With a `CLAUDE.md` at the root, Claude Code loads no `AGENTS.md`. Only Copilot loads one in lower case.
#[test]
fn what_a_client_does_not_load_is_given() {
    let files = &[("CLAUDE.md", "own rules\n"), ("sub/AGENTS.md", "nested rules\n"), ("sub/b.txt", "one\n")];
    for_every_client(files, |agent, _| {
        let said = agent.read("sub/b.txt", None).unwrap();
        let is_loaded = matches!(agent.client, HookClient::Copilot) || agent.is_deaf();
        assert_eq!(said.matches("nested rules").count(), usize::from(!is_loaded), "{said}");
    });
    let files = &[("agents.md", "root rules\n"), ("sub/agents.md", "nested rules\n"), ("sub/b.txt", "one\n")];
    for_every_client(files, |agent, _| {
        let said = agent.read("sub/b.txt", None).unwrap();
        let is_loaded = matches!(agent.client, HookClient::Copilot) || agent.is_deaf();
        let counts = (said.matches("root rules").count(), said.matches("nested rules").count());
        assert_eq!(counts, if is_loaded { (0, 0) } else { (1, 1) }, "{said}");
    });
}

#[test]
fn what_a_search_shows_counts_as_read() {
    let files = &[("a.txt", "alpha\n  beta\ngamma\n"), ("sub/b.txt", "one\nbeta two\n")];
    for_every_client(files, |agent, _| {
        agent.search("beta", &["a.txt", "sub/b.txt"]).unwrap();
        agent.edit("a.txt", "  beta", "  BETA").unwrap();
        agent.edit("sub/b.txt", "beta two", "BETA 2").unwrap();
        denied(agent.write("a.txt", "all\n"), &["lines 1, 3 of a.txt were not read"]);
    });
}

#[test]
fn what_a_prompt_refers_to_counts_as_read() {
    for client in [HookClient::Gemini, HookClient::Qwen, HookClient::Generic] {
        let place = Place::with(&[("a.txt", "alpha\nbeta\ngamma\n"), ("b.txt", "one\n")]);
        let agent = Agent::new(client, &place);
        let prompt =
            "See @a.txt\n--- Content from referenced files ---\nContent from @a.txt:\nalpha\nbeta\ngamma\n--- End of content ---";
        let said = match client {
            HookClient::Gemini => agent.tell("BeforeAgent", json!({ "prompt": prompt })),
            HookClient::Qwen => agent.tell("UserPromptSubmit", json!({ "prompt": prompt })),
            _ => agent.tell("prompt", json!({ "shown": [{ "path": "a.txt", "text": place.content("a.txt") }] })),
        };
        passes(agent.heard(&said));
        passes(agent.write("a.txt", "all\n"));
        denied(agent.edit("b.txt", "one", "two"), &["b.txt was not read"]);
    }
}

#[test]
fn a_notebook_edit_needs_a_read_of_the_present_cells() {
    let notebook = "{\n \"cells\": [\n  {\"cell_type\": \"code\", \"source\": [\"x = 1\\n\", \"y\"]}\n ]\n}\n";
    for client in [HookClient::Claude, HookClient::Qwen] {
        let place = Place::with(&[("n.ipynb", notebook)]);
        let agent = Agent::new(client, &place);
        let full = place.full("n.ipynb");
        let (read, edit, response) = match client {
            HookClient::Claude => {
                ("Read", "NotebookEdit", json!({ "type": "notebook", "file": { "cells": [{ "source": "x = 1\ny" }] } }))
            }
            _ => ("read_file", "notebook_edit", json!({ "llmContent": "Jupyter Notebook (1 cells)\n\nx = 1\ny" })),
        };
        let read = Call { tool: read, arguments: json!({ "file_path": full }) };
        let edit = Call { tool: edit, arguments: json!({ "notebook_path": full, "cell_id": "0", "new_source": "x = 2" }) };
        let run = |to: &str| {
            place.write("n.ipynb", &notebook.replace("x = 1", to));
            json!({})
        };
        denied(agent.call(&edit, || unreachable!("it is denied")), &["n.ipynb was not read"]);
        passes(agent.call(&read, || response));
        passes(agent.call(&edit, || run("x = 2")));
        passes(agent.call(&edit, || run("x = 3")));
        place.write("n.ipynb", &notebook.replace("x = 1", "theirs"));
        denied(agent.call(&edit, || unreachable!("it is denied")), &["modified since last read"]);
    }
}

#[test]
fn what_goose_finds_late_is_what_the_files_were_then() {
    let place = Place::with(ABC);
    let agent = Agent::new(HookClient::Goose, &place);
    passes(agent.shell("cat a.txt"));
    // No hook has checked the result yet.
    place.write("a.txt", "alpha\nbeta by hand\ngamma\n");
    denied(agent.edit("a.txt", "beta", "BETA"), &["a.txt was modified since last read", "2|beta by hand"]);
    passes(agent.edit("a.txt", "beta by hand", "BETA by hand"));
    passes(agent.shell("cat a.txt"));
    place.write("a.txt", "alpha\nBETA by hand\nOUTSIDE\n");
    denied(agent.write("a.txt", "all\n"), &["a.txt was modified since last read", "3|OUTSIDE"]);
    passes(agent.write("a.txt", "all\n"));
}

#[test]
fn what_goose_and_reasonix_cannot_hear_comes_with_a_denial() {
    for client in [HookClient::Goose, HookClient::Reasonix] {
        let place = Place::with(&[("a.txt", "alpha\n"), ("b.txt", "one\n")]);
        let agent = Agent::new(client, &place);
        passes(agent.read("a.txt", None));
        passes(agent.shell("echo more >> a.txt"));
        denied(agent.edit("b.txt", "one", "two"), &["b.txt was not read", "a.txt (by your command)"]);
    }
}

#[test]
fn a_mistake_in_the_neutral_protocol_is_reported_and_passes() {
    let place = Place::with(ABC);
    for (input, words) in [
        (json!({ "event": "befor", "session": "s", "directory": "/" }), "no such event: \"befor\""),
        (json!({ "event": "before", "session": "s" }), "directory is missing"),
        (json!({ "event": "before", "session": "s", "directory": "/", "tool": { "rm": {} } }), "the tool is not understood"),
    ] {
        let answer = place.answer(HookClient::Generic, &input.to_string());
        let said: Value = serde_json::from_str(&answer.stdout).unwrap();
        assert_eq!(said["decision"], "allow");
        assert!(said["error"].as_str().unwrap().contains(words), "{said}");
    }
}

#[test]
fn the_neutral_protocol_has_every_kind_of_change() {
    let place = Place::with(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    let agent = Agent::new(HookClient::Generic, &place);
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** End Patch";
    let calls = [
        Call { tool: "edit", arguments: json!({ "path": "a.txt" }) },
        Call { tool: "edit", arguments: json!({ "path": "a.txt", "edits": [{ "old": "one", "new": "1" }] }) },
        Call { tool: "patch", arguments: json!({ "text": patch }) },
        Call { tool: "delete", arguments: json!({ "path": "a.txt" }) },
        Call { tool: "move", arguments: json!({ "from": "a.txt", "to": "c.txt" }) },
    ];
    for (number, call) in calls.iter().enumerate() {
        let stranger = Agent::named(HookClient::Generic, &place, &format!("stranger{number}"));
        denied(stranger.call(call, || unreachable!("it is denied")), &["a.txt was not read"]);
    }
    passes(agent.heard(&agent.tell("shown", json!({ "shown": [{ "path": "a.txt", "text": "one\n" }] }))));
    passes(agent.call(&calls[4], || {
        fs::rename(place.root().join("a.txt"), place.root().join("c.txt")).unwrap();
        json!({})
    }));
    passes(agent.edit("c.txt", "one", "1"));
    // An edit that was not made is not recorded.
    passes(agent.call(
        &Call { tool: "edit", arguments: json!({ "path": "c.txt", "old": "1", "new": "2" }) },
        || json!({ "failed": true }),
    ));
    let log = place.open().log(&EventFilter::default(), 9).unwrap();
    assert_eq!(log.iter().map(|change| change.tool.as_str()).collect::<Vec<_>>(), ["edit_file", "move_file"]);
}

#[test]
fn opencode_says_which_instructions_it_gave() {
    let place = Place::with(&[("sub/AGENTS.md", "nested rules\n"), ("sub/b.txt", "one\n")]);
    let agent = Agent::new(HookClient::Opencode, &place);
    let read = json!({ "tool": "read", "args": { "filePath": place.full("sub/b.txt") },
        "output": "<content>\n1: one\n\n(End of file - total 1 lines)\n</content>", "loaded": [place.full("sub/AGENTS.md")] });
    passes(agent.heard(&agent.tell("tool.execute.after", read)));
    passes(agent.edit("sub/b.txt", "one", "ONE"));
}

#[test]
fn too_much_for_one_answer_is_continued_with_the_next() {
    let rules: String = (1..=150).map(|number| format!("Rule {number}: {}\n", "words ".repeat(18))).collect();
    let place = Place::with(&[("sub/AGENTS.md", &rules), ("sub/a.txt", "one\n")]);
    let agent = Agent::new(HookClient::Codex, &place);
    place.open();
    fs::write(place.root().join("surehand.toml"), "").unwrap();
    let mut said = agent.shell("cat sub/a.txt").unwrap();
    let patch = agent.edit("sub/a.txt", "one", "two").unwrap();
    said.push_str(&patch);
    assert!(patch.len() <= 10_000, "{}", patch.len());
    for _ in 0..4 {
        let more = agent.shell("true").unwrap();
        assert!(more.len() <= 10_000, "{}", more.len());
        said.push_str(&more);
    }
    assert!(said.contains("Rule 1: ") && said.contains("--- end of instructions ---"), "{said}");
}

#[test]
fn a_tool_that_failed_has_done_nothing() {
    for_every_client(ABC, |agent, place| {
        passes(agent.read("a.txt", None));
        // It does not report the failure, and the file is unchanged.
        passes(agent.edit_by("a.txt", "beta", "BETA", || {}));
        assert_eq!(place.open().log(&EventFilter::default(), 9).unwrap().len(), 0);
        passes(agent.edit("a.txt", "beta", "BETA"));
        assert_eq!(place.open().log(&EventFilter::default(), 9).unwrap().len(), 1);
    });
}

#[test]
fn a_read_that_failed_has_shown_nothing() {
    let place = Place::with(ABC);
    let agent = Agent::new(HookClient::Gemini, &place);
    let failed = json!({ "tool_name": "read_file", "tool_input": { "file_path": place.full("a.txt") },
        "tool_response": { "llmContent": "alpha\nbeta\ngamma\n", "error": { "message": "no" } } });
    agent.tell("AfterTool", failed);
    denied(agent.edit("a.txt", "beta", "BETA"), &["was not read"]);
}

#[test]
fn lines_that_were_cut_do_not_count() {
    let long = "x".repeat(3000);
    let place = Place::with(&[("a.txt", &format!("one\n{long}\nthree\n"))]);
    let agent = Agent::new(HookClient::Gemini, &place);
    let shown = format!("one\n{}... [truncated]\nthree\n", &long[..2000]);
    let read = Call { tool: "read_file", arguments: json!({ "file_path": place.full("a.txt") }) };
    passes(agent.call(&read, || json!({ "llmContent": shown })));
    denied(agent.write("a.txt", "short\n"), &["line 2 of a.txt was not read"]);
}

#[test]
fn an_edit_that_matched_in_its_own_way_counts_as_the_clients() {
    for_every_client(ABC, |agent, place| {
        passes(agent.read("a.txt", None));
        // Its tool matched `Beta` for `beta`, which ours would not.
        passes(agent.edit_by("a.txt", "Beta", "BETA", || place.write("a.txt", "alpha\nBETA\ngamma\n")));
        passes(agent.edit("a.txt", "gamma", "GAMMA"));
        assert_eq!(place.open().log(&EventFilter::default(), 9).unwrap().len(), 2);
    });
}

#[test]
fn changes_by_a_formatter_are_reported() {
    for_every_client(ABC, |agent, place| {
        passes(agent.read("a.txt", None));
        let formatted = || place.write("a.txt", "alpha\nBETA;\ngamma\n");
        agent.reads(agent.edit_by("a.txt", "beta", "BETA", formatted), &["2|BETA;"]);
        passes(agent.edit("a.txt", "BETA;", "beta"));
    });
}

#[test]
fn files_outside_and_tools_of_servers_are_none_of_our_business() {
    for_every_client(ABC, |agent, place| {
        let outside = place.dir.path().join("outside.txt");
        fs::write(&outside, "one\n").unwrap();
        passes(agent.edit_by("../outside.txt", "one", "two", || {}));
        if agent.client == HookClient::Generic {
            // It has only the tools of the protocol.
            return;
        }
        for tool in ["mcp__surehand__edit_file", "mcp_surehand_edit_file", "surehand_edit_file", "MCP:edit_file"] {
            let call = Call { tool, arguments: json!({ "path": place.full("a.txt"), "old_string": "beta", "new_string": "B" }) };
            passes(agent.call(&call, || json!({})));
        }
    });
}

#[test]
fn a_binary_file_is_replaced_only_on_purpose_and_can_be_restored() {
    const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0";
    for_every_client(&[], |agent, place| {
        fs::write(place.root().join("a.png"), IMAGE).unwrap();
        denied(agent.write("a.png", "text now\n"), &["a PNG image, 11 bytes", "send the same call again"]);
        assert_eq!(fs::read(place.root().join("a.png")).unwrap(), IMAGE);
        passes(agent.write("a.png", "text now\n"));
        let log = place.open().log(&EventFilter::default(), 9).unwrap();
        assert!(log[0].files[0].before.is_some(), "it was not created: {log:?}");
        let mut person = Session::new(place.open());
        let undo = UndoRequest { which: UndoTarget::Last, by: WhoseChanges::Anyone, force: false };
        assert!(person.undo(&undo).refusal().is_none());
        assert_eq!(fs::read(place.root().join("a.png")).unwrap(), IMAGE, "{:?}", agent.client);
    });
}

#[test]
fn a_path_is_seen_from_the_directory_of_the_client() {
    for client in [HookClient::Codex, HookClient::Gemini, HookClient::Opencode] {
        let place = Place::with(&[("sub/a.txt", "alpha\nbeta\n"), ("a.txt", "other\n")]);
        let agent = Agent { directory: "sub", ..Agent::new(client, &place) };
        passes(agent.shell("cat a.txt"));
        let call = match client {
            HookClient::Codex => Call {
                tool: "apply_patch",
                arguments: json!({ "command": "*** Begin Patch\n*** Update File: a.txt\n@@\n-beta\n+BETA\n*** End Patch" }),
            },
            HookClient::Gemini => {
                Call { tool: "replace", arguments: json!({ "file_path": "a.txt", "old_string": "beta", "new_string": "BETA" }) }
            }
            _ => Call { tool: "edit", arguments: json!({ "filePath": "a.txt", "oldString": "beta", "newString": "BETA" }) },
        };
        passes(agent.call(&call, || {
            place.write("sub/a.txt", "alpha\nBETA\n");
            json!("Success.")
        }));
        let log = place.open().log(&EventFilter::default(), 9).unwrap();
        assert_eq!(log[0].files[0].path.as_str(), "sub/a.txt", "{client:?}");
    }
}

#[test]
fn a_subagent_has_a_context_of_its_own() {
    for client in [HookClient::Claude, HookClient::Codex, HookClient::Qwen, HookClient::Generic] {
        let place = Place::with(ABC);
        let agent = Agent::new(client, &place);
        passes(agent.read("a.txt", None));
        let subagent = Agent { agent: Some("sub1".to_owned()), ..Agent::new(client, &place) };
        denied(subagent.edit("a.txt", "beta", "BETA"), &["was not read this session"]);
        subagent.read("a.txt", None).unwrap();
        passes(subagent.edit("a.txt", "beta", "BETA"));
        denied(agent.edit("a.txt", "gamma", "GAMMA"), &["2|BETA"]);
    }
}

#[test]
fn two_clients_on_one_checkout_see_each_others_writes() {
    let place = Place::with(ABC);
    let (claude, codex) = (Agent::new(HookClient::Claude, &place), Agent::new(HookClient::Codex, &place));
    passes(claude.read("a.txt", None));
    passes(codex.read("a.txt", None));
    passes(codex.edit("a.txt", "beta", "BETA"));
    reads(claude.shell("true"), &["a.txt (by another session)"]);
    denied(claude.edit("a.txt", "gamma", "GAMMA"), &["a.txt was modified since last read", "2|BETA"]);
    passes(claude.edit("a.txt", "gamma", "GAMMA"));
    reads(codex.shell("true"), &["a.txt (by another session)"]);
    denied(codex.write("a.txt", "mine\n"), &["3|GAMMA"]);
    assert_eq!(place.content("a.txt"), "alpha\nBETA\nGAMMA\n");
}

#[test]
fn a_patch_names_all_files_that_must_be_read() {
    let place = Place::with(&[("a.txt", "one\n"), ("b.txt", "two\n"), ("c.txt", "three\n")]);
    let agent = Agent::new(HookClient::Codex, &place);
    passes(agent.shell("cat c.txt"));
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** Delete File: b.txt\n*** Update File: c.txt\n@@\n-three\n+3\n*** End Patch";
    let call = Call { tool: "apply_patch", arguments: json!({ "command": patch }) };
    let why = agent.call(&call, || unreachable!("it is denied")).unwrap_err();
    assert!(why.contains("a.txt was not read") && why.contains("b.txt was not read") && !why.contains("c.txt"), "{why}");
    passes(agent.shell("cat a.txt b.txt"));
    passes(agent.call(&call, || {
        place.write("a.txt", "1\n");
        fs::remove_file(place.root().join("b.txt")).unwrap();
        place.write("c.txt", "3\n");
        "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.".into()
    }));
    // It is one change, and can be undone as one.
    let log = place.open().log(&EventFilter::default(), 9).unwrap();
    assert_eq!((log.len(), log[0].files.len()), (1, 3));
    let reply = Session::new(place.open()).call("undo", &json!({ "change": log[0].change }));
    assert!(!reply.is_error, "{}", reply.text);
    assert_eq!(
        (place.content("a.txt"), place.content("b.txt"), place.content("c.txt")),
        ("one\n".into(), "two\n".into(), "three\n".into())
    );
}

#[test]
fn a_patch_that_only_codex_can_place_needs_a_read_all_the_same() {
    let place = Place::with(ABC);
    let agent = Agent::new(HookClient::Codex, &place);
    // Surehand could parse neither the header nor the lines.
    let patch = "*** Begin Patch\n*** Environment ID: 7\n*** Update File: a.txt\n@@ nowhere\n- beta \n+BETA\n*** End Patch";
    let call = Call { tool: "apply_patch", arguments: json!({ "command": patch }) };
    let run = || {
        place.write("a.txt", "alpha\nBETA\ngamma\n");
        "Exit code: 0\nOutput:\nSuccess.".into()
    };
    denied(agent.call(&call, run), &["a.txt was not read"]);
    passes(agent.shell("cat a.txt"));
    passes(agent.call(&call, run));
    passes(agent.edit("a.txt", "gamma", "GAMMA"));
}

#[test]
fn a_patch_that_moves_over_a_file_overwrites_it() {
    let place = Place::with(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    let agent = Agent::new(HookClient::Codex, &place);
    passes(agent.shell("cat a.txt"));
    let patch = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\n@@\n-one\n+1\n*** End Patch";
    let call = Call { tool: "apply_patch", arguments: json!({ "command": patch }) };
    denied(agent.call(&call, || unreachable!("it is denied")), &["b.txt was not read"]);
}

#[test]
fn a_patch_in_a_command_is_judged() {
    let place = Place::with(ABC);
    let agent = Agent::new(HookClient::Codex, &place);
    let command = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.txt\n@@\n-beta\n+BETA\n*** End Patch\nEOF\n";
    let call = Call { tool: "Bash", arguments: json!({ "command": command }) };
    denied(agent.call(&call, || unreachable!("it is denied")), &["a.txt was not read"]);
}

#[test]
fn gemini_goes_on_with_all_that_it_knew() {
    let place = Place::with(ABC);
    let agent = Agent::new(HookClient::Gemini, &place);
    agent.tell("BeforeAgent", json!({}));
    passes(agent.read("a.txt", None));
    agent.begins("resume");
    // It records the messages that remain.
    agent.rewrites_the_record();
    agent.tell("BeforeAgent", json!({}));
    passes(agent.edit("a.txt", "beta", "BETA"));
    agent.rewrites_the_record();
    denied(agent.edit("a.txt", "gamma", "GAMMA"), &["was not read this session"]);
}

#[test]
fn what_claude_puts_into_the_context_itself_is_seen() {
    let place = Place::with(&[("a.txt", "alpha\nbeta\n"), ("b.txt", "one\n")]);
    let agent = Agent::new(HookClient::Claude, &place);
    let attachment = |path: &str| {
        let file = json!({ "filePath": place.full(path), "content": place.content(path), "startLine": 1 });
        json!({ "type": "attachment", "attachment": { "type": "file", "content": { "type": "text", "file": file } } })
    };
    let boundary = json!({ "type": "system", "subtype": "compact_boundary" });
    let record = format!("{}\n{boundary}\n{}\n", attachment("b.txt"), attachment("a.txt"));
    fs::write(agent.transcript(), record).unwrap();
    passes(agent.edit("a.txt", "beta", "BETA"));
    denied(agent.edit("b.txt", "one", "two"), &["b.txt was not read"]);
}

#[test]
fn gemini_reads_many_files_at_once() {
    let place = Place::with(&[("a.txt", "one\n"), ("b.txt", "two\nthree\n")]);
    let agent = Agent::new(HookClient::Gemini, &place);
    let content = json!([
        format!("--- {} ---\n\none\n\n\n", place.full("a.txt")),
        format!("--- {} ---\n\ntwo\nthree\n\n\n", place.full("b.txt"))
    ]);
    let call = Call { tool: "read_many_files", arguments: json!({ "include": ["*.txt"] }) };
    passes(agent.call(&call, || json!({ "llmContent": content })));
    passes(agent.write("a.txt", "1\n"));
    passes(agent.write("b.txt", "2\n"));
}

#[test]
fn claude_says_of_a_command_that_failed_what_it_did() {
    let place = Place::with(ABC);
    let agent = Agent::new(HookClient::Claude, &place);
    passes(agent.read("a.txt", None));
    let mut failed = json!({ "tool_name": "Bash", "tool_input": { "command": "sed -i s/gamma/SHELL/ a.txt; exit 3" } });
    passes(agent.heard(&agent.tell("PreToolUse", failed.clone())));
    place.write("a.txt", "alpha\nbeta\nSHELL\n");
    failed["error"] = "Exit code 3".into();
    reads(agent.heard(&agent.tell("PostToolUseFailure", failed)), &["a.txt (by your command)"]);
}

#[test]
fn cursor_reports_twice_and_it_counts_once() {
    let place = Place::with(ABC);
    let agent = Agent::new(HookClient::Cursor, &place);
    passes(agent.read("a.txt", None));
    let file = place.full("a.txt");
    let edit = || {
        place.write("a.txt", "alpha\nbetabeta\ngamma\n");
        agent.tell("afterFileEdit", json!({ "file_path": file, "edits": [{ "old_string": "beta", "new_string": "betabeta" }] }));
    };
    passes(agent.edit_by("a.txt", "beta", "betabeta", edit));
    assert_eq!(place.open().log(&EventFilter::default(), 9).unwrap().len(), 1);
    // If its model reads nothing before a command, it does so afterwards.
    place.write("a.txt", "theirs\n");
    let command = json!({ "command": "true", "cwd": place.root(), "output": "" });
    assert_eq!(agent.heard(&agent.tell("beforeShellExecution", command.clone())), Ok(String::new()));
    assert_eq!(agent.heard(&agent.tell("afterShellExecution", command)), Ok(String::new()));
    reads(agent.shell("true"), &["a.txt"]);
}

#[test]
fn claudes_hooks_stand_down_where_cursor_runs_them() {
    let place = Place::with(ABC);
    let agent = Agent::new(HookClient::Claude, &place);
    let edit = json!({ "cursor_version": "3", "tool_name": "Edit",
        "tool_input": { "file_path": place.full("a.txt"), "old_string": "beta", "new_string": "B" } });
    assert_eq!(agent.tell("PreToolUse", edit), Value::Null);
}

#[test]
fn a_large_state_is_left_alone_and_takes_in_what_was_done_later() {
    let place = Place::with(ABC);
    let entry = |number: usize| {
        let time = "2026-01-01T00:00:00Z";
        json!({ "path": format!("gone/{number}"), "hash": "0".repeat(64), "size": 1, "mod_time": time, "type": "text", "status": "deleted" })
    };
    let entries: Vec<Value> = (0..2000).map(entry).collect();
    let written = json!({ "work_dir": place.root(), "files": entries, "open_tasks": [], "last_updated": "2026-01-01T00:00:00Z" });
    drop(place.open());
    let state = place.root().join(".surehand/repostate.json");
    fs::create_dir_all(place.root().join(".surehand")).unwrap();
    fs::write(&state, written.to_string()).unwrap();
    let agent = Agent {
        client: HookClient::Codex,
        place: &place,
        session: "s".to_owned(),
        agent: None,
        directory: "",
        calls: Cell::new(0),
    };
    passes(agent.read("a.txt", None));
    passes(agent.edit("a.txt", "beta", "BETA"));
    assert_eq!(fs::read_to_string(&state).unwrap(), written.to_string());
    let state = place.open().snapshot();
    let known = state.files.iter().find(|file| file.path.as_str() == "a.txt").expect("it was touched");
    assert_eq!((known.status, known.changed_outside), (FileStatus::Modified, false));
}

#[test]
fn broken_input_passes() {
    let place = Place::with(ABC);
    for client in HookClient::ALL {
        for input in ["", "nonsense", "[]", "null", "{}", "{\"hook_event_name\": 7}", "{\"hook_event_name\":\"PreToolUse\"}"] {
            let answer = place.answer(*client, input);
            let expected = if *client == HookClient::Cursor { "{}\n" } else { "" };
            let is_allowed = *client == HookClient::Generic && answer.stdout.starts_with("{\"decision\":\"allow\"");
            assert!(is_allowed || answer.stdout == expected, "{client:?} {input}: {}", answer.stdout);
            assert_eq!(answer.exit_code, 0);
        }
        let whole =
            json!({ "hook_event_name": "SessionStart", "session_id": "s", "cwd": "/", "conversation_id": "s" }).to_string();
        let answer = nowhere(*client, &whole);
        assert!(!answer.stdout.contains("deny"), "{client:?}");
    }
}

/// Valid inputs of all clients, which the tests damage.
fn samples(place: &Place) -> Vec<(HookClient, Value)> {
    let file = place.full("a.txt");
    let root = place.root();
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-beta\n+BETA\n*** Add File: a.txt\n+x\n*** End Patch";
    let edit = json!({ "file_path": file, "old_string": "beta", "new_string": "BETA", "replace_all": false });
    let both = |client, before: &str, after: &str, rest: Value| {
        let input = |event: &str| {
            let mut input = json!({ "hook_event_name": event, "session_id": "s", "cwd": root, "transcript_path": file });
            input.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            (client, input)
        };
        [input(before), input(after)]
    };
    let mut samples = Vec::new();
    let claude = |tool: &str, input: &Value, response: Value| {
        both(
            HookClient::Claude,
            "PreToolUse",
            "PostToolUse",
            json!({ "tool_name": tool, "tool_input": input, "tool_response": response }),
        )
    };
    samples.extend(claude("Edit", &edit, json!({})));
    samples.extend(claude("Write", &json!({ "file_path": file, "content": "x" }), json!({})));
    samples.extend(claude("MultiEdit", &json!({ "file_path": file, "edits": [edit] }), json!({})));
    samples.extend(claude("Read", &json!({ "file_path": file }), json!({ "file": { "content": "alpha\n", "startLine": 1 } })));
    samples.extend(claude("Bash", &json!({ "command": "cat a.txt" }), json!({ "stdout": "alpha\n" })));
    let codex = |tool: &str, command: &str, response: Value| {
        let rest = json!({ "tool_name": tool, "tool_input": { "command": command }, "tool_response": response });
        both(HookClient::Codex, "PreToolUse", "PostToolUse", rest)
    };
    samples.extend(codex("apply_patch", patch, json!("Exit code: 0\nOutput:\nSuccess.")));
    samples.extend(codex("Bash", "sed -n 1,2p a.txt", json!("alpha\nbeta\n")));
    let gemini = |tool: &str, input: &Value, response: Value| {
        both(
            HookClient::Gemini,
            "BeforeTool",
            "AfterTool",
            json!({ "tool_name": tool, "tool_input": input, "tool_response": response }),
        )
    };
    samples.extend(gemini("replace", &edit, json!({ "llmContent": "ok" })));
    samples.extend(gemini("read_file", &json!({ "file_path": file, "start_line": 1 }), json!({ "llmContent": "alpha\nbeta" })));
    samples.extend(gemini("read_many_files", &json!({}), json!({ "llmContent": [{ "text": "--- a ---\n\nalpha" }] })));
    samples.extend(gemini("run_shell_command", &json!({ "command": "cat a.txt" }), json!({ "llmContent": "Output: alpha" })));
    let cursor = |tool: &str, input: &Value, output: Value| {
        both(
            HookClient::Cursor,
            "preToolUse",
            "postToolUse",
            json!({ "tool_name": tool, "tool_input": input, "tool_output": output.to_string() }),
        )
    };
    samples.extend(cursor("Write", &edit, json!({})));
    samples.extend(cursor("Read", &json!({ "file_path": file, "offset": 1 }), json!({ "content": "1|alpha" })));
    samples.extend(both(
        HookClient::Cursor,
        "afterFileEdit",
        "beforeShellExecution",
        json!({ "file_path": file, "edits": [edit], "command": "ls" }),
    ));
    let opencode = |tool: &str, args: Value| {
        let rest = json!({ "session": "s", "directory": root, "tool": tool, "args": args, "output": "<content>\n1: alpha\n", "loaded": [file] });
        both(HookClient::Opencode, "tool.execute.before", "tool.execute.after", rest)
    };
    samples.extend(opencode("edit", json!({ "filePath": file, "oldString": "beta", "newString": "BETA" })));
    samples.extend(opencode("read", json!({ "filePath": file })));
    samples.extend(opencode("apply_patch", json!({ "patchText": patch })));
    samples.extend(new_samples(&file, &root));
    samples
}

/// Inputs of the clients that have formats of their own.
fn new_samples(file: &str, root: &Path) -> Vec<(HookClient, Value)> {
    let found = "File: a.txt\nL2: beta\na.txt:1:alpha";
    let output = json!([{ "query": file, "result": "1 | alpha\n2 | beta", "success": true }]);
    let cline = |name: &str, tool: Value| json!({ "hookName": name, "taskId": "s", "workspaceRoots": [root], name: tool });
    let copilot = |event: &str, tool: &str, arguments: Value, result: &str| {
        json!({ "hook_event_name": event, "sessionId": "s", "cwd": root, "toolName": tool, "toolArgs": arguments,
            "toolResult": { "resultType": "success", "textResultForLlm": result } })
    };
    let reasonix = |event: &str, tool: &str, arguments: Value, result: &str| json!({ "event": event, "sessionId": "s", "cwd": root, "toolName": tool, "toolArgs": arguments, "toolResult": result });
    let goose = json!({ "event": "PreToolUse", "session_id": "s", "working_dir": root, "sessions_database": file,
        "tool_name": "edit", "tool_input": { "path": file, "before": "beta", "after": "B" } });
    let generic = |event: &str, tool: Value| {
        json!({ "event": event, "session": "s", "directory": root, "tool": tool,
            "shown": [{ "path": file, "start": 1, "text": "alpha\nbeta" }], "printed": found })
    };
    let edits = json!([{ "old": "beta", "new": "B" }]);
    vec![
        (
            HookClient::Cline,
            cline("tool_call", json!({ "name": "editor", "input": { "path": file, "old_text": "beta", "new_text": "B" } })),
        ),
        (HookClient::Cline, cline("tool_result", json!({ "name": "read_files", "input": {}, "output": output }))),
        (HookClient::Copilot, copilot("preToolUse", "edit", json!({ "path": file, "old_str": "beta", "new_str": "B" }), "")),
        (HookClient::Copilot, copilot("postToolUse", "view", json!({ "path": file, "view_range": [1, 2] }), "alpha\nbeta")),
        (HookClient::Copilot, copilot("postToolUse", "grep", json!({ "paths": [file] }), found)),
        (
            HookClient::Reasonix,
            reasonix(
                "PreToolUse",
                "multi_edit",
                json!({ "path": file, "edits": [{ "old_string": "a", "new_string": "b" }] }),
                "",
            ),
        ),
        (HookClient::Reasonix, reasonix("PostToolUse", "read_file", json!({ "path": file }), "1→alpha\n2→beta\n")),
        (HookClient::Goose, goose),
        (HookClient::Generic, generic("before", json!({ "edit": { "path": file, "edits": edits } }))),
        (HookClient::Generic, generic("after", json!({ "search": { "paths": [file] } }))),
        (HookClient::Generic, generic("shown", Value::Null)),
        (
            HookClient::Qwen,
            json!({ "hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": root,
                "prompt": "See\n--- Content from referenced files ---\nContent from a.txt:\nalpha\n\n--- End of content ---" }),
        ),
    ]
}

/// All places in a value, as pointers.
fn places(value: &Value, here: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            let here = format!("{here}/{}", name.replace('~', "~0").replace('/', "~1"));
            found.push(here.clone());
            places(value, &here, found);
        }),
        Value::Array(values) => values.iter().enumerate().for_each(|(index, value)| {
            let here = format!("{here}/{index}");
            found.push(here.clone());
            places(value, &here, found);
        }),
        _ => {}
    }
}

fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
        Just(json!({})),
        Just(json!([[], {}, "x"])),
        Just(json!("*** Begin Patch\n*** Update File:\n*** Add File: \u{0}\n*** Move to: /\n")),
        Just(json!("x".repeat(300_000))),
        Just(json!("\n".repeat(100_000))),
        Just(json!("../../../../etc/passwd")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Whatever a client sends, no call is denied without a reason, and no hook fails.
    #[test]
    fn mutilated_input_never_breaks_anything(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), with in anything()) {
        let place = Place::with(ABC);
        let samples = samples(&place);
        let (client, mut input) = which.get(&samples).clone();
        let mut found = Vec::new();
        places(&input, "", &mut found);
        let at: &String = at.get(&found);
        *input.pointer_mut(at).unwrap() = with;
        let answer = place.answer(client, &input.to_string());
        // A hook fails only if its directory is not one.
        let is_stopped = |why: &String| why.starts_with("cannot guard this session");
        prop_assert!(client == HookClient::Generic || answer.failed.as_ref().is_none_or(is_stopped), "{:?}", answer.failed);
        prop_assert_eq!(answer.exit_code == 2, !answer.stderr.trim().is_empty());
        if !answer.stdout.is_empty() {
            let said: Value = serde_json::from_str(&answer.stdout).unwrap();
            let reason = [&said["hookSpecificOutput"]["permissionDecisionReason"], &said["reason"], &said["agent_message"], &said["deny"], &said["permissionDecisionReason"]];
            let is_denied = ["deny", "block"].iter().any(|word| answer.stdout.contains(&format!("\"{word}\"")));
            prop_assert!(!is_denied || reason.iter().any(|reason| reason.as_str().is_some_and(|reason| !reason.is_empty())));
        }
    }
}

const TEN: &[(&str, &str)] = &[("a.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n")];

#[test]
fn an_edit_of_unchanged_lines_passes_and_reports_other_changes() {
    for_every_client(TEN, |agent, place| {
        passes(agent.read("a.txt", None));
        place.write("a.txt", &format!("zero\n{}", place.content("a.txt")));
        let said = agent.edit("a.txt", "five", "FIVE").expect("its lines are the same") + &agent.shell("true").unwrap();
        if !agent.is_deaf() {
            assert!(said.contains("a.txt was modified since last read; the lines of this edit were not"), "{said}");
            assert!(said.contains("1|zero") && !said.contains("another session"), "{said}");
        }
        passes(agent.edit("a.txt", "zero", "ZERO"));
        assert!(place.content("a.txt").starts_with("ZERO\none\n"));
        // The recorded version was on the disk, so the change can be undone.
        let undo = UndoRequest { which: UndoTarget::All, by: WhoseChanges::Session(last_session(place)), force: false };
        assert!(Session::new(place.open()).undo(&undo).refusal().is_none());
        assert_eq!(place.content("a.txt"), format!("zero\n{}", TEN[0].1));
    });
}

fn last_session(place: &Place) -> SessionId {
    place.open().log(&EventFilter::default(), 1).unwrap()[0].session.clone()
}

#[test]
fn who_changed_the_rest_is_said_where_it_is_known() {
    for_every_client(TEN, |agent, place| {
        passes(agent.read("a.txt", None));
        let other = Agent::named(agent.client, place, "s2");
        passes(other.read("a.txt", None));
        passes(other.edit("a.txt", "one", "ONE"));
        let said = agent.edit("a.txt", "seven", "SEVEN").unwrap() + &agent.shell("true").unwrap();
        if !agent.is_deaf() {
            assert!(said.contains("modified since last read by another session, "), "{said}");
            assert!(said.contains(" ago; the lines of this edit were not"), "{said}");
        }
    });
}

#[test]
fn calls_of_one_answer_are_not_foreign_changes() {
    let apply = |place: &Place, old: &str, new: &str| place.write("a.txt", &place.content("a.txt").replacen(old, new, 1));
    for_every_client(TEN, |agent, place| {
        passes(agent.read("a.txt", None));
        // Both edits are judged, then made, then reported, in all orders. Their lines are neighbours.
        passes(agent.edit_by("a.txt", "two", "TWO", || {
            passes(agent.edit_by("a.txt", "three", "THREE", || {
                apply(place, "two", "TWO");
                apply(place, "three", "THREE");
            }));
        }));
        passes(agent.edit_by("a.txt", "five", "FIVE", || {
            apply(place, "five", "FIVE");
            passes(agent.edit_by("a.txt", "six", "SIX", || apply(place, "six", "SIX")));
        }));
        passes(agent.edit_by("a.txt", "eight", "EIGHT", || {
            passes(agent.edit_by("a.txt", "nine", "NINE", || apply(place, "nine", "NINE")));
            apply(place, "eight", "EIGHT");
        }));
        passes(agent.shell("true"));
        passes(agent.edit("a.txt", "THREE", "3"));
        passes(agent.write("a.txt", "all of it\n"));
    });
}

#[test]
fn a_file_that_another_call_is_writing_is_not_believed() {
    // The second call may also change nothing.
    for second in ["TWO", "two"] {
        for_every_client(TEN, |agent, place| {
            passes(agent.read("a.txt", None));
            passes(agent.edit_by("a.txt", "two", "TWO", || {
                // The first call is made and reported while the second has emptied the file to rewrite it.
                passes(agent.edit_by("a.txt", "five", "FIVE", || place.write("a.txt", "")));
                place.write("a.txt", &TEN[0].1.replace("five", "FIVE").replace("two", second));
            }));
            passes(agent.shell("true"));
            passes(agent.edit("a.txt", "FIVE", "5"));
            passes(agent.edit("a.txt", second, "2"));
        });
    }
}

#[test]
fn calls_of_one_answer_on_several_files_are_not_foreign_changes() {
    for_every_client(&[("a.txt", "alpha\nbeta\n"), ("b.txt", "alpha\nbeta\n"), ("c.txt", "alpha\nbeta\n")], |agent, place| {
        let change = |path: &str| place.write(path, "alpha\nBETA\n");
        ["a.txt", "b.txt", "c.txt"].iter().for_each(|path| passes(agent.read(path, None)));
        // All edits are judged, then all are made, then all are reported.
        passes(agent.edit_by("a.txt", "beta", "BETA", || {
            passes(agent.edit_by("b.txt", "beta", "BETA", || {
                passes(agent.edit_by("c.txt", "beta", "BETA", || ["a.txt", "b.txt", "c.txt"].into_iter().for_each(change)));
            }));
        }));
        passes(agent.shell("true"));
    });
}

#[test]
fn an_edit_of_an_unread_file_is_shown_its_lines_and_then_passes() {
    for_every_client(TEN, |agent, place| {
        denied(
            agent.edit("a.txt", "five", "FIVE"),
            &["was not read this session", "4|four\n5|five\n6|six\n", "send the call again"],
        );
        passes(agent.edit("a.txt", "five", "FIVE"));
        place.write("b.txt", "alpha\nbeta\n");
        denied(agent.write("b.txt", "mine\n"), &["was not read this session", "1|alpha\n2|beta\n"]);
        passes(agent.write("b.txt", "mine\n"));
    });
}

/// The main project, and in it a repository of its own with the same file.
fn nested() -> Place {
    let place = Place::with(&[("a.txt", "alpha\nbeta\ngamma\n"), ("vendor/lib/a.txt", "alpha\nbeta\ngamma\n")]);
    surehand_testkit::make_repository(&place.root().join("vendor/lib"));
    place
}

/// The log of the workspace below the root.
fn log_of(place: &Place, directory: &str) -> Vec<String> {
    let workspace = open(&place.root().join(directory)).unwrap();
    let log = workspace.log(&EventFilter::default(), 9).unwrap();
    log.iter().flat_map(|change| change.files.iter().map(|file| file.path.to_string())).collect()
}

#[test]
fn after_a_change_of_directory_every_file_is_guarded_in_its_own_workspace() {
    for client in HookClient::ALL {
        eprintln!("{client:?}");
        let place = nested();
        let agent = Agent::new(*client, &place);
        passes(agent.shell("true"));
        // From here on it works in the nested repository.
        let agent = Agent { directory: "vendor/lib", calls: Cell::new(9), ..agent };
        let edit = |path: &str, old: &str, new: &str| {
            let full = place.full(path);
            // Codex names files relative to its working directory.
            let named = if agent.client == HookClient::Codex { full.as_str() } else { path };
            agent.edit_by(named, old, new, || place.write(path, &place.content(path).replacen(old, new, 1)))
        };
        for (path, directory) in [("a.txt", ""), ("vendor/lib/a.txt", "vendor/lib")] {
            denied(edit(path, "beta", "BETA"), &[&format!("Error: {path} was not read this session"), "2|beta"]);
            passes(edit(path, "beta", "BETA"));
            assert_eq!(log_of(&place, directory), ["a.txt"], "{path}");
            place.write(path, "alpha\nBeta\ngamma\n");
            denied(edit(path, "BETA", "b"), &["a.txt was modified since last read", "2|Beta"]);
        }
        // A loss of context applies to both workspaces.
        let said = agent.compacts() + &agent.shell("true").unwrap();
        assert!(agent.is_deaf() || said.matches("Repository state").count() == 2, "{said}");
        for path in ["a.txt", "vendor/lib/a.txt"] {
            denied(edit(path, "gamma", "G"), &["was not read this session"]);
        }
    }
}

#[test]
fn what_a_command_shows_of_a_nested_repository_counts_there() {
    for client in HookClient::ALL {
        for command in ["cd vendor/lib && cat a.txt", "cat vendor/lib/a.txt", "grep -rn a vendor"] {
            eprintln!("{client:?} {command}");
            let place = nested();
            let agent = Agent::new(*client, &place);
            passes(agent.shell(command));
            passes(agent.edit("vendor/lib/a.txt", "beta", "BETA"));
            passes(agent.shell("true"));
            assert_eq!(log_of(&place, "vendor/lib"), ["a.txt"]);
            assert!(log_of(&place, "").is_empty());
        }
    }
}

#[test]
fn a_file_of_another_worktree_is_guarded_there_and_that_is_said_once() {
    for_every_client(ABC, |agent, place| {
        let other = place.dir.path().canonicalize().unwrap().join("other");
        let git = place.root().join(".git/worktrees/other");
        fs::create_dir_all(&git).unwrap();
        fs::create_dir_all(&other).unwrap();
        fs::write(other.join(".git"), format!("gitdir: {}\n", git.display())).unwrap();
        for (name, content) in [("HEAD", "ref: refs/heads/b\n"), ("commondir", "../..\n")] {
            fs::write(git.join(name), content).unwrap();
        }
        fs::write(git.join("gitdir"), format!("{}\n", other.join(".git").display())).unwrap();
        fs::write(other.join("a.txt"), "alpha\nbeta\ngamma\n").unwrap();
        let path = "../other/a.txt";
        denied(agent.edit(path, "beta", "BETA"), &["a.txt was not read this session"]);
        let said = agent.edit(path, "beta", "BETA").unwrap() + &agent.shell("true").unwrap();
        assert!(agent.is_deaf() || said.contains("in another worktree of this repository"), "{said}");
        let said = agent.edit(path, "alpha", "ALPHA").unwrap() + &agent.shell("true").unwrap();
        assert!(!said.contains("another worktree"), "{said}");
        assert_eq!(log_of(place, "../other"), ["a.txt", "a.txt"]);
        assert!(log_of(place, "").is_empty());
    });
}

#[test]
fn a_session_that_cannot_be_guarded_is_warned_once() {
    for client in
        &[HookClient::Claude, HookClient::Codex, HookClient::Gemini, HookClient::Cursor, HookClient::Opencode, HookClient::Qwen]
    {
        let place = Place::with(ABC);
        fs::create_dir_all(place.root().join(".git/surehand")).unwrap();
        let state = StateHome { user: Some(place.dir.path().join("state")), ..StateHome::default() };
        let open = |_: &Path| Err("settings.toml: line 3: no such key".to_owned());
        let around = HookEnvironment { state, project: None, open: &open };
        let event = |event: &str, session: &str| {
            let input = json!({ "hook_event_name": event, "session_id": session, "conversation_id": session, "session": session,
                "cwd": place.root(), "directory": place.root(), "tool": "bash", "tool_name": "Bash",
                "tool_input": { "command": "true" }, "args": { "command": "true" }, "tool_response": "" });
            let answer = answer(*client, None, &input.to_string(), &around);
            assert!(answer.failed.is_some());
            answer.stdout
        };
        let first = match client {
            HookClient::Cursor => "sessionStart",
            HookClient::Opencode => "tool.execute.after",
            _ => "SessionStart",
        };
        let said = event(first, "s1");
        let said: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{client:?} {said}"));
        let both: Vec<&Value> = said.as_object().unwrap().values().collect();
        let times = both.iter().map(|value| value.to_string().matches("no such key").count()).sum::<usize>();
        assert_eq!(times, 2, "the person and the model: {said}");
        assert!(!event(first, "s1").contains("no such key"), "{client:?}");
        assert!(event(first, "s2").contains("no such key"), "another session is warned as well");
    }
}

#[test]
fn a_formatter_that_runs_after_each_edit_is_not_in_the_way() {
    let source = "fn main() {\n    let a = 1;\n    let b = 2;\n    let c = 3;\n}\n";
    for_every_client(&[("a.rs", source)], |agent, place| {
        passes(agent.read("a.rs", None));
        for (old, new, formatted) in [
            ("    let b = 2;", "    let b=f(1,2);", "    let b = f(1, 2);"),
            ("    let c = 3;", "    let c=g( 3 );", "    let c = g(3);"),
            ("    let a = 1;", "    let a=h( );", "    let a = h();"),
        ] {
            let said = agent.edit("a.rs", old, new).expect("only the format has changed");
            assert!(!said.contains("refused"), "{said}");
            // The formatter finishes after our hook has run.
            place.write("a.rs", &place.content("a.rs").replacen(new, formatted, 1));
        }
        assert!(place.content("a.rs").contains("h();\n    let b = f(1, 2);\n    let c = g(3);\n"));
    });
}

#[test]
fn a_file_that_has_gone_is_made_anew_and_that_is_said() {
    for_every_client(&[("sub/a.txt", "alpha\nbeta\n")], |agent, place| {
        passes(agent.read("sub/a.txt", None));
        fs::rename(place.root().join("sub"), place.root().join("moved")).unwrap();
        let said = agent.write("sub/a.txt", "mine\n").unwrap() + &agent.shell("true").unwrap();
        assert!(agent.is_deaf() || said.contains("sub/a.txt was deleted or moved since you read it"), "{said}");
    });
}

#[test]
fn what_a_command_prints_in_a_nested_repository_is_read_there() {
    for client in HookClient::ALL {
        eprintln!("{client:?}");
        let place = nested();
        let agent = Agent { directory: "vendor/lib", ..Agent::new(*client, &place) };
        passes(agent.shell("cat a.txt"));
        let path = if *client == HookClient::Codex { "a.txt" } else { "vendor/lib/a.txt" };
        let apply = || place.write("vendor/lib/a.txt", "alpha\nBETA\ngamma\n");
        passes(agent.edit_by(path, "beta", "BETA", apply));
        assert_eq!(log_of(&place, "vendor/lib"), ["a.txt"]);
        assert!(log_of(&place, "").is_empty());
    }
}

#[test]
fn a_command_is_not_blamed_for_what_others_did() {
    for_every_client(ABC, |agent, place| {
        passes(agent.read("a.txt", None));
        for number in 0..40 {
            place.write(&format!("b{number}.txt"), "one\n");
            passes(agent.read(&format!("b{number}.txt"), None));
        }
        // No hook checks a file that was read this long ago, until a command names it.
        place.write("a.txt", "alpha\nHUMAN\ngamma\n");
        let said = agent.shell("cat a.txt").unwrap();
        assert!(!said.contains("by your command"), "{said}");
        assert!(place.open().log(&EventFilter::default(), 9).unwrap().is_empty());
    });
    for client in HookClient::ALL {
        let place = nested();
        let agent = Agent::new(*client, &place);
        passes(agent.shell("cat vendor/lib/a.txt"));
        place.write("vendor/lib/a.txt", "alpha\nHUMAN\ngamma\n");
        let said = agent.shell("touch new.txt").unwrap();
        assert!(!said.contains("by your command"), "{said}");
        assert!(log_of(&place, "vendor/lib").is_empty(), "{client:?}");
    }
}

#[test]
fn a_session_that_did_not_see_a_removal_does_not_write_the_lines_back() {
    for_every_client(TEN, |agent, place| {
        passes(agent.read("a.txt", None));
        place.write("a.txt", "one\ntwo\nthree\nseven\neight\nnine\nten\n");
        agent.read("a.txt", Some((1, 2))).unwrap();
        denied(agent.write("a.txt", "one\ntwo\nthree\nfour\n"), &["a.txt", "3|three", "4|seven"]);
    });
}

#[test]
fn what_a_model_could_not_hear_it_has_not_seen() {
    let place = Place::with(TEN);
    let agent = Agent::new(HookClient::Goose, &place);
    agent.read("a.txt", None).unwrap();
    passes(agent.shell("true"));
    place.write("a.txt", &place.content("a.txt").replace("two", "HUMAN"));
    passes(agent.edit("a.txt", "eight", "EIGHT"));
    denied(agent.write("a.txt", "all of it\n"), &["2|HUMAN"]);
}

#[test]
fn a_large_text_over_what_is_no_text_can_be_taken_back() {
    const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0";
    for_every_client(&[], |agent, place| {
        fs::write(place.root().join("a.png"), IMAGE).unwrap();
        let text = "a line of text\n".repeat(20_000);
        denied(agent.write("a.png", &text), &["a PNG image"]);
        passes(agent.write("a.png", &text));
        let undo = UndoRequest { which: UndoTarget::Last, by: WhoseChanges::Anyone, force: false };
        assert!(Session::new(place.open()).undo(&undo).refusal().is_none());
        assert_eq!(fs::read(place.root().join("a.png")).unwrap(), IMAGE, "{:?}", agent.client);
    });
}
